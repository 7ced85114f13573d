"""A graph index (hnswlib), an extra for those who want a million rows at high recall.

hnswlib and usearch were both measured on the vectors of ``experiments/neighbours.py``. At 100,000 rows and all 256
dimensions both reach recall@10 .95 with an expansion of 600: hnswlib in 2.2 ms, usearch (int8, mapped) in 4.3; with 96
principal directions .92 in 0.8-1.0 and 1.8. Where recall .95 is wanted within 3 ms only hnswlib qualifies. For that it
gives up the mapping: the file is read whole on opening, and each process holds a copy.

Built with one thread and a fixed seed the file has the same bytes each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import DamagedLab, MissingExtra
from memlab.index._kinds import Kind, Points

__all__ = ["GRAPH"]

_SEED = 20_260_101
_NEIGHBOURS = 24
_BUILDING = 200
_SEARCHING = ((100_000, 500), (1_000_000, 800))
"""Rows and expansion, straight lines over their logarithms. At 100,000 rows, 96 principal directions and 200 candidates
scored exactly: recall@10 .950 in 1.0 ms with 250, .968 in 2.3 ms with 500, .978 in 3.4 ms with 1,000."""


def expansion(rows: int) -> int:
    """How many rows a search keeps in view."""
    (few, low), (many, high) = _SEARCHING
    share = (np.log(max(rows, 1)) - np.log(few)) / (np.log(many) - np.log(few))
    return max(100, round(low + float(share) * (high - low)))


class Graph:
    """A graph in memory."""

    def __init__(self, path: Path, dim: int, rows: int) -> None:
        self._index, self._rows = _index(dim), rows
        try:
            self._index.load_index(str(path), max_elements=rows)
        except RuntimeError as error:
            raise DamagedLab(f"The index {path.name} cannot be read: {error}") from None
        self._expansion = expansion(rows)

    def near(self, point: NDArray[np.float32], n: int, effort: float) -> NDArray[np.int64]:
        wanted = min(max(2 * n, 200), self._rows)
        self._index.set_ef(max(round(self._expansion * effort), wanted))
        try:
            found, _ = self._index.knn_query(point, wanted, num_threads=1)
        except RuntimeError:
            # it reaches fewer rows than are wanted, as among thousands of equal vectors: none, so that all are searched
            return np.empty(0, dtype=np.int64)
        return np.asarray(found[0], dtype=np.int64)

    def settings(self) -> Mapping[str, int]:
        return {"expansion": self._expansion}


def _index(dim: int) -> Any:
    return _hnswlib().Index("cosine", dim)


def _hnswlib() -> ModuleType:
    try:
        return import_module("hnswlib")
    except ImportError:
        raise MissingExtra("A graph index", "hnswlib", "graph") from None


def _build(points: Points, dim: int, rows: int, settings: Mapping[str, int], path: Path) -> None:
    index = _index(dim)
    index.init_index(rows, M=settings["neighbours"], ef_construction=settings["building"], random_seed=settings["seed"])
    first = 0
    for block in points:
        index.add_items(block, np.arange(first, first + len(block)), num_threads=1)
        first += len(block)
    index.save_index(str(path))


GRAPH = Kind(
    "graph",
    lambda rows: {"neighbours": _NEIGHBOURS, "building": _BUILDING, "seed": _SEED},
    _build,
    lambda path, dim, rows, settings: Graph(path, dim, rows),
    _hnswlib,
)
