"""Relationships: how well an agent and its user know each other, and how far what it recalls is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import polars as pl

from memlab.kernel.journal import Event
from memlab.kernel.policies import Pack
from memlab.kernel.state import (
    AGENT,
    NUMBER,
    TIME,
    EventType,
    Field,
    Projection,
    State,
    list_field,
    mapping_field,
)

__all__ = [
    "Relationship",
    "Relationships",
    "fields_of_feedback",
    "in_event",
    "relationship_of",
    "talked",
    "trusted",
]

_MAX = 100.0

_STAMP = pl.Datetime("us", "UTC")
_SCHEMA: dict[str, Any] = {
    "agent": pl.String,
    "trust": pl.Float64,
    "familiarity": pl.Float64,
    "conversations": pl.Int64,
    "helpful": pl.Int64,
    "unhelpful": pl.Int64,
    "since": pl.Int64,
    "last": pl.Int64,
}


@dataclass(frozen=True)
class Relationship:
    """How well an agent and its user know each other, and how far its recalls are trusted.

    Attributes
    ----------
    agent
        The name of the agent, as it was given.
    trust
        0-100; it begins with the setting ``trust-start``.
    familiarity
        0-100; it begins with the setting ``familiarity-start``.
    conversations
        How many conversations were counted.
    helpful
        How many judgements were a success.
    unhelpful
        How many judgements were a failure.
    since
        When it began, in microseconds since 1970 UTC; ``lab.agents.relationships()`` has it as a time.
    last
        When it last changed, likewise.
    """

    agent: str
    trust: float
    familiarity: float
    conversations: int = 0
    helpful: int = 0
    unhelpful: int = 0
    since: int = 0
    last: int = 0


_DECLARED_AGENT = replace(AGENT, held="declared")
_IN_EVENT = mapping_field({"agent": _DECLARED_AGENT, "trust": NUMBER, "familiarity": NUMBER})


class Relationships(Projection):
    """Relationships by agent. What a conversation or a judgement makes of one was decided when it was written."""

    name: ClassVar[str] = "relationships"
    kinds: ClassVar[tuple[str, ...]] = ("conversation", "feedback")
    events: ClassVar[tuple[EventType, ...]] = (
        EventType(
            "conversation", "An agent and its user had a conversation.", {"relationship": _IN_EVENT}
        ),
    )
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {"feedback": {"relationship": _IN_EVENT}}
    dumped: ClassVar[Field] = list_field(
        mapping_field(
            {
                "agent": _DECLARED_AGENT,
                "trust": NUMBER,
                "familiarity": NUMBER,
                "conversations": NUMBER,
                "helpful": NUMBER,
                "unhelpful": NUMBER,
                "since": TIME,
                "last": TIME,
            }
        )
    )

    def __init__(self) -> None:
        self._known: dict[str, Relationship] = {}

    def get(self, agent: str) -> Relationship | None:
        """The relationship of this agent, if it has begun."""
        return self._known.get(agent)

    def fold(self, event: Event) -> None:
        now = event.body.get("relationship")
        if now is None:
            return
        agent = now["agent"]
        known = self._known.get(agent) or Relationship(
            agent, 0.0, 0.0, since=event.at, last=event.at
        )
        outcome = event.body.get("outcome")
        self._known[agent] = replace(
            known,
            trust=now["trust"],
            familiarity=now["familiarity"],
            conversations=known.conversations + (event.kind == "conversation"),
            helpful=known.helpful + (outcome == "success"),
            unhelpful=known.unhelpful + (outcome == "fail"),
            since=min(known.since, event.at),
            last=max(known.last, event.at),
        )

    @property
    def frame(self) -> pl.DataFrame:
        """One row an agent, by name: agent, trust, familiarity, conversations, helpful, unhelpful, since, last."""
        rows = [asdict(self._known[agent]) for agent in sorted(self._known)]
        return pl.DataFrame(rows, schema=_SCHEMA).with_columns(pl.col("since", "last").cast(_STAMP))

    def dump(self) -> Any:
        return [asdict(known) for known in self._known.values()]

    def load(self, dumped: Any) -> None:
        self._known = {row["agent"]: Relationship(**row) for row in dumped}


def relationship_of(state: State, pack: Pack, agent: str) -> Relationship:
    """What there is between this agent and its user; a new one starts as the settings ``familiarity-start`` and
    ``trust-start`` say (without a past there is nothing to be familiar with, and no reason to trust or to distrust).
    """
    found = state.projection(Relationships).get(agent)
    return found or Relationship(
        agent, pack.number("trust-start"), pack.number("familiarity-start")
    )


def fields_of_feedback(state: State, pack: Pack, agent: str, outcome: str | None) -> dict[str, Any]:
    """Return what an event of feedback says of the relationship with the agent that recalled the memory."""
    known = relationship_of(state, pack, agent)
    return {
        "relationship": in_event(
            known if outcome is None else trusted(known, pack, helpful=outcome == "success")
        )
    }


def talked(known: Relationship, pack: Pack) -> Relationship:
    """After one more conversation: a share ``familiarity-gain`` of what is missing to 100 is added."""
    gained = (_MAX - known.familiarity) * pack.number("familiarity-gain")
    return replace(known, familiarity=_bounded(known.familiarity + gained))


def trusted(known: Relationship, pack: Pack, *, helpful: bool) -> Relationship:
    """After a recall that helped (``trust-gain`` more) or did not (``trust-loss`` less), within 0 and 100."""
    step = pack.number("trust-gain") if helpful else -pack.number("trust-loss")
    return replace(known, trust=_bounded(known.trust + step))


def _bounded(value: float) -> float:
    return min(_MAX, max(0.0, value))


def in_event(known: Relationship) -> dict[str, object]:
    """What an event says of a relationship: the rest is counted."""
    return {
        name: value
        for name, value in asdict(known).items()
        if name in ("agent", "trust", "familiarity")
    }
