"""Registers of judgements and attributed rewards, and the calibration of credits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import Floats
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.journal import Body, Event
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
from memlab.science.regression import fit_isotonic, fit_logistic, predict_chance

# -- calibration: a rising curve from credit to probability of use, fitted to judgements


MIN_PAIRS = 30
"""The minimum number of judged credits of a calibration; both outcomes must occur."""

_ENOUGH = 200
"""The minimum pairs for an isotonic curve.

With fewer pairs, a logistic curve with two parameters is fitted.
"""

_KNOTS = 21
"""The number of quantiles, and of evenly spaced credits, at which the curve is stored."""


@dataclass(frozen=True)
class Calibration(Displayed):
    """A curve from credit to probability of use, fitted to judgements.

    The curve has the value ``useful[i]`` at ``credit[i]``, and is linear in between.

    Attributes
    ----------
    policy
        The hash of the policy ``credit`` whose credits were judged.
    method
        The method of the fit: "isotonic", "logistic" or "none".
    pairs
        The number of judged credits.
    credit
        The credits at which the curve is stored, ascending.
    useful
        The probability of use at each of these credits.
    brier
        The mean squared error of the curve on the judged credits.
    before
        The mean squared error of the credits themselves, taken as probabilities.

    Examples
    --------
    >>> curve = Calibration("hash", "none", 0, (0.0, 1.0), (0.2, 0.8), 0.0, 0.0)
    >>> curve.chance(np.array([0.0, 0.5])).tolist()
    [0.2, 0.5]
    """

    policy: str
    method: str
    pairs: int
    credit: tuple[float, ...] = field(repr=False)
    useful: tuple[float, ...] = field(repr=False)
    brier: float
    before: float

    @property
    def body(self) -> Body:
        """The fields of the event that stores this calibration."""
        return {**vars(self), "credit": list(self.credit), "useful": list(self.useful)}

    @checked
    def chance(self, credit: Floats) -> Floats:
        """Return the probability that a memory was used, given its credit.

        Parameters
        ----------
        credit
            The credits, 0 to 1.

        Returns
        -------
        ndarray
            The probability of use at each credit.

        Examples
        --------
        >>> curve = Calibration("hash", "none", 0, (0.0, 1.0), (0.0, 1.0), 0.0, 0.0)
        >>> curve.chance(np.array([0.25])).tolist()
        [0.25]
        """
        return np.asarray(np.interp(credit, self.credit, self.useful))

    @checked
    def confidence(self, credit: Floats) -> Floats:
        """Return the probability that each inferred reward is on the correct side of 0.5.

        For a negative credit, the result is the probability that the memory was used at all.

        Parameters
        ----------
        credit
            The credits, -1 to 1.

        Returns
        -------
        ndarray
            The confidence in the reward of each credit.

        Examples
        --------
        >>> curve = Calibration("hash", "none", 0, (0.0, 1.0), (0.0, 1.0), 0.0, 0.0)
        >>> curve.confidence(np.array([0.25, 0.75])).tolist()
        [0.75, 0.75]
        """
        chance = self.chance(np.abs(credit))
        return np.where((credit >= 0.5) | (credit < 0), chance, 1.0 - chance)

    def __repr__(self) -> str:
        return printable(
            f"<Calibration {self.method} of {self.pairs} judged credits: mean squared error {self.brier:.3f}, "
            f"{self.before:.3f} before, policy [{self.policy[:12]}]>"
        )


def read_calibration(body: Body) -> Calibration:
    """Return the calibration that the body of an event stores."""
    return Calibration(**{**body, "credit": tuple(body["credit"]), "useful": tuple(body["useful"])})


def fit_calibration(policy: str, credit: Floats, useful: Floats) -> Calibration:
    """Fit the curve of a policy to pairs of a credit and a judgement.

    The curve is isotonic if there are at least 200 pairs, otherwise logistic. InputError is raised
    if there are fewer than ``MIN_PAIRS`` pairs, or if all judgements are equal.
    """
    if len(credit) < MIN_PAIRS:
        raise InputError(
            f"A calibration needs {MIN_PAIRS} judged credits, not {len(credit)}. Judge more hits with lab.feedback."
        )
    if len(np.unique(useful >= 0.5)) < 2:
        raise InputError(
            "A calibration needs helpful and unhelpful memories, but all judgements are equal. Judge hits of both kinds."
        )
    # Most credits are near 0, so quantiles alone would place too few knots among the credits that matter.
    knots = np.unique(
        np.concatenate((np.quantile(credit, np.linspace(0, 1, _KNOTS)), np.linspace(0, 1, _KNOTS)))
    )
    if len(credit) >= _ENOUGH:
        method = "isotonic"
        curve = np.interp(knots, *fit_isotonic(credit, useful))
    else:
        method = "logistic"
        weights = fit_logistic(credit[:, None], useful >= 0.5)
        # A higher credit is never evidence against use, so the curve must not fall.
        curve = np.maximum.accumulate(predict_chance(knots[:, None], weights))
    # No finite sample shows that a probability is 0 or 1.
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


_MAX_DECISIONS = 100_000
"""The maximum number of recalls that the register keeps.

An answer to an older recall may be read twice, and still counts once in a log.
"""


class Credited(Projection):
    """The judgements, attributed rewards and answers of the latest recalls."""

    name = "credited"
    kinds = ("feedback",)
    dumped = Field(
        "tuple",
        items=(
            list_field(NUMBER, MEMORY_ID),
            list_field(NUMBER, list_field(MEMORY_ID, NUMBER)),
            list_field(NUMBER, WORD),
        ),
    )
    exported = False
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
        """Return whether a person gave feedback on a memory in a recall."""
        return memory in self._stated.get(decision, ())

    def reward(self, decision: int, memory: int) -> float | None:
        """Return the reward attributed to a memory in a recall, or None if it has no reward."""
        return self._rewards.get(decision, {}).get(memory)

    def read(self, decision: int, answer: str) -> bool:
        """Return whether an answer with this checksum is registered for a recall."""
        return answer in self._answers.get(decision, ())

    def fold(self, event: Event) -> None:
        """Apply a feedback event: add its judgement or its attributed reward."""
        body = event.body
        decision = body.get("decision")
        if decision is None:
            return
        if body.get("source") != ATTRIBUTED:
            _get_entry(self._stated, decision, set()).add(body["memory"])
            return
        if body.get("reward") is not None:
            _get_entry(self._rewards, decision, {})[body["memory"]] = body["reward"]
        if "answer" in body:
            _get_entry(self._answers, decision, set()).add(body["answer"])

    def dump(self) -> Any:
        """Return the judgements, rewards and checksums of answers for a snapshot."""
        return [
            [[decision, sorted(ids)] for decision, ids in self._stated.items()],
            [[decision, list(by_memory.items())] for decision, by_memory in self._rewards.items()],
            [[decision, sorted(marks)] for decision, marks in self._answers.items()],
        ]

    def load(self, dumped: Any) -> None:
        """Restore the judgements, rewards and checksums from the result of ``dump``."""
        stated, rewards, answers = dumped
        self._stated = {decision: set(ids) for decision, ids in stated}
        self._rewards = {decision: dict(by_memory) for decision, by_memory in rewards}
        self._answers = {decision: set(marks) for decision, marks in answers}


# The fields of a calibration, in events and in snapshots.
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

    name = "calibrated"
    kinds = ("calibrate",)
    events = (
        EventType(
            "calibrate",
            "The confidence of attributed feedback was fitted to stated feedback.",
            _CALIBRATION,
        ),
    )
    dumped = list_field(mapping_field(_CALIBRATION))
    exported = False

    def __init__(self) -> None:
        self._latest: dict[str, Calibration] = {}

    def of(self, policy: str) -> Calibration | None:
        """Return the calibration of the policy with this hash, or None without a calibration."""
        return self._latest.get(policy)

    def fold(self, event: Event) -> None:
        """Apply an event: store its calibration as the latest for a policy."""
        self._latest[event.body["policy"]] = read_calibration(event.body)

    def shows(self, kind: str, body: Body, *, viewer: str, seen: bool) -> bool | None:
        """Return False, because a calibration depends on the judgements of all viewers."""
        return False

    def dump(self) -> Any:
        """Return the calibrations as plain values for a snapshot."""
        return [curve.body for curve in self._latest.values()]

    def load(self, dumped: Any) -> None:
        """Restore the calibrations from the result of ``dump``."""
        self._latest = {body["policy"]: read_calibration(body) for body in dumped}


def _get_entry(by_decision: dict[int, Any], decision: int, initial: Any) -> Any:
    """Return the entry of a recall, added as ``initial`` if absent; if full, drop the oldest entry before an addition."""
    if decision not in by_decision and len(by_decision) >= _MAX_DECISIONS:
        del by_decision[next(iter(by_decision))]
    return by_decision.setdefault(decision, initial)
