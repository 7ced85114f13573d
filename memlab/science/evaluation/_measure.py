"""Policies on feedback: what the log holds of each head, as totals by recall and by cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memlab.science.evaluation._clusters import Estimate, Sample, Statistic
from memlab.science.evaluation._credited import Credited
from memlab.science.evaluation._inclusion import ARM, COLUMNS, Estimator, difference, value
from memlab.science.evaluation._log import CERTAIN, Log, left_to_chance
from memlab.science.evaluation._position import Examination
from memlab.science.evaluation._targets import Target

__all__ = ["Evidence", "Head"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

_UNSUPPORTED = COLUMNS.index("unsupported")
_REWARDS = [COLUMNS.index("certain reward"), COLUMNS.index("weighted reward")]
_WEIGHTS = [COLUMNS.index("certain weight"), COLUMNS.index("weight")]
_STEP = 1e-4


@dataclass(frozen=True)
class Head:
    """What one policy would have shown: rows of the log's candidates, ascending, and by recall how many items the log's
    pools do not hold (f64[recalls]). ``ranks``: the place of each row in the head, from 1.
    """

    name: str
    rows: Ints
    outside: Floats
    ranks: Ints | None = None

    def __len__(self) -> int:
        return len(self.rows) + int(self.outside.sum())


class Evidence:
    """A log's rewards and probabilities, laid out so that a policy is a sum over its rows.

    ``answered`` is the probability with which each shown item gets feedback, where silence is weighed away. With
    ``bounds``, silence earns anything within the range. With ``examination`` an item earns in proportion to how often
    its place is looked at: a reward counts theta of its place in the head over theta where it was shown (Li et al.
    2018). Totals go on with their slopes by eta and the counts that eta is estimated from, so that intervals know how
    far it may be off; and likewise by the line that sets attributed rewards right (``credited``).
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
        examination: Examination | None = None,
        credited: Credited | None = None,
    ) -> None:
        self.examination, self.credited = examination, credited
        self._seen_at: dict[float, Floats] = {}
        self.log, self.estimator, self.level, self.reward_range = log, estimator, level, reward_range
        self.probe: Flags = left_to_chance(log.propensity)
        self.unsupported: Flags = log.propensity == 0
        certain = (log.propensity >= CERTAIN) & log.shown
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
        self._steps: list[Floats] = []
        """The columns after a step of 1 of each number of the line."""
        for basis in np.empty((0, 0)) if credited is None else credited.bases.T:
            step = self.columns.copy()
            step[:, _REWARDS] += self.columns[:, _WEIGHTS] * basis[:, None]
            self._steps.append(step)

    def head(self, target: Target) -> Head:
        """The head of a policy."""
        held = target.row >= 0
        outside = np.bincount(target.recall[~held], minlength=len(self.log)).astype(np.float64)
        rows = target.row[held]
        order = np.argsort(rows)
        return Head(target.name, rows[order], outside, target.rank[held][order].astype(np.int64))

    def arm(self, rows: Ints, outside: Floats, *, scale: Floats | None = None, columns: Floats | None = None) -> Floats:
        """f64[recalls, ARM]: the totals of these rows and of so many items outside of the pools.

        ``scale`` f64[rows] multiplies rewards; ``columns`` f64[n, ARM] are those of the log unless given.
        """
        found = np.zeros((len(self.log), ARM))
        if len(rows):
            recall = self.log.recall[rows]
            first = np.flatnonzero(np.concatenate([[True], recall[1:] != recall[:-1]]))
            columns = (self.columns if columns is None else columns)[rows]
            if scale is not None:
                columns[:, _REWARDS] *= scale[:, None]
            found[recall[first]] = np.add.reduceat(columns, first, axis=0)
        found[:, _UNSUPPORTED] += outside
        return found

    def totals(self, head: Head) -> Floats:
        """f64[recalls, 1 + ARM]: what the value of a policy is a function of."""
        return self._moving(lambda eta, columns: [self._placed(head, head.rows, eta, columns)])

    def apart(self, first: Head, second: Head) -> tuple[Ints, Ints]:
        """Rows that only the first would show, and those that only the second would; or at another place, if that
        counts.
        """
        if self.examination is None:
            held = np.zeros(len(self.log.recall), dtype=np.int8)
            held[first.rows] += 1
            held[second.rows] += 2
            return first.rows[held[first.rows] == 1], second.rows[held[second.rows] == 2]
        own, other = self._ranks(first), self._ranks(second)
        return first.rows[own[first.rows] != other[first.rows]], second.rows[own[second.rows] != other[second.rows]]

    def _ranks(self, head: Head) -> Ints:
        """int64[n]: the rank of each candidate in a head, 0 for what is not in it."""
        found = np.zeros(len(self.log.recall), dtype=np.int64)
        found[head.rows] = 1 if head.ranks is None else head.ranks
        return found

    def _placed(self, head: Head, rows: Ints, eta: float, columns: Floats) -> Floats:
        """The arm of some rows of a head, each at its place in it."""
        if self.examination is None:
            return self.arm(rows, head.outside, columns=columns)
        scale = self.examination.theta(self._ranks(head)[rows], eta) / self._seen(eta)[rows]
        return self.arm(rows, head.outside, scale=scale, columns=columns)

    def _seen(self, eta: float) -> Floats:
        """Of three values of eta, for every policy."""
        assert self.examination is not None
        if eta not in self._seen_at:
            self._seen_at[eta] = self.examination.seen(eta)
        return self._seen_at[eta]

    def _moving(self, arms: Callable[[float, Floats], list[Floats]]) -> Floats:
        """Totals, and for all that was estimated before: their slopes by it, and what it is made from."""

        def at(eta: float, columns: Floats) -> Floats:
            return np.concatenate(arms(eta, columns), axis=1)

        eta = 0.0 if self.examination is None else self.examination.eta.value
        plain = at(eta, self.columns)
        found = [np.ones((len(self.log), 1)), plain]
        if self.examination is not None:
            above, below = (at(eta + step, self.columns) for step in (_STEP, -_STEP))
            found += [(above - below) / (2 * _STEP), self.examination.counts]
        if self.credited is not None:
            found += [*(at(eta, step) - plain for step in self._steps), self.credited.counts]
        return np.concatenate(found, axis=1)

    def _moved(self, statistic: Statistic, width: int) -> Statistic:
        """The statistic of totals where what was estimated before is what their counts give, to first order.

        ``width`` counts an arm's columns or those of two.
        """
        examination, credited = self.examination, self.credited
        if examination is None and credited is None:
            return statistic

        def moved(totals: Floats) -> Floats:
            plain, rest = totals[..., : 1 + width].copy(), totals[..., 1 + width :]
            if examination is not None:
                slope, counts, rest = np.split(rest, [width, width + examination.counts.shape[1]], axis=-1)
                change = np.clip(examination.solve(counts) - examination.eta.value, -1.0, 1.0)
                plain[..., 1:] += slope * change[..., None]
            if credited is not None:
                level, slope, counts = np.split(rest, [width, 2 * width], axis=-1)
                by = credited.change(counts)
                plain[..., 1:] += level * by[..., :1] + slope * by[..., 1:]
            return statistic(plain)

        return moved

    def contrast(self, first: Head, second: Head) -> Floats:
        """f64[recalls, 1 + 2 ARM]: what the difference of two policies is a function of.

        What is outside of the pools counts as each one's own, which can only widen the bounds.
        """
        own, other = self.apart(first, second)
        return self._moving(
            lambda eta, columns: [self._placed(first, own, eta, columns), self._placed(second, other, eta, columns)]
        )

    def sample(self, totals: Floats) -> Sample:
        """The totals of recalls, summed in clusters."""
        sums = np.zeros((self.log.clusters, totals.shape[1]))
        np.add.at(sums, self.log.cluster, totals)
        return Sample(sums, level=self.level)

    def value(self, totals: Floats) -> tuple[Estimate, float, float]:
        """The value with an interval that holds it whatever is unsupported earns, and its bounds without noise."""
        low, high = self.reward_range
        least, most, typical = (self._moved(value(self.estimator, fill), ARM) for fill in (low, high, np.nan))
        return self._estimate(totals, least, most, typical)

    def difference(self, totals: Floats, *, level: float | None = None) -> tuple[Estimate, float, float]:
        """The same of a contrast."""
        low, high = self.reward_range
        ends = (low, high), (high, low), (np.nan, np.nan)
        least, most, typical = (self._moved(difference(self.estimator, *fill), 2 * ARM) for fill in ends)
        return self._estimate(totals, least, most, typical, level)

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
