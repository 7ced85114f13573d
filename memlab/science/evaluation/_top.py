"""The items that a policy would show: the best of each recall by strict rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_of_each", "padded"]

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
    finite = np.isfinite(scores)
    if not finite.all():
        scores = np.where(finite, scores, -np.inf)
    kept = np.flatnonzero(finite & (scores >= _least(scores, recall, sizes, limit)[recall]))
    kept = kept[np.lexsort((-scores[kept], recall[kept]))]
    counts = np.bincount(recall[kept], minlength=len(limit))
    rank = np.arange(len(kept)) - (np.cumsum(counts) - counts)[recall[kept]] + 1
    first = rank <= limit[recall[kept]]
    return kept[first], rank[first]


def _least(scores: NDArray[np.float64], recall: Ints, sizes: Ints, limit: Ints) -> NDArray[np.float64]:
    """A score for each recall below which nothing is shown: sorting only what is left is ten times as quick."""
    pool, most = int(sizes.max(initial=0)), int(limit.max(initial=1))
    rows = None if most >= pool else padded(scores, recall, sizes)
    if rows is None:
        return np.full(len(sizes), -np.inf)
    return np.asarray(np.partition(rows, pool - most, axis=1)[:, pool - most])


def padded(scores: NDArray[np.float64], recall: Ints, sizes: Ints) -> NDArray[np.float64] | None:
    """f64[recalls, pool]: the scores of each recall, and -inf up to the largest; None where that is most of it."""
    pool = int(sizes.max(initial=0))
    if pool * len(sizes) > 4 * len(scores):
        return None
    if pool * len(sizes) == len(scores):
        return scores.reshape(len(sizes), pool)
    rows = np.full((len(sizes), pool), -np.inf)
    rows[recall, np.arange(len(scores)) - (np.cumsum(sizes) - sizes)[recall]] = scores
    return rows
