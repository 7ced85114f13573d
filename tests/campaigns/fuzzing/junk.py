"""Values that a caller may pass by mistake or on purpose, by name, built again for every call."""

from __future__ import annotations

import datetime
import decimal
import fractions
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

__all__ = ["JUNK", "Spiteful"]


class Spiteful:
    """An object of which nothing can be asked without an error."""

    def _refuse(self, *_: object, **__: object) -> Any:
        raise RuntimeError("spite")

    __str__ = __repr__ = __eq__ = __len__ = __hash__ = __iter__ = __bool__ = __int__ = __float__ = (
        _refuse
    )
    __index__ = __lt__ = __getitem__ = __contains__ = __fspath__ = __array__ = _refuse


class Text(str):
    """A subclass of str, as NumPy, pathlib and others have them."""

    __slots__ = ()


class SpitefulText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("spite")

    __repr__ = __str__


def _written(path: Path) -> Path:
    """Write a file that memlab cannot read into the working directory, because calls may overwrite it."""
    path.write_text("nothing")
    return path.absolute()


def _raising() -> Any:
    yield "tabs"
    raise RuntimeError("a generator that breaks off")


JUNK: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "-1": lambda: -1,
    "0": lambda: 0,
    "1": lambda: 1,
    "7": lambda: 7,
    "2**63": lambda: 2**63,
    "10**30": lambda: 10**30,
    "-10**30": lambda: -(10**30),
    "10**400": lambda: 10**400,
    "1.0": lambda: 1.0,
    "1.5": lambda: 1.5,
    "-0.0": lambda: -0.0,
    "1e308": lambda: 1e308,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "1j": lambda: 1j,
    "empty text": lambda: "",
    "blank": lambda: " \n\t",
    "x": lambda: "x",
    "digits": lambda: "3",
    "a lone surrogate": lambda: "tabs \ud800",
    "NUL": lambda: "a\0b",
    "a parenthesis": lambda: "(",
    "an unclosed form": lambda: "(defn recall-score [",
    "controls": lambda: "\x1b]0;title\x07\x9b",
    "a huge text": lambda: "x" * 1_100_000,
    "a long name": lambda: "n" * 5_000,
    "a subclass of str": lambda: Text("tabs"),
    "a spiteful str": lambda: SpitefulText("tabs"),
    "no bytes": lambda: b"",
    "bytes": lambda: b"tabs\xff",
    "a bytearray": lambda: bytearray(b"tabs"),
    "[]": list,
    "[None]": lambda: [None],
    "[1]": lambda: [1],
    "['x']": lambda: ["x"],
    "[['x']]": lambda: [["x"]],
    "[spite]": lambda: [Spiteful()],
    "()": tuple,
    "(1, 2)": lambda: (1, 2),
    "(2, 1)": lambda: (2.0, 1.0),
    "('x', 'y')": lambda: ("x", "y"),
    "{}": dict,
    "{'x': 1}": lambda: {"x": 1},
    "{1: None}": lambda: {1: None},
    "{'x': spite}": lambda: {"x": Spiteful()},
    "{(1, 2): 'x'}": lambda: {(1, 2): "x"},
    "a set": lambda: {"x"},
    "a frozenset": lambda: frozenset({1}),
    "a generator": lambda: (n for n in ("x", 1)),
    "a broken generator": _raising,
    "a range": lambda: range(3),
    "an iterator": lambda: iter([]),
    "chained": lambda: itertools.chain([1], [None]),
    "object()": object,
    "spite": Spiteful,
    "a class": lambda: int,
    "a lambda": lambda: lambda: None,
    "a raising function": lambda: lambda *_, **__: 1 / 0,
    "a lying function": lambda: lambda *_, **__: Spiteful(),
    "a function of anything": lambda: lambda *_, **__: None,
    "an exception": lambda: ValueError("x"),
    "a module": lambda: itertools,
    "Path()": Path,
    "a stray home": lambda: "~nobody-of-that-name/x",
    "a Path": lambda: Path("somewhere"),
    "a Path with NUL": lambda: Path("a\0b"),
    "a long Path": lambda: Path("p" * 5_000),
    "a Path without parents": lambda: Path("nowhere/at/all"),
    "a folder": lambda: Path.cwd(),
    "a file": lambda: _written(Path("a-file.txt")),
    "np.int64": lambda: np.int64(3),
    "np.float32": lambda: np.float32(0.5),
    "np.nan": lambda: np.float64("nan"),
    "np.bool": lambda: np.bool_(True),
    "np.str": lambda: np.str_("tabs"),
    "np.datetime64": lambda: np.datetime64("2026-01-01"),
    "an array": lambda: np.arange(3),
    "an array of floats": lambda: np.array([[0.5, np.nan]]),
    "an array of nothing": lambda: np.array(None),
    "an array of objects": lambda: np.array([None, "x"], dtype=object),
    "a Fraction": lambda: fractions.Fraction(1, 3),
    "a Decimal": lambda: decimal.Decimal("sNaN"),
    "a date": lambda: datetime.date(2026, 1, 1),
    "the last date": lambda: datetime.date.max,
    "the first time": lambda: datetime.datetime.min,
    "the last time": lambda: datetime.datetime.max.replace(
        tzinfo=datetime.timezone(datetime.timedelta(hours=-23))
    ),
    "a time": lambda: datetime.time(12),
    "no time at all": lambda: datetime.timedelta(0),
    "a long time": lambda: datetime.timedelta.max,
    "no date": lambda: "2026-02-30",
    "a date as text": lambda: "2026-02-03",
    "a frame": lambda: pl.DataFrame({"x": [1, None], "y": ["a", "b"]}),
    "no frame": pl.DataFrame,
    "a frame of texts": lambda: pl.DataFrame({"text": ["a", None]}),
    "a frame of wrong types": lambda: pl.DataFrame(
        {"decision": [[1]], "memory_id": [{"a": 1}], "text": [b"x"]}
    ),
    "a lazy frame": lambda: pl.LazyFrame({"decision": [1.5], "memory_id": ["x"]}),
    "a broken lazy frame": lambda: pl.LazyFrame({"decision": [1]}).select(pl.col("nowhere")),
    "a Series": lambda: pl.Series("ids", [1, 2]),
    "a Series of nulls": lambda: pl.Series([None, None]),
    "an expression": lambda: pl.col("kind") == "fact",
    "an unknown column": lambda: pl.col("nowhere") > 1,
    "a number for true": lambda: pl.lit(1),
    "an expression that fails": lambda: pl.col("text").cast(pl.Int64) > 1,
    "an expression that raises": lambda: pl.col("text").map_elements(
        lambda _: 1 / 0, return_dtype=pl.Boolean
    ),
    "all columns": pl.all,
}
