"""Operations as text, read and checked whole before any is run. Data: nothing of it is ever executed as code."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memlab.errors import (
    InputError,
    PolicyError,
    PolicyLimitError,
    PolicyNameError,
    PolicySyntaxError,
    PolicyTypeError,
    UnknownName,
    did_you_mean,
)
from memlab.language import Form, Text, compile_policy, read_forms, slot_of
from memlab.operations._declared import OPERATIONS, SLOT_OF, Operation, Parameter

__all__ = ["MOST_CHARACTERS", "MOST_OPERATIONS", "Call", "Program", "checked_operations", "read_program"]

MOST_CHARACTERS = 1_000_000
MOST_OPERATIONS = 1_000
_MOST_OF_A_MEMORY = 100
_CHARACTERS_OF_A_MEMORY = 20_000
_FORMS = 100_000
_TTL = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)([hdwmy])")
_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "m": 30.0, "y": 365.0}
_NOTHING = ("nil", "None")


@dataclass(frozen=True)
class Call:
    """One operation with its arguments by name; what was left out is None."""

    operation: Operation
    arguments: dict[str, Any]
    source: str
    line: int
    _form: Form = field(repr=False)
    _text: Text = field(repr=False)

    @property
    def name(self) -> str:
        return self.operation.name

    def error(self, kind: type[PolicyError], message: str, parameter: str | None = None) -> PolicyError:
        """An error with its caret under this operation, or under one of its arguments."""
        form = self._form
        if parameter is not None:
            place = [known.name for known in self.operation.parameters].index(parameter) + 1
            form = form.items[place] if place < len(form.items) else form
        return self._text.error(kind, message, form)


@dataclass(frozen=True)
class Program:
    """Operations in order, checked. ``hash`` is that of the text."""

    calls: tuple[Call, ...]
    source: str
    hash: str

    def __len__(self) -> int:
        return len(self.calls)

    def check_ids(self, count: int) -> None:
        """PolicyNameError for a memory that will not be there: ``count`` are, and those that the text remembers."""
        for call in self.calls:
            for parameter in call.operation.parameters:
                value = call.arguments[parameter.name]
                if parameter.sort in ("id", "ids") and value is not None:
                    wrong = next((id for id in (value if isinstance(value, list) else [value]) if id > count), None)
                    if wrong is not None:
                        known = f"There are {count}" if count else "There is none yet"
                        raise call.error(PolicyNameError, f"No memory has the id {wrong}. {known}.", parameter.name)
            count += call.name == "remember"


def read_program(
    source: str, *, file: str | None = None, most: int = MOST_OPERATIONS, characters: int = MOST_CHARACTERS
) -> Program:
    """The operations of a text, every name, arity, type and limit checked.

    Raises a PolicyError with line, column and caret: PolicySyntaxError, PolicyNameError, PolicyTypeError or
    PolicyLimitError.

    >>> [call.name for call in read_program('(remember "tabs" "preference" 0.8 "30d") (stats)').calls]
    ['remember', 'stats']
    """
    if not isinstance(source, str):
        raise InputError(f'Operations are a text such as (recall "tabs?"), not {type(source).__name__}.')
    text = Text(source, None, file or "operations")
    forms = read_forms(text, characters=characters, forms=_FORMS)
    if not forms:
        raise text.error(PolicySyntaxError, "There is no operation in the text.", None)
    if len(forms) > most:
        raise text.error(PolicyLimitError, f"There are more than {most:,} operations.", forms[most])
    calls = tuple(_call(form, text) for form in forms)
    return Program(calls, source, hashlib.sha256(source.encode()).hexdigest())


def checked_operations(sources: Sequence[str | None]) -> None:
    """A PolicyError for the first of these texts that a memory may not hold: it is checked when it is remembered."""
    for row, source in enumerate(sources):
        if source is not None:
            read_program(
                source,
                file=f"row {row}, field operations",
                most=_MOST_OF_A_MEMORY,
                characters=_CHARACTERS_OF_A_MEMORY,
            )


def _call(form: Form, text: Text) -> Call:
    if form.kind != "call" or not form.head:
        raise text.error(PolicySyntaxError, 'An operation is a form such as (recall "tabs?").', form)
    operation = OPERATIONS.get(form.head)
    if operation is None:
        message = f'There is no operation "{form.head:.60}". {did_you_mean(form.head, OPERATIONS)}'
        raise text.error(PolicyNameError, message, form.items[0])
    given, parameters = form.items[1:], operation.parameters
    if len(given) > len(parameters):
        message = f"{operation.name} takes {_count(operation)}: {operation.shape}."
        raise text.error(PolicyTypeError, message, given[len(parameters)])
    if len(given) < operation.least:
        missing = parameters[len(given)].name
        raise text.error(PolicyTypeError, f"{missing} is missing: {operation.shape}.", form)
    arguments: dict[str, Any] = {parameter.name: None for parameter in parameters}
    for parameter, item in zip(parameters, given, strict=False):
        if parameter.optional and item.kind == "symbol" and item.text in _NOTHING:
            continue
        arguments[parameter.name] = _READ[parameter.sort](parameter, item, text)
    if operation.name == "set-policy-fn":
        _check_policy(arguments, given[1], text)
    if operation.name == "associate" and arguments["from"] == arguments["to"]:
        raise text.error(PolicyTypeError, f"Memory {arguments['from']} cannot be joined to itself.", given[1])
    return Call(operation, arguments, text.source[form.start : form.stop], text.line(form.start), form, text)


def _count(operation: Operation) -> str:
    most, least = len(operation.parameters), operation.least
    if not most:
        return "nothing"
    return f"{most}" if most == least else f"{least} to {most}"


# -- one reader a sort of argument ------------------------------------------------------------------------------------


def _text(parameter: Parameter, form: Form, text: Text) -> str:
    from memlab.memory import checked_text

    if form.kind != "str":
        raise _wrong(parameter, 'a text in quotes, such as "tabs"', form, text)
    try:
        return checked_text(form.text)
    except InputError as error:
        raise text.error(PolicyTypeError, str(error), form) from None


def _word(parameter: Parameter, form: Form, text: Text) -> str:
    if form.kind not in ("str", "symbol", "keyword"):
        raise _wrong(parameter, f"one of {', '.join(parameter.words[:8])}", form, text)
    if form.text not in parameter.words:
        raise text.error(PolicyNameError, str(UnknownName(parameter.name, form.text[:60], parameter.words)), form)
    return form.text


def _number(parameter: Parameter, form: Form, text: Text) -> float:
    if form.kind not in ("int", "float"):
        raise _wrong(parameter, "a number", form, text)
    if not parameter.low <= form.number <= parameter.high:
        bounds = (
            f"in {parameter.low:g}..{parameter.high:g}"
            if parameter.high < float("inf")
            else f"at {parameter.low:g} or above"
        )
        raise text.error(PolicyTypeError, f"{parameter.name} lies {bounds}, not at {form.number:g}.", form)
    return form.number


def _whole(parameter: Parameter, form: Form, text: Text) -> int:
    if form.kind != "int":
        raise _wrong(parameter, "a whole number", form, text)
    return int(_number(parameter, form, text))


def _id(parameter: Parameter, form: Form, text: Text) -> int:
    if form.kind != "int" or form.number < 1:
        raise _wrong(parameter, "the id of a memory, a whole number from 1 on", form, text)
    return int(form.number)


def _ids(parameter: Parameter, form: Form, text: Text) -> list[int]:
    items = form.items if form.kind == "list" else (form,)
    if not items:
        raise _wrong(parameter, "an id or a list such as [1 2]", form, text)
    return [_id(parameter, item, text) for item in items]


def _texts(parameter: Parameter, form: Form, text: Text) -> list[str]:
    if form.kind == "call" and form.head == "quote" and len(form.items) == 2 and form.items[1].kind == "call":
        items = form.items[1].items
    elif form.kind == "call" and form.head == "list":
        items = form.items[1:]
    elif form.kind == "list":
        items = form.items
    else:
        raise _wrong(parameter, 'a list such as ["ci" "release"]', form, text)
    for item in items:
        if item.kind not in ("str", "symbol", "keyword") or not 0 < len(item.text) <= 1000:
            raise _wrong(parameter, 'a list of texts such as ["ci" "release"]', item, text)
    return [item.text for item in items]


def _ttl(parameter: Parameter, form: Form, text: Text) -> float | None:
    if form.kind in ("str", "symbol", "keyword") and form.text == "perpetual":
        return None
    found = _TTL.fullmatch(form.text) if form.kind == "str" else None
    days = float(found[1]) * _DAYS[found[2]] if found else 0.0
    if not days:
        raise _wrong(parameter, '"30d" (h, d, w, m or y) or "perpetual"', form, text)
    return days


def _slot(parameter: Parameter, form: Form, text: Text) -> str:
    from memlab.policies import SLOTS

    if form.kind not in ("str", "symbol", "keyword"):
        raise _wrong(parameter, "the name of a policy, such as recall-score", form, text)
    name = SLOT_OF.get(form.text, form.text)
    if name not in SLOTS:
        raise text.error(PolicyNameError, str(UnknownName("policy slot", form.text[:60], (*SLOTS, *SLOT_OF))), form)
    return name


def _code(parameter: Parameter, form: Form, text: Text) -> str:
    if form.kind == "str":
        return form.text
    if form.kind == "call" and form.head == "quote" and len(form.items) == 2:
        form = form.items[1]
    if form.kind != "call":
        raise _wrong(parameter, "a policy such as (fn [similarity] similarity)", form, text)
    return text.source[form.start : form.stop]


def _wrong(parameter: Parameter, wanted: str, form: Form, text: Text) -> PolicyError:
    return text.error(PolicyTypeError, f"{parameter.name} is {wanted}.", form)


def _check_policy(arguments: dict[str, Any], form: Form, text: Text) -> None:
    from memlab.policies import slot_named

    slot, code = arguments["name"], arguments["code"]
    try:
        compile_policy(code, slot_named(slot).signature, name=slot)
        named = slot_of(code)
    except PolicyError as error:
        raise text.error(type(error), f"The policy {slot} does not hold. {error.message}", form) from None
    if named not in ("", slot):
        raise text.error(PolicyNameError, f"This is a policy of {named}, and {slot} is to be filled.", form)


_READ = {
    "text": _text,
    "word": _word,
    "share": _number,
    "number": _number,
    "days": _number,
    "count": _whole,
    "id": _id,
    "ids": _ids,
    "texts": _texts,
    "ttl": _ttl,
    "slot": _slot,
    "code": _code,
}
