"""Values from inclusion probabilities, for rewards of single items.

A recall shows item i with probability p_i, whatever else it shows. A policy that would show the set T is worth the sum
of the rewards of T; each item of T that was shown stands for 1/p_i of its kind. T falls into strata (Särndal, Swensson
& Wretman 1992, 5.7): what was certain to be shown, of which the sum is known; what was left to chance, the probes; and
what could not have been shown, of which nothing is known but the range of the rewards.

    Horvitz-Thompson    1/n sum over recalls of the sum over shown items of T of r_i / p_i                    (1952)
    self-normalised     the sum over certain items, and k sum(w r) / sum(w) over probes, w = 1/p, k their number

The first is unbiased where every item of T could be shown. The second trades a bias of order 1/n for far less variance
and stays within the range of the rewards (Hajek 1971; Swaminathan & Joachims 2015); it is the default. What could not
be shown earns ``fill``: the least and the greatest reward give the bounds between which the value lies (Manski 1990).

Two policies differ by what only one of them would show: what both would show cancels and adds no variance.

A value is a function of totals, f64[..., 1 + ARM]: recalls, then the columns of one arm; a difference one of totals
f64[..., 1 + 2 ARM]: recalls, what only the first would show, what only the second would.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memlab.science.evaluation._clusters import Statistic

__all__ = ["ARM", "COLUMNS", "Estimator", "difference", "value"]

Floats = NDArray[np.float64]
Estimator = Literal["snips", "ht"]

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


def value(estimator: Estimator, fill: float) -> Statistic:
    """The statistic of a policy, where what the log knows nothing of earns ``fill``; NaN for what others earn."""

    def of(totals: Floats) -> Floats:
        return np.asarray(_worth(estimator, totals[..., 1 : 1 + ARM], fill) / totals[..., 0])

    return of


def difference(estimator: Estimator, first: float, second: float) -> Statistic:
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
    found = found + np.where(probes > 0, probes * np.where(weight + silent > 0, drawn, unknown), 0.0)
    return np.asarray(found + np.where(unsupported > 0, unsupported * unknown, 0.0))
