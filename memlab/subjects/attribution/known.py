"""What was said of each shown memory so far, stated or attributed, and how sure an attribution is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from memlab.kernel.journal import Event
from memlab.kernel.slates import ATTRIBUTED
from memlab.kernel.state import HASH, MEMORY_ID, NUMBER, WORD, EventType, Field, Projection, listed, mapping
from memlab.subjects.attribution.confidence import Calibration, calibration_in

__all__ = ["Calibrated", "Credited"]

_KEPT = 100_000
"""Decisions that are remembered. Of an older one an answer may be read twice, and still counts once in a log."""


class Credited(Projection):
    """Of each of the latest decisions: what somebody stated, what was attributed, and which answers were read."""

    name: ClassVar[str] = "credited"
    kinds: ClassVar[tuple[str, ...]] = ("feedback",)
    dumped: ClassVar[Field] = Field(
        "tuple",
        items=(
            listed(NUMBER, MEMORY_ID),
            listed(NUMBER, listed(MEMORY_ID, NUMBER)),
            listed(NUMBER, WORD),
        ),
    )
    exported: ClassVar[bool] = False
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {
        "feedback": {
            "confidence": NUMBER,
            "policy": HASH,
            "answer": WORD,
            "cues": mapping({"*": NUMBER}),
        }
    }

    def __init__(self) -> None:
        self._stated: dict[int, set[int]] = {}
        self._rewards: dict[int, dict[int, float]] = {}
        self._answers: dict[int, set[str]] = {}

    def stated(self, decision: int, memory: int) -> bool:
        """Whether somebody judged this memory of this decision."""
        return memory in self._stated.get(decision, ())

    def reward(self, decision: int, memory: int) -> float | None:
        """What was attributed to this memory of this decision, if anything was."""
        return self._rewards.get(decision, {}).get(memory)

    def read(self, decision: int, answer: str) -> bool:
        """Whether the answer of this mark was read for this decision."""
        return answer in self._answers.get(decision, ())

    def fold(self, event: Event) -> None:
        body = event.body
        decision = body.get("decision")
        if decision is None:
            return
        if body.get("source") != ATTRIBUTED:
            _of(self._stated, decision, set()).add(body["memory"])
            return
        if body.get("reward") is not None:
            _of(self._rewards, decision, {})[body["memory"]] = body["reward"]
        if "answer" in body:
            _of(self._answers, decision, set()).add(body["answer"])

    def dump(self) -> Any:
        return [
            [[decision, sorted(ids)] for decision, ids in self._stated.items()],
            [[decision, list(found.items())] for decision, found in self._rewards.items()],
            [[decision, sorted(marks)] for decision, marks in self._answers.items()],
        ]

    def load(self, dumped: Any) -> None:
        stated, rewards, answers = dumped
        self._stated = {decision: set(ids) for decision, ids in stated}
        self._rewards = {decision: dict(found) for decision, found in rewards}
        self._answers = {decision: set(marks) for decision, marks in answers}


_CALIBRATION = {
    "policy": HASH,
    "method": WORD,
    "pairs": NUMBER,
    "credit": NUMBER,
    "useful": NUMBER,
    "brier": NUMBER,
    "before": NUMBER,
}


class Calibrated(Projection):
    """The latest calibration of each version of the policy ``credit``."""

    name: ClassVar[str] = "calibrated"
    kinds: ClassVar[tuple[str, ...]] = ("calibrate",)
    events: ClassVar[tuple[EventType, ...]] = (
        EventType("calibrate", "The confidence of attributed feedback was fitted to stated feedback.", _CALIBRATION),
    )
    dumped: ClassVar[Field] = listed(mapping(_CALIBRATION))
    exported: ClassVar[bool] = False

    def __init__(self) -> None:
        self._latest: dict[str, Calibration] = {}

    def of(self, policy: str) -> Calibration | None:
        """The calibration of the policy of this hash."""
        return self._latest.get(policy)

    def fold(self, event: Event) -> None:
        self._latest[event.body["policy"]] = calibration_in(event.body)

    def shows(self, kind: str, body: dict[str, Any], *, viewer: str, seen: bool) -> bool | None:
        return False  # it was made of what all stated

    def dump(self) -> Any:
        return [one.body for one in self._latest.values()]

    def load(self, dumped: Any) -> None:
        self._latest = {body["policy"]: calibration_in(body) for body in dumped}


def _of(kept: dict[int, Any], decision: int, first: Any) -> Any:
    """What is kept of a decision, from ``first`` on; the oldest goes where there are too many."""
    if decision not in kept and len(kept) >= _KEPT:
        del kept[next(iter(kept))]
    return kept.setdefault(decision, first)
