"""What editing and comparing share: a policy's forms, its expressions as the checker sees them, and a text with
other forms in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from memlab.errors import InputError, PolicyError, PolicySyntaxError, UnknownName
from memlab.language._check import Checker, Env, Helper
from memlab.language._dag import Node
from memlab.language._definition import Definition, definition
from memlab.language._forms import FORMS
from memlab.language._library import helper, helpers_of, named
from memlab.language._policy import Policy, bound_arguments, compile_policy
from memlab.language._reader import Form, Text, read_forms
from memlab.language._signature import Signature
from memlab.language._words import ALIASES, FUNCTION_HEADS

__all__ = [
    "Parsed",
    "Path",
    "Site",
    "Span",
    "edited",
    "form_at",
    "fragment",
    "known_helpers",
    "missing_features",
    "parsed",
    "sites",
    "slot_of",
    "symbols_of",
    "used_helpers",
    "walk",
]

Path = tuple[int, ...]


class Span(NamedTuple):
    """Offsets into ``policy.source``: ``source[start:stop]``."""

    start: int
    stop: int


class Parsed(NamedTuple):
    """The forms of a policy's source."""

    text: Text
    helpers: tuple[Form, ...]
    """The ``defn`` forms in front."""
    arguments: Form
    """The list of arguments, brackets included."""
    form: Form
    """The policy, without the helpers."""
    parts: Definition


class Site(NamedTuple):
    """An expression as the checker saw it: its form, its type, and what was bound there."""

    form: Form
    type: str | None
    env: Env
    tail: bool


def parsed(policy: Policy) -> Parsed:
    """The forms of ``policy.source``, helpers apart. The policy of one field of a record is refused: it has no text of
    its own.
    """
    if policy._of is not None:
        raise InputError(f"{policy.name} is one field of a record: edit the text of {policy._of[0].name} itself.")
    return _parsed(policy.source, policy.name)


@lru_cache(maxsize=256)
def _parsed(source: str, name: str) -> Parsed:
    text = Text(source, name)
    forms = read_forms(text)
    form = next(form for form in forms if form.head != "defn")
    return Parsed(text, tuple(f for f in forms if f.head == "defn"), _argument_list(form), form, definition(form, text))


def slot_of(source: str, *, file: str | None = None) -> str:
    """The name that ``defpolicy`` gives the policy of a text, or nothing. Raises a ``PolicyError`` for what cannot be
    read.

    >>> slot_of("(defpolicy recall-score [x] x)")
    'recall-score'
    """
    for form in read_forms(Text(source, None, file)):
        if form.head == "defpolicy" and len(form.items) > 1 and form.items[1].kind == "symbol":
            return form.items[1].text
    return ""


def _argument_list(form: Form) -> Form:
    if form.head in FUNCTION_HEADS:
        return form.items[1]
    inner = form.items[-1]
    if inner.head in FUNCTION_HEADS and (
        len(form.items) == 3 or (len(form.items) == 4 and form.items[2].kind == "str")
    ):
        return inner.items[1]
    return form.items[2]


def walk(form: Form, *, quoted: bool = False) -> Iterator[tuple[Path, Form, tuple[Form, ...]]]:
    """A form and all below it, each with its path and its parents, outermost first; ``quoted`` enters quotes too."""
    stack: list[tuple[Path, Form, tuple[Form, ...]]] = [((), form, ())]
    while stack:
        path, form, parents = stack.pop()
        yield path, form, parents
        if form.items and (quoted or form.head != "quote"):
            below = (*parents, form)
            stack.extend(((*path, i), item, below) for i, item in reversed(list(enumerate(form.items))))


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
    """Every expression of the policy, by its span, as the checker visits it. ``InputError`` for a policy over lists."""
    parsed(policy)
    values = tuple((p.name, p.value) for p in policy.params.values())
    return _sites(policy.source, policy.name, policy.signature, policy.helpers, values)


# By the text: policies are equal whatever their layout, and spans are not.
@lru_cache(maxsize=64)
def _sites(
    source: str, name: str, signature: Signature, helpers: tuple[str, ...], values: tuple[tuple[str, float], ...]
) -> Mapping[tuple[int, int], Site]:
    whole = _parsed(source, name)
    if any(argument.text in signature.lists for argument in whole.parts.arguments):
        raise InputError(f"{name} goes through lists step by step, and its expressions have no types.")
    known = {**helpers_of(helpers), **named(helper(form, whole.text) for form in whole.helpers)}
    checker = _Recording(whole.text, signature, known, dict(values), FORMS)
    checker.result(whole.parts.body, bound_arguments(checker, whole.parts))
    return checker.sites


class _Recording(Checker):
    """A checker that keeps what it saw. A helper's body is somebody else's text, and is not kept."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.sites: dict[tuple[int, int], Site] = {}

    def check(self, form: Form, env: Env, *, tail: bool = False) -> Node:
        # let goes on filling the scope that it hands to its values
        seen = dict(env)
        node = super().check(form, env, tail=tail)
        if not self.calls:
            self.sites[form.start, form.stop] = Site(form, node.type, seen, tail)
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
            self.sites[form.start, form.stop] = site._replace(type=node.type)


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
        # said here, because "1) (+ 2 3" may well compile, and "(+ 1" would be reported far away
        problem = _problem(changes[span])
        if problem:
            raise Text(made, policy.name).error(PolicySyntaxError, problem, place)
    fresh = compile_policy(
        made, policy.signature, name=policy.name, helpers=tuple(dict.fromkeys((*policy.helpers, *helpers)))
    )
    kept = {p.name: p.value for p in policy.params.values() if p.value != p.default}
    kept = {name: value for name, value in {**kept, **(values or {})}.items() if name in fresh.params}
    return fresh.with_params(kept) if kept else fresh


def _spliced(policy: Policy, changes: Mapping[Span, str], arguments: str) -> tuple[str, list[Form]]:
    """The new source, and where each change stands in it."""
    source, pieces, places, at, length = policy.source, [""], [], 0, 0
    every = dict(changes)
    if arguments:
        whole = parsed(policy)
        end = whole.arguments.stop - 1
        last = whole.parts.arguments[-1].stop if whole.parts.arguments else end
        every[Span(last, last)] = f" {arguments}" if last < end or whole.parts.arguments else arguments
    for span in sorted(every):
        text = _closed(every[span])
        pieces += [source[at : span.start], text]
        start = length + span.start - at
        length, at = start + len(text), span.stop
        if span in changes:
            places.append(Form("symbol", start=start, stop=length))
    return "".join([*pieces, source[at:]]), places


def fragment(source: str) -> tuple[Form, ...]:
    """The forms of a fragment; none when it cannot be read."""
    try:
        return read_forms(Text(source))
    except PolicyError:
        return ()


def symbols_of(source: str) -> list[str]:
    """The names in a fragment, in their order."""
    return [item.text for form in fragment(source) for _, item, _ in walk(form) if item.kind == "symbol"]


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
    """A fragment as it can stand before anything else: a comment at its end needs the end of its line."""
    forms = fragment(source)
    behind = source[forms[-1].stop :] if forms else ""
    return f"{source}\n" if ";" in behind.rpartition("\n")[2] else source


def known_helpers(policy: Policy) -> Mapping[str, Helper]:
    """What the policy may call: the library, the helpers it was given, and those in front of it."""
    whole = parsed(policy)
    return {**helpers_of(policy.helpers), **named(helper(form, whole.text) for form in whole.helpers)}


def used_helpers(bodies: Iterable[Form], known: Mapping[str, Helper]) -> list[Helper]:
    """The helpers that some forms call, directly or not."""
    used: dict[str, Helper] = {}
    waiting = list(bodies)
    while waiting:
        for _, form, _ in walk(waiting.pop()):
            name = ALIASES.get(form.head, form.head)
            if name in known and name not in FORMS and name not in used:
                used[name] = known[name]
                waiting.append(known[name].body)
    return list(used.values())
