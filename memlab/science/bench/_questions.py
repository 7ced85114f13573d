"""Collect the questions of a benchmark, with the evidence of each set of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import polars as pl

from memlab.errors import DatasetError, InputError, did_you_mean
from memlab.subjects.questions.questions import LabQuestions

PUBLISHED = "published"
"""The name of the labels that were published with the conversations."""
QUESTION_DELAY = timedelta(days=1)
"""The time from the end of a conversation to its questions, if the questions have no time."""


class LabelledQuestion(Protocol):
    """A question about a conversation, with its labels."""

    @property
    def text(self) -> str:
        """The words of the question."""

    @property
    def category(self) -> int | str:
        """The category of the question in the benchmark."""

    @property
    def evidence(self) -> Sequence[str]:
        """The refs of the turns that answer the question."""

    @property
    def answerable(self) -> bool:
        """Whether the conversation contains an answer to the question."""

    @property
    def at(self) -> datetime | None:
        """The time of the question, or None for one day after the conversation."""


class Conversation(Protocol):
    """A conversation with its turns as rows for a lab."""

    @property
    def name(self) -> str:
        """The name of the conversation."""

    @property
    def end(self) -> datetime:
        """The time of the last turn."""

    def rows(self, *, project: str | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the turns as rows for ``lab.remember``."""


class Labelled(Protocol):
    """A conversation with its questions, such as ``memlab.ingest.LabelledConversation``."""

    @property
    def conversation(self) -> Conversation:
        """The conversation that the questions are about."""

    @property
    def questions(self) -> Sequence[LabelledQuestion]:
        """The labelled questions about the conversation."""


@dataclass(frozen=True)
class PlannedQuestion:
    """A question with its recall arguments, and its evidence under each set of labels.

    Questions with the same ``cluster`` depend on each other as evidence about a pack.
    """

    id: str
    text: str
    project: str | None
    at: datetime | None
    category: int | str
    cluster: str
    evidence: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Plan:
    """The questions of a benchmark: answerable questions first, then the others.

    ``main`` is the number of answerable questions, ``unjudged`` the number of questions without
    evidence. ``sets`` are the names of the sets of labels.
    """

    questions: tuple[PlannedQuestion, ...]
    main: int
    unjudged: int
    sets: tuple[str, ...] = (PUBLISHED,)


def collect_questions(source: Sequence[Labelled], others: Mapping[str, Sequence[Labelled]]) -> Plan:
    """Collect the questions that have evidence in at least one label set."""
    # All sets must label the same questions in the same order. Otherwise their evidence would be mixed up.
    sides = [_pair_questions(source), *(_pair_questions(other) for other in others.values())]
    for name, side in zip(others, sides[1:], strict=True):
        if [(conversation.name, question.text) for conversation, question in side] != [
            (conversation.name, other.text) for conversation, other in sides[0]
        ]:
            raise InputError(
                f'The labels "{name}" must have the same questions in the same order as '
                "the published labels, but they differ."
            )
    judged: list[PlannedQuestion] = []
    unanswerable: list[PlannedQuestion] = []
    numbers: dict[str, int] = {}
    for labelled in zip(*sides, strict=True):
        conversation, question = labelled[0]
        number = numbers[conversation.name] = numbers.get(conversation.name, 0) + 1
        evidence = tuple(frozenset(labelled_question.evidence) for _, labelled_question in labelled)
        if not any(evidence):
            continue
        item = PlannedQuestion(
            f"{conversation.name}/q{number}",
            question.text,
            conversation.name,
            question.at or conversation.end + QUESTION_DELAY,
            question.category,
            conversation.name,
            evidence,
        )
        (judged if question.answerable else unanswerable).append(item)
    if not judged:
        raise DatasetError(
            "No answerable question has evidence, so there is nothing to measure. Pass conversations with labelled "
            "questions."
        )
    unjudged = len(sides[0]) - len(judged) - len(unanswerable)
    return Plan((*judged, *unanswerable), len(judged), unjudged, (PUBLISHED, *others))


def _pair_questions(source: Sequence[Labelled]) -> list[tuple[Conversation, LabelledQuestion]]:
    """Return each question, paired with its conversation."""
    return [
        (labelled.conversation, question) for labelled in source for question in labelled.questions
    ]


# Questions to a user's lab, with the memories that they want.


class OwnQuestion(Protocol):
    """A question to a user's lab, such as ``memlab.ingest.WantedMemories``."""

    @property
    def text(self) -> str:
        """The words of the question."""

    @property
    def wanted(self) -> Sequence[str]:
        """The ids, refs or texts of the wanted memories."""

    @property
    def project(self) -> str | None:
        """The project of the recall, or None for all projects."""

    @property
    def at(self) -> datetime | None:
        """The time of the question, or None for the current time."""

    @property
    def category(self) -> str:
        """The category of the question."""


@dataclass(frozen=True)
class _Question:
    """A row of a user's frame of questions."""

    text: str
    wanted: tuple[str, ...]
    project: str | None
    at: datetime | None
    category: str


# Columns of a frame of questions; the first two are required.
_COLUMNS = ("question", "wanted", "project", "at", "category")


def own_questions(source: object) -> Sequence[OwnQuestion]:
    """Convert a frame or ``lab.questions`` to questions; return other sequences unchanged.

    Raises
    ------
    InputError
        If the argument is neither a frame nor a sequence, or if a frame has a wrong column or
        value.
    """
    if isinstance(source, LabQuestions):
        own = source.frame.filter("accepted")
        source = own.select("project", "at", "category", question="query", wanted="wants")
    if not isinstance(source, pl.DataFrame):
        if not isinstance(source, Sequence) or isinstance(source, str):
            raise InputError(
                "questions must be a frame with the columns question and wanted, or the result of "
                f"memlab.ingest.read_questions(path), not {type(source).__name__}."
            )
        return source
    # Frames come from users, so each row is checked, and errors name the row.
    for name in source.columns:
        if name not in _COLUMNS:
            raise InputError(
                f'A frame of questions cannot have a column "{name}". {did_you_mean(name, _COLUMNS)}'
            )
    for name in _COLUMNS[:2]:
        if name not in source.columns:
            raise InputError(f"A frame of questions needs the column {name}. Add it.")
    questions = []
    for number, row in enumerate(source.iter_rows(named=True)):
        text, wanted, at = row["question"], row["wanted"], row.get("at")
        if not isinstance(text, str) or not text.strip():
            raise InputError(
                f"Row {number} of the questions has no question. Write its text in the column question."
            )
        listed = wanted if isinstance(wanted, list) else [] if wanted is None else [wanted]
        if not all(isinstance(item, str | int) for item in listed):
            raise InputError(
                f"Row {number} of the questions has {listed!r:.60} in the column wanted. "
                "Write ids, refs or texts of memories."
            )
        if at is not None and not isinstance(at, datetime):
            raise InputError(f"Row {number} of the questions: at must be a time, not {at!r:.40}.")
        names = tuple(str(item) for item in listed)
        questions.append(_Question(text, names, row.get("project"), at, row.get("category") or ""))
    return questions


def own_plan(memories: pl.DataFrame, questions: Sequence[OwnQuestion]) -> Plan:
    """Resolve the wanted memories of each question to ids, and list the recalls to measure."""
    lookup = _Names(memories)
    by_project = len({question.project for question in questions if question.wanted}) > 1
    items = []
    for number, question in enumerate(questions, 1):
        ids = {item for wanted in question.wanted for item in lookup.ids(wanted, question)}
        cluster = question.project or "" if by_project else f"q{number}"
        items.append(
            PlannedQuestion(
                f"q{number}",
                question.text,
                question.project,
                question.at,
                question.category or "all",
                cluster,
                (frozenset(ids),),
            )
        )
    judged = tuple(item for item in items if item.evidence[0])
    if not judged:
        raise DatasetError(
            "No question wants a memory, so there is nothing to measure. Fill the column wanted."
        )
    return Plan(judged, len(judged), len(items) - len(judged))


class _Names:
    """The ids of a lab's memories, found by id, by ref within a project, or by text."""

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
        """Return the memory ids of an id, or of a ref or text in the question's project; else raise DatasetError."""
        if wanted in self._ids:
            return [wanted]
        for table in (self._refs, self._texts):
            if ids := self._within(table.get(wanted, []), question.project):
                return ids
        raise DatasetError(
            f'The question "{question.text[:80]}" wants "{wanted[:80]}", which is not an id, ref or text of a memory'
            f"{f' in project {question.project}' if question.project else ''}.{self._nearest(wanted)}"
        )

    def _within(self, names: list[str], project: str | None) -> list[str]:
        """Keep ids of memories in a project or in no project; keep all if the project is None."""
        return [
            name for name in names if project is None or self._projects[name] in (project, None)
        ]

    def _nearest(self, wanted: str) -> str:
        """Return a hint that quotes the stored text with most words of ``wanted``, or "" if few are shared.

        At least half of the words must be shared.
        """
        words = set(wanted.lower().split())
        best = max(self._texts, key=lambda text: len(words & set(text.lower().split())), default="")
        shared = len(words & set(best.lower().split()))
        return f' The nearest text is "{best[:80]}".' if words and 2 * shared >= len(words) else ""
