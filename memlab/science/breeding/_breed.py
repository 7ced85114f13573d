"""Typed mutation and crossover of policies, for a search over policies.

A change replaces a piece of a policy's text by another piece of the same type, and the result is
compiled. A candidate is drawn again if the checker rejects it, if it exceeds the size limit, or if
it computes the same as the parent. All random numbers come from the caller's generator, so the same
seed gives the same offspring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from memlab.errors import InputError, PolicyError, UnknownName
from memlab.kernel.language import Form, Policy
from memlab.kernel.language.checker import Env
from memlab.kernel.language.graph import Node, reachable
from memlab.kernel.language.reader import ALIASES, flat_pairs
from memlab.kernel.language.texts import Path, fragment, symbols_of, used_helpers, used_macros
from memlab.kernel.language.writer import number
from memlab.science.breeding._grow import Scope, constant, grow, leaf
from memlab.subjects.lens import NumericLiteral, Subtree, literals, subtrees
from memlab.subjects.lens.edit import Draft, Span, form_at, missing_features, parsed, sites

# Operators that may replace each other, because they take and return the same types.
_SWAPS = (
    ("+", "-", "*", "/", "min", "max"),
    ("<", "<=", ">", ">="),
    ("=", "!="),
    ("and", "or"),
    ("abs", "sqrt", "tanh", "log1p", "sign", "floor", "ceil"),
    ("slate-min", "slate-max", "slate-mean", "slate-rank", "min-max"),
)
# Operators of any number of terms, of which a mutation may drop one, and the types of the subtrees that may change.
_CHAINS = ("+", "*", "min", "max", "and", "or")
_TYPES = ("num", "bool", "str")


@dataclass(frozen=True)
class Offspring:
    """A valid policy with the edits that produced it.

    ``tries`` is the number of candidates that were drawn. Without ``edits`` the policy is the
    parent, because no candidate was valid, within the limits and different.
    """

    policy: Policy
    edits: tuple[str, ...]
    tries: int

    @property
    def changed(self) -> bool:
        """Whether the policy differs from its parent."""
        return bool(self.edits)


Drafted = tuple[Draft | None, tuple[str, ...], int]
"""The draft of an offspring, the summaries of its edits, and the number of candidates that were drawn."""


@dataclass(frozen=True)
class _Edit:
    """A change of the text of a policy that is not compiled yet."""

    summary: str
    changes: Mapping[Span, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)


class _NoSiteError(Exception):
    """The policy has no site for a change of the drawn kind."""


# A search draws hundreds of children from one parent.
@lru_cache(maxsize=256)
def _list_pieces(policy: Policy, source: str) -> tuple[list[Subtree], list[NumericLiteral]]:
    """Return the subtrees and the numbers that mutations draw from.

    ``source`` is part of the key of the cache, because equal policies may differ in layout.
    """
    return (
        [tree for tree in subtrees(policy) if tree.type in _TYPES],
        [literal for literal in literals(policy) if not literal.structural],
    )


class _Parent:
    """A policy with the subtrees, sites and literals that mutations draw from."""

    def __init__(self, policy: Policy, rng: np.random.Generator, scale: float) -> None:
        self.policy, self.rng, self.scale = policy, rng, scale
        self.trees, self.tunable = _list_pieces(policy, policy.source)
        self.sites = sites(policy)

    def pick(self, options: Iterable[Any]) -> Any:
        """Return a random option; raise _NoSiteError if there are no options."""
        choices = list(options)
        if not choices:
            raise _NoSiteError
        return choices[int(self.rng.integers(len(choices)))]

    def env(self, tree: Subtree) -> Env:
        """Return the names bound at a subtree, with their values."""
        return self.sites[tree.span].env

    def scope(self, tree: Subtree) -> Scope:
        """Return the features and local names in scope at a subtree."""
        return Scope(self.policy.signature, self.env(tree), self.sites[tree.span].tail)

    def call(self, tree: Subtree) -> Form | None:
        """Return the form of a subtree that is an ordinary call, or None for other subtrees."""
        form = self.sites[tree.span].form
        return (
            form if form.kind == "call" and form.head not in ("quote", "param", "update") else None
        )

    def put(self, summary: str, tree: Subtree, text: str) -> _Edit:
        """Return the edit that replaces a subtree by ``text``.

        Features that the text needs are added to the arguments of the policy.
        """
        whole = f"{summary}: {_shorten(tree.source)} -> {_shorten(text)}"
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
    """Return a policy with random changes.

    Literals and parameter values are multiplied by ``exp(scale * z)``, where z is standard normal.
    Parameters stay within their bounds, and structural literals (see ``literals``) stay as they
    are. All features of the slot may be used, whether or not the policy lists them.

    Parameters
    ----------
    policy
        The policy to change.
    rng
        The random generator.
    edits
        The number of changes, at least 1. They are at separate positions if the policy has enough.
    scale
        The standard deviation of the logarithm of a factor, above 0 and up to 10.
    max_nodes
        The maximum number of operations of the result. A parent above it may only shrink.
    tries
        The maximum number of candidates that are drawn for each change.
    kinds
        The kinds of change, keys of ``MUTATIONS``; all by default.

    Returns
    -------
    Offspring
        The policy and its edits.

    Raises
    ------
    InputError
        If the policy works on lists, or an argument is out of range.
    UnknownName
        If ``kinds`` names an unknown kind of mutation.

    Examples
    --------
    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> policy = compile_policy("(fn [x] (* 2 x))", Signature("recall-score", [Input("x"), Input("y")]))
    >>> mutate(policy, np.random.default_rng(1), kinds=["constant"]).policy.source
    '(fn [x] (* 2.218 x))'
    """
    _check_breedable(policy)
    if edits < 1 or tries < 1 or max_nodes < 1 or not 0 < scale <= 10:
        raise InputError(
            "edits, tries and max_nodes must be at least 1, and scale must be above 0 and at most 10."
        )
    wanted = tuple(MUTATIONS) if kinds is None else tuple(kinds)
    for kind in wanted:
        if kind not in MUTATIONS:
            raise UnknownName("kind of mutation", kind, MUTATIONS)
    if not wanted:
        raise InputError(f"kinds is empty. Pass one or more of {', '.join(MUTATIONS)}.")
    draft, summaries, spent = draft_mutation(policy, rng, edits, scale, max_nodes, tries, wanted)
    return Offspring(policy if draft is None else draft.policy, summaries, spent)


def draft_mutation(
    policy: Policy,
    rng: np.random.Generator,
    edits: int,
    scale: float = 0.3,
    max_nodes: int = 200,
    tries: int = 20,
    kinds: tuple[str, ...] = (),
) -> Drafted:
    """Return the result of `mutate` as a draft, or None if nothing changes.

    Edits of separate spans are drawn from one parent, because a second parent takes as long as ten drafts.
    """
    edit: _Edit | None = None
    draft: Draft | None = None
    summaries: list[str] = []
    count = 0
    for _ in range(edits):
        draw = partial(_draw_edit, _Parent(policy, rng, scale), kinds or tuple(MUTATIONS))
        size = len(reachable(policy.root)) if draft is None else draft.size
        step, spent = _first_valid(policy, draw, tries, max_nodes, size, edit, draft)
        count += spent
        if step is None and draft is not None:
            # Each edit may overlap the first, as in a policy of one name.
            try:
                policy, edit = draft.policy, None
            except PolicyError:  # a limit of the text
                break
            draw = partial(_draw_edit, _Parent(policy, rng, scale), kinds or tuple(MUTATIONS))
            step, spent = _first_valid(policy, draw, tries, max_nodes, size)
            count += spent
        if step is not None:
            edit, draft = step
            summaries.append(edit.summary)
    return draft, tuple(summaries), count


def crossover(
    a: Policy, b: Policy, rng: np.random.Generator, *, max_nodes: int = 200, tries: int = 20
) -> Offspring:
    """Return a policy with one subtree replaced by a subtree of another policy.

    The ``let`` bindings, helpers and parameter values that the subtree needs are copied too.
    Features that the policy does not list are added to its arguments. The slots may differ: a
    subtree is not taken if the policy's slot lacks one of its features.

    Parameters
    ----------
    a
        The policy to change.
    b
        The donor of the subtree.
    rng
        The random generator.
    max_nodes
        The maximum number of operations of the result. A parent above it may only shrink.
    tries
        The maximum number of candidates that are drawn.

    Returns
    -------
    Offspring
        The policy and its edit.

    Raises
    ------
    InputError
        If a policy works on lists, or an argument is out of range.
    """
    _check_breedable(a)
    _check_breedable(b)
    if tries < 1 or max_nodes < 1:
        raise InputError("tries and max_nodes must be at least 1.")
    draft, summaries, spent = draft_crossover(a, b, rng, max_nodes, tries)
    return Offspring(a if draft is None else draft.policy, summaries, spent)


def draft_crossover(
    a: Policy, b: Policy, rng: np.random.Generator, max_nodes: int = 200, tries: int = 20
) -> Drafted:
    """Return the result of `crossover` as a draft, or None if nothing changes."""
    parent, donor = _Parent(a, rng, 0.0), _Parent(b, rng, 0.0)
    draw = partial(_transplant, parent, donor)
    step, spent = _first_valid(a, draw, tries, max_nodes, len(reachable(a.root)))
    return (None, (), spent) if step is None else (step[1], (step[0].summary,), spent)


def _draw_edit(parent: _Parent, kinds: tuple[str, ...]) -> _Edit:
    """Draw an edit of a random kind out of ``kinds``."""
    return MUTATIONS[parent.pick(kinds)](parent)


def _check_breedable(policy: Policy) -> None:
    """Raise InputError for a policy that works on lists."""
    lists = [a.text for a in parsed(policy).parts.arguments if a.text in policy.signature.lists]
    if lists:
        raise InputError(
            f"{policy.name} works on lists ({', '.join(lists)}), which cannot be varied. Write it as a weight for each "
            "item."
        )


def _first_valid(
    policy: Policy,
    draw: Callable[[], _Edit],
    tries: int,
    max_nodes: int,
    size: int,
    earlier: _Edit | None = None,
    before: Draft | None = None,
) -> tuple[tuple[_Edit, Draft] | None, int]:
    """Return the first valid edit with its draft, or None, and the number of tries.

    A valid draft compiles, computes another graph, and has at most ``max_nodes`` nodes or fewer than
    ``size``. The edit is added to the `earlier` one, whose draft is `before`.
    """
    last = (policy if before is None else before).root.digest
    for spent in range(1, tries + 1):
        try:
            edit = draw() if earlier is None else _combine(earlier, draw())
            draft = Draft(
                policy,
                edit.changes,
                arguments=edit.arguments,
                helpers=edit.helpers,
                values=edit.values,
            )
        except (_NoSiteError, PolicyError):
            # The checker rejects wrong types of names under let, words outside a vocabulary, and exceeded limits.
            continue
        if (draft.size <= max_nodes or draft.size < size) and draft.root.digest != last:
            return (edit, draft), spent
    return None, tries


def _combine(a: _Edit, b: _Edit) -> _Edit:
    """Return two edits as one, with the summary of the second; raise _NoSiteError if they overlap."""
    if any(s.start < t.stop and t.start < s.stop for s in a.changes for t in b.changes):
        raise _NoSiteError
    return _Edit(
        b.summary,
        {**a.changes, **b.changes},
        tuple(dict.fromkeys((*a.arguments, *b.arguments))),
        tuple(dict.fromkeys((*a.helpers, *b.helpers))),
        {**a.values, **b.values},
    )


# The mutations. Each returns an edit, or raises _NoSiteError.


def _perturb_constant(parent: _Parent) -> _Edit:
    """Return the edit that multiplies a random literal by a log-normal factor."""
    literal: NumericLiteral = parent.pick(parent.tunable)
    text = _perturb(literal.value, parent)
    return _Edit(f"constant: {literal.source} -> {text}", {literal.span: text})


def _perturb_parameter(parent: _Parent) -> _Edit:
    """Return the edit that perturbs the value of a random parameter within its bounds."""
    param = parent.pick(parent.policy.params.values())
    if param.value == 0.0:
        moved = parent.scale * float(parent.rng.standard_normal())
    else:
        moved = param.value * math.exp(parent.scale * float(parent.rng.standard_normal()))
    value = float(np.clip(moved, param.low, param.high))
    if not math.isfinite(value):
        raise _NoSiteError
    return _Edit(
        f"parameter: {param.name} {number(param.value)} -> {number(value)}",
        values={param.name: value},
    )


def _replace_leaf(parent: _Parent) -> _Edit:
    """Return the edit that replaces a random name or literal by another of the same type."""
    tree = parent.pick(tree for tree in parent.trees if not parent.sites[tree.span].form.items)
    return parent.put("leaf", tree, leaf(tree.type, parent.scope(tree), parent.rng))


def _replace_operator(parent: _Parent) -> _Edit:
    """Return the edit that replaces the operator of a random call by another of its group."""
    tree = parent.pick(tree for tree in parent.trees if _swappable(parent.call(tree)))
    form = parent.sites[tree.span].form
    head = form.items[0]
    other = parent.pick(op for op in _swappable(form) if op != ALIASES.get(head.text, head.text))
    return _Edit(f"operator: {head.text} -> {other}", {Span(head.start, head.stop): other})


def _grow(parent: _Parent) -> _Edit:
    """Return the edit that replaces a random subtree by a random expression of its type."""
    tree = parent.pick(parent.trees)
    return parent.put("grow", tree, grow(tree.type, 2, parent.scope(tree), parent.rng))


def _wrap(parent: _Parent) -> _Edit:
    """Return the edit that wraps a random subtree in an operation of the same type."""
    tree = parent.pick(tree for tree in parent.trees if not tree.source.startswith("'"))
    scope = parent.scope(tree)
    # The text of a form ends before a trailing comment, so that a comment cannot hide the text after it.
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
        test=grow("bool", 1, scope, parent.rng),
        other=leaf(tree.type, scope, parent.rng),
        weight=constant(parent.rng),
    )
    return parent.put("wrap", tree, text)


def _hoist(parent: _Parent) -> _Edit:
    """Return the edit that replaces a random call by one of its subtrees of the same type."""
    tree = parent.pick(tree for tree in parent.trees if parent.call(tree) is not None)
    depth = len(tree.path)
    below = [
        t
        for t in parent.trees
        if t.type == tree.type and len(t.path) > depth and t.path[:depth] == tree.path
    ]
    return parent.put("hoist", tree, parent.pick(below).source)


def _swap(parent: _Parent) -> _Edit:
    """Return the edit that swaps two arguments of the same type in a random call."""
    tree = parent.pick(parent.trees)
    if not tree.path:
        raise _NoSiteError
    other = parent.pick(
        t
        for t in parent.trees
        if t.path and t.path[:-1] == tree.path[:-1] and t.type == tree.type and t is not tree
    )
    summary = f"swap: {_shorten(tree.source)} and {_shorten(other.source)}"
    return _Edit(summary, {tree.span: other.source, other.span: tree.source})


def _drop(parent: _Parent) -> _Edit:
    """Return the edit that drops a term of a random sum, product, minimum, maximum or condition."""
    chains = [
        t
        for t in parent.trees
        if (form := parent.call(t)) and form.head in _CHAINS and len(form.items) > 2
    ]
    tree = parent.pick(chains)
    items = parent.sites[tree.span].form.items
    dropped = items[int(parent.rng.integers(1, len(items)))]
    source = parent.policy.source
    remaining = [source[item.start : item.stop] for item in items if item is not dropped]
    text = remaining[1] if len(remaining) == 2 else f"({' '.join(remaining)})"
    return _Edit(f"drop: {_shorten(source[dropped.start : dropped.stop])}", {tree.span: text})


MUTATIONS: Mapping[str, Callable[[_Parent], _Edit]] = {
    "constant": _perturb_constant,
    "parameter": _perturb_parameter,
    "leaf": _replace_leaf,
    "operator": _replace_operator,
    "grow": _grow,
    "wrap": _wrap,
    "hoist": _hoist,
    "swap": _swap,
    "drop": _drop,
}
"""The kinds of mutation by name, with the function of each.

"constant" and "parameter" perturb a value. "leaf", "operator" and "grow" replace a name or literal,
an operator, or a subtree. "wrap" puts an operation around a subtree, and "hoist" replaces a call by
a subtree of the call. "swap" swaps two arguments, and "drop" drops a term.
"""


def _transplant(parent: _Parent, donor: _Parent) -> _Edit:
    """Return the edit that replaces a random subtree by a random subtree of the donor policy."""
    # A name must mean the same in both policies. Shadowed features and helpers that differ exclude a subtree.
    graft: Subtree = donor.pick(donor.trees)
    target: Subtree = parent.pick(t for t in parent.trees if t.type == graft.type)
    text = _add_bindings(donor.policy, graft)
    env = parent.env(target)
    if any(
        _is_shadowed(name, env)
        for name in symbols_of(text)
        if name in parent.policy.signature.inputs
    ):
        raise _NoSiteError
    here, there = parsed(parent.policy), parsed(donor.policy)
    added = []
    macros = used_macros([text], there.macros)
    for macro in macros:
        other = here.macros.get(macro.name)
        if macro.name in here.helpers or (other and other.source != macro.source):
            raise _NoSiteError
        if other is None:
            added.append(macro.source)
    templates = [macro.template for macro in macros]
    for item in used_helpers([*fragment(text), *templates], there.helpers):
        if item.name not in here.helpers:
            added.append(item.text.source[item.form.start : item.form.stop])
        elif here.helpers[item.name].hash != item.hash:
            raise _NoSiteError
    own = parent.policy.params
    values = {name: p.value for name, p in donor.policy.params.items() if name not in own}
    summary = f"crossover: {_shorten(target.source)} -> {_shorten(text)}"
    return _Edit(
        summary, {target.span: text}, missing_features(parent.policy, text), tuple(added), values
    )


def _is_shadowed(name: str, env: Env) -> bool:
    """Return whether a local name hides the feature of the same name."""
    bound = env.get(name)
    return isinstance(bound, Node) and not (bound.op == "input" and bound.value == name)


def _add_bindings(policy: Policy, tree: Subtree) -> str:
    """Return the text of a subtree with the ``let`` bindings that the subtree needs."""
    source = policy.source
    needed = set(symbols_of(tree.source))
    bindings: list[str] = []
    for name, value in reversed(_find_bindings(policy, tree.path)):
        if name.text in needed:
            text = source[value.start : value.stop]
            needed = (needed - {name.text}) | set(symbols_of(text))
            bindings[:0] = [name.text, text]
    return f"(let [{' '.join(bindings)}] {tree.source})" if bindings else tree.source


def _find_bindings(policy: Policy, path: Path) -> list[tuple[Form, Form]]:
    """Return the ``let`` bindings that apply at a path, outermost first."""
    bindings: list[tuple[Form, Form]] = []
    for depth in range(len(path)):
        form = form_at(policy, path[:depth])
        if form.head not in ("let", "let*"):
            continue
        items = flat_pairs(form.items[1].items)
        pairs = list(zip(items[::2], items[1::2], strict=True))
        if path[depth] == 1:
            paired = len(items) > len(form.items[1].items)
            pairs = pairs[: path[depth + 1] if paired else path[depth + 1] // 2]
        bindings += pairs
    return bindings


def _swappable(form: Form | None) -> tuple[str, ...]:
    """Return the group of interchangeable operators with a call's operator in it, or () without a group."""
    if form is None:
        return ()
    operator = ALIASES.get(form.head, form.head)
    return next((group for group in _SWAPS if operator in group), ())


def _perturb(value: float, parent: _Parent) -> str:
    """Multiply a number by a random log-normal factor, and return the product as text.

    The product is rounded to four digits, unless rounding returns the original number.
    """
    moved = value * math.exp(parent.scale * float(parent.rng.standard_normal()))
    if not math.isfinite(moved):
        raise _NoSiteError
    rounded = float(f"{moved:.4g}")
    return number(moved if rounded == value else rounded)


def _shorten(text: str) -> str:
    """Return a text on one line, truncated to 60 characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else f"{flat[:57]}..."
