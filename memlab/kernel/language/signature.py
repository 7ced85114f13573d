"""Signatures of slots, tests of string sets, and tunable parameters of policies."""

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
"""A set of strings is read only through tests that return a scalar, see `Derived`."""
Returns = Type | Literal["record"]
# Types of scalar inputs and results; signatures are hashed with these words.
_TYPES = ("num", "bool", "str")


@dataclass(frozen=True)
class Input:
    """One value that a policy may read.

    Parameters
    ----------
    name
        Name in a policy; an underscore counts as a hyphen.
    type
        Type of the value: a number, a boolean, a string or a set of strings.
    doc
        Description of the value.
    words
        All possible strings; empty if any string is possible.

    Examples
    --------
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
                f'Input {self.name} has the type "{self.type}". The type of an input must '
                "be num, bool, str or set."
            )
        if self.words and self.type != "str":
            raise InputError(
                f"Input {self.name} is {self.type}, and only an input of type str can have words."
            )


@dataclass(frozen=True, eq=False)
class Signature:
    """The contract of a slot: the inputs of its policies and the type of their result.

    Parameters
    ----------
    slot
        Name of the slot.
    inputs
        Inputs by name, or any iterable of `Input`.
    returns
        Type of the result.
    words
        Strings that a policy may return.
    aggregates
        True if a policy may aggregate over the candidates.
    lists
        For policies over lists, the feature whose values each list argument contains.
    fields
        Fields that a record may update. Each field is also an input, with its old value.
    draws
        True if the engine draws items by the values of a policy, which may then call ``beta-sample``.
    """

    slot: str
    inputs: Mapping[str, Input]
    returns: Returns = "num"
    words: tuple[str, ...] = ()
    aggregates: bool = False
    lists: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    draws: bool = False
    _key: tuple[object, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        declared = self.inputs.values() if isinstance(self.inputs, Mapping) else self.inputs
        inputs: dict[str, Input] = {}
        for item in declared:
            if item.name in inputs:
                raise InputError(f"Slot {self.slot} declares the input {item.name} twice.")
            inputs[item.name] = item
        # Mistakes in a declaration are reported here, once, and not at the first policy of the slot.
        if self.returns not in (*_TYPES, "record"):
            raise InputError(
                f'Slot {self.slot} returns "{self.returns}". The type of a result must be '
                "num, bool, str or record."
            )
        fields = tuple(canonical(name) for name in self.fields)
        if bool(fields) != (self.returns == "record"):
            raise InputError(
                f"Slot {self.slot}: declare fields if and only if it returns a record."
            )
        for name in fields:
            if name not in inputs or inputs[name].type == "set":
                raise InputError(
                    f"Slot {self.slot} updates {name}, which is not a scalar among its inputs. Declare it as one."
                )
        lists = {canonical(name): canonical(feature) for name, feature in self.lists.items()}
        for name, feature in lists.items():
            if feature not in inputs or inputs[feature].type == "set":
                raise InputError(
                    f"Slot {self.slot} derives the list {name} from the feature {feature}, which is not a scalar among its "
                    "inputs. Declare it as one."
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
            self.draws,
        )
        object.__setattr__(
            self, "_key", (*identity, tuple((i.name, i.type, i.words) for i in inputs.values()))
        )
        object.__setattr__(self, "_hash", hash(self._key))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Signature) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined,no-any-return]

    def __reduce__(self) -> tuple[object, ...]:
        # The hash differs between processes, and a read-only mapping cannot be pickled, so both are built again.
        declared = self.slot, tuple(self.inputs.values()), self.returns, self.words
        return Signature, (*declared, self.aggregates, dict(self.lists), self.fields, self.draws)


# Sets of strings are read only through tests that return a scalar, because the language has no list type.
#
# ``(has tags "style")`` lowers to one scalar input whose name is the expression itself. The caller of a policy passes
# either that input or the set: a list column of a frame, or any collection of strings for a row. A null set gives null.
#
# ========================== =============================================
# ``(has s "x")``            true if ``x`` is in ``s``
# ``(has-any s ["x" "y"])``  true if at least one of the words is in ``s``
# ``(has-all s ["x" "y"])``  true if all words are in ``s``
# ``(overlap s t)``          size of the intersection
# ``(jaccard s t)``          size of the intersection / size of the union; 0 if both are empty
# ``(size s)``               number of distinct strings
# ========================== =============================================


Words = tuple[str, ...]


class SetTest(NamedTuple):
    """The type of a set test's result, and the function that computes it."""

    gives: Type
    value: Callable[[list[frozenset[str]], Words], float | bool]


# Every test of sets, with the type of its result.
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
    """The name of an argument that is a set, while a policy is checked."""

    name: str


@dataclass(frozen=True)
class Derived:
    """A test of one or two sets that counts as an input of a policy."""

    op: str
    sets: tuple[str, ...]
    words: tuple[str, ...] = ()

    @property
    def type(self) -> Type:
        """The type of the result."""
        return SET_TESTS[self.op].gives

    @property
    def name(self) -> str:
        """The name of the input: the source of the test, such as ``(has tags "x")``."""
        words = " ".join(map(quoted, self.words))
        if self.op in ("has-any", "has-all"):
            words = f"[{words}]"
        return f"({' '.join((self.op, *self.sets, *((words,) if words else ())))})"

    def row(self, values: Mapping[str, object]) -> float | bool | None:
        """Return the set test's result for one item, whose sets are in `values`.

        Parameters
        ----------
        values
            A collection of strings, or None, for each set.

        Returns
        -------
        float, bool or None
            The result; None if a set is null.
        """
        return self._value([_set(name, _get_set(name, values)) for name in self.sets])

    def _value(self, sets: Iterable[frozenset[str] | None]) -> float | bool | None:
        """Test one item's string sets, for example for overlap; return None if a set is null."""
        present = [values for values in sets if values is not None]
        return (
            SET_TESTS[self.op].value(present, self.words)
            if len(present) == len(self.sets)
            else None
        )

    def _values(self, columns: Mapping[str, Any]) -> list[float | bool | None]:
        """Test the string sets in each row of ``columns``; return one result per row."""
        sets = [_sets(name, _get_set(name, columns)) for name in self.sets]
        return [self._value(item) for item in zip(*sets, strict=True)]

    def series(self, columns: Mapping[str, pl.Series]) -> pl.Series:
        """Return the set test's results for many items as a series.

        Parameters
        ----------
        columns
            One list column for each set.

        Returns
        -------
        Series
            One result per item, with the name of the input.

        Raises
        ------
        InputError
            If a column holds no lists.
        """
        for name in self.sets:
            dtype = _get_set(name, columns).dtype
            if not (dtype == pl.Null or isinstance(dtype, pl.List | pl.Array)):
                raise InputError(
                    f"Column {name} has type {dtype}, but the policy reads it as a set. Pass a column of lists of strings."
                )
        return pl.Series(
            self.name,
            self._values(columns),
            dtype=pl.Boolean if self.type == "bool" else pl.Float64,
        )

    def array(self, columns: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the set test's results and null mask for many items.

        Parameters
        ----------
        columns
            One array of collections for each set.

        Returns
        -------
        tuple
            An array of results, and an array that is True for null, or None if there is no null.
        """
        results = self._values(columns)
        nulls = np.array([value is None for value in results], np.bool_)
        values = np.array(
            [value or 0 for value in results], np.bool_ if self.type == "bool" else np.float64
        )
        return values, nulls if nulls.any() else None


def _get_set(name: str, values: Mapping[str, Any]) -> Any:
    """Look up the value of a set by its name, with hyphens or with underscores."""
    for spelling in (name, name.replace("-", "_")):
        if spelling in values:
            return values[spelling]
    raise UnknownName("set", name, (canonical(v) for v in values))


def _set(name: str, value: object) -> frozenset[str] | None:
    """Return a collection of strings as a set without nulls, or None for None.

    Raises InputError for a single string and for other values.
    """
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InputError(f"{name} must be a set of strings, not {value!r}.")
    if any(item is not None and not isinstance(item, str) for item in value):
        raise InputError(f"{name} must be a set of strings, but {value!r} contains other values.")
    return frozenset(item for item in value if item is not None)


def _sets(name: str, column: Any) -> list[frozenset[str] | None]:
    """Return a column of collections as a list of sets, with None for each null."""
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


# Tunable constants. Bounds are inclusive and may be omitted.


# The form of a declaration, for error messages.
_SHAPE = "(param :name default :low a :high b)"


@dataclass(frozen=True)
class Param:
    """A tunable constant with its default, bounds and current value."""

    name: str
    default: float
    low: float
    high: float
    value: float


def declared_param(form: Form, text: Text) -> Param:
    """Return the parameter declared by `form`, with its default as the current value."""
    items = form.items[1:]
    # Each check points at the item at fault, from left to right.
    if len(items) < 2 or items[0].kind != "keyword":
        at = items[0] if items and items[0].kind != "keyword" else form
        raise text.error(
            PolicyTypeError, f"A parameter is a name, as a keyword, and a default: {_SHAPE}.", at
        )
    name, default = items[0].text, items[1]
    if default.kind not in ("int", "float"):
        raise text.error(PolicyTypeError, f"The default of :{name} must be a number.", default)
    bounds = {"low": -math.inf, "high": math.inf}
    if len(items) > 6 or len(items) % 2:
        raise text.error(
            PolicyTypeError, f"A bound must be :low or :high and a number: {_SHAPE}.", items[-1]
        )
    for key, value in zip(items[2::2], items[3::2], strict=True):
        if key.kind != "keyword" or key.text not in bounds or value.kind not in ("int", "float"):
            raise text.error(PolicyTypeError, "A bound must be :low or :high and a number.", key)
        bounds[key.text] = value.number
    if not bounds["low"] <= default.number <= bounds["high"]:
        raise text.error(
            PolicyTypeError, f"The default of :{name} is outside its own bounds.", default
        )
    return Param(name, default.number, bounds["low"], bounds["high"], default.number)
