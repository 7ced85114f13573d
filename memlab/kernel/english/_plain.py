"""Ordinary words of English: what a capital letter alone does not make a name.

``plain_words.txt`` lists base forms; plurals, "-ed", "-ing" and "-ly" are derived. Words that are names of people,
places or products at least as often ("grace", "apple", "frozen") are not listed, nor are those that projects are
often called after ("otter", "orbit").
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

__all__ = ["is_plain_word"]

_SUFFIXES = (("ies", "y"), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"), ("es", ""), ("s", ""), ("ly", ""))
_SHORTEST_STEM = 3
_DRAWN_OUT = re.compile(r"([a-z])\1\1|^(?:([a-z])\2){3,}$")
"""A letter three times in a row, or each letter twice: "dunnnn", "bbaadddd"."""


def is_plain_word(word: str) -> bool:
    """Return whether a word is an ordinary word of English, or a drawn-out cry.

    Parameters
    ----------
    word
        One word in lower case.

    Returns
    -------
    bool
        Whether the word, or the word without an ending, is in the list.

    Examples
    --------
    >>> [is_plain_word(word) for word in ("sofa", "delivering", "dunnnn", "provo")]
    [True, True, True, False]
    """
    if word in _words() or _DRAWN_OUT.search(word) is not None:
        return True
    return any(
        len(word) - len(ending) >= _SHORTEST_STEM and word.endswith(ending) and word[: -len(ending)] + kept in _words()
        for ending, kept in _SUFFIXES
    )


@cache
def _words() -> frozenset[str]:
    return frozenset((Path(__file__).parent / "plain_words.txt").read_text(encoding="utf-8").split())
