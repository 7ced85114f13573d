"""``memlab.evaluate``: what would each policy have been worth on this log, and which may be called better?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import polars as pl

from memlab.arguments import Seed, checked
from memlab.errors import InputError, UnknownName
from memlab.evaluation._clusters import mean
from memlab.evaluation._compare import Contest, compare
from memlab.evaluation._evaluation import Evaluation
from memlab.evaluation._feedback import Horizon
from memlab.evaluation._findings import PolicyValue
from memlab.evaluation._gates import Gate, bounded_only
from memlab.evaluation._inclusion import Estimator, horvitz_thompson, self_normalised
from memlab.evaluation._labels import measure_labels
from memlab.evaluation._log import Log
from memlab.evaluation._measure import Measurement, bounded_difference, bounds, measure_feedback
from memlab.evaluation._prepared import Settings, prepare
from memlab.evaluation._rankers import PolicySpec, Ranker, logged
from memlab.evaluation._targets import RecallsAgain, Target, aim
from memlab.slates import Slates

__all__ = ["evaluate"]

_STATISTICS = {"snips": self_normalised, "ht": horvitz_thompson}


@checked
def evaluate(
    slates: Slates,
    policies: PolicySpec | Sequence[PolicySpec] | Mapping[str, PolicySpec],
    *,
    reward: Literal["item"] = "item",
    horizon: Horizon = None,
    missing: Literal["censor", "zero"] = "censor",
    estimator: Estimator = "snips",
    level: float = 0.95,
    baseline: str | None = None,
    reward_range: tuple[float, float] | None = None,
    labels: pl.DataFrame | None = None,
    seed: Seed = 0,
) -> Evaluation:
    """The value that each policy would have had on the recalls of a log, with intervals, or the reasons for none.

    ``slates`` are the four tables of a log (``memlab.Slates``). ``policies``: names, paths or objects of packs, the
    text of a ``recall-score``, Polars expressions over the candidates, names of columns of scores; or a mapping that
    names them. A value is the mean over recalls of the sum of the rewards of the items that the policy would have put
    in the head of the logged pool: the value on logged recalls; long-term effects on the memory are not modelled.

    ``horizon`` ("7d", a timedelta) gives every recall the same time to earn and leaves out those still open;
    ``missing`` says what silence means: "censor", not known, or "zero", a reward of 0. ``estimator`` is "snips"
    (self-normalised) or "ht" (Horvitz-Thompson). ``baseline`` is the policy to which the others are compared: the one
    that logged, unless named. ``reward_range`` bounds what an item may earn: what the slates declare, or 0 and 1. With
    ``labels`` (decision, memory_id, relevance 0 or 1, complete) feedback is not read: the metrics are those of
    retrieval. ``seed`` is that of the bootstrap.

    A policy whose features the log does not hold is refused by name (``.refusals``); one whose figure would mislead has
    no value, and its gates say why. Raises ``InputError`` with table and row for a log that contradicts itself,
    ``UnknownName``, ``PolicyError``.

    >>> memlab.evaluate(lab.slates(), ["memlab", "companion"], horizon="7d", missing="zero")       # doctest: +SKIP
    """
    prepared = prepare(
        slates,
        policies,
        reward=reward,
        horizon=horizon,
        missing=missing,
        estimator=estimator,
        level=level,
        reward_range=reward_range,
        labels=labels,
        seed=seed,
    )
    settings, log, schema, lab = prepared.settings, prepared.log, prepared.schema, slates.lab
    if estimator == "ht" and labels is None and log.silent:
        raise InputError(
            f"{log.silent:.0%} of what was shown has no known reward, and Horvitz-Thompson's sum would count it as 0. "
            f'Say so with missing="zero", or use estimator="snips".'
        )
    rankers, baseline = _with_baseline(prepared.rankers, baseline, log, logged(slates.candidates, schema))
    recall_again: RecallsAgain | None = getattr(lab, "recall_again", None)
    targets, refused = aim(rankers, log, schema, prepared.fingerprints, recall_again)
    notes = [*slates.notes, *log.notes]
    if not prepared.fingerprints.any and any(ranker.policy is not None for ranker in rankers):
        notes.append("The log carries no fingerprints: its features are taken to be what their names say.")
    notes += [
        f"{target.name} gives {target.unscored} candidates no finite score: it would never show them."
        for target in targets
        if target.unscored
    ]
    if labels is None:
        rows, contest, method = _by_feedback(targets, log, settings, baseline)
    else:
        rows, contest, method, settings, more = _by_labels(targets, log, settings, baseline, labels)
        notes += more
    return Evaluation(
        rows=rows,
        refusals=tuple(refused),
        notes=tuple(notes),
        settings=settings,
        baseline=baseline,
        method=method,
        recalls=len(log),
        clusters=log.clusters,
        needed=contest.needed,
        given=tuple(ranker.name for ranker in prepared.rankers),
        _log=log,
        _targets=tuple(targets),
        _schema=schema,
        _features=slates.features or slates.policies or ("score",),
        _lab=lab,
    )


def _with_baseline(
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
            raise UnknownName("policy to compare with", baseline, known if own is None else [*known, own.name])
        return rankers, baseline
    hashes = log.decisions["pack_hash"].unique().to_list() if "pack_hash" in log.decisions.columns else []
    for ranker in rankers:
        if ranker.name == "logged" or [ranker.hash] == hashes:
            return rankers, ranker.name
    if own is not None:
        return [own, *rankers], own.name
    return rankers, rankers[0].name


def _by_feedback(
    targets: Sequence[Target], log: Log, settings: Settings, baseline: str
) -> tuple[tuple[PolicyValue, ...], Contest, str]:
    measurement = measure_feedback(targets, log, baseline=baseline, level=settings.level, seed=settings.seed)
    passed = [name for name, found in measurement.policies.items() if all(gate.open for gate in found.gates)]
    contest = compare(
        measurement.sample,
        measurement.places,
        _STATISTICS[settings.estimator],
        baseline=baseline,
        ranked=passed,
        recalls=len(log),
    )
    rows = [
        _feedback_row(target, measurement, contest, settings, baseline, ranked=target.name in passed)
        for target in targets
    ]
    return _ranked(rows), contest, measurement.sample.method


def _feedback_row(
    target: Target,
    measurement: Measurement,
    contest: Contest,
    settings: Settings,
    baseline: str,
    *,
    ranked: bool,
) -> PolicyValue:
    name = target.name
    found = measurement.policies[name]
    estimate = contest.values[name]
    difference = contest.differences.get(name) if ranked and name in contest.adjusted else None
    adjusted = contest.adjusted.get(name, np.nan)
    lower, upper = bounds(measurement, name, settings.estimator, *settings.reward_range)
    verdict = "baseline" if name == baseline else ""
    if not ranked:
        verdict = "withheld"
        base = measurement.policies.get(baseline)
        if bounded_only(found.gates) and base is not None and _usable(base.gates) and name != baseline:
            family = max(1, len(measurement.places) - 1)
            least, most = bounded_difference(
                measurement,
                name,
                baseline,
                settings.estimator,
                *settings.reward_range,
                1 - (1 - settings.level) / family,
            )
            verdict = "better by its bounds" if least > 0 else "worse by its bounds" if most < 0 else verdict
    elif not verdict:
        verdict = _verdict(None if difference is None else difference.value, adjusted, settings.level)
    return PolicyValue(
        name,
        target.kind,
        estimate if ranked else None,
        difference,
        adjusted,
        lower,
        upper,
        verdict,
        estimate.value,
        found,
        {},
    )


def _usable(gates: Sequence[Gate]) -> bool:
    return all(gate.open for gate in gates) or bounded_only(tuple(gates))


def _verdict(difference: float | None, adjusted: float, level: float) -> str:
    if difference is None:
        return "ranked, without a baseline to compare with"
    if adjusted < 1 - level:
        return "better" if difference > 0 else "worse"
    return "not separated"


def _by_labels(
    targets: Sequence[Target], log: Log, settings: Settings, baseline: str, labels: pl.DataFrame
) -> tuple[tuple[PolicyValue, ...], Contest, str, Settings, tuple[str, ...]]:
    found = measure_labels(targets, log, labels, level=settings.level, seed=settings.seed)
    enough = found.sample.clusters >= 2
    contest = compare(
        found.sample,
        found.places,
        mean,
        baseline=baseline,
        ranked=list(found.places) if enough else [],
        recalls=found.judged,
    )
    rows = []
    for target in targets:
        name = target.name
        estimate, adjusted = contest.values[name], contest.adjusted.get(name, np.nan)
        difference = contest.differences.get(name) if name in contest.adjusted else None
        verdict = "withheld" if not enough else "baseline" if name == baseline else ""
        if not verdict:
            verdict = _verdict(None if difference is None else difference.value, adjusted, settings.level)
        rows.append(
            PolicyValue(
                name,
                target.kind,
                estimate if enough else None,
                difference,
                adjusted,
                estimate.value,
                estimate.value,
                verdict,
                estimate.value,
                None,
                found.metrics[name],
            )
        )
    return _ranked(rows), contest, found.sample.method, settings.by(found.metric), found.notes


def _ranked(rows: list[PolicyValue]) -> tuple[PolicyValue, ...]:
    """Best first; what has no value stands last, in the order in which it was given."""
    valued = sorted((row for row in rows if row.value is not None), key=lambda row: -row.value.value)  # type: ignore[union-attr]
    return (*valued, *(row for row in rows if row.value is None))
