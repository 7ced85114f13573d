"""Which statements may take the place of an older one that answers: later ones on the same subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.index import products

__all__ = ["corrects", "min_max", "takes_over"]

_NEAR = (0.1, 0.2)
"""Closeness from which an older statement may be what a correction corrects, and from which it counts in full. Of twenty
pairs written for this 15 are above .1; of their 380 other combinations one in twenty is above .09."""

_NEARLY = 0.6
"""Share of the closeness of the nearest older statement from which another one may be meant."""

_SPEAKS = (0.5, 0.6)
"""The feature ``late`` of a correction from which it speaks of the query, and from which it does in full: of the twenty
pairs half are above .63, of the other combinations one in twenty above .55."""

Scores = NDArray[np.float64]


def min_max(values: Scores) -> Scores:
    """From 0 to 1 over the pool; 0 where all are equal."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def takes_over(
    vectors: NDArray[np.int8],
    relevance: Scores,
    created: NDArray[Any],
    speakers: NDArray[np.int32],
    sessions: NDArray[np.int32],
    closeness: Callable[[Scores], Scores],
) -> Scores:
    """For each row the greatest, over older rows of its speaker from other sessions, of the closeness of the two times
    the cube of the older one's relevance; 0 where there is none.

    A session of -1 is none, and other than all. A pool of 100 takes .3 milliseconds of processor time.
    """
    if not len(vectors):
        return np.zeros(0)
    older = _older(created, speakers) & ((sessions != sessions[:, None]) | (sessions < 0))
    worth = np.maximum(_closeness(vectors, older, closeness), 0.0)
    worth *= relevance**3
    found: Scores = worth.max(axis=1)
    return found


def corrects(
    rows: NDArray[np.int64],
    vectors: NDArray[np.int8],
    relevance: Scores,
    late: Scores,
    created: NDArray[Any],
    speakers: NDArray[np.int32],
    closeness: Callable[[Scores], Scores],
) -> Scores:
    """Return how relevant the statement is that each correction corrects, cubed; 0 for all but ``rows``.

    Parameters
    ----------
    rows
        The places of corrections in the pool, in any order.
    relevance, late
        Of each place, how relevant it is, from 0 to 1, and the feature ``late``.

    Notes
    -----
    A correction rarely repeats the words of what it corrects. It is taken to correct an older statement of its speaker
    that is nearly as close to it as its nearest one is, in proportion to their closeness; or any, in proportion to how
    much the correction itself speaks of the query. A correction of a correction has the relevance of the first statement.
    """
    found = np.zeros(len(vectors))
    near = _closeness(vectors, _older(created, speakers), closeness)
    speaks = np.clip((late - _SPEAKS[0]) / (_SPEAKS[1] - _SPEAKS[0]), 0.0, 1.0)
    reached = relevance.copy()
    for row in rows[np.argsort(created[rows], kind="stable")].tolist():
        older = near[row] > -1.0
        if not older.any():
            continue
        share = np.clip((near[row] - _NEAR[0]) / (_NEAR[1] - _NEAR[0]), 0.0, 1.0)
        share *= near[row] >= _NEARLY * near[row].max()
        share = np.where(older, np.maximum(share, speaks[row]), 0.0)
        found[row] = (share * reached**3).max()
        reached[row] = max(reached[row], np.cbrt(found[row]))
    return found


def _older(created: NDArray[Any], speakers: NDArray[np.int32]) -> NDArray[np.bool_]:
    """bool[rows, rows]: where the row of the column is older than that of the line, and of the same speaker."""
    return np.asarray((created < created[:, None]) & (speakers == speakers[:, None]))


def _closeness(
    vectors: NDArray[np.int8], wanted: NDArray[np.bool_], closeness: Callable[[Scores], Scores]
) -> NDArray[np.float64]:
    """f64[rows, rows]: the closeness of the wanted pairs; -1 of all others."""
    matrix = vectors.astype(np.float32)
    dots = products(matrix, matrix).astype(np.float64)
    lengths = np.sqrt(np.maximum(dots.diagonal(), 1.0))
    found = np.full(dots.shape, -1.0)
    found[wanted] = closeness(dots[wanted] / (lengths[:, None] * lengths)[wanted])
    return found
