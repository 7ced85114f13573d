"""The strongest paths from a node, as a frame and as a tree."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.display import printable
from memlab.kernel.graph._edges import Edges
from memlab.kernel.graph._nodes import kind_of

__all__ = ["Path", "Trace", "trace"]


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
            lines.append(f"{indent}{'└' if last else '├'}{arrow} {label(path.nodes[-1])} ({path.weights[-1]:.2f})")
            deeper = reversed(below.get(path.edges, []))
            stack += [(child, indent + ("  " if last else "│ "), at == 0) for at, child in enumerate(deeper)]
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
        raise InputError(f"A trace has at least one path of at least one edge, not {most} of {depth}.")
    kind_of([node])
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
            raise InputError(f"Edge {number} has relation {relation}; {len(edges.relations)} have names.")
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
