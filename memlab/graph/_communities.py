"""Communities by modularity: the Louvain method in sweeps over whole columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.graph._edges import Edges

__all__ = ["Communities", "communities"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST_SWEEPS = 100
_LEAST_GAIN = 1e-5
"""Modularity that the sweeps over one level have to gain lest they end, 4 in a row at the most without it."""


@dataclass(frozen=True)
class Communities:
    """``labels[i]`` is the community of node ``rows[i]``; 0 is the largest, ties by the smallest member.

    ``rows`` are the nodes that an edge joins, ascending. ``modularity`` is Newman's (2004), weighted.
    """

    rows: Ints
    labels: Ints
    modularity: float

    def __len__(self) -> int:
        return int(self.labels.max(initial=-1)) + 1

    @property
    def frame(self) -> pl.DataFrame:
        """A row a node: ``row`` and ``community``."""
        return pl.DataFrame({"row": self.rows, "community": self.labels})


def communities(
    edges: Edges, *, seed: int = 0, resolution: float = 1.0, keep: NDArray[np.bool_] | None = None
) -> Communities:
    """Groups of nodes with more weight inside than chance would give, by the method of Blondel and others (2008).

    Direction does not count, and edges that join the same two nodes add up. ``keep`` is a mask of the edges that
    take part. A ``resolution`` above 1 gives more and smaller groups. The same edges and ``seed`` give the same
    groups. In each sweep a random half of the nodes move at once to the neighbouring community with most gain;
    measured on planted groups this loses less than .005 of modularity against moving one node after the other.

    >>> edges = Edges()
    >>> edges.append([0, 1, 0, 3, 4, 3, 2], [1, 2, 2, 4, 5, 5, 3], 0, 1.0, nodes=6).tolist()
    [0, 1, 2, 3, 4, 5, 6]
    >>> communities(edges).labels.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    if not 0 < resolution < np.inf:
        raise InputError(f"The resolution is above 0 and finite, not {resolution}.")
    kept = edges.alive & (edges.weight > 0)
    if keep is not None:
        if keep.shape != kept.shape or keep.dtype != np.bool_:
            raise InputError(f"A mask of edges has {len(edges)} flags, not {keep.dtype} {keep.shape}.")
        kept &= keep
    numbers = np.flatnonzero(kept)
    source, target = edges.ends(numbers)
    rows = np.sort(np.concatenate((source, target)))
    rows = rows[np.diff(rows, prepend=-1) > 0]
    if not len(rows):
        return Communities(rows, rows, 0.0)
    matrix = _symmetric(np.searchsorted(rows, source), np.searchsorted(rows, target), edges.weight[numbers], len(rows))
    whole, labels = matrix, np.arange(len(rows))
    chance = np.random.default_rng(seed)
    while True:
        moved = _dense_labels(_sweeps(matrix, resolution, chance))
        if moved.max() + 1 == matrix.shape[0]:
            break
        labels = moved[labels]
        groups = _indicator(moved)
        matrix = (groups.T @ matrix @ groups).tocsr()
    labels = _by_size(labels)
    return Communities(rows, labels, _modularity(whole, labels, resolution))


def _sweeps(matrix: Any, resolution: float, chance: np.random.Generator) -> Ints:
    """Labels after nodes have moved between communities for as long as that gains."""
    count = matrix.shape[0]
    weight: Floats = np.asarray(matrix.sum(axis=1)).ravel()
    total = float(weight.sum())
    labels = best = np.arange(count)
    reached = _modularity(matrix, labels, resolution)
    idle = 0
    loops = matrix.diagonal()
    for _ in range(_MOST_SWEEPS):
        movers = np.flatnonzero(chance.random(count) < 0.5)
        labels = labels.copy()
        labels[movers] = _moved(matrix, movers, labels, weight, loops, resolution / total)
        now = _modularity(matrix, labels, resolution)
        idle = 0 if now > reached + _LEAST_GAIN else idle + 1
        if now > reached:
            reached, best = now, labels
        if idle == 4:
            break
    return best


def _moved(matrix: Any, movers: Ints, labels: Ints, weight: Floats, loops: Floats, scale: float) -> Ints:
    """Where each of ``movers`` gains most, given where all the others are; ties by the smaller label."""
    if not len(movers):
        return movers
    sizes = np.bincount(labels, weights=weight, minlength=len(labels))
    joined = (matrix[movers] @ _indicator(labels)).tocsr()
    joined.sort_indices()
    mover = np.repeat(np.arange(len(movers)), np.diff(joined.indptr))
    group, own = joined.indices.astype(np.int64), labels[movers]
    at_home = group == own[mover]
    mine = weight[movers]
    inside = joined.data - np.where(at_home, loops[movers][mover], 0.0)
    gain = inside - scale * mine[mover] * (sizes[group] - np.where(at_home, mine[mover], 0.0))
    stay = -scale * mine * (sizes[own] - mine)
    stay[mover[at_home]] = gain[at_home]
    top = np.full(len(movers), -np.inf)
    np.maximum.at(top, mover, gain)
    choice = np.flatnonzero(gain == top[mover])
    first = choice[np.diff(mover[choice], prepend=-1) > 0]
    goes = own.copy()
    better = top > stay + 1e-12 * mine
    goes[mover[first]] = np.where(better[mover[first]], group[first], own[mover[first]])
    return goes


def _modularity(matrix: Any, labels: Ints, resolution: float) -> float:
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    total = float(matrix.data.sum())
    inside = float(matrix.data[labels[rows] == labels[matrix.indices]].sum())
    sizes = np.bincount(labels[rows], weights=matrix.data)
    return inside / total - resolution * float(np.sum((sizes / total) ** 2))


def _symmetric(source: Ints, target: Ints, weight: Floats, count: int) -> Any:
    from scipy.sparse import coo_array

    ends = (np.concatenate((source, target)), np.concatenate((target, source)))
    return coo_array((np.concatenate((weight, weight)), ends), shape=(count, count)).tocsr()


def _indicator(labels: Ints) -> Any:
    from scipy.sparse import csr_array

    count = len(labels)
    return csr_array((np.ones(count), labels, np.arange(count + 1)), shape=(count, int(labels.max()) + 1))


def _dense_labels(labels: Ints) -> Ints:
    """The same groups, numbered 0, 1, ... by their labels."""
    used = np.bincount(labels) > 0
    return np.asarray((np.cumsum(used) - 1)[labels])


def _by_size(labels: Ints) -> Ints:
    """The same groups: the largest is 0, ties by the smallest member."""
    count = int(labels.max()) + 1
    first = np.full(count, len(labels))
    np.minimum.at(first, labels, np.arange(len(labels)))
    rank = np.empty(count, dtype=np.int64)
    rank[np.lexsort((first, -np.bincount(labels, minlength=count)))] = np.arange(count)
    return rank[labels]
