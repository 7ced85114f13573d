"""Data as text of the dialect: what ``read_data`` gives back exactly.

A text with a carriage return is written ``(join "a" 13 "b")``, since the reader takes every end of a line as a newline;
a table is ``(table "key" value ...)``, a whole number beyond 2^53 ``(int "...")``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from memlab.errors import InputError, PolicySyntaxError, PolicyTypeError
from memlab.kernel.language._limits import MAX_INTEGER
from memlab.kernel.language._reader import Form, Text
from memlab.kernel.language._words import LITERALS

__all__ = ["read_data", "write_call", "write_data"]

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff0-\ufffb]"
)
"""Characters that do not show, or turn the text around them: they are written as escapes."""


def write_data(value: Any) -> str:
    """None, booleans, finite numbers, texts, and lists and tables of these.

    >>> write_data(["a\\"b", 1, 0.5, None, {"k": True}])
    '["a\\\\"b" 1 0.5 None (table "k" True)]'
    """
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value) if abs(value) <= MAX_INTEGER else f'(int "{value}")'
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{value} cannot be written: the dialect's numbers are finite.")
        return repr(value)
    if isinstance(value, str):
        if "\r" in value:
            return f"(join {' 13 '.join(map(_string, value.split(chr(13))))})"
        return _string(value)
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(write_data, value))}]"
    if isinstance(value, Mapping):
        items = " ".join(f"{write_data(str(key))} {write_data(item)}" for key, item in value.items())
        return f"(table {items})" if items else "(table)"
    raise InputError(f"{type(value).__name__} is no data of the dialect.")


def write_call(head: str, fields: Mapping[str, Any]) -> str:
    """A form with keywords: ``(memory :id 1 :text "..." ...)``; a_b becomes a-b.

    >>> write_call("memory", {"id": 1, "ttl_days": 30.0})
    '(memory :id 1 :ttl-days 30.0)'
    """
    pairs = (f":{name.replace('_', '-')} {write_data(value)}" for name, value in fields.items())
    return f"({' '.join([head, *pairs])})"


def read_data(form: Form, text: Text) -> Any:
    """The value of a form that ``write_data`` made; a PolicyError with its caret for any other form."""
    if form.kind == "str":
        return form.text
    if form.kind in ("int", "float"):
        return int(form.number) if form.kind == "int" else form.number
    if form.kind == "list":
        return [read_data(item, text) for item in form.items]
    if form.kind == "symbol" and form.text in LITERALS:
        return LITERALS[form.text]
    if form.head == "join":
        return "".join(_joined(item, text) for item in form.items[1:])
    if form.head == "int" and len(form.items) == 2 and form.items[1].kind == "str":
        digits = form.items[1].text
        if re.fullmatch(r"-?[0-9]{1,20}", digits):
            return int(digits)
    if form.head == "table" and len(form.items) % 2:
        table = {}
        for key, value in zip(form.items[1::2], form.items[2::2], strict=True):
            if key.kind != "str" and key.head != "join":
                raise text.error(PolicyTypeError, "The key of a table is a string.", key)
            table[read_data(key, text)] = read_data(value, text)
        return table
    raise text.error(PolicySyntaxError, "This is no data: a number, a string, true, false, nil or a list.", form)


def _joined(form: Form, text: Text) -> str:
    if form.kind == "str":
        return form.text
    if form.kind == "int" and 0 <= form.number < 0xD800:
        return chr(int(form.number))
    raise text.error(PolicyTypeError, "join takes strings and codes of characters.", form)


def _string(text: str) -> str:
    body = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{_UNSEEN.sub(_escaped, body)}"'


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"
