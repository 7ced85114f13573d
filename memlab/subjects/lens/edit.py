"""Edits of the text of a policy: its subtrees, numbers and parameters.

Every edit replaces a span of the source and compiles the result. So the author's layout and comments are kept outside
the span, and every result is checked. A *path* leads from the body of the policy, which is ``()``, to a form by the
positions of items. In ``(+ x (* 2 y))``, the 2 is at ``(2, 1)``. The form around the body, ``fn``, ``lambda`` or
``defpolicy``, is not part of the path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

from memlab.errors import InputError, PolicyError, PolicySyntaxError, UnknownName
from memlab.kernel.language.checker import Checker, Env
from memlab.kernel.language.forms import forms_for
from memlab.kernel.language.graph import Dag, Node, reachable
from memlab.kernel.language.macros import MARK, may_expand
from memlab.kernel.language.policy import Policy, compile_policy
from memlab.kernel.language.reader import ALIASES, MAX_NODES, Form, Text, canonical, read_forms
from memlab.kernel.language.signature import Signature
from memlab.kernel.language.texts import Parsed, Path, fragment, parse, symbols_of, walk
from memlab.kernel.language.writer import number

# The names of parameters that the reader of policies accepts.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_/?!*<>=+-]*\Z")


class Span(NamedTuple):
    """The start and stop of a piece of ``policy.source``, as in ``source[start:stop]``."""

    start: int
    stop: int


class Site(NamedTuple):
    """An expression of a policy with the results of the type checker.

    ``env`` has the bound names, and ``node`` is the node in the graph. ``tail`` is True if the expression may omit
    ``else``, which is then null.
    """

    form: Form
    type: str | None
    env: Env
    tail: bool
    node: Node


@dataclass(frozen=True)
class Subtree:
    """One expression of a policy, with its path, type and position.

    Attributes
    ----------
    path
        The path from the body.
    source
        The text of the expression.
    type
        "num", "bool", "str", "set" or "record". None for a list, and for a null whose context gives it no type.
    line, column
        The position in the source, from 1.
    span
        The offsets in the source.
    """

    path: Path
    source: str
    type: str | None
    line: int
    column: int
    span: Span


@dataclass(frozen=True)
class NumericLiteral:
    """A number in the text of a policy.

    Attributes
    ----------
    value
        The number.
    source
        The number as it is written.
    path
        The path from the body.
    line, column
        The position in the source, from 1.
    enclosing
        The text of the innermost call that contains the number.
    structural
        The reason why the number should not be tuned, such as "a bound of clamp", or "".
    replaceable
        False if the number is part of a form's syntax, so that no expression can replace it. Examples are a key of
        ``case``, an option of ``in`` and a piece of a ``param``.
    span
        The offsets in the source.
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
    """Return every expression of a policy's body, each parent before its children.

    Bound names, keys of ``case``, options of ``in`` and pieces of a ``param`` are not expressions. The bodies of
    helpers are not included.

    Parameters
    ----------
    policy
        The policy.

    Returns
    -------
    tuple of Subtree
        The expressions in the order of the text.

    Examples
    --------
    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("recall-score", [Input("x"), Input("kind", "str")])
    >>> policy = compile_policy('(fn [x kind] (if (= kind "fact") x 0))', slot)
    >>> [(t.path, t.source, t.type) for t in subtrees(policy)][1:3]
    [((1,), '(= kind "fact")', 'bool'), ((1, 1), 'kind', 'str')]
    """
    text = parsed(policy).text
    visited = sites(policy)
    result = []
    for path, form, _ in walk(parsed(policy).written):
        site = visited.get((form.start, form.stop))
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
    """Return a policy with one form of its source replaced.

    The slot, the name, the helpers and the values of parameters are unchanged.

    Parameters
    ----------
    policy
        The policy.
    where
        A path, a span or a subtree of this policy.
    source
        The text of the new form.
    extend
        Whether to add features that the new form reads to the arguments of the policy.

    Returns
    -------
    Policy
        The compiled policy.

    Raises
    ------
    PolicyError
        If the new text is invalid. The caret of the message points into the new text.
    UnknownName
        If there is no form at the path.
    InputError
        If the span is not that of a form, or the subtree belongs to another policy.

    Examples
    --------
    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("recall-score", [Input("x"), Input("y")])
    >>> policy = compile_policy("(fn [x] (* 2 x))  ; doubled", slot)
    >>> replace(policy, (2,), "(+ x y)", extend=True).source
    '(fn [x y] (* 2 (+ x y)))  ; doubled'
    """
    if isinstance(where, Subtree):
        _check_origin(policy, where.span, where.source, "subtree")
        where = where.span
    if isinstance(where, Span):
        span = where
    else:
        form = form_at(policy, where)
        span = Span(form.start, form.stop)
    if not any(
        (form.start, form.stop) == span for _, form, _ in walk(parsed(policy).written, quoted=True)
    ):
        raise InputError(
            f"No form of {policy.name} starts at character {span.start} and ends at {span.stop} of its source. "
            "subtrees(policy) lists the spans."
        )
    return edited(
        policy, {span: source}, arguments=missing_features(policy, source) if extend else ()
    )


def literals(policy: Policy) -> tuple[NumericLiteral, ...]:
    """Return the numbers in a policy's body.

    Parameters
    ----------
    policy
        The policy.

    Returns
    -------
    tuple of NumericLiteral
        The numbers in the order of the text.

    Examples
    --------
    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> policy = compile_policy("(fn [x] (clamp (* 0.4 x) 0 1))", Signature("recall-score", [Input("x")]))
    >>> [(n.value, n.enclosing, n.structural) for n in literals(policy)][:2]
    [(0.4, '(* 0.4 x)', ''), (0.0, '(clamp (* 0.4 x) 0 1)', 'a bound of clamp')]
    """
    whole, visited = parsed(policy), sites(policy)
    text = whole.text
    # The role of a number is that in the expansion: (-> x (clamp 0 1)) has two bounds.
    roles = {
        (form.start, form.stop): (path, _enclosing_call(parents))
        for path, form, parents in walk(whole.parts.body, quoted=True)
    }
    result = []
    for path, form, parents in walk(whole.written, quoted=True):
        if form.kind not in ("int", "float"):
            continue
        call = _enclosing_call(parents)
        replaceable = (form.start, form.stop) in visited and not any(
            p.head == "quote" for p in parents
        )
        result.append(
            NumericLiteral(
                form.number,
                text.source[form.start : form.stop],
                path,
                text.line(form.start),
                text.column(form.start),
                "" if call is None else text.source[call.start : call.stop],
                _structural(form, *roles.get((form.start, form.stop), (path, call)), replaceable),
                replaceable,
                Span(form.start, form.stop),
            )
        )
    return tuple(result)


def _enclosing_call(parents: tuple[Form, ...]) -> Form | None:
    """Return the innermost call that contains a form, or None outside calls."""
    return next((p for p in reversed(parents) if p.kind == "call" and p.head), None)


def with_param(
    policy: Policy,
    literal: NumericLiteral,
    name: str,
    *,
    low: float | None = None,
    high: float | None = None,
) -> Policy:
    """Return a policy in which one number became a parameter.

    The number is replaced by ``(param :name value :low low :high high)``. The policy computes the same values and can
    now be tuned. Two numbers may share a parameter if their values and bounds are equal.

    Parameters
    ----------
    policy
        The policy.
    literal
        The number, from ``literals(policy)``.
    name
        The name of the parameter.
    low, high
        The bounds of the parameter, by default none.

    Returns
    -------
    Policy
        The compiled policy.

    Raises
    ------
    InputError
        If the number belongs to another policy or is part of a form's syntax, if the name is invalid, or if the value
        is outside the bounds.
    PolicyError
        If another parameter has the name.

    Examples
    --------
    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> policy = compile_policy("(fn [x] (* 0.4 x))", Signature("recall-score", [Input("x")]))
    >>> with_param(policy, literals(policy)[0], "weight", low=0, high=1).source
    '(fn [x] (* (param :weight 0.4 :low 0 :high 1) x))'
    """
    return parametrize(policy, {literal: (name, low, high)})


def parametrize(
    policy: Policy,
    choices: Mapping[NumericLiteral, str | tuple[str, float | None, float | None]] | None = None,
) -> Policy:
    """Return a policy in which several numbers became parameters.

    Without ``choices``, every number that is not structural becomes a parameter without bounds. It is named after a
    feature in the same call. The meaning hash stays the same, while ``hash`` and ``source_hash`` change.

    Parameters
    ----------
    policy
        The policy.
    choices
        For each number, the name of its parameter, or the name and the bounds.

    Returns
    -------
    Policy
        The compiled policy.

    Raises
    ------
    InputError
        If a number belongs to another policy or is part of a form's syntax, if a name is invalid, or if a value is
        outside its bounds.
    PolicyError
        If a name is used twice with different values.

    Examples
    --------
    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("recall-score", [Input("x"), Input("y")])
    >>> tunable = parametrize(compile_policy("(fn [x y] (+ (* 0.4 x) (* 0.6 y)))", slot))
    >>> tunable.source
    '(fn [x y] (+ (* (param :x 0.4) x) (* (param :y 0.6) y)))'
    """
    chosen = _name_after_features(policy) if choices is None else choices
    # All choices are checked before the text is changed, so that an error names the parameter.
    changes: dict[Span, str] = {}
    for literal, choice in chosen.items():
        name, low, high = (choice, None, None) if isinstance(choice, str) else choice
        _check_origin(policy, literal.span, literal.source, "literal")
        if not literal.replaceable:
            raise InputError(
                f"{literal.source} is {literal.structural}, which no parameter can replace. Choose another number."
            )
        if not _NAME.match(name):
            raise InputError(
                f"{name!r} is not a valid name of a parameter. Use a letter, then letters, digits and -."
            )
        for bound in (low, high):
            if bound is not None and not math.isfinite(bound):
                raise InputError(f"A bound of {name} is {bound!r}. Bounds must be finite, or None.")
        if (
            not (-math.inf if low is None else low)
            <= literal.value
            <= (math.inf if high is None else high)
        ):
            raise InputError(
                f"The value of {name}, {literal.source}, is outside its bounds. Change the bounds."
            )
        bounds = [
            f":{key} {number(float(b))}"
            for key, b in (("low", low), ("high", high))
            if b is not None
        ]
        changes[literal.span] = (
            f"({' '.join(['param', f':{canonical(name)}', literal.source, *bounds])})"
        )
    return edited(policy, changes)


def _check_origin(policy: Policy, span: Span, source: str, what: str) -> None:
    """Raise InputError if a subtree or number comes from another policy."""
    if policy.source[span.start : span.stop] != source:
        raise InputError(
            f"This {what}, {source[:40]}, is not at its position in the text of {policy.name}: it comes from "
            "another policy, or from this policy before an edit. Read literals(policy) or subtrees(policy) again."
        )


def _structural(form: Form, path: Path, call: Form | None, replaceable: bool) -> str:
    """Return the reason not to tune a number, such as "an exponent", or "" if tunable."""
    head = "" if call is None else ALIASES.get(call.head, call.head)
    if head == "param":
        return "a piece of a parameter"
    if not replaceable:
        return "a key of case" if head == "case" else f"an option of {head}"
    if head == "clamp" and path[-1] > 1:
        return "a bound of clamp"
    if head in ("min", "max"):
        return f"a bound of {head}"
    if head == "pow" and path[-1] == 2:
        return "an exponent"
    return "zero" if form.number == 0.0 else ""


def _name_after_features(
    policy: Policy,
) -> dict[NumericLiteral, str | tuple[str, float | None, float | None]]:
    """Return a unique parameter name for each number of a policy that can be tuned.

    The name is that of the first feature in the same call, or "constant"; a number makes a repeated name unique.
    """
    names: dict[NumericLiteral, str | tuple[str, float | None, float | None]] = {}
    used_names = set(policy.params)
    for literal in literals(policy):
        if literal.structural:
            continue
        features = [
            name for name in symbols_of(literal.enclosing) if name in policy.signature.inputs
        ]
        name = features[0] if features else "constant"
        count = 1
        unique = name
        while unique in used_names:
            count += 1
            unique = f"{name}-{count}"
        used_names.add(unique)
        names[literal] = unique
    return names


def parsed(policy: Policy) -> Parsed:
    """Parse ``policy.source`` and return its forms.

    Raises InputError for a policy that is one field of a record, because it has no text of its own.
    """
    if policy._of is not None:
        raise InputError(
            f"{policy.name} is one field of a record policy. Edit the text of {policy._of[0].name} itself."
        )
    return parse(policy.source, policy.name, policy.helpers, None)


def form_at(policy: Policy, path: Path) -> Form:
    """Return the form at a path in a policy's body, or raise UnknownName."""
    form = parsed(policy).written
    for depth, i in enumerate(path):
        if not 0 <= i < len(form.items):
            paths = [str((*path[:depth], n)) for n in range(len(form.items))]
            raise UnknownName(f"path of {policy.name}", path, paths)
        form = form.items[i]
    return form


def sites(policy: Policy) -> Mapping[tuple[int, int], Site]:
    """Return the type-checked expressions of a policy, by span in the source."""
    return _checked(policy).sites


def _checked(policy: Policy) -> _Recording:
    """Return the recording type checker of a policy."""
    if policy._of is not None:
        parsed(policy)  # raises: a field has no text
    values = tuple((p.name, p.value) for p in policy.params.values())
    return _check(policy.source, policy.name, policy.helpers, policy.signature, values)


# The cache is keyed by the text, because equal policies may differ in layout and so in spans. Breeding edits one policy
# many times.
@lru_cache(maxsize=256)
def _check(
    source: str,
    name: str,
    helpers: tuple[str, ...],
    signature: Signature,
    values: tuple[tuple[str, float], ...],
) -> _Recording:
    """Type-check a policy, and return the checker with its expressions by span in the source."""
    whole = parse(source, name, helpers, None)
    parts = whole.parts
    names = [argument.text for argument in parts.arguments]
    checker = _Recording(
        whole.text, signature, whole.helpers, dict(values), forms_for(signature, names)
    )
    checker.whole, checker.written_calls = whole, whole.calls
    _list_names(parts.body, checker.names)
    checker.result(parts.body, checker.bind(parts.arguments))
    checker.declared = dict(checker.params)
    return checker


def _list_names(form: Form, names: dict[int, tuple[str, ...]]) -> set[str]:
    """Return the symbols of a form, and record those of each call by the identity of its form."""
    if not form.items:
        return {form.text} if form.kind == "symbol" else set()
    symbols = set().union(*(_list_names(item, names) for item in form.items))
    names[id(form)] = tuple(sorted(symbols))
    return symbols


class _Recording(Checker):
    """A type checker that records each expression that it visits.

    The bodies of helpers are not recorded, because they belong to other texts. Afterwards `redraw` checks variants of
    the policy. The node of a form depends on the names in the form alone, so an unchanged form is not checked again.
    """

    whole: Parsed
    declared: dict[str, Any]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sites: dict[tuple[int, int], Site] = {}
        self.written_calls: Mapping[tuple[int, int], Form] = {}
        self.names: dict[int, tuple[str, ...]] = {}
        self.memo: dict[tuple[Any, ...], Node] = {}
        self.drawing = False
        self._bound: Env = {}

    def redraw(self, changes: Mapping[Span, Form], arguments: Iterable[str]) -> Node | None:
        """Return the graph of the policy with other forms at some spans, or None if it has to be compiled."""
        if self.whole.macros or self.written_calls:
            return None
        if len(self.dag.nodes) > MAX_NODES // 2:
            self.dag, self.memo, self.inherited = Dag(), {}, {}
        self.drawing, self.steps, self.open, self.params = True, 0, 0, dict(self.declared)
        names = [*self.whole.parts.arguments, *(Form("symbol", name) for name in arguments)]
        try:
            return self.result(_graft(self.whole.parts.body, changes), self.bind(names))
        except PolicyError:
            return None  # Compiling the text gives the error its position.

    def check(self, form: Form, env: Env, *, tail: bool = False) -> Node:
        """Type-check an expression, and record its type and scope."""
        names = self.names.get(id(form))
        key = None if names is None else (id(form), *map(env.get, names))
        if self.drawing:
            drawn = self.memo.get(key) if key else None
            if drawn is None:
                drawn = super().check(form, env, tail=tail)
                if key:
                    self.memo[key] = drawn
            return drawn
        # The environment is copied, because let adds names to it afterwards. Names that a macro binds cannot be written.
        bound: Env = {name: value for name, value in env.items() if MARK not in name}
        self._bound = bound = self._bound if bound == self._bound else bound
        node = super().check(form, env, tail=tail)
        if key:
            self.memo[key] = node
        # The forms that a macro writes have no text of their own, but the last one stands for the call of the macro.
        span = form.start, form.stop
        if not self.calls and (not form.macro or span in self.written_calls):
            form = self.written_calls.get(span, form)
            self.sites[span] = Site(form, node.type, bound, tail, node)
        return node

    def want(self, form: Form, env: Env, type: Any, why: str, *, tail: bool = False) -> Node:
        """Check an expression against an expected type; a null takes that type."""
        node = super().want(form, env, type, why, tail=tail)
        self._typed(form, node)
        return node

    def unify(self, nodes: list[Node], forms: list[Form], what: str) -> list[Node]:
        """Check that branches have one type, and record the types of null branches."""
        result = super().unify(nodes, forms, what)
        for form, node in zip(forms, result, strict=True):
            self._typed(form, node)
        return result

    def _typed(self, form: Form, node: Node) -> None:
        """Record for a form without a type, such as a null, the type that its context gives it."""
        site = None if self.drawing else self.sites.get((form.start, form.stop))
        if site is not None and site.type is None and not self.calls:
            self.sites[form.start, form.stop] = site._replace(type=node.type, node=node)


def _graft(form: Form, changes: Mapping[Span, Form]) -> Form:
    """Replace the forms at some spans; return all other forms as the same objects."""
    start, stop = form.start, form.stop
    changed = changes.get(Span(start, stop))
    if changed is not None or not any(start <= a and b <= stop for a, b in changes):
        return changed or form
    return form._replace(items=tuple(_graft(item, changes) for item in form.items))


class Draft:
    """An edit of a policy whose text is not compiled until `policy` is read.

    ``root`` is the graph of the edited policy, with ``size`` operations. The arguments are those of `edited`.
    """

    def __init__(
        self,
        parent: Policy,
        changes: Mapping[Span, str],
        *,
        arguments: Iterable[str] = (),
        helpers: Iterable[str] = (),
        values: Mapping[str, float] | None = None,
    ) -> None:
        self._edited = partial(
            edited, parent, changes, arguments=arguments, helpers=helpers, values=values
        )
        checker = _checked(parent)
        forms = {span: fragment(text) for span, text in changes.items()}
        root = None
        if not (helpers or values or any(map(may_expand, changes.values()))) and all(
            len(parts) == 1 for parts in forms.values()
        ):
            root = checker.redraw({span: parts[0] for span, parts in forms.items()}, arguments)
        self.root = self.policy.root if root is None else root
        self.derived = self.policy.derived if root is None else checker.derived
        self.size = len(reachable(self.root))

    @cached_property
    def policy(self) -> Policy:
        """The compiled policy."""
        return self._edited()


def edited(
    policy: Policy,
    changes: Mapping[Span, str],
    *,
    arguments: Iterable[str] = (),
    helpers: Iterable[str] = (),
    values: Mapping[str, float] | None = None,
) -> Policy:
    """Compile a policy after replacing some forms of its source.

    ``changes`` maps spans, which must not overlap, to new texts. ``arguments`` are added to the arguments of the
    policy, and ``helpers`` to its helpers. ``values`` replace the current values of parameters. Values of parameters
    that no longer exist are dropped.
    """
    new_source, forms = _splice(policy, changes, " ".join(arguments))
    for form, span in zip(forms, sorted(changes), strict=True):
        # Each replacement is checked alone, because "1) (+ 2 3" might compile, and an error in "(+ 1" would be reported
        # far away.
        problem = _problem(changes[span])
        if problem:
            raise Text(new_source, policy.name).error(PolicySyntaxError, problem, form)
    compiled = compile_policy(
        new_source,
        policy.signature,
        name=policy.name,
        helpers=tuple(dict.fromkeys((*policy.helpers, *helpers))),
    )
    params = {p.name: p.value for p in policy.params.values() if p.value != p.default}
    params = {
        name: value
        for name, value in {**params, **(values or {})}.items()
        if name in compiled.params
    }
    return compiled.with_params(params) if params else compiled


def _splice(policy: Policy, changes: Mapping[Span, str], arguments: str) -> tuple[str, list[Form]]:
    """Apply changes to a policy's source, and append ``arguments`` to its argument list.

    Return the new source and the changes' new positions.
    """
    source, pieces, forms, offset, length = policy.source, [""], [], 0, 0
    all_changes = dict(changes)
    if arguments:
        whole = parsed(policy)
        end = whole.parts.listed.stop - 1
        last = whole.parts.arguments[-1].stop if whole.parts.arguments else end
        all_changes[Span(last, last)] = (
            f" {arguments}" if last < end or whole.parts.arguments else arguments
        )
    for span in sorted(all_changes):
        text = _closed(all_changes[span])
        pieces += [source[offset : span.start], text]
        start = length + span.start - offset
        length, offset = start + len(text), span.stop
        if span in changes:
            forms.append(Form("symbol", start=start, stop=length))
    return "".join([*pieces, source[offset:]]), forms


def missing_features(policy: Policy, *sources: str) -> tuple[str, ...]:
    """Return the features that source texts use but the policy does not declare."""
    listed = {a.text for a in parsed(policy).parts.arguments}
    names = dict.fromkeys(name for source in sources for name in symbols_of(source))
    return tuple(name for name in names if name in policy.signature.inputs and name not in listed)


def _problem(source: str) -> str:
    """Return the reason that a text is not exactly one form, or "" for one form."""
    try:
        count = len(read_forms(Text(source)))
    except PolicyError as error:
        return f"The replacement is not one whole form: {error.message}"
    return "" if count == 1 else f"The replacement must be one form, not {count}."


def _closed(source: str) -> str:
    """Return source text with a line break after a final comment."""
    forms = fragment(source)
    rest = source[forms[-1].stop :] if forms else ""
    return f"{source}\n" if ";" in rest.rpartition("\n")[2] else source
