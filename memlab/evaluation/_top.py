"""The items that a policy would show: the best of each recall by strict rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_of_each"]

Ints = NDArray[np.int64]


def best_of_each(scores: NDArray[np.float64], recall: Ints, limit: Ints) -> tuple[Ints, Ints]:
    """Rows and ranks (from 1) of the ``limit[d]`` best scores of each recall ``d``, best first, recall by recall.

    ``recall`` (int64[n]) ascends, and rows of one recall stand in the order of their memory ids, by which ties break.
    A score that is NaN or infinite is never shown, as in the engine.

    >>> rows, ranks = best_of_each(np.array([0.1, 0.9, 0.9]), np.zeros(3, np.int64), np.array([2]))
    >>> rows.tolist(), ranks.tolist()
    ([1, 2], [1, 2])
    """
    sizes = np.bincount(recall, minlength=len(limit))
    kept = np.flatnonzero(np.isfinite(scores) & (scores >= _least(scores, recall, sizes, limit)[recall]))
    kept = kept[np.lexsort((-scores[kept], recall[kept]))]
    counts = np.bincount(recall[kept], minlength=len(limit))
    rank = np.arange(len(kept)) - (np.cumsum(counts) - counts)[recall[kept]] + 1
    first = rank <= limit[recall[kept]]
    return kept[first], rank[first]


def _least(scores: NDArray[np.float64], recall: Ints, sizes: Ints, limit: Ints) -> NDArray[np.float64]:
    """A score for each recall below which nothing is shown: sorting only what is left is ten times as quick."""
    pool, most = int(sizes.max(initial=0)), int(limit.max(initial=1))
    if most >= pool or pool * len(sizes) > 4 * len(scores):
        return np.full(len(sizes), -np.inf)
    padded = np.full((len(sizes), pool), -np.inf)
    at = np.arange(len(scores)) - (np.cumsum(sizes) - sizes)[recall]
    padded[recall, at] = np.where(np.isfinite(scores), scores, -np.inf)
    return np.asarray(np.partition(padded, pool - most, axis=1)[:, pool - most])
