"""What use changes of memories, by the ``reinforce`` policy, and of the edges between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.base.clock import DAY, Micros
from memlab.kernel.language import changed_fields
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment, columns
from memlab.kernel.schema import MEMORY, RELATIONS
from memlab.kernel.state import Change, State, build_edges, build_values

__all__ = [
    "NAMEABLE",
    "Outcome",
    "coactivated",
    "days_before",
    "joined",
    "pairs_of",
    "pairs_with",
    "reinforced",
    "remaining",
]


Outcome = Literal["success", "fail", "recalled", "verified", "rejected"]
Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def reinforced(
    state: State,
    pack: Pack,
    rows: Rows,
    now: Micros,
    *,
    outcome: Outcome,
    rating: int | None = None,
    elapsed: Callable[[], Floats] | None = None,
) -> Change:
    """The other values that ``rows`` (ascending) have after a use with this outcome; every one of them is decided by
    the values before.

    ``elapsed`` gives the days from the use before to the one that is judged, f64[rows]; without it they are the days
    since the last use. What the policy gives is held within the range of its column. Null makes a column unknown where
    it may be (``stability``, ``difficulty``), and elsewhere leaves the value as it was; so does what is no finite
    number.

    A policy that can change nothing on this outcome is not run: that is known from its text.
    """
    policy = pack.policies["reinforce"]
    known = {"outcome": outcome, "rating": None if rating is None else float(rating)}
    fields = changed_fields(policy, known)
    if not fields or not len(rows):
        return Change()
    moment, count = Moment(state, pack, rows, now), len(rows)

    def half_life() -> tuple[Floats, Flags]:
        days = moment.half_life()
        return days, np.isnan(days)

    given: dict[str, Callable[[], NDArray[np.generic] | tuple[Floats, Flags]]] = {
        "outcome": lambda: np.full(count, outcome, dtype=object),
        "rating": lambda: (
            np.full(count, np.nan if rating is None else rating),
            np.full(count, rating is None),
        ),
        "half-life": half_life,
    }
    if elapsed is not None:
        given["elapsed-days"] = elapsed
    updates = policy.updates(columns(moment, policy, inputs=given), order=rows)
    moved = np.zeros(count, dtype=np.bool_)
    after: dict[str, Floats] = {}
    for field in fields:
        column = field.replace("-", "_")
        old = moment.number(column)
        after[column] = _held(column, old, *updates[field])
        moved |= ~((after[column] == old) | (np.isnan(after[column]) & np.isnan(old)))
    if not moved.any():
        return Change()
    return Change(
        set=(
            build_values(
                (rows[moved] + 1).tolist(),
                **{name: _nullable(values[moved]) for name, values in after.items()},
            ),
        )
    )


def days_before(
    state: State, rows: Rows, now: Micros, *, used: Micros | None = None, counted: bool = True
) -> Floats:
    """f64[rows]: days from the use before to the one at ``used``, at least 0.

    ``counted`` says whether that use stands among the uses of these memories already. Without ``used`` the latest use
    is judged, or what happens ``now`` where there was none since the creation. Of older uses than the latest
    eight nothing is known; they count as if the creation was the one before.
    """
    instants = state.uses.values[rows]
    created = state.numbers["created"].values[rows]
    if used is None:
        first = instants[:, 1] == state.uses.NEVER
        judged = np.where(first, now, instants[:, 0])
        place = np.where(first, 0, 1)
    else:
        judged = np.full(len(rows), used)
        place = (instants > used).sum(axis=1) + int(counted)
    depth = instants.shape[1]
    before = instants[np.arange(len(rows)), np.minimum(place, depth - 1)]
    before = np.where((place >= depth) | (before == state.uses.NEVER), created, before)
    # far from one another two instants differ by more than 64 bits hold
    return np.asarray(
        np.maximum((judged.astype(np.float64) - before.astype(np.float64)) / DAY, 0.0)
    )


def _held(column: str, old: Floats, new: Floats, nulls: Flags | None) -> Floats:
    """What the column can hold of ``new``."""
    declared = MEMORY[column]
    bounded = np.clip(new, declared.low, declared.high)
    bounded = np.where(np.isfinite(bounded), bounded, old)
    if nulls is None:
        return bounded
    return np.where(nulls, np.nan if declared.nullable else old, bounded)


def _nullable(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


# -- memories that were useful together: edges between them are made or strengthened ----------------------------------


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
    statuses = state.names["status"].to_objects(np.array(ids, dtype=np.int64) - 1).tolist()
    return [id for id, status in zip(ids, statuses, strict=True) if status not in _GONE]


def joined(
    state: State,
    pack: Pack,
    pairs: Pairs,
    *,
    relations: Mapping[tuple[int, int], str] | None = None,
) -> Change:
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
        edges=build_edges(ids[0].tolist(), ids[1].tolist(), words[new].tolist(), min(1.0, gain))
        if new.any()
        else None,
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


def _found(
    state: State, ends: NDArray[np.int64], codes: NDArray[np.int64], *, either: bool
) -> NDArray[np.int64]:
    return state.edges.find(ends[0], ends[1], codes, either=either)
