"""Policies side by side on feedback: values, paired differences, what speaks against them, and how many recalls do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.evaluation._clusters import Estimate
from memlab.evaluation._credited import recalibrate
from memlab.evaluation._distributions import normal_quantile
from memlab.evaluation._gates import Facts, Gate, effective_count, gates
from memlab.evaluation._inclusion import difference, value
from memlab.evaluation._log import Log
from memlab.evaluation._measure import Evidence, Head
from memlab.evaluation._model import predicted_rewards
from memlab.evaluation._position import harvest, moved_p, random_places
from memlab.evaluation._prepared import Settings
from memlab.evaluation._tests import balance_p, independence_p, position_p, redundancy_p, silence_p

__all__ = ["Compared", "Measured", "Tests", "compare", "gather", "measure", "recalls_for", "recalls_needed"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_POWER = 0.8
_FEATURES_A_RECALL = 10
"""So many recalls for each feature of a test: with fewer only the score and the place are looked at."""


@dataclass(frozen=True)
class Compared:
    """One policy's value and its difference to another one. ``lower`` and ``upper`` bound the value without noise,
    ``least`` and ``most`` the difference.

    ``totals`` f64[recalls, columns] are those of the difference; without ``base`` of the value.
    """

    head: Head
    base: Head | None
    totals: Floats = field(repr=False)
    value: Estimate
    lower: float
    upper: float
    difference: Estimate | None = None
    least: float = math.nan
    most: float = math.nan


@dataclass(frozen=True)
class Measured:
    """What the log says of one policy beside its value.

    ``unsupported`` is the share of its items that could not have been shown, NaN where the log does not say;
    ``probes`` counts the answered items by which it is told from the baseline, ``effective`` the recalls that carry the
    difference.
    """

    unsupported: float
    unknown: float
    probes: int
    effective: float
    gates: tuple[Gate, ...]
    weights: Floats = field(repr=False)
    """1/p of each of its items that was shown and answered, heaviest first."""


@dataclass(frozen=True)
class Tests:
    """p-values of what every estimate on a log takes for granted."""

    independence: float
    silence: float
    position: float
    redundancy: float
    ranks: Floats = field(repr=False)

    @classmethod
    def of(cls, log: Log, settings: Settings, features: Floats) -> Tests:
        """``features`` is f64[n, k] over the candidates, the score first."""
        score, answered, shown = features[:, 0], log.answered, log.shown
        independence = math.nan
        if log.clusters == len(log) and "at" in log.decisions.columns and not log.decisions["at"].null_count():
            residual = np.where(answered, np.nan_to_num(log.reward), 0.0)
            residual = residual - np.where(answered, residual.sum() / max(1, answered.sum()), 0.0)
            earned = np.bincount(log.recall, weights=residual, minlength=len(log))
            independence = independence_p(earned[log.decisions["at"].arg_sort().to_numpy()])
        rank = _ranks(score, log)
        silence = math.nan
        if settings.missing == "censor":
            seen = np.column_stack([_standard(features[shown]), np.log(np.maximum(log.position[shown], 1))])
            silence = silence_p(seen, answered[shown], log.recall[shown])
        given = answered & (log.position > 0)
        position = redundancy = math.nan
        if given.any() and np.ptp(score):  # without scores, what stands first cannot be told from what is best
            at = score[given], log.reward[given], log.recall[given]
            places = None if settings.position else random_places(log, rank)
            if places is not None:
                position = moved_p(places, log)
            elif not settings.position:
                position = position_p(at[0], log.position[given], at[1], at[2])
            redundancy = redundancy_p(*at)
        return cls(independence, silence, position, redundancy, rank)


def gather(log: Log, settings: Settings, features: Floats, answered: Floats | None = None) -> Evidence:
    """The log as evidence, silence treated as the settings say; ``answered`` is the chance of a reward, if known."""
    if settings.missing == "inverse":
        chance = predicted_rewards(
            np.column_stack([features, np.log(np.maximum(log.position, 1))]),
            log.answered.astype(np.float64),
            log.shown,
            log.cluster[log.recall],
            (0.02, 1.0),
        )
        answered = chance
    examination = None
    if settings.position:
        places = random_places(log, _ranks(features[:, 0], log))
        examination = None if places is None else harvest(places, log, settings.level)
        if examination is None:
            raise InputError(
                "position=True learns from items at random places what a place takes from a reward, and this log has "
                "none, or they earned nothing: show probes at random places (a lab does)."
            )
    log, credited = recalibrate(log)
    return Evidence(
        log,
        examination=examination,
        credited=credited,
        estimator=settings.estimator,
        level=settings.level,
        reward_range=settings.reward_range,
        answered=answered,
        bounds=settings.missing == "bounds",
    )


def known_features(log: Log, names: Sequence[str], schema: pl.Schema) -> Floats:
    """f64[n, k]: the score by which the log was ranked (or its rank), then numeric features while recalls suffice."""
    numeric = [name for name in names if name in schema and (schema[name].is_numeric() or schema[name] == pl.Boolean)]
    first = next((name for name in ("score", "rank") if name in schema), None)
    columns = [] if first is None else [first]
    if len(log) >= _FEATURES_A_RECALL * (len(numeric) + 1):
        columns += [name for name in numeric if name != first]
    if not columns:
        return np.zeros((len(log.recall), 1))
    found = log.pool(columns).select(pl.col(name).cast(pl.Float64) for name in columns).to_numpy()
    return np.asarray(np.where(np.isfinite(found), found, 0.0))


def compare(evidence: Evidence, head: Head, base: Head | None) -> Compared:
    """A policy's value, and its difference to ``base``."""
    totals = evidence.totals(head)
    found = evidence.value(totals)
    if base is None:
        return Compared(head, base, totals, *found)
    contrast = evidence.contrast(head, base)
    return Compared(head, base, contrast, *found, *evidence.difference(contrast))


def measure(evidence: Evidence, found: Compared, tests: Tests) -> Measured:
    """What speaks for and against the figures of a policy; without ``base``, of its value alone."""
    log, head, totals = evidence.log, found.head, found.totals
    if found.base is None:
        apart = head.rows
        statistic = value(evidence.estimator, evidence.reward_range[0])
    else:
        own, other = evidence.apart(head, found.base)
        apart = np.union1d(own, other)
        statistic = difference(evidence.estimator, *evidence.reward_range)
    probed = apart[evidence.probe[apart]]
    answered = probed[log.answered[probed]]
    count = len(head)
    shown = head.rows[log.shown[head.rows]]
    unknown = float(np.isnan(log.propensity[shown]).sum()) / count if count else 0.0
    lost = float(evidence.unsupported[head.rows].sum() + head.outside.sum())
    unsaid = bool(np.isnan(log.propensity[head.rows[~log.shown[head.rows]]]).any())
    effective = effective_count(evidence.influence(totals, statistic)) if len(answered) else math.nan
    facts = Facts(
        unknown=unknown,
        clusters=log.clusters,
        recalls=len(log),
        probes=float(len(answered)) if len(probed) else math.nan,
        effective=effective,
        independence=tests.independence,
        balance=_balance(evidence, head, tests.ranks),
        silence=tests.silence,
        position=tests.position,
        redundancy=tests.redundancy,
    )
    weights = 1.0 / log.propensity[shown[log.answered[shown]]]
    return Measured(
        unsupported=math.nan if unsaid else lost / count if count else 0.0,
        unknown=unknown,
        probes=len(answered),
        effective=effective,
        gates=gates(facts),
        weights=np.sort(weights)[::-1],
    )


def recalls_needed(found: Compared, recalls: int, level: float) -> int | None:
    """How many recalls like these would tell two policies apart with a power of .8; None where none would.

    What is unsupported does not shrink with more recalls: only what of the difference is beyond it counts.
    """
    if found.difference is None or not found.least * found.most > 0:
        return None
    nearer = min(abs(found.least), abs(found.most))
    return recalls_for(Estimate(nearer, math.nan, math.nan, found.difference.error, math.nan), recalls, level)


def recalls_for(gap: Estimate, recalls: int, level: float) -> int | None:
    """How many recalls like these would find ``gap`` with a power of .8; None if it is 0 or has no error."""
    if not gap.value or math.isnan(gap.error):
        return None
    reach = normal_quantile((1 + level) / 2) + normal_quantile(_POWER)
    return math.ceil(recalls * (reach * gap.error / gap.value) ** 2)


def _balance(evidence: Evidence, head: Head, ranks: Floats) -> float:
    log, chance = evidence.log, np.flatnonzero(evidence.probe)
    if not len(chance):
        return math.nan
    member = np.zeros(len(log.propensity))
    member[head.rows] = 1.0
    features = np.column_stack([np.ones(len(chance)), ranks[chance], member[chance]])
    propensity, recall, weight = log.propensity[chance], log.recall[chance], None
    if "sampler" in log.decisions.columns:  # a Gumbel draw's propensities are given its threshold
        given = (log.decisions["sampler"] == "gumbel").to_numpy()[recall]
        weight = np.where(given, _elsewhere(propensity, ranks[chance], recall), propensity)
    return balance_p(features, log.shown[chance], propensity, recall, weight)


def _elsewhere(propensity: Floats, ranks: Floats, recall: Ints) -> Floats:
    """The mean propensity of the same place in all other recalls; 0 where there is no other."""
    order = np.lexsort((ranks, recall))
    first = np.searchsorted(recall[order], recall[order])
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - first
    count, total = np.bincount(place)[place], np.bincount(place, weights=propensity)[place]
    return np.asarray((total - propensity) / np.maximum(count - 1, 1))


def _ranks(score: Floats, log: Log) -> Floats:
    """Each candidate's rank within its recall by the score, scaled to 0..1."""
    order = np.lexsort((-score, log.recall))
    size = np.bincount(log.recall, minlength=len(log))
    first = np.cumsum(size) - size
    ranks = np.empty(len(score))
    ranks[order] = np.arange(len(score)) - first[log.recall[order]]
    return np.asarray(ranks / np.maximum(size[log.recall], 1))


def _standard(features: Floats) -> Floats:
    scale = features.std(axis=0)
    return np.asarray((features - features.mean(axis=0)) / np.where(scale > 0, scale, 1.0))
