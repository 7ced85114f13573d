"""What joining two labs does, decided from both as they are: what comes in, what changes, what is listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import numpy as np

from memlab.io.formats import Bundle, build_bundle
from memlab.kernel.base.clock import Micros
from memlab.kernel.journal import Event
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import State, Tombstones
from memlab.kernel.storage.store import Store
from memlab.subjects.io.join_sides import Side, rows_of
from memlab.subjects.io.join_versions import (
    CARRIED,
    EDITABLE,
    OF_USE,
    SAID,
    Row,
    give_way,
    greater_counts,
    is_contested,
    read_here,
    use_of,
    version_of,
)
from memlab.subjects.io.results import WHATS
from memlab.subjects.io.storing import Screened

__all__ = ["Plan", "plan_join"]

_PURGED = "purged in the lab that was joined"


@dataclass
class Plan:
    """What is to be done, by ids here; those of memories that come in are counted on from the last."""

    fresh: list[int] = field(default_factory=list)
    """Places of the rows that come in."""
    here: dict[int, int] = field(default_factory=dict)
    """Ids there to ids here, of all that are here afterwards."""
    set: dict[int, dict[str, Any]] = field(default_factory=dict)
    told: list[tuple[int, str, str | None, str | None, str | None]] = field(default_factory=list)
    known: int = 0
    kept_away: int = 0
    purged: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Meeting:
    """Both labs, and which memories of theirs are which of ours: ``pairs`` by ids there, ``back`` by ids here.

    ``away`` are the ids there that were purged here; ``now`` is the instant of the join.
    """

    ours: Side
    theirs: Side
    pairs: dict[int, int]
    away: set[int]
    back: Mapping[int, int]
    now: Micros


@dataclass(frozen=True)
class _Rival:
    """A memory that both labs have and that differs; ``later``: the version there is kept."""

    other: int
    id: int
    later: bool
    said: bool
    """The two say something else, and not only another importance or confidence."""


def plan_join(
    store: Store,
    state: State,
    bundle: Bundle,
    given: Screened,
    own: str,
    events: Callable[[], Iterable[Event]] | None,
) -> Plan:
    """Return what joining ``bundle``, checked as ``given``, into the lab ``own`` changes; see ``join_bundle``."""
    ours = Side(
        rows_of(build_bundle(state, lab=own, now=0).memories), store.journal.events(upto=state.seq)
    )
    theirs = Side(rows_of(bundle.memories), None if events is None else events())
    pairs, away = _pair_memories(state, given, own)
    meeting = _Meeting(
        ours, theirs, pairs, away, {id: other for other, id in pairs.items()}, store.clock()
    )
    plan = Plan(known=len(pairs), here=dict(pairs))
    _add_new(plan, meeting, given, first=len(state) + 1)
    rivals = _change_known(plan, meeting)
    demoted = [found for rival in rivals if (found := _overtaken(plan, meeting, rival)) is not None]
    _delete_by_tombstones(plan, meeting, bundle)
    plan.purged = sorted(set(plan.purged))
    for _, to, columns in sorted(demoted, key=lambda one: one[:2]):
        plan.set[to] = plan.set.get(to, {}) | columns
    _describe_rivals(plan, meeting, rivals)
    return plan


def _add_new(plan: Plan, meeting: _Meeting, given: Screened, *, first: int) -> None:
    """Plan the memories that come in; an edit of a memory that was purged here stays away with it."""
    ours, theirs, pairs, away = meeting.ours, meeting.theirs, meeting.pairs, meeting.away
    for other, id in pairs.items():
        if ours.rows[id]["status"] == "purged":
            away |= set(takewhile(lambda edit: edit not in pairs, theirs.chain(other)[1:]))
    plan.kept_away = len(away)
    plan.fresh = [place for place, id in enumerate(given.ids) if id not in pairs and id not in away]
    for offset, place in enumerate(plan.fresh):
        id = given.ids[place]
        plan.here[id] = first + offset
        if theirs.rows[id]["status"] != "purged":
            plan.told.append((plan.here[id], "added", None, given.screenings[place].text, None))


def _change_known(plan: Plan, meeting: _Meeting) -> list[_Rival]:
    """Plan the changes of memories that both labs have; return those of which the two say something else."""
    rivals = []
    for other, id in meeting.pairs.items():
        mine, yours = meeting.ours.rows[id], read_here(meeting.theirs.rows[other], plan.here)
        if mine["status"] == "purged":
            continue
        if yours["status"] == "purged":
            _delete_purged(plan, meeting, id)
            continue
        said = any(mine[name] != yours[name] for name in SAID)
        here_at, there_at = meeting.ours.last(id), meeting.theirs.last(other)
        later = (there_at, repr(version_of(yours))) > (here_at, repr(version_of(mine)))
        columns = greater_counts(mine, yours)
        if later and (said or any(mine[name] != yours[name] for name in OF_USE)):
            columns |= {
                name: yours[name] for name in (*SAID, *OF_USE, "label") if mine[name] != yours[name]
            }
            columns["changed"] = max(meeting.theirs.times.get(other, ()), default=yours["changed"])
            columns["status"] = yours["status"]
        elif here_at == there_at and use_of(yours) > use_of(mine):
            columns |= {name: yours[name] for name in OF_USE if mine[name] != yours[name]}
        if columns:
            plan.set[id] = columns
        if said or (later and any(mine[name] != yours[name] for name in EDITABLE)):
            rivals.append(_Rival(other, id, later, said))
    return rivals


def _overtaken(
    plan: Plan, meeting: _Meeting, rival: _Rival
) -> tuple[Micros, int, dict[str, Any]] | None:
    """Return the last edit on the side that lost, by when and how it gives way; None where it does not.

    It gives way to what stands on the other side, where it is of its side alone and still in use.
    """
    ours, theirs, here = meeting.ours, meeting.theirs, plan.here
    if rival.later:
        loser, tip, winner, at = (
            ours,
            ours.chain(rival.id)[-1],
            theirs.chain(rival.other)[-1],
            theirs.last(rival.other),
        )
        only_there = tip != rival.id and tip not in meeting.back
        standing = read_here(theirs.rows[winner], here) | {"id": here.get(winner)}
        if winner not in here:  # purged here, so that it stays away
            standing["status"] = "purged"
        to = tip
    else:
        loser, tip, winner, at = (
            theirs,
            theirs.chain(rival.other)[-1],
            ours.chain(rival.id)[-1],
            ours.last(rival.id),
        )
        only_there = tip != rival.other and tip not in meeting.pairs and tip not in meeting.away
        standing = {**ours.rows[winner], "id": winner}
        to = here.get(tip, 0)
    if not rival.said or not only_there or loser.rows[tip]["status"] not in RECALLABLE:
        return None
    return at, to, give_way(standing, at)


def _delete_by_tombstones(plan: Plan, meeting: _Meeting, bundle: Bundle) -> None:
    """Delete what was purged there and has another number here: its text is known by the tombstones of the bundle."""
    gone = Tombstones()
    if Tombstones.name in bundle.registers:
        gone.load(bundle.registers[Tombstones.name])
    if not len(gone):
        return
    living = {row["text"] for row in meeting.theirs.rows.values() if row["status"] != "purged"}
    for id, row in meeting.ours.rows.items():
        stays = id in meeting.back or row["status"] == "purged" or row["text"] in living
        if not stays and gone.is_purged(row["text"]):
            _delete_purged(plan, meeting, id)


def _pair_memories(state: State, given: Screened, own: str) -> tuple[dict[int, int], set[int]]:
    """Of the memories there: which they are here, and which were purged here and stay away.

    A memory is known by the lab and the number that it came to be by, its time and its text; what is purged has no
    text, and the rest tells.
    """
    origins, statuses, texts = state.names["origin"], state.names["status"], state.texts
    created, tombstones = state.numbers["created"].values, state.projection(Tombstones)
    held: dict[str, list[int]] = {}
    for row in np.flatnonzero(origins.codes >= 0).tolist():
        held.setdefault(origins.vocabulary[origins.codes[row]], []).append(row)
    pairs: dict[int, int] = {}
    away: set[int] = set()
    taken: set[int] = set()
    for id, origin, screening, at, gone in zip(
        given.ids, given.origins, given.screenings, given.created, given.purged, strict=True
    ):
        candidates = held.get(origin, [])
        lab, _, number = origin.rpartition(":")
        if lab == own and number.isdecimal() and 1 <= int(number) <= len(state):
            row = int(number) - 1
            candidates = [*candidates, row] if origins.codes[row] < 0 else candidates
        met = [row for row in candidates if at in (None, int(created[row])) and row not in taken]
        same = [
            row
            for row in met
            if gone or statuses.value_at(row) == "purged" or texts.value_at(row) == screening.text
        ]
        if same:
            pairs[id] = same[0] + 1
            taken.add(same[0])
            if statuses.value_at(same[0]) == "purged" and not gone:
                away.add(id)
        elif gone or tombstones.is_purged(screening.text):
            away.add(id)
    return pairs, away


def _delete_purged(plan: Plan, meeting: _Meeting, id: int) -> None:
    """A memory that was purged there is deleted here, with the edits that were made of it here alone."""
    for one in (id, *takewhile(lambda edit: edit not in meeting.back, meeting.ours.chain(id)[1:])):
        row = meeting.ours.rows[one]
        fresh = plan.set.get(one, {}).get("reason") != _PURGED
        if fresh and row["status"] not in ("deleted", "purged"):
            plan.set[one] = {"status": "deleted", "reason": _PURGED, "changed": meeting.now}
            plan.told.append((one, "status", row["status"], "deleted", None))
        if row["status"] != "purged":
            plan.purged.append(one)


def _describe_rivals(plan: Plan, meeting: _Meeting, rivals: Iterable[_Rival]) -> None:
    """List what becomes of the memories that differ: the version that stands, or a conflict with both."""
    ours, theirs = meeting.ours, meeting.theirs
    for rival in rivals:
        other, id, later = rival.other, rival.id, rival.later
        before, after = (
            _describe_version(ours, id, theirs.rows[other]),
            _describe_version(theirs, other, ours.rows[id]),
        )
        if is_contested(ours.times.get(id, ()), theirs.times.get(other, ())):
            plan.told.append((id, "conflict", before, after, "there" if later else "here"))
        elif later:
            was, status = ours.rows[id]["status"], theirs.rows[other]["status"]
            if was != status and status != "superseded":
                plan.told.append((id, "status", was, status, None))
            else:
                plan.told.append((id, "edited", before, after, None))
    plan.told.sort(key=lambda one: (WHATS.index(one[1]), one[0]))


def _describe_version(side: Side, id: int, other: Row) -> str:
    """A version as a person reads it: its status, the text that stands, and the fields in which the two differ."""
    row, tip = side.rows[id], side.rows[side.chain(id)[-1]]
    skipped = ("status", "superseded_by", "changed", "label", *OF_USE)
    fields = [
        f"{name}={row[name]}"
        for name in CARRIED
        if name not in skipped and row[name] != other[name]
    ]
    return f"{tip['status']}: {tip['text'] or ''}" + (f" ({', '.join(fields)})" if fields else "")
