"""Nodes of the graph as text of the dialect: what reads back as the same node, as long as it fits.

Shared nodes make the full text of a small graph exponential, so nothing is written before it is known to fit: pieces
come lazily, and the writer stops at the limit and tries again with the deepest places left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

from memlab.kernel.language._dag import Node, Value
from memlab.kernel.language._words import quoted

__all__ = ["LIMIT", "chain", "clauses", "literal", "number", "render", "scaled", "shown", "source", "written_as"]

LIMIT = 400
"""Characters of one node's text."""
_DEPTHS = (12, 8, 6, 5, 4, 3, 2, 1)
_WORD, _ARGUMENTS = 24, 8
"""Where a text is shortened, longer strings and further arguments go too."""
_EXACT = 2.0**53
_SPELLING = {"neg": "-", "same": "=", "iff": "="}
_CHAINS = ("+", "*", "and", "or", "min", "max")


@lru_cache(maxsize=8192)
def source(node: Node, *, limit: int = LIMIT) -> tuple[str, bool]:
    """A node as source, and whether that is all of it: what does not fit is ``...``, deepest places first."""
    whole = _written(_pieces(node, None), limit)
    if whole is not None:
        return whole, True
    for depth in _DEPTHS:
        text = _written(_pieces(node, depth), limit)
        if text is not None:
            return text, False
    return (f"({_SPELLING.get(node.op, node.op)} ...)" if node.args else '"..."'), False


def render(node: Node) -> str:
    """A node as source of the dialect, shortened where it is long."""
    return source(node)[0]


def scaled(node: Node, scale: float) -> str:
    """``scale`` times a node, as it was most likely written."""
    if scale == 1.0:
        return render(node)
    if scale == -1.0:
        return f"(- {render(node)})"
    if node.constant:
        return number(scale * float(node.value))
    before, after = _around(scale)
    return f"{before}{render(node)}{after}"


def number(value: float) -> str:
    """A number as source, without a needless point; NaN and infinities as the divisions that give them."""
    if value != value:
        return "(/ 0 0)"
    if math.isinf(value):
        return "(/ 1 0)" if value > 0 else "(/ -1 0)"
    if value.is_integer() and abs(value) <= _EXACT and (value or math.copysign(1.0, value) > 0):
        return str(int(value))
    return repr(value)


def literal(value: Value) -> str:
    """A value as a literal of the dialect."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number(value)
    return quoted(value)


def shown(value: Value) -> str:
    """A value for people: six digits of a number."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = literal(value)
    return text if len(text) <= 24 else text[:22] + '…"'


def chain(node: Node, continues: Callable[[Node], bool] = lambda node: True) -> list[Node]:
    """The arguments of a chain that leans left, as it was most likely written; ``continues`` says how far it goes."""
    op, last = node.op, [node.args[1]]
    while node.args[0].op == op and continues(node.args[0]):
        node = node.args[0]
        last.append(node.args[1])
    return [node.args[0], *reversed(last)]


def clauses(node: Node, continues: Callable[[Node], bool] = lambda node: True) -> tuple[list[tuple[Node, Node]], Node]:
    """Nested ``if`` as the tests and values of a ``cond``, and its last value; ``continues`` says how far it goes."""
    pairs = [(node.args[0], node.args[1])]
    while node.args[2].op == "if" and continues(node.args[2]):
        node = node.args[2]
        pairs.append((node.args[0], node.args[1]))
    return pairs, node.args[2]


def written_as(node: Node) -> tuple[str, tuple[Node, ...]]:
    """The head and the arguments under which a node is written: ``>`` for a ``<`` with its constant in front."""
    op, args = node.op, node.args
    if op == "not" and args[0].op in ("=", "same", "iff"):
        return "!=", args[0].args
    if op in ("<", "<=") and args[0].constant:
        return (">" if op == "<" else ">="), (args[1], args[0])
    if op in _CHAINS:
        return op, tuple(chain(node))
    return _SPELLING.get(op, op), args


def _around(factor: float) -> tuple[str, str]:
    """What is written before and after the other factor: a product, or the division that it most likely was."""
    inverse = 1.0 / factor if factor and math.isfinite(factor) else math.inf
    if math.isfinite(inverse) and len(number(factor)) > 9 > len(number(inverse)) and 1.0 / inverse == factor:
        return "(/ ", f" {number(inverse)})"
    return f"(* {number(factor)} ", ")"


def _written(pieces: Iterator[str], limit: int) -> str | None:
    """The pieces as one text, or None once they are longer than ``limit``."""
    text: list[str] = []
    for piece in pieces:
        limit -= len(piece)
        if limit < 0:
            return None
        text.append(piece)
    return "".join(text)


def _pieces(node: Node, depth: int | None) -> Iterator[str]:
    op, args, value = node.op, node.args, node.value
    if op == "input":
        yield str(value)
        return
    if op == "const":
        short = depth is None or not isinstance(value, str) or len(value) <= _WORD
        yield literal(value) if short else '"..."'
        return
    if depth == 0:
        yield "..."
        return
    below = None if depth is None else depth - 1
    if op == "*" and (args[0].constant or args[1].constant):
        factor, other = (args[0], args[1]) if args[0].constant else (args[1], args[0])
        before, after = _around(factor.value)
        yield before
        yield from _pieces(other, below)
        yield after
        return
    if op == "if" and args[2].op == "if":
        pairs, last = clauses(node)
        most = len(pairs) if depth is None else _ARGUMENTS // 2
        yield "(cond"
        for part in (part for pair in pairs[:most] for part in pair):
            yield " "
            yield from _pieces(part, below)
        yield " else " if len(pairs) <= most else " ... else "
        yield from _pieces(last, below)
        yield ")"
        return
    head, parts = written_as(node)
    if op == "table":
        head = "case"
    elif op == "record":
        head = "update"
    yield f"({head}"
    most = len(parts) if depth is None else _ARGUMENTS
    for place, part in enumerate(parts[:most]):
        yield f" :{value[place]} " if op == "record" else " "
        yield from _pieces(part, below)
    if len(parts) > most:
        yield " ..."
    if op == "in":
        yield " ["
        for place, word in enumerate(value):
            yield literal(word) if not place else f" {literal(word)}"
        yield "]"
    elif op == "table":
        words, numbers, default = value
        for word, found in zip(words, numbers, strict=True):
            yield f" {literal(word)} {number(found)}"
        yield f" else {number(default)}"
    yield ")"
