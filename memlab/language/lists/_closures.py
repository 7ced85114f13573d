"""Checked expressions made of checked expressions: constants, names, applications, bindings and choices as closures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from memlab.language.lists._machine import Code, Environment, Function, Machine, Place, Spread, holds, kind

__all__ = ["applied", "bind", "call", "choose", "constant", "let_code", "local"]


def constant(value: Any) -> Code:
    """A value that is known before anything runs."""
    return Code(lambda machine, env: value, constant=True, value=value)


def local(position: int) -> Code:
    """A name, by its position in the environment."""
    return Code(lambda machine, env: env[position])


def applied(
    function: Callable[..., Any], codes: Sequence[Code], at: Place, quick: Callable[..., Any] | None = None
) -> Code:
    """``function`` of the machine, the place and plain values; ``quick`` of the values alone when all are floats."""
    runs = tuple(code.run for code in codes)
    cost = 1 + sum([code.cost for code in codes])
    frames = 3 + max([code.frames for code in codes], default=0)

    def settled(machine: Machine, values: Sequence[Any]) -> Any:
        return machine.settle(values, lambda plain: function(machine, at, *plain), at)

    if len(runs) == 1:
        (only,) = runs

        def unary(machine: Machine, env: Environment) -> Any:
            x = only(machine, env)
            if quick is not None and x.__class__ is float:
                return quick(x)
            return settled(machine, (x,)) if x.__class__ is Spread else function(machine, at, x)

        return Code(unary, cost, frames)
    if len(runs) == 2:
        left, right = runs

        def binary(machine: Machine, env: Environment) -> Any:
            x, y = left(machine, env), right(machine, env)
            if quick is not None and x.__class__ is float and y.__class__ is float:
                return quick(x, y)
            if x.__class__ is Spread or y.__class__ is Spread:
                return settled(machine, (x, y))
            return function(machine, at, x, y)

        return Code(binary, cost, frames)

    def several(machine: Machine, env: Environment) -> Any:
        return settled(machine, [run(machine, env) for run in runs])

    return Code(several, cost, frames)


def call(machine: Machine, at: Place, function: Any, *arguments: Any) -> Any:
    """A function as a value, applied: what ``applied`` runs where no name of the dialect stands in front."""
    if function.__class__ is not Function:
        raise at.error(f"{at.name} is {kind(function)} here, not a function.", 0)
    return machine.apply(at, function, *arguments)


def bind(name: str, code: Code, names: dict[str, Code], values: list[Code], size: int) -> int:
    """Binds ``name``: to a constant itself, or to the next position of the environment."""
    if code.constant:
        names[name] = code
        return size
    names[name] = local(size)
    values.append(code)
    return size + 1


def let_code(values: list[Code], body: Code, at: Place, size: int) -> Code:
    """``body`` after ``values`` have been added to the environment, each drawn once."""
    runs = tuple(value.run for value in values)
    # extending an environment copies it
    cost = 1 + body.cost + sum([value.cost + 1 + size // 8 for value in values])

    def resumed(machine: Machine, env: Environment, start: int) -> Any:
        for i in range(start, len(runs)):
            value = runs[i](machine, env)
            if value.__class__ is Spread:
                return machine.settle((value,), _resume(resumed, machine, env, i + 1), at, cost)
            env = (*env, value)
        return body.run(machine, env)

    frames = 2 + max([body.frames, *[value.frames for value in values]])
    return Code(lambda machine, env: resumed(machine, env, 0), cost, frames)


def _resume(
    resumed: Callable[[Machine, Environment, int], Any], machine: Machine, env: Environment, start: int
) -> Callable[[Sequence[Any]], Any]:
    return lambda values: resumed(machine, (*env, values[0]), start)


def choose(test: Code, then: Code, otherwise: Code, at: Place) -> Code:
    """``then`` where the test is true, else ``otherwise``; only the one that is needed runs."""
    if test.constant:
        return then if holds(test.value, at) else otherwise
    asks, yes, no = test.run, then.run, otherwise.run
    cost = then.cost + otherwise.cost

    def chosen(machine: Machine, env: Environment) -> Any:
        met = asks(machine, env)
        if met is True:
            return yes(machine, env)
        if met.__class__ is Spread:
            return machine.settle((met,), lambda v: (yes if holds(v[0], at) else no)(machine, env), at, cost)
        return yes(machine, env) if holds(met, at) else no(machine, env)

    return Code(chosen, 1 + test.cost + cost, 2 + max(test.frames, then.frames, otherwise.frames))
