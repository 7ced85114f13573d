"""Why a value: the additive terms of the live branch, and the tests that chose it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from memlab.language._dag import Node, Value
from memlab.language._row import RowProgram

__all__ = ["Branch", "Explanation", "Term", "explain", "render"]


@dataclass(frozen=True)
class Term:
    """One additive part of a value, as source."""

    text: str
    value: float


@dataclass(frozen=True)
class Branch:
    """A test on the way to the live branch, and what it gave (null takes the other branch)."""

    text: str
    taken: bool


@dataclass(frozen=True)
class Explanation:
    """``terms`` sum to ``value``, up to rounding; they are empty when the value is null or no number."""

    value: Value
    terms: tuple[Term, ...]
    branches: tuple[Branch, ...]


def explain(program: RowProgram, registers: list[Any]) -> Explanation:
    """From the registers of a row: sums, differences and constant factors open up; ``if`` shows its live branch."""
    value: Value = registers[-1]
    terms: list[Term] = []
    branches: list[Branch] = []
    _walk(program, registers, program.nodes[-1], 1.0, terms, branches)
    if value is None or isinstance(value, bool | str):
        terms = []
    return Explanation(value, tuple(terms), tuple(branches))


def _walk(
    program: RowProgram, registers: list[Any], node: Node, scale: float, terms: list[Term], branches: list[Branch]
) -> None:
    def value(of: Node) -> Any:
        return registers[program.slot[of.index]]

    op, args = node.op, node.args
    if op == "if":
        taken = value(args[0]) is True
        branches.append(Branch(render(args[0]), taken))
        live = args[1] if taken else args[2]
        if live.op == "const" and isinstance(live.value, float):
            # a bare number says nothing: the whole choice is the term
            if live.value != 0.0:
                terms.append(Term(render(node) if scale == 1.0 else _product(scale, render(node)), scale * live.value))
        else:
            _walk(program, registers, live, scale, terms, branches)
    elif op == "if-null":
        _walk(program, registers, args[1] if value(args[0]) is None else args[0], scale, terms, branches)
    elif op in ("+", "-") and value(node) is not None:
        _walk(program, registers, args[0], scale, terms, branches)
        _walk(program, registers, args[1], scale if op == "+" else -scale, terms, branches)
    elif op == "neg":
        _walk(program, registers, args[0], -scale, terms, branches)
    elif op == "*" and args[0].constant:
        _walk(program, registers, args[1], scale * float(args[0].value), terms, branches)
    elif op == "*" and args[1].constant:
        _walk(program, registers, args[0], scale * float(args[1].value), terms, branches)
    else:
        found = value(node)
        if isinstance(found, float) and not (node.constant and found == 0.0):
            terms.append(Term(_scaled(node, scale), scale * found))


def _scaled(node: Node, scale: float) -> str:
    text = render(node)
    if scale == 1.0:
        return text
    if scale == -1.0:
        return f"(- {text})"
    if node.constant:
        return number(scale * float(node.value))
    return _product(scale, text)


def _product(factor: float, text: str) -> str:
    """``(* factor text)``, or the division that it most likely was when the factor has many digits."""
    inverse = 1.0 / factor if factor else math.inf
    if len(number(factor)) > 9 > len(number(inverse)) and 1.0 / inverse == factor:
        return f"(/ {text} {number(inverse)})"
    return f"(* {number(factor)} {text})"


def number(value: float) -> str:
    """A number as source, without a needless point."""
    if math.isfinite(value) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return repr(value)


def render(node: Node) -> str:
    """A node as source of the dialect; long text ends in an ellipsis."""
    text = _render(node, 12)
    return text if len(text) <= 400 else text[:397] + "..."


_SPELLING = {"neg": "-", "same": "=", "iff": "="}


def _render(node: Node, depth: int) -> str:
    op, args, value = node.op, node.args, node.value
    if op == "input":
        return str(value)
    if op == "const":
        return _literal(value)
    if depth == 0:
        return "..."
    if op == "*" and (args[0].constant or args[1].constant):
        factor, other = (args[0], args[1]) if args[0].constant else (args[1], args[0])
        if isinstance(factor.value, float) and not math.isnan(factor.value):
            return _product(factor.value, _render(other, depth - 1))
    if op == "not" and args[0].op in ("=", "same", "iff"):
        return f"(!= {' '.join(_render(a, depth - 1) for a in args[0].args)})"
    if op in ("<", "<=") and args[0].constant:
        return f"({'>' if op == '<' else '>='} {_render(args[1], depth - 1)} {_render(args[0], depth - 1)})"
    if op in ("+", "*", "and", "or", "min", "max"):
        return f"({op} {' '.join(_render(a, depth - 1) for a in _flat(node, op))})"
    parts = [_SPELLING.get(op, op), *(_render(a, depth - 1) for a in args)]
    if op == "in":
        parts.append(f"[{' '.join(_literal(w) for w in value)}]")
    if op == "table":
        words, numbers, default = value
        pairs = [f"{_literal(w)} {number(n)}" for w, n in zip(words, numbers, strict=True)]
        parts = ["case", *parts[1:], *pairs, "else", number(default)]
    return f"({' '.join(parts)})"


def _flat(node: Node, op: str) -> list[Node]:
    """The arguments of a chain that leans left, as it was most likely written."""
    last: list[Node] = []
    while node.op == op:
        last.append(node.args[1])
        node = node.args[0]
    return [node, *reversed(last)]


def _literal(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number(value)
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
