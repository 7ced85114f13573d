"""A Polars expression over the memories as a filter, and as data that a log may hold.

Polars writes a Python function into an expression as a pickle, and reading one runs it. So what is read back is
checked first, node by node, against what is known to compute and nothing else; lists of values, which Polars writes as
Arrow buffers, are logged as plain values. An expression that calls Python filters, but cannot be read back.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.privacy import refuse
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import State, seen_rows

__all__ = ["Where", "memory_columns"]

_COLUMNS = ("id", *MEMORY)
_LASTING = {"id", "created", *(n for n, c in MEMORY.items() if c.storage not in ("num", "bool", "time"))}
"""Columns that change only with the state's generation; use and feedback change the others."""

# fmt: off
_NODES = {"Agg", "BinaryExpr", "Cast", "Eval", "Function", "Len", "Over", "Ternary"}
_AGGREGATES = {"Min", "Max", "Median", "NUnique", "First", "Last", "Mean", "Count", "Sum", "Std", "Var"}
_FUNCTIONS = {
    "Abs", "Boolean", "Ceil", "Clip", "Coalesce", "Exp", "FillNull", "Floor", "ListExpr", "Log", "MaxHorizontal",
    "MinHorizontal", "Negate", "NullCount", "Pow", "Quantile", "Rank", "Round", "Sign", "StringExpr", "SumHorizontal",
    "TemporalExpr",
}
_SCALARS = {
    "Boolean", "Date", "Datetime", "DatetimeOwned", "Duration", "Float32", "Float64", "Int8", "Int16", "Int32",
    "Int64", "String", "StringOwned", "Time", "UInt8", "UInt16", "UInt32", "UInt64",
}
# fmt: on
_DYNAMIC = {"Float", "Int", "Str"}
_LISTED = {str(kind): kind for kind in (pl.String, pl.Int64, pl.Float64, pl.Boolean)}


@dataclass(frozen=True)
class Where:
    """A Polars expression over the columns of ``lab.memories``. ``text`` is its form in the log, and its identity.

    ``plain`` says that ``text`` can be read back; else it only tells what was asked.
    """

    text: str
    plain: bool
    expression: pl.Expr = field(compare=False, repr=False)

    @classmethod
    def of(cls, expression: object) -> Where:
        """A caller's expression, checked. InputError, UnknownName, PrivacyError.

        >>> Where.of(pl.col("importance") > 0.5).plain
        True
        """
        if not isinstance(expression, pl.Expr):
            raise InputError(f'where is a Polars expression, such as pl.col("kind") == "fact", not {expression!r:.60}.')
        if expression.meta.has_multiple_outputs():
            raise InputError(f"where gives one column, true or false; {_shown(expression)} gives several.")
        for name in expression.meta.root_names():
            if name not in _COLUMNS:
                raise UnknownName("column of the memories", name, _COLUMNS)
        text = _written(expression)
        where = cls(str(expression) if text is None else text, text is not None, expression)
        refuse(where.text, "filter")
        return where

    @classmethod
    def read(cls, text: str) -> Where:
        """What a log holds. InputError for what could do more than compute, and for the form of another version."""
        try:
            tree = json.loads(text)
            if not _is_plain(tree):
                raise InputError("The logged filter holds what is not read back from a log.")
            return cls(text, True, pl.Expr.deserialize(io.StringIO(json.dumps(_packed(tree))), format="json"))
        except (pl.exceptions.PolarsError, json.JSONDecodeError, TypeError, OverflowError) as error:
            raise InputError(f"The logged filter cannot be read by this version of Polars: {error}") from None

    @property
    def lasting(self) -> bool:
        """Whether its value is the same until the state's generation changes."""
        return self.plain and _LASTING.issuperset(self.expression.meta.root_names())

    def mask(self, state: State) -> NDArray[np.bool_]:
        """bool[memories]; null is false. InputError if the expression gives something else."""
        frame, seen = memory_columns(state, self.expression.meta.root_names() or ["id"]), seen_rows(state)
        frame = frame if seen is None else frame[seen]
        try:
            found = frame.select(self.expression.alias("where")).to_series()
        except Exception as error:  # a Python function in it may raise anything
            raise InputError(f"The filter {_shown(self.expression)} cannot be computed: {error}") from error
        if found.dtype != pl.Boolean:
            raise InputError(f"The filter {_shown(self.expression)} gives {found.dtype}; it has to be true or false.")
        if len(found) != len(frame):
            way = "it aggregates: compare a column with the aggregate" if len(found) == 1 else "it takes one for each"
            raise InputError(
                f"The filter {_shown(self.expression)} gives {len(found):,} values for {len(frame):,} memories; {way}."
            )
        mask: NDArray[np.bool_] = found.fill_null(False).to_numpy()
        if seen is None:
            return mask
        every = np.zeros(len(state), dtype=np.bool_)
        every[seen] = mask
        return every


def memory_columns(state: State, names: Sequence[str]) -> pl.DataFrame:
    """These columns of ``lab.memories`` and no others: all of them take seconds of a million memories."""
    return pl.DataFrame([state.column(name) for name in dict.fromkeys(names)])


# -- as data ----------------------------------------------------------------------------------------------------------


def _written(expression: pl.Expr) -> str | None:
    """The expression as JSON; None if it holds what would not be read back."""
    try:
        tree = _unpacked(json.loads(expression.meta.serialize(format="json")))
    except (pl.exceptions.PolarsError, TypeError):
        return None
    return json.dumps(tree, separators=(",", ":")) if _is_plain(tree) else None


def _unpacked(node: Any) -> Any:
    """The tree with buffers of values as ``{"Values": {"type", "shape", "items"}}``."""
    if isinstance(node, list):
        return [_unpacked(item) for item in node]
    if not isinstance(node, dict):
        return node
    literal = node.get("Literal")
    if isinstance(literal, dict):
        shape = "Series" if "Series" in literal else "List" if "List" in (literal.get("Scalar") or ()) else None
        if shape is None:
            return node
        values = pl.select(pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")).to_series()
        if shape == "List":
            values = values.explode(empty_as_null=False)
        values = values.cast(pl.Int64) if values.dtype.is_integer() else values
        if str(values.dtype) not in _LISTED:
            raise TypeError(f"a list of {values.dtype}")
        return {"Values": {"type": str(values.dtype), "shape": shape, "items": values.to_list()}}
    return {key: _unpacked(value) for key, value in node.items()}


def _packed(node: Any) -> Any:
    """The tree as Polars reads it."""
    if isinstance(node, list):
        return [_packed(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "Values" in node:
        kind = _LISTED[node["Values"]["type"]]
        items = pl.Series(node["Values"]["items"], dtype=kind, strict=True)
        value = pl.lit(items) if node["Values"]["shape"] == "Series" else pl.lit(items.to_list(), dtype=pl.List(kind))
        return json.loads(value.meta.serialize(format="json"))
    return {key: _packed(value) for key, value in node.items()}


def _is_plain(node: Any) -> bool:
    """Whether a tree is made of what computes and nothing else."""
    if node == "Element" or node == "Len":
        return True
    if not isinstance(node, dict) or len(node) != 1:
        return False
    ((kind, inner),) = node.items()
    if kind == "Column":
        return isinstance(inner, str)
    if kind == "Literal":
        return _is_plain_literal(inner)
    if kind == "Values":
        return (
            isinstance(inner, dict)
            and set(inner) == {"type", "shape", "items"}
            and inner["type"] in _LISTED
            and inner["shape"] in ("Series", "List")
            and isinstance(inner["items"], list)
            and all(item is None or isinstance(item, str | int | float) for item in inner["items"])
        )
    if kind == "Alias":
        return isinstance(inner, list) and len(inner) == 2 and _is_plain(inner[0]) and isinstance(inner[1], str)
    if kind not in _NODES or not isinstance(inner, dict):
        return False
    if kind == "Agg":
        return inner.keys() <= _AGGREGATES and all(map(_is_operand, inner.values()))
    if kind == "Function":
        function = inner.get("function")
        name = next(iter(function), None) if isinstance(function, dict) and len(function) == 1 else function
        return set(inner) == {"input", "function"} and name in _FUNCTIONS and _is_operand(inner["input"])
    return all(_is_operand(value) for value in inner.values())


def _is_operand(value: Any) -> bool:
    """An expression, several of them, a word or number that says how, or the options of an aggregate."""
    if isinstance(value, list):
        return all(map(_is_operand, value))
    if isinstance(value, dict):
        return _is_plain(value) or (bool(value) and all(key[:1].islower() and _is_operand(value[key]) for key in value))
    return True


def _is_plain_literal(inner: Any) -> bool:
    if isinstance(inner, str):  # the type of a cast
        return True
    if not isinstance(inner, dict) or len(inner) != 1:
        return False
    ((sort, value),) = inner.items()
    if sort == "Scalar":
        return value == "Null" or (isinstance(value, dict) and value.keys() <= _SCALARS)
    return sort == "Dyn" and isinstance(value, dict) and value.keys() <= _DYNAMIC


def _shown(expression: pl.Expr) -> str:
    text = " ".join(str(expression).split())
    return text if len(text) <= 80 else f"{text[:79]}…"
