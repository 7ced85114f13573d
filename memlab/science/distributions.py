"""Distribution functions of statistical tests: normal, Student's t, F and beta.

All but the normal distribution use the regularised incomplete beta function, computed by its continued
fraction (DiDonato and Morris 1992, equation 9). The smaller tail is computed first, so that small
probabilities keep all their digits.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_STIRLING = 10.0
"""The value from which eight terms of Stirling's series give all digits of a double."""
_TINY = 1e-300
"""Replaces a denominator of 0 in the continued fraction (Lentz's method)."""
_EPSILON = 2.0**-53
"""Half the distance from 1 to the next double: the relative rounding error of one operation."""
_STEPS = 100_000
"""Maximum number of steps, which parameters of 10**9 do not reach."""


def normal_cdf(x: float) -> float:
    """Return the cumulative probability of the standard normal distribution at `x`."""
    return math.erfc(-x / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution at probability `p`."""
    return NormalDist().inv_cdf(p) if 0 < p < 1 else math.copysign(math.inf, p - 0.5)


def t_cdf(freedom: float, t: float) -> float:
    """Return the cumulative probability of Student's t distribution at `t`; NaN for NaN."""
    if math.isnan(freedom + t):
        return math.nan
    square = t * t
    total = freedom + square
    outside = 0.0
    if not math.isinf(square):
        outside = _beta(freedom / 2, 0.5, freedom / total, square / total)[0]
    return outside / 2 if t < 0 else 1 - outside / 2


def t_quantile(freedom: float, p: float) -> float:
    """Return the quantile of Student's t distribution at probability `p`."""
    if math.isnan(freedom + p):
        return math.nan
    tail = min(p, 1 - p)
    inside, outside = _invert_beta(0.5, freedom / 2, 1 - 2 * tail, 2 * tail)
    return math.copysign(math.sqrt(freedom * inside / outside) if outside else math.inf, p - 0.5)


def f_tail(numerator: float, denominator: float, x: float) -> float:
    """Return the probability that an F variable exceeds `x`, given both degrees of freedom."""
    if not x < math.inf:
        return x if math.isnan(x) else 0.0
    scaled = numerator * x
    total = denominator + scaled
    return _beta(denominator / 2, numerator / 2, denominator / total, scaled / total)[0]


def beta_quantile(a: float, b: float, p: float) -> float:
    """Return the quantile of the Beta(a, b) distribution at probability `p`."""
    return _invert_beta(a, b, p, 1 - p)[0]


def log_beta(a: float, b: float) -> float:
    """Return the logarithm of the beta function of two positive numbers."""
    a, b = max(a, b), min(a, b)
    if a < _STIRLING:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    # lgamma(a) - lgamma(a + b) by Stirling's series: the difference of two large numbers would lose digits.
    difference = b - (a - 0.5) * math.log1p(b / a) - b * math.log(a + b)
    return math.lgamma(b) + difference + _correction(a) - _correction(a + b)


def _correction(x: float) -> float:
    """Return the difference between log-gamma and Stirling's formula."""
    inverse, sum_ = 1 / (x * x), 0.0
    for coefficient in _COEFFICIENTS:
        sum_ = sum_ * inverse + coefficient
    return sum_ / x


_COEFFICIENTS = (
    -3617 / 122400,
    1 / 156,
    -691 / 360360,
    1 / 1188,
    -1 / 1680,
    1 / 1260,
    -1 / 360,
    1 / 12,
)
"""Coefficients of Stirling's series (Abramowitz and Stegun 1964, 6.1.41), from the last term to the first."""


def _log_power(a: float, b: float, x: float, y: float) -> float:
    """Return the logarithm of ``x**a * y**b / B(a, b)`` for ``y = 1 - x``."""
    if min(a, b) < _STIRLING:
        log_x = math.log(x) if x < 0.5 else math.log1p(-y)
        log_y = math.log(y) if y < 0.5 else math.log1p(-x)
        return a * log_x + b * log_y - log_beta(a, b)
    # Around the mean, where the powers and the beta function nearly cancel.
    total = a + b
    excess = total * x - a if x < y else b - total * y
    power = a * math.log1p(excess / a) + b * math.log1p(-excess / b)
    scale = 0.5 * math.log(a / total * b / (2 * math.pi))
    return power + scale + _correction(total) - _correction(a) - _correction(b)


def _beta(a: float, b: float, x: float, y: float) -> tuple[float, float]:
    """Return the probabilities that a Beta(a, b) variable is below and above ``x = 1 - y``."""
    if x <= 0:
        return 0.0, 1.0
    if x > (a + 1) / (a + b + 2):
        upper, lower = _beta(b, a, y, x)
        return lower, upper
    # Lentz's method converges in about sqrt(max(a, b)) steps on this side of the mean. The terms contain y, because 1 - x
    # has lost the digits of a small y.
    fraction = ratio = a * (a * y - b * x + 1) / (a + 1)
    inverse = 0.0
    for step in range(1, _STEPS):
        double = a + 2 * step
        product = step * (b - step) * x / (double - 1)
        numerator = (a + step - 1) * (a + b + step - 1) * product * x / (double - 1)
        denominator = (
            step + product + (a + step) * (a * y - b * x + 1 + step * (1 + y)) / (double + 1)
        )
        inverse = 1 / ((denominator + numerator * inverse) or _TINY)
        ratio = (denominator + numerator / ratio) or _TINY
        fraction *= ratio * inverse
        if abs(ratio * inverse - 1) <= 2 * _EPSILON:
            break
    lower = math.exp(_log_power(a, b, x, y)) / fraction
    return lower, 1 - lower


def _invert_beta(a: float, b: float, p: float, q: float) -> tuple[float, float]:
    """Return the quantile ``x`` of Beta(a, b) at ``p = 1 - q``, and ``1 - x``."""
    if p <= 0 or q <= 0:
        return (0.0, 1.0) if p <= 0 else (1.0, 0.0)
    swapped = _beta(a, b, 0.5, 0.5)[0] < p
    if swapped:  # The smaller of x and 1 - x is solved for, which has all digits.
        a, b, p, q = b, a, q, p
    low, high, x = 0.0, 0.5, min(0.5, a / (a + b))
    for _ in range(400):  # Newton steps; bisect the interval where a step would leave it.
        lower, upper = _beta(a, b, x, 1 - x)
        error = lower - p if p < q else q - upper
        low, high = (low, x) if error > 0 else (x, high)
        slope = math.exp(_log_power(a, b, x, 1 - x)) / (x * (1 - x))
        following = x - error / slope if slope > 0 else low
        if not low < following < high:
            following = (low + high) / 2 if low else high / 16
        change, x = abs(following - x), following
        if change <= 4 * _EPSILON * x:
            break
    return (1 - x, x) if swapped else (x, 1 - x)
