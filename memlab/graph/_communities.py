"""Communities by modularity: the Louvain method, as scikit-network has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.graph._edges import Edges
from memlab.graph._simple import simple_graph

__all__ = ["Communities", "communities"]

Ints = NDArray[np.int64]

_STARTS, _STARTS_OF_LARGE = 4, 2
"""Orders of the nodes that are tried: a single one is up to .01 of modularity below the best of many."""

_LARGE = 100_000
"""Joined pairs beyond which two orders have to do: 1 s an order at 100,000, 3 s at 300,000."""

_TOLERANCE = 1e-5


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
    groups: the best of four runs, each over the nodes in another order; of two beyond 100,000 joined pairs.

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
    graph = simple_graph(edges, kept)
    if not len(graph.nodes):
        return Communities(graph.nodes, graph.nodes, 0.0)
    from sknetwork.clustering import Louvain, get_modularity

    best, labels = -np.inf, np.arange(len(graph.nodes))
    starts = _STARTS if graph.matrix.nnz <= 2 * _LARGE else _STARTS_OF_LARGE
    for start in np.random.SeedSequence(seed).generate_state(starts):
        louvain = Louvain(
            resolution,
            "newman",
            tol_optimization=_TOLERANCE,
            tol_aggregation=_TOLERANCE,
            shuffle_nodes=True,
            random_state=int(start),
        )
        found = louvain.fit_predict(graph.matrix)
        reached = get_modularity(graph.matrix, found, resolution=resolution)
        if reached > best:
            best, labels = reached, found
    return Communities(graph.nodes, _by_size(labels), float(best))


def _by_size(labels: Ints) -> Ints:
    """The same groups: the largest is 0, ties by the smallest member."""
    _, first, group, size = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(len(size), dtype=np.int64)
    rank[np.lexsort((first, -size))] = np.arange(len(size))
    return np.asarray(rank[group])
