"""Policies on feedback: what the log holds of each head, as totals by recall and by cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl
from scipy.special import ndtri

from memlab.errors import InputError
from memlab.science.evaluation._intervals import Estimate, Flags, Floats, Ints, Sample, Statistic
from memlab.science.evaluation._log import CERTAIN, Log, left_to_chance
from memlab.science.evaluation._position import Examination, harvest, lot_p, moved_p, random_places
from memlab.science.evaluation._prepared import Estimator, Settings
from memlab.science.evaluation._targets import Target, padded
from memlab.science.evaluation._tests import (
    Balance,
    Facts,
    Gate,
    effective_count,
    gates,
    independence_p,
    position_p,
    redundancy_p,
    silence_p,
)

__all__ = [
    "ARM",
    "COLUMNS",
    "JUDGED",
    "Compared",
    "Credited",
    "Evidence",
    "Head",
    "Measured",
    "Tests",
    "compare",
    "credited_note",
    "difference_statistic",
    "gather",
    "head_support",
    "measure",
    "predicted_rewards",
    "recalibrate",
    "recalls_for",
    "recalls_needed",
    "value_statistic",
]


# Values from inclusion probabilities, for rewards of single items.
#
# A recall shows item i with probability p_i, whatever else it shows. A policy that would show the set T is worth the
# sum of the rewards of T; each item of T that was shown stands for 1/p_i of its kind. T falls into strata (Särndal,
# Swensson & Wretman 1992, 5.7): what was certain to be shown, of which the sum is known; what was left to chance, the
# probes; and what could not have been shown, of which nothing is known but the range of the rewards.
#
# Horvitz-Thompson    1/n sum over recalls of the sum over shown items of T of r_i / p_i                    (1952)
# self-normalised     the sum over certain items, and k sum(w r) / sum(w) over probes, w = 1/p, k their number
#
# The first is unbiased where every item of T could be shown. The second trades a bias of order 1/n for far less
# variance and stays within the range of the rewards (Hajek 1971; Swaminathan & Joachims 2015); it is the default.
# What could not be shown earns ``fill``: the least and the greatest reward give the bounds between which the value
# lies (Manski 1990).
#
# Two policies differ by what only one of them would show: what both would show cancels and adds no variance.
#
# A value is a function of totals, f64[..., 1 + ARM]: recalls, then the columns of one arm; a difference one of totals
# f64[..., 1 + 2 ARM]: recalls, what only the first would show, what only the second would.


COLUMNS = (
    "certain",
    "certain weight",
    "certain reward",
    "probes",
    "weight",
    "weighted reward",
    "silent",
    "unsupported",
)
"""Of one arm: items that were certain to be shown, the weight of those answered and their weighted reward; items left
to chance, and the same of them; the weight of probes whose silence counts as ``fill``; items that could not be shown.
"""

ARM = len(COLUMNS)


def value_statistic(estimator: Estimator, fill: float) -> Statistic:
    """The statistic of a policy, where what the log knows nothing of earns ``fill``; NaN for what others earn."""

    def of(totals: Floats) -> Floats:
        return np.asarray(_worth(estimator, totals[..., 1 : 1 + ARM], fill) / totals[..., 0])

    return of


def difference_statistic(estimator: Estimator, first: float, second: float) -> Statistic:
    """The statistic of one policy less another, where what the log knows nothing of earns ``first`` and ``second``."""

    def of(totals: Floats) -> Floats:
        own = _worth(estimator, totals[..., 1 : 1 + ARM], first)
        other = _worth(estimator, totals[..., 1 + ARM : 1 + 2 * ARM], second)
        return np.asarray((own - other) / totals[..., 0])

    return of


def _worth(estimator: Estimator, arm: Floats, fill: float) -> Floats:
    certain, certain_weight, certain_reward, probes, weight, reward, silent, unsupported = (
        arm[..., column] for column in range(ARM)
    )
    if estimator == "ht":
        known = certain_reward + reward + silent * np.nan_to_num(fill)
        typical = np.where(probes + certain > 0, known / np.maximum(probes + certain, 1e-300), 0.0)
        return np.asarray(known + unsupported * (typical if np.isnan(fill) else fill))
    with np.errstate(divide="ignore", invalid="ignore"):
        sure, mean = certain_reward / certain_weight, reward / weight
        drawn = mean if np.isnan(fill) else (reward + silent * fill) / (weight + silent)
    # of a stratum that nobody answered nothing is known, as of what could not be shown
    typical = np.where(weight > 0, mean, np.where(certain_weight > 0, sure, np.nan))
    unknown = typical if np.isnan(fill) else fill
    found = np.where(certain > 0, certain * np.where(certain_weight > 0, sure, unknown), 0.0)
    found = found + np.where(
        probes > 0, probes * np.where(weight + silent > 0, drawn, unknown), 0.0
    )
    return np.asarray(found + np.where(unsupported > 0, unsupported * unknown, 0.0))


# Rewards that were read from answers, set right by those of them that somebody also judged.
#
# ``lab.agents.credits`` overlooks use and sees use where there was none, as often as agents and users at hand make
# it. Where enough of what it credited was judged as well, the attributed reward is regressed on the judged one, and
# the line is inverted: a reward that nobody judged counts ``(attributed - a) / b``, whose mean is that of the true
# rewards wherever attribution errs alike on all memories that are equally of use (Rogan & Gladen 1978). To regress
# the other way round would not do: it gives what a better policy shows the mean of all. The line is a function of
# sums over recalls, like all else that is estimated here, so each interval knows how far it may be off (a stacked
# M-estimator; Stefanski & Boos 2002), and widens where few were judged. What was judged is taken for a random part of
# what was credited.


JUDGED = 30
"""So many attributed rewards must have been judged for a line to be drawn."""

_LEAST_RISE = 0.2
"""By so much more must the attributed reward rise from a judged 0 to a judged 1, or it says too little."""


@dataclass(frozen=True)
class Credited:
    """The line ``level + slope * attributed``. ``counts`` f64[recalls, 5] are what it is a function of.

    ``bases`` f64[n, 2]: what a step of level and of slope adds to each candidate's reward. Where no line could be
    drawn, ``line`` is (0, 1) and nothing is moved.
    """

    line: Floats
    judged: int
    unjudged: int
    counts: Floats = field(repr=False)
    bases: Floats = field(repr=False)

    def change(self, counts: Floats) -> Floats:
        """f64[..., 2]: the line of sums of counts f64[..., 5], less this one."""
        return np.asarray(_line(counts) - self.line)

    def range_of(self, low: float, high: float) -> tuple[float, float]:
        """The range of rewards, where attributed ones lie within ``low`` and ``high``."""
        ends = self.line[0] + self.line[1] * np.array([low, high])
        return min(low, float(ends.min())), max(high, float(ends.max()))

    @property
    def note(self) -> str:
        """What was done, for a report."""
        return (
            f"{self.unjudged:,} rewards were read from answers and judged by nobody. Each counts {self.line[0]:+.2f} "
            f"{self.line[1]:+.2f} times what was read, by {self.judged:,} that were judged as well, taken for a random "
            "part of them; intervals know how far that may be off."
        )


def recalibrate(log: Log) -> tuple[Log, Credited | None]:
    """The log with the rewards that nobody judged set right, and how.

    None, and the log as it is, where fewer than ``JUDGED`` were judged, or what was read hardly follows them.
    """
    read = ~np.isnan(log.attributed) & log.answered
    judged, unjudged = read & log.stated, read & ~log.stated
    if judged.sum() < JUDGED or not unjudged.any():
        return log, None
    given, worth = log.attributed[judged], log.reward[judged]
    each = np.column_stack([np.ones(len(given)), worth, worth**2, given, given * worth])
    counts = np.zeros((len(log), each.shape[1]))
    np.add.at(counts, log.recall[judged], each)
    line = _line(counts.sum(axis=0))
    if not 0 < line[1] <= 1 / _LEAST_RISE:
        return log, None
    reward, bases = log.reward.copy(), np.zeros((len(log.reward), 2))
    reward[unjudged] = line[0] + line[1] * log.attributed[unjudged]
    bases[unjudged] = np.column_stack([np.ones(int(unjudged.sum())), log.attributed[unjudged]])
    return replace(log, reward=reward), Credited(
        line, int(judged.sum()), int(unjudged.sum()), counts, bases
    )


def credited_note(log: Log, credited: Credited | None) -> list[str]:
    """What a report says of attributed rewards; nothing where none counts."""
    if credited is not None:
        return [credited.note]
    if not (~np.isnan(log.attributed) & ~log.stated & log.answered).any():
        return []
    return [
        f"Rewards that were read from answers count as they were read: fewer than {JUDGED} of them were judged as "
        "well, or what was read hardly follows what was judged. Judge some, and they are set right."
    ]


def _line(counts: Floats) -> Floats:
    """Level and slope of the inverse of the least-squares line of attributed on judged rewards."""
    many, worth, square, given, both = np.moveaxis(counts, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = (both - given * worth / many) / (square - worth**2 / many)
        start = (given - rise * worth) / many
        return np.stack([-start / rise, 1.0 / rise], axis=-1)


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
        self.log, self.estimator, self.level, self.reward_range = (
            log,
            estimator,
            level,
            reward_range,
        )
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

    def arm(
        self,
        rows: Ints,
        outside: Floats,
        *,
        scale: Floats | None = None,
        columns: Floats | None = None,
    ) -> Floats:
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
        return first.rows[own[first.rows] != other[first.rows]], second.rows[
            own[second.rows] != other[second.rows]
        ]

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
                slope, counts, rest = np.split(
                    rest, [width, width + examination.counts.shape[1]], axis=-1
                )
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
            lambda eta, columns: [
                self._placed(first, own, eta, columns),
                self._placed(second, other, eta, columns),
            ]
        )

    def sample(self, totals: Floats) -> Sample:
        """The totals of recalls, summed in clusters."""
        sums = np.zeros((self.log.clusters, totals.shape[1]))
        np.add.at(sums, self.log.cluster, totals)
        return Sample(sums, level=self.level)

    def value(self, totals: Floats) -> tuple[Estimate, float, float]:
        """The value with an interval that holds it whatever is unsupported earns, and its bounds without noise."""
        low, high = self.reward_range
        least, most, typical = (
            self._moved(value_statistic(self.estimator, fill), ARM) for fill in (low, high, np.nan)
        )
        return self._estimate(totals, least, most, typical)

    def difference(
        self, totals: Floats, *, level: float | None = None
    ) -> tuple[Estimate, float, float]:
        """The same of a contrast."""
        low, high = self.reward_range
        ends = (low, high), (high, low), (np.nan, np.nan)
        least, most, typical = (
            self._moved(difference_statistic(self.estimator, *fill), 2 * ARM) for fill in ends
        )
        return self._estimate(totals, least, most, typical, level)

    def _estimate(
        self,
        totals: Floats,
        least: Statistic,
        most: Statistic,
        typical: Statistic,
        level: float | None = None,
    ) -> tuple[Estimate, float, float]:
        sample = self.sample(totals)
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high, middle = (float(of(sample.total)) for of in (least, most, typical))
            found = sample.estimate(least, None if high == low else most, level=level)
        # NaN where nothing of it was shown
        point = low if high == low else float(np.clip(middle, low, high))
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


# The direct method: a model of rewards, asked about items that were never shown. An extrapolation, and called so.
#
# A logistic regression where rewards are 0 and 1, a ridge regression otherwise, on the log's own numeric features,
# standardised. Each recall is predicted by a model that saw no recall of its cluster.


_FOLDS = 5
_LEAST_FITTED = 20
"""Answered items in a training fold below which a regression says nothing."""


def predicted_rewards(
    features: Floats,
    reward: Floats,
    answered: Flags,
    cluster: Ints,
    reward_range: tuple[float, float],
) -> Floats | None:
    """f64[n]: the reward that a cross-fitted model expects of each candidate; none if there is too little to fit.

    ``features`` is f64[n, features] (NaN where unknown), ``reward`` is read where ``answered``, ``cluster`` is the
    number of each candidate's cluster.
    """
    clusters = np.unique(cluster)
    if len(clusters) < 2 or features.shape[1] == 0:
        return None
    fold = np.zeros(int(clusters.max()) + 1, dtype=np.int64)
    fold[clusters] = np.arange(len(clusters)) % min(_FOLDS, len(clusters))
    folds = fold[cluster]
    prepared = _standardised(features)
    binary = bool(np.isin(reward[answered], (0.0, 1.0)).all())
    expected = np.empty(len(reward))
    for number in range(int(folds.max()) + 1):
        seen, held = answered & (folds != number), folds == number
        if seen.sum() < _LEAST_FITTED:
            return None
        expected[held] = _fitted(prepared[seen], reward[seen], prepared[held], binary)
    return np.clip(expected, *reward_range)


def _standardised(features: Floats) -> Floats:
    """Mean 0 and deviation 1 over the candidates; what is unknown or infinite becomes the mean."""
    finite = np.where(np.isfinite(features), features, np.nan)
    known = ~np.isnan(finite)
    counts = np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, finite - np.where(known, finite, 0.0).sum(axis=0) / counts, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=0) / counts)
    return np.asarray(centred / np.where(deviation > 0, deviation, 1.0))


def _fitted(features: Floats, reward: Floats, points: Floats, binary: bool) -> Floats:
    if np.ptp(reward) == 0:
        return np.full(len(points), reward[0])
    if binary:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(max_iter=1000).fit(features, reward)
        return np.asarray(model.predict_proba(points)[:, 1])
    from sklearn.linear_model import Ridge

    return np.asarray(Ridge(alpha=1.0).fit(features, reward).predict(points))


# Policies side by side on feedback: values, paired differences, what speaks against them, and how many recalls do.


_POWER = 0.8
_FEATURES_A_RECALL = 10
"""So many recalls for each feature of a test: with fewer only the score and the place are looked at."""


@dataclass(frozen=True)
class Compared:
    """One policy's value and its difference to another one. ``lower`` and ``upper`` bound the value without noise,
    ``least`` and ``most`` the difference.

    ``totals`` f64[recalls, columns] are those of the difference; without ``base`` of the value.
    """

    head: Head
    base: Head | None
    totals: Floats = field(repr=False)
    value: Estimate
    lower: float
    upper: float
    difference: Estimate | None = None
    least: float = math.nan
    most: float = math.nan


@dataclass(frozen=True)
class Measured:
    """What the log says of one policy beside its value.

    ``unsupported`` is the share of its items that could not have been shown, NaN where the log does not say;
    ``probes`` counts the answered items by which it is told from the baseline, ``effective`` the recalls that carry the
    difference.
    """

    unsupported: float
    unknown: float
    probes: int
    effective: float | None
    gates: tuple[Gate, ...]
    weights: Floats = field(repr=False)
    """1/p of each of its items that was shown and answered, heaviest first."""


class Tests:
    """p-values of what every estimate on a log takes for granted, each found when it is asked for.

    NaN where the log does not hold what the test needs, None where the estimate does not rest on it. ``features`` is
    f64[n, k] over the candidates, the score first.
    """

    def __init__(self, log: Log, settings: Settings, features: Floats) -> None:
        self._log, self._settings, self._features = log, settings, features

    @cached_property
    def independence(self) -> float | None:
        log = self._log
        if log.clusters < len(log):
            return None
        if "at" not in log.decisions.columns or log.decisions["at"].null_count():
            return math.nan
        residual = np.where(log.answered, np.nan_to_num(log.reward), 0.0)
        residual = residual - np.where(
            log.answered, residual.sum() / max(1, log.answered.sum()), 0.0
        )
        earned = np.bincount(log.recall, weights=residual, minlength=len(log))
        return independence_p(earned[log.decisions["at"].arg_sort().to_numpy()])

    @cached_property
    def silence(self) -> float | None:
        log, shown = self._log, self._log.shown
        if self._settings.missing != "censor" or log.answered[shown].all():
            return None
        seen = np.column_stack(
            [_standard(self._features[shown]), np.log(np.maximum(log.position[shown], 1))]
        )
        return silence_p(seen, log.answered[shown], log.recall[shown])

    @cached_property
    def position(self) -> float | None:
        log = self._log
        if self._settings.position or self._alone:
            return None
        if not self._scored.any():
            return math.nan
        places = random_places(log, self._rank)
        if places is not None:
            return moved_p(places, log)
        by_lot = lot_p(log)
        if by_lot is not None:
            return by_lot
        score, reward, recall = self._given
        return position_p(score, log.position[self._scored], reward, recall)

    @cached_property
    def redundancy(self) -> float | None:
        if self._alone:
            return None
        return redundancy_p(*self._given) if self._scored.any() else math.nan

    def balance(self, head: Head) -> float | None:
        """Of the logged propensities, the membership of a head among what they are held against."""
        if self._contradicted:
            return 0.0
        if not len(self._chance):
            return None
        member = np.zeros(len(self._log.propensity))
        member[head.rows] = 1.0
        return self._balance.p(member[self._chance, None])

    @cached_property
    def _alone(self) -> bool:
        """Whether no recall showed two items: there is one position, and nothing else that was shown."""
        return bool(np.bincount(self._log.recall[self._log.shown], minlength=1).max() < 2)

    @cached_property
    def _scored(self) -> Flags:
        """What was answered; nothing without scores, for what stands first cannot be told from what is best then."""
        return self._log.answered & (self._log.position > 0) & bool(np.ptp(self._features[:, 0]))

    @property
    def _given(self) -> tuple[Floats, Floats, Ints]:
        return (
            self._features[self._scored, 0],
            self._log.reward[self._scored],
            self._log.recall[self._scored],
        )

    @cached_property
    def _rank(self) -> Floats:
        return _ranks(self._features[:, 0], self._log)

    @cached_property
    def _chance(self) -> Ints:
        return np.flatnonzero(left_to_chance(self._log.propensity))

    @cached_property
    def _contradicted(self) -> bool:
        """Whether something was certain to be shown, and was not."""
        return bool(((self._log.propensity >= 1) & ~self._log.shown).any())

    @cached_property
    def _balance(self) -> Balance:
        log, chance = self._log, self._chance
        propensity, recall, rank = log.propensity[chance], log.recall[chance], self._rank[chance]
        weight = None
        # a Gumbel draw's propensities are given its threshold
        if "sampler" in log.decisions.columns:
            given = (log.decisions["sampler"] == "gumbel").fill_null(False).to_numpy()[recall]
            weight = (
                np.where(given, _elsewhere(propensity, rank, recall), propensity)
                if given.any()
                else None
            )
        return Balance(
            np.column_stack([np.ones(len(chance)), rank]),
            log.shown[chance],
            propensity,
            recall,
            weight,
        )


def gather(
    log: Log, settings: Settings, features: Floats, answered: Floats | None = None
) -> Evidence:
    """The log as evidence, silence treated as the settings say; ``answered`` is the chance of a reward, if known."""
    if settings.missing == "inverse":
        chance = predicted_rewards(
            np.column_stack([features, np.log(np.maximum(log.position, 1))]),
            log.answered.astype(np.float64),
            log.shown,
            log.cluster[log.recall],
            (0.02, 1.0),
        )
        answered = chance
    examination = None
    if settings.position:
        places = random_places(log, _ranks(features[:, 0], log))
        examination = None if places is None else harvest(places, log, settings.level)
        if examination is None:
            raise InputError(
                "position=True learns from items at random places what a place takes from a reward, and this log has "
                "none, or they earned nothing: show probes at random places (a lab does)."
            )
    log, credited = recalibrate(log)
    return Evidence(
        log,
        examination=examination,
        credited=credited,
        estimator=settings.estimator,
        level=settings.level,
        reward_range=settings.reward_range,
        answered=answered,
        bounds=settings.missing == "bounds",
    )


def known_features(log: Log, names: Sequence[str], schema: pl.Schema) -> Floats:
    """f64[n, k]: the score by which the log was ranked (or its rank), then numeric features while recalls suffice."""
    numeric = [
        name
        for name in names
        if name in schema and (schema[name].is_numeric() or schema[name] == pl.Boolean)
    ]
    first = next((name for name in ("score", "rank") if name in schema), None)
    columns = [] if first is None else [first]
    if len(log) >= _FEATURES_A_RECALL * (len(numeric) + 1):
        columns += [name for name in numeric if name != first]
    if not columns:
        return np.zeros((len(log.recall), 1))
    found = log.pool(columns).select(pl.col(name).cast(pl.Float64) for name in columns).to_numpy()
    return np.asarray(np.where(np.isfinite(found), found, 0.0))


def compare(evidence: Evidence, head: Head, base: Head | None) -> Compared:
    """A policy's value, and its difference to ``base``."""
    totals = evidence.totals(head)
    found = evidence.value(totals)
    if base is None:
        return Compared(head, base, totals, *found)
    contrast = evidence.contrast(head, base)
    return Compared(head, base, contrast, *found, *evidence.difference(contrast))


def measure(evidence: Evidence, found: Compared, tests: Tests) -> Measured:
    """What speaks for and against the figures of a policy; without ``base``, of its value alone."""
    log, head, totals = evidence.log, found.head, found.totals
    if found.base is None:
        apart = head.rows
        statistic = value_statistic(evidence.estimator, evidence.reward_range[0])
    else:
        apart = np.concatenate(evidence.apart(head, found.base))
        statistic = difference_statistic(evidence.estimator, *evidence.reward_range)
    probed = apart[evidence.probe[apart]]
    answered = probed[log.answered[probed]]
    effective = effective_count(evidence.influence(totals, statistic)) if len(answered) else None
    unsupported, unknown, shown = head_support(log, head)
    facts = Facts(
        unknown=unknown,
        clusters=log.clusters,
        recalls=len(log),
        probes=float(len(answered)) if len(probed) else None,
        effective=effective,
        independence=tests.independence,
        balance=tests.balance(head),
        silence=tests.silence,
        position=tests.position,
        redundancy=tests.redundancy,
    )
    weights = 1.0 / log.propensity[shown[log.answered[shown]]]
    return Measured(
        unsupported=unsupported,
        unknown=unknown,
        probes=len(answered),
        effective=effective,
        gates=gates(facts),
        weights=np.sort(weights)[::-1],
    )


def head_support(log: Log, head: Head) -> tuple[float, float, Ints]:
    """Of a head: the share that could not have been shown (NaN where the log does not say), the share that was shown
    with an unknown probability, and the rows that were shown.
    """
    count, shown = len(head), log.shown[head.rows]
    given = head.rows[shown]
    if not count:
        return 0.0, 0.0, given
    unknown = float(np.isnan(log.propensity[given]).sum()) / count
    lost = float((log.propensity[head.rows] == 0).sum() + head.outside.sum()) / count
    unsaid = bool(np.isnan(log.propensity[head.rows[~shown]]).any())
    return math.nan if unsaid else lost, unknown, given


def recalls_needed(found: Compared, recalls: int, level: float) -> int | None:
    """How many recalls like these would tell two policies apart with a power of .8; None where none would.

    What is unsupported does not shrink with more recalls: only what of the difference is beyond it counts.
    """
    if found.difference is None or not found.least * found.most > 0:
        return None
    nearer = min(abs(found.least), abs(found.most))
    return recalls_for(
        Estimate(nearer, math.nan, math.nan, found.difference.error, math.nan), recalls, level
    )


def recalls_for(gap: Estimate, recalls: int, level: float) -> int | None:
    """How many recalls like these would find ``gap`` with a power of .8; None if it is 0 or has no error."""
    if not gap.value or math.isnan(gap.error):
        return None
    reach = float(ndtri((1 + level) / 2) + ndtri(_POWER))
    return math.ceil(recalls * (reach * gap.error / gap.value) ** 2)


def _elsewhere(propensity: Floats, ranks: Floats, recall: Ints) -> Floats:
    """The mean propensity of the same place in all other recalls; 0 where there is no other."""
    order = np.lexsort((ranks, recall))
    first = np.searchsorted(recall[order], recall[order])
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - first
    count, total = np.bincount(place)[place], np.bincount(place, weights=propensity)[place]
    return np.asarray((total - propensity) / np.maximum(count - 1, 1))


def _ranks(score: Floats, log: Log) -> Floats:
    """Each candidate's rank within its recall by the score, scaled to 0..1."""
    size = np.bincount(log.recall, minlength=len(log))
    first = np.cumsum(size) - size
    rows = padded(score, log.recall, size)
    at = np.arange(len(score)) - first[log.recall]
    if rows is None:
        order = np.lexsort((-score, log.recall))
        ranks = np.empty(len(score))
        ranks[order] = at[order]
    else:
        places = np.argsort(-rows, axis=1, kind="stable")
        ranks = np.empty(rows.shape)
        np.put_along_axis(
            ranks, places, np.arange(rows.shape[1], dtype=np.float64)[None, :], axis=1
        )
        ranks = ranks[log.recall, at]
    return np.asarray(ranks / np.maximum(size[log.recall], 1))


def _standard(features: Floats) -> Floats:
    scale = features.std(axis=0)
    return np.asarray((features - features.mean(axis=0)) / np.where(scale > 0, scale, 1.0))
