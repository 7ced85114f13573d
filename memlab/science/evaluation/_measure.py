"""Estimate values and differences of policies on feedback, and check their gates."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from memlab.kernel.base.arrays import Floats, Ints
from memlab.kernel.base.printable import count_of
from memlab.science.distributions import normal_quantile
from memlab.science.evaluation._duplicates import find_repeated
from memlab.science.evaluation._evidence import (
    Evidence,
    TopK,
    difference_statistic,
    value_statistic,
)
from memlab.science.evaluation._intervals import Estimate
from memlab.science.evaluation._item_tests import Tests
from memlab.science.evaluation._log import Log
from memlab.science.evaluation._tests import (
    Facts,
    Gate,
    effective_count,
    gates,
)

# Policies are compared on feedback by values, differences, gates and the number of recalls needed.


_POWER = 0.8
"""The power of forecasts, which is conventional."""


@dataclass(frozen=True)
class Compared:
    """The value of one policy, and its difference to another policy.

    ``lower`` and ``upper`` bound the value without sampling error; ``difference_lower`` and
    ``difference_upper`` bound the difference. ``totals`` (f64[recalls, columns]) determine the
    difference, or the value if there is no ``base``.
    """

    top_k: TopK
    base: TopK | None
    totals: Floats = field(repr=False)
    value: Estimate
    lower: float
    upper: float
    difference: Estimate | None = None
    difference_lower: float = math.nan
    difference_upper: float = math.nan


@dataclass(frozen=True)
class Measured:
    """The evidence of a log on one policy, and its gates.

    Attributes
    ----------
    unsupported
        The share of the policy's items that the log could not show; NaN if the log does not record
        it.
    unknown
        The share of the policy's items that were shown with an unknown probability.
    probes
        The number of answered items that distinguish the policy from the baseline.
    effective
        The number of recalls that carry the difference; None without an answered probe.
    """

    unsupported: float
    unknown: float
    probes: int
    effective: float | None
    gates: tuple[Gate, ...]
    weights: Floats = field(repr=False)
    """The weight 1/p of each item of the policy that was shown and answered, largest first."""


def compare(evidence: Evidence, top_k: TopK, base: TopK | None) -> Compared:
    """Estimate a policy's value, and its difference to ``base`` if a base is given.

    Near-duplicates that the log never showed together are unsupported, except the first of them.
    """
    top_k = bound_repeated(evidence.log, top_k)
    base = None if base is None else bound_repeated(evidence.log, base)
    totals = evidence.totals(top_k)
    value = evidence.value(evidence.sample(totals))
    if base is None:
        return Compared(top_k, base, totals, *value)
    contrast = evidence.contrast(top_k, base)
    return Compared(top_k, base, contrast, *value, *evidence.difference(evidence.sample(contrast)))


def repeated_note(name: str, repeated: int) -> list[str]:
    """Return a report's remark on near-duplicates without a reward, if there are any."""
    if not repeated:
        return []
    return [
        f"{count_of(repeated, 'item')} of {name} repeat an item that no recall showed with them, so they may have any "
        'reward. Whole results show them together: lab.challenge(pack, design="ab").'
    ]


def bound_repeated(log: Log, top_k: TopK) -> TopK:
    """Treat a top-k's repeated items, whose reward is unknown, as items outside the log."""
    ranks = np.arange(1, len(top_k.rows) + 1) if top_k.ranks is None else top_k.ranks
    repeated = find_repeated(log, top_k.rows, ranks)
    if not len(repeated):
        return top_k
    keep = ~np.isin(top_k.rows, repeated)
    return TopK(
        top_k.name,
        top_k.rows[keep],
        top_k.outside + np.bincount(log.recall[repeated], minlength=len(log)),
        ranks[keep],
        len(repeated),
    )


def measure(evidence: Evidence, compared: Compared, tests: Tests) -> Measured:
    """Count the evidence on a policy and check its gates.

    Without a base, the gates concern the policy's value instead of its difference.
    """
    log, top_k, totals = evidence.log, compared.top_k, compared.totals
    if compared.base is None:
        disputed = top_k.rows
        statistic = value_statistic(evidence.estimator, evidence.reward_range[0])
    else:
        disputed = np.concatenate(evidence.differing_rows(top_k, compared.base))
        statistic = difference_statistic(evidence.estimator, *evidence.reward_range)
    probes = disputed[evidence.probe[disputed]]
    answered = probes[log.answered[probes]]
    effective = effective_count(evidence.influence(totals, statistic)) if len(answered) else None
    unsupported, unknown, exposed = measure_support(log, top_k)
    facts = Facts(
        unknown=unknown,
        clusters=log.clusters,
        recalls=len(log),
        probes=float(len(answered)) if len(probes) else None,
        effective=effective,
        independence=tests.independence,
        balance=tests.balance(top_k),
        missing=tests.missing,
        position=tests.position,
        redundancy=tests.redundancy_of(top_k),
    )
    weights = 1.0 / log.propensity[exposed[log.answered[exposed]]]
    return Measured(
        unsupported=unsupported,
        unknown=unknown,
        probes=len(answered),
        effective=effective,
        gates=gates(facts),
        weights=np.sort(weights)[::-1],
    )


def measure_support(log: Log, top_k: TopK) -> tuple[float, float, Ints]:
    """Return the share of unsupported items, the share of unknown propensity, and the shown rows.

    The first value is the share of unsupported items, NaN if the log does not record it. The second
    is the share of items shown with an unknown probability, and the third the row numbers of the
    items shown.
    """
    count, is_exposed = len(top_k), log.exposed[top_k.rows]
    exposed = top_k.rows[is_exposed]
    if not count:
        return 0.0, 0.0, exposed
    unknown = float(np.isnan(log.propensity[exposed]).sum()) / count
    unsupported = float((log.propensity[top_k.rows] == 0).sum() + top_k.outside.sum()) / count
    is_incomplete = bool(np.isnan(log.propensity[top_k.rows[~is_exposed]]).any())
    return math.nan if is_incomplete else unsupported, unknown, exposed


def recalls_needed(compared: Compared, recalls: int, level: float) -> int | None:
    """Forecast the number of recalls that distinguish two policies with a power of .8.

    Returns None if no number of recalls would. Unsupported items leave the difference within bounds
    that do not shrink with more recalls. So the bound nearer to zero is used.
    """
    if compared.difference is None or not compared.difference_lower * compared.difference_upper > 0:
        return None
    minimum = min(abs(compared.difference_lower), abs(compared.difference_upper))
    return recalls_for(
        Estimate(minimum, math.nan, math.nan, compared.difference.error, math.nan), recalls, level
    )


def recalls_for(gap: Estimate, recalls: int, level: float) -> int | None:
    """Forecast the number of recalls at which ``gap`` is significant with a power of .8.

    Returns None if the gap is 0 or has no error.
    """
    if not gap.value or math.isnan(gap.error):
        return None
    reach = normal_quantile((1 + level) / 2) + normal_quantile(_POWER)
    return math.ceil(recalls * (reach * gap.error / gap.value) ** 2)
