"""Memory table: all memories in pages, column charts that filter each other, and corrections."""

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
from memlab.ui.widgets._widget import MOST_TEXT, Answer, Widget, arrow, synced

_PAGE = 100
"""Rows of the first page, about ten screens."""
_MOST = 500
"""The maximum of rows of one page."""
_EXPORTED, _PART = 2_000, 1_000_000
"""Rows and bytes of texts of a part of an export: hosts of notebooks limit a message to 10 MB."""
_FOUND = 200
"""Results of a search by meaning."""
_NO_ID = 2**62
"""A number that no memory has, and that Polars still takes as an integer."""
_WAYS = ("word", "meaning", "like")
"""The values of ``by``."""

Place = Annotated[int, Within(0)]


class MemoryTable(Widget, bundle="table"):
    """A table of all memories, with sorting, histograms, search and corrections.

    Parameters
    ----------
    lab
        The lab.
    filters
        The condition of each column. Kind, status, speaker, project, session and label take a list
        of words, with None for memories without a value. Numbers and times (in ISO format) take
        ``[low, high]``, where ``high`` is excluded and None is no bound. ``{"conflict": [True]}``
        selects memories that contradict another active memory.
    search
        The text of the search.
    by
        "word" for memories that contain all words, "meaning" for the results of a recall that is
        not logged, "like" for memories similar to the memory whose number is ``search``.

    Attributes
    ----------
    sort
        A column and whether it descends; by default the newest or the best match is first.
    among
        The ids to which the table is restricted; empty for all.
    ids
        The ids of the selected rows.

    Examples
    --------
    >>> table = memlab.widgets.MemoryTable(lab, filters={"kind": ["preference"]})          # doctest: +SKIP
    >>> lab.memories.filter(table.selection)                                               # doctest: +SKIP
    """

    filters = synced({})
    search = synced("")
    by = synced("word")
    sort = synced([])
    among = synced([int])
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
        self._last_search: tuple[tuple[object, ...], list[int]] | None = None
        self._order = pl.Series("row", [], dtype=pl.UInt32)
        super().__init__(lab, filters=filters or {}, search=search, by=by)
        self.observe(lambda _: self._follow(), names=["filters", "search", "by", "sort", "among"])
        self._follow()

    @property
    def selection(self) -> pl.Expr:
        """The selected rows, or all shown rows, as a filter for ``lab.memories``."""
        return (
            pl.col("id").is_in(self.ids)
            if self.ids
            else pl.all_horizontal(self._conditions(self._read()).values())
        )

    @property
    def frame(self) -> pl.DataFrame:
        """The shown rows in their order, with the columns of the table."""
        return self._read().frame[self._order]

    @checked
    def link(self, other: Widget) -> None:
        """Share the selection with another widget, in both directions.

        Parameters
        ----------
        other
            A widget that has ``ids``, such as ``MemoryMap``.

        Raises
        ------
        InputError
            If the other widget has no ``ids``.

        Examples
        --------
        >>> table.link(memlab.widgets.MemoryMap(lab))                                      # doctest: +SKIP
        """
        if "ids" not in other.traits():
            raise InputError(
                f"A {type(other).__name__} has no ids, so it cannot be linked. Pass a widget such as MemoryMap."
            )

        def follow(change: Any) -> None:
            if change["new"] != self.ids:  # The change did not come from this table.
                self.among = self.ids = change["new"]

        other.observe(follow, names="ids")
        self.observe(lambda change: setattr(other, "ids", change["new"]), names="ids")

    def refresh(self) -> None:
        """Read the memories again."""
        self._show()

    def page(self) -> str:
        """Return the first rows as an HTML table."""
        heads = ("id", "text", "kind", "status", "speaker", "project")
        rows = [_clip_cells(row) for row in self.frame.head(20)[heads].rows()]
        return table(
            f"{self._order.len():,} of {self._read().frame.height:,} memories", heads, rows
        )

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_show(self, filters: dict[str, Any], search: str, by: str, sort: list[Any]) -> None:
        """Show the rows that match a browser's filters and search, in the requested order."""
        request = (filters, search, by, sort, self.among)
        self._show(request)  # A refusal must not change any trait.
        with self.hold_trait_notifications():
            self._shown = request
            self.filters, self.search, self.by, self.sort = filters, search, by, sort

    @checked
    def answer_page(self, start: Place, count: Place) -> Answer:
        """Return at most ``count`` shown rows, starting at position ``start``."""
        if event_of(self.lab) != self._about.get("event"):
            self._show()
        return {"rows": self._window(start, min(count, _MOST)), "event": self._about["event"]}

    @checked
    def answer_ids(self) -> Answer:
        """Return the ids of all shown rows."""
        return {"rows": self.frame.select("id")}

    @checked
    def answer_export(self, start: Place) -> Answer:
        """Export the selected rows as JSON lines, about one megabyte at a time."""
        rows = self._read().frame.filter(pl.col("id").is_in(self.ids))[start:]
        # The text is most of a line. A long one has a part of its own.
        before = pl.col("text").str.len_bytes().cum_sum() - pl.col("text").str.len_bytes()
        part = rows.head(_EXPORTED).filter(before < _PART)
        following = part.height if part.height < rows.height else None
        return {"lines": part.write_ndjson(), "next": following and start + following}

    @checked
    def answer_memory(self, memory: int) -> Answer:
        """Return all fields of a memory and its conflicts."""
        record = self.lab[memory]
        with self.lab.io.store.reading() as state:
            values = values_of(state, memory)
        fields = [
            [name, _format_value(value)]
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
        rows = self._read().frame.select("id", pl.col("text").str.slice(0, MOST_TEXT), "status")
        about = {
            "text": record.text,
            "status": record.status,
            "pinned": bool(values["pinned"]),
            "fields": fields,
        }
        return {**about, "conflicts": joined.join(rows, on="id", how="left", maintain_order="left")}

    @checked
    def answer_history(self, memory: int) -> Answer:
        """Return the events of a memory, newest first."""
        events = self.lab.log.filter(pl.col("memories").list.contains(memory)).reverse()
        return {
            "events": events.select(
                "event", pl.col("at").dt.strftime("%Y-%m-%d %H:%M"), "kind", "what"
            ).head(200)
        }

    @checked
    def answer_similar(self, memory: int) -> Answer:
        """Return the memories closest in meaning to a memory."""
        return {
            "rows": self.lab.graph.similar(memory, limit=8).select(
                "memory_id", "similarity", pl.col("text").str.slice(0, MOST_TEXT)
            )
        }

    @checked
    def answer_edit(self, memory: int, text: str) -> Answer:
        """Store the text as a new memory that supersedes this one."""

        def change() -> Answer:
            edited = self.lab.edit(memory, text=text)
            return {"memory": edited.id, "notes": list(edited.notes)}

        return self._changed(change)

    @checked
    def answer_pin(self, memory: int, pinned: bool) -> Answer:
        """Exempt this memory from decay, or end the exemption."""
        return self._changed(lambda: {"memory": self.lab.edit(memory, pinned=pinned).id})

    @checked
    def answer_forget(self, memories: int | list[int]) -> Answer:
        """Exclude this memory from recalls until it is restored."""
        return self._changed(lambda: {"ids": list(self.lab.forget(memories).ids)})

    @checked
    def answer_restore(self, memories: int | list[int]) -> Answer:
        """Restore this memory with its earlier status."""
        return self._changed(lambda: {"ids": list(self.lab.restore(memories).ids)})

    @checked
    def answer_wrong(self, memories: int | list[int], reason: str) -> Answer:
        """Mark this memory as wrong, with a reason, and exclude it from recall."""
        return self._changed(
            lambda: {"ids": list(self.lab.forget(memories, how="deprecate", reason=reason).ids)}
        )

    # -- showing ------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Update the rows if the filters, the search or the order have changed."""
        request = (self.filters, self.search, self.by, self.sort, self.among)
        if request != self._shown:
            self._shown = request
            with self.faults_shown():
                self._show()

    def _changed(self, change: Callable[[], Answer]) -> Answer:
        answer = change()
        self._show()
        return answer

    def _read(self) -> Rows:
        """Return the rows of the lab's current state, and read them again after a change."""
        if self._rows is None or self._rows.event != event_of(self.lab):
            self._rows = Rows(self.lab)
        return self._rows

    def _conditions(self, rows: Rows, request: tuple[Any, ...] | None = None) -> dict[str, pl.Expr]:
        """Return a condition for each filter and for the search, or one that is always true without any."""
        filters, search, by, _, among = request or (
            self.filters,
            self.search,
            self.by,
            self.sort,
            self.among,
        )
        wanted = {name: condition(name, value, rows.conflicts) for name, value in filters.items()}
        if among:
            wanted["among"] = pl.col("id").is_in(
                [memory for memory in among if 0 < memory < _NO_ID]
            )
        if search.strip():
            if by == "word":
                wanted["search"] = pl.all_horizontal(
                    pl.col("text").str.contains(f"(?i){re.escape(word)}")
                    for word in encodable(search).split()
                )
            else:
                wanted["search"] = pl.col("id").is_in(self._search_ids(search, by))
        return wanted or {"all": pl.lit(True)}

    def _search_ids(self, search: str, by: str) -> list[int]:
        """Search in the way ``by`` without logging, and return the memory ids, best first."""
        # The last search is cached for the event, because sorting and filtering repeat it.
        if by not in _WAYS:
            raise UnknownName("way to search", by, _WAYS)
        key = (search, by, event_of(self.lab))
        if self._last_search is None or self._last_search[0] != key:
            self._last_search = key, self._search(search, by)
        return self._last_search[1]

    def _search(self, search: str, by: str) -> list[int]:
        if by == "meaning":
            return list(self.lab.recall(search, limit=_FOUND, log=False).ids)
        number = search.strip().lstrip("#")
        if not number.isdecimal():
            raise InputError(
                f'A search by "like" needs the number of a memory, such as 7, not {search!r}.'
            )
        near: list[int] = self.lab.graph.similar(int(number[:18]), limit=_FOUND)[
            "memory_id"
        ].to_list()
        return [int(number), *near]

    def _show(self, request: tuple[Any, ...] | None = None) -> None:
        _, search, by, sort, _ = request or (
            self.filters,
            self.search,
            self.by,
            self.sort,
            self.among,
        )
        rows = self._read()
        wanted = self._conditions(rows, request)
        best = self._search_ids(search, by) if search.strip() and by != "word" else None
        masks = {name: rows.mask(expression) for name, expression in wanted.items()}
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


def _format_value(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M} UTC"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
