"""Real conversations as a life: labelled evidence becomes what memories are worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memlab.errors import DatasetError, did_you_mean
from memlab.kernel.base.arguments import Seed, checked
from memlab.kernel.base.clock import HOUR, Micros, to_micros
from memlab.science.simulation._events import Event, MessageEvent, QuestionEvent, User

__all__ = ["Transcript", "from_conversations"]


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
    days_until_questions: float = 1.0,
    every_hours: float = 1.0,
    user: User | None = None,
    packs: tuple[tuple[int, str], ...] = ((0, "memlab"),),
) -> Transcript:
    """A life from labelled conversations, given as plain data by the name of each conversation, which is its project.

    A turn has ``text``, ``at``, ``ref`` and what else ``lab.remember`` takes of kind, speaker, session and
    importance: the rows of ``memlab.ingest.Conversation``. A question has ``text``, ``evidence`` (refs of turns) and
    perhaps ``at``; without one, questions come ``every_hours`` from ``days_until_questions`` after the last turn on.
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
        next_at = max((one.at for one in mine), default=0) + round(days_until_questions * 24 * HOUR)
        for number, question in enumerate(questions.get(talk, ())):
            evidence = dict.fromkeys(question["evidence"])
            if not evidence:
                unjudged += 1
                continue
            for ref in evidence:
                if f"{talk}/{ref}" not in known:
                    near = did_you_mean(str(ref), (one.removeprefix(f"{talk}/") for one in known))
                    raise DatasetError(f'{talk}, question {number}: its evidence "{ref}" is no turn of it. {near}')
            at = to_micros(question["at"]) if question.get("at") is not None else next_at
            next_at = at + round(every_hours * HOUR)
            worth = 1.0 / len(evidence) if fractional else 1.0
            found.append((at, question["text"], talk, {f"{talk}/{ref}": worth for ref in evidence}))
    for talk in questions:
        if talk not in turns:
            raise DatasetError(f'Questions are asked about "{talk}", which has no turns. {did_you_mean(talk, turns)}')
    found.sort(key=lambda item: item[0])
    events: list[Event] = [
        *messages,
        *(QuestionEvent(at, number, text, talk, useful) for number, (at, text, talk, useful) in enumerate(found, 1)),
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
