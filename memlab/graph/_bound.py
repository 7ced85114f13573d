"""Which edges have to go so that no node has too many of one relation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from memlab.graph._edges import Edges

__all__ = ["beyond"]

Ints = NDArray[np.int64]


def beyond(
    edges: Edges, source: Ints, target: Ints, relation: Ints, weight: NDArray[np.float64], most: int
) -> tuple[Ints, NDArray[np.bool_]]:
    """Numbers of the old edges and a mask of the new ones that are not among the ``most`` strongest at both ends.

    Of equals the newer stays. Only nodes and relations that a new edge touches are looked at.
    """
    count, size = len(source), len(edges)
    refused = np.zeros(count, dtype=np.bool_)
    ends = np.concatenate((source, target))
    ordered = np.sort(ends)
    first = np.flatnonzero(np.diff(ordered, prepend=-1) > 0)
    nodes, added = ordered[first], np.diff(first, append=len(ordered))
    crowded = nodes[edges.degree(nodes) + added > most]
    if not len(crowded):
        return np.empty(0, dtype=np.int64), refused
    place = np.searchsorted(crowded, ends)
    hit = np.flatnonzero(crowded[np.minimum(place, len(crowded) - 1)] == ends)
    index = hit % count
    touched = place[hit] << 16 | relation[index]
    met = edges.crossings(crowded)
    group = met.position << 16 | edges.relation[met.edge]
    shared = np.isin(group, touched)
    group = np.concatenate((group[shared], touched))
    number = np.concatenate((met.edge[shared], index + size))
    strength = np.concatenate((edges.weight[met.edge[shared]], weight[index]))
    order = np.lexsort((-number, -strength, group))
    group = group[order]
    start = np.flatnonzero(np.diff(group, prepend=-1) > 0)
    rank = np.arange(len(group)) - np.repeat(start, np.diff(start, append=len(group)))
    over = number[order[rank >= most]]
    refused[over[over >= size] - size] = True
    return over[over < size], refused
