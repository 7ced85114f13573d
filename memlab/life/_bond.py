"""What a conversation and a judgement make of the relationship between an agent and its user."""

from __future__ import annotations

from dataclasses import replace

from memlab.memory import Relationship, Relationships, State
from memlab.policies import Pack

__all__ = ["relationship_of", "talked", "trusted"]

_WHOLE = 100.0


def relationship_of(state: State, pack: Pack, agent: str) -> Relationship:
    """What there is between this agent and its user; a new one starts as the settings ``familiarity-start`` and
    ``trust-start`` say (without a past there is nothing to be familiar with, and no reason to trust or to distrust).
    """
    kept = state.registers["relationships"]
    assert isinstance(kept, Relationships)
    found = kept.get(agent)
    return found or Relationship(agent, pack.number("trust-start"), pack.number("familiarity-start"))


def talked(known: Relationship, pack: Pack) -> Relationship:
    """After one more conversation: a share ``familiarity-gain`` of what is missing to 100 is added."""
    gained = (_WHOLE - known.familiarity) * pack.number("familiarity-gain")
    return replace(known, familiarity=_bounded(known.familiarity + gained))


def trusted(known: Relationship, pack: Pack, *, helpful: bool) -> Relationship:
    """After a recall that helped (``trust-gain`` more) or did not (``trust-loss`` less), within 0 and 100."""
    step = pack.number("trust-gain") if helpful else -pack.number("trust-loss")
    return replace(known, trust=_bounded(known.trust + step))


def _bounded(value: float) -> float:
    return min(_WHOLE, max(0.0, value))
