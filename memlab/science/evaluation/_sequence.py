"""Confidence sequences: intervals that hold at every interim analysis at once.

The estimand is the running mean of each observation's conditional mean given the past, which may
change over time. Let x_t be an observation, m_t its mean given the past, and e_t its expectation
from earlier data. Let s be a rate such that 1 + s (x_t - e_t) >= 0 for every possible x_t. Then

    exp(s sum(e - m)) prod(1 + s (x - e))

is a supermartingale, because 1 + y <= exp(y) (Mineiro 2022). It is never below the empirical
Bernstein process, which has exp(s (x - e) - psi(s) (x - e)^2) as its factor. That process is due
to Howard, Ramdas, McAuliffe & Sekhon (2021, Theorem 4) and Waudby-Smith, Wu, Ramdas,
Karampatziakis & Mineiro (2022).

A mixture over rates is a supermartingale too. By Ville's inequality it ever exceeds 1/alpha with
probability at most alpha. The confidence set holds all means for which the mixture stays below
1/alpha. Each end of the interval has half of alpha. The lower bound of an observation must be known
in advance: it follows from the range of the rewards and the logged probabilities.

An observation whose range is too wide for a rate is shrunk towards its lower bound f. The terms x,
e and m are replaced by f + c (x - f), f + c (e - f) and f + c (m - f), with c such that the
condition holds. Because m is at least f + c (m - f), the process with m itself is smaller still. So
the estimand stays the mean of all m with equal weights. A recall with many disputed items lowers
the lower end by at most its own share, (1 - c) (m - f) / t. Without shrinking, each such recall
would rule out all rates that are too large for its range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memlab.errors import InputError
from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.policies import error_share

RATES: Floats = np.array([0.006, 0.015, 0.03, 0.045, 0.06, 0.075, 0.09, 0.13, 0.2])
"""The rates of the mixture, in units of 1 / the range of rewards.

The best rate is the difference divided by the variance of an observation.
"""

WEIGHTS: Floats = np.array([0.02, 0.05, 0.1, 0.15, 0.24, 0.2, 0.15, 0.05, 0.04])
"""The weight of each rate in the mixture.

The weights sum to 1, and more than half of the weight is on rates of .06 to .09.
"""


_POWER = 0.8416
"""The .8 quantile of the standard normal distribution, because forecasts have a power of 80%."""

_REACH = 0.9
"""The distance by which a shrunk observation may fall below its expectation, times the rate.

With one slate of 50 items among slates of 5, the median number of recalls that a difference needs
is 375 at .9, 387 at .7 and 428 at 0.
"""


@dataclass(frozen=True)
class Bounds:
    """The running mean of n observations, and its confidence bounds: f64[n] each."""

    mean: Floats
    low: Floats
    high: Floats


def level_of(number: int, level: float) -> float:
    """Return the confidence level of a comparison, from its number in the log.

    The error of comparison number k is 6 / (pi k)^2 of 1 - ``level``. These shares sum to 1 over
    all numbers, so all comparisons hold together at ``level``. The level is fixed when a comparison
    begins, and never has to change.

    >>> [round(level_of(number, 0.95), 4) for number in (1, 2, 3)]
    [0.9696, 0.9924, 0.9966]
    """
    return 1 - (1 - level) * error_share(number)


def sequence(
    lower: Floats,
    upper: Floats | None = None,
    *,
    floor: Floats,
    ceiling: Floats,
    sizes: Floats | None = None,
    unit: float = 1.0,
    level: float = 0.95,
) -> Bounds:
    """Compute the confidence sequence of the running mean of n observations.

    Each observation must lie between ``floor`` and ``ceiling`` (f64[n]), which are known in
    advance. An observation may be the sum of a block of ``sizes`` (f64[n], 1 by default) dependent
    recalls. An observation that is known only within bounds is given by ``lower`` and ``upper``.
    The lower end of the sequence then holds for ``lower``, the upper end for ``upper``. The range
    of the rewards is ``unit``.

    >>> ones = np.ones(400)
    >>> bounds = sequence(ones, floor=0 * ones, ceiling=ones)
    >>> float(bounds.mean[-1]), bool(bounds.low[-1] > 0.9), bool(bounds.high[-1] >= 1)
    (1.0, True, True)
    """
    upper = lower if upper is None else upper
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise InputError(
            "A confidence sequence needs finite observations. Leave out NaN and infinite values."
        )
    if ((lower < floor - 1e-9) | (upper > ceiling + 1e-9)).any():
        raise InputError(
            "An observation is below its minimum or above its maximum. Check the logged "
            "propensities and the range of the rewards."
        )
    alpha = (1 - level) / 2
    sizes = np.ones(len(lower)) if sizes is None else sizes
    low = _lower(lower, floor, sizes, unit, alpha)
    high = -_lower(-upper, -ceiling, sizes, unit, alpha)
    count = np.cumsum(sizes)
    return Bounds(np.cumsum((lower + upper) / 2) / count, low, high)


@dataclass(frozen=True)
class Process:
    """The observations of a confidence sequence, as ``sequence`` takes them.

    Several observations may form a block. ``last`` (int64[blocks]) is the index of the last
    observation of each block; by default each observation is a block. Bounds are those after each
    block.

    The last interval is also given without a group of blocks. Expectations are computed from the
    whole sequence, because a process stays valid under any expectation from earlier data.
    """

    lower: Floats
    upper: Floats
    floor: Floats
    ceiling: Floats
    sizes: Floats
    unit: float
    last: Ints | None = None

    @property
    def block(self) -> Ints:
        """The block index of each observation."""
        return np.asarray(np.searchsorted(self._ends, np.arange(len(self.lower))))

    @property
    def _ends(self) -> Ints:
        return np.arange(len(self.lower)) if self.last is None else self.last

    @property
    def sides(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """The values and minimum of the lower process, and of the mirrored upper process."""
        return (self.lower, self.floor), (-self.upper, -self.ceiling)

    def bounds(self, level: float) -> Bounds:
        """Return the confidence sequence after each block."""
        bounds = sequence(
            self.lower,
            self.upper,
            floor=self.floor,
            ceiling=self.ceiling,
            sizes=self.sizes,
            unit=self.unit,
            level=level,
        )
        return Bounds(*(values[self._ends] for values in (bounds.mean, bounds.low, bounds.high)))

    def without(self, group: Ints, groups: int, level: float) -> Bounds:
        """Return the final mean and bounds when each group is left out, f64[groups].

        ``group`` (int64[blocks]) is the number of each block's group, -1 for none. For a group that
        has all observations, the bounds are infinite and the mean is NaN.
        """
        group = group[self.block]

        def remaining(values: Floats) -> Floats:
            """Return the sum of all values minus the sum of each group's values."""
            sums = np.bincount(group + 1, weights=values, minlength=groups + 1)
            return np.asarray(values.sum() - sums[1:])

        rates, count = RATES / self.unit, remaining(self.sizes)
        # Counts of a group with all observations differ from 0 by rounding only.
        left = count > 1e-9 * self.sizes.sum()
        ends = []
        for values, floor in self.sides:
            penalty = np.array(
                [remaining(row) for row in _penalties(values, floor, self.sizes, self.unit)]
            )
            sums = remaining(values)[left]
            minimum = np.full(len(sums), (np.minimum(floor, values) / self.sizes).min())
            end = np.full(groups, -np.inf)
            end[left] = excluded_mean(
                sums, count[left], penalty[:, left], rates, (1 - level) / 2, minimum
            )
            ends.append(end)
        mean = np.full(groups, np.nan)
        mean[left] = remaining((self.lower + self.upper) / 2)[left] / count[left]
        return Bounds(mean, ends[0], -ends[1])

    def decided_without(
        self, group: Ints, selected: Sequence[int], level: float, *, above: bool
    ) -> Flags:
        """Return the blocks after which zero is excluded when any group is left out, bool[blocks].

        ``above`` says whether the means must be above or below zero.
        """
        group, (values, floor) = group[self.block], self.sides[not above]
        rates = RATES[:, None] / self.unit
        terms = rates * values - _penalties(values, floor, self.sizes, self.unit)
        total, decided = np.cumsum(terms, axis=1), np.ones(len(values), dtype=np.bool_)
        for number in selected:
            rest = total - np.cumsum(terms * (group == number), axis=1)
            decided &= log_mixture(0 * values, -rest, RATES) >= -np.log((1 - level) / 2)
        return decided[self._ends]


def _penalties(values: Floats, floor: Floats, sizes: Floats, unit: float) -> Floats:
    """Return the penalty of each observation in the exponent for each rate, f64[rates, n].

    ``floor`` has the minimum of each observation, ``sizes`` its number of recalls, and the rates are
    divided by ``unit``.
    """
    count = np.cumsum(sizes)
    earlier = np.concatenate([[0.0], np.cumsum(values)[:-1]])
    # The expectation is the mean so far, shrunk towards zero as if by one more observation of 0.
    expected = np.maximum(earlier / (count - sizes + 1) * sizes, floor)
    return observation_penalties(values, expected, floor, RATES / unit, unit)


def observation_penalties(
    values: Floats, expected: Floats, floor: Floats, rates: Floats, unit: float = 1.0
) -> Floats:
    """Return the penalty of each observation in the exponent for each rate, f64[rates, n].

    ``expected`` (f64[n]) is known before the observation and not below its ``floor``.
    """
    # A scale of zero would claim that no observation can be below its expectation.
    scale = np.maximum(expected - floor, 1e-6 * unit)
    shrinkage = _shrink_factor(rates[:, None] * scale)
    penalties = rates[:, None] * (values - expected + (1 - shrinkage) * (expected - floor))
    factor = np.log1p(np.maximum(rates[:, None] * shrinkage * (values - expected), -1 + 1e-12))
    return np.asarray(penalties - factor)


def _lower(values: Floats, floor: Floats, sizes: Floats, unit: float, alpha: float) -> Floats:
    """Return the lower confidence bound of the running mean at each observation, f64[n].

    ``floor`` has the minimum of each observation, and ``sizes`` its number of recalls. All bounds hold
    together with probability 1 - ``alpha``.
    """
    penalty = np.cumsum(_penalties(values, floor, sizes, unit), axis=1)
    minimum = np.minimum.accumulate(np.minimum(floor, values) / sizes)
    return excluded_mean(np.cumsum(values), np.cumsum(sizes), penalty, RATES / unit, alpha, minimum)


def excluded_mean(
    sums: Floats,
    count: Floats,
    penalty: Floats,
    rates: Floats,
    alpha: float,
    low: Floats,
    weights: Floats = WEIGHTS,
) -> Floats:
    """Find the largest excluded mean of each process by bisection from ``low``, f64[n]."""
    high = sums / count
    for _ in range(50):
        middle = (low + high) / 2
        excess = sums - count * middle
        excluded = log_mixture(excess, penalty, rates, weights) >= -np.log(alpha)
        low, high = np.where(excluded, middle, low), np.where(excluded, high, middle)
    return low


def _shrink_factor(reach: Floats) -> Floats:
    """Return factors that limit how far observations can fall below their expectations.

    ``reach`` is the range of the observation below its expectation, times the rate.
    """
    return np.where(reach < 1, 1.0, _REACH / np.maximum(reach, 1.0))


def rate_penalty(rate: Floats, scale: Floats) -> Floats:
    """Return psi of the empirical Bernstein process, for rates below 1 / ``scale``.

    The value is (-log(1 - c s) - c s) / c^2 for the rate s and the scale c (Fan, Grama & Liu 2015).
    """
    reach = np.minimum(rate * scale, 1 - 1e-12)
    return np.asarray((-np.log1p(-reach) - reach) / scale**2)


def log_mixture(
    excess: Floats, penalty: Floats, rates: Floats, weights: Floats = WEIGHTS
) -> Floats:
    """Return the log of the mixture of processes over all rates at each observation, f64[n].

    ``excess`` (f64[n]) is multiplied by each rate, and ``penalty`` (f64[rates, n]) is subtracted.
    """
    exponent = rates[:, None] * excess - penalty + np.log(weights)[:, None]
    top = exponent.max(axis=0)
    return np.asarray(top + np.log(np.exp(exponent - top).sum(axis=0)))


def recalls_of_sequence(
    gap: float, spread: float, scale: Floats, *, unit: float, level: float
) -> int | None:
    """Forecast the number of observations after which a confidence sequence excludes zero.

    The forecast has a power of .8. ``gap`` is the mean of an observation and above 0; ``spread`` is
    its standard deviation. ``scale`` (f64[n]) is a sample of how far below zero observations can
    be. The result is None if more than ten million observations are needed.
    """
    if not gap > 0:
        return None
    rates, below = (RATES / unit)[:, None], scale + gap
    shrinkage = _shrink_factor(rates * below)
    growth = (
        rates * (gap - (1 - shrinkage) * below) - rate_penalty(rates * shrinkage, below) * spread**2
    )
    return _first_count(growth.mean(axis=1), (rates * shrinkage).mean(axis=1) * spread, level)


def recalls_to_end(values: Floats, floor: Floats, *, unit: float, level: float) -> int | None:
    """Forecast how many observations like ``values`` a sequence needs to exclude zero.

    The forecast has a power of .8 and uses the mean growth of the process at each rate. ``values``
    (f64[n]) has a mean above 0, and ``floor`` (f64[n]) is the minimum of each observation. The
    result is None if more than ten million observations are needed.
    """
    mean = float(values.mean())
    if len(values) < 2 or not mean > 0:
        return None
    rates, below = (RATES / unit)[:, None], np.maximum(mean - floor, 0.0)
    shrinkage = _shrink_factor(rates * below)
    factor = np.log1p(np.maximum(rates * shrinkage * (values - mean), -1 + 1e-12))
    growth = rates * (mean - (1 - shrinkage) * below) + factor
    return _first_count(growth.mean(axis=1), growth.std(axis=1, ddof=1), level)


def _first_count(growth: Floats, spread: Floats, level: float) -> int | None:
    """Return the number of observations that a sequential test needs to exclude zero, or None beyond 10 million.

    The power is .8. ``growth`` and ``spread`` (f64[rates]) are the mean and the standard deviation
    of the growth of the process at each rate per observation.
    """
    counts = np.unique(np.geomspace(10, 1e7, 600).astype(np.int64)).astype(np.float64)
    reached = growth[:, None] * counts - _POWER * spread[:, None] * np.sqrt(counts)
    enough = np.flatnonzero(
        log_mixture(np.zeros(len(counts)), -reached, RATES) >= -np.log((1 - level) / 2)
    )
    return int(counts[enough[0]]) if len(enough) else None
