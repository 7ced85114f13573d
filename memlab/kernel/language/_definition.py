"""Definitions taken apart: ``fn``, ``lambda``, ``defn`` and ``defpolicy``, in Hy's spelling and in Scheme's."""

from __future__ import annotations

from typing import NamedTuple

from memlab.errors import PolicyError, PolicyTypeError
from memlab.kernel.language._reader import Form, Text
from memlab.kernel.language._words import FUNCTION_HEADS

__all__ = ["Definition", "definition"]


class Definition(NamedTuple):
    """The parts of ``(fn [a b] "doc" body)``, ``(defpolicy name [a b] ...)``, ``(defpolicy name (fn ...))``, a defn."""

    kind: str
    name: str
    listed: Form
    """The list of arguments, brackets included."""
    doc: str
    body: Form

    @property
    def arguments(self) -> tuple[Form, ...]:
        return self.listed.items


def definition(form: Form, text: Text) -> Definition:
    """Takes a definition apart, or says what it lacks."""

    def fail(message: str, at: Form) -> PolicyError:
        return text.error(PolicyTypeError, message, at)

    kind = "fn" if form.head in FUNCTION_HEADS else form.head
    shape = "(fn [features] body)" if kind == "fn" else f'({kind} name [features] "doc" body)'
    rest = form.items[1:]
    name = ""
    if kind != "fn":
        if not rest or rest[0].kind != "symbol":
            raise fail(f"{kind} needs a name: {shape}.", rest[0] if rest else form)
        name, rest = rest[0].text, rest[1:]
        bare = rest[1:] if len(rest) == 2 and rest[0].kind == "str" else rest
        if len(bare) == 1 and bare[0].head in FUNCTION_HEADS:
            # (defpolicy name (lambda (a b) body)): how Scheme names a function
            inner = definition(bare[0], text)
            doc = rest[0].text if len(rest) == 2 else inner.doc
            return Definition(kind, name, inner.listed, doc, inner.body)
    if not rest or rest[0].kind not in ("list", "call"):
        raise fail(f"The arguments are missing: {shape}.", rest[0] if rest else form)
    listed, rest = rest[0], rest[1:]
    seen: set[str] = set()
    for argument in listed.items:
        if argument.kind != "symbol":
            raise fail("An argument is a name.", argument)
        if argument.text in seen:
            raise fail(f"The argument {argument.text} is listed twice; a-b and a_b are one name.", argument)
        seen.add(argument.text)
    doc = ""
    if len(rest) > 1 and rest[0].kind == "str":
        doc, rest = rest[0].text, rest[1:]
    if len(rest) != 1:
        raise fail(
            f"The body is missing: {shape}." if not rest else "A policy has one expression as its body.",
            rest[1] if rest else form,
        )
    return Definition(kind, name, listed, doc, rest[0])
