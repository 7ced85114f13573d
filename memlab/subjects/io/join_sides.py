"""The memories, corrections and edits of one of the two labs that are joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from memlab.kernel.base.clock import Micros
from memlab.kernel.journal import Event
from memlab.kernel.privacy import split_sensitive
from memlab.kernel.schema import MEMORY
from memlab.subjects.io.join_versions import UPKEEP, Row

# The time that a memory without corrections has as its last correction. It is earlier than any other time.
_LONG_AGO = -(2**63)


class Side:
    """The memories of one lab by id, and the times at which each was corrected."""

    def __init__(self, rows: Mapping[int, Row], events: Iterable[Event] | None) -> None:
        self.rows = rows
        # an export has only the time of the last change
        self.times = (
            {id: {row["changed"]} for id, row in rows.items() if row["changed"] is not None}
            if events is None
            else _corrections_of(events)
        )

    def after(self, id: int) -> int | None:
        """Return the id of the edit that replaced a memory, or None without an edit."""
        row = self.rows[id]
        by = row["superseded_by"]
        edit = self.rows.get(int(by)) if row["status"] == "superseded" and by is not None else None
        return (
            int(by)
            if edit is not None and edit["source"] == "user-edit" and edit["status"] != "purged"
            else None
        )

    def chain(self, id: int) -> list[int]:
        """Return the ids of a memory and of all edits that replaced it, oldest first."""
        chain = [id]
        while (edit := self.after(chain[-1])) is not None and edit not in chain:
            chain.append(edit)
        return chain

    def last(self, id: int) -> Micros:
        """Return the time of the last correction of a memory or of its edits."""
        return max(
            (at for edit in self.chain(id) for at in self.times.get(edit, ())), default=_LONG_AGO
        )


def rows_of(frame: pl.DataFrame) -> dict[int, Row]:
    """Return the memories of a frame by id, with defaults for missing values."""
    rows: dict[int, Row] = {}
    for row in frame.iter_rows(named=True):
        row["files"] = split_sensitive(row["files"] or [])[0]
        for name, column in MEMORY.items():
            if column.storage == "list":
                row[name] = list(row[name] or [])
            elif row[name] is None and column.default is not None and column.default != "now":
                row[name] = column.default
        rows[row["id"]] = row
    return rows


def _corrections_of(events: Iterable[Event]) -> dict[int, set[Micros]]:
    """Return the times of each memory's corrections in the events of a journal."""
    corrections: dict[int, set[Micros]] = {}
    # An event may set columns of one memory in several parts. It is a correction if it sets the column ``changed`` and
    # a column that upkeep and use never set.
    for event in events:
        written: dict[int, set[str]] = {}
        times: dict[int, Micros] = {}
        parts = list(_parts_of(event.body))
        if not any("changed" in columns for _, columns in parts):
            continue
        for ids, columns in parts:
            at = columns.get("changed")
            for position, id in enumerate(ids):
                written.setdefault(id, set()).update(columns)
                if (changed := at[position] if isinstance(at, list) else at) is not None:
                    times[id] = changed
        for id, changed in times.items():
            if not written[id] <= UPKEEP:
                corrections.setdefault(id, set()).add(changed)
    return corrections


def _parts_of(body: Mapping[str, Any]) -> Iterator[tuple[Iterable[int], Mapping[str, Any]]]:
    """Yield the ids and column values of memories that an event adds or changes."""
    if body.get("count"):
        yield range(body["first"], body["first"] + body["count"]), body.get("columns", {})
    for part in body.get("set", ()):
        yield part["ids"], part["columns"]
