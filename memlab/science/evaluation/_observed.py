"""Observed rewards of a log: counts and mean rewards of the items shown, without propensities.

A value of another policy is a counterfactual and depends on assumptions, which gates check. The
mean reward of the items that were shown depends on no assumption, so no gate withholds it. Its
interval needs independent units only. These are the clusters of the log, or the queries if there
are fewer queries than clusters: answers to one query that is asked repeatedly depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import Floats, Ints
from memlab.kernel.base.display import Columns, Report, Table, clip, format_rows
from memlab.kernel.base.printable import count_of
from memlab.science.distributions import t_quantile
from memlab.science.evaluation._intervals import Estimate, Sample, cluster_sums, mean
from memlab.science.evaluation._log import Log, number_queries

_QUERIES = 20
"""The maximum number of queries in a table; ``frame`` has all queries."""


@dataclass(frozen=True, repr=False)
class Observed(Report):
    """The items that recalls showed, and their rewards: ``Evaluation.observed``.

    Parameters
    ----------
    recalls
        The number of recalls.
    queries
        The number of distinct queries; None if the log has no texts.
    items, judged
        The number of items shown, and of those with a known reward.
    value
        The mean reward per recall: the sum of the known rewards of its items.
    per_item
        The mean reward of a judged item.
    unit
        The unit that counts as independent in the intervals: "query", "decision" or a cluster.
    frame
        A row for each query, in the order of first recalls: ``query``, ``recalls``, ``shown``,
        ``judged``, and the mean ``reward`` per recall with its interval ``low`` and ``high``, which
        are null for a single recall.
    """

    recalls: int
    queries: int | None
    items: int
    judged: int
    value: Estimate
    per_item: Estimate
    unit: str
    frame: pl.DataFrame = field(repr=False)

    @property
    def sentence(self) -> str:
        """The observed values in one sentence."""
        of_queries = "" if self.queries is None else f" of {count_of(self.queries, 'query')}"
        judged = "all" if self.judged == self.items else f"{self.judged:,}"
        counts = f"{count_of(self.recalls, 'recall')}{of_queries} showed {count_of(self.items, 'item')}, {judged} judged"
        if not self.judged:
            return f"Logged: {counts}."
        return f"Logged: mean reward {_format(self.value)} per recall, {_format(self.per_item)} per judged item; {counts}."

    def _display(self) -> object:
        columns: Columns = (
            ("query", lambda row: clip(row["query"], 60)),
            ("recalls", "{recalls:,}"),
            ("shown", "{shown:,}"),
            ("judged", "{judged:,}"),
            ("reward", "{reward:.3f}"),
            ("interval", "[{low:.3f}, {high:.3f}]"),
        )
        rows = self.frame.head(_QUERIES).iter_rows(named=True)
        more = self.frame.height - _QUERIES
        notes = [f"{more:,} more are in frame."] if more > 0 else []
        table = (
            Table("", *format_rows(rows, columns), notes, left=(0,)) if self.frame.height else None
        )
        return self.sentence, table

    def to_dict(self) -> dict[str, Any]:
        """Return the observed values as JSON values, with a row for each query.

        Returns
        -------
        dict
            The attributes by name; estimates as ``value``, ``low`` and ``high``.
        """
        names = ("recalls", "queries", "items", "judged", "unit")
        return {
            **{name: getattr(self, name) for name in names},
            **{
                name: {
                    end: float(number) if np.isfinite(number) else None
                    for end in ("value", "low", "high")
                    for number in [getattr(getattr(self, name), end)]
                }
                for name in ("value", "per_item")
            },
            "by_query": self.frame.to_dicts(),
        }


def _format(estimate: Estimate) -> str:
    """Format an estimate with its interval, if it has an interval."""
    interval = f" [{estimate.low:.3f}, {estimate.high:.3f}]" if np.isfinite(estimate.low) else ""
    return f"{estimate.value:.3f}{interval}"


def cluster_facts(log: Log) -> Log:
    """Return the log clustered by query if that gives at least two but fewer clusters, else unchanged.

    A log of one cluster is clustered by query, too.
    """
    queries = number_queries(log.decisions)
    if queries is None:
        return log
    count = int(queries.max()) + 1
    if count < 2 or 2 <= log.clusters <= count:
        return log
    return replace(log, cluster=queries, clusters=count, clustered="query")


def observe(log: Log, level: float) -> Observed:
    """Return the observed values of a log.

    Parameters
    ----------
    log
        The recalls that count. Rewards that the caller counts as 0 are known.
    level
        The confidence level of the intervals.

    Returns
    -------
    Observed
        Counts and mean rewards, and the outcomes of each query.
    """
    log = cluster_facts(log)
    judged = log.answered & log.exposed
    rewards = np.where(judged, np.nan_to_num(log.reward), 0.0)
    sums, items, answers = (
        np.asarray(np.bincount(log.recall, values.astype(np.float64), len(log)), dtype=np.float64)
        for values in (rewards, log.exposed, judged)
    )
    counts = (np.ones(len(log)), answers)
    value, per_item = (
        Sample(cluster_sums((count, sums), log.cluster, log.clusters), level=level).estimate(mean)
        if count.sum()
        else Estimate(np.nan, np.nan, np.nan, np.nan, np.nan)
        for count in counts
    )
    queries = number_queries(log.decisions)
    frame = _by_query(log, queries, items, answers, sums, level)
    return Observed(
        len(log),
        None if queries is None else frame.height,
        int(items.sum()),
        int(answers.sum()),
        value,
        per_item,
        log.clustered,
        frame,
    )


# The types of the columns of outcomes by query.
_SCHEMA = {
    "query": pl.String,
    **dict.fromkeys(("recalls", "shown", "judged"), pl.Int64),
    **dict.fromkeys(("reward", "low", "high"), pl.Float64),
}


EMPTY = pl.DataFrame(schema=_SCHEMA)
"""The outcomes of queries of a log without texts."""


def _by_query(
    log: Log, queries: Ints | None, items: Floats, answers: Floats, sums: Floats, level: float
) -> pl.DataFrame:
    """Return a row for each query: recalls, shown and judged items, mean reward; empty without query texts."""
    if queries is None:
        return EMPTY
    groups = (
        log.decisions.select("query")
        .with_columns(number=queries, shown=items, judged=answers, reward=sums)
        .group_by("number", maintain_order=True)
        .agg(
            pl.col("query").first(),
            pl.len().alias("recalls"),
            pl.col("shown", "judged").sum(),
            pl.col("reward").mean(),
            error=pl.col("reward").std() / pl.len().sqrt(),
        )
    )
    # Recalls of one query are few, so the interval is Student's; one recall has none.
    counts = groups["recalls"].to_list()
    reach = {count: t_quantile(count - 1, (1 + level) / 2) for count in set(counts) - {1}}
    half = pl.col("error") * pl.Series([reach.get(count) for count in counts], dtype=pl.Float64)
    reward = pl.when(pl.col("judged") > 0).then("reward")
    return groups.with_columns(reward, low=reward - half, high=reward + half).select(
        pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items()
    )
