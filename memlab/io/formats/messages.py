"""Messages of chat protocols and callers: texts, parts, tool calls, tool results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from memlab.errors import InputError, UnknownName
from memlab.io.formats.lines import Notes
from memlab.kernel.base.arguments import Called, describe_value, iterate
from memlab.kernel.schema import ROLES as WORDS
from memlab.kernel.schema import infer_role

# The words for roles in the protocols of OpenAI, Anthropic, LangChain, Gemini, ShareGPT.
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
"""Fields that name the speaker or role, in the order in which they count."""
# A message has one of these fields.
_SAID = frozenset(("content", "text", "parts", "value", "tool_calls"))
# Fields that may contain the actual message; most messages have none and are returned at once.
_ENVELOPES = frozenset(("kwargs", "data", "message", "author"))
OBJECT = (dict, Mapping)
"""Types of objects with names. The check of a dict is faster, so it comes first."""
# Depth of nested parts; the protocols nest three levels.
_DEEPEST = 8
_CALLING = frozenset(("tool_calls", "additional_kwargs", "function_call"))
"""Fields with tool calls, next to the content."""
# Types of parts that are calls of tools, and types of parts that are thoughts of a model.
_CALLS = (
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "tool_call",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "mcp_call",
)
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "thoughts", "reasoning_recap")

# Ends of the types of parts that are results of tools.
_RESULTS = ("tool_result", "call_output", "tool_call_response")


class Piece(NamedTuple):
    """A part of a message: words, a tool call, or a tool result.

    Attributes
    ----------
    kind
        "said", "call" or "result".
    text
        The words, the arguments of the call, or the result.
    name
        Name of the tool that is called.
    failed
        Whether the result is an error.
    """

    kind: Literal["said", "call", "result"]
    text: str
    name: str = ""
    failed: bool = False

    @property
    def words(self) -> str:
        """The text of the part; for a tool call, the tool's name and arguments."""
        return f"{self.name or 'tool'}({self.text})" if self.kind == "call" else self.text


def parse_role(value: object) -> str | None:
    """Map a role name of a chat protocol to a role of memlab; return None if unknown.

    >>> parse_role("human"), parse_role("HumanMessage"), parse_role("Ida")
    ('user', 'user', None)
    """
    if not isinstance(value, str):
        return None
    if value in _ROLES:
        return _ROLES[value]
    word = value.strip().lower()
    return _ROLES.get(word) or _ROLES.get(word.removesuffix("chunk").removesuffix("message"))


def to_mapping(message: object) -> Mapping[str, Any] | None:
    """Convert a client library's message object to a mapping, or None if the type is unknown.

    A known object has a method ``model_dump``, or the attribute ``content`` with ``type`` or
    ``role``.
    """
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


def unwrap_message(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message inside an envelope, or the entry itself without an envelope.

    Known envelopes are items of OpenAI's Responses API, the two forms of LangChain, a line of a transcript, and an author
    with a role.
    """
    kind = entry.get("type")
    if (
        "role" not in entry
        and isinstance(kind, str)
        and (kind in _CALLS or kind.endswith(_RESULTS))
    ):
        # an item of OpenAI's Responses API, which has no role
        times = {name: entry[name] for name in ("timestamp", "created_at") if name in entry}
        return {"role": "assistant" if kind in _CALLS else "tool", "content": [entry], **times}
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
    if isinstance(data, OBJECT) and parse_role(entry.get("type")):
        return {**data, "type": entry["type"]}
    if isinstance(inner, OBJECT) and (
        "role" in inner or "content" in inner or isinstance(inner.get("author"), dict)
    ):
        opened = {**entry, **inner}
        if "message" not in inner:
            del opened["message"]
        return unwrap_message(opened)
    if isinstance(author, OBJECT):
        return {**entry, "author": author.get("role"), "name": author.get("name")}
    return entry


def is_message(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry has both a role and content."""
    if parse_role(entry.get("role")) is None and not any(
        parse_role(entry.get(name)) for name in ROLES
    ):
        return False
    return not _SAID.isdisjoint(entry)


def split_message(message: Mapping[str, Any], content: object, notes: Notes) -> Iterator[Piece]:
    """Yield the parts of a message's content, then the tool calls outside the content."""
    yield from _split_content(content, notes, 0)
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
            yield _build_call(call)


def _split_content(content: object, notes: Notes, depth: int) -> Iterator[Piece]:
    """Yield the parts of a message's content, whose parts may be nested."""
    if isinstance(content, str):
        yield Piece("said", content)
    elif depth > _DEEPEST:
        notes.left_out["part nested too deeply"] += 1
    elif isinstance(content, (list, tuple)):
        for part in content:
            yield from _split_content(part, notes, depth + 1)
    elif isinstance(content, OBJECT):
        yield from _split_part(content, notes, depth)


def _split_part(part: Mapping[str, Any], notes: Notes, depth: int) -> Iterator[Piece]:
    """Yield the texts, tool call or tool result in a content part; count other parts as left out."""
    # protocols name the same part differently; unknown types are counted, so that nothing is lost silently
    kind = part.get("type") or part.get("content_type") or "text"
    text = part.get("text")
    if kind in _CALLS:
        yield _build_call(part)
    elif isinstance(kind, str) and kind.endswith(_RESULTS):
        names = ("content", "output", "response", "result")
        inner = next((part[name] for name in names if part.get(name) is not None), None)
        result = "\n".join(
            piece.text for piece in _split_content(inner, notes, depth + 1) if piece.text.strip()
        )
        yield Piece("result", result, failed=part.get("is_error") is True)
    elif kind in _THOUGHTS:
        notes.left_out["thinking"] += 1
    elif isinstance(text, str):
        yield Piece("said", text)
    elif isinstance(text, OBJECT) and isinstance(text.get("value"), str):
        yield Piece("said", text["value"])
    elif isinstance(part.get("content"), str):
        yield Piece("said", part["content"])
    elif isinstance(part.get("parts"), list):
        yield from _split_content(part["parts"], notes, depth + 1)
    elif isinstance(part.get("result"), str):
        yield Piece("said", part["result"])
    else:
        notes.left_out[f"part of type {str(kind)[:40]}"] += 1


def _build_call(call: Mapping[str, Any]) -> Piece:
    """Build the part for a tool call, with the tool's name and the arguments."""
    function = call.get("function")
    target = function if isinstance(function, OBJECT) else call
    arguments = next(
        (
            target[name]
            for name in ("arguments", "input", "args", "action")
            if target.get(name) is not None
        ),
        "",
    )
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments, enc_hook=str).decode()
    name = target.get("name")
    return Piece("call", arguments, name if isinstance(name, str) else "")


# -- messages of a caller ----------------------------------------------------------------------------------------------

# All fields of these roles, for a quick test whether a message has any of them.
_NAMES = frozenset(ROLES)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Attributes
    ----------
    role
        user, assistant, system or tool.
    text
        The words; empty if there are none.
    at
        When it was said, if known.
    calls
        Names of the tools that it calls.
    arguments
        Arguments of each call, as text.
    tool
        Name of the tool whose result it is.
    failed
        Whether the message declares itself an error.
    speaker
        Name of a person among several; "I" in the text is this person.
    index
        Index of the caller's message. Several messages may share an index, because each result of a
        tool becomes a message of its own.
    """

    role: str
    text: str
    at: Any = None
    calls: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    tool: str | None = None
    failed: bool = False
    speaker: str | None = None
    index: int = 0


def parse_messages(messages: Any, role: str | None = None) -> list[Message]:
    """Convert texts and messages of chat protocols to messages of memlab.

    ``role`` is the role of messages that have none. Raises InputError with the number of a message that cannot be read or
    has no role, UnknownName for an unknown role.

    >>> [(message.role, message.text) for message in parse_messages(["Hi", {"role": "ai", "content": "Hello"}], "user")]
    [('user', 'Hi'), ('assistant', 'Hello')]
    """
    if role is not None and role not in WORDS:
        raise UnknownName("role", role, WORDS)
    if isinstance(messages, str | Mapping):
        messages = [messages]
    if not isinstance(messages, Iterable):
        raise InputError(
            f"Messages must be a text, or a list of texts and dicts with role and content, not {describe_value(messages)}."
        )
    notes = Notes("messages")
    return [
        message
        for index, item in enumerate(iterate(messages, "messages"))
        for message in _parse_message(item, index, role, notes)
    ]


def _parse_message(item: object, index: int, role: str | None, notes: Notes) -> list[Message]:
    """Convert an item that the caller passed to messages."""
    if isinstance(item, str):
        item = {"content": item}
    entry = item if isinstance(item, Mapping) else Called(to_mapping, "messages")(item)
    if entry is None:
        raise InputError(
            f"Message {index} must be a text or a dict with role and content, not {describe_value(item)}."
        )
    entry = unwrap_message(entry)
    name = entry.get("speaker", entry.get("name"))
    person = (
        name
        if isinstance(name, str) and name.strip() and infer_role(name, None) == "other"
        else None
    )
    speaker_role = _find_role(
        entry, index, role if person or not isinstance(name, str) else infer_role(name, None)
    )
    calls = entry.get("tool_calls")
    if calls is not None and not isinstance(calls, list | tuple):
        raise InputError(
            f"The tool_calls of message {index} must be a list, not {describe_value(calls)}."
        )
    common: dict[str, Any] = {"at": entry.get("at"), "index": index}
    messages: list[Message] = []
    texts, names, arguments = [], [], []
    for piece in split_message(entry, _check_content(entry, index), notes):
        if piece.kind == "said":
            texts.append(piece.text)
        elif piece.kind == "result":
            messages.append(
                Message("tool", _empty_if_blank(piece.text), failed=piece.failed, **common)
            )
        else:
            names += [piece.name] if piece.name else []
            arguments += [piece.text] if piece.text else []
    if texts or names or arguments or not messages:
        tool = entry.get("name") if speaker_role == "tool" else None
        common |= {
            "calls": tuple(names),
            "arguments": tuple(arguments),
            "tool": tool if isinstance(tool, str) else None,
        }
        speaker = person if speaker_role == "user" else None
        messages.append(
            Message(speaker_role, _empty_if_blank("\n".join(texts)), speaker=speaker, **common)
        )
    return messages


def _find_role(entry: Mapping[str, Any], index: int, default: str | None) -> str:
    """Return the role that a message states, or the default role; raise InputError without either."""
    if "role" in entry:
        if (word := parse_role(entry["role"])) is None:
            raise UnknownName(f"role of message {index}", describe_value(entry["role"]), WORDS)
        return word
    word = default
    if not _NAMES.isdisjoint(entry):
        word = next((word for name in ROLES if (word := parse_role(entry.get(name)))), default)
    if word is None:
        raise InputError(
            f'Message {index} has no role. Add a "role", or pass role=... for all messages.'
        )
    return word


def _check_content(entry: Mapping[str, Any], index: int) -> object:
    """Return a message's content: a text, a dict or a list of parts.

    None is valid only for a null content or next to tool calls. Raises InputError for other
    values.
    """
    content = next(
        (entry[name] for name in ("content", "text", "parts") if entry.get(name) is not None), None
    )
    if isinstance(content, list | tuple):
        for part in content:
            if not isinstance(part, str | Mapping):
                raise InputError(
                    f"A part of message {index} must be a dict with a type, not {describe_value(part)}."
                )
    elif not isinstance(content, str | Mapping) and not (
        content is None and ("content" in entry or "tool_calls" in entry)
    ):
        raise InputError(f"Message {index} has no text: its content is {describe_value(content)}.")
    return content


def _empty_if_blank(text: str) -> str:
    """Return a text, or "" if the text contains only white space."""
    return text if text.strip() else ""
