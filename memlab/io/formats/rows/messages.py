"""Messages that a caller gives: who speaks, what is said, which tools are called and what they gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memlab.errors import InputError, UnknownName
from memlab.io.formats.rows.content import ROLES, flat, pieces, plain_object, role_word
from memlab.io.formats.rows.notes import Notes
from memlab.kernel.base.arguments import Called, shown
from memlab.kernel.schema import ROLES as WORDS
from memlab.kernel.schema import role_of

__all__ = ["Message", "messages_of"]

_NAMES = frozenset(ROLES)
_SILENT = frozenset(("content", "tool_calls", "function_call"))
"""What a message without words has."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its role, what is said, when and by whom if that is known, and the tools that it calls.

    ``calls`` are their names and ``arguments`` what each is called with, as text. ``tool`` is the name of the tool
    whose result it is, and ``failed`` says that the message itself calls that an error. ``speaker`` is the name of a
    person among several, of whom "I" speaks then. ``place`` numbers what was given: a message of several parts may
    become several, as each result of a tool is one of its own.
    """

    role: str
    text: str
    at: Any = None
    calls: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    tool: str | None = None
    failed: bool = False
    speaker: str | None = None
    place: int = 0


def messages_of(given: Any, role: str | None = None) -> list[Message]:
    """A text, a message as the protocols write it, or several of either; ``role`` is whose it is where nothing says so.

    InputError that names the message which cannot be read, or that says nothing of its role where none is given;
    UnknownName for a role.

    >>> [(one.role, one.text) for one in messages_of(["Hi", {"role": "ai", "content": "Hello"}], "user")]
    [('user', 'Hi'), ('assistant', 'Hello')]
    """
    if role is not None and role not in WORDS:
        raise UnknownName("role", role, WORDS)
    if isinstance(given, str | Mapping):
        given = [given]
    if not isinstance(given, Iterable):
        raise InputError(
            f"Messages are a text, or a list of texts and of dicts with role and content, not {shown(given)}."
        )
    several = Called(list, "messages")(given)
    notes = Notes("messages")
    return [found for place, one in enumerate(several) for found in _messages(one, place, role, notes)]


def _messages(one: object, place: int, role: str | None, notes: Notes) -> list[Message]:
    if isinstance(one, str):
        one = {"content": one}
    entry = one if isinstance(one, Mapping) else Called(plain_object, "messages")(one)
    if entry is None:
        raise InputError(f"Message {place} is {shown(one)}, not a text or a dict with role and content.")
    entry = flat(entry)
    who = entry.get("speaker", entry.get("name"))
    person = who if isinstance(who, str) and who.strip() and role_of(who, None) == "other" else None
    said_by = _role(entry, place, role if person or not isinstance(who, str) else role_of(who, None))
    calls = entry.get("tool_calls")
    if calls is not None and not isinstance(calls, list | tuple):
        raise InputError(f"The tool_calls of message {place} are a list, not {shown(calls)}.")
    common: dict[str, Any] = {"at": entry.get("at"), "place": place}
    found: list[Message] = []
    texts, names, arguments = [], [], []
    for piece in pieces(entry, _content(entry, place), notes):
        if piece.kind == "said":
            texts.append(piece.text)
        elif piece.kind == "result":
            found.append(Message("tool", _text(piece.text), failed=piece.failed, **common))
        else:
            names += [piece.name] if piece.name else []
            arguments += [piece.text] if piece.text else []
    if texts or names or arguments or not found:
        tool = entry.get("name") if said_by == "tool" else None
        common |= {
            "calls": tuple(names),
            "arguments": tuple(arguments),
            "tool": tool if isinstance(tool, str) else None,
        }
        speaker = person if said_by == "user" else None
        found.append(Message(said_by, _text("\n".join(texts)), speaker=speaker, **common))
    return found


def _role(entry: Mapping[str, Any], place: int, otherwise: str | None) -> str:
    if "role" in entry:
        if (word := role_word(entry["role"])) is None:
            raise UnknownName(f"role of message {place}", shown(entry["role"]), WORDS)
        return word
    word = otherwise
    if not _NAMES.isdisjoint(entry):
        word = next((word for name in ROLES if (word := role_word(entry.get(name)))), otherwise)
    if word is None:
        raise InputError(f'Message {place} is an object with "role" and "content"; it has no role.')
    return word


def _content(entry: Mapping[str, Any], place: int) -> object:
    content = next((entry[name] for name in ("content", "text", "parts") if entry.get(name) is not None), None)
    if isinstance(content, list | tuple):
        for part in content:
            if not isinstance(part, str | Mapping):
                raise InputError(f"A part of message {place} is {shown(part)}, not a dict with a type.")
    elif not isinstance(content, str | Mapping) and not (
        content is None and ("content" in entry or "tool_calls" in entry)
    ):
        raise InputError(f"Message {place} has no text: its content is {shown(content)}.")
    return content


def _text(text: str) -> str:
    """A text without words is empty."""
    return text if text.strip() else ""
