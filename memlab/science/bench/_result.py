"""What a benchmark found, as numbers, a frame, JSON and a table to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.science.bench._questions import PUBLISHED
from memlab.science.evaluation import Estimate

__all__ = ["BenchResult", "SystemResult"]


@dataclass(frozen=True)
class SystemResult:
    """One pack on all questions, judged by one set of ``labels``.

    ``recall@k`` is fractional: the share of a question's evidence among the first k, mean over questions;
    ``recall_any@k`` and ``recall_all@k`` stand beside it. ``metrics``, ``intervals`` and ``questions``, their number,
    are of what can be answered; ``by_category`` has every category with evidence, LoCoMo's adversarial 5 among them.
    ``latency_ms`` is of whole recalls: embedding, candidates, policies and log. ``ingest_per_s`` counts turns, durable
    on disk; None of a lab that was there. ``rankings`` holds what was found for each question, best first.
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
        """The system's figures as JSON values."""
        return {
            "name": self.name,
            "hash": self.hash,
            "labels": self.labels,
            "questions": self.questions,
            "metrics": dict(self.metrics),
            "by_category": {
                str(category): dict(found) for category, found in self.by_category.items()
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
    """Packs ranked by nDCG@10 on labelled conversations; where there are several sets of labels, set by set.

    ``questions`` counts those that can be answered and have evidence; ``unjudged`` those that have none and were not
    asked; ``limit`` is how many memories each recall was asked for. ``unit`` is what one memory is, and ``sha256`` the
    digest of the data. ``queries`` are the ids of what was asked, and ``evidence`` what answers each, by set of labels.
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
        """One row for each system, set of labels and category (null: all that can be answered); a column a metric."""
        rows: list[dict[str, object]] = []
        for system in self.systems:
            rows.append(self._row(system, None, system.questions, system.metrics))
            for category in sorted(system.by_category, key=str):
                found = system.by_category[category]
                rows.append(self._row(system, category, system.counts[category], found))
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self) -> dict[str, object]:
        """The result as JSON values; a metric without questions is null."""
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
        named: Columns = (
            ("system", "{system}"),
            *([("labels", "{labels}")] if len(self._sets) > 1 else []),
        )
        overall = [
            self._row(system, None, system.questions, system.metrics) for system in self.systems
        ]
        parts: list[object] = [
            self._caption(),
            Table("", *format_rows(overall, (*named, *_COLUMNS))),
        ]
        counts = self.systems[0].counts if self.systems else {}
        if counts:
            adversarial = any(5 in system.counts for system in self.systems)
            apart = " (5 is adversarial and not in the figures above)" if adversarial else ""
            columns: Columns = [
                (f"{one} (n={counts[one]})", _of_category(one)) for one in sorted(counts, key=str)
            ]
            rows = [
                row | {"found": system.by_category}
                for row, system in zip(overall, self.systems, strict=True)
            ]
            parts.append(
                Table(f"recall@10 by category{apart}", *format_rows(rows, (*named, *columns)))
            )
        return parts

    @property
    def _sets(self) -> list[str]:
        return list(dict.fromkeys(system.labels for system in self.systems))

    def _caption(self) -> str:
        held = (
            "1 conversation" if self.conversations == 1 else f"{self.conversations} conversations"
        )
        left = f", {self.unjudged} without evidence left out" if self.unjudged else ""
        within = f" on {held}" if self.conversations else ""
        independent = "conversation" if self.conversations else "question or project"
        has_intervals = any(
            value is not None for system in self.systems for value in system.intervals.values()
        )
        interval = f"; [95% interval by {independent}]" if has_intervals else ""
        digest = f"; sha256 {self.sha256}" if self.sha256 else ""
        return (
            f"{self.dataset}: {self.questions} questions that can be answered{within}{left}; {self.unit} level, "
            f"{' and '.join(self._sets)} labels; recall is fractional, any and all have the evidence at all"
            f"{interval}{digest}"
        )

    @staticmethod
    def _row(
        system: SystemResult, category: int | str | None, questions: int, found: Mapping[str, float]
    ) -> dict[str, object]:
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
            **found,
            **ends,
            "p50_ms": system.latency_ms["p50"] if overall else None,
            "p95_ms": system.latency_ms["p95"] if overall else None,
            "ingest_per_s": system.ingest_per_s if overall else None,
        }


def _of_category(category: int | str) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: _share(row["found"].get(category, {}).get("recall@10"))


def _metric(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: _share(row.get(name))


def _interval(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Return a cell of the interval of a metric, within 0 to 1."""

    def cell(row: Mapping[str, Any]) -> str:
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        return "" if low is None else f"[{_share(max(0.0, low))}, {_share(min(1.0, high))}]"

    return cell


def _share(value: float | None) -> str:
    return (
        "-"
        if value is None
        else f"{value:.3f}".replace("0.", ".", 1)
        if value < 1
        else f"{value:.3f}"
    )


_WITH_INTERVAL = ("recall@10", "ndcg@10")
_COLUMNS: Columns = (
    ("recall@5", _metric("recall@5")),
    ("recall@10", _metric("recall@10")),
    ("", _interval("recall@10")),
    ("recall@20", _metric("recall@20")),
    ("any@10", _metric("recall_any@10")),
    ("all@10", _metric("recall_all@10")),
    ("mrr@10", _metric("mrr@10")),
    ("ndcg@10", _metric("ndcg@10")),
    ("", _interval("ndcg@10")),
    ("p50 ms", "{p50_ms:.2f}"),
    ("p95 ms", "{p95_ms:.2f}"),
    ("turns/s", lambda row: "-" if row["ingest_per_s"] is None else f"{row['ingest_per_s']:,.0f}"),
)
