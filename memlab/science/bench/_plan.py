"""What a bench asks, once for all packs, and what each set of labels says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from memlab.errors import DatasetError, InputError

__all__ = ["PUBLISHED", "Asked", "Held", "Labelled", "LabelledQuestion", "Plan", "plan_of"]

PUBLISHED = "published"
"""The labels that came with the conversations."""
_QUESTION_DELAY = timedelta(days=1)


class LabelledQuestion(Protocol):
    """A question with its labels."""

    @property
    def text(self) -> str: ...
    @property
    def category(self) -> int | str: ...
    @property
    def evidence(self) -> Sequence[str]: ...
    @property
    def answerable(self) -> bool: ...
    @property
    def at(self) -> datetime | None: ...


class Held(Protocol):
    """A conversation: its rows are all that a lab sees."""

    @property
    def name(self) -> str: ...
    @property
    def end(self) -> datetime: ...
    def rows(self, *, project: str | None = None) -> Sequence[Mapping[str, Any]]: ...


class Labelled(Protocol):
    """A conversation with what is asked about it, such as ``memlab.ingest.LabelledConversation``."""

    @property
    def conversation(self) -> Held: ...
    @property
    def questions(self) -> Sequence[LabelledQuestion]: ...


@dataclass(frozen=True)
class Asked:
    """A question, how it is asked, and its evidence by each set of labels. Those of one ``cluster`` are no independent
    evidence of a pack."""

    id: str
    text: str
    project: str | None
    at: datetime | None
    category: int | str
    cluster: str
    evidence: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Plan:
    """Answerable questions first (``main`` of them), the others after them; ``sets`` names the sets of labels."""

    questions: tuple[Asked, ...]
    main: int
    unjudged: int
    sets: tuple[str, ...] = (PUBLISHED,)


def plan_of(source: Sequence[Labelled], others: Mapping[str, Sequence[Labelled]]) -> Plan:
    """Every question that some set of labels gives evidence for. ``others`` label the same questions anew."""
    sides = [_flat(source), *(_flat(other) for other in others.values())]
    for name, side in zip(others, sides[1:], strict=True):
        if [(who.name, question.text) for who, question in side] != [(who.name, ask.text) for who, ask in sides[0]]:
            raise InputError(f'The labels "{name}" are not of the same questions in the same order.')
    judged: list[Asked] = []
    apart: list[Asked] = []
    numbers: dict[str, int] = {}
    for same in zip(*sides, strict=True):
        held, question = same[0]
        number = numbers[held.name] = numbers.get(held.name, 0) + 1
        evidence = tuple(frozenset(one.evidence) for _, one in same)
        if not any(evidence):
            continue
        asked = Asked(
            f"{held.name}/q{number}",
            question.text,
            held.name,
            question.at or held.end + _QUESTION_DELAY,
            question.category,
            held.name,
            evidence,
        )
        (judged if question.answerable else apart).append(asked)
    if not judged:
        raise DatasetError("No answerable question has evidence: there is nothing to measure.")
    unjudged = len(sides[0]) - len(judged) - len(apart)
    return Plan((*judged, *apart), len(judged), unjudged, (PUBLISHED, *others))


def _flat(source: Sequence[Labelled]) -> list[tuple[Held, LabelledQuestion]]:
    return [(labelled.conversation, question) for labelled in source for question in labelled.questions]
