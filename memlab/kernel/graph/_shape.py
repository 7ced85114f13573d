"""A graph without directions, relations and parallel edges, as a sparse matrix: what measures of shape look at."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from memlab.errors import InputError
from memlab.kernel.base.printable import printable
from memlab.kernel.graph._edges import Edges
from memlab.kernel.graph._nodes import node_kinds, to_integers

__all__ = [
    "Clustering",
    "Communities",
    "Path",
    "SimpleGraph",
    "Trace",
    "bridges",
    "clustering",
    "communities",
    "density",
    "simple_graph",
    "trace",
]


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


# The shape of a graph: density, clustering, and what lies between communities.
#
# They see a simple graph: direction and relation do not count, and edges that join the same two nodes are one.


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Clustering:
    """The share of a node's pairs of neighbours that are joined (Watts and Strogatz 1998), and its mean.

    ``exact`` is false where nodes were drawn at random instead of trying all.
    """

    rows: Ints
    coefficient: Floats
    mean: float
    exact: bool


def density(edges: Edges, *, nodes: int) -> float:
    """The share of all pairs of ``nodes`` nodes that are joined; 0 for fewer than two nodes.

    >>> edges = Edges()
    >>> edges.append([0, 1, 1], [1, 0, 2], 0, 1.0, nodes=4).tolist()
    [0, 1, 2]
    >>> round(density(edges, nodes=4), 3)
    0.333
    """
    return simple_graph(edges).matrix.nnz / (nodes * (nodes - 1)) if nodes > 1 else 0.0


def clustering(
    edges: Edges | SimpleGraph, rows: ArrayLike, *, most: int = 1_000, seed: int = 0
) -> Clustering:
    """The local clustering coefficient of ``rows``, 0 where there are fewer than two neighbours.

    Of more than ``most`` rows that many are drawn by ``seed``; the mean of 1,000 has a standard error of at most 0.016.
    """
    graph = edges if isinstance(edges, SimpleGraph) else simple_graph(edges)
    wanted = np.unique(to_integers("row", rows))
    exact = len(wanted) <= most
    if not exact:
        wanted = np.sort(np.random.default_rng(seed).choice(wanted, most, replace=False))
    matrix, marked = graph.matrix, np.zeros(len(graph.nodes), dtype=np.bool_)
    coefficient = np.zeros(len(wanted))
    for at, place in enumerate(graph.places(wanted)):
        near = matrix.indices[matrix.indptr[place] : matrix.indptr[place + 1]] if place >= 0 else []
        if len(near) > 1:
            marked[near] = True
            coefficient[at] = marked[matrix[near].indices].sum() / (len(near) * (len(near) - 1))
            marked[near] = False
    return Clustering(wanted, coefficient, float(coefficient.mean()) if len(wanted) else 0.0, exact)


def bridges(edges: Edges, rows: ArrayLike, labels: ArrayLike) -> pl.DataFrame:
    """What joins communities: a row for each two, with how many edges, their weight, and the strongest one's number.

    ``labels[i]`` is the community of ``rows[i]``; edges of other nodes do not count. Most weight first.
    """
    nodes, groups = to_integers("row", rows), to_integers("label", labels)
    if nodes.ndim != 1 or nodes.shape != groups.shape:
        raise InputError(f"{nodes.size} rows do not pair with {groups.size} labels.")
    order = np.argsort(nodes, kind="stable")
    nodes, groups = nodes[order], groups[order]
    if (nodes[1:] == nodes[:-1]).any():
        raise InputError(
            f"Row {nodes[:-1][nodes[1:] == nodes[:-1]][0]} is labelled more than once."
        )
    numbers = np.flatnonzero(edges.alive)
    source, target = edges.ends(numbers)
    left, right = _looked_up(nodes, groups, source), _looked_up(nodes, groups, target)
    between = (left[0] & right[0]) & (left[1] != right[1])
    numbers = numbers[between]
    return (
        pl.DataFrame(
            {
                "left": np.minimum(left[1], right[1])[between],
                "right": np.maximum(left[1], right[1])[between],
                "edge": numbers,
                "weight": edges.weight[numbers],
            }
        )
        .sort("weight", "edge", descending=[True, False])
        .group_by("left", "right", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("edges"),
            pl.col("weight").sum(),
            pl.col("edge").first().alias("strongest"),
        )
        .sort("weight", "left", "right", descending=[True, False, False])
    )


def _looked_up(nodes: Ints, groups: Ints, wanted: Ints) -> tuple[NDArray[np.bool_], Ints]:
    """Whether each node has a label, and the label."""
    if not len(nodes):
        return np.zeros(len(wanted), dtype=np.bool_), np.zeros(len(wanted), dtype=np.int64)
    place = np.minimum(np.searchsorted(nodes, wanted), len(nodes) - 1)
    return nodes[place] == wanted, groups[place]


# Communities by modularity: the Louvain method of Blondel and others (2008).


_STARTS, _STARTS_OF_LARGE = 4, 2
"""Orders of the nodes that are tried: a single order is up to .02 of modularity below the best of four."""

_LARGE = 30_000
"""Joined pairs beyond which two orders are tried: an order takes 0.6 s at 100,000 pairs."""

_SMALLEST_GAIN = 1e-12
"""A node moves for a greater gain than this share of all weight, so that rounding moves none."""


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
    groups: the best of four runs, each over the nodes in another order; of two beyond 30,000 joined pairs.

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
            raise InputError(
                f"A mask of edges has {len(edges)} flags, not {keep.dtype} {keep.shape}."
            )
        kept &= keep
    graph = simple_graph(edges, kept)
    if not len(graph.nodes):
        return Communities(graph.nodes, graph.nodes, 0.0)
    best, labels = -np.inf, np.arange(len(graph.nodes))
    starts = _STARTS if graph.matrix.nnz <= 2 * _LARGE else _STARTS_OF_LARGE
    for start in np.random.SeedSequence(seed).generate_state(starts):
        found = _find_groups(graph.matrix, resolution, np.random.default_rng(start))
        reached = _modularity(graph.matrix, found, resolution)
        if reached > best:
            best, labels = reached, found
    return Communities(graph.nodes, _by_size(labels), best)


def _find_groups(matrix: Any, resolution: float, rng: np.random.Generator) -> Ints:
    """Move nodes between groups, make each group a node, and repeat until no group joins another."""
    from scipy.sparse import csr_matrix

    labels = np.arange(matrix.shape[0])
    while True:
        groups = _move_nodes(matrix, resolution, rng.permutation(matrix.shape[0]))
        count = int(groups.max()) + 1
        labels = groups[labels]
        if count == matrix.shape[0]:
            return labels
        pairs = matrix.tocoo()
        matrix = csr_matrix(
            (pairs.data, (groups[pairs.row], groups[pairs.col])), shape=(count, count)
        )


def _move_nodes(matrix: Any, resolution: float, order: Ints) -> Ints:
    """Move each node to the neighbouring group with the greatest gain; look again at the neighbours of a moved node."""
    starts, targets, weights = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    strengths = np.asarray(matrix.sum(axis=1)).ravel()
    total = float(strengths.sum())
    strength, volume = strengths.tolist(), strengths.tolist()
    label, waiting = list(range(len(volume))), [True] * len(volume)
    queue = deque(order.tolist())
    while queue:
        node = queue.popleft()
        waiting[node] = False
        own, first, last = label[node], starts[node], starts[node + 1]
        joined = {own: 0.0}
        for other, weight in zip(targets[first:last], weights[first:last], strict=True):
            if other != node:
                group = label[other]
                joined[group] = joined.get(group, 0.0) + weight
        volume[own] -= strength[node]
        expected = resolution * strength[node] / total
        best, most = own, joined[own] - expected * volume[own] + _SMALLEST_GAIN * total
        for group, weight in joined.items():
            gain = weight - expected * volume[group]
            if gain > most:
                best, most = group, gain
        volume[best] += strength[node]
        if best != own:
            label[node] = best
            for other in targets[first:last]:
                if not waiting[other] and label[other] != best:
                    waiting[other] = True
                    queue.append(other)
    return np.unique(label, return_inverse=True)[1]


def _modularity(matrix: Any, labels: Ints, resolution: float) -> float:
    pairs, total = matrix.tocoo(), float(matrix.sum())
    inside = pairs.data[labels[pairs.row] == labels[pairs.col]].sum() / total
    volume = np.bincount(labels, np.asarray(matrix.sum(axis=1)).ravel()) / total
    return float(inside - resolution * (volume**2).sum())


def _by_size(labels: Ints) -> Ints:
    """The same groups: the largest is 0, ties by the smallest member."""
    _, first, group, size = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.empty(len(size), dtype=np.int64)
    rank[np.lexsort((first, -size))] = np.arange(len(size))
    return np.asarray(rank[group])


# The strongest paths from a node, as a frame and as a tree.


@dataclass(frozen=True)
class Path:
    """A walk from ``nodes[0]`` that meets no node twice; step ``i`` crosses ``edges[i]``, outgoing or against it."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    relations: tuple[str, ...]
    weights: tuple[float, ...]
    outgoing: tuple[bool, ...]
    product: float

    @property
    def depth(self) -> int:
        """How many edges it crosses."""
        return len(self.edges)


@dataclass(frozen=True)
class Trace:
    """The paths from ``node``, the strongest first. ``cut`` says that there are more than these."""

    node: int
    paths: tuple[Path, ...]
    cut: bool

    @property
    def frame(self) -> pl.DataFrame:
        """A row a path: ``target`` where it ends, ``depth``, ``product`` of its weights, and its steps as lists."""
        paths = self.paths
        return pl.DataFrame(
            {
                "target": [path.nodes[-1] for path in paths],
                "depth": [path.depth for path in paths],
                "product": [path.product for path in paths],
                "nodes": [list(path.nodes) for path in paths],
                "edges": [list(path.edges) for path in paths],
                "relations": [list(path.relations) for path in paths],
                "weights": [list(path.weights) for path in paths],
                "outgoing": [list(path.outgoing) for path in paths],
            },
            schema={
                "target": pl.Int64,
                "depth": pl.Int64,
                "product": pl.Float64,
                "nodes": pl.List(pl.Int64),
                "edges": pl.List(pl.Int64),
                "relations": pl.List(pl.String),
                "weights": pl.List(pl.Float64),
                "outgoing": pl.List(pl.Boolean),
            },
        )

    def tree(self, label: Callable[[int], str] = str) -> str:
        """The paths as a tree of text; ``label`` names a node. A path stands below the one that it goes on from."""
        below: dict[tuple[int, ...], list[Path]] = {}
        for path in self.paths:
            below.setdefault(path.edges[:-1], []).append(path)
        lines = [label(self.node)]
        # depth is bounded by the caller, the stack is not the interpreter's
        stack = [(path, "", at == 0) for at, path in enumerate(reversed(below.get((), [])))]
        while stack:
            path, indent, last = stack.pop()
            arrow = f"─{path.relations[-1]}→" if path.outgoing[-1] else f"←{path.relations[-1]}─"
            lines.append(
                f"{indent}{'└' if last else '├'}{arrow} {label(path.nodes[-1])} ({path.weights[-1]:.2f})"
            )
            deeper = reversed(below.get(path.edges, []))
            stack += [
                (child, indent + ("  " if last else "│ "), at == 0)
                for at, child in enumerate(deeper)
            ]
        if self.cut:
            lines.append("...")
        return "\n".join(lines)

    def __str__(self) -> str:
        return printable(self.tree())


def trace(edges: Edges, node: int, depth: int, *, most: int = 100) -> Trace:
    """The ``most`` strongest simple paths of at most ``depth`` edges from ``node``, in both directions.

    A path is as strong as the product of its weights; of equals the one of fewer edges comes first, then the one
    whose edges have smaller numbers. Weights are at most 1, so whatever a path goes on from stands before it.
    It looks at the edges of at most ``most`` nodes, hubs in whole. InputError: a depth or a number below 1, a relation
    without a name.

    >>> edges = Edges()
    >>> edges.append([0, 1, 0], [1, 2, 2], [1, 2, 1], [0.9, 0.8, 0.5], nodes=3).tolist()
    [0, 1, 2]
    >>> print(trace(edges, 0, 2, most=3))
    0
    ├─relates-to→ 1 (0.90)
    │ └─supersedes→ 2 (0.80)
    └─relates-to→ 2 (0.50)
    ...
    """
    if depth < 1 or most < 1:
        raise InputError(
            f"A trace has at least one path of at least one edge, not {most} of {depth}."
        )
    node_kinds([node])
    start = Path((node,), (), (), (), (), 1.0)
    # strongest first, then short, then by the numbers of its edges, which no two paths share
    waiting: list[tuple[float, int, tuple[int, ...], Path]] = [(-1.0, 0, (), start)]
    found: list[Path] = []
    while waiting and len(found) <= most:
        path = heapq.heappop(waiting)[3]
        if path.edges:
            found.append(path)
        if path.depth < depth and len(found) <= most:
            # of one path's continuations no more than are wanted can be among the strongest
            for longer in _onward(edges, path, most + 1 - len(found)):
                heapq.heappush(waiting, (-longer.product, longer.depth, longer.edges, longer))
    return Trace(node, tuple(found[:most]), len(found) > most)


def _onward(edges: Edges, path: Path, most: int) -> list[Path]:
    """The strongest paths of one edge more."""
    crossed = edges.crossings(np.array([path.nodes[-1]]))
    new = np.flatnonzero(~np.isin(crossed.neighbour, path.nodes))
    edge = crossed.edge[new]
    strongest = np.lexsort((edge, -path.product * edges.weight[edge]))[:most]
    longer = []
    for place in new[strongest].tolist():
        number = int(crossed.edge[place])
        relation, weight = int(edges.relation[number]), float(edges.weight[number])
        if relation >= len(edges.relations):
            raise InputError(
                f"Edge {number} has relation {relation}; {len(edges.relations)} have names."
            )
        longer.append(
            Path(
                (*path.nodes, int(crossed.neighbour[place])),
                (*path.edges, number),
                (*path.relations, edges.relations[relation]),
                (*path.weights, weight),
                (*path.outgoing, bool(crossed.outgoing[place])),
                path.product * weight,
            )
        )
    return longer
