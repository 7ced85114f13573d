"""Messages as the protocols write them and as callers give them: texts, parts, calls of tools and their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from memlab.errors import InputError, UnknownName
from memlab.io.formats.lines import Notes
from memlab.kernel.base.arguments import Called, describe_value
from memlab.kernel.schema import ROLES as WORDS
from memlab.kernel.schema import infer_role

__all__ = [
    "ROLES",
    "Message",
    "Piece",
    "flat",
    "is_message",
    "messages_of",
    "pieces",
    "plain_object",
    "role_word",
]

_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "gpt": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "tool_result": "tool",
}
ROLES = ("role", "sender", "author", "type", "from")
"""Where a message says who speaks."""
_SAID = frozenset(("content", "text", "parts", "value", "tool_calls"))
_ENVELOPES = frozenset(("kwargs", "data", "message", "author"))
OBJECT = (dict, Mapping)
"""What has names: dicts first, as they are asked for often and known sooner."""
_DEEPEST = 8
_CALLING = frozenset(("tool_calls", "additional_kwargs", "function_call"))
"""Where a message has calls beside its content."""
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "function_call")
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "thoughts", "reasoning_recap")


class Piece(NamedTuple):
    """A part of a message: words, a call of a tool by ``name`` with ``text`` as its arguments, or a tool's result."""

    kind: Literal["said", "call", "result"]
    text: str
    name: str = ""
    failed: bool = False

    @property
    def words(self) -> str:
        """It as a text."""
        return f"{self.name or 'tool'}({self.text})" if self.kind == "call" else self.text


def role_word(value: object) -> str | None:
    """One of ``memlab.kernel.schema.ROLES`` for what a protocol calls it; None for any other word.

    >>> role_word("human"), role_word("HumanMessage"), role_word("Ida")
    ('user', 'user', None)
    """
    if not isinstance(value, str):
        return None
    if value in _ROLES:
        return _ROLES[value]
    word = value.strip().lower()
    return _ROLES.get(word) or _ROLES.get(word.removesuffix("chunk").removesuffix("message"))


def plain_object(message: object) -> Mapping[str, Any] | None:
    """An object of a client's library as a dict: what has ``model_dump``, or a ``type`` and ``content``."""
    dump = getattr(message, "model_dump", None)
    if callable(dump):
        dumped = dump()
        return dumped if isinstance(dumped, OBJECT) else None
    if hasattr(message, "content") and (hasattr(message, "type") or hasattr(message, "role")):
        names = ("type", "role", "content", "name", "id", "tool_calls", "additional_kwargs")
        return {
            name: getattr(message, name)
            for name in names
            if getattr(message, name, None) is not None
        }
    return None


def flat(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message without its envelope: LangChain's two forms, a transcript's line, an author with a role."""
    if _ENVELOPES.isdisjoint(entry):
        return entry
    kwargs, data, inner, author = (
        entry.get("kwargs"),
        entry.get("data"),
        entry.get("message"),
        entry.get("author"),
    )
    path = entry.get("id")
    if isinstance(kwargs, OBJECT) and "lc" in entry and isinstance(path, list) and path:
        return {"type": path[-1], **kwargs}
    if isinstance(data, OBJECT) and role_word(entry.get("type")):
        return {**data, "type": entry["type"]}
    if isinstance(inner, OBJECT) and (
        "role" in inner or "content" in inner or isinstance(inner.get("author"), dict)
    ):
        opened = {**entry, **inner}
        if "message" not in inner:
            del opened["message"]
        return flat(opened)
    if isinstance(author, OBJECT):
        return {**entry, "author": author.get("role"), "name": author.get("name")}
    return entry


def is_message(entry: Mapping[str, Any]) -> bool:
    """Whether somebody said this, a person or a program."""
    if role_word(entry.get("role")) is None and not any(
        role_word(entry.get(name)) for name in ROLES
    ):
        return False
    return not _SAID.isdisjoint(entry)


def pieces(message: Mapping[str, Any], content: object, notes: Notes) -> Iterator[Piece]:
    """What a message says, part by part, and the tools that it calls."""
    yield from _content(content, notes, 0)
    if _CALLING.isdisjoint(message):
        return
    calls = message.get("tool_calls") or ()
    extra = message.get("additional_kwargs")
    if not calls and isinstance(extra, OBJECT):
        calls = extra.get("tool_calls") or ()
    for call in (
        *(calls if isinstance(calls, (list, tuple)) else ()),
        message.get("function_call"),
    ):
        if isinstance(call, OBJECT):
            yield _call(call)


def _content(content: object, notes: Notes, depth: int) -> Iterator[Piece]:
    if isinstance(content, str):
        yield Piece("said", content)
    elif depth > _DEEPEST:
        notes.left_out["part nested too deeply"] += 1
    elif isinstance(content, (list, tuple)):
        for part in content:
            yield from _content(part, notes, depth + 1)
    elif isinstance(content, OBJECT):
        yield from _part(content, notes, depth)


def _part(part: Mapping[str, Any], notes: Notes, depth: int) -> Iterator[Piece]:
    kind = part.get("type") or part.get("content_type") or "text"
    text = part.get("text")
    if kind in _CALLS:
        yield _call(part)
    elif isinstance(kind, str) and kind.endswith(("tool_result", "call_output")):
        inner = part.get("content", part.get("output"))
        said = "\n".join(
            piece.text for piece in _content(inner, notes, depth + 1) if piece.text.strip()
        )
        yield Piece("result", said, failed=part.get("is_error") is True)
    elif kind in _THOUGHTS:
        notes.left_out["thinking"] += 1
    elif isinstance(text, str):
        yield Piece("said", text)
    elif isinstance(text, OBJECT) and isinstance(text.get("value"), str):
        yield Piece("said", text["value"])
    elif isinstance(part.get("parts"), list):
        yield from _content(part["parts"], notes, depth + 1)
    elif isinstance(part.get("result"), str):
        yield Piece("said", part["result"])
    else:
        notes.left_out[f"part of type {str(kind)[:40]}"] += 1


def _call(call: Mapping[str, Any]) -> Piece:
    """A call of a tool: its name, and what it was given."""
    function = call.get("function")
    given = function if isinstance(function, OBJECT) else call
    arguments = next(
        (given[name] for name in ("arguments", "input", "args") if given.get(name) is not None), ""
    )
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments, enc_hook=str).decode()
    name = given.get("name")
    return Piece("call", arguments, name if isinstance(name, str) else "")


# -- messages that a caller gives -------------------------------------------------------------------------------------

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
            f"Messages are a text, or a list of texts and of dicts with role and content, not {describe_value(given)}."
        )
    several = Called(list, "messages")(given)
    notes = Notes("messages")
    return [
        found for place, one in enumerate(several) for found in _messages(one, place, role, notes)
    ]


def _messages(one: object, place: int, role: str | None, notes: Notes) -> list[Message]:
    if isinstance(one, str):
        one = {"content": one}
    entry = one if isinstance(one, Mapping) else Called(plain_object, "messages")(one)
    if entry is None:
        raise InputError(
            f"Message {place} is {describe_value(one)}, not a text or a dict with role and content."
        )
    entry = flat(entry)
    who = entry.get("speaker", entry.get("name"))
    person = (
        who if isinstance(who, str) and who.strip() and infer_role(who, None) == "other" else None
    )
    said_by = _role(
        entry, place, role if person or not isinstance(who, str) else infer_role(who, None)
    )
    calls = entry.get("tool_calls")
    if calls is not None and not isinstance(calls, list | tuple):
        raise InputError(
            f"The tool_calls of message {place} are a list, not {describe_value(calls)}."
        )
    common: dict[str, Any] = {"at": entry.get("at"), "place": place}
    found: list[Message] = []
    texts, names, arguments = [], [], []
    for piece in pieces(entry, _checked_content(entry, place), notes):
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
            raise UnknownName(f"role of message {place}", describe_value(entry["role"]), WORDS)
        return word
    word = otherwise
    if not _NAMES.isdisjoint(entry):
        word = next((word for name in ROLES if (word := role_word(entry.get(name)))), otherwise)
    if word is None:
        raise InputError(f'Message {place} is an object with "role" and "content"; it has no role.')
    return word


def _checked_content(entry: Mapping[str, Any], place: int) -> object:
    content = next(
        (entry[name] for name in ("content", "text", "parts") if entry.get(name) is not None), None
    )
    if isinstance(content, list | tuple):
        for part in content:
            if not isinstance(part, str | Mapping):
                raise InputError(
                    f"A part of message {place} is {describe_value(part)}, not a dict with a type."
                )
    elif not isinstance(content, str | Mapping) and not (
        content is None and ("content" in entry or "tool_calls" in entry)
    ):
        raise InputError(f"Message {place} has no text: its content is {describe_value(content)}.")
    return content


def _text(text: str) -> str:
    """A text without words is empty."""
    return text if text.strip() else ""
