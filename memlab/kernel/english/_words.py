"""Words of a text with their offsets, tables of English, and number words.

Splitting a text takes one scan, in time proportional to its length. Callers that look words up in tables use
`words_of`. Callers that cite a text use `tokenize`, whose positions are those of the original text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Shape = Literal["word", "spoken", "hyphenated", "joined", "clitic", "value"]
"""The definition of a word, by which a text is split; see `tokenize`."""

# One pattern per shape, compiled once.
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
    """A word in lower case with its offsets. ``text[start:stop]`` is the word as written."""

    low: str
    start: int
    stop: int


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, with apostrophes kept.

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


def tokenize(
    text: str, shape: Shape = "word", start: int = 0, stop: int | None = None
) -> Iterator[Token]:
    """Yield the words of a text in lower case, with their offsets.

    Parameters
    ----------
    text
        Any text.
    shape
        The definition of a word. A "word" has letters and digits, and apostrophes between them ("don't"). "spoken"
        words are separated by white space, commas, colons, brackets and dashes ("C++", "St.", "a@b.org"). "hyphenated"
        words may also have hyphens and underscores. "joined" words have letters and digits, and hyphens between them
        ("2023-05-07"). "clitic" words may also have dots, colons, hyphens and underscores, and "'s" is a separate word.
        "value" gives numbers with units and separators, words, and signs that end a sentence or clause or name a
        currency.
    start, stop
        The bounds of the part of the text to read. Offsets are those of the whole text.

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
    """Return the compiled regular expression of a word shape.

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


# The functions below look up words and phrases in the tables of English.
#
# The tables are in the file ``english.toml`` next to this module, which is read at first use. The tables were not
# fitted to a data set. In a text in another language, no phrase matches.


# The file is read once per process, because its 1,700 lines of TOML take 20 ms.
@cache
def lexicon(language: str = "english") -> dict[str, dict[str, Any]]:
    """Return the word tables of a language, by subject and name.

    Parameters
    ----------
    language
        The language; "english" is the only one that has tables.

    Returns
    -------
    dict
        For each subject its tables: lists, mappings or numbers. Read only.

    Examples
    --------
    >>> lexicon()["text"]["conjunctions"][:2]
    ['but', 'and']
    """
    tables = tomllib.loads((Path(__file__).parent / f"{language}.toml").read_text(encoding="utf-8"))
    assert tables.pop("language") == language
    return tables


# Tables are cached, because they never change and every sentence is looked up in several of them.
@cache
def table(subject: str, name: str) -> Any:
    """Return one word table of ``english.toml``; lists become frozensets.

    Parameters
    ----------
    subject, name
        The subject and the name of the table in ``english.toml``.

    Returns
    -------
    frozenset or dict
        The table. Read only.

    Examples
    --------
    >>> "says" in table("extraction", "reports")
    True
    """
    entries = lexicon()[subject][name]
    return frozenset(entries) if isinstance(entries, list) else entries


# Padded tables are cached, because padding a table for every sentence would take longer than the look-up.
@cache
def phrases(subject: str, *names: str) -> tuple[str, ...]:
    """Return the phrases of tables, padded for ``holds`` and ``first_of``.

    Parameters
    ----------
    subject
        The subject of the tables in ``english.toml``.
    *names
        The tables.

    Returns
    -------
    tuple of str
        The phrases with a space before and after each.

    Examples
    --------
    >>> phrases("utterance", "speakers")[:2]
    (' i ', ' we ')
    """
    return tuple(f" {phrase} " for name in names for phrase in lexicon()[subject][name])


# Unions are cached, because some detectors need the union of several tables for every word.
@cache
def vocabulary(subject: str, *names: str) -> frozenset[str]:
    """Return the union of several tables of single words.

    Parameters
    ----------
    subject
        The subject of the tables in ``english.toml``.
    *names
        The tables.

    Returns
    -------
    frozenset of str
        All words of the tables.

    Examples
    --------
    >>> "myself" in vocabulary("first-person", "pronouns")
    True
    """
    return frozenset(word for name in names for word in lexicon()[subject][name])


def padded(words: Iterable[str]) -> str:
    """Join words with spaces, including a leading and a trailing space.

    Phrases padded in the same way match whole words only.

    Parameters
    ----------
    words
        Words in lower case.

    Returns
    -------
    str
        The joined text.

    Examples
    --------
    >>> padded(["no", "longer"])
    ' no longer '
    """
    return f" {' '.join(words)} "


def holds(text: str, table: tuple[str, ...]) -> bool:
    """Return whether a padded text contains at least one of the phrases.

    Parameters
    ----------
    text
        A text that ``padded`` made.
    table
        Phrases that ``phrases`` returned.

    Returns
    -------
    bool
        Whether the text contains at least one phrase.

    Examples
    --------
    >>> holds(padded(["as", "i", "said"]), (" i said ", " i meant "))
    True
    """
    for phrase in table:  # noqa: SIM110 - a generator takes twice as long, and this function is called for every sentence
        if phrase in text:
            return True
    return False


def first_of(text: str, table: tuple[str, ...]) -> str | None:
    """Return the longest phrase at the start of a padded text, or None without a match.

    Parameters
    ----------
    text
        A text that ``padded`` made.
    table
        Phrases that ``phrases`` returned.

    Returns
    -------
    str or None
        The phrase, padded.

    Examples
    --------
    >>> first_of(" good morning ada ", (" good ", " good morning "))
    ' good morning '
    """
    if not text.startswith(table):
        return None
    openings = [phrase for phrase in table if text.startswith(phrase)]
    return max(openings, key=len)


# Dates, answers, facts and comparisons share one table of number words.


# Words that `number_of` combines: units, tens and multipliers.
_SMALL = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_LARGE = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}

# The names are in lower case and begin with Monday, as in datetime.weekday().
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

NUMBER_WORDS = MappingProxyType(
    {word: number for number, word in enumerate(_SMALL)}
    | {word: 10 * number for number, word in enumerate(_TENS, 2)}
    | {"dozen": 12}
    | _LARGE
)
"""The number that each single word names. `number_of` reads compounds such as "twenty-one"."""


def number_of(word: str) -> int | None:
    """Return the integer that a word spells, or None for other words.

    Parameters
    ----------
    word
        One word in lower case, in digits or letters.

    Returns
    -------
    int or None
        The number, or None for a word that spells no number or has more than 12 digits.

    Examples
    --------
    >>> number_of("seven"), number_of("twenty-one"), number_of("34"), number_of("tea")
    (7, 21, 34, None)
    """
    if word.isascii() and word.isdecimal():
        return int(word) if len(word) <= 12 else None
    number = NUMBER_WORDS.get(word)
    if number is not None:
        return number
    tens, joint, ones = word.partition("-")
    if joint and tens in _TENS and ones in _SMALL[1:10]:
        return NUMBER_WORDS[tens] + NUMBER_WORDS[ones]
    return None
