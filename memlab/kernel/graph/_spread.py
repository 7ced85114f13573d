"""Spreading activation in waves.

Once per wave, a function decides how much activation passes over each edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.base.scratch import zeros
from memlab.kernel.graph._edges import Edges
from memlab.kernel.graph._nodes import NODE_KINDS, SHIFT, Layout, Nodes, node_kinds

# One wave of spreading: the nodes that pass activation on, the edges crossed, and the amounts that
# a policy allows.


@dataclass(frozen=True)
class EdgeBatch:
    """The edges crossed in one wave, ordered by source node, then by edge.

    Attributes
    ----------
    source, target
        The node that activation leaves and the node that it reaches, regardless of the direction of the edge.
    outgoing
        Whether the edge points from source to target.
    activation
        The activation of the source.
    depth
        The number of the wave, from 1.
    """

    activation: Floats
    weight: Floats
    relation: NDArray[np.int16]
    depth: int
    outgoing: Flags
    source: Ints
    target: Ints
    edge: Ints

    def __len__(self) -> int:
        return len(self.edge)


PassOn = Callable[[EdgeBatch], Floats]


@dataclass(frozen=True)
class Spread:
    """The nodes that activation reached, including the seeds, in ascending order.

    Memories come first, then tags, clusters and entities.

    Attributes
    ----------
    received
        The energy that arrived over edges, 0 if none arrived.
    activation
        The activation of each node after the last wave.
    hops
        The number of edges from the nearest seed, 0 for a seed. For a personalised PageRank, only
        edges over which energy was pushed count.
    unexpanded
        How often a node passed nothing on because a wave had reached its limit of crossings.
    narrowed
        How often a node passed activation over its newest edges only.
    left
        The energy that had not settled when a personalised PageRank ended. No activation is too low
        by more than this energy.
    """

    rows: Ints
    activation: Floats
    received: Floats
    hops: Ints
    unexpanded: int = 0
    narrowed: int = 0
    left: float = 0.0

    def of_kind(self, kind: str) -> Spread:
        """Return only the nodes of one kind."""
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
    """Positions of seeds in ``layout``, ascending, each with an energy."""

    layout: Layout
    places: Ints
    energy: Floats


@dataclass
class Limits:
    """The maximum number of edges crossed in a wave, and at one node.

    The object also counts how often each maximum was reached.
    """

    max_crossings: int
    fan_out: int
    unexpanded: int = 0
    narrowed: int = 0
    _crowded: bool = True
    """Whether any node of the last wave has more edges than it may cross."""

    def affordable(self, edges: Edges, nodes: Ints, activation: Floats) -> Flags | slice:
        """Select the most active nodes whose edges a wave can cross within its limit.

        Returns a mask of the nodes, or a slice of all.
        """
        if 2 * edges.live <= min(self.fan_out, self.max_crossings):
            self._crowded = False  # all edges together stay below both limits
            return slice(None)
        degree = edges.degree(nodes)
        narrow = degree > self.fan_out
        self._crowded = bool(narrow.any())
        degree[narrow] = self.fan_out
        if int(degree.sum()) <= self.max_crossings:
            self.narrowed += int(narrow.sum())
            return slice(None)
        leaves = np.zeros(len(nodes), dtype=np.bool_)
        leaves[select_within(activation, degree, self.max_crossings)] = True
        self.unexpanded += int((~leaves).sum())
        self.narrowed += int((leaves & narrow).sum())
        return leaves

    def cross(
        self, edges: Edges, nodes: Ints, activation: Floats, depth: int, pass_on: PassOn
    ) -> tuple[Ints, Ints, Floats]:
        """Return the activation that ``nodes`` pass along their edges.

        The three arrays have the position of the source, the target, and the positive finite amount
        of each crossing.
        """
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
            raise InputError(
                f"The spread policy returned an array of shape {passed.shape} for {len(batch)} edges, not a value for each."
            )
        arrives = (passed > 0) & (passed < np.inf)
        if arrives.all():
            return crossed.position, crossed.neighbour, passed
        return crossed.position[arrives], crossed.neighbour[arrives], passed[arrives]


def select_within(activation: Floats, degree: Ints, budget: int) -> Ints:
    """Return positions by decreasing activation, as many as a budget of edges allows.

    The degrees of these nodes sum to at most ``budget``.
    """
    count = len(activation)
    # Most waves that reach their limit use few of their nodes, so only that many are sorted.
    wanted = 64 + 2 * budget * count // int(degree.sum())
    while True:
        if wanted < count:
            top = np.flatnonzero(
                activation >= np.partition(activation, count - wanted)[count - wanted]
            )
        else:
            top = np.arange(count)
        order = top[np.argsort(-activation[top], kind="stable")]
        fits = int(np.searchsorted(np.cumsum(degree[order]), budget, side="right"))
        if fits < len(order) or len(order) == count:
            return order[:fits]
        wanted *= 4


def unique_places(places: Ints, size: int) -> Ints:
    """Return the distinct positions in ``places``, ascending.

    The values are in ``0..size - 1``.
    """
    if len(places) * 16 < size:
        ordered = np.sort(places)
        return np.concatenate((ordered[:1], ordered[1:][ordered[1:] != ordered[:-1]]))
    # For many values, one pass over a byte for each node is faster than sorting.
    met = np.zeros(size, dtype=np.bool_)
    met[places] = True
    return met.nonzero()[0]


# Personalised PageRank around some seeds, by pushing residual energy in waves.


_FAR = np.iinfo(np.int32).max  # the hops of nodes that were not reached


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
    """Compute a personalised PageRank; see ``spread``.

    In each wave, all nodes with enough residual energy push once, at the same time.
    """
    layout, size = seeds.layout, seeds.layout.size
    settled, residual = np.zeros(size), np.zeros(size)
    hops = np.full(size, _FAR, dtype=np.int32)
    own = np.maximum(seeds.energy, 0.0)
    total = float(own.sum())
    residual[seeds.places], hops[seeds.places] = own, 0
    reachable = seeds.places
    for _ in range(steps):
        codes = layout.code(reachable)
        # A node without edges returns its energy to the seeds immediately.
        ready = (residual[reachable] > 0) & (residual[reachable] >= threshold * edges.degree(codes))
        pushing, codes = reachable[ready], codes[ready]
        leaves = limits.affordable(edges, codes, residual[pushing])
        pushing, codes = pushing[leaves], codes[leaves]
        if not len(pushing):
            break
        amount = residual[pushing]
        residual[pushing] = 0.0
        settled[pushing] += (1.0 - damping) * amount
        position, target, share = limits.cross(edges, codes, np.ones(len(codes)), 1, pass_on)
        weight_of = np.bincount(position, weights=share, minlength=len(pushing))
        places = layout.positions(target)
        np.add.at(residual, places, damping * amount[position] * (share / weight_of[position]))
        stuck = float(amount[weight_of == 0].sum())
        if stuck:
            residual[seeds.places] += damping * stuck * (own / total)
        reached = unique_places(places, size)
        fresh = reached[hops[reached] == _FAR]
        np.minimum.at(hops, places, hops[pushing][position] + 1)
        if len(fresh):
            reachable = unique_places(np.concatenate((reachable, fresh)), size)
    activation = settled[reachable] + (1.0 - damping) * residual[reachable]
    received = activation.copy()
    received[np.searchsorted(reachable, seeds.places)] -= (1.0 - damping) * own
    return Spread(
        layout.code(reachable),
        activation,
        np.maximum(received, 0.0),
        hops[reachable].astype(np.int64),
        limits.unexpanded,
        limits.narrowed,
        damping * float(residual[reachable].sum()),
    )


Mode = Literal["cascade", "energy", "hops", "ppr"]

# The modes of ``spread``; packs store these words.
SPREAD_MODES: tuple[Mode, ...] = ("cascade", "energy", "hops", "ppr")

MAX_CROSSINGS = 100_000
"""The default maximum of edges crossed in one wave, 5 to 10 ms of work."""

FAN_OUT = 10_000
"""The default maximum of edges of one node that a wave crosses.

The newest edges are used.
"""


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
    max_crossings: int = MAX_CROSSINGS,
    fan_out: int = FAN_OUT,
    validated: bool = False,
) -> Spread:
    """Spread ``energy`` from the seeds ``rows`` over at most ``steps`` edges.

    Edges are crossed in both directions.

    In each wave, ``pass_on`` is called once and returns the amount that passes over each edge.
    Amounts that are not positive and finite, or are below ``threshold``, do not arrive. ``nodes``
    is the number of memories, or the nodes of all kinds. Activation passes through tags, clusters
    and entities as through memories, and each counts as a hop.

    ``"cascade"``: breadth first. A wave leaves from the nodes that the previous wave reached for
    the first time. Of several amounts that arrive, a node keeps the greatest. A seed keeps its own
    energy as its activation.

    ``"energy"``: at every step, each active node i adds the amount that passes from i to j to
    ``activation[j]``, for all nodes at the same time. With ``activation * weight * damping`` as
    ``pass_on`` this is spreading activation as described by Collins and Loftus (1975).

    ``"hops"``: breadth first, and a node keeps the greatest amount that arrives with the wave that first reaches
    it. So its activation depends only on its shortest paths.

    ``"ppr"``: personalised PageRank (Haveliwala 2002) by pushing (Andersen, Chung and Lang 2006),
    in waves. A walker starts at the seeds in proportion to their energy. With probability
    ``damping`` it follows an edge, drawn in proportion to the result of ``pass_on`` (called with
    activation 1 and depth 1). Otherwise, and where nothing passes, it returns to the seeds. A node
    pushes while its residual energy is at least ``threshold`` for each of its edges, which bounds
    the crossings of all waves by ``energy / ((1 - damping) * threshold)``. Activations are linear
    in the energies. Each activation is too low by at most ``left``. The activations and ``left``
    sum to the energy of the seeds.

    A wave crosses at most ``max_crossings`` edges. Nodes pass activation on in order of decreasing activation, with
    ties by node, until the next node would exceed the limit. A node with more than ``fan_out`` edges uses that many of
    the newest. The result is deterministic and does not depend on how the edges are stored. With ``validated``, the
    caller has checked that seeds ascend, exist and have a finite energy.

    Raises InputError for seeds that repeat, do not exist or have an energy that is not finite.
    InputError is also raised if ``pass_on`` returns a result of the wrong length or if the mode is
    unknown.

    >>> edges = Edges()
    >>> edges.append([0, 1], [1, 2], [0, 0], [1.0, 1.0], nodes=3).tolist()
    [0, 1]
    >>> result = spread(edges, [0], [1.0], lambda batch: 0.5 * batch.activation, steps=2, nodes=3)
    >>> result.rows.tolist(), result.activation.tolist(), result.hops.tolist()
    ([0, 1, 2], [1.0, 0.5, 0.25], [0, 1, 2])
    """
    if mode not in SPREAD_MODES:
        raise UnknownName("mode of spreading", mode, SPREAD_MODES)
    if steps < 0 or max_crossings < 1 or fan_out < 1 or not 0 <= threshold < np.inf:
        raise InputError(
            "Spreading needs steps and threshold of at least 0, and max_crossings and fan_out of at least 1, "
            f"not steps={steps}, threshold={threshold}, max_crossings={max_crossings} and fan_out={fan_out}."
        )
    if not 0 <= damping < 1:
        raise InputError(f"Damping must be at least 0 and below 1, not {damping}.")
    codes, own = (
        (np.asarray(rows), np.asarray(energy)) if validated else _seeds(rows, energy, nodes)
    )
    layout = edges.layout.with_room_for(codes)
    seeds = Seeds(layout, layout.positions(codes), own)
    limits = Limits(max_crossings, fan_out)
    if mode == "ppr":
        return pagerank(
            edges, seeds, pass_on, limits, steps=steps, threshold=threshold, damping=damping
        )
    return _spread_in_waves(edges, seeds, pass_on, limits, mode, steps, threshold)


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
    """Spread activation without a policy, over ``steps`` hops in both directions.

    Each step computes ``A[j] += A[i] * weight * decay``. ``energy`` may be one value for all seeds.
    Amounts below ``threshold`` do not arrive. Limits and errors are those of ``spread``.

    >>> edges = Edges()
    >>> edges.append([0, 1], [1, 2], [0, 0], [1.0, 0.5], nodes=3).tolist()
    [0, 1]
    >>> result = activate(edges, [0], nodes=3, steps=2, decay=0.5)
    >>> result.rows.tolist(), result.activation.tolist()
    ([0, 1, 2], [1.25, 1.0, 0.125])
    """
    if not 0 <= decay <= 1:
        raise InputError(
            f"The decay, the share that an edge passes on, must be between 0 and 1, not {decay}."
        )
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


def _spread_in_waves(
    edges: Edges,
    seeds: Seeds,
    pass_on: PassOn,
    limits: Limits,
    mode: Mode,
    steps: int,
    threshold: float,
) -> Spread:
    """Spread activation from ``seeds`` in at most ``steps`` waves of one hop, and return the reached nodes."""
    layout, size = seeds.layout, seeds.layout.size
    with zeros(4 * size, np.float64) as numbers:
        activation, received, arrived, wave = numbers.reshape(4, size)
        activation[seeds.places], wave[seeds.places] = seeds.energy, 1
        reachable = frontier = seeds.places
        for depth in range(1, steps + 1):
            codes = layout.code(frontier)
            leaves = limits.affordable(edges, codes, activation[frontier])
            _, target, passed = limits.cross(
                edges, codes[leaves], activation[frontier[leaves]], depth, pass_on
            )
            if threshold > 0:
                strong = passed >= threshold
                target, passed = target[strong], passed[strong]
            places = layout.positions(target)
            reached = unique_places(places, size)
            fresh = reached[wave[reached] == 0]
            wave[fresh] = depth + 1
            if mode == "energy":
                # Amounts are added one by one in order, so that the sum does not depend on how the
                # edges are stored.
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
                reachable = unique_places(np.concatenate((reachable, fresh)), size)
            frontier = reachable if mode == "energy" else fresh
            if not len(frontier):
                break
        result = Spread(
            layout.code(reachable),
            activation[reachable],
            received[reachable],
            wave[reachable].astype(np.int64) - 1,
            limits.unexpanded,
            limits.narrowed,
        )
        # Only reachable positions were changed, so zeroing these returns the scratch arrays to all zeros.
        activation[reachable], received[reachable], wave[reachable] = 0.0, 0.0, 0
    return result


def _seeds(rows: ArrayLike, energy: ArrayLike, nodes: int | Nodes) -> tuple[Ints, Floats]:
    """Validate seed nodes and return them in ascending order with their energies.

    Raises InputError if a seed or an energy is invalid.
    """
    seeds, own = np.asarray(rows), np.asarray(energy, dtype=np.float64)
    if seeds.ndim != 1 or seeds.shape != own.shape or (seeds.size and seeds.dtype.kind not in "iu"):
        raise InputError(
            f"rows and energy must be lists of equal length: integer rows of seed nodes, and one energy for each. "
            f"Their shapes are {seeds.shape} and {own.shape}."
        )
    codes = seeds.astype(np.int64, copy=False)
    if not (codes[1:] > codes[:-1]).all():
        order = np.argsort(codes, kind="stable")
        codes, own = codes[order], own[order]
    lowest, highest = (int(codes[0]), int(codes[-1])) if len(codes) else (0, -1)
    memories = nodes.count("memory") if isinstance(nodes, Nodes) else nodes
    if not (lowest >= 0 and highest < memories):
        if not isinstance(nodes, Nodes):
            raise InputError(
                f"Seed nodes must be rows 0..{nodes - 1} of the graph, not {lowest}..{highest}."
            )
        last_of_kind = np.flatnonzero(np.diff(node_kinds(codes), append=-1))
        nodes.labels(codes[last_of_kind])  # raises an error that names a node beyond the last
    if (codes[1:] == codes[:-1]).any():
        raise InputError(
            f"Seed node {codes[:-1][codes[1:] == codes[:-1]][0]} occurs more than once in rows. Add up its energies."
        )
    if not np.isfinite(own).all():
        first = int(np.argmax(~np.isfinite(own)))
        raise InputError(
            f"The initial activation of seed node {int(codes[first])} is {own[first]}; it must be finite."
        )
    return codes, own
