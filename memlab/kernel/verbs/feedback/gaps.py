"""Gaps: what was looked for and not found. A recall had candidates, and a verifier let none of them pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.journal import Event
from memlab.kernel.state import (
    HASH,
    NUMBER,
    PROJECT,
    REASON,
    SESSION,
    TIME,
    EventType,
    Field,
    Projection,
    listed,
    mapping,
)

__all__ = ["SNIPPET", "Gaps"]

SNIPPET = 200
"""Characters of a context that a gap keeps."""

_STAMP = pl.Datetime("us", "UTC")
_SCHEMA: dict[str, Any] = {
    "gap": pl.Int64,
    "decision": pl.Int64,
    "at": pl.Int64,
    "project": pl.String,
    "session": pl.String,
    "snippet": pl.String,
    "closed": pl.Int64,
    "reason": pl.String,
    "embedder": pl.String,
}


_ASKED = {
    "project": PROJECT,
    "session": SESSION,
    "snippet": Field("text", asked=True, shared=True),
    "embedder": HASH,
    "vector": Field("vector", shared=True),
}


class Gaps(Projection):
    """Every gap by its number, which is that of the event that found it."""

    name: ClassVar[str] = "gaps"
    kinds: ClassVar[tuple[str, ...]] = ("verify", "close-gap")
    events: ClassVar[tuple[EventType, ...]] = (
        EventType("close-gap", "Somebody closed a gap.", {"gap": NUMBER, "reason": REASON}, replay="left-out"),
    )
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {"verify": {"gap": mapping(_ASKED, asker=True)}}
    dumped: ClassVar[Field] = listed(
        mapping({**_ASKED, "gap": NUMBER, "decision": NUMBER, "at": TIME, "closed": TIME, "reason": REASON})
    )

    def __init__(self) -> None:
        self._rows: dict[int, dict[str, Any]] = {}

    def fold(self, event: Event) -> None:
        if event.kind == "close-gap":
            self._rows[event.body["gap"]] |= {"closed": event.at, "reason": event.body["reason"]}
        elif (gap := event.body.get("gap")) is not None:
            self._rows[event.seq] = {
                "gap": event.seq,
                "decision": event.body["decision"],
                "at": event.at,
                "project": gap["project"],
                "session": gap["session"],
                "snippet": gap["snippet"],
                "closed": None,
                "reason": None,
                "embedder": gap["embedder"],
                "vector": gap["vector"],
            }

    def shows(self, kind: str, body: dict[str, Any], *, viewer: str, seen: bool) -> bool | None:
        return body["gap"] in self._rows if kind == "close-gap" else None

    def check_open(self, gap: object) -> None:
        """UnknownName for a number that no gap has, InputError for one that was closed."""
        row = self._rows.get(gap) if isinstance(gap, int) and not isinstance(gap, bool) else None
        if row is None:
            still = [str(number) for number, known in self._rows.items() if known["closed"] is None]
            raise UnknownName("gap", gap, still[-12:])
        if row["closed"] is not None:
            raise InputError(f"Gap {gap} was closed already: {row['reason']}")

    @property
    def frame(self) -> pl.DataFrame:
        """One row a gap, oldest first: gap, decision, at, project, session, snippet, closed, reason, embedder, vector.

        ``closed`` is null while it is open. ``vector`` is the context as the embedder of this fingerprint has it.
        """
        rows = list(self._rows.values())
        frame = pl.DataFrame({name: [row[name] for row in rows] for name in _SCHEMA}, schema=_SCHEMA)
        vectors = [np.frombuffer(row["vector"], dtype=np.int8).tolist() for row in rows]
        return frame.with_columns(
            pl.col("at", "closed").cast(_STAMP), pl.Series("vector", vectors, dtype=pl.List(pl.Int8))
        )

    def dump(self) -> Any:
        return list(self._rows.values())

    def load(self, dumped: Any) -> None:
        self._rows = {row["gap"]: dict(row) for row in dumped}
