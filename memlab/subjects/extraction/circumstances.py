"""Under what circumstances a user's message states something: as talk, in a role, in a pasted text, next to code.

What somebody tells an assistant of themselves stands in short messages, or at the beginning of long ones. Roles, texts
that are handed over to be worked on, stories and exercises say "I" and "the" of others. The signs are phrases of
``english.toml`` under ``circumstances``, what each leaves of a confidence under ``confidence.circumstances``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memlab.io.formats import Message
from memlab.kernel.english import holds, padded, phrases, words_of
from memlab.subjects.reading.sentences import code_lines

__all__ = ["Setting", "begins_a_role", "roles_played", "setting_of"]

_HEAD, _TAIL = 600, 300
"""Characters of a message at its beginning and end that say what is to be done with the text between them."""

_LONG = 1_500
"""Characters from which on a message holds a text; of the development chats' messages of users 98% are shorter."""

_TOLD_FIRST = 500
"""Characters at the beginning of a long message that are its writer's own words."""

_LABEL = re.compile(r"(?:^|\n)[ \t]*(?:\*\*)?[A-Z][\w .'-]{0,24}(?:\*\*)?:[ \t]*\Z")
"""The name of who speaks, at the beginning of a line: "User: I like hiking"."""

_CODE = re.compile(r"[;{}]\s*$|=>|^\s*(?://|/\*|#include|import )", re.MULTILINE)
_FEWEST_CODE_LINES = 2

_TIMES = re.compile(r"(?:^|\n|\b\d\d:)\d?\d:\d\d\b")
"""The times of a recording that was written down: "00:01 Hi, my name is ..."."""

_FEWEST_TIMES = 2


@dataclass(frozen=True, slots=True)
class Setting:
    """What a message is, apart from what it states.

    Attributes
    ----------
    text
        The message.
    played
        Whether a role is played in it, or has been since an earlier message.
    persona
        Whether its listener is asked to be somebody.
    material
        Whether it hands over a text to be worked on.
    composed
        Whether it orders a story, a scene, an exercise or another text.
    code
        Whether it holds code or the output of a program.
    """

    text: str
    played: bool
    persona: bool
    material: bool
    composed: bool
    code: bool

    def signs(self, start: int) -> tuple[str, ...]:
        """Return the names of the circumstances that hold at a place of the message."""
        long = len(self.text) > _LONG
        found = {
            "played": self.played,
            "persona": self.persona,
            "material": self.material and len(self.text) > _TOLD_FIRST,
            "composed": self.composed,
            "code": self.code,
            "long": long,
            "far": long and start > _TOLD_FIRST,
            "labelled": _LABEL.search(self.text, max(0, start - 40), start) is not None,
        }
        return tuple(name for name, holds_here in found.items() if holds_here)


def setting_of(text: str, *, played: bool = False) -> Setting:
    """Return the setting of a user's message.

    Parameters
    ----------
    text
        The message.
    played
        Whether an earlier message began a role.

    Examples
    --------
    >>> setting_of("Let's play a game. I am a wizard.").signs(19)
    ('played',)
    """
    low = _low(text[:_HEAD] if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} {text[-_TAIL:]}")
    lines = len(code_lines(text)) + len(_CODE.findall(text))
    return Setting(
        text,
        played or holds(low, phrases("circumstances", "roles")),
        holds(low, phrases("circumstances", "personas")),
        holds(low, phrases("circumstances", "material")) or len(_TIMES.findall(text)) >= _FEWEST_TIMES,
        holds(low, phrases("circumstances", "orders")) and holds(low, phrases("circumstances", "texts")),
        lines >= _FEWEST_CODE_LINES,
    )


def begins_a_role(text: str) -> bool:
    """Return whether a message asks its listener to play a role, or begins a game."""
    return holds(_low(text[: _HEAD + _TAIL]), phrases("circumstances", "roles"))


def roles_played(messages: Sequence[Message]) -> frozenset[int]:
    """Return the numbers of the messages in a conversation from its first role on; none among people by their names."""
    if any(message.speaker is not None for message in messages):
        return frozenset()
    numbers: Iterable[int] = (
        number for number, message in enumerate(messages) if message.role == "user" and begins_a_role(message.text)
    )
    first = next(iter(numbers), len(messages))
    return frozenset(range(first, len(messages)))


def _low(text: str) -> str:
    return padded(words_of(text))
