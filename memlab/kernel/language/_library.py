"""Helpers: ``defn`` forms, from the dialect's own library, from a pack, or from the policy's own text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources

from memlab.errors import PolicyNameError, PolicySyntaxError
from memlab.kernel.language._check import Helper
from memlab.kernel.language._definition import definition
from memlab.kernel.language._forms import FORMS
from memlab.kernel.language._hash import helper_hash
from memlab.kernel.language._limits import MAX_PACK_CHARACTERS, MAX_PACK_FORMS
from memlab.kernel.language._reader import Form, Text, read_forms
from memlab.kernel.language._words import ALIASES

__all__ = ["helper", "helpers_of", "library"]


def helper(form: Form, text: Text) -> Helper:
    """One ``defn``."""
    parts = definition(form, text)
    if ALIASES.get(parts.name, parts.name) in FORMS:
        raise text.error(
            PolicyNameError, f"{parts.name} is a form of the dialect and cannot be redefined.", form.items[1]
        )
    names = tuple(a.text for a in parts.arguments)
    return Helper(parts.name, names, parts.doc, parts.body, form, text, helper_hash(parts.name, names, parts.body))


def named(helpers: Iterable[Helper]) -> dict[str, Helper]:
    """Helpers by name; a second one of the same name is an error."""
    result: dict[str, Helper] = {}
    for item in helpers:
        if item.name in result:
            raise item.text.error(PolicyNameError, f"{item.name} is defined twice.", item.form.items[1])
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
                raise text.error(PolicySyntaxError, "A helper is written (defn name [arguments] body).", form)
            given.append(helper(form, text))
    return {**library(), **named(given)}


@lru_cache(maxsize=1)
def library() -> Mapping[str, Helper]:
    """The helpers that every policy may call."""
    source = resources.files("memlab.kernel.language").joinpath("library.hy").read_text(encoding="utf-8")
    text = Text(source, None, "library.hy")
    forms = read_forms(text, characters=MAX_PACK_CHARACTERS, forms=MAX_PACK_FORMS)
    return named(helper(form, text) for form in forms)
