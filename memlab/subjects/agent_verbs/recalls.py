"""``lab.agents.recalls``: queries, the memories that they showed, and whether these helped."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from memlab.kernel.base.clock import When, to_micros
from memlab.kernel.journal import Event, Journal, JournalView
from memlab.kernel.slates import Slates
from memlab.subjects.reading.sentences import BYTES_A_TOKEN

# The columns of a shown memory in a log, as in its tables.
_IDS = ("decision", "memory_id")
_LISTS = ("shown", "helped", "failed", "stale")
_SUCCESS = 0.5
"""The minimum mean reward of a memory that helped, as in ``memlab.failures``."""


def read_recalls(
    journal: Journal | JournalView,
    memories: pl.DataFrame,
    slates: Slates,
    *,
    since: When | None = None,
    scores: bool = False,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the logged recalls, oldest first, and the memories in their results.

    See ``LabAgents.recalls``. A shown memory has the mean of its feedback and of verdicts of
    verifiers in ``reward``, null without any, and if wanted its score.
    """
    verified = list(journal.events(kinds=("verify",)))
    items = _read_items(slates, memories, _read_rewards(slates, verified), scores=scores)
    decisions = slates.decisions.select(
        "decision",
        "at",
        "query",
        pl.col("filters").str.json_path_match("$.viewer").alias("agent"),
        *("session", "project", "pack", "known"),
    )
    if since is not None:
        decisions = decisions.filter(pl.col("at").dt.epoch("us") >= to_micros(since))
    gaps = [event.body["decision"] for event in verified if "gap" in event.body]
    # A recall without items has no row among the items.
    recalls = (
        decisions.join(_group_items(items), on="decision", how="left")
        .join(_read_sizes(journal), on="decision", how="left")
        .with_columns(pl.col(_LISTS).fill_null([]))
        .with_columns(
            tokens=pl.coalesce("written", "tokens", pl.lit(0)),
            outcome=pl.when(pl.col("helped").list.len() > 0)
            .then(pl.lit("helped"))
            .when((pl.col("shown").list.len() == 0) | pl.col("decision").is_in(gaps))
            .then(pl.lit("nothing"))
            .when(pl.col("failed").list.len() > 0)
            .then(pl.lit("failed"))
            .otherwise(pl.lit("unrated")),
        )
        .drop("written")
        .sort("decision")
        .collect()
    )
    return recalls, items


def _read_rewards(slates: Slates, verified: Iterable[Event]) -> pl.LazyFrame:
    """Return the mean reward of each shown memory, by its feedback and by the verdicts of verifiers."""
    verdicts = [
        (event.body["decision"], id, reward)
        for event in verified
        for name, reward in (("verified", 1.0), ("rejected", 0.0))
        for id in event.body[name]
    ]
    feedback = slates.feedback.select(*_IDS, "reward")
    judged = pl.LazyFrame(verdicts, schema=feedback.collect_schema(), orient="row")
    return pl.concat([feedback, judged]).group_by(_IDS).agg(pl.col("reward").mean())


def _read_items(
    slates: Slates, memories: pl.DataFrame, rewards: pl.LazyFrame, *, scores: bool
) -> pl.DataFrame:
    """Return the shown memories by recall and position, with their rewards and present fields."""
    own = memories.lazy().select(
        "text", "status", memory_id="id", superseded_by=pl.col("superseded_by").cast(pl.Int64)
    )
    exposures = slates.exposures.select(*_IDS, "position", "probe")
    if scores:
        exposures = exposures.join(slates.candidates.select(*_IDS, "score"), on=_IDS, how="left")
    # A join without ``maintain_order`` may return rows in any order.
    return (
        exposures.join(rewards, on=_IDS, how="left")
        .join(own, on="memory_id", how="left")
        .sort("decision", "position")
        .collect()
    )


def _group_items(items: pl.DataFrame) -> pl.LazyFrame:
    """Return the ids of each recall's items by what became of them, and the tokens of their texts."""
    memory, helped = pl.col("memory_id"), pl.col("reward") >= _SUCCESS
    size = pl.col("text").str.len_bytes()
    return (
        items.lazy()
        .group_by("decision")
        .agg(
            shown=memory,
            helped=memory.filter(helped),
            failed=memory.filter(~helped),
            stale=memory.filter(pl.col("superseded_by").is_not_null()),
            tokens=((size + BYTES_A_TOKEN - 1) // BYTES_A_TOKEN).sum().cast(pl.Int64),
        )
    )


def _read_sizes(journal: Journal | JournalView) -> pl.LazyFrame:
    """Return the number of tokens that each prompt context took, by its recall."""
    sizes = [
        (event.body["decision"], event.body["tokens"])
        for event in journal.events(kinds=("inject",))
        if "tokens" in event.body
    ]
    schema = dict.fromkeys(("decision", "written"), pl.Int64)
    return pl.LazyFrame(sizes, schema=schema, orient="row").unique("decision")
