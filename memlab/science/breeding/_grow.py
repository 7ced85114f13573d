"""Draw random expressions of a given type over the names in scope."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from memlab.kernel.language import Signature
from memlab.kernel.language.checker import Env
from memlab.kernel.language.graph import Node
from memlab.kernel.language.reader import quoted

# The operators that random expressions use: of two numbers, of a number, of a pool, and of a comparison.
_BINARY = ("+", "-", "*", "/", "min", "max")
_UNARY = ("sqrt", "tanh", "abs", "sigmoid")
_AGGREGATES = ("min-max", "slate-rank", "slate-mean")
_TESTS = ("<", "<=", ">", ">=")


class Scope(NamedTuple):
    """The names in scope at a position in a policy: features and local bindings.

    ``tail`` says whether the expression at that position is the policy's result.
    """

    signature: Signature
    env: Env
    tail: bool = False

    def names(self, type: str) -> list[str]:
        """Return the available features and local names of a type."""
        features = [item.name for item in self.signature.inputs.values() if item.type == type]
        free = [name for name in features if name not in self.env or self._is_input(name)]
        local = [
            n
            for n, v in self.env.items()
            if n not in free and isinstance(v, Node) and v.type == type
        ]
        return [*free, *local]

    def sets(self) -> list[str]:
        """Return the set features that are not hidden by a local name."""
        shadowed = [name for name, value in self.env.items() if isinstance(value, Node)]
        return [
            item.name
            for item in self.signature.inputs.values()
            if item.type == "set" and item.name not in shadowed
        ]

    def _is_input(self, name: str) -> bool:
        """Return whether a name still refers to the feature with the same name."""
        bound = self.env[name]
        return isinstance(bound, Node) and bound.op == "input" and bound.value == name


def constant(rng: np.random.Generator) -> str:
    """Return a random positive number with three significant digits, log-normal around 1."""
    return f"{math.exp(float(rng.standard_normal())):.3g}"


def leaf(type: str | None, scope: Scope, rng: np.random.Generator) -> str:
    """Return a random name or literal of a type.

    For a boolean type without names, return a comparison.
    """
    names = scope.names(str(type))
    if type == "num":
        return _choose(names, rng) if names and rng.random() < 0.75 else constant(rng)
    if type == "bool":
        return _choose(names, rng) if names else _grow_comparison(scope, rng)
    words = scope.signature.words if scope.tail and scope.signature.words else ()
    if words or not names:
        return quoted(_choose(words or _list_words(scope), rng))
    return _choose(names, rng)


def grow(type: str | None, depth: int, scope: Scope, rng: np.random.Generator) -> str:
    """Return a random expression of a type with at most ``depth`` nested operations."""
    if depth == 0 or rng.random() < 0.15:
        return leaf(type, scope, rng)
    inner = scope._replace(tail=False)
    if rng.random() < 0.2:
        test = grow("bool", depth - 1, inner, rng)
        return (
            f"(if {test} {grow(type, depth - 1, scope, rng)} {grow(type, depth - 1, scope, rng)})"
        )
    if type == "num":
        return _grow_number(depth, inner, rng)
    if type == "bool":
        return _grow_bool(depth, inner, rng)
    return leaf(type, scope, rng)


def _grow_number(depth: int, scope: Scope, rng: np.random.Generator) -> str:
    """Return a random operation that returns a number."""
    sets, kind = scope.sets(), rng.random()
    if kind < 0.1 and sets:
        return f"(size {_choose(sets, rng)})"
    if kind < 0.25 and scope.signature.aggregates:
        return f"({_choose(_AGGREGATES, rng)} {leaf('num', scope, rng)})"
    if kind < 0.45:
        return f"(* {constant(rng)} {grow('num', depth - 1, scope, rng)})"
    if kind < 0.6:
        return f"({_choose(_UNARY, rng)} {grow('num', depth - 1, scope, rng)})"
    left, right = (grow("num", depth - 1, scope, rng) for _ in range(2))
    return f"({_choose(_BINARY, rng)} {left} {right})"


def _grow_bool(depth: int, scope: Scope, rng: np.random.Generator) -> str:
    """Return a random operation that returns a boolean."""
    kind = rng.random()
    if kind < 0.2:
        return f"(not {grow('bool', depth - 1, scope, rng)})"
    if kind < 0.4:
        left, right = (grow("bool", depth - 1, scope, rng) for _ in range(2))
        return f"({_choose(('and', 'or'), rng)} {left} {right})"
    worded = [
        item
        for item in scope.signature.inputs.values()
        if item.words and item.name in scope.names("str")
    ]
    if kind < 0.6 and worded:
        item = worded[int(rng.integers(len(worded)))]
        return f"(= {item.name} {quoted(_choose(item.words, rng))})"
    return _grow_comparison(scope, rng)


def _grow_comparison(scope: Scope, rng: np.random.Generator) -> str:
    """Return a random comparison of a number with a constant."""
    return f"({_choose(_TESTS, rng)} {leaf('num', scope, rng)} {constant(rng)})"


def _list_words(scope: Scope) -> list[str]:
    """Return the words that string features can equal, or ``[""]`` if there are no words."""
    return [word for item in scope.signature.inputs.values() for word in item.words] or [""]


def _choose(options: tuple[str, ...] | list[str], rng: np.random.Generator) -> str:
    """Return a random option of a nonempty list."""
    return options[int(rng.integers(len(options)))]
