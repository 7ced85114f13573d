"""What a list policy runs on: its values, chance as finite distributions, and fuel.

A value is a float, bool, str, null (None), a list (a tuple) or a function. An expression whose value depends on chance
gives a ``Spread``: every possible value with its probability. Spreads never enter a list, a name or a closure: whoever
uses a value goes through its outcomes one by one and merges equal results, so that a bound name is drawn once and
twenty coin flips that are summed are 21 outcomes, not a million.

A step of fuel is one form of a function's body each time it is applied (both branches of an ``if`` count), or one
item that a list function touches. It is paid before the work is done, so no program runs past its fuel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from memlab.errors import PolicyError, PolicyLimitError, PolicyTypeError
from memlab.language._primitives import equal
from memlab.language._reader import Form, Text

__all__ = [
    "CLASSES",
    "FUEL",
    "MAX_FRAMES",
    "MAX_ITEMS",
    "MAX_OUTCOMES",
    "NULL",
    "WORDS",
    "Code",
    "Environment",
    "Function",
    "Machine",
    "Place",
    "Spread",
    "holds",
    "kind",
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

CLASSES: dict[str, type] = {"num": float, "bool": bool, "str": str}
WORDS = {"num": "a number", "bool": "true or false", "str": "a string"}
NULL = None.__class__
"""What a value of each type is in Python, and in words where one is expected; null is of every type."""


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


# What any operation expects of its arguments.


def holds(value: Any, at: Place, argument: int | None = 0) -> bool:
    """Whether a test is met: null is not."""
    if value is True:
        return True
    if value is False or value is None:
        return False
    raise at.error(f"{at.name} tests true or false, and this is {kind(value)}.", argument)


def same(x: Any, y: Any, at: Place, argument: int = 1) -> bool | None:
    """Equality of two numbers, strings or booleans; null if either is."""
    if x is None or y is None:
        return None
    if x.__class__ is not y.__class__:
        raise at.error(f"The sides of {at.name} have two types: {kind(x)}, and here {kind(y)}.", argument)
    if x.__class__ is tuple or x.__class__ is Function:
        raise at.error(f"{at.name} compares numbers, strings and booleans, and this is {kind(x)}.", argument)
    return equal(x, y)
