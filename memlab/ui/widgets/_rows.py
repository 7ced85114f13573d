"""The rows of the memory table as of one event: conditions, masks, orders, and column charts.

Results about all rows are cached until something is written, so that another filter takes a few
milliseconds. For 100,000 rows, a mask takes 1 to 50 ms, and the bars of six columns take 5 ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.arrays import Flags, Ints
from memlab.kernel.base.clock import INSTANT, from_micros, to_micros
from memlab.kernel.schema import MEMORY, NEVER, RECALLABLE, RELATIONS
from memlab.kernel.state import State, visible_rows
from memlab.subjects.lab import Lab

COLUMNS = (
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
    "importance",
    "confidence",
    "label",
    "superseded_by",
)
"""The columns of the table, each of which can be sorted."""
HEADS = ("kind", "status", "speaker", "project", "session", "created", "access")
"""The columns with a chart."""
_PAGED = (
    "id",
    "text",
    "kind",
    "status",
    "speaker",
    "project",
    "session",
    "created",
    "access",
    "pinned",
    "superseded_by",
)
"""The columns that a browser receives for each row."""
_MOST_TEXT = 400
"""Characters of a text in a row, more than a row shows."""
_MOST_WORDS = 40
"""Bars of a column of words, a few screens of its chart."""
_BINS = 24
"""Bars of a column of numbers, one for four pixels."""
_FARTHEST = 1e300
"""The limit of a bound: larger numbers overflow when they are compared with times."""
_CONTRADICTS = RELATIONS.index("contradicts")
"""The code of the relation between memories in conflict."""


def condition(column: str, wanted: Any, conflicts: Sequence[int]) -> pl.Expr:
    """Build an expression that filters ``lab.memories`` by the condition on one column.

    Raises UnknownName for a column without filters and InputError for an unusable value.
    """
    # Each storage has its own kind of filter: words, flags, or bounds.
    if column == "conflict":
        return pl.col("id").is_in(conflicts)
    if column not in COLUMNS or column == "text":
        raise UnknownName(
            "column to filter", column, ("conflict", *(item for item in COLUMNS if item != "text"))
        )
    if not isinstance(wanted, list | tuple) or not wanted:
        raise InputError(f"The filter of {column} must be a list, not {wanted!r}.")
    storage = "num" if column == "id" else MEMORY[column].storage
    if storage in ("word", "name"):
        words = [encodable(item) for item in wanted if isinstance(item, str)]
        if len(words) + (None in wanted) < len(set(map(repr, wanted))):
            raise InputError(
                f"The filter of {column} must be a list of words, in which None stands for "
                f"memories without a value, not {wanted!r}."
            )
        matches = pl.col(column).is_in(words)
        return matches | pl.col(column).is_null() if None in wanted else matches
    if storage == "bool":
        return pl.col(column).is_in([bool(item) for item in wanted])
    if len(wanted) != 2:
        raise InputError(
            f"The filter of {column} must be [low, high], where None means no bound, not {wanted!r}."
        )
    low, high = (_bound(column, item, storage) for item in wanted)
    expression = pl.col(column).is_not_null()
    if low is not None:
        expression &= pl.col(column) >= low
    return expression if high is None else expression & (pl.col(column) < high)


def encodable(text: str) -> str:
    """Replace unpaired surrogates, which Polars does not accept, by "?"."""
    return text.encode("utf-8", "replace").decode()


def _bound(column: str, value: Any, storage: str) -> Any:
    if value is None:
        return None
    if storage == "time":
        return pl.lit(to_micros(value)).cast(INSTANT)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not -_FARTHEST < value < _FARTHEST
    ):
        raise InputError(f"A bound of {column} must be a number, not {describe_value(value)}.")
    return float(value)


@dataclass(frozen=True)
class _Bins:
    """The bar of each row in a chart; a bar has a word, or goes from ``low`` to ``high``."""

    codes: Ints
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
        """Return a mask of the rows that satisfy a condition."""
        key = wanted.meta.serialize(format="json")
        if key not in self._masks:
            if len(self._masks) > 50:
                self._masks.clear()
            values = self.frame.select(one=wanted)["one"]
            every = (
                values
                if values.len() == self.frame.height
                else values.new_from_index(0, self.frame.height)
            )
            self._masks[key] = every.fill_null(False).to_numpy()
        return self._masks[key]

    def ordered(
        self, masks: Mapping[str, Flags], sort: Sequence[Any], best: Sequence[int] | None
    ) -> pl.Series:
        """Return the matching rows in the order of ``sort``, of ``best``, or newest first."""
        if sort and (len(sort) != 2 or sort[0] not in COLUMNS or not isinstance(sort[1], bool)):
            raise UnknownName("order", sort, COLUMNS)
        mask = _every(masks.values(), self.frame.height)
        if best is not None and not sort:
            ranks = {id: at for at, id in enumerate(best)}
            rows = self.frame.select("id").with_row_index("row").filter(mask)
            rank = pl.col("id").replace_strict(ranks, return_dtype=pl.Int64)
            return rows.sort(rank)["row"]
        column, descending = sort or ("created", True)
        if (column, descending) not in self._orders:
            # Rows with equal values are ordered by id, in the same direction as the column.
            by = self.frame.select(
                pl.arg_sort_by(column, "id", descending=descending, nulls_last=True)
            )
            self._orders[column, descending] = by.to_series()
        order = self._orders[column, descending]
        return order.filter(pl.Series(mask).gather(order))

    def page(self, rows: pl.Series) -> pl.DataFrame:
        """Return the columns that a browser shows, for selected rows."""
        conflict = pl.col("id").is_in(self.conflicts).alias("conflict")
        return self.frame.select(_PAGED)[rows].with_columns(
            pl.col("text").str.slice(0, _MOST_TEXT), conflict
        )

    def bars(self, masks: Mapping[str, Flags]) -> pl.DataFrame:
        """Count the rows in each chart's bars: all rows, and rows that pass the other filters.

        Times are in milliseconds since 1970. The 40 most frequent words have a bar.
        """
        parts = []
        for column, bins in self._binned.items():
            mask = _every(
                (other for name, other in masks.items() if name != column), self.frame.height
            )
            count = len(bins.words)
            every = np.bincount(bins.codes, minlength=count + 1)[:count]
            counts = np.bincount(bins.codes[mask], minlength=count + 1)[:count]
            head = {
                "column": [column] * count,
                "value": bins.words,
                "low": bins.low,
                "high": bins.high,
            }
            parts.append(pl.DataFrame({**head, "all": every, "shown": counts}, schema=_BARS))
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
"""The columns of the bars."""


def _is_word(column: str) -> bool:
    return MEMORY[column].storage in ("word", "name")


def _by_word(values: pl.Series) -> _Bins:
    """Assign words to bars, numbered from the most frequent word; further words get the number after the last bar."""
    counted = values.value_counts(sort=True).head(_MOST_WORDS)
    words = counted[values.name].to_list()
    codes = values.replace_strict(
        words, list(range(len(words))), default=len(words), return_dtype=pl.Int64
    )
    return _Bins(codes.to_numpy(), words, [None] * len(words), [None] * len(words))


def _by_span(values: pl.Series) -> _Bins:
    """Assign times or counts to the bars of a histogram; missing values get the number after the last bar."""
    is_time = values.dtype.is_temporal()
    numbers = values.to_physical().cast(pl.Float64).to_numpy() / (1_000 if is_time else 1)
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return _Bins(np.zeros(len(numbers), dtype=np.int64), [], [], [])
    low, high = float(np.floor(present.min())), float(present.max())
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
    mask = np.ones(height, dtype=np.bool_)
    for other in masks:
        mask &= other
    return mask


def _conflicts(state: State) -> list[int]:
    """Return the recallable memories that contradict other recallable memories."""
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

_STORED_IN = {"word": "names", "name": "names", "list": "lists", "note": "notes"}
"""The attribute of a state with the columns of each storage."""


def event_of(lab: Lab) -> int:
    """Return the number of a lab's last event, for use as a cache key."""
    with lab.io.store.reading() as state:
        return state.seq


def columns(state: State, names: Sequence[str]) -> pl.DataFrame:
    """Return the named columns of ``lab.memories`` as a frame.

    For 100,000 memories, a dozen columns take 20 ms, and all take two seconds.
    """
    frame = pl.DataFrame([state.column(name) for name in names])
    visible = visible_rows(state)
    return frame if visible is None else frame[visible]


def values_of(state: State, memory: int) -> dict[str, object]:
    """Return all columns of one memory except its text."""
    # Only the memory's own row is read, because reading whole columns takes seconds.
    row = memory - 1
    values: dict[str, object] = {}
    for name, column in MEMORY.items():
        if column.storage in _STORED_IN:
            values[name] = getattr(state, _STORED_IN[column.storage])[name].value_at(row)
        elif name == "ref":
            values[name] = state.refs.value_at(row)
        elif column.storage != "text":
            value = state.numbers[name].values[row]
            absent = value == NEVER if column.storage == "time" else value != value
            values[name] = (
                None
                if absent
                else from_micros(int(value))
                if column.storage == "time"
                else value.item()
            )
    return values
