"""The plan of a join: which memories are added, changed, deleted and reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

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
from memlab.subjects.io.storing import Screened, index_origins

# The value of the field ``reason`` of memories that were purged in the other lab.
_PURGED = "purged in the lab that was joined"


@dataclass
class Plan:
    """The changes that a join makes to this lab.

    Memory ids are those of this lab. Added memories get the ids after its last memory.

    Attributes
    ----------
    fresh
        The rows of the other lab to add.
    here
        The ids in this lab after the join, by the ids in the other lab.
    set
        The new values of known memories, by id.
    report
        The rows of ``Joined.frame``.
    known_count
        The number of memories in both labs.
    kept_away
        The number of memories that are not added because they were purged here.
    purged
        The ids here of memories that were purged in the other lab.
    """

    fresh: list[int] = field(default_factory=list)

    here: dict[int, int] = field(default_factory=dict)

    set: dict[int, dict[str, Any]] = field(default_factory=dict)
    report: list[tuple[int, str, str | None, str | None, str | None]] = field(default_factory=list)
    known_count: int = 0
    kept_away: int = 0
    purged: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Meeting:
    """Both labs of a join, and the pairs of memories that are the same.

    Attributes
    ----------
    pairs
        Ids of the other lab, mapped to ids of this lab.
    back
        The reverse of ``pairs``.
    away
        The ids, in the other lab, of memories that were purged here.
    now
        The time of the join.
    """

    ours: Side
    theirs: Side
    pairs: dict[int, int]
    away: set[int]
    back: Mapping[int, int]
    now: Micros


@dataclass(frozen=True)
class _Rival:
    """A memory in both labs whose versions differ.

    ``later`` is true if the version of the other lab is kept. ``differs`` is true if the content
    differs, not only the importance or the confidence.
    """

    other: int
    id: int
    later: bool
    differs: bool


def plan_join(
    store: Store,
    state: State,
    bundle: Bundle,
    checked: Screened,
    own: str,
    events: Callable[[], Iterable[Event]] | None,
) -> Plan:
    """Return the plan of changes that joins a checked bundle to the lab ``own``."""
    ours = Side(
        rows_of(build_bundle(state, lab=own, now=0).memories), store.journal.events(upto=state.seq)
    )
    theirs = Side(rows_of(bundle.memories), None if events is None else events())
    pairs, away = _pair_memories(state, checked, own)
    meeting = _Meeting(
        ours, theirs, pairs, away, {id: other for other, id in pairs.items()}, store.clock()
    )
    plan = Plan(known_count=len(pairs), here=dict(pairs))
    _add_new(plan, meeting, checked, first=len(state) + 1)
    rivals = _change_known(plan, meeting)
    demoted = [
        change for rival in rivals if (change := _overrule_edit(plan, meeting, rival)) is not None
    ]
    _delete_by_tombstones(plan, meeting, bundle)
    plan.purged = sorted(set(plan.purged))
    for _, to, columns in sorted(demoted, key=lambda entry: entry[:2]):
        plan.set[to] = plan.set.get(to, {}) | columns
    _describe_rivals(plan, meeting, rivals)
    return plan


def _add_new(plan: Plan, meeting: _Meeting, checked: Screened, *, first: int) -> None:
    """Plan to add the memories of the other lab that this lab does not have.

    Edits of a memory that was purged here are not added.
    """
    ours, theirs, pairs, away = meeting.ours, meeting.theirs, meeting.pairs, meeting.away
    for other, id in pairs.items():
        if ours.rows[id]["status"] == "purged":
            away |= set(takewhile(lambda edit: edit not in pairs, theirs.chain(other)[1:]))
    plan.kept_away = len(away)
    plan.fresh = [row for row, id in enumerate(checked.ids) if id not in pairs and id not in away]
    for offset, row in enumerate(plan.fresh):
        id = checked.ids[row]
        plan.here[id] = first + offset
        if theirs.rows[id]["status"] != "purged":
            plan.report.append((plan.here[id], "added", None, checked.screenings[row].text, None))


def _change_known(plan: Plan, meeting: _Meeting) -> list[_Rival]:
    """Plan the changes of memories in both labs; return the memories whose versions differ."""
    rivals = []

    # The version with the later correction is kept. At equal times the content decides, so that both directions of a
    # join agree.
    for other, id in meeting.pairs.items():
        mine, yours = meeting.ours.rows[id], read_here(meeting.theirs.rows[other], plan.here)
        if mine["status"] == "purged":
            continue
        if yours["status"] == "purged":
            _delete_purged(plan, meeting, id)
            continue
        differs = any(mine[name] != yours[name] for name in SAID)
        here_at, there_at = meeting.ours.last(id), meeting.theirs.last(other)
        later = (there_at, repr(version_of(yours))) > (here_at, repr(version_of(mine)))
        columns = greater_counts(mine, yours)
        if later and (differs or any(mine[name] != yours[name] for name in OF_USE)):
            columns |= {
                name: yours[name] for name in (*SAID, *OF_USE, "label") if mine[name] != yours[name]
            }
            columns["changed"] = max(meeting.theirs.times.get(other, ()), default=yours["changed"])
            columns["status"] = yours["status"]
        elif here_at == there_at and use_of(yours) > use_of(mine):
            columns |= {name: yours[name] for name in OF_USE if mine[name] != yours[name]}
        if columns:
            plan.set[id] = columns
        if differs or (later and any(mine[name] != yours[name] for name in EDITABLE)):
            rivals.append(_Rival(other, id, later, differs))
    return rivals


def _overrule_edit(
    plan: Plan, meeting: _Meeting, rival: _Rival
) -> tuple[Micros, int, dict[str, Any]] | None:
    """Return the change that supersedes the losing version's last edit, if any.

    The edit is superseded by the version that is kept if only the losing side has the edit and it is still active. The
    result is the time of the kept version, the id of the edit here and its new fields.
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
        kept_row = read_here(theirs.rows[winner], here) | {"id": here.get(winner)}
        if winner not in here:  # The edit was purged here, so it is not added.
            kept_row["status"] = "purged"
        to = tip
    else:
        loser, tip, winner, at = (
            theirs,
            theirs.chain(rival.other)[-1],
            ours.chain(rival.id)[-1],
            ours.last(rival.id),
        )
        only_there = tip != rival.other and tip not in meeting.pairs and tip not in meeting.away
        kept_row = {**ours.rows[winner], "id": winner}
        to = here.get(tip, 0)
    if not rival.differs or not only_there or loser.rows[tip]["status"] not in RECALLABLE:
        return None
    return at, to, give_way(kept_row, at)


def _delete_by_tombstones(plan: Plan, meeting: _Meeting, bundle: Bundle) -> None:
    """Plan to delete memories with a text that the other lab purged under another id.

    The tombstones of the bundle contain a digest of each purged text.
    """
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


def _pair_memories(state: State, checked: Screened, own: str) -> tuple[dict[int, int], set[int]]:
    """Return the pairs of memories that both labs have, and the other lab's memories that a purge keeps out.

    Pairs lead from ids of the other lab to ids of this lab; the set has ids of the other lab. Memories match if they have
    the same lab and id of origin, the same time and the same text. A purged memory has no text, so only its origin and
    time are compared.
    """
    origins, statuses, texts = state.names["origin"], state.names["status"], state.texts
    created, tombstones = state.numbers["created"].values, state.projection(Tombstones)
    rows_of_origin = index_origins(state)
    pairs: dict[int, int] = {}
    away: set[int] = set()
    paired: set[int] = set()
    for id, origin, screening, at, gone in zip(
        checked.ids,
        checked.origins,
        checked.screenings,
        checked.created,
        checked.purged,
        strict=True,
    ):
        candidates = rows_of_origin.get(origin, [])
        lab, _, number = origin.rpartition(":")
        if lab == own and number.isdecimal() and 1 <= int(number) <= len(state):
            row = int(number) - 1
            candidates = [*candidates, row] if origins.codes[row] < 0 else candidates
        # Each memory of this lab is paired once, so that repeated texts are paired one by one.
        met = [row for row in candidates if at in (None, int(created[row])) and row not in paired]
        same = [
            row
            for row in met
            if gone or statuses.value_at(row) == "purged" or texts.value_at(row) == screening.text
        ]
        if same:
            pairs[id] = same[0] + 1
            paired.add(same[0])
            if statuses.value_at(same[0]) == "purged" and not gone:
                away.add(id)
        elif gone or tombstones.is_purged(screening.text):
            away.add(id)
    return pairs, away


def _delete_purged(plan: Plan, meeting: _Meeting, id: int) -> None:
    """Plan to delete a memory that the other lab purged, with its later edits."""
    for edit_id in (
        id,
        *takewhile(lambda edit: edit not in meeting.back, meeting.ours.chain(id)[1:]),
    ):
        row = meeting.ours.rows[edit_id]
        fresh = plan.set.get(edit_id, {}).get("reason") != _PURGED
        if fresh and row["status"] not in ("deleted", "purged"):
            plan.set[edit_id] = {"status": "deleted", "reason": _PURGED, "changed": meeting.now}
            plan.report.append((edit_id, "status", row["status"], "deleted", None))
        if row["status"] != "purged":
            plan.purged.append(edit_id)


def _describe_rivals(plan: Plan, meeting: _Meeting, rivals: Iterable[_Rival]) -> None:
    """Report each memory with differing versions, either as a change or as a conflict."""
    ours, theirs = meeting.ours, meeting.theirs
    for rival in rivals:
        other, id, later = rival.other, rival.id, rival.later
        before, after = (
            _describe_version(ours, id, theirs.rows[other]),
            _describe_version(theirs, other, ours.rows[id]),
        )
        if is_contested(ours.times.get(id, ()), theirs.times.get(other, ())):
            plan.report.append((id, "conflict", before, after, "there" if later else "here"))
        elif later:
            was, status = ours.rows[id]["status"], theirs.rows[other]["status"]
            if was != status and status != "superseded":
                plan.report.append((id, "status", was, status, None))
            else:
                plan.report.append((id, "edited", before, after, None))
    plan.report.sort(key=lambda row: (WHATS.index(row[1]), row[0]))


def _describe_version(side: Side, id: int, other: Row) -> str:
    """Return a description of one version of a memory: status, text and differing fields."""
    row, tip = side.rows[id], side.rows[side.chain(id)[-1]]
    skipped = ("status", "superseded_by", "changed", "label", *OF_USE)
    fields = [
        f"{name}={row[name]}"
        for name in CARRIED
        if name not in skipped and row[name] != other[name]
    ]
    return f"{tip['status']}: {tip['text'] or ''}" + (f" ({', '.join(fields)})" if fields else "")
