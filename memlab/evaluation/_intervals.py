"""Intervals for a mean over questions that come in clusters: those of one conversation are not independent.

Below 30 clusters: Student's t over the means of the clusters. With 5 conversations it covers 94% where the percentile
bootstrap covers 82%. From 30 on: the percentile bootstrap over whole clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from memlab.errors import InputError
from memlab.evaluation._clusters import FEW
from memlab.evaluation._student import t_quantile

__all__ = ["Interval", "cluster_interval"]


@dataclass(frozen=True)
class Interval:
    """A 95% confidence interval around ``centre``: the mean of the cluster means for t, of all values otherwise."""

    low: float
    high: float
    centre: float
    clusters: int
    method: Literal["t over cluster means", "cluster bootstrap"]


def cluster_interval(
    values: ArrayLike, clusters: Sequence[object], *, draws: int = 2000, seed: int = 0
) -> Interval | None:
    """The 95% interval of the mean of ``values`` (f64[n]), whose i-th comes from cluster ``clusters[i]``.

    NaN values are left out. None if fewer than two clusters remain: one conversation says nothing about the next.
    The same seed gives the same bootstrap draws, so that systems measured on the same questions stay paired.

    >>> interval = cluster_interval([0.2, 0.4, 0.5, 0.7], ["a", "a", "b", "b"])
    >>> round(interval.centre, 3), interval.method
    (0.45, 't over cluster means')
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) != len(clusters):
        raise InputError(f"{len(clusters)} clusters are named for values of shape {array.shape}; one each is needed.")
    order = {cluster: index for index, cluster in enumerate(dict.fromkeys(clusters))}
    kept = ~np.isnan(array)
    codes = np.array([order[cluster] for cluster in clusters], dtype=np.int64)[kept]
    counts = np.bincount(codes, minlength=len(order)).astype(np.float64)
    sums = np.bincount(codes, weights=array[kept], minlength=len(order))
    sums, counts = sums[counts > 0], counts[counts > 0]
    number = len(counts)
    if number < 2:
        return None
    if number < FEW:
        means = sums / counts
        centre = float(means.mean())
        reach = t_quantile(0.95, number - 1) * float(means.std(ddof=1)) / number**0.5
        return Interval(centre - reach, centre + reach, centre, number, "t over cluster means")
    drawn = np.random.Generator(np.random.Philox(seed)).integers(number, size=(draws, number))
    low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [0.025, 0.975])
    return Interval(float(low), float(high), float(sums.sum() / counts.sum()), number, "cluster bootstrap")
