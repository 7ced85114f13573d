"""Reinforcement: changes of memories by the ``reinforce`` policy, and of edges by use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.base.arrays import Flags, Floats, Ints, Rows
from memlab.kernel.base.clock import DAY, Micros
from memlab.kernel.language import changed_fields
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment, columns
from memlab.kernel.schema import MEMORY, RELATIONS
from memlab.kernel.state import Change, State, build_edges, build_values

Outcome = Literal["success", "fail", "recalled", "verified", "rejected"]


def reinforce(
    state: State,
    pack: Pack,
    rows: Rows,
    now: Micros,
    *,
    outcome: Outcome,
    rating: int | None = None,
    elapsed: Callable[[], Floats] | None = None,
) -> Change:
    """Return the changes that the ``reinforce`` policy makes to ``rows`` after a use.

    All values are computed from the values before the use. The function ``elapsed`` returns the
    days from the previous use to the judged one, f64[rows]. By default these are the days since the
    last use. Values are clipped to the range of their column. Null makes a nullable column null
    (``stability``, ``difficulty``). In other columns, null and non-finite numbers leave the value
    unchanged.

    The policy is not run if its text shows that it changes nothing on this outcome.
    """
    policy = pack.policies["reinforce"]
    constants = {"outcome": outcome, "rating": None if rating is None else float(rating)}
    fields = changed_fields(policy, constants)
    if not fields or not len(rows):
        return Change()
    moment, count = Moment(state, pack, rows, now), len(rows)

    def half_life() -> tuple[Floats, Flags]:
        days = moment.half_life()
        return days, np.isnan(days)

    inputs: dict[str, Callable[[], NDArray[np.generic] | tuple[Floats, Flags]]] = {
        "outcome": lambda: np.full(count, outcome, dtype=object),
        "rating": lambda: (
            np.full(count, np.nan if rating is None else rating),
            np.full(count, rating is None),
        ),
        "half-life": half_life,
    }
    if elapsed is not None:
        inputs["elapsed-days"] = elapsed
    updates = policy.updates(columns(moment, policy, inputs=inputs), order=rows)
    moved = np.zeros(count, dtype=np.bool_)
    new_values: dict[str, Floats] = {}
    for field in fields:
        column = field.replace("-", "_")
        old = moment.number(column)
        new_values[column] = clip_to_column(column, old, *updates[field])
        moved |= ~((new_values[column] == old) | (np.isnan(new_values[column]) & np.isnan(old)))
    if not moved.any():
        return Change()
    return Change(
        set=(
            build_values(
                (rows[moved] + 1).tolist(),
                **{name: _nan_to_none(values[moved]) for name, values in new_values.items()},
            ),
        )
    )


def days_between_uses(
    state: State, rows: Rows, now: Micros, *, used: Micros | None = None, counted: bool = True
) -> Floats:
    """Return the days between each row's previous use and the use at ``used``.

    ``counted`` says whether the use at ``used`` is among the stored uses already. Without ``used``,
    the latest use is judged, or ``now`` if there was none since the creation. Only the latest eight
    uses are stored, and the creation counts as the use before them.
    """
    instants = state.uses.values[rows]
    created = state.numbers["created"].values[rows]
    if used is None:
        first = instants[:, 1] == state.uses.NEVER
        judged = np.where(first, now, instants[:, 0])
        position = np.where(first, 0, 1)
    else:
        judged = np.full(len(rows), used)
        position = (instants > used).sum(axis=1) + int(counted)
    depth = instants.shape[1]
    before = instants[np.arange(len(rows)), np.minimum(position, depth - 1)]
    before = np.where((position >= depth) | (before == state.uses.NEVER), created, before)
    # The difference of two distant instants exceeds 64 bits, so it is computed in floats.
    return np.asarray(
        np.maximum((judged.astype(np.float64) - before.astype(np.float64)) / DAY, 0.0)
    )


def clip_to_column(column: str, old: Floats, new: Floats, nulls: Flags | None) -> Floats:
    """Clip new values to the range of a column; unusable values keep the old value."""
    declared = MEMORY[column]
    bounded = np.clip(new, declared.low, declared.high)
    bounded = np.where(np.isfinite(bounded), bounded, old)
    if nulls is None:
        return bounded
    return np.where(nulls, np.nan if declared.nullable else old, bounded)


def _nan_to_none(values: Floats) -> list[float | None]:
    """Return values as a list with None for NaN."""
    return [None if value != value else value for value in values.tolist()]


# -- edges between memories that were useful together -----------------------------------------------------------------


NAMEABLE = tuple(name for name in RELATIONS if name not in ("has-tag", "in-cluster", "mentions"))
"""The relations between two memories; the others lead to tags, clusters and entities."""

# Shared use is symmetric, so its edge is ``relates-to``. Edges of order or disagreement say nothing
# about usefulness and are not strengthened, and neither is a memory that is being deleted.
_SHARED = "relates-to"
_NOT_STRENGTHENED = [RELATIONS.index(name) for name in ("next", "supersedes", "contradicts")]
_GONE = ("deleted", "purged")

Pairs = Sequence[tuple[int, int]]


def make_pairs(ids: Sequence[int], maximum: int) -> list[tuple[int, int]]:
    """Return at most ``maximum`` pairs of ``ids``, beginning with the first ids.

    The maximum prevents a quadratic number of edges.

    >>> make_pairs([5, 3, 9], 10), make_pairs([5, 3, 9], 2)
    ([(3, 5), (5, 9), (3, 9)], [(3, 5), (5, 9)])
    """
    pairs: list[tuple[int, int]] = []
    for later, id in enumerate(ids):
        pairs += [_sort_pair((id, other)) for other in ids[: min(later, maximum - len(pairs))]]
    return pairs


def make_pairs_with(id: int, others: Sequence[int], maximum: int) -> list[tuple[int, int]]:
    """Return a pair of ``id`` with each of the last ``maximum`` items of ``others``."""
    chosen = [other for other in others if other != id][-maximum:] if maximum else []
    return [_sort_pair((id, other)) for other in chosen]


def drop_deleted(state: State, ids: Sequence[int]) -> list[int]:
    """Return the ids of memories that are neither deleted nor purged."""
    statuses = state.names["status"].to_objects(np.array(ids, dtype=np.int64) - 1).tolist()
    return [id for id, status in zip(ids, statuses, strict=True) if status not in _GONE]


def strengthen_pairs(
    state: State,
    pack: Pack,
    pairs: Pairs,
    *,
    relations: Mapping[tuple[int, int], str] | None = None,
) -> Change:
    """Return the changes to edges between pairs of ids that were useful together.

    The weight of an existing edge grows by the setting ``edge-gain``, to 1 at most, and its reinforcements by one. A
    new edge gets the gain as its weight. By default the edge is ``relates-to`` in either direction. ``relations`` maps
    a pair to a directed relation, from its first id to its second.
    """
    gain = pack.number("edge-gain")
    directed: dict[tuple[int, int], str] = {}
    plain = dict.fromkeys(map(_sort_pair, pairs))
    for pair, word in (relations or {}).items():
        plain.pop(_sort_pair(pair), None)
        if word == _SHARED:
            plain[_sort_pair(pair)] = None
        else:
            directed[pair] = word
    all_pairs = [*plain, *directed]
    if not gain or not all_pairs:
        return Change()
    ends = np.array(all_pairs, dtype=np.int64).T - 1
    words = np.array([*[_SHARED] * len(plain), *directed.values()], dtype=object)
    codes = state.edges.codes_of(words.tolist())
    edges = np.concatenate(
        [
            _find_edges(state, ends[:, : len(plain)], codes[: len(plain)], either=True),
            _find_edges(state, ends[:, len(plain) :], codes[len(plain) :], either=False),
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


def strengthen_coactivated(state: State, pack: Pack, rows: Ints) -> Change:
    """Return the changes to edges among the ascending ``rows`` that were shown together.

    The weight of an existing edge grows by the setting ``coactivation-gain``, to 1 at most, and its reinforcements by
    one. No edge is created. Edges of order (``next``) and of disagreement are not strengthened.
    """
    gain = pack.number("coactivation-gain")
    if not gain or len(rows) < 2:
        return Change()
    crossings = state.edges.crossings(rows)
    edges = np.unique(crossings.edge[crossings.outgoing & np.isin(crossings.neighbour, rows)])
    edges = edges[~np.isin(state.edges.relation[edges], _NOT_STRENGTHENED)]
    if not len(edges):
        return Change()
    weight = np.minimum(1.0, state.edges.weight[edges] + gain)
    return Change(strengthen={"edges": edges.tolist(), "weight": weight.tolist()})


def _sort_pair(pair: tuple[int, int]) -> tuple[int, int]:
    """Return a pair with its smaller id first."""
    return min(pair), max(pair)


def _find_edges(state: State, ends: Ints, codes: Ints, *, either: bool) -> Ints:
    """Return the number of the edge with each pair of ends and relation code, or -1; ``either`` ignores direction."""
    return state.edges.find(ends[0], ends[1], codes, either=either)
