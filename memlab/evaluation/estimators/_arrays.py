"""What all estimators share: arrays checked, and columns of sums turned into a value with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.arguments import AsGiven, Within
from memlab.errors import InputError
from memlab.evaluation._clusters import Estimate, Sample, Statistic, mean

__all__ = [
    "Array",
    "Clusters",
    "Floats",
    "Ints",
    "Level",
    "by_sums",
    "check_size",
    "codes_of",
    "cube",
    "estimated",
    "mean_of",
    "ratios",
    "vector",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Array = Annotated[ArrayLike, AsGiven]
Clusters = Annotated[Sequence[object] | None, AsGiven]
Level = Annotated[float, Within(0.5, 0.9999)]


def mean_of(values: Floats, cluster: Sequence[object] | None, level: float) -> Estimate:
    """The mean of f64[n] with its interval."""
    return estimated([np.ones(len(values)), values], mean, cluster, level)


def estimated(
    columns: Sequence[Floats],
    statistic: Statistic,
    cluster: Sequence[object] | None,
    level: float,
    *,
    upper: Statistic | None = None,
) -> Estimate:
    """A statistic of the sums of columns f64[n]; with ``upper``, between that and the other one."""
    codes = codes_of(cluster, len(columns[0]))
    return by_sums(np.column_stack(columns), statistic, codes, level, upper)


def by_sums(
    columns: Floats, statistic: Statistic, codes: Ints, level: float, upper: Statistic | None = None
) -> Estimate:
    """The same of f64[n, k], ``codes`` int[n] naming the cluster of each row."""
    sums = np.zeros((int(codes.max()) + 1, columns.shape[1]))
    np.add.at(sums, codes, columns)
    return Sample(sums, level=level).estimate(statistic, upper)


def codes_of(cluster: Sequence[object] | None, count: int) -> Ints:
    """int64[n]: clusters numbered as they come; each recall by itself where there are none."""
    if cluster is None:
        return np.arange(count)
    check_size("cluster", len(cluster), count)
    order = {name: place for place, name in enumerate(dict.fromkeys(cluster))}
    return np.array([order[name] for name in cluster], dtype=np.int64)


def ratios(logged: Floats, target: Floats, name: str = "logged") -> Floats:
    """Target over logged; what was shown had a probability above 0."""
    check_size("target", target.shape, logged.shape)
    if not ((logged > 0) & (logged <= 1 + 1e-9)).all():
        raise InputError(f"{name} holds the probability of what was shown, above 0 and at most 1.")
    if not ((target >= 0) & (target <= 1 + 1e-9)).all():
        raise InputError("target holds probabilities, from 0 to 1.")
    return target / logged


def vector(given: ArrayLike, name: str) -> Floats:
    """f64[n]; InputError by the argument's name."""
    return cube(given, name, dimensions=1)


def cube(given: ArrayLike, name: str, *, dimensions: int = 2) -> Floats:
    """An array of so many dimensions, not empty, finite unless it holds features; InputError by its name."""
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is an array of numbers.") from None
    if found.ndim != dimensions or not found.size:
        raise InputError(f"{name} has {dimensions} dimensions and holds something; not the shape {found.shape}.")
    if name != "features" and not np.isfinite(found).all():
        raise InputError(f"{name} holds numbers that are not finite.")
    return found


def check_size(name: str, found: object, wanted: object) -> None:
    """InputError where an array has another size than those that it goes with."""
    if found != wanted:
        raise InputError(f"{name} is of the size {found}; the other arrays are of {wanted}.")
