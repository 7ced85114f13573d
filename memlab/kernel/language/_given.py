"""Policies that a caller gives: as text, as a Hy form, or as a policy that was compiled before.

A form is printed and never evaluated. What is read afterwards is text, under the rules and limits of any text.
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from memlab.errors import InputError
from memlab.kernel.base.arguments import shown
from memlab.kernel.language._limits import MAX_FORMS, MAX_NESTING, MAX_PACK_FORMS
from memlab.kernel.language._policy import Policy
from memlab.kernel.language._print import lay_out
from memlab.kernel.language._reader import Form, Text, read_forms
from memlab.kernel.language._writer import write_data

__all__ = ["policy_form_text", "policy_parts"]

_EXPECTED = (
    "A policy is a text, a Hy form such as hy.read(...), or a compiled policy such as "
    'load_pack("companion").policies["recall-score"]'
)
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


def policy_parts(source: object) -> tuple[str, tuple[str, ...], dict[str, float]]:
    """Return the text, the helpers and the parameter values of a policy that a caller gives.

    Parameters
    ----------
    source
        The text of a policy, a form that Hy's reader made (a quote in front is removed), or a compiled ``Policy``.
        A form is written as text and then read like any other text; none of it is evaluated.

    Returns
    -------
    tuple of str, tuple of str, dict of str to float
        The text; the ``defn`` forms that it was compiled with; the values of parameters that differ from their
        defaults. A text and a form have no helpers and no values.

    Raises
    ------
    InputError
        If ``source`` is none of the three, or a form is nested too deep, too large, or holds what is no value of the
        dialect.

    Examples
    --------
    >>> policy_parts("(fn [similarity] similarity)")
    ('(fn [similarity] similarity)', (), {})
    """
    if isinstance(source, str) and not _is_model(source):
        text = str.__str__(source)
        return (text.lstrip()[1:] if text.lstrip().startswith("'(") else text), (), {}
    if isinstance(source, Policy):
        if source._of is not None:
            raise InputError(f"{source.name} is one field of a record policy: give the whole policy.")
        values = {param.name: param.value for param in source.params.values() if param.value != param.default}
        return source.source, source.helpers, values
    text_of_form = policy_form_text(source)
    if text_of_form is None:
        raise InputError(f"{_EXPECTED}; not {shown(source)}.")
    return text_of_form, (), {}


def policy_form_text(source: object) -> str | None:
    """Return a Hy form as text without a quote in front, or None if ``source`` is no Hy form.

    A form is a call, such as ``(fn [similarity] similarity)``, or what ``hy.read_many`` returns: several of them.

    Raises
    ------
    InputError
        If the form is deeper or larger than the reader of policies allows, or holds what is no value of the dialect.
    """
    models: Any = sys.modules.get("hy.models")  # whoever holds a form has imported it
    if models is None or not isinstance(source, models.Expression | models.Lazy):
        return None
    forms = [source] if isinstance(source, models.Expression) else list(_limited(source))
    flat = " ".join(_printed(_without_quote(form)) for form in forms)
    return "\n\n".join(lay_out(_as_spelled(form)) for form in read_forms(Text(flat), forms=MAX_PACK_FORMS))


def _limited(forms: Any) -> Iterator[Any]:
    for number, form in enumerate(forms):
        if number == MAX_PACK_FORMS:
            raise InputError(f"There are more than {MAX_PACK_FORMS:,} forms.")
        yield form


def _is_model(value: object) -> bool:
    models: Any = sys.modules.get("hy.models")
    return models is not None and isinstance(value, models.Object)


def _kind(value: object) -> str:
    return type(value).__name__ if _is_model(value) else ""


def _without_quote(form: Any) -> Any:
    while _kind(form) == "Expression" and len(form) == 2 and _kind(form[0]) == "Symbol" and str(form[0]) in _MARKS:
        form = form[1]
    return form


def _printed(form: Any) -> str:
    """Return a form as one line. Not recursive, because a form may be deeper than the stack, or hold itself."""
    parts: list[str] = []
    waiting: list[tuple[Any, int]] = [(form, 0)]
    count = 0
    while waiting:
        item, depth = waiting.pop()
        if depth < 0:  # the bracket that closes a form
            parts.append(item)
            continue
        count += 1
        if count > MAX_FORMS:
            raise InputError(f"This form holds more than {MAX_FORMS:,} forms; a policy is shorter.")
        is_call = _kind(item) == "Expression"
        if not is_call and _kind(item) != "List" and type(item) is not list:
            parts.append(f"{_atom(item)} ")
            continue
        if depth == MAX_NESTING:
            raise InputError(f"This form is nested deeper than {MAX_NESTING} levels; a policy is shallower.")
        parts.append("(" if is_call else "[")
        waiting.append((") " if is_call else "] ", -1))
        waiting.extend((inner, depth + 1) for inner in reversed(list(item)))
    return "".join(parts)


def _atom(item: Any) -> str:
    """Return a symbol, keyword, string or number as text."""
    kind = _kind(item)
    if kind in ("Symbol", "Keyword"):
        name = str(item) if kind == "Symbol" else f":{item.name}"
        if not name.strip(":") or not _NOT_IN_A_NAME.isdisjoint(name):
            raise InputError(f"A form of a policy holds {shown(name)}, which is no name of the dialect.")
        return name
    if kind not in _FOREIGN:
        if isinstance(item, str):
            return _string(str.__str__(item))  # a subclass may say something else of itself
        if item is None or isinstance(item, bool | np.bool_):
            return str(item)
        if isinstance(item, numbers.Integral):
            whole = int.__index__(item) if isinstance(item, int) else int(item)
            return str(whole) if abs(whole) < 10**300 else "1e400"  # refused by its size when it is read
        if isinstance(item, numbers.Real):
            return repr(float.__float__(item) if isinstance(item, float) else float(item))
    raise InputError(
        f"A form of a policy holds {_FOREIGN.get(kind) or shown(item)}, which is no value of the dialect. Its values "
        "are symbols, keywords, numbers, strings, lists and calls."
    )


def _string(text: str) -> str:
    return write_data(text) if "\r" not in text else write_data(text.replace("\r\n", "\n").replace("\r", "\n"))


def _as_spelled(form: Form) -> Form:
    """Return a form whose numbers and strings are laid out as they are spelled, so that the hash stays."""
    if form.kind == "float":
        return form._replace(kind="symbol", text=repr(form.number))
    if form.kind == "str":
        return form._replace(kind="symbol", text=write_data(form.text))
    return form._replace(items=tuple(map(_as_spelled, form.items)))
