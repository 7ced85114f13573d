"""The tables of English, and the look-up of phrases in them.

The tables are the file ``english.toml`` beside this module, read at its first use. Nothing in it was fitted to a data
set; of a text in another language no table finds anything. A phrase is looked up as it is, at memory speed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["first_of", "holds", "lexicon", "padded", "phrases", "table", "vocabulary"]


@cache
def lexicon(language: str = "english") -> dict[str, dict[str, Any]]:
    """Return the tables of a language, by subject and name.

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


@cache
def table(subject: str, name: str) -> Any:
    """Return one table; a list as a frozenset.

    Parameters
    ----------
    subject, name
        Where the table stands in ``english.toml``.

    Returns
    -------
    frozenset or dict
        The table. Read only.

    Examples
    --------
    >>> "says" in table("extraction", "reports")
    True
    """
    found = lexicon()[subject][name]
    return frozenset(found) if isinstance(found, list) else found


@cache
def phrases(subject: str, *names: str) -> tuple[str, ...]:
    """Return tables of phrases as one, each phrase padded for ``holds`` and ``first_of``.

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


@cache
def vocabulary(subject: str, *names: str) -> frozenset[str]:
    """Return tables of single words as one set.

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
    """Return words joined with a space before, between and after, so that phrases match whole words only.

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
    """Return whether a padded text contains any of the phrases.

    Parameters
    ----------
    text
        A text that ``padded`` made.
    table
        Phrases that ``phrases`` returned.

    Returns
    -------
    bool
        Whether one of them stands in the text.

    Examples
    --------
    >>> holds(padded(["as", "i", "said"]), (" i said ", " i meant "))
    True
    """
    for phrase in table:  # noqa: SIM110 - a generator takes twice as long, and this is asked for every sentence
        if phrase in text:
            return True
    return False


def first_of(text: str, table: tuple[str, ...]) -> str | None:
    """Return the longest of the phrases with which a padded text begins, None if it begins with none.

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
    found = [phrase for phrase in table if text.startswith(phrase)]
    return max(found, key=len)
