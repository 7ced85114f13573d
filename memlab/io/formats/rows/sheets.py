"""Tables: CSV line by line, frames of Polars and of pandas, Parquet."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl

from memlab.errors import DatasetError, InputError
from memlab.io.formats.rows.json import Entries
from memlab.io.formats.rows.lines import Lines, text_of_line
from memlab.kernel.base.arguments import Called

__all__ = ["frame_entries", "is_pandas", "pandas_entries", "sheet"]

_DELIMITERS = ",;\t|"
_SLICE = 5_000


def sheet(read: Lines, head: str) -> Entries:
    """The rows of a file of comma-separated values under the names of its first line, by their line numbers.

    The separator is what stands most often in that line. A cell has at most 131,072 characters (the limit of Python's
    ``csv``); a row that has more, or more cells than there are names, is skipped. A cell is a text and never a formula.
    """
    first = head.partition("\n")[0]
    counts = Counter(letter for letter in first if letter in _DELIMITERS)
    delimiter = max(_DELIMITERS, key=lambda letter: counts[letter])
    read.notes.guessed["separator"] = {"\t": "tab"}.get(delimiter, delimiter)
    numbers = [0]

    def texts() -> Iterator[str]:
        for number, line in read:
            numbers[0] = number
            yield text_of_line(line, read.notes) + "\n"

    parsed = csv.reader(texts(), delimiter=delimiter, skipinitialspace=True)
    names: list[str] = []
    while True:
        begins = numbers[0] + 1
        try:
            cells = next(parsed)
        except StopIteration:
            return
        except csv.Error as error:
            read.notes.skip(begins, "row is no CSV", str(error))
            continue
        if not any(cells):
            continue
        if not names:
            names = [cell.strip() or f"column {place}" for place, cell in enumerate(cells, 1)]
            if len(set(names)) < len(names):
                raise DatasetError(f"{read.notes.source}: two columns are called {_repeated(names)}.")
        elif len(cells) > len(names):
            read.notes.skip(begins, "more cells than columns", f"{len(cells)} of {len(names)}")
        else:
            yield begins, dict(zip(names, cells, strict=False))


def _repeated(names: list[str]) -> str:
    return f'"{Counter(names).most_common(1)[0][0]}"'


def is_pandas(x: object) -> bool:
    """Whether it is a frame of pandas, asked without importing it."""
    return type(x).__module__.partition(".")[0] == "pandas" and hasattr(x, "columns")


def frame_entries(frame: pl.DataFrame | pl.LazyFrame) -> Entries:
    """The rows of a frame by their numbers, a slice at a time."""
    lazy, start = frame.lazy(), 0
    while True:
        try:
            part = lazy.slice(start, _SLICE).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DatasetError(f"The frame cannot be read: {error}") from None
        yield from enumerate(part.iter_rows(named=True), start + 1)
        if len(part) < _SLICE:
            return
        start += _SLICE


def pandas_entries(frame: Any) -> Entries:
    """The rows of a frame of pandas as dicts; what is missing is None."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise InputError(f"Two columns of the frame are called {_repeated(names)}.")
    columns = [Called(lambda place=place: frame.iloc[:, place].tolist(), "load")() for place in range(len(names))]
    for number, cells in enumerate(zip(*columns, strict=True), 1):
        yield number, {name: _known(cell) for name, cell in zip(names, cells, strict=True)}


def _known(cell: Any) -> Any:
    return None if cell is None or type(cell).__name__ in ("NaTType", "NAType") or cell != cell else cell
