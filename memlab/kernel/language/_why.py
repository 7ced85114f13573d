"""Why one item ranks above another: the difference of their scores, as a sum of differences of terms.

Both scores are taken apart into the additive terms of their live branches (see ``_explain``), and equal terms are
subtracted. Where a test sent the items into different branches, a term may be on one side only, and the test is
named. A term that does not come apart, such as a product, names the features in it that differ.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from memlab.kernel.base.display import Displayed, Markup, bar, clip, table
from memlab.kernel.base.printable import printable
from memlab.kernel.language._dag import Value
from memlab.kernel.language._explain import Part, parts
from memlab.kernel.language._row import Evaluation, RowProgram
from memlab.kernel.language._source import literal, scaled, shown

__all__ = ["FeatureGap", "Parting", "TermGap", "Why", "why"]

_TERMS, _FEATURES, _TEXT = 16, 12, 64


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
        """One row a term: ``term``, ``a``, ``b``, ``difference``, ``branch``, ``features`` (a list), ``decides``."""
        rows = [(t.text, t.a, t.b, t.difference, t.branch, list(t.features), t.decides) for t in self.terms]
        numbers = dict.fromkeys(("a", "b", "difference"), pl.Float64)
        others: dict[str, Any] = {"branch": pl.String, "features": pl.List(pl.String), "decides": pl.Boolean}
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
            lines.append(f"{'difference':>12} {self.names[0][:12]:>12} {self.names[1][:12]:>12}   term")
        for t in self.terms[:_TERMS]:
            a, b = (f"{x:.4f}" if t.branch in ("both", side) else "" for side, x in (("a", t.a), ("b", t.b)))
            mark = "*" if t.decides else " "
            lines.append(f"{t.difference:>+12.4f} {a:>12} {b:>12} {mark} {clip(t.text, _TEXT)}")
        if len(self.terms) > _TERMS:
            rest = math.fsum(t.difference for t in self.terms[_TERMS:])
            lines.append(f"{rest:>+12.4f} {'':>12} {'':>12}   {len(self.terms) - _TERMS} more terms")
        if any(t.decides for t in self.terms):
            lines.append("* without this term the order would turn")
        lines += [f"branches part at {clip(p.text, _TEXT)}: {_outcomes(p)}" for p in self.partings]
        if self.features:
            gaps = [f"{f.name} {shown(f.a)} | {shown(f.b)}" for f in self.features[:_FEATURES]]
            more = f", {len(self.features) - _FEATURES} more" if len(self.features) > _FEATURES else ""
            lines.append(f"features that differ: {', '.join(gaps)}{more}")
        return printable("\n".join(lines))

    def _display(self) -> object:
        finite = [abs(t.difference) for t in self.terms if math.isfinite(t.difference)]
        top = max(finite, default=0.0) or 1.0
        gaps = {f.name: f"{f.name} {shown(f.a)} | {shown(f.b)}" for f in self.features}
        rows = []
        for t in self.terms:
            gap = f"{t.difference:+.4f}"
            rows.append(
                [
                    Markup(f"<b>{gap}</b>") if t.decides else gap,
                    bar(t.difference, top),
                    Markup(f"<code>{html.escape(t.text)}</code>"),
                    *(f"{x:.4f}" if t.branch in ("both", side) else "" for side, x in (("a", t.a), ("b", t.b))),
                    ", ".join(gaps[name] for name in t.features),
                ]
            )
        heads = ("difference", "", "term", *self.names, "differs in")
        notes = [f"branches part at {p.text}: {_outcomes(p)}" for p in self.partings]
        in_terms = {name for t in self.terms for name in t.features}
        others = [gap for name, gap in gaps.items() if name not in in_terms]
        notes += [f"also differ: {', '.join(others)}"] if others else []
        return table(self.verdict, heads, rows, notes=notes)


def why(first: Evaluation, second: Evaluation, names: tuple[str, str]) -> Why:
    """Why one of two items has a greater value than the other, from the values of their nodes."""
    program, a, b = first.program, first.value(first.root), second.value(second.root)
    inputs = [FeatureGap(name, first.registers[i], second.registers[i]) for i, name, _ in program.inputs]
    features = tuple(gap for gap in inputs if not _same(gap.a, gap.b))
    parts_a, parts_b = parts(first), parts(second)
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


def _aligned(first: Sequence[Part], second: Sequence[Part]) -> list[tuple[Part | None, Part | None]]:
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
        found[node.index] = frozenset({str(node.value)} & names) if node.op == "input" else frozenset().union(*inside)
    return {index: tuple(sorted(inside)) for index, inside in found.items()}


def _number(value: Any) -> bool:
    return isinstance(value, float)


def _same(x: Any, y: Any) -> bool:
    return bool(x == y or (x != x and y != y))


def _outcomes(parting: Parting) -> str:
    return f"{literal(parting.a)} | {literal(parting.b)}"
