"""Projections of the verbs: gaps, judgements, last recalls, tag descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.clock import INSTANT
from memlab.kernel.journal import Body, Event
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

SNIPPET = 200
"""Maximum characters of a query that a gap stores."""

# Columns of ``Gaps.frame``; times are integers until the frame is built.
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


# Fields of a gap that a purge treats as part of the query.
_ASKED = {
    "project": PROJECT,
    "session": SESSION,
    "snippet": Field("text", asked=True, shared=True),
    "embedder": HASH,
    "vector": Field("vector", shared=True),
}


class Gaps(Projection):
    """Queries for which the lab had no answer, keyed by the event that recorded them."""

    name = "gaps"
    kinds = ("verify", "close-gap")
    events = (
        EventType(
            "close-gap",
            "A gap was closed.",
            {"gap": NUMBER, "reason": REASON},
            replay="left-out",
        ),
    )
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {
        "verify": {"gap": mapping_field(_ASKED, asker=True)}
    }
    dumped = list_field(
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
        """Apply an event that opens a gap (a verification) or closes a gap ("close-gap")."""
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

    def shows(self, kind: str, body: Body, *, viewer: str, seen: bool) -> bool | None:
        """Return whether the viewer sees the gap that a "close-gap" event closes."""
        return body["gap"] in self._rows if kind == "close-gap" else None

    def check_open(self, gap: object) -> None:
        """Raise UnknownName if a gap does not exist, and InputError if the gap is closed."""
        row = self._rows.get(gap) if isinstance(gap, int) and not isinstance(gap, bool) else None
        if row is None:
            raise UnknownName("gap", gap, None)
        if row["closed"] is not None:
            raise InputError(f"Gap {gap} is closed already, with the reason: {row['reason']}")

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per gap, oldest first.

        Columns: gap, decision, at, project, session, snippet, closed, reason, embedder, vector.
        ``closed`` is null while the gap is open. ``vector`` is the query's vector, and ``embedder`` is the fingerprint
        of the embedder that computed it.
        """
        rows = list(self._rows.values())
        frame = pl.DataFrame(
            {name: [row[name] for row in rows] for name in _SCHEMA}, schema=_SCHEMA
        )
        vectors = [np.frombuffer(row["vector"], dtype=np.int8).tolist() for row in rows]
        return frame.with_columns(
            pl.col("at", "closed").cast(INSTANT),
            pl.Series("vector", vectors, dtype=pl.List(pl.Int8)),
        )

    def dump(self) -> Any:
        """Return the gaps as a list of dicts, for a snapshot."""
        return list(self._rows.values())

    def load(self, dumped: Any) -> None:
        """Restore the gaps from the result of ``dump``."""
        self._rows = {row["gap"]: dict(row) for row in dumped}


_MAX_DECISIONS = 10_000
"""Maximum number of stored recalls.

Feedback on a recall arrives soon after it, so older recalls are rarely needed.
"""


class Judged(Projection):
    """Successful memories of the latest recalls, and recalls that a verifier judged."""

    name = "judged"
    kinds = ("feedback", "verify")
    dumped = mapping_field({"successes": list_field(NUMBER, MEMORY_ID), "verified": NUMBER})
    exported = False

    def __init__(self) -> None:
        self._successes: dict[int, list[int]] = {}
        self._verified: dict[int, None] = {}

    def successes(self, decision: int) -> tuple[int, ...]:
        """Return the ids of memories that feedback marked as successes of a recall."""
        return tuple(self._successes.get(decision, ()))

    def verified(self, decision: int) -> bool:
        """Return whether a verifier has judged this recall."""
        return decision in self._verified

    def fold(self, event: Event) -> None:
        """Record a success ("feedback" event) or a verified recall ("verify" event)."""
        body = event.body
        decision = body.get("decision")
        if decision is None:
            return
        if event.kind == "verify":
            self._verified[decision] = None
            _trim(self._verified)
        elif body.get("outcome") == "success":
            successes = self._successes.setdefault(decision, [])
            if body["memory"] not in successes:
                successes.append(body["memory"])
            _trim(self._successes)

    def dump(self) -> Any:
        """Return the judgements as a dict of lists, for a snapshot."""
        return {"successes": list(self._successes.items()), "verified": list(self._verified)}

    def load(self, dumped: Any) -> None:
        """Restore the judgements from the result of ``dump``."""
        self._successes = {decision: list(ids) for decision, ids in dumped["successes"]}
        self._verified = dict.fromkeys(dumped["verified"])


def _trim(decisions: dict[int, Any]) -> None:
    """Remove the oldest recall if more than ``_MAX_DECISIONS`` are stored."""
    if len(decisions) > _MAX_DECISIONS:
        del decisions[next(iter(decisions))]


class LastShown(Projection):
    """The number of the last recall that showed each memory."""

    name = "last-shown"
    kinds = ("recall",)
    dumped = Field("tuple", items=(MEMORY_ID, NUMBER))
    exported = False

    def __init__(self) -> None:
        self._decisions: dict[int, int] = {}

    def decision(self, memory: int) -> int | None:
        """Return the number of the last recall that showed a memory, or None if none did."""
        return self._decisions.get(memory)

    def fold(self, event: Event) -> None:
        """Record which memories a "recall" event showed."""
        self._decisions.update(dict.fromkeys(event.body["ids"], event.seq))

    def dump(self) -> Any:
        """Return two lists: ids of memories, and the last recall that showed each of them."""
        return [list(self._decisions), list(self._decisions.values())]

    def load(self, dumped: Any) -> None:
        """Restore the last recall of each memory from the result of ``dump``."""
        self._decisions = dict(zip(*dumped, strict=True))


# Fields of a description, in events and in snapshots.
_DESCRIBED = {
    "tag": Field("tag", held="reference", shared=True),
    "description": Field("text", of="tag", shared=True),
}


class TagDescriptions(Projection):
    """Descriptions of tags, visible to every reader of the lab."""

    name = "tags"
    kinds = ("describe-tag",)
    events = (
        EventType(
            "describe-tag",
            "A tag got a description, or an empty text removed it.",
            _DESCRIBED,
        ),
    )
    # A description that a purge empties is removed.
    dumped = list_field(mapping_field(_DESCRIBED), drops=True)

    def __init__(self) -> None:
        self._descriptions: dict[str, str] = {}

    def __getitem__(self, tag: str) -> str:
        """Return the description of a tag, or an empty string without a description."""
        return self._descriptions.get(tag, "")

    def fold(self, event: Event) -> None:
        """Set the description of a tag; an empty text removes the description."""
        tag, description = event.body["tag"], event.body["description"]
        if description:
            self._descriptions[tag] = description
        else:
            self._descriptions.pop(tag, None)

    def shows(self, kind: str, body: Body, *, viewer: str, seen: bool) -> bool | None:
        """Return True, because tag descriptions are visible to all viewers."""
        return True

    def dump(self) -> Any:
        """Return a dict with tag and description for each described tag."""
        return [
            {"tag": tag, "description": description}
            for tag, description in self._descriptions.items()
        ]

    def load(self, dumped: Any) -> None:
        """Restore the descriptions from the result of ``dump``."""
        self._descriptions = {row["tag"]: row["description"] for row in dumped}


DECLARED = Declared(projections=(Gaps, Judged, LastShown, Consents, Switches, TagDescriptions))
"""The projections of feedback, the gate and the graph."""
