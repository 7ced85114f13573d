"""Annoy: a forest of random splits, written once and memory-mapped, so that processes share its pages.

Built with one thread and a fixed seed it has the same bytes each time (more threads draw other trees). Annoy's own
``search_k`` (trees times neighbours) finds 8-17% of the true neighbours among 100,000 rows and more, so it is given
explicitly. Annoy silently accepts and never finds what is added after ``build``; nothing can be added here. It trusts
the nodes of its file: checksums stand before the door.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.index._kinds import Kind, Points

__all__ = ["ANNOY", "search_k"]

_SEED = 20_260_101
_TREES = 25

_SEARCH_K = ((100_000, 40_000), (1_000_000, 90_000))
"""Rows and ``search_k`` by measurement, straight lines between their logarithms. Recall@10 of questions against
statements (``experiments/neighbours.py``: 25 trees, 96 principal directions, 400 candidates scored exactly) and
processor time:

    rows        search_k   recall@10   p50 ms
    100,000       10,000        .767     1.8
    100,000       20,000        .877     2.8
    100,000       40,000        .936     4.8
    100,000       80,000        .974     8.2
    1,000,000     20,000        .738     3.8
    1,000,000     50,000        .843     7.8
    1,000,000     80,000        .891    11-12
    1,000,000    120,000        .917    14-15
    1,000,000    200,000        .939    28

With the questions of ``experiments/scale.py`` 80,000 gives .848 of 1,000,000.
50 trees there give .863 at 50,000 and .907 at 80,000, for half as much file again and twice the time.
"""


def search_k(rows: int) -> int:
    """How many nodes' rows a search looks at.

    >>> search_k(100_000), search_k(1_000_000)
    (40000, 90000)
    """
    known = np.log(np.array(_SEARCH_K, dtype=np.float64))
    slope = (known[1, 1] - known[0, 1]) / (known[1, 0] - known[0, 0])
    return round(float(np.exp(known[0, 1] + slope * (np.log(max(rows, 1)) - known[0, 0]))) / 1000) * 1000 or 1000


class Forest:
    """A mapped forest."""

    def __init__(self, path: Path, dim: int, rows: int) -> None:
        self._index = _index(dim)
        self._index.load(str(path))
        self._rows, self._search_k = rows, search_k(rows)

    def near(self, point: NDArray[np.float32], n: int, effort: float) -> NDArray[np.int64]:
        looked_at = max(round(self._search_k * effort), n)
        # four times as many are scored exactly as are wanted: it costs 0.1 ms and a projection misorders the last ones
        wanted = min(max(4 * n, 400), self._rows)
        found = self._index.get_nns_by_vector(point.tolist(), wanted, looked_at)
        return np.array(found, dtype=np.int64)

    def settings(self) -> Mapping[str, int]:
        return {"search_k": self._search_k}


def _index(dim: int) -> Any:
    from annoy import AnnoyIndex

    return AnnoyIndex(dim, "angular")


def _build(points: Points, dim: int, rows: int, settings: Mapping[str, int], path: Path) -> None:
    index = _index(dim)
    index.set_seed(settings["seed"])
    row = 0
    for block in points:
        for point in block.tolist():
            index.add_item(row, point)
            row += 1
    index.build(settings["trees"], n_jobs=1)
    index.save(str(path))
    index.unload()


ANNOY = Kind(
    "annoy",
    lambda rows: {"trees": _TREES, "seed": _SEED},
    _build,
    lambda path, dim, rows, settings: Forest(path, dim, rows),
)
