"""The functions of policies over lists, on plain values: of numbers, of lists, of items and their keys, of chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from memlab.kernel.language._machine import (
    CLASSES,
    MAX_ITEMS,
    Distribution,
    Function,
    Machine,
    Place,
    expect,
    holds,
    kind_of_value,
)
from memlab.kernel.language._primitives import PRIMITIVES, both, either, equal, less, less_equal
from memlab.kernel.language._words import COMPARISONS, DIRECT, FOLDS, UNITS

__all__ = ["FUNCTIONS", "ListFunction"]


def _scalar(name: str, machine: Machine, at: Place, *values: Any) -> Any:
    """An operation of the graph on plain values."""
    primitive = PRIMITIVES[name]
    for i, (value, type) in enumerate(zip(values, primitive.takes, strict=True)):
        if value.__class__ is not CLASSES[type]:
            expect(value, type, at, i)
    if primitive.strict and any(value is None for value in values):
        return None
    return primitive.scalar(*values)


def _fold(name: str, machine: Machine, at: Place, first: Any, *rest: Any) -> Any:
    """``(+ a b c)``: pair by pair from the left; of one argument the number itself, ``(- a)`` and ``(/ a)``."""
    primitive = PRIMITIVES[name]
    expect(first, "num", at, 0)
    if not rest and name in ("-", "/"):
        return _scalar("neg", machine, at, first) if name == "-" else _scalar("/", machine, at, 1.0, first)
    for i, value in enumerate(rest, 1):
        expect(value, "num", at, i)
        first = None if primitive.strict and (first is None or value is None) else primitive.scalar(first, value)
    return first


def _in_days(name: str, machine: Machine, at: Place, amount: Any) -> Any:
    times, per = UNITS[name]
    return None if expect(amount, "num", at, 0) is None else amount * times / per


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": less,
    "<=": less_equal,
    ">": lambda x, y: less(y, x),
    ">=": lambda x, y: less_equal(y, x),
    "=": equal,
    "!=": lambda x, y: not equal(x, y),
}


def _compare(name: str, machine: Machine, at: Place, *values: Any) -> Any:
    """A chain of comparisons: of numbers in order, of any two of one type for equality."""
    order = _ORDERS[name]
    if len(values) == 2 and values[0].__class__ is float and values[1].__class__ is float:
        return order(*values)
    result: Any = True
    for i, (x, y) in enumerate(pairwise(values), 1):
        if name in ("=", "!="):
            _alike(x, y, at, i)
        else:
            expect(x, "num", at, i - 1, "compares numbers")
            expect(y, "num", at, i, "compares numbers")
        result = both(result, None if x is None or y is None else order(x, y))
    return result


def _alike(x: Any, y: Any, at: Place, argument: int) -> None:
    """An error unless two values can be compared for equality; null can with all."""
    if x is None or y is None:
        return
    if x.__class__ is not y.__class__:
        kinds = f"{kind_of_value(x)}, and here {kind_of_value(y)}"
        raise at.error(f"The sides of {at.name} have two types: {kinds}.", argument)
    if x.__class__ in (tuple, Function):
        what = kind_of_value(x)
        raise at.error(f"{at.name} compares numbers, strings and booleans, and this is {what}.", argument)


def _member(machine: Machine, at: Place, item: Any, items: Any) -> Any:
    """Null when the item is; items that are null are passed over."""
    machine.spend(len(expect(items, "list", at, 1)), at)
    for other in items:
        _alike(item, other, at, 1)
    return None if item is None else any(other is not None and equal(item, other) for other in items)


# Lists from lists, and what is in them.


def _range(machine: Machine, at: Place, *bounds: Any) -> Any:
    for i, bound in enumerate(bounds):
        if bound is None or not (math.isfinite(expect(bound, "num", at, i)) and bound.is_integer()):
            shown = "null" if bound is None else f"{bound:g}"
            raise at.error(f"range runs between whole numbers, and this is {shown}.", i)
    start, stop = bounds if len(bounds) == 2 else (0.0, bounds[0])
    # capped before the difference is an integer of any size
    count = int(min(max(stop - start, 0.0), MAX_ITEMS + 1.0))
    return machine.make((start + i for i in range(count)), count, at)


def _nth(machine: Machine, at: Place, items: Any, place: Any) -> Any:
    if items.__class__ is not tuple:
        expect(items, "list", at, 0)
    if place.__class__ is not float and expect(place, "num", at, 1) is None:
        return None
    return items[int(place)] if 0.0 <= place < len(items) and place.is_integer() else None


def _take(machine: Machine, at: Place, items: Any, count: Any) -> Any:
    expect(items, "list", at, 0)
    if expect(count, "num", at, 1) is None or not count >= 0.0:
        raise at.error(f"take takes how many, and this is {'null' if count is None else f'{count:g}'}.", 1)
    kept = items[: int(min(count, len(items)))]
    return machine.make(kept, len(kept), at)


def _append(machine: Machine, at: Place, *lists: Any) -> Any:
    count = sum(len(expect(items, "list", at, i)) for i, items in enumerate(lists))
    return machine.make((item for items in lists for item in items), count, at)


def _map(machine: Machine, at: Place, function: Any, *lists: Any) -> Any:
    for i, items in enumerate(lists, 1):
        expect(items, "list", at, i)
    results = machine.each(at, function, list(zip(*lists, strict=False)), len(lists))
    return machine.over_outcomes(results, lambda values: machine.make(values, len(values), at), at)


def _filter(machine: Machine, at: Place, function: Any, items: Any) -> Any:
    expect(items, "list", at, 1)
    tests = machine.each(at, function, [(item,) for item in items])

    def kept(found: Sequence[Any]) -> Any:
        chosen = [i for i, test in zip(items, found, strict=True) if test is True or holds(test, at)]
        return machine.make(chosen, len(items), at)

    return machine.over_outcomes(tests, kept, at)


def _reduce(machine: Machine, at: Place, function: Any, *rest: Any) -> Any:
    """``(reduce f items)`` or ``(reduce f initial items)``: f of what was gathered and the next item."""
    items = expect(rest[-1], "list", at, len(rest))
    if len(rest) == 1 and not items:
        return None
    gathered, items = (rest[0], items) if len(rest) == 2 else (items[0], items[1:])
    body = machine.body(at, function, 2, len(items))
    for item in items:

        def step(values: Sequence[Any], item: Any = item) -> Any:
            return body.run(machine, (*function.env, values[0], item))

        gathered = machine.over_outcomes((gathered,), step, at, body.cost)
    return gathered


# Functions of items and their keys, as (f items) or (f key items).

Finish = Callable[[Machine, Place, tuple[Any, ...], Sequence[Any]], Any]


def _keyed(finish: Finish, machine: Machine, at: Place, *arguments: Any) -> Any:
    items = expect(arguments[-1], "list", at, len(arguments) - 1)
    machine.spend(len(items), at)
    keys = items if len(arguments) == 1 else machine.each(at, arguments[0], [(item,) for item in items])
    return machine.over_outcomes(keys, lambda values: finish(machine, at, items, values), at)


def _sort(machine: Machine, at: Place, items: tuple[Any, ...], keys: Sequence[Any]) -> Any:
    """Ascending and stable, NaN after all numbers and null after NaN."""
    known = [key for key in keys if key is not None]
    wrong = next((k for k in known if k.__class__ not in (float, str) or k.__class__ is not known[0].__class__), ...)
    if wrong is not ...:
        raise at.error(f"{at.name} orders numbers or strings, and here is {kind_of_value(wrong)}.", 0)
    ranked = [(2, 0.0) if key is None else (0, key) if key == key else (1, 0.0) for key in keys]
    order = sorted(range(len(items)), key=ranked.__getitem__)
    return machine.make([items[i] for i in order], len(items), at)


def _extreme(sign: float, machine: Machine, at: Place, items: tuple[Any, ...], keys: Sequence[Any]) -> Any:
    """The position of the greatest (or least) key, the first of several; NaN and null are skipped."""
    numbers = [(sign * key, -i) for i, key in enumerate(keys) if expect(key, "num", at, 0) is not None and key == key]
    return float(-max(numbers)[1]) if numbers else None


def _sum(machine: Machine, at: Place, items: tuple[Any, ...], keys: Sequence[Any]) -> Any:
    """In order, one term after another (not Python's ``sum``, which compensates from 3.12 on); NaN and null skipped."""
    total = 0.0
    for key in keys:
        if expect(key, "num", at, 0) is not None and key == key:
            total += key
    return total


def _quantified(
    combine: Callable[[Any, Any], Any], result: Any, machine: Machine, at: Place, items: Any, keys: Sequence[Any]
) -> Any:
    for key in keys:
        holds(key, at)
        result = combine(result, key)
    return result


# Random values.


def _choice(machine: Machine, at: Place, items: Any) -> Any:
    expect(items, "list", at, 0)
    return machine.mixture([(item, 1.0 / len(items)) for item in items], at) if items else None


def _flip(machine: Machine, at: Place, chance: Any) -> Any:
    if expect(chance, "num", at, 0) is None:
        return None
    if not 0.0 <= chance <= 1.0:
        raise at.error(f"flip takes a probability from 0 to 1, and this is {chance:g}.", 0)
    return Distribution(((True, chance), (False, 1.0 - chance))) if 0.0 < chance < 1.0 else chance == 1.0


class ListFunction(NamedTuple):
    """A function that looks at all its arguments; ``takes`` is their type where a literal can be checked early."""

    run: Callable[..., Any]
    fewest: int
    most: int | None
    takes: str | None = None


def _direct(name: str) -> ListFunction:
    takes = PRIMITIVES[name].takes
    return ListFunction(partial(_scalar, name), len(takes), len(takes), takes[0])


FUNCTIONS: dict[str, ListFunction] = {
    **{name: _direct(name) for name in DIRECT},
    **{n: ListFunction(partial(_fold, n), 1, None, "num") for n in (*FOLDS, "-", "/") if n not in ("and", "or")},
    **{name: ListFunction(partial(_in_days, name), 1, 1, "num") for name in UNITS},
    **{name: ListFunction(partial(_compare, name), 2, 2 if name == "!=" else None) for name in COMPARISONS},
    "null?": ListFunction(lambda machine, at, value: value is None, 1, 1),
    "in": ListFunction(_member, 2, 2),
    "list": ListFunction(lambda machine, at, *items: machine.make(items, len(items), at), 0, None),
    "cons": ListFunction(lambda machine, at, item, items: _append(machine, at, (item,), items), 2, 2),
    "range": ListFunction(_range, 1, 2, "num"),
    "length": ListFunction(lambda machine, at, items: float(len(expect(items, "list", at, 0))), 1, 1, "list"),
    "empty?": ListFunction(lambda machine, at, items: not expect(items, "list", at, 0), 1, 1, "list"),
    "first": ListFunction(lambda machine, at, items: _nth(machine, at, items, 0.0), 1, 1, "list"),
    "rest": ListFunction(
        lambda machine, at, items: machine.make(expect(items, "list", at, 0)[1:], len(items), at), 1, 1, "list"
    ),
    "nth": ListFunction(_nth, 2, 2),
    "take": ListFunction(_take, 2, 2),
    "reverse": ListFunction(
        lambda machine, at, items: machine.make(expect(items, "list", at, 0)[::-1], len(items), at), 1, 1, "list"
    ),
    "append": ListFunction(_append, 1, None, "list"),
    "map": ListFunction(_map, 2, None),
    "filter": ListFunction(_filter, 2, 2),
    "reduce": ListFunction(_reduce, 2, 3),
    "sort": ListFunction(partial(_keyed, _sort), 1, 2),
    "argmax": ListFunction(partial(_keyed, partial(_extreme, 1.0)), 1, 2),
    "argmin": ListFunction(partial(_keyed, partial(_extreme, -1.0)), 1, 2),
    "sum": ListFunction(partial(_keyed, _sum), 1, 2),
    "any?": ListFunction(partial(_keyed, partial(_quantified, either, False)), 1, 2),
    "all?": ListFunction(partial(_keyed, partial(_quantified, both, True)), 1, 2),
    "choice": ListFunction(_choice, 1, 1, "list"),
    "flip": ListFunction(_flip, 1, 1, "num"),
}
