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

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.language._signature import Type
from memlab.kernel.language._words import canonical, quoted

__all__ = ["SET_TESTS", "Derived", "SetName"]

Words = tuple[str, ...]
_LIST = pl.List(pl.String)


class SetTest(NamedTuple):
    """A test of one or two sets and the words in it: on sets, and on list columns without nulls or repetitions."""

    gives: Type
    row: Callable[[list[frozenset[str]], Words], float | bool]
    column: Callable[[list[pl.Expr], Words], pl.Expr]


def _contain(sets: list[pl.Expr], words: Words) -> list[pl.Expr]:
    return [sets[0].list.contains(word) for word in words]


def _overlap(sets: list[pl.Expr], words: Words) -> pl.Expr:
    return sets[0].list.set_intersection(sets[1]).list.len().cast(pl.Float64)


def _jaccard(sets: list[pl.Expr], words: Words) -> pl.Expr:
    union = sets[0].list.set_union(sets[1]).list.len().cast(pl.Float64)
    return pl.when(union == 0.0).then(pl.lit(0.0)).otherwise(_overlap(sets, words) / union)


SET_TESTS: dict[str, SetTest] = {
    "has": SetTest("bool", lambda s, words: words[0] in s[0], lambda s, words: _contain(s, words)[0]),
    "has-any": SetTest(
        "bool", lambda s, words: not s[0].isdisjoint(words), lambda s, words: pl.any_horizontal(_contain(s, words))
    ),
    "has-all": SetTest(
        "bool", lambda s, words: s[0].issuperset(words), lambda s, words: pl.all_horizontal(_contain(s, words))
    ),
    "overlap": SetTest("num", lambda s, words: float(len(s[0] & s[1])), _overlap),
    "jaccard": SetTest("num", lambda s, words: len(s[0] & s[1]) / (len(s[0] | s[1]) or 1), _jaccard),
    "size": SetTest("num", lambda s, words: float(len(s[0])), lambda s, words: s[0].list.len().cast(pl.Float64)),
}


@dataclass(frozen=True)
class SetName:
    """An argument that is a set, while a policy is checked."""

    name: str


@dataclass(frozen=True)
class Derived:
    """A test of one or two sets. ``name`` is its expression, by which it counts among a policy's inputs."""

    op: str
    sets: tuple[str, ...]
    words: tuple[str, ...] = ()

    @property
    def type(self) -> Type:
        return SET_TESTS[self.op].gives

    @property
    def name(self) -> str:
        words = " ".join(map(quoted, self.words))
        if self.op in ("has-any", "has-all"):
            words = f"[{words}]"
        return f"({' '.join((self.op, *self.sets, *((words,) if words else ())))})"

    def row(self, values: Mapping[str, object]) -> float | bool | None:
        """Its value for one item, whose sets are in ``values`` by name."""
        return self._value([_set(name, _found(name, values)) for name in self.sets])

    def _value(self, sets: Iterable[frozenset[str] | None]) -> float | bool | None:
        known = [found for found in sets if found is not None]
        return SET_TESTS[self.op].row(known, self.words) if len(known) == len(self.sets) else None

    def series(self, columns: Mapping[str, pl.Series]) -> pl.Series:
        """Its values for many items: one list column a set."""
        frame = pl.DataFrame([_lists(name, _found(name, columns)).alias(name) for name in self.sets])
        value = SET_TESTS[self.op].column([pl.col(n).list.drop_nulls().list.unique() for n in self.sets], self.words)
        known = pl.all_horizontal([pl.col(name).is_not_null() for name in self.sets])
        return frame.select(pl.when(known).then(value).alias(self.name)).to_series()

    def array(self, columns: Mapping[str, Any]) -> tuple[Any, Any]:
        """Values and nulls for many items: one array of collections a set."""
        sets = [_sets(name, _found(name, columns)) for name in self.sets]
        found = [self._value(item) for item in zip(*sets, strict=True)]
        nulls = np.array([value is None for value in found], np.bool_)
        values = np.array([value or 0 for value in found], np.bool_ if self.type == "bool" else np.float64)
        return values, nulls if nulls.any() else None


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


def _sets(name: str, column: Any) -> list[frozenset[str] | None]:
    if isinstance(column, tuple) and len(column) == 2 and isinstance(column[0], np.ndarray):
        values, nulls = column
        column = values if nulls is None else [None if n else v for v, n in zip(values, nulls, strict=True)]
    return [_set(name, tuple(value) if isinstance(value, np.ndarray) else value) for value in column]


def _lists(name: str, series: pl.Series) -> pl.Series:
    dtype = series.dtype
    if dtype == pl.Null:
        return series.cast(_LIST)
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
    if inner is None or not (inner in (pl.String, pl.Null) or isinstance(inner, pl.Categorical | pl.Enum)):
        raise InputError(f"Column {name} holds {dtype}; the feature is a set, a list of strings.")
    return series.cast(_LIST)
