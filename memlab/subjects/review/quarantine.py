"""Quarantine: what came from one place goes out of recall at once, and what it displaced comes back.

With the memories themselves go the summaries that one of them is part of, whose texts were made of it. What was
superseded by them alone holds again, and so do the other members of those summaries. The event says what each of them
was before, so that ``released`` gives back exactly that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import UnknownName
from memlab.kernel.hooks import list_hooks
from memlab.kernel.journal import Event
from memlab.kernel.schema import MEMORY, NEVER, RECALLABLE, normalise_word
from memlab.kernel.state import Change, State, build_values

__all__ = [
    "Displaced",
    "SetApart",
    "came_from",
    "displaced_by",
    "released",
    "set_apart",
    "written_since",
]

Rows = NDArray[np.int64]
Values = dict[str, Any]
Displaced = Mapping[int, tuple[Values, Values]]
"""By row, what was superseded: the values that the superseding gave it, and those from before."""

_GONE = ("deleted", "purged", "quarantined")
"""What stays as it is: it is on its way out, or out already."""

_FOLLOWED = ("status", "superseded_by", "valid_until", "reason")
"""What superseding changes."""


@dataclass(frozen=True)
class SetApart:
    """What a quarantine changes. ``rows`` go out, ``summaries`` with them, ``back`` is in use again; all ascending.

    ``now`` and ``was`` are the parts of a change to that, and of one to what they had before.
    """

    rows: Rows
    summaries: Rows
    back: Rows
    now: list[dict[str, Any]]
    was: list[dict[str, Any]]

    def change(self, at: int) -> Change:
        """What the event carries."""
        ids = np.concatenate((self.rows, self.summaries, self.back)) + 1
        return Change(
            set=[*self.now, build_values(np.sort(ids).tolist(), changed=at)] if len(ids) else ()
        )


def came_from(state: State, **names: str | None) -> Rows:
    """The rows that have these names (``source``, ``session``, ``creator``), ascending. UnknownName for one that no
    memory has.
    """
    found = np.ones(len(state), dtype=np.bool_)
    for column, name in names.items():
        if name is None:
            continue
        known = state.names[column]
        code = known.code(normalise_word(name, MEMORY[column].words))
        if code < 0:
            raise UnknownName(column, name, MEMORY[column].words or known.vocabulary)
        found &= known.codes == code
    return np.flatnonzero(found)


def written_since(events: Iterable[Event], rows: Rows, since: int) -> Rows:
    """Those of ``rows`` that were written at ``since`` or later, by the time of the event: no writer chooses it."""
    found = np.zeros(len(rows), dtype=np.bool_)
    for event in events:
        if event.at >= since and "first" in event.body:
            first = event.body["first"] - 1
            found |= (rows >= first) & (rows < first + event.body["count"])
    return rows[found]


def displaced_by(events: Callable[[], Iterable[Event]], ids: Iterable[int]) -> Displaced:
    """What any of ``ids`` ever superseded, as the events tell, which are read twice; of several times the first.

    What was written down as superseded from the start, by an import, was active.
    """
    by = set(ids)
    wanted = {
        row
        for event in events()
        for row, values in (*_written(event, ("superseded_by",)), *_changes(event))
        if values.get("superseded_by") in by and row + 1 not in by
    }
    found: dict[int, tuple[Values, Values]] = {}
    now: dict[int, Values] = {}
    for event in events() if wanted else ():
        for row, values in _written(event, _FOLLOWED, wanted):
            now[row] = values
            if values["superseded_by"] in by:
                found[row] = dict(values), {**values, "status": "active", "superseded_by": None}
        changes: dict[int, Values] = {}
        for row, values in _changes(event):
            if row in wanted:
                changes.setdefault(row, {}).update(values)
        for row, values in changes.items():
            if values.get("superseded_by") in by and now[row]["superseded_by"] not in by:
                found[row] = values, dict(now[row])
            now[row].update(values)
    return found


def set_apart(state: State, rows: Rows, displaced: Displaced) -> SetApart:
    """What the quarantine of ``rows`` changes in this state; one of the past may not have all of them yet.

    What is deleted, purged or in quarantine stays so. What another memory has superseded since stays superseded, and so
    does what only memories superseded that were in quarantine before.
    """
    statuses = state.names["status"]
    out = set(rows[rows < len(state)].tolist())
    summaries: set[int] = set()
    of_summary = _stand_ins(state)
    while fresh := {
        id - 1
        for id, one in of_summary.items()
        if id - 1 not in out and any(member - 1 in out for member in one.members)
    }:
        out |= fresh
        summaries |= fresh
    going = np.array(
        sorted(row for row in out if statuses.value_at(row) not in _GONE), dtype=np.int64
    )
    back: dict[int, Values] = {}
    for row in sorted(summaries):
        for word, ids in of_summary[row + 1].was.items():
            members = [
                id - 1
                for id in ids
                if id - 1 not in out and statuses.value_at(id - 1) == "consolidated"
            ]
            back |= {member: {"status": word} for member in members}
    newly_out = set(going.tolist())
    for row, (given, before) in displaced.items():
        if row >= len(state) or row in out or statuses.value_at(row) != "superseded":
            continue
        successors = _successors(state, row)
        gone = all(one in out or statuses.value_at(one) == "quarantined" for one in successors)
        if gone and not newly_out.isdisjoint(successors):
            same = {name: before[name] for name in given if _value(state, row, name) == given[name]}
            back[row] = {
                **same,
                "status": before["status"],
                "superseded_by": before["superseded_by"],
            }
    kept = np.array(sorted(back), dtype=np.int64)
    now = [*_parts({row: {"status": "quarantined"} for row in going.tolist()}), *_parts(back)]
    was = {row: {"status": statuses.value_at(row)} for row in going.tolist()}
    was |= {
        row: {name: _value(state, row, name) for name in values} for row, values in back.items()
    }
    return SetApart(
        np.array([row for row in going.tolist() if row not in summaries], dtype=np.int64),
        np.array([row for row in going.tolist() if row in summaries], dtype=np.int64),
        kept,
        now,
        _parts(was),
    )


def released(state: State, body: Mapping[str, Any], now: int) -> tuple[Change, list[int]]:
    """The change that undoes a quarantine, of whose event ``body`` is, and the rows that it changes, ascending.

    What changed since is left as it is: what was restored, deleted or purged by hand, and what is to be superseded
    again by what does not come back.
    """
    given, was = _merged(body["set"]), _merged(body["was"])
    same = {row for row in was if state.names["status"].value_at(row) == given[row]["status"]}
    returning = {row for row in same if given[row]["status"] == "quarantined"}
    of_summary = _stand_ins(state)
    after: dict[int, Values] = {}
    for row in sorted(same):
        status = was[row]["status"]
        by = was[row].get("superseded_by")
        if by is not None and int(by) - 1 not in returning:
            other = state.names["status"].value_at(int(by) - 1)
            # what was out of use before the quarantine already is no reason: it was so when this was superseded by it
            if other not in RECALLABLE and (int(by) - 1 in given or other == "quarantined"):
                continue
        if status == "consolidated":
            of = [id for id, one in of_summary.items() if row + 1 in one.members]
            if not any(
                id - 1 in returning or state.names["status"].value_at(id - 1) in RECALLABLE
                for id in of
            ):
                # what stood for it is gone: it is what it was before that
                status = (
                    next(word for word, ids in of_summary[of[-1]].was.items() if row + 1 in ids)
                    if of
                    else "active"
                )
        columns = {
            name: value
            for name, value in was[row].items()
            if _value(state, row, name) == given[row][name]
        }
        after[row] = {**columns, "status": status}
    rows = sorted(
        row
        for row, values in after.items()
        if values["status"] != state.names["status"].value_at(row)
    )
    parts = _parts({row: after[row] for row in rows})
    return Change(
        set=[*parts, build_values([row + 1 for row in rows], changed=now)] if rows else ()
    ), rows


# -- within -----------------------------------------------------------------------------------------------------


def _stand_ins(state: State) -> dict[int, Any]:
    """Memories that stand for others, by id: each with ``members`` and ``was``."""
    return {id: one for find in list_hooks("stand-ins") for id, one in find(state).items()}


def _successors(state: State, row: int) -> set[int]:
    """All that superseded a memory, one after another."""
    by, found = state.numbers["superseded_by"].values, set[int]()
    while by[row] == by[row] and (row := int(by[row]) - 1) not in found:
        found.add(row)
    return found


def _value(state: State, row: int, name: str) -> Any:
    """One value of a memory; None where there is none."""
    if name in state.names:
        return state.names[name].value_at(row)
    if name in state.notes:
        return state.notes[name].value_at(row)
    value = state.numbers[name].values[row].item()
    return None if value != value or (MEMORY[name].storage == "time" and value == NEVER) else value


def _parts(values: Mapping[int, Values]) -> list[dict[str, Any]]:
    """Parts of a change: one for each column, and of statuses one for each word."""
    parts: list[dict[str, Any]] = []
    for name in dict.fromkeys(name for one in values.values() for name in one):
        held = {row + 1: one[name] for row, one in values.items() if name in one}
        if name == "status":
            words = dict.fromkeys(held.values())
            parts += [
                build_values([id for id, value in held.items() if value == word], status=word)
                for word in words
            ]
        else:
            parts.append(build_values(list(held), **{name: list(held.values())}))
    return parts


def _merged(parts: Iterable[Mapping[str, Any]]) -> dict[int, Values]:
    """What parts of a change say, by row."""
    found: dict[int, Values] = {}
    for part in parts:
        for place, id in enumerate(part["ids"]):
            one = found.setdefault(id - 1, {})
            one.update({name: _one(values, place) for name, values in part["columns"].items()})
    return found


def _written(
    event: Event, names: Sequence[str], rows: Set[int] | None = None
) -> Iterable[tuple[int, Values]]:
    """The values that an event adds memories with, by row, of ``rows`` or all; nothing where it gives none of these."""
    columns = event.body.get("columns", {})
    if "first" not in event.body or (rows is None and not columns.keys() & set(names)):
        return
    first = event.body["first"] - 1
    added = range(first, first + event.body["count"])
    for row in added if rows is None else rows & set(added):
        yield (
            row,
            {name: _one(columns.get(name, MEMORY[name].default), row - first) for name in names},
        )


def _changes(event: Event) -> Iterable[tuple[int, Values]]:
    """What an event sets of the columns that superseding changes, by row."""
    for part in event.body.get("set", ()):
        names = [name for name in _FOLLOWED if name in part["columns"]]
        for place, id in enumerate(part["ids"] if names else ()):
            yield id - 1, {name: _one(part["columns"][name], place) for name in names}


def _one(values: Any, place: int) -> Any:
    return values[place] if isinstance(values, list) else values
