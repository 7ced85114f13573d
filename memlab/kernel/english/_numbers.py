"""Number words as numbers: one table for dates, answers, facts and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

__all__ = ["NUMBER_WORDS", "number_of", "read_number"]

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_LARGE = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}

NUMBER_WORDS = MappingProxyType(
    {word: number for number, word in enumerate(_SMALL)}
    | {word: 10 * number for number, word in enumerate(_TENS, 2)}
    | {"dozen": 12}
    | _LARGE
)
"""Single words to the number that each names; compounds such as "twenty-one" are read by ``number_of``."""


def number_of(word: str) -> int | None:
    """Return the whole number that a word names, None if it names none.

    Parameters
    ----------
    word
        One word in lower case, in digits or letters.

    Returns
    -------
    int or None
        The number; of digits at most 12.

    Examples
    --------
    >>> number_of("seven"), number_of("twenty-one"), number_of("34"), number_of("tea")
    (7, 21, 34, None)
    """
    if word.isascii() and word.isdecimal():
        return int(word) if len(word) <= 12 else None
    known = NUMBER_WORDS.get(word)
    if known is not None:
        return known
    tens, joint, ones = word.partition("-")
    if joint and tens in _TENS and ones in _SMALL[1:10]:
        return NUMBER_WORDS[tens] + NUMBER_WORDS[ones]
    return None


def read_number(words: Sequence[str], place: int) -> tuple[int, int] | None:
    """Return the number that begins at a word, and how many words name it; None where none begins.

    Parameters
    ----------
    words
        Words in lower case.
    place
        The index of the first word.

    Returns
    -------
    tuple of (int, int) or None
        The number and the count of words that were read.

    Examples
    --------
    >>> read_number(["two", "dozen", "eggs"], 0), read_number(["a", "dozen"], 0), read_number(["twenty", "one"], 0)
    ((24, 2), (12, 2), (21, 2))
    >>> read_number(["three", "hundred", "and", "five"], 0), read_number(["a", "dog"], 0)
    ((305, 4), None)
    """
    total, used = 0, 0
    number: int | None = 1 if place < len(words) and words[place] in ("a", "an") else None
    if number is not None and (place + 1 >= len(words) or words[place + 1] not in ("dozen", *_LARGE)):
        return None
    used += number is not None
    while place + used < len(words):
        word = words[place + used]
        follows = words[place + used + 1] if place + used + 1 < len(words) else ""
        if word == "and" and number == 0 and total and number_of(follows) is not None and follows not in _LARGE:
            used += 1
            continue
        value = number_of(word)
        if value is None:
            break
        if word in _LARGE or word == "dozen":
            number = (number or 1) * value
            total, number = (total + number, 0) if value > 12 else (total, number)
        elif number is None or number == 0 or (number % 10 == 0 and number >= 20 and value < 10 and word in _SMALL):
            number = (number or 0) + value
        else:
            break
        used += 1
    return (total + (number or 0), used) if used and (number is not None) else None
