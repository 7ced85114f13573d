"""The plan of a quarantine and of its release.

Memories of one origin leave recall together. Summaries of them leave too, because their texts were
made from them. Memories that only they superseded are valid again, and so are the other members of
those summaries. The event records the former values, so that a release restores exactly these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from memlab.errors import UnknownName
from memlab.kernel.base.arrays import Rows
from memlab.kernel.hooks import list_hooks
from memlab.kernel.journal import Event
from memlab.kernel.schema import MEMORY, RECALLABLE, normalise_word
from memlab.kernel.state import Change, State, build_values
from memlab.kernel.verbs.corrections.editing import read_field

Values = dict[str, Any]
Displaced = Mapping[int, tuple[Values, Values]]
"""Each superseded row with the values that superseding set, and its former values."""

_GONE = ("deleted", "purged", "quarantined")
"""Statuses that a quarantine does not change, because such memories are out of recall already."""

_FOLLOWED = ("status", "superseded_by", "valid_until", "reason")
"""Columns that superseding changes."""


@dataclass(frozen=True)
class QuarantinePlan:
    """The rows and values that a quarantine changes, and the former values.

    ``rows`` leave recall, ``summaries`` of them leave too, and ``back`` are in use again. All three
    are ascending. ``now`` and ``was`` are the parts of a change to the new and to the former
    values.
    """

    rows: Rows
    summaries: Rows
    back: Rows
    now: list[dict[str, Any]]
    was: list[dict[str, Any]]

    def change(self, at: int) -> Change:
        """Return the state change that a quarantine event contains."""
        ids = np.concatenate((self.rows, self.summaries, self.back)) + 1
        return Change(
            set=[*self.now, build_values(np.sort(ids).tolist(), changed=at)] if len(ids) else ()
        )


def select_origin(state: State, **names: str | None) -> Rows:
    """Return the ascending rows with this source, session and creator.

    Raises UnknownName for a name that no memory has.
    """
    is_match = np.ones(len(state), dtype=np.bool_)
    for column, name in names.items():
        if name is None:
            continue
        column_names = state.names[column]
        code = column_names.code(normalise_word(name, MEMORY[column].words))
        if code < 0:
            raise UnknownName(column, name, MEMORY[column].words or column_names.vocabulary)
        is_match &= column_names.codes == code
    return np.flatnonzero(is_match)


def filter_written_since(events: Iterable[Event], rows: Rows, since: int) -> Rows:
    """Return the rows of memories that were written at `since` or later.

    Writers cannot choose that time.
    """
    is_recent = np.zeros(len(rows), dtype=np.bool_)
    for event in events:
        if event.at >= since and "first" in event.body:
            first = event.body["first"] - 1
            is_recent |= (rows >= first) & (rows < first + event.body["count"])
    return rows[is_recent]


def find_displaced(events: Callable[[], Iterable[Event]], ids: Iterable[int]) -> Displaced:
    """Return the memories that `ids` ever superseded, with their old and new values.

    The events are read twice. If several of `ids` superseded a memory in turn, the first
    supersession counts. A memory that was imported as superseded counts as formerly active.
    """
    # The first pass collects the rows, so that the second one keeps values of few memories only.
    superseding = set(ids)
    displaced_rows = {
        row
        for event in events()
        for row, values in (*_read_added(event, ("superseded_by",)), *_read_changes(event))
        if values.get("superseded_by") in superseding and row + 1 not in superseding
    }
    result: dict[int, tuple[Values, Values]] = {}
    current: dict[int, Values] = {}
    for event in events() if displaced_rows else ():
        for row, values in _read_added(event, _FOLLOWED, displaced_rows):
            current[row] = values
            if values["superseded_by"] in superseding:
                result[row] = dict(values), {**values, "status": "active", "superseded_by": None}
        changes: dict[int, Values] = {}
        for row, values in _read_changes(event):
            if row in displaced_rows:
                changes.setdefault(row, {}).update(values)
        for row, values in changes.items():
            if (
                values.get("superseded_by") in superseding
                and current[row]["superseded_by"] not in superseding
            ):
                result[row] = values, dict(current[row])
            current[row].update(values)
    return result


def plan_quarantine(state: State, rows: Rows, displaced: Displaced) -> QuarantinePlan:
    """Return the plan to quarantine `rows` in a present or past state.

    Deleted, purged and quarantined memories do not change. A memory that another one superseded
    since stays superseded, and so does one that only earlier quarantined memories superseded.
    """
    # Summaries of summaries leave too, so they are collected until none is new. A memory comes back only if all
    # its successors are out and at least one of them leaves now.
    statuses = state.names["status"]
    outside = set(rows[rows < len(state)].tolist())
    summaries: set[int] = set()
    summaries_of = _find_stand_ins(state)
    while next_summaries := {
        id - 1
        for id, summary in summaries_of.items()
        if id - 1 not in outside and any(member - 1 in outside for member in summary.members)
    }:
        outside |= next_summaries
        summaries |= next_summaries
    leaving = np.array(
        sorted(row for row in outside if statuses.value_at(row) not in _GONE), dtype=np.int64
    )
    back: dict[int, Values] = {}
    for row in sorted(summaries):
        for word, ids in summaries_of[row + 1].was.items():
            members = [
                id - 1
                for id in ids
                if id - 1 not in outside and statuses.value_at(id - 1) == "consolidated"
            ]
            back |= {member: {"status": word} for member in members}
    newly_out = set(leaving.tolist())
    for row, (new_values, before) in displaced.items():
        if row >= len(state) or row in outside or statuses.value_at(row) != "superseded":
            continue
        successors = _find_successors(state, row)
        is_gone = all(
            summary in outside or statuses.value_at(summary) == "quarantined"
            for summary in successors
        )
        if is_gone and not newly_out.isdisjoint(successors):
            unchanged = {
                name: before[name]
                for name in new_values
                if read_field(state, row, name) == new_values[name]
            }
            back[row] = {
                **unchanged,
                "status": before["status"],
                "superseded_by": before["superseded_by"],
            }
    returning = np.array(sorted(back), dtype=np.int64)
    now = [
        *_group_parts({row: {"status": "quarantined"} for row in leaving.tolist()}),
        *_group_parts(back),
    ]
    former = {row: {"status": statuses.value_at(row)} for row in leaving.tolist()}
    former |= {
        row: {name: read_field(state, row, name) for name in values} for row, values in back.items()
    }
    return QuarantinePlan(
        np.array([row for row in leaving.tolist() if row not in summaries], dtype=np.int64),
        np.array([row for row in leaving.tolist() if row in summaries], dtype=np.int64),
        returning,
        now,
        _group_parts(former),
    )


def plan_release(state: State, body: Mapping[str, Any], now: int) -> tuple[Change, list[int]]:
    """Return the change that releases a quarantine, and the rows that it changes.

    Later changes stay: memories that were restored, deleted or purged by hand, and memories
    superseded by one that does not come back.
    """
    quarantine_values, former = _index_parts(body["set"]), _index_parts(body["was"])
    unchanged = {
        row
        for row in former
        if state.names["status"].value_at(row) == quarantine_values[row]["status"]
    }
    returning = {row for row in unchanged if quarantine_values[row]["status"] == "quarantined"}
    summaries_of = _find_stand_ins(state)
    after: dict[int, Values] = {}
    for row in sorted(unchanged):
        status = former[row]["status"]
        by = former[row].get("superseded_by")
        if by is not None and int(by) - 1 not in returning:
            successor_status = state.names["status"].value_at(int(by) - 1)
            # a successor that was out of use before the quarantine does not count: it superseded this one anyway
            if successor_status not in RECALLABLE and (
                int(by) - 1 in quarantine_values or successor_status == "quarantined"
            ):
                continue
        if status == "consolidated":
            summary_ids = [id for id, summary in summaries_of.items() if row + 1 in summary.members]
            if not any(
                id - 1 in returning or state.names["status"].value_at(id - 1) in RECALLABLE
                for id in summary_ids
            ):
                # its summary is gone, so the memory has the status from before the consolidation
                status = (
                    next(
                        word
                        for word, ids in summaries_of[summary_ids[-1]].was.items()
                        if row + 1 in ids
                    )
                    if summary_ids
                    else "active"
                )
        columns = {
            name: value
            for name, value in former[row].items()
            if read_field(state, row, name) == quarantine_values[row][name]
        }
        after[row] = {**columns, "status": status}
    rows = sorted(
        row
        for row, values in after.items()
        if values["status"] != state.names["status"].value_at(row)
    )
    parts = _group_parts({row: after[row] for row in rows})
    return Change(
        set=[*parts, build_values([row + 1 for row in rows], changed=now)] if rows else ()
    ), rows


def _find_stand_ins(state: State) -> dict[int, Any]:
    """Return memories that stand in for other memories, such as summaries, by id."""
    return {
        id: stand_in for find in list_hooks("stand-ins") for id, stand_in in find(state).items()
    }


def _find_successors(state: State, row: int) -> set[int]:
    """Return the rows of the memories that superseded a memory, directly or indirectly."""
    superseded_by, successors = state.numbers["superseded_by"].values, set[int]()
    while (
        superseded_by[row] == superseded_by[row]
        and (row := int(superseded_by[row]) - 1) not in successors
    ):
        successors.add(row)
    return successors


def _group_parts(values: Mapping[int, Values]) -> list[dict[str, Any]]:
    """Return new values of memories as the parts of an event, by column and status."""
    parts: list[dict[str, Any]] = []
    for name in dict.fromkeys(name for row_values in values.values() for name in row_values):
        by_id = {
            row + 1: row_values[name] for row, row_values in values.items() if name in row_values
        }
        if name == "status":
            words = dict.fromkeys(by_id.values())
            parts += [
                build_values([id for id, value in by_id.items() if value == word], status=word)
                for word in words
            ]
        else:
            parts.append(build_values(list(by_id), **{name: list(by_id.values())}))
    return parts


def _index_parts(parts: Iterable[Mapping[str, Any]]) -> dict[int, Values]:
    """Return the values in the parts of an event, by memory row."""
    by_row: dict[int, Values] = {}
    for part in parts:
        for position, id in enumerate(part["ids"]):
            row_values = by_row.setdefault(id - 1, {})
            row_values.update(
                {name: _value_at(values, position) for name, values in part["columns"].items()}
            )
    return by_row


def _read_added(
    event: Event, names: Sequence[str], rows: Set[int] | None = None
) -> Iterable[tuple[int, Values]]:
    """Yield the initial values of each memory that an event adds, by row.

    Without `rows`, events are skipped that give none of these columns.
    """
    columns = event.body.get("columns", {})
    if "first" not in event.body or (rows is None and not columns.keys() & set(names)):
        return
    first = event.body["first"] - 1
    added = range(first, first + event.body["count"])
    for row in added if rows is None else rows & set(added):
        yield (
            row,
            {
                name: _value_at(columns.get(name, MEMORY[name].default), row - first)
                for name in names
            },
        )


def _read_changes(event: Event) -> Iterable[tuple[int, Values]]:
    """Yield the supersession columns that an event changes, by memory row."""
    for part in event.body.get("set", ()):
        names = [name for name in _FOLLOWED if name in part["columns"]]
        for position, id in enumerate(part["ids"] if names else ()):
            yield id - 1, {name: _value_at(part["columns"][name], position) for name in names}


def _value_at(values: Any, position: int) -> Any:
    """Return the value at a position, or the scalar that applies to all positions."""
    return values[position] if isinstance(values, list) else values
