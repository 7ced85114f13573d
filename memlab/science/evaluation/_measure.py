"""Estimate values and differences of policies on feedback, and check their gates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.base.printable import count_of
from memlab.science.distributions import normal_quantile
from memlab.science.evaluation._duplicates import count_unseen, find_repeated
from memlab.science.evaluation._intervals import Estimate, Sample, Statistic
from memlab.science.evaluation._log import CERTAIN, Log, is_randomised
from memlab.science.evaluation._position import (
    Examination,
    estimate_examination,
    lot_position_p,
    pair_probes,
    random_position_p,
)
from memlab.science.evaluation._prepared import Estimator, Settings
from memlab.science.evaluation._targets import Target, pad_scores
from memlab.science.evaluation._tests import (
    MIN_P,
    UNSURE,
    Balance,
    Facts,
    Gate,
    effective_count,
    format_signed,
    gates,
    independence_p,
    missing_p,
    position_p,
    redundancy_p,
    score_strata,
)
from memlab.science.regression import fit_logistic, fit_ridge, predict_chance

__all__ = [
    "ARM",
    "COLUMNS",
    "JUDGED",
    "UNSUPPORTED",
    "Compared",
    "Credited",
    "Estimates",
    "Evidence",
    "Measured",
    "Tests",
    "TopK",
    "bound_repeated",
    "calibrate_rewards",
    "compare",
    "credited_note",
    "difference_statistic",
    "doubt_redundancy",
    "enough_recalls",
    "gather_evidence",
    "measure",
    "measure_support",
    "name_numeric",
    "predicted_rewards",
    "read_score",
    "recalls_for",
    "recalls_needed",
    "repeated_note",
    "value_statistic",
]


# Values are estimated from inclusion probabilities, for rewards of single items.
#
# A recall shows item i with probability p_i, whatever else it shows. The value of a policy that would show the set T is
# the sum of the rewards of T, and each item of T that was shown represents 1/p_i items. T has three strata (Särndal,
# Swensson & Wretman 1992, 5.7). The sum over items that were certain to be shown is known. Randomised items are the
# probes. Unsupported items could not have been shown, so only the range of their rewards is known.
#
# Horvitz-Thompson    1/n sum over recalls of the sum over shown items of T of r_i / p_i                    (1952)
# self-normalised     the sum over certain items, and k sum(w r) / sum(w) over probes, w = 1/p, k their number
#
# Horvitz-Thompson is unbiased if every item of T could be shown. The self-normalised estimate trades a bias of order
# 1/n for much less variance and stays within the range of the rewards (Hajek 1971; Swaminathan & Joachims 2015), so it
# is the default. Unsupported items have the reward ``fill``: the minimum and the maximum reward give the bounds of the
# value (Manski 1990).
#
# The difference of two policies depends only on the items that one of them would show: common items cancel and add no
# variance.
#
# A value is a function of totals f64[..., 1 + ARM]: the number of recalls, then the columns of one arm. A difference is
# a function of totals f64[..., 1 + 2 ARM]: the number of recalls, the items that only the first policy would show, and
# the items that only the second would show.


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
"""The totals of one arm, which is a set of items.

Certain items have three columns: their number, the weight of the answered items, and the weighted
reward of the answered items. Randomised items (probes) have the same three columns. "silent" is the
weight of the probes whose missing feedback counts as ``fill``, and "unsupported" the number of
unsupported items.
"""

ARM = len(COLUMNS)
"""The number of columns of one arm."""


def value_statistic(estimator: Estimator, fill: float) -> Statistic:
    """Return the function that computes a policy's value from totals.

    ``fill`` is the reward of unsupported items. NaN stands for the mean reward of the other items.
    """
    # A closure could not be pickled for the workers of ``memlab.tune``.
    return partial(_divide_rewards, estimator, fill)


def _divide_rewards(estimator: Estimator, fill: float, totals: Floats) -> Floats:
    """Return a policy's value from its totals."""
    return np.asarray(_sum_rewards(estimator, totals[..., 1 : 1 + ARM], fill) / totals[..., 0])


def difference_statistic(estimator: Estimator, first: float, second: float) -> Statistic:
    """Return the function that computes the difference of two policies from totals.

    ``first`` and ``second`` are the rewards assumed for unsupported items of the first and of the
    second policy.
    """

    def statistic(totals: Floats) -> Floats:
        own = _sum_rewards(estimator, totals[..., 1 : 1 + ARM], first)
        other = _sum_rewards(estimator, totals[..., 1 + ARM : 1 + 2 * ARM], second)
        return np.asarray((own - other) / totals[..., 0])

    return statistic


def _sum_rewards(estimator: Estimator, arm: Floats, fill: float) -> Floats:
    """Return the estimated total reward of an item set for each row of totals."""
    certain, certain_weight, certain_reward, probes, weight, reward, silent, unsupported = (
        arm[..., column] for column in range(ARM)
    )
    if estimator == "ht":
        observed = certain_reward + reward + silent * np.nan_to_num(fill)
        typical = np.where(
            probes + certain > 0, observed / np.maximum(probes + certain, 1e-300), 0.0
        )
        return np.asarray(observed + unsupported * (typical if np.isnan(fill) else fill))
    with np.errstate(divide="ignore", invalid="ignore"):
        sure, mean = certain_reward / certain_weight, reward / weight
        drawn = mean if np.isnan(fill) else (reward + silent * fill) / (weight + silent)
    # A stratum without an answered item has an unknown reward, like unsupported items.
    typical = np.where(weight > 0, mean, np.where(certain_weight > 0, sure, np.nan))
    unknown = typical if np.isnan(fill) else fill
    total = np.where(certain > 0, certain * np.where(certain_weight > 0, sure, unknown), 0.0)
    total = total + np.where(
        probes > 0, probes * np.where(weight + silent > 0, drawn, unknown), 0.0
    )
    return np.asarray(total + np.where(unsupported > 0, unsupported * unknown, 0.0))


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
    """Regress attributed on stated rewards; return the coefficients of the inverse line.

    The line is fitted by least squares. Its inverse maps an attributed reward to a judged one.
    """
    count, truth, square, attributed, both = np.moveaxis(counts, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = (both - attributed * truth / count) / (square - truth**2 / count)
        start = (attributed - rise * truth) / count
        return np.stack([-start / rise, 1.0 / rise], axis=-1)


# Indices of columns that are updated separately.
_PROBES, UNSUPPORTED = COLUMNS.index("probes"), COLUMNS.index("unsupported")
# Columns that a calibration or an examination rate multiplies, and those that it leaves alone.
_REWARDS = [COLUMNS.index("certain reward"), COLUMNS.index("weighted reward")]
_WEIGHTS = [COLUMNS.index("certain weight"), COLUMNS.index("weight")]
_STEP = 1e-4
"""The step of eta for central differences.

The error of order step^2 is far below sampling noise.
"""


@dataclass(frozen=True)
class TopK:
    """The top-k of one policy in all recalls.

    Attributes
    ----------
    rows
        The row numbers of its candidates in the log, ascending.
    outside
        The number of its items that the pools of the log do not contain, f64[recalls].
    ranks
        The rank of each of ``rows`` within its top-k, from 1.
    repeated
        The number of items that repeat another item and count as outside, because no recall showed
        both.
    """

    name: str
    rows: Ints
    outside: Floats
    ranks: Ints | None = None
    repeated: int = 0

    def __len__(self) -> int:
        return len(self.rows) + int(self.outside.sum())


class Estimates:
    """Values and differences of policies, as functions of sums by cluster.

    The sums come from a log in memory (``Evidence``), or from partitions of a larger log.
    """

    def __init__(
        self,
        *,
        estimator: Estimator,
        level: float,
        reward_range: tuple[float, float],
        examination: Examination | None = None,
        credited: Credited | None = None,
    ) -> None:
        self.estimator, self.level, self.reward_range = estimator, level, reward_range
        self.examination, self.credited = examination, credited

    def value(self, sample: Sample) -> tuple[Estimate, float, float]:
        """Estimate a policy's value, and return its bounds without sampling error too.

        The interval covers the value for any rewards of unsupported items.
        """
        low, high = self.reward_range
        smallest, largest, typical = (
            self._follow_parameters(value_statistic(self.estimator, fill), ARM)
            for fill in (low, high, np.nan)
        )
        return self._estimate(sample, smallest, largest, typical)

    def difference(
        self, sample: Sample, *, level: float | None = None
    ) -> tuple[Estimate, float, float]:
        """Estimate a difference from a contrast's totals, and return its bounds too.

        The bounds have no sampling error.
        """
        low, high = self.reward_range
        ends = (low, high), (high, low), (np.nan, np.nan)
        smallest, largest, typical = (
            self._follow_parameters(difference_statistic(self.estimator, *fill), 2 * ARM)
            for fill in ends
        )
        return self._estimate(sample, smallest, largest, typical, level)

    def _estimate(
        self,
        sample: Sample,
        smallest: Statistic,
        largest: Statistic,
        typical: Statistic,
        level: float | None = None,
    ) -> tuple[Estimate, float, float]:
        """Estimate a value that is known only within two bounds, and return the bounds too."""
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high, middle = (
                float(statistic(sample.total)) for statistic in (smallest, largest, typical)
            )
            bounds = sample.estimate(smallest, None if high == low else largest, level=level)
        # The point is NaN if no item of the policy was shown.
        point = low if high == low else float(np.clip(middle, low, high))
        return replace(bounds, value=point), low, high

    def influence(self, totals: Floats, statistic: Statistic) -> Floats:
        """Return each recall's first-order effect on a statistic, f64[recalls]."""
        total = totals.sum(axis=0)
        steps = np.maximum(np.abs(total), 1.0) * 1e-6
        ends = total + np.concatenate([np.diag(steps), -np.diag(steps)])
        with np.errstate(divide="ignore", invalid="ignore"):
            above, below = np.split(statistic(ends), 2)
        slope = np.nan_to_num((above - below) / (2 * steps))
        effects = totals @ slope
        return np.asarray(effects - effects.mean())

    def _follow_parameters(self, statistic: Statistic, width: int) -> Statistic:
        """Extend a statistic with the first-order effect of errors in its estimated parameters.

        The parameters are estimated from the same totals. ``width`` is the number of columns of the
        arms, ARM or 2 ARM.
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
                correction = credited.change(counts)
                plain[..., 1:] += level * correction[..., :1] + slope * correction[..., 1:]
            return statistic(plain)

        return moved


class Evidence(Estimates):
    """The rewards and propensities of a log, as columns that estimates sum over rows.

    ``answered`` is the probability with which each shown item gets feedback, for inverse weighting.
    With ``bounds``, missing feedback counts as any reward within the range.

    With ``examination``, the reward of an item is proportional to how often its position is
    examined. A reward is then multiplied by theta of its position in the policy's results, and
    divided by theta of the position where it was shown (Li et al. 2018). Totals are followed by
    their derivatives by eta and by the counts from which eta is estimated. So intervals include the
    uncertainty of eta. The calibration of attributed rewards (``credited``) is treated alike.
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
        super().__init__(
            estimator=estimator,
            level=level,
            reward_range=reward_range,
            examination=examination,
            credited=credited,
        )
        # Every policy needs the examination at the same values of eta, and each costs a pass over all candidates.
        self._examination_by_eta: dict[float, Floats] = {}
        self.log = log
        self.probe: Flags = is_randomised(log.propensity)
        self.unsupported: Flags = log.propensity == 0
        # Most candidates were not shown, and only two of their columns are not 0.
        self.columns: Floats = np.zeros((len(log.propensity), ARM))
        self.columns[:, _PROBES], self.columns[:, UNSUPPORTED] = (
            ~self.unsupported,
            self.unsupported,
        )
        exposed = np.flatnonzero(log.exposed)
        propensity, reward = log.propensity[exposed], log.reward[exposed]
        certain, is_answered = propensity >= CERTAIN, ~np.isnan(reward)
        unsupported, silent = propensity == 0, ~is_answered & bounds
        with np.errstate(divide="ignore"):
            weight = np.nan_to_num(1.0 / propensity)
        response_rate = 1.0 if answered is None else answered[exposed]
        answered_weight = np.where(is_answered, weight / response_rate, 0.0)
        weighted_reward = answered_weight * np.nan_to_num(reward)
        self.columns[exposed] = np.column_stack(
            [
                certain & ~silent,
                np.where(certain, answered_weight, 0.0),
                np.where(certain, weighted_reward, 0.0),
                ~certain & ~unsupported,
                np.where(certain, 0.0, answered_weight),
                np.where(certain, 0.0, weighted_reward),
                np.where(silent & ~certain, weight, 0.0),
                unsupported | (silent & certain),
            ]
        )
        self._steps: list[Floats] = []
        """The columns after a unit change of the level and of the slope of the calibration."""
        for basis in np.empty((0, 0)) if credited is None else credited.bases.T:
            step = self.columns.copy()
            step[:, _REWARDS] += self.columns[:, _WEIGHTS] * basis[:, None]
            self._steps.append(step)

    def top_k(self, target: Target) -> TopK:
        """Return a target's items as rows of the log, and the number of items outside the log."""
        is_inside = target.row >= 0
        outside = np.bincount(target.recall[~is_inside], minlength=len(self.log)).astype(np.float64)
        rows = target.row[is_inside]
        order = np.argsort(rows)
        return TopK(
            target.name, rows[order], outside, target.rank[is_inside][order].astype(np.int64)
        )

    def sum_arm(
        self,
        rows: Ints,
        outside: Floats,
        *,
        scale: Floats | None = None,
        columns: Floats | None = None,
    ) -> Floats:
        """Sum the columns of selected candidates by recall, as f64[recalls, ARM].

        ``outside`` counts items outside the pools, which are unsupported. ``scale`` (f64[rows])
        multiplies rewards. ``columns`` (f64[n, ARM]) default to the columns of the log.
        """
        sums = np.zeros((len(self.log), ARM))
        if len(rows):
            recall = self.log.recall[rows]
            first = np.flatnonzero(np.concatenate([[True], recall[1:] != recall[:-1]]))
            columns = (self.columns if columns is None else columns)[rows]
            if scale is not None:
                columns[:, _REWARDS] *= scale[:, None]
            sums[recall[first]] = np.add.reduceat(columns, first, axis=0)
        sums[:, UNSUPPORTED] += outside
        return sums

    def totals(self, top_k: TopK) -> Floats:
        """Return the totals by recall that determine a policy's value."""
        return self._stack_totals(
            lambda eta, columns: [self._sum_at_ranks(top_k, top_k.rows, eta, columns)]
        )

    def differing_rows(self, first: TopK, second: TopK) -> tuple[Ints, Ints]:
        """Return two arrays: the rows that only the first or only the second policy would show.

        With an examination model, a row that both policies show at different ranks is returned for
        both.
        """
        if self.examination is None:
            membership = np.zeros(len(self.log.recall), dtype=np.int8)
            membership[first.rows] += 1
            membership[second.rows] += 2
            return first.rows[membership[first.rows] == 1], second.rows[
                membership[second.rows] == 2
            ]
        own, other = self._rank_rows(first), self._rank_rows(second)
        return first.rows[own[first.rows] != other[first.rows]], second.rows[
            own[second.rows] != other[second.rows]
        ]

    def _rank_rows(self, top_k: TopK) -> Ints:
        """Return the rank of each candidate in a top-k, int64[n]; 0 for other candidates."""
        ranks = np.zeros(len(self.log.recall), dtype=np.int64)
        ranks[top_k.rows] = 1 if top_k.ranks is None else top_k.ranks
        return ranks

    def _sum_at_ranks(self, top_k: TopK, rows: Ints, eta: float, columns: Floats) -> Floats:
        """Sum top-k items by recall, with rewards rescaled to the ranks of the policy."""
        if self.examination is None:
            return self.sum_arm(rows, top_k.outside, columns=columns)
        scale = self.examination.theta(self._rank_rows(top_k)[rows], eta) / self._examine(eta)[rows]
        return self.sum_arm(rows, top_k.outside, scale=scale, columns=columns)

    def _examine(self, eta: float) -> Floats:
        """Return each candidate's mean examination probability, for the exponent ``eta``."""
        assert self.examination is not None
        if eta not in self._examination_by_eta:
            self._examination_by_eta[eta] = self.examination.average(eta)
        return self._examination_by_eta[eta]

    def _stack_totals(self, arms: Callable[[float, Floats], list[Floats]]) -> Floats:
        """Return an item set's totals by recall, and their derivatives by estimated parameters.

        For each parameter (eta, and the level and slope of the calibration), the derivative of the
        totals follows. The counts from which the parameter is estimated come last.
        """

        def at(eta: float, columns: Floats) -> Floats:
            return np.concatenate(arms(eta, columns), axis=1)

        eta = 0.0 if self.examination is None else self.examination.eta.value
        base = at(eta, self.columns)
        parts = [np.ones((len(self.log), 1)), base]
        if self.examination is not None:
            above, below = (at(eta + step, self.columns) for step in (_STEP, -_STEP))
            parts += [(above - below) / (2 * _STEP), self.examination.counts]
        if self.credited is not None:
            parts += [*(at(eta, step) - base for step in self._steps), self.credited.counts]
        return np.concatenate(parts, axis=1)

    def contrast(self, first: TopK, second: TopK) -> Floats:
        """Return totals for the difference of two policies, f64[recalls, 1 + 2 ARM].

        Items outside the pools count as different for each policy, which can only widen the bounds.
        The columns of estimated parameters follow, if there are any.
        """
        own, other = self.differing_rows(first, second)
        return self._stack_totals(
            lambda eta, columns: [
                self._sum_at_ranks(first, own, eta, columns),
                self._sum_at_ranks(second, other, eta, columns),
            ]
        )

    def sample(self, totals: Floats) -> Sample:
        """Return the totals of recalls, summed within each cluster, as a sample."""
        return Sample(self.log.sum_by_cluster(totals), level=self.level)


# The direct method applies a model of rewards to items that were not shown. Reports call the result an extrapolation.
#
# The model is a logistic regression where rewards are 0 and 1, and a ridge regression otherwise. It is fitted on the
# log's own numeric features, standardised. Each recall is predicted by a model that was fitted without the recalls of
# its cluster.


_FOLDS = 5
"""The number of folds of the cross-fitting: each model is fitted on 80% of the clusters."""
_MIN_FITTED = 20
"""The minimum number of answered items of a training fold; a regression on fewer is noise."""


def predicted_rewards(
    features: Floats,
    reward: Floats,
    answered: Flags,
    cluster: Ints,
    reward_range: tuple[float, float],
) -> Floats | None:
    """Predict the reward of each candidate by a cross-fitted model, f64[n].

    Returns None if there are too few data. ``features`` is f64[n, features], NaN where unknown.
    ``reward`` is read where ``answered``. ``cluster`` is the cluster of each candidate.
    """
    clusters = np.unique(cluster)
    if len(clusters) < 2 or features.shape[1] == 0:
        return None
    fold = np.zeros(int(clusters.max()) + 1, dtype=np.int64)
    fold[clusters] = np.arange(len(clusters)) % min(_FOLDS, len(clusters))
    folds = fold[cluster]
    standardised = _standardise(features)
    binary = bool(np.isin(reward[answered], (0.0, 1.0)).all())
    expected = np.empty(len(reward))
    for number in range(int(folds.max()) + 1):
        training, predicted = answered & (folds != number), folds == number
        if training.sum() < _MIN_FITTED:
            return None
        expected[predicted] = _fit_and_predict(
            standardised[training], reward[training], standardised[predicted], binary
        )
    return np.clip(expected, *reward_range)


def _standardise(features: Floats) -> Floats:
    """Standardise columns; missing and infinite values become the mean, 0."""
    finite = np.where(np.isfinite(features), features, np.nan)
    is_finite = ~np.isnan(finite)
    counts = np.maximum(is_finite.sum(axis=0), 1)
    centred = np.where(
        is_finite, finite - np.where(is_finite, finite, 0.0).sum(axis=0) / counts, 0.0
    )
    deviation = np.sqrt((centred**2).sum(axis=0) / counts)
    return np.asarray(centred / np.where(deviation > 0, deviation, 1.0))


def _fit_and_predict(features: Floats, reward: Floats, points: Floats, binary: bool) -> Floats:
    """Fit a regression of rewards and return its predictions at ``points``."""
    if np.ptp(reward) == 0:
        return np.full(len(points), reward[0])
    if binary:
        return predict_chance(points, fit_logistic(features, reward > 0))
    weights = fit_ridge(features, reward)
    return np.asarray(points @ weights[:-1] + weights[-1])


# Policies are compared on feedback by values, differences, gates and the number of recalls needed.


_POWER = 0.8
"""The power of forecasts, which is conventional."""
_MISRANKED = 0.01
"""The share of neighbours in the wrong order up to which a score counts as that of the log.

Scores are rounded when they are logged.
"""
_RECALLS_PER_FEATURE = 10
"""The number of recalls per feature that a test needs.

With fewer recalls, a test uses only the score and the position.
"""


@dataclass(frozen=True)
class Compared:
    """The value of one policy, and its difference to another policy.

    ``lower`` and ``upper`` bound the value without sampling error; ``difference_lower`` and
    ``difference_upper`` bound the difference. ``totals`` (f64[recalls, columns]) determine the
    difference, or the value if there is no ``base``.
    """

    top_k: TopK
    base: TopK | None
    totals: Floats = field(repr=False)
    value: Estimate
    lower: float
    upper: float
    difference: Estimate | None = None
    difference_lower: float = math.nan
    difference_upper: float = math.nan


@dataclass(frozen=True)
class Measured:
    """The evidence of a log on one policy, and its gates.

    Attributes
    ----------
    unsupported
        The share of the policy's items that the log could not show; NaN if the log does not record
        it.
    unknown
        The share of the policy's items that were shown with an unknown probability.
    probes
        The number of answered items that distinguish the policy from the baseline.
    effective
        The number of recalls that carry the difference; None without an answered probe.
    """

    unsupported: float
    unknown: float
    probes: int
    effective: float | None
    gates: tuple[Gate, ...]
    weights: Floats = field(repr=False)
    """The weight 1/p of each item of the policy that was shown and answered, largest first."""


class Tests:
    """The p-values of the assumptions of an estimate, each computed on first use.

    A p-value is NaN if the log lacks the data of the test, and None if the estimate does not depend
    on the assumption. The matrix ``features`` is f64[n, k] over the candidates, and its first
    column is the score.
    """

    def __init__(self, log: Log, settings: Settings, features: Floats) -> None:
        self._log, self._settings, self._features = log, settings, features

    @cached_property
    def independence(self) -> float | None:
        """The p-value of the hypothesis that rewards are independent over time."""
        log = self._log
        if log.clusters < len(log) and log.clustered != "query":
            return None
        if "at" not in log.decisions.columns or log.decisions["at"].null_count():
            return math.nan
        residual = np.where(log.answered, np.nan_to_num(log.reward), 0.0)
        residual = residual - np.where(
            log.answered, residual.sum() / max(1, log.answered.sum()), 0.0
        )
        earned = np.bincount(log.recall, weights=residual, minlength=len(log))
        order = log.decisions["at"].arg_sort().to_numpy()
        # Recalls of one query are one unit, at the time of the first of them.
        first = order[np.sort(np.unique(log.cluster[order], return_index=True)[1])]
        units = np.bincount(log.cluster, weights=earned) / np.bincount(log.cluster)
        return independence_p(units[log.cluster[first]])

    @cached_property
    def missing(self) -> float | None:
        """The p-value of the hypothesis that missing feedback is independent of features."""
        log, exposed = self._log, self._log.exposed
        if self._settings.missing != "censor" or log.answered[exposed].all():
            return None
        features = np.column_stack(
            [_scale_columns(self._features[exposed]), np.log(np.maximum(log.position[exposed], 1))]
        )
        return missing_p(features, log.answered[exposed], log.recall[exposed])

    @cached_property
    def position(self) -> float | None:
        """The p-value of the hypothesis that rewards are independent of the position."""
        log = self._log
        if self._settings.position or self._has_single_items:
            return None
        if not self._is_scored.any():
            return math.nan
        pairs = pair_probes(log, self.scaled_rank)
        by_chance = lot_position_p(log) if pairs is None else random_position_p(pairs, log)
        strata, reward, recall = self._scored_items
        by_strata = position_p(strata, log.position[self._is_scored], reward, recall)
        if by_chance is None or math.isnan(by_chance):
            return by_strata
        # The strata have a tenth of the level, and random positions the rest.
        by_strata = 1.0 if math.isnan(by_strata) else by_strata
        return min(1.0, by_chance / (1 - 1 / UNSURE), by_strata)

    @cached_property
    def redundancy(self) -> float | None:
        """The p-value of the hypothesis that an item's reward is independent of the other items."""
        if self._has_single_items:
            return None
        return redundancy_p(*self._scored_items) if self._is_scored.any() else math.nan

    def redundancy_of(self, top_k: TopK) -> float | None:
        """Return the p-value of the redundancy test for one policy.

        It is NaN if the test passed on what was shown, but the policy would show other items
        together, and the log lacks the content of these items.
        """
        return doubt_redundancy(self.redundancy, count_unseen(self._log, top_k.rows))

    def balance(self, top_k: TopK) -> float | None:
        """Return the p-value of the hypothesis that the logged propensities are correct.

        Membership of ``top_k`` is one of the weights of the test.
        """
        if self._contradicted:
            return 0.0
        if not len(self._randomised_rows):
            return None
        return self._balance.p(self._mark_randomised(top_k))

    def balance_sums(self, top_k: TopK) -> tuple[Floats, Floats]:
        """Return the propensity test's residuals by recall, and their squares."""
        if not len(self._randomised_rows):
            return np.zeros((0, 3)), np.zeros((0, 3))
        return self._balance.sums(self._mark_randomised(top_k))

    def _mark_randomised(self, top_k: TopK) -> Floats:
        """Return 1 for each randomised candidate in a top-k and 0 for the others, f64[n, 1]."""
        member = np.zeros(len(self._log.propensity))
        member[top_k.rows] = 1.0
        return member[self._randomised_rows, None]

    @cached_property
    def _has_single_items(self) -> bool:
        """Whether every recall showed at most one item."""
        return bool(np.bincount(self._log.recall[self._log.exposed], minlength=1).max() < 2)

    @cached_property
    def _is_scored(self) -> Flags:
        """Whether each candidate was shown and has a reward, a position and a score.

        Without scores, the effect of a high position cannot be separated from the effect of a good item.
        """
        return self._log.answered & (self._log.position > 0) & bool(np.ptp(self._features[:, 0]))

    @cached_property
    def strata(self) -> Ints:
        """The stratum of each candidate's score within its recall."""
        recall, size = self._log.recall, np.bincount(self._log.recall, minlength=len(self._log))
        return score_strata(self._features[:, 0], np.rint(self.scaled_rank * size[recall]), recall)

    @property
    def _scored_items(self) -> tuple[Ints, Floats, Ints]:
        """The score strata, rewards and recalls of the items that ``_is_scored`` selects."""
        log = self._log
        return (
            self.strata[self._is_scored],
            log.reward[self._is_scored],
            log.recall[self._is_scored],
        )

    @cached_property
    def scaled_rank(self) -> Floats:
        """The rank of each candidate by the score in its recall, scaled to 0..1."""
        return _scale_ranks(self._features[:, 0], self._log)

    @cached_property
    def _randomised_rows(self) -> Ints:
        """The row numbers of the randomised candidates."""
        return np.flatnonzero(is_randomised(self._log.propensity))

    @cached_property
    def _contradicted(self) -> bool:
        """Whether an item with a propensity of 1 was not shown, which contradicts the log."""
        return bool(((self._log.propensity >= 1) & ~self._log.exposed).any())

    @cached_property
    def _balance(self) -> Balance:
        """The test of the hypothesis that logged propensities are correct, for any policy."""
        log, rows = self._log, self._randomised_rows
        propensity, recall, rank = log.propensity[rows], log.recall[rows], self.scaled_rank[rows]
        weight = None
        # Propensities of a Gumbel draw are conditional on its threshold, so a weight must come from other recalls.
        if "sampler" in log.decisions.columns:
            is_gumbel = (log.decisions["sampler"] == "gumbel").fill_null(False).to_numpy()[recall]
            weight = (
                np.where(is_gumbel, _mean_elsewhere(propensity, rank, recall), propensity)
                if is_gumbel.any()
                else None
            )
        return Balance(
            np.column_stack([np.ones(len(rows)), rank]),
            log.exposed[rows],
            propensity,
            recall,
            weight,
        )


def gather_evidence(
    log: Log, settings: Settings, features: Floats, answered: Floats | None = None
) -> Evidence:
    """Collect a log's evidence, with the chosen treatment of missing feedback.

    ``answered`` is the probability of an answer for each candidate, if known. It is estimated for
    ``missing="inverse"``.
    """
    if settings.missing == "inverse":
        response_rate = predicted_rewards(
            np.column_stack([features, np.log(np.maximum(log.position, 1))]),
            log.answered.astype(np.float64),
            log.exposed,
            log.cluster[log.recall],
            (0.02, 1.0),
        )
        answered = response_rate
    examination = None
    if settings.position:
        places = pair_probes(log, _scale_ranks(features[:, 0], log))
        examination = None if places is None else estimate_examination(places, log, settings.level)
        if examination is None:
            raise InputError(
                "position=True needs rewards of items at random positions, and this log has none. Show probes at random "
                "positions, as a lab does, or evaluate without position=True."
            )
    log, credited = calibrate_rewards(log)
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


def enough_recalls(recalls: int, features: int) -> bool:
    """Return whether the log has enough recalls to test ``count`` numeric features."""
    return recalls >= _RECALLS_PER_FEATURE * (features + 1)


def name_numeric(names: Sequence[str], schema: pl.Schema) -> list[str]:
    """Return the names of the features that are numeric."""
    return [
        name
        for name in names
        if name in schema and (schema[name].is_numeric() or schema[name] == pl.Boolean)
    ]


def read_score(log: Log, names: Sequence[str], schema: pl.Schema) -> tuple[str | None, Floats]:
    """Return the name and values of the score that ranked the log, where higher is better.

    The score is ``score``, otherwise minus ``rank``, otherwise the first feature whose values decrease
    with the position of the certain items. If no feature does, the name is None and the score 0.
    """
    first = next((name for name in ("score", "rank") if name in schema), None)
    score = _read_columns(log, [] if first is None else [first]) * (-1 if first == "rank" else 1)
    if score.any() and np.ptp(score):
        return first, score
    # A log without the score that ranked it has the constant 0 there.
    numeric = name_numeric(names, schema)
    scores = _read_columns(log, numeric)
    ranking = _find_ranking(log, scores)
    if ranking is None:
        return None, np.zeros((len(log.recall), 1))
    return numeric[ranking], scores[:, [ranking]]


def select_features(
    log: Log, names: Sequence[str], schema: pl.Schema, recalls: int | None = None
) -> Floats:
    """Return the feature columns that tests and models use, f64[n, k].

    The first column is the score from ``read_score``. Numeric features follow if there are enough recalls
    for them; the number of recalls is ``recalls``, by default the log's own number.
    """
    numeric = name_numeric(names, schema)
    ranking, score = read_score(log, names, schema)
    is_enough = enough_recalls(len(log) if recalls is None else recalls, len(numeric))
    rest = [name for name in numeric if name not in (ranking, "score", "rank")] if is_enough else []
    return np.column_stack([score, _read_columns(log, rest)])


def _read_columns(log: Log, names: Sequence[str]) -> Floats:
    """Return columns of the candidates, f64[n, columns]; infinite and missing numbers become 0."""
    if not names:
        return np.zeros((len(log.recall), 0))
    values = log.pool(names).select(pl.col(name).cast(pl.Float64) for name in names).to_numpy()
    return np.asarray(np.where(np.isfinite(values), values, 0.0))


def _find_ranking(log: Log, scores: Floats) -> int | None:
    """Return the index of the first score column that decreases with the position of surely shown items.

    A share of exceptions is tolerated. The result is None if no column decreases.
    """
    rows = np.flatnonzero(log.exposed & (log.propensity >= CERTAIN) & (log.position > 0))
    rows = rows[np.lexsort((log.position[rows], log.recall[rows]))]
    is_next = np.diff(log.recall[rows]) == 0
    if not is_next.any():
        return None
    for column, score in enumerate(scores.T):
        steps = np.diff(score[rows])[is_next]
        if steps.any() and (steps > 0).mean() <= _MISRANKED:
            return column
    return None


def compare(evidence: Evidence, top_k: TopK, base: TopK | None) -> Compared:
    """Estimate a policy's value, and its difference to ``base`` if a base is given.

    Near-duplicates that the log never showed together are unsupported, except the first of them.
    """
    top_k = bound_repeated(evidence.log, top_k)
    base = None if base is None else bound_repeated(evidence.log, base)
    totals = evidence.totals(top_k)
    value = evidence.value(evidence.sample(totals))
    if base is None:
        return Compared(top_k, base, totals, *value)
    contrast = evidence.contrast(top_k, base)
    return Compared(top_k, base, contrast, *value, *evidence.difference(evidence.sample(contrast)))


def doubt_redundancy(p: float | None, unseen: int) -> float | None:
    """Return a test's p-value, or NaN if the policy shows pairs that are not in the log.

    ``unseen`` is the number of recalls in which the policy would show other pairs.
    """
    return math.nan if unseen and p is not None and p >= MIN_P else p


def repeated_note(name: str, repeated: int) -> list[str]:
    """Return a report's remark on near-duplicates without a reward, if there are any."""
    if not repeated:
        return []
    return [
        f"{count_of(repeated, 'item')} of {name} repeat an item that no recall showed with them, so they may have any "
        'reward. Whole results show them together: lab.challenge(pack, design="ab").'
    ]


def bound_repeated(log: Log, top_k: TopK) -> TopK:
    """Treat a top-k's repeated items, whose reward is unknown, as items outside the log."""
    ranks = np.arange(1, len(top_k.rows) + 1) if top_k.ranks is None else top_k.ranks
    repeated = find_repeated(log, top_k.rows, ranks)
    if not len(repeated):
        return top_k
    keep = ~np.isin(top_k.rows, repeated)
    return TopK(
        top_k.name,
        top_k.rows[keep],
        top_k.outside + np.bincount(log.recall[repeated], minlength=len(log)),
        ranks[keep],
        len(repeated),
    )


def measure(evidence: Evidence, compared: Compared, tests: Tests) -> Measured:
    """Count the evidence on a policy and check its gates.

    Without a base, the gates concern the policy's value instead of its difference.
    """
    log, top_k, totals = evidence.log, compared.top_k, compared.totals
    if compared.base is None:
        disputed = top_k.rows
        statistic = value_statistic(evidence.estimator, evidence.reward_range[0])
    else:
        disputed = np.concatenate(evidence.differing_rows(top_k, compared.base))
        statistic = difference_statistic(evidence.estimator, *evidence.reward_range)
    probes = disputed[evidence.probe[disputed]]
    answered = probes[log.answered[probes]]
    effective = effective_count(evidence.influence(totals, statistic)) if len(answered) else None
    unsupported, unknown, exposed = measure_support(log, top_k)
    facts = Facts(
        unknown=unknown,
        clusters=log.clusters,
        recalls=len(log),
        probes=float(len(answered)) if len(probes) else None,
        effective=effective,
        independence=tests.independence,
        balance=tests.balance(top_k),
        missing=tests.missing,
        position=tests.position,
        redundancy=tests.redundancy_of(top_k),
    )
    weights = 1.0 / log.propensity[exposed[log.answered[exposed]]]
    return Measured(
        unsupported=unsupported,
        unknown=unknown,
        probes=len(answered),
        effective=effective,
        gates=gates(facts),
        weights=np.sort(weights)[::-1],
    )


def measure_support(log: Log, top_k: TopK) -> tuple[float, float, Ints]:
    """Return the share of unsupported items, the share of unknown propensity, and the shown rows.

    The first value is the share of unsupported items, NaN if the log does not record it. The second
    is the share of items shown with an unknown probability, and the third the row numbers of the
    items shown.
    """
    count, is_exposed = len(top_k), log.exposed[top_k.rows]
    exposed = top_k.rows[is_exposed]
    if not count:
        return 0.0, 0.0, exposed
    unknown = float(np.isnan(log.propensity[exposed]).sum()) / count
    unsupported = float((log.propensity[top_k.rows] == 0).sum() + top_k.outside.sum()) / count
    is_incomplete = bool(np.isnan(log.propensity[top_k.rows[~is_exposed]]).any())
    return math.nan if is_incomplete else unsupported, unknown, exposed


def recalls_needed(compared: Compared, recalls: int, level: float) -> int | None:
    """Forecast the number of recalls that distinguish two policies with a power of .8.

    Returns None if no number of recalls would. Unsupported items leave the difference within bounds
    that do not shrink with more recalls. So the bound nearer to zero is used.
    """
    if compared.difference is None or not compared.difference_lower * compared.difference_upper > 0:
        return None
    minimum = min(abs(compared.difference_lower), abs(compared.difference_upper))
    return recalls_for(
        Estimate(minimum, math.nan, math.nan, compared.difference.error, math.nan), recalls, level
    )


def recalls_for(gap: Estimate, recalls: int, level: float) -> int | None:
    """Forecast the number of recalls at which ``gap`` is significant with a power of .8.

    Returns None if the gap is 0 or has no error.
    """
    if not gap.value or math.isnan(gap.error):
        return None
    reach = normal_quantile((1 + level) / 2) + normal_quantile(_POWER)
    return math.ceil(recalls * (reach * gap.error / gap.value) ** 2)


def _mean_elsewhere(propensity: Floats, ranks: Floats, recall: Ints) -> Floats:
    """Return the mean propensity at the same rank in the other recalls, or 0 if there are none."""
    order = np.lexsort((ranks, recall))
    first = np.searchsorted(recall[order], recall[order])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - first
    count, total = np.bincount(rank)[rank], np.bincount(rank, weights=propensity)[rank]
    return np.asarray((total - propensity) / np.maximum(count - 1, 1))


def _scale_ranks(score: Floats, log: Log) -> Floats:
    """Return each candidate's rank by the score in its recall, scaled to 0..1."""
    size = np.bincount(log.recall, minlength=len(log))
    first = np.cumsum(size) - size
    rows = pad_scores(score, log.recall, size)
    offset = np.arange(len(score)) - first[log.recall]
    if rows is None:
        order = np.lexsort((-score, log.recall))
        ranks = np.empty(len(score))
        ranks[order] = offset[order]
    else:
        order = np.argsort(-rows, axis=1, kind="stable")
        ranks = np.empty(rows.shape)
        np.put_along_axis(ranks, order, np.arange(rows.shape[1], dtype=np.float64)[None, :], axis=1)
        ranks = ranks[log.recall, offset]
    return np.asarray(ranks / np.maximum(size[log.recall], 1))


def _scale_columns(features: Floats) -> Floats:
    """Scale columns to mean 0 and standard deviation 1; constant columns become 0."""
    scale = features.std(axis=0)
    return np.asarray((features - features.mean(axis=0)) / np.where(scale > 0, scale, 1.0))
