"""What was said of each shown memory so far, stated or attributed, and how sure an attribution is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.journal import Event
from memlab.kernel.slates import ATTRIBUTED
from memlab.kernel.state import (
    HASH,
    MEMORY_ID,
    NUMBER,
    WORD,
    EventType,
    Field,
    Projection,
    list_field,
    mapping_field,
)

__all__ = ["LEAST", "Calibrated", "Calibration", "Credited", "calibration", "calibration_in"]


# From a credit to the chance that the memory was of use: a curve that rises, fitted to what somebody judged.


Floats = NDArray[np.float64]

LEAST = 30
"""Judged credits that a calibration needs, with both outcomes among them."""

_ENOUGH = 200
"""From so many on the curve may have any rising form; below it is a logistic one, which has two numbers."""

_KNOTS = 21


@dataclass(frozen=True)
class Calibration(Displayed):
    """A curve that gives the chance of use at a credit, fitted to what somebody judged.

    It is ``useful[i]`` at ``credit[i]``, and between two of them on the line that joins them. ``brier`` is the mean
    squared error of the curve on the ``pairs`` that it was fitted to, ``before`` that of the credit read as a chance.
    """

    policy: str
    method: str
    pairs: int
    credit: tuple[float, ...] = field(repr=False)
    useful: tuple[float, ...] = field(repr=False)
    brier: float
    before: float

    @property
    def body(self) -> dict[str, Any]:
        """It as an event holds it."""
        return {**vars(self), "credit": list(self.credit), "useful": list(self.useful)}

    @checked
    def chance(self, credit: Floats) -> Floats:
        """The chance that memories of these credits were of use."""
        return np.asarray(np.interp(credit, self.credit, self.useful))

    @checked
    def confidence(self, credit: Floats) -> Floats:
        """The chance that a reward is on the right side of a half; of what misled, that it was used at all."""
        chance = self.chance(np.abs(credit))
        return np.where((credit >= 0.5) | (credit < 0), chance, 1.0 - chance)

    def __repr__(self) -> str:
        return printable(
            f"<Calibration {self.method} of {self.pairs} judged credits: mean squared error {self.brier:.3f}, "
            f"{self.before:.3f} before, policy [{self.policy[:12]}]>"
        )


def calibration_in(body: dict[str, Any]) -> Calibration:
    """The calibration that an event holds."""
    return Calibration(**{**body, "credit": tuple(body["credit"]), "useful": tuple(body["useful"])})


def calibration(policy: str, credit: Floats, useful: Floats) -> Calibration:
    """The curve of the policy of this hash, from credits (0-1) and how they were judged (0-1).

    Isotonic from 200 pairs on, else logistic. InputError with fewer than ``LEAST`` pairs, or if all were judged alike.
    """
    if len(credit) < LEAST:
        raise InputError(f"A calibration needs {LEAST} judged credits, and here are {len(credit)}.")
    if len(np.unique(useful >= 0.5)) < 2:
        raise InputError(
            "A calibration needs judgements of both kinds, and all of these are alike."
        )
    # where the credits are, and evenly: most of them are near 0, and those that count are not
    knots = np.unique(
        np.concatenate((np.quantile(credit, np.linspace(0, 1, _KNOTS)), np.linspace(0, 1, _KNOTS)))
    )
    if len(credit) >= _ENOUGH:
        from sklearn.isotonic import IsotonicRegression

        method = "isotonic"
        fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(credit, useful)
        curve = np.asarray(fitted.predict(knots))
    else:
        from sklearn.linear_model import LogisticRegression

        method = "logistic"
        model = LogisticRegression().fit(credit[:, None], useful >= 0.5)
        # credits that speak against themselves say nothing: the curve never falls
        curve = np.maximum.accumulate(model.predict_proba(knots[:, None])[:, 1])
    # no finite sample shows that a chance is 0 or 1
    curve = np.clip(curve, 1 / (len(credit) + 2), 1 - 1 / (len(credit) + 2))
    error = float(np.mean((np.interp(credit, knots, curve) - useful) ** 2))
    before = float(np.mean((credit - useful) ** 2))
    return Calibration(
        policy,
        method,
        len(credit),
        tuple(knots.tolist()),
        tuple(curve.round(6).tolist()),
        error,
        before,
    )


_KEPT = 100_000
"""Decisions that are remembered. Of an older one an answer may be read twice, and still counts once in a log."""


class Credited(Projection):
    """Of each of the latest decisions: what somebody stated, what was attributed, and which answers were read."""

    name: ClassVar[str] = "credited"
    kinds: ClassVar[tuple[str, ...]] = ("feedback",)
    dumped: ClassVar[Field] = Field(
        "tuple",
        items=(
            list_field(NUMBER, MEMORY_ID),
            list_field(NUMBER, list_field(MEMORY_ID, NUMBER)),
            list_field(NUMBER, WORD),
        ),
    )
    exported: ClassVar[bool] = False
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {
        "feedback": {
            "confidence": NUMBER,
            "policy": HASH,
            "answer": WORD,
            "cues": mapping_field({"*": NUMBER}),
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
        EventType(
            "calibrate",
            "The confidence of attributed feedback was fitted to stated feedback.",
            _CALIBRATION,
        ),
    )
    dumped: ClassVar[Field] = list_field(mapping_field(_CALIBRATION))
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
