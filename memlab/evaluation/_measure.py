"""Policies on feedback: what the log holds of each head, as totals by recall and by cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memlab.evaluation._clusters import Estimate, Sample, Statistic
from memlab.evaluation._inclusion import ARM, COLUMNS, Estimator, difference, value
from memlab.evaluation._log import Log
from memlab.evaluation._targets import Target

__all__ = ["Evidence", "Head"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

_UNSUPPORTED = COLUMNS.index("unsupported")
_CERTAIN = 1 - 1e-9


@dataclass(frozen=True)
class Head:
    """What one policy would have shown: rows of the log's candidates, ascending, and by recall how many items the log's
    pools do not hold (f64[recalls]).
    """

    name: str
    rows: Ints
    outside: Floats

    def __len__(self) -> int:
        return len(self.rows) + int(self.outside.sum())


class Evidence:
    """A log's rewards and probabilities, laid out so that a policy is a sum over its rows.

    ``answered`` is the probability with which each shown item gets feedback, where silence is weighed away. With
    ``bounds``, silence earns anything within the range.
    """

    def __init__(
        self,
        log: Log,
        *,
        estimator: Estimator,
        level: float,
        reward_range: tuple[float, float],
        answered: Floats | None = None,
        bounds: bool = False,
    ) -> None:
        self.log, self.estimator, self.level, self.reward_range = log, estimator, level, reward_range
        self.probe: Flags = (log.propensity > 0) & (log.propensity < _CERTAIN)
        self.unsupported: Flags = log.propensity == 0
        certain = (log.propensity >= _CERTAIN) & log.shown
        known = log.answered
        weight = np.zeros(len(log.propensity))
        np.divide(1.0, log.propensity, out=weight, where=log.shown)
        weight = np.nan_to_num(weight)
        chance = np.ones(len(weight)) if answered is None else answered
        counted, reward = np.where(known, weight / chance, 0.0), np.nan_to_num(log.reward)
        silent = log.shown & ~known & bounds
        self.columns: Floats = np.column_stack(
            [
                certain & ~silent,
                np.where(certain, counted, 0.0),
                np.where(certain, counted * reward, 0.0),
                ~certain & ~self.unsupported,
                np.where(certain, 0.0, counted),
                np.where(certain, 0.0, counted * reward),
                np.where(silent & ~certain, weight, 0.0),
                self.unsupported | (silent & certain),
            ]
        ).astype(np.float64)

    def head(self, target: Target) -> Head:
        """The head of a policy."""
        held = target.row >= 0
        outside = np.bincount(target.recall[~held], minlength=len(self.log)).astype(np.float64)
        return Head(target.name, np.sort(target.row[held]), outside)

    def arm(self, rows: Ints, outside: Floats) -> Floats:
        """f64[recalls, ARM]: the totals of these rows and of so many items outside of the pools."""
        found = np.zeros((len(self.log), ARM))
        if len(rows):
            recall = self.log.recall[rows]
            first = np.flatnonzero(np.concatenate([[True], recall[1:] != recall[:-1]]))
            found[recall[first]] = np.add.reduceat(self.columns[rows], first, axis=0)
        found[:, _UNSUPPORTED] += outside
        return found

    def totals(self, head: Head) -> Floats:
        """f64[recalls, 1 + ARM]: what the value of a policy is a function of."""
        return np.column_stack([np.ones(len(self.log)), self.arm(head.rows, head.outside)])

    def apart(self, first: Head, second: Head) -> tuple[Ints, Ints]:
        """Rows that only the first would show, and those that only the second would."""
        return (
            np.setdiff1d(first.rows, second.rows, assume_unique=True),
            np.setdiff1d(second.rows, first.rows, assume_unique=True),
        )

    def contrast(self, first: Head, second: Head) -> Floats:
        """f64[recalls, 1 + 2 ARM]: what the difference of two policies is a function of.

        What is outside of the pools counts as each one's own, which can only widen the bounds.
        """
        own, other = self.apart(first, second)
        ones = np.ones(len(self.log))
        return np.column_stack([ones, self.arm(own, first.outside), self.arm(other, second.outside)])

    def sample(self, totals: Floats) -> Sample:
        """The totals of recalls, summed in clusters."""
        sums = np.zeros((self.log.clusters, totals.shape[1]))
        np.add.at(sums, self.log.cluster, totals)
        return Sample(sums, level=self.level)

    def value(self, totals: Floats) -> tuple[Estimate, float, float]:
        """The value with an interval that holds it whatever is unsupported earns, and its bounds without noise."""
        low, high = self.reward_range
        return self._estimate(
            totals, value(self.estimator, low), value(self.estimator, high), value(self.estimator, np.nan)
        )

    def difference(self, totals: Floats, *, level: float | None = None) -> tuple[Estimate, float, float]:
        """The same of a contrast."""
        low, high = self.reward_range
        least, most = difference(self.estimator, low, high), difference(self.estimator, high, low)
        return self._estimate(totals, least, most, difference(self.estimator, np.nan, np.nan), level)

    def _estimate(
        self, totals: Floats, least: Statistic, most: Statistic, typical: Statistic, level: float | None = None
    ) -> tuple[Estimate, float, float]:
        sample = self.sample(totals)
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high, middle = (float(of(sample.total)) for of in (least, most, typical))
            found = sample.estimate(least, None if high == low else most, level=level)
        point = low if high == low else float(np.clip(middle, low, high))  # NaN where nothing of it was shown
        return Estimate(point, found.low, found.high, found.error, found.p), low, high

    def influence(self, totals: Floats, statistic: Statistic) -> Floats:
        """f64[recalls]: by how much each recall moves the statistic, to first order."""
        total = totals.sum(axis=0)
        steps = np.maximum(np.abs(total), 1.0) * 1e-6
        ends = total + np.concatenate([np.diag(steps), -np.diag(steps)])
        with np.errstate(divide="ignore", invalid="ignore"):
            above, below = np.split(statistic(ends), 2)
        slope = np.nan_to_num((above - below) / (2 * steps))
        found = totals @ slope
        return np.asarray(found - found.mean())


def heads(evidence: Evidence, targets: Sequence[Target]) -> dict[str, Head]:
    """The head of each policy, by name."""
    return {target.name: evidence.head(target) for target in targets}
