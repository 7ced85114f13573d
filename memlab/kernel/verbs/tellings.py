"""Provenance of memories: repeated statements of one text that were merged into the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from memlab.kernel.base.clock import INSTANT
from memlab.kernel.journal import Event
from memlab.kernel.schema import MEMORY, NEVER
from memlab.kernel.state import (
    MEMORY_ID,
    NUMBER,
    TIME,
    WORD,
    Field,
    Projection,
    State,
    list_field,
    mapping_field,
)
from memlab.kernel.verbs.results import Linked

RECORDED = (
    "session",
    "project",
    "speaker",
    "creator",
    "provenance",
    "source",
    "confidence",
    "context",
    "reason",
)
"""The fields of each repetition that are stored, next to its time."""

# Columns of ``provenance_frame``.
_SCHEMA: dict[str, Any] = {
    "memory_id": pl.Int64,
    "how": pl.String,
    "at": pl.Int64,
    **{name: pl.Float64 if name == "confidence" else pl.String for name in RECORDED},
}


class Tellings(Projection):
    """Repeated statements of each memory, after its first statement."""

    name = "tellings"
    kinds = ("link",)
    dumped = list_field(
        mapping_field(
            {
                "memory": MEMORY_ID,
                "at": TIME,
                "session": Field("session", held="reference"),
                "project": Field("project", held="reference"),
                "speaker": Field("name", held="reference"),
                "creator": Field("creator", held="reference"),
                "provenance": WORD,
                "source": WORD,
                "confidence": NUMBER,
                "context": Field("note", asked=True),
                "reason": Field("note"),
            }
        ),
        drops=True,
    )
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {"link": {"tellings": dumped}}

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    @property
    def all(self) -> Sequence[Mapping[str, Any]]:
        """The records of all repeated statements, oldest event first."""
        return tuple(self._rows)

    def of(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """Return the repeated statements of the given memories, oldest event first."""
        wanted = frozenset(ids)
        return [row for row in self._rows if row["memory"] in wanted]

    def fold(self, event: Event) -> None:
        """Append the repeated statements that an event records."""
        self._rows += event.body.get("tellings", ())

    def dump(self) -> Any:
        """Return copies of all records, for a snapshot."""
        return [dict(row) for row in self._rows]

    def load(self, dumped: Any) -> None:
        """Restore the records from the result of ``dump``."""
        self._rows = [dict(row) for row in dumped]


def record_tellings(
    linked: Linked, columns: Mapping[str, list[Any]], now: int
) -> list[dict[str, Any]]:
    """Return a record for each new row that was merged into another memory.

    Parameters
    ----------
    linked
        The outcomes of the new rows.
    columns
        The columns of the new rows before they are stored.
    now
        The time of rows without a time, in microseconds.
    """
    records = []
    for row, (outcome, standing) in enumerate(zip(linked.outcomes, linked.standing, strict=True)):
        if outcome != "merged":
            continue
        fields = {name: columns[name][row] for name in RECORDED if name in columns}
        times = columns.get("created")
        at = now if times is None or times[row] is None else times[row]
        default = {"provenance": MEMORY["provenance"].default, "source": MEMORY["source"].default}
        present = {name: value for name, value in (default | fields).items() if value is not None}
        records.append({"memory": int(standing), "at": int(at), **present})
    return records


def build_provenance_frame(
    state: State, row: int, chain: Sequence[tuple[int, str]]
) -> pl.DataFrame:
    """Return the statements of a memory and of the memories it replaced, oldest first.

    ``chain`` has the replaced rows, each with the way in which it was replaced.
    """
    records = [
        _record_row(state, row, "told"),
        *(_record_row(state, other, how) for other, how in chain),
    ]
    repetitions = state.projection(Tellings).of([row + 1, *(other + 1 for other, _ in chain)])
    records += [
        {"memory_id": record["memory"], "how": "told again", **_drop_memory(record)}
        for record in repetitions
    ]
    # A record lacks the fields that it has no value for; the schema makes them null.
    frame = pl.DataFrame(records, schema=_SCHEMA)
    return frame.sort("at", maintain_order=True).with_columns(_AS_TIME)


# Integers become times only when the frame is complete.
_AS_TIME = pl.col("at").cast(INSTANT)


def _drop_memory(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without its field ``memory``."""
    return {name: value for name, value in record.items() if name != "memory"}


def _record_row(state: State, row: int, how: str) -> dict[str, Any]:
    """Build the provenance record of the statement that first stored a memory."""
    record: dict[str, Any] = {"memory_id": row + 1, "how": how, "at": _created(state, row)}
    for name in RECORDED:
        if name in state.names:
            record[name] = state.names[name].value_at(row)
        elif name in state.notes:
            record[name] = state.notes[name].value_at(row)
        else:
            value = float(state.numbers[name].values[row])
            record[name] = None if np.isnan(value) else value
    return record


def _created(state: State, row: int) -> int | None:
    """Return the time of creation of a row in microseconds, or None if it is unknown."""
    created = int(state.numbers["created"].values[row])
    return None if created == NEVER else created
