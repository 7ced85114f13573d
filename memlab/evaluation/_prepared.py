"""What ``evaluate`` and ``tune`` begin with: arguments checked, policies read, the log aligned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import polars as pl

from memlab.arguments import checked
from memlab.errors import InputError, UnknownName
from memlab.evaluation._feedback import Horizon, horizon_micros
from memlab.evaluation._fingerprints import Fingerprints, read_fingerprints
from memlab.evaluation._inclusion import Estimator
from memlab.evaluation._log import Log, read_log
from memlab.evaluation._rankers import PolicySpec, Ranker, rankers_of
from memlab.slates import Slates

__all__ = ["Prepared", "Settings", "prepare"]


@dataclass(frozen=True)
class Settings:
    """What was asked for. ``measure`` is "feedback" or "labels"; ``metric`` names the label metric that ranks."""

    measure: Literal["feedback", "labels"]
    horizon: str | None
    missing: str
    estimator: Estimator
    level: float
    reward_range: tuple[float, float]
    seed: int
    metric: str = ""

    @checked
    def by(self, metric: str) -> Settings:
        return replace(self, metric=metric)


@dataclass(frozen=True)
class Prepared:
    """``schema`` is that of the candidates."""

    settings: Settings
    rankers: list[Ranker]
    log: Log
    schema: pl.Schema
    fingerprints: Fingerprints


def prepare(
    slates: Slates,
    policies: PolicySpec | Sequence[PolicySpec] | Mapping[str, PolicySpec],
    *,
    reward: str,
    horizon: Horizon,
    missing: str,
    estimator: Estimator,
    level: float,
    reward_range: tuple[float, float] | None,
    labels: pl.DataFrame | None,
    seed: int,
) -> Prepared:
    """Arguments are those of ``evaluate``; InputError, UnknownName or PolicyError for what is wrong with them."""
    bounds = (slates.reward_range or (0.0, 1.0)) if reward_range is None else reward_range
    settings = _checked_settings(reward, horizon, missing, estimator, level, bounds, labels, seed)
    schema = slates.candidates.collect_schema()
    rankers = rankers_of(policies, schema)
    log = read_log(
        slates,
        horizon=horizon_micros(horizon),
        zero=missing == "zero",
        reward_range=settings.reward_range,
        feedback=labels is None,
    )
    embedder = getattr(slates.lab, "embedder", None)
    fingerprints = read_fingerprints(log.decisions, None if embedder is None else embedder.fingerprint)
    return Prepared(settings, rankers, log, schema, fingerprints)


def _checked_settings(
    reward: str,
    horizon: Horizon,
    missing: str,
    estimator: Estimator,
    level: float,
    reward_range: tuple[float, float],
    labels: pl.DataFrame | None,
    seed: int,
) -> Settings:
    for what, value, known in (
        ("kind of reward", reward, ("item",)),
        ("treatment of missing feedback", missing, ("censor", "zero")),
        ("estimator", estimator, get_args(Estimator)),
    ):
        if value not in known:
            raise UnknownName(what, value, known)
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InputError(f"level is a probability between 0 and 1, such as .95; not {level!r}.")
    try:
        low, high = (float(bound) for bound in reward_range)
    except (TypeError, ValueError):
        raise InputError(
            f"reward_range is a pair of numbers, the least and the greatest; not {reward_range!r}."
        ) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"reward_range runs from the least to the greatest reward, both finite; not {reward_range!r}.")
    span = horizon if horizon is None or isinstance(horizon, str) else f"{horizon.total_seconds() / 86_400:g}d"
    return Settings("feedback" if labels is None else "labels", span, missing, estimator, level, (low, high), seed)
