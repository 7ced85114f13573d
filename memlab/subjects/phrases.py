"""Texts as words and phrases, and the tables of a language in which the detectors look them up.

Everything here takes time in proportion to the text, whatever the text: words are one scan, and phrases are looked for
as they are, at memory speed. Nothing is learned from data. The tables of a language are a file beside this module, such
as ``english.toml``, read at its first use; a text in any other language shows no phrase at all.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["clauses", "first_of", "holds", "lexicon", "padded", "phrases", "sentences", "vocabulary", "words_of"]

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")


@cache
def lexicon(language: str = "english") -> dict[str, dict[str, Any]]:
    """The tables of a language by subject and name."""
    tables = tomllib.loads((Path(__file__).parent / f"{language}.toml").read_text(encoding="utf-8"))
    assert tables.pop("language") == language
    return tables


@cache
def phrases(subject: str, name: str) -> tuple[str, ...]:
    """A table of phrases as ``holds`` and ``first_of`` want them.

    >>> phrases("utterance", "speakers")[:2]
    (' i ', ' we ')
    """
    return tuple(f" {phrase} " for phrase in lexicon()[subject][name])


@cache
def vocabulary(subject: str, *names: str) -> frozenset[str]:
    """Tables of single words, together."""
    return frozenset(word for name in names for word in lexicon()[subject][name])


def words_of(text: str) -> list[str]:
    """Its words in lower case; an apostrophe belongs to its word.

    >>> words_of("I don\u2019t like C++, Ada!")
    ['i', "don't", 'like', 'c', 'ada']
    """
    return _WORD.findall(text.lower().replace("\u2019", "'"))


def padded(words: Iterable[str]) -> str:
    """Words with a space before, between and after, so that a phrase is found as whole words."""
    return f" {' '.join(words)} "


def holds(text: str, table: tuple[str, ...]) -> bool:
    """Whether a padded text holds any of the phrases."""
    for phrase in table:  # noqa: SIM110 - a generator takes twice as long, and this is asked for every sentence
        if phrase in text:
            return True
    return False


def first_of(text: str, table: tuple[str, ...]) -> str | None:
    """The phrase with which a padded text begins, the longest of several."""
    if not text.startswith(table):
        return None
    found = [phrase for phrase in table if text.startswith(phrase)]
    return max(found, key=len)


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
    return _clause().split(text)


@cache
def _clause() -> re.Pattern[str]:
    return re.compile(rf"[,;:()\n\u2014]|[.!?](?:\s|$)|\b(?:{'|'.join(lexicon()['text']['conjunctions'])})\b")
