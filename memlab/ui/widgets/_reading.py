"""Columns of all memories for widgets that show every one: read once an event, and no more of them than are shown."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from memlab.kernel.base.clock import from_micros
from memlab.kernel.schema import MEMORY, NEVER
from memlab.kernel.state import State, seen_rows
from memlab.subjects.lab import Lab

__all__ = ["columns", "event_of", "values_of"]

_KEPT = {"word": "names", "name": "names", "list": "lists", "note": "notes"}
"""Where a state keeps columns of each storage."""


def event_of(lab: Lab) -> int:
    """The last event that the lab has seen: what was read at the same event need not be read again."""
    with lab.io.store.reading() as state:
        return state.seq


def columns(state: State, names: Sequence[str]) -> pl.DataFrame:
    """These columns of ``lab.memories``: of 100,000 memories a dozen take 20 ms, all of them two seconds."""
    frame = pl.DataFrame([state.column(name) for name in names])
    seen = seen_rows(state)
    return frame if seen is None else frame[seen]


def values_of(state: State, memory: int) -> dict[str, object]:
    """What is known of one memory, by column, but its text: read from its row, as whole columns take seconds."""
    row = memory - 1
    found: dict[str, object] = {}
    for name, column in MEMORY.items():
        if column.storage in _KEPT:
            found[name] = getattr(state, _KEPT[column.storage])[name].at(row)
        elif name == "ref":
            found[name] = state.refs.at(row)
        elif column.storage != "text":
            value = state.numbers[name].values[row]
            absent = value == NEVER if column.storage == "time" else value != value
            found[name] = None if absent else from_micros(int(value)) if column.storage == "time" else value.item()
    return found
