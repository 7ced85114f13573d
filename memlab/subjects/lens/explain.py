"""Why a value, and why one is above another: the additive terms of the live branch, and the tests that chose it.

Sums, differences, and products with a constant open up, so a score that is a weighted sum falls into its weights. The
graph shares nodes, and a text of a few hundred characters may hold 2^100 terms: so a node is opened once, with
the sum of the weights under which it is reached. Positive and negative weights stay apart: what cancels in the sum
would otherwise lose its digits before it.
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
from memlab.kernel.language.writer import literal
from memlab.subjects.lens.labels import Label, read_labels
from memlab.subjects.lens.tree import Tree, clauses, render, scaled, shown


@dataclass(frozen=True)
class Term:
    """One additive part of a value.

    ``text`` is its expression. ``label`` says in words what it stands for, and ``group`` which kind of evidence it is:
    both come from a comment of the policy's text, and are empty without one.
    """

    text: str
    value: float
    label: str = ""
    group: str = ""


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
    label: Label

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


def explain(item: Evaluation, policy: Policy) -> Explanation:
    """Return the terms of one item's value, in the order of the text and each once."""
    found = parts(item, read_labels(policy))
    branches = tuple(
        Branch(choice.text, choice.taken) for choice in found.choices if choice.node.op == "if"
    )
    terms = tuple(Term(part.text, part.weight * part.value, *part.label) for part in found.terms)
    return Explanation(item.value(item.root), terms, branches, Tree(item))


def parts(item: Evaluation, labels: Mapping[str, Label]) -> Parts:
    """Split a value into additive terms; there are none when it is null or no number."""
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
    label_of = {node.index: labels[node.digest] for node in order if node.digest in labels}
    # Arguments are made before what uses them, so by falling index all weights of a node are known when it is opened.
    for node in sorted(order, key=lambda node: -node.index):
        for below, factor in opened[node.index]:
            # The comment of a choice or a sum describes its terms, too, unless they have comments of their own.
            if node.index in label_of:
                outer = label_of[node.index]
                own = label_of.get(below.index, outer)
                label_of[below.index] = own if own.group else own._replace(group=outer.group)
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
        label = label_of.get(node.index, Label())
        if node.index in up:
            found.append(Part(node, up[node.index], value, label))
        if node.index in down:
            found.append(Part(node, -down[node.index], value, label))
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


# Why one item ranks above another: the difference of their scores, as a sum of differences of terms.
#
# Both scores are taken apart into the additive terms of their live branches (``parts``), and equal terms are
# subtracted. Where a test sent the items into different branches, a term may be on one side only, and the test is
# named. A term that does not come apart, such as a product, names the features in it that differ.


# A terminal shows this many terms and features, and this many characters of a term: one screen of 96 columns.
_TERMS, _FEATURES, _TEXT = 16, 12, 64
# Four decimals are shown: a smaller difference would read +0.0000.
_SMALLEST_SHOWN = 0.00005


@dataclass(frozen=True)
class TermGap:
    """One term of both scores: what it gives to ``a`` and to ``b`` (0 where it is not on the live branch).

    ``branch`` is whether it is live for both, or only for ``a`` or ``b``; ``features`` are the inputs in it that
    differ. ``decides`` is true when the order would turn, or be a tie, without this term.
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
    """A test that both met and that sent them into different branches."""

    text: str
    a: bool
    b: bool


@dataclass(frozen=True)
class FeatureGap:
    """An input that differs."""

    name: str
    a: Value
    b: Value


@dataclass(frozen=True)
class Why(Displayed):
    """``terms``, what decides first, sum to ``difference``, which is the value of ``a`` minus that of ``b``.

    ``difference`` is None, and there are no terms, when a value is null or no number; ``partings`` and ``features``
    then still say what differs.
    """

    names: tuple[str, str]
    a: Value
    b: Value
    terms: tuple[TermGap, ...]
    partings: tuple[Parting, ...]
    features: tuple[FeatureGap, ...]

    @property
    def difference(self) -> float | None:
        """What the first has more than the second; None where one of them is no number."""
        return self.a - self.b if _number(self.a) and _number(self.b) else None  # type: ignore[operator]

    @property
    def frame(self) -> pl.DataFrame:
        """One row a term: ``term``, ``a``, ``b``, ``difference``, ``branch``, ``features`` (a list), ``decides``,
        ``label``, ``group``.
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
        """One sentence: who is above whom, and by how much."""
        (a, b), gap = self.names, self.difference
        values = f"{a} has {shown(self.a)} and {b} has {shown(self.b)}"
        if gap is None or gap != gap:
            return f"{values}: no difference to take apart" if self.a != self.b else f"{values}"
        if gap == 0.0:
            return f"{values}: a tie"
        return f"{values}: {a} is {'above' if gap > 0 else 'below'} by {abs(gap):.6g}"

    def __repr__(self) -> str:
        lines = [self.verdict]
        if self.terms:
            lines.append(
                f"{'difference':>12} {self.names[0][:12]:>12} {self.names[1][:12]:>12}   term"
            )
        visible = [t for t in self.terms if not abs(t.difference) < _SMALLEST_SHOWN][:_TERMS]
        for t in visible:
            a, b = (
                f"{x:.4f}" if t.branch in ("both", side) else ""
                for side, x in (("a", t.a), ("b", t.b))
            )
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
            lines.append("* without this term the order would turn")
        lines += [f"branches part at {clip(p.text, _TEXT)}: {_outcomes(p)}" for p in self.partings]
        if self.features:
            gaps = [f"{f.name} {shown(f.a)} | {shown(f.b)}" for f in self.features[:_FEATURES]]
            more = (
                f", {len(self.features) - _FEATURES} more" if len(self.features) > _FEATURES else ""
            )
            lines.append(f"features that differ: {', '.join(gaps)}{more}")
        return printable("\n".join(lines))

    def _display(self) -> object:
        finite = [abs(t.difference) for t in self.terms if math.isfinite(t.difference)]
        top = max(finite, default=0.0) or 1.0
        gaps = {f.name: f"{f.name} {shown(f.a)} | {shown(f.b)}" for f in self.features}
        rows = []
        for t in self.terms:
            gap = _signed(t.difference)
            rows.append(
                [
                    Markup(f"<b>{gap}</b>") if t.decides else gap,
                    bar(t.difference, top),
                    t.label or Markup(f"<code>{html.escape(t.text)}</code>"),
                    *(
                        f"{x:.4f}" if t.branch in ("both", side) else ""
                        for side, x in (("a", t.a), ("b", t.b))
                    ),
                    ", ".join(gaps[name] for name in t.features),
                ]
            )
        heads = ("difference", "", "term", *self.names, "differs in")
        notes = [f"branches part at {p.text}: {_outcomes(p)}" for p in self.partings]
        in_terms = {name for t in self.terms for name in t.features}
        others = [gap for name, gap in gaps.items() if name not in in_terms]
        notes += [f"also differ: {', '.join(others)}"] if others else []
        return table(self.verdict, heads, rows, notes=notes)


def why(first: Evaluation, second: Evaluation, names: tuple[str, str], policy: Policy) -> Why:
    """Why one of two items has a greater value than the other, from the values of their nodes."""
    program, a, b = first.program, first.value(first.root), second.value(second.root)
    inputs = [
        FeatureGap(name, first.registers[i], second.registers[i]) for i, name, _ in program.inputs
    ]
    features = tuple(gap for gap in inputs if not _same(gap.a, gap.b))
    labels = read_labels(policy)
    parts_a, parts_b = parts(first, labels), parts(second, labels)
    outcomes = {choice.node.index: choice.taken for choice in parts_b.choices}
    # A test that only one of them met follows from those that both met.
    partings = dict.fromkeys(
        Parting(choice.text, choice.taken, outcomes[choice.node.index])
        for choice in parts_a.choices
        if outcomes.get(choice.node.index, choice.taken) != choice.taken
    )
    terms: list[TermGap] = []
    if _number(a) and _number(b):
        differing = _differing(program, {f.name for f in features})
        for x, y in _aligned(parts_a.terms, parts_b.terms):
            left, right = (0.0 if part is None else part.weight * part.value for part in (x, y))
            node = (x or y).node  # type: ignore[union-attr]
            terms.append(
                TermGap(
                    text=_name(x, y),
                    a=left,
                    b=right,
                    difference=left - right,
                    branch=_branch(node.index, parts_a.leaves, parts_b.leaves),
                    features=differing[node.index],
                    decides=_turns(a - b, left - right),
                    label=(x or y).label.text,  # type: ignore[union-attr]
                    group=(x or y).label.group,  # type: ignore[union-attr]
                )
            )
    terms = [term for term in terms if term.difference != 0.0]
    terms.sort(key=lambda term: -math.inf if math.isnan(term.difference) else -abs(term.difference))
    return Why(names, a, b, tuple(terms), tuple(partings), features)


def _turns(gap: float, term: float) -> bool:
    """Whether a gap would vanish, or be the other way round, without a term."""
    return (gap > 0 >= gap - term) or (gap < 0 <= gap - term)


def _branch(index: int, a: frozenset[int], b: frozenset[int]) -> Literal["both", "a", "b"]:
    if index in a and index in b:
        return "both"
    return "a" if index in a else "b"


def _aligned(
    first: Sequence[Part], second: Sequence[Part]
) -> list[tuple[Part | None, Part | None]]:
    """Parts of one node whose weights have one sign, side by side."""
    others = {(part.node.index, part.weight < 0): part for part in second}
    pairs: list[tuple[Part | None, Part | None]] = [
        (part, others.pop((part.node.index, part.weight < 0), None)) for part in first
    ]
    return [*pairs, *((None, part) for part in others.values())]


def _name(x: Part | None, y: Part | None) -> str:
    if x is not None and y is not None and x.weight != y.weight:
        return scaled(x.node, math.copysign(1.0, x.weight))  # under two branches, with two weights
    return (x or y).text  # type: ignore[union-attr]


def _differing(program: RowProgram, names: set[str]) -> dict[int, tuple[str, ...]]:
    """The inputs among ``names`` below each node."""
    found: dict[int, frozenset[str]] = {}
    for node in program.nodes:
        inside = [found[a.index] for a in node.args]
        found[node.index] = (
            frozenset({str(node.value)} & names)
            if node.op == "input"
            else frozenset().union(*inside)
        )
    return {index: tuple(sorted(inside)) for index, inside in found.items()}


def _signed(value: float) -> str:
    """Format a difference with four decimals; a negative zero is a zero."""
    return f"{0.0 if abs(value) < _SMALLEST_SHOWN else value:+.4f}"


def _number(value: Any) -> bool:
    return isinstance(value, float)


def _same(x: Any, y: Any) -> bool:
    return bool(x == y or (x != x and y != y))


def _outcomes(parting: Parting) -> str:
    return f"{literal(parting.a)} | {literal(parting.b)}"
