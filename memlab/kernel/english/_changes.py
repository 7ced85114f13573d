"""Signs of change: which phrases of a text say that something ended, began, turned into another, or did none of it.

The tables are ``changes`` in ``english.toml``. A phrase is found by its first word, so that a text takes time in
proportion to its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product

from memlab.kernel.english._lexicon import lexicon

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
    >>> dict(signs_of_change(["i", "gave", "the", "bike", "back", "and", "walk", "now"]))
    {'over': 1, 'lasting': 1}
    """
    found: dict[str, int] = {}
    known, pairs = _phrases()
    last = len(words) - 1
    for place, word in enumerate(words):
        heads = [word] if "'" not in word else [word, *(clitic for clitic in _CLITICS if word.endswith(clitic))]
        for head in heads:
            met = known.get(head, ())
            if head in pairs and place < last:
                met = (*met, *pairs[head].get(words[place + 1], ()))
            for kind, rest, at in met:
                if not rest or _follows(words, place + at, rest):
                    found[kind] = found.get(kind, 0) + 1
    return found


Rest = tuple[str, tuple[str, ...], int]
"""The kind of a phrase, its words that are still to be found, and how far from its first word they stand."""


@cache
def _phrases() -> tuple[dict[str, list[Rest]], dict[str, dict[str, list[Rest]]]]:
    """By the first word, phrases of one word and those with a gap after it; by the first two words, all others."""
    known: dict[str, list[Rest]] = {}
    pairs: dict[str, dict[str, list[Rest]]] = {}
    for kind in SIGNS:
        for phrase in lexicon()["changes"][kind]:
            for first, *rest in product(*(word.split("/") for word in phrase.split())):
                if rest and rest[0] != _GAP:
                    pairs.setdefault(first, {}).setdefault(rest[0], []).append((kind, tuple(rest[1:]), 2))
                else:
                    known.setdefault(first, []).append((kind, tuple(rest), 1))
    return known, pairs


def _follows(words: Sequence[str], at: int, rest: tuple[str, ...]) -> bool:
    """Whether the rest of a phrase stands at a place; a gap holds at least one word."""
    for place, word in enumerate(rest):
        if word == _GAP:
            after = rest[place + 1 :]
            first = after[0]
            return any(
                words[at + width] == first and _follows(words, at + width, after)
                for width in range(1, min(_WIDEST, len(words) - at - 1) + 1)
            )
        if at >= len(words) or words[at] != word:
            return False
        at += 1
    return True
