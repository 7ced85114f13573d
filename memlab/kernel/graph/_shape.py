"""Simple graphs and measures of their shape.

The measures are clustering, communities and the strongest paths.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from memlab.errors import InputError
from memlab.kernel.base.arrays import NO_ROWS, Flags, Floats, Ints
from memlab.kernel.base.printable import printable
from memlab.kernel.graph._edges import Edges
from memlab.kernel.graph._nodes import node_kinds, to_integers
from memlab.kernel.graph._sparse import SparseMatrix, build_matrix


@dataclass(frozen=True)
class SimpleGraph:
    """A graph without directions, relations and parallel edges, as a sparse matrix.

    ``nodes`` i64[n] are the nodes with an edge, ascending. ``matrix`` is a symmetric matrix (n, n).
    An entry is the sum of the weights of all edges between two nodes.
    """

    nodes: Ints
    matrix: SparseMatrix

    def places(self, rows: Ints) -> Ints:
        """Return the index of each node in ``nodes``, or -1 for nodes without an edge."""
        if not len(self.nodes):
            return np.full(len(rows), -1, dtype=np.int64)
        index = np.minimum(np.searchsorted(self.nodes, rows), len(self.nodes) - 1)
        return np.where(self.nodes[index] == rows, index, -1)


def simple_graph(edges: Edges, keep: Flags | None = None) -> SimpleGraph:
    """Build the simple graph of all edges that were not removed, or of the masked edges.

    ``keep`` is the mask of edges to use.
    """
    numbers = np.flatnonzero(edges.alive if keep is None else keep)
    source, target = edges.ends(numbers)
    nodes = np.unique(np.concatenate((source, target)))
    left, right = np.searchsorted(nodes, source), np.searchsorted(nodes, target)
    rows, columns = np.concatenate((left, right)), np.concatenate((right, left))
    weight = np.tile(edges.weight[numbers].astype(np.float64), 2)
    return SimpleGraph(nodes, build_matrix(rows, columns, weight, len(nodes)))


# These functions measure clustering and the edges between communities on a simple graph.


@dataclass(frozen=True)
class Clustering:
    """The local clustering coefficients of some nodes, and their mean.

    A coefficient is the share of a node's pairs of neighbours that are linked (Watts and Strogatz
    1998). ``exact`` is False if the nodes were sampled.
    """

    rows: Ints
    coefficient: Floats
    mean: float
    exact: bool


def clustering(
    edges: Edges | SimpleGraph, rows: ArrayLike, *, max_rows: int = 1_000, seed: int = 0
) -> Clustering:
    """Compute the local clustering coefficient of ``rows``.

    The coefficient of a row with fewer than two neighbours is 0. If there are more than
    ``max_rows`` rows, that many are sampled with ``seed``. The mean of 1,000 rows has a standard
    error of at most 0.016.
    """
    graph = edges if isinstance(edges, SimpleGraph) else simple_graph(edges)
    wanted = np.unique(to_integers("row", rows))
    exact = len(wanted) <= max_rows
    if not exact:
        wanted = np.sort(np.random.default_rng(seed).choice(wanted, max_rows, replace=False))
    matrix, marked = graph.matrix, np.zeros(len(graph.nodes), dtype=np.bool_)
    coefficient = np.zeros(len(wanted))
    for index, position in enumerate(graph.places(wanted)):
        neighbours = (
            matrix.columns[matrix.starts[position] : matrix.starts[position + 1]]
            if position >= 0
            else NO_ROWS
        )
        if len(neighbours) > 1:
            marked[neighbours] = True
            coefficient[index] = marked[matrix.columns_of(neighbours)].sum() / (
                len(neighbours) * (len(neighbours) - 1)
            )
            marked[neighbours] = False
    return Clustering(wanted, coefficient, float(coefficient.mean()) if len(wanted) else 0.0, exact)


def bridges(edges: Edges, rows: ArrayLike, labels: ArrayLike) -> pl.DataFrame:
    """Return one row for each pair of linked communities.

    The columns are the communities ``left`` and ``right``, the number of ``edges``, their
    ``weight``, and the number of the ``strongest`` edge. ``labels[i]`` is the community of
    ``rows[i]``. Edges of other nodes do not count. The greatest weight comes first.
    """
    nodes, groups = to_integers("row", rows), to_integers("label", labels)
    if nodes.ndim != 1 or nodes.shape != groups.shape:
        raise InputError(
            f"There are {nodes.size} rows but {groups.size} labels. Pass one cluster label for each row."
        )
    order = np.argsort(nodes, kind="stable")
    nodes, groups = nodes[order], groups[order]
    if (nodes[1:] == nodes[:-1]).any():
        raise InputError(
            f"Row {nodes[:-1][nodes[1:] == nodes[:-1]][0]} is labelled more than once. Pass one label for each row."
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


def _looked_up(nodes: Ints, groups: Ints, wanted: Ints) -> tuple[Flags, Ints]:
    """Return which of the wanted nodes are in ``nodes``, which ascend, and their groups (arbitrary where False)."""
    if not len(nodes):
        return np.zeros(len(wanted), dtype=np.bool_), np.zeros(len(wanted), dtype=np.int64)
    index = np.minimum(np.searchsorted(nodes, wanted), len(nodes) - 1)
    return nodes[index] == wanted, groups[index]


# Communities by modularity: the Louvain method of Blondel and others (2008).


_STARTS, _STARTS_OF_LARGE = 4, 2
"""The number of random orders of nodes that are tried.

One order is up to .02 of modularity below the best.
"""

_LARGE = 30_000
"""Number of linked pairs above which only two orders are tried.

An order takes 0.6 s at 100,000 pairs.
"""

_SMALLEST_GAIN = 1e-12
"""The minimum gain for which a node moves, as a share of all weight.

Rounding errors must not move nodes.
"""


@dataclass(frozen=True)
class Communities:
    """A partition of nodes: ``labels[i]`` is the community of node ``rows[i]``.

    Community 0 is the largest. Of equally large communities, the community with the smallest member comes first.
    ``rows`` are the nodes with an edge, ascending. ``modularity`` is the weighted modularity of Newman (2004).
    """

    rows: Ints
    labels: Ints
    modularity: float

    def __len__(self) -> int:
        """Return the number of communities."""
        return int(self.labels.max(initial=-1)) + 1

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with the columns ``row`` and ``community``, one row per node."""
        return pl.DataFrame({"row": self.rows, "community": self.labels})


def communities(
    edges: Edges, *, seed: int = 0, resolution: float = 1.0, keep: Flags | None = None
) -> Communities:
    """Find node communities by maximising modularity (Louvain method).

    The Louvain method is described by Blondel and others (2008).

    Direction does not count, and the weights of parallel edges are added. ``keep`` is a mask of the
    edges to use. A ``resolution`` above 1 gives more and smaller communities. The same edges and
    ``seed`` give the same result. It is the best of four runs, each with another order of the
    nodes, or of two runs above 30,000 linked pairs.

    >>> edges = Edges()
    >>> edges.append([0, 1, 0, 3, 4, 3, 2], [1, 2, 2, 4, 5, 5, 3], 0, 1.0, nodes=6).tolist()
    [0, 1, 2, 3, 4, 5, 6]
    >>> communities(edges).labels.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    if not 0 < resolution < np.inf:
        raise InputError(
            f"The resolution of community detection must be above 0 and finite, not {resolution}. Default: 1."
        )
    used = edges.alive & (edges.weight > 0)
    if keep is not None:
        if keep.shape != used.shape or keep.dtype != np.bool_:
            raise InputError(
                f"A mask of edges must have {len(edges)} flags, not {keep.dtype} {keep.shape}."
            )
        used &= keep
    graph = simple_graph(edges, used)
    if not len(graph.nodes):
        return Communities(graph.nodes, graph.nodes, 0.0)
    best, labels = -np.inf, np.arange(len(graph.nodes))
    starts = _STARTS if len(graph.matrix.data) <= 2 * _LARGE else _STARTS_OF_LARGE
    for start in np.random.SeedSequence(seed).generate_state(starts):
        groups = _find_groups(graph.matrix, resolution, np.random.default_rng(start))
        modularity = _modularity(graph.matrix, groups, resolution)
        if modularity > best:
            best, labels = modularity, groups
    return Communities(graph.nodes, _by_size(labels), best)


def _find_groups(matrix: SparseMatrix, resolution: float, rng: np.random.Generator) -> Ints:
    """Group nodes by the Louvain method (move nodes, merge groups, repeat); return their labels."""
    labels = np.arange(matrix.size)
    while True:
        groups = _move_nodes(matrix, resolution, rng.permutation(matrix.size))
        count = int(groups.max()) + 1
        labels = groups[labels]
        if count == matrix.size:
            return labels
        matrix = build_matrix(groups[matrix.rows()], groups[matrix.columns], matrix.data, count)


def _move_nodes(matrix: SparseMatrix, resolution: float, order: Ints) -> Ints:
    """Move each node to the neighbouring group with the greatest gain; return the groups.

    Neighbours of moved nodes are visited again.
    """
    starts, targets, weights = matrix.starts.tolist(), matrix.columns.tolist(), matrix.data.tolist()
    # The loop reads single numbers, which Python takes from a list five times as fast as from an
    # array.
    strengths = matrix.sums()
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
        best, greatest = own, joined[own] - expected * volume[own] + _SMALLEST_GAIN * total
        for group, weight in joined.items():
            gain = weight - expected * volume[group]
            if gain > greatest:
                best, greatest = group, gain
        volume[best] += strength[node]
        if best != own:
            label[node] = best
            for other in targets[first:last]:
                if not waiting[other] and label[other] != best:
                    waiting[other] = True
                    queue.append(other)
    return np.unique(label, return_inverse=True)[1]


def _modularity(matrix: SparseMatrix, labels: Ints, resolution: float) -> float:
    """Return the weighted modularity of a partition."""
    strengths = matrix.sums()
    total = float(strengths.sum())
    inside = matrix.data[labels[matrix.rows()] == labels[matrix.columns]].sum() / total
    volume = np.bincount(labels, strengths) / total
    return float(inside - resolution * (volume**2).sum())


def _by_size(labels: Ints) -> Ints:
    """Renumber groups by decreasing size; the smallest member breaks ties."""
    _, first, group, size = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.empty(len(size), dtype=np.int64)
    rank[np.lexsort((first, -size))] = np.arange(len(size))
    return np.asarray(rank[group])


# The strongest paths from a node, as a frame and as a tree.


@dataclass(frozen=True)
class Path:
    """A path that starts at ``nodes[0]`` and visits no node twice.

    Step ``i`` crosses ``edges[i]``, in the direction of the edge if ``outgoing[i]`` is True.
    """

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    relations: tuple[str, ...]
    weights: tuple[float, ...]
    outgoing: tuple[bool, ...]
    product: float

    @property
    def depth(self) -> int:
        """The number of edges on the path."""
        return len(self.edges)


@dataclass(frozen=True)
class Trace:
    """The strongest paths from ``node``, strongest first.

    ``cut`` is True if there are more paths.
    """

    node: int
    paths: tuple[Path, ...]
    cut: bool

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per path.

        The columns are the target, the depth, the product of weights, and the steps as lists.
        """
        # The schema is given because a trace without paths would have columns without types.
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
        """Return the paths as an indented text tree with nodes named by ``label``.

        Each path is below the path that it continues.
        """
        below: dict[tuple[int, ...], list[Path]] = {}
        for path in self.paths:
            below.setdefault(path.edges[:-1], []).append(path)
        lines = [label(self.node)]
        # An explicit stack is used, because the caller's depth may exceed Python's limit of
        # recursion.
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


def trace(edges: Edges, node: int, depth: int, *, limit: int = 100) -> Trace:
    """Find the strongest simple paths from ``node``, in both directions.

    At most ``limit`` paths of at most ``depth`` edges are returned.

    The strength of a path is the product of its weights. Of equally strong paths, the shorter path comes first, then
    the path whose edges have smaller numbers. Weights are at most 1, so a path comes after the path that it continues.
    The edges of at most ``limit`` nodes are read. Raises InputError if ``depth`` or ``limit`` is below 1, or if a
    relation has no name.

    >>> edges = Edges()
    >>> edges.append([0, 1, 0], [1, 2, 2], [1, 2, 1], [0.9, 0.8, 0.5], nodes=3).tolist()
    [0, 1, 2]
    >>> print(trace(edges, 0, 2, limit=3))
    0
    ├─relates-to→ 1 (0.90)
    │ └─supersedes→ 2 (0.80)
    └─relates-to→ 2 (0.50)
    ...
    """
    if depth < 1 or limit < 1:
        raise InputError(
            f"depth and limit of a trace must be at least 1, not depth={depth} and limit={limit}."
        )
    node_kinds([node])
    start = Path((node,), (), (), (), (), 1.0)
    # The queue is ordered by strength, then depth, then the numbers of the edges, which differ
    # between paths.
    waiting: list[tuple[float, int, tuple[int, ...], Path]] = [(-1.0, 0, (), start)]
    paths: list[Path] = []
    while waiting and len(paths) <= limit:
        path = heapq.heappop(waiting)[3]
        if path.edges:
            paths.append(path)
        if path.depth < depth and len(paths) <= limit:
            # Among the strongest paths are at most as many continuations of one path as are still
            # wanted.
            for longer in _extend_path(edges, path, limit + 1 - len(paths)):
                heapq.heappush(waiting, (-longer.product, longer.depth, longer.edges, longer))
    return Trace(node, tuple(paths[:limit]), len(paths) > limit)


def _extend_path(edges: Edges, path: Path, limit: int) -> list[Path]:
    """Return at most ``limit`` extensions of a path by an edge to a new node, the largest weight first."""
    crossed = edges.crossings(np.array([path.nodes[-1]]))
    new = np.flatnonzero(~np.isin(crossed.neighbour, path.nodes))
    edge = crossed.edge[new]
    strongest = np.lexsort((edge, -path.product * edges.weight[edge]))[:limit]
    longer = []
    for index in new[strongest].tolist():
        number = int(crossed.edge[index])
        relation, weight = int(edges.relation[number]), float(edges.weight[number])
        if relation >= len(edges.relations):
            raise InputError(
                f"Edge {number} has relation number {relation}, but only "
                f"{len(edges.relations)} relations have names. Add names with Edges.codes_of(names, grow=True)."
            )
        longer.append(
            Path(
                (*path.nodes, int(crossed.neighbour[index])),
                (*path.edges, number),
                (*path.relations, edges.relations[relation]),
                (*path.weights, weight),
                (*path.outgoing, bool(crossed.outgoing[index])),
                path.product * weight,
            )
        )
    return longer
