"""Answers by what was asked: in memory, and in a folder if there is one."""

from __future__ import annotations

import hashlib
import uuid
from contextlib import suppress
from pathlib import Path

from memlab.errors import DamagedLab
from memlab.kernel.base.disk import read_sealed, write_sealed, writing

__all__ = ["Answers"]


class Answers:
    """What a model answered, each under the checksum of the whole request, which names the model."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._held: dict[str, str] = {}
        if folder is not None:
            with writing(str(folder)):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get(self, request: bytes) -> str | None:
        """The answer that is kept; None without one, and for a file that holds something else."""
        name = _name(request)
        if name not in self._held and self.folder is not None:
            with suppress(DamagedLab, UnicodeDecodeError):
                self._held[name] = read_sealed(self.folder / name).decode()
        return self._held.get(name)

    def keep(self, request: bytes, answer: str) -> None:
        """Keep an answer; LabError where the disk refuses it."""
        name = _name(request)
        self._held[name] = answer
        if self.folder is not None:
            with writing(str(self.folder)):
                draft = self.folder / f"{name}.{uuid.uuid4().hex}"
                write_sealed(draft, answer.encode())
                draft.replace(self.folder / name)


def _name(request: bytes) -> str:
    return f"{hashlib.blake2b(request, digest_size=16).hexdigest()}.answer"
