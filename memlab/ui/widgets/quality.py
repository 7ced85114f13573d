"""The retrieval quality of two policies on a lab's labelled questions, recomputed at each draft.

A policy that only orders candidates is scored on kept pools (``Recalls``). Other policies run the
questions again, on a smaller sample. The values equal the values of ``lab.score`` on the same questions.
"""

from __future__ import annotations

from typing import Any

from memlab.errors import UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.policies import Pack, same_candidates
from memlab.subjects.lab import Lab
from memlab.subjects.questions.questions import read_asked
from memlab.subjects.questions.scoring import (
    ACTIVE,
    NEW,
    Scores,
    build_scores,
    describe_loss,
    explain_change,
    note_on_feedback,
    sample_questions,
)
from memlab.ui.widgets._widget import Answer, Widget, synced
from memlab.ui.widgets.ranks import DECIDES_RANKS, Recalls

__all__ = ["RECALLED", "Quality", "ShowsQuality", "describe_loss"]

_METRICS = ("hit@5", "ndcg@10")
"""The shown metrics. The first one decides which questions are gained and lost."""
_DEPTH = 10
"""Ranks that the metrics read."""
_SAMPLE = 100
"""Questions that are scored on kept pools: at 100 candidates each within 50 ms."""
RECALLED = 20
"""Questions that run again at each draft that changes the pool, at some 3 ms each."""
_SIZES = 2_000_000
"""Memories times questions that a preparation reads, so that a lab of 100,000 memories takes about a second."""
_LISTED = 20
"""Gained or lost questions that are listed, so that messages stay small."""


class Quality:
    """The quality of two packs on the accepted questions of a lab.

    Kept recalls are dropped when the lab or its active pack changes.

    Parameters
    ----------
    lab
        The lab.
    project
        The project of the questions. Default: the questions of all projects.
    viewer
        The viewer who sees the questions. Questions without a viewer are asked for this viewer.
    recalled
        The maximum number of questions that run again for a pack with other candidates.
    """

    def __init__(
        self,
        lab: Lab,
        *,
        project: str | None = None,
        viewer: str | None = None,
        recalled: int = _SAMPLE,
    ) -> None:
        self._lab, self._project, self._viewer, self._recalled = lab, project, viewer, recalled
        self._seen_lab = lab if viewer is None else lab.at(viewer=viewer)
        self._recalls = Recalls(lab, _DEPTH)
        self._compared: tuple[Pack, Pack] | None = None
        self._rows: list[dict[str, Any]] = []

    @property
    def queries(self) -> list[str]:
        """The distinct queries of the questions."""
        self._follow()
        return list(dict.fromkeys(row["query"] for row in self._rows))

    def labelled(self, query: str) -> dict[str, Any]:
        """Return the first labelled question with this query, or {}."""
        self._follow()
        return next((row for row in self._rows if row["query"] == query), {})

    def score_drafts(self, before: Pack, after: Pack) -> Scores | None:
        """Score two packs on the lab's questions; return None if the lab has no questions."""
        self._follow()
        if not self._rows:
            return None
        limit = _SAMPLE if same_candidates(before, after) else self._recalled
        limit = max(min(limit, _SIZES // (1 + len(self._lab))), RECALLED)
        rows = sample_questions(self._rows, limit)
        rankings = {
            name: [own.results[:_DEPTH] for own in self._recalls.results(pack, rows)]
            for name, pack in ((ACTIVE, before), (NEW, after))
        }
        return build_scores(rankings, rows, _METRICS, pack=before.name, total=len(self._rows))

    def describe(self, slot: str, before: Pack, after: Pack) -> dict[str, Any]:
        """Return a comparison of two packs, whose questions can then be explained.

        It is a note on feedback if there is no question, and empty if the slot decides no rank.
        """
        if slot not in DECIDES_RANKS:
            return {}
        self._compared = before, after
        if (summary := self.summarize(before, after)) is not None:
            return summary
        if slot not in self._notes:
            self._notes[slot] = note_on_feedback(self._lab, slot)
        return {"note": self._notes[slot]}

    def summarize(self, before: Pack, after: Pack) -> dict[str, Any] | None:
        """Return the result of ``score_drafts`` for a browser; None if the lab has no questions."""
        scores = self.score_drafts(before, after)
        if scores is None:
            return None
        metrics = scores.frame.filter(policy=NEW).drop("policy", "low", "high")
        changed = {
            name: rows.head(_LISTED).select("id", "query", "before", "after").to_dicts()
            for name, rows in (("gained", scores.gained(NEW)), ("lost", scores.lost(NEW)))
        }
        return {
            "metrics": metrics.rename(lambda name: name.removeprefix("difference_")).to_dicts(),
            "count": scores.ranks.height,
            "total": scores.total,
            "cut": scores.cut,
            "same": before.hash == after.hash,
            **changed,
        }

    def explain_question(self, question: int) -> list[str]:
        """Return sentences that explain the rank of a question's memory under the two packs."""
        if self._compared is None:
            raise UnknownName("question", question, [])
        return explain_change(self._seen_lab, question, *self._compared, viewer=self._viewer)

    def _follow(self) -> None:
        """Read the questions again if the lab or the active pack has changed."""
        if not self._recalls.follow():
            return
        self._notes: dict[str, str] = {}
        self._rows = [
            {"viewer": self._viewer, **row}
            for row in read_asked(self._seen_lab.questions, None)
            if self._project in (None, row.get("project"))
        ]


class ShowsQuality(Widget):
    """A widget that shows the quality of two policies next to their ranks."""

    _quality = synced({})
    _judge: Quality

    @checked
    def answer_moved(self, question: int) -> Answer:
        """Explain why the rank of a question's memory changed."""
        return {"sentences": self._judge.explain_question(question)}
