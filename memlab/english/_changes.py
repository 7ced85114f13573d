"""Signs of change: which phrases of a text say that something ended, began, turned into another, or did none of it.

The tables are ``changes`` in ``english.toml``. A phrase is found by its first word, so that a text takes time in
proportion to its words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product

from memlab.english._lexicon import lexicon

__all__ = ["SIGNS", "signs_of_change"]

SIGNS = ("over", "came", "turned", "lasting", "kept", "passing", "undone", "before", "other")
"""Kinds of signs: something ended, came to be, became another, lasts from now on; something stayed as it is, happens
for once, is not real, was before, is of another person or thing."""

_GAP = "~"
_WIDEST = 3
"""Words that a gap stands for at most."""

_CLITICS = ("n't", "'ll", "'s")


def signs_of_change(words: Sequence[str]) -> Mapping[str, int]:
    """Return how many phrases of each kind some words hold.

    Parameters
    ----------
    words
        Words in lower case, as ``words_of`` returns them.

    Returns
    -------
    Mapping of str to int
        Of each kind in ``SIGNS`` that occurs, the number of its phrases.

    Examples
    --------
    >>> dict(signs_of_change(["i", "gave", "the", "bike", "back", "for", "now"]))
    {'over': 1, 'lasting': 1, 'passing': 1}
    """
    found: Counter[str] = Counter()
    known = _phrases()
    for place, word in enumerate(words):
        for kind, rest in known.get(word, ()):
            if not rest or _follows(words, place + 1, rest):
                found[kind] += 1
        for clitic in _CLITICS:
            if word.endswith(clitic) and word != clitic:
                for kind, rest in known.get(clitic, ()):
                    if not rest or _follows(words, place + 1, rest):
                        found[kind] += 1
    return found


@cache
def _phrases() -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """By its first word, the kind of each phrase and its other words."""
    found: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for kind in SIGNS:
        for phrase in lexicon()["changes"][kind]:
            for first, *rest in product(*(word.split("/") for word in phrase.split())):
                found.setdefault(first, []).append((kind, tuple(rest)))
    return found


def _follows(words: Sequence[str], at: int, rest: tuple[str, ...]) -> bool:
    """Whether the rest of a phrase stands at a place; a gap holds at least one word."""
    for place, word in enumerate(rest):
        if word == _GAP:
            after = rest[place + 1 :]
            return any(_follows(words, at + width, after) for width in range(1, _WIDEST + 1))
        if at >= len(words) or words[at] != word:
            return False
        at += 1
    return True
