"""Plain English as words: what the detectors of utterances and of negation look at.

Everything here takes time in proportion to the text, whatever the text: words are one scan, and phrases are looked for
as they are, at memory speed. Nothing is learned from data, and any other language shows no phrase at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["clauses", "first_of", "holds", "padded", "phrases", "sentences", "words_of"]

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_CLAUSE = re.compile(r"[,;:()\n\u2014]|[.!?](?:\s|$)|\b(?:but|and|or|so|because|while|whereas)\b")


def words_of(text: str) -> list[str]:
    """Its words in lower case; an apostrophe belongs to its word.

    >>> words_of("I don\u2019t like C++, Ada!")
    ['i', "don't", 'like', 'c', 'ada']
    """
    return [word.replace("\u2019", "'") for word in _WORD.findall(text.lower())]


def padded(words: Iterable[str]) -> str:
    """Words with a space before, between and after, so that a phrase is found as whole words."""
    return f" {' '.join(words)} "


def phrases(text: str) -> tuple[str, ...]:
    """A table: one phrase a line or between bars, as ``holds`` wants them.

    >>> phrases("i like | i prefer")
    (' i like ', ' i prefer ')
    """
    return tuple(f" {phrase} " for part in text.split("|") if (phrase := " ".join(part.split())))


def holds(text: str, table: Iterable[str]) -> bool:
    """Whether a padded text holds any of the phrases."""
    return any(phrase in text for phrase in table)


def first_of(text: str, table: Iterable[str]) -> str | None:
    """The phrase with which a padded text begins, the longest of several."""
    found = [phrase for phrase in table if text.startswith(phrase)]
    return max(found, key=len) if found else None


def sentences(text: str) -> list[str]:
    """Its sentences with the marks that end them.

    >>> sentences("I moved. Where to? Rome")
    ['I moved.', ' Where to?', ' Rome']
    """
    return _SENTENCE.findall(text)


def clauses(text: str) -> list[str]:
    """What stands between commas, colons, brackets, ends of sentences and words such as but.

    >>> clauses("Use spaces, not tabs")
    ['Use spaces', ' not tabs']
    """
    return _CLAUSE.split(text)
