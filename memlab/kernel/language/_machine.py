"""What runs a policy over lists: its values, their probabilities, and fuel.

A value is a float, bool, str, null (None), a list (a tuple) or a function. What is random is a ``Distribution``: every
possible value with its probability. Distributions never enter a list, a name or a function: what uses a value
enumerates its outcomes and merges equal results, so a bound name is drawn once, and twenty summed coin flips are 21
outcomes.

A step of fuel is one form of a function's body each time it is applied, or one item that is touched. It is paid before
the work is done, so no program runs past its fuel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from memlab.errors import PolicyError, PolicyLimitError, PolicyTypeError
from memlab.kernel.language._check import kind_of
from memlab.kernel.language._reader import Form, Text

__all__ = [
    "CLASSES",
    "FUEL",
    "MAX_ITEMS",
    "Code",
    "Distribution",
    "Environment",
    "Function",
    "Machine",
    "Place",
    "expect",
    "holds",
    "kind_of_value",
]

FUEL = 120_000
"""Steps for one slate: some 60 ms of one core at the most. The original exploration policy takes 1,000 at 100 items."""

MAX_ITEMS = 4_096
"""Items of one list, the slate included, and values that one random expression may have."""

_INSTEAD = "Shorten the list first, with filter or take, or write the policy as a weight for each item."
CLASSES: dict[str, type] = {"num": float, "bool": bool, "str": str, "list": tuple}
"""What a value of each type is in Python; null is of every type but a list."""

Environment = tuple[Any, ...]
"""The values of the names in scope, by position. Never changed, so a function keeps the one it was made in."""


class Code(NamedTuple):
    """A checked expression: how to run it, how many forms that visits, and its value where that is a literal."""

    run: Callable[[Machine, Environment], Any]
    cost: int = 1
    literal: Any = ...


class Function(NamedTuple):
    """A function as a value: a body for each number of arguments that it takes, and the names it was made among."""

    bodies: Mapping[int, Code]
    env: Environment = ()


class Distribution(NamedTuple):
    """A random value: two or more (value, probability), no value twice."""

    outcomes: tuple[tuple[Any, float], ...]


class Place(NamedTuple):
    """Where an operation is written, for its errors: its form and those of its arguments."""

    text: Text
    form: Form
    arguments: tuple[Form, ...]

    def error(
        self, message: str, argument: int | None = None, error: type[PolicyError] = PolicyTypeError
    ) -> PolicyError:
        """An error with its caret under the form, or under one of its arguments."""
        inside = argument is not None and argument < len(self.arguments)
        return self.text.error(error, message, self.arguments[argument] if inside else self.form)  # type: ignore[index]

    @property
    def name(self) -> str:
        return self.form.head or self.form.text or "This"


def kind_of_value(value: object) -> str:
    """What a value is, in words."""
    types = [type for type, made in CLASSES.items() if value.__class__ is made]
    return kind_of(None if value is None else types[0] if types else "function")


def expect(value: Any, type: str, at: Place, argument: int, what: str = "") -> Any:
    """The value, which must be of ``type``; null passes unless a list is wanted."""
    if value.__class__ is CLASSES[type] or (value is None and type != "list"):
        return value
    what = what or f"takes {kind_of(type)}"
    raise at.error(f"{at.name} {what}, and this is {kind_of_value(value)}.", argument)


def holds(value: Any, at: Place, argument: int = 0) -> bool:
    """Whether a test is met: null is not."""
    if value is None or value.__class__ is bool:
        return value is True
    raise at.error(f"{at.name} tests true or false, and this is {kind_of_value(value)}.", argument)


class Machine:
    """Runs one program on one slate of ``size`` items; the fuel is shared by all that the program does."""

    def __init__(self, slot: str, size: int) -> None:
        self.slot, self.size, self.fuel = slot, size, FUEL

    def spend(self, steps: int, at: Place) -> None:
        """Takes ``steps`` from the fuel, or ends the program with a PolicyLimitError."""
        self.fuel -= steps
        if self.fuel < 0:
            raise self.limit(f"takes more than {FUEL:,} steps", at)

    def limit(self, what: str, at: Place, instead: str = _INSTEAD) -> PolicyError:
        """The error of a limit that was met on this slate."""
        of = f"{self.size:,} item{'' if self.size == 1 else 's'}"
        return at.error(f"{self.slot} {what} on a slate of {of}. {instead}", error=PolicyLimitError)

    def make(self, items: Iterable[Any], count: int, at: Place) -> tuple[Any, ...]:
        """A new list of ``count`` items, paid for before it is made."""
        if count > MAX_ITEMS:
            raise self.limit(f"makes a list of more than {MAX_ITEMS:,} items", at)
        self.spend(count, at)
        return tuple(items)

    def body(self, at: Place, function: Any, count: int, times: int = 1) -> Code:
        """The body of ``function`` for ``count`` arguments, paid for ``times`` applications."""
        if function.__class__ is not Function:
            raise at.error(f"{at.name} takes a function first, and this is {kind_of_value(function)}.", 0)
        body: Code | None = function.bodies.get(count)
        if body is None:
            takes = " or ".join(map(str, function.bodies))
            raise at.error(f"This function takes {takes} arguments, and here {at.name} gives {count}.", 0)
        self.spend(times * body.cost, at)
        return body

    def each(self, at: Place, function: Any, rows: Sequence[tuple[Any, ...]], count: int = 1) -> list[Any]:
        """``function`` applied to each of ``rows``, which are tuples of ``count`` plain values."""
        run = self.body(at, function, count, len(rows)).run
        env = function.env
        return [run(self, env + row) for row in rows]

    def over_outcomes(
        self, values: Sequence[Any], finish: Callable[[Sequence[Any]], Any], at: Place, cost: int = 1
    ) -> Any:
        """``finish`` of plain values: for each combination of the outcomes of ``values``, merged.

        ``cost`` is what a run of ``finish`` visits besides: it runs once for each combination.
        """
        random = [i for i, v in enumerate(values) if v.__class__ is Distribution]
        if not random:
            return finish(values)
        count = math.prod(len(values[i].outcomes) for i in random)
        if count > MAX_ITEMS:
            raise self.limit(f"leaves more than {MAX_ITEMS:,} possibilities to chance", at)
        self.spend(count * (len(values) + cost), at)
        parts: list[tuple[Any, float]] = []
        for combination in product(*[values[i].outcomes for i in random]):
            filled, probability = list(values), 1.0
            for i, (value, p) in zip(random, combination, strict=True):
                filled[i] = value
                probability *= p
            parts.append((finish(filled), probability))
        return self.mixture(parts, at)

    def mixture(self, parts: Iterable[tuple[Any, float]], at: Place) -> Any:
        """The distribution that gives each part with its probability; a plain value if only one is possible."""
        merged: dict[object, tuple[Any, float]] = {}
        for part, weight in parts:
            outcomes = part.outcomes if part.__class__ is Distribution else ((part, 1.0),)
            self.spend(len(outcomes), at)
            for value, p in outcomes:
                if value.__class__ is tuple:
                    self.spend(len(value), at)
                    key: object = (tuple, *map(_key, value))
                else:
                    key = _key(value)
                merged[key] = (value, merged.get(key, (value, 0.0))[1] + p * weight)
        if len(merged) > MAX_ITEMS:
            raise self.limit(f"leaves more than {MAX_ITEMS:,} possibilities to chance", at)
        return next(iter(merged.values()))[0] if len(merged) == 1 else Distribution(tuple(merged.values()))


def _key(value: Any) -> object:
    """Equal for equal values: 0.0 and -0.0 differ, every NaN is one. Lists within lists go by identity, because shared
    ones may unfold to more items than there is memory.
    """
    if value.__class__ is float or value.__class__ is bool:
        return (value.__class__, str(value))
    return id(value) if value.__class__ in (tuple, Function) else value
