"""Corrections: who stands in the place of what, what was joined to what turned out wrong, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.clock import DAY, Micros
from memlab.kernel.journal import Event
from memlab.kernel.policies import Pack
from memlab.kernel.schema import FIELDS, MEMORY, NEVER, RECALLABLE, RELATIONS
from memlab.kernel.state import Change, State, build_edges, build_values, to_datetimes
from memlab.kernel.verbs.fact_rows import rename_entities

__all__ = [
    "carried_fields",
    "due_for_purge",
    "edited",
    "field_value",
    "in_place_of",
    "joined_by_succession",
    "numbers_before",
    "restored",
    "retired",
    "statuses_of",
    "superseding",
    "undeprecated",
    "versions_from",
    "without_use",
]


_SUCCEEDS = RELATIONS.index("supersedes")
_DERIVED = RELATIONS.index("derived-from")
_NEWER, _OLDER, _FROM = "supersedes it", "superseded by it", "derived from it"
_OF_A_SUCCESSOR = ("staged", "confirmed", "forgotten", "consolidated", "superseded", "retracted")
"""The statuses that a corrected memory takes over; a correction of what was flagged or ran out is active."""

Rows = NDArray[np.int64]


# -- editing ----------------------------------------------------------------------------------------------------


def in_place_of(state: State, row: int) -> int:
    """The row that replaces this one since it was edited: edits follow one another, and the last one counts.

    What was superseded by a newer fact, or by what is purged, stands for itself: it is the past that is corrected.
    """
    return versions_from(state, row)[-1]


def versions_from(state: State, row: int) -> list[int]:
    """Return a memory and the edits that replaced it, oldest first.

    A version in use ends the chain. A version out of use does not, whatever took it out: a memory that was forgotten
    with its corrections keeps them.
    """
    versions = [row]
    statuses, by = state.names["status"], state.numbers["superseded_by"].values
    while (
        statuses.value_at(versions[-1]) not in RECALLABLE and by[versions[-1]] == by[versions[-1]]
    ):
        newer = int(by[versions[-1]]) - 1
        if (
            state.names["source"].value_at(newer) != "user-edit"
            or statuses.value_at(newer) == "purged"
        ):
            break
        versions.append(newer)
    return versions


def edited(state: State, row: int, columns: Mapping[str, Any], now: int) -> Change:
    """Other values for fields of a memory that are not ``FIXED``; ``columns`` are checked. Its entities follow."""
    columns, joins = rename_entities(state, row, columns)
    listed = {
        name: [value] if MEMORY[name].storage == "list" else value
        for name, value in columns.items()
    }
    return Change(set=[build_values([row + 1], **listed, changed=now)]) + joins


def carried_fields(state: State, row: int) -> dict[str, Any]:
    """What a corrected memory has of the one that it stands for: every field that was given, and its status."""
    left = ("text", "status", "origin", "provenance", "source")
    kept = {name: field_value(state, row, name) for name in FIELDS if name not in left}
    status = state.names["status"].value_at(row)
    if status in _OF_A_SUCCESSOR:
        kept["status"] = status
        by = float(state.numbers["superseded_by"].values[row])
        if status == "superseded" and by == by:
            kept["superseded_by"] = by
    defaults = {name: MEMORY[name].default for name in kept}
    return {
        name: value for name, value in kept.items() if value is not None and value != defaults[name]
    }


def field_value(state: State, row: int, name: str) -> Any:
    """Return the value of a field as a caller gives it; None where it has none."""
    if name == "ref":
        return state.refs.value_at(row)
    if name in state.names:
        return state.names[name].value_at(row)
    if name in state.lists:
        return list(state.lists[name].value_at(row)) or None
    if name in state.notes:
        return state.notes[name].value_at(row)
    value = state.numbers[name].values[row].item()
    absent = value != value or (MEMORY[name].storage == "time" and value == NEVER)
    return None if absent else value


def superseding(old: int, new: int, now: int) -> Change:
    """A memory, by id, that another one takes the place of."""
    return Change(
        edges=build_edges([new], [old], "supersedes", 1.0),
        set=[build_values([old], status="superseded", superseded_by=float(new), changed=now)],
    )


def retired(state: State, pairs: Iterable[tuple[int, int]], now: int) -> Change:
    """What becomes of the second of each pair of ids when the first is said to supersede it: it is out of use, and held
    until the first began. The edge is the caller's. Where one of the two is out of use already nothing changes, so that
    no chain closes.
    """
    statuses, gone, parts = state.names["status"], set[int](), []
    for new, old in pairs:
        if {new, old} & gone or not all(
            statuses.value_at(id - 1) in RECALLABLE for id in (new, old)
        ):
            continue
        gone.add(old)
        began, since = _began(state, new - 1), _began(state, old - 1)
        over = min(began, now) if began > since else now
        until = int(state.numbers["valid_until"].values[old - 1])
        over = over if until == NEVER else min(until, over)
        parts.append(
            build_values(
                [old], status="superseded", superseded_by=float(new), valid_until=over, changed=now
            )
        )
    return Change(set=parts)


def _began(state: State, row: int) -> int:
    """Since when it holds."""
    since = int(state.numbers["valid_from"].values[row])
    return int(state.numbers["created"].values[row]) if since == NEVER else since


def joined_by_succession(
    state: State, rows: Sequence[int], *, derived: bool = False
) -> pl.DataFrame:
    """The memories that ``rows`` supersede or were superseded by: memory_id, of, how, status, text.

    If one of ``rows`` was wrong, these may be too, or may have been right all along. With ``derived``, those that were
    derived from one as well.
    """
    own, purged = np.asarray(rows, dtype=np.int64), state.names["status"].code("purged")
    met = state.edges.crossings(own)
    relation = state.edges.relation[met.edge]
    succeeds, derives = relation == _SUCCEEDS, (relation == _DERIVED) & ~met.outgoing
    mine = (succeeds | (derives & derived)) & (met.neighbour < len(state))
    how = np.where(derives, _FROM, np.where(met.outgoing, _OLDER, _NEWER))[mine].tolist()
    found = list(
        zip(met.neighbour[mine].tolist(), own[met.position[mine]].tolist(), how, strict=True)
    )
    by = state.numbers["superseded_by"].values
    found += [(int(by[row]) - 1, int(row), _NEWER) for row in own if by[row] == by[row]]
    older = (
        np.flatnonzero(np.isin(by, own + 1))
        if state.numbers["superseded_by"].has_values
        else own[:0]
    )
    found += [(int(row), int(by[row]) - 1, _OLDER) for row in older]
    mentioned = set(own.tolist())
    codes = state.names["status"].codes
    once = [
        one for one in dict.fromkeys(found) if one[0] not in mentioned and codes[one[0]] != purged
    ]
    others = np.array([other for other, _, _ in once], dtype=np.int64)
    return pl.DataFrame(
        {
            "memory_id": others + 1,
            "of": [row + 1 for _, row, _ in once],
            "how": [how for _, _, how in once],
            "status": state.names["status"].to_objects(others).tolist(),
            "text": state.texts.to_list(others),
        },
        schema={
            "memory_id": pl.Int64,
            "of": pl.Int64,
            "how": pl.String,
            "status": pl.String,
            "text": pl.String,
        },
    )


# -- out of use, and the way back -------------------------------------------------------------------------------


def without_use(
    state: State, rows: Sequence[int], status: str, now: int, reason: str | None = None
) -> Change:
    """These memories out of recall. InputError for what is deleted already (restore it first) or purged."""
    for row in rows:
        known = state.names["status"].value_at(row)
        if known in ("deleted", "purged"):
            way = "Restore it first." if known == "deleted" else "Only its row is left."
            raise InputError(f"Memory {row + 1} is {known}. {way}")
    why = {} if reason is None else {"reason": reason}
    return Change(
        set=[build_values([row + 1 for row in rows], status=status, changed=now, **why)]
        if len(rows)
        else ()
    )


def restored(state: State, rows: Sequence[int], before: Mapping[int, str], now: int) -> Change:
    """These memories back to the status ``before`` (by row); those in use are left as they are.

    Bringing back is a use, and a time to live that ran out is over: else the next upkeep would let them go again. What
    was superseded holds again, if what took its place is no longer in use; and the reason is no longer kept.

    InputError for what cannot be restored: superseded by what is in use, or purged.
    """
    back: dict[str, list[int]] = {}
    parts: list[dict[str, Any]] = []
    statuses, by = state.names["status"], state.numbers["superseded_by"].values
    for row in rows:
        status = statuses.value_at(row) or ""
        if status in RECALLABLE:
            continue
        if status == "purged":
            raise InputError(f"Memory {row + 1} is purged: only its row is left.")
        if (
            status == "superseded"
            and by[row] == by[row]
            and statuses.value_at(int(by[row]) - 1) in RECALLABLE
        ):
            other = int(by[row])
            raise InputError(
                f"Memory {row + 1} was superseded by memory {other}, which is in use: deprecate, forget or delete "
                f"{other} first."
            )
        back.setdefault(before[row], []).append(row + 1)
        if status == "superseded":
            ended = state.numbers["valid_until"].values[row]
            over = {"valid_until": None} if ended != NEVER and ended <= now else {}
            parts.append(build_values([row + 1], superseded_by=None, **over))
        if status == "expired":
            parts.append(build_values([row + 1], ttl_days=None))
        if (
            status in ("deprecated", "retracted")
            and state.notes["reason"].value_at(row) is not None
        ):
            parts.append(build_values([row + 1], reason=None))
    restoring = [
        build_values(ids, status=status, changed=now, accessed=now) for status, ids in back.items()
    ]
    return Change(set=[*restoring, *parts])


def numbers_before(state: State, change: Change) -> list[dict[str, Any]]:
    """The numbers that a change gives other values, as they are, in parts like its own; times and words left out."""
    parts = []
    for part in change.set:
        rows = np.asarray(part["ids"], dtype=np.int64) - 1
        held = {
            name: state.numbers[name].values[rows].tolist()
            for name in part["columns"]
            if _is_number(name)
        }
        if held:
            known = {
                name: [None if value != value else value for value in values]
                for name, values in held.items()
            }
            parts.append(build_values(part["ids"], **known))
    return parts


def undeprecated(state: State, events: Iterable[Event], rows: Sequence[int]) -> Change:
    """These rows with the numbers that they had before they were last deprecated, where nothing changed them since."""
    wanted = {row + 1 for row in rows}
    last: dict[int, Event] = {}
    for event in events:
        named = {id for part in event.body.get("was", ()) for id in part["ids"]}
        last |= dict.fromkeys(wanted & named, event)
    parts = []
    for id, event in sorted(last.items()):
        given, was = _values_for(event.body["set"], id), _values_for(event.body["was"], id)
        same = {
            name: was[name] for name in was if state.numbers[name].values[id - 1] == given[name]
        }
        if same:
            parts.append(build_values([id], **same))
    return Change(set=parts)


def _values_for(parts: Iterable[Mapping[str, Any]], id: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in parts:
        if id in part["ids"]:
            at = part["ids"].index(id)
            found |= {
                name: value[at] if isinstance(value, list) else value
                for name, value in part["columns"].items()
            }
    return found


def _is_number(name: str) -> bool:
    return MEMORY[name].storage == "num"


def statuses_of(events: Iterable[Event], rows: Sequence[int]) -> dict[int, str]:
    """The status that each memory had before the one that it has: what its events tell, whoever wrote them.

    What was restored is what it was before, so that one can go back step by step; but not to having been
    retracted, which the next upkeep would clean up. A memory that is not named was active.
    """
    wanted = np.asarray(sorted(row + 1 for row in rows), dtype=np.int64)
    past: dict[int, list[str]] = {int(id): ["active"] for id in wanted}
    for event in events:
        body = event.body
        columns = body.get("columns", {})
        if "status" in columns:
            _follow(
                past,
                wanted,
                range(body["first"], body["first"] + body["count"]),
                columns["status"],
                first=True,
            )
        for part in body.get("set", ()):
            if "status" in part["columns"]:
                _follow(past, wanted, part["ids"], part["columns"]["status"])
    found = {
        id: [status for status in statuses[:-1] if status != "retracted"]
        for id, statuses in past.items()
    }
    return {id - 1: statuses[-1] if statuses else "active" for id, statuses in found.items()}


def _follow(
    past: dict[int, list[str]],
    wanted: Rows,
    ids: Sequence[int],
    status: Any,
    *,
    first: bool = False,
) -> None:
    given = np.asarray(ids, dtype=np.int64)
    for place in np.flatnonzero(np.isin(given, wanted)).tolist():
        statuses, now = (
            past[int(given[place])],
            status[place] if isinstance(status, list) else status,
        )
        if first:
            statuses[:] = [now]
        elif now in statuses:
            del statuses[statuses.index(now) + 1 :]
        else:
            statuses.append(now)


def due_for_purge(state: State, pack: Pack, now: Micros) -> pl.DataFrame:
    """What was deleted for the setting ``grace-days`` or longer, and so may be purged: id, deleted, due."""
    rows = np.flatnonzero(state.names["status"].is_in(["deleted"]))
    since = state.numbers["changed"].values[rows]
    # memories that came in as deleted, by import, were changed by nobody: their creation counts
    since = np.where(since == NEVER, state.numbers["created"].values[rows], since)
    grace = pack.number("grace-days") * DAY
    over = float(now) - since.astype(np.float64) >= grace
    end = since[over].astype(np.float64) + grace
    return pl.DataFrame(
        [
            pl.Series("id", rows[over] + 1, dtype=pl.Int64),
            to_datetimes("deleted", since[over]),
            to_datetimes("due", np.minimum(end, float(now)).astype(np.int64)),
        ]
    )
