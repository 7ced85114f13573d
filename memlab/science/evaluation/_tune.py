"""``memlab.tune``: search the parameters of a policy, and estimate the gain.

A ranking is piecewise constant in its parameters, so gradients are zero or undefined. Differential
evolution (Storn and Price 1997, scipy) needs no gradients. The value of the best parameters on the
searched data is too high, because the search chose them on that data. The value to report is
*cross-fitted*: clusters are split into folds, and each fold is scored with parameters searched on
the other folds.

The same log, seed and budget give the same search on any processor. Exponentials and sums differ
between processors in their last digits. Therefore values are compared by their first twelve digits,
and the search ends when its budget is spent, not when values seem equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from memlab.errors import InputError, RenamedWarning, UnknownName, require_extra
from memlab.kernel.base.arguments import Seed, Within, checked, warn_caller
from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.language import Param, Policy
from memlab.kernel.slates import Slates
from memlab.science.batch import Workers
from memlab.science.cells import Inputs, Outcome, hash_inputs, package_versions, run_cells
from memlab.science.evaluation._evidence import ARM, Evidence, gather_evidence
from memlab.science.evaluation._evidence import value_statistic as value_of
from memlab.science.evaluation._intervals import Estimate, Sample, Statistic, mean
from memlab.science.evaluation._item_tests import Tests
from memlab.science.evaluation._labels import (
    METRICS,
    Gold,
    LabelsRecalls,
    frame_of_labels,
    read_gold,
    split_metric,
)
from memlab.science.evaluation._log import Horizon, Log, Missing
from memlab.science.evaluation._measure import compare, measure
from memlab.science.evaluation._prepared import Estimator, prepare
from memlab.science.evaluation._reward_model import select_features
from memlab.science.evaluation._targets import (
    PolicySpec,
    Ranker,
    Refused,
    Target,
    find_targets,
    rescore,
    select_pool,
)
from memlab.science.evaluation._tests import Gate, format_signed, untested_sentence

_DIGITS = 12
"""The number of digits by which values are compared.

Later digits depend on the processor.
"""

_GOALS = ("value", "order")
"""The metrics of feedback."""

Space = Mapping[str, tuple[float, float]]
"""The lower and upper bound of each searched parameter, by name."""


@dataclass(frozen=True, repr=False)
class Tuning(Report):
    """The result of a search over the parameters of a policy, made by ``memlab.tune``.

    Parameters
    ----------
    params, policy
        The best parameters of the search over all clusters, and the policy with these parameters.
    metric
        The name of the metric that was maximised.
    value
        The value of ``params`` on the searched data, which is too high as an estimate.
    default
        The value of the default parameters.
    held_out
        The cross-fitted value: each fold is scored with parameters that were not fitted on the
        fold.
    gain
        The difference between ``held_out`` and the value of the defaults, with its interval.
    by_fold
        A row for each fold, with ``fold``, ``clusters`` and a column for each parameter. ``value``
        and ``default`` are the values of the searched and of the default parameters on the fold.
    trials
        A row for each point that was tried, with ``search`` (the fold left out, or -1), a column
        for each parameter, and its ``value`` on the searched data.
    budget, folds, seed
        The settings of the search.
    closed, untested
        With feedback only: the gates that withhold the gain, and the gates that the log cannot
        test.

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
    >>> policy = "(fn [old_score new_score] (+ new_score (* (param :w 0.5 :low 0 :high 1) old_score)))"
    >>> tuned = memlab.tune(log, policy, metric="value", missing="zero", budget=20, folds=2)
    >>> [gate.name for gate in tuned.closed], tuned.pays
    (['answered probes', 'influence'], False)
    """

    params: Mapping[str, float]
    policy: Policy
    metric: str
    value: float
    default: float
    held_out: Estimate
    gain: Estimate
    by_fold: pl.DataFrame = field(repr=False)
    trials: pl.DataFrame = field(repr=False)
    budget: int = 0
    folds: int = 0
    seed: int = 0
    closed: tuple[Gate, ...] = ()
    untested: tuple[Gate, ...] = ()

    @property
    def frame(self) -> pl.DataFrame:
        """A row for each parameter: default, bounds, best value, and range over the folds.

        The columns are ``param``, ``default``, ``low``, ``high``, ``value``, ``least`` and
        ``most``.
        """
        declared = [self.policy.params[name] for name in self.params]
        return pl.DataFrame(
            {
                "param": list(self.params),
                "default": [param.default for param in declared],
                "low": [param.low for param in declared],
                "high": [param.high for param in declared],
                "value": list(self.params.values()),
                "least": [float(self.by_fold[name].min()) for name in self.params],  # type: ignore[arg-type]
                "most": [float(self.by_fold[name].max()) for name in self.params],  # type: ignore[arg-type]
            }
        )

    @property
    def pays(self) -> bool:
        """Whether all gates are open and the gain is significantly above zero.

        A gain that rounding alone may produce does not count.
        """
        return bool(
            not self.closed and np.isfinite(self.gain.low) and self.gain.low > self._rounding
        )

    @property
    def _rounding(self) -> float:
        """The largest gain over the defaults that may be due to rounding alone."""
        return float(10.0**-_DIGITS * max(1.0, abs(self.held_out.value)))

    @property
    def verdict(self) -> str:
        """The finding in one sentence: whether tuning helped, and the untested gates."""
        return (
            self._finding
            if self.closed
            else f"{self._finding} {untested_sentence(self.untested)}".rstrip()
        )

    @property
    def _finding(self) -> str:
        """State in one sentence whether tuned parameters beat the defaults on held-out data."""
        gain = self.gain
        if self.closed:
            return f"No verdict on the fit: the gate {self.closed[0].title} is closed. {self.closed[0]}"
        if not np.isfinite(gain.low):
            return (
                "No verdict on the fit: the log has too few clusters for an interval. Log recalls of more clusters "
                "(projects, users or days)."
            )
        span = f"{format_signed(gain.value, 4)} [{format_signed(gain.low, 4)}, {format_signed(gain.high, 4)}]"
        if self.pays:
            return f"The fit improves the policy on held-out data: {span}."
        if gain.high < -self._rounding:
            return f"The fit does harm on held-out data: {span}."
        if max(-gain.low, gain.high) <= self._rounding:
            return "The fit changes nothing: on held-out data, the fitted and the default values score the same."
        return f"The fit and the defaults are indistinguishable on held-out data: {span}."

    def _display(self) -> object:
        fitted = ", ".join(f":{name} {value:.4g}" for name, value in self.params.items())
        held_out = self.held_out
        lines = [
            f"{self.policy.name} [{self.policy.hash[:12]}] {fitted}",
            f"{self.metric}: {held_out.value:.4f} [{held_out.low:.4f}, {held_out.high:.4f}] held out in "
            f"{self.folds} folds; {self.value:.4f} on the searched data, {self.default:.4f} with the defaults",
            self.verdict,
        ]
        return lines, Table("", *format_rows(self.frame.iter_rows(named=True), _COLUMNS))


# "low" and "high" are declared bounds. "least" and "most" are the range over folds, which shows how stable the fit is.
_COLUMNS: Columns = (
    ("param", "{param}"),
    *((name, f"{{{name}:.4g}}") for name in ("default", "low", "high", "value", "least", "most")),
)


@checked
def tune(
    slates: Slates,
    policy: PolicySpec,
    *,
    metric: str | None = None,
    bounds: Space | None = None,
    labels: pl.DataFrame | LabelsRecalls | None = None,
    horizon: Horizon = None,
    missing: Missing | None = None,
    estimator: Estimator = "snips",
    cluster: str | None = None,
    reward_range: tuple[float, float] | None = None,
    level: Annotated[float, Within(0, 1)] = 0.95,
    goal: Literal["value", "order"] | None = None,
    folds: Annotated[int, Within(2)] = 5,
    budget: Annotated[int, Within(20, 1_000_000)] = 200,
    seed: Seed = 0,
    progress: bool = False,
    executor: Workers = None,
    folder: str | Path | None = None,
) -> Tuning:
    """Search the parameters of a recall-score policy on a log, and estimate the gain.

    Parameters
    ----------
    slates
        The tables of a log.
    policy
        The policy to search, as for ``memlab.evaluate``. Its recall-score declares parameters with
        ``(param ...)``.
    metric
        The metric to maximise, which has no default. With labels: a retrieval metric and its number
        of ranks, such as "recall@10" or "ndcg@5". The ranks are ranks in the pool, also beyond the
        limit of a recall. With feedback: "value" is the value with the minimum reward for
        unsupported items, so that the search stays within the support of the log. "order" is how
        often the better-rewarded of two shown memories ranks first. It needs no exploration, but it
        judges the order of shown memories only.
    bounds
        The lower and upper bound of each parameter to search, within its declared bounds. By
        default all parameters with finite bounds are searched.
    labels
        Labels as for ``memlab.evaluate``.
    horizon
        The time that each recall has to get feedback, such as "7d".
    missing
        What missing feedback counts as: "zero", "censor", "inverse" or "bounds".
    estimator
        "snips" (self-normalised) or "ht" (Horvitz-Thompson).
    cluster
        The unit whose recalls depend on each other, as for ``memlab.evaluate``.
    reward_range
        The minimum and maximum reward. Default: the range of the log.
    level
        The confidence level, between 0 and 1.
    goal
        The former name of ``metric`` with feedback, which works throughout 0.2.
    folds
        The number of folds, at least 2.
    budget
        The number of points that each of the ``folds + 1`` searches tries, 20 to 1,000,000.
    seed
        The seed of the search and of the folds.
    progress
        Whether to show a progress bar.
    executor
        A number of processes, or an object with ``submit``, such as a ``dask.distributed.Client``.
        Each search is a task, which contains the log. Default: this thread.
    folder
        A folder that keeps each of the ``folds + 1`` searches, such as ``runs/tuned``. A call that was ended
        continues, and a repeated one searches nothing.

    Returns
    -------
    Tuning
        The best parameters, their cross-fitted value, and the gain over the defaults.

    Raises
    ------
    InputError
        If no metric is named, the policy has no parameters to search, or the log cannot re-score
        the policy.
    UnknownName
        If there is no such metric, or ``bounds`` names an unknown parameter.
    WorkerLost
        If the executor does not return the result of a search.

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
    >>> policy = "(fn [old_score new_score] (+ new_score (* (param :w 0.5 :low 0 :high 1) old_score)))"
    >>> tuned = memlab.tune(log, policy, missing="zero", metric="order", budget=20, folds=2)
    >>> tuned.metric, list(tuned.params), tuned.trials.height
    ('pairs in order', ['w'], 51)
    """
    if goal is not None:
        warn_caller("goal= of memlab.tune is metric= from now on.", RenamedWarning)
    metric = _check_metric(metric or goal, labelled=labels is not None)
    labels = frame_of_labels(labels, slates)
    prepared = prepare(
        slates,
        policy,
        horizon=horizon,
        missing=missing,
        estimator=estimator,
        level=level,
        reward_range=reward_range,
        labels=labels,
        cluster=cluster,
    )
    (ranker,), log, schema = prepared.rankers, prepared.log, prepared.schema
    space = _check_space(ranker, bounds or {})
    _, refused = find_targets([ranker], log, schema, prepared.fingerprints, None)
    if refused:
        raise InputError(
            f"The parameters of {ranker.name} cannot be searched on this log. {refused[0].reason}"
        )
    if log.clusters < 2:
        raise InputError(
            "The whole log is one cluster, so no part can be held out. Name its clusters (project, user ...)."
        )
    features = select_features(log, prepared.features, schema)
    # Labels and the order of shown items need no propensity weights, so they have no gates.
    evidence = gather_evidence(log, prepared.settings, features) if metric == "value" else None
    if evidence is not None:
        objective_metric = _feedback_metric(evidence)
    elif labels is None:
        objective_metric = _order_metric(log)
    else:
        kind, cut = split_metric(metric)
        # The ranks are those that the caller named: a setting may have made the list of one recall shorter.
        log = replace(log, limit=np.full(len(log), cut))
        objective_metric = _label_metric(log, labels, kind)
    objective = _Objective(ranker, log, select_pool([ranker], log, schema), space, objective_metric)
    if not np.isfinite(objective.value(objective.default, np.ones(log.clusters, dtype=np.bool_))):
        raise InputError(
            "The policy has no value with its default parameters: the log has no rewards with known propensities for "
            "its items. Call memlab.evaluate for the reasons."
        )
    stored = None
    if folder is not None:
        # Features are not part of the digest of a log. Polars is part of the versions, so its hashes are fixed.
        inputs = {
            "measure": "tune",
            "data": [log.digest(), hash_inputs(objective.pool.hash_rows().to_list())],
            "labels": labels is not None and hash_inputs(labels.write_ndjson()),
            "policy": objective.policy.hash,
            "settings": str([metric, horizon, missing, estimator, reward_range]),
            "space": space,
            "search": [min(folds, log.clusters), budget, seed],
            "versions": package_versions(),
        }
        stored = Path(folder).expanduser(), inputs
    tuning = _search(
        objective, min(folds, log.clusters), budget, seed, level, progress, executor, stored
    )
    if evidence is None:
        return tuning
    tests = Tests(log, prepared.settings, features)
    best, default = (
        evidence.top_k(target)
        for point in (tuple(tuning.params.values()), objective.default)
        if isinstance(target := objective.target(point), Target)
    )
    compared = compare(evidence, best, None if (best.rows == default.rows).all() else default)
    gates = measure(evidence, compared, tests).gates
    return replace(
        tuning,
        closed=tuple(gate for gate in gates if gate.closed),
        untested=tuple(gate for gate in gates if gate.untested),
    )


def _check_metric(metric: str | None, *, labelled: bool) -> str:
    """Return the metric to maximise; raise InputError that lists the metrics if it is unknown.

    With labels (``labelled``), it is a ranking metric, and otherwise one of feedback. There is no
    default, because a fit is only as good as its metric.
    """
    if metric is None or labelled == (metric in _GOALS):
        kinds = " or ".join(f'"{name}"' for name in _GOALS)
        raise InputError(
            f"memlab.tune maximises the metric that you name. With labels, name one of {', '.join(METRICS)} and its "
            f'number of ranks, such as metric="recall@10"; with feedback, metric={kinds}'
            + (f", not {metric!r}." if metric else ".")
        )
    if labelled:
        split_metric(metric)
    return metric


def _check_space(ranker: Ranker, bounds: Space) -> Space:
    """Check the search bounds of the parameters, and return them.

    A parameter that is not in ``bounds`` is searched within its declared bounds, if they are
    finite.
    """
    # Bounds are checked against the declaration here, because a search outside it would fail much later.
    declared: Mapping[str, Param] = {} if ranker.policy is None else ranker.policy.params
    if not declared:
        raise InputError(
            f"{ranker.name} has no (param :name default :low a :high b) in its recall-score, so it has nothing to tune."
        )
    chosen: dict[str, tuple[float, float]] = {}
    for name, pair in bounds.items():
        if name not in declared:
            raise UnknownName("parameter", name, declared)
        try:
            low, high = (float(bound) for bound in pair)
        except (TypeError, ValueError):
            raise InputError(
                f"The bounds of {name} must be a pair of numbers, not {pair!r}."
            ) from None
        if not declared[name].low <= low < high <= declared[name].high:
            raise InputError(
                f"The bounds of {name} must be within {declared[name].low:g} and {declared[name].high:g}, the lower one "
                f"first; not {low:g} and {high:g}."
            )
        chosen[name] = (low, high)
    for name, param in declared.items():
        if name not in chosen and np.isfinite([param.low, param.high]).all():
            chosen[name] = (param.low, param.high)
    if not chosen:
        first = next(iter(declared))
        raise InputError(
            f"No parameter of {ranker.name} has finite bounds: pass bounds={{{first!r}: (low, high)}}."
        )
    return chosen


class _Objective:
    """The objective of a search, which maps a point to totals by cluster.

    A point is a value for each parameter. Its totals are computed once, because folds share points
    and cross-fitting needs them again.
    """

    def __init__(
        self, ranker: Ranker, log: Log, pool: pl.DataFrame, space: Space, metric: Metric
    ) -> None:
        assert ranker.policy is not None
        self.ranker, self.policy, self.log, self.pool, self.space = (
            ranker,
            ranker.policy,
            log,
            pool,
            space,
        )
        self.metric = metric
        self.cache: dict[tuple[float, ...], Floats] = {}
        self.default = tuple(self.policy.params[name].value for name in space)

    def policy_at(self, point: tuple[float, ...]) -> Policy:
        """Return the policy with the parameter values at a point."""
        return self.policy.with_params(dict(zip(self.space, point, strict=True)))

    def target(self, point: tuple[float, ...]) -> Target | Refused:
        """Return the items that the policy shows with the parameters at a point."""
        return rescore(replace(self.ranker, policy=self.policy_at(point)), self.log, self.pool)

    def sums(self, point: tuple[float, ...]) -> Floats:
        """Return the metric's totals at a point, f64[clusters, width]; NaN for a refused policy."""
        if point not in self.cache:
            target = self.target(point)
            # A point without finite scores shows no item, so it counts as the worst value.
            self.cache[point] = (
                self.log.sum_by_cluster(self.metric.totals(target))
                if isinstance(target, Target)
                else np.full((self.log.clusters, self.metric.width), np.nan)
            )
        return self.cache[point]

    def value(self, point: tuple[float, ...], clusters: Flags) -> float:
        """Return the metric's value at a point over some clusters; -inf if undefined.

        The value is rounded to the digits that are the same on all processors.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(self.metric.statistic(self.sums(point)[clusters].sum(axis=0)))
        return float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else -np.inf


@dataclass(frozen=True)
class Metric:
    """A quantity to maximise, which is a statistic of totals by recall.

    ``totals`` returns f64[recalls, width] for the items that a policy would show. It is a partial
    application of a function of this module, so that workers of an executor can unpickle it.
    """

    name: str
    width: int
    totals: Callable[[Target], Floats]
    statistic: Statistic


def _feedback_metric(evidence: Evidence) -> Metric:
    """Return the tuning metric: mean reward with the minimum for unsupported items."""
    minimum = evidence.reward_range[0]
    return Metric(
        "value, at worst",
        1 + ARM,
        partial(_value_totals, evidence),
        value_of(evidence.estimator, minimum),
    )


def _value_totals(evidence: Evidence, target: Target) -> Floats:
    """Return each recall's reward totals for the items of a policy."""
    return evidence.totals(evidence.top_k(target))[:, : 1 + ARM]


def _label_metric(log: Log, labels: pl.DataFrame, kind: str) -> Metric:
    """Return the tuning metric for labels: ``kind``, such as recall, at the log's limits."""
    gold = replace(read_gold(labels, log), name=kind)
    return Metric(gold.metric, 2, partial(_label_totals, gold), mean)


def _label_totals(gold: Gold, target: Target) -> Floats:
    """Return each recall's number of labels and ranking metric for a policy."""
    return np.column_stack(gold.totals(target))


def _order_metric(log: Log) -> Metric:
    """Return the tuning metric: the share of pairs of shown memories ranked in the order of their rewards."""
    better, worse = _unequal_pairs(log)
    if not len(better):
        raise InputError(
            "No recall of the log showed two memories with different rewards, so there is no order to learn. Use "
            'metric="value".'
        )
    return Metric("pairs in order", 2, partial(_order_totals, log, better, worse), mean)


def _order_totals(log: Log, better: Ints, worse: Ints, target: Target) -> Floats:
    """Return each recall's number of pairs, and of correctly ordered pairs; a tie counts as half."""
    assert target.scores is not None
    recall = log.recall[better]
    scores = np.where(np.isnan(target.scores), -np.inf, target.scores)
    won = np.where(
        scores[better] > scores[worse], 1.0, np.where(scores[better] == scores[worse], 0.5, 0.0)
    )
    counts = np.bincount(recall, minlength=len(log)).astype(np.float64)
    return np.column_stack([counts, np.bincount(recall, weights=won, minlength=len(log))])


def _unequal_pairs(log: Log) -> tuple[Ints, Ints]:
    """Return pairs of a better and a worse item with feedback in the same recall.

    Returns the row of the better item and the row of the worse item of each pair.
    """
    rows = np.flatnonzero(log.answered)
    frame = pl.DataFrame({"recall": log.recall[rows], "row": rows, "reward": log.reward[rows]})
    pairs = frame.join(frame, on="recall", suffix="_less").filter(
        pl.col("reward") > pl.col("reward_less")
    )
    pairs = pairs.sort("row", "row_less")
    return pairs["row"].to_numpy(), pairs["row_less"].to_numpy()


def _search(
    objective: _Objective,
    folds: int,
    budget: int,
    seed: int,
    level: float,
    progress: bool,
    executor: Workers,
    stored: tuple[Path, dict[str, Any]] | None,
) -> Tuning:
    """Return the parameters tuned on all clusters, and the held-out gain of tuning without each fold.

    Each search has ``budget`` trials, and is stored in the folder of ``stored``.
    """
    clusters, names = objective.log.clusters, list(objective.space)
    fold = np.random.default_rng(seed).permutation(clusters) % folds
    folder, inputs = stored or (None, {})
    with bar(progress, budget * (folds + 1), unit="trial", desc="tuning") as step:
        searches = [
            (Inputs({**inputs, "left out": number}), number) for number in [*range(folds), -1]
        ]
        work = partial(_evolve, objective, fold, budget, seed)
        cells = run_cells(folder, work, searches, executor, step, budget)
    trials = [cell.rows for cell in cells]
    best_points = [rows.select(names).row(int(np.argmax(rows["value"]))) for rows in trials]
    *by_fold, best = best_points
    default = objective.default
    rows = [
        {
            "fold": number,
            "clusters": int((fold == number).sum()),
            **dict(zip(names, point, strict=True)),
            "value": objective.value(point, fold == number),
            "default": objective.value(default, fold == number),
        }
        for number, point in enumerate(by_fold)
    ]
    width, statistic = objective.metric.width, objective.metric.statistic
    held_out = np.empty((clusters, 2 * width))
    held_out[:, width:] = objective.sums(default)
    for number, point in enumerate(by_fold):
        held_out[fold == number, :width] = objective.sums(point)[fold == number]
    sample = Sample(held_out, level=level)
    everywhere = np.ones(clusters, dtype=np.bool_)
    return Tuning(
        params=dict(zip(names, best, strict=True)),
        policy=objective.policy_at(best),
        metric=objective.metric.name,
        value=objective.value(best, everywhere),
        default=objective.value(default, everywhere),
        held_out=sample.estimate(lambda totals: statistic(totals[..., :width])),
        gain=sample.estimate(
            lambda totals: statistic(totals[..., :width]) - statistic(totals[..., width:])
        ),
        by_fold=pl.DataFrame(rows),
        trials=pl.concat(trials),
        budget=budget,
        folds=folds,
        seed=seed,
    )


def _evolve(
    objective: _Objective,
    fold: Ints,
    budget: int,
    seed: int,
    left_out: int,
    step: Step,
) -> Outcome:
    """Search parameters on all clusters outside the fold ``left_out`` (-1: on all) by differential evolution.

    The rows are all trials.
    """
    clusters = fold != left_out
    points: list[tuple[float, ...]] = [objective.default]
    values = [objective.value(objective.default, clusters)]

    def loss(x: Floats) -> float:
        """Record a point and the metric there, and return the negative metric as loss."""
        points.append(tuple(x.tolist()))
        values.append(objective.value(points[-1], clusters))
        step(1)
        return -values[-1] if np.isfinite(values[-1]) else 1e300

    search_point(
        loss,
        list(objective.space.values()),
        objective.default,
        budget,
        np.random.default_rng((seed, left_out + 1)),
    )
    columns = dict(zip(objective.space, np.array(points).T, strict=True))
    rows = pl.DataFrame({"search": [left_out] * len(points), **columns, "value": values})
    return Outcome({}, rows)


def search_point(
    loss: Callable[[Floats], float],
    bounds: Sequence[tuple[float, float]],
    start: Sequence[float],
    budget: int,
    rng: np.random.Generator,
) -> None:
    """Minimise a loss within bounds by differential evolution, with about ``budget`` points."""
    with require_extra("science", "memlab.tune"):
        from scipy.optimize import differential_evolution
    # The usual size is five points per parameter. It is kept within 8 to 40 points, and allows at least four
    # generations.
    size = max(8, min(40, 5 * len(bounds), budget // 4))
    differential_evolution(
        loss,
        bounds,
        x0=np.clip(start, *np.array(bounds).T),
        popsize=-(-size // len(bounds)),
        maxiter=max(1, budget // (-(-size // len(bounds)) * len(bounds)) - 1),
        rng=rng,
        polish=False,
        tol=0.0,
        atol=-1.0,  # Never converge early, because that would depend on the processor.
    )
