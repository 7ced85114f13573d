"""Check the arguments of ``evaluate``, ``tune`` and ``plan``, and read the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.slates import CONTENT, Slates
from memlab.science.evaluation._log import Horizon, Log, Missing, horizon_micros, read_log
from memlab.science.evaluation._targets import (
    Fingerprints,
    PolicySpec,
    Ranker,
    make_rankers,
    read_fingerprints,
)

Estimator = Literal["snips", "ht"]


@runtime_checkable
class HasSlates(Protocol):
    """A lab, or another object that has slates."""

    def slates(self) -> Slates:
        """Return the tables of the log."""


@dataclass(frozen=True)
class Settings:
    """The settings of an evaluation.

    ``measure`` is "feedback" or "labels". ``metric`` is the metric of labels that ranks the
    policies.
    """

    measure: Literal["feedback", "labels"]
    horizon: str | None
    missing: Missing
    estimator: Estimator
    level: float
    reward_range: tuple[float, float]
    cluster: str | None = None
    position: bool = False
    metric: str = ""

    @checked
    def by(self, metric: str) -> Settings:
        """Return the settings with another label metric."""
        return replace(self, metric=metric)


@dataclass(frozen=True)
class Prepared:
    """A log, and the policies to evaluate on this log.

    ``schema`` is the schema of the candidates. ``features`` are the names of the columns that describe
    candidates.
    """

    settings: Settings
    rankers: list[Ranker]
    log: Log
    schema: pl.Schema
    features: tuple[str, ...]
    fingerprints: Fingerprints


def prepare(
    slates: Slates,
    policies: PolicySpec,
    *,
    horizon: Horizon,
    missing: Missing | None,
    estimator: Estimator,
    level: float,
    reward_range: tuple[float, float] | None,
    labels: pl.DataFrame | None,
    cluster: str | None = None,
    position: bool = False,
) -> Prepared:
    """Check the arguments of ``evaluate``, build the rankers, and align the log.

    Raises InputError, UnknownName or PolicyError for invalid arguments.
    """
    bounds = (slates.reward_range or (0.0, 1.0)) if reward_range is None else reward_range
    settings = check_settings(horizon, missing, estimator, level, bounds, labels, cluster)
    if position:
        settings = _weight_positions(settings)
    schema = slates.candidates.collect_schema()
    rankers = make_rankers(policies, schema, slates.lab)
    log = read_log(
        slates,
        horizon=horizon_micros(horizon),
        zero=missing == "zero",
        reward_range=settings.reward_range,
        feedback=labels is None,
        cluster=cluster,
    )
    if missing is None and labels is None:
        check_missing(log.silent, *log.reward_ends)
    embedder = getattr(getattr(slates.lab, "io", None), "embedder", None)
    fingerprints = read_fingerprints(log.decisions, None if embedder is None else embedder.scoring)
    described = () if fingerprints.thinned else feature_names(slates)
    if fingerprints.thinned and missing == "inverse":
        raise InputError(
            'missing="inverse" computes weights from features, but lab.upkeep.thin '
            "removed the features of the oldest recalls. Leave those recalls out with "
            "slates.filter, or choose another treatment of missing feedback."
        )
    return Prepared(settings, rankers, log, schema, described, fingerprints)


def feature_names(slates: Slates) -> tuple[str, ...]:
    """Return the columns that describe a candidate: its features, or otherwise its scores."""
    features = tuple(name for name in slates.features if name not in CONTENT)
    return features or slates.policies or ("score",)


def _weight_positions(settings: Settings) -> Settings:
    """Return settings that weight rewards by how often users examine each position."""
    if settings.measure == "labels" or settings.reward_range[0] < 0:
        raise InputError(
            "position=True weights rewards by how often users look at each position. It needs feedback and rewards of at "
            "least 0: omit labels, and set reward_range=(0, ...)."
        )
    return replace(settings, position=True)


def with_baseline(
    rankers: list[Ranker], baseline: str | None, packs: Sequence[str | None], own: Ranker | None
) -> tuple[list[Ranker], str]:
    """Return the rankers, including the logged ranking, and the name of the baseline.

    The logged ranking is added if the baseline is omitted or is the logged ranking. ``packs`` are
    the hashes of the packs that logged.
    """
    if own is not None and own.name in (ranker.name for ranker in rankers):
        own = None
    if baseline is not None:
        names = [ranker.name for ranker in rankers]
        if own is not None and baseline == own.name:
            return [own, *rankers], baseline
        if baseline not in names:
            raise UnknownName(
                "policy to compare with", baseline, names if own is None else [*names, own.name]
            )
        return rankers, baseline
    # By default policies are compared with the policy that logged, so that a difference is the effect of a change.
    for ranker in rankers:
        if ranker.name == "logged" or [ranker.hash] == packs:
            return rankers, ranker.name
    if own is not None:
        return [own, *rankers], own.name
    return rankers, rankers[0].name


_MAX_MISSING = 0.1
"""The share of missing feedback up to which the caller need not choose how it counts.

Up to this share, the treatment can move a mean reward by at most a tenth of the range.
"""


def check_missing(silent: float, low: float, high: float) -> None:
    """Raise InputError if missing feedback matters but its treatment is not chosen.

    ``silent`` is the share of items shown without a reward; ``low`` and ``high`` are the minimum
    and maximum reward, NaN without rewards.
    """
    single_reward = silent > 0 and low == high
    if not single_reward and silent <= _MAX_MISSING:
        return
    problem = (
        f"Every reward in the log is {low:g}, and {silent:.0%} of the items shown have none"
        if single_reward
        else f"{silent:.0%} of the items shown have no reward"
    )
    raise InputError(
        f'{problem}: set what missing feedback counts as. missing="zero": a reward of 0 (not useful); "censor": left '
        'out (it does not depend on the item); "inverse": left out and reweighted (it depends on the features alone); '
        '"bounds": any reward. On the command line: --missing.'
    )


def check_estimator(estimator: Estimator, silent: float) -> None:
    """Raise InputError if the Horvitz-Thompson estimator would count missing feedback as 0."""
    if estimator == "ht" and silent:
        raise InputError(
            f"{silent:.0%} of the items shown have no known reward, and Horvitz-Thompson's sum would count it as 0. "
            f'Set missing="zero" to accept that, or use estimator="snips".'
        )


def check_settings(
    horizon: Horizon,
    missing: Missing | None,
    estimator: Estimator,
    level: float,
    reward_range: tuple[float, float],
    labels: pl.DataFrame | None,
    cluster: str | None,
) -> Settings:
    """Return the settings after checking them; raise InputError for an invalid setting."""
    chosen: Missing = "censor" if missing is None else missing
    if not 0 < level < 1:
        raise InputError(
            f"level must be a probability between 0 and 1, such as .95, not {level!r}."
        )
    low, high = reward_range
    if low >= high:
        raise InputError(
            f"reward_range must be the minimum and the maximum reward, in this order, not {reward_range!r}."
        )
    span = (
        horizon
        if horizon is None or isinstance(horizon, str)
        else f"{horizon.total_seconds() / 86_400:g}d"
    )
    measure: Literal["feedback", "labels"] = "feedback" if labels is None else "labels"
    return Settings(measure, span, chosen, estimator, level, (float(low), float(high)), cluster)
