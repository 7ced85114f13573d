"""What happens in a simulated life, and what it was worth: the only place where truth is written down."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import HOUR, Micros

__all__ = ["Event", "MessageEvent", "QuestionEvent", "Reactions", "Script", "User", "generator", "utilities"]


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
        for name, low, high in (("answers", 0.0, 1.0), ("errors", 0.0, 0.5), ("delay_hours", 0.0, float("inf"))):
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
