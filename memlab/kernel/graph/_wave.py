"""One wave of spreading: which nodes leave, over which edges, and what a policy lets pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.graph._edges import Edges
from memlab.kernel.graph._nodes import NODE_KINDS, SHIFT, Layout

__all__ = ["EdgeBatch", "Limits", "PassOn", "Seeds", "Spread", "distinct"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EdgeBatch:
    """The edges crossed in one wave, ordered by the row left, then by edge.

    ``source`` is the node that is left and ``target`` the node that is reached, whichever way the edge points;
    ``outgoing`` says whether it points from source to target. ``activation`` is that of the node left, ``depth``
    the number of the wave, from 1.
    """

    activation: Floats
    weight: Floats
    relation: NDArray[np.int16]
    depth: int
    outgoing: NDArray[np.bool_]
    source: Ints
    target: Ints
    edge: Ints

    def __len__(self) -> int:
        return len(self.edge)


PassOn = Callable[[EdgeBatch], Floats]


@dataclass(frozen=True)
class Spread:
    """The seeds and what was reached, by ascending node: memories first, then tags, clusters, entities.

    ``received`` is what arrived over edges (0 for none), ``activation`` what the node holds in the end, ``hops`` how
    many edges it is from the nearest seed (0 for a seed); for a personalised PageRank, by the edges pushed over.

    What limits left out: ``unexpanded`` counts nodes that did not pass on in some wave because it had met its
    limit of crossings, ``narrowed`` nodes that passed over their newest edges alone. ``left`` is the energy
    that had not settled when a personalised PageRank ended: no activation is short by more.
    """

    rows: Ints
    activation: Floats
    received: Floats
    hops: Ints
    unexpanded: int = 0
    narrowed: int = 0
    left: float = 0.0

    def of_kind(self, kind: str) -> Spread:
        """Only the nodes of one kind."""
        first = NODE_KINDS.index(kind) << SHIFT
        start, stop = self.rows.searchsorted((first, first + (1 << SHIFT))).tolist()
        return Spread(
            self.rows[start:stop],
            self.activation[start:stop],
            self.received[start:stop],
            self.hops[start:stop],
            self.unexpanded,
            self.narrowed,
            self.left,
        )


@dataclass(frozen=True)
class Seeds:
    """Places in ``layout``, ascending, with an energy each."""

    layout: Layout
    places: Ints
    energy: Floats


@dataclass
class Limits:
    """How much a wave may cross, and how often that was met."""

    most_crossings: int
    fan_out: int
    unexpanded: int = 0
    narrowed: int = 0
    _crowded: bool = True
    """Whether some node that was asked about last has more edges than it may pass over."""

    def affordable(self, edges: Edges, nodes: Ints, activation: Floats) -> NDArray[np.bool_] | slice:
        """Which of the ascending ``nodes`` leave: by falling activation, ties by node, until one exceeds the limit."""
        if 2 * edges.live <= min(self.fan_out, self.most_crossings):
            self._crowded = False  # all edges together do not meet a limit
            return slice(None)
        degree = edges.degree(nodes)
        narrow = degree > self.fan_out
        self._crowded = bool(narrow.any())
        degree[narrow] = self.fan_out
        if int(degree.sum()) <= self.most_crossings:
            self.narrowed += int(narrow.sum())
            return slice(None)
        leaves = np.zeros(len(nodes), dtype=np.bool_)
        leaves[_first_within(activation, degree, self.most_crossings)] = True
        self.unexpanded += int((~leaves).sum())
        self.narrowed += int((leaves & narrow).sum())
        return leaves

    def cross(
        self, edges: Edges, nodes: Ints, activation: Floats, depth: int, pass_on: PassOn
    ) -> tuple[Ints, Ints, Floats]:
        """What passes from ``nodes``: the position of the node left, the node reached, the positive finite amount."""
        crossed = edges.crossings(nodes, newest=self.fan_out if self._crowded else None)
        if not len(crossed.edge):
            return crossed.position, crossed.neighbour, np.empty(0)
        batch = EdgeBatch(
            activation=activation[crossed.position],
            weight=edges.weight[crossed.edge],
            relation=edges.relation[crossed.edge],
            depth=depth,
            outgoing=crossed.outgoing,
            source=nodes[crossed.position],
            target=crossed.neighbour,
            edge=crossed.edge,
        )
        passed = np.asarray(pass_on(batch), dtype=np.float64)
        if passed.shape != crossed.edge.shape:
            raise InputError(f"The spread policy answered {passed.shape} for {len(batch)} edges.")
        arrives = (passed > 0) & (passed < np.inf)
        if arrives.all():
            return crossed.position, crossed.neighbour, passed
        return crossed.position[arrives], crossed.neighbour[arrives], passed[arrives]


def _first_within(activation: Floats, degree: Ints, most: int) -> Ints:
    """Places by falling activation, ties by place, for as long as their degrees sum to at most ``most``."""
    count = len(activation)
    # most waves that meet their limit leave from a small part of their nodes: order no more than needed
    wanted = 64 + 2 * most * count // int(degree.sum())
    while True:
        if wanted < count:
            top = np.flatnonzero(activation >= np.partition(activation, count - wanted)[count - wanted])
        else:
            top = np.arange(count)
        order = top[np.argsort(-activation[top], kind="stable")]
        fits = int(np.searchsorted(np.cumsum(degree[order]), most, side="right"))
        if fits < len(order) or len(order) == count:
            return order[:fits]
        wanted *= 4


def distinct(places: Ints, size: int) -> Ints:
    """The different ones of ``places``, ascending; all lie in ``0..size - 1``."""
    if len(places) * 16 < size:
        ordered = np.sort(places)
        return np.concatenate((ordered[:1], ordered[1:][ordered[1:] != ordered[:-1]]))
    # a pass over a byte for each node is less than sorting so many
    met = np.zeros(size, dtype=np.bool_)
    met[places] = True
    return met.nonzero()[0]
