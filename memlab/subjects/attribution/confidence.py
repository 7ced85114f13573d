"""From a credit to the chance that the memory was of use: a curve that rises, fitted to what somebody judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable

__all__ = ["LEAST", "Calibration", "calibration", "calibration_in"]

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
        raise InputError("A calibration needs judgements of both kinds, and all of these are alike.")
    # where the credits are, and evenly: most of them are near 0, and those that count are not
    knots = np.unique(np.concatenate((np.quantile(credit, np.linspace(0, 1, _KNOTS)), np.linspace(0, 1, _KNOTS))))
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
        policy, method, len(credit), tuple(knots.tolist()), tuple(curve.round(6).tolist()), error, before
    )
