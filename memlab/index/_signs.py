"""Words that are signs: of a time, a number, a speaker in a text; of what a question asks for. Nothing is learned."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["SAYS", "Signs", "signs_of"]

SAYS = ("says-when", "says-number", "first-person")
"""What a word of a text may be a sign of; the first is the lowest bit."""


@dataclass(frozen=True)
class Signs:
    """The tables of one language: words by the ``bits`` of ``SAYS``, and the phrases of questions."""

    bits: dict[str, int]
    when_first: tuple[str, ...]
    when: tuple[str, ...]
    how_many: tuple[str, ...]
    you: tuple[str, ...]

    def of(self, word: str) -> int:
        """The bits of a word in lower case.

        >>> [signs_of("english").of(word) for word in ("may", "2023", "3pm", "we", "tabs")]
        [1, 3, 2, 4, 0]
        """
        found = self.bits.get(word, 0)
        if self.bits and any(map(str.isdecimal, word)):
            found |= 3 if len(word) == 4 and word.isdecimal() else 2
        return found

    def asks_when(self, spoken: str) -> bool:
        """Whether a question asks for a time: its words in lower case, a space before and after each."""
        return spoken.startswith(self.when_first) or any(phrase in spoken for phrase in self.when)

    def asks_how_many(self, spoken: str) -> bool:
        """Whether a question asks for a number or a span."""
        return any(phrase in spoken for phrase in self.how_many)

    def asks_you(self, spoken: str) -> bool:
        """Whether a question speaks of whom it asks."""
        return any(phrase in spoken for phrase in self.you)


@cache
def signs_of(language: str | None) -> Signs:
    """The tables of a language; empty ones where it has none."""
    tables = tomllib.loads((Path(__file__).parent / "signs.toml").read_text(encoding="utf-8")).get(language or "", {})
    bits: dict[str, int] = {}
    for place, name in enumerate(SAYS):
        for word in tables.get(name, ()):
            bits[word] = bits.get(word, 0) | 1 << place

    def phrases(name: str) -> tuple[str, ...]:
        return tuple(f" {phrase} " for phrase in tables.get(name, ()))

    return Signs(bits, phrases("asks-when-first"), phrases("asks-when"), phrases("asks-how-many"), phrases("asks-you"))
