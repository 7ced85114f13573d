"""Which statements may take the place of an older one that answers: later ones on the same subject."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.index import products, products_below

__all__ = ["corrects", "min_max", "takes_over"]

_TYPICAL, _AT_TYPICAL, _PER_LOG_WORD = 8.0, 0.03, 0.233
"""Closeness of a pair of statements that have nothing to do with each other: at eight words each, and by the logarithm
of the geometric mean of their numbers of words. A line through 9,290 pairs of statements of tests and experiments."""

_BIAS, _PER_NEARER, _PER_GAP, _PER_LATE, _PER_SHARED = -6.7, 5.5, 5.1, 5.2, 7.0
"""Log-odds that a correction corrects a statement of which a query is asked: by how much closer the two are than an
unrelated pair, by how much less close than the nearest older statement, by the feature ``late`` of the correction, and
by the share of the words of the shorter one that both hold. Fitted by ``experiments/corrects.py`` to labs in which half
of the corrections correct nothing that is there.
"""

_IF_CHANGE = 2.0
"""Added for a correction that says a change ("moved", "now", "instead"): it leaves out what was said before, where one
that says "not in seconds" repeats it. The fit gives .3; set by hand between what leads rightly and wrongly."""

_ODDS = (-1.5, -0.75)
"""Log-odds from which it may be the correction, and from which it surely is."""

Scores = NDArray[np.float64]


def min_max(values: Scores) -> Scores:
    """From 0 to 1 over the pool; 0 where all are equal."""
    if not len(values):
        return values
    low, high = np.minimum.reduce(values), np.maximum.reduce(values)
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
    older = _older(created, speakers)
    older &= (sessions != sessions[:, None]) | (sessions < 0)
    (later, earlier) = older.nonzero()
    found = np.zeros(len(vectors))
    if not len(later):
        return found
    worth = np.maximum(_closeness_of(vectors, later, earlier, created, closeness), 0.0)
    worth *= (relevance**3)[earlier]
    starts = np.flatnonzero(np.diff(later, prepend=-1))
    found[later[starts]] = np.maximum.reduceat(worth, starts)
    return found


def corrects(
    rows: NDArray[np.int64],
    vectors: NDArray[np.int8],
    relevance: Scores,
    late: Scores,
    words: Scores,
    content: Sequence[frozenset[int]],
    says_change: NDArray[np.bool_],
    created: NDArray[Any],
    speakers: NDArray[np.int32],
    closeness: Callable[[Scores], Scores],
) -> Scores:
    """Return how relevant the statement is that each correction corrects, cubed; 0 for all but ``rows``.

    Parameters
    ----------
    rows
        The places of corrections in the pool, in any order.
    relevance, late, words
        Of each place, how relevant it is, from 0 to 1, and the features ``late`` and ``words``.
    content, says_change
        Of each place, the stems that say what it is about, and whether a word of it says that something changed.

    Notes
    -----
    A correction rarely repeats the words of what it corrects. Which older statement of its speaker is meant is told by
    how close the two are, for texts of their lengths, by the words that both hold, and by how much the correction itself
    speaks of the query. A correction of a correction has the relevance of the first statement.
    """
    found = np.zeros(len(vectors))
    allowed = _older(created, speakers)
    length = np.log(np.maximum(words, 1.0) / _TYPICAL)
    nearer = _closeness(vectors, allowed, closeness) - _AT_TYPICAL - _PER_LOG_WORD * (length + length[:, None]) / 2.0
    reached = relevance.copy()
    for row in rows[np.argsort(created[rows], kind="stable")].tolist():
        (older,) = np.nonzero(allowed[row])
        if not len(older):
            continue
        near = nearer[row, older]
        odds = _BIAS + _PER_NEARER * near + _PER_GAP * (near - near.max()) + _PER_LATE * late[row]
        odds += _IF_CHANGE if says_change[row] else 0.0
        odds += _PER_SHARED * np.array([_shared(content[row], content[place]) for place in older.tolist()])
        share = np.clip((odds - _ODDS[0]) / (_ODDS[1] - _ODDS[0]), 0.0, 1.0)
        found[row] = (share * reached[older] ** 3).max()
        reached[row] = max(reached[row], np.cbrt(found[row]))
    return found


def _shared(one: frozenset[int], other: frozenset[int]) -> float:
    """Return the share of the stems of the shorter statement that both hold."""
    return len(one & other) / max(1, min(len(one), len(other)))


def _older(created: NDArray[Any], speakers: NDArray[np.int32]) -> NDArray[np.bool_]:
    """bool[rows, rows]: where the row of the column is older than that of the line, and of the same speaker."""
    return np.asarray((created < created[:, None]) & (speakers == speakers[:, None]))


def _closeness_of(
    vectors: NDArray[np.int8],
    later: NDArray[np.int64],
    earlier: NDArray[np.int64],
    created: NDArray[Any],
    closeness: Callable[[Scores], Scores],
) -> NDArray[np.float64]:
    """The closeness of pairs of rows, each of which has a later and an earlier one."""
    matrix = vectors.astype(np.float32)
    ascending = bool((created[1:] >= created[:-1]).all())
    dots = (products_below if ascending else products)(matrix, matrix)[later, earlier].astype(np.float64)
    lengths = np.sqrt(np.maximum(np.einsum("ij,ij->i", matrix, matrix).astype(np.float64), 1.0))
    return closeness(dots / (lengths[later] * lengths[earlier]))


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
