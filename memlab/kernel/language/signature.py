"""What a slot gives to its policies and expects from them, sets of strings among it; parameters of policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError, PolicyTypeError, UnknownName
from memlab.kernel.language.reader import Form, Text, canonical, quoted

Type = Literal["num", "bool", "str"]
InputType = Type | Literal["set"]
"""A set of strings is read only through tests that give a scalar, see ``_derived``."""
Returns = Type | Literal["record"]
_TYPES = ("num", "bool", "str")


@dataclass(frozen=True)
class Input:
    """One feature that a policy may read; ``words`` is its closed vocabulary, if it has one.

    >>> Input("age_days", "num", "Days since it was created.").name
    'age-days'
    """

    name: str
    type: InputType = "num"
    doc: str = ""
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", canonical(self.name))
        object.__setattr__(self, "words", tuple(self.words))
        if self.type not in (*_TYPES, "set"):
            raise InputError(
                f'Input {self.name} has the type "{self.type}"; a type is num, bool, str or set.'
            )
        if self.words and self.type != "str":
            raise InputError(f"Input {self.name} is {self.type}, and only a str has words.")


@dataclass(frozen=True, eq=False)
class Signature:
    """A slot's contract: the features by name, the type of the result, and whether aggregates of the slate are allowed.

    ``inputs`` may be a mapping or any iterable of ``Input``. ``words`` is the closed vocabulary of a str result.
    ``lists`` serves policies over lists: it maps a list argument to the feature whose values over the slate it holds.

    A slot that returns a ``record`` has ``fields``: the names of what a policy may update. Each is an input too, which
    holds its old value.
    """

    slot: str
    inputs: Mapping[str, Input]
    returns: Returns = "num"
    words: tuple[str, ...] = ()
    aggregates: bool = False
    lists: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    _key: tuple[object, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = self.inputs.values() if isinstance(self.inputs, Mapping) else self.inputs
        inputs: dict[str, Input] = {}
        for item in given:
            if item.name in inputs:
                raise InputError(f"Slot {self.slot} declares the input {item.name} twice.")
            inputs[item.name] = item
        if self.returns not in (*_TYPES, "record"):
            raise InputError(
                f'Slot {self.slot} returns "{self.returns}"; a type is num, bool, str or record.'
            )
        fields = tuple(canonical(name) for name in self.fields)
        if bool(fields) != (self.returns == "record"):
            raise InputError(f"Slot {self.slot}: a record has fields, and nothing else has.")
        for name in fields:
            if name not in inputs or inputs[name].type == "set":
                raise InputError(
                    f"Slot {self.slot} updates {name}, which is no scalar among its inputs."
                )
        lists = {canonical(name): canonical(feature) for name, feature in self.lists.items()}
        for name, feature in lists.items():
            if feature not in inputs or inputs[feature].type == "set":
                raise InputError(
                    f"Slot {self.slot} gives {name} as {feature}, which is no scalar among its inputs."
                )
        for key, value in (
            ("slot", canonical(self.slot)),
            ("inputs", MappingProxyType(inputs)),
            ("words", tuple(self.words)),
            ("lists", MappingProxyType(lists)),
            ("fields", fields),
        ):
            object.__setattr__(self, key, value)
        identity = (
            self.slot,
            self.returns,
            self.words,
            self.aggregates,
            tuple(lists.items()),
            fields,
        )
        object.__setattr__(
            self, "_key", (*identity, tuple((i.name, i.type, i.words) for i in inputs.values()))
        )
        object.__setattr__(self, "_hash", hash(self._key))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Signature) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined,no-any-return]


# Sets of strings, read only through tests that give a scalar: the dialect has no list type.
#
# ``(has tags "style")`` lowers to one scalar input whose name is the expression itself. Whoever evaluates a policy
# gives either that input or the set: a list column of a frame, or any collection of strings for a row. Null sets give
# null.
#
# ========================== =============================================
# ``(has s "x")``            whether ``x`` is in ``s``
# ``(has-any s ["x" "y"])``  whether one of them is
# ``(has-all s ["x" "y"])``  whether all of them are
# ``(overlap s t)``          how many strings ``s`` and ``t`` share
# ``(jaccard s t)``          shared / all of both; 0 when both are empty
# ``(size s)``               how many strings ``s`` holds, each once
# ========================== =============================================


Words = tuple[str, ...]


class SetTest(NamedTuple):
    """A test of one or two sets and the words in it."""

    gives: Type
    value: Callable[[list[frozenset[str]], Words], float | bool]


SET_TESTS: dict[str, SetTest] = {
    "has": SetTest("bool", lambda s, words: words[0] in s[0]),
    "has-any": SetTest("bool", lambda s, words: not s[0].isdisjoint(words)),
    "has-all": SetTest("bool", lambda s, words: s[0].issuperset(words)),
    "overlap": SetTest("num", lambda s, words: float(len(s[0] & s[1]))),
    "jaccard": SetTest("num", lambda s, words: len(s[0] & s[1]) / (len(s[0] | s[1]) or 1)),
    "size": SetTest("num", lambda s, words: float(len(s[0]))),
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
        return SET_TESTS[self.op].value(known, self.words) if len(known) == len(self.sets) else None

    def _values(self, columns: Mapping[str, Any]) -> list[float | bool | None]:
        sets = [_sets(name, _found(name, columns)) for name in self.sets]
        return [self._value(item) for item in zip(*sets, strict=True)]

    def series(self, columns: Mapping[str, pl.Series]) -> pl.Series:
        """Its values for many items: one list column a set."""
        for name in self.sets:
            dtype = _found(name, columns).dtype
            if not (dtype == pl.Null or isinstance(dtype, pl.List | pl.Array)):
                raise InputError(
                    f"Column {name} holds {dtype}; the feature is a set, a list of strings."
                )
        return pl.Series(
            self.name,
            self._values(columns),
            dtype=pl.Boolean if self.type == "bool" else pl.Float64,
        )

    def array(self, columns: Mapping[str, Any]) -> tuple[Any, Any]:
        """Values and nulls for many items: one array of collections a set."""
        found = self._values(columns)
        nulls = np.array([value is None for value in found], np.bool_)
        values = np.array(
            [value or 0 for value in found], np.bool_ if self.type == "bool" else np.float64
        )
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
        column = (
            values
            if nulls is None
            else [None if n else v for v, n in zip(values, nulls, strict=True)]
        )
    elif isinstance(column, pl.Series):
        column = column.to_list()
    return [
        _set(name, tuple(value) if isinstance(value, np.ndarray) else value) for value in column
    ]


# ``(param :name default :low a :high b)``: a constant that may be tuned. Bounds are inclusive and may be left out.


_SHAPE = "(param :name default :low a :high b)"


@dataclass(frozen=True)
class Param:
    """A constant that may be tuned: its default, its bounds and the value in force."""

    name: str
    default: float
    low: float
    high: float
    value: float


def declared_param(form: Form, text: Text) -> Param:
    """The declaration in ``form``, with its default in force."""
    items = form.items[1:]
    if len(items) < 2 or items[0].kind != "keyword":
        at = items[0] if items and items[0].kind != "keyword" else form
        raise text.error(
            PolicyTypeError, f"A parameter is a name, as a keyword, and a default: {_SHAPE}.", at
        )
    name, default = items[0].text, items[1]
    if default.kind not in ("int", "float"):
        raise text.error(PolicyTypeError, f"The default of :{name} is a number.", default)
    bounds = {"low": -math.inf, "high": math.inf}
    if len(items) > 6 or len(items) % 2:
        raise text.error(
            PolicyTypeError, f"A bound is :low or :high and a number: {_SHAPE}.", items[-1]
        )
    for key, value in zip(items[2::2], items[3::2], strict=True):
        if key.kind != "keyword" or key.text not in bounds or value.kind not in ("int", "float"):
            raise text.error(PolicyTypeError, "A bound is :low or :high and a number.", key)
        bounds[key.text] = value.number
    if not bounds["low"] <= default.number <= bounds["high"]:
        raise text.error(
            PolicyTypeError, f"The default of :{name} is outside its own bounds.", default
        )
    return Param(name, default.number, bounds["low"], bounds["high"], default.number)
