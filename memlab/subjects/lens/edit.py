"""A policy as text that can be taken apart and put together again: subtrees, literals, parameters.

Every edit replaces a span of the source and compiles the result, so the author's layout and comments stay wherever
nothing was replaced, and whatever comes back has been checked. A *path* leads from the body of the policy, which is
``()``, to a form by the places of the items: in ``(+ x (* 2 y))`` the 2 is at ``(2, 1)``. How the policy is wrapped,
``fn``, ``lambda`` or ``defpolicy``, with or without a doc, does not count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from memlab.errors import InputError, PolicyError, PolicySyntaxError, UnknownName
from memlab.kernel.language.checker import Checker, Env
from memlab.kernel.language.forms import forms_for
from memlab.kernel.language.graph import Node
from memlab.kernel.language.policy import Policy, bound_arguments, compile_policy
from memlab.kernel.language.reader import ALIASES, Form, Text, canonical, read_forms
from memlab.kernel.language.signature import Signature
from memlab.kernel.language.texts import Parsed, Path, fragment, parse, symbols_of, walk
from memlab.kernel.language.writer import number

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_/?!*<>=+-]*\Z")


class Span(NamedTuple):
    """Offsets into ``policy.source``: ``source[start:stop]``."""

    start: int
    stop: int


class Site(NamedTuple):
    """An expression as the checker saw it: its form, its type, and what was bound there."""

    form: Form
    type: str | None
    env: Env
    tail: bool
    node: Node


@dataclass(frozen=True)
class Subtree:
    """One expression of a policy. ``type`` is num, bool, str, set, record, or None where the checker gives none (a
    list, or null before its surroundings type it). ``line`` and ``column`` count from 1.
    """

    path: Path
    source: str
    type: str | None
    line: int
    column: int
    span: Span


@dataclass(frozen=True)
class NumericLiteral:
    """A number in the text. ``structural`` says why it should not be tuned, and is empty where it may be.

    A literal that is not ``replaceable`` is part of a form's syntax (a key of ``case``, an option of ``in``, a piece of
    a ``param``): no expression can replace it.
    """

    value: float
    source: str
    path: Path
    line: int
    column: int
    enclosing: str
    structural: str
    replaceable: bool
    span: Span


def subtrees(policy: Policy) -> tuple[Subtree, ...]:
    """Every expression of the policy's body, each before its parts, in the order of the text.

    Names that are bound, keys of ``case``, options of ``in`` and the pieces of a ``param`` are no expressions. The
    bodies of helpers are not part of it.

    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("recall-score", [Input("x"), Input("kind", "str")])
    >>> policy = compile_policy('(fn [x kind] (if (= kind "fact") x 0))', slot)
    >>> [(t.path, t.source, t.type) for t in subtrees(policy)][:3]
    [((), '(if (= kind "fact") x 0)', 'num'), ((1,), '(= kind "fact")', 'bool'), ((1, 1), 'kind', 'str')]
    """
    text = parsed(policy).text
    found = sites(policy)
    result = []
    for path, form, _ in walk(parsed(policy).parts.body):
        site = found.get((form.start, form.stop))
        if site is not None:
            span = Span(form.start, form.stop)
            result.append(
                Subtree(
                    path,
                    text.source[form.start : form.stop],
                    site.type,
                    text.line(form.start),
                    text.column(form.start),
                    span,
                )
            )
    return tuple(result)


def replace(
    policy: Policy, where: Path | Span | Subtree, source: str, *, extend: bool = False
) -> Policy:
    """The policy with another text in the place of one form: same slot, name, helpers and parameter values.

    ``where`` is a path, a span or a subtree of *this* policy. ``extend`` adds features that the new text reads to the
    arguments. Raises a ``PolicyError`` with its caret in the new text, ``UnknownName`` for a path that leads nowhere.

    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("recall-score", [Input("x"), Input("y")])
    >>> policy = compile_policy("(fn [x] (* 2 x))  ; doubled", slot)
    >>> replace(policy, (2,), "(+ x y)", extend=True).source
    '(fn [x y] (* 2 (+ x y)))  ; doubled'
    """
    if isinstance(where, Subtree):
        _from_here(policy, where.span, where.source, "subtree")
        where = where.span
    if isinstance(where, Span):
        span = where
    else:
        form = form_at(policy, where)
        span = Span(form.start, form.stop)
    if not any(
        (form.start, form.stop) == span
        for _, form, _ in walk(parsed(policy).parts.body, quoted=True)
    ):
        raise InputError(
            f"No form of {policy.name} spans {span.start} to {span.stop}; see subtrees(policy)."
        )
    return edited(
        policy, {span: source}, arguments=missing_features(policy, source) if extend else ()
    )


def literals(policy: Policy) -> tuple[NumericLiteral, ...]:
    """The numbers in the policy's body, in the order of the text.

    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> policy = compile_policy("(fn [x] (clamp (* 0.4 x) 0 1))", Signature("recall-score", [Input("x")]))
    >>> [(n.value, n.enclosing, n.structural) for n in literals(policy)][:2]
    [(0.4, '(* 0.4 x)', ''), (0.0, '(clamp (* 0.4 x) 0 1)', 'a bound of clamp')]
    """
    text, found = parsed(policy).text, sites(policy)
    result = []
    for path, form, parents in walk(parsed(policy).parts.body, quoted=True):
        if form.kind not in ("int", "float"):
            continue
        call = next((p for p in reversed(parents) if p.kind == "call" and p.head), None)
        placed = (form.start, form.stop) in found and not any(p.head == "quote" for p in parents)
        result.append(
            NumericLiteral(
                form.number,
                text.source[form.start : form.stop],
                path,
                text.line(form.start),
                text.column(form.start),
                "" if call is None else text.source[call.start : call.stop],
                _structural(form, path, call, placed),
                placed,
                Span(form.start, form.stop),
            )
        )
    return tuple(result)


def with_param(
    policy: Policy,
    literal: NumericLiteral,
    name: str,
    *,
    low: float | None = None,
    high: float | None = None,
) -> Policy:
    """The policy with a literal as ``(param :name value :low low :high high)``: it computes the same and can be tuned.

    Two literals may share a parameter when value and bounds are the same. Raises ``InputError`` for a literal of
    another policy, one that is syntax, a name that is none, or bounds that do not hold the value; a ``PolicyError``
    when the name is another parameter's already.
    """
    return parametrize(policy, {literal: (name, low, high)})


def parametrize(
    policy: Policy,
    choices: Mapping[NumericLiteral, str | tuple[str, float | None, float | None]] | None = None,
) -> Policy:
    """Several literals as parameters at once, each by a name or by (name, low, high).

    Without ``choices`` every literal that is not structural becomes one without bounds, named after a feature beside
    it. The meaning hash stays; ``hash`` and ``source_hash`` differ.

    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("recall-score", [Input("x"), Input("y")])
    >>> tunable = parametrize(compile_policy("(fn [x y] (+ (* 0.4 x) (* 0.6 y)))", slot))
    >>> tunable.source
    '(fn [x y] (+ (* (param :x 0.4) x) (* (param :y 0.6) y)))'
    """
    chosen = _named_after_features(policy) if choices is None else choices
    changes: dict[Span, str] = {}
    for literal, choice in chosen.items():
        name, low, high = (choice, None, None) if isinstance(choice, str) else choice
        _from_here(policy, literal.span, literal.source, "literal")
        if not literal.replaceable:
            raise InputError(
                f"{literal.source} is {literal.structural}, which no parameter can replace."
            )
        if not _NAME.match(name):
            raise InputError(
                f"{name!r} is no name of a parameter: letters, digits and - after a letter."
            )
        for bound in (low, high):
            if bound is not None and not math.isfinite(bound):
                raise InputError(
                    f"A bound of {name} is {bound!r}; bounds are finite, or None for none."
                )
        if (
            not (-math.inf if low is None else low)
            <= literal.value
            <= (math.inf if high is None else high)
        ):
            raise InputError(f"The bounds of {name} do not hold its value, {literal.source}.")
        bounds = [
            f":{key} {number(float(b))}"
            for key, b in (("low", low), ("high", high))
            if b is not None
        ]
        changes[literal.span] = (
            f"({' '.join(['param', f':{canonical(name)}', literal.source, *bounds])})"
        )
    return edited(policy, changes)


def _from_here(policy: Policy, span: Span, source: str, what: str) -> None:
    if policy.source[span.start : span.stop] != source:
        raise InputError(
            f"This {what}, {source[:40]}, is from another policy than {policy.name}: list them again."
        )


def _structural(form: Form, path: Path, call: Form | None, placed: bool) -> str:
    head = "" if call is None else ALIASES.get(call.head, call.head)
    if head == "param":
        return "a piece of a parameter"
    if not placed:
        return "a key of case" if head == "case" else f"an option of {head}"
    if head == "clamp" and path[-1] > 1:
        return "a bound of clamp"
    if head in ("min", "max"):
        return f"a bound of {head}"
    if head == "pow" and path[-1] == 2:
        return "an exponent"
    return "zero" if form.number == 0.0 else ""


def _named_after_features(
    policy: Policy,
) -> dict[NumericLiteral, str | tuple[str, float | None, float | None]]:
    names: dict[NumericLiteral, str | tuple[str, float | None, float | None]] = {}
    taken = set(policy.params)
    for literal in literals(policy):
        if literal.structural:
            continue
        beside = [name for name in symbols_of(literal.enclosing) if name in policy.signature.inputs]
        name = beside[0] if beside else "constant"
        count = 1
        unique = name
        while unique in taken:
            count += 1
            unique = f"{name}-{count}"
        taken.add(unique)
        names[literal] = unique
    return names


# What the edits share.


def parsed(policy: Policy) -> Parsed:
    """The forms of ``policy.source``. The policy of one field of a record is refused: it has no text of its own."""
    if policy._of is not None:
        raise InputError(
            f"{policy.name} is one field of a record: edit the text of {policy._of[0].name} itself."
        )
    return parse(policy.source, policy.name, policy.helpers)


def form_at(policy: Policy, path: Path) -> Form:
    """The form at a path of the body, or ``UnknownName``."""
    form = parsed(policy).parts.body
    for depth, i in enumerate(path):
        if not 0 <= i < len(form.items):
            known = [str((*path[:depth], n)) for n in range(len(form.items))]
            raise UnknownName(f"path of {policy.name}", path, known)
        form = form.items[i]
    return form


def sites(policy: Policy) -> Mapping[tuple[int, int], Site]:
    """Every expression of the policy, by its span, as the checker visits it."""
    parsed(policy)
    values = tuple((p.name, p.value) for p in policy.params.values())
    return _sites(policy.source, policy.name, policy.helpers, policy.signature, values)


# By the text: policies are equal whatever their layout, and spans are not.
@lru_cache(maxsize=64)
def _sites(
    source: str,
    name: str,
    helpers: tuple[str, ...],
    signature: Signature,
    values: tuple[tuple[str, float], ...],
) -> Mapping[tuple[int, int], Site]:
    text, _, parts, known = parse(source, name, helpers)
    names = [argument.text for argument in parts.arguments]
    checker = _Recording(text, signature, known, dict(values), forms_for(signature, names))
    checker.result(parts.body, bound_arguments(checker, parts))
    return checker.sites


class _Recording(Checker):
    """A checker that keeps what it saw. A helper's body is another text, and is not kept."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.sites: dict[tuple[int, int], Site] = {}

    def check(self, form: Form, env: Env, *, tail: bool = False) -> Node:
        # let goes on filling the scope of its values
        bound = dict(env)
        node = super().check(form, env, tail=tail)
        if not self.calls:
            self.sites[form.start, form.stop] = Site(form, node.type, bound, tail, node)
        return node

    def want(self, form: Form, env: Env, type: Any, why: str, *, tail: bool = False) -> Node:
        node = super().want(form, env, type, why, tail=tail)
        self._typed(form, node)
        return node

    def unify(self, nodes: list[Node], forms: list[Form], what: str) -> list[Node]:
        result = super().unify(nodes, forms, what)
        for form, node in zip(forms, result, strict=True):
            self._typed(form, node)
        return result

    def _typed(self, form: Form, node: Node) -> None:
        site = self.sites.get((form.start, form.stop))
        if site is not None and site.type is None and not self.calls:
            self.sites[form.start, form.stop] = site._replace(type=node.type, node=node)


def edited(
    policy: Policy,
    changes: Mapping[Span, str],
    *,
    arguments: Iterable[str] = (),
    helpers: Iterable[str] = (),
    values: Mapping[str, float] | None = None,
) -> Policy:
    """The policy with another form in the place of some, compiled.

    ``arguments`` are added to its list, ``helpers`` to its helpers, ``values`` of parameters go before those in force;
    a value whose parameter is gone is dropped. The spans do not overlap.
    """
    made, places = _spliced(policy, changes, " ".join(arguments))
    for place, span in zip(places, sorted(changes), strict=True):
        # checked here, because "1) (+ 2 3" may well compile, and "(+ 1" would be reported far away
        problem = _problem(changes[span])
        if problem:
            raise Text(made, policy.name).error(PolicySyntaxError, problem, place)
    fresh = compile_policy(
        made,
        policy.signature,
        name=policy.name,
        helpers=tuple(dict.fromkeys((*policy.helpers, *helpers))),
    )
    kept = {p.name: p.value for p in policy.params.values() if p.value != p.default}
    kept = {
        name: value for name, value in {**kept, **(values or {})}.items() if name in fresh.params
    }
    return fresh.with_params(kept) if kept else fresh


def _spliced(policy: Policy, changes: Mapping[Span, str], arguments: str) -> tuple[str, list[Form]]:
    """The new source, and where each change is in it."""
    source, pieces, places, at, length = policy.source, [""], [], 0, 0
    every = dict(changes)
    if arguments:
        whole = parsed(policy)
        end = whole.parts.listed.stop - 1
        last = whole.parts.arguments[-1].stop if whole.parts.arguments else end
        every[Span(last, last)] = (
            f" {arguments}" if last < end or whole.parts.arguments else arguments
        )
    for span in sorted(every):
        text = _closed(every[span])
        pieces += [source[at : span.start], text]
        start = length + span.start - at
        length, at = start + len(text), span.stop
        if span in changes:
            places.append(Form("symbol", start=start, stop=length))
    return "".join([*pieces, source[at:]]), places


def missing_features(policy: Policy, *sources: str) -> tuple[str, ...]:
    """The features of the slot that some texts name and the policy does not list."""
    listed = {a.text for a in parsed(policy).parts.arguments}
    names = dict.fromkeys(name for source in sources for name in symbols_of(source))
    return tuple(name for name in names if name in policy.signature.inputs and name not in listed)


def _problem(source: str) -> str:
    """Why a text is not one whole form, or nothing."""
    try:
        count = len(read_forms(Text(source)))
    except PolicyError as error:
        return f"The replacement is not one whole form: {error.message}"
    return "" if count == 1 else f"The replacement is not one form: here are {count}."


def _closed(source: str) -> str:
    """A fragment that anything may follow: a comment at its end needs the end of its line."""
    forms = fragment(source)
    rest = source[forms[-1].stop :] if forms else ""
    return f"{source}\n" if ";" in rest.rpartition("\n")[2] else source
