"""JSON values that come back as they were given, and the texts in them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from memlab.errors import InputError
from memlab.kernel.base.arguments import shown
from memlab.kernel.privacy import screen
from memlab.kernel.state import is_blank

__all__ = ["clean_text", "decoded", "encoded", "redacted", "text_of", "texts_in"]

MOST_SEARCHED = 20_000
"""Characters of a value that are searched."""
_DEEPEST = 100
_LONGEST_NUMBER = 10_000
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""JSON makes one character of them."""


def encoded(value: Any, what: str) -> str:
    """``value`` as ASCII JSON, which ``decoded`` gives back equal; a tuple comes back as a list.

    InputError for what JSON cannot say: other types, keys that are no strings, NaN, infinities, torn characters.

    >>> encoded({"a": [1, 2.5, None, "é"]}, "value")
    '{"a":[1,2.5,null,"\\\\u00e9"]}'
    """
    _check(value, what, 0)
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def decoded(text: str) -> Any:
    """What ``encoded`` was given."""
    return json.loads(text)


def _check(value: Any, where: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise InputError(f"{where} is nested deeper than {_DEEPEST} levels.")
    if value is None or isinstance(value, str | int):
        if isinstance(value, str) and _HALVES.search(value):
            raise InputError(f"{where} holds two halves of UTF-16 side by side: decode it as UTF-16 first.")
        if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
            raise InputError(f"{where} has more than {_LONGEST_NUMBER:,} bits.")
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{where} is {value}, which JSON cannot say.")
        return
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                raise InputError(f"{where}: a key is a string, not {shown(key)}.")
            _check(key, f"a key of {where}", depth + 1)
            _check(part, f"{where}.{key[:40]}", depth + 1)
        return
    if isinstance(value, list | tuple):
        for place, part in enumerate(value):
            _check(part, f"{where}[{place}]", depth + 1)
        return
    raise InputError(f"{where} is {type(value).__name__}, which JSON cannot say: give texts, numbers, lists and dicts.")


def texts_in(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Each text or number in a value, with the name of the key that it stands under, in order."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from texts_in(part, key)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts_in(part, name)
    elif value is not None:
        yield name, value if isinstance(value, str) else json.dumps(value)


def text_of(value: Any) -> str:
    """What is searched of a value: its only text alone, or ``key: text`` on a line for each; "" for no text.

    >>> text_of({"food": "pizza", "since": 2020})
    'food: pizza\\nsince: 2020'
    """
    found = list(texts_in(value))
    if len(found) == 1:
        return found[0][1]
    return "\n".join(f"{name}: {text}" if name else text for name, text in found)


def clean_text(text: str, instead: str) -> str:
    """A text that a memory can hold: without halves of UTF-16, not too long; ``instead`` if it is blank."""
    clean = text[:MOST_SEARCHED].encode("utf-8", "replace").decode()
    return instead if is_blank(clean) else clean


def redacted(value: Any, personal: frozenset[str]) -> Any:
    """The same value with the secrets in its texts replaced, as ``lab.remember`` replaces them."""
    return _mapped(value, lambda text: screen(text, personal=personal).text)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(part, change) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(part, change) for part in value]
    return value
