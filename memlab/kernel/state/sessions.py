"""The memories of each session in their order, by row: derived of a column, followed when somebody asks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.state.columns import Names

__all__ = ["Sessions"]

Rows = NDArray[np.int64]

_STEPS = 100
"""Rows outside a mask that are passed one by one, a microsecond each; a longer run costs a pass over all rows."""


class Sessions:
    """What precedes and follows each row in its session. Rows that came since the last question are looked at alone."""

    def __init__(self) -> None:
        self._last = np.full(0, -1, dtype=np.int64)
        # the row before each one and the row after it; the last place is no row, and is what -1 stands for
        self._beside = np.full((2, 1), -1, dtype=np.int32)
        self._followed = 0

    def last(self, contexts: Names, code: int) -> int:
        """The newest row of the session with this code, -1 where there is none."""
        self._follow(contexts)
        return int(self._last[code]) if code >= 0 else -1

    def around(self, contexts: Names, rows: Rows, reach: int, mask: NDArray[np.bool_] | None = None) -> Rows:
        """i64[1 + 2 reach, rows]: each row, those before it, the nearest first, and those after it; -1 for none.

        With a ``mask``, neighbours are rows of the mask: the others might as well not be there.
        """
        self._follow(contexts)
        found = np.empty((1 + 2 * reach, len(rows)), dtype=np.int64)
        found[0] = rows
        for side in range(2):
            at = rows
            for step in range(reach):
                found[1 + side * reach + step] = at = self._step(contexts.codes, at, side, mask)
        return found

    def _step(self, codes: NDArray[Any], rows: Rows, side: int, mask: NDArray[np.bool_] | None) -> Rows:
        """Return the row before (side 0) or after (side 1) each row; -1 stays -1."""
        beside = self._beside[side]
        found: Rows = beside[rows].astype(np.int64)
        if mask is None:
            return found
        left = np.flatnonzero((found >= 0) & ~mask[found])
        for _ in range(_STEPS):
            if not len(left):
                return found
            found[left] = beside[found[left]]
            left = left[(found[left] >= 0) & ~mask[found[left]]]
        inside = np.flatnonzero(mask & np.isin(codes, codes[found[left]]))
        for place in left.tolist():
            session = inside[codes[inside] == codes[found[place]]]
            spot = int(session.searchsorted(found[place])) - (side == 0)
            found[place] = session[spot] if 0 <= spot < len(session) else -1
        return found

    def _follow(self, contexts: Names) -> None:
        known, size = self._followed, len(contexts)
        if known == size:
            return
        fresh = contexts.codes[known:]
        if len(self._last) < len(contexts.vocabulary):
            more = np.full(len(contexts.vocabulary) * 2 - len(self._last), -1, dtype=np.int64)
            self._last = np.concatenate([self._last, more])
        if self._beside.shape[1] <= size:
            self._beside = np.concatenate([self._beside[:, :known], np.full((2, 2 * size), -1, np.int32)], axis=1)
        (inside,) = (fresh >= 0).nonzero()
        order = inside[fresh[inside].argsort(kind="stable")]
        codes, rows = fresh[order], order + known
        opens = np.ones(len(codes), dtype=np.bool_)
        np.not_equal(codes[1:], codes[:-1], out=opens[1:])
        earlier = np.empty(len(rows), dtype=np.int64)
        earlier[1:] = rows[:-1]
        earlier[opens] = self._last[codes[opens]]
        self._last[codes] = rows  # rows ascend, and the last of several is kept
        before, after = self._beside
        before[known:size] = after[known:size] = -1
        before[rows] = earlier
        (linked,) = (earlier >= 0).nonzero()
        after[earlier[linked]] = rows[linked]
        self._followed = size
