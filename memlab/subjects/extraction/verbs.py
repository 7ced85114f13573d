"""Verbs of the language's table, where they stand in a clause: past adverbs, as one says them of oneself or another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from memlab.kernel.english import Token
from memlab.subjects.extraction.asserting import table

__all__ = ["is_something", "length_of", "past_adverbs", "verb_of"]

_MOST_ADVERBS = 3
_VERB_WORDS = 5


def verb_of(words: Sequence[Token], place: int, *, own: bool) -> tuple[str, int] | None:
    """The longest verb of the table at ``place``, past adverbs: as one says it of oneself, and where its value begins.

    >>> from memlab.kernel.english import contracted_words
    >>> verb_of(contracted_words("really likes tea", 0, 16), 0, own=False)
    ('like', 2)
    """
    forms = _forms(own)
    for at in past_adverbs(words, place):
        for size in range(min(_VERB_WORDS, len(words) - at), 0, -1):
            found = forms.get(tuple(word.low for word in words[at : at + size]))
            if found is not None:
                return found, at + size
        if at + 1 < len(words) and words[at].low in ("am", "is", "have", "has"):  # I'm now living in
            past = next((n for n in past_adverbs(words, at + 1) if n > at + 1), None)
            if past is not None:
                for size in range(min(_VERB_WORDS, len(words) - past), 0, -1):
                    rest = tuple(word.low for word in words[past : past + size])
                    found = forms.get((words[at].low, *rest))
                    if found is not None:
                        return found, past + size
    return None


def past_adverbs(words: Sequence[Token], place: int) -> list[int]:
    """Where a verb may begin: here, and after each adverb from here on."""
    places = [place] if place < len(words) else []
    while places and len(places) <= _MOST_ADVERBS and words[places[-1]].low in table("adverbs"):
        if places[-1] + 1 >= len(words):
            break
        places.append(places[-1] + 1)
    return places


@cache
def _forms(own: bool) -> dict[tuple[str, ...], str]:
    """From the words of a verb to its form of oneself. One thing "is written", several are."""
    found = {}
    for verb, (other, *_) in table("verbs").items():
        found[tuple((verb if own else other).split())] = verb
    return found


def is_something(words: Sequence[Token], place: int) -> bool:
    """Whether "is" and something after it stand at ``place``, past adverbs."""
    at = past_adverbs(words, place)
    return any(words[one].low == "is" and one + 1 < len(words) for one in at)


def length_of(words: Sequence[Token], place: int, phrases: Sequence[str]) -> int:
    """How many words the first of these phrases that stands at ``place`` has; 0 if none does."""
    for phrase in phrases:
        parts = phrase.split()
        if [word.low for word in words[place : place + len(parts)]] == parts:
            return len(parts)
    return 0
