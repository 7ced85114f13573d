"""A transcript as answers, each with what was asked before it, what tools were called with, and what came next."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memlab.errors import InputError, UnknownName

__all__ = ["Turn", "turns_of"]

_ROLES = ("user", "assistant", "system", "developer", "tool", "function")
_MOST_NESTED = 20


@dataclass(frozen=True)
class Turn:
    """One answer. ``asked`` are texts that a recall may have asked; ``decisions`` are the recalls that it names."""

    answer: str
    asked: tuple[str, ...]
    arguments: str
    reply: str
    decisions: tuple[int, ...] | None
    at: Any


def turns_of(transcript: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """The answers of a transcript, in order. InputError names the message that is none."""
    if isinstance(transcript, str | Mapping) or not isinstance(transcript, Iterable):
        raise InputError(f"A transcript is a list of messages, not {type(transcript).__name__}.")
    try:
        messages = list(transcript)
    except Exception as error:
        raise InputError(f"The messages cannot be read: {type(error).__name__}.") from error
    turns: list[Turn] = []
    asked: list[str] = []
    arguments: list[str] = []
    decisions: list[int] | None = None
    texts = [_text(message, place) for place, message in enumerate(messages)]
    for place, message in enumerate(messages):
        role, text = message["role"], texts[place]
        decisions = _decisions(message, place, decisions)
        if role == "user":
            asked.append(text)
        for argument in _arguments(message, place):
            arguments.append(argument)
            asked += _strings(argument)
        if role == "assistant" and text.strip():
            after = (texts[later] for later in range(place + 1, len(messages)) if messages[later]["role"] == "user")
            named = None if decisions is None else tuple(dict.fromkeys(decisions))
            turns.append(Turn(text, tuple(asked), "\n".join(arguments), next(after, ""), named, message.get("at")))
            asked, arguments, decisions = [], [], None
    return turns


def _text(message: object, place: int) -> str:
    """The words of a message: a text, or the texts among its parts."""
    if not isinstance(message, Mapping) or "role" not in message:
        raise InputError(f'Message {place} is an object with "role" and "content", not {type(message).__name__}.')
    if message["role"] not in _ROLES:
        raise UnknownName(f"role of message {place}", message["role"], _ROLES)
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [
            part.get("text") for part in content if isinstance(part, Mapping) and part.get("type", "text") == "text"
        ]
        return "\n".join(part for part in parts if isinstance(part, str))
    raise InputError(f"The content of message {place} is a text or a list of parts, not {type(content).__name__}.")


def _decisions(message: Mapping[str, Any], place: int, before: list[int] | None) -> list[int] | None:
    """The recalls named so far, and those that this message names."""
    named = message.get("decision")
    if named is None:
        return before
    several = [named] if isinstance(named, int) else named
    if not isinstance(several, Sequence) or not all(
        isinstance(one, int) and not isinstance(one, bool) for one in several
    ):
        raise InputError(f"The decision of message {place} is the number of a recall, or several, not {named!r:.60}.")
    return [*(before or ()), *several]


def _arguments(message: Mapping[str, Any], place: int) -> list[str]:
    """What tools were called with, as text."""
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise InputError(f"The tool_calls of message {place} are a list, not {type(calls).__name__}.")
    given = [call.get("function", call).get("arguments") for call in calls if isinstance(call, Mapping)]
    return [one if isinstance(one, str) else json.dumps(one, default=str) for one in given if one is not None]


def _strings(argument: str) -> list[str]:
    """The texts within arguments written as JSON; of any other the whole."""
    try:
        value = json.loads(argument)
    except (ValueError, RecursionError):
        return [argument]
    found: list[str] = []
    level = [value]
    for _ in range(_MOST_NESTED):
        found += [one for one in level if isinstance(one, str)]
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return found
