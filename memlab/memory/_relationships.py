"""Relationships: how well an agent and its user know each other, and how far what it recalls is trusted."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from memlab.memory._registers import Happened

__all__ = ["Relationship", "Relationships"]

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
    """One agent's: trust and familiarity (0-100), what they come from, its first and last instant (microseconds)."""

    agent: str
    trust: float
    familiarity: float
    conversations: int = 0
    helpful: int = 0
    unhelpful: int = 0
    since: int = 0
    last: int = 0


class Relationships:
    """Relationships by agent. What a conversation or a judgement makes of one was decided when it was written."""

    kinds: tuple[str, ...] = ("conversation", "feedback")

    def __init__(self) -> None:
        self._known: dict[str, Relationship] = {}

    def get(self, agent: str) -> Relationship | None:
        """The relationship of this agent, if it has begun."""
        return self._known.get(agent)

    def fold(self, event: Happened) -> None:
        now = event.body.get("relationship")
        if now is None:
            return
        agent = now["agent"]
        known = self._known.get(agent) or Relationship(agent, 0.0, 0.0, since=event.at, last=event.at)
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
