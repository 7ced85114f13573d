"""What may be given to be extracted from: a text, or messages with a role, in the forms that agents keep them in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memlab.arguments import shown
from memlab.errors import InputError, UnknownName
from memlab.schema import ROLES, role_of
from memlab.state import checked_text

__all__ = ["Message", "messages_of"]

_ROLE_OF = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool"}


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its role, what is said, when and by whom if that is known, and the tools that it calls by name.

    ``speaker`` is the name of a person among several, of whom "I" speaks then. ``tool`` is the name of the tool whose
    result it is, and ``failed`` says that the message itself calls that an error.
    """

    role: str
    text: str
    at: Any = None
    calls: tuple[str, ...] = ()
    tool: str | None = None
    failed: bool = False
    speaker: str | None = None


def messages_of(given: Any, role: str) -> list[Message]:
    """A text, a mapping with ``role`` and ``content`` (or ``text``), or several of either.

    A content may be a list of parts, as Anthropic has it, and a message may have ``tool_calls``, as OpenAI has it.
    InputError that names the message which cannot be read; UnknownName for a role.
    """
    if role not in ROLES:
        raise UnknownName("role", role, ROLES)
    if isinstance(given, str | Mapping):
        given = [given]
    if not isinstance(given, Iterable):
        raise InputError(
            f"Messages are a text, or a list of texts and of dicts with role and content, not {shown(given)}."
        )
    try:
        several = list(given)
    except Exception as error:
        raise InputError(f"The messages cannot be read: {type(error).__name__}.") from error
    return [found for number, one in enumerate(several) for found in _message(one, number, role)]


def _message(one: object, number: int, role: str) -> list[Message]:
    if isinstance(one, str):
        return [Message(role, _text(one, number))]
    if not isinstance(one, Mapping):
        raise InputError(f"Message {number} is {shown(one)}, not a text or a dict with role and content.")
    who = one.get("speaker", one.get("name"))
    person = who if isinstance(who, str) and who.strip() and role_of(who, None) == "other" else None
    given = one.get("role", role if person or not isinstance(who, str) else role_of(who, None))
    name = _ROLE_OF.get(given, given) if isinstance(given, str) else given
    if name not in ROLES:
        raise UnknownName(f"role of message {number}", given, ROLES)
    content = one.get("content", one.get("text"))
    tool = one.get("name") if name == "tool" else None
    calls = tuple(_names_of(one.get("tool_calls")))
    if isinstance(content, list | tuple):
        return _parts(content, number, name, one.get("at"), calls)
    if content is None and calls:
        content = ""
    if not isinstance(content, str):
        raise InputError(f"Message {number} has no text: its content is {shown(content)}.")
    speaker = person if name == "user" else None
    text = _text(content, number)
    return [Message(name, text, one.get("at"), calls, tool if isinstance(tool, str) else None, speaker=speaker)]


def _parts(
    parts: list[Any] | tuple[Any, ...], number: int, role: str, at: Any, calls: tuple[str, ...]
) -> list[Message]:
    """A content of several parts: its texts as one message, and each result of a tool as one of its own."""
    texts: list[str] = []
    results: list[Message] = []
    for part in parts:
        if not isinstance(part, Mapping):
            raise InputError(f"A part of message {number} is {shown(part)}, not a dict with a type.")
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif part.get("type") == "tool_use" and isinstance(part.get("name"), str):
            calls = (*calls, part["name"])
        elif part.get("type") == "tool_result":
            inside = part.get("content")
            said = inside if isinstance(inside, str) else " ".join(_texts(inside))
            results.append(Message("tool", _text(said, number), at, failed=part.get("is_error") is True))
    return [*results, *([Message(role, _text("\n".join(texts), number), at, calls)] if texts or calls else [])]


def _texts(parts: object) -> list[str]:
    if not isinstance(parts, list | tuple):
        return []
    return [part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str)]


def _names_of(calls: object) -> list[str]:
    """The names of called functions; what has none is left out."""
    found = []
    for call in calls if isinstance(calls, list | tuple) else ():
        function = call.get("function", call) if isinstance(call, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(name, str) and name:
            found.append(name)
    return found


def _text(text: str, number: int) -> str:
    """The text, checked as ``remember`` checks it; an empty one is allowed, as nothing is extracted of it."""
    return checked_text(text, where=f"message {number}") if text.strip() else ""
