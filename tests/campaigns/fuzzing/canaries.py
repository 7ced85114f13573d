"""Canaries: what would sing if a text were executed."""

from __future__ import annotations

import builtins
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memlab.kernel import policies

__all__ = ["Canaries"]

PACKS = Path(policies.__file__).parent / "packs"  # the audit hook lets memlab read its own packs


class Canaries:
    """An audit hook, a built-in function and a file: ``song`` names what was touched while ``listening``."""

    WATCHED = (
        "open", "exec", "compile", "import", "os.", "subprocess.", "socket.", "shutil.", "pickle.", "marshal.",
        "ctypes.", "code.__new__", "urllib.", "http.", "sqlite3.", "builtins.input", "builtins.breakpoint", "cpython.",
        "glob.", "tempfile.",
    )  # fmt: skip

    def __init__(self, folder: Path) -> None:
        self.listening = False
        self.song: list[str] = []
        self.file = folder / "canary"
        builtins.memlab_canary = lambda *a, **k: self.song.append("the canary in builtins")
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.listening or not event.startswith(self.WATCHED):
            return
        if event == "open" and str(arguments[0]).startswith(str(PACKS)):
            return  # what a pack inherits comes with memlab
        if event in ("os.scandir", "os.listdir") and str(arguments[0]) == str(PACKS):
            return
        self.song.append(f"{event} {str(arguments)[:200]}")

    @contextlib.contextmanager
    def near(self) -> Iterator[None]:
        self.listening = True
        try:
            yield
        finally:
            self.listening = False
