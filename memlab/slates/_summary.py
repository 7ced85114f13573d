"""What a log is at a glance: counts, time span, samplers, probes, feedback, packs."""

from __future__ import annotations

import html
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl

from memlab.slates._schema import IDS

if TYPE_CHECKING:
    from memlab.slates._tables import Slates

__all__ = ["Summary", "summary_of"]


@dataclass(frozen=True)
class Summary:
    """``probes`` and ``judged`` are shares of what was shown: flagged as probes, and given feedback."""

    decisions: int
    clusters: int
    candidates: int
    shown: int
    first: datetime | None
    last: datetime | None
    samplers: tuple[tuple[str, int], ...]
    packs: tuple[tuple[str, int], ...]
    probes: float
    judged: float

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What is shown, as pairs of a word and a text."""
        span = "no times"
        if self.first is not None and self.last is not None:
            span = f"{self.first:%Y-%m-%d %H:%M} to {self.last:%Y-%m-%d %H:%M} UTC"
        a_decision = f" ({self.candidates / self.decisions:.1f} a decision)" if self.decisions else ""
        return [
            ("decisions", f"{self.decisions:,} in {self.clusters:,} clusters"),
            ("candidates", f"{self.candidates:,}{a_decision}"),
            ("shown", f"{self.shown:,}, {self.probes:.1%} of them probes"),
            ("feedback", f"for {self.judged:.1%} of what was shown"),
            ("sampler", _counted(self.samplers) or "not told"),
            ("packs", _counted(self.packs) or "not told"),
            ("time", span),
        ]


def _counted(pairs: tuple[tuple[str, int], ...]) -> str:
    return pairs[0][0] if len(pairs) == 1 else ", ".join(f"{name} ({count:,})" for name, count in pairs)


def summary_of(slates: Slates) -> Summary:
    """The summary of a log; the features are not read, and a column that the tables lack counts as untold."""
    asked = set(slates.decisions.collect_schema().names())
    told = slates.exposures.join(slates.feedback, on=list(IDS), how="semi").select(judged=pl.len())
    probes = pl.col("probe").mean() if "probe" in slates.exposures.collect_schema().names() else pl.lit(0.0)
    overall = [
        pl.len().alias("decisions"),
        (pl.col("cluster").n_unique() if "cluster" in asked else pl.len()).alias("clusters"),
        (pl.col("at").min() if "at" in asked else pl.lit(None)).alias("first"),
        (pl.col("at").max() if "at" in asked else pl.lit(None)).alias("last"),
    ]
    named = [name for name in ("sampler", "pack") if name in asked]
    parts = pl.collect_all(
        [
            slates.decisions.select(overall),
            slates.candidates.select(candidates=pl.len()),
            slates.exposures.select(pl.len().alias("shown"), probes.alias("probes")),
            told,
            *(
                slates.decisions.filter(pl.col(name).is_not_null())
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
        probes=row["probes"] or 0.0,
        judged=row["judged"] / row["shown"] if row["shown"] else 0.0,
    )


def as_text(slates: Slates) -> str:
    """For a terminal."""
    rows = [*summary_of(slates).rows, *_names(slates), *(("note", note) for note in slates.notes)]
    return "\n".join(["<Slates", *(f"  {name:<11}{text}" for name, text in rows)]) + ">"


def as_html(slates: Slates) -> str:
    """For a notebook."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in [*summary_of(slates).rows, *_names(slates)]
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in slates.notes)
    return f"<div><table>{rows}</table>{f'<ul>{notes}</ul>' if notes else ''}</div>"


def _names(slates: Slates) -> list[tuple[str, str]]:
    pairs = [("features", slates.features), ("policies", slates.policies)]
    return [(name, _clipped(names)) for name, names in pairs if names]


def _clipped(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
