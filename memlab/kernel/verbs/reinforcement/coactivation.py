"""Memories that were useful together: the edges between them are made, or strengthened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.policies import Pack
from memlab.kernel.schema import RELATIONS
from memlab.kernel.state import Change, State, edges_of

__all__ = ["NAMEABLE", "coactivated", "joined", "pairs_of", "pairs_with", "remaining"]

NAMEABLE = tuple(name for name in RELATIONS if name not in ("has-tag", "in-cluster", "mentions"))
"""The relations between two memories; the others lead to tags, clusters and entities."""

_SHARED = "relates-to"
_NOT_STRENGTHENED = [RELATIONS.index(name) for name in ("next", "supersedes", "contradicts")]
_GONE = ("deleted", "purged")

Pairs = Sequence[tuple[int, int]]


def pairs_of(ids: Sequence[int], most: int) -> list[tuple[int, int]]:
    """At most ``most`` pairs of ``ids``, those of the first among them first; so many memories make no storm of edges.

    >>> pairs_of([5, 3, 9], most=10), pairs_of([5, 3, 9], most=2)
    ([(3, 5), (5, 9), (3, 9)], [(3, 5), (5, 9)])
    """
    found: list[tuple[int, int]] = []
    for later, one in enumerate(ids):
        found += [_ordered((one, other)) for other in ids[: min(later, most - len(found))]]
    return found


def pairs_with(id: int, others: Sequence[int], most: int) -> list[tuple[int, int]]:
    """``id`` with each of the last ``most`` of ``others``."""
    chosen = [other for other in others if other != id][-most:] if most else []
    return [_ordered((id, other)) for other in chosen]


def remaining(state: State, ids: Sequence[int]) -> list[int]:
    """Those of ``ids`` that were not deleted since: use changes nothing in what is on its way out."""
    statuses = state.names["status"].objects(np.array(ids, dtype=np.int64) - 1).tolist()
    return [id for id, status in zip(ids, statuses, strict=True) if status not in _GONE]


def joined(state: State, pack: Pack, pairs: Pairs, *, relations: Mapping[tuple[int, int], str] | None = None) -> Change:
    """What shared use does to the edges of these pairs of ids: ``edge-gain`` more weight, at most 1, and one
    reinforcement more; a new edge weighs the gain.

    An edge of a pair is ``relates-to``, in either direction. ``relations`` names others, from the first of its pair to
    the second; such a pair gets that edge instead.
    """
    gain = pack.number("edge-gain")
    named: dict[tuple[int, int], str] = {}
    plain = dict.fromkeys(map(_ordered, pairs))
    for pair, word in (relations or {}).items():
        plain.pop(_ordered(pair), None)
        if word == _SHARED:
            plain[_ordered(pair)] = None
        else:
            named[pair] = word
    wanted = [*plain, *named]
    if not gain or not wanted:
        return Change()
    ends = np.array(wanted, dtype=np.int64).T - 1
    words = np.array([*[_SHARED] * len(plain), *named.values()], dtype=object)
    codes = state.edges.codes_of(words.tolist())
    edges = np.concatenate(
        [
            _found(state, ends[:, : len(plain)], codes[: len(plain)], either=True),
            _found(state, ends[:, len(plain) :], codes[len(plain) :], either=False),
        ]
    )
    old, new = edges[edges >= 0], edges < 0
    weight = np.minimum(1.0, state.edges.weight[old] + gain)
    ids = ends[:, new] + 1
    return Change(
        edges=edges_of(ids[0].tolist(), ids[1].tolist(), words[new].tolist(), min(1.0, gain)) if new.any() else None,
        strengthen={"edges": old.tolist(), "weight": weight.tolist()} if len(old) else None,
    )


def coactivated(state: State, pack: Pack, rows: NDArray[np.int64]) -> Change:
    """What being shown together does to the edges among ``rows`` (ascending): ``coactivation-gain`` more weight, at
    most 1, and one reinforcement more. No edge is made of it, and one that says in what order things were said, or
    that one of two is not so, is as strong as it was.
    """
    gain = pack.number("coactivation-gain")
    if not gain or len(rows) < 2:
        return Change()
    met = state.edges.crossings(rows)
    edges = np.unique(met.edge[met.outgoing & np.isin(met.neighbour, rows)])
    edges = edges[~np.isin(state.edges.relation[edges], _NOT_STRENGTHENED)]
    if not len(edges):
        return Change()
    weight = np.minimum(1.0, state.edges.weight[edges] + gain)
    return Change(strengthen={"edges": edges.tolist(), "weight": weight.tolist()})


def _ordered(pair: tuple[int, int]) -> tuple[int, int]:
    return min(pair), max(pair)


def _found(state: State, ends: NDArray[np.int64], codes: NDArray[np.int64], *, either: bool) -> NDArray[np.int64]:
    return state.edges.find(ends[0], ends[1], codes, either=either)
