"""Tables that the verbs of the kernel keep beside memories: gaps, judgements, what was shown last, tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.journal import Event
from memlab.kernel.state import (
    HASH,
    MEMORY_ID,
    NUMBER,
    PROJECT,
    REASON,
    SESSION,
    TIME,
    EventType,
    Field,
    Projection,
    list_field,
    mapping_field,
)
from memlab.kernel.verbs.declared import Declared
from memlab.kernel.verbs.gate import Consents, Switches

__all__ = ["DECLARED", "SNIPPET", "Gaps", "Judged", "LastShown", "TagDescriptions"]


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
    """What was looked for and not found: gaps by number, which is that of the event that found it."""

    name: ClassVar[str] = "gaps"
    kinds: ClassVar[tuple[str, ...]] = ("verify", "close-gap")
    events: ClassVar[tuple[EventType, ...]] = (
        EventType(
            "close-gap",
            "Somebody closed a gap.",
            {"gap": NUMBER, "reason": REASON},
            replay="left-out",
        ),
    )
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {
        "verify": {"gap": mapping_field(_ASKED, asker=True)}
    }
    dumped: ClassVar[Field] = list_field(
        mapping_field(
            {
                **_ASKED,
                "gap": NUMBER,
                "decision": NUMBER,
                "at": TIME,
                "closed": TIME,
                "reason": REASON,
            }
        )
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
        frame = pl.DataFrame(
            {name: [row[name] for row in rows] for name in _SCHEMA}, schema=_SCHEMA
        )
        vectors = [np.frombuffer(row["vector"], dtype=np.int8).tolist() for row in rows]
        return frame.with_columns(
            pl.col("at", "closed").cast(_STAMP),
            pl.Series("vector", vectors, dtype=pl.List(pl.Int8)),
        )

    def dump(self) -> Any:
        return list(self._rows.values())

    def load(self, dumped: Any) -> None:
        self._rows = {row["gap"]: dict(row) for row in dumped}


_MAX_DECISIONS = 10_000
"""Decisions that are remembered: shared success is reported of the same recall, soon after it."""


class Judged(Projection):
    """The memories marked a success in each of the latest decisions, and the decisions that a verifier has judged."""

    name: ClassVar[str] = "judged"
    kinds: ClassVar[tuple[str, ...]] = ("feedback", "verify")
    dumped: ClassVar[Field] = mapping_field(
        {"successes": list_field(NUMBER, MEMORY_ID), "verified": NUMBER}
    )
    exported: ClassVar[bool] = False

    def __init__(self) -> None:
        self._successes: dict[int, list[int]] = {}
        self._verified: dict[int, None] = {}

    def successes(self, decision: int) -> tuple[int, ...]:
        """The ids that feedback marked a success of this decision, in the order in which it came."""
        return tuple(self._successes.get(decision, ()))

    def verified(self, decision: int) -> bool:
        """Whether a verifier has judged this decision."""
        return decision in self._verified

    def fold(self, event: Event) -> None:
        body = event.body
        decision = body.get("decision")
        if decision is None:
            return
        if event.kind == "verify":
            self._verified[decision] = None
            _trim(self._verified)
        elif body.get("outcome") == "success":
            known = self._successes.setdefault(decision, [])
            if body["memory"] not in known:
                known.append(body["memory"])
            _trim(self._successes)

    def dump(self) -> Any:
        return {"successes": list(self._successes.items()), "verified": list(self._verified)}

    def load(self, dumped: Any) -> None:
        self._successes = {decision: list(ids) for decision, ids in dumped["successes"]}
        self._verified = dict.fromkeys(dumped["verified"])


def _trim(kept: dict[int, Any]) -> None:
    if len(kept) > _MAX_DECISIONS:
        del kept[next(iter(kept))]


class LastShown(Projection):
    """The decision of each memory that a recall showed."""

    name: ClassVar[str] = "last-shown"
    kinds: ClassVar[tuple[str, ...]] = ("recall",)
    dumped: ClassVar[Field] = Field("tuple", items=(MEMORY_ID, NUMBER))
    exported: ClassVar[bool] = False

    def __init__(self) -> None:
        self._decisions: dict[int, int] = {}

    def decision(self, memory: int) -> int | None:
        """The last recall that showed the memory of this id; None if none did."""
        return self._decisions.get(memory)

    def fold(self, event: Event) -> None:
        self._decisions.update(dict.fromkeys(event.body["ids"], event.seq))

    def dump(self) -> Any:
        return [list(self._decisions), list(self._decisions.values())]

    def load(self, dumped: Any) -> None:
        self._decisions = dict(zip(*dumped, strict=True))


_DESCRIBED = {
    "tag": Field("tag", held="reference", shared=True),
    "description": Field("text", of="tag", shared=True),
}


class TagDescriptions(Projection):
    """What each tag is for, as somebody said it. Whoever may read the lab may read it."""

    name: ClassVar[str] = "tags"
    kinds: ClassVar[tuple[str, ...]] = ("describe-tag",)
    events: ClassVar[tuple[EventType, ...]] = (
        EventType(
            "describe-tag",
            "Somebody said what a tag is for, or with an empty text nothing.",
            _DESCRIBED,
        ),
    )
    # a description that a purge empties is none
    dumped: ClassVar[Field] = list_field(mapping_field(_DESCRIBED), drops=True)

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def __getitem__(self, tag: str) -> str:
        """Return the description of a tag, empty where there is none."""
        return self._said.get(tag, "")

    def fold(self, event: Event) -> None:
        """Set the description of a tag, or with an empty one remove it."""
        tag, said = event.body["tag"], event.body["description"]
        if said:
            self._said[tag] = said
        else:
            self._said.pop(tag, None)

    def shows(self, kind: str, body: dict[str, Any], *, viewer: str, seen: bool) -> bool | None:
        """Return True: a description is part of what everybody sees."""
        return True

    def dump(self) -> Any:
        """Return a row for each described tag."""
        return [{"tag": tag, "description": said} for tag, said in self._said.items()]

    def load(self, dumped: Any) -> None:
        """Take in what ``dump`` gave."""
        self._said = {row["tag"]: row["description"] for row in dumped}


DECLARED = Declared(projections=(Gaps, Judged, LastShown, Consents, Switches, TagDescriptions))
"""What feedback, the gate and the graph declare to a lab."""
