"""Estimates of values from the items that a log showed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from memlab.errors import InputError
from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.science.evaluation._credited import Credited, calibrate_rewards
from memlab.science.evaluation._intervals import Estimate, Sample, Statistic
from memlab.science.evaluation._log import CERTAIN, Log, is_randomised
from memlab.science.evaluation._position import (
    Examination,
    estimate_examination,
    pair_probes,
)
from memlab.science.evaluation._prepared import Estimator, Settings
from memlab.science.evaluation._reward_model import predicted_rewards, scale_ranks
from memlab.science.evaluation._targets import Target

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
    """Return a policy's value, the estimated reward per recall, from its totals.

    Missing and unsupported rewards count as ``fill``; see ``_sum_rewards``.
    """
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
    """Return the estimated total reward of an item set for each row of totals.

    Missing and unsupported rewards count as ``fill``. If it is NaN, unsupported ones count as the mean
    of the others, and so do missing ones, or 0 with Horvitz-Thompson.
    """
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
        """Estimate a value that is known only within two bounds; return the estimate and both bounds.

        The estimated value is that of ``typical``, clipped to the bounds. The interval covers both bounds.
        """
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
        """Return a statistic with the first-order effect of errors in its estimated parameters.

        The parameters are estimated from the same totals. ``width`` is the number of columns of the arms,
        ARM or 2 ARM.
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
        places = pair_probes(log, scale_ranks(features[:, 0], log))
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
