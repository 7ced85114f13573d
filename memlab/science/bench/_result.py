"""The result of a benchmark as numbers, a frame, JSON and a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.science.bench._questions import PUBLISHED
from memlab.science.evaluation import Estimate, cluster_interval


def summarise_rows(rows: pl.DataFrame, metrics: Sequence[str]) -> dict[str, Any]:
    """Return the figures of a cell: the mean of each metric with a 95% interval, and counts.

    ``rows`` has the columns ``cluster`` and ``metrics``; null is left out. The ends of an interval are None below two
    clusters.
    """
    figures: dict[str, Any] = {}
    # A sum without rounding is the same on every processor.
    for name in metrics:
        counted = rows.filter(pl.col(name).is_not_null())
        interval = cluster_interval(counted[name].to_numpy(), counted["cluster"].to_list())
        figures[name] = {
            "value": math.fsum(counted[name]) / counted.height if counted.height else None,
            "low": None if interval is None else interval.low,
            "high": None if interval is None else interval.high,
        }
    counted = rows.filter(pl.any_horizontal(pl.col(*metrics).is_not_null()))
    return {
        "metrics": figures,
        "questions": counted.height,
        "clusters": counted["cluster"].n_unique(),
    }


@dataclass(frozen=True)
class SystemResult:
    """The metrics of one pack on all questions, under one set of labels.

    Parameters
    ----------
    name, hash
        The name and hash of the pack.
    metrics
        The mean of each metric over answerable questions. ``recall@k`` is fractional: the share of
        a question's evidence in the top k. ``recall_any@k`` is 1 if any of the evidence is in the
        top k, ``recall_all@k`` if all of it is.
    by_category
        The metrics by category. LoCoMo's adversarial category 5 is included here only.
    counts
        The number of questions with evidence by category.
    intervals
        The 95% interval of each metric; None if there is a single cluster.
    latency_ms
        The quantiles p50 and p95 of the time of a whole recall in milliseconds. It includes the
        embedding, the candidates, the policies and the log.
    ingest_per_s
        The number of turns per second that were stored durably; None for an existing lab.
    labels
        The name of the set of labels.
    questions
        The number of answerable questions with evidence.
    rankings
        The retrieved memories of each question, best first.
    """

    name: str
    hash: str
    metrics: Mapping[str, float]
    by_category: Mapping[int | str, Mapping[str, float]]
    counts: Mapping[int | str, int]
    intervals: Mapping[str, Estimate | None]
    latency_ms: Mapping[str, float]
    ingest_per_s: float | None
    labels: str = PUBLISHED
    questions: int = 0
    rankings: tuple[tuple[str, ...], ...] = field(default=(), repr=False)

    def to_dict(self) -> dict[str, object]:
        """Return the figures of the pack as JSON values.

        Returns
        -------
        dict
            The keys are the names of the attributes.
        """
        return {
            "name": self.name,
            "hash": self.hash,
            "labels": self.labels,
            "questions": self.questions,
            "metrics": dict(self.metrics),
            "by_category": {
                str(category): dict(values) for category, values in self.by_category.items()
            },
            "intervals": {
                name: None if interval is None else [interval.low, interval.high]
                for name, interval in self.intervals.items()
            },
            "latency_ms": dict(self.latency_ms),
            "ingest_per_s": self.ingest_per_s,
        }


@dataclass(frozen=True, repr=False)
class BenchResult(Report):
    """The metrics of packs on labelled questions, for each set of labels.

    Packs are sorted by nDCG@10, best first.

    Parameters
    ----------
    dataset
        The name of the data.
    conversations
        The number of conversations; 0 for a user's lab.
    questions
        The number of answerable questions with evidence.
    unjudged
        The number of questions that were not asked, because they have no evidence.
    limit
        The maximum number of results of a recall.
    systems
        The metrics of each pack.
    unit
        What a memory contains, such as "turn".
    sha256
        The SHA-256 digest of the data.
    queries
        The ids of the questions.
    evidence
        The evidence of each question, by the name of the set of labels.

    Examples
    --------
    >>> from memlab.science.bench import bench_lab
    >>> import memlab
    >>> import polars as pl
    >>> lab = memlab.open()
    >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
    >>> questions = pl.DataFrame({"question": ["When do we deploy?"], "wanted": ["1"]})
    >>> result = bench_lab(lab, questions, packs=["memlab"], baselines=False)
    >>> result.questions, result.evidence["published"]
    (1, (frozenset({'1'}),))
    """

    dataset: str
    conversations: int
    questions: int
    unjudged: int
    limit: int
    systems: tuple[SystemResult, ...]
    unit: str = "turn"
    sha256: str = ""
    queries: tuple[str, ...] = field(default=(), repr=False)
    evidence: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict, repr=False)

    @property
    def frame(self) -> pl.DataFrame:
        """A row for each pack, label set and category.

        The category is null in rows over all answerable questions.
        """
        rows: list[dict[str, object]] = []
        for system in self.systems:
            rows.append(self._row(system, None, system.questions, system.metrics))
            for category in sorted(system.by_category, key=str):
                values = system.by_category[category]
                rows.append(self._row(system, category, system.counts[category], values))
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self) -> dict[str, object]:
        """Return the result as JSON values; a metric without questions is null.

        Returns
        -------
        dict
            The keys are the names of the attributes, without ``queries`` and ``evidence``.
        """
        return {
            "dataset": self.dataset,
            "sha256": self.sha256,
            "unit": self.unit,
            "questions": self.questions,
            "unjudged": self.unjudged,
            "limit": self.limit,
            "systems": [system.to_dict() for system in self.systems],
        }

    def _display(self) -> object:
        names: Columns = (
            ("system", "{system}"),
            *([("labels", "{labels}")] if len(self._sets) > 1 else []),
        )
        overall = [
            self._row(system, None, system.questions, system.metrics) for system in self.systems
        ]
        parts: list[object] = [
            self._caption(),
            Table("", *format_rows(overall, (*names, *_COLUMNS))),
        ]
        counts = self.systems[0].counts if self.systems else {}
        if counts:
            adversarial = any(5 in system.counts for system in self.systems)
            remark = " (5 is adversarial and not in the figures above)" if adversarial else ""
            columns: Columns = [
                (f"{category} (n={counts[category]})", _category_cell(category))
                for category in sorted(counts, key=str)
            ]
            rows = [
                row | {"found": system.by_category}
                for row, system in zip(overall, self.systems, strict=True)
            ]
            parts.append(
                Table(f"recall@10 by category{remark}", *format_rows(rows, (*names, *columns)))
            )
        return parts

    @property
    def _sets(self) -> list[str]:
        """The names of the label sets."""
        return list(dict.fromkeys(system.labels for system in self.systems))

    def _caption(self) -> str:
        """Return the caption: data, number of questions, labels and intervals."""
        size = (
            "1 conversation" if self.conversations == 1 else f"{self.conversations} conversations"
        )
        left_out = f", {self.unjudged} without evidence left out" if self.unjudged else ""
        within = f" on {size}" if self.conversations else ""
        independent = "conversation" if self.conversations else "question or project"
        has_intervals = any(
            value is not None for system in self.systems for value in system.intervals.values()
        )
        interval = f"; [95% interval by {independent}]" if has_intervals else ""
        digest = f"; sha256 {self.sha256}" if self.sha256 else ""
        return (
            f"{self.dataset}: {self.questions} answerable questions{within}{left_out}; {self.unit} level, "
            f"{' and '.join(self._sets)} labels; recall is fractional, any and all are 1 for any or all of the evidence"
            f"{interval}{digest}"
        )

    @staticmethod
    def _row(
        system: SystemResult,
        category: int | str | None,
        questions: int,
        values: Mapping[str, float],
    ) -> dict[str, object]:
        """Return a row of the frame for one category, or for all questions (None), with its metrics.

        Only the row of all questions has intervals, latency and speed; in the others, these are null.
        """
        overall = category is None
        ends: dict[str, object] = {}
        for name in _WITH_INTERVAL:
            interval = system.intervals.get(name) if overall else None
            ends[f"{name}_low"] = interval.low if interval else None
            ends[f"{name}_high"] = interval.high if interval else None
        return {
            "system": system.name,
            "hash": system.hash,
            "labels": system.labels,
            "category": category,
            "questions": questions,
            **values,
            **ends,
            "p50_ms": system.latency_ms["p50"] if overall else None,
            "p95_ms": system.latency_ms["p95"] if overall else None,
            "ingest_per_s": system.ingest_per_s if overall else None,
        }


def _category_cell(category: int | str) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that formats the recall@10 of a category."""
    return lambda row: _format_share(row["found"].get(category, {}).get("recall@10"))


def _metric_cell(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that formats the value of a metric in a row."""
    return lambda row: _format_share(row.get(name))


def _interval_cell(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that formats the interval of a metric, clipped to 0..1."""

    def cell(row: Mapping[str, Any]) -> str:
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        return (
            ""
            if low is None
            else f"[{_format_share(max(0.0, low))}, {_format_share(min(1.0, high))}]"
        )

    return cell


def _format_share(value: float | None) -> str:
    """Format a share with three decimals and no leading zero; "-" for None."""
    return (
        "-"
        if value is None
        else f"{value:.3f}".replace("0.", ".", 1)
        if value < 1
        else f"{value:.3f}"
    )


# Only the two main metrics have intervals, because more would not fit a terminal.
_WITH_INTERVAL = ("recall@10", "ndcg@10")
_COLUMNS: Columns = (
    ("recall@5", _metric_cell("recall@5")),
    ("recall@10", _metric_cell("recall@10")),
    ("", _interval_cell("recall@10")),
    ("recall@20", _metric_cell("recall@20")),
    ("any@10", _metric_cell("recall_any@10")),
    ("all@10", _metric_cell("recall_all@10")),
    ("mrr@10", _metric_cell("mrr@10")),
    ("ndcg@10", _metric_cell("ndcg@10")),
    ("", _interval_cell("ndcg@10")),
    ("p50 ms", "{p50_ms:.2f}"),
    ("p95 ms", "{p95_ms:.2f}"),
    ("turns/s", lambda row: "-" if row["ingest_per_s"] is None else f"{row['ingest_per_s']:,.0f}"),
)
