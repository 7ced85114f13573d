"""``lab.agents.recalls``: queries, the memories that they showed, and whether these helped."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.kernel.base.clock import When, to_micros
from memlab.kernel.slates import Slates
from memlab.subjects.reading.sentences import BYTES_A_TOKEN

# The columns of a shown memory in a log, as in its tables.
_IDS = ("decision", "memory_id")
_SUCCESS = 0.5
"""The minimum mean reward of a memory that helped, as in ``memlab.failures``."""


def read_recalls(
    journal: Any,
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
    verdicts = [
        (event.body["decision"], id, reward)
        for event in verified
        for name, reward in (("verified", 1.0), ("rejected", 0.0))
        for id in event.body[name]
    ]
    feedback = slates.feedback.select(*_IDS, "reward")
    rewards = pl.concat(
        [feedback, pl.LazyFrame(verdicts, schema=feedback.collect_schema(), orient="row")]
    )
    own = memories.lazy().select(
        "text", "status", memory_id="id", superseded_by=pl.col("superseded_by").cast(pl.Int64)
    )
    exposures = slates.exposures.select(*_IDS, "position", "probe")
    if scores:
        exposures = exposures.join(slates.candidates.select(*_IDS, "score"), on=_IDS, how="left")
    # A join without ``maintain_order`` may return rows in any order.
    items = (
        exposures.join(rewards.group_by(_IDS).agg(pl.col("reward").mean()), on=_IDS, how="left")
        .join(own, on="memory_id", how="left")
        .sort("decision", "position")
        .collect()
    )
    decisions = slates.decisions.select(
        "decision",
        "at",
        "query",
        pl.col("filters").str.json_path_match("$.viewer").alias("agent"),
        *("session", "project", "pack", "known"),
    )
    if since is not None:
        decisions = decisions.filter(pl.col("at").dt.epoch("us") >= to_micros(since))
    memory, helped = pl.col("memory_id"), pl.col("reward") >= _SUCCESS
    size = pl.col("text").str.len_bytes()
    by_recall = (
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
    gaps = [event.body["decision"] for event in verified if "gap" in event.body]
    contexts = [
        (event.body["decision"], event.body["tokens"])
        for event in journal.events(kinds=("inject",))
        if "tokens" in event.body
    ]
    written = pl.LazyFrame(
        contexts, schema={"decision": pl.Int64, "written": pl.Int64}, orient="row"
    ).unique("decision")
    lists = ("shown", "helped", "failed", "stale")
    recalls = (
        decisions.join(by_recall, on="decision", how="left")
        .join(written, on="decision", how="left")
        .with_columns(pl.col(name).fill_null([]) for name in lists)
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
