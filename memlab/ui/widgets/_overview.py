"""Overview: the recalls of a lab, whether they helped, and the questions it misses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import clip
from memlab.kernel.slates import TABLES
from memlab.science.evaluation import PLACES, failures
from memlab.subjects.lab import Lab
from memlab.subjects.questions.questions import read_asked
from memlab.subjects.questions.scoring import ACTIVE, recall_question, score
from memlab.ui.widgets._recalls import OUTCOMES, RecallLog
from memlab.ui.widgets._widget import Answer, WorkingWidget, arrow, synced

_DAYS = 14
"""Days of the chart, two weeks."""
_LISTED = 6
"""Rows of each list, as many as fit next to the others."""
_ASKED = 200
"""The maximum number of questions that are scored, which takes a few seconds."""
_RECENT = 1000
"""Recalls whose wanted memories are traced, which takes about a second."""
_UNLIKELY = 0.2
"""The probability of an answer below which a recall without feedback counts as a gap, the default of ``known-floor``."""
_DEPTH = 10
"""Ranks of the metric of questions, as in published results."""


class Overview(RecallLog, WorkingWidget, bundle="overview"):
    """Recalls day by day: their results, the feedback on them, and missing memories.

    Gaps are queries that nothing answered. Stale answers are shown memories that were superseded.
    Misses are labelled questions without a wanted memory in the top results. A click on a recall
    opens it as in ``RecallLog``.

    Parameters
    ----------
    lab
        The lab.
    viewer
        A person or agent, whose recalls alone are shown. Default: all recalls.

    Attributes
    ----------
    misses
        The labelled questions without a wanted memory in the top results; None before they are scored.

    Examples
    --------
    >>> memlab.widgets.Overview(lab)                                                       # doctest: +SKIP
    """

    _days = synced(b"")
    _sums = synced({})
    _gaps = synced(b"")
    _stale = synced(b"")
    _answered = synced({})
    _card = synced([])
    _offer = synced({})

    @checked
    def __init__(self, lab: Lab, *, viewer: str | None = None) -> None:
        self.misses: pl.DataFrame | None = None
        super().__init__(lab, viewer=viewer)

    @property
    def days(self) -> pl.DataFrame:
        """The counts of recalls by outcome, for each of the last 14 days.

        The last day is the day of the latest recall. The columns are ``day``, ``recalls``, ``stale``,
        ``tokens``, and the outcomes.
        """
        counts = [(pl.col("outcome") == name).sum().cast(pl.Int32).alias(name) for name in OUTCOMES]
        days = (
            self.recalls.lazy()
            .group_by(day=pl.col("at").dt.date())
            .agg(
                pl.len().cast(pl.Int32).alias("recalls"),
                (pl.col("stale").list.len() > 0).sum().cast(pl.Int32).alias("stale"),
                pl.col("tokens").sum(),
                *counts,
            )
            .sort("day")
            .collect()
        )
        if not days.is_empty():
            days = days.upsample("day", every="1d").with_columns(pl.exclude("day").fill_null(0))
        return days.tail(_DAYS)

    def fill(self) -> None:
        """Open the latest recall, and score the questions."""
        super().fill()
        self.answer_begin()
        self.finish()

    @property
    def cell(self) -> str:
        """Python code that opens this lab in a notebook."""
        path = self.lab.io.path
        where = "" if path is None else repr(str(path))
        return f"import memlab\n\nlab = memlab.open({where})\nmemlab.widgets.Overview(lab)\n"

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_begin(self) -> None:
        """Score the questions and trace lost memories if the lab has changed since."""
        pack, labels = self.lab.policies.pack.hash, self.lab.questions.frame
        key = pack, len(self.lab), len(self.recalls), tuple(labels.filter("accepted")["id"])
        self.work("score the questions", key, self._measure, self._measured)

    @checked
    def answer_miss(self, question: int) -> Answer:
        """Explain in words why no wanted memory of a question is in the top results."""
        missed = [] if self.misses is None else self.misses["id"].to_list()
        rows = [row for row in read_asked(self.lab.questions, None) if row["question"] == question]
        if question not in missed or not rows:
            raise InputError(
                f"Question {question} is not in the list of missed questions. Score the questions again."
            )
        text, above = self._explain(rows[0])
        return {"text": text, "above": above}

    @checked
    def answer_cell(self) -> Answer:
        """Return Python code that repeats this view in a notebook."""
        return {"cell": self.cell}

    # -- counting -----------------------------------------------------------------------------------------------

    def _show(self) -> None:
        super()._show()
        lab, head = self.lab, self.lab.io.store.journal.head
        if self._sums.get("head") == head:
            return  # Another page of the same log.
        recalls, days = self.recalls, self.days
        outcomes = dict(recalls["outcome"].value_counts().iter_rows())
        with self.hold_sync():
            self._days = arrow(
                days.with_columns(pl.col("day").dt.to_string(), pl.col("tokens").cast(pl.Float64))
            )
            self._gaps, self._stale = arrow(_gaps(recalls)), arrow(_stale(recalls, lab.memories))
            self._sums = {
                "memories": len(lab),
                "superseded": int((lab.memories["status"] == "superseded").sum()),
                "recalls": len(recalls),
                "outcomes": {name: outcomes.get(name, 0) for name in OUTCOMES},
                "stale": int((recalls["stale"].list.len() > 0).sum()),
                "tokens": int(recalls["tokens"].sum()),
                "questions": len(lab.questions),
                "where": self.where,
                "pack": lab.policies.pack.hash,
                "head": head,
            }

    def _measure(self) -> dict[str, Any]:
        """Score the questions, if any, and count the memories that recent recalls lost at each stage."""
        lab = self.lab
        result: dict[str, Any] = {"lost": self._lost()}
        if len(lab.questions):
            metrics = (f"ndcg@{_DEPTH}", "hit@5")
            result["scores"] = score(lab, (), None, metrics, _ASKED)
        return result

    def _measured(self, result: dict[str, Any]) -> None:
        quality: dict[str, Any] = {"lost": result["lost"]}
        if (scores := result.get("scores")) is not None:
            rank = pl.col(ACTIVE)
            self.misses = scores.ranks.filter(rank.is_null() | (rank > scores.cut))
            texts = dict(self.lab.memories.select("id", "text").iter_rows())
            rows = [
                {
                    "id": row["id"],
                    "query": row["query"],
                    "rank": row[ACTIVE],
                    "wanted": clip(texts.get(row["wants"][0]), 300, words=True),
                }
                for row in self.misses.to_dicts()
            ]
            value, low, high = scores.frame.select("value", "low", "high").row(0)
            quality |= {
                "value": value,
                "interval": None if low is None else [low, high],
                "metric": f"nDCG@{_DEPTH}",
                "scored": scores.ranks.height,
                "cut": scores.cut,
                "misses": rows,
                "pack": scores.pack,
            }
        self._answered = quality

    def _lost(self) -> list[list[Any]]:
        """Count the wanted memories lost at each stage of the latest recalls; [] if no wanted memory is known."""
        recent = self.recalls.tail(_RECENT)
        if recent.is_empty():
            return []
        slates = self.lab.slates()
        later = pl.col("decision") >= recent["decision"][0]
        slates = replace(slates, **{name: getattr(slates, name).filter(later) for name in TABLES})
        labels = None
        if (
            self.lab.questions.frame.filter("accepted")["query"]
            .is_in(recent["query"].implode())
            .any()
        ):
            labels = self.lab.questions.label_recalls(slates)
        elif not recent["helped"].list.len().sum():
            return []  # no memory is known to be wanted
        rows = failures(slates, labels, examples=0).frame.select("place", "count", "meaning")
        return [list(row) for row in rows.rows()]

    def _explain(self, row: dict[str, Any]) -> tuple[str, str]:
        """Return why a question misses, and the text of the result ranked first instead."""
        lab, pack = self.lab, self.lab.policies.pack
        hits = recall_question(lab, pack, row, pack.count("pool"), lab.io.store.clock())
        # The pool, because fewer results are shown if the pack finds an answer unlikely.
        ranks = dict(zip(hits.slate.ids.tolist(), hits.slate.ranking.tolist(), strict=True))
        wanted = min(
            (id for id in row["wants"] if id in ranks), key=ranks.__getitem__, default=None
        )
        if wanted is None:
            names = ", ".join(map(str, row["wants"]))
            return (
                f"Memory {names} is none of {len(ranks)} candidates: {PLACES['not in the pool']}. No weight of the "
                "score can raise it. Store it with words that the query shares."
            ), ""
        first = min(ranks, key=ranks.__getitem__)
        if first == wanted:
            return f"Memory {wanted} is the first result now.", ""
        sentence = hits.why(first, wanted).sentence
        return f"{sentence[0].upper()}{sentence[1:]}", clip(lab[first].text, 200)


def _gaps(recalls: pl.DataFrame) -> pl.DataFrame:
    """Return unanswered queries with their counts, the latest first."""
    unlikely = (pl.col("outcome") == "unrated") & (pl.col("known") < _UNLIKELY)
    return (
        recalls.filter((pl.col("outcome") == "nothing") | unlikely, pl.col("query").is_not_null())
        .group_by("query")
        .agg(
            pl.col("decision").max().cast(pl.Int32),
            pl.len().cast(pl.Int32).alias("count"),
            (pl.col("outcome") == "nothing").any().alias("sure"),
        )
        .sort("decision", descending=True)
        .head(_LISTED)
    )


def _stale(recalls: pl.DataFrame, memories: pl.DataFrame) -> pl.DataFrame:
    """Return the superseded memories that recalls showed, and their successors, latest first."""
    own = memories.select(
        memory="id",
        text=pl.col("text").str.slice(0, 300),
        by=pl.col("superseded_by").cast(pl.Int64),
    )
    successors = memories.select(
        by="id", successor=pl.col("text").str.slice(0, 300), since="created"
    )
    return (
        recalls.explode("stale")
        .drop_nulls("stale")
        .group_by(memory="stale")
        .agg(pl.col("decision", "at").max(), pl.len().alias("count"))
        .join(own, on="memory")
        .join(successors, on="by", how="left")
        .sort("decision", descending=True)
        .head(_LISTED)
        .select(
            pl.col("memory", "decision", "by", "count").cast(pl.Int32),
            *("text", "successor"),
            (pl.col("since") <= pl.col("at")).alias("before"),
        )
    )
