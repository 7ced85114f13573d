"""Policies side by side on feedback: values, paired differences, what speaks against them, and how many recalls do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.science.evaluation._clusters import Estimate
from memlab.science.evaluation._credited import recalibrate
from memlab.science.evaluation._distributions import normal_quantile
from memlab.science.evaluation._gates import Facts, Gate, effective_count, gates
from memlab.science.evaluation._inclusion import difference, value
from memlab.science.evaluation._log import Log, left_to_chance
from memlab.science.evaluation._measure import Evidence, Head
from memlab.science.evaluation._model import predicted_rewards
from memlab.science.evaluation._position import harvest, lot_p, moved_p, random_places
from memlab.science.evaluation._prepared import Settings
from memlab.science.evaluation._tests import Balance, independence_p, position_p, redundancy_p, silence_p
from memlab.science.evaluation._top import padded

__all__ = ["Compared", "Measured", "Tests", "compare", "gather", "held", "measure", "recalls_for", "recalls_needed"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
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
    effective: float | None
    gates: tuple[Gate, ...]
    weights: Floats = field(repr=False)
    """1/p of each of its items that was shown and answered, heaviest first."""


class Tests:
    """p-values of what every estimate on a log takes for granted, each found when it is asked for.

    NaN where the log does not hold what the test needs, None where the estimate does not rest on it. ``features`` is
    f64[n, k] over the candidates, the score first.
    """

    def __init__(self, log: Log, settings: Settings, features: Floats) -> None:
        self._log, self._settings, self._features = log, settings, features

    @cached_property
    def independence(self) -> float | None:
        log = self._log
        if log.clusters < len(log):
            return None
        if "at" not in log.decisions.columns or log.decisions["at"].null_count():
            return math.nan
        residual = np.where(log.answered, np.nan_to_num(log.reward), 0.0)
        residual = residual - np.where(log.answered, residual.sum() / max(1, log.answered.sum()), 0.0)
        earned = np.bincount(log.recall, weights=residual, minlength=len(log))
        return independence_p(earned[log.decisions["at"].arg_sort().to_numpy()])

    @cached_property
    def silence(self) -> float | None:
        log, shown = self._log, self._log.shown
        if self._settings.missing != "censor" or log.answered[shown].all():
            return None
        seen = np.column_stack([_standard(self._features[shown]), np.log(np.maximum(log.position[shown], 1))])
        return silence_p(seen, log.answered[shown], log.recall[shown])

    @cached_property
    def position(self) -> float | None:
        log = self._log
        if self._settings.position or self._alone:
            return None
        if not self._scored.any():
            return math.nan
        places = random_places(log, self._rank)
        if places is not None:
            return moved_p(places, log)
        by_lot = lot_p(log)
        if by_lot is not None:
            return by_lot
        score, reward, recall = self._given
        return position_p(score, log.position[self._scored], reward, recall)

    @cached_property
    def redundancy(self) -> float | None:
        if self._alone:
            return None
        return redundancy_p(*self._given) if self._scored.any() else math.nan

    def balance(self, head: Head) -> float | None:
        """Of the logged propensities, the membership of a head among what they are held against."""
        if self._contradicted:
            return 0.0
        if not len(self._chance):
            return None
        member = np.zeros(len(self._log.propensity))
        member[head.rows] = 1.0
        return self._balance.p(member[self._chance, None])

    @cached_property
    def _alone(self) -> bool:
        """Whether no recall showed two items: there is one position, and nothing else that was shown."""
        return bool(np.bincount(self._log.recall[self._log.shown], minlength=1).max() < 2)

    @cached_property
    def _scored(self) -> Flags:
        """What was answered; nothing without scores, for what stands first cannot be told from what is best then."""
        return self._log.answered & (self._log.position > 0) & bool(np.ptp(self._features[:, 0]))

    @property
    def _given(self) -> tuple[Floats, Floats, Ints]:
        return self._features[self._scored, 0], self._log.reward[self._scored], self._log.recall[self._scored]

    @cached_property
    def _rank(self) -> Floats:
        return _ranks(self._features[:, 0], self._log)

    @cached_property
    def _chance(self) -> Ints:
        return np.flatnonzero(left_to_chance(self._log.propensity))

    @cached_property
    def _contradicted(self) -> bool:
        """Whether something was certain to be shown, and was not."""
        return bool(((self._log.propensity >= 1) & ~self._log.shown).any())

    @cached_property
    def _balance(self) -> Balance:
        log, chance = self._log, self._chance
        propensity, recall, rank = log.propensity[chance], log.recall[chance], self._rank[chance]
        weight = None
        if "sampler" in log.decisions.columns:  # a Gumbel draw's propensities are given its threshold
            given = (log.decisions["sampler"] == "gumbel").fill_null(False).to_numpy()[recall]
            weight = np.where(given, _elsewhere(propensity, rank, recall), propensity) if given.any() else None
        return Balance(np.column_stack([np.ones(len(chance)), rank]), log.shown[chance], propensity, recall, weight)


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
        apart = np.concatenate(evidence.apart(head, found.base))
        statistic = difference(evidence.estimator, *evidence.reward_range)
    probed = apart[evidence.probe[apart]]
    answered = probed[log.answered[probed]]
    effective = effective_count(evidence.influence(totals, statistic)) if len(answered) else None
    unsupported, unknown, shown = held(log, head)
    facts = Facts(
        unknown=unknown,
        clusters=log.clusters,
        recalls=len(log),
        probes=float(len(answered)) if len(probed) else None,
        effective=effective,
        independence=tests.independence,
        balance=tests.balance(head),
        silence=tests.silence,
        position=tests.position,
        redundancy=tests.redundancy,
    )
    weights = 1.0 / log.propensity[shown[log.answered[shown]]]
    return Measured(
        unsupported=unsupported,
        unknown=unknown,
        probes=len(answered),
        effective=effective,
        gates=gates(facts),
        weights=np.sort(weights)[::-1],
    )


def held(log: Log, head: Head) -> tuple[float, float, Ints]:
    """Of a head: the share that could not have been shown (NaN where the log does not say), the share that was shown
    with an unknown probability, and the rows that were shown.
    """
    count, shown = len(head), log.shown[head.rows]
    given = head.rows[shown]
    if not count:
        return 0.0, 0.0, given
    unknown = float(np.isnan(log.propensity[given]).sum()) / count
    lost = float((log.propensity[head.rows] == 0).sum() + head.outside.sum()) / count
    unsaid = bool(np.isnan(log.propensity[head.rows[~shown]]).any())
    return math.nan if unsaid else lost, unknown, given


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
    size = np.bincount(log.recall, minlength=len(log))
    first = np.cumsum(size) - size
    rows = padded(score, log.recall, size)
    at = np.arange(len(score)) - first[log.recall]
    if rows is None:
        order = np.lexsort((-score, log.recall))
        ranks = np.empty(len(score))
        ranks[order] = at[order]
    else:
        places = np.argsort(-rows, axis=1, kind="stable")
        ranks = np.empty(rows.shape)
        np.put_along_axis(ranks, places, np.arange(rows.shape[1], dtype=np.float64)[None, :], axis=1)
        ranks = ranks[log.recall, at]
    return np.asarray(ranks / np.maximum(size[log.recall], 1))


def _standard(features: Floats) -> Floats:
    scale = features.std(axis=0)
    return np.asarray((features - features.mean(axis=0)) / np.where(scale > 0, scale, 1.0))
