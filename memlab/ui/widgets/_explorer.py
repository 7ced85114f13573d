"""Recall explorer: query a lab, see the terms of each score, compare results, record feedback."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import polars as pl
import traitlets

from memlab.errors import InputError
from memlab.kernel.base.arguments import Count, checked
from memlab.kernel.base.clock import When
from memlab.kernel.index import words_of
from memlab.kernel.policies import Pack, load_pack, pack_names
from memlab.kernel.recall import Hits, ScoreExplanation
from memlab.subjects.lab import Lab
from memlab.ui.widgets._widget import MOST_TEXT, Answer, arrow, synced
from memlab.ui.widgets.quality import Quality, ShowsQuality

_MOST = 50
"""The maximum number of results: more than a person compares."""


class RecallExplorer(ShowsQuality, bundle="explorer"):
    """Results of a query as you type, with stacked bars of the terms of each score.

    nDCG@10 and hit@5 on the lab's labelled questions are shown for the active and the chosen pack.

    Typing is not logged. Enter logs the recall as ``lab.recall`` does, perhaps with an exploration
    item, and then results accept feedback. Recalls of another pack or instant are never logged.

    Parameters
    ----------
    lab
        The lab.
    question
        The query.
    limit
        The number of results, at most 50.
    pack
        A pack, its name or its file; None for the active pack.
    at
        The instant at which the lab is queried; None for now.

    Attributes
    ----------
    hits
        The results.
    pinned
        The ids of at most two results that are compared.
    judged
        The outcomes of the logged recall, by the id of the memory as text.

    Examples
    --------
    >>> explorer = memlab.widgets.RecallExplorer(lab, question="tabs or spaces?")          # doctest: +SKIP
    >>> lab.memories.filter(explorer.selection)                                            # doctest: +SKIP
    """

    question = synced("")
    limit = synced(8, min=1, max=_MOST)
    pack = synced("")
    at = synced("")
    pinned = synced([int], maxlen=2)
    judged = synced({})
    hits = traitlets.Instance(Hits, allow_none=True)

    _hits = synced(b"")
    _terms = synced(b"")
    _about = synced({})

    @checked
    def __init__(
        self,
        lab: Lab,
        *,
        question: str = "",
        limit: Count = 8,
        pack: str | Path | Pack | None = None,
        at: When | None = None,
    ) -> None:
        self._packs: dict[str, str | Path | Pack] = {name: name for name in pack_names()}
        if pack is not None:
            name = pack.name if isinstance(pack, Pack) else str(pack)
            self._packs[name] = pack
        self._past: tuple[str, Lab] | None = None
        self._asked: tuple[object, ...] | None = None
        if limit > _MOST:
            raise InputError(f"RecallExplorer shows at most {_MOST} results, not {limit}.")
        super().__init__(
            lab,
            question=question,
            limit=limit,
            pack="" if pack is None else name,
            at="" if at is None else str(at),
        )
        self.observe(lambda _: self._follow(), names=["question", "limit", "pack", "at"])
        self._follow()

    @property
    def selection(self) -> pl.Expr:
        """The pinned results, or all results, as an expression over ``lab.memories``."""
        ids = self.pinned or (list(self.hits.ids) if self.hits is not None else [])
        return pl.col("id").is_in(ids)

    def refresh(self) -> None:
        """Repeat the query; repeat a logged recall only after a purge of a result."""
        logged = self.hits is not None and self.hits.decision is not None
        if not logged or any(self.lab[id].status == "purged" for id in self._current_hits().ids):
            self._recall()

    def fill(self) -> None:
        """Run the last logged query if the widget has no query yet, and score the pack."""
        self.answer_judge()
        if not self.question:
            queries = (
                self.lab.slates().decisions.select("query").tail(1).collect()["query"].drop_nulls()
            )
            self.question = queries[0] if len(queries) else ""

    def page(self) -> str:
        """Return the results as an HTML table."""
        return super().page() if self.hits is None else self.hits._repr_html_()

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_recall(
        self, question: str, limit: Count, pack: str, at: str, *, log: bool = False
    ) -> None:
        """Run the query entered in the form."""
        with self.hold_trait_notifications():
            self._asked = (question, limit, pack, at)  # The observer need not run this query again.
            self.question, self.limit, self.pack, self.at = question, min(limit, _MOST), pack, at
        self._recall(log=log)

    @checked
    def answer_explain(self, memory: int) -> Answer:
        """Return one result's score terms, features and computation."""
        return explained(self._current_hits().explain(memory))

    @checked
    def answer_why(self, a: int, b: int) -> Answer:
        """Return the score terms that rank one result above another."""
        why = self._current_hits().why(a, b)
        partings = [[parting.text, parting.a, parting.b] for parting in why.partings]
        return {
            "verdict": why.verdict,
            "names": list(why.names),
            "partings": partings,
            "terms": why.frame,
        }

    @checked
    def answer_feedback(self, memory: int, outcome: Literal["success", "fail"]) -> None:
        """Record feedback on a result."""
        hits = self._current_hits()
        if hits.decision is None:
            raise InputError(
                "Only a logged recall accepts feedback. Press Enter in the query first."
            )
        self.lab.feedback(hits[hits.ids.index(memory)], outcome)
        self.judged = {**self.judged, str(memory): outcome}

    @checked
    def answer_judge(self) -> None:
        """Score the selected pack and the active pack on the labelled questions."""
        lab = self._lab_then()
        self._judge = Quality(lab)
        live, chosen = lab.policies.pack, self._packs.get(self.pack, self.pack)
        packs = live, load_pack(chosen) if chosen else live
        self._quality = self._judge.describe("recall-score", *packs)

    # -- asking -------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Run the query if its text or settings have changed."""
        request = (self.question, self.limit, self.pack, self.at)
        if request != self._asked:
            self._asked = request
            with self.faults_shown():
                self._recall()

    def _recall(self, *, log: bool = False) -> None:
        lab = self._lab_then()
        live = lab.policies.pack
        hits = None
        if self.question.strip():
            pack = self._packs.get(self.pack, self.pack) if self.pack else None
            hits = lab.recall(self.question, limit=self.limit, pack=pack, log=log, explore=False)
        why = [] if hits is None else [hits.explain(hit) for hit in hits]
        with self.hold_sync():
            self.hits, self.judged = hits, {}
            self.pinned = [] if hits is None else [item for item in self.pinned if item in hits.ids]
            self._hits, self._terms = arrow(_rows(hits)), arrow(_terms(why))
            self._about = {
                "decision": None if hits is None else hits.decision,
                "candidates": 0 if hits is None else len(hits.slate),
                "known": None if hits is None else hits.known,
                "confidence": "" if hits is None else hits.confidence,
                "fewer": hits is not None
                and hits.known is not None
                and hits.known < hits.pack.number("known-floor"),
                "memories": len(lab),
                "pack": live.name if hits is None else hits.pack.name,
                "hash": (live if hits is None else hits.pack).hash[:12],
                "live": live.name,
                "packs": list(self._packs),
                "sums": all(_is_sum(item) for item in why)
                and any(len(item.terms) > 1 for item in why),
                "words": [] if hits is None else self._matched_words(hits),
                "redacted": 0 if hits is None else len(hits.redacted),
                "loggable": not self.pack
                and not self.at
                and not self.lab.io.store.journal.read_only,
            }
            self.fault = ""

    def _lab_then(self) -> Lab:
        """Return the lab as of ``at``, or the current lab; replay an earlier state only once."""
        if self._past is not None and self._past[0] != self.at:
            self._past[1].close()
            self._past = None
        if not self.at:
            return self.lab
        if self._past is None:
            self._past = self.at, self.lab.at(self.at, progress=False)
        return self._past[1]

    def _matched_words(self, hits: Hits) -> list[str]:
        """Return the words in the results that share a stem with the query, for highlighting."""
        with self.lab.io.store.reading() as state:
            stems = {*state.words.stems(self.question)}
            words = {word for hit in hits for word in words_of(hit.text[:MOST_TEXT])}
            return sorted(word for word in words if not stems.isdisjoint(state.words.stems(word)))

    def _current_hits(self) -> Hits:
        if self.hits is None:
            raise InputError("There are no results yet. Type a query first.")
        return self.hits


def explained(explanation: ScoreExplanation) -> dict[str, Any]:
    """Return the terms, features and computation of a score in the browser's format."""
    features = [[name, _format_value(value)] for name, value in explanation.features.items()]
    about = {
        "score": explanation.score,
        "policy": explanation.policy,
        "hash": explanation.hash[:12],
        "features": features,
        "order": explanation.order,
    }
    return {**about, "terms": explanation.frame, "tree": explanation.tree.frame}


def _rows(hits: Hits | None) -> pl.DataFrame:
    values = (
        []
        if hits is None
        else [
            (h.rank, h.id, h.score, h.probe, h.text[:MOST_TEXT], h.kind, h.speaker, h.also)
            for h in hits
        ]
    )
    texts = dict.fromkeys(("text", "kind", "speaker"), pl.String)
    head: dict[str, Any] = {
        "rank": pl.Int32,
        "id": pl.Int32,
        "score": pl.Float64,
        "probe": pl.Boolean,
    }
    rows = [(*row[:-1], len(row[-1])) for row in values]
    return pl.DataFrame(rows, schema={**head, **texts, "also": pl.Int32}, orient="row")


def _terms(why: list[ScoreExplanation]) -> pl.DataFrame:
    texts = dict.fromkeys(("label", "group"), pl.String)
    rows = [(explanation.memory, *row) for explanation in why for row in explanation.frame.rows()]
    return pl.DataFrame(
        rows,
        schema={"id": pl.Int32, "term": pl.String, "value": pl.Float64, **texts},
        orient="row",
    )


def _is_sum(explanation: ScoreExplanation) -> bool:
    """Return whether all terms are finite and add up to the score."""
    total = (
        math.fsum(value for _, value in explanation.terms)
        if all(math.isfinite(v) for _, v in explanation.terms)
        else math.nan
    )
    return bool(explanation.terms) and math.isclose(
        total, explanation.score, rel_tol=1e-6, abs_tol=1e-9
    )


def _format_value(value: float | bool | str | None) -> str:
    return (
        f"{value:.4g}"
        if isinstance(value, float)
        else "null"
        if value is None
        else str(value).lower()
    )
