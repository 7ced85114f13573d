"""Postings in columns: immutable segments sorted by term and row, merged as they add up.

As in a log-structured merge tree, a segment is merged into the one before it once it has grown to a quarter of its
size, so a posting is copied a logarithmic number of times, and a query meets a handful of segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Segment", "merged", "ranges", "segment_of"]

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Segment:
    """Term ``terms[i]`` (ascending) is posted at ``starts[i]:starts[i + 1]`` of ``rows`` (ascending) and ``tf``."""

    terms: Ints
    starts: NDArray[np.int64]
    rows: Ints
    tf: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def places(self, terms: Ints) -> list[slice | None]:
        """Where the postings of each term stand; None where it has none."""
        if not len(self.terms):
            return [None] * len(terms)
        at = self.terms[:-1].searchsorted(terms)
        held, starts, stops = self.terms[at] == terms, self.starts[at], self.starts[at + 1]
        return [
            slice(start, stop) if own else None
            for own, start, stop in zip(held.tolist(), starts.tolist(), stops.tolist(), strict=True)
        ]


def ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """``starts[0] .. starts[0] + counts[0] - 1``, then those of 1, and so on.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    shift: NDArray[np.int64] = np.repeat(starts - (ends - counts), counts)
    return np.arange(total) + shift


def segment_of(terms: Ints, rows: Ints, tf: Ints) -> Segment:
    """A segment of postings in any order; a pair of term and row comes once."""
    order = np.lexsort((rows, terms))
    unique, first = np.unique(terms[order], return_index=True)
    starts = np.append(first, len(terms)).astype(np.int64)
    return Segment(unique.astype(np.int32), starts, rows[order], tf[order])


def merged(parts: Sequence[Segment]) -> Segment:
    """One segment of several whose rows follow one another."""
    terms = np.unique(np.concatenate([part.terms for part in parts]))
    counts = np.zeros(len(terms), dtype=np.int64)
    places = [np.searchsorted(terms, part.terms) for part in parts]
    sizes = [np.diff(part.starts) for part in parts]
    for place, size in zip(places, sizes, strict=True):
        counts[place] += size
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows, tf = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1], dtype=np.int32)
    free = starts[:-1].copy()
    for part, place, size in zip(parts, places, sizes, strict=True):
        target = ranges(free[place], size)
        rows[target], tf[target] = part.rows, part.tf
        free[place] += size
    return Segment(terms, starts, rows, tf)
