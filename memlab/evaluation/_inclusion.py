"""Values from inclusion probabilities, for rewards of single items.

A recall shows item i with probability p_i, whatever else it shows. A policy that would show the set T is worth the sum
of the rewards of T; each item of T that was shown stands for 1/p_i of its kind:

    Horvitz-Thompson    1/n sum over recalls of the sum over shown items of T of r_i / p_i                    (1952)
    self-normalised     k sum(w r) / sum(w), with w = 1/p over all shown items of T and k the mean size of T

The first is unbiased where every item of T could be shown. The second trades a bias of order 1/n for far less variance
and stays within the range of the rewards (Swaminathan & Joachims 2015); it is the default. Where a part of T could not
be shown, the first counts it as 0 and the second takes it to be like the rest; ``bounds`` fill it with the least and
the greatest reward instead.

A value is a function of totals, f64[..., 5]: recalls, items of T, those that could not be shown, weights of those whose
reward is known, and weighted rewards.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memlab.evaluation._clusters import Statistic

__all__ = ["WIDTH", "Estimator", "difference", "filled", "horvitz_thompson", "inclusion_weights", "self_normalised"]

Floats = NDArray[np.float64]
Estimator = Literal["snips", "ht"]

WIDTH = 5
_RECALLS, _ITEMS, _UNSUPPORTED, _WEIGHT, _WEIGHTED = range(WIDTH)


def inclusion_weights(shown: NDArray[np.bool_], propensity: Floats) -> Floats:
    """f64[n]: 1/p where an item was shown, 0 elsewhere; NaN where it was shown with an unknown probability.

    >>> inclusion_weights(np.array([True, False]), np.array([0.25, 0.5])).tolist()
    [4.0, 0.0]
    """
    weights = np.zeros(len(propensity))
    np.divide(1.0, propensity, out=weights, where=shown)
    return weights


def horvitz_thompson(totals: Floats) -> Floats:
    """The value of a policy, summed with weights; f64[...] from totals f64[..., 5]."""
    return np.asarray(totals[..., _WEIGHTED] / totals[..., _RECALLS])


def self_normalised(totals: Floats) -> Floats:
    """The value of a policy, averaged with weights; f64[...] from totals f64[..., 5]."""
    size = totals[..., _ITEMS] / totals[..., _RECALLS]
    return np.asarray(size * totals[..., _WEIGHTED] / totals[..., _WEIGHT])


def _supported(estimator: Estimator, totals: Floats) -> Floats:
    """What the items that could be shown are worth."""
    if estimator == "ht":
        return horvitz_thompson(totals)
    size = (totals[..., _ITEMS] - totals[..., _UNSUPPORTED]) / totals[..., _RECALLS]
    mean = np.where(size == 0, 0.0, totals[..., _WEIGHTED] / totals[..., _WEIGHT])
    return np.asarray(size * mean)


def filled(estimator: Estimator, reward: float) -> Statistic:
    """The statistic of a policy whose every item that could not be shown earns ``reward``: a bound of its value."""

    def value(totals: Floats) -> Floats:
        filling = totals[..., _UNSUPPORTED] / totals[..., _RECALLS] * reward
        return np.asarray(_supported(estimator, totals) + filling)

    return value


def difference(estimator: Estimator, first: float, second: float) -> Statistic:
    """The statistic of one policy minus another, where unsupported items earn ``first`` and ``second``.

    Totals are f64[..., 12]: those of the two policies, then the unsupported items of the first and of the second
    alone. An item that both would show earns the same under both and cancels.
    """

    def value(totals: Floats) -> Floats:
        known = _supported(estimator, totals[..., :WIDTH]) - _supported(estimator, totals[..., WIDTH : 2 * WIDTH])
        alone = totals[..., 2 * WIDTH] * first - totals[..., 2 * WIDTH + 1] * second
        return np.asarray(known + alone / totals[..., _RECALLS])

    return value
