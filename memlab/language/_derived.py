"""Sets of strings, read only through tests that give a scalar: the dialect has no list type.

``(has tags "style")`` lowers to one scalar input whose name is the expression itself. Whoever evaluates a policy gives
either that input or the set: a list column of a frame, or any collection of strings for a row. Null sets give null.

========================== =============================================
``(has s "x")``            whether ``x`` is in ``s``
``(has-any s ["x" "y"])``  whether one of them is
``(has-all s ["x" "y"])``  whether all of them are
``(overlap s t)``          how many strings ``s`` and ``t`` share
``(jaccard s t)``          shared / all of both; 0 when both are empty
``(size s)``               how many strings ``s`` holds, each once
========================== =============================================
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.language._signature import Type
from memlab.language._words import canonical

__all__ = ["SET_TESTS", "Derived", "SetName", "quoted"]

SET_TESTS: dict[str, Type] = {
    "has": "bool",
    "has-any": "bool",
    "has-all": "bool",
    "overlap": "num",
    "jaccard": "num",
    "size": "num",
}
_LIST = pl.List(pl.String)


@dataclass(frozen=True)
class SetName:
    """An argument that is a set, while a policy is checked."""

    name: str


def quoted(text: str) -> str:
    """A string as a literal of the dialect."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass(frozen=True)
class Derived:
    """A test of one or two sets. ``name`` is its expression, by which it counts among a policy's inputs."""

    op: str
    sets: tuple[str, ...]
    words: tuple[str, ...] = ()

    @property
    def type(self) -> Type:
        return SET_TESTS[self.op]

    @property
    def name(self) -> str:
        words = " ".join(map(quoted, self.words))
        if self.op in ("has-any", "has-all"):
            words = f"[{words}]"
        return f"({' '.join((self.op, *self.sets, *((words,) if words else ())))})"

    def row(self, values: Mapping[str, object]) -> float | bool | None:
        """Its value for one item, whose sets are in ``values`` by name."""
        sets = [_set(name, _found(name, values)) for name in self.sets]
        if any(s is None for s in sets):
            return None
        first: frozenset[str] = sets[0] or frozenset()
        if self.op == "has":
            return self.words[0] in first
        if self.op == "has-any":
            return not first.isdisjoint(self.words)
        if self.op == "has-all":
            return first.issuperset(self.words)
        if self.op == "size":
            return float(len(first))
        second: frozenset[str] = sets[1] or frozenset()
        shared = float(len(first & second))
        if self.op == "overlap":
            return shared
        return shared / len(first | second) if first or second else 0.0

    def series(self, columns: Mapping[str, pl.Series]) -> pl.Series:
        """Its values for many items: one list column a set."""
        frame = pl.DataFrame([_lists(name, _found(name, columns)).alias(name) for name in self.sets])
        sets = [pl.col(name).list.drop_nulls().list.unique() for name in self.sets]
        first = sets[0]
        if self.op == "has":
            value = first.list.contains(self.words[0])
        elif self.op in ("has-any", "has-all"):
            tests = [first.list.contains(word) for word in self.words]
            value = pl.any_horizontal(tests) if self.op == "has-any" else pl.all_horizontal(tests)
        elif self.op == "size":
            value = first.list.len().cast(pl.Float64)
        else:
            shared = first.list.set_intersection(sets[1]).list.len().cast(pl.Float64)
            value = shared
            if self.op == "jaccard":
                union = first.list.set_union(sets[1]).list.len().cast(pl.Float64)
                value = pl.when(union == 0.0).then(pl.lit(0.0)).otherwise(shared / union)
        known = pl.all_horizontal([pl.col(name).is_not_null() for name in self.sets])
        return frame.select(pl.when(known).then(value).alias(self.name)).to_series()

    def array(self, columns: Mapping[str, Any]) -> tuple[Any, Any]:
        """Values and nulls for many items: one array of collections a set."""
        series = self.series(
            {name: pl.Series(name, _items(name, _found(name, columns)), dtype=_LIST) for name in self.sets}
        )
        nulls = series.is_null().to_numpy()
        values = series.fill_null(False if self.type == "bool" else 0.0).to_numpy()
        return np.asarray(values), nulls if nulls.any() else None


def _found(name: str, values: Mapping[str, Any]) -> Any:
    for spelled in (name, name.replace("-", "_")):
        if spelled in values:
            return values[spelled]
    raise UnknownName("set", name, (canonical(v) for v in values))


def _set(name: str, value: object) -> frozenset[str] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InputError(f"{name} is a set of strings, and {value!r} is not.")
    if any(item is not None and not isinstance(item, str) for item in value):
        raise InputError(f"{name} is a set of strings, and {value!r} holds something else.")
    return frozenset(item for item in value if item is not None)


def _items(name: str, column: Any) -> list[list[str] | None]:
    if isinstance(column, tuple) and len(column) == 2 and isinstance(column[0], np.ndarray):
        values, mask = column
        column = (
            [None if null else value for value, null in zip(values, mask, strict=True)] if mask is not None else values
        )
    sets = [_set(name, tuple(value) if isinstance(value, np.ndarray) else value) for value in column]
    return [None if found is None else sorted(found) for found in sets]


def _lists(name: str, series: pl.Series) -> pl.Series:
    dtype = series.dtype
    if dtype == pl.Null:
        return series.cast(_LIST)
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
    if inner is None or not (inner in (pl.String, pl.Null) or isinstance(inner, pl.Categorical | pl.Enum)):
        raise InputError(f"Column {name} holds {dtype}; the feature is a set, a list of strings.")
    return series.cast(_LIST)
