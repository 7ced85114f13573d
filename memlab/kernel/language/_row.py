"""The graph on one row of Python values, bit for bit what the columns give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import shown
from memlab.kernel.language._dag import Node, Value, reachable
from memlab.kernel.language._derived import Derived
from memlab.kernel.language._primitives import AGGREGATES, PRIMITIVES
from memlab.kernel.language._words import canonical

__all__ = ["Evaluation", "RowProgram", "aggregate_name", "row_value"]

Step = Callable[[list[Any]], None]


def aggregate_name(node: Node) -> str:
    """What ``Policy.aggregates`` calls the column of an aggregate: the start of its meaning hash."""
    return node.digest[:16]


def row_value(name: str, value: object, type: str | None) -> Value:
    """A caller's value as the dialect's: numbers as float, or an ``InputError`` that names the feature."""
    if value is None:
        return None
    if type == "num":
        if isinstance(value, int | float | np.number | np.bool_):
            return float(value)
    elif type == "bool":
        if isinstance(value, bool | np.bool_):
            return bool(value)
    elif isinstance(value, str):
        return str(value)
    raise InputError(f"{name} is a {type}, and {value!r} is not.")


class RowProgram:
    """``run`` gives the registers of every node; the root's is the last. ``value`` reads the result out of them."""

    def __init__(self, root: Node, derived: Mapping[str, Derived]) -> None:
        self.nodes = reachable(root)
        self.derived = derived
        self.slot = {node.index: i for i, node in enumerate(self.nodes)}
        self.template = [n.value if n.constant else None for n in self.nodes]
        self.inputs = [(i, str(n.value), n.type) for i, n in enumerate(self.nodes) if n.op == "input"]
        self.aggregates = [(i, aggregate_name(n), n.op) for i, n in enumerate(self.nodes) if n.op in AGGREGATES]
        self.steps = [
            _step(n, i, [self.slot[a.index] for a in n.args])
            for i, n in enumerate(self.nodes)
            if n.op not in AGGREGATES and n.op not in ("const", "input", "record")
        ]
        self.fields = (
            [(name, self.slot[a.index]) for name, a in zip(root.value, root.args, strict=True)]
            if (root.op == "record")
            else None
        )

    def value(self, registers: list[Any]) -> Value | dict[str, Value]:
        if self.fields is None:
            return registers[-1]  # type: ignore[no-any-return]
        return {name: registers[i] for name, i in self.fields}

    def run(self, values: Mapping[str, object], aggregates: Mapping[str, float | None] | None) -> list[Any]:
        if aggregates is not None and not isinstance(aggregates, Mapping):
            raise InputError(f"aggregates are a row of Policy.aggregates, by name, not {shown(aggregates)}.")
        registers: list[Any] = self.template.copy()
        for i, name, type in self.inputs:
            if name in values:
                given = values[name]
            elif name in self.derived:
                given = self.derived[name].row(values)
            else:
                snake = name.replace("-", "_")
                if snake not in values:
                    if self.fields is not None and name in dict(self.fields):
                        raise InputError(f"A branch leaves {name} as it was: give its old value, too.")
                    raise UnknownName("value", name, (canonical(v) for v in values))
                given = values[snake]
            registers[i] = given if given.__class__ is float and type == "num" else row_value(name, given, type)
        for i, key, op in self.aggregates:
            if aggregates is None or key not in aggregates:
                raise InputError(
                    f"The policy ranges over its slate ({op}): pass the aggregates of this row, from Policy.aggregates."
                )
            value = aggregates[key]
            registers[i] = None if value is None else float(value)
        for step in self.steps:
            step(registers)
        return registers


class Evaluation(NamedTuple):
    """One item: a program and what it gave to each node."""

    program: RowProgram
    registers: list[Any]

    @property
    def root(self) -> Node:
        return self.program.nodes[-1]

    def value(self, node: Node) -> Any:
        return self.registers[self.program.slot[node.index]]


def _step(node: Node, i: int, args: list[int]) -> Step:
    if node.op == "in":
        options = frozenset(node.value)
        return _unary(lambda x: x in options, i, args[0])
    if node.op == "table":
        words, numbers, default = node.value
        lookup, a = dict(zip(words, numbers, strict=True)), args[0]

        def table(registers: list[Any]) -> None:
            registers[i] = lookup.get(registers[a], default)

        return table
    primitive = PRIMITIVES[node.op]
    function = primitive.scalar
    if not primitive.strict:

        def loose(registers: list[Any]) -> None:
            registers[i] = function(*[registers[a] for a in args])

        return loose
    if len(args) == 1:
        return _unary(function, i, args[0])
    a, b = args

    def binary(registers: list[Any]) -> None:
        x, y = registers[a], registers[b]
        registers[i] = None if x is None or y is None else function(x, y)

    return binary


def _unary(function: Callable[[Any], Any], i: int, a: int) -> Step:
    def unary(registers: list[Any]) -> None:
        x = registers[a]
        registers[i] = None if x is None else function(x)

    return unary
