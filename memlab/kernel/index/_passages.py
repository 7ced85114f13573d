"""Long texts as passages: where one ends and the next begins, and which of them answers a question."""

from __future__ import annotations

import re
from itertools import pairwise

from memlab.kernel.index._tokens import words_of

__all__ = ["LONG", "passages_of"]

LONG = 160
"""Words above which a text is several passages; the longest of 2,760 turns between people has 82."""

_WORDS = 80
"""Words of a passage, about: measured on long chats with an assistant, nDCG@10 rises from 200 to 120 to 80."""

_ENDS = re.compile(r"(?<=[.!?:;])\s+|\s*\n\s*|(?<=[。！？])")
_SPACE = re.compile(r"\s+")

Span = tuple[int, int]


def passages_of(text: str) -> list[Span]:
    """Where the passages of a text begin and end: one after the other and of like length, together the whole text.

    A text of at most ``LONG`` words is one. A passage ends with a sentence or a line; a longer sentence is cut at
    spaces. What has no spaces is not cut.

    >>> passages_of("Tabs or spaces?")
    [(0, 15)]
    """
    total = len(words_of(text))
    if total <= LONG:
        return [(0, len(text))]
    wanted = total / -(-total // _WORDS)
    ends, counted = [0], 0.0
    for start, words in _pieces(text, wanted):
        # the piece goes where more than half of it fits
        if start > ends[-1] and counted + words / 2 > wanted * len(ends):
            ends.append(start)
        counted += words
    return list(pairwise((*ends, len(text))))


def _pieces(text: str, most: float) -> list[tuple[int, int]]:
    """Where each sentence or line begins, of longer ones each part between spaces, and the number of its words."""
    found: list[tuple[int, int]] = []
    for start, stop in _cut(_ENDS, text, 0, len(text)):
        words = len(words_of(text[start:stop]))
        if words <= most:
            found.append((start, words))
        else:
            found += [(one, len(words_of(text[one:other]))) for one, other in _cut(_SPACE, text, start, stop)]
    return found


def _cut(ends: re.Pattern[str], text: str, start: int, stop: int) -> list[Span]:
    """The spans between places where ``ends`` is found, what is found there left with the span before it."""
    places = [match.end() for match in ends.finditer(text, start, stop)]
    return [(one, other) for one, other in pairwise((start, *places, stop)) if one < other]
