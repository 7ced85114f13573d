"""Spreading activation in waves, with a policy asked once a wave what passes over each edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.scratch import zeros
from memlab.kernel.graph._edges import Edges
from memlab.kernel.graph._nodes import NODE_KINDS, SHIFT, Layout, Nodes, node_kinds

__all__ = [
    "SPREAD_MODES",
    "EdgeBatch",
    "Limits",
    "PassOn",
    "Seeds",
    "Spread",
    "activate",
    "pagerank",
    "spread",
    "unique_places",
]


# One wave of spreading: which nodes leave, over which edges, and what a policy lets pass.


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

    def affordable(
        self, edges: Edges, nodes: Ints, activation: Floats
    ) -> NDArray[np.bool_] | slice:
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
        leaves[select_within(activation, degree, self.most_crossings)] = True
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
        weight, relation = edges.weigh(crossed.edge)
        batch = EdgeBatch(
            activation=activation[crossed.position],
            weight=weight,
            relation=relation,
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


def select_within(activation: Floats, degree: Ints, most: int) -> Ints:
    """Places by falling activation, ties by place, for as long as their degrees sum to at most ``most``."""
    count = len(activation)
    # most waves that meet their limit leave from a small part of their nodes: order no more than needed
    wanted = 64 + 2 * most * count // int(degree.sum())
    while True:
        if wanted < count:
            top = np.flatnonzero(
                activation >= np.partition(activation, count - wanted)[count - wanted]
            )
        else:
            top = np.arange(count)
        order = top[np.argsort(-activation[top], kind="stable")]
        fits = int(np.searchsorted(np.cumsum(degree[order]), most, side="right"))
        if fits < len(order) or len(order) == count:
            return order[:fits]
        wanted *= 4


def unique_places(places: Ints, size: int) -> Ints:
    """The different ones of ``places``, ascending; all lie in ``0..size - 1``."""
    if len(places) * 16 < size:
        ordered = np.sort(places)
        return np.concatenate((ordered[:1], ordered[1:][ordered[1:] != ordered[:-1]]))
    # a pass over a byte for each node is less than sorting so many
    met = np.zeros(size, dtype=np.bool_)
    met[places] = True
    return met.nonzero()[0]


# Personalised PageRank around some seeds, by pushing what nodes hold in waves.


_FAR = np.iinfo(np.int32).max


def pagerank(
    edges: Edges,
    seeds: Seeds,
    pass_on: PassOn,
    limits: Limits,
    *,
    steps: int,
    threshold: float,
    damping: float,
) -> Spread:
    """See ``spread``. Every node pushes at most once a wave, all at once."""
    layout, size = seeds.layout, seeds.layout.size
    settled, held = np.zeros(size), np.zeros(size)
    hops = np.full(size, _FAR, dtype=np.int32)
    own = np.maximum(seeds.energy, 0.0)
    total = float(own.sum())
    held[seeds.places], hops[seeds.places] = own, 0
    known = seeds.places
    for _ in range(steps):
        codes = layout.code(known)
        # a node without edges hands all back to the seeds at once
        ready = (held[known] > 0) & (held[known] >= threshold * edges.degree(codes))
        pushing, codes = known[ready], codes[ready]
        leaves = limits.affordable(edges, codes, held[pushing])
        pushing, codes = pushing[leaves], codes[leaves]
        if not len(pushing):
            break
        amount = held[pushing]
        held[pushing] = 0.0
        settled[pushing] += (1.0 - damping) * amount
        position, target, share = limits.cross(edges, codes, np.ones(len(codes)), 1, pass_on)
        weight_of = np.bincount(position, weights=share, minlength=len(pushing))
        places = layout.place(target)
        np.add.at(held, places, damping * amount[position] * (share / weight_of[position]))
        stuck = float(amount[weight_of == 0].sum())
        if stuck:
            held[seeds.places] += damping * stuck * (own / total)
        reached = unique_places(places, size)
        fresh = reached[hops[reached] == _FAR]
        np.minimum.at(hops, places, hops[pushing][position] + 1)
        if len(fresh):
            known = unique_places(np.concatenate((known, fresh)), size)
    activation = settled[known] + (1.0 - damping) * held[known]
    received = activation.copy()
    received[np.searchsorted(known, seeds.places)] -= (1.0 - damping) * own
    return Spread(
        layout.code(known),
        activation,
        np.maximum(received, 0.0),
        hops[known].astype(np.int64),
        limits.unexpanded,
        limits.narrowed,
        damping * float(held[known].sum()),
    )


Mode = Literal["cascade", "energy", "hops", "ppr"]

SPREAD_MODES: tuple[Mode, ...] = ("cascade", "energy", "hops", "ppr")

MAX_CROSSINGS = 100_000
"""Crossings in one wave unless the caller says: 5 to 10 ms of work."""

FAN_OUT = 10_000
"""Edges of one node that a wave crosses unless the caller says: its newest."""


def spread(
    edges: Edges,
    rows: ArrayLike,
    energy: ArrayLike,
    pass_on: PassOn,
    *,
    steps: int,
    nodes: int | Nodes,
    mode: Mode = "cascade",
    threshold: float = 0.0,
    damping: float = 0.85,
    most_crossings: int = MAX_CROSSINGS,
    fan_out: int = FAN_OUT,
    sound: bool = False,
) -> Spread:
    """Carry the ``energy`` of the seeds ``rows`` over at most ``steps`` edges, in both directions.

    Each wave asks ``pass_on`` once what passes over each edge crossed. What is not positive and finite, or below
    ``threshold``, does not arrive. ``nodes`` says which nodes exist: a number of memories, or all kinds. Tags,
    clusters and entities are passed through like memories and count as a hop.

    ``"cascade"``: breadth first. A wave leaves from the nodes that the last one reached for the first time; of
    several arrivals a node keeps the greatest; a seed keeps its own energy as its activation.

    ``"energy"``: ``activation[j] += what passes from i to j``, at every step over all edges of all nodes that
    are active by then, at once. With ``activation * weight * damping`` as ``pass_on`` this is spreading activation
    as in Collins and Loftus (1975).

    ``"hops"``: breadth first, and a node takes the greatest of what arrives with the wave that first reaches it,
    so its activation belongs to its shortest paths alone.

    ``"ppr"``: personalised PageRank (Haveliwala 2002) by pushing (Andersen, Chung and Lang 2006), in waves. A
    walker starts at the seeds in proportion to their energy, goes on with probability ``damping`` over an edge
    drawn in proportion to what ``pass_on`` says of it (asked with activation 1 and depth 1), and back to the seeds
    else; so it does where nothing passes. A node pushes what it holds while that is at least ``threshold`` for each
    of its edges, which bounds the crossings of all waves together by ``energy / ((1 - damping) * threshold)``. The
    activations are linear in the energies, fall short of the exact ones by at most ``left`` each, and sum with it
    to the energy of the seeds.

    A wave crosses at most ``most_crossings`` edges: nodes leave by falling activation, ties by node, until the next
    one would exceed the limit. A node with more than ``fan_out`` edges passes over that many of the newest. Work
    and result are deterministic and do not depend on how the edges are stored. ``sound`` seeds are known to
    ascend, to exist and to have a finite energy.

    InputError: seeds that repeat, do not exist or have an energy that is not finite; a policy's answer of the wrong
    length; an unknown mode.

    >>> edges = Edges()
    >>> edges.append([0, 1], [1, 2], [0, 0], [1.0, 1.0], nodes=3).tolist()
    [0, 1]
    >>> found = spread(edges, [0], [1.0], lambda batch: 0.5 * batch.activation, steps=2, nodes=3)
    >>> found.rows.tolist(), found.activation.tolist(), found.hops.tolist()
    ([0, 1, 2], [1.0, 0.5, 0.25], [0, 1, 2])
    """
    if mode not in SPREAD_MODES:
        raise UnknownName("mode of spreading", mode, SPREAD_MODES)
    if steps < 0 or most_crossings < 1 or fan_out < 1 or not 0 <= threshold < np.inf:
        raise InputError(
            f"Spreading takes steps and a threshold of at least 0 and at least one crossing, not {steps}, {threshold}, "
            f"{most_crossings} a wave and {fan_out} a node."
        )
    if not 0 <= damping < 1:
        raise InputError(f"Damping lies in 0..1, below 1, not {damping}.")
    codes, own = (np.asarray(rows), np.asarray(energy)) if sound else _seeds(rows, energy, nodes)
    layout = edges.layout.with_room_for(codes)
    seeds = Seeds(layout, layout.place(codes), own)
    limits = Limits(most_crossings, fan_out)
    if mode == "ppr":
        return pagerank(
            edges, seeds, pass_on, limits, steps=steps, threshold=threshold, damping=damping
        )
    return _waves(edges, seeds, pass_on, limits, mode, steps, threshold)


def activate(
    edges: Edges,
    rows: ArrayLike,
    energy: ArrayLike = 1.0,
    *,
    nodes: int | Nodes,
    steps: int = 3,
    decay: float = 0.7,
    threshold: float = 0.01,
) -> Spread:
    """Spreading activation without a policy: ``A[j] += A[i] * weight * decay``, both ways, ``steps`` times.

    ``energy`` may be one value for all seeds. What is below ``threshold`` does not arrive. Limits and errors are
    those of ``spread``.

    >>> edges = Edges()
    >>> edges.append([0, 1], [1, 2], [0, 0], [1.0, 0.5], nodes=3).tolist()
    [0, 1]
    >>> found = activate(edges, [0], nodes=3, steps=2, decay=0.5)
    >>> found.rows.tolist(), found.activation.tolist()
    ([0, 1, 2], [1.25, 1.0, 0.125])
    """
    if not 0 <= decay <= 1:
        raise InputError(f"What an edge passes on is a share 0..1, not {decay}.")
    seeds, own = np.asarray(rows), np.asarray(energy, dtype=np.float64)
    return spread(
        edges,
        seeds,
        np.full(seeds.shape, own) if own.ndim == 0 else own,
        lambda batch: batch.activation * batch.weight * decay,
        mode="energy",
        steps=steps,
        threshold=threshold,
        nodes=nodes,
    )


def _waves(
    edges: Edges,
    seeds: Seeds,
    pass_on: PassOn,
    limits: Limits,
    mode: Mode,
    steps: int,
    threshold: float,
) -> Spread:
    layout, size = seeds.layout, seeds.layout.size
    with zeros(4 * size, np.float64) as numbers:
        activation, received, arrived, wave = numbers.reshape(4, size)
        activation[seeds.places], wave[seeds.places] = seeds.energy, 1
        known = frontier = seeds.places
        for depth in range(1, steps + 1):
            codes = layout.code(frontier)
            leaves = limits.affordable(edges, codes, activation[frontier])
            leaving = frontier[leaves]
            _, target, passed = limits.cross(
                edges, codes[leaves], activation[leaving], depth, pass_on
            )
            if threshold > 0:
                strong = passed >= threshold
                target, passed = target[strong], passed[strong]
            places = layout.place(target)
            reached = unique_places(places, size)
            fresh = reached[wave[reached] == 0]
            wave[fresh] = depth + 1
            if mode == "energy":
                # one at a time and in order, so the sum is the same however the edges are stored
                np.add.at(arrived, places, passed)
                received[reached] += arrived[reached]
                activation[reached] += arrived[reached]
                arrived[reached] = 0.0
            else:
                if mode == "hops":
                    new = wave[places] == depth + 1
                    np.maximum.at(received, places[new], passed[new])
                else:
                    np.maximum.at(received, places, passed)
                others = reached[wave[reached] > 1]  # a seed has the wave 1
                activation[others] = received[others]
            if len(fresh):
                known = unique_places(np.concatenate((known, fresh)), size)
            frontier = known if mode == "energy" else fresh
            if not len(frontier):
                break
        found = Spread(
            layout.code(known),
            activation[known],
            received[known],
            wave[known].astype(np.int64) - 1,
            limits.unexpanded,
            limits.narrowed,
        )
        # every place that was touched is known
        activation[known], received[known], wave[known] = 0.0, 0.0, 0
    return found


def _seeds(rows: ArrayLike, energy: ArrayLike, nodes: int | Nodes) -> tuple[Ints, Floats]:
    """The seeds that a caller gives, ascending, with their energies; InputError where they cannot be."""
    given, own = np.asarray(rows), np.asarray(energy, dtype=np.float64)
    if given.ndim != 1 or given.shape != own.shape or (given.size and given.dtype.kind not in "iu"):
        raise InputError(
            f"Seeds are row numbers with one energy each, not {given.shape} and {own.shape}."
        )
    codes = given.astype(np.int64, copy=False)
    if not (codes[1:] > codes[:-1]).all():
        order = np.argsort(codes, kind="stable")
        codes, own = codes[order], own[order]
    lowest, highest = (int(codes[0]), int(codes[-1])) if len(codes) else (0, -1)
    memories = nodes.count("memory") if isinstance(nodes, Nodes) else nodes
    if not (lowest >= 0 and highest < memories):
        if not isinstance(nodes, Nodes):
            raise InputError(f"Seeds are rows 0..{nodes - 1}, not {lowest}..{highest}.")
        last_of_kind = np.flatnonzero(np.diff(node_kinds(codes), append=-1))
        nodes.labels(codes[last_of_kind])  # names one that does not exist
    if (codes[1:] == codes[:-1]).any():
        raise InputError(f"Seed {codes[:-1][codes[1:] == codes[:-1]][0]} is given more than once.")
    if not np.isfinite(own).all():
        at = int(np.argmax(~np.isfinite(own)))
        raise InputError(f"The energy of seed {int(codes[at])} is {own[at]}; it must be finite.")
    return codes, own
