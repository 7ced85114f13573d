"""Which memories are about the files that a text names: by path, by name, by
stem, by the subject of the name (auth of auth-store.ts), or by a folder that they lie in."""

from __future__ import annotations

import re
import weakref
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.state import State
from memlab.subjects.reading.tags import file_subject

__all__ = ["FileNames"]

_APART = re.compile(r"[\s\"'`()\[\]{}<>,;:?!=|]+")
_SHORT = 3
"""Letters from which a stem or a folder counts."""

_MOST = 2_000
"""Pieces of a text that are looked up."""


class FileNames:
    """The paths of a state's memories by their parts; those of new memories are added when they are asked for."""

    def __init__(self) -> None:
        self._of: weakref.ref[object] | None = None
        self._seen = 0
        self._parts: dict[str, dict[str, None]] = {}
        self._rows: dict[str, list[int]] = {}

    def named(self, state: State, text: str, stop_words: frozenset[str]) -> NDArray[np.int64]:
        """The rows, ascending, with a file that ``text`` names or in whose folder a file lies that it names.

        A word is the name of a file or of a folder, without its ending too; a path is the end of a longer one.
        """
        lists = state.lists["files"]
        if not lists.held:
            return np.empty(0, dtype=np.int64)
        if self._of is None or self._of() is not lists:
            self._of, self._seen, self._parts, self._rows = weakref.ref(lists), 0, {}, {}
        for row, paths in islice(lists.filled(), self._seen, None):
            for path in map(_plain, paths):
                self._rows.setdefault(path, []).append(row)
                for part in _parts(path):
                    self._parts.setdefault(part, {})[path] = None
            self._seen += 1
        found: set[int] = set()
        pieces = dict.fromkeys(_plain(piece) for piece in _APART.split(text))
        for piece in islice(pieces, _MOST):
            if piece and piece not in stop_words:
                for path in self._like(piece):
                    found.update(self._rows[path])
        return np.array(sorted(found), dtype=np.int64)

    def _like(self, piece: str) -> list[str]:
        """The kept paths that a piece of text means."""
        if "/" not in piece:
            return list(self._parts.get(piece, ()))
        folder, _, last = piece.rpartition("/")
        same = [path for path in self._parts.get(last, ()) if _ends(piece, path) or f"/{piece}/" in f"/{path}"]
        beside = [
            path
            for path in self._parts.get(folder.rpartition("/")[2], ())
            if "." in last and "/" in path and _ends(folder, path.rpartition("/")[0])
        ]
        return [*same, *beside]


def _plain(path: str) -> str:
    return path.lower().replace("\\", "/").strip("./")


def _parts(path: str) -> list[str]:
    """What a path may be called by: its name, its stem, its folders."""
    *folders, name = path.split("/")
    stem = name.rpartition(".")[0]
    subject = file_subject(name.split(".")[0]).replace(" ", "-")
    return [name, *dict.fromkeys(part for part in (*folders, stem, subject) if len(part) >= _SHORT)]


def _ends(one: str, other: str) -> bool:
    """Whether one path is the end of the other: an absolute one and one within a project are the same."""
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")
