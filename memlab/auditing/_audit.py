"""A store is loaded into a lab in memory, compared by that lab's own linking, and what it found is reported."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from memlab.arguments import AsGiven, Count, Within, checked
from memlab.clock import DAY, ManualClock, Micros, When, from_micros, system_clock, to_micros
from memlab.display import clip, table
from memlab.drawing import render_page, write_page
from memlab.embedding import Embedder, EmbedderSpec, load_embedder
from memlab.errors import UnknownName
from memlab.lab import Lab
from memlab.moving import Loaded
from memlab.policies import Pack, load_pack
from memlab.printable import printable
from memlab.progress import bar
from memlab.schema import KINDS, RECALLABLE
from memlab.version import __version__

__all__ = ["FINDINGS", "Audit", "audit"]

FINDINGS = {
    "duplicate": "It says what the other says.",
    "similar": "It says nearly what the other says.",
    "contradiction": "It excludes what the other says.",
    "outdated": "The other says that this has changed, or its time is over.",
    "stale": "Nobody has changed or used it for long.",
    "secret": "A credential stood in it.",
    "never recalled": "The store counts uses, and this has none.",
}
"""What an audit looks for."""

Found = tuple[str, int, int | None, str]
_FOUND = {"finding": pl.String, "id": pl.Int64, "other": pl.Int64, "why": pl.String}
_RELATIONS = {"contradicts": "contradiction", "updates": "outdated", "supersedes": "duplicate", "similar-to": "similar"}
_TAKEN = ("text", "project", "session", "speaker", "subject", "predicate", "object", "value")
_SHOWN = ("id", "text", "kind", "status", "project", "session", "speaker", "created")
_SLOW = 100
"""Memories whose comparing may take more than a second."""
_MOST_SHOWN = 200
_TEMPLATE = Path(__file__).parent / "audit.html"


@dataclass(frozen=True)
class Audit:
    """What ``memlab.audit`` found. ``findings`` has a row for each, ``memories`` what was looked at.

    No secret is in it: texts are as the privacy gate left them. In a notebook it renders; ``to_html`` writes a page.
    """

    loaded: Loaded = field(repr=False)
    """How the store was read: what was guessed, left out and skipped."""
    memories: pl.DataFrame = field(repr=False)
    """``id``, ``text``, ``kind``, ``status``, ``project``, ``session``, ``speaker``, ``created``, ``source``, ``place``
    (the id, line or row there)."""
    findings: pl.DataFrame = field(repr=False)
    """``finding`` (of ``FINDINGS``), ``id``, ``other`` (null where it concerns one), ``why``, ``text``,
    ``other_text``."""
    compared: int
    """Memories that were compared with one another: those in use that are no turns."""
    pack: str
    at: Micros

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each finding."""
        found = dict(self.findings.group_by("finding").len().iter_rows())
        return {name: found.get(name, 0) for name in FINDINGS}

    @checked
    def of(self, finding: str) -> pl.DataFrame:
        """The findings of one name. UnknownName for none of ``FINDINGS``."""
        if finding not in FINDINGS:
            raise UnknownName("finding", finding, FINDINGS)
        return self.findings.filter(pl.col("finding") == finding)

    @property
    def json(self) -> str:
        """All of it as JSON, for programs."""
        return json.dumps(
            {
                "source": self.loaded.source,
                "memories": len(self.memories),
                "compared": self.compared,
                "counts": self.counts,
                "findings": self.findings.to_dicts(),
                "left_out": dict(self.loaded.left_out),
                "skipped": dict(self.loaded.skipped),
                "guessed": self.loaded.guessed.rows(),
                "pack": self.pack,
            },
            ensure_ascii=False,
        )

    @checked
    def to_html(self, path: str | Path) -> Path:
        """Write one page that needs nothing else. InputError where that is not possible."""
        html = render_page(
            _TEMPLATE,
            {"safe_text": lambda text: printable(clip(text, 400))},
            audit=self,
            finding_words=FINDINGS,
            most=_MOST_SHOWN,
            at=f"{from_micros(self.at):%Y-%m-%d %H:%M} UTC",
            version=__version__,
        )
        return write_page(html, path)

    @checked
    def text(self, *, most: Count = 5) -> str:
        """What was found, in lines: counts, then at most so many of each."""
        parts = [f"{len(self.memories):,} memories from {self.loaded.source}, {self.compared:,} of them compared"]
        if "turn" in self.memories["kind"]:
            parts[0] += "; in turns of a conversation only secrets are looked for"
        for name, count in self.counts.items():
            if not count:
                continue
            parts.append(f"{count:,} {name}: {FINDINGS[name]}")
            for row in self.of(name).head(most).iter_rows(named=True):
                other = f" / {row['other']}: {clip(row['other_text'], 70)}" if row["other"] is not None else ""
                parts.append(f"  {row['id']}: {clip(row['text'], 70)}{other} ({row['why']})")
        if len(parts) == 1:
            parts.append("nothing was found")
        return printable("\n".join(parts))

    def __repr__(self) -> str:
        found = ", ".join(f"{count:,} {name}" for name, count in self.counts.items() if count) or "nothing found"
        return printable(f"<Audit of {self.loaded.source}, {len(self.memories):,} memories: {found}>")

    def _repr_html_(self) -> str:
        rows = [tuple(row) for row in self.findings.drop("finding").head(20).iter_rows()]
        names = self.findings["finding"].head(20)
        rows = [(name, *row) for name, row in zip(names, rows, strict=True)]
        return table(repr(self), ("finding", "id", "other", "why", "text", "other text"), rows)


@checked
def audit(
    x: Annotated[Any, AsGiven],
    *,
    format: str | None = None,
    columns: Mapping[str, str | None] | None = None,
    pack: str | Path | Pack = "cascade",
    stale_days: Annotated[float, Within(0, 1_000_000)] = 365.0,
    at: When | None = None,
    embedder: EmbedderSpec = None,
    progress: bool = True,
) -> Audit:
    """Look through a store of memories, of any tool: what is double, contradictory, outdated, stale, secret or unused.

    ``x`` is whatever ``memlab.load`` reads: an export of mem0 or LangGraph, a folder of Markdown (Letta's MemFS,
    ``AGENTS.md``), JSON Lines, a lab; ``format`` and ``columns`` as there. It is loaded into a lab in memory, and
    nothing is changed. ``pack`` decides which pairs conflict, by its policies ``link`` and ``resolve``; turns of a
    conversation are not compared. What nobody changed or used for ``stale_days`` before ``at`` (now, unless given) is
    stale. A memory counts as never recalled only where the store tells of recalls at all.

    The errors are those of ``memlab.load``. Contradictions are found between short statements in English
    (docs/systems.md has the measurements).

    >>> found = audit(["The user likes dark mode", "The user does not like dark mode"])
    >>> found.counts["contradiction"]
    1
    """
    decided, model = load_pack(pack), load_embedder(embedder)
    now = system_clock() if at is None else to_micros(at)
    clock = ManualClock(now)
    with Lab(embedder=model, clock=clock) as store:
        loaded = store.load(x, format=format, columns=columns, linking="off", progress=progress)
        memories = store.memories.filter(pl.col("text").is_not_null())
        statements = memories.filter(pl.col("status").is_in(RECALLABLE) & (pl.col("kind") != "turn"))
        rows: list[Found] = [("secret", id, None, finding.type) for id, finding in loaded.redacted]
        rows += _paired(statements, decided, model, clock, progress=progress)
        rows += _aged(statements, now, stale_days)
        if memories["access"].sum() > 0:
            rows += [("never recalled", id, None, "0 uses") for id in statements.filter(access=0)["id"]]
    places = loaded.frame.filter(pl.col("id").is_not_null()).select("id", source="origin", place="theirs")
    looked_at = memories.select(_SHOWN).join(
        places.unique("id", keep="first"), on="id", how="left", maintain_order="left"
    )
    texts = looked_at.select("id", "text")
    order = {name: place for place, name in enumerate(FINDINGS)}
    findings = (
        pl.DataFrame(rows, schema=_FOUND, orient="row")
        .join(texts, on="id", how="left")
        .join(texts.rename({"id": "other", "text": "other_text"}), on="other", how="left")
        .sort(pl.col("finding").replace_strict(order, return_dtype=pl.Int64), "id", "other", nulls_last=True)
    )
    return Audit(loaded, looked_at, findings, len(statements), decided.name, now)


def _paired(
    statements: pl.DataFrame, pack: Pack, embedder: Embedder, clock: ManualClock, *, progress: bool
) -> list[Found]:
    """What the linking of a lab says of pairs, each of them once: the newer, the older, and why."""
    ordered = statements.sort("created", "id")
    ids = ordered["id"].to_list()
    kinds = [kind if kind in KINDS else "fact" for kind in ordered["kind"]]
    taken = ordered.select(*_TAKEN, at="created").with_columns(kind=pl.Series(kinds, dtype=pl.String))
    if not ids:
        return []
    with Lab(pack=pack, embedder=embedder, clock=clock) as lab:
        lab.remember_many(taken, linking="later")
        with bar(progress and len(ids) > _SLOW, len(ids), unit="memory", desc="comparing") as step:
            left = len(ids)
            while not lab.graph.link_waiting(1.0):
                waiting = lab.graph.waiting()
                step(left - waiting)
                left = waiting
        edges = lab.edges.filter(pl.col("relation").is_in(list(_RELATIONS)) & pl.col("target").is_not_null())
    pairs: dict[tuple[int, int], Found] = {}
    for source, target, relation, weight in edges.select("source", "target", "relation", "weight").iter_rows():
        newer, older = max(source, target), min(source, target)
        finding = _RELATIONS[relation]
        first, second = (older, newer) if finding == "outdated" else (newer, older)
        found = (finding, ids[first - 1], ids[second - 1], f"{relation}, closeness {weight:.2f}")
        before = pairs.get((newer, older))
        if before is None or _rank(finding) < _rank(before[0]):
            pairs[newer, older] = found
    return list(pairs.values())


def _rank(finding: str) -> int:
    """Of several relations of one pair, the one that tells most is kept: an update also supersedes."""
    return ("contradiction", "outdated", "duplicate", "similar").index(finding)


def _aged(statements: pl.DataFrame, now: Micros, stale_days: float) -> list[Found]:
    """What has ended, and what nobody has touched for long."""
    rows: list[Found] = []
    columns = statements.select("id", "created", "changed", "accessed", "valid_until")
    for id, created, changed, accessed, until in columns.iter_rows():
        if until is not None and to_micros(until) <= now:
            rows.append(("outdated", id, None, f"it held until {until:%Y-%m-%d}"))
        last = max(to_micros(when) for when in (created, changed, accessed) if when is not None)
        if now - last > stale_days * DAY:
            rows.append(("stale", id, None, f"untouched since {from_micros(last):%Y-%m-%d}"))
    return rows
