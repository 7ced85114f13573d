"""Tests of what an estimate takes for granted: each gives a p-value, or NaN where there is nothing to test.

- *balance*: what was certain was shown. With the right propensities, what was shown less what was expected is noise,
  whatever it is summed with (the rank, the score, membership of a policy's head). Draws of different recalls are
  independent by design, so the covariance is that of recalls, and Hotelling's statistic holds for few of them. A
  propensity given the threshold of a draw is itself drawn: only shown / propensity has a known mean, and its weight
  must not come from the same draw. Where whole heads are shown, each is counted against its probability.
- *independence*: what recalls earn, in order of time, does not resemble what the next one earns, nor the next ten.
- *silence*: rewards may be left out where they are missing at random; whether an item was answered must then not follow
  what is known of it.
- *position*: at the same score, an item shown further up must not earn more. Where places are random, ``_position``
  asks that without the score.
- *redundancy*: where rewards add up, those of one recall move apart by chance, or together by its mood. If they move
  against each other, one item makes another one worthless.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from memlab.science.evaluation._distributions import f_survival, normal_cdf, t_cdf

__all__ = [
    "Balance",
    "arms_p",
    "by_recall",
    "hotelling_p",
    "independence_p",
    "position_p",
    "redundancy_p",
    "silence_p",
]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
_LEAST = 30
"""Recalls, or items, below which nothing is tested."""
_BINS = 20
_LAGS = 10
"""So many recalls before each are looked at together. Of logs of forty users of Pareto sizes who are not named, the
recall before alone lets .16 pass, both looks .03: those of which one user asked nearly all."""
_ROUNDING = 0.01
"""The share of what chance would leave that is taken for rounding."""


class Balance:
    """Of the logged propensities, over the n candidates that were left to chance, recall by recall.

    ``fixed`` f64[n, k] is held against what was shown in every test. ``weight`` f64[n] multiplies
    shown / propensity - 1, and was fixed before the draw: the propensity unless given.
    """

    def __init__(
        self, fixed: Floats, shown: Flags, propensity: Floats, recall: Ints, weight: Floats | None = None
    ) -> None:
        self._moved = shown - propensity if weight is None else weight * (shown / propensity - 1.0)
        self._recall = recall
        self._fixed = self._summed(fixed)

    def _summed(self, features: Floats) -> tuple[Floats, Floats]:
        moved = self._moved[:, None] * features
        return by_recall(moved, self._recall), (moved**2).sum(axis=0)

    def p(self, more: Floats) -> float:
        """The p-value, ``more`` f64[n, k] held against what was shown as well."""
        parts = self._fixed, self._summed(more)
        sums, squares = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        # where each recall shows as many probes as expected, their number leaves nothing but what the propensities were
        # rounded by; a constant that is more than that is no chance
        alone = np.sqrt(squares / len(sums))
        nothing = np.sqrt((sums**2).mean(axis=0)) <= _ROUNDING * alone
        if len(sums) >= _LEAST and (~nothing & (sums.std(axis=0) <= 1e-5 * alone)).any():
            return 0.0
        return hotelling_p(np.where(nothing, 0.0, sums))


def arms_p(shown: Flags, share: Floats) -> float:
    """Of the probabilities with which whole heads were shown: ``shown`` and ``share`` are [recalls, heads]."""
    count, error = (shown - share).sum(axis=0), np.sqrt((share * (1 - share)).sum(axis=0))
    if len(share) < _LEAST or not error.any():
        return np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.where(error > 0, np.abs(count) / error, np.where(count != 0, np.inf, 0.0))
    return float(min(1.0, share.shape[1] * 2 * normal_cdf(-float(off.max()))))


def independence_p(earned: Floats) -> float:
    """Of recalls that earn independently of those before; ``earned`` is f64[recalls] in order of time."""
    count = len(earned)
    centred = earned - earned.mean()
    spread = float((centred**2).sum())
    if count < _LEAST or spread == 0:
        return np.nan
    # one-sided: autocorrelations of independent values are normal around -1/n with variance 1/n, and independent
    each = []
    for lags in (1, min(_LAGS, count // _LAGS)):
        total = sum(float((centred[lag:] * centred[:-lag]).sum()) for lag in range(1, lags + 1)) / spread
        each.append(normal_cdf(-(total + lags / count) * math.sqrt(count / lags)))
    return min(1.0, 2 * min(each))


def silence_p(features: Floats, answered: Flags, recall: Ints) -> float:
    """Of silence that does not follow the features, f64[n, k], over the items that were shown."""
    if answered.all() or len(answered) < _LEAST:
        return np.nan
    sums = by_recall((answered - answered.mean())[:, None] * (features - features.mean(axis=0)), recall)
    return hotelling_p(sums)


def position_p(score: Floats, position: Ints, reward: Floats, recall: Ints) -> float:
    """Of rewards that do not follow the position (from 1), given the score, over the items with a reward."""
    if len(reward) < _LEAST or np.ptp(position) == 0:
        return np.nan
    strata = _strata(score)
    place = np.log(position.astype(np.float64))
    place, residual = place - _means(place, strata), reward - _means(reward, strata)
    return hotelling_p(by_recall((place * residual)[:, None], recall))


def redundancy_p(score: Floats, reward: Floats, recall: Ints) -> float:
    """Of rewards that do not move against each other within a recall, given the score; one-sided."""
    if len(reward) < _LEAST:
        return np.nan
    residual = reward - _means(reward, _strata(score))
    groups = np.unique(recall, return_inverse=True)[1]
    total = np.bincount(groups, weights=residual)
    pairs = (total**2 - np.bincount(groups, weights=residual**2)) / 2
    if len(pairs) < _LEAST or not pairs.any():
        return np.nan
    error = pairs.std(ddof=1) / np.sqrt(len(pairs))
    return t_cdf(len(pairs) - 1, float(pairs.mean() / error)) if error > 0 else np.nan


def by_recall(values: Floats, recall: Ints) -> Floats:
    """f64[recalls, k]: rows f64[n, k] summed in recalls, of which there is one for each number that occurs."""
    if not len(recall):
        return np.zeros((0, values.shape[1]))
    if (recall[1:] < recall[:-1]).any():
        order = np.argsort(recall, kind="stable")
        values, recall = values[order], recall[order]
    first = np.flatnonzero(np.concatenate([[True], recall[1:] != recall[:-1]]))
    return np.asarray(np.add.reduceat(values, first, axis=0))


def _strata(score: Floats) -> Ints:
    """The twentieth of all items in which each one's score lies."""
    edges = np.quantile(score, np.linspace(0, 1, _BINS + 1)[1:-1])
    return np.searchsorted(edges, score, side="right")


def _means(values: Floats, strata: Ints) -> Floats:
    counts = np.maximum(np.bincount(strata, minlength=_BINS), 1)
    return np.asarray((np.bincount(strata, weights=values, minlength=_BINS) / counts)[strata])


def hotelling_p(sums: Floats) -> float:
    """The p-value of a mean of zero, from independent rows f64[n, k]; columns that repeat others are left out."""
    count = len(sums)
    if count < _LEAST:
        return np.nan
    covariance = np.atleast_2d(np.cov(sums, rowvar=False))
    scale = np.sqrt(np.diag(covariance))
    kept = scale > 1e-12
    if not kept.any():
        return np.nan
    correlation = covariance[np.ix_(kept, kept)] / np.outer(scale[kept], scale[kept])
    values, vectors = np.linalg.eigh(correlation)
    firm = values > 1e-6
    rank = int(firm.sum())
    mean = (sums.mean(axis=0)[kept] / scale[kept]) @ vectors[:, firm]
    squared = count * float((mean**2 / values[firm]).sum())
    if count <= rank:
        return np.nan
    return f_survival(rank, count - rank, squared * (count - rank) / (rank * (count - 1)))
