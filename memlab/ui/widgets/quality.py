"""The retrieval quality of two policies on a lab's labelled questions, recomputed at each draft.

Each question runs once, and its pool is kept. A policy that only orders candidates is scored on the
kept pools, in one pass over all questions. Other policies run the questions again, on a smaller
sample. The values equal those of ``lab.score`` on the same questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.policies import Pack, same_candidates
from memlab.kernel.recall import diversifies, rank_by_score
from memlab.subjects.lab import Lab
from memlab.subjects.questions.questions import read_asked
from memlab.subjects.questions.scoring import (
    ACTIVE,
    NEW,
    Scores,
    ask,
    build_scores,
    describe_loss,
    explain_change,
    note_on_feedback,
    sample_questions,
)
from memlab.ui.widgets._widget import Widget, synced
from memlab.ui.widgets.ranks import DECIDES_RANKS

__all__ = ["NEW", "Quality", "ShowsQuality", "describe_loss"]

_METRICS = ("hit@5", "ndcg@10")
"""The shown metrics. The first one decides which questions are gained and lost."""
_DEPTH = 10
"""Ranks that the metrics read."""
_SAMPLE = 100
"""Questions that are scored on kept pools: at 100 candidates each within 50 ms."""
_RECALLED = 20
"""Questions that run again at each draft that changes the pool, at some 3 ms each."""
_SIZES = 2_000_000
"""Memories times questions that a preparation reads, so that a lab of 100,000 memories takes about a second."""
_KEPT_POOLS = 3
"""Packs whose pools are kept: the active one, and drafts that read other features."""
_KEPT_RANKINGS = 8
"""Packs whose rankings are kept: those of the last few drafts."""
_LISTED = 20
"""Gained or lost questions that are listed, so that messages stay small."""


class _Pools(NamedTuple):
    """The pools of questions under a pack: their features, and the ids of each question."""

    pack: Pack
    questions: int
    frame: pl.DataFrame
    ids: Sequence[NDArray[np.int64]]

    def rank(self, pack: Pack) -> list[list[int]]:
        """Return the ids that a pack with the same pools shows for each question."""
        values = pack.policies["recall-score"].columns(self.frame, by="question")
        scores = values.cast(pl.Float64).to_numpy()
        scores = np.where(np.isnan(scores), -np.inf, scores)
        rankings, start = [], 0
        for ids in self.ids:
            ranking = rank_by_score(scores[start : start + len(ids)])
            rankings.append(ids[ranking.order[: min(_DEPTH, ranking.showable)]].tolist())
            start += len(ids)
        return rankings


class Quality:
    """The quality of two packs on the accepted questions of a lab.

    Kept pools are dropped when the lab or its active pack changes.

    Parameters
    ----------
    lab
        The lab.
    project
        The project of the questions. Default: those of all projects.
    viewer
        The viewer who sees the questions. Questions without a viewer are asked for this one.
    """

    def __init__(self, lab: Lab, *, project: str | None = None, viewer: str | None = None) -> None:
        self._lab, self._project, self._viewer = lab, project, viewer
        self._seen_lab = lab if viewer is None else lab.at(viewer=viewer)
        self._seen: tuple[str, int] | None = None
        self._compared: tuple[Pack, Pack] | None = None
        self._note = ""

    @property
    def queries(self) -> list[str]:
        """The queries of the questions, each once."""
        self._follow()
        return list(self._labels)[::-1]

    def labelled(self, query: str) -> dict[str, Any]:
        """Return the first question with a query, or {}."""
        self._follow()
        labels: dict[str, dict[str, Any]] = self._labels
        return labels.get(query, {})

    def score(self, before: Pack, after: Pack) -> Scores | None:
        """Score two packs on the lab's questions; None if there is no question."""
        self._follow()
        if not self._rows:
            return None
        limit = _SAMPLE if same_candidates(before, after) else _RECALLED
        limit = max(min(limit, _SIZES // (1 + len(self._lab))), _RECALLED)
        rows = sample_questions(self._rows, limit)
        rankings = {ACTIVE: self._rank(before, rows), NEW: self._rank(after, rows)}
        return build_scores(rankings, rows, _METRICS, pack=before.name, total=len(self._rows))

    def describe(self, slot: str, before: Pack, after: Pack) -> dict[str, Any]:
        """Return the summary of two packs, whose questions can then be explained.

        It is a note on feedback if there is no question, and empty if the slot decides no rank.
        """
        if slot not in DECIDES_RANKS:
            return {}
        self._compared = before, after
        if (summary := self.summarize(before, after)) is not None:
            return summary
        if not self._note:
            self._note = note_on_feedback(self._lab, slot)
        return {"note": self._note}

    def summarize(self, before: Pack, after: Pack) -> dict[str, Any] | None:
        """Return what ``score`` finds, for a browser; None if there is no question."""
        scores = self.score(before, after)
        if scores is None:
            return None
        pairs = [scores.frame.filter(policy=name).to_dicts() for name in (ACTIVE, NEW)]
        changed = {
            name: rows.head(_LISTED).select("id", "query", "before", "after").to_dicts()
            for name, rows in (("gained", scores.gained(NEW)), ("lost", scores.lost(NEW)))
        }
        return {
            "metrics": [
                {
                    "name": new["metric"],
                    "before": old["value"],
                    "after": new["value"],
                    "low": new["difference_low"],
                    "high": new["difference_high"],
                }
                for old, new in zip(*pairs, strict=True)
            ],
            "count": scores.ranks.height,
            "total": scores.total,
            "unit": scores.clustered,
            "cut": scores.cut,
            "counts": [pairs[1][0]["gained"], pairs[1][0]["lost"]],
            "same": before.hash == after.hash,
            **changed,
        }

    def explain(self, question: int) -> list[str]:
        """Return sentences on the rank of a question's wanted memory under the two packs."""
        if self._compared is None:
            raise UnknownName("question", question, [])
        return explain_change(self._seen_lab, question, *self._compared, viewer=self._viewer)

    def _follow(self) -> None:
        """Read the questions, and drop the pools if the lab or the active pack has changed."""
        store = self._lab.io.store
        state = self._lab.policies.pack.hash, store.state.seq
        if state == self._seen:
            return
        self._seen, self._now, self._note = state, store.clock(), ""
        self._pools: list[_Pools] = []
        self._rankings: dict[tuple[str, int], list[list[int]]] = {}
        self._rows = [
            {"viewer": self._viewer, **row}
            for row in read_asked(self._seen_lab.questions, None)
            if self._project in (None, row.get("project"))
        ]
        self._labels = {row["query"]: row for row in reversed(self._rows)}

    def _rank(self, pack: Pack, rows: list[dict[str, Any]]) -> list[list[int]]:
        """Return the ids that a pack shows for each question, from kept pools if possible."""
        key = pack.hash, len(rows)
        # The pack before the change is used each time, so that it stays while drafts are dropped.
        rankings = self._rankings.pop(key, None)
        if rankings is None:
            rankings = self._rank_by_pools(pack, rows) or self._ask(pack, rows)
        self._rankings[key] = rankings
        if len(self._rankings) > _KEPT_RANKINGS:
            del self._rankings[next(iter(self._rankings))]
        return rankings

    def _rank_by_pools(self, pack: Pack, rows: list[dict[str, Any]]) -> list[list[int]] | None:
        """Return the ids that a pack shows, or None if its ranking depends on more than kept pools."""
        # A pack that estimates ``known`` may show fewer results, and a diverse order reads vectors.
        if pack.tells_known or diversifies(pack):
            return None
        reads = set(pack.policies["recall-score"].inputs)
        for pools in self._pools:
            if (
                pools.questions == len(rows)
                and reads <= set(pools.frame.columns)
                and same_candidates(pools.pack, pack)
            ):
                return pools.rank(pack)
        return None

    def _ask(self, pack: Pack, rows: list[dict[str, Any]]) -> list[list[int]]:
        """Run the questions under a pack, and keep their pools."""
        results = [ask(self._lab, pack, row, _DEPTH, self._now) for row in rows]
        frame = pl.concat(
            hits.slate.frame.with_columns(question=pl.lit(index, pl.Int32))
            for index, hits in enumerate(results)
        )
        own = _Pools(pack, len(rows), frame, [hits.slate.ids for hits in results])
        self._pools = [own, *self._pools][:_KEPT_POOLS]
        return [list(hits.ids) for hits in results]


class ShowsQuality(Widget):
    """A widget that shows the quality of two policies next to their ranks."""

    _quality = synced({})
    _judge: Quality

    @checked
    def answer_moved(self, question: int) -> dict[str, Any]:
        """Explain the ranks of a question."""
        return {"sentences": self._judge.explain(question)}
