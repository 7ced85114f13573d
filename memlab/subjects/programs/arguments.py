"""Functions that read the arguments of operations, one for each kind of argument.

A reader returns the value of a form. For an invalid form, it raises a PolicyError with a caret under the form.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf
from typing import Any

from memlab.errors import InputError, PolicyError, PolicyNameError, PolicyTypeError, UnknownName
from memlab.kernel.language import Form, Text
from memlab.kernel.schema import KINDS, RELATIONS, is_open_word, normalise_word

Reader = Callable[[str, Form, Text], Any]
"""A function that takes the parameter's name, a form and the text that contains the form, and returns a value."""

# Patterns of a lifetime and of a span of time, and the days of each unit. Months and years have fixed lengths.
_TTL = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)([hdwmy])")
_SPAN = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?[mhdw]")
_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "m": 30.0, "y": 365.0}
# The kinds of forms that are accepted as a word: "fact", fact and :fact.
_NAMES = ("str", "symbol", "keyword")
_SLOT_OF = {
    "decay": "half-life",
    "recall": "recall-score",
    "exploration": "explore",
    "exploration-policy": "explore",
}
"""Slots by the names that an earlier system used, whose texts can still be run."""


def text(name: str, form: Form, source: Text) -> str:
    """Read a string that can be the text of a memory."""
    from memlab.kernel.state import validate_text

    if form.kind != "str":
        raise _wrong(name, 'a text in quotes, such as "tabs"', form, source)
    try:
        return validate_text(form.text)
    except InputError as error:
        raise source.error(PolicyTypeError, str(error), form) from None


def one_of(words: tuple[str, ...]) -> Reader:
    """Return a reader that accepts one of ``words``, with or without quotation marks."""

    def read(name: str, form: Form, source: Text) -> str:
        if form.kind not in _NAMES:
            raise _wrong(name, f"one of {', '.join(words[:8])}", form, source)
        word = normalise_word(form.text, words)
        if word not in words:
            raise source.error(PolicyNameError, str(UnknownName(name, form.text[:60], words)), form)
        return word

    return read


def open_word(words: tuple[str, ...]) -> Reader:
    """Return a reader that accepts one of ``words`` or any other short word.

    ``Program.check_words`` later checks whether the lab accepts other words.
    """
    read_known = one_of(words)

    def read(name: str, form: Form, source: Text) -> str:
        word = normalise_word(form.text, words)
        return (
            word
            if form.kind in _NAMES and is_open_word(word)
            else str(read_known(name, form, source))
        )

    return read


kind, relation = open_word(KINDS), open_word(RELATIONS)
"""Readers of the kind of a memory and of the relation of an edge."""


def number(low: float = 0, high: float = inf) -> Reader:
    """Return a reader that accepts numbers from ``low`` to ``high``."""

    def read(name: str, form: Form, source: Text) -> float:
        if form.kind not in ("int", "float"):
            raise _wrong(name, "a number", form, source)
        if not low <= form.number <= high:
            bounds = f"in {low:g}..{high:g}" if high < inf else f"at least {low:g}"
            raise source.error(
                PolicyTypeError, f"{name} must be {bounds}, not {form.number:g}.", form
            )
        return form.number

    return read


def integer(low: int, high: int) -> Reader:
    """Return a reader that accepts whole numbers from ``low`` to ``high``."""
    within = number(low, high)

    def read(name: str, form: Form, source: Text) -> int:
        if form.kind != "int":
            raise _wrong(name, "a whole number", form, source)
        return int(within(name, form, source))

    return read


def is_span(text: str) -> bool:
    """Return whether a text is a positive span of time, such as "7d" or "12h"."""
    return bool(_SPAN.fullmatch(text)) and float(text[:-1]) > 0


def span(name: str, form: Form, source: Text) -> str:
    """Read a span of time such as "7d" or "12h", in the format of ``memlab.evaluate``."""
    if form.kind != "str" or not is_span(form.text):
        raise _wrong(name, 'a span in quotes, such as "7d", "12h" or "30m"', form, source)
    return form.text


def memory_id(name: str, form: Form, source: Text) -> int:
    """Read a memory id; its existence is checked when the program runs."""
    if form.kind != "int" or form.number < 1:
        raise _wrong(name, "the id of a memory, a whole number from 1 on", form, source)
    return int(form.number)


def ids(name: str, form: Form, source: Text) -> list[int]:
    """Read one memory id or a list of ids such as ``[1 2]``."""
    if form.kind == "call" and form.head == "quote" and len(form.items) == 2:
        form = form.items[1]
    items = form.items if form.kind in ("list", "call") else (form,)
    if form.kind == "call" and form.head == "list":
        items = items[1:]
    if not items:
        raise _wrong(name, "an id or a list such as [1 2]", form, source)
    return [memory_id(name, item, source) for item in items]


def texts(name: str, form: Form, source: Text) -> list[str]:
    """Read a list of short texts, such as ``["a" "b"]``."""
    if (
        form.kind == "call"
        and form.head == "quote"
        and len(form.items) == 2
        and form.items[1].kind == "call"
    ):
        items = form.items[1].items
    elif form.kind == "call" and form.head == "list":
        items = form.items[1:]
    elif form.kind == "list":
        items = form.items
    else:
        raise _wrong(name, 'a list such as ["ci" "release"]', form, source)
    for item in items:
        if item.kind not in _NAMES or not 0 < len(item.text) <= 1000:
            raise _wrong(name, 'a list of texts such as ["ci" "release"]', item, source)
    return [item.text for item in items]


def ttl(name: str, form: Form, source: Text) -> float | None:
    """Read a lifetime, and return the number of days, or None for ``perpetual``."""
    if form.kind in _NAMES and form.text == "perpetual":
        return None
    match = _TTL.fullmatch(form.text) if form.kind == "str" else None
    days = float(match[1]) * _DAYS[match[2]] if match else 0.0
    if not days:
        raise _wrong(name, '"30d" (h, d, w, m or y) or "perpetual"', form, source)
    return days


def slot(name: str, form: Form, source: Text) -> str:
    """Read the name of a policy slot."""
    from memlab.kernel.policies import SLOTS

    if form.kind not in _NAMES:
        raise _wrong(name, "the name of a policy, such as recall-score", form, source)
    slot_name = _SLOT_OF.get(form.text, form.text)
    if slot_name not in SLOTS:
        unknown = UnknownName("policy slot", form.text[:60], (*SLOTS, *_SLOT_OF))
        raise source.error(PolicyNameError, str(unknown), form)
    return slot_name


def code(name: str, form: Form, source: Text) -> str:
    """Read a policy's source, written as a string, a form or a quoted form."""
    if form.kind == "str":
        return form.text
    if form.kind == "call" and form.head == "quote" and len(form.items) == 2:
        form = form.items[1]
    if form.kind != "call":
        raise _wrong(name, "a policy such as (fn [similarity] similarity)", form, source)
    return source.source[form.start : form.stop]


def _wrong(name: str, wanted: str, form: Form, source: Text) -> PolicyError:
    """Return the error for an argument of the wrong type or value."""
    return source.error(PolicyTypeError, f"{name} must be {wanted}.", form)
