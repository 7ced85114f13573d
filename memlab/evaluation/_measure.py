"""Policies on feedback: the totals of each, its weights and gates, and bounds where support is lacking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memlab.evaluation._clusters import Sample, cluster_sums
from memlab.evaluation._gates import Gate, explored_share, gates
from memlab.evaluation._inclusion import WIDTH, Estimator, difference, filled, inclusion_weights
from memlab.evaluation._log import Log
from memlab.evaluation._targets import Target
from memlab.evaluation._weights import Weights, weigh

__all__ = ["Measured", "Measurement", "bounded_difference", "bounds", "measure_feedback", "totals"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """What the log says of one policy beside its value."""

    weights: Weights
    unsupported: float
    unknown: float
    gates: tuple[Gate, ...]
    shown_weights: Floats = field(repr=False)
    """1/p of each of its items that was shown, heaviest first."""


@dataclass(frozen=True)
class Measurement:
    """All policies: ``sample`` holds their totals by cluster, ``places`` where those of each policy stand, and
    ``alone`` the two columns of items that only the policy, and only the baseline, could not have been shown.
    """

    sample: Sample
    places: Mapping[str, slice]
    alone: Mapping[str, slice]
    policies: Mapping[str, Measured]


def measure_feedback(
    targets: Sequence[Target], log: Log, *, baseline: str | None, level: float, seed: int
) -> Measurement:
    """Sums over clusters for every policy, in one sample, so that all share the same draws."""
    logged = int(log.answered.sum())
    explored = explored_share(log.propensity, log.recall, len(log))
    columns: list[Floats] = []
    places: dict[str, slice] = {}
    policies: dict[str, Measured] = {}
    missed = {target.name: _missed(target, log) for target in targets}
    for target in targets:
        own, measured = _one(target, log, missed[target.name], logged=logged, explored=explored)
        places[target.name] = slice(len(columns), len(columns) + WIDTH)
        columns += own
        policies[target.name] = measured
    alone: dict[str, slice] = {}
    base = next((target for target in targets if target.name == baseline), None)
    if base is not None:
        for target in targets:
            alone[target.name] = slice(len(columns), len(columns) + 2)
            columns += _alone(target, missed[target.name], base, missed[base.name], len(log))
    sums = cluster_sums(columns, log.cluster, log.clusters)
    return Measurement(Sample(sums, level=level, seed=seed), places, alone, policies)


def _missed(target: Target, log: Log) -> NDArray[np.bool_]:
    """bool[t]: items of the policy that the log could not have shown."""
    return np.asarray((target.row < 0) | (log.propensity[target.row] == 0))


def _one(
    target: Target, log: Log, missed: NDArray[np.bool_], *, logged: int, explored: float
) -> tuple[list[Floats], Measured]:
    shown, weight, reward = _earned(target, log)
    answered = ~np.isnan(reward)
    counted = np.where(answered, weight, 0.0)
    columns = _totals(target, log, missed, counted, reward)
    row, size = np.maximum(target.row, 0), len(target.row)
    unknown = float((shown & np.isnan(log.propensity[row])).sum()) / size if size else 0.0
    unsupported = float(missed.sum()) / size if size else 0.0
    weights = weigh(np.nan_to_num(weight), answered, supported=float(size - missed.sum()), logged=logged)
    checks = gates(
        weights,
        unknown=unknown,
        unsupported=unsupported,
        silent=log.silent,
        explored=explored,
        clusters=log.clusters,
        recalls=len(log),
    )
    return columns, Measured(weights, unsupported, unknown, checks, np.sort(counted[answered])[::-1])


def _earned(target: Target, log: Log) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Whether each item of the policy was shown, its 1/p (0 if it was not), and its reward (NaN if not known)."""
    held = target.row >= 0
    row = np.where(held, target.row, 0)
    shown = log.shown[row] & held
    return shown, inclusion_weights(shown, log.propensity[row]), np.where(shown, log.reward[row], np.nan)


def _totals(target: Target, log: Log, missed: NDArray[np.bool_], counted: Floats, reward: Floats) -> list[Floats]:
    def by_recall(values: Floats | NDArray[np.bool_]) -> Floats:
        return np.asarray(np.bincount(target.recall, weights=values, minlength=len(log)), dtype=np.float64)

    return [
        np.ones(len(log)),
        by_recall(np.ones(len(counted))),
        by_recall(missed),
        by_recall(counted),
        by_recall(np.where(np.isnan(reward), 0.0, counted * np.nan_to_num(reward))),
    ]


def totals(target: Target, log: Log) -> list[Floats]:
    """What the value of one policy is a function of, recall by recall: f64[recalls], ``WIDTH`` times."""
    _, weight, reward = _earned(target, log)
    return _totals(target, log, _missed(target, log), np.where(np.isnan(reward), 0.0, weight), reward)


def _alone(
    target: Target, missed: NDArray[np.bool_], base: Target, base_missed: NDArray[np.bool_], recalls: int
) -> list[Floats]:
    """Unsupported items of one policy that the other would not show, by recall: the first's, then the second's.

    What is not in the log's pool counts as the policy's own, which can only widen the bounds.
    """
    return [
        _only(target, missed, base, base_missed, recalls),
        _only(base, base_missed, target, missed, recalls),
    ]


def _only(
    one: Target, missed: NDArray[np.bool_], other: Target, other_missed: NDArray[np.bool_], recalls: int
) -> Floats:
    shared = np.isin(one.row, other.row[other_missed & (other.row >= 0)]) & (one.row >= 0)
    return np.asarray(np.bincount(one.recall, weights=missed & ~shared, minlength=recalls), dtype=np.float64)


def bounds(measurement: Measurement, name: str, estimator: Estimator, low: float, high: float) -> tuple[float, float]:
    """The least and the greatest value that the log allows, sampling error left aside."""
    total = measurement.sample.total[measurement.places[name]]
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(filled(estimator, low)(total)), float(filled(estimator, high)(total))


def bounded_difference(
    measurement: Measurement, name: str, baseline: str, estimator: Estimator, low: float, high: float, level: float
) -> tuple[float, float]:
    """An interval that holds the difference to the baseline whatever the unsupported items would have earned."""
    own, base, alone = measurement.places[name], measurement.places[baseline], measurement.alone[name]
    columns = [*range(own.start, own.stop), *range(base.start, base.stop), *range(alone.start, alone.stop)]
    least, most = difference(estimator, low, high), difference(estimator, high, low)
    sample = measurement.sample
    return (
        sample.estimate(lambda totals: least(totals[..., columns]), level=level).low,
        sample.estimate(lambda totals: most(totals[..., columns]), level=level).high,
    )
