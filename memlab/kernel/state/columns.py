"""Growable columns of the mutable fields of memories.

Users receive Polars frames that are copies of these columns. Changing one number of one row among a million costs
less than a microsecond in a NumPy array, and 3 ms in a Polars frame.

"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import Codes, Flags, Ints, Rows, Values
from memlab.kernel.base.scratch import enlarge

_SEAL_AT = 4096
"""Number of new texts that stay Python strings before they move into the Arrow series, which each move copies."""

_ONE_BY_ONE = 256
"""Maximum number of texts that are read one by one, at 0.7 microseconds each. A Polars gather takes at least 200."""


V = TypeVar("V")


class GrowingColumn(Protocol):
    """A column to which rows can be added."""

    def append(self, values: Any, /) -> None:
        """Add one row for each value."""

    def extend(self, value: Any, count: int, /) -> None:
        """Add ``count`` rows with the same value."""


class Numbers:
    """A column of one NumPy type that grows in amortised constant time.

    A column in which every row has the default stores no values.
    """

    def __init__(
        self, dtype: type[np.generic], values: Values | None = None, *, default: object = None
    ) -> None:
        self.default = None if default is None else np.asarray(default, dtype=dtype)
        """The value of rows that were added without one."""
        self._data = np.empty(0, dtype=dtype) if values is None else np.array(values, dtype=dtype)
        self._size = len(self._data)
        self.has_values = values is not None or default is None
        """Whether any row ever had a value other than the default."""
        self._constant: Values = np.broadcast_to(np.empty((), dtype=dtype), 0)

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> Values:
        """The values of all rows as an array that shares memory with the column.

        Copy the array before passing it to users, and never write into it.
        """
        if self.has_values or self.default is None:
            return self._data[: self._size]
        if len(self._constant) != self._size:
            self._constant = np.broadcast_to(self.default, self._size)
        return self._constant

    def append(self, values: Sequence[Any] | Values) -> None:
        """Add one row for each value."""
        if not self.has_values:
            array = np.asarray(values, dtype=self._data.dtype)
            if self._is_all_default(array):
                self._size += len(array)
                return
            self._materialize()
            values = array
        size = self._size
        self._grow(size + len(values))
        self._data[size : self._size] = values

    def extend(self, value: object, count: int) -> None:
        """Add ``count`` rows that share one value. None is stored as NaN."""
        if not self.has_values:
            # Most of the forty columns keep their default. Comparing Python numbers instead of arrays makes adding
            # a memory ten times as fast.
            default = self.default.item() if self.default is not None else None
            if value == default or ((value is None or value != value) and default != default):
                self._size += count
                return
            self._materialize()
        size = self._size
        self._grow(size + count)
        self._data[size : self._size] = np.nan if value is None else value

    def set(self, rows: Ints, values: Any) -> None:
        """Set the values of ``rows``: one value for all rows, or one for each row."""
        self._materialize()
        self._data[rows] = values

    def add(self, rows: Ints, amount: float) -> None:
        """Add ``amount`` to the value of each row. Rows must be unique."""
        self._materialize()
        self._data[rows] += amount

    def raise_to(self, rows: Ints, minimum: float) -> None:
        """Raise the values of ``rows`` to at least ``minimum``. Rows must be unique."""
        self._materialize()
        self._data[rows] = np.maximum(self._data[rows], minimum)

    def _is_all_default(self, values: Values) -> bool:
        default = self.default
        same = values == default
        if default is not None and default != default:
            same = values != values  # the default is NaN, which equals nothing
        return bool(np.all(same))

    def _materialize(self) -> None:
        if not self.has_values:
            self._data = np.array(self.values)
            self.has_values = True

    def _grow(self, size: int) -> None:
        self._data, self._size = enlarge(self._data, self._size, size), size


def gather_numbers(columns: Iterable[Numbers], rows: Ints, into: Iterable[Values]) -> None:
    """Copy the values of ``rows`` from each column into the array paired with the column."""
    for column, out in zip(columns, into, strict=True):
        if column.has_values:
            out[:] = column._data[rows]
        else:
            out.fill(column.default)


class RecentTimes(Numbers):
    """The most recent access times of each row, as an i64[rows, depth] array, newest first.

    A row with fewer than ``depth`` times is filled up with ``NEVER``.
    """

    NEVER = np.iinfo(np.int64).min  # sorts before every time, so rows need no counts

    def __init__(self, depth: int, values: Ints | None = None) -> None:
        super().__init__(np.int64, np.empty((0, depth)) if values is None else values)

    def append(self, values: Sequence[int] | Ints) -> None:
        """Add one row for each time, with this time as the row's only value."""
        block = np.full((len(values), self._data.shape[1]), self.NEVER)
        block[:, 0] = values
        super().append(block)

    def set_times(self, rows: Ints, times: Sequence[Sequence[int]]) -> None:
        """Replace the times of each of ``rows`` by a list of times, newest first.

        Only the first ``depth`` times of each list are stored.
        """
        depth = self._data.shape[1]
        self._data[rows] = [[*row[:depth], *[self.NEVER] * (depth - len(row))] for row in times]

    def add_time(self, rows: Ints, time: int) -> None:
        """Insert ``time`` into the times of each row, keeping them newest first.

        Rows must be unique. If a row is full, its oldest time is dropped.
        """
        before = self._data[rows]
        if (before[:, 0] <= time).all():
            before[:, 1:] = before[:, :-1]
            before[:, 0] = time
            self._data[rows] = before
            return
        position = (before >= time).sum(axis=1)[:, None]
        columns = np.arange(before.shape[1])
        shifted = np.concatenate([before[:, :1], before[:, :-1]], axis=1)
        self._data[rows] = np.where(
            columns < position, before, np.where(columns == position, time, shifted)
        )

    def drop_time(self, rows: Ints, time: int) -> None:
        """Remove one occurrence of ``time`` from each row's times. Rows must be unique."""
        before = self._data[rows]
        match = before == time
        position = np.where(match.any(axis=1), match.argmax(axis=1), before.shape[1])[:, None]
        shifted = np.concatenate([before[:, 1:], np.full((len(before), 1), self.NEVER)], axis=1)
        self._data[rows] = np.where(np.arange(before.shape[1]) < position, before, shifted)


class Names:
    """A column of strings that recur, stored as integer codes into a vocabulary.

    The code of null is -1.
    """

    def __init__(self, vocabulary: Iterable[str] = (), *, default: str | None = None) -> None:
        self.vocabulary: list[str] = list(vocabulary)
        self._code: dict[str, int] = {name: code for code, name in enumerate(self.vocabulary)}
        self._codes = Numbers(np.int32, default=self._intern(default))
        self._table: Values = np.array([None], dtype=object)
        """The vocabulary followed by None, rebuilt when the vocabulary has grown."""

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def default(self) -> str | None:
        """The string of rows that were added without a value, or None."""
        code = -1 if self._codes.default is None else int(self._codes.default)
        return None if code < 0 else self.vocabulary[code]

    @property
    def codes(self) -> Codes:
        """The code of each row, as an array that shares memory with the column."""
        return self._codes.values

    def code(self, name: str | None) -> int:
        """Return the code of a string, or -1 for None and -2 for an unknown string."""
        return -1 if name is None else self._code.get(name, -2)

    @property
    def has_values(self) -> bool:
        """Whether any row ever had a string other than the default."""
        return self._codes.has_values

    def is_in(self, names: Iterable[str | None], start: int = 0) -> Flags:
        """Return a mask of the rows, from ``start`` on, whose string is in ``names``.

        None in ``names`` matches rows without a string.
        """
        wanted = np.zeros(len(self.vocabulary) + 1, dtype=np.bool_)
        # The code of null, -1, indexes the last flag.
        wanted[[code for code in map(self.code, names) if code >= -1]] = True
        return np.asarray(wanted[self._codes.values[start:]])

    def append(self, names: Sequence[str | None]) -> None:
        """Add one row for each string."""
        self._codes.append([self._intern(name) for name in names])

    def extend(self, name: str | None, count: int) -> None:
        """Add ``count`` rows with the same string."""
        self._codes.extend(self._intern(name), count)

    def append_codes(self, codes: Codes) -> None:
        """Add one row for each code of the vocabulary."""
        self._codes.append(codes)

    def set(self, rows: Ints, names: str | Sequence[str | None] | None) -> None:
        """Set the strings of ``rows``: one string for all rows, or one for each row."""
        if names is None or isinstance(names, str):
            self._codes.set(rows, self._intern(names))
        else:
            self._codes.set(rows, [self._intern(name) for name in names])

    def _intern(self, name: str | None) -> int:
        if name is None:
            return -1
        code = self._code.get(name)
        if code is None:
            code = self._code[name] = len(self.vocabulary)
            self.vocabulary.append(name)
        return code

    def value_at(self, row: int) -> str | None:
        """Return the string of one row, or None for null."""
        code = int(self.codes[row])
        return None if code < 0 else self.vocabulary[code]

    def series(self, name: str, rows: Ints | None = None) -> pl.Series:
        """Return the strings of ``rows``, by default of all rows, as a Polars series."""
        codes = self.codes if rows is None else self.codes[rows]
        if not self.vocabulary:
            return pl.Series(name, [None] * len(codes), dtype=pl.String)
        index = pl.Series(codes.astype(np.int64)).replace(-1, None)
        return pl.Series(self.vocabulary, dtype=pl.String).gather(index).alias(name)

    @property
    def codes_by_name(self) -> Mapping[str, int]:
        """A read-only mapping from each string of the vocabulary to its code."""
        return self._code

    def to_objects(self, rows: Ints) -> Values:
        """Return the strings of ``rows`` as an object array, with None for null."""
        if len(self._table) != len(self.vocabulary) + 1:
            self._table = np.array([*self.vocabulary, None], dtype=object)
        return np.asarray(self._table[self._codes.values[rows]])


def read_words(columns: Iterable[Names], rows: Ints) -> list[list[str | None]]:
    """Return the strings of ``rows`` in each column, with None for null."""
    return [
        column.to_objects(rows).tolist() if column.has_values else [column.default] * len(rows)
        for column in columns
    ]


def read_row_words(columns: Iterable[Names], row: int) -> list[str | None]:
    """Return the string of one row in each column."""
    return [column.value_at(row) for column in columns]


class Texts:
    """A column of strings or nulls: an Arrow series followed by a short Python list."""

    def __init__(self, base: pl.Series | None = None) -> None:
        self._base = pl.Series([], dtype=pl.String) if base is None else base
        self._delta: list[str | None] = []

    def __len__(self) -> int:
        return len(self._base) + len(self._delta)

    def append(self, texts: Sequence[str | None]) -> None:
        """Add one row for each text."""
        self._delta.extend(texts)
        if len(self._delta) >= _SEAL_AT:
            self._base = self.series("")
            self._delta = []

    def series(self, name: str) -> pl.Series:
        """Return all texts as a Polars series called ``name``."""
        delta = pl.Series(self._delta, dtype=pl.String)
        return (
            pl.concat([self._base, delta], rechunk=True).alias(name)
            if self._delta
            else self._base.alias(name)
        )

    def value_at(self, row: int) -> str | None:
        """Return the text of one row, or None if the row has no text."""
        sealed = len(self._base)
        value: str | None = self._base[row] if row < sealed else self._delta[row - sealed]
        return value

    def to_list(self, rows: Ints) -> list[str | None]:
        """Return the texts of ``rows``."""
        base, sealed = self._base, len(self._base)
        if len(rows) > _ONE_BY_ONE and rows.max() < sealed:
            texts: list[str | None] = base.gather(rows).to_list()
            return texts
        return [base[row] if row < sealed else self._delta[row - sealed] for row in rows.tolist()]


class _Sparse(Generic[V]):
    """A column that stores a value only for rows that have one."""

    dtype: ClassVar[Any]
    empty: ClassVar[Any] = None
    """The value of a row without one."""

    def __init__(self) -> None:
        self._size = 0
        self._values: dict[int, V] = {}

    def __len__(self) -> int:
        return self._size

    @property
    def has_values(self) -> bool:
        """Whether any row has a value."""
        return bool(self._values)

    def items(self) -> ItemsView[int, V]:
        """Return the pairs of row and value of all rows that have a value."""
        return self._values.items()

    def append(self, values: Sequence[Any]) -> None:
        """Add one row for each value."""
        for row, value in enumerate(values, self._size):
            if value is not None:
                self._put(row, value)
        self._size += len(values)

    def extend(self, value: Any, count: int) -> None:
        """Add ``count`` rows with the same value."""
        if value is not None:
            for row in range(self._size, self._size + count):
                self._put(row, value)
        self._size += count

    def _put(self, row: int, value: Any) -> None:
        """Set the value of a row. None removes the value."""
        if value is None:
            self._values.pop(row, None)
        else:
            self._values[row] = value

    def series(self, name: str, rows: Ints | None = None) -> pl.Series:
        """Return the values of ``rows`` (all rows by default) as a series called ``name``."""
        if rows is not None:
            return pl.Series(
                name, [self._values.get(row, self.empty) for row in rows.tolist()], dtype=self.dtype
            )
        table = pl.Series(name, [self.empty, *self._values.values()], dtype=self.dtype)
        index = np.zeros(self._size, dtype=np.int64)
        index[list(self._values)] = np.arange(1, len(self._values) + 1)
        return table.gather(index)


class Lists(_Sparse[tuple[str, ...]]):
    """A column of lists of strings, most of which are empty."""

    dtype: ClassVar[Any] = pl.List(pl.String)
    empty: ClassVar[Any] = ()

    def value_at(self, row: int) -> tuple[str, ...]:
        """Return the strings of one row."""
        return self._values.get(row, ())

    def _put(self, row: int, value: Any) -> None:
        super()._put(row, tuple(value) if value else None)

    def with_values(self, rows: Sequence[int], lists: Sequence[Sequence[str] | None]) -> Lists:
        """Return a copy of the column with other lists of strings in ``rows``.

        The copy is a new object, so caches keyed by the column are not used for it.
        """
        after = Lists()
        after._size, after._values = self._size, dict(self._values)
        for row, strings in zip(rows, lists, strict=True):
            after._put(row, strings)
        return after

    def append_series(self, lists: pl.Series) -> None:
        """Append the rows of a Polars list column, reading only non-empty lists."""
        filled = (lists.list.len().fill_null(0) > 0).arg_true()
        for row, strings in zip(filled.to_list(), lists.gather(filled).to_list(), strict=True):
            self._values[self._size + row] = tuple(strings)
        self._size += len(lists)


class Notes(_Sparse[str]):
    """A column of strings that few rows have."""

    dtype: ClassVar[Any] = pl.String

    def value_at(self, row: int) -> str | None:
        """Return the string of one row, or None for null."""
        return self._values.get(row)

    def set(self, rows: Sequence[int], notes: str | Sequence[str | None] | None) -> None:
        """Set the strings of ``rows``: one string for all rows, or one for each row."""
        each = [notes] * len(rows) if notes is None or isinstance(notes, str) else notes
        for row, note in zip(rows, each, strict=True):
            self._put(row, note)


C = TypeVar("C")


def build_columns(
    kind: Callable[..., C], arguments: Mapping[str, Mapping[str, Any]]
) -> dict[str, C]:
    """Return an empty column for each name in ``arguments``.

    ``kind`` is called with the keyword arguments that the mapping has for the name.
    """
    return {name: kind(**options) for name, options in arguments.items()}


def extend_columns(columns: Iterable[GrowingColumn], values: Iterable[Any], count: int) -> None:
    """Add ``count`` rows to each column, with values from an iterable.

    ``values`` has an entry for each column: a list or an array with one value for each row, or one value for all.
    """
    for column, added in zip(columns, values, strict=True):
        if isinstance(added, list | np.ndarray):
            column.append(added)
        else:
            column.extend(added, count)


# -- The order of memories within each session, derived from the column of sessions at first use ------------------------


_STEPS = 100
"""Maximum number of steps over rows outside a mask, a microsecond each. One pass over all rows crosses longer runs."""


class Sessions:
    """The previous and the next row of each row within its session.

    A query first adds the rows that were written since the previous query, so a write itself costs nothing.
    """

    def __init__(self) -> None:
        self._last = np.full(0, -1, dtype=np.int64)
        # Line 0 has the previous row of each row, and line 1 the next row. The last column is that of index -1, which
        # means "no row" and leads to itself.
        self._neighbours = np.full((2, 1), -1, dtype=np.int32)
        self._size = 0

    def last(self, contexts: Names, code: int) -> int:
        """Return the newest row of the session with the given code, or -1 for an empty session."""
        self._update(contexts)
        return int(self._last[code]) if code >= 0 else -1

    def around(self, contexts: Names, rows: Rows, reach: int, mask: Flags | None = None) -> Rows:
        """Return each row and its neighbours in its session, as i64[1 + 2 reach, rows].

        Line 0 of the array has the rows themselves. The next ``reach`` lines have the preceding rows, nearest first,
        and the last ``reach`` lines the following rows. -1 means no row. With a ``mask``, rows outside the mask are
        skipped.
        """
        self._update(contexts)
        window = np.empty((1 + 2 * reach, len(rows)), dtype=np.int64)
        window[0] = rows
        for side in range(2):
            current = rows
            for step in range(reach):
                current = self._step(contexts.codes, current, side, mask)
                window[1 + side * reach + step] = current
        return window

    def _step(self, codes: Values, rows: Rows, side: int, mask: Flags | None) -> Rows:
        """Return the nearest row in ``mask`` before (side 0) or after (side 1) each row in its session, or -1."""
        neighbours = self._neighbours[side]
        stepped: Rows = neighbours[rows].astype(np.int64)
        if mask is None:
            return stepped
        (left,) = ((stepped >= 0) & ~mask[stepped]).nonzero()
        for _ in range(_STEPS):
            if not len(left):
                return stepped
            stepped[left] = neighbours[stepped[left]]
            left = left[(stepped[left] >= 0) & ~mask[stepped[left]]]
        inside = np.flatnonzero(mask & np.isin(codes, codes[stepped[left]]))
        for position in left.tolist():
            session = inside[codes[inside] == codes[stepped[position]]]
            index = int(session.searchsorted(stepped[position])) - (side == 0)
            stepped[position] = session[index] if 0 <= index < len(session) else -1
        return stepped

    def _update(self, contexts: Names) -> None:
        start, size = self._size, len(contexts)
        if start == size:
            return
        fresh = contexts.codes[start:]
        if len(self._last) < len(contexts.vocabulary):
            more = np.full(len(contexts.vocabulary) * 2 - len(self._last), -1, dtype=np.int64)
            self._last = np.concatenate([self._last, more])
        if self._neighbours.shape[1] <= size:
            self._neighbours = np.concatenate(
                [self._neighbours[:, :start], np.full((2, 2 * size), -1, np.int32)], axis=1
            )
        (inside,) = (fresh >= 0).nonzero()
        order = inside[fresh[inside].argsort(kind="stable")]
        codes, rows = fresh[order], order + start
        opens = np.ones(len(codes), dtype=np.bool_)
        np.not_equal(codes[1:], codes[:-1], out=opens[1:])
        earlier = np.empty(len(rows), dtype=np.int64)
        earlier[1:] = rows[:-1]
        earlier[opens] = self._last[codes[opens]]
        self._last[codes] = rows  # rows ascend within a session, so the newest is assigned last
        before, after = self._neighbours
        before[start:size] = after[start:size] = -1
        before[rows] = earlier
        (linked,) = (earlier >= 0).nonzero()
        after[earlier[linked]] = rows[linked]
        self._size = size
