"""A fact as extraction reads it, and how sure its rules are before anything else is known of it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CHANGED",
    "DOUBTFUL",
    "INFERRED",
    "LOWEST",
    "OPEN",
    "SAID_OF_OTHERS",
    "SURE",
    "TEAM",
    "USER",
    "Fact",
    "Subject",
]

USER, TEAM = "user", "team"

SURE, CHANGED, SAID_OF_OTHERS, INFERRED = 0.95, 0.92, 0.85, 0.6
"""Of oneself, of a move or a new post, of others, concluded by an assistant."""

OPEN = 0.55
"""Of a property whose noun no judged fact had: below .6 until such facts are judged."""

LOWEST = 0.44
"""Below it no fact is proposed: fewer than half of such facts are useful."""

DOUBTFUL = 0.5
"""The highest confidence of a fact whose value rarely fits its predicate: below .6, where facts are acted on."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A subject, a predicate and a value; ``entity`` says whether that is an entity. ``start`` and ``stop``: its place.

    ``kind`` is the kind of memory that it makes, ``confidence`` how sure the rule is, 0-1. ``text`` says it as a
    sentence where subject, predicate and value do not, with {subject} and {possessive} for whom it is about.
    """

    subject: str
    predicate: str
    value: str
    entity: bool
    kind: str
    confidence: float
    start: int
    stop: int
    text: str | None = None


@dataclass(slots=True)
class Subject:
    """Who a clause speaks of, and where its verb may begin. ``own``: the verb is as one says it of oneself."""

    name: str
    own: bool
    verb: int
    start: int
    thing: bool = False
