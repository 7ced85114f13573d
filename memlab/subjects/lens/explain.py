"""Explanations of a value, and of the difference between two values, by additive terms.

Sums, differences, and products with a constant are expanded, so a weighted sum is split into its terms. The graph
shares nodes, and a text of a few hundred characters may contain 2^100 terms. Therefore each node is expanded once, with
the sum of all weights that lead to it. Positive and negative weights are summed separately, because cancelling them
first would lose digits.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import polars as pl

from memlab.kernel.base.display import Displayed, Markup, bar, clip, table
from memlab.kernel.base.printable import printable
from memlab.kernel.language.columns import Evaluation, RowProgram
from memlab.kernel.language.graph import Node, Value
from memlab.kernel.language.policy import Policy
from memlab.kernel.language.primitives import equal
from memlab.kernel.language.writer import literal
from memlab.subjects.lens.labels import SMALLEST_SHOWN, Label, read_labels
from memlab.subjects.lens.tree import Tree, clauses, format_value, render, scaled


@dataclass(frozen=True)
class Term:
    """One additive term of a value.

    Attributes
    ----------
    text
        The expression of the term.
    value
        The contribution of the term.
    label
        The meaning of the term in words, from a comment in the policy's text, or "".
    group
        The kind of evidence, from the same comment, or "".
    """

    text: str
    value: float
    label: str = ""
    group: str = ""


@dataclass(frozen=True)
class Branch:
    """A test that selected a branch, with its outcome. A null outcome counts as False."""

    text: str
    taken: bool


@dataclass(frozen=True)
class Explanation(Displayed):
    """The explanation of one value of a policy: terms, branches and tree.

    Attributes
    ----------
    value
        The value.
    terms
        The additive terms, which sum to ``value`` up to rounding. Empty if the value is null or not a number.
    branches
        The tests that selected the branches of the value.
    tree
        The tree of all nodes with their values, which is built at first use. Texts are source of the policy language.
        Long texts are shortened with ``...``.

    Examples
    --------
    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("score", [Input("x"), Input("y")])
    >>> policy = compile_policy("(fn [x y] (+ (* 2 x) y))", slot)
    >>> [(term.text, term.value) for term in policy.explain({"x": 1, "y": 3}).terms]
    [('(* 2 x)', 2.0), ('y', 3.0)]
    """

    value: Value
    terms: tuple[Term, ...]
    branches: tuple[Branch, ...]
    tree: Tree = field(repr=False, compare=False)

    def _display(self) -> object:
        return self.tree


class Part(NamedTuple):
    """A term before it is formatted: ``weight`` times the ``value`` of ``node``.

    ``source`` is the text of the node if it differs from its expression.
    """

    node: Node
    weight: float
    value: float
    label: Label
    source: str = ""

    @property
    def text(self) -> str:
        """The term as source text, with its weight."""
        return scaled(self.node, self.weight, self.source)


class Choice(NamedTuple):
    """An ``if`` or ``if-null`` with the outcome of its test."""

    node: Node
    outcome: bool

    @property
    def text(self) -> str:
        """The test as source text."""
        test = render(self.node.args[0])
        return test if self.node.op == "if" else f"(null? {test})"


class Parts(NamedTuple):
    """The additive terms of a value.

    The sum of ``weight * value`` over ``terms`` is the value. ``choices`` are the tests on the way. ``leaves`` are the
    indexes of all nodes that may be a term, including nodes that contribute nothing.
    """

    terms: list[Part]
    choices: list[Choice]
    leaves: frozenset[int]


def explain(item: Evaluation, policy: Policy, inherited: bool = False) -> Explanation:
    """Return the additive terms of an item's value, and the branches that were taken.

    Unless ``inherited`` is set, the value of ``(inherited)`` is one term.
    """
    parent = None if inherited else policy.inherited
    # A policy that is only (inherited) has no other term, so its parent is split.
    closed = (
        "" if parent is None or parent.root.digest == policy.root.digest else parent.root.digest
    )
    split = split_terms(item, read_labels(policy), closed)
    branches = tuple(
        Branch(choice.text, choice.outcome) for choice in split.choices if choice.node.op == "if"
    )
    terms = tuple(Term(part.text, part.weight * part.value, *part.label) for part in split.terms)
    return Explanation(item.value(item.root), terms, branches, Tree(item))


def split_terms(item: Evaluation, labels: Mapping[str, Label], closed: str = "") -> Parts:
    """Return the additive terms of a value; only numbers have terms.

    ``closed`` is the digest of the inherited policy, which is not split.
    """
    root, value_of = item.root, item.value
    opened: dict[int, tuple[tuple[Node, float], ...]] = {}
    order: list[Node] = []
    choices: dict[int, Choice] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.index in opened:
            continue
        operands: tuple[tuple[Node, float], ...] = ()
        if node.digest != closed:
            for choice in _choices(node, value_of):
                choices[choice.node.index] = choice
            operands = tuple(_expand_operands(node, value_of))
        opened[node.index] = operands
        order.append(node)
        stack.extend(below for below, _ in reversed(operands))
    leaves = frozenset(index for index, operands in opened.items() if not operands)
    value = value_of(root)
    if value is None or isinstance(value, bool | str):
        return Parts([], list(choices.values()), leaves)
    up: dict[int, float] = {root.index: 1.0}
    down: dict[int, float] = {}
    label_of = {node.index: labels[node.digest] for node in order if node.digest in labels}
    # Arguments have smaller indexes than the nodes that use them. So in descending order of indexes, the weight of a
    # node is complete when it is expanded.
    for node in sorted(order, key=lambda node: -node.index):
        for below, factor in opened[node.index]:
            # The comment of a choice or a sum also describes its terms, unless they have comments of their own.
            if node.index in label_of:
                outer = label_of[node.index]
                own = label_of.get(below.index, outer)
                label_of[below.index] = own if own.group else own._replace(group=outer.group)
            for weights, opposite in ((up, down), (down, up)):
                weight = weights.get(node.index)
                if weight is not None:
                    into = weights if factor >= 0 else opposite
                    into[below.index] = into.get(below.index, 0.0) + weight * abs(factor)
    terms = []
    for node in order:
        if opened[node.index]:
            continue
        value = value_of(node)
        if not isinstance(value, float) or (node.constant and value == 0.0):
            continue
        if node.op == "if" and value == 0.0:
            continue  # A choice with the value 0 is not a term.
        label = label_of.get(node.index, Label())
        source = "(inherited)" if node.digest == closed and node.args else ""
        if node.index in up:
            terms.append(Part(node, up[node.index], value, label, source))
        if node.index in down:
            terms.append(Part(node, -down[node.index], value, label, source))
    return Parts(terms, list(choices.values()), leaves)


def _choices(node: Node, value_of: Any) -> Iterator[Choice]:
    """Yield the tests of an ``if`` or ``if-null`` node, with the outcome of each test.

    An ``if`` in an else branch belongs to the same cascade, up to the first test that is true.
    """
    if node.op == "if-null":
        yield Choice(node, value_of(node.args[0]) is None)
    holds = False
    while node.op == "if" and not holds:
        holds = value_of(node.args[0]) is True
        yield Choice(node, holds)
        node = node.args[2]


def _expand_operands(node: Node, value_of: Any) -> Iterator[tuple[Node, float]]:
    """Yield operands and weights whose weighted sum is a node's value, or nothing if the node has no such sum."""
    op, args = node.op, node.args
    if op == "if":
        pairs, live = clauses(node)
        for test, then in pairs:
            if value_of(test) is True:
                live = then
                break
        # A constant explains nothing, so the choice as a whole is the term.
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


# Two items are compared by splitting the difference of their scores into differences of terms.
#
# Both scores are split into the additive terms of their branches, and equal terms are subtracted. If a test selected
# different branches for the items, it is reported, and a term may be on one side only. For a term that cannot be split,
# such as a product, the features in it that differ are reported.


# The number of terms, of features and of characters of a term that a terminal shows, which fit on a screen of 96 columns.
_TERMS, _FEATURES, _TEXT = 16, 12, 64
_NAMED = 3
"""The terms that a sentence names on each side: a reader compares a few."""


@dataclass(frozen=True)
class TermGap:
    """The difference between two scores in one term.

    Attributes
    ----------
    text
        The expression of the term.
    a, b
        The contributions of the term to both scores, or 0 if the item's branch lacks the term.
    difference
        ``a`` minus ``b``.
    branch
        "both" if the branches of both items have the term, otherwise the item whose branch has it.
    features
        The features in the term that differ.
    decides
        Whether the order would reverse, or be a tie, without this term.
    label, group
        The label and the group of the term, from a comment in the policy's text, or "".
    """

    text: str
    a: float
    b: float
    difference: float
    branch: Literal["both", "a", "b"]
    features: tuple[str, ...]
    decides: bool
    label: str = ""
    group: str = ""


@dataclass(frozen=True)
class Parting:
    """A test that selected different branches for the two items."""

    text: str
    a: bool
    b: bool


@dataclass(frozen=True)
class FeatureGap:
    """A feature whose values differ between the two items."""

    name: str
    a: Value
    b: Value


@dataclass(frozen=True)
class Why(Displayed):
    """The comparison of two values, term by term.

    Attributes
    ----------
    names
        The names of both items.
    a, b
        The values of both items.
    terms
        The terms that differ, largest difference first. Their differences sum to ``difference``. Empty if a value is
        null or not a number.
    partings
        The tests with different outcomes.
    features
        The features with different values.

    Examples
    --------
    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> policy = compile_policy("(fn [x] (* 2 x))", Signature("score", [Input("x")]))
    >>> policy.why({"x": 3}, {"x": 1}).verdict
    'a has 6 and b has 2: a is above by 4'
    """

    names: tuple[str, str]
    a: Value
    b: Value
    terms: tuple[TermGap, ...]
    partings: tuple[Parting, ...]
    features: tuple[FeatureGap, ...]

    @property
    def difference(self) -> float | None:
        """The first value minus the second value, or None if either is no number."""
        return self.a - self.b if _number(self.a) and _number(self.b) else None  # type: ignore[operator]

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per term that differs between the items.

        Columns: ``term``, ``a``, ``b``, ``difference``, ``branch``, ``features`` (a list),
        ``decides``, ``label``, ``group``.
        """
        rows = [
            (
                *(t.text, t.a, t.b, t.difference, t.branch, list(t.features), t.decides),
                *(t.label, t.group),
            )
            for t in self.terms
        ]
        numbers = dict.fromkeys(("a", "b", "difference"), pl.Float64)
        others: dict[str, Any] = {
            "branch": pl.String,
            "features": pl.List(pl.String),
            "decides": pl.Boolean,
            "label": pl.String,
            "group": pl.String,
        }
        return pl.DataFrame(rows, schema={"term": pl.String, **numbers, **others}, orient="row")

    @property
    def verdict(self) -> str:
        """One sentence with the order of the items and the difference."""
        (a, b), gap = self.names, self.difference
        values = f"{a} has {format_value(self.a)} and {b} has {format_value(self.b)}"
        if gap is None or gap != gap:
            return f"{values}: the difference is no number" if self.a != self.b else f"{values}"
        if gap == 0.0:
            return f"{values}: a tie"
        return f"{values}: {a} is {'above' if gap > 0 else 'below'} by {abs(gap):.6g}"

    @property
    def sentence(self) -> str:
        """The order of the items, and the terms with the largest contribution."""
        gap = self.difference
        if not gap or gap != gap:
            return f"{self.verdict}."
        sign, (above, below) = (1, self.names) if gap > 0 else (-1, self.names[::-1])
        sides: tuple[list[str], list[str]] = [], []
        for term in self.terms:
            lead = sign * term.difference
            sides[lead < 0].append(f"{term.label or term.text} ({lead:+.3f})")
        parts = [f"{above} stands above {below} by {abs(gap):.3g}"]
        for verb, side in zip(("because", "although"), sides, strict=True):
            if side:
                parts.append(f"{verb}: {', '.join(side[:_NAMED])}")
        return "; ".join(parts) + "."

    def __repr__(self) -> str:
        # A terminal shows only what fits on a screen. Notebooks and ``frame`` have all terms.
        lines = [self.verdict]
        if self.terms:
            lines.append(
                f"{'difference':>12} {self.names[0][:12]:>12} {self.names[1][:12]:>12}   term"
            )
        visible = [t for t in self.terms if not abs(t.difference) < SMALLEST_SHOWN][:_TERMS]
        for t in visible:
            a, b = _contributions(t)
            mark = "*" if t.decides else " "
            lines.append(
                f"{t.difference:>+12.4f} {a:>12} {b:>12} {mark} {clip(t.label or t.text, _TEXT)}"
            )
        others = len(self.terms) - len(visible)
        if others:
            hidden = [t.difference for t in self.terms if t not in visible]
            rest = _signed(math.fsum(hidden))
            lines.append(f"{rest:>12} {'':>12} {'':>12}   {others} more term{'s' * (others > 1)}")
        if any(t.decides for t in self.terms):
            lines.append("* without this term the order would reverse")
        lines += [
            f"branches differ at {clip(p.text, _TEXT)}: {_outcomes(p)}" for p in self.partings
        ]
        if self.features:
            gaps = [
                f"{f.name} {format_value(f.a)} | {format_value(f.b)}"
                for f in self.features[:_FEATURES]
            ]
            more = (
                f", {len(self.features) - _FEATURES} more" if len(self.features) > _FEATURES else ""
            )
            lines.append(f"features that differ: {', '.join(gaps)}{more}")
        return printable("\n".join(lines))

    def _display(self) -> object:
        # Bars are relative to the largest finite difference. Features are listed with their terms, and all other
        # features below the table.
        finite = [abs(t.difference) for t in self.terms if math.isfinite(t.difference)]
        top = max(finite, default=0.0) or 1.0
        gaps = {
            f.name: f"{f.name} {format_value(f.a)} | {format_value(f.b)}" for f in self.features
        }
        rows = []
        for t in self.terms:
            gap = _signed(t.difference)
            rows.append(
                [
                    Markup(f"<b>{gap}</b>") if t.decides else gap,
                    bar(t.difference, top),
                    t.label or Markup(f"<code>{html.escape(t.text)}</code>"),
                    *_contributions(t),
                    ", ".join(gaps[name] for name in t.features),
                ]
            )
        heads = ("difference", "", "term", *self.names, "differs in")
        notes = [f"branches differ at {p.text}: {_outcomes(p)}" for p in self.partings]
        in_terms = {name for t in self.terms for name in t.features}
        others = [gap for name, gap in gaps.items() if name not in in_terms]
        notes += [f"also differ: {', '.join(others)}"] if others else []
        return table(self.verdict, heads, rows, notes=notes)


def compare_values(
    first: Evaluation, second: Evaluation, names: tuple[str, str], policy: Policy
) -> Why:
    """Return a comparison of two items' values, term by term."""
    program, a, b = first.program, first.value(first.root), second.value(second.root)
    inputs = [
        FeatureGap(name, first.registers[i], second.registers[i]) for i, name, _ in program.inputs
    ]
    features = tuple(gap for gap in inputs if not equal(gap.a, gap.b))
    labels = read_labels(policy)
    parts_a, parts_b = split_terms(first, labels), split_terms(second, labels)
    outcomes = {choice.node.index: choice.outcome for choice in parts_b.choices}
    # A test that only one item reached follows a test with different outcomes, which is reported.
    partings = dict.fromkeys(
        Parting(choice.text, choice.outcome, outcomes[choice.node.index])
        for choice in parts_a.choices
        if outcomes.get(choice.node.index, choice.outcome) != choice.outcome
    )
    terms: list[TermGap] = []
    if _number(a) and _number(b):
        differing = _trace_inputs(program, {f.name for f in features})
        for x, y in _pair_terms(parts_a.terms, parts_b.terms):
            left, right = (0.0 if part is None else part.weight * part.value for part in (x, y))
            part: Part = x or y  # type: ignore[assignment]
            terms.append(
                TermGap(
                    text=_name_term(x, y),
                    a=left,
                    b=right,
                    difference=left - right,
                    branch=_find_branch(part.node.index, parts_a.leaves, parts_b.leaves),
                    features=differing[part.node.index],
                    decides=_turns(a - b, left - right),
                    label=part.label.text,
                    group=part.label.group,
                )
            )
    terms = [term for term in terms if term.difference != 0.0]
    terms.sort(key=lambda term: -math.inf if math.isnan(term.difference) else -abs(term.difference))
    return Why(names, a, b, tuple(terms), tuple(partings), features)


def _turns(gap: float, term: float) -> bool:
    """Return whether a difference would vanish or change sign without one term."""
    return (gap > 0 >= gap - term) or (gap < 0 <= gap - term)


def _find_branch(index: int, a: frozenset[int], b: frozenset[int]) -> Literal["both", "a", "b"]:
    """Return "a", "b" or "both" for the items that have a graph node as a score term; ``a`` and ``b`` are their nodes."""
    if index in a and index in b:
        return "both"
    return "a" if index in a else "b"


def _pair_terms(
    first: Sequence[Part], second: Sequence[Part]
) -> list[tuple[Part | None, Part | None]]:
    """Pair the score terms of two items that have the same graph node and sign of weight.

    A term that only one item has is paired with None.
    """
    others = {(part.node.index, part.weight < 0): part for part in second}
    pairs: list[tuple[Part | None, Part | None]] = [
        (part, others.pop((part.node.index, part.weight < 0), None)) for part in first
    ]
    return [*pairs, *((None, part) for part in others.values())]


def _name_term(x: Part | None, y: Part | None) -> str:
    """Return a score term as text, without its weight if the weight differs between items."""
    if x is not None and y is not None and x.weight != y.weight:
        return scaled(x.node, math.copysign(1.0, x.weight))
    return (x or y).text  # type: ignore[union-attr]


def _trace_inputs(program: RowProgram, names: set[str]) -> dict[int, tuple[str, ...]]:
    """Return those inputs in ``names`` on which each graph node depends."""
    inputs_of: dict[int, frozenset[str]] = {}
    for node in program.nodes:
        inside = [inputs_of[a.index] for a in node.args]
        inputs_of[node.index] = (
            frozenset({str(node.value)} & names)
            if node.op == "input"
            else frozenset().union(*inside)
        )
    return {index: tuple(sorted(inside)) for index, inside in inputs_of.items()}


def _contributions(term: TermGap) -> tuple[str, ...]:
    """Return a term's contribution to each item's score as text, or "" if it has none."""
    sides = (("a", term.a), ("b", term.b))
    return tuple(f"{x:.4f}" if term.branch in ("both", side) else "" for side, x in sides)


def _signed(value: float) -> str:
    """Return a difference as text with a sign and four decimals, without "-0"."""
    return f"{0.0 if abs(value) < SMALLEST_SHOWN else value:+.4f}"


def _number(value: Any) -> bool:
    """Return whether a value is a float, as all numbers of a policy are."""
    return isinstance(value, float)


def _outcomes(parting: Parting) -> str:
    """Return the outcomes of a test for both items as text, such as "true | false"."""
    return f"{literal(parting.a)} | {literal(parting.b)}"
