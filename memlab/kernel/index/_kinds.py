"""What an approximate index has to offer: how it is built into a file, and how that file is searched.

Annoy is the kind that memlab has. Life cycle, projection, exact scores, deleted rows and later rows are the same for
every kind, and live elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Kind", "Opened", "Points"]

Points = Iterator[NDArray[np.float32]]
"""The rows to be indexed in order, in blocks (k, dim)."""


class Opened(Protocol):
    """A file that is mapped or loaded, ready for searches."""

    def near(self, point: NDArray[np.float32], n: int, effort: float) -> NDArray[np.int64]:
        """``n`` rows near ``point``, in any order; ``effort`` multiplies how far it looks."""

    def settings(self) -> Mapping[str, int]:
        """How far it looks, for people."""


@dataclass(frozen=True)
class Kind:
    """One sort of index.

    ``settings`` gives those of a file for a number of rows; ``build`` writes the file, the same bytes each time;
    ``open`` maps it, given dimensions, rows and settings.

    An index is built by a process of its own, so an extension that declares one is an installed package with an entry
    point: what only a notebook registers is not known there.
    """

    name: str
    settings: Callable[[int], Mapping[str, int]]
    build: Callable[[Points, int, int, Mapping[str, int], Path], None]
    open: Callable[[Path, int, int, Mapping[str, int]], Opened]
    doc: str = ""
    owner: str = ""
