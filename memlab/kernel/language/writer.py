"""Writes data, forms and forms of Hy as text of the policy language.

`read_data` returns exactly the value that `write_data` wrote. A text with a carriage return is written as
``(join "a" 13 "b")``, because the reader normalises line ends. A mapping is written as ``(table "key" value ...)``, and a
whole number beyond 2^53 as ``(int "...")``.
"""

from __future__ import annotations

import math
import numbers
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from memlab.errors import InputError, PolicySyntaxError, PolicyTypeError
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.language.graph import Value
from memlab.kernel.language.reader import (
    LITERALS,
    MAX_FORMS,
    MAX_INTEGER,
    MAX_NESTING,
    MAX_PACK_FORMS,
    Form,
    Text,
    quoted,
    read_forms,
)

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff0-\ufffb]"
)
"""Characters that are invisible or reorder the text around them. They are written as escapes."""


def write_data(value: Any) -> str:
    r"""Serialise data as text of the policy language.

    None, booleans, finite numbers, texts, and lists and mappings of these are allowed.

    Parameters
    ----------
    value
        The data to write.

    Returns
    -------
    str
        The text, from which `read_data` returns the value.

    Raises
    ------
    InputError
        If a value has another type or a number is not finite.

    Examples
    --------
    >>> write_data(["a\"b", 1, 0.5, None, {"k": True}])
    '["a\\"b" 1 0.5 None (table "k" True)]'
    """
    # Booleans come before numbers, because True is an int.
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value) if abs(value) <= MAX_INTEGER else f'(int "{value}")'
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(
                f"{value} cannot be written: numbers of the policy language are finite."
            )
        return repr(value)
    if isinstance(value, str):
        if "\r" in value:
            return f"(join {' 13 '.join(map(_string, value.split(chr(13))))})"
        return _string(value)
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(write_data, value))}]"
    if isinstance(value, Mapping):
        items = " ".join(
            f"{write_data(str(key))} {write_data(item)}" for key, item in value.items()
        )
        return f"(table {items})" if items else "(table)"
    raise InputError(f"The policy language cannot represent {type(value).__name__} values.")


def write_call(head: str, fields: Mapping[str, Any]) -> str:
    """Write a form with keyword arguments: ``(memory :id 1 ...)``.

    Underscores become hyphens.

    Parameters
    ----------
    head
        Name of the form.
    fields
        Data by keyword.

    Returns
    -------
    str
        The text of the form.

    Examples
    --------
    >>> write_call("memory", {"id": 1, "ttl_days": 30.0})
    '(memory :id 1 :ttl-days 30.0)'
    """
    pairs = (f":{name.replace('_', '-')} {write_data(value)}" for name, value in fields.items())
    return f"({' '.join([head, *pairs])})"


def read_data(form: Form, text: Text) -> Any:
    """Return the value of a form that `write_data` wrote.

    Parameters
    ----------
    form
        The form to read.
    text
        The source of the form, for error messages.

    Returns
    -------
    Any
        The value that was written.

    Raises
    ------
    PolicyError
        If the form is no data, with line and column.
    """
    # Each case mirrors one of `write_data`.
    if form.kind == "str":
        return form.text
    if form.kind in ("int", "float"):
        return int(form.number) if form.kind == "int" else form.number
    if form.kind == "list":
        return [read_data(item, text) for item in form.items]
    if form.kind == "symbol" and form.text in LITERALS:
        return LITERALS[form.text]
    if form.head == "join":
        return "".join(_read_part(item, text) for item in form.items[1:])
    if form.head == "int" and len(form.items) == 2 and form.items[1].kind == "str":
        digits = form.items[1].text
        if re.fullmatch(r"-?[0-9]{1,20}", digits):
            return int(digits)
    if form.head == "table" and len(form.items) % 2:
        table = {}
        for key, value in zip(form.items[1::2], form.items[2::2], strict=True):
            if key.kind != "str" and key.head != "join":
                raise text.error(PolicyTypeError, "The key of a table must be a string.", key)
            table[read_data(key, text)] = read_data(value, text)
        return table
    raise text.error(
        PolicySyntaxError, "Data must be a number, a string, true, false, nil or a list.", form
    )


def _read_part(form: Form, text: Text) -> str:
    """Return the text of one argument of ``join``: a string or a character code."""
    if form.kind == "str":
        return form.text
    if form.kind == "int" and 0 <= form.number < 0xD800:
        return chr(int(form.number))
    raise text.error(
        PolicyTypeError, "join takes strings and codes of characters below 55296 only.", form
    )


def _string(text: str) -> str:
    """Return a text as a string literal with escapes for invisible characters."""
    body = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{_UNSEEN.sub(_escaped, body)}"'


def _escaped(match: re.Match[str]) -> str:
    """Return a character as a Unicode escape."""
    return f"\\u{ord(match.group()):04x}"


# Constants and forms as text.

# Maximum width of a laid-out line, and the largest whole number that float64 represents with all its neighbours.
WIDTH = 88
_EXACT = 2.0**53


def number(value: float) -> str:
    """Return a number as source text.

    A whole number has no decimal point. NaN and infinities are written as divisions.
    """
    if value != value:
        return "(/ 0 0)"
    if math.isinf(value):
        return "(/ 1 0)" if value > 0 else "(/ -1 0)"
    if value.is_integer() and abs(value) <= _EXACT and (value or math.copysign(1.0, value) > 0):
        return str(int(value))
    return repr(value)


def literal(value: Value) -> str:
    """Return a value as a literal of the language."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number(value)
    return quoted(value)


def lay_out(form: Form, indent: int = 0, width: int = WIDTH) -> str:
    """Format a form as text, breaking lines longer than `width`.

    The text starts `indent` characters from the left. Words keep their spelling.
    """
    # As in Lisp style guides, the first line has the name and, for let, case, fn and if, the first argument.
    flat = _on_one_line(form)
    if len(flat) + indent <= width or not form.items:
        return flat
    opening, closing = "()" if form.kind == "call" else "[]"
    head, items = "", form.items
    if form.head:
        head, items = form.head, items[1:]
    first = 1 if form.head in ("let", "case", "fn", "if") else 0
    paired = form.kind == "list" or form.head in ("cond", "case")
    inside = indent + (2 if form.head else 1)
    lines = [head]
    for item in items[:first]:
        lines[0] += f" {lay_out(item, indent + 2 + len(lines[0]), width)}"
    rest = items[first:]
    step = 2 if paired and len(rest) > 1 else 1
    for i in range(0, len(rest), step):
        line = ""
        for item in rest[i : i + step]:
            line += " " * bool(line) + lay_out(item, inside + len(line) + bool(line), width)
        lines.append(line)
    if not head:
        lines = lines[1:]
    return opening + f"\n{' ' * inside}".join(lines) + closing


def _on_one_line(form: Form) -> str:
    """Format a form as a single line."""
    if form.kind in ("call", "list"):
        opening, closing = "()" if form.kind == "call" else "[]"
        return f"{opening}{' '.join(map(_on_one_line, form.items))}{closing}"
    if form.kind in ("int", "float"):
        return number(form.number)
    if form.kind == "str":
        return literal(form.text)
    return f":{form.text}" if form.kind == "keyword" else form.text


# Forms of Hy's reader. A form is printed, never evaluated, and the text is read under the rules and limits of any text.

# Types of Hy that the language does not have, by their names in messages; characters that end a name; quotes.
_FOREIGN = {
    "Bytes": "bytes",
    "Complex": "a complex number",
    "Dict": "a dictionary",
    "FComponent": "part of an f-string",
    "FString": "an f-string",
    "Set": "a set",
    "Tuple": "a tuple",
}
_NOT_IN_A_NAME = frozenset("()[]{};\"'`~# \t\n\r\f\v")
_MARKS = {"quote": "'", "quasiquote": "`"}


def policy_form_text(source: object) -> str | None:
    """Return a Hy form as text, or None if `source` is not a Hy form.

    A leading quote is dropped.

    Parameters
    ----------
    source
        A call, such as ``(fn [similarity] similarity)``, or the several forms of a pack: those that ``hy.read_many``
        returns, or a list whose first form is ``(pack ...)``.

    Returns
    -------
    str or None
        The text of the form, or None.

    Raises
    ------
    InputError
        If the form is deeper or larger than the reader of policies allows, or contains an unsupported value.
    """
    if not is_policy_form(source):
        return None
    forms = [source] if _kind(source) == "Expression" else list(_limited(source))
    flat = " ".join(_printed(_without_quote(form)) for form in forms)
    return "\n\n".join(
        lay_out(_as_spelled(form)) for form in read_forms(Text(flat), forms=MAX_PACK_FORMS)
    )


def is_policy_form(source: object) -> bool:
    """Return True if a value is one form of Hy, or the forms of a pack."""
    if _kind(source) in ("Expression", "Lazy"):
        return True
    first: Any = source[0] if isinstance(source, list | tuple) and source else None
    first = _without_quote(first)
    return _kind(first) == "Expression" and str(next(iter(first), "")) == "pack"


def _limited(forms: Any) -> Iterator[Any]:
    """Yield the forms of a pack, or raise InputError if a pack has too many forms."""
    for number, form in enumerate(forms):
        if number == MAX_PACK_FORMS:
            raise InputError(f"There are more than {MAX_PACK_FORMS:,} forms.")
        yield form


def is_hy_model(value: object) -> bool:
    """Return True if a value is a form of Hy's reader."""
    models: Any = sys.modules.get("hy.models")
    return models is not None and isinstance(value, models.Object)


def _kind(value: object) -> str:
    """Return the class name of a Hy form, such as "Symbol", or an empty string for any other value."""
    return type(value).__name__ if is_hy_model(value) else ""


def _without_quote(form: Any) -> Any:
    """Return a form without its leading quotes."""
    while (
        _kind(form) == "Expression"
        and len(form) == 2
        and _kind(form[0]) == "Symbol"
        and str(form[0]) in _MARKS
    ):
        form = form[1]
    return form


def _printed(form: Any) -> str:
    """Format a form as one line, without recursion.

    A form may be deeper than the stack or contain itself.
    """
    parts: list[str] = []
    waiting: list[tuple[Any, int]] = [(form, 0)]
    count = 0
    while waiting:
        item, depth = waiting.pop()
        if depth < 0:  # a closing bracket
            parts.append(item)
            continue
        count += 1
        if count > MAX_FORMS:
            raise InputError(
                f"This form contains more than {MAX_FORMS:,} forms, the limit of a policy."
            )
        is_call = _kind(item) == "Expression"
        if not is_call and _kind(item) != "List" and type(item) is not list:
            parts.append(f"{_hy_atom(item)} ")
            continue
        if depth == MAX_NESTING:
            raise InputError(
                f"This form is nested deeper than {MAX_NESTING} levels, the limit of a policy."
            )
        parts.append("(" if is_call else "[")
        waiting.append((") " if is_call else "] ", -1))
        waiting.extend((inner, depth + 1) for inner in reversed(list(item)))
    return "".join(parts)


def _hy_atom(item: Any) -> str:
    """Return a symbol, keyword, string or number as text."""
    # Subclasses are converted by the base class, because they may override their text.
    kind = _kind(item)
    if kind in ("Symbol", "Keyword"):
        name = str(item) if kind == "Symbol" else f":{item.name}"
        if not name.strip(":") or not _NOT_IN_A_NAME.isdisjoint(name):
            raise InputError(
                f"A form of a policy contains {describe_value(name)}, which is not a name of the policy language."
            )
        return name
    if kind not in _FOREIGN:
        if isinstance(item, str):
            return _hy_string(str.__str__(item))
        if item is None or isinstance(item, bool | np.bool_):
            return str(item)
        if isinstance(item, numbers.Integral):
            whole = int.__index__(item) if isinstance(item, int) else int(item)
            # The reader refuses this literal, because it is too large.
            return str(whole) if abs(whole) < 10**300 else "1e400"
        if isinstance(item, numbers.Real):
            value = float.__float__(item) if isinstance(item, float) else float(item)
            if math.isfinite(value):
                return repr(value)
    raise InputError(
        f"A form of a policy contains {_FOREIGN.get(kind) or describe_value(item)}, which is not a value "
        "of the policy language. Its values are symbols, keywords, numbers, strings, lists and calls."
    )


def _hy_string(text: str) -> str:
    """Return a string literal with line ends as line feeds."""
    return (
        write_data(text)
        if "\r" not in text
        else write_data(text.replace("\r\n", "\n").replace("\r", "\n"))
    )


def _as_spelled(form: Form) -> Form:
    """Return a form in which floats and strings are symbols with their spelling, so that it is written unchanged.

    Therefore the source hash of the text does not change.
    """
    if form.kind == "float":
        return form._replace(kind="symbol", text=repr(form.number))
    if form.kind == "str":
        return form._replace(kind="symbol", text=write_data(form.text))
    return form._replace(items=tuple(map(_as_spelled, form.items)))
