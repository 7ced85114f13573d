"""Memory table: every memory in rows that are paged, heads that filter one another, corrections by public verbs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.display import clip, table
from memlab.kernel.schema import MEMORY
from memlab.subjects.lab import Lab
from memlab.ui.widgets._rows import Rows, condition, encodable, event_of, values_of
from memlab.ui.widgets._widget import Widget, arrow, synced

__all__ = ["MemoryTable"]

_PAGE = 100
_MOST = 500
"""Rows of one page at most."""
_FOUND = 200
"""Memories that a search by meaning finds."""
_NO_ID = 2**62
_WAYS = ("word", "meaning", "like")

Place = Annotated[int, Within(0)]


class MemoryTable(Widget, bundle="table"):
    """Every memory of a lab as a table: sort, filter by histograms, search, look into one, correct.

    ``filters`` are a dict from a column to what is wanted of it: words for kind, status, speaker, project, session and
    label (None stands for none), ``[low, high]`` for numbers and times (from the first up to, without, the second; None
    is no bound; times as ISO texts), and ``{"conflict": [True]}`` what contradicts another memory in use.
    ``search`` is looked for ``by`` "word" (all of them are in the text), by "meaning" (a recall that is not logged) or
    "like" (the number of a memory whose neighbours are wanted). ``sort`` is a column and whether it descends; none of
    them: the newest first, or the best match. ``ids`` are the rows that are ticked.

    ``selection`` is a Polars expression over ``lab.memories``: what is ticked, or else what is shown; ``frame`` has the
    rows that are shown, in order.

    >>> table = memlab.widgets.MemoryTable(lab, filters={"kind": ["preference"]})          # doctest: +SKIP
    >>> lab.memories.filter(table.selection)                                               # doctest: +SKIP
    """

    filters = synced({})
    search = synced("")
    by = synced("word")
    sort = synced([])
    among = synced([int])
    """Where any are given, only these are shown: a selection that another widget made."""
    ids = synced([int])

    _page = synced(b"")
    _bars = synced(b"")
    _about = synced({})

    @checked
    def __init__(
        self, lab: Lab, *, filters: dict[str, Any] | None = None, search: str = "", by: str = "word"
    ) -> None:
        self._rows: Rows | None = None
        self._shown: tuple[object, ...] | None = None
        self._kept: tuple[tuple[object, ...], list[int]] | None = None
        self._order = pl.Series("row", [], dtype=pl.UInt32)
        super().__init__(lab, filters=filters or {}, search=search, by=by)
        self.observe(lambda _: self._follow(), names=["filters", "search", "by", "sort", "among"])
        self._follow()

    @property
    def selection(self) -> pl.Expr:
        """What is ticked, or else what is shown: an expression over the columns of ``lab.memories``."""
        return (
            pl.col("id").is_in(self.ids)
            if self.ids
            else pl.all_horizontal(self._wanted(self._read()).values())
        )

    @property
    def frame(self) -> pl.DataFrame:
        """The rows that are shown, in their order, with the columns of the table."""
        return self._read().frame[self._order]

    @checked
    def link(self, other: Widget) -> None:
        """Share a selection with another widget that has ``ids``: what is selected there is shown here, and ticked.

        >>> table.link(memlab.widgets.MemoryMap(lab))                                      # doctest: +SKIP
        """
        if "ids" not in other.traits():
            raise InputError(f"A {type(other).__name__} has no ids to share.")

        def follow(change: Any) -> None:
            if change["new"] != self.ids:  # it was selected there, and not ticked here
                self.among = self.ids = change["new"]

        other.observe(follow, names="ids")
        self.observe(lambda change: setattr(other, "ids", change["new"]), names="ids")

    def refresh(self) -> None:
        """Read the memories again."""
        self._show()

    def page(self) -> str:
        """The first rows as a table."""
        heads = ("id", "text", "kind", "status", "speaker", "project")
        rows = [_clip_cells(row) for row in self.frame.head(20)[heads].rows()]
        return table(
            f"{self._order.len():,} of {self._read().frame.height:,} memories", heads, rows
        )

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_show(self, filters: dict[str, Any], search: str, by: str, sort: list[Any]) -> None:
        """Show what stands in the widget; rows and bars arrive as traits."""
        asked = (filters, search, by, sort, self.among)
        self._show(asked)  # refused before anything is changed
        with self.hold_trait_notifications():
            self._shown = asked
            self.filters, self.search, self.by, self.sort = filters, search, by, sort

    @checked
    def answer_page(self, start: Place, count: Place) -> dict[str, Any]:
        """A window of the rows that are shown."""
        if event_of(self.lab) != self._about.get("event"):
            self._show()
        return {"rows": self._window(start, min(count, _MOST)), "event": self._about["event"]}

    @checked
    def answer_ids(self) -> dict[str, Any]:
        """The ids of all that is shown."""
        return {"rows": self.frame.select("id")}

    @checked
    def answer_memory(self, memory: int) -> dict[str, Any]:
        """Whatever is known of one memory, and what it is in conflict with."""
        found = self.lab[memory]
        with self.lab.io.store.reading() as state:
            values = values_of(state, memory)
        fields = [
            [name, _said(value)]
            for name, value in values.items()
            if value not in (None, (), MEMORY[name].default)
        ]
        other = pl.when(pl.col("source") == memory).then("target").otherwise("source").alias("id")
        joined = self.lab.edges.filter(
            pl.col("relation").is_in(("contradicts", "supersedes", "updates")),
            (pl.col("source") == memory) | (pl.col("target") == memory),
            from_kind="memory",
            to_kind="memory",
        ).select(
            other, pl.col("relation").alias("how"), (pl.col("source") == memory).alias("outgoing")
        )
        rows = self._read().frame.select("id", "text", "status")
        about = {
            "text": found.text,
            "status": found.status,
            "pinned": bool(values["pinned"]),
            "fields": fields,
        }
        return {**about, "conflicts": joined.join(rows, on="id", how="left", maintain_order="left")}

    @checked
    def answer_history(self, memory: int) -> dict[str, Any]:
        """What happened to one memory, the last first."""
        events = self.lab.log.filter(pl.col("memories").list.contains(memory)).reverse()
        return {
            "events": events.select(
                "event", pl.col("at").dt.strftime("%Y-%m-%d %H:%M"), "kind", "what"
            ).head(200)
        }

    @checked
    def answer_similar(self, memory: int) -> dict[str, Any]:
        """What is nearest to a memory by meaning."""
        return {
            "rows": self.lab.graph.similar(memory, limit=8).select(
                "memory_id", "similarity", "text"
            )
        }

    @checked
    def answer_edit(self, memory: int, text: str) -> dict[str, Any]:
        """Another text, in a memory that supersedes this one."""

        def change() -> dict[str, Any]:
            edited = self.lab.edit(memory, text=text)
            return {"memory": edited.id, "notes": list(edited.notes)}

        return self._changed(change)

    @checked
    def answer_pin(self, memory: int, pinned: bool) -> dict[str, Any]:
        """Keep it fresh whatever its age, or no longer."""
        return self._changed(lambda: {"memory": self.lab.edit(memory, pinned=pinned).id})

    @checked
    def answer_forget(self, memories: int | list[int]) -> dict[str, Any]:
        """Take memories out of every recall."""
        return self._changed(lambda: {"ids": list(self.lab.forget(memories).ids)})

    @checked
    def answer_restore(self, memories: int | list[int]) -> dict[str, Any]:
        """Bring memories back."""
        return self._changed(lambda: {"ids": list(self.lab.restore(memories).ids)})

    @checked
    def answer_wrong(self, memories: int | list[int], reason: str) -> dict[str, Any]:
        """Flag memories as wrong, for a reason."""
        return self._changed(
            lambda: {"ids": list(self.lab.forget(memories, how="deprecate", reason=reason).ids)}
        )

    # -- showing ------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Show what was set and is not shown yet."""
        asked = (self.filters, self.search, self.by, self.sort, self.among)
        if asked != self._shown:
            self._shown = asked
            with self.faults_shown():
                self._show()

    def _changed(self, change: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        answer = change()
        self._show()
        return answer

    def _read(self) -> Rows:
        """Every memory as of now."""
        if self._rows is None or self._rows.event != event_of(self.lab):
            self._rows = Rows(self.lab)
        return self._rows

    def _wanted(self, rows: Rows, asked: tuple[Any, ...] | None = None) -> dict[str, pl.Expr]:
        """A condition for each column that is filtered, and for the search; ``True`` where there is none."""
        filters, search, by, _, among = asked or (
            self.filters,
            self.search,
            self.by,
            self.sort,
            self.among,
        )
        wanted = {name: condition(name, value, rows.conflicts) for name, value in filters.items()}
        if among:
            wanted["among"] = pl.col("id").is_in([one for one in among if 0 < one < _NO_ID])
        if search.strip():
            if by == "word":
                wanted["search"] = pl.all_horizontal(
                    pl.col("text").str.contains(f"(?i){re.escape(word)}")
                    for word in encodable(search).split()
                )
            else:
                wanted["search"] = pl.col("id").is_in(self._found(search, by))
        return wanted or {"all": pl.lit(True)}

    def _found(self, search: str, by: str) -> list[int]:
        """Ids that a search by meaning finds, the best first; nothing is logged. The last one is kept for the event."""
        if by not in _WAYS:
            raise UnknownName("way to search", by, _WAYS)
        key = (search, by, event_of(self.lab))
        if self._kept is None or self._kept[0] != key:
            self._kept = key, self._search(search, by)
        return self._kept[1]

    def _search(self, search: str, by: str) -> list[int]:
        if by == "meaning":
            return list(self.lab.recall(search, limit=_FOUND, log=False).ids)
        number = search.strip().lstrip("#")
        if not number.isdecimal():
            raise InputError(
                f'A search by "like" is for the number of a memory, such as 7, not {search!r}.'
            )
        near: list[int] = self.lab.graph.similar(int(number[:18]), limit=_FOUND)[
            "memory_id"
        ].to_list()
        return [int(number), *near]

    def _show(self, asked: tuple[Any, ...] | None = None) -> None:
        _, search, by, sort, _ = asked or (
            self.filters,
            self.search,
            self.by,
            self.sort,
            self.among,
        )
        rows = self._read()
        wanted = self._wanted(rows, asked)
        best = self._found(search, by) if search.strip() and by != "word" else None
        masks = {name: rows.mask(one) for name, one in wanted.items()}
        order = rows.ordered(masks, sort, best)
        with self.hold_sync():
            self._order = order
            self._bars = arrow(rows.bars(masks))
            self._page = arrow(self._window(0, _PAGE))
            self._about = {
                "memories": rows.frame.height,
                "shown": order.len(),
                "event": rows.event,
                "conflicts": len(rows.conflicts),
                "writable": not self.lab.io.store.journal.read_only,
                "most": _FOUND if best is not None else 0,
            }
            self.fault = ""

    def _window(self, start: int, count: int) -> pl.DataFrame:
        assert self._rows is not None
        return self._rows.page(self._order.slice(start, count))


def _clip_cells(row: tuple[object, ...]) -> list[object]:
    return [clip(cell, 160) if isinstance(cell, str) else cell for cell in row]


def _said(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M} UTC"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
