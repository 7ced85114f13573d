"""Which facts of a lab new facts bring to an end, as a change that the fold applies.

The valid time decides, not the order of telling: a fact that was true before a change is over from then on, also where
it is told after it. Only what a user stated of themselves ends anything; what an assistant, a tool or a page says of a
user never does. Below the setting ``succession-confidence`` nothing ends, and an edge ``contradicts`` says why.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memlab.policies import Pack
from memlab.schema import MEMORY, NEVER
from memlab.state import Change, State, edges_of, values_of
from memlab.subjects.facts.fact_rows import facts_of
from memlab.subjects.facts.lifecycle import Said, ends

__all__ = ["Succession", "succession"]

_REACH = ("project", "scope", "branch", "season", "visibility")
_HOLDING = ("active", "staged", "confirmed")
_STATED = ("user-stated", "user-corrected")


@dataclass(frozen=True)
class Succession:
    """What new facts end: ``pairs`` of the id that takes over and the id that ends, and the ``change`` for the fold."""

    pairs: tuple[tuple[int, int], ...]
    change: Change


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


def succession(
    state: State,
    pack: Pack,
    columns: Mapping[str, Sequence[Any]],
    ids: Sequence[int],
    *,
    gone: Collection[int],
    now: int,
) -> Succession:
    """Decide what new facts end, and which of them are over already.

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
    now
        The instant of the write, microseconds UTC.

    Returns
    -------
    Succession
        The pairs and the change; empty where nothing ends.
    """
    fresh = [fact for place, id in enumerate(ids) if (fact := _fresh(columns, place, id, now)) is not None]
    if not fresh:
        return Succession((), Change())
    least = pack.number("succession-confidence")
    known = [*_stored(state, {fact.said.subject for fact in fresh}, gone), *fresh]
    over: dict[int, tuple[_Fact, _Fact]] = {}
    doubtful: list[tuple[int, int]] = []
    for old in known:
        later = [
            new
            for new in known
            if (new.fresh or old.fresh)
            and new.stated
            and new.reach == old.reach
            and (new.began, new.id) > (old.began, old.id)
            and old.until > new.began
            and ends(new.said, old.said)
        ]
        sure = [new for new in later if new.confidence >= least]
        if sure:
            over[old.id] = (min(sure, key=lambda new: (new.began, new.id)), old)
        else:
            doubtful += [(new.id, old.id) for new in later]
    if not over and not doubtful:
        return Succession((), Change())
    return Succession(tuple((new.id, old.id) for new, old in over.values()), _change(over, doubtful, now))


def _change(over: Mapping[int, tuple[_Fact, _Fact]], doubtful: Sequence[tuple[int, int]], now: int) -> Change:
    parts = []
    if over:
        gone = sorted(over)
        parts.append(
            values_of(
                gone,
                status="superseded",
                superseded_by=[float(over[id][0].id) for id in gone],
                valid_until=[min(over[id][1].until, over[id][0].began) for id in gone],
                changed=now,
                reason=[_why(*over[id]) for id in gone],
            )
        )
    edges = [(over[id][0].id, id, "supersedes") for id in sorted(over)]
    edges += [(new, old, "contradicts") for new, old in doubtful]
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


def _stored(state: State, subjects: set[str], gone: Collection[int]) -> list[_Fact]:
    """The facts that hold of these subjects, and those that name one of them as what somebody has."""
    names, numbers = state.names, state.numbers
    found = []
    low = {subject.casefold() for subject in subjects}
    owners = {subject.rpartition("'s ")[0].casefold() for subject in subjects}
    for row in facts_of(state).tolist():
        subject, value = names["subject"].at(row), names["value"].at(row) or names["object"].at(row)
        if subject is None or value is None or names["status"].at(row) not in _HOLDING or row + 1 in gone:
            continue
        if subject.casefold() not in low | owners and not any(one in value.casefold() for one in low):
            continue
        created, since = (int(numbers[name].values[row]) for name in ("created", "valid_from"))
        found.append(
            _Fact(
                row + 1,
                Said(subject, names["predicate"].at(row) or "", value),
                created if since == NEVER else since,
                _end(int(numbers["valid_until"].values[row])),
                tuple(names[name].at(row) for name in _REACH),
                float(numbers["confidence"].values[row]),
                names["provenance"].at(row) in _STATED,
                False,
            )
        )
    return found


def _end(until: int) -> int:
    return _FOREVER if until == NEVER else until


_FOREVER = 1 << 62
