"""The rows of the memory table as of one event: conditions, masks, orders, and bars that filter one another.

What was computed of all rows is kept as long as nothing is written, so that another brush costs a few milliseconds:
of 100,000 rows a mask takes 1 to 50, and the bars of six columns 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.clock import from_micros, to_micros
from memlab.kernel.schema import MEMORY, NEVER, RECALLABLE, RELATIONS
from memlab.kernel.state import State, visible_rows
from memlab.subjects.lab import Lab

__all__ = ["COLUMNS", "HEADS", "Rows", "columns", "condition", "encodable", "event_of", "values_of"]

COLUMNS = (
    *(
        "id",
        "text",
        "kind",
        "status",
        "speaker",
        "project",
        "session",
        "created",
        "accessed",
        "access",
        "pinned",
    ),
    *("importance", "confidence", "label", "superseded_by"),
)
"""What is read of every memory, and may be sorted by."""
HEADS = ("kind", "status", "speaker", "project", "created", "access")
"""Columns with bars in their heads."""
_PAGED = (
    "id",
    "text",
    "kind",
    "status",
    "speaker",
    "project",
    "created",
    "access",
    "pinned",
    "superseded_by",
)
_MOST_TEXT = 400
_MOST_WORDS = 40
_BINS = 24
_FARTHEST = 1e300
_CONTRADICTS = RELATIONS.index("contradicts")

Flags = NDArray[np.bool_]


def condition(column: str, wanted: Any, conflicts: Sequence[int]) -> pl.Expr:
    """A filter of the table as an expression over ``lab.memories``.

    UnknownName for a column that cannot be filtered, InputError for what is no value of it.
    """
    if column == "conflict":
        return pl.col("id").is_in(conflicts)
    if column not in COLUMNS or column == "text":
        raise UnknownName(
            "column to filter", column, ("conflict", *(one for one in COLUMNS if one != "text"))
        )
    if not isinstance(wanted, list | tuple) or not wanted:
        raise InputError(f"The filter of {column} is a list, not {wanted!r}.")
    storage = "num" if column == "id" else MEMORY[column].storage
    if storage in ("word", "name"):
        words = [encodable(one) for one in wanted if isinstance(one, str)]
        if len(words) + (None in wanted) < len(set(map(repr, wanted))):
            raise InputError(
                f"The filter of {column} is a list of words, and None for those without, not {wanted!r}."
            )
        named = pl.col(column).is_in(words)
        return named | pl.col(column).is_null() if None in wanted else named
    if storage == "bool":
        return pl.col(column).is_in([bool(one) for one in wanted])
    if len(wanted) != 2:
        raise InputError(
            f"The filter of {column} is [low, high], where None is no bound, not {wanted!r}."
        )
    low, high = (_bound(column, one, storage) for one in wanted)
    found = pl.col(column).is_not_null()
    if low is not None:
        found &= pl.col(column) >= low
    return found if high is None else found & (pl.col(column) < high)


def encodable(text: str) -> str:
    """A text that Polars can take; half a surrogate pair is in no memory."""
    return text.encode("utf-8", "replace").decode()


def _bound(column: str, value: Any, storage: str) -> Any:
    if value is None:
        return None
    if storage == "time":
        return pl.lit(to_micros(value)).cast(pl.Datetime("us", "UTC"))
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not -_FARTHEST < value < _FARTHEST
    ):
        raise InputError(f"A bound of {column} is a number, not {describe_value(value)}.")
    return float(value)


@dataclass(frozen=True)
class _Bins:
    """Which bar of its column each row belongs to; a bar has a word, or goes from ``low`` to ``high``."""

    codes: NDArray[np.int64]
    words: list[str | None]
    low: list[float | None]
    high: list[float | None]


class Rows:
    """Every memory of a lab as of an ``event``."""

    def __init__(self, lab: Lab) -> None:
        with lab.io.store.reading() as state:
            self.event = state.seq
            self.frame = columns(state, COLUMNS)
            self.conflicts = _conflicts(state)
        self._masks: dict[str, Flags] = {}
        self._orders: dict[tuple[str, bool], pl.Series] = {}

    def mask(self, wanted: pl.Expr) -> Flags:
        """Which rows meet a condition."""
        key = wanted.meta.serialize(format="json")
        if key not in self._masks:
            if len(self._masks) > 50:
                self._masks.clear()
            found = self.frame.select(one=wanted)["one"]
            every = (
                found
                if found.len() == self.frame.height
                else found.new_from_index(0, self.frame.height)
            )
            self._masks[key] = every.fill_null(False).to_numpy()
        return self._masks[key]

    def ordered(
        self, masks: Mapping[str, Flags], sort: Sequence[Any], best: Sequence[int] | None
    ) -> pl.Series:
        """The rows that meet every condition, sorted, else the ``best`` first, else the newest."""
        if sort and (len(sort) != 2 or sort[0] not in COLUMNS or not isinstance(sort[1], bool)):
            raise UnknownName("order", sort, COLUMNS)
        kept = _every(masks.values(), self.frame.height)
        if best is not None and not sort:
            place = {id: at for at, id in enumerate(best)}
            found = self.frame.select("id").with_row_index("row").filter(kept)
            rank = pl.col("id").replace_strict(place, return_dtype=pl.Int64)
            return found.sort(rank)["row"]
        column, descending = sort or ("created", True)
        if (column, descending) not in self._orders:
            # of equals the newest id first, or last, as the column goes
            by = self.frame.select(
                pl.arg_sort_by(column, "id", descending=descending, nulls_last=True)
            )
            self._orders[column, descending] = by.to_series()
        order = self._orders[column, descending]
        return order.filter(pl.Series(kept).gather(order))

    def page(self, rows: pl.Series) -> pl.DataFrame:
        """These rows with what a browser shows of them."""
        conflict = pl.col("id").is_in(self.conflicts).alias("conflict")
        return self.frame.select(_PAGED)[rows].with_columns(
            pl.col("text").str.slice(0, _MOST_TEXT), conflict
        )

    def bars(self, masks: Mapping[str, Flags]) -> pl.DataFrame:
        """For each head its bars (column, value, low, high), with all rows and those that the other filters leave.

        Times are in milliseconds since 1970. Of words the most frequent 40 have a bar.
        """
        parts = []
        for column, bins in self._binned.items():
            kept = _every((one for name, one in masks.items() if name != column), self.frame.height)
            count = len(bins.words)
            every = np.bincount(bins.codes, minlength=count + 1)[:count]
            shown = np.bincount(bins.codes[kept], minlength=count + 1)[:count]
            head = {
                "column": [column] * count,
                "value": bins.words,
                "low": bins.low,
                "high": bins.high,
            }
            parts.append(pl.DataFrame({**head, "all": every, "shown": shown}, schema=_BARS))
        return pl.concat(parts)

    @cached_property
    def _binned(self) -> dict[str, _Bins]:
        return {
            name: _by_word(self.frame[name]) if _is_word(name) else _by_span(self.frame[name])
            for name in HEADS
        }


_BARS: dict[str, Any] = {
    "column": pl.String,
    "value": pl.String,
    "low": pl.Float64,
    "high": pl.Float64,
    "all": pl.Int64,
    "shown": pl.Int64,
}


def _is_word(column: str) -> bool:
    return MEMORY[column].storage in ("word", "name")


def _by_word(values: pl.Series) -> _Bins:
    """A bar a word, the most frequent first; what has none has a bar too."""
    counted = values.value_counts(sort=True).head(_MOST_WORDS)
    words = counted[values.name].to_list()
    codes = values.replace_strict(
        words, list(range(len(words))), default=len(words), return_dtype=pl.Int64
    )
    return _Bins(codes.to_numpy(), words, [None] * len(words), [None] * len(words))


def _by_span(values: pl.Series) -> _Bins:
    """Bars of spans: of one width for times, from a whole millisecond on; for counts wider the further out, since most
    are small."""
    is_time = values.dtype.is_temporal()
    numbers = values.to_physical().cast(pl.Float64).to_numpy() / (1_000 if is_time else 1)
    held = numbers[~np.isnan(numbers)]
    if not len(held):
        return _Bins(np.zeros(len(numbers), dtype=np.int64), [], [], [])
    low, high = float(np.floor(held.min())), float(held.max())
    if is_time:
        width = max(1.0, float(np.ceil((high - low + 1) / _BINS)))
        edges = low + width * np.arange(int((high - low) // width) + 2)
    else:
        steps = np.unique(np.ceil(np.geomspace(1, max(2.0, high - low + 1), _BINS)))
        edges = low + np.concatenate(
            [[0.0], steps, [steps[-1] + 1] if steps[-1] <= high - low else []]
        )
    count = len(edges) - 1
    codes = np.where(np.isnan(numbers), count, np.searchsorted(edges, numbers, side="right") - 1)
    return _Bins(codes.astype(np.int64), [None] * count, edges[:-1].tolist(), edges[1:].tolist())


def _every(masks: Any, height: int) -> Flags:
    kept = np.ones(height, dtype=np.bool_)
    for one in masks:
        kept &= one
    return kept


def _conflicts(state: State) -> list[int]:
    """Memories in use that contradict others in use."""
    edges = state.edges
    at = np.flatnonzero(edges.alive & (edges.relation == _CONTRADICTS))
    pairs = zip(edges.source[at].tolist(), edges.target[at].tolist(), strict=True)
    status = state.names["status"]
    conflicting: set[int] = set()
    for pair in pairs:
        if all(status.value_at(row) in RECALLABLE for row in pair):
            conflicting.update(row + 1 for row in pair)
    return sorted(conflicting)


# -- columns of all memories ------------------------------------------------------------------------------------------

_KEPT = {"word": "names", "name": "names", "list": "lists", "note": "notes"}
"""Where a state keeps columns of each storage."""


def event_of(lab: Lab) -> int:
    """The last event that the lab has seen: what was read at the same event need not be read again."""
    with lab.io.store.reading() as state:
        return state.seq


def columns(state: State, names: Sequence[str]) -> pl.DataFrame:
    """These columns of ``lab.memories``: of 100,000 memories a dozen take 20 ms, all of them two seconds."""
    frame = pl.DataFrame([state.column(name) for name in names])
    seen = visible_rows(state)
    return frame if seen is None else frame[seen]


def values_of(state: State, memory: int) -> dict[str, object]:
    """What is known of one memory, by column, but its text: read from its row, as whole columns take seconds."""
    row = memory - 1
    found: dict[str, object] = {}
    for name, column in MEMORY.items():
        if column.storage in _KEPT:
            found[name] = getattr(state, _KEPT[column.storage])[name].value_at(row)
        elif name == "ref":
            found[name] = state.refs.value_at(row)
        elif column.storage != "text":
            value = state.numbers[name].values[row]
            absent = value == NEVER if column.storage == "time" else value != value
            found[name] = (
                None
                if absent
                else from_micros(int(value))
                if column.storage == "time"
                else value.item()
            )
    return found
