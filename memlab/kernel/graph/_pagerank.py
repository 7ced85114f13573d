"""Personalised PageRank around some seeds, by pushing what nodes hold in waves."""

from __future__ import annotations

import numpy as np

from memlab.kernel.graph._edges import Edges
from memlab.kernel.graph._wave import Limits, PassOn, Seeds, Spread, distinct

__all__ = ["pagerank"]

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
        reached = distinct(places, size)
        fresh = reached[hops[reached] == _FAR]
        np.minimum.at(hops, places, hops[pushing][position] + 1)
        if len(fresh):
            known = distinct(np.concatenate((known, fresh)), size)
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
