"""``memlab.evaluate``: estimate the expected reward of policies on a log."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import Floats
from memlab.kernel.base.printable import count_of
from memlab.kernel.slates import Slates
from memlab.science.batch import Workers, run_tasks
from memlab.science.evaluation._credited import credited_note
from memlab.science.evaluation._evaluation import (
    Evaluation,
    PolicyValue,
    name_verdict,
)
from memlab.science.evaluation._evidence import Evidence, TopK, gather_evidence
from memlab.science.evaluation._intervals import Estimate, adjust_all, mean
from memlab.science.evaluation._item_tests import Tests
from memlab.science.evaluation._labels import (
    LabelsRecalls,
    frame_of_labels,
    measure_labels,
    split_metric,
)
from memlab.science.evaluation._log import Horizon, Log, Missing
from memlab.science.evaluation._measure import (
    Compared,
    compare,
    measure,
    recalls_for,
    repeated_note,
)
from memlab.science.evaluation._merged import Sums
from memlab.science.evaluation._observed import cluster_facts, observe
from memlab.science.evaluation._partial import find_files, partial, sum_file
from memlab.science.evaluation._prepared import (
    Estimator,
    HasSlates,
    Prepared,
    Settings,
    check_estimator,
    prepare,
    with_baseline,
)
from memlab.science.evaluation._reward_model import select_features
from memlab.science.evaluation._rows import (
    Ranked,
    describe_assumptions,
    name_logging,
    rank_policies,
    sort_rows,
)
from memlab.science.evaluation._targets import (
    NO_FINGERPRINTS,
    PolicySpec,
    RecallsAgain,
    Target,
    find_targets,
    make_logged_ranker,
)
from memlab.science.evaluation._tests import ONE_CLUSTER, effective_count, share

_HEAVY = 0.05
"""The share of rewards that must carry the variance; for a normal distribution it is .33.

For truncated Pareto rewards with the exponent 1.6 it is .01, and intervals covered .65 to .81.
"""


@checked
def evaluate(
    slates: Slates | HasSlates | pl.LazyFrame | Path | str,
    policies: PolicySpec,
    *,
    columns: Mapping[str, Any] | None = None,
    horizon: Horizon = None,
    missing: Missing | None = None,
    estimator: Estimator = "snips",
    cluster: str | None = None,
    position: bool = False,
    level: float = 0.95,
    baseline: str | None = None,
    reward_range: tuple[float, float] | None = None,
    labels: pl.DataFrame | LabelsRecalls | None = None,
    metric: str | None = None,
    executor: Workers = None,
) -> Evaluation:
    """Estimate the expected reward of policies on the recalls of a log.

    A value is the mean over recalls of the summed rewards of the items that the policy would have
    in its top-k of the logged pool. It is a value on logged recalls: long-term effects on the
    memories are not modelled. Rewards of unsupported items, which the log could not show, widen the
    interval. They count as the minimum reward at the lower end of the interval and as the maximum
    at its upper end.

    Parameters
    ----------
    slates
        The four tables of a log (``memlab.Slates``), or a lab. A large log may stay on disk: pass
        the path of a Parquet file or of a folder of such files, or a lazy frame. It has a row for
        each candidate, and the rows of a recall are next to one another.
    policies
        One or several policies. A policy is the name, path or object of a pack, the text of a
        ``recall-score``, a Polars expression over the candidates, or the name of a column of
        scores. A mapping gives each policy a name.
    columns
        The columns of a log on disk, as arguments of ``Slates.from_wide``. By default the columns that
        ``Slates.to_wide`` writes.
    horizon
        The time that each recall has to get feedback, such as "7d" or a timedelta. Recalls whose
        time is not over are left out.
    missing
        What missing feedback counts as: "zero" (a reward of 0), "censor" (left out), "inverse"
        (left out, and answered items weighted by 1 / the probability of an answer) or "bounds" (any
        reward). Required if more than a tenth of the feedback is missing or only one reward occurs.
    estimator
        "snips" (self-normalised) or "ht" (Horvitz-Thompson).
    cluster
        The unit whose recalls depend on each other: a column of the decisions, "day" or "decision".
        The default is the column ``cluster``.
    position
        Whether to weight rewards by how often users examine a position. The frequency is estimated
        from items at random positions.
    level
        The confidence level of the intervals, between 0 and 1.
    baseline
        The policy that the others are compared with; by default the policy that logged.
    reward_range
        The minimum and maximum reward of an item. Default: the range of the slates, or 0 and 1.
    labels
        A frame with ``decision``, ``memory_id`` and ``relevance`` (0 or 1) for every relevant item,
        or ``lab.questions``, which label the recalls with the same queries. With labels, feedback
        is not read, and the metrics are retrieval metrics.
    metric
        With labels: the metric that ranks the policies, with its number of ranks, such as
        "ndcg@10". All recalls are measured at this number of ranks, independently of their limit. Default: recall at
        the most frequent limit of the log.
    executor
        Runs the sums of a folder of Parquet elsewhere, one task for each file: a number of processes,
        or an object with ``submit``, such as a ``dask.distributed.Client``. All workers see the
        folder, and each file has whole recalls. The result is the same, bit for bit.

    Returns
    -------
    Evaluation
        The policies with a value, best first, then those whose value is withheld. A policy is
        refused (``.refusals``) if the log lacks its features. The value of another policy than the
        one that logged is withheld if a gate is closed. Untested gates are named with every value.
        ``.observed`` has counts and the mean reward of the items that were shown, also for each
        query. No gate withholds these facts.

    Notes
    -----
    A log on disk is read a million candidates at a time, and needs memory for these and for sums by
    cluster (``Sums``). The values are equal up to rounding (1e-12). ``horizon``, ``position``,
    ``labels`` and ``missing="inverse"`` need the whole log, so they are refused.
    ``docs/howto/evaluate-large-logs.md`` describes evaluations on many cores and on clusters.

    Raises
    ------
    InputError
        If the tables of the log contradict each other; the message names the table and the row.
    UnknownName
        If there is no pack, column or baseline of a given name.
    PolicyError
        If the text of a policy is invalid.

    References
    ----------
    The position-based model follows Agarwal et al. (2019) and Li et al. (2018);
    ``docs/evaluation.md`` has the formulas.

    Examples
    --------
    >>> import polars as pl
    >>> import memlab
    >>> log = memlab.Slates.from_wide(
    ...     pl.read_parquet(memlab.examples.LOG),
    ...     decision="query_id",
    ...     item="memory_id",
    ...     shown="rank",
    ...     reward="clicked",
    ...     propensity="p",
    ...     limit=3,
    ...     scores=["old_score", "new_score"],
    ... )
    >>> evaluation = memlab.evaluate(log, ["old_score", "new_score"], missing="zero")
    >>> [(row.policy, round(row.value.value, 2), row.verdict) for row in evaluation.rows]
    [('new_score', 0.48, 'better'), ('old_score', 0.29, 'baseline')]
    """
    if isinstance(slates, pl.LazyFrame | Path | str):
        _refuse_arguments(
            horizon=horizon, position=position, labels=labels is not None, metric=metric
        )
        options: dict[str, Any] = {
            "columns": columns,
            "missing": missing,
            "cluster": cluster,
            "reward_range": reward_range,
        }
        sums = _sum_disk(slates, policies, options, executor)
        return sums.evaluate(estimator=estimator, level=level, baseline=baseline)
    on_disk = {"columns": columns, "executor": executor}
    if name := next((name for name, value in on_disk.items() if value is not None), None):
        raise InputError(
            f"{name}= is for a log on disk. Omit it, or pass the path of Parquet files."
        )
    if metric is not None and labels is None:
        raise InputError(
            "metric= ranks policies by labels, and no labels were passed. Pass labels=, or omit metric=."
        )
    slates = slates if isinstance(slates, Slates) else slates.slates()
    labels = frame_of_labels(labels, slates)
    prepared = prepare(
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
    return _evaluate_prepared(slates, prepared, baseline, labels, metric)


class _Part(NamedTuple):
    """What feedback or labels contribute to an evaluation.

    ``method`` is the method of the intervals.
    """

    ranked: Ranked
    method: str
    settings: Settings
    notes: Iterable[str]


def _evaluate_prepared(
    slates: Slates,
    prepared: Prepared,
    baseline: str | None,
    labels: pl.DataFrame | None,
    metric: str | None,
) -> Evaluation:
    """Evaluate the policies on a log in memory, by its feedback or by ``labels``."""
    log, schema, lab = prepared.log, prepared.schema, slates.lab
    kind = "recall"
    if labels is None:
        check_estimator(prepared.settings.estimator, log.silent)
    elif len(log):
        # One number of ranks for all recalls: a setting may have made the list of one recall shorter.
        cut = int(np.bincount(log.limit).argmax())
        kind, cut = (kind, cut) if metric is None else split_metric(metric)
        log = replace(log, limit=np.full(len(log), cut))
    rankers, baseline = with_baseline(
        prepared.rankers, baseline, log.packs, make_logged_ranker(slates.candidates, schema)
    )
    recall_again: RecallsAgain | None = getattr(
        getattr(lab, "policies", None), "recall_again", None
    )
    targets, refused = find_targets(rankers, log, schema, prepared.fingerprints, recall_again)
    notes = [*slates.notes, *log.notes]
    if not prepared.fingerprints.any and any(ranker.policy is not None for ranker in rankers):
        notes.append(NO_FINGERPRINTS)
    notes += [
        f"{target.name} gives {count_of(target.unscored, 'candidate')} no finite score and would not show them."
        for target in targets
        if target.unscored
    ]
    if labels is None:
        part, observed = (
            _evaluate_feedback(targets, prepared, baseline),
            observe(log, prepared.settings.level),
        )
    else:
        part, observed = (
            _evaluate_labels(targets, log, prepared.settings, baseline, labels, kind),
            None,
        )
    return Evaluation(
        rows=part.ranked.rows,
        refusals=tuple(refused),
        notes=(*notes, *part.notes),
        settings=part.settings,
        baseline=baseline,
        method=part.method,
        recalls=len(log),
        clusters=log.clusters,
        needed=part.ranked.needed,
        given=tuple(ranker.name for ranker in prepared.rankers),
        observed=observed,
        _log=log,
        _targets=tuple(targets),
        _schema=schema,
        _features=prepared.features,
        _lab=lab,
        _between=part.ranked.between,
    )


def _sum_disk(
    log: pl.LazyFrame | Path | str,
    policies: PolicySpec,
    options: Mapping[str, Any],
    executor: Workers,
) -> Sums:
    """Sum a log on disk as a stream, or its files as tasks of an executor."""
    if executor is None:
        return partial(log, policies, **options)
    if isinstance(log, pl.LazyFrame):
        raise InputError(
            "executor= runs one task per file, and a lazy frame has no files. Pass the path of a folder of Parquet files."
        )
    task = functools.partial(sum_file, policies, options)
    return Sums.merge(run_tasks(task, find_files(Path(log)), executor))


def _refuse_arguments(**arguments: object) -> None:
    """Raise InputError for the first argument that was passed, for logs on disk."""
    name = next((name for name, value in arguments.items() if value), None)
    if name is not None:
        raise InputError(
            f"{name}= needs the whole log in memory. Omit it, or pass memlab.Slates.from_wide(frame, ...) in place of a "
            "log on disk."
        )


def _evaluate_feedback(targets: Sequence[Target], prepared: Prepared, baseline: str) -> _Part:
    """Evaluate policies on feedback.

    If every item of a policy that logged was shown, its value is the observed reward, so no gate
    withholds it.
    """
    log, settings = prepared.log, prepared.settings
    features = select_features(log, prepared.features, prepared.schema)
    logging = name_logging(prepared.rankers, log.packs)
    evidence = gather_evidence(log, settings, features)
    top_ks = {target.name: evidence.top_k(target) for target in targets}
    tests, repeated = Tests(log, settings, features), dict[str, int]()

    def compare_by_name(name: str, other: str | None) -> Compared:
        """Compare one policy with another, or estimate its value alone."""
        compared = compare(evidence, top_ks[name], None if other is None else top_ks[other])
        repeated[name] = compared.top_k.repeated
        return compared

    def state_fact(name: str) -> Compared | None:
        """Return the observed value of a logging policy, or None if an item was not shown."""
        if name not in logging or not _was_shown(log, top_ks[name]):
            return None
        return _state_fact(log, settings, features, top_ks[name])

    ranked = rank_policies(
        {target.name: target.kind for target in targets},
        baseline,
        settings.level,
        len(log),
        compare_by_name,
        lambda compared: measure(evidence, compared, tests),
        state_fact,
    )
    notes = [*_describe_estimates(evidence), *_describe_tails(log)]
    for name, count in repeated.items():
        notes += repeated_note(name, count)
    is_random = (log.propensity > 0) & (log.propensity < 1)
    notes += describe_assumptions(
        settings.missing,
        log.silent,
        without_chance=not is_random.any() and not np.isnan(log.propensity).all(),
        pool_unknown=bool(np.isnan(log.propensity[~log.exposed]).any()),
    )
    return _Part(ranked, _describe_method(evidence, log), settings, notes)


def _was_shown(log: Log, top_k: TopK) -> bool:
    """Return whether the log shows every item of a policy."""
    return bool(log.exposed[top_k.rows].all()) and not top_k.outside.any()


def _state_fact(log: Log, settings: Settings, features: Floats, top_k: TopK) -> Compared:
    """Return the observed mean reward of items that were all shown, without propensities."""
    certain = replace(cluster_facts(log), propensity=np.where(log.exposed, 1.0, log.propensity))
    evidence = gather_evidence(certain, replace(settings, position=False), features)
    return compare(evidence, top_k, None)


def _describe_tails(log: Log) -> list[str]:
    """Return a remark if a few large rewards dominate the variance."""
    reward = log.reward[log.answered]
    if len(np.unique(reward)) <= 2:
        return []
    carried = effective_count(reward - reward.mean()) / len(reward)
    if carried >= _HEAVY:
        return []
    return [
        f"Rewards have heavy tails: {share(carried)} of them carry the variance, so intervals may be too narrow. Give "
        "rewards a smaller range, such as their rank or logarithm."
    ]


def _describe_estimates(evidence: Evidence) -> list[str]:
    """Return a sentence about each model that was fitted on the log for all policies."""
    notes = credited_note(evidence.log, evidence.credited)
    if evidence.examination is not None:
        eta = evidence.examination.eta
        notes.append(
            f"Position k is examined with a relative frequency of k^-{eta.value:.2f} (interval {eta.low:.2f} to "
            f"{eta.high:.2f}), estimated from items at random positions; rewards are weighted by it."
        )
    return notes


def _describe_method(evidence: Evidence, log: Log) -> str:
    """Describe the method of the intervals, and the unit that forms a cluster."""
    sample = evidence.sample(np.ones((len(log), 1)))
    return sample.method.replace("clusters", f"clusters ({log.clustered})", 1)


def _evaluate_labels(
    targets: Sequence[Target],
    log: Log,
    settings: Settings,
    baseline: str,
    labels: pl.DataFrame,
    kind: str,
) -> _Part:
    """Evaluate policies on labels, and rank the policies by a metric of this ``kind``."""
    labelled = measure_labels(targets, log, labels, kind, level=settings.level)
    sample, columns = labelled.sample, labelled.columns
    enough = sample.clusters >= 2

    def subtract(first: str, second: str) -> Estimate:
        """Estimate the mean metric of one policy minus the mean metric of another."""
        own, other = columns[first], columns[second]
        return sample.estimate(lambda totals: mean(totals[..., own]) - mean(totals[..., other]))

    gaps = {
        name: subtract(name, baseline)
        for name in columns
        if name != baseline and baseline in columns
    }
    family = list(gaps) if enough else []
    comparisons = adjust_all([gaps[name] for name in family], settings.level)
    adjusted = dict(zip(family, comparisons, strict=True))
    rows = []
    for target in targets:
        name, column = target.name, columns[target.name]
        value = sample.estimate(lambda totals, column=column: mean(totals[..., column]))  # type: ignore[misc]
        gap, p = adjusted.get(name, (None, np.nan))
        verdict = (
            "withheld"
            if not enough
            else "baseline"
            if name == baseline
            else name_verdict(gap, p, settings.level)
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
                labelled.metrics[name],
            )
        )
    ordered = sort_rows(rows)
    needed = None
    if enough and len(ordered) > 1:
        best = ordered[0].policy, ordered[1].policy
        count = recalls_for(subtract(*best), labelled.judged, settings.level)
        needed = None if count is None else (*best, count)
    ranked = Ranked(
        ordered,
        needed,
        lambda first, second: (subtract(first, second), () if enough else (ONE_CLUSTER,)),
    )
    return _Part(ranked, sample.method, settings.by(labelled.metric), labelled.notes)
