"""The functions over lists: the machine, the place and plain values in; a value or a ``Spread`` out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from memlab.language._primitives import both, either
from memlab.language.lists._machine import MAX_ITEMS, Machine, Place, Spread, holds, kind, same

__all__ = ["FUNCTIONS", "Listed", "member"]


# What they expect of their arguments.


def _a_number(value: Any, at: Place, argument: int) -> float:
    if value.__class__ is not float:
        raise at.error(f"{at.name} takes a number, and this is {kind(value)}.", argument)
    number: float = value
    return number


def _a_list(value: Any, at: Place, argument: int) -> tuple[Any, ...]:
    if value.__class__ is not tuple:
        raise at.error(f"{at.name} takes a list, and this is {kind(value)}.", argument)
    items: tuple[Any, ...] = value
    return items


def _made(machine: Machine, items: Iterable[Any], count: int, at: Place) -> tuple[Any, ...]:
    """A new list of ``count`` items, paid for before it is made."""
    if count > MAX_ITEMS:
        raise machine.limit(f"makes a list of more than {MAX_ITEMS:,} items", at)
    machine.spend(count, at)
    return tuple(items)


# Lists from lists, and what is in them.


def _list(machine: Machine, at: Place, *items: Any) -> Any:
    return _made(machine, items, len(items), at)


def _cons(machine: Machine, at: Place, item: Any, items: Any) -> Any:
    rest = _a_list(items, at, 1)
    return _made(machine, (item, *rest), 1 + len(rest), at)


def _range(machine: Machine, at: Place, *bounds: Any) -> Any:
    for i, bound in enumerate(bounds):
        if not (math.isfinite(_a_number(bound, at, i)) and bound.is_integer()):
            raise at.error(f"range runs between whole numbers, and this is {bound:g}.", i)
    start, stop = bounds if len(bounds) == 2 else (0.0, bounds[0])
    # capped before the difference is an integer of any size
    count = int(min(max(stop - start, 0.0), MAX_ITEMS + 1.0))
    return _made(machine, (start + i for i in range(count)), count, at)


def _length(machine: Machine, at: Place, items: Any) -> Any:
    return float(len(_a_list(items, at, 0)))


def _is_empty(machine: Machine, at: Place, items: Any) -> Any:
    return not _a_list(items, at, 0)


def _first(machine: Machine, at: Place, items: Any) -> Any:
    given = _a_list(items, at, 0)
    return given[0] if given else None


def _rest(machine: Machine, at: Place, items: Any) -> Any:
    given = _a_list(items, at, 0)
    return _made(machine, given[1:], len(given), at)


def _nth(machine: Machine, at: Place, items: Any, place: Any) -> Any:
    if items.__class__ is not tuple:
        _a_list(items, at, 0)
    if place.__class__ is not float:
        return None if place is None else _a_number(place, at, 1)
    return items[int(place)] if 0.0 <= place < len(items) and place.is_integer() else None


def _take(machine: Machine, at: Place, items: Any, count: Any) -> Any:
    given = _a_list(items, at, 0)
    if not _a_number(count, at, 1) >= 0.0:
        raise at.error(f"take takes how many, and this is {count:g}.", 1)
    return _made(machine, given[: int(min(count, len(given)))], min(len(given), MAX_ITEMS), at)


def _reverse(machine: Machine, at: Place, items: Any) -> Any:
    given = _a_list(items, at, 0)
    return _made(machine, given[::-1], len(given), at)


def _append(machine: Machine, at: Place, *lists: Any) -> Any:
    given = [_a_list(items, at, i) for i, items in enumerate(lists)]
    return _made(machine, (item for items in given for item in items), sum(map(len, given)), at)


def _map(machine: Machine, at: Place, function: Any, *lists: Any) -> Any:
    given = [_a_list(items, at, i + 1) for i, items in enumerate(lists)]
    results = machine.each(at, function, list(zip(*given, strict=False)), len(given))
    return machine.settle(results, lambda values: _made(machine, values, len(values), at), at)


def _filter(machine: Machine, at: Place, function: Any, items: Any) -> Any:
    given = _a_list(items, at, 1)
    tests = machine.each(at, function, [(item,) for item in given])

    def kept(found: Sequence[Any]) -> Any:
        return _made(
            machine, [i for i, t in zip(given, found, strict=True) if t is True or holds(t, at)], len(given), at
        )

    return machine.settle(tests, kept, at)


def _reduce(machine: Machine, at: Place, function: Any, *rest: Any) -> Any:
    """``(reduce f items)`` or ``(reduce f initial items)``: f of what was gathered and the next item."""
    given = _a_list(rest[-1], at, len(rest))
    if len(rest) == 2:
        gathered: Any = rest[0]
    elif given:
        gathered, given = given[0], given[1:]
    else:
        return None
    body = machine.body(at, function, 2)
    machine.enter(at, body, len(given))
    run, env = body.run, function.env
    for item in given:
        if gathered.__class__ is Spread:

            def step(values: Sequence[Any], item: Any = item) -> Any:
                return run(machine, (*env, values[0], item))

            gathered = machine.settle((gathered,), step, at, body.cost)
        else:
            gathered = run(machine, (*env, gathered, item))
    machine.leave(body)
    return gathered


def _keyed(
    finish: Callable[[Machine, Place, tuple[Any, ...], Sequence[Any]], Any],
) -> Callable[..., Any]:
    """A function of items and their keys as ``(f items)`` or ``(f key items)``."""

    def keyed(machine: Machine, at: Place, *arguments: Any) -> Any:
        given = _a_list(arguments[-1], at, len(arguments) - 1)
        machine.spend(len(given), at)
        if len(arguments) == 1:
            return finish(machine, at, given, given)
        keys = machine.each(at, arguments[0], [(item,) for item in given])
        return machine.settle(keys, lambda values: finish(machine, at, given, values), at)

    return keyed


def _sorted(machine: Machine, at: Place, items: tuple[Any, ...], keys: Sequence[Any]) -> Any:
    """Ascending and stable, NaN behind all numbers and null behind NaN."""
    type: Any = None
    ranked: list[tuple[int, Any]] = []
    for key in keys:
        if key is None:
            ranked.append((2, 0.0))
            continue
        type = type or key.__class__
        if key.__class__ is not type or type not in (float, str):
            raise at.error(f"{at.name} orders numbers or strings, and here is {kind(key)}.", 0)
        ranked.append((0, key) if key == key else (1, 0.0))
    order = sorted(range(len(items)), key=ranked.__getitem__)
    return _made(machine, [items[i] for i in order], len(items), at)


def _extreme(sign: float) -> Callable[[Machine, Place, tuple[Any, ...], Sequence[Any]], Any]:
    """The position of the greatest (or least) key, the first of several; NaN and null are skipped."""

    def extreme(machine: Machine, at: Place, items: tuple[Any, ...], keys: Sequence[Any]) -> Any:
        best: float | None = None
        most = 0.0
        for i, key in enumerate(keys):
            if key is None:
                continue
            number = _a_number(key, at, 0) * sign
            if number == number and (best is None or number > most):
                best, most = float(i), number
        return best

    return extreme


def _total(machine: Machine, at: Place, items: tuple[Any, ...], keys: Sequence[Any]) -> Any:
    """In order, one term after another (not Python's ``sum``, which compensates from 3.12 on); NaN and null skipped."""
    total = 0.0
    for key in keys:
        if key is not None and _a_number(key, at, 0) == key:
            total += key
    return total


def _folded(combine: Callable[[Any, Any], Any], start: bool) -> Callable[..., Any]:
    def folded(machine: Machine, at: Place, items: tuple[Any, ...], keys: Sequence[Any]) -> Any:
        result: Any = start
        for key in keys:
            holds(key, at)
            result = combine(result, key)
        return result

    return folded


def member(machine: Machine, at: Place, item: Any, items: Any) -> Any:
    """Null when the item is; items that are null are passed over."""
    given = _a_list(items, at, 1)
    machine.spend(len(given), at)
    if item is None:
        return None
    found = [same(item, other, at) for other in given]  # all, so that one of another type is found wherever it stands
    return True in found


def _choice(machine: Machine, at: Place, items: Any) -> Any:
    given = _a_list(items, at, 0)
    if not given:
        return None
    share = 1.0 / len(given)
    return machine.mix([(item, share) for item in given], at)


def _flip(machine: Machine, at: Place, chance: Any) -> Any:
    if chance is None:
        return None
    p = _a_number(chance, at, 0)
    if not 0.0 <= p <= 1.0:
        raise at.error(f"flip takes a probability from 0 to 1, and this is {p:g}.", 0)
    return Spread(((True, p), (False, 1.0 - p))) if 0.0 < p < 1.0 else p == 1.0


def _null_test(machine: Machine, at: Place, value: Any) -> Any:
    return value is None


class Listed(NamedTuple):
    """A function over lists and how many arguments it takes."""

    run: Callable[..., Any]
    least: int
    most: int | None


FUNCTIONS: dict[str, Listed] = {
    "list": Listed(_list, 0, None),
    "cons": Listed(_cons, 2, 2),
    "range": Listed(_range, 1, 2),
    "length": Listed(_length, 1, 1),
    "empty?": Listed(_is_empty, 1, 1),
    "first": Listed(_first, 1, 1),
    "rest": Listed(_rest, 1, 1),
    "nth": Listed(_nth, 2, 2),
    "take": Listed(_take, 2, 2),
    "reverse": Listed(_reverse, 1, 1),
    "append": Listed(_append, 1, None),
    "map": Listed(_map, 2, None),
    "filter": Listed(_filter, 2, 2),
    "reduce": Listed(_reduce, 2, 3),
    "sort": Listed(_keyed(_sorted), 1, 2),
    "argmax": Listed(_keyed(_extreme(1.0)), 1, 2),
    "argmin": Listed(_keyed(_extreme(-1.0)), 1, 2),
    "sum": Listed(_keyed(_total), 1, 2),
    "any?": Listed(_keyed(_folded(either, False)), 1, 2),
    "all?": Listed(_keyed(_folded(both, True)), 1, 2),
    "choice": Listed(_choice, 1, 1),
    "flip": Listed(_flip, 1, 1),
    "null?": Listed(_null_test, 1, 1),
}
