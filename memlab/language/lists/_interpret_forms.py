"""What a list policy runs on: its values, chance as finite distributions, fuel, and the functions over lists.

A value is a float, bool, str, null (None), a list (a tuple) or a function. An expression whose value depends on chance
gives a ``Spread``: every possible value with its probability. Spreads never enter a list, a name or a closure: whoever
uses a value goes through its outcomes one by one and merges equal results, so that a bound name is drawn once and
twenty coin flips that are summed are 21 outcomes, not a million.

A step of fuel is one form of a function's body each time it is applied (both branches of an ``if`` count), or one
item that a list function touches. It is paid before the work is done, so no program runs past its fuel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from memlab.errors import PolicyError, PolicyLimitError, PolicyTypeError
from memlab.language._primitives import both, either, equal
from memlab.language._reader import Form, Text

__all__ = [
    "FUEL",
    "FUNCTIONS",
    "MAX_FRAMES",
    "MAX_ITEMS",
    "MAX_OUTCOMES",
    "Code",
    "Environment",
    "Function",
    "Listed",
    "Machine",
    "Place",
    "Spread",
    "holds",
    "kind",
    "member",
    "same",
]

FUEL = 120_000
"""Steps for one slate. Measured: the worst programs found spend it in 25-40 ms of one core; the original exploration
policy takes 920 steps (0.1 ms) at 100 items, a comparison of every item with every other 101,000 (17 ms).
"""

MAX_ITEMS = 4_096
"""Items of one list, the slate included."""

MAX_OUTCOMES = 4_096
"""Values that one expression may have by chance."""

MAX_FRAMES = 400
"""Python frames that expressions may take up within one another, of the 1,000 that Python has by default."""

_OVERHEAD = 4
"""Frames between an expression and the body of a function that it applies."""

_INSTEAD = "Shorten the list first, with filter or take, or write the policy as a weight for each item."
_NO_RECURSION = "The dialect has no recursion: go through a list with map, filter or reduce."

Environment = tuple[Any, ...]
"""The values of the names in scope, by position. Never changed, so a function keeps the one it was made in."""

Run = Callable[["Machine", Environment], Any]


class Code(NamedTuple):
    """A checked expression: how to run it, the forms that this visits, the frames that it takes."""

    run: Run
    cost: int = 1
    frames: int = 1
    constant: bool = False
    value: Any = None


class Function:
    """A function as a value: a body for each number of arguments that it takes, and the names it was made among."""

    __slots__ = ("bodies", "env")

    def __init__(self, bodies: Mapping[int, Code], env: Environment) -> None:
        self.bodies, self.env = bodies, env


class Spread:
    """A value that depends on chance: two or more (value, probability), no value twice."""

    __slots__ = ("outcomes",)

    def __init__(self, outcomes: tuple[tuple[Any, float], ...]) -> None:
        self.outcomes = outcomes


def kind(value: object) -> str:
    """What a value is, in words."""
    return _KINDS[value.__class__]


_KINDS: dict[type, str] = {
    float: "a number",
    bool: "true or false",
    str: "a string",
    type(None): "null",
    tuple: "a list",
    Function: "a function",
}


class Place(NamedTuple):
    """Where an operation stands, for its errors: its form and those of its arguments."""

    text: Text
    form: Form
    arguments: tuple[Form, ...]

    def error(
        self, message: str, argument: int | None = None, error: type[PolicyError] = PolicyTypeError
    ) -> PolicyError:
        form = self.form
        if argument is not None and argument < len(self.arguments):
            form = self.arguments[argument]
        return self.text.error(error, message, form)

    @property
    def name(self) -> str:
        return self.form.head or self.form.text or "This"


class Machine:
    """Runs one program on one slate; what it has left is shared by all that the program does."""

    __slots__ = ("frames", "fuel", "size", "slot")

    def __init__(self, slot: str, size: int, frames: int) -> None:
        self.slot, self.size, self.frames, self.fuel = slot, size, frames, FUEL

    def spend(self, steps: int, at: Place) -> None:
        self.fuel -= steps
        if self.fuel < 0:
            raise self.limit(f"takes more than {FUEL:,} steps", at)

    def limit(self, what: str, at: Place, instead: str = _INSTEAD) -> PolicyError:
        of = f"{self.size:,} item{'' if self.size == 1 else 's'}"
        return at.error(f"{self.slot} {what} on a slate of {of}. {instead}", error=PolicyLimitError)

    def nest(self, frames: int, at: Place) -> None:
        self.frames += frames
        if self.frames > MAX_FRAMES:
            raise self.limit("nests functions or choices too deeply", at, _NO_RECURSION)

    # Functions.

    def body(self, at: Place, function: Any, count: int) -> Code:
        """The body of ``function`` for ``count`` arguments."""
        if function.__class__ is not Function:
            raise at.error(f"{at.name} takes a function first, and this is {kind(function)}.", 0)
        body: Code | None = function.bodies.get(count)
        if body is None:
            *most, last = [str(n) for n in function.bodies]
            takes = f"{', '.join(most)} or {last}" if most else last
            plural = "" if takes == "1" else "s"
            raise at.error(f"This function takes {takes} argument{plural}, and here {at.name} gives {count}.", 0)
        return body

    def enter(self, at: Place, body: Code, times: int) -> None:
        """Pays for ``times`` applications; the caller gives the frames back."""
        self.spend(times * body.cost, at)
        self.nest(body.frames + _OVERHEAD, at)

    def leave(self, body: Code) -> None:
        self.frames -= body.frames + _OVERHEAD

    def apply(self, at: Place, function: Any, *arguments: Any) -> Any:
        """``function`` applied to plain values."""
        body = self.body(at, function, len(arguments))
        self.enter(at, body, 1)
        result = body.run(self, function.env + arguments)
        self.leave(body)
        return result

    def each(self, at: Place, function: Any, rows: Sequence[tuple[Any, ...]], count: int = 1) -> list[Any]:
        """``function`` applied to each of ``rows``, which are tuples of ``count`` plain values."""
        body = self.body(at, function, count)
        self.enter(at, body, len(rows))
        run, env = body.run, function.env
        results = [run(self, env + row) for row in rows]
        self.leave(body)
        return results

    # Chance.

    def settle(self, values: Sequence[Any], finish: Callable[[Sequence[Any]], Any], at: Place, cost: int = 1) -> Any:
        """``finish`` of plain values: for each combination of the outcomes of ``values``, merged.

        ``cost`` is what a run of ``finish`` visits besides: it runs once for each combination.
        """
        chancy = [i for i, v in enumerate(values) if v.__class__ is Spread]
        if not chancy:
            return finish(values)
        count = 1
        for i in chancy:
            count *= len(values[i].outcomes)
            if count > MAX_OUTCOMES:
                raise self.limit(f"leaves more than {MAX_OUTCOMES:,} possibilities to chance", at)
        self.spend(count * (len(values) + cost), at)
        self.nest(_OVERHEAD, at)
        parts: list[tuple[Any, float]] = []
        for combination in product(*[values[i].outcomes for i in chancy]):
            filled, probability = list(values), 1.0
            for i, (value, p) in zip(chancy, combination, strict=True):
                filled[i] = value
                probability *= p
            parts.append((finish(filled), probability))
        self.frames -= _OVERHEAD
        return self.mix(parts, at)

    def mix(self, parts: Iterable[tuple[Any, float]], at: Place) -> Any:
        """The distribution that gives each part with its probability; a plain value if only one is possible."""
        merged: dict[object, tuple[Any, float]] = {}
        for part, weight in parts:
            outcomes = part.outcomes if part.__class__ is Spread else ((part, 1.0),)
            self.spend(len(outcomes), at)
            for value, p in outcomes:
                key = self.key(value, at)
                known = merged.get(key)
                merged[key] = (value, p * weight if known is None else known[1] + p * weight)
        if len(merged) == 1:
            return next(iter(merged.values()))[0]
        if len(merged) > MAX_OUTCOMES:
            raise self.limit(f"leaves more than {MAX_OUTCOMES:,} possibilities to chance", at)
        return Spread(tuple(merged.values()))

    def key(self, value: Any, at: Place) -> object:
        """Equal for equal values: 0.0 and -0.0 differ, every NaN is one. Lists within lists go by identity, because
        shared ones may unfold to more items than there is memory.
        """
        if value.__class__ is tuple:
            self.spend(len(value), at)
            return (tuple, *[_key(item) for item in value])
        return _key(value)


def _key(value: Any) -> object:
    if value.__class__ is float:
        return value if value == value and value != 0.0 else ("float", str(value))
    if value.__class__ is bool:
        return ("bool", str(value))
    return ("list", id(value)) if value.__class__ is tuple else value


# What functions expect of their arguments.


def holds(value: Any, at: Place, argument: int | None = 0) -> bool:
    """Whether a test is met: null is not."""
    if value is True:
        return True
    if value is False or value is None:
        return False
    raise at.error(f"{at.name} tests true or false, and this is {kind(value)}.", argument)


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


def same(x: Any, y: Any, at: Place, argument: int = 1) -> bool | None:
    """Equality of two numbers, strings or booleans; null if either is."""
    if x is None or y is None:
        return None
    if x.__class__ is not y.__class__:
        raise at.error(f"The sides of {at.name} have two types: {kind(x)}, and here {kind(y)}.", argument)
    if x.__class__ is tuple or x.__class__ is Function:
        raise at.error(f"{at.name} compares numbers, strings and booleans, and this is {kind(x)}.", argument)
    return equal(x, y)


# Functions over lists: the machine, the place and plain values in; a value or a Spread out.


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
