"""Faults of the frames of a caller's log, told in the caller's names of tables and columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import polars as pl

from memlab.errors import DatasetError, InputError, UnknownName
from memlab.kernel.base.clock import INSTANT, to_micros
from memlab.kernel.slates._schema import IDS

ROW = "#row"
"""The column with the row number in the caller's frame, from 0, while a frame is checked."""

Why = str | Callable[[Mapping[str, Any]], str]


def brief(value: object) -> str:
    """Return a value as text for a message, at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def read_frame(frame: object, table: str) -> pl.DataFrame:
    """Collect a caller's frame and add a column with row numbers."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, pl.DataFrame):
        raise InputError(
            f"{table} must be a Polars DataFrame or LazyFrame, not {type(frame).__name__}."
        )
    return frame if ROW in frame.columns else frame.with_row_index(ROW)


@dataclass(frozen=True)
class Labels:
    """The names that the caller uses for tables and columns, for error messages."""

    tables: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def table(self, table: str) -> str:
        """Return the name that the caller gave to a table."""
        return self.tables.get(table, table)

    def column(self, table: str, column: str) -> str:
        """Return the name that the caller gave to a column."""
        return self.columns.get((table, column), column)

    def refuse(self, table: str, rows: pl.DataFrame, why: Why) -> None:
        """Raise DatasetError about the first of ``rows``; do nothing if there are no rows."""
        if rows.is_empty():
            return
        first = rows.sort(ROW).row(0, named=True)
        ids = ", ".join(
            f"{self.column(table, name)} {brief(first[name])}" for name in IDS if name in first
        )
        reason = why if isinstance(why, str) else why(first)
        more = f" {rows.height - 1:,} more rows have this fault." if rows.height > 1 else ""
        raise DatasetError(f"{self.table(table)}, row {first[ROW]} ({ids}): {reason}.{more}")

    def refuse_where(self, table: str, frame: pl.DataFrame, bad: pl.Expr, why: Why) -> None:
        """Raise DatasetError about the first row of ``frame`` that satisfies ``bad``."""
        self.refuse(table, frame.filter(bad), why)

    def require(self, table: str, frame: pl.DataFrame, *columns: str) -> None:
        """Raise UnknownName if the table lacks a required column."""
        for column in columns:
            if column not in frame.columns:
                available = [name for name in frame.columns if name != ROW]
                raise UnknownName(f"column of {self.table(table)} named", column, available)

    def cast(
        self, table: str, frame: pl.DataFrame, kinds: Mapping[str, pl.DataType]
    ) -> pl.DataFrame:
        """Return the table with its columns in their declared types.

        A missing column becomes null. A value that cannot be converted raises DatasetError.
        """
        columns = []
        for name, kind in kinds.items():
            if name not in frame.columns:
                columns.append(pl.lit(None, dtype=kind).alias(name))
            elif name in IDS:
                columns.append(self._convert_ids(table, frame, name))
            elif kind == INSTANT:
                columns.append(pl.lit(self._convert_times(table, frame, name)))
            elif frame.schema[name] != kind:
                columns.append(pl.lit(self._convert(table, frame, name, kind)))
        return frame.with_columns(columns)

    def _convert_ids(self, table: str, frame: pl.DataFrame, name: str) -> pl.Expr:
        """Return an expression that casts an id column to Int64 or String."""
        kind = frame.schema[name]
        if kind.is_integer():
            self.refuse_where(
                table,
                frame,
                pl.col(name).is_not_null() & pl.col(name).cast(pl.Int64, strict=False).is_null(),
                lambda row: f"{self.column(table, name)} {row[name]} is beyond 64 bits",
            )
            return pl.col(name).cast(pl.Int64)
        if kind in (pl.String, pl.Categorical, pl.Enum):
            return pl.col(name).cast(pl.String)
        if kind == pl.Null:
            return pl.col(name).cast(pl.Int64)
        raise InputError(
            f"{self.table(table)}: {self.column(table, name)} is {kind}, but ids must be "
            "whole numbers or text. Cast it first, as in "
            f"frame.with_columns(pl.col({self.column(table, name)!r}).cast(pl.Int64))."
        )

    def _convert(self, table: str, frame: pl.DataFrame, name: str, kind: pl.DataType) -> pl.Series:
        """Convert a column to its declared type.

        The first value that cannot be converted raises DatasetError.
        """
        before = frame[name]
        label = self.column(table, name)
        text = before.dtype in (pl.String, pl.Categorical, pl.Enum)
        plain = before.dtype.is_numeric() or before.dtype in (pl.Boolean, pl.Null)
        if not plain and not (text and kind != pl.Boolean):
            raise InputError(
                f"{self.table(table)}: {label} is {before.dtype}. Cast the column to {kind}."
            )
        # Categories are cast to text first, because a direct cast would convert their codes.
        after = (before.cast(pl.String) if text else before).cast(kind, strict=False)
        wrong = after.is_null() & before.is_not_null()
        if before.dtype.is_numeric() and kind in (pl.Int64, pl.Boolean):
            wrong |= (after.cast(before.dtype, strict=False) != before).fill_null(False)
        self.refuse(
            table,
            frame.filter(wrong),
            lambda row: f"{label} is {brief(row[name])}, which is not a {_WORDS[kind]}",
        )
        return after.alias(name)

    def _convert_times(self, table: str, frame: pl.DataFrame, name: str) -> pl.Series:
        """Convert a column of times to UTC with microseconds.

        Numbers are microseconds since 1970. Times without a zone are read as UTC.
        """
        values = frame[name]
        kind = values.dtype
        if isinstance(kind, pl.Datetime):
            aware = values.dt.replace_time_zone("UTC") if kind.time_zone is None else values
            return aware.dt.convert_time_zone("UTC").dt.cast_time_unit("us")
        if kind == pl.Date:
            return values.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        if kind.is_integer() or kind == pl.Null:
            return values.cast(pl.Int64).cast(INSTANT)
        if kind != pl.String:
            label = self.column(table, name)
            raise InputError(
                f"{self.table(table)}: {label} is {kind}, but a time must be a Datetime, ISO 8601 text or an Int64."
            )
        micros = []
        for row, text in enumerate(values.to_list()):
            try:
                micros.append(None if text is None else to_micros(text))
            except InputError as error:
                self._refuse_row(table, frame[row : row + 1], str(error).rstrip("."))
        return pl.Series(name, micros, dtype=pl.Int64).cast(INSTANT)

    def _refuse_row(self, table: str, row: pl.DataFrame, why: str) -> NoReturn:
        """Raise DatasetError about the only row of a frame."""
        self.refuse(table, row, why)
        raise AssertionError("unreachable: refuse() raises for a frame with one row")


# The names of types in messages.
_WORDS: dict[pl.DataType, str] = {
    pl.Int64(): "whole number",
    pl.Float64(): "number",
    pl.Boolean(): "truth value",
    pl.String(): "text",
}
