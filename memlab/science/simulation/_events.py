"""What happens in a simulated life, and what it was worth: the only place where truth is written down."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.errors import DatasetError, InputError, did_you_mean
from memlab.kernel.base.arguments import Seed, checked
from memlab.kernel.base.clock import DAY, HOUR, Micros, to_micros

__all__ = [
    "Event",
    "MessageEvent",
    "QuestionEvent",
    "Reactions",
    "Script",
    "Transcript",
    "User",
    "from_conversations",
    "generator",
    "utilities",
]


@checked
@dataclass(frozen=True, slots=True)
class MessageEvent:
    """Something to remember. ``ref`` names it in the truth and tells a policy nothing."""

    at: Micros
    ref: str
    text: str
    kind: str = "turn"
    project: str | None = None
    session: str | None = None
    speaker: str | None = None
    importance: float = 0.5
    tags: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """As ``lab.remember`` takes it."""
        return {
            "text": self.text,
            "at": self.at,
            "ref": self.ref,
            "kind": self.kind,
            "project": self.project,
            "session": self.session,
            "speaker": self.speaker,
            "importance": self.importance,
            "tags": list(self.tags) or None,
        }


@checked
@dataclass(frozen=True, slots=True)
class QuestionEvent:
    """A question, and the truth about it: the utility (0..1) of each memory by ``ref``; ``otherwise`` of all others."""

    at: Micros
    number: int
    text: str
    project: str | None = None
    useful: Mapping[str, float] = field(default_factory=dict)
    otherwise: float = 0.0


Event = MessageEvent | QuestionEvent


@checked
@dataclass(frozen=True)
class User:
    """How the user of a simulated life gives feedback.

    Each memory shown gets feedback with probability ``answers``, after an exponential delay of mean ``delay_hours``. A
    memory of utility u is called a success with probability u, and the wrong button is pressed with probability
    ``errors``. Nothing else decides: neither rank, nor score, nor pack.
    """

    answers: float = 0.85
    errors: float = 0.04
    delay_hours: float = 12.0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("answers", 0.0, 1.0),
            ("errors", 0.0, 0.5),
            ("delay_hours", 0.0, float("inf")),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise InputError(f"{name} of a User lies in {low:g}..{high:g}, not {value!r}.")

    @checked
    def reward(self, utility: NDArray[np.float64]) -> NDArray[np.float64]:
        """The expected reward of a memory that gets feedback, by its utility."""
        return np.asarray(self.errors + (1.0 - 2.0 * self.errors) * utility)

    @checked
    def react(self, utility: NDArray[np.float64], rng: np.random.Generator) -> Reactions:
        """Whether, how and when the user would react to each of these memories."""
        count = len(utility)
        answered = rng.random(count) < self.answers
        success = rng.random(count) < self.reward(utility)
        delay = np.rint(rng.exponential(self.delay_hours * HOUR, count)).astype(np.int64)
        return Reactions(answered, success, delay)


@dataclass(frozen=True)
class Reactions:
    """For each memory: whether feedback comes, whether it says success, and after how many microseconds."""

    answered: NDArray[np.bool_]
    success: NDArray[np.bool_]
    delay: NDArray[np.int64]


class Script(Protocol):
    """What ``live`` needs: a ``World``, or a ``Transcript`` of conversations.

    ``packs`` are the packs that log, each with the day from which it is live; the first event falls on day 0.
    """

    @property
    def name(self) -> str:
        """What the script is called."""

    @property
    def seed(self) -> int:
        """What decides every draw."""

    @property
    def user(self) -> User:
        """Who judges what is shown."""

    @property
    def packs(self) -> Sequence[tuple[int, str]]:
        """The packs that log, each with the day from which it is live."""

    def events(self) -> tuple[Event, ...]:
        """What happens, in the order of time."""


def generator(seed: int, concern: str) -> np.random.Generator:
    """The generator of one concern: drawing more for one leaves every other as it is."""
    source = np.random.SeedSequence([seed, zlib.crc32(concern.encode())])
    return np.random.Generator(np.random.Philox(source))


def utilities(question: QuestionEvent, place: Mapping[str, int], count: int) -> NDArray[np.float64]:
    """The utility of each of ``count`` memories for a question; ``place`` is the index of each ref."""
    values = np.full(count, question.otherwise)
    for ref, utility in question.useful.items():
        values[place[ref]] = utility
    return values


# Real conversations as a life: labelled evidence becomes what memories are worth.


@checked
@dataclass(frozen=True)
class Transcript:
    """A script for ``live`` that was not invented: turns, questions about them, and the evidence as utility.

    ``unjudged`` counts questions that were left out because no evidence is known.
    """

    name: str
    script: tuple[Event, ...] = field(repr=False)
    unjudged: int = 0
    seed: Seed = 0
    user: User = field(default_factory=User)
    packs: tuple[tuple[int, str], ...] = ((0, "memlab"),)

    def events(self) -> tuple[Event, ...]:
        """The turns and questions, by time."""
        return self.script


@checked
def from_conversations(
    turns: Mapping[str, Iterable[Mapping[str, Any]]],
    questions: Mapping[str, Iterable[Mapping[str, Any]]],
    *,
    name: str = "conversations",
    seed: Seed = 0,
    fractional: bool = False,
    user: User | None = None,
    packs: tuple[tuple[int, str], ...] = ((0, "memlab"),),
) -> Transcript:
    """A life from labelled conversations, given as plain data by the name of each conversation, which is its project.

    A turn has ``text``, ``at``, ``ref`` and what else ``lab.remember`` takes of kind, speaker, session and
    importance: the rows of ``memlab.ingest.Conversation``. A question has ``text``, ``evidence`` (refs of turns) and
    perhaps ``at``; without one, questions come every hour from a day after the last turn on.
    Each turn of evidence is worth 1; with ``fractional`` its share, so that a value is the fractional recall.

    Raises DatasetError where evidence names a turn that is not there.

    >>> turns = {"talk": [{"ref": "D1:1", "text": "I moved to Graz.", "speaker": "Ida", "at": "2026-01-01"}]}
    >>> questions = {"talk": [{"text": "Where does Ida live?", "evidence": ["D1:1"]}]}
    >>> len(from_conversations(turns, questions).events())
    2
    """
    messages: list[MessageEvent] = []
    found: list[tuple[Micros, str, str, dict[str, float]]] = []
    unjudged = 0
    for talk, rows in turns.items():
        mine = [_turn(talk, row) for row in rows]
        known = {one.ref for one in mine}
        messages += mine
        next_at = max((one.at for one in mine), default=0) + DAY
        for number, question in enumerate(questions.get(talk, ())):
            evidence = dict.fromkeys(question["evidence"])
            if not evidence:
                unjudged += 1
                continue
            for ref in evidence:
                if f"{talk}/{ref}" not in known:
                    near = did_you_mean(str(ref), (one.removeprefix(f"{talk}/") for one in known))
                    raise DatasetError(
                        f'{talk}, question {number}: its evidence "{ref}" is no turn of it. {near}'
                    )
            at = to_micros(question["at"]) if question.get("at") is not None else next_at
            next_at = at + HOUR
            worth = 1.0 / len(evidence) if fractional else 1.0
            found.append((at, question["text"], talk, {f"{talk}/{ref}": worth for ref in evidence}))
    for talk in questions:
        if talk not in turns:
            raise DatasetError(
                f'Questions are asked about "{talk}", which has no turns. {did_you_mean(talk, turns)}'
            )
    found.sort(key=lambda item: item[0])
    events: list[Event] = [
        *messages,
        *(
            QuestionEvent(at, number, text, talk, useful)
            for number, (at, text, talk, useful) in enumerate(found, 1)
        ),
    ]
    events.sort(key=lambda event: event.at)
    return Transcript(name, tuple(events), unjudged, seed, user or User(), packs)


def _turn(talk: str, row: Mapping[str, Any]) -> MessageEvent:
    return MessageEvent(
        at=to_micros(row["at"]),
        ref=f"{talk}/{row['ref']}",
        text=row["text"],
        kind=row.get("kind", "turn"),
        project=talk,
        session=row.get("session"),
        speaker=row.get("speaker"),
        importance=row.get("importance", 0.5),
    )
