"""One of two labs that are joined: its memories, when each was corrected, and the edits of each in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from memlab.kernel.base.clock import Micros
from memlab.kernel.journal import Event
from memlab.kernel.privacy import split_sensitive
from memlab.kernel.schema import MEMORY
from memlab.subjects.io.join_versions import UPKEEP, Row

__all__ = ["Side", "rows_of"]

_LONG_AGO = -(2**63)


class Side:
    """The memories of one lab by id, when each was corrected, and the edits that follow one another."""

    def __init__(self, rows: Mapping[int, Row], events: Iterable[Event] | None) -> None:
        self.rows = rows
        self.times = _corrections_of(events) if events is not None else _last_changed(rows)

    def after(self, id: int) -> int | None:
        """The edit that takes the place of a memory."""
        row = self.rows[id]
        by = row["superseded_by"]
        edit = self.rows.get(int(by)) if row["status"] == "superseded" and by is not None else None
        return (
            int(by)
            if edit is not None and edit["source"] == "user-edit" and edit["status"] != "purged"
            else None
        )

    def chain(self, id: int) -> list[int]:
        """A memory and the edits after it."""
        found = [id]
        while (edit := self.after(found[-1])) is not None and edit not in found:
            found.append(edit)
        return found

    def last(self, id: int) -> Micros:
        """When a memory was last corrected, or an edit of it was."""
        return max(
            (at for one in self.chain(id) for at in self.times.get(one, ())), default=_LONG_AGO
        )


def rows_of(frame: pl.DataFrame) -> dict[int, Row]:
    """Return the memories of a frame by id, absent values as the schema's defaults and lists as lists."""
    found: dict[int, Row] = {}
    for row in frame.iter_rows(named=True):
        row["files"] = split_sensitive(row["files"] or [])[0]
        for name, column in MEMORY.items():
            if column.storage == "list":
                row[name] = list(row[name] or [])
            elif row[name] is None and column.default is not None and column.default != "now":
                row[name] = column.default
        found[row["id"]] = row
    return found


def _last_changed(rows: Mapping[int, Row]) -> dict[int, set[Micros]]:
    return {id: {row["changed"]} for id, row in rows.items() if row["changed"] is not None}


def _corrections_of(events: Iterable[Event]) -> dict[int, set[Micros]]:
    """When each memory was corrected, as a journal tells."""
    found: dict[int, set[Micros]] = {}
    for event in events:
        written: dict[int, set[str]] = {}
        times: dict[int, Micros] = {}
        parts = list(_parts_of(event.body))
        if not any("changed" in columns for _, columns in parts):
            continue
        for ids, columns in parts:
            at = columns.get("changed")
            for place, id in enumerate(ids):
                written.setdefault(id, set()).update(columns)
                if (one := at[place] if isinstance(at, list) else at) is not None:
                    times[id] = one
        for id, one in times.items():
            if not written[id] <= UPKEEP:
                found.setdefault(id, set()).add(one)
    return found


def _parts_of(body: Mapping[str, Any]) -> Iterator[tuple[Iterable[int], Mapping[str, Any]]]:
    if body.get("count"):
        yield range(body["first"], body["first"] + body["count"]), body.get("columns", {})
    for part in body.get("set", ()):
        yield part["ids"], part["columns"]
