"""A graph without directions, relations and parallel edges, as a sparse matrix: what measures of shape look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.graph._edges import Edges

__all__ = ["SimpleGraph", "simple_graph"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SimpleGraph:
    """``nodes`` i64[n], those that an edge joins, ascending; ``matrix`` CSR f64[n, n], symmetric.

    An entry of the matrix is the weight that joins two nodes: edges between the same two add up.
    """

    nodes: Ints
    matrix: Any

    def places(self, rows: Ints) -> Ints:
        """Where each of these nodes stands in ``nodes``; -1 for one that no edge joins."""
        if not len(self.nodes):
            return np.full(len(rows), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.nodes, rows), len(self.nodes) - 1)
        return np.where(self.nodes[place] == rows, place, -1)


def simple_graph(edges: Edges, keep: NDArray[np.bool_] | None = None) -> SimpleGraph:
    """The simple graph of the edges that are alive, or of those of the mask ``keep`` bool[len(edges)]."""
    from scipy.sparse import csr_matrix

    numbers = np.flatnonzero(edges.alive if keep is None else keep)
    source, target = edges.ends(numbers)
    nodes = np.unique(np.concatenate((source, target)))
    left, right = np.searchsorted(nodes, source), np.searchsorted(nodes, target)
    ends = (np.concatenate((left, right)), np.concatenate((right, left)))
    weight = np.tile(edges.weight[numbers].astype(np.float64), 2)
    return SimpleGraph(nodes, csr_matrix((weight, ends), shape=(len(nodes), len(nodes))))
