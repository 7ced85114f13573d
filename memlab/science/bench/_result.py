"""What a benchmark found, as numbers, a frame, JSON and a table to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import polars as pl

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import Markup, table, text_table
from memlab.kernel.base.printable import printable
from memlab.science.bench._plan import PUBLISHED
from memlab.science.bench._trec import write_trec
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
            rows.append(_row(system, None, system.questions, system.metrics))
            rows += [_row(system, category, system.counts[category], found) for category, found in _sorted(system)]
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

    def __repr__(self) -> str:
        lines = [self._caption(), ""]
        columns, rows = self._cells()
        lines += text_table(columns, rows)
        head, categories = self._category_cells()
        if categories:
            lines += ["", f"recall@10 by category{self._apart()}"]
            lines += text_table(head, categories)
        return printable("\n".join(lines))

    def _repr_html_(self) -> str:
        head, categories = self._category_cells()
        by_category = f"recall@10 by category{self._apart()}"
        return table(Markup(escape(self._caption())), *self._cells()) + (
            table(by_category, head, categories) if categories else ""
        )

    @checked
    def trec(self, folder: str | Path) -> tuple[Path, ...]:
        """Write the run of each pack and the qrels of each set of labels as files that TREC's tools read.

        ``memlab.run`` and ``published.qrels``, such names. The qrels hold what can be answered. White space in ids
        becomes "_"; an item that was found twice stands once. Raises ``DatasetError`` where the disk refuses.
        """
        return write_trec(self, Path(folder).expanduser())

    def _apart(self) -> str:
        return " (5 is adversarial and not in the figures above)" if self._has_adversarial else ""

    @property
    def _has_adversarial(self) -> bool:
        return any(5 in system.counts for system in self.systems)

    @property
    def _sets(self) -> list[str]:
        return list(dict.fromkeys(system.labels for system in self.systems))

    def _caption(self) -> str:
        held = "1 conversation" if self.conversations == 1 else f"{self.conversations} conversations"
        left = f", {self.unjudged} without evidence left out" if self.unjudged else ""
        within = f" on {held}" if self.conversations else ""
        independent = "conversation" if self.conversations else "question or project"
        has_intervals = any(value is not None for system in self.systems for value in system.intervals.values())
        interval = f"; [95% interval by {independent}]" if has_intervals else ""
        digest = f"; sha256 {self.sha256}" if self.sha256 else ""
        return (
            f"{self.dataset}: {self.questions} questions that can be answered{within}{left}; {self.unit} level, "
            f"{' and '.join(self._sets)} labels; recall is fractional, any and all have the evidence at all"
            f"{interval}{digest}"
        )

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        columns = [
            "system",
            *(["labels"] if len(self._sets) > 1 else []),
            "recall@5",
            "recall@10",
            "",
            "recall@20",
            "any@10",
            "all@10",
            "mrr@10",
            "ndcg@10",
            "",
        ]
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
            row = self._named(system)
            for index, name in enumerate(shown):
                if name is None:
                    row.append(_interval(system.intervals.get(str(shown[index - 1]))))
                else:
                    row.append(_share(system.metrics.get(name)))
            row += [f"{system.latency_ms[at]:.2f}" for at in ("p50", "p95")]
            rows.append([*row, "-" if system.ingest_per_s is None else f"{system.ingest_per_s:,.0f}"])
        return columns, rows

    def _named(self, system: SystemResult) -> list[str]:
        return [system.name, *([system.labels] if len(self._sets) > 1 else [])]

    def _category_cells(self) -> tuple[list[str], list[list[str]]]:
        if not self.systems:
            return [], []
        counts = self.systems[0].counts
        categories = sorted(counts, key=str)
        columns = ["system", *(["labels"] if len(self._sets) > 1 else [])]
        columns += [f"{category} (n={counts[category]})" for category in categories]
        rows = [
            self._named(system) + [_share(system.by_category.get(one, {}).get("recall@10")) for one in categories]
            for system in self.systems
        ]
        return columns, rows


def _sorted(system: SystemResult) -> list[tuple[int | str, Mapping[str, float]]]:
    return sorted(system.by_category.items(), key=lambda item: str(item[0]))


def _row(
    system: SystemResult, category: int | str | None, questions: int, found: Mapping[str, float]
) -> dict[str, object]:
    row: dict[str, object] = {"system": system.name, "hash": system.hash, "labels": system.labels}
    row |= {"category": category, "questions": questions}
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
