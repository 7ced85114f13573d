"""Why a value: the additive terms of the live branch, the tests that chose it, and the whole computation as a tree.

Sums, differences, and products with a constant open up, so a score that is a weighted sum falls into its weights. The
graph shares nodes, and a text of a few hundred characters may hold 2^100 terms: so a node is opened once, with
the sum of the weights under which it is reached. Positive and negative weights stay apart: what cancels in the sum
would otherwise lose its digits before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memlab.kernel.base.display import Displayed
from memlab.kernel.language._dag import Node, Value
from memlab.kernel.language._row import Evaluation
from memlab.kernel.language._source import clauses, number, render, scaled
from memlab.kernel.language._tree import Tree

__all__ = ["Branch", "Explanation", "Part", "Parts", "Term", "explain", "number", "parts", "render"]


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
class Explanation(Displayed):
    """``terms`` sum to ``value``, up to rounding; they are empty when the value is null or no number.

    ``tree`` shows every node with its value; it is built when it is looked at. Texts are source of the dialect, and
    what is long is shortened by ``...``.
    """

    value: Value
    terms: tuple[Term, ...]
    branches: tuple[Branch, ...]
    tree: Tree = field(repr=False, compare=False)

    def _display(self) -> object:
        return self.tree


class Part(NamedTuple):
    """A term before it is text: ``weight`` times ``value`` of ``node``."""

    node: Node
    weight: float
    value: float

    @property
    def text(self) -> str:
        return scaled(self.node, self.weight)


class Choice(NamedTuple):
    """An ``if`` whose test held or did not, or an ``if-null`` whose value was null or was not."""

    node: Node
    taken: bool

    @property
    def text(self) -> str:
        test = render(self.node.args[0])
        return test if self.node.op == "if" else f"(null? {test})"


class Parts(NamedTuple):
    """``terms`` sum to the value by ``weight * value``. ``leaves`` are the nodes that may be a term, also where it
    gives nothing.
    """

    terms: list[Part]
    choices: list[Choice]
    leaves: frozenset[int]


def explain(item: Evaluation) -> Explanation:
    """From the values of one item's nodes: the terms in the order of the text, each once."""
    found = parts(item)
    branches = tuple(Branch(choice.text, choice.taken) for choice in found.choices if choice.node.op == "if")
    terms = tuple(Term(part.text, part.weight * part.value) for part in found.terms)
    return Explanation(item.value(item.root), terms, branches, Tree(item))


def parts(item: Evaluation) -> Parts:
    """A value taken apart; no terms when it is null or no number."""
    root, value_of = item.root, item.value
    opened: dict[int, tuple[tuple[Node, float], ...]] = {}
    order: list[Node] = []
    choices: dict[int, Choice] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.index in opened:
            continue
        for choice in _choices(node, value_of):
            choices[choice.node.index] = choice
        opened[node.index] = inside = tuple(_inside(node, value_of))
        order.append(node)
        stack.extend(below for below, _ in reversed(inside))
    leaves = frozenset(index for index, inside in opened.items() if not inside)
    value = value_of(root)
    if value is None or isinstance(value, bool | str):
        return Parts([], list(choices.values()), leaves)
    up: dict[int, float] = {root.index: 1.0}
    down: dict[int, float] = {}
    # Arguments are made before what uses them, so by falling index all weights of a node are known when it is opened.
    for node in sorted(order, key=lambda node: -node.index):
        for below, factor in opened[node.index]:
            for weights, others in ((up, down), (down, up)):
                weight = weights.get(node.index)
                if weight is not None:
                    into = weights if factor >= 0 else others
                    into[below.index] = into.get(below.index, 0.0) + weight * abs(factor)
    found = []
    for node in order:
        if opened[node.index]:
            continue
        value = value_of(node)
        if not isinstance(value, float) or (node.constant and value == 0.0):
            continue
        if node.op == "if" and value == 0.0:
            continue  # a choice of nothing
        if node.index in up:
            found.append(Part(node, up[node.index], value))
        if node.index in down:
            found.append(Part(node, -down[node.index], value))
    return Parts(found, list(choices.values()), leaves)


def _choices(node: Node, value_of: Any) -> Iterator[Choice]:
    """The choices that a node makes: an ``if`` whose ``else`` is another goes on until a test holds."""
    if node.op == "if-null":
        yield Choice(node, value_of(node.args[0]) is None)
    taken = False
    while node.op == "if" and not taken:
        taken = value_of(node.args[0]) is True
        yield Choice(node, taken)
        node = node.args[2]


def _inside(node: Node, value_of: Any) -> Iterator[tuple[Node, float]]:
    """What a node opens up to, with factors; nothing when it is a term of its own."""
    op, args = node.op, node.args
    if op == "if":
        pairs, live = clauses(node)
        for test, then in pairs:
            if value_of(test) is True:
                live = then
                break
        # a bare number explains nothing: the whole choice is the term
        if not (live.constant and isinstance(live.value, float)):
            yield live, 1.0
    elif op == "if-null":
        yield (args[1] if value_of(args[0]) is None else args[0]), 1.0
    elif op in ("+", "-") and value_of(node) is not None:
        yield args[0], 1.0
        yield args[1], 1.0 if op == "+" else -1.0
    elif op == "neg":
        yield args[0], -1.0
    elif op == "*" and args[0].constant:
        yield args[1], float(args[0].value)
    elif op == "*" and args[1].constant:
        yield args[0], float(args[1].value)
    elif op == "/" and args[1].constant and args[1].value and math.isfinite(args[1].value):
        yield args[0], 1.0 / args[1].value
