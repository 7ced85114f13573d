"""The means by which a foreign log is refused: casts and faults that name table, row, ids and reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import polars as pl

from memlab.errors import DatasetError, InputError, UnknownName
from memlab.kernel.base.clock import to_micros
from memlab.kernel.slates._schema import IDS, STAMP

__all__ = ["ROW", "Labels", "brief", "taken"]

ROW = "#row"
"""The column that holds, while a frame is checked, the row of the caller's frame (from 0, as Polars counts)."""

Why = str | Callable[[Mapping[str, Any]], str]


def brief(value: object) -> str:
    """A value as it stands in a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def taken(frame: object, table: str) -> pl.DataFrame:
    """The caller's frame, collected, with the numbers of its rows."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, pl.DataFrame):
        raise InputError(f"{table}: a Polars DataFrame or LazyFrame is needed, not {type(frame).__name__}.")
    return frame if ROW in frame.columns else frame.with_row_index(ROW)


@dataclass(frozen=True)
class Labels:
    """What the caller calls each table and column."""

    tables: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def table(self, table: str) -> str:
        return self.tables.get(table, table)

    def column(self, table: str, column: str) -> str:
        return self.columns.get((table, column), column)

    def refuse(self, table: str, rows: pl.DataFrame, why: Why) -> None:
        """Refuse the log if there are such rows; the message shows the first of them."""
        if rows.is_empty():
            return
        first = rows.sort(ROW).row(0, named=True)
        ids = ", ".join(f"{self.column(table, name)} {brief(first[name])}" for name in IDS if name in first)
        reason = why if isinstance(why, str) else why(first)
        more = f" {rows.height - 1:,} more rows have this fault." if rows.height > 1 else ""
        raise DatasetError(f"{self.table(table)}, row {first[ROW]} ({ids}): {reason}.{more}")

    def refuse_where(self, table: str, frame: pl.DataFrame, bad: pl.Expr, why: Why) -> None:
        self.refuse(table, frame.filter(bad), why)

    def require(self, table: str, frame: pl.DataFrame, *columns: str) -> None:
        for column in columns:
            if column not in frame.columns:
                known = [name for name in frame.columns if name != ROW]
                raise UnknownName(f"column of {self.table(table)} named", column, known)

    def cast(self, table: str, frame: pl.DataFrame, kinds: Mapping[str, pl.DataType]) -> pl.DataFrame:
        """The columns in their declared types, those that are absent as nulls; a value that does not fit is refused."""
        columns = []
        for name, kind in kinds.items():
            if name not in frame.columns:
                columns.append(pl.lit(None, dtype=kind).alias(name))
            elif name in IDS:
                columns.append(self._id(table, frame, name))
            elif kind == STAMP:
                columns.append(pl.lit(self._times(table, frame, name)))
            elif frame.schema[name] != kind:
                columns.append(pl.lit(self._converted(table, frame, name, kind)))
        return frame.with_columns(columns)

    def _id(self, table: str, frame: pl.DataFrame, name: str) -> pl.Expr:
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
            f"{self.table(table)}: {self.column(table, name)} is {kind}; ids are whole numbers or text. "
            f"Cast it first, as in frame.with_columns(pl.col({self.column(table, name)!r}).cast(pl.Int64))."
        )

    def _converted(self, table: str, frame: pl.DataFrame, name: str, kind: pl.DataType) -> pl.Series:
        before = frame[name]
        label = self.column(table, name)
        text = before.dtype in (pl.String, pl.Categorical, pl.Enum)
        plain = before.dtype.is_numeric() or before.dtype in (pl.Boolean, pl.Null)
        if not plain and not (text and kind != pl.Boolean):
            raise InputError(f"{self.table(table)}: {label} is {before.dtype}, and has to be {kind}.")
        # a category would be cast by its code
        after = (before.cast(pl.String) if text else before).cast(kind, strict=False)
        wrong = after.is_null() & before.is_not_null()
        if before.dtype.is_numeric() and kind in (pl.Int64, pl.Boolean):
            wrong |= (after.cast(before.dtype, strict=False) != before).fill_null(False)
        self.refuse(
            table, frame.filter(wrong), lambda row: f"{label} is {brief(row[name])}, which is no {_WORDS[kind]}"
        )
        return after.alias(name)

    def _times(self, table: str, frame: pl.DataFrame, name: str) -> pl.Series:
        given = frame[name]
        kind = given.dtype
        if isinstance(kind, pl.Datetime):
            aware = given.dt.replace_time_zone("UTC") if kind.time_zone is None else given
            return aware.dt.convert_time_zone("UTC").dt.cast_time_unit("us")
        if kind == pl.Date:
            return given.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        if kind.is_integer() or kind == pl.Null:
            return given.cast(pl.Int64).cast(STAMP)
        if kind != pl.String:
            label = self.column(table, name)
            raise InputError(
                f"{self.table(table)}: {label} is {kind}; a time is a Datetime, ISO 8601 text or an Int64."
            )
        micros = []
        for row, text in enumerate(given.to_list()):
            try:
                micros.append(None if text is None else to_micros(text))
            except InputError as error:
                self._refuse_row(table, frame[row : row + 1], str(error).rstrip("."))
        return pl.Series(name, micros, dtype=pl.Int64).cast(STAMP)

    def _refuse_row(self, table: str, row: pl.DataFrame, why: str) -> NoReturn:
        self.refuse(table, row, why)
        raise AssertionError("a row was given")


_WORDS: dict[pl.DataType, str] = {
    pl.Int64(): "whole number",
    pl.Float64(): "number",
    pl.Boolean(): "truth value",
    pl.String(): "text",
}
