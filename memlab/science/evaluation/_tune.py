"""Free parameters fitted on a log without gradients, and what the fitting is worth where it has not looked.

A ranking is piecewise constant in its parameters: gradients are zero or undefined. Differential evolution (Storn and
Price 1997, scipy) needs none. The value that it reaches on the data it searched is too good by the search; the value to
quote is *cross-fitted*: clusters fall into folds, each fold is scored with the parameters found on the others.

The same log, seed and budget give the same search on any processor: exponentials and sums differ there in their last
digits, so values are compared by their first twelve, and the search ends with its budget, not when values seem equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Seed, Within, checked
from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.language import Param, Policy
from memlab.kernel.slates import Slates
from memlab.science.evaluation._intervals import Estimate, Floats, Sample, Statistic, mean
from memlab.science.evaluation._labels import read_gold
from memlab.science.evaluation._log import Horizon, Log, Missing
from memlab.science.evaluation._measure import (
    ARM,
    Evidence,
    Tests,
    compare,
    gather_evidence,
    measure,
    select_features,
)
from memlab.science.evaluation._measure import value_statistic as value_of
from memlab.science.evaluation._prepared import Estimator, prepare
from memlab.science.evaluation._targets import (
    PolicySpec,
    Ranker,
    Refused,
    Target,
    aim,
    pool_of,
    rescored,
)
from memlab.science.evaluation._tests import Gate, untested_sentence

__all__ = ["Tuning", "tune"]

_DIGITS = 12
"""Digits of a value that count: what comes after them is the processor's."""

Space = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, repr=False)
class Tuning(Report):
    """What a search over parameters found.

    ``params`` and ``policy`` are those of the search over all clusters; ``value`` is theirs on the data that was
    searched, and flatters. ``held_out`` is the value of the procedure on folds that it did not see, ``gain`` its
    difference to the defaults, both with intervals over clusters. ``trials`` holds every point that was tried.
    """

    params: Mapping[str, float]
    policy: Policy
    metric: str
    value: float
    default: float
    held_out: Estimate
    gain: Estimate
    by_fold: pl.DataFrame = field(repr=False)
    """fold, clusters, one column a parameter, value (on the fold), default (on the fold)."""
    trials: pl.DataFrame = field(repr=False)
    """search (a fold left out, or -1 for none), one column a parameter, value (where it searched)."""
    budget: int = 0
    folds: int = 0
    seed: int = 0
    closed: tuple[Gate, ...] = ()
    """The gates that are closed, on feedback: the figures would mislead."""
    untested: tuple[Gate, ...] = ()
    """The gates that the log cannot test, on feedback."""

    @property
    def frame(self) -> pl.DataFrame:
        """A row for each parameter: default, low, high, value, and least and most over the folds."""
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
        """Whether every gate is open and the whole interval of ``gain`` lies above zero, by more than rounding."""
        return bool(
            not self.closed and np.isfinite(self.gain.low) and self.gain.low > self._nothing
        )

    @property
    def _nothing(self) -> float:
        return float(10.0**-_DIGITS * max(1.0, abs(self.held_out.value)))

    @property
    def verdict(self) -> str:
        """Whether fitting paid, in a sentence, and the gates that are untested."""
        return (
            self._finding
            if self.closed
            else f"{self._finding} {untested_sentence(self.untested)}".rstrip()
        )

    @property
    def _finding(self) -> str:
        gain = self.gain
        if self.closed:
            return f"The log does not tell whether fitting paid. {self.closed[0]}"
        if not np.isfinite(gain.low):
            return "There are too few clusters to say whether fitting paid."
        if self.pays:
            return f"Fitting pays on what it has not seen: {gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]."
        if gain.high < -self._nothing:
            return f"Fitting does harm on what it has not seen: {gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]."
        if max(-gain.low, gain.high) <= self._nothing:
            return "Fitting changes nothing: on what it has not seen, other numbers earn what these earn."
        return f"Fitting is not separated from the defaults: {gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]."

    def _display(self) -> object:
        found = ", ".join(f":{name} {value:.4g}" for name, value in self.params.items())
        held_out = self.held_out
        lines = [
            f"{self.policy.name} [{self.policy.hash[:12]}] {found}",
            f"{self.metric}: {held_out.value:.4f} [{held_out.low:.4f}, {held_out.high:.4f}] held out in "
            f"{self.folds} folds; {self.value:.4f} where it searched, {self.default:.4f} by default",
            self.verdict,
        ]
        return lines, Table("", *format_rows(self.frame.iter_rows(named=True), _COLUMNS))


_COLUMNS: Columns = (
    ("param", "{param}"),
    *((name, f"{{{name}:.4g}}") for name in ("default", "low", "high", "value", "least", "most")),
)


@checked
def tune(
    slates: Slates,
    policy: PolicySpec,
    *,
    bounds: Space | None = None,
    labels: pl.DataFrame | None = None,
    horizon: Horizon = None,
    missing: Missing | None = None,
    estimator: Estimator = "snips",
    cluster: str | None = None,
    reward_range: tuple[float, float] | None = None,
    level: Annotated[float, Within(0, 1)] = 0.95,
    goal: Literal["value", "order"] = "value",
    folds: Annotated[int, Within(2)] = 5,
    budget: Annotated[int, Within(20, 1_000_000)] = 200,
    seed: Seed = 0,
    progress: bool = False,
) -> Tuning:
    """Search the ``(param ...)`` of a recall-score for the best value on a log, and say what that is worth elsewhere.

    ``slates`` and ``policy`` are as for ``evaluate``; the parameters searched are those of the recall-score whose
    bounds are finite, or that ``bounds`` names (within what the policy declares). With ``labels`` the metric is recall
    at the size of the smallest head; on feedback it is the value where whatever the log could not have shown earns the
    least of ``reward_range``, so that the search does not walk to where nothing is known. With ``goal="order"`` it is
    how often, of two memories that one recall showed and of which one earned more, the policy puts that one first. That
    needs nothing that was left to chance, no drift moves it, and it speaks for what was shown alone. Each of the
    ``folds + 1`` searches tries about ``budget`` points.

    Raises ``InputError`` for a policy without parameters, or that the log cannot score again; ``UnknownName``.

    >>> memlab.tune(lab.slates(), "my.hy", labels=labels).held_out      # doctest: +SKIP
    """
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
    space = _space(ranker, bounds or {})
    _, refused = aim([ranker], log, schema, prepared.fingerprints, None)
    if refused:
        raise InputError(
            f"The parameters of {ranker.name} cannot be searched on this log. {refused[0].reason}"
        )
    if log.clusters < 2:
        raise InputError(
            "The log is one cluster: there is nothing to hold out. Name its clusters (project, user ...)."
        )
    features = select_features(log, prepared.features, schema)
    by_value = labels is None and goal == "value"
    evidence = gather_evidence(log, prepared.settings, features) if by_value else None
    if evidence is not None:
        metric = _of_feedback(evidence)
    else:
        metric = _of_order(log) if labels is None else _of_labels(log, labels)
    objective = _Objective(ranker, log, pool_of([ranker], log, schema), space, metric)
    if not np.isfinite(objective.value(objective.default, np.ones(log.clusters, dtype=np.bool_))):
        raise InputError(
            "The log does not say what the policy is worth as it stands: there are no rewards with known propensities "
            "for what it would show. memlab.evaluate tells why."
        )
    found = _search(objective, min(folds, log.clusters), budget, seed, level, progress)
    if evidence is None:
        return found
    tests = Tests(log, prepared.settings, features)
    best, default = (
        evidence.top_k(target)
        for point in (tuple(found.params.values()), objective.default)
        if isinstance(target := objective.target(point), Target)
    )
    compared = compare(evidence, best, None if (best.rows == default.rows).all() else default)
    gates = measure(evidence, compared, tests).gates
    return replace(
        found,
        closed=tuple(gate for gate in gates if gate.closed),
        untested=tuple(gate for gate in gates if gate.untested),
    )


def _space(ranker: Ranker, bounds: Space) -> Space:
    declared: Mapping[str, Param] = {} if ranker.policy is None else ranker.policy.params
    if not declared:
        raise InputError(
            f"{ranker.name} has no (param :name default :low a :high b) in its recall-score."
        )
    chosen: dict[str, tuple[float, float]] = {}
    for name, given in bounds.items():
        if name not in declared:
            raise UnknownName("parameter", name, declared)
        try:
            low, high = (float(bound) for bound in given)
        except (TypeError, ValueError):
            raise InputError(
                f"The bounds of {name} are a pair of numbers, not {given!r}."
            ) from None
        if not declared[name].low <= low < high <= declared[name].high:
            raise InputError(
                f"The bounds of {name} lie within {declared[name].low:g} and {declared[name].high:g}, the lower one "
                f"first; {low:g} and {high:g} do not."
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
    """From a point to the totals of each cluster, f64[clusters, columns]; a point is computed once."""

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
        self.known: dict[tuple[float, ...], Floats] = {}
        self.default = tuple(self.policy.params[name].value for name in space)

    def at(self, point: tuple[float, ...]) -> Policy:
        return self.policy.with_params(dict(zip(self.space, point, strict=True)))

    def target(self, point: tuple[float, ...]) -> Target | Refused:
        return rescored(replace(self.ranker, policy=self.at(point)), self.log, self.pool)

    def sums(self, point: tuple[float, ...]) -> Floats:
        if point not in self.known:
            found = self.target(point)
            # Where no score is a number nothing is shown, and nothing can be worse.
            sums = np.full((self.log.clusters, self.metric.width), np.nan)
            if isinstance(found, Target):
                sums[:] = 0.0
                np.add.at(sums, self.log.cluster, self.metric.totals(found))
            self.known[point] = sums
        return self.known[point]

    def value(self, point: tuple[float, ...], clusters: NDArray[np.bool_]) -> float:
        """Over these clusters, to the digits that count; the least possible where it is undefined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = float(self.metric.statistic(self.sums(point)[clusters].sum(axis=0)))
        return float(f"{found:.{_DIGITS}g}") if np.isfinite(found) else -np.inf


@dataclass(frozen=True)
class Metric:
    """What is made as great as can be: a statistic of totals, f64[recalls, width]."""

    name: str
    width: int
    totals: Callable[[Target], Floats]
    statistic: Statistic


def _of_feedback(evidence: Evidence) -> Metric:
    least = evidence.reward_range[0]
    return Metric(
        "value, at worst",
        1 + ARM,
        lambda target: evidence.totals(evidence.top_k(target))[:, : 1 + ARM],
        value_of(evidence.estimator, least),
    )


def _of_labels(log: Log, labels: pl.DataFrame | None) -> Metric:
    assert labels is not None
    gold = read_gold(labels, log)
    return Metric(gold.metric, 2, lambda target: np.column_stack(gold.totals(target)), mean)


def _of_order(log: Log) -> Metric:
    better, worse = _unequal_pairs(log)
    if not len(better):
        raise InputError(
            "No recall of the log showed two memories of which one earned more: there is no order."
        )
    recall = log.recall[better]
    counts = np.bincount(recall, minlength=len(log)).astype(np.float64)

    def totals(target: Target) -> Floats:
        assert target.scores is not None
        scores = np.where(np.isnan(target.scores), -np.inf, target.scores)
        won = np.where(
            scores[better] > scores[worse], 1.0, np.where(scores[better] == scores[worse], 0.5, 0.0)
        )
        return np.column_stack([counts, np.bincount(recall, weights=won, minlength=len(log))])

    return Metric("pairs in order", 2, totals, lambda totals: totals[..., 1] / totals[..., 0])


def _unequal_pairs(log: Log) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of what earned more, and of what earned less in the same recall: all such pairs of what was answered."""
    rows = np.flatnonzero(log.answered)
    frame = pl.DataFrame({"recall": log.recall[rows], "row": rows, "reward": log.reward[rows]})
    pairs = frame.join(frame, on="recall", suffix="_less").filter(
        pl.col("reward") > pl.col("reward_less")
    )
    pairs = pairs.sort("row", "row_less")
    return pairs["row"].to_numpy(), pairs["row_less"].to_numpy()


def _search(
    objective: _Objective, folds: int, budget: int, seed: int, level: float, progress: bool
) -> Tuning:
    clusters, names = objective.log.clusters, list(objective.space)
    fold = np.random.default_rng(seed).permutation(clusters) % folds
    trials: list[pl.DataFrame] = []
    chosen: list[tuple[float, ...]] = []
    with bar(progress, budget * (folds + 1), unit="trial", desc="tuning") as step:
        for left_out in (*range(folds), -1):
            points, values = _evolve(
                objective, fold != left_out, budget, (seed, left_out + 1), step
            )
            chosen.append(points[int(np.argmax(values))])
            columns = dict(zip(names, np.array(points).T, strict=True))
            trials.append(
                pl.DataFrame({"search": [left_out] * len(points), **columns, "value": values})
            )
    *by_fold, best = chosen
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
        policy=objective.at(best),
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
    clusters: NDArray[np.bool_],
    budget: int,
    seed: tuple[int, int],
    step: Step,
) -> tuple[list[tuple[float, ...]], list[float]]:
    """Every point that one search tries, the defaults first, and its value over ``clusters``."""
    from scipy.optimize import differential_evolution

    points: list[tuple[float, ...]] = [objective.default]
    values = [objective.value(objective.default, clusters)]

    def worse(x: Floats) -> float:
        points.append(tuple(x.tolist()))
        values.append(objective.value(points[-1], clusters))
        step(1)
        return -values[-1] if np.isfinite(values[-1]) else 1e300

    bounds = list(objective.space.values())
    size = max(8, min(40, 5 * len(bounds), budget // 4))
    inside = np.clip(objective.default, *np.array(bounds).T)
    differential_evolution(
        worse,
        bounds,
        x0=inside,
        popsize=-(-size // len(bounds)),
        maxiter=max(1, budget // (-(-size // len(bounds)) * len(bounds)) - 1),
        rng=np.random.default_rng(seed),
        polish=False,
        tol=0.0,
        atol=-1.0,  # never: whether a spread is zero depends on the order in which a processor adds
    )
    return points, values
