"""``memlab.plan``: which design tells two policies apart, and after how many recalls.

What both policies would show tells nothing about their difference. The designs differ in how often they show the rest,
and so in the variance of one recall's observation; the difference itself is guessed by a model of rewards that was
fitted on the log (the direct method). With d the mean difference and v the variance of an observation, one planned look
needs (z_level + z_power)^2 v / d^2 recalls; a sequence, which may be looked at every day, about twice as many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtri

from memlab.errors import InputError
from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.kernel.slates import Slates
from memlab.science.evaluation._duels import comparisons_begun
from memlab.science.evaluation._intervals import Floats
from memlab.science.evaluation._log import Horizon, Log, Missing
from memlab.science.evaluation._measure import (
    Evidence,
    Head,
    gather,
    known_features,
    predicted_rewards,
)
from memlab.science.evaluation._prepared import HasSlates, Settings, prepare, with_baseline
from memlab.science.evaluation._sequence import level_of, recalls_of_sequence
from memlab.science.evaluation._targets import PolicySpec, RecallsAgain, aim, logged
from memlab.science.evaluation._tests import rounded

__all__ = ["Plan", "plan"]

_LOOK = 400
_DEPTH = 90
"""So many ranks below the head may a probe fall."""
_MOST = 50_000
"""Recalls above which a number would promise what nobody waits for."""


@dataclass(frozen=True, repr=False)
class Plan(Report):
    """What tells each policy from the baseline, by design.

    ``frame``: ``policy``, ``design``, ``extra`` (items shown beside the head, a recall), ``difference`` (expected, by
    the model), ``one_look`` and ``every_look`` (recalls that give a verdict four times out of five; null where
    50,000 would not), ``half_width`` (of an interval after 400 recalls), ``unsupported`` (share of what the policy
    would show that the design never shows).
    """

    frame: pl.DataFrame
    baseline: str
    recalls: int
    settings: Settings
    notes: tuple[str, ...] = field(default=())

    @property
    def best(self) -> dict[str, str]:
        """Of each policy, the design with the fewest recalls at every look, extra items being equal or fewer."""
        known = self.frame.drop_nulls("every_look").sort("every_look", "extra")
        return {
            row["policy"]: row["design"]
            for row in known.unique("policy", keep="first").iter_rows(named=True)
        }

    def _display(self) -> object:
        legend = (
            f"Compared with {self.baseline}, by a model of {self.recalls:,} recalls.",
            "one look, every look: recalls after which a test at one planned time, or at any, has a power of 80%",
            f"half-width: of the {self.settings.level:.0%} interval after {_LOOK} recalls",
            "never shown: the share of what the policy would show that the design never shows",
        )
        heads, rows = format_rows(self.frame.iter_rows(named=True), _COLUMNS)
        return Table("Recalls for a verdict", heads, rows, [*legend, *self.notes], left=(0, 1))


def _recalls(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: "-" if row[name] is None else rounded(row[name])


_COLUMNS: Columns = (
    ("policy", "{policy}"),
    ("design", "{design}"),
    ("extra", "{extra:.1f}"),
    ("difference", "{difference:+.3f}"),
    ("one look", _recalls("one_look")),
    ("every look", _recalls("every_look")),
    ("half-width", "{half_width:.3f}"),
    ("never shown", "{unsupported:.0%}"),
)


@dataclass(frozen=True)
class _Apart:
    """By recall (f64[recalls]): what only one head holds. ``size`` counts it, ``sum`` expects its rewards, ``noise`` is
    their variance.
    """

    size: Floats
    sum: Floats
    squares: Floats
    noise: Floats


@checked
def plan(
    slates: Slates | HasSlates,
    policies: PolicySpec | Sequence[PolicySpec] | Mapping[str, PolicySpec],
    *,
    horizon: Horizon = None,
    missing: Missing | None = None,
    level: float = 0.95,
    baseline: str | None = None,
    reward_range: tuple[float, float] | None = None,
    extra: Sequence[Annotated[int, Within(1, 20)]] = (1, 3),
) -> Plan:
    """How many recalls each design needs to tell ``policies`` from the baseline, by what a log knows so far.

    Arguments as for ``memlab.evaluate``. The log needs rewards, some tens of them; whatever logged it will do. Designs:
    the probes of the log as they are, one probe in every recall from the 90 ranks below the head, a challenge with as
    many extra items as each of ``extra`` says (1 to 20), a challenge by lot, and an A/B test by recall. A look at every
    recall has the share of the error that the next comparison of this log would have; see ``memlab.verdict``.

    Raises InputError where the log has too few rewards for a model, and as ``evaluate`` does.

    >>> memlab.plan(lab, ["companion", "cascade"], missing="zero")                             # doctest: +SKIP
    """
    slates = slates if isinstance(slates, Slates) else slates.slates()
    prepared = prepare(
        slates,
        policies,
        horizon=horizon,
        missing=missing,
        estimator="snips",
        level=level,
        reward_range=reward_range,
        labels=None,
    )
    log, schema, settings = prepared.log, prepared.schema, prepared.settings
    rankers, base = with_baseline(
        prepared.rankers, baseline, log, logged(slates.candidates, schema)
    )
    again: RecallsAgain | None = getattr(
        getattr(slates.lab, "policies", None), "recall_again", None
    )
    targets, refused = aim(rankers, log, schema, prepared.fingerprints, again)
    features = known_features(log, prepared.features, schema)
    expected = predicted_rewards(
        features, log.reward, log.answered, log.cluster[log.recall], settings.reward_range
    )
    if expected is None:
        raise InputError(
            "The log has too few rewards, or too few clusters, for a model of them: there is nothing to plan by yet."
        )
    evidence = gather(log, settings, features)
    heads = {target.name: evidence.head(target) for target in targets}
    if base not in heads:
        raise InputError(f"{base}, to which the others are compared, cannot be scored on this log.")
    residual = log.reward[log.answered] - expected[log.answered]
    low, high = settings.reward_range
    binary = bool(np.isin(log.reward[log.answered], (low, high)).all())
    noise = (
        (expected - low) * (high - expected)
        if binary
        else np.full(len(expected), float(residual.var()))
    )
    every = level_of(comparisons_begun(log) + 1, level)
    rows: list[dict[str, Any]] = []
    for name, head in heads.items():
        if name != base:
            rows += _designs(
                name, head, heads[base], evidence, expected, noise, level, every, extra
            )
    notes = [f"{one.policy}: {one.reason}" for one in refused]
    numbers = {"one_look": pl.Int64, "every_look": pl.Int64}
    return Plan(
        pl.DataFrame(rows, schema_overrides=numbers), base, len(log), settings, tuple(notes)
    )


def _designs(
    name: str,
    head: Head,
    base: Head,
    evidence: Evidence,
    expected: Floats,
    noise: Floats,
    level: float,
    every_level: float,
    draws: Sequence[int],
) -> list[dict[str, Any]]:
    log = evidence.log
    own_rows, base_rows = evidence.apart(head, base)
    typical = float(expected[own_rows].mean()) if len(own_rows) else float(expected.mean())
    own = _apart(own_rows, head.outside, log, expected, noise, typical)
    other = _apart(base_rows, base.outside, log, expected, noise, typical)
    gap = own.sum - other.sum
    between, items = float(gap.var()), max(float(len(head)), 1.0)
    unit = evidence.reward_range[1] - evidence.reward_range[0]
    reach = np.maximum(own.size, other.size) * unit
    deep = np.full(1, _DEPTH * unit)
    # of what is shown with probability p, the square counts 1/p times
    second = own.squares + own.noise
    found = []

    def design(
        label: str, extra: float, variance: Floats, scale: Floats, unsupported: float = 0.0
    ) -> None:
        spread = math.sqrt(float(variance.mean()) + between)
        mean = float(gap.mean())
        one = math.ceil((_z(level) * spread / mean) ** 2) if mean else None
        every = recalls_of_sequence(abs(mean), spread, scale, unit=unit, level=every_level)
        lost = unsupported > 0.02  # what is never shown leaves an interval that does not shrink
        half = _half(level) * spread / math.sqrt(_LOOK) + unsupported * items / len(log) * unit / 2
        found.append(
            {
                "policy": name,
                "design": label,
                "extra": extra,
                "difference": mean,
                "one_look": None if one is None or one > _MOST or lost else one,
                "every_look": None if every is None or every > _MOST or lost else every,
                "half_width": half,
                "unsupported": unsupported,
            }
        )

    chance = log.propensity[own_rows]
    never = float((chance == 0).sum() + head.outside.sum()) / items
    left = own_rows[(chance > 0) & (chance < 1)]
    shown = np.bincount(
        log.recall[left],
        weights=(expected[left] ** 2 + noise[left]) / log.propensity[left],
        minlength=len(log),
    )
    probes = (log.shown & evidence.probe).sum() / len(log)
    design("probes as logged", float(probes), shown + other.noise, deep, never)
    far = float(head.outside.sum()) / items
    design("one probe of 90, every recall", 1.0, _DEPTH * second + other.noise, deep, far)
    for count in draws:
        design(f"challenge, {count} extra", float(count), _drawn(own, count) + other.noise, reach)
    both = 2 * (second + other.squares + other.noise) - (own.squares + other.squares)
    design("challenge by lot", 0.0, both, 2 * reach)
    design(
        "A/B by recall", 0.0, 2 * (own.sum**2 + own.noise + other.sum**2 + other.noise), 2 * reach
    )
    return found


def _drawn(arm: _Apart, draws: int) -> Floats:
    """f64[recalls]: the variance of an arm's weighted sum, ``draws`` of its items shown without replacement."""
    size = np.maximum(arm.size, 1.0)
    rate = np.minimum(draws / size, 1.0)
    spread = (arm.squares - arm.sum**2 / size) / np.maximum(size - 1, 1.0)
    return np.asarray(size * (1 - rate) / rate * np.maximum(spread, 0.0) + arm.noise / rate)


def _apart(
    rows: NDArray[np.int64],
    outside: Floats,
    log: Log,
    expected: Floats,
    noise: Floats,
    typical: float,
) -> _Apart:
    def by_recall(values: Floats) -> Floats:
        return np.bincount(log.recall[rows], weights=values, minlength=len(log)).astype(np.float64)

    return _Apart(
        size=by_recall(np.ones(len(rows))) + outside,
        sum=by_recall(expected[rows]) + outside * typical,
        squares=by_recall(expected[rows] ** 2) + outside * typical**2,
        noise=by_recall(noise[rows]) + outside * typical * (1 - min(typical, 1.0)),
    )


def _z(level: float) -> float:
    return _half(level) + float(ndtri(0.8))


def _half(level: float) -> float:
    return float(ndtri((1 + level) / 2))
