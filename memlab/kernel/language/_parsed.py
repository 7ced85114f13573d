"""A policy's text taken apart: its definition, the helpers that it may call, and the forms within."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from memlab.errors import PolicyError, PolicySyntaxError
from memlab.kernel.language._check import Helper
from memlab.kernel.language._definition import Definition, definition
from memlab.kernel.language._forms import FORMS
from memlab.kernel.language._library import helper, helpers_of, named
from memlab.kernel.language._reader import Form, Text, read_forms
from memlab.kernel.language._words import ALIASES, FUNCTION_HEADS

__all__ = ["Parsed", "Path", "PolicyForm", "fragment", "parse", "slot_of", "symbols_of", "used_helpers", "walk"]

Path = tuple[int, ...]


@dataclass(frozen=True)
class PolicyForm:
    """A ``defpolicy`` of a pack, read and not yet checked. ``line`` is where it begins in the file."""

    slot: str
    inputs: tuple[str, ...]
    doc: str
    source: str
    line: int
    hash: str
    """The source hash."""
    form: Form = field(repr=False, compare=False)
    text: Text = field(repr=False, compare=False)


class Parsed(NamedTuple):
    """The forms of a policy's text."""

    text: Text
    form: Form
    """The policy, without the helpers in front of it."""
    parts: Definition
    helpers: Mapping[str, Helper]
    """What it may call: the library, what it was given, and the helpers in front."""


@lru_cache(maxsize=256)
def parse(source: str | PolicyForm, name: str | None, helpers: tuple[str, ...], file: str | None = None) -> Parsed:
    """Takes a policy's text apart, or raises a ``PolicyError`` with its place."""
    known = helpers_of(helpers, file)
    if isinstance(source, PolicyForm):
        text = source.text._replace(name=name or source.slot)
        return Parsed(text, source.form, definition(source.form, text), known)
    text = Text(source, name, file)
    form, own = _policy_and_helpers(text)
    return Parsed(text, form, definition(form, text), {**known, **own})


def _policy_and_helpers(text: Text) -> tuple[Form, dict[str, Helper]]:
    """The policy of a text, and the helpers in front of it."""
    forms = read_forms(text)
    if not forms:
        raise text.error(PolicySyntaxError, "The text is empty: a policy is (fn [features] body).", None)
    own = named(helper(form, text) for form in forms if form.head == "defn")
    policies = [form for form in forms if form.head != "defn"]
    if not policies:
        raise text.error(PolicySyntaxError, "Helpers alone are no policy: (fn [features] body) is missing.", forms[-1])
    for form in policies:
        if form.head in ("pack", "setting"):
            raise text.error(PolicySyntaxError, "This is the text of a pack: lab.policies.use takes it.", form)
        if form.head not in (*FUNCTION_HEADS, "defpolicy"):
            raise text.error(
                PolicySyntaxError, "A policy is (fn [features] body) or (defpolicy name [features] body).", form
            )
    if len(policies) > 1:
        raise text.error(PolicySyntaxError, "This is a second policy; a text holds one.", policies[1])
    return policies[0], own


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


def walk(form: Form, *, quoted: bool = False) -> Iterator[tuple[Path, Form, tuple[Form, ...]]]:
    """A form and all below it, each with its path and its parents, outermost first; ``quoted`` enters quotes too."""
    stack: list[tuple[Path, Form, tuple[Form, ...]]] = [((), form, ())]
    while stack:
        path, form, parents = stack.pop()
        yield path, form, parents
        if form.items and (quoted or form.head != "quote"):
            below = (*parents, form)
            stack.extend(((*path, i), item, below) for i, item in reversed(list(enumerate(form.items))))


def fragment(source: str) -> tuple[Form, ...]:
    """The forms of a fragment; none when it cannot be read."""
    try:
        return read_forms(Text(source))
    except PolicyError:
        return ()


def symbols_of(source: str) -> list[str]:
    """The names in a fragment, in their order."""
    return [item.text for form in fragment(source) for _, item, _ in walk(form) if item.kind == "symbol"]


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
