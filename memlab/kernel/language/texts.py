"""The text of a policy as its parts: definition, source hash, callable helpers and forms."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import NamedTuple, Protocol

from memlab.errors import PolicyError, PolicyNameError, PolicySyntaxError
from memlab.kernel.language.checker import Helper
from memlab.kernel.language.forms import FORMS
from memlab.kernel.language.graph import constant_key
from memlab.kernel.language.macros import Expander, Macro, flat_bindings, read_macro
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
    read_forms,
)


class Sourced(Protocol):
    """What has the text of a policy, and the texts of its helpers."""

    @property
    def source(self) -> str:
        """The text of the policy."""

    @property
    def helpers(self) -> Sequence[str]:
        """The texts of the helpers that the policy may call."""


# The source hash is equal for two spellings of one program, and different for any other program.
#
# Forms are encoded with types and length prefixes. The hash ignores white space, comments, the document string, brackets
# or parentheses in binders, ``fn`` or ``lambda`` or ``defpolicy``, and ``let`` or ``let*``. It also ignores the spelling of
# strings, quotes and names (``a-b``, ``a_b``), and the names that let and the arguments of helpers bind. ``1`` and ``1.0``
# differ.


Scope = Mapping[str, int]


def digest(*parts: bytes | str | float) -> str:
    """Return the SHA-256 of several parts, each prefixed with its length."""
    encoded = [
        p if isinstance(p, bytes) else p.encode() if isinstance(p, str) else constant_key(p)
        for p in parts
    ]
    return hashlib.sha256(b"".join(struct.pack(">I", len(p)) + p for p in encoded)).hexdigest()


def source_hash(arguments: tuple[str, ...], body: Form) -> str:
    """Return the source hash of a policy.

    The names of the arguments are part of the hash, because inputs are matched by name.
    """
    out: list[bytes] = []
    _emit(body, {}, out)
    return digest("policy", b"".join(map(_atom, ("s" + a for a in arguments))), b"".join(out))


def helper_hash(name: str, arguments: tuple[str, ...], body: Form) -> str:
    """Return the source hash of a ``defn``, independent of argument names."""
    out: list[bytes] = []
    _emit(body, {argument: i for i, argument in enumerate(arguments)}, out)
    return digest("helper", name, str(len(arguments)), b"".join(out))


def _atom(text: str) -> bytes:
    """Return a text as UTF-8 bytes, prefixed with the byte count."""
    data = text.encode()
    return struct.pack(">I", len(data)) + data


def _emit(form: Form, scope: Scope, out: list[bytes]) -> None:
    """Append the bytes that represent a form in a policy's hash to the list ``out``.

    Bound names are encoded by their position in `scope`.
    """
    # Hashes of stored policies depend on every byte that is written here.
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
    elif (bindings := flat_bindings(form)) is not None:
        _emit_let(form, bindings, scope, out)
    elif (
        form.head in ("fn", "lambda")
        and len(form.items) > 1
        and form.items[1].kind in ("list", "call")
    ):
        arguments = form.items[1].items
        level = _next_number(scope)
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
    """Append the bytes that represent a quoted form in a hash to the list ``out``.

    Symbols are strings, calls are lists.
    """
    if form.kind == "symbol":
        out.append(_atom("t" + form.text))
    elif form.kind in ("call", "list"):
        out.append(b"[" + struct.pack(">I", len(form.items)))
        for item in form.items:
            _emit_quoted(item, out)
    else:
        _emit(form, {}, out)


def _next_number(scope: Scope) -> int:
    """Return the number for the next bound name: one above the highest in ``scope``."""
    return 1 + max(scope.values(), default=-1)


def _emit_let(form: Form, bindings: tuple[Form, ...], scope: Scope, out: list[bytes]) -> None:
    """Append the hashed bytes of a ``let`` form to ``out``, with names as numbers."""
    inner = dict(scope)
    level = _next_number(scope)
    out.append(
        b"(" + struct.pack(">I", len(form.items)) + _atom("slet") + struct.pack(">I", len(bindings))
    )
    for name, value in zip(bindings[::2], bindings[1::2], strict=True):
        _emit(value, inner, out)
        # A second binding of the same name gets a new position.
        inner[name.text] = level
        level += 1
    for item in form.items[2:]:
        _emit(item, inner, out)


# Helpers are ``defn`` forms from the library, from a pack or from the text of the policy. A policy that is inherited is
# kept among them. Macros are defined in the same places, and expanded before a helper or a policy is hashed.

DEFINING = ("defn", "inherit", "defmacro")
"""Forms that may precede a policy."""


class Definitions(NamedTuple):
    """The helpers and macros that a text may call, by name."""

    helpers: Mapping[str, Helper]
    macros: Mapping[str, Macro]

    def expander(self) -> Expander:
        """Return an expander of the defined macros."""
        return Expander(self.macros, self.helpers)


INHERITED = "inherited"
"""Name of the policy of a form ``(inherit pack (fn [features] body))``, among helpers and in calls."""


def define(forms: Iterable[tuple[Form, Text]], outer: Definitions) -> Definitions:
    """Return the definitions of forms, added to those of `outer`, which they may hide."""
    # Names are collected first, because a macro may follow a helper that calls it.
    listed = list(forms)
    names: dict[str, Text] = {}
    macros: dict[str, Macro] = {}
    for form, text in listed:
        if form.head == "inherit":
            name = INHERITED
        elif form.head == "defmacro":
            macro = read_macro(form, text)
            name = macro.name
            macros[name] = macro
        else:
            name = definition(form, text).name
        if form.head != "inherit" and ALIASES.get(name, name) in FORMS:
            raise text.error(
                PolicyNameError,
                f"{name} is a form of the dialect and cannot be redefined.",
                form.items[1],
            )
        if name in names:
            raise text.error(PolicyNameError, f"{name} is defined twice.", form.items[1])
        names[name] = text
    hidden = {name: item for name, item in outer.helpers.items() if name not in macros}
    scope = {name: item for name, item in outer.macros.items() if name not in names} | macros
    expander = Expander(scope, {*hidden, *names} - macros.keys())
    own = [
        _inherited(form, text) if form.head == "inherit" else _helper(form, text, expander)
        for form, text in listed
        if form.head != "defmacro"
    ]
    return Definitions(hidden | {item.name: item for item in own}, scope)


def _helper(form: Form, text: Text, expander: Expander) -> Helper:
    """Parse one ``defn`` into a helper."""
    form = expander.definition(form, text)
    parts = definition(form, text)
    names = tuple(a.text for a in parts.arguments)
    hash = helper_hash(parts.name, names, parts.body)
    return Helper(parts.name, names, parts.doc, parts.body, form, text, hash)


def _inherited(form: Form, text: Text) -> Helper:
    """Parse ``(inherit pack helper ... policy)``, the value of ``(inherited)``.

    The policy sees its own helpers only. The hash covers the whole program, but not the name of the pack.
    """
    pack = form.items[1] if len(form.items) > 1 else form
    if pack.kind != "symbol":
        raise text.error(
            PolicySyntaxError, "An inherited policy is written (inherit pack policy).", form
        )
    text = text._replace(name=pack.text)
    policy, definitions = _policy_and_definitions(text, form.items[2:], _of_library(), form)
    parts, scope = (
        definition(definitions.expander().definition(policy, text), text),
        definitions.helpers,
    )
    names = tuple(a.text for a in parts.arguments)
    used = [*used_helpers([parts.body], scope), *(scope[n] for n in (INHERITED,) if n in scope)]
    return Helper(
        INHERITED,
        names,
        pack.text,
        parts.body,
        form,
        text,
        digest(
            "inherit",
            source_hash(names, parts.body),
            *sorted(f"{item.name}:{item.hash}" for item in used),
        ),
        scope,
        parts.arguments,
    )


def calls_inherited(body: Form) -> bool:
    """Return True if a policy's body calls ``(inherited)``."""
    return any(form.head == INHERITED for _, form, _ in walk(body))


def needs_parent(
    source: str | PolicyForm, name: str | None, helpers: tuple[str, ...], file: str | None = None
) -> bool:
    """Return True if a policy calls ``(inherited)`` but contains no parent policy.

    Raises a PolicyError if the text cannot be read.
    """
    whole = parse(source, name, helpers, file)
    return calls_inherited(whole.parts.body) and INHERITED not in whole.helpers


def inherit_form(policy: Sourced, pack: str) -> str:
    """Return the form ``(inherit pack ...)`` that makes a policy the value of ``(inherited)``.

    Parameters
    ----------
    policy
        The policy that is inherited. The form has its text, with comments, and the helpers that it calls.
    pack
        Name of its pack.

    Returns
    -------
    str
        The text, which is passed to `compile_policy` as a helper.
    """
    whole = parse(policy.source, None, policy.helpers)
    items = used_helpers([whole.parts.body], whole.helpers)
    texts = [_slice(item.form, item.text) for item in items if library().get(item.name) is not item]
    if calls_inherited(whole.parts.body):
        texts.append(_slice(whole.helpers[INHERITED].form, whole.helpers[INHERITED].text))
    source = _slice(whole.form, whole.text)
    macros = [macro.source for macro in used_macros([*texts, source], whole.macros)]
    return "\n".join([f"(inherit {pack}", *macros, *texts, f"{source})"])


def _slice(form: Form, text: Text) -> str:
    """Return the part of the text that a form was read from."""
    return text.source[form.start : form.stop]


# Every policy of a pack is compiled with the same helpers, which are parsed once.
@lru_cache(maxsize=64)
def definitions_of(sources: tuple[str, ...], file: str | None = None) -> Definitions:
    """Return the helpers and macros of the library and a pack by name.

    Those of the pack take precedence over those of the library.
    """
    listed: list[tuple[Form, Text]] = []
    for source in sources:
        text = Text(source, "helper", file)
        for form in read_forms(text):
            if form.head not in DEFINING:
                raise text.error(
                    PolicySyntaxError, "A helper is written (defn name [arguments] body).", form
                )
            listed.append((form, text))
    return define(listed, _of_library())


def _of_library() -> Definitions:
    """Return the definitions of the library, which has no macros."""
    return Definitions(library(), {})


# The library is parsed once per process.
@lru_cache(maxsize=1)
def library() -> Mapping[str, Helper]:
    """Return the helpers that every policy may call, by name."""
    source = (
        resources.files("memlab.kernel.language").joinpath("library.hy").read_text(encoding="utf-8")
    )
    text = Text(source, None, "library.hy")
    forms = read_forms(text, characters=MAX_PACK_CHARACTERS, forms=MAX_PACK_FORMS)
    return define(((form, text) for form in forms), Definitions({}, {})).helpers


Path = tuple[int, ...]


@dataclass(frozen=True)
class PolicyForm:
    """A ``defpolicy`` of a pack that was read but not yet checked.

    `line` is its first line in the file, and `hash` is the source hash.
    """

    slot: str
    inputs: tuple[str, ...]
    doc: str
    source: str
    line: int
    hash: str
    form: Form = field(repr=False, compare=False)
    text: Text = field(repr=False, compare=False)


class Parsed(NamedTuple):
    """The parts of a policy's text.

    The policy is `form`, without the helpers in front of it. The policy may call `helpers`, which
    come from the library, from the caller and from the text in front of the policy. `form` and `parts` are without
    macros. `written` is the body as its author wrote it, and `calls` are the calls of macros in it, by their spans.
    """

    text: Text
    form: Form
    parts: Definition
    helpers: Mapping[str, Helper]
    macros: Mapping[str, Macro]
    written: Form
    calls: Mapping[tuple[int, int], Form]


# One text is parsed for its hash, its checks and its display.
@lru_cache(maxsize=512)
def parse(
    source: str | PolicyForm, name: str | None, helpers: tuple[str, ...], file: str | None = None
) -> Parsed:
    """Return the parts of a policy's text, or raise a PolicyError with the error's position."""
    definitions = definitions_of(helpers, file)
    if isinstance(source, PolicyForm):
        text, form = source.text._replace(name=name or source.slot), source.form
    else:
        text = Text(source, name, file)
        form, definitions = _policy_and_definitions(text, read_forms(text), definitions)
    expander = definitions.expander()
    expanded = expander.definition(form, text)
    parts = definition(expanded, text)
    written = parts.body if expanded is form else definition(form, text).body
    return Parsed(
        text, expanded, parts, definitions.helpers, definitions.macros, written, expander.calls
    )


def _policy_and_definitions(
    text: Text, forms: tuple[Form, ...], outer: Definitions, enclosing: Form | None = None
) -> tuple[Form, Definitions]:
    """Return the policy among the forms of a text, and the definitions that it may call."""
    # Each refusal says which text was probably meant: helpers alone, a pack, or two policies.
    if not forms:
        raise text.error(
            PolicySyntaxError, "The text is empty: a policy is (fn [features] body).", enclosing
        )
    definitions = define(((form, text) for form in forms if form.head in DEFINING), outer)
    policies = [form for form in forms if form.head not in DEFINING]
    if not policies:
        raise text.error(
            PolicySyntaxError,
            "Helpers alone are not a policy: (fn [features] body) is missing.",
            forms[-1],
        )
    for form in policies:
        if form.head in ("pack", "setting"):
            raise text.error(
                PolicySyntaxError, "This is the text of a pack: pass it to lab.policies.use.", form
            )
        if form.head not in (*FUNCTION_HEADS, "defpolicy"):
            raise text.error(
                PolicySyntaxError,
                "A policy is (fn [features] body) or (defpolicy name [features] body).",
                form,
            )
    if len(policies) > 1:
        raise text.error(
            PolicySyntaxError, "This is a second policy; a text contains one.", policies[1]
        )
    return policies[0], definitions


def slot_of(source: str, *, file: str | None = None) -> str:
    """Return the slot named in a ``defpolicy`` text, or an empty string.

    Raises a PolicyError if the text cannot be read.

    >>> slot_of("(defpolicy recall-score [x] x)")
    'recall-score'
    """
    for form in read_forms(Text(source, None, file)):
        if form.head == "defpolicy" and len(form.items) > 1 and form.items[1].kind == "symbol":
            return form.items[1].text
    return ""


def walk(form: Form, *, quoted: bool = False) -> Iterator[tuple[Path, Form, tuple[Form, ...]]]:
    """Yield a form and its descendants, each with its path and its parents.

    Parents are ordered outermost first.

    `quoted` also enters quoted forms.
    """
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
    """Parse source text into forms. Returns an empty tuple on a syntax error."""
    try:
        return read_forms(Text(source))
    except PolicyError:
        return ()


def symbols_of(source: str) -> list[str]:
    """Return the symbols of a source text, in order."""
    return [
        item.text for form in fragment(source) for _, item, _ in walk(form) if item.kind == "symbol"
    ]


def used_helpers(bodies: Iterable[Form], helpers: Mapping[str, Helper]) -> list[Helper]:
    """Return the helpers that `bodies` call, directly or indirectly."""
    used: dict[str, Helper] = {}
    waiting = list(bodies)
    while waiting:
        for _, form, _ in walk(waiting.pop()):
            name = ALIASES.get(form.head, form.head)
            if name in helpers and name not in FORMS and name not in used:
                used[name] = helpers[name]
                waiting.append(helpers[name].body)
    return list(used.values())


def used_macros(sources: Iterable[str], macros: Mapping[str, Macro]) -> list[Macro]:
    """Return the macros that texts call, directly or through other macros."""
    used: dict[str, Macro] = {}
    waiting = list(sources)
    while waiting:
        for name in symbols_of(waiting.pop()):
            if name in macros and name not in used:
                used[name] = macros[name]
                waiting.append(macros[name].source)
    return list(used.values())
