"""The dialect's functions over lists for trusted Hy code: on Python's lists, tuples and arrays, plain values inside.

They mean what they mean in ``lists._functions``, without its fuel. ``choice`` and ``flip`` are not here: a function
that is called from Python has no source of chance, and the safe road gives the probabilities instead.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from memlab.errors import PolicyTypeError
from memlab.language._primitives import both, either
from memlab.language.trusted._total_scalars import Arity, call, plain

__all__ = ["LISTS"]


def _items(value: Any, name: str) -> Sequence[Any]:
    value = plain(value)
    if isinstance(value, np.ndarray):
        return list(value)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise PolicyTypeError(f"{name} takes a list, and {value!r} is not.")
    return value


def _number(value: Any, name: str) -> float:
    value = plain(value)
    if value.__class__ is not float:
        raise PolicyTypeError(f"{name} takes a number, and {value!r} is not.")
    return value


def _applied(function: Callable[..., Any], *arguments: Any) -> Any:
    return plain(call(function, *arguments))


def _test(value: Any, name: str) -> bool | None:
    if value is None or value.__class__ is bool:
        return value
    raise PolicyTypeError(f"{name} takes true or false, and {value!r} is not.")


def _range(*bounds: Any) -> list[float]:
    numbers = [_number(b, "range") for b in bounds]
    for number in numbers:
        if not (math.isfinite(number) and number.is_integer()):
            raise PolicyTypeError(f"range runs between whole numbers, and {number:g} is none.")
    return [float(i) for i in range(*map(int, numbers))]


def _first(items: Any) -> Any:
    given = _items(items, "first")
    return plain(given[0]) if len(given) else None


def _nth(items: Any, place: Any) -> Any:
    given, at = _items(items, "nth"), plain(place)
    if at is None:
        return None
    number = _number(at, "nth")
    return plain(given[int(number)]) if 0.0 <= number < len(given) and number.is_integer() else None


def _take(items: Any, count: Any) -> list[Any]:
    given, most = _items(items, "take"), _number(count, "take")
    if not most >= 0.0:
        raise PolicyTypeError(f"take takes how many, and {most:g} is not.")
    return list(given[: int(min(most, len(given)))])


def _append(*lists: Any) -> list[Any]:
    return [item for items in lists for item in _items(items, "append")]


def _map(function: Any, *lists: Any) -> list[Any]:
    given = [_items(items, "map") for items in lists]
    return [_applied(function, *row) for row in zip(*given, strict=False)]


def _filter(function: Any, items: Any) -> list[Any]:
    return [item for item in _items(items, "filter") if _test(_applied(function, item), "filter")]


def _reduce(function: Any, *rest: Any) -> Any:
    given = list(_items(rest[-1], "reduce"))
    if len(rest) == 1 and not given:
        return None
    start = rest[0] if len(rest) == 2 else given.pop(0)
    return functools.reduce(lambda gathered, item: _applied(function, gathered, item), given, plain(start))


def _keyed(name: str, finish: Callable[[Sequence[Any], list[Any]], Any]) -> Callable[..., Any]:
    """A function of items and their keys, as ``(f items)`` or ``(f key items)``."""

    def keyed(*arguments: Any) -> Any:
        given = _items(arguments[-1], name)
        keys = [plain(i) if len(arguments) == 1 else _applied(arguments[0], i) for i in given]
        return finish(given, keys)

    return keyed


def _sorted(items: Sequence[Any], keys: list[Any]) -> list[Any]:
    """Ascending and stable, NaN behind all numbers and null behind NaN."""
    kinds = {key.__class__ for key in keys if key is not None}
    if len(kinds) > 1 or not kinds <= {float, str}:
        raise PolicyTypeError("sort orders numbers or strings, and here are others, or both.")
    ranked = [(2, 0.0) if k is None else (0, k) if k == k else (1, 0.0) for k in keys]
    return [items[i] for i in sorted(range(len(items)), key=ranked.__getitem__)]


def _extreme(name: str, sign: float) -> Callable[..., Any]:
    """The position of the greatest (or least) key, the first of several; NaN and null are skipped."""

    def extreme(items: Sequence[Any], keys: list[Any]) -> float | None:
        numbers = [(sign * _number(k, name), -i) for i, k in enumerate(keys) if k is not None and k == k]
        return float(-max(numbers)[1]) if numbers else None

    return _keyed(name, extreme)


def _total(items: Sequence[Any], keys: list[Any]) -> float:
    total = 0.0
    for key in keys:  # one term after another: Python's sum compensates from 3.12 on
        if key is not None and _number(key, "sum") == key:
            total += key
    return total


def _folded(name: str, combine: Callable[[Any, Any], Any], start: bool) -> Callable[..., Any]:
    return _keyed(name, lambda _, keys: functools.reduce(combine, [_test(k, name) for k in keys], start))


LISTS: dict[str, tuple[Callable[..., Any], Arity]] = {
    "list": (lambda *items: [plain(i) for i in items], Arity(0, None)),
    "cons": (lambda item, items: [plain(item), *_items(items, "cons")], Arity(2, 2)),
    "range": (_range, Arity(1, 2)),
    "length": (lambda items: float(len(_items(items, "length"))), Arity(1, 1)),
    "empty?": (lambda items: len(_items(items, "empty?")) == 0, Arity(1, 1)),
    "first": (_first, Arity(1, 1)),
    "rest": (lambda items: list(_items(items, "rest")[1:]), Arity(1, 1)),
    "nth": (_nth, Arity(2, 2)),
    "take": (_take, Arity(2, 2)),
    "reverse": (lambda items: list(_items(items, "reverse"))[::-1], Arity(1, 1)),
    "append": (_append, Arity(1, None)),
    "map": (_map, Arity(2, None)),
    "filter": (_filter, Arity(2, 2)),
    "reduce": (_reduce, Arity(2, 3)),
    "sort": (_keyed("sort", _sorted), Arity(1, 2)),
    "argmax": (_extreme("argmax", 1.0), Arity(1, 2)),
    "argmin": (_extreme("argmin", -1.0), Arity(1, 2)),
    "sum": (_keyed("sum", _total), Arity(1, 2)),
    "any?": (_folded("any?", either, False), Arity(1, 2)),
    "all?": (_folded("all?", both, True), Arity(1, 2)),
}
"""By name: what they do and how many arguments they take."""
