"""Whether one text denies what another says, and whether it says that something changed: plain English, by words.

A denial has a reach: the words after it, to the end of its clause. One text denies another where a word that it denies
stands undenied in the other: "Use spaces, not tabs" denies "Use tabs", and does not deny "Use spaces". That a text says
of a change (now, no longer, instead) counts only beside a text that says something else: the same sentence said again
changes nothing. What these tables cannot see: denial without a word for it ("tabs are out"), and two denials that
cancel each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from memlab.subjects.phrases import clauses, padded, phrases, words_of

__all__ = ["Said", "difference"]

_DENIES = frozenset(
    [
        "not",
        "no",
        "never",
        "none",
        "nothing",
        "neither",
        "nor",
        "cannot",
        "can't",
        "don't",
        "doesn't",
        "didn't",
        "won't",
        "wouldn't",
        "shouldn't",
        "couldn't",
        "isn't",
        "aren't",
        "wasn't",
        "weren't",
        "hasn't",
        "haven't",
        "hadn't",
        "mustn't",
        "needn't",
        "ain't",
        "without",
        "avoid",
        "avoids",
        "avoided",
        "stop",
        "stops",
        "stopped",
        "dislike",
        "dislikes",
        "disliked",
        "hate",
        "hates",
        "hated",
        "refuse",
        "refuses",
        "refused",
        "forbid",
        "forbids",
        "forbidden",
        "banned",
    ]
)
_CHANGES = phrases("""
    now | no longer | not anymore | not any more | anymore | any more | instead | instead of | from now on | as of
    | changed | changed to | switched to | switched from | moved to | moved from | replaced | replaced by
    | replaced with | updated | updated to | renamed to | migrated to | used to | these days | nowadays | any longer
""")
_NO_CHANGE = phrases("now and then | every now and then | up to now | until now | by now | right now")
_CHANGE_WORDS = frozenset(
    ["now", "instead", "nowadays", "changed", "switched", "moved", "replaced", "updated", "renamed"]
)
"""Words that only say that something changed. What also denies (not, no longer) stays in what is told."""
_CHANGE_OPENINGS = frozenset(phrases("from now on | as of now | these days"))
_FILLERS = frozenset(
    [
        "a",
        "an",
        "the",
        "this",
        "that",
        "these",
        "those",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "am",
        "do",
        "does",
        "did",
        "has",
        "have",
        "had",
        "will",
        "would",
        "can",
        "could",
        "should",
        "must",
        "may",
        "might",
        "to",
        "of",
        "in",
        "on",
        "at",
        "by",
        "for",
        "from",
        "with",
        "as",
        "it",
        "its",
        "we",
        "i",
        "you",
        "they",
        "he",
        "she",
        "our",
        "my",
        "your",
        "their",
        "his",
        "her",
        "us",
        "me",
        "and",
        "or",
        "but",
        "so",
        "than",
        "then",
        "there",
        "here",
        "just",
        "also",
        "really",
        "actually",
        "any",
        "anymore",
    ]
)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_CAPITAL = re.compile(r"(?<![\w'.])[B-HJ-Z](?![\w'])|(?<=\w )A(?![\w'])")
_CALENDAR = frozenset(
    word
    for line in (
        "monday tuesday wednesday thursday friday saturday sunday",
        "january february march april june july august september october november december",
    )
    for word in line.split()
)
_MOST_SHOWN = 60


@dataclass(frozen=True)
class Said:
    """One text as the detectors see it; each property is computed when it is first asked for.

    >>> Said("We use spaces, not tabs").denies(Said("We use tabs"))
    True
    >>> Said("We use spaces, not tabs").denies(Said("We use spaces"))
    False
    """

    text: str

    @cached_property
    def content(self) -> frozenset[str]:
        """The stems of its words, without those that only join others and those that speak of denial or change."""
        left_out = _FILLERS | _DENIES | _CHANGE_WORDS
        return frozenset(_stem(word) for word in words_of(self.text) if word not in left_out)

    @cached_property
    def denied(self) -> frozenset[str]:
        """The stems within reach of a denial: after it, or the rest of its clause where nothing comes after."""
        found: set[str] = set()
        for clause in clauses(self.text.lower()):
            words = words_of(clause)
            place = next((at for at, word in enumerate(words) if word in _DENIES), None)
            if place is None:
                continue
            after = [word for word in words[place + 1 :] if word not in _FILLERS and word not in _CHANGE_WORDS]
            reached = after or [word for word in words[:place] if word not in _FILLERS]
            found.update(_stem(word) for word in reached if word not in _DENIES)
        return frozenset(found)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Its words that hold a digit, single capitals, weekdays and months.

        They tell two things apart that are spoken of in the same words.
        """
        words = words_of(self.text)
        return (
            frozenset(_NUMBER.findall(self.text))
            | frozenset(_CAPITAL.findall(self.text))
            | _CALENDAR.intersection(words)
        )

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The stems of its content, in the order in which they stand."""
        return tuple(stem for stem in map(_stem, words_of(self.text)) if stem in self.content)

    def same_order(self, other: Said) -> bool:
        """Whether the other says the same words in another order: "A owes B" is not "B owes A"."""
        return self.content != other.content or self.order == other.order

    @cached_property
    def changes(self) -> bool:
        """Whether it says that something changed."""
        text = padded(words_of(self.text))
        for phrase in _NO_CHANGE:
            text = text.replace(phrase, " ")
        return any(phrase in text for phrase in _CHANGES)

    def denies(self, other: Said) -> bool:
        """Whether a word that it denies stands undenied in the other."""
        return not self.denied.isdisjoint(other.content - other.denied)

    def overlap(self, other: Said) -> float:
        """The share of the content of either that both have: Jaccard's index, 0 where neither has any."""
        either = len(self.content | other.content)
        return len(self.content & other.content) / either if either else 0.0

    def updates(self, old: Said) -> bool:
        """Whether it says that something changed, beside an older text that says something else."""
        return self.changes and self.content != old.content


def _stem(word: str) -> str:
    """Without the commonest endings; only compared with stems of the same kind."""
    if word.endswith("'s"):
        word = word[:-2]
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def difference(old: str, new: str) -> str:
    """What changed between two texts, as "tabs -> spaces": without what they begin and end with in common.

    >>> difference("Indent with tabs", "From now on indent with spaces")
    'tabs -> spaces'
    """
    before, after = _told(old), _told(new)
    first, second = [_stem(word.lower()) for word in before], [_stem(word.lower()) for word in after]
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


def _told(text: str) -> list[str]:
    """Its words without those that only say that something changed, and without marks around them."""
    words = [bare for bare in (word.strip(".,;:!?\"'()[]") for word in text.split()) if bare]
    kept: list[str] = []
    place = 0
    while place < len(words):
        opening = next((size for size in (3, 2) if _opens(words[place : place + size])), 0)
        if not opening and words[place].lower() not in _CHANGE_WORDS:
            kept.append(words[place])
        place += max(opening, 1)
    return kept or text.split()


def _opens(words: list[str]) -> bool:
    return padded([word.lower() for word in words]) in _CHANGE_OPENINGS


def _short(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3].rstrip()}..."
