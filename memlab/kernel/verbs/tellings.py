"""How a memory came to be known: the chain of its tellings, where one text was said again and merged into the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

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

__all__ = ["Tellings", "provenance_frame", "tellings_in"]


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
"""What is kept of each telling, beside its time."""

_SCHEMA: dict[str, Any] = {
    "memory_id": pl.Int64,
    "how": pl.String,
    "at": pl.Int64,
    **{name: pl.Float64 if name == "confidence" else pl.String for name in RECORDED},
}


class Tellings(Projection):
    """The tellings of each memory after its first, as events recorded them."""

    name: ClassVar[str] = "tellings"
    kinds: ClassVar[tuple[str, ...]] = ("link",)
    dumped: ClassVar[Field] = list_field(
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
        """The records of all memories, oldest event first."""
        return tuple(self._rows)

    def of(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """Return the records of these memories, oldest event first."""
        wanted = frozenset(ids)
        return [row for row in self._rows if row["memory"] in wanted]

    def fold(self, event: Event) -> None:
        """Add the records of one event."""
        self._rows += event.body.get("tellings", ())

    def dump(self) -> Any:
        """Return all records."""
        return [dict(row) for row in self._rows]

    def load(self, dumped: Any) -> None:
        """Take in what ``dump`` gave."""
        self._rows = [dict(row) for row in dumped]


def tellings_in(linked: Linked, columns: Mapping[str, list[Any]], now: int) -> list[dict[str, Any]]:
    """Return a record for each new row that was merged into another memory.

    Parameters
    ----------
    linked
        What became of the new rows.
    columns
        Their columns, as they were about to be stored.
    now
        The time of rows that give none, in microseconds.
    """
    records = []
    for row, (outcome, standing) in enumerate(zip(linked.outcomes, linked.standing, strict=True)):
        if outcome != "merged":
            continue
        given = {name: columns[name][row] for name in RECORDED if name in columns}
        times = columns.get("created")
        at = now if times is None or times[row] is None else times[row]
        default = {"provenance": MEMORY["provenance"].default, "source": MEMORY["source"].default}
        kept = {name: value for name, value in (default | given).items() if value is not None}
        records.append({"memory": int(standing), "at": int(at), **kept})
    return records


def provenance_frame(state: State, row: int, chain: Sequence[tuple[int, str]]) -> pl.DataFrame:
    """Return the tellings of a memory and of those that it replaced, in the order of time.

    ``chain`` has the rows that this one replaced, each with how it was replaced.
    """
    records = [_of_row(state, row, "told"), *(_of_row(state, other, how) for other, how in chain)]
    again = state.projection(Tellings).of([row + 1, *(other + 1 for other, _ in chain)])
    records += [
        {"memory_id": record["memory"], "how": "told again", **_without_memory(record)}
        for record in again
    ]
    rows = [{name: record.get(name) for name in _SCHEMA} for record in records]
    return pl.DataFrame(rows, schema=_SCHEMA).sort("at", maintain_order=True).with_columns(_AS_TIME)


_AS_TIME = pl.col("at").cast(pl.Datetime("us", "UTC"))


def _without_memory(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "memory"}


def _of_row(state: State, row: int, how: str) -> dict[str, Any]:
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
    created = int(state.numbers["created"].values[row])
    return None if created == NEVER else created
