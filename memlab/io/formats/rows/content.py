"""The contents of messages as the protocols write them: texts, parts, calls of tools and their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from memlab.io.formats.rows.notes import Notes

__all__ = ["ROLES", "Piece", "flat", "is_message", "pieces", "plain_object", "role_word"]

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
        return {name: getattr(message, name) for name in names if getattr(message, name, None) is not None}
    return None


def flat(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message without its envelope: LangChain's two forms, a transcript's line, an author with a role."""
    if _ENVELOPES.isdisjoint(entry):
        return entry
    kwargs, data, inner, author = entry.get("kwargs"), entry.get("data"), entry.get("message"), entry.get("author")
    path = entry.get("id")
    if isinstance(kwargs, OBJECT) and "lc" in entry and isinstance(path, list) and path:
        return {"type": path[-1], **kwargs}
    if isinstance(data, OBJECT) and role_word(entry.get("type")):
        return {**data, "type": entry["type"]}
    if isinstance(inner, OBJECT) and ("role" in inner or "content" in inner or isinstance(inner.get("author"), dict)):
        opened = {**entry, **inner}
        if "message" not in inner:
            del opened["message"]
        return flat(opened)
    if isinstance(author, OBJECT):
        return {**entry, "author": author.get("role"), "name": author.get("name")}
    return entry


def is_message(entry: Mapping[str, Any]) -> bool:
    """Whether somebody said this, a person or a program."""
    if role_word(entry.get("role")) is None and not any(role_word(entry.get(name)) for name in ROLES):
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
    for call in (*(calls if isinstance(calls, (list, tuple)) else ()), message.get("function_call")):
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
        said = "\n".join(piece.text for piece in _content(inner, notes, depth + 1) if piece.text.strip())
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
    arguments = next((given[name] for name in ("arguments", "input", "args") if given.get(name) is not None), "")
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments, enc_hook=str).decode()
    name = given.get("name")
    return Piece("call", arguments, name if isinstance(name, str) else "")
