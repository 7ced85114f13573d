"""Calibration of attributed rewards by judged ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from memlab.kernel.base.arrays import Floats
from memlab.kernel.base.printable import count_of
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._tests import (
    format_signed,
)

# Rewards that were inferred from answers are calibrated with the items that a user also judged.
#
# ``lab.agents.credits`` misses some uses of a memory and reports some that did not happen, at rates that depend on the
# agents and users. If enough of the credited items were judged too, the attributed reward is regressed on the judged
# reward, and the line is inverted. An attributed reward without a judgement counts as ``(attributed - a) / b``. Its
# mean is that of the true rewards if attribution errs alike on all equally useful memories (Rogan & Gladen 1978). A
# regression in the other direction would shrink the rewards of a better policy to the overall mean.
#
# The line is a function of sums over recalls, like all other estimates. So each interval contains the uncertainty of
# the line (a stacked M-estimator; Stefanski & Boos 2002) and is wider if few items were judged. The judged items are
# assumed to be a random sample of the credited items.


JUDGED = 30
"""The minimum number of attributed rewards that must be judged.

Below this number, the slope of the line is too uncertain.
"""

_MIN_RISE = 0.2
"""The minimum rise of the attributed reward from a judged 0 to a judged 1.

Below this rise, the inverse line multiplies noise by more than 5.
"""


@dataclass(frozen=True)
class Credited:
    """The calibration of attributed rewards as ``level + slope * attributed``.

    Attributes
    ----------
    line
        The level and the slope; (0, 1) leaves rewards as they are.
    counts
        The sums from which the line is computed, f64[recalls, 5].
    bases
        The change of each candidate's reward for a unit change of the level and of the slope,
        f64[n, 2].
    """

    line: Floats
    judged: int
    unjudged: int
    counts: Floats = field(repr=False)
    bases: Floats = field(repr=False)

    def change(self, counts: Floats) -> Floats:
        """Refit the calibration line on counts; return its coefficients' change, f64[..., 2]."""
        return np.asarray(_fit_inverse_line(counts) - self.line)

    def range_of(self, low: float, high: float) -> tuple[float, float]:
        """Return the range that contains both raw and calibrated rewards."""
        ends = self.line[0] + self.line[1] * np.array([low, high])
        return min(low, float(ends.min())), max(high, float(ends.max()))

    @property
    def note(self) -> str:
        """The sentence that describes the calibration in a report."""
        return (
            f"{count_of(self.unjudged, 'reward')} inferred from answers without a judgement: calibrated as "
            f"{format_signed(self.line[0])} {format_signed(self.line[1])} x the inferred reward, from "
            f"{self.judged:,} that were judged too and count as a random sample. Intervals include the uncertainty of "
            "this line."
        )


def calibrate_rewards(log: Log) -> tuple[Log, Credited | None]:
    """Calibrate the log's attributed rewards; return the log and the calibration.

    The log is unchanged and the calibration is None in two cases: fewer than ``JUDGED`` rewards
    were judged, or the attributed rewards hardly depend on the judged rewards.
    """
    is_attributed = ~np.isnan(log.attributed) & log.answered
    judged, unjudged = is_attributed & log.stated, is_attributed & ~log.stated
    if judged.sum() < JUDGED or not unjudged.any():
        return log, None
    attributed, truth = log.attributed[judged], log.reward[judged]
    moments = np.column_stack(
        [np.ones(len(attributed)), truth, truth**2, attributed, attributed * truth]
    )
    counts = np.zeros((len(log), moments.shape[1]))
    np.add.at(counts, log.recall[judged], moments)
    line = _fit_inverse_line(counts.sum(axis=0))
    if not 0 < line[1] <= 1 / _MIN_RISE:
        return log, None
    reward, bases = log.reward.copy(), np.zeros((len(log.reward), 2))
    reward[unjudged] = line[0] + line[1] * log.attributed[unjudged]
    bases[unjudged] = np.column_stack([np.ones(int(unjudged.sum())), log.attributed[unjudged]])
    return replace(log, reward=reward), Credited(
        line, int(judged.sum()), int(unjudged.sum()), counts, bases
    )


def credited_note(log: Log, credited: Credited | None) -> list[str]:
    """Return a report's remark on attributed rewards, if there are any."""
    if credited is not None:
        return [credited.note]
    if not (~np.isnan(log.attributed) & ~log.stated & log.answered).any():
        return []
    return [
        f"Rewards inferred from answers are not calibrated: fewer than {JUDGED} of them were judged too, or they hardly "
        f"depend on the judgements. Judge at least {JUDGED} of them to calibrate the rest."
    ]


def _fit_inverse_line(counts: Floats) -> Floats:
    """Regress attributed on stated rewards; return intercept and slope of the inverse line, f64[..., 2].

    The line is fitted by least squares. Its inverse maps an attributed reward to a judged one.
    """
    count, truth, square, attributed, both = np.moveaxis(counts, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = (both - attributed * truth / count) / (square - truth**2 / count)
        start = (attributed - rise * truth) / count
        return np.stack([-start / rise, 1.0 / rise], axis=-1)
