"""Whether one text denies what another says, and whether it says that something changed: by words, in plain English.

A denial has a reach: the words after it, to the end of its clause. One text denies another where a word that it denies
stands undenied in the other: "Use spaces, not tabs" denies "Use tabs", and does not deny "Use spaces". That a text says
of a change (now, no longer, instead) counts only beside a text that says something else: the same sentence said again
changes nothing. Of a text of more than ``LONGEST`` words nothing is said: it says more than one thing; what of it is
denied or changed cannot be seen by its words. What the tables (``english.toml``) cannot see: denial without a word for
it ("tabs are out"), and two denials that cancel each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

from memlab.kernel.english import clauses, lexicon, padded, phrases, vocabulary, words_of

__all__ = ["LONGEST", "Statement", "both", "difference", "stem"]

_phrases, _words = partial(phrases, "negation"), partial(vocabulary, "negation")

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_CAPITAL = re.compile(r"(?<![\w'.])[B-HJ-Z](?![\w'])|(?<=\w )A(?![\w'])")
LONGEST = 40
"""Words. Of 909 long messages to an assistant a quarter would deny or change an earlier one, and hardly any does."""
_MOST_SHOWN = 60


@dataclass(frozen=True)
class Statement:
    """One text as the detectors see it; each property is computed when it is first asked for.

    >>> Statement("We use spaces, not tabs").denies(Statement("We use tabs"))
    True
    >>> Statement("We use spaces, not tabs").denies(Statement("We use spaces"))
    False
    """

    text: str

    @cached_property
    def words(self) -> list[str]:
        """Its words, in order."""
        return words_of(self.text)

    @cached_property
    def short(self) -> bool:
        """Whether it can be one statement."""
        return len(self.words) <= LONGEST

    @cached_property
    def content(self) -> frozenset[str]:
        """The stems of its words, without those that only join others and those that speak of denial or change."""
        left_out = _words("fillers", "denials", "change-words")
        return frozenset(stem(word) for word in self.words if word not in left_out)

    @cached_property
    def denied(self) -> frozenset[str]:
        """The stems within reach of a denial: after it, or the rest of its clause where nothing comes after."""
        found: set[str] = set()
        text = self.text.lower()
        plain = text.replace("\u2019", "'")
        if not any(denial in plain for denial in _words("denials")):
            return frozenset()
        for clause in clauses(text):
            words = words_of(clause)
            place = next((at for at, word in enumerate(words) if word in _words("denials")), None)
            if place is None:
                continue
            after = [word for word in words[place + 1 :] if word not in _words("fillers", "change-words")]
            reached = after or [word for word in words[:place] if word not in _words("fillers")]
            found.update(stem(word) for word in reached if word not in _words("denials"))
        return frozenset(found)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Its words that hold a digit, single capitals, weekdays and months.

        They tell two things apart that are spoken of in the same words.
        """
        return (
            frozenset(_NUMBER.findall(self.text))
            | frozenset(_CAPITAL.findall(self.text))
            | _words("calendar").intersection(self.words)
        )

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The stems of its content, in the order in which they stand."""
        return tuple(stem for stem in map(stem, self.words) if stem in self.content)

    def same_order(self, other: Statement) -> bool:
        """Whether the other says the same words in another order: "A owes B" is not "B owes A"."""
        return self.content != other.content or self.order == other.order

    @cached_property
    def changes(self) -> bool:
        """Whether it says that something changed."""
        text = padded(self.words)
        for phrase in _phrases("no-changes"):
            text = text.replace(phrase, " ")
        return any(phrase in text for phrase in _phrases("changes"))

    def denies(self, other: Statement) -> bool:
        """Whether a word that it denies stands undenied in the other."""
        return self.short and other.short and not self.denied.isdisjoint(other.content - other.denied)

    def overlap(self, other: Statement) -> float:
        """The share of the content of either that both have: Jaccard's index, 0 where neither has any."""
        either = len(self.content | other.content)
        return len(self.content & other.content) / either if either else 0.0

    def updates(self, old: Statement) -> bool:
        """Whether it says that something changed, beside an older text that says something else."""
        return self.short and old.short and self.changes and self.content != old.content


@lru_cache(maxsize=32768)
def stem(word: str) -> str:
    """Return a word without the commonest endings; only compared with stems of the same kind."""
    if word.endswith("'s"):
        word = word[:-2]
    for ending in lexicon()["text"]["endings"]:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def difference(old: str, new: str) -> str:
    """What changed between two texts, as "tabs -> spaces": without what they begin and end with in common.

    >>> difference("Indent with tabs", "From now on indent with spaces")
    'tabs -> spaces'
    >>> difference("JWT for auth", "session cookies for auth instead of JWT")
    'JWT for auth -> session cookies for auth instead of JWT'
    """
    before, after = _content_words(old), _content_words(new)
    first, second = [stem(word.lower()) for word in before], [stem(word.lower()) for word in after]
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    end = 0
    while end < min(len(first), len(second)) - start and first[-1 - end] == second[-1 - end]:
        end += 1
    gone, come = before[start : len(before) - end], after[start : len(after) - end]
    if not gone or not come:
        gone, come = before, after
    return f"{_short(' '.join(gone))} -> {_short(' '.join(come))}"


def both(old: str, new: str) -> str:
    """What two texts say in one: the one that holds every word of the other, else both, the older first.

    >>> both("Ada works at Acme.", "Ada works at Globex in sales")
    'Ada works at Acme; Ada works at Globex in sales'
    """
    before, after = frozenset(words_of(old)), frozenset(words_of(new))
    if after <= before:
        return old
    return new if before <= after else f"{old.rstrip('. ')}; {new}"


def _content_words(text: str) -> list[str]:
    """Its words without those that only say that something changed, and without marks around them."""
    words = [bare for bare in (word.strip(".,;:!?\"'()[]") for word in text.split()) if bare]
    kept: list[str] = []
    place = 0
    while place < len(words):
        opening = next((size for size in (3, 2) if _opens(words[place : place + size])), 0)
        compares = [word.lower() for word in words[place : place + 2]] == ["instead", "of"]
        if not opening and (compares or words[place].lower() not in _words("change-words")):
            kept.append(words[place])
        place += max(opening, 1)
    return kept or text.split()


def _opens(words: list[str]) -> bool:
    return padded([word.lower() for word in words]) in _phrases("change-openings")


def _short(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3].rstrip()}..."
