"""Growable columns: the mutable numbers of a lab live in NumPy arrays, and public frames copy them.

One number of one row among a million costs under a microsecond this way, against 3 ms for a scatter into a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = [
    "Latest",
    "Lists",
    "Names",
    "Notes",
    "Numbers",
    "Sessions",
    "Texts",
    "extend",
    "gather",
    "made",
    "words_at",
    "words_of",
]


_SEAL = 4096
"""Texts kept as Python strings before they are sealed into the Arrow base."""

_ONE_BY_ONE = 256
"""Texts that are quicker taken one by one, at 0.7 microseconds each: to gather any number takes 200."""


V = TypeVar("V")


class Growing(Protocol):
    """What columns of all kinds can do."""

    def append(self, values: Any, /) -> None:
        """Rows with one value each."""

    def extend(self, value: Any, count: int, /) -> None:
        """``count`` rows of one value."""


class Numbers:
    """A column of one NumPy type with amortised growth. While every row has the default it costs nothing."""

    def __init__(
        self, dtype: type[np.generic], values: NDArray[Any] | None = None, *, default: object = None
    ) -> None:
        self.default = None if default is None else np.asarray(default, dtype=dtype)
        """What a row has that was given nothing."""
        self._data = np.empty(0, dtype=dtype) if values is None else np.array(values, dtype=dtype)
        self._size = len(self._data)
        self.held = values is not None or default is None
        """Whether some row ever had another value than the default."""
        self._same: NDArray[Any] = np.broadcast_to(np.empty((), dtype=dtype), 0)

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> NDArray[Any]:
        """A live view of the rows, not to be written to; callers that hand it on copy it."""
        if self.held or self.default is None:
            return self._data[: self._size]
        if len(self._same) != self._size:
            self._same = np.broadcast_to(self.default, self._size)
        return self._same

    def append(self, values: Sequence[Any] | NDArray[Any]) -> None:
        if not self.held:
            given = np.asarray(values, dtype=self._data.dtype)
            if self._all_default(given):
                self._size += len(given)
                return
            self._hold()
            values = given
        size = self._size
        self._grow(size + len(values))
        self._data[size : self._size] = values

    def extend(self, value: object, count: int) -> None:
        """``count`` rows of one value; None is NaN."""
        if not self.held:
            # of forty columns most stay as they are: compared as Python's numbers, a memory costs a tenth of this
            default = self.default.item() if self.default is not None else None
            if value == default or ((value is None or value != value) and default != default):
                self._size += count
                return
            self._hold()
        size = self._size
        self._grow(size + count)
        self._data[size : self._size] = np.nan if value is None else value

    def set(self, rows: NDArray[np.int64], values: Any) -> None:
        """Other values for these rows: one for all, or one for each."""
        self._hold()
        self._data[rows] = values

    def add(self, rows: NDArray[np.int64], amount: float) -> None:
        """Add to the values of these rows, each of which stands there once."""
        self._hold()
        self._data[rows] += amount

    def raise_to(self, rows: NDArray[np.int64], least: float) -> None:
        """Let these rows, each of which stands there once, have at least this value."""
        self._hold()
        self._data[rows] = np.maximum(self._data[rows], least)

    def _all_default(self, values: NDArray[Any]) -> bool:
        default = self.default
        same = values == default
        if default is not None and default != default:
            same = values != values  # NaN, which equals nothing
        return bool(np.all(same))

    def _hold(self) -> None:
        if not self.held:
            self._data = np.array(self.values)
            self.held = True

    def _grow(self, needed: int) -> None:
        self._data, self._size = _room_for(needed, self._data, self._size), needed


def _room_for(needed: int, data: NDArray[Any], size: int) -> NDArray[Any]:
    """Return an array with room for ``needed`` rows: ``data``, or a longer copy of its first ``size`` rows."""
    if needed <= len(data):
        return data
    grown = np.empty((max(needed, 2 * len(data), 64), *data.shape[1:]), dtype=data.dtype)
    grown[:size] = data[:size]
    return grown


def gather(
    columns: Iterable[Numbers], rows: NDArray[np.int64], into: Iterable[NDArray[Any]]
) -> None:
    """Write the values of these rows of each column into the array that is beside it."""
    for column, out in zip(columns, into, strict=True):
        if column.held:
            out[:] = column._data[rows]
        else:
            out.fill(column.default)


class Latest:
    """The latest instants of each row, newest first: ``depth`` of them, ``NEVER`` where there were fewer."""

    NEVER = np.iinfo(np.int64).min

    def __init__(self, depth: int, values: NDArray[np.int64] | None = None) -> None:
        self._data = (
            np.empty((0, depth), dtype=np.int64)
            if values is None
            else np.array(values, dtype=np.int64)
        )
        self._size = len(self._data)

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> NDArray[np.int64]:
        """i64[rows, depth]: a live view."""
        return self._data[: self._size]

    def append(self, first: Sequence[int] | NDArray[np.int64]) -> None:
        """Rows with one instant each."""
        needed = self._size + len(first)
        self._data = _room_for(needed, self._data, self._size)
        self._data[self._size : needed, 0] = first
        self._data[self._size : needed, 1:] = self.NEVER
        self._size = needed

    def put(self, rows: NDArray[np.int64], instants: Sequence[Sequence[int]]) -> None:
        """Other instants in place of those that these rows have: at most ``depth`` each, newest first."""
        depth = self._data.shape[1]
        self._data[rows] = [
            [*some[:depth], *[self.NEVER] * (depth - len(some))] for some in instants
        ]

    def add(self, rows: NDArray[np.int64], instant: int) -> None:
        """One more instant for each of these rows, each of which stands there once; it need not be the newest."""
        before = self._data[rows]
        if (before[:, 0] <= instant).all():
            before[:, 1:] = before[:, :-1]
            before[:, 0] = instant
            self._data[rows] = before
            return
        place = (before >= instant).sum(axis=1)[:, None]
        at = np.arange(before.shape[1])
        shifted = np.concatenate([before[:, :1], before[:, :-1]], axis=1)
        self._data[rows] = np.where(at < place, before, np.where(at == place, instant, shifted))

    def drop(self, rows: NDArray[np.int64], instant: int) -> None:
        """One such instant less for each of these rows that has it, each of which stands there once."""
        before = self._data[rows]
        found = before == instant
        place = np.where(found.any(axis=1), found.argmax(axis=1), before.shape[1])[:, None]
        shifted = np.concatenate([before[:, 1:], np.full((len(before), 1), self.NEVER)], axis=1)
        self._data[rows] = np.where(np.arange(before.shape[1]) < place, before, shifted)


class Names:
    """A column of repeated strings: codes into a vocabulary; -1 is null."""

    def __init__(self, vocabulary: Iterable[str] = (), *, default: str | None = None) -> None:
        self.vocabulary: list[str] = list(vocabulary)
        self._code: dict[str, int] = {name: code for code, name in enumerate(self.vocabulary)}
        self._codes = Numbers(np.int32, default=self._interned(default))
        self._table: NDArray[Any] = np.array([None], dtype=object)
        """The vocabulary and null, rebuilt where it has grown."""

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def default(self) -> str | None:
        """What a row has that was given nothing."""
        code = -1 if self._codes.default is None else int(self._codes.default)
        return None if code < 0 else self.vocabulary[code]

    @property
    def codes(self) -> NDArray[np.int32]:
        return self._codes.values

    def code(self, name: str | None) -> int:
        """The code of a name, -1 for null, -2 for one that no row has had."""
        return -1 if name is None else self._code.get(name, -2)

    @property
    def held(self) -> bool:
        """Whether some row ever had another name than the default."""
        return self._codes.held

    def among(self, names: Iterable[str | None], start: int = 0) -> NDArray[np.bool_]:
        """Which rows, from ``start`` on, have one of these names; None is null."""
        wanted = np.zeros(len(self.vocabulary) + 1, dtype=np.bool_)
        # the last place is null's, code -1
        wanted[[code for code in map(self.code, names) if code >= -1]] = True
        return np.asarray(wanted[self._codes.values[start:]])

    def append(self, names: Sequence[str | None]) -> None:
        self._codes.append([self._interned(name) for name in names])

    def extend(self, name: str | None, count: int) -> None:
        """``count`` rows of one name."""
        self._codes.extend(self._interned(name), count)

    def append_codes(self, codes: NDArray[np.int32]) -> None:
        self._codes.append(codes)

    def set(self, rows: NDArray[np.int64], names: str | Sequence[str | None] | None) -> None:
        """Other names for these rows: one for all, or one for each."""
        if names is None or isinstance(names, str):
            self._codes.set(rows, self._interned(names))
        else:
            self._codes.set(rows, [self._interned(name) for name in names])

    def _interned(self, name: str | None) -> int:
        if name is None:
            return -1
        code = self._code.get(name)
        if code is None:
            code = self._code[name] = len(self.vocabulary)
            self.vocabulary.append(name)
        return code

    def at(self, row: int) -> str | None:
        code = int(self.codes[row])
        return None if code < 0 else self.vocabulary[code]

    def series(self, name: str, rows: NDArray[np.int64] | None = None) -> pl.Series:
        """The strings of these rows, or of all."""
        codes = self.codes if rows is None else self.codes[rows]
        if not self.vocabulary:
            return pl.Series(name, [None] * len(codes), dtype=pl.String)
        index = pl.Series(codes.astype(np.int64)).replace(-1, None)
        return pl.Series(self.vocabulary, dtype=pl.String).gather(index).alias(name)

    @property
    def known(self) -> Mapping[str, int]:
        """The code of each string of the vocabulary, not to be written to."""
        return self._code

    def objects(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The strings of these rows as an object array, null as None."""
        if len(self._table) != len(self.vocabulary) + 1:
            self._table = np.array([*self.vocabulary, None], dtype=object)
        return np.asarray(self._table[self._codes.values[rows]])


def words_at(columns: Iterable[Names], rows: NDArray[np.int64]) -> list[list[str | None]]:
    """The strings of these rows in each column, null as None."""
    return [
        column.objects(rows).tolist() if column.held else [column.default] * len(rows)
        for column in columns
    ]


def words_of(columns: Iterable[Names], row: int) -> list[str | None]:
    """The string of one row in each column."""
    return [column.at(row) for column in columns]


class Texts:
    """A column of strings (or null): an Arrow base and a short Python list."""

    def __init__(self, base: pl.Series | None = None) -> None:
        self._base = pl.Series([], dtype=pl.String) if base is None else base
        self._delta: list[str | None] = []

    def __len__(self) -> int:
        return len(self._base) + len(self._delta)

    def append(self, texts: Sequence[str | None]) -> None:
        self._delta.extend(texts)
        if len(self._delta) >= _SEAL:
            self._base = self.series("")
            self._delta = []

    def series(self, name: str) -> pl.Series:
        delta = pl.Series(self._delta, dtype=pl.String)
        return (
            pl.concat([self._base, delta], rechunk=True).alias(name)
            if self._delta
            else self._base.alias(name)
        )

    def at(self, row: int) -> str | None:
        sealed = len(self._base)
        value: str | None = self._base[row] if row < sealed else self._delta[row - sealed]
        return value

    def take(self, rows: NDArray[np.int64]) -> list[str | None]:
        base, sealed = self._base, len(self._base)
        if len(rows) > _ONE_BY_ONE and rows.max() < sealed:
            taken: list[str | None] = base.gather(rows).to_list()
            return taken
        return [base[row] if row < sealed else self._delta[row - sealed] for row in rows.tolist()]


class _Sparse(Generic[V]):
    """A column of which few rows have a value; only those are kept."""

    dtype: ClassVar[Any]
    nothing: ClassVar[Any] = None
    """What a row without a value has."""

    def __init__(self) -> None:
        self._size = 0
        self._filled: dict[int, V] = {}

    def __len__(self) -> int:
        return self._size

    @property
    def held(self) -> bool:
        """Whether any row has a value."""
        return bool(self._filled)

    def filled(self) -> Iterable[tuple[int, V]]:
        """The rows that have a value, each with it."""
        return self._filled.items()

    def append(self, values: Sequence[Any]) -> None:
        for row, value in enumerate(values, self._size):
            if value is not None:
                self._put(row, value)
        self._size += len(values)

    def extend(self, value: Any, count: int) -> None:
        """``count`` rows of the same value."""
        if value is not None:
            for row in range(self._size, self._size + count):
                self._put(row, value)
        self._size += count

    def _put(self, row: int, value: Any) -> None:
        """Set the value of a row; None takes it away."""
        if value is None:
            self._filled.pop(row, None)
        else:
            self._filled[row] = value

    def series(self, name: str, rows: NDArray[np.int64] | None = None) -> pl.Series:
        """The values of these rows, or of all."""
        if rows is not None:
            return pl.Series(
                name,
                [self._filled.get(row, self.nothing) for row in rows.tolist()],
                dtype=self.dtype,
            )
        table = pl.Series(name, [self.nothing, *self._filled.values()], dtype=self.dtype)
        place = np.zeros(self._size, dtype=np.int64)
        place[list(self._filled)] = np.arange(1, len(self._filled) + 1)
        return table.gather(place)


class Lists(_Sparse[tuple[str, ...]]):
    """A column of string lists; most rows are empty."""

    dtype: ClassVar[Any] = pl.List(pl.String)
    nothing: ClassVar[Any] = ()

    def at(self, row: int) -> tuple[str, ...]:
        return self._filled.get(row, ())

    def _put(self, row: int, value: Any) -> None:
        super()._put(row, tuple(value) if value else None)

    def changed(self, rows: Sequence[int], lists: Sequence[Sequence[str] | None]) -> Lists:
        """A column with other strings in these rows. What was learned from this one is not true of it."""
        after = Lists()
        after._size, after._filled = self._size, dict(self._filled)
        for row, items in zip(rows, lists, strict=True):
            after._put(row, items)
        return after

    def append_series(self, lists: pl.Series) -> None:
        """The rows of a list column; only those that are not empty are visited."""
        filled = (lists.list.len().fill_null(0) > 0).arg_true()
        for row, items in zip(filled.to_list(), lists.gather(filled).to_list(), strict=True):
            self._filled[self._size + row] = tuple(items)
        self._size += len(lists)


class Notes(_Sparse[str]):
    """A column of strings that few rows have."""

    dtype: ClassVar[Any] = pl.String

    def at(self, row: int) -> str | None:
        return self._filled.get(row)

    def set(self, rows: Sequence[int], notes: str | Sequence[str | None] | None) -> None:
        """Other strings for these rows: one for all, or one for each."""
        each = [notes] * len(rows) if notes is None or isinstance(notes, str) else notes
        for row, note in zip(rows, each, strict=True):
            self._put(row, note)


C = TypeVar("C")


def made(kind: Callable[..., C], given: Mapping[str, Mapping[str, Any]]) -> dict[str, C]:
    """An empty column of one kind for each name, from the arguments beside it."""
    return {name: kind(**arguments) for name, arguments in given.items()}


def extend(columns: Iterable[Growing], given: Iterable[Any], count: int) -> None:
    """Add ``count`` rows to each column: what stands beside it, one value a row (a list or an array) or one for all."""
    for column, values in zip(columns, given, strict=True):
        if isinstance(values, list | np.ndarray):
            column.append(values)
        else:
            column.extend(values, count)


# -- the memories of each session in their order: derived of a column, followed when somebody asks --------------------


Rows = NDArray[np.int64]

_STEPS = 100
"""Rows outside a mask that are passed one by one, a microsecond each; a longer run costs a pass over all rows."""


class Sessions:
    """What precedes and follows each row in its session. Rows that came since the last question are looked at alone."""

    def __init__(self) -> None:
        self._last = np.full(0, -1, dtype=np.int64)
        # the row before each one and the row after it; the last place is no row, and is what -1 stands for
        self._beside = np.full((2, 1), -1, dtype=np.int32)
        self._followed = 0

    def last(self, contexts: Names, code: int) -> int:
        """The newest row of the session with this code, -1 where there is none."""
        self._follow(contexts)
        return int(self._last[code]) if code >= 0 else -1

    def around(
        self, contexts: Names, rows: Rows, reach: int, mask: NDArray[np.bool_] | None = None
    ) -> Rows:
        """i64[1 + 2 reach, rows]: each row, those before it, the nearest first, and those after it; -1 for none.

        With a ``mask``, neighbours are rows of the mask: the others might as well not be there.
        """
        self._follow(contexts)
        found = np.empty((1 + 2 * reach, len(rows)), dtype=np.int64)
        found[0] = rows
        for side in range(2):
            at = rows
            for step in range(reach):
                found[1 + side * reach + step] = at = self._step(contexts.codes, at, side, mask)
        return found

    def _step(
        self, codes: NDArray[Any], rows: Rows, side: int, mask: NDArray[np.bool_] | None
    ) -> Rows:
        """Return the row before (side 0) or after (side 1) each row; -1 stays -1."""
        beside = self._beside[side]
        found: Rows = beside[rows].astype(np.int64)
        if mask is None:
            return found
        (left,) = ((found >= 0) & ~mask[found]).nonzero()
        for _ in range(_STEPS):
            if not len(left):
                return found
            found[left] = beside[found[left]]
            left = left[(found[left] >= 0) & ~mask[found[left]]]
        inside = np.flatnonzero(mask & np.isin(codes, codes[found[left]]))
        for place in left.tolist():
            session = inside[codes[inside] == codes[found[place]]]
            spot = int(session.searchsorted(found[place])) - (side == 0)
            found[place] = session[spot] if 0 <= spot < len(session) else -1
        return found

    def _follow(self, contexts: Names) -> None:
        known, size = self._followed, len(contexts)
        if known == size:
            return
        fresh = contexts.codes[known:]
        if len(self._last) < len(contexts.vocabulary):
            more = np.full(len(contexts.vocabulary) * 2 - len(self._last), -1, dtype=np.int64)
            self._last = np.concatenate([self._last, more])
        if self._beside.shape[1] <= size:
            self._beside = np.concatenate(
                [self._beside[:, :known], np.full((2, 2 * size), -1, np.int32)], axis=1
            )
        (inside,) = (fresh >= 0).nonzero()
        order = inside[fresh[inside].argsort(kind="stable")]
        codes, rows = fresh[order], order + known
        opens = np.ones(len(codes), dtype=np.bool_)
        np.not_equal(codes[1:], codes[:-1], out=opens[1:])
        earlier = np.empty(len(rows), dtype=np.int64)
        earlier[1:] = rows[:-1]
        earlier[opens] = self._last[codes[opens]]
        self._last[codes] = rows  # rows ascend, and the last of several is kept
        before, after = self._beside
        before[known:size] = after[known:size] = -1
        before[rows] = earlier
        (linked,) = (earlier >= 0).nonzero()
        after[earlier[linked]] = rows[linked]
        self._followed = size
