"""The tokenizer: words of a text with their offsets, in a few documented shapes.

One scan over the text for every shape, in time proportional to the text. Callers that look words up in tables use
``words_of``; callers that cite what was said use ``tokenize``, whose offsets are those of the text as it was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

__all__ = ["Shape", "Token", "tokenize", "word_pattern", "words_of"]

Shape = Literal["word", "spoken", "hyphenated", "joined", "clitic", "value"]
"""What counts as one word; see ``tokenize``."""

_SHAPES: dict[str, re.Pattern[str]] = {
    "word": re.compile(r"[^\W_]+(?:'[^\W_]+)*"),
    "spoken": re.compile(r"[^\s,;:()\[\]\u2013\u2014]+"),
    "hyphenated": re.compile(r"[\w'-]+"),
    "joined": re.compile(r"[^\W_]+(?:-[^\W_]+)*"),
    "clitic": re.compile(r"'s\b|[^\W_]+(?:[-_.:][^\W_]+)*(?:'(?!s\b)[^\W_]+)?"),
    "value": re.compile(
        r"\d+(?:[.,:/]\d+)*(?:[a-z%]{1,3}(?![^\W_]))?|[^\W\d_]+(?:'[^\W_]+)?|[.!?;\n]+(?=\s|$)|[%$\u20ac\u00a3,()]|[^\W_]+",
        re.IGNORECASE,
    ),
}


class Token(NamedTuple):
    """A word in lower case and its place: ``text[start:stop]`` is the word as written."""

    low: str
    start: int
    stop: int


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case; an apostrophe belongs to its word.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    list of str
        The words of shape "word", in order.

    Examples
    --------
    >>> words_of("I don\u2019t like C++, Ada!")
    ['i', "don't", 'like', 'c', 'ada']
    """
    return _SHAPES["word"].findall(text.lower().replace("\u2019", "'"))


def tokenize(text: str, shape: Shape = "word", start: int = 0, stop: int | None = None) -> Iterator[Token]:
    """Yield the words of a text in lower case, with their offsets.

    Parameters
    ----------
    text
        Any text.
    shape
        What counts as one word. "word": letters and digits, with the apostrophe within ("don't"). "spoken": all
        between white space, commas, colons, brackets and dashes ("C++", "St.", "a@b.org"). "hyphenated": "word", with
        hyphens and underscores. "joined": letters and digits with the hyphens between ("2023-05-07"). "clitic": as
        "word" with dots, colons, hyphens and underscores within, and "'s" as a word of its own. "value": numbers with
        their units and separators, words, and the signs that end a sentence or a clause or name a currency.
    start, stop
        The part of the text to read; offsets are those of the whole text.

    Yields
    ------
    Token
        The words in order.

    Examples
    --------
    >>> [token.low for token in tokenize("Ada's C++ course, 2023-05-07", "spoken")]
    ["ada's", 'c++', 'course', '2023-05-07']
    """
    for match in _SHAPES[shape].finditer(text, start, len(text) if stop is None else stop):
        yield Token(match[0].lower().replace("\u2019", "'"), *match.span())


def word_pattern(shape: Shape) -> re.Pattern[str]:
    """Return the compiled pattern of a shape, for scans that need every microsecond.

    Parameters
    ----------
    shape
        As in ``tokenize``.

    Returns
    -------
    re.Pattern
        A pattern that matches one word.

    Examples
    --------
    >>> word_pattern("joined").findall("on 2023-05-07")
    ['on', '2023-05-07']
    """
    return _SHAPES[shape]
