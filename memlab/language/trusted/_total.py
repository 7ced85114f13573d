"""What trusted Hy code refers to: the dialect's functions, and what stands around the body of a policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from memlab.errors import InputError, UnknownName
from memlab.language._aggregate import Slates, aggregate
from memlab.language._dag import Node
from memlab.language.trusted._total_lists import LISTS
from memlab.language.trusted._total_scalars import (
    FUNCTIONS,
    call,
    checked,
    choose,
    decided,
    helper,
    if_null,
    literal,
    looked_up,
    one_of,
    plain,
    set_test,
    value_of,
)

__all__ = ["TOTAL", "PackHeader", "slate_aggregates"]


def param(params: Mapping[str, Any], name: str, default: float, low: float, high: float) -> Node:
    """The value in force, which is a constant of the policy."""
    value = params.get(name, default)
    number = isinstance(value, int | float | np.number) and math.isfinite(value)
    if not (number and low <= value <= high):
        raise InputError(f"The parameter {name} lies between {low:g} and {high:g}; {value!r} does not.")
    return literal(float(value))


def aggregate_value(aggregates: Mapping[str, float | None] | None, key: str) -> float | None:
    if aggregates is None or key not in aggregates:
        raise InputError(f"The policy ranges over its slate: pass aggregates, with {key}, from slate_aggregates.")
    value = aggregates[key]
    return None if value is None else float(value)


def record(changes: Mapping[str, Any] | Node | None, old: Mapping[str, Any]) -> dict[str, Any]:
    """All fields that a policy may update; what it left out keeps its old value."""
    if isinstance(changes, Node):  # a choice whose every branch changes nothing is the constant null
        changes = None
    result = {}
    for name, value in old.items():
        if changes is not None and name in changes:
            result[name] = changes[name]
        elif value is ...:
            raise InputError(f"{name} keeps its old value here: pass {name.replace('-', '_')}=.")
        else:
            result[name] = plain(value)
    return result


def index(value: Any) -> Any:
    """The result of a policy over lists: a whole number as an int, with which Python's lists are indexed."""
    value = plain(value)
    return int(value) if value.__class__ is float and value.is_integer() else value


class PackHeader(NamedTuple):
    """``(pack name "what it is" :inherits other)``."""

    name: str
    doc: str
    inherits: str | None


def declare(module: dict[str, Any], params: Mapping[str, float]) -> None:
    """Puts parameters into a module's ``__params__``, with their defaults in force."""
    module.setdefault("__params__", {}).update(params)


def give(module: dict[str, Any], name: str, value: float | str | bool) -> None:
    module.setdefault("__settings__", {})[name] = value


def describe(function: Any, inputs: Sequence[str], aggregates: Mapping[str, tuple[str, Callable[..., Any]]]) -> None:
    function.inputs, function.aggregates = tuple(inputs), dict(aggregates)


def slate_aggregates(
    function: Any, columns: Mapping[str, Sequence[Any]], *, order: Sequence[Any] | None = None
) -> list[dict[str, float | None]]:
    """What a trusted policy's ``aggregates`` are for each row of one slate, by their expressions.

    ``columns`` holds a value a row for each of ``function.inputs``, spelled either way; ``order`` the memory ids,
    without which the order of the rows counts. ``[f(*row, aggregates=a) for row, a in zip(rows, found)]`` are then
    the values of the slate. Raises ``UnknownName`` for a column that is missing.
    """
    given = []
    for name in function.inputs:
        spelled = next((s for s in (name, name.replace("-", "_")) if s in columns), None)
        if spelled is None:
            raise UnknownName("column", name, columns)
        given.append(columns[spelled])
    size = len(next(iter(columns.values()))) if columns else 0
    slates = Slates(size, order=None if order is None else np.asarray(order))
    found: list[dict[str, float | None]] = [{} for _ in range(size)]
    for key, (op, argument) in function.aggregates.items():
        values = [
            checked(argument(*[column[i] for column in given], aggregates=found[i]), "num", op) for i in range(size)
        ]
        nulls = np.array([v is None for v in values], bool)
        numbers = np.array([math.nan if v is None else v for v in values], float)
        results, missing = aggregate(op, numbers, nulls if nulls.any() else None, slates)
        for i, value in enumerate(results.tolist()):
            found[i][key] = None if missing is not None and missing[i] else value
    return found


def library(name: str) -> Callable[..., Any]:
    """A helper of the dialect's library; its constants stay constants."""
    # only Hy code comes here, so Hy is loaded
    from memlab.language.trusted._trusted import library_function

    function: Callable[..., Any] = library_function(name)
    return function


TOTAL: dict[str, Any] = {
    **{name: function for name, (function, _) in {**LISTS, **FUNCTIONS}.items()},
    "literal": literal,
    "plain": plain,
    "value": value_of,
    "choose": choose,
    "looked-up": looked_up,
    "if-null": if_null,
    "decided": decided,
    "one-of": one_of,
    "set-test": set_test,
    "parameter": param,
    "aggregate": aggregate_value,
    "record": record,
    "index": index,
    "helper": helper,
    "call": call,
    "header": PackHeader,
    "declare": declare,
    "give": give,
    "describe": describe,
    "library": library,
}
"""All that expanded code refers to, as ``_memlab``."""
