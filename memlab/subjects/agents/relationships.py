"""Relationships of agents and users: familiarity, and trust in the agent's recalls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import polars as pl

from memlab.kernel.base.clock import INSTANT
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

# Trust and familiarity are percentages, as the settings are.
_MAX = 100.0

# Columns of ``Relationships.frame``; times are integers until the frame is built.
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
    """The familiarity of an agent and its user, and the trust in the agent's recalls.

    Attributes
    ----------
    agent
        The name of the agent, as the caller wrote it.
    trust
        0 to 100; it starts with the setting ``trust-start``.
    familiarity
        0 to 100; it starts with the setting ``familiarity-start``.
    conversations
        The number of counted conversations.
    helpful
        The number of "success" judgements.
    unhelpful
        The number of "fail" judgements.
    since
        The time of the first event, in microseconds since 1970 UTC.
    last
        The time of the last event, in microseconds since 1970 UTC.

    Examples
    --------
    >>> import memlab
    >>> relationship = memlab.open().agents.conversation("tutor")
    >>> relationship.agent, relationship.conversations, relationship.helpful
    ('tutor', 1, 0)
    """

    agent: str
    trust: float
    familiarity: float
    conversations: int = 0
    helpful: int = 0
    unhelpful: int = 0
    since: int = 0
    last: int = 0


# The name of an agent in a relationship exists without a memory, so a purge must know its role.
_DECLARED_AGENT = replace(AGENT, held="declared")
_IN_EVENT = mapping_field({"agent": _DECLARED_AGENT, "trust": NUMBER, "familiarity": NUMBER})


class Relationships(Projection):
    """The relationship of each agent with its user, folded from events.

    An event contains the values that a policy decided, so the fold runs no policy.
    """

    name = "relationships"
    kinds = ("conversation", "feedback")
    events = (
        EventType(
            "conversation", "An agent and its user had a conversation.", {"relationship": _IN_EVENT}
        ),
    )
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {"feedback": {"relationship": _IN_EVENT}}
    dumped = list_field(
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
        self._by_agent: dict[str, Relationship] = {}

    def get(self, agent: str) -> Relationship | None:
        """Return the relationship of an agent, or None before the first conversation."""
        return self._by_agent.get(agent)

    def fold(self, event: Event) -> None:
        """Apply an event that changes a relationship: a conversation or feedback."""
        decided = event.body.get("relationship")
        if decided is None:
            return
        agent = decided["agent"]
        relationship = self._by_agent.get(agent) or Relationship(
            agent, 0.0, 0.0, since=event.at, last=event.at
        )
        outcome = event.body.get("outcome")
        self._by_agent[agent] = replace(
            relationship,
            trust=decided["trust"],
            familiarity=decided["familiarity"],
            conversations=relationship.conversations + (event.kind == "conversation"),
            helpful=relationship.helpful + (outcome == "success"),
            unhelpful=relationship.unhelpful + (outcome == "fail"),
            since=min(relationship.since, event.at),
            last=max(relationship.last, event.at),
        )

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per agent, ordered by name; see ``Relationship``."""
        rows = [asdict(self._by_agent[agent]) for agent in sorted(self._by_agent)]
        return pl.DataFrame(rows, schema=_SCHEMA).with_columns(
            pl.col("since", "last").cast(INSTANT)
        )

    def dump(self) -> Any:
        """Return the relationships as plain values for a snapshot."""
        return [asdict(relationship) for relationship in self._by_agent.values()]

    def load(self, dumped: Any) -> None:
        """Restore the relationships from the result of ``dump``."""
        self._by_agent = {row["agent"]: Relationship(**row) for row in dumped}


def get_relationship(state: State, pack: Pack, agent: str) -> Relationship:
    """Return the relationship of an agent and its user.

    A new one starts with the settings ``familiarity-start`` and ``trust-start``: without a history
    there is nothing to be familiar with, and no reason for trust or distrust.
    """
    relationship = state.projection(Relationships).get(agent)
    return relationship or Relationship(
        agent, pack.number("trust-start"), pack.number("familiarity-start")
    )


def make_feedback_fields(
    state: State, pack: Pack, agent: str, outcome: str | None
) -> dict[str, Any]:
    """Return the fields that a feedback event stores about the relationship with the agent."""
    relationship = get_relationship(state, pack, agent)
    return {
        "relationship": make_event_fields(
            relationship
            if outcome is None
            else update_trust(relationship, pack, helpful=outcome == "success")
        )
    }


def count_conversation(relationship: Relationship, pack: Pack) -> Relationship:
    """Return a relationship with familiarity raised for one more conversation."""
    gain = (_MAX - relationship.familiarity) * pack.number("familiarity-gain")
    return replace(relationship, familiarity=_clip(relationship.familiarity + gain))


def update_trust(relationship: Relationship, pack: Pack, *, helpful: bool) -> Relationship:
    """Return a relationship with trust raised or lowered after feedback."""
    step = pack.number("trust-gain") if helpful else -pack.number("trust-loss")
    return replace(relationship, trust=_clip(relationship.trust + step))


def _clip(value: float) -> float:
    """Limit a percentage to the range 0 to 100."""
    return min(_MAX, max(0.0, value))


def make_event_fields(relationship: Relationship) -> dict[str, object]:
    """Return the agent's name, trust and familiarity as fields of an event."""
    return {
        name: value
        for name, value in asdict(relationship).items()
        if name in ("agent", "trust", "familiarity")
    }
