"""Random expressions of a type, from what a place in a policy may read."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from memlab.kernel.language import Signature
from memlab.kernel.language.checker import Env
from memlab.kernel.language.graph import Node
from memlab.kernel.language.reader import quoted

_BINARY = ("+", "-", "*", "/", "min", "max")
_UNARY = ("sqrt", "tanh", "abs", "sigmoid")
_AGGREGATES = ("min-max", "slate-rank", "slate-mean")
_TESTS = ("<", "<=", ">", ">=")


class Scope(NamedTuple):
    """The slot, what is bound at the place, and whether the place is that of the policy's result."""

    signature: Signature
    env: Env
    tail: bool = False

    def names(self, type: str) -> list[str]:
        """Features and bound names of a type; a feature whose name let has taken is out of reach."""
        features = [item.name for item in self.signature.inputs.values() if item.type == type]
        free = [name for name in features if name not in self.env or self._is_input(name)]
        local = [
            n
            for n, v in self.env.items()
            if n not in free and isinstance(v, Node) and v.type == type
        ]
        return [*free, *local]

    def sets(self) -> list[str]:
        taken = [name for name, value in self.env.items() if isinstance(value, Node)]
        return [
            item.name
            for item in self.signature.inputs.values()
            if item.type == "set" and item.name not in taken
        ]

    def _is_input(self, name: str) -> bool:
        bound = self.env[name]
        return isinstance(bound, Node) and bound.op == "input" and bound.value == name


def constant(rng: np.random.Generator) -> str:
    """A positive number around 1: log-normal, three digits."""
    return f"{math.exp(float(rng.standard_normal())):.3g}"


def leaf(type: str | None, scope: Scope, rng: np.random.Generator) -> str:
    """A name or a literal; for a bool that no name gives, a comparison."""
    names = scope.names(str(type))
    if type == "num":
        return _one(names, rng) if names and rng.random() < 0.75 else constant(rng)
    if type == "bool":
        return _one(names, rng) if names else _test(scope, rng)
    words = scope.signature.words if scope.tail and scope.signature.words else ()
    if words or not names:
        return quoted(_one(words or _words(scope), rng))
    return _one(names, rng)


def grown(type: str | None, depth: int, scope: Scope, rng: np.random.Generator) -> str:
    """An expression of at most ``depth`` operations within one another."""
    if depth == 0 or rng.random() < 0.15:
        return leaf(type, scope, rng)
    inner = scope._replace(tail=False)
    if rng.random() < 0.2:
        test = grown("bool", depth - 1, inner, rng)
        return (
            f"(if {test} {grown(type, depth - 1, scope, rng)} {grown(type, depth - 1, scope, rng)})"
        )
    if type == "num":
        return _number(depth, inner, rng)
    if type == "bool":
        return _truth(depth, inner, rng)
    return leaf(type, scope, rng)


def _number(depth: int, scope: Scope, rng: np.random.Generator) -> str:
    sets, kind = scope.sets(), rng.random()
    if kind < 0.1 and sets:
        return f"(size {_one(sets, rng)})"
    if kind < 0.25 and scope.signature.aggregates:
        return f"({_one(_AGGREGATES, rng)} {leaf('num', scope, rng)})"
    if kind < 0.45:
        return f"(* {constant(rng)} {grown('num', depth - 1, scope, rng)})"
    if kind < 0.6:
        return f"({_one(_UNARY, rng)} {grown('num', depth - 1, scope, rng)})"
    left, right = (grown("num", depth - 1, scope, rng) for _ in range(2))
    return f"({_one(_BINARY, rng)} {left} {right})"


def _truth(depth: int, scope: Scope, rng: np.random.Generator) -> str:
    kind = rng.random()
    if kind < 0.2:
        return f"(not {grown('bool', depth - 1, scope, rng)})"
    if kind < 0.4:
        left, right = (grown("bool", depth - 1, scope, rng) for _ in range(2))
        return f"({_one(('and', 'or'), rng)} {left} {right})"
    worded = [
        item
        for item in scope.signature.inputs.values()
        if item.words and item.name in scope.names("str")
    ]
    if kind < 0.6 and worded:
        item = worded[int(rng.integers(len(worded)))]
        return f"(= {item.name} {quoted(_one(item.words, rng))})"
    return _test(scope, rng)


def _test(scope: Scope, rng: np.random.Generator) -> str:
    return f"({_one(_TESTS, rng)} {leaf('num', scope, rng)} {constant(rng)})"


def _words(scope: Scope) -> list[str]:
    """Strings that a feature may be, or the empty one."""
    return [word for item in scope.signature.inputs.values() for word in item.words] or [""]


def _one(options: tuple[str, ...] | list[str], rng: np.random.Generator) -> str:
    return options[int(rng.integers(len(options)))]
