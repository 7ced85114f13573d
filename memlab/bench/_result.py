"""What a benchmark found, as numbers, a frame, JSON and a table to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

import polars as pl

from memlab.display import Markup, table, text_table
from memlab.evaluation import Estimate
from memlab.printable import printable

__all__ = ["BenchResult", "SystemResult"]

ADVERSARIAL = 5


@dataclass(frozen=True)
class SystemResult:
    """One pack on all questions. ``recall@k`` is fractional; ``recall_any@k`` and ``recall_all@k`` stand beside it.

    ``metrics`` and ``intervals`` cover categories 1-4; ``by_category`` has every category that was asked, the
    adversarial 5 among them. ``latency_ms`` is of whole recalls: embedding, candidates, policies and log.
    ``ingest_per_s`` counts turns, durable on disk.
    """

    name: str
    hash: str
    metrics: Mapping[str, float]
    by_category: Mapping[int, Mapping[str, float]]
    counts: Mapping[int, int]
    intervals: Mapping[str, Estimate | None]
    latency_ms: Mapping[str, float]
    ingest_per_s: float

    def to_dict(self) -> dict[str, object]:
        """The system's figures as JSON values."""
        return {
            "name": self.name,
            "hash": self.hash,
            "metrics": dict(self.metrics),
            "by_category": {str(category): dict(found) for category, found in self.by_category.items()},
            "intervals": {
                name: None if interval is None else [interval.low, interval.high]
                for name, interval in self.intervals.items()
            },
            "latency_ms": dict(self.latency_ms),
            "ingest_per_s": self.ingest_per_s,
        }


@dataclass(frozen=True)
class BenchResult:
    """Packs ranked by nDCG@10 on one set of labelled conversations.

    ``questions`` counts those of categories 1-4 that have evidence; ``unjudged`` those of any category that have none
    and were not asked; ``limit`` is how many memories each recall was asked for.
    """

    dataset: str
    conversations: int
    questions: int
    unjudged: int
    limit: int
    systems: tuple[SystemResult, ...]

    @property
    def frame(self) -> pl.DataFrame:
        """One row for each system and category (null: categories 1-4 together), one column a metric."""
        rows: list[dict[str, object]] = []
        for system in self.systems:
            rows.append(_row(system, None, self.questions, system.metrics))
            rows += [_row(system, category, system.counts[category], found) for category, found in _sorted(system)]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self) -> dict[str, object]:
        """The result as JSON values; a metric without questions is null."""
        return {
            "dataset": self.dataset,
            "questions": self.questions,
            "systems": [system.to_dict() for system in self.systems],
        }

    def __repr__(self) -> str:
        lines = [self._caption(), ""]
        columns, rows = self._cells()
        lines += text_table(columns, rows)
        head, categories = self._category_cells()
        if categories:
            lines += ["", "recall@10 by category (5 is adversarial and not in the figures above)"]
            lines += text_table(head, categories)
        return printable("\n".join(lines))

    def _repr_html_(self) -> str:
        head, categories = self._category_cells()
        by_category = "recall@10 by category; 5 is adversarial and not in the figures above."
        return table(Markup(escape(self._caption())), *self._cells()) + (
            table(by_category, head, categories) if categories else ""
        )

    def _caption(self) -> str:
        held = "1 conversation" if self.conversations == 1 else f"{self.conversations} conversations"
        left = f", {self.unjudged} without evidence left out" if self.unjudged else ""
        return (
            f"{self.dataset}: {self.questions} questions of categories 1-4 on {held}{left}; recall is fractional, "
            f"any and all have the evidence at all; [95% interval by conversation]"
        )

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        columns = ["system", "recall@5", "recall@10", "", "recall@20", "any@10", "all@10", "mrr@10", "ndcg@10", ""]
        columns += ["p50 ms", "p95 ms", "turns/s"]
        shown = (
            "recall@5",
            "recall@10",
            None,
            "recall@20",
            "recall_any@10",
            "recall_all@10",
            "mrr@10",
            "ndcg@10",
            None,
        )
        rows = []
        for system in self.systems:
            row = [system.name]
            for index, name in enumerate(shown):
                if name is None:
                    row.append(_interval(system.intervals.get(str(shown[index - 1]))))
                else:
                    row.append(_share(system.metrics.get(name)))
            row += [f"{system.latency_ms[at]:.2f}" for at in ("p50", "p95")]
            rows.append([*row, f"{system.ingest_per_s:,.0f}"])
        return columns, rows

    def _category_cells(self) -> tuple[list[str], list[list[str]]]:
        if not self.systems:
            return [], []
        counts = self.systems[0].counts
        columns = ["system", *(f"{category} (n={counts[category]})" for category in sorted(counts))]
        rows = [
            [system.name, *(_share(found.get("recall@10")) for _, found in _sorted(system))] for system in self.systems
        ]
        return columns, rows


def _sorted(system: SystemResult) -> list[tuple[int, Mapping[str, float]]]:
    return sorted(system.by_category.items())


def _row(system: SystemResult, category: int | None, questions: int, found: Mapping[str, float]) -> dict[str, object]:
    row: dict[str, object] = {"system": system.name, "hash": system.hash, "category": category, "questions": questions}
    row |= found
    overall = category is None
    interval = system.intervals.get("recall@10") if overall else None
    row["recall@10_low"] = interval.low if interval else None
    row["recall@10_high"] = interval.high if interval else None
    row["p50_ms"] = system.latency_ms["p50"] if overall else None
    row["p95_ms"] = system.latency_ms["p95"] if overall else None
    row["ingest_per_s"] = system.ingest_per_s if overall else None
    return row


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}".replace("0.", ".", 1) if value < 1 else f"{value:.3f}"


def _interval(interval: Estimate | None) -> str:
    return "" if interval is None else f"[{_share(max(0.0, interval.low))}, {_share(min(1.0, interval.high))}]"
