"""Versions and statuses of corrected memories, and the changes that restore them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arrays import Rows
from memlab.kernel.base.clock import DAY, Micros
from memlab.kernel.journal import Event
from memlab.kernel.policies import Pack
from memlab.kernel.schema import FIELDS, MEMORY, NEVER, RECALLABLE, RELATIONS
from memlab.kernel.state import Change, State, build_edges, build_values, to_datetimes
from memlab.kernel.verbs.fact_rows import rename_entities

# Codes of two relations, and the words of the column ``how`` of related memories.
_SUCCEEDS = RELATIONS.index("supersedes")
_DERIVED = RELATIONS.index("derived-from")
_NEWER, _OLDER, _FROM = "supersedes it", "superseded by it", "derived from it"
_INHERITED = ("staged", "confirmed", "forgotten", "consolidated", "superseded", "retracted")
"""The statuses that a correction inherits; corrections of deprecated or expired memories are active."""


# -- editing ----------------------------------------------------------------------------------------------------


def find_latest_version(state: State, row: int) -> int:
    """Return the row of the latest edit of a memory.

    A memory that was superseded by a newer fact or by a purged one is its own latest version.
    """
    return list_versions(state, row)[-1]


def list_versions(state: State, row: int) -> list[int]:
    """Return the rows of a memory and of the edits that replaced it, oldest first.

    The chain ends at the first active version. The chain continues past versions that are out of
    use. So a memory that was forgotten with its corrections stays connected to them.
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


def change_fields(state: State, row: int, columns: Mapping[str, Any], now: int) -> Change:
    """Return the change that sets fields in place and updates entities accordingly.

    ``columns`` are validated and have no field of ``FIXED``.
    """
    columns, joins = rename_entities(state, row, columns)
    listed = {
        name: [value] if MEMORY[name].storage == "list" else value
        for name, value in columns.items()
    }
    return Change(set=[build_values([row + 1], **listed, changed=now)]) + joins


def inherited_fields(state: State, row: int) -> dict[str, Any]:
    """Return the fields and the status that a correction inherits from the old memory."""
    excluded = ("text", "status", "origin", "provenance", "source")
    inherited = {name: read_field(state, row, name) for name in FIELDS if name not in excluded}
    status = state.names["status"].value_at(row)
    if status in _INHERITED:
        inherited["status"] = status
        by = float(state.numbers["superseded_by"].values[row])
        if status == "superseded" and by == by:
            inherited["superseded_by"] = by
    defaults = {name: MEMORY[name].default for name in inherited}
    return {
        name: value
        for name, value in inherited.items()
        if value is not None and value != defaults[name]
    }


def read_field(state: State, row: int, name: str) -> Any:
    """Return a field of a row in the form in which callers pass it, or None if unset."""
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


def supersede(old: int, new: int, now: int) -> Change:
    """Return the change by which memory id ``new`` supersedes memory id ``old``."""
    return Change(
        edges=build_edges([new], [old], "supersedes", 1.0),
        set=[build_values([old], status="superseded", superseded_by=float(new), changed=now)],
    )


def retire(state: State, pairs: Iterable[tuple[int, int]], now: int) -> Change:
    """Return the change that marks the old memory of each pair as superseded.

    ``pairs`` are ids (new, old). The old memory is valid until the new one became valid. The caller
    adds the edge. A pair with a memory out of use changes nothing, so that no cycle forms.
    """
    statuses, superseded, parts = state.names["status"], set[int](), []
    for new, old in pairs:
        if {new, old} & superseded or not all(
            statuses.value_at(id - 1) in RECALLABLE for id in (new, old)
        ):
            continue
        superseded.add(old)
        began, since = _valid_since(state, new - 1), _valid_since(state, old - 1)
        end = min(began, now) if began > since else now
        until = int(state.numbers["valid_until"].values[old - 1])
        end = end if until == NEVER else min(until, end)
        parts.append(
            build_values(
                [old], status="superseded", superseded_by=float(new), valid_until=end, changed=now
            )
        )
    return Change(set=parts)


def _valid_since(state: State, row: int) -> int:
    """Return a memory's ``valid_from``, or its creation time if that is not set."""
    since = int(state.numbers["valid_from"].values[row])
    return int(state.numbers["created"].values[row]) if since == NEVER else since


def find_related(state: State, rows: Sequence[int], *, derived: bool = False) -> pl.DataFrame:
    """Return the memories that ``rows`` supersede or were superseded by.

    If a memory in ``rows`` was wrong, a caller should check these memories. With ``derived``,
    memories derived from one of ``rows`` are included. Columns: memory_id, of, how, status, text.
    """
    # Imported labs record succession only in the column ``superseded_by``, so both edges and column
    # are read.
    own, purged = np.asarray(rows, dtype=np.int64), state.names["status"].code("purged")
    crossings = state.edges.crossings(own)
    relation = state.edges.relation[crossings.edge]
    succeeds, derives = relation == _SUCCEEDS, (relation == _DERIVED) & ~crossings.outgoing
    wanted = (succeeds | (derives & derived)) & (crossings.neighbour < len(state))
    how = np.where(derives, _FROM, np.where(crossings.outgoing, _OLDER, _NEWER))[wanted].tolist()
    related = list(
        zip(
            crossings.neighbour[wanted].tolist(),
            own[crossings.position[wanted]].tolist(),
            how,
            strict=True,
        )
    )
    by = state.numbers["superseded_by"].values
    related += [(int(by[row]) - 1, int(row), _NEWER) for row in own if by[row] == by[row]]
    older = (
        np.flatnonzero(np.isin(by, own + 1))
        if state.numbers["superseded_by"].has_values
        else own[:0]
    )
    related += [(int(row), int(by[row]) - 1, _OLDER) for row in older]
    own_rows = set(own.tolist())
    codes = state.names["status"].codes
    unique = [
        entry
        for entry in dict.fromkeys(related)
        if entry[0] not in own_rows and codes[entry[0]] != purged
    ]
    others = np.array([other for other, _, _ in unique], dtype=np.int64)
    return pl.DataFrame(
        {
            "memory_id": others + 1,
            "of": [row + 1 for _, row, _ in unique],
            "how": [how for _, _, how in unique],
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


# -- statuses and their inverse ---------------------------------------------------------------------------------


def take_out_of_use(
    state: State, rows: Sequence[int], status: str, now: int, reason: str | None = None
) -> Change:
    """Return the change that takes memories out of recall; refuse deleted memories."""
    for row in rows:
        current = state.names["status"].value_at(row)
        if current in ("deleted", "purged"):
            advice = "Restore it first." if current == "deleted" else "Its content is gone."
            raise InputError(f"Memory {row + 1} is {current}. {advice}")
    why = {} if reason is None else {"reason": reason}
    return Change(
        set=[build_values([row + 1 for row in rows], status=status, changed=now, **why)]
        if len(rows)
        else ()
    )


def restore_statuses(
    state: State, rows: Sequence[int], before: Mapping[int, str], now: int
) -> Change:
    """Return the change that gives rows their earlier statuses, listed in ``before``.

    Active memories stay unchanged. Restoring counts as a use. Restoring also clears an expired time
    to live, because the next upkeep would expire the memory again. A superseded memory becomes
    valid again. The reason of a deprecation or retraction is removed.

    Raises InputError for purged memories and for those superseded by an active one.
    """
    # Values that only some memories need are set by separate parts, so that the event of the common
    # case stays short.
    by_status: dict[str, list[int]] = {}
    parts: list[dict[str, Any]] = []
    statuses, by = state.names["status"], state.numbers["superseded_by"].values
    for row in rows:
        status = statuses.value_at(row) or ""
        if status in RECALLABLE:
            continue
        if status == "purged":
            raise InputError(f"Memory {row + 1} is purged: its content is gone for good.")
        if (
            status == "superseded"
            and by[row] == by[row]
            and statuses.value_at(int(by[row]) - 1) in RECALLABLE
        ):
            other = int(by[row])
            raise InputError(
                f"Memory {row + 1} was superseded by memory {other}, which is active: forget {other} first."
            )
        by_status.setdefault(before[row], []).append(row + 1)
        if status == "superseded":
            ended = state.numbers["valid_until"].values[row]
            interval = {"valid_until": None} if ended != NEVER and ended <= now else {}
            parts.append(build_values([row + 1], superseded_by=None, **interval))
        if status == "expired":
            parts.append(build_values([row + 1], ttl_days=None))
        if (
            status in ("deprecated", "retracted")
            and state.notes["reason"].value_at(row) is not None
        ):
            parts.append(build_values([row + 1], reason=None))
    restoring = [
        build_values(ids, status=status, changed=now, accessed=now)
        for status, ids in by_status.items()
    ]
    return Change(set=[*restoring, *parts])


def read_overwritten(state: State, change: Change) -> list[dict[str, Any]]:
    """Return the numeric values that a change would overwrite, as parts of a change.

    Fields with times or words are left out.
    """
    parts = []
    for part in change.set:
        rows = np.asarray(part["ids"], dtype=np.int64) - 1
        current = {
            name: state.numbers[name].values[rows].tolist()
            for name in part["columns"]
            if _is_number(name)
        }
        if current:
            values_or_none = {
                name: [None if value != value else value for value in values]
                for name, values in current.items()
            }
            parts.append(build_values(part["ids"], **values_or_none))
    return parts


def undo_deprecation(state: State, events: Iterable[Event], rows: Sequence[int]) -> Change:
    """Return the change that restores numeric fields from before a deprecation.

    A number that was changed after the deprecation keeps its current value.
    """
    ids = {row + 1 for row in rows}
    last: dict[int, Event] = {}
    for event in events:
        affected = {id for part in event.body.get("was", ()) for id in part["ids"]}
        last |= dict.fromkeys(ids & affected, event)
    parts = []
    for id, event in sorted(last.items()):
        written, previous = _values_for(event.body["set"], id), _values_for(event.body["was"], id)
        unchanged = {
            name: previous[name]
            for name in previous
            if state.numbers[name].values[id - 1] == written[name]
        }
        if unchanged:
            parts.append(build_values([id], **unchanged))
    return Change(set=parts)


def _values_for(parts: Iterable[Mapping[str, Any]], id: int) -> dict[str, Any]:
    """Return the values that the assignments of an event give one memory, by field.

    Each of ``parts`` has the ids of memories and the columns of their values.
    """
    result: dict[str, Any] = {}
    for part in parts:
        if id in part["ids"]:
            index = part["ids"].index(id)
            result |= {
                name: value[index] if isinstance(value, list) else value
                for name, value in part["columns"].items()
            }
    return result


def _is_number(name: str) -> bool:
    """Return whether a field is stored as a number."""
    return MEMORY[name].storage == "num"


def find_previous_statuses(events: Iterable[Event], rows: Sequence[int]) -> dict[int, str]:
    """Return the previous status of each memory, from the memory's events.

    Restoring goes back step by step, but never to "retracted", which the next upkeep would remove.
    Memories without events were active.
    """
    # One pass over all events serves all rows: reading the history of each row would be quadratic.
    ids = np.asarray(sorted(row + 1 for row in rows), dtype=np.int64)
    past: dict[int, list[str]] = {int(id): ["active"] for id in ids}
    for event in events:
        body = event.body
        columns = body.get("columns", {})
        if "status" in columns:
            _append_statuses(
                past,
                ids,
                range(body["first"], body["first"] + body["count"]),
                columns["status"],
                first=True,
            )
        for part in body.get("set", ()):
            if "status" in part["columns"]:
                _append_statuses(past, ids, part["ids"], part["columns"]["status"])
    previous = {
        id: [status for status in statuses[:-1] if status != "retracted"]
        for id, statuses in past.items()
    }
    return {id - 1: statuses[-1] if statuses else "active" for id, statuses in previous.items()}


def _append_statuses(
    past: dict[int, list[str]],
    wanted: Rows,
    ids: Sequence[int],
    status: Any,
    *,
    first: bool = False,
) -> None:
    """Append the statuses that an event sets to those of the ``wanted`` memories; ``first`` replaces earlier ones.

    If a memory had the new status before, the statuses after it are dropped, because the event was
    a restore.
    """
    ids_array = np.asarray(ids, dtype=np.int64)
    for index in np.flatnonzero(np.isin(ids_array, wanted)).tolist():
        statuses, current = (
            past[int(ids_array[index])],
            status[index] if isinstance(status, list) else status,
        )
        if first:
            statuses[:] = [current]
        elif current in statuses:
            del statuses[statuses.index(current) + 1 :]
        else:
            statuses.append(current)


def due_for_purge(state: State, pack: Pack, now: Micros) -> pl.DataFrame:
    """Return a frame of the memories that were deleted at least ``grace-days`` ago."""
    rows = np.flatnonzero(state.names["status"].is_in(["deleted"]))
    since = state.numbers["changed"].values[rows]
    # Memories that were imported as deleted have no time of change, so their creation counts.
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
