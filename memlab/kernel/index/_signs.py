"""Words that are signs: of a time, a number, a speaker in a text; of what a question asks for. Nothing is learned."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["SAYS", "Signs", "signs_of"]

SAYS = ("says-when", "says-number", "first-person", "says-change", "says-others")
"""What a word of a text may be a sign of; the first is the lowest bit."""


_TABLES = (
    *("numbers", "months", "days", "never", "denials", "self", "turns", "links", "light", "done", "of-others"),
    "only-ask",
    "unspecific",
)


@dataclass(frozen=True)
class Signs:
    """The tables of one language: words by the ``bits`` of ``SAYS``, those that statements and questions are read by
    (``words``, by name), and the phrases of questions.
    """

    bits: dict[str, int]
    words: dict[str, frozenset[str]]
    when: re.Pattern[str]
    how_many: re.Pattern[str]
    you: re.Pattern[str]
    now: re.Pattern[str]
    past: re.Pattern[str]
    over_time: re.Pattern[str]

    def of(self, word: str) -> int:
        """The bits of a word in lower case.

        >>> [signs_of("english").of(word) for word in ("may", "2023", "3pm", "we", "tabs")]
        [1, 3, 2, 4, 0]
        """
        found = self.bits.get(word, 0)
        if self.bits and not word.isalpha() and any(map(str.isdecimal, word)):
            found |= 3 if len(word) == 4 and word.isdecimal() else 2
        return found

    def asks_when(self, spoken: str) -> bool:
        """Whether a question asks for a time: its words in lower case, a space before and after each."""
        return self.when.search(spoken) is not None

    def asks_how_many(self, spoken: str) -> bool:
        """Whether a question asks for a number or a span."""
        return self.how_many.search(spoken) is not None

    def asks_you(self, spoken: str) -> bool:
        """Whether a question speaks of whom it asks."""
        return self.you.search(spoken) is not None

    def asks_now(self, spoken: str) -> bool:
        """Whether a question asks what holds today, and not what was."""
        return self.now.search(spoken) is not None and self.past.search(spoken) is None

    def asks_over_time(self, spoken: str) -> bool:
        """Whether a question compares times, or asks for what was: between, more than, originally ..."""
        return self.over_time.search(spoken) is not None


@cache
def signs_of(language: str | None) -> Signs:
    """The tables of a language; empty ones where it has none."""
    tables = tomllib.loads((Path(__file__).parent / "signs.toml").read_text(encoding="utf-8")).get(language or "", {})
    bits: dict[str, int] = {}
    for place, name in enumerate(SAYS):
        for word in tables.get(name, ()):
            bits[word] = bits.get(word, 0) | 1 << place

    def phrases(name: str, first: str = "") -> re.Pattern[str]:
        """What finds one of these phrases, or one of ``first`` where a question begins."""
        found = [f"^ {re.escape(phrase)} " for phrase in tables.get(first, ())]
        found += [f" {re.escape(phrase)} " for phrase in tables.get(name, ())]
        return re.compile("|".join(found) or r"(?!)")

    asked = ("asks-how-many", "asks-you", "asks-now", "asks-past", "asks-over-time")
    words = {name: frozenset(tables.get(name, ())) for name in _TABLES}
    words["begins"] = words["numbers"] | words["months"] | words["days"]
    words["unsaid"] = words["denials"] | words["light"]
    return Signs(bits, words, phrases("asks-when", "asks-when-first"), *map(phrases, asked))
