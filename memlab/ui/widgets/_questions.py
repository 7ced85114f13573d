"""Question list: the labelled questions of a lab, proposed by rules and accepted one by one."""

from __future__ import annotations

import polars as pl

from memlab.kernel.base.arguments import Count, checked
from memlab.kernel.base.display import clip, table
from memlab.kernel.base.printable import count_of
from memlab.subjects.lab import Lab
from memlab.ui.widgets._widget import Answer, Widget, arrow, synced

_MOST = 200
"""Questions that a browser receives, more than a person reads through."""
_MOST_TEXT = 300
"""Characters of a wanted text."""
_FOUND = 8
"""Memories that may answer a typed question, which fit on one screen."""


class QuestionList(Widget, bundle="questions"):
    """The labelled questions of a lab, with the memories that answer them.

    Type a question and mark the memories that answer it. *Propose* adds questions whose answer is
    one stored memory. A proposed question counts in no score until it is accepted.

    Parameters
    ----------
    lab
        The lab.

    Examples
    --------
    >>> memlab.widgets.QuestionList(lab)                                                   # doctest: +SKIP
    """

    _questions = synced(b"")
    _about = synced({})
    _note = synced("")

    @checked
    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self._show()

    def refresh(self) -> None:
        """Read the questions again."""
        self._show()

    def page(self) -> str:
        """Return the accepted questions as an HTML table."""
        rows = self._frame().filter("accepted").select("query", "text").rows()
        return table(
            f"{len(rows):,} questions of {self.where}",
            ("question", "wanted"),
            [(clip(query), clip(text)) for query, text in rows],
        )

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_propose(self, limit: Count = 20) -> None:
        """Propose questions that one stored memory answers, found by rules."""
        proposed = self.lab.questions.propose(limit)
        self._note = (
            f"{count_of(len(proposed), 'question')} proposed. Accept those whose memory is the right answer."
            if len(proposed)
            else "The rules find no further question. Type your own above."
        )
        self._show()

    @checked
    def answer_search(self, words: str) -> Answer:
        """Find memories that may answer the question."""
        hits = self.lab.recall(words, limit=_FOUND, log=False)
        return {
            "hits": [
                {
                    "id": hit.id,
                    "text": clip(hit.text, _MOST_TEXT, words=True),
                    "speaker": hit.speaker,
                }
                for hit in hits
            ]
        }

    @checked
    def answer_add(self, query: str, wants: list[int]) -> None:
        """Add the question, with the marked memories as its answer."""
        self.lab.questions.add(query, wants=wants)
        self._note = f"Question added. {self._counted()}"
        self._show()

    @checked
    def answer_accept(self, ids: list[int]) -> None:
        """Accept questions, so that scores use them."""
        accepted = self.lab.questions.accept(ids)
        self._note = f"{len(accepted)} accepted. {self._counted()}"
        self._show()

    @checked
    def answer_remove(self, ids: list[int]) -> None:
        """Remove questions whose memory is not the right answer."""
        self._note = f"{self.lab.questions.remove(ids)} removed. {self._counted()}"
        self._show()

    # -- reading ------------------------------------------------------------------------------------------------

    def _counted(self) -> str:
        """Return a sentence that states the number of accepted questions."""
        accepted = len(self.lab.questions)
        return (
            f"{count_of(accepted, 'question')} {'counts' if accepted == 1 else 'count'} in scores."
        )

    def _frame(self) -> pl.DataFrame:
        """Return the questions with their first wanted memory's text, proposed questions first."""
        questions = self.lab.questions.frame.with_columns(first=pl.col("wants").list.first())
        texts = (
            self.lab.memories.select("text", "speaker", first="id")
            .join(questions, on="first", how="semi")
            .with_columns(
                pl.col("text").map_elements(
                    lambda text: clip(text, _MOST_TEXT, words=True), return_dtype=pl.String
                )
            )
        )
        return questions.join(texts, on="first", how="left", maintain_order="left").sort(
            "accepted", "id"
        )

    def _show(self) -> None:
        frame = self._frame()
        page = frame.head(_MOST).select(
            pl.col("id").cast(pl.Int32),
            "query",
            "text",
            "speaker",
            "source",
            "accepted",
            pl.col("first").cast(pl.Int32),
            pl.col("wants").list.len().cast(pl.Int32).alias("count"),
        )
        with self.hold_sync():
            self._questions = arrow(page)
            self._about = {
                "all": len(frame),
                "accepted": int(frame["accepted"].sum()),
                "memories": len(self.lab),
                "most": _MOST,
            }
            self.fault = ""
