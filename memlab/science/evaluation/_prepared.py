"""What ``evaluate`` and ``tune`` begin with: arguments checked, policies read, the log aligned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.slates import Slates
from memlab.science.evaluation._log import Horizon, Log, Missing, horizon_micros, read_log
from memlab.science.evaluation._targets import (
    Fingerprints,
    PolicySpec,
    Ranker,
    rankers_of,
    read_fingerprints,
)

__all__ = [
    "Estimator",
    "HasSlates",
    "Prepared",
    "Settings",
    "check_settings",
    "check_silence",
    "feature_names",
    "prepare",
    "with_baseline",
]


Estimator = Literal["snips", "ht"]


@runtime_checkable
class HasSlates(Protocol):
    """A lab, or whatever else has slates."""

    def slates(self) -> Slates: ...


@dataclass(frozen=True)
class Settings:
    """What was asked for. ``measure`` is "feedback" or "labels"; ``metric`` names the label metric that ranks."""

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
        return replace(self, metric=metric)


@dataclass(frozen=True)
class Prepared:
    """``schema`` is that of the candidates, ``features`` names what describes them."""

    settings: Settings
    rankers: list[Ranker]
    log: Log
    schema: pl.Schema
    features: tuple[str, ...]
    fingerprints: Fingerprints


def prepare(
    slates: Slates,
    policies: PolicySpec | Sequence[PolicySpec] | Mapping[str, PolicySpec],
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
    """Arguments are those of ``evaluate``; InputError, UnknownName or PolicyError for what is wrong with them."""
    bounds = (slates.reward_range or (0.0, 1.0)) if reward_range is None else reward_range
    settings = check_settings(horizon, missing, estimator, level, bounds, labels, cluster)
    if position:
        settings = _by_place(settings)
    schema = slates.candidates.collect_schema()
    rankers = rankers_of(policies, schema)
    log = read_log(
        slates,
        horizon=horizon_micros(horizon),
        zero=missing == "zero",
        reward_range=settings.reward_range,
        feedback=labels is None,
        cluster=cluster,
    )
    if missing is None and labels is None:
        check_silence(log)
    embedder = getattr(getattr(slates.lab, "io", None), "embedder", None)
    fingerprints = read_fingerprints(
        log.decisions, None if embedder is None else embedder.fingerprint
    )
    described = () if fingerprints.thinned else feature_names(slates)
    if fingerprints.thinned and missing == "inverse":
        raise InputError(
            'missing="inverse" weighs by features, which lab.upkeep.thin took from the oldest recalls. Leave those out '
            "with slates.filter, or choose another treatment of missing feedback."
        )
    return Prepared(settings, rankers, log, schema, described, fingerprints)


def feature_names(slates: Slates) -> tuple[str, ...]:
    """What describes a candidate of a log: its features, or else the scores that it has."""
    return slates.features or slates.policies or ("score",)


def _by_place(settings: Settings) -> Settings:
    if settings.measure == "labels" or settings.reward_range[0] < 0:
        raise InputError(
            "position=True weighs rewards by how often a place is looked at: feedback, and none below 0."
        )
    return replace(settings, position=True)


def with_baseline(
    rankers: list[Ranker], baseline: str | None, log: Log, own: Ranker | None
) -> tuple[list[Ranker], str]:
    """The rankers with whoever logged among them, and the name of the one that the others are compared to."""
    if own is not None and own.name in (ranker.name for ranker in rankers):
        own = None
    if baseline is not None:
        known = [ranker.name for ranker in rankers]
        if own is not None and baseline == own.name:
            return [own, *rankers], baseline
        if baseline not in known:
            raise UnknownName(
                "policy to compare with", baseline, known if own is None else [*known, own.name]
            )
        return rankers, baseline
    hashes = (
        log.decisions["pack_hash"].unique().to_list()
        if "pack_hash" in log.decisions.columns
        else []
    )
    for ranker in rankers:
        if ranker.name == "logged" or [ranker.hash] == hashes:
            return rankers, ranker.name
    if own is not None:
        return [own, *rankers], own.name
    return rankers, rankers[0].name


_SILENT = 0.1


def check_silence(log: Log) -> None:
    """InputError where the log cannot say what silence means, and it matters."""
    rewards = log.reward[log.answered]
    one = len(rewards) > 0 and log.silent > 0 and bool((rewards == rewards[0]).all())
    if not one and log.silent <= _SILENT:
        return
    found = (
        f"Every reward in the log is {rewards[0]:g}, and {log.silent:.0%} of what was shown has none"
        if one
        else f"{log.silent:.0%} of what was shown has no reward"
    )
    raise InputError(
        f'{found}: say what silence means. missing="zero": not useful (with a horizon, once it has closed); "censor": '
        'nothing, as it does not depend on the item; "inverse": it depends on the features alone; "bounds": it may '
        "mean anything. On the command line: --missing."
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
    """The settings; UnknownName or InputError for what is wrong with them."""
    chosen: Missing = "censor" if missing is None else missing
    if not 0 < level < 1:
        raise InputError(f"level is a probability between 0 and 1, such as .95; not {level!r}.")
    low, high = reward_range
    if low >= high:
        raise InputError(
            f"reward_range runs from the least to the greatest reward, not {reward_range!r}."
        )
    span = (
        horizon
        if horizon is None or isinstance(horizon, str)
        else f"{horizon.total_seconds() / 86_400:g}d"
    )
    measure: Literal["feedback", "labels"] = "feedback" if labels is None else "labels"
    return Settings(measure, span, chosen, estimator, level, (float(low), float(high)), cluster)
