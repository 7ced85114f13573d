"""Coverage: which edges between lines of the language's code a text reaches."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from memlab.kernel.language import __file__ as _language

__all__ = ["Edges"]


class Edges:
    """Pairs of lines that ran one after the other in the language's code, over all texts that were followed."""

    def __init__(self) -> None:
        self.seen: set[tuple[CodeType, int, int]] = set()
        self._folder = str(Path(_language).parent)
        self._new = 0

    def _call(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if not code.co_filename.startswith(self._folder):
            return None
        last, edges = 0, self.seen

        def line(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            nonlocal last
            edge = (code, last, frame.f_lineno)
            last = frame.f_lineno
            if edge not in edges:
                edges.add(edge)
                self._new += 1
            return line

        return line

    def follow(self, call: Callable[[], None]) -> int:
        """Run ``call`` and return the number of new edges."""
        self._new = 0
        sys.settrace(self._call)
        try:
            call()
        finally:
            sys.settrace(None)
        return self._new
