"""A transcript as answers, each with what was asked before it, what tools were called with, and what came next."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memlab.errors import InputError
from memlab.io.formats import messages_of
from memlab.kernel.base.arguments import Called

__all__ = ["Turn", "turns_of"]

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
    entries = Called(list, "transcript")(transcript)
    messages = messages_of(entries)
    turns: list[Turn] = []
    asked: list[str] = []
    arguments: list[str] = []
    decisions: list[int] | None = None
    place = -1
    for number, message in enumerate(messages):
        if message.place != place:
            place = message.place
            decisions = _decisions(entries[place], place, decisions)
        if message.role == "user":
            asked.append(message.text)
        for argument in message.arguments:
            arguments.append(argument)
            asked += _strings(argument)
        if message.role == "assistant" and message.text:
            later = (messages[after] for after in range(number + 1, len(messages)))
            reply = next((after.text for after in later if after.role == "user"), "")
            named = None if decisions is None else tuple(dict.fromkeys(decisions))
            turns.append(Turn(message.text, tuple(asked), "\n".join(arguments), reply, named, message.at))
            asked, arguments, decisions = [], [], None
    return turns


def _decisions(message: object, place: int, before: list[int] | None) -> list[int] | None:
    """The recalls named so far, and those that this message names."""
    named = message.get("decision") if isinstance(message, Mapping) else None
    if named is None:
        return before
    several = [named] if isinstance(named, int) else named
    if not isinstance(several, Sequence) or not all(
        isinstance(one, int) and not isinstance(one, bool) for one in several
    ):
        raise InputError(f"The decision of message {place} is the number of a recall, or several, not {named!r:.60}.")
    return [*(before or ()), *several]


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
