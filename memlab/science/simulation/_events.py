"""The events of a simulated run, which contain the ground truth."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from memlab.errors import DatasetError, InputError, did_you_mean
from memlab.kernel.base.arguments import Seed, checked
from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.base.clock import DAY, HOUR, Micros, to_micros


@checked
@dataclass(frozen=True, slots=True)
class MessageEvent:
    """A message to remember.

    Parameters
    ----------
    at
        The time, in microseconds since 1970 (UTC).
    ref
        The name of the message in the ground truth. Policies cannot read it.
    text
        The words of the message.
    kind
        The kind of memory.
    project, session, speaker
        The project, session and speaker of the memory; None if there is none.
    importance
        The importance, 0 to 1.
    tags
        The tags of the memory.

    Examples
    --------
    >>> MessageEvent(0, "u1", "The deploy day is Friday.").row()["ref"]
    'u1'
    """

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
        """Return the message as a row for ``lab.remember``.

        Returns
        -------
        dict
            The columns of the memory.
        """
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
    """A query with its ground truth: the utility of each memory for the query.

    Parameters
    ----------
    at
        The time, in microseconds since 1970 (UTC).
    number
        The number of the question, from 1.
    text
        The words of the query.
    project
        The project of the recall; None for all projects.
    useful
        The utility, 0 to 1, of the memories that help, by ``ref``.
    otherwise
        The utility of all other memories.

    Examples
    --------
    >>> QuestionEvent(0, 1, "When do we deploy?", useful={"u1": 1.0}).useful["u1"]
    1.0
    """

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
    """The feedback of the user of a simulated run.

    Each memory shown gets feedback with probability ``answers``, independent of rank, score and
    pack. A memory of utility u is judged a success with probability u, unless the user errs.

    Parameters
    ----------
    answers
        The probability of feedback on a memory, 0 to 1.
    errors
        The probability that a judgement is the opposite of the right one, 0 to .5.
    delay_hours
        The mean of the exponential delay of feedback, in hours.

    Examples
    --------
    >>> User(errors=0.1).reward(np.array([0.0, 1.0])).tolist()
    [0.1, 0.9]
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
                raise InputError(
                    f"{name} of a User must be within {low:g}..{high:g}, not {value!r}."
                )

    @checked
    def reward(self, utility: Floats) -> Floats:
        """Return the expected reward of memories, given their utility.

        Parameters
        ----------
        utility
            The utility of each memory, 0 to 1.

        Returns
        -------
        ndarray
            The expected reward of each memory.
        """
        return np.asarray(self.errors + (1.0 - 2.0 * self.errors) * utility)

    @checked
    def react(self, utility: Floats, rng: np.random.Generator) -> Reactions:
        """Draw the user's reactions to memories.

        Parameters
        ----------
        utility
            The utility of each memory, 0 to 1.
        rng
            The random generator.

        Returns
        -------
        Reactions
            Whether, how and when the user judges each memory.
        """
        count = len(utility)
        answered = rng.random(count) < self.answers
        success = rng.random(count) < self.reward(utility)
        delay = np.rint(rng.exponential(self.delay_hours * HOUR, count)).astype(np.int64)
        return Reactions(answered, success, delay)


@dataclass(frozen=True)
class Reactions:
    """The reactions of a user to memories, one value for each memory.

    Parameters
    ----------
    answered
        Whether the user gives feedback on the memory.
    success
        Whether the feedback on the memory is a success.
    delay
        The delay of the feedback, in microseconds.
    """

    answered: Flags
    success: Flags
    delay: Ints


class Script(Protocol):
    """The events of a simulated run: a ``World`` or a ``Transcript``.

    ``packs`` are the packs that log, each with the day from which it is live. The first event is on
    day 0.
    """

    @property
    def name(self) -> str:
        """The name of the script."""

    @property
    def seed(self) -> int:
        """The seed of all random draws."""

    @property
    def user(self) -> User:
        """The simulated user who gives feedback on retrieved memories."""

    @property
    def packs(self) -> Sequence[tuple[int, str]]:
        """The logging packs, each with the day from which the pack is active."""

    def events(self) -> tuple[Event, ...]:
        """Return the events in temporal order.

        Returns
        -------
        tuple
            The events.
        """


def generator(seed: int, concern: str) -> np.random.Generator:
    """Return a random generator for a seed and a purpose, independent of all others."""
    source = np.random.SeedSequence([seed, zlib.crc32(concern.encode())])
    return np.random.Generator(np.random.Philox(source))


def utilities(question: QuestionEvent, index: Mapping[str, int], count: int) -> Floats:
    """Return the utility of each of ``count`` memories for a question.

    ``index`` has the position of each memory by its ref.
    """
    values = np.full(count, question.otherwise)
    for ref, utility in question.useful.items():
        values[index[ref]] = utility
    return values


# Real conversations can be a script: labelled evidence gives the utility of memories.


@checked
@dataclass(frozen=True)
class Transcript:
    """A script made from labelled conversations; evidence is useful for its question.

    Parameters
    ----------
    name
        The name of the script.
    script
        The turns and questions, in order of time.
    unjudged
        The number of questions that were left out because they have no known evidence.
    seed
        The seed of all random draws.
    user
        The user who judges the memories shown.
    packs
        The packs that log, each with the day from which it is live.

    Examples
    --------
    >>> Transcript("one", (MessageEvent(0, "u1", "Hello."),)).events()[0].text
    'Hello.'
    """

    name: str
    script: tuple[Event, ...] = field(repr=False)
    unjudged: int = 0
    seed: Seed = 0
    user: User = field(default_factory=User)
    packs: tuple[tuple[int, str], ...] = ((0, "memlab"),)

    def events(self) -> tuple[Event, ...]:
        """Return the turns and questions in temporal order.

        Returns
        -------
        tuple
            The turns and questions.
        """
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
    """Build a script from labelled conversations.

    Turns and questions are mappings by the name of their conversation, which is also the project of
    the turns.

    Parameters
    ----------
    turns
        The turns of each conversation. A turn is a mapping with ``text``, ``at`` and ``ref``, and
        optionally ``kind``, ``speaker``, ``session`` and ``importance``.
    questions
        The questions of each conversation. A question is a mapping with ``text``, ``evidence``
        (refs of turns) and optionally ``at``. By default, questions come every hour, from one day
        after the last turn.
    name
        The name of the script.
    seed
        The seed of all random draws.
    fractional
        Whether the utility of 1 is divided among the turns of evidence, so that a value is the
        fractional recall. By default each turn of evidence has the utility 1.
    user
        The user who judges the memories shown; ``User()`` by default.
    packs
        The packs that log, each with the day from which it is live.

    Returns
    -------
    Transcript
        The script, with the questions that have evidence.

    Raises
    ------
    DatasetError
        If evidence names a turn that does not exist, or questions a conversation without turns.

    Examples
    --------
    >>> turns = {"talk": [{"ref": "D1:1", "text": "I moved to Graz.", "speaker": "Ida", "at": "2026-01-01"}]}
    >>> questions = {"talk": [{"text": "Where does Ida live?", "evidence": ["D1:1"]}]}
    >>> len(from_conversations(turns, questions).events())
    2
    """
    messages: list[MessageEvent] = []
    drafts: list[tuple[Micros, str, str, dict[str, float]]] = []
    unjudged = 0
    # Evidence is checked while questions are read, because a wrong ref would silently make a question unanswerable.
    for talk, rows in turns.items():
        own = [_turn(talk, row) for row in rows]
        refs = {message.ref for message in own}
        messages += own
        next_at = max((message.at for message in own), default=0) + DAY
        for number, question in enumerate(questions.get(talk, ())):
            evidence = dict.fromkeys(question["evidence"])
            if not evidence:
                unjudged += 1
                continue
            for ref in evidence:
                if f"{talk}/{ref}" not in refs:
                    near = did_you_mean(
                        str(ref), (message.removeprefix(f"{talk}/") for message in refs)
                    )
                    raise DatasetError(
                        f'{talk}, question {number}: the evidence "{ref}" is not a turn of this conversation. {near}'
                    )
            at = to_micros(question["at"]) if question.get("at") is not None else next_at
            next_at = at + HOUR
            utility = 1.0 / len(evidence) if fractional else 1.0
            drafts.append(
                (at, question["text"], talk, {f"{talk}/{ref}": utility for ref in evidence})
            )
    for talk in questions:
        if talk not in turns:
            raise DatasetError(
                f'There are questions about "{talk}", which has no turns. {did_you_mean(talk, turns)}'
            )
    drafts.sort(key=lambda item: item[0])
    events: list[Event] = [
        *messages,
        *(
            QuestionEvent(at, number, text, talk, useful)
            for number, (at, text, talk, useful) in enumerate(drafts, 1)
        ),
    ]
    events.sort(key=lambda event: event.at)
    return Transcript(name, tuple(events), unjudged, seed, user or User(), packs)


def _turn(talk: str, row: Mapping[str, Any]) -> MessageEvent:
    """Convert a turn of a conversation to a message event."""
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
