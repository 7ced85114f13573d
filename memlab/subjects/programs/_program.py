"""Operations as text, read and checked whole before any is run. Data: nothing of it is ever executed as code."""

from __future__ import annotations

import hashlib
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
from memlab.kernel.language import Form, Text, compile_policy, read_forms, slot_of
from memlab.kernel.schema import KINDS, RELATIONS
from memlab.subjects.programs import _arguments as read
from memlab.subjects.programs._table import OPERATIONS, Operation

__all__ = ["MAX_CHARACTERS", "MAX_OPERATIONS", "Call", "Program", "checked_operations", "read_program"]

MAX_CHARACTERS = 1_000_000
MAX_OPERATIONS = 1_000
_MAX_OF_A_MEMORY = 100
_CHARACTERS_OF_A_MEMORY = 20_000
_FORMS = 100_000
_CLOSED = {read.kind: KINDS, read.relation: RELATIONS}
_NOTHING = ("nil", "None")


@dataclass(frozen=True)
class Call:
    """One operation with its arguments by name; what was left out is None."""

    name: str
    operation: Operation
    arguments: dict[str, Any]
    source: str
    line: int
    _form: Form = field(repr=False)
    _text: Text = field(repr=False)
    _places: dict[str, Form] = field(default_factory=dict, repr=False)
    """The form of each argument that was given."""

    def error(self, kind: type[PolicyError], message: str, parameter: str | None = None) -> PolicyError:
        """An error with its caret under this operation, or under one of its arguments."""
        form = self._form if parameter is None else self._places.get(parameter, self._form)
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
            for name, reader in call.operation.parameters.items():
                if reader not in (read.memory_id, read.ids):
                    continue
                value = call.arguments[name]
                wrong = next((id for id in (value if isinstance(value, list) else [value]) if id > count), None)
                if wrong is not None:
                    known = f"There are {count}" if count else "There is none yet"
                    raise call.error(PolicyNameError, f"No memory has the id {wrong}. {known}.", name)
            count += call.name in ("remember", "fact")

    def check_words(self) -> None:
        """PolicyNameError for a kind or a relation that has no name here, for a lab that takes no others."""
        for call in self.calls:
            for name, reader in call.operation.parameters.items():
                words = _CLOSED.get(reader)
                value = call.arguments[name]
                if words is not None and value is not None and value not in words:
                    raise call.error(PolicyNameError, str(UnknownName(name, value, words)), name)


def read_program(
    source: str, *, file: str | None = None, limit: int = MAX_OPERATIONS, characters: int = MAX_CHARACTERS
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
    if len(forms) > limit:
        raise text.error(PolicyLimitError, f"There are more than {limit:,} operations.", forms[limit])
    calls = tuple(_call(form, text) for form in forms)
    return Program(calls, source, hashlib.sha256(source.encode()).hexdigest())


def checked_operations(sources: Sequence[str | None]) -> None:
    """A PolicyError for the first of these texts that a memory may not hold: it is checked when it is remembered."""
    for row, source in enumerate(sources):
        if source is not None:
            read_program(
                source,
                file=f"row {row}, field operations",
                limit=_MAX_OF_A_MEMORY,
                characters=_CHARACTERS_OF_A_MEMORY,
            )


def _call(form: Form, text: Text) -> Call:
    if form.kind != "call" or not form.head:
        raise text.error(PolicySyntaxError, 'An operation is a form such as (recall "tabs?").', form)
    name, given = form.head, form.items[1:]
    operation = OPERATIONS.get(name)
    if operation is None:
        message = f'There is no operation "{name:.60}". {did_you_mean(name, OPERATIONS)}'
        raise text.error(PolicyNameError, message, form.items[0])
    places = _placed(name, operation, given, form, text)
    arguments: dict[str, Any] = dict.fromkeys(operation.parameters)
    for parameter, item in places.items():
        if parameter in operation.optional and item.kind == "symbol" and item.text in _NOTHING:
            continue
        arguments[parameter] = operation.parameters[parameter](parameter, item, text)
    if name == "set-policy-fn":
        _check_policy(arguments, given[1], text)
    if name == "associate" and arguments["from"] == arguments["to"]:
        raise text.error(PolicyTypeError, f"Memory {arguments['from']} cannot be joined to itself.", given[1])
    return Call(
        name, operation, arguments, text.source[form.start : form.stop], text.line(form.start), form, text, places
    )


def _placed(name: str, operation: Operation, given: Sequence[Form], form: Form, text: Text) -> dict[str, Form]:
    """The form of each parameter: in order, then optional ones by name, as in ``:horizon "1d"``."""
    parameters = list(operation.parameters)
    fewest, most = len(operation.required), len(parameters)
    optional = "".join(f" [{one}]" for one in operation.optional)
    shape = f"({' '.join([name, *operation.required])}{optional})"
    named = next((at for at, item in enumerate(given) if _is_name(item, operation)), len(given))
    if named > most:
        count = "nothing" if not most else f"{most}" if most == fewest else f"{fewest} to {most}"
        raise text.error(PolicyTypeError, f"{name} takes {count}: {shape}.", given[most])
    if named < fewest:
        raise text.error(PolicyTypeError, f"{parameters[named]} is missing: {shape}.", form)
    places = dict(zip(parameters, given[:named], strict=False))
    rest = list(given[named:])
    for key, value in zip(rest[::2], [*rest[1::2], None], strict=False):
        if not _is_name(key, operation):
            expected = f"After :{rest[0].text} come names and values, such as :{rest[0].text} VALUE: {shape}."
            raise text.error(PolicyTypeError, expected, key)
        if value is None:
            raise text.error(PolicyTypeError, f":{key.text} has no value: {shape}.", key)
        if key.text in places:
            raise text.error(PolicyTypeError, f"{key.text} is given twice: {shape}.", key)
        places[key.text] = value
    return places


def _is_name(item: Form, operation: Operation) -> bool:
    """Whether a form names an optional parameter; other keywords are words, as in ``(feedback 1 :success)``."""
    return item.kind == "keyword" and item.text in operation.optional


def _check_policy(arguments: dict[str, Any], form: Form, text: Text) -> None:
    from memlab.kernel.policies import slot_named

    slot, code = arguments["name"], arguments["code"]
    try:
        compile_policy(code, slot_named(slot).signature, name=slot)
        named = slot_of(code)
    except PolicyError as error:
        raise text.error(type(error), f"The policy {slot} does not hold. {error.message}", form) from None
    if named not in ("", slot):
        raise text.error(PolicyNameError, f"This is a policy of {named}, and {slot} is to be filled.", form)
