"""Confidence sequences: intervals that hold at every look, so that a result may be watched as it grows.

The estimand is the running mean of what each observation was worth given the past, which may change from one to the
next. Let x_t be an observation, m_t its mean given the past, e_t what was expected of it beforehand, and s a rate with
1 + s (x_t - e_t) >= 0 whatever x_t turns out to be. Then

    exp(s sum(e - m)) prod(1 + s (x - e))

is a supermartingale, for 1 + y <= exp(y) (Mineiro 2022). It is never below the empirical Bernstein process of Howard,
Ramdas, McAuliffe & Sekhon (2021, Theorem 4) and of Waudby-Smith, Wu, Ramdas, Karampatziakis & Mineiro (2022), which
puts exp(s (x - e) - psi(s) (x - e)^2) in place of the factor. So is a mixture over rates, and by Ville's inequality it
exceeds 1/alpha at any time with probability alpha at most; all means for which it does not are kept. Each end has half
of alpha. How far an observation may fall below what is expected must be known before it: it comes from the range of the
rewards and the probability of what was drawn.

An observation that may fall too far for a rate is drawn towards the least that it can be, f: in place of x, e and m
stand f + c (x - f), f + c (e - f) and f + c (m - f), with c such that the condition holds. As m is at least the last of
these, the process with m itself is smaller still, so the estimand stays the mean of all m with equal weights, and one
recall with a large head costs the lower end at most its own share, (1 - c) (m - f) / t. Left out of every rate that it
does not fit, it would set the range of all that follow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memlab.errors import InputError
from memlab.science.evaluation._intervals import Floats

__all__ = [
    "RATES",
    "WEIGHTS",
    "Bounds",
    "level_of",
    "log_mixture",
    "rate_penalty",
    "recalls_of_sequence",
    "recalls_to_end",
    "sequence",
]


RATES: Floats = np.array([0.006, 0.015, 0.03, 0.045, 0.06, 0.075, 0.09, 0.13, 0.2])
"""In units of 1 / the range of rewards; the best rate is the difference over the variance of an observation."""

WEIGHTS: Floats = np.array([0.02, 0.05, 0.1, 0.15, 0.24, 0.2, 0.15, 0.05, 0.04])


_POWER = 0.8416
"""The quantile of the normal distribution below which .8 of it lies."""

_REACH = 0.9
"""How far below what is expected an observation may fall, in 1 / rate, where it does not fit. With one slate of 50
items among slates of 5 the median of the recalls that a difference needs is 375 at .9, 387 at .7, 428 at 0."""


@dataclass(frozen=True)
class Bounds:
    """The running mean and what it may be, after each observation: f64[n] each."""

    mean: Floats
    low: Floats
    high: Floats


def level_of(number: int, level: float) -> float:
    """Return the level of the comparison that was begun as the ``number``-th, so that all hold together at ``level``.

    Its error is 6 / (pi number)^2 of 1 - ``level``. These shares sum to 1 over all numbers, so a share that is fixed
    when a comparison begins never has to change, however many begin later.

    >>> [round(level_of(number, 0.95), 4) for number in (1, 2, 3)]
    [0.9696, 0.9924, 0.9966]
    """
    return 1 - (1 - level) * 6 / (np.pi * number) ** 2


def sequence(
    least: Floats,
    most: Floats | None = None,
    *,
    floor: Floats,
    ceiling: Floats,
    sizes: Floats | None = None,
    unit: float = 1.0,
    level: float = 0.95,
) -> Bounds:
    """The sequence of f64[n] observations, each of which could lie between ``floor`` and ``ceiling`` (f64[n]).

    An observation may be the sum of a block of ``sizes`` (f64[n], 1 unless given) that belong together. Where an
    observation is known within bounds only, they are ``least`` and ``most``: the lower end then holds for the one,
    the upper end for the other. ``unit`` is the range of the rewards.

    >>> ones = np.ones(400)
    >>> found = sequence(ones, floor=0 * ones, ceiling=ones)
    >>> float(found.mean[-1]), bool(found.low[-1] > 0.9), bool(found.high[-1] >= 1)
    (1.0, True, True)
    """
    most = least if most is None else most
    if not (np.isfinite(least).all() and np.isfinite(most).all()):
        raise InputError("A sequence is of finite numbers.")
    if ((least < floor - 1e-9) | (most > ceiling + 1e-9)).any():
        raise InputError("An observation lies outside of the bounds that were stated beforehand.")
    alpha = (1 - level) / 2
    sizes = np.ones(len(least)) if sizes is None else sizes
    low = _lower(least, floor, sizes, unit, alpha)
    high = -_lower(-most, -ceiling, sizes, unit, alpha)
    count = np.cumsum(sizes)
    return Bounds(np.cumsum((least + most) / 2) / count, low, high)


def _lower(values: Floats, floor: Floats, sizes: Floats, unit: float, alpha: float) -> Floats:
    """f64[n]: the lower end for the running mean."""
    count = np.cumsum(sizes)
    before = np.concatenate([[0.0], np.cumsum(values)[:-1]])
    # what was expected: the mean so far, drawn towards zero by one observation
    expected = np.maximum(before / (count - sizes + 1) * sizes, floor)
    # a scale of zero would be a promise that nothing is below what is expected
    scale = np.maximum(expected - floor, 1e-6 * unit)
    sums, rates = np.cumsum(values), RATES / unit
    part = _kept(rates[:, None] * scale)
    lost = rates[:, None] * (values - expected + (1 - part) * (expected - floor))
    factor = np.log1p(np.maximum(rates[:, None] * part * (values - expected), -1 + 1e-12))
    penalty = np.cumsum(lost - factor, axis=1)
    low, high = np.minimum.accumulate(np.minimum(floor, values) / sizes), sums / count
    for _ in range(50):
        middle = (low + high) / 2
        out = log_mixture(sums - count * middle, penalty, rates) >= -np.log(alpha)
        low, high = np.where(out, middle, low), np.where(out, high, middle)
    return low


def _kept(reach: Floats) -> Floats:
    """How much of an observation is kept that may fall ``reach`` below what is expected, in 1 / rate."""
    return np.where(reach < 1, 1.0, _REACH / np.maximum(reach, 1.0))


def rate_penalty(rate: Floats, scale: Floats) -> Floats:
    """The psi of the empirical Bernstein process, by which squares count at most against a rate below 1 / scale.

    (-log(1 - c s) - c s) / c^2 for the rate s and the scale c (Fan, Grama & Liu 2015).
    """
    reach = np.minimum(rate * scale, 1 - 1e-12)
    return np.asarray((-np.log1p(-reach) - reach) / scale**2)


def log_mixture(
    excess: Floats, penalty: Floats, rates: Floats, weights: Floats = WEIGHTS
) -> Floats:
    """f64[n]: the logarithm of the mixture, from excess sums f64[n] and penalties f64[rates, n]."""
    exponent = rates[:, None] * excess - penalty + np.log(weights)[:, None]
    top = exponent.max(axis=0)
    return np.asarray(top + np.log(np.exp(exponent - top).sum(axis=0)))


def recalls_of_sequence(
    gap: float, spread: float, scale: Floats, *, unit: float, level: float
) -> int | None:
    """After how many observations a sequence leaves zero with a power of .8; None where ten million would not do.

    ``gap`` is the mean of an observation (above 0), ``spread`` its standard deviation, ``scale`` f64[n] how far below
    zero observations can be, which stand for all that come.
    """
    if not gap > 0:
        return None
    rates, below = (RATES / unit)[:, None], scale + gap
    part = _kept(rates * below)
    growth = rates * (gap - (1 - part) * below) - rate_penalty(rates * part, below) * spread**2
    return _first_count(growth.mean(axis=1), (rates * part).mean(axis=1) * spread, level)


def recalls_to_end(values: Floats, floor: Floats, *, unit: float, level: float) -> int | None:
    """After how many observations like these (f64[n], of a mean above 0) a sequence leaves zero with a power of .8.

    By the growth of the process at each rate, as it was on average; None where ten million would not do.
    """
    mean = float(values.mean())
    if len(values) < 2 or not mean > 0:
        return None
    rates, below = (RATES / unit)[:, None], np.maximum(mean - floor, 0.0)
    part = _kept(rates * below)
    factor = np.log1p(np.maximum(rates * part * (values - mean), -1 + 1e-12))
    growth = rates * (mean - (1 - part) * below) + factor
    return _first_count(growth.mean(axis=1), growth.std(axis=1, ddof=1), level)


def _first_count(growth: Floats, spread: Floats, level: float) -> int | None:
    """The first count at which a mixture that grows by ``growth`` a step (f64[rates]) ends, four times out of five."""
    counts = np.unique(np.geomspace(10, 1e7, 600).astype(np.int64)).astype(np.float64)
    reached = growth[:, None] * counts - _POWER * spread[:, None] * np.sqrt(counts)
    enough = np.flatnonzero(
        log_mixture(np.zeros(len(counts)), -reached, RATES) >= -np.log((1 - level) / 2)
    )
    return int(counts[enough[0]]) if len(enough) else None
