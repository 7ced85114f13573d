"""What a bench asks, once for all packs, and what each set of labels says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import polars as pl

from memlab.errors import DatasetError, InputError, did_you_mean

__all__ = [
    "PUBLISHED",
    "Asked",
    "Held",
    "Labelled",
    "LabelledQuestion",
    "OwnQuestion",
    "Plan",
    "own_plan",
    "own_questions",
    "plan_of",
]


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
        if [(who.name, question.text) for who, question in side] != [
            (who.name, ask.text) for who, ask in sides[0]
        ]:
            raise InputError(
                f'The labels "{name}" are not of the same questions in the same order.'
            )
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
    return [
        (labelled.conversation, question) for labelled in source for question in labelled.questions
    ]


# Questions to a lab of one's own: which of its memories they want.


class OwnQuestion(Protocol):
    """A question to a lab, such as ``memlab.ingest.WantedMemories``."""

    @property
    def text(self) -> str: ...
    @property
    def wanted(self) -> Sequence[str]: ...
    @property
    def project(self) -> str | None: ...
    @property
    def at(self) -> datetime | None: ...
    @property
    def category(self) -> str: ...


@dataclass(frozen=True)
class _Question:
    """A row of a frame of questions."""

    text: str
    wanted: tuple[str, ...]
    project: str | None
    at: datetime | None
    category: str


_COLUMNS = ("question", "wanted", "project", "at", "category")


def own_questions(given: object) -> Sequence[OwnQuestion]:
    """Return questions that were read from a file as they are, and the rows of a frame as questions.

    Raises
    ------
    InputError
        If ``given`` is neither, or a frame has a column that questions do not have or lacks one that they need.
    """
    if not isinstance(given, pl.DataFrame):
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise InputError(
                "questions is a frame with the columns question and wanted, or what "
                f"memlab.io.ingest.read_questions(path) returns; not {type(given).__name__}."
            )
        return given
    for name in given.columns:
        if name not in _COLUMNS:
            raise InputError(
                f'A frame of questions has no column "{name}". {did_you_mean(name, _COLUMNS)}'
            )
    for name in _COLUMNS[:2]:
        if name not in given.columns:
            raise InputError(f"A frame of questions needs the column {name}.")
    questions = []
    for number, row in enumerate(given.iter_rows(named=True)):
        text, wanted, at = row["question"], row["wanted"], row.get("at")
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"Row {number} of the questions has no question.")
        several = wanted if isinstance(wanted, list) else [] if wanted is None else [wanted]
        if not all(isinstance(one, str | int) for one in several):
            raise InputError(
                f"Row {number} of the questions wants {several!r:.60}; ids, refs or texts are wanted."
            )
        if at is not None and not isinstance(at, datetime):
            raise InputError(f"Row {number} of the questions: at is a time, not {at!r:.40}.")
        names = tuple(str(one) for one in several)
        questions.append(_Question(text, names, row.get("project"), at, row.get("category") or ""))
    return questions


def own_plan(memories: pl.DataFrame, questions: Sequence[OwnQuestion]) -> Plan:
    """Each question with the ids of the memories that it wants; those that want none are not asked."""
    named = _Names(memories)
    by_project = len({question.project for question in questions if question.wanted}) > 1
    asked = []
    for number, question in enumerate(questions, 1):
        ids = {one for wanted in question.wanted for one in named.ids(wanted, question)}
        cluster = question.project or "" if by_project else f"q{number}"
        asked.append(
            Asked(
                f"q{number}",
                question.text,
                question.project,
                question.at,
                question.category or "all",
                cluster,
                (frozenset(ids),),
            )
        )
    judged = tuple(one for one in asked if one.evidence[0])
    if not judged:
        raise DatasetError("No question wants a memory: there is nothing to measure.")
    return Plan(judged, len(judged), len(asked) - len(judged))


class _Names:
    """Memories by id, then by ref within a project, then by text."""

    def __init__(self, memories: pl.DataFrame) -> None:
        columns = memories.select("id", "ref", "text", "project").iter_rows()
        self._ids: set[str] = set()
        self._projects: dict[str, str | None] = {}
        self._refs: dict[str, list[str]] = {}
        self._texts: dict[str, list[str]] = {}
        for id, ref, text, project in columns:
            name = str(id)
            self._ids.add(name)
            self._projects[name] = project
            if ref is not None:
                self._refs.setdefault(ref, []).append(name)
            self._texts.setdefault((text or "").strip(), []).append(name)

    def ids(self, wanted: str, question: OwnQuestion) -> list[str]:
        if wanted in self._ids:
            return [wanted]
        for table in (self._refs, self._texts):
            if found := self._within(table.get(wanted, []), question.project):
                return found
        raise DatasetError(
            f'The question "{question.text[:80]}" wants "{wanted[:80]}", which is no id, ref or text of a memory'
            f"{f' in project {question.project}' if question.project else ''}.{self._nearest(wanted)}"
        )

    def _within(self, names: list[str], project: str | None) -> list[str]:
        return [
            name for name in names if project is None or self._projects[name] in (project, None)
        ]

    def _nearest(self, wanted: str) -> str:
        """The text that shares most words with what was wanted, if one shares half of them."""
        words = set(wanted.lower().split())
        best = max(self._texts, key=lambda text: len(words & set(text.lower().split())), default="")
        shared = len(words & set(best.lower().split()))
        return f' The nearest text is "{best[:80]}".' if words and 2 * shared >= len(words) else ""
