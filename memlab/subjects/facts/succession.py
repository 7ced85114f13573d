"""Which facts of a lab new facts bring to an end, as a change that the fold applies.

The valid time decides, not the order of telling: a fact that was true before a change is over from then on, also where
it is told after it. Only what a user stated of themselves ends anything; what an assistant, a tool or a page says of a
user never does. Below the setting ``succession-confidence`` nothing ends, and an edge ``contradicts`` says why.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from memlab.kernel.policies import Pack
from memlab.kernel.schema import MEMORY, NEVER
from memlab.kernel.state import Change, State, edges_of, values_of
from memlab.kernel.verbs.fact_rows import facts_of
from memlab.kernel.verbs.tellings import fact_times_of
from memlab.subjects.facts.lifecycle import Said, ends

__all__ = ["Succession", "succession"]

_REACH = ("project", "scope", "branch", "season", "visibility")
_HOLDING = ("active", "staged", "confirmed")
_WAS_SO = (*_HOLDING, "superseded")
"""What was true for a time can end an older fact, and may have ended earlier than was known."""

_STATED = ("user-stated", "user-corrected")


@dataclass(frozen=True)
class Succession:
    """What new facts end: ``pairs`` of the id that takes over and the id that ends, and the ``change`` for the fold.

    ``fact_times`` has the id, the instants and the gaps of facts that were told again after another value held.
    """

    pairs: tuple[tuple[int, int], ...]
    change: Change
    fact_times: tuple[list[Any], ...] = ()


@dataclass(frozen=True, slots=True)
class _Fact:
    id: int
    said: Said
    began: int
    until: int
    reach: tuple[Any, ...]
    confidence: float
    stated: bool
    fresh: bool


@dataclass(frozen=True, slots=True)
class _End:
    """A telling, at an instant, of a new fact that ends an old one."""

    at: int
    new: _Fact
    old: _Fact


def succession(
    state: State,
    pack: Pack,
    columns: Mapping[str, Sequence[Any]],
    ids: Sequence[int],
    *,
    gone: Collection[int],
    told: Sequence[Sequence[Any]] = (),
    now: int,
) -> Succession:
    """Decide what new facts end, and which of them are over already.

    A fact that is told again after another value held is in force again: it ends the other, which leaves a gap in it.

    Parameters
    ----------
    state
        The state without the new facts.
    pack
        The live pack; its setting ``succession-confidence`` is the least confidence that ends a fact.
    columns
        The columns of the new memories, subjects called by the names of their entities.
    ids
        The ids that the new memories get.
    gone
        Ids that linking superseded in the same write.
    told
        The facts that new rows were merged into: id, instants of their tellings, gaps.
    now
        The instant of the write, microseconds UTC.

    Returns
    -------
    Succession
        The pairs and the change; empty where nothing ends.
    """
    fresh = [fact for place, id in enumerate(ids) if (fact := _fresh(columns, place, id, now)) is not None]
    again = {id: instants for id, instants, _ in told}
    retold = [one.said for id in again if id <= len(state) and (one := _stored_fact(state, id - 1)) is not None]
    if not fresh and not retold:
        return Succession((), Change())
    least = pack.number("succession-confidence")
    known = [*_stored(state, [*(fact.said for fact in fresh), *retold], gone), *fresh]
    before = fact_times_of(state).told
    tellings = {fact.id: sorted({fact.began, *again.get(fact.id, before.get(fact.id, ()))}) for fact in known}
    over: dict[int, _End] = {}
    doubtful: dict[tuple[int, int], None] = {}
    times: list[list[Any]] = []
    for old in known:
        own = tellings[old.id]
        others = [
            _End(at, new, old)
            for new in known
            if (new.fresh or old.fresh or new.id in again or old.id in again)
            and new.stated
            and new.reach == old.reach
            and ends(new.said, old.said)
            for at in tellings[new.id]
            if old.until > at
        ]
        later = [end for end in others if (end.at, end.new.id) > (own[-1], old.id)]
        sure = [end for end in others if end.new.confidence >= least]
        last = [end for end in later if end.new.confidence >= least]
        if last:
            over[old.id] = min(last, key=lambda end: (end.at, end.new.id))
        else:
            doubtful |= dict.fromkeys((end.new.id, old.id) for end in later)
        gaps = [
            [min(between), high]
            for low, high in pairwise(own)
            if (between := [end.at for end in sure if low < end.at < high])
        ]
        if gaps:
            times.append([old.id, own, gaps])
    if not over and not doubtful and not times:
        return Succession((), Change())
    return Succession(
        tuple((end.new.id, old) for old, end in over.items()), _change(over, list(doubtful), now), tuple(times)
    )


def _change(over: Mapping[int, _End], doubtful: Sequence[tuple[int, int]], now: int) -> Change:
    parts = []
    if over:
        gone = sorted(over)
        parts.append(
            values_of(
                gone,
                status="superseded",
                superseded_by=[float(over[id].new.id) for id in gone],
                valid_until=[min(over[id].old.until, over[id].at) for id in gone],
                changed=now,
                reason=[_why(over[id].new, over[id].old) for id in gone],
            )
        )
    edges = [(over[id].new.id, id, "supersedes") for id in sorted(over)]
    edges += [(new, old, "contradicts") for new, old in doubtful]
    if not edges:
        return Change()
    sources, targets, relations = (list(column) for column in zip(*edges, strict=True))
    return Change(set=parts, edges=edges_of(sources, targets, relations, [1.0] * len(edges)))


def _why(new: _Fact, old: _Fact) -> str:
    return f"Updated: {old.said.predicate} {old.said.value} -> {new.said.predicate} {new.said.value}"


def _fresh(columns: Mapping[str, Sequence[Any]], place: int, id: int, now: int) -> _Fact | None:
    def of(name: str) -> Any:
        given = columns.get(name)
        value = None if given is None else given[place]
        return MEMORY[name].default if value is None and name in MEMORY else value

    value = of("value") if of("value") is not None else of("object")
    if of("subject") is None or of("predicate") is None or value is None or of("status") not in _HOLDING:
        return None
    created = now if of("created") in (None, NEVER, "now") else of("created")
    began = created if of("valid_from") in (None, NEVER) else of("valid_from")
    until = NEVER if of("valid_until") is None else of("valid_until")
    return _Fact(
        id,
        Said(of("subject"), of("predicate"), value),
        began,
        _end(until),
        tuple(of(name) for name in _REACH),
        float(of("confidence")),
        of("provenance") in _STATED,
        True,
    )


def _stored(state: State, fresh: Sequence[Said], gone: Collection[int]) -> list[_Fact]:
    """The facts of the subjects of new facts, and those that name one of them, or are named by one."""
    names = state.names
    found = []
    low = {one.subject.casefold() for one in fresh}
    owners = {one.subject.rpartition("'s ")[0].casefold() for one in fresh}
    values = [one.value.casefold() for one in fresh]
    for row in facts_of(state).tolist():
        subject, value = names["subject"].at(row), names["value"].at(row) or names["object"].at(row)
        if subject is None or value is None or row + 1 in gone:
            continue
        of = subject.casefold()
        named = any(one in value.casefold() for one in low) or any(of in one for one in values)
        if (of in low | owners or named) and (fact := _stored_fact(state, row)) is not None:
            found.append(fact)
    return found


def _stored_fact(state: State, row: int) -> _Fact | None:
    """The fact in a row; None for a memory that is none, or that was never true."""
    names, numbers = state.names, state.numbers
    subject, value = names["subject"].at(row), names["value"].at(row) or names["object"].at(row)
    if subject is None or value is None or names["status"].at(row) not in _WAS_SO:
        return None
    created, since = (int(numbers[name].values[row]) for name in ("created", "valid_from"))
    return _Fact(
        row + 1,
        Said(subject, names["predicate"].at(row) or "", value),
        created if since == NEVER else since,
        _end(int(numbers["valid_until"].values[row])),
        tuple(names[name].at(row) for name in _REACH),
        float(numbers["confidence"].values[row]),
        names["provenance"].at(row) in _STATED,
        False,
    )


def _end(until: int) -> int:
    return _FOREVER if until == NEVER else until


_FOREVER = 1 << 62
