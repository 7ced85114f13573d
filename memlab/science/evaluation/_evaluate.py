"""``memlab.evaluate``: what would each policy have been worth on this log, and which may be called better?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.slates import Slates
from memlab.science.evaluation._evaluation import Between, Evaluation, PolicyValue, separated
from memlab.science.evaluation._intervals import Estimate, Floats, holm, mean
from memlab.science.evaluation._labels import measure_labels
from memlab.science.evaluation._log import Horizon, Log, Missing
from memlab.science.evaluation._measure import (
    Compared,
    Evidence,
    Head,
    Measured,
    Tests,
    compare,
    credited_note,
    gather,
    known_features,
    measure,
    recalls_for,
    recalls_needed,
)
from memlab.science.evaluation._prepared import (
    Estimator,
    HasSlates,
    Settings,
    prepare,
    with_baseline,
)
from memlab.science.evaluation._targets import PolicySpec, RecallsAgain, Target, aim, logged
from memlab.science.evaluation._tests import ONE_CLUSTER, Gate

__all__ = ["evaluate"]


@checked
def evaluate(
    slates: Slates | HasSlates,
    policies: PolicySpec | Sequence[PolicySpec] | Mapping[str, PolicySpec],
    *,
    horizon: Horizon = None,
    missing: Missing | None = None,
    estimator: Estimator = "snips",
    cluster: str | None = None,
    position: bool = False,
    level: float = 0.95,
    baseline: str | None = None,
    reward_range: tuple[float, float] | None = None,
    labels: pl.DataFrame | None = None,
) -> Evaluation:
    """The value that each policy would have had on the recalls of a log, with intervals, or the reasons for none.

    ``slates`` are the four tables of a log (``memlab.Slates``), or a lab. ``policies``: names, paths or objects of
    packs, the text of a ``recall-score``, Polars expressions over the candidates, names of columns of scores; or a
    mapping that names them. A value is the mean over recalls of the sum of the rewards of the items that the policy
    would have put in the head of the logged pool: the value on logged recalls; long-term effects on the memory are not
    modelled.

    ``horizon`` ("7d", a timedelta) gives every recall the same time to earn and leaves out those still open.
    ``missing`` says what silence means: "zero" (a reward of 0), "censor" (left out), "inverse" (left out, and weighed
    by the probability of an answer), "bounds" (anything); it must be said where more than a tenth is silent or only
    one reward occurs. ``position`` weighs rewards by how often the place of an item is looked at, as items at random
    places show it (position-based: Agarwal et al. 2019; Li et al. 2018). ``estimator`` is "snips" (self-normalised) or
    "ht" (Horvitz-Thompson). ``cluster`` names what is independent: a column of the decisions, "day" or "decision"; the
    column cluster unless given. ``baseline`` is the policy to which the others are compared: the one that logged,
    unless named. ``reward_range`` bounds what an item may earn: what the slates declare, or 0 and 1. With ``labels``
    (decision, memory_id, relevance 0 or 1, complete) feedback is not read: the metrics are those of retrieval.

    What a policy would show and the log could not enters its interval, at both ends of ``reward_range``. A policy whose
    features the log does not hold is refused by name (``.refusals``); one whose figure would mislead has no value, and
    its gates say why. A gate that the log cannot test is named as untested with every value. Raises
    ``InputError`` with table and row for a log that contradicts itself, ``UnknownName``, ``PolicyError``.

    >>> memlab.evaluate(lab, ["memlab", "companion"], horizon="7d", missing="zero")       # doctest: +SKIP
    """
    slates = slates if isinstance(slates, Slates) else slates.slates()
    asked = prepare(
        slates,
        policies,
        horizon=horizon,
        missing=missing,
        estimator=estimator,
        level=level,
        reward_range=reward_range,
        labels=labels,
        cluster=cluster,
        position=position,
    )
    settings, log, schema, lab = asked.settings, asked.log, asked.schema, slates.lab
    if estimator == "ht" and labels is None and log.silent:
        raise InputError(
            f"{log.silent:.0%} of what was shown has no known reward, and Horvitz-Thompson's sum would count it as 0. "
            f'Say so with missing="zero", or use estimator="snips".'
        )
    rankers, baseline = with_baseline(
        asked.rankers, baseline, log, logged(slates.candidates, schema)
    )
    recall_again: RecallsAgain | None = getattr(
        getattr(lab, "policies", None), "recall_again", None
    )
    targets, refused = aim(rankers, log, schema, asked.fingerprints, recall_again)
    notes = [*slates.notes, *log.notes]
    if not asked.fingerprints.any and any(ranker.policy is not None for ranker in rankers):
        notes.append(
            "The log carries no fingerprints: its features are taken to be what their names say."
        )
    notes += [
        f"{target.name} gives {target.unscored} candidates no finite score: it would never show them."
        for target in targets
        if target.unscored
    ]
    if labels is None:
        rows, needed, method, between, found = _by_feedback(
            targets, log, settings, baseline, known_features(log, asked.features, schema)
        )
        notes += [*found, *_assumed(log, settings)]
    else:
        rows, needed, method, settings, between, more = _by_labels(
            targets, log, settings, baseline, labels
        )
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
        needed=needed,
        given=tuple(ranker.name for ranker in asked.rankers),
        _log=log,
        _targets=tuple(targets),
        _schema=schema,
        _features=asked.features,
        _lab=lab,
        _between=between,
    )


def _by_feedback(
    targets: Sequence[Target], log: Log, settings: Settings, baseline: str, features: Floats
) -> tuple[tuple[PolicyValue, ...], tuple[str, str, int] | None, str, Between, list[str]]:
    evidence = gather(log, settings, features)
    heads = {target.name: evidence.head(target) for target in targets}
    base = heads.get(baseline)
    tests = Tests(log, settings, features)
    measured: dict[str, Measured] = {}
    estimates: dict[str, Compared] = {}
    for target in targets:
        head = heads[target.name]
        other = base if base is not None and head is not base else None
        estimates[target.name] = compare(evidence, head, other)
        measured[target.name] = measure(evidence, estimates[target.name], tests)
    passed = {
        name for name, found in measured.items() if not any(gate.closed for gate in found.gates)
    }
    family = [
        name for name in estimates if name in passed and baseline in passed and name != baseline
    ]
    differences = [estimates[name].difference for name in family]
    raw = [difference.p for difference in differences]  # type: ignore[union-attr]
    adjusted = dict(zip(family, holm(raw), strict=True))
    rows = []
    for target in targets:
        name, found = target.name, estimates[target.name]
        ranked, p = name in passed, adjusted.get(name, np.nan)
        gap = found.difference if name in adjusted else None
        verdict = (
            "withheld"
            if not ranked
            else "baseline"
            if name == baseline
            else separated(gap, p, settings.level)
        )
        rows.append(
            PolicyValue(
                name,
                target.kind,
                found.value if ranked else None,
                gap,
                p,
                found.lower,
                found.upper,
                verdict,
                found.value.value,
                measured[name],
                {},
            )
        )
    ordered = _ranked(rows)

    def between(first: str, second: str) -> tuple[Estimate, tuple[Gate, ...]]:
        found = compare(evidence, heads[first], heads[second])
        assert found.difference is not None
        return found.difference, measure(evidence, found, tests).gates

    return (
        ordered,
        _needed(ordered, baseline, evidence, heads),
        _method(evidence, log),
        between,
        _estimated(evidence),
    )


def _estimated(evidence: Evidence) -> list[str]:
    """What was learned from the log before its policies were valued, in a sentence each."""
    notes = credited_note(evidence.log, evidence.credited)
    if evidence.examination is not None:
        eta = evidence.examination.eta
        notes.append(
            f"Place k is looked at as often as k^-{eta.value:.2f} (interval {eta.low:.2f} to {eta.high:.2f}), by items "
            "at random places; rewards are weighed by it."
        )
    return notes


def _assumed(log: Log, settings: Settings) -> list[str]:
    """What an estimate takes on trust, in a sentence each."""
    notes = []
    if settings.missing == "inverse" and log.silent:
        notes.append("Silence is taken to depend on the logged features and the position alone.")
    chance = (log.propensity > 0) & (log.propensity < 1)
    if not chance.any() and not np.isnan(log.propensity).all():
        notes.append(
            "No exploration: this log is deterministic, and of what was not shown it knows only the range of the "
            "rewards. Challenge a pack (lab.challenge), or log with probes ((setting probe-rate 0.1))."
        )
    if np.isnan(log.propensity[~log.shown]).any():
        notes.append(
            "The log does not say what else could have been shown: unsupported is unknown."
        )
    return notes


def _method(evidence: Evidence, log: Log) -> str:
    sample = evidence.sample(np.ones((len(log), 1)))
    return sample.method.replace("clusters", f"clusters ({log.clustered})", 1)


def _needed(
    rows: Sequence[PolicyValue], baseline: str, evidence: Evidence, heads: Mapping[str, Head]
) -> tuple[str, str, int] | None:
    """The two best and how many recalls like these would tell them apart four times out of five; or the policy that
    is nearest to a value, and how many recalls would give it one.
    """
    best = [row.policy for row in rows if row.value is not None][:2]
    if len(best) < 2:
        more = [
            (row.needed, row.policy)
            for row in rows
            if row.value is None and row.needed and row.policy != baseline
        ]
        if not more:
            return None
        fewest, policy = min(more)
        return policy, baseline, len(evidence.log) + fewest
    found = compare(evidence, heads[best[0]], heads[best[1]])
    count = recalls_needed(found, len(evidence.log), evidence.level)
    return None if count is None else (best[0], best[1], count)


def _by_labels(
    targets: Sequence[Target], log: Log, settings: Settings, baseline: str, labels: pl.DataFrame
) -> tuple[
    tuple[PolicyValue, ...], tuple[str, str, int] | None, str, Settings, Between, tuple[str, ...]
]:
    found = measure_labels(targets, log, labels, level=settings.level)
    sample, places = found.sample, found.places
    enough = sample.clusters >= 2

    def minus(first: str, second: str) -> Estimate:
        own, other = places[first], places[second]
        return sample.estimate(lambda totals: mean(totals[..., own]) - mean(totals[..., other]))

    gaps = {
        name: minus(name, baseline) for name in places if name != baseline and baseline in places
    }
    family = list(gaps) if enough else []
    adjusted = dict(zip(family, holm([gaps[name].p for name in family]), strict=True))
    rows = []
    for target in targets:
        name, place = target.name, places[target.name]
        value = sample.estimate(lambda totals, place=place: mean(totals[..., place]))  # type: ignore[misc]
        p = adjusted.get(name, np.nan)
        gap = gaps[name] if name in adjusted else None
        verdict = (
            "withheld"
            if not enough
            else "baseline"
            if name == baseline
            else separated(gap, p, settings.level)
        )
        rows.append(
            PolicyValue(
                name,
                target.kind,
                value if enough else None,
                gap,
                p,
                value.value,
                value.value,
                verdict,
                value.value,
                None,
                found.metrics[name],
            )
        )
    ordered = _ranked(rows)
    needed = None
    if enough and len(ordered) > 1:
        best = ordered[0].policy, ordered[1].policy
        count = recalls_for(minus(*best), found.judged, settings.level)
        needed = None if count is None else (*best, count)
    return (
        ordered,
        needed,
        sample.method,
        settings.by(found.metric),
        lambda first, second: (minus(first, second), () if enough else (ONE_CLUSTER,)),
        found.notes,
    )


def _ranked(rows: list[PolicyValue]) -> tuple[PolicyValue, ...]:
    """Best first; what has no value stands last, in the order in which it was given."""
    valued = [row for row in rows if row.value is not None]
    valued.sort(key=lambda row: np.inf if np.isnan(row.estimate) else -row.estimate)
    return (*valued, *(row for row in rows if row.value is None))
