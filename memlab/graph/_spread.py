"""Spreading activation in waves, with a policy asked once a wave what passes over each edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.errors import InputError
from memlab.graph._edges import Edges

__all__ = ["EdgeBatch", "Spread", "spread"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_CROSSINGS = 1_000_000
"""Crossings in one wave unless the caller says: some 100 ms of work."""


@dataclass(frozen=True)
class EdgeBatch:
    """The edges crossed in one wave, ordered by the row left, then by edge.

    ``source`` is the row that is left and ``target`` the row that is reached, whichever way the edge points;
    ``outgoing`` says whether it points from source to target. ``activation`` is that of the row left, ``depth`` the
    number of the wave, from 1.
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


@dataclass(frozen=True)
class Spread:
    """The seeds and what was reached, by ascending row.

    ``received`` is what arrived over edges (0 for none), ``activation`` what the row holds in the end, ``hops`` how
    many edges it is from the nearest seed (0 for a seed). ``unexpanded`` counts rows that were not followed further
    because a wave had met its limit of crossings.
    """

    rows: Ints
    activation: Floats
    received: Floats
    hops: Ints
    unexpanded: int = 0


PassOn = Callable[[EdgeBatch], Floats]


def spread(
    edges: Edges,
    rows: ArrayLike,
    energy: ArrayLike,
    pass_on: PassOn,
    *,
    steps: int,
    nodes: int,
    threshold: float = 0.0,
    combine: Literal["max", "sum"] = "max",
    most_crossings: int = MOST_CROSSINGS,
) -> Spread:
    """Carry the ``energy`` of the seeds ``rows`` over ``steps`` edges, in both directions.

    Each wave asks ``pass_on`` once what passes over each edge crossed. What is not positive and finite, or below
    ``threshold``, does not arrive. ``nodes`` is the number of rows that exist.

    ``combine="max"``: breadth first. A wave leaves from the rows that the last one reached for the first time; of
    several arrivals a row keeps the greatest; a seed keeps its own energy as its activation.

    ``combine="sum"``: ``activation[j] += what passes from i to j``, at every step over all edges of all rows that
    are active by then, at once. With ``activation * weight * damping`` as ``pass_on`` this is spreading activation
    as in Collins and Loftus (1975).

    A wave crosses at most ``most_crossings`` edges: rows leave by falling activation, ties by row, until the next
    one would exceed the limit. Work and result are deterministic. InputError: seeds that repeat, do not exist or
    have an energy that is not finite; a policy's answer of the wrong length.

    >>> edges = Edges()
    >>> edges.append([0, 1], [1, 2], [0, 0], [1.0, 1.0], nodes=3).tolist()
    [0, 1]
    >>> found = spread(edges, [0], [1.0], lambda batch: 0.5 * batch.activation, steps=2, nodes=3)
    >>> found.rows.tolist(), found.activation.tolist(), found.hops.tolist()
    ([0, 1, 2], [1.0, 0.5, 0.25], [0, 1, 2])
    """
    seeds, own = _checked_seeds(rows, energy, nodes)
    if combine not in ("max", "sum"):
        raise InputError(f'Arrivals combine by "max" or "sum", not {combine!r}.')
    if steps < 0 or most_crossings < 1 or not threshold >= 0:
        raise InputError(
            f"Spreading takes steps and a threshold of at least 0 and at least one crossing, not {steps}, {threshold} "
            f"and {most_crossings}."
        )
    # untouched pages of zeros cost nothing, so whole columns stay cheap among many rows
    activation, received, wave = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes, dtype=np.int64)
    activation[seeds] = own
    wave[seeds] = 1
    is_seed = np.zeros(nodes, dtype=np.bool_)
    is_seed[seeds] = True
    known = frontier = np.sort(seeds)
    unexpanded = 0
    for depth in range(1, steps + 1):
        leaving = _affordable(edges, frontier, activation, most_crossings)
        unexpanded += len(frontier) - len(leaving)
        crossed = edges.crossings(leaving)
        if not len(crossed):
            break
        source = leaving[crossed.position]
        batch = EdgeBatch(
            activation=activation[source],
            weight=edges.weight[crossed.edge],
            relation=edges.relation[crossed.edge],
            depth=depth,
            outgoing=crossed.outgoing,
            source=source,
            target=crossed.neighbour,
            edge=crossed.edge,
        )
        passed = np.asarray(pass_on(batch), dtype=np.float64)
        if passed.shape != (len(batch),):
            raise InputError(f"The spread policy answered {passed.shape} for {len(batch)} edges.")
        arrives = np.isfinite(passed) & (passed > 0) & (passed >= threshold)
        target, passed = crossed.neighbour[arrives], passed[arrives]
        reached = np.unique(target)
        fresh = reached[wave[reached] == 0]
        wave[fresh] = depth + 1
        if combine == "max":
            np.maximum.at(received, target, passed)
            others = reached[~is_seed[reached]]
            activation[others] = received[others]
            frontier = fresh
        else:
            arrived = np.bincount(np.searchsorted(reached, target), weights=passed, minlength=len(reached))
            received[reached] += arrived
            activation[reached] += arrived
            frontier = np.union1d(known, fresh)
        known = np.union1d(known, fresh)
        if not len(frontier):
            break
    return Spread(known, activation[known], received[known], wave[known] - 1, unexpanded)


def _checked_seeds(rows: ArrayLike, energy: ArrayLike, nodes: int) -> tuple[Ints, Floats]:
    seeds, own = np.asarray(rows), np.asarray(energy, dtype=np.float64)
    if seeds.ndim != 1 or seeds.shape != own.shape or (seeds.size and seeds.dtype.kind not in "iu"):
        raise InputError(f"Seeds are row numbers with one energy each, not {seeds.shape} and {own.shape}.")
    if len(seeds) and not (seeds.min() >= 0 and seeds.max() < nodes):
        raise InputError(f"Seeds are rows 0..{nodes - 1}, not {int(seeds.min())}..{int(seeds.max())}.")
    if len(np.unique(seeds)) != len(seeds):
        raise InputError("A row is a seed once; these repeat.")
    if not np.isfinite(own).all():
        at = int(np.argmax(~np.isfinite(own)))
        raise InputError(f"The energy of seed {int(seeds[at])} is {own[at]}; it must be finite.")
    return seeds.astype(np.int64, copy=False), own


def _affordable(edges: Edges, frontier: Ints, activation: Floats, most: int) -> Ints:
    """The rows of ``frontier`` whose edges fit into the limit together, by falling activation; ascending."""
    degree = edges.degree(frontier)
    if int(degree.sum()) <= most:
        return frontier
    order = np.lexsort((frontier, -activation[frontier]))
    fits = int(np.searchsorted(np.cumsum(degree[order]), most, side="right"))
    return np.sort(frontier[order[:fits]])
