"""Recall explorer: ask, see which terms make each score, compare two hits, say which helped."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import polars as pl
import traitlets

from memlab.errors import InputError
from memlab.kernel.base.arguments import Count, checked
from memlab.kernel.base.clock import When
from memlab.kernel.policies import Pack, pack_names
from memlab.kernel.recall import Hits, ScoreExplanation
from memlab.subjects.lab import Lab
from memlab.ui.widgets._widget import Widget, arrow, synced

__all__ = ["RecallExplorer", "explained"]

_MOST = 50
"""Hits that are shown at most: more than anybody compares."""


class RecallExplorer(Widget, bundle="explorer"):
    """Ask a lab: hits as you type, with stacked bars of the terms that sum to each score.

    ``question``, ``limit`` (at most 50), ``pack`` and ``at`` (an instant; empty: now) can be set from Python as well.
    What is typed is asked without a trace; Enter asks once more and logs it, as ``lab.recall`` does. Then there may be
    a probe, and the thumbs are feedback. Another pack, or another instant, is never logged.

    ``hits`` are those that are shown, ``pinned`` the ids of up to two that are compared; ``selection`` is a Polars
    expression over ``lab.memories``: what is pinned, or else what is shown.

    >>> explorer = memlab.widgets.RecallExplorer(lab, question="tabs or spaces?")          # doctest: +SKIP
    >>> lab.memories.filter(explorer.selection)                                            # doctest: +SKIP
    """

    question = synced("")
    limit = synced(8, min=1, max=_MOST)
    pack = synced("")
    at = synced("")
    pinned = synced([int], maxlen=2)
    judged = synced({})
    """Outcomes given to the recall that is shown, by the memory's id as text."""
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
            raise InputError(f"RecallExplorer shows at most {_MOST} hits, not {limit}.")
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
        """What is pinned, or else what is shown: an expression over the columns of ``lab.memories``."""
        ids = self.pinned or (list(self.hits.ids) if self.hits is not None else [])
        return pl.col("id").is_in(ids)

    def refresh(self) -> None:
        """Ask again; a recall that was logged stays as it was shown, unless something of it was purged."""
        logged = self.hits is not None and self.hits.decision is not None
        if not logged or any(self.lab[id].status == "purged" for id in self._shown().ids):
            self._recall()

    def fill(self) -> None:
        """Ask the last question that was logged."""
        if not self.question:
            asked = (
                self.lab.slates().decisions.select("query").tail(1).collect()["query"].drop_nulls()
            )
            self.question = asked[0] if len(asked) else ""

    def page(self) -> str:
        """The hits as a table."""
        return super().page() if self.hits is None else self.hits._repr_html_()

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_recall(
        self, question: str, limit: Count, pack: str, at: str, *, log: bool = False
    ) -> None:
        """Ask what stands in the form; what it says of hits arrives as traits."""
        with self.hold_trait_notifications():
            self._asked = (question, limit, pack, at)  # observers need not ask again
            self.question, self.limit, self.pack, self.at = question, min(limit, _MOST), pack, at
        self._recall(log=log)

    @checked
    def answer_explain(self, memory: int) -> dict[str, Any]:
        """Terms, features and the whole computation of one hit."""
        return explained(self._shown().explain(memory))

    @checked
    def answer_why(self, a: int, b: int) -> dict[str, Any]:
        """Why one of two hits stands above the other."""
        why = self._shown().why(a, b)
        partings = [[one.text, one.a, one.b] for one in why.partings]
        return {
            "verdict": why.verdict,
            "names": list(why.names),
            "partings": partings,
            "terms": why.frame,
        }

    @checked
    def answer_feedback(self, memory: int, outcome: Literal["success", "fail"]) -> None:
        """Log how a hit did."""
        hits = self._shown()
        if hits.decision is None:
            raise InputError(
                "Feedback belongs to a logged recall: press Enter in the question first."
            )
        self.lab.feedback(hits[hits.ids.index(memory)], outcome)
        self.judged = {**self.judged, str(memory): outcome}

    # -- asking -------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Ask where something was set that was not asked yet."""
        asked = (self.question, self.limit, self.pack, self.at)
        if asked != self._asked:
            self._asked = asked
            with self.faults_shown():
                self._recall()

    def _recall(self, *, log: bool = False) -> None:
        lab = self._lab_then()
        live = lab.policies.pack
        hits = None
        if self.question.strip():
            pack = self._packs.get(self.pack, self.pack) if self.pack else None
            hits = lab.recall(self.question, limit=self.limit, pack=pack, log=log)
        why = [] if hits is None else [hits.explain(hit) for hit in hits]
        with self.hold_sync():
            self.hits, self.judged = hits, {}
            self.pinned = [] if hits is None else [one for one in self.pinned if one in hits.ids]
            self._hits, self._terms = arrow(_rows(hits)), arrow(_terms(why))
            self._about = {
                "decision": None if hits is None else hits.decision,
                "candidates": 0 if hits is None else len(hits.slate),
                "known": None if hits is None else hits.known,
                "fewer": hits is not None
                and hits.known is not None
                and hits.known < hits.pack.number("known-floor"),
                "memories": len(lab),
                "pack": live.name if hits is None else hits.pack.name,
                "hash": (live if hits is None else hits.pack).hash[:12],
                "live": live.name,
                "packs": list(self._packs),
                "sums": all(_sums(one) for one in why) and any(len(one.terms) > 1 for one in why),
                "redacted": 0 if hits is None else len(hits.redacted),
                "loggable": not self.pack
                and not self.at
                and not self.lab.io.store.journal.read_only,
            }
            self.fault = ""

    def _lab_then(self) -> Lab:
        """The lab at the instant that is asked for: folded once."""
        if self._past is not None and self._past[0] != self.at:
            self._past[1].close()
            self._past = None
        if not self.at:
            return self.lab
        if self._past is None:
            self._past = self.at, self.lab.at(self.at, progress=False)
        return self._past[1]

    def _shown(self) -> Hits:
        if self.hits is None:
            raise InputError("Nothing was asked yet: type a question.")
        return self.hits


def explained(found: ScoreExplanation) -> dict[str, Any]:
    """What a browser shows of an explanation: terms, features that the policy reads, the computation."""
    features = [[name, _said(value)] for name, value in found.features.items()]
    about = {
        "score": found.score,
        "policy": found.policy,
        "hash": found.hash[:12],
        "features": features,
        "order": found.order,
    }
    return {**about, "terms": found.frame, "tree": found.tree.frame}


def _rows(hits: Hits | None) -> pl.DataFrame:
    shown = (
        []
        if hits is None
        else [(h.rank, h.id, h.score, h.probe, h.text, h.kind, h.speaker, h.also) for h in hits]
    )
    texts = dict.fromkeys(("text", "kind", "speaker"), pl.String)
    head: dict[str, Any] = {
        "rank": pl.Int32,
        "id": pl.Int32,
        "score": pl.Float64,
        "probe": pl.Boolean,
    }
    rows = [(*row[:-1], len(row[-1])) for row in shown]
    return pl.DataFrame(rows, schema={**head, **texts, "also": pl.Int32}, orient="row")


def _terms(why: list[ScoreExplanation]) -> pl.DataFrame:
    texts = dict.fromkeys(("label", "group"), pl.String)
    rows = [(explanation.memory, *row) for explanation in why for row in explanation.frame.rows()]
    return pl.DataFrame(
        rows,
        schema={"id": pl.Int32, "term": pl.String, "value": pl.Float64, **texts},
        orient="row",
    )


def _sums(one: ScoreExplanation) -> bool:
    """Whether the terms are numbers that sum to the score."""
    total = (
        math.fsum(value for _, value in one.terms)
        if all(math.isfinite(v) for _, v in one.terms)
        else math.nan
    )
    return bool(one.terms) and math.isclose(total, one.score, rel_tol=1e-6, abs_tol=1e-9)


def _said(value: float | bool | str | None) -> str:
    return (
        f"{value:.4g}"
        if isinstance(value, float)
        else "null"
        if value is None
        else str(value).lower()
    )
