"""The record of the moves of a lab's memories to other labs."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.kernel.base.clock import INSTANT
from memlab.kernel.journal import Event
from memlab.kernel.state import (
    NUMBER,
    TIME,
    WORD,
    EventType,
    Field,
    Projection,
    list_field,
    mapping_field,
)

# The fields of a recorded move, in the order of the frame's columns.
_SCHEMA = {
    "target": pl.String,
    "at": pl.Int64,
    "memories": pl.Int64,
    "added": pl.Int64,
    "left_out": pl.Int64,
}


# The roles of the fields. The target is a label, which a purge searches for names.
_MOVED = {
    "target": Field("label", shared=True),
    "memories": NUMBER,
    "added": NUMBER,
    "left_out": NUMBER,
}


class Synced(Projection):
    """The moves of this lab's memories to other labs, in order.

    Exports do not contain the moves, because they describe only this copy of the lab.
    """

    name = "synced"
    kinds = ("synced",)
    events = (EventType("synced", "Memories were moved to another lab.", {**_MOVED, "lab": WORD}),)
    dumped = list_field(mapping_field({**_MOVED, "at": TIME}))
    exported = False

    def __init__(self) -> None:
        self._moves: list[dict[str, Any]] = []

    def fold(self, event: Event) -> None:
        """Add the move of memories that an event records."""
        self._moves.append(
            {**{name: event.body[name] for name in _SCHEMA if name != "at"}, "at": event.at}
        )

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per move of memories.

        The columns are ``target``, ``at``, ``memories``, ``added`` and ``left_out``.
        """
        frame = pl.DataFrame(self._moves, schema=_SCHEMA)
        return frame.with_columns(pl.col("at").cast(INSTANT))

    def dump(self) -> Any:
        """Return the moves between labs as plain values for a snapshot."""
        return self._moves

    def load(self, dumped: Any) -> None:
        """Restore the moves between labs from the result of ``dump``."""
        self._moves = [{name: row[name] for name in _SCHEMA} for row in dumped]
