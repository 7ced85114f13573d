"""What a log is at a glance: counts, time span, samplers, probes, feedback, packs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memlab.kernel.slates._schema import IDS

__all__ = ["Summary", "summary_of"]


@dataclass(frozen=True)
class Summary:
    """``probes`` and ``judged`` are shares of what was shown: flagged as probes, and given feedback.

    ``probes`` is None where items were shown by chance and none is flagged: the log does not say which were probes.
    """

    decisions: int
    clusters: int
    candidates: int
    shown: int
    first: datetime | None
    last: datetime | None
    samplers: tuple[tuple[str, int], ...]
    packs: tuple[tuple[str, int], ...]
    probes: float | None
    judged: float
    features: tuple[str, ...]
    policies: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What is shown, as pairs of a word and a text."""
        span = "no times"
        if self.first is not None and self.last is not None:
            span = f"{self.first:%Y-%m-%d %H:%M} to {self.last:%Y-%m-%d %H:%M} UTC"
        a_decision = f" ({self.candidates / self.decisions:.1f} a decision)" if self.decisions else ""
        a_probe = "" if self.probes is None else f", {self.probes:.1%} of them probes"
        return [
            ("decisions", f"{self.decisions:,} in {self.clusters:,} clusters"),
            ("candidates", f"{self.candidates:,}{a_decision}"),
            ("shown", f"{self.shown:,}{a_probe}"),
            ("feedback", f"for {self.judged:.1%} of what was shown"),
            ("sampler", _counted(self.samplers) or "not told"),
            ("packs", _counted(self.packs) or "not told"),
            ("time", span),
            *([("features", _clipped(self.features))] if self.features else []),
            *([("policies", _clipped(self.policies))] if self.policies else []),
        ]

    def as_text(self) -> str:
        """For a terminal."""
        rows = [*self.rows, *(("note", note) for note in self.notes)]
        return "\n".join(["<Slates", *(f"  {name:<11}{text}" for name, text in rows)]) + ">"


def _counted(pairs: tuple[tuple[str, int], ...]) -> str:
    return pairs[0][0] if len(pairs) == 1 else ", ".join(f"{name} ({count:,})" for name, count in pairs)


def summary_of(
    tables: Sequence[pl.LazyFrame], *, features: tuple[str, ...], policies: tuple[str, ...], notes: tuple[str, ...]
) -> Summary:
    """The summary of a log's four tables; values of features are not read, and a column that the tables lack counts as
    untold.
    """
    decisions, candidates, exposures, feedback = tables
    asked = set(decisions.collect_schema().names())
    answered = exposures.join(feedback, on=list(IDS), how="semi").select(judged=pl.len())
    told = set(exposures.collect_schema().names())
    probes = pl.col("probe").mean() if "probe" in told else pl.lit(0.0)
    by_chance = (pl.col("propensity") < 1).any() if "propensity" in told else pl.lit(False)
    overall = [
        pl.len().alias("decisions"),
        (pl.col("cluster").n_unique() if "cluster" in asked else pl.len()).alias("clusters"),
        (pl.col("at").min() if "at" in asked else pl.lit(None)).alias("first"),
        (pl.col("at").max() if "at" in asked else pl.lit(None)).alias("last"),
    ]
    named = [name for name in ("sampler", "pack") if name in asked]
    parts = pl.collect_all(
        [
            decisions.select(overall),
            candidates.select(candidates=pl.len()),
            exposures.select(pl.len().alias("shown"), probes.alias("probes"), by_chance.alias("by_chance")),
            answered,
            *(
                decisions.filter(pl.col(name).is_not_null())
                .group_by(name)
                .len()
                .sort("len", name, descending=[True, False])
                for name in named
            ),
        ]
    )
    row = pl.concat(parts[:4], how="horizontal").row(0, named=True)
    counts = {name: tuple(frame.rows()) for name, frame in zip(named, parts[4:], strict=True)}
    return Summary(
        decisions=row["decisions"],
        clusters=row["clusters"],
        candidates=row["candidates"],
        shown=row["shown"],
        first=row["first"],
        last=row["last"],
        samplers=counts.get("sampler", ()),
        packs=counts.get("pack", ()),
        probes=None if row["by_chance"] and not row["probes"] else row["probes"] or 0.0,
        judged=row["judged"] / row["shown"] if row["shown"] else 0.0,
        features=features,
        policies=policies,
        notes=notes,
    )


def _clipped(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
