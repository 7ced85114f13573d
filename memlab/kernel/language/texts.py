"""A policy's text taken apart: its definition, its hash, the helpers that it may call, and the forms within."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

from memlab.errors import PolicyError, PolicyNameError, PolicySyntaxError
from memlab.kernel.language.checker import Helper
from memlab.kernel.language.forms import FORMS
from memlab.kernel.language.graph import constant_key
from memlab.kernel.language.reader import (
    ALIASES,
    FUNCTION_HEADS,
    MAX_PACK_CHARACTERS,
    MAX_PACK_FORMS,
    RESPELLED,
    Definition,
    Form,
    Text,
    definition,
    flat_pairs,
    read_forms,
)

# The source hash: the same for two spellings of one program, another for any other program.
#
# Forms are written out typed and length-prefixed. White space, comments, the document string, brackets against
# parentheses in binders, ``fn`` against ``lambda`` and ``defpolicy``, ``let`` against ``let*``, the spelling of
# strings, quotes and names (``a-b``, ``a_b``), and the names that let and a helper's arguments bind do not count. ``1``
# and ``1.0`` differ.


Scope = Mapping[str, int]


def digest(*parts: bytes | str | float) -> str:
    """SHA-256 of parts, each with its length."""
    encoded = [
        p if isinstance(p, bytes) else p.encode() if isinstance(p, str) else constant_key(p)
        for p in parts
    ]
    return hashlib.sha256(b"".join(struct.pack(">I", len(p)) + p for p in encoded)).hexdigest()


def source_hash(arguments: tuple[str, ...], body: Form) -> str:
    """Of a policy: its arguments keep their names, because they are matched by name."""
    out: list[bytes] = []
    _emit(body, {}, out)
    return digest("policy", b"".join(map(_atom, ("s" + a for a in arguments))), b"".join(out))


def helper_hash(name: str, arguments: tuple[str, ...], body: Form) -> str:
    """Of a ``defn``: its arguments are only places."""
    out: list[bytes] = []
    _emit(body, {argument: i for i, argument in enumerate(arguments)}, out)
    return digest("helper", name, str(len(arguments)), b"".join(out))


def _atom(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">I", len(data)) + data


def _emit(form: Form, scope: Scope, out: list[bytes]) -> None:
    kind = form.kind
    if kind == "symbol":
        level = scope.get(form.text)
        out.append(
            _atom("s" + RESPELLED.get(form.text, form.text) if level is None else f"v{level}")
        )
    elif kind == "int":
        out.append(b"i" + struct.pack(">d", form.number))
    elif kind == "float":
        out.append(b"f" + struct.pack(">d", form.number))
    elif kind == "str":
        out.append(_atom("t" + form.text))
    elif kind == "keyword":
        out.append(_atom("k" + form.text))
    elif form.head == "quote" and len(form.items) == 2:
        _emit_quoted(form.items[1], out)
    elif (bindings := _flat_bindings(form)) is not None:
        _emit_let(form, bindings, scope, out)
    elif (
        form.head in ("fn", "lambda")
        and len(form.items) > 1
        and form.items[1].kind in ("list", "call")
    ):
        arguments = form.items[1].items
        level = _next(scope)
        inner = {**scope, **{a.text: level + i for i, a in enumerate(arguments)}}
        out.append(
            b"("
            + struct.pack(">I", len(form.items))
            + _atom("sfn")
            + struct.pack(">I", len(arguments))
        )
        for item in form.items[2:]:
            _emit(item, inner, out)
    else:
        out.append((b"(" if kind == "call" else b"[") + struct.pack(">I", len(form.items)))
        for item in form.items:
            _emit(item, scope, out)


def _emit_quoted(form: Form, out: list[bytes]) -> None:
    if form.kind == "symbol":
        out.append(_atom("t" + form.text))
    elif form.kind in ("call", "list"):
        out.append(b"[" + struct.pack(">I", len(form.items)))
        for item in form.items:
            _emit_quoted(item, out)
    else:
        _emit(form, {}, out)


def _next(scope: Scope) -> int:
    return 1 + max(scope.values(), default=-1)


def _flat_bindings(form: Form) -> tuple[Form, ...] | None:
    """Names and values of a let in turn, or None if it is malformed, which the checker reports."""
    if (
        form.head not in ("let", "let*")
        or len(form.items) < 2
        or form.items[1].kind not in ("list", "call")
    ):
        return None
    pairs = form.items[1].items
    if pairs and pairs[0].kind in ("list", "call") and any(len(pair.items) != 2 for pair in pairs):
        return None
    items = flat_pairs(pairs)
    return None if len(items) % 2 or any(name.kind != "symbol" for name in items[::2]) else items


def _emit_let(form: Form, bindings: tuple[Form, ...], scope: Scope, out: list[bytes]) -> None:
    inner = dict(scope)
    level = _next(scope)
    out.append(
        b"(" + struct.pack(">I", len(form.items)) + _atom("slet") + struct.pack(">I", len(bindings))
    )
    for name, value in zip(bindings[::2], bindings[1::2], strict=True):
        _emit(value, inner, out)
        # A second binding of one name is a new place.
        inner[name.text] = level
        level += 1
    for item in form.items[2:]:
        _emit(item, inner, out)


# Helpers: ``defn`` forms, from the dialect's own library, from a pack, or from the policy's own text.


def helper(form: Form, text: Text) -> Helper:
    """One ``defn``."""
    parts = definition(form, text)
    if ALIASES.get(parts.name, parts.name) in FORMS:
        raise text.error(
            PolicyNameError,
            f"{parts.name} is a form of the dialect and cannot be redefined.",
            form.items[1],
        )
    names = tuple(a.text for a in parts.arguments)
    return Helper(
        parts.name,
        names,
        parts.doc,
        parts.body,
        form,
        text,
        helper_hash(parts.name, names, parts.body),
    )


def named(helpers: Iterable[Helper]) -> dict[str, Helper]:
    """Helpers by name; a second one of the same name is an error."""
    result: dict[str, Helper] = {}
    for item in helpers:
        if item.name in result:
            raise item.text.error(
                PolicyNameError, f"{item.name} is defined twice.", item.form.items[1]
            )
        result[item.name] = item
    return result


@lru_cache(maxsize=64)
def helpers_of(sources: tuple[str, ...], file: str | None = None) -> Mapping[str, Helper]:
    """The library, and above it the helpers of a pack."""
    given: list[Helper] = []
    for source in sources:
        text = Text(source, "helper", file)
        for form in read_forms(text):
            if form.head != "defn":
                raise text.error(
                    PolicySyntaxError, "A helper is written (defn name [arguments] body).", form
                )
            given.append(helper(form, text))
    return {**library(), **named(given)}


@lru_cache(maxsize=1)
def library() -> Mapping[str, Helper]:
    """The helpers that every policy may call."""
    source = (
        resources.files("memlab.kernel.language").joinpath("library.hy").read_text(encoding="utf-8")
    )
    text = Text(source, None, "library.hy")
    forms = read_forms(text, characters=MAX_PACK_CHARACTERS, forms=MAX_PACK_FORMS)
    return named(helper(form, text) for form in forms)


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
def parse(
    source: str | PolicyForm, name: str | None, helpers: tuple[str, ...], file: str | None = None
) -> Parsed:
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
        raise text.error(
            PolicySyntaxError, "The text is empty: a policy is (fn [features] body).", None
        )
    own = named(helper(form, text) for form in forms if form.head == "defn")
    policies = [form for form in forms if form.head != "defn"]
    if not policies:
        raise text.error(
            PolicySyntaxError,
            "Helpers alone are no policy: (fn [features] body) is missing.",
            forms[-1],
        )
    for form in policies:
        if form.head in ("pack", "setting"):
            raise text.error(
                PolicySyntaxError, "This is the text of a pack: lab.policies.use takes it.", form
            )
        if form.head not in (*FUNCTION_HEADS, "defpolicy"):
            raise text.error(
                PolicySyntaxError,
                "A policy is (fn [features] body) or (defpolicy name [features] body).",
                form,
            )
    if len(policies) > 1:
        raise text.error(
            PolicySyntaxError, "This is a second policy; a text holds one.", policies[1]
        )
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
            stack.extend(
                ((*path, i), item, below) for i, item in reversed(list(enumerate(form.items)))
            )


def fragment(source: str) -> tuple[Form, ...]:
    """The forms of a fragment; none when it cannot be read."""
    try:
        return read_forms(Text(source))
    except PolicyError:
        return ()


def symbols_of(source: str) -> list[str]:
    """The names in a fragment, in their order."""
    return [
        item.text for form in fragment(source) for _, item, _ in walk(form) if item.kind == "symbol"
    ]


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
