"""Recall log: queries, the memories that they showed, and whether these helped."""

from __future__ import annotations

from typing import Annotated, Any

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.display import clip, table
from memlab.subjects.agent_verbs.recalls import read_recalls
from memlab.subjects.lab import Lab
from memlab.ui.widgets._explorer import RecallExplorer
from memlab.ui.widgets._rows import encodable
from memlab.ui.widgets._widget import arrow, synced

OUTCOMES = ("helped", "failed", "nothing", "unrated")
"""The values of ``outcome`` in ``lab.agents.recalls()``."""
_PAGE = 20
"""Recalls of one page, as many as fit two screens."""
_MOST_TEXT = 300
"""Characters of a shown text, four lines of a wide page."""
_MOST_ITEMS = 50
"""Shown memories of one recall that a browser receives, as many as an explorer shows."""


class RecallLog(RecallExplorer, bundle="recalls"):
    """The logged recalls, newest first, with their results and the feedback on them.

    A click on a recall shows its memories, and asks the query again in the lab as it was then, in an
    explorer. Nothing here is logged. ``search``, ``outcome`` and ``start`` can be set from Python.

    Parameters
    ----------
    lab
        The lab.
    viewer
        A person or agent, whose recalls alone are shown. Default: all recalls.

    Attributes
    ----------
    search
        Text in the query, the agent or the session; empty for all recalls.
    outcome
        "helped", "failed", "nothing" or "unrated"; empty for all recalls.
    start
        The number of newer recalls before the page.
    opened
        The number of the opened recall; 0 if none is.

    Examples
    --------
    >>> log = memlab.widgets.RecallLog(lab)                                                # doctest: +SKIP
    >>> log.frame.filter(pl.col("outcome") == "failed")["query"]                           # doctest: +SKIP
    """

    search = synced("")
    outcome = synced("")
    start = synced(0, min=0)
    opened = synced(0, min=0)

    _recalls = synced(b"")
    _items = synced(b"")
    _log = synced({})

    @checked
    def __init__(self, lab: Lab, *, viewer: str | None = None) -> None:
        self._read: tuple[int, pl.DataFrame, pl.DataFrame] | None = None
        self._listed: tuple[str, str, int] | None = None
        super().__init__(lab if viewer is None else lab.at(viewer=viewer))
        self.observe(lambda _: self._follow_page(), names=["search", "outcome", "start"])
        self._show()

    @property
    def recalls(self) -> pl.DataFrame:
        """All recalls, in the form of ``lab.agents.recalls``, cached until a write."""
        return self._read_log()[0]

    @property
    def frame(self) -> pl.DataFrame:
        """The recalls that match ``search`` and ``outcome``, oldest first."""
        recalls = self.recalls
        if self.outcome:
            if self.outcome not in OUTCOMES:
                raise UnknownName("outcome", self.outcome, OUTCOMES)
            recalls = recalls.filter(pl.col("outcome") == self.outcome)
        if words := encodable(self.search.strip()).lower():
            recalls = recalls.filter(
                pl.any_horizontal(
                    pl.col(name).fill_null("").str.to_lowercase().str.contains(words, literal=True)
                    for name in ("query", "agent", "session")
                )
            )
        return recalls

    def refresh(self) -> None:
        """Read the log again."""
        super().refresh()
        self._show()

    def fill(self) -> None:
        """Open the latest recall that has a query."""
        if not self.opened and (
            last := self.recalls.drop_nulls("query").tail(1)["decision"].to_list()
        ):
            self.answer_open(last[0])

    def page(self) -> str:
        """Return the latest recalls as an HTML table."""
        rows = self.frame.tail(_PAGE).reverse().select("at", "query", "agent", "outcome").rows()
        heads = ("at", "query", "agent", "outcome")
        return table(
            f"{len(self.recalls):,} recalls of {self.where}",
            heads,
            [(f"{at:%Y-%m-%d %H:%M}", clip(query), *rest) for at, query, *rest in rows],
        )

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_list(self, search: str, outcome: str, start: Annotated[int, Within(0)]) -> None:
        """Show a page of the matching recalls."""
        self._listed = search, outcome, start  # The observer need not show this page again.
        with self.hold_trait_notifications():
            self.search, self.outcome, self.start = self._listed
        self._show()

    @checked
    def answer_open(self, decision: int) -> None:
        """Repeat a recall's query on the lab as of the recall's time."""
        row = self.recalls.filter(pl.col("decision") == decision).to_dicts()
        if not row:
            raise UnknownName(
                "recall", decision, self.recalls["decision"].cast(pl.String).to_list()
            )
        query, at, count = row[0]["query"], row[0]["at"], len(row[0]["shown"])
        if query is None:
            raise InputError(f"The log has no text of recall {decision}, so it cannot be repeated.")
        self.opened = decision
        self.answer_recall(query, min(count or 8, _MOST_ITEMS), "", at.isoformat())

    # -- reading the log ----------------------------------------------------------------------------------------

    def _read_log(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return all recalls and their results, cached until the lab changes."""
        lab = self.lab
        head = lab.io.store.journal.head
        if self._read is None or self._read[0] != head:
            frames = read_recalls(lab.io.store.journal, lab.memories, lab.slates(), scores=True)
            self._read = head, *frames
        return self._read[1:]

    def _follow_page(self) -> None:
        """Show the page again after a change from Python."""
        if (self.search, self.outcome, self.start) != self._listed:
            with self.faults_shown():
                self._show()

    def _show(self) -> None:
        """Send a page of recalls with their results to the browser."""
        self._listed = self.search, self.outcome, self.start
        matching = self.frame
        part = matching.reverse().slice(self.start, _PAGE)
        with self.hold_sync():
            self._recalls, self._items = arrow(_list_rows(part)), arrow(self._items_of(part))
            self._log = self._count_log(matching)

    def _count_log(self, matching: pl.DataFrame) -> dict[str, Any]:
        return {
            "all": len(self.recalls),
            "matching": len(matching),
            "page": _PAGE,
            "agents": self.recalls["agent"].n_unique() > 1,
        }

    def _items_of(self, part: pl.DataFrame) -> pl.DataFrame:
        """Return the memories shown by a page's recalls, with scores and rewards."""
        own = pl.col("decision").is_in(part["decision"].to_list())
        items = self._read_log()[1].filter(own, pl.col("position") <= _MOST_ITEMS)
        return items.select(
            pl.col("decision", "position", "memory_id", "superseded_by").cast(pl.Int32),
            *("status", "probe", "reward", "score"),
            pl.col("text").str.slice(0, _MOST_TEXT),
        )


def _list_rows(recalls: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of a list of recalls: times in milliseconds, and counts of memories."""
    return recalls.select(
        pl.col("decision").cast(pl.Int32),
        pl.col("at").dt.epoch("ms").cast(pl.Float64),
        pl.col("query").str.slice(0, _MOST_TEXT),
        *("agent", "session", "project", "outcome", "known"),
        *(
            pl.col(name).list.len().cast(pl.Int32)
            for name in ("shown", "helped", "failed", "stale")
        ),
        pl.col("tokens").cast(pl.Int32),
    )
