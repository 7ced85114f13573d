"""Variation for a search over policies: typed mutation and crossover that always give a valid program.

A change is made in the text, of a type that fits, and compiled; what the checker refuses, what grows beyond the limit
and what computes the same as before is drawn again. All random numbers come from the generator passed in, so the same
seed gives the same offspring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from memlab.errors import InputError, PolicyError, UnknownName
from memlab.kernel.language import Form, Policy
from memlab.kernel.language.checker import Env
from memlab.kernel.language.graph import Node, reachable
from memlab.kernel.language.reader import ALIASES, flat_pairs
from memlab.kernel.language.texts import Path, fragment, symbols_of, used_helpers
from memlab.kernel.language.writer import number
from memlab.science.breeding._grow import Scope, constant, grown, leaf
from memlab.subjects.lens import NumericLiteral, Subtree, literals, subtrees
from memlab.subjects.lens.edit import Span, edited, form_at, missing_features, parsed, sites

_SWAPS = (
    ("+", "-", "*", "/", "min", "max"),
    ("<", "<=", ">", ">="),
    ("=", "!="),
    ("and", "or"),
    ("abs", "sqrt", "tanh", "log1p", "sign", "floor", "ceil"),
    ("slate-min", "slate-max", "slate-mean", "slate-rank", "min-max"),
)
_CHAINS = ("+", "*", "min", "max", "and", "or")
_TYPES = ("num", "bool", "str")


@dataclass(frozen=True)
class Offspring:
    """A valid policy, what was done to get it, and how many candidates were tried. Without ``edits`` it is the parent:
    nothing that was tried stayed within the limits and made a difference.
    """

    policy: Policy
    edits: tuple[str, ...]
    tries: int

    @property
    def changed(self) -> bool:
        return bool(self.edits)


@dataclass(frozen=True)
class _Edit:
    """A candidate before it is compiled."""

    summary: str
    changes: Mapping[Span, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)


class _NoPlaceError(Exception):
    """The policy has no place for a change of this kind."""


class _Parent:
    """What the operators draw from."""

    def __init__(self, policy: Policy, rng: np.random.Generator, scale: float) -> None:
        self.policy, self.rng, self.scale = policy, rng, scale
        self.trees = [tree for tree in subtrees(policy) if tree.type in _TYPES]
        self.sites = sites(policy)
        self.tunable = [literal for literal in literals(policy) if not literal.structural]

    def pick(self, options: Iterable[Any]) -> Any:
        """One of the options, of which there must be one."""
        choices = list(options)
        if not choices:
            raise _NoPlaceError
        return choices[int(self.rng.integers(len(choices)))]

    def env(self, tree: Subtree) -> Env:
        return self.sites[tree.span].env

    def scope(self, tree: Subtree) -> Scope:
        return Scope(self.policy.signature, self.env(tree), self.sites[tree.span].tail)

    def call(self, tree: Subtree) -> Form | None:
        form = self.sites[tree.span].form
        return (
            form if form.kind == "call" and form.head not in ("quote", "param", "update") else None
        )

    def put(self, summary: str, tree: Subtree, text: str) -> _Edit:
        """The edit that puts a text in the place of a subtree, with the features that it needs."""
        whole = f"{summary}: {_short(tree.source)} -> {_short(text)}"
        return _Edit(whole, {tree.span: text}, missing_features(self.policy, text))


def mutate(
    policy: Policy,
    rng: np.random.Generator,
    *,
    edits: int = 1,
    scale: float = 0.3,
    max_nodes: int = 200,
    tries: int = 20,
    kinds: Iterable[str] | None = None,
) -> Offspring:
    """A policy with ``edits`` random changes, of the ``kinds`` in ``MUTATIONS`` (all, when none are given).

    Literals and parameter values are multiplied by ``exp(scale * z)``, z standard normal; bounds of parameters hold,
    and structural literals (see ``literals``) stay. Features come from the slot, listed by the policy or not.
    ``max_nodes`` bounds the operations of the result, or lets a larger parent only shrink; each edit has ``tries``.

    Raises ``InputError`` for a policy over lists, which has no columns to draw from, and for arguments out of range.

    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> policy = compile_policy("(fn [x] (* 2 x))", Signature("recall-score", [Input("x"), Input("y")]))
    >>> mutate(policy, np.random.default_rng(1), kinds=["constant"]).policy.source
    '(fn [x] (* 2.218 x))'
    """
    _check_breedable(policy)
    if edits < 1 or tries < 1 or max_nodes < 1 or not 0 < scale <= 10:
        raise InputError("edits, tries and max_nodes are at least 1, and scale lies in 0..10.")
    wanted = tuple(MUTATIONS) if kinds is None else tuple(kinds)
    for kind in wanted:
        if kind not in MUTATIONS:
            raise UnknownName("kind of mutation", kind, MUTATIONS)
    if not wanted:
        raise InputError(f"No kind of mutation is given; there are {', '.join(MUTATIONS)}.")
    summaries: list[str] = []
    count = 0
    for _ in range(edits):
        child, edit, spent = _first_valid(
            policy, partial(_draw_edit, _Parent(policy, rng, scale), wanted), tries, max_nodes
        )
        count += spent
        if edit is not None:
            policy = child
            summaries.append(edit.summary)
    return Offspring(policy, tuple(summaries), count)


def crossover(
    a: Policy, b: Policy, rng: np.random.Generator, *, max_nodes: int = 200, tries: int = 20
) -> Offspring:
    """``a`` with one subtree replaced by one of ``b`` of the same type.

    The names that let binds in ``b`` come along with their values, helpers and parameter values too; features that
    ``a`` did not list join its arguments. The slots may differ: what ``a``'s slot does not give is not taken.

    Raises ``InputError`` for a policy over lists.
    """
    _check_breedable(a)
    _check_breedable(b)
    if tries < 1 or max_nodes < 1:
        raise InputError("tries and max_nodes are at least 1.")
    parent, donor = _Parent(a, rng, 0.0), _Parent(b, rng, 0.0)
    child, edit, spent = _first_valid(a, lambda: _transplant(parent, donor), tries, max_nodes)
    return Offspring(child, () if edit is None else (edit.summary,), spent)


def _draw_edit(parent: _Parent, kinds: tuple[str, ...]) -> _Edit:
    return MUTATIONS[parent.pick(kinds)](parent)


def _check_breedable(policy: Policy) -> None:
    lists = [a.text for a in parsed(policy).parts.arguments if a.text in policy.signature.lists]
    if lists:
        raise InputError(
            f"{policy.name} goes through lists ({', '.join(lists)}), which cannot be bred: write it as a weight for "
            "each item."
        )


def _first_valid(
    policy: Policy, draw: Callable[[], _Edit], tries: int, max_nodes: int
) -> tuple[Policy, _Edit | None, int]:
    """The first candidate that compiles, fits and differs, or the parent."""
    size = len(reachable(policy.root))
    for spent in range(1, tries + 1):
        try:
            edit = draw()
            child = edited(
                policy,
                edit.changes,
                arguments=edit.arguments,
                helpers=edit.helpers,
                values=edit.values,
            )
        except (_NoPlaceError, PolicyError):
            # types of names under let, closed vocabularies and limits are the checker's to judge
            continue
        grown_to = len(reachable(child.root))
        if (grown_to <= max_nodes or grown_to < size) and child.meaning_hash != policy.meaning_hash:
            return child, edit, spent
    return policy, None, tries


# The operators. Each gives a candidate, or raises _NoPlaceError.


def _constant(parent: _Parent) -> _Edit:
    literal: NumericLiteral = parent.pick(parent.tunable)
    text = _perturbed(literal.value, parent)
    return _Edit(f"constant: {literal.source} -> {text}", {literal.span: text})


def _parameter(parent: _Parent) -> _Edit:
    param = parent.pick(parent.policy.params.values())
    if param.value == 0.0:
        moved = parent.scale * float(parent.rng.standard_normal())
    else:
        moved = param.value * math.exp(parent.scale * float(parent.rng.standard_normal()))
    value = float(np.clip(moved, param.low, param.high))
    if not math.isfinite(value):
        raise _NoPlaceError
    return _Edit(
        f"parameter: {param.name} {number(param.value)} -> {number(value)}",
        values={param.name: value},
    )


def _leaf(parent: _Parent) -> _Edit:
    tree = parent.pick(tree for tree in parent.trees if not parent.sites[tree.span].form.items)
    return parent.put("leaf", tree, leaf(tree.type, parent.scope(tree), parent.rng))


def _operator(parent: _Parent) -> _Edit:
    tree = parent.pick(tree for tree in parent.trees if _group(parent.call(tree)))
    form = parent.sites[tree.span].form
    head = form.items[0]
    other = parent.pick(op for op in _group(form) if op != ALIASES.get(head.text, head.text))
    return _Edit(f"operator: {head.text} -> {other}", {Span(head.start, head.stop): other})


def _grow(parent: _Parent) -> _Edit:
    tree = parent.pick(parent.trees)
    return parent.put("grow", tree, grown(tree.type, 2, parent.scope(tree), parent.rng))


def _wrap(parent: _Parent) -> _Edit:
    tree = parent.pick(tree for tree in parent.trees if not tree.source.startswith("'"))
    scope = parent.scope(tree)
    # a comment at the end of the subtree cannot swallow what follows: a form ends before it
    choice = "(if {test} {it} {other})"
    shapes = {
        "num": (
            "(+ {it} (* {weight} {other}))",
            "(* {it} {other})",
            "(* {weight} {it})",
            "(max {it} {other})",
            choice,
        ),
        "bool": ("(not {it})", "(and {it} {other})", "(or {it} {other})"),
        "str": (choice,),
    }
    text = parent.pick(shapes[tree.type]).format(
        it=tree.source,
        test=grown("bool", 1, scope, parent.rng),
        other=leaf(tree.type, scope, parent.rng),
        weight=constant(parent.rng),
    )
    return parent.put("wrap", tree, text)


def _hoist(parent: _Parent) -> _Edit:
    tree = parent.pick(tree for tree in parent.trees if parent.call(tree) is not None)
    depth = len(tree.path)
    below = [
        t
        for t in parent.trees
        if t.type == tree.type and len(t.path) > depth and t.path[:depth] == tree.path
    ]
    inner = parent.pick(below)
    return parent.put("hoist", tree, inner.source)


def _swap(parent: _Parent) -> _Edit:
    tree = parent.pick(parent.trees)
    if not tree.path:
        raise _NoPlaceError
    other = parent.pick(
        t
        for t in parent.trees
        if t.path[:-1] == tree.path[:-1] and t.type == tree.type and t is not tree
    )
    summary = f"swap: {_short(tree.source)} and {_short(other.source)}"
    return _Edit(summary, {tree.span: other.source, other.span: tree.source})


def _drop(parent: _Parent) -> _Edit:
    chains = [
        t
        for t in parent.trees
        if (form := parent.call(t)) and form.head in _CHAINS and len(form.items) > 2
    ]
    tree = parent.pick(chains)
    items = parent.sites[tree.span].form.items
    dropped = items[int(parent.rng.integers(1, len(items)))]
    source = parent.policy.source
    kept = [source[item.start : item.stop] for item in items if item is not dropped]
    text = kept[1] if len(kept) == 2 else f"({' '.join(kept)})"
    return _Edit(f"drop: {_short(source[dropped.start : dropped.stop])}", {tree.span: text})


MUTATIONS: Mapping[str, Callable[[_Parent], _Edit]] = {
    "constant": _constant,
    "parameter": _parameter,
    "leaf": _leaf,
    "operator": _operator,
    "grow": _grow,
    "wrap": _wrap,
    "hoist": _hoist,
    "swap": _swap,
    "drop": _drop,
}
"""The kinds of mutation: a literal or a parameter's value perturbed; a leaf, an operator or a whole subtree replaced; a
subtree wrapped, or replaced by one of its own parts; two arguments swapped; a term dropped.
"""


def _transplant(parent: _Parent, donor: _Parent) -> _Edit:
    graft: Subtree = donor.pick(donor.trees)
    place: Subtree = parent.pick(t for t in parent.trees if t.type == graft.type)
    text = _with_bindings(donor.policy, graft)
    env = parent.env(place)
    if any(
        _hidden(name, env) for name in symbols_of(text) if name in parent.policy.signature.inputs
    ):
        raise _NoPlaceError
    here = parsed(parent.policy).helpers
    added = []
    for item in used_helpers(fragment(text), parsed(donor.policy).helpers):
        if item.name not in here:
            added.append(item.text.source[item.form.start : item.form.stop])
        elif here[item.name].hash != item.hash:
            raise _NoPlaceError
    own = parent.policy.params
    values = {name: p.value for name, p in donor.policy.params.items() if name not in own}
    summary = f"crossover: {_short(place.source)} -> {_short(text)}"
    return _Edit(
        summary, {place.span: text}, missing_features(parent.policy, text), tuple(added), values
    )


def _hidden(name: str, env: Env) -> bool:
    """Whether a let has taken a feature's name."""
    bound = env.get(name)
    return isinstance(bound, Node) and not (bound.op == "input" and bound.value == name)


def _with_bindings(policy: Policy, tree: Subtree) -> str:
    """A subtree's text with the bindings of the lets around it that it needs."""
    source = policy.source
    needed = set(symbols_of(tree.source))
    taken: list[str] = []
    for name, value in reversed(_around(policy, tree.path)):
        if name.text in needed:
            text = source[value.start : value.stop]
            needed = (needed - {name.text}) | set(symbols_of(text))
            taken[:0] = [name.text, text]
    return f"(let [{' '.join(taken)}] {tree.source})" if taken else tree.source


def _around(policy: Policy, path: Path) -> list[tuple[Form, Form]]:
    """The bindings in force at a path, outermost first."""
    found: list[tuple[Form, Form]] = []
    for depth in range(len(path)):
        form = form_at(policy, path[:depth])
        if form.head not in ("let", "let*"):
            continue
        items = flat_pairs(form.items[1].items)
        pairs = list(zip(items[::2], items[1::2], strict=True))
        if path[depth] == 1:
            paired = len(items) > len(form.items[1].items)
            pairs = pairs[: path[depth + 1] if paired else path[depth + 1] // 2]
        found += pairs
    return found


def _group(form: Form | None) -> tuple[str, ...]:
    """The operators that take the same arguments as the one in front of a call."""
    if form is None:
        return ()
    head = ALIASES.get(form.head, form.head)
    return next((group for group in _SWAPS if head in group), ())


def _perturbed(value: float, parent: _Parent) -> str:
    """A number times a log-normal factor, with four digits where they make a difference."""
    moved = value * math.exp(parent.scale * float(parent.rng.standard_normal()))
    if not math.isfinite(moved):
        raise _NoPlaceError
    rounded = float(f"{moved:.4g}")
    return number(moved if rounded == value else rounded)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else f"{flat[:57]}..."
