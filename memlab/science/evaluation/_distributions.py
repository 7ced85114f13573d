"""Student's t, F and normal distributions, exact to ten digits: importing scipy.special for them took .3 to .5 seconds.

The regularised incomplete beta function by its continued fraction (Lentz's method; DLMF 8.17.22), from which t and F
follow. Degrees of freedom need not be whole.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

__all__ = ["f_survival", "normal_cdf", "normal_quantile", "t_cdf", "t_density", "t_quantile"]

_NORMAL = NormalDist()
_TINY = 1e-300
_LARGE = 50.0
"""From here on Stirling's series has all digits, where differences of lgamma lose them."""


def normal_cdf(x: float) -> float:
    """The probability of at most ``x`` under the standard normal distribution."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def normal_quantile(p: float) -> float:
    """The x with ``normal_cdf(x) = p``, 0 < p < 1."""
    return _NORMAL.inv_cdf(p)


def t_density(freedom: float, x: float) -> float:
    """The density of Student's t at ``x``."""
    scale = math.exp(-_log_beta(freedom / 2, 0.5)) / math.sqrt(freedom)
    return scale * math.exp(-(freedom + 1) / 2 * math.log1p(x * x / freedom))


def t_cdf(freedom: float, x: float) -> float:
    """The probability of at most ``x`` under Student's t."""
    if math.isinf(x):
        return float(x > 0)
    above = x * x / (freedom + x * x)
    tail = 0.5 * _beta(freedom / 2, 0.5, freedom / (freedom + x * x), above)
    return 1 - tail if x > 0 else tail


@lru_cache(maxsize=256)
def t_quantile(freedom: float, p: float) -> float:
    """The x with ``t_cdf(freedom, x) = p``, 0 < p < 1."""
    if p > 0.5:
        return -t_quantile(freedom, 1 - p)
    low, high = -1.0, 0.0
    while t_cdf(freedom, low) > p:
        low, high = 2 * low, low
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if t_cdf(freedom, middle) > p:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def f_survival(numerator: float, denominator: float, x: float) -> float:
    """The probability of more than ``x`` under F with these degrees of freedom."""
    if x <= 0:
        return 1.0
    if math.isinf(x):
        return 0.0
    whole = denominator + numerator * x
    return _beta(denominator / 2, numerator / 2, denominator / whole, numerator * x / whole)


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularised incomplete beta function; ``rest`` is 1 - x, which keeps its digits where x is near 1."""
    if x <= 0 or rest <= 0:
        return float(x > 0)
    logs = (math.log1p(-rest) if rest < 0.5 else math.log(x)), (math.log1p(-x) if x < 0.5 else math.log(rest))
    front = math.exp(a * logs[0] + b * logs[1] - _log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    numerator, ratio = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    found = ratio
    for step in range(1, 100_000):
        for term in (
            step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step)),
            -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1)),
        ):
            ratio = 1 / _away(1 + term * ratio)
            numerator = _away(1 + term / numerator)
            change = ratio * numerator
            found *= change
        if abs(change - 1) < 1e-15:
            break
    return found


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


@lru_cache(maxsize=256)
def _log_beta(a: float, b: float) -> float:
    small, large = min(a, b), max(a, b)
    if large < _LARGE:
        return math.lgamma(small) + math.lgamma(large) - math.lgamma(small + large)
    # log(gamma(large + small) / gamma(large)), without the difference of two large numbers
    both = large + small
    ratio = (large - 0.5) * math.log1p(small / large) + small * math.log(both) - small + _stirling(both)
    return math.lgamma(small) - ratio + _stirling(large)


def _stirling(x: float) -> float:
    """By how much log gamma exceeds Stirling's formula."""
    square = x * x
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / x
