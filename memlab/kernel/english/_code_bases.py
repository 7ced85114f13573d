"""Words of code bases and of names of files: languages, frameworks, layers, folders of generated files.

The lists are ``code_bases.toml``.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["code_words", "file_language", "file_subject", "name_stems", "stem_code_word"]


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("code_bases.toml").read_text(encoding="utf-8"))


@cache
def code_words(name: str) -> frozenset[str]:
    """Return one of the lists of words.

    Parameters
    ----------
    name
        generated, frameworks, common, layers or entries; "layer stems" are the stems of layers.
    """
    if name == "layer stems":
        return frozenset(map(stem_code_word, code_words("layers")))
    return frozenset(_read()[name].split())


@cache
def _abbreviations() -> dict[str, str]:
    return {long: short for short, longer in _read()["abbreviations"].items() for long in longer.split()}


def stem_code_word(word: str) -> str:
    """Return the stem of a word in small letters; what is usually abbreviated has the abbreviation.

    Parameters
    ----------
    word
        A word in small letters.

    Examples
    --------
    >>> stem_code_word("routes"), stem_code_word("authentication")
    ('rout', 'auth')
    """
    if word in _abbreviations():
        return _abbreviations()[word]
    for end in ("ings", "ing", "ers", "er", "ed", "es", "s"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[: -len(end)]
    return word


def name_stems(name: str) -> list[str]:
    """Return the stems of the words of a name; words written together are split at capitals.

    Parameters
    ----------
    name
        The name of a file, a folder or a class.

    Examples
    --------
    >>> name_stems("AuthStore"), name_stems("user_routes")
    (['auth', 'store'], ['user', 'rout'])
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [stem_code_word(word) for word in re.findall(r"[^\W_]{2,}", apart.lower())]


def file_subject(name: str) -> str:
    """Return the subject of the name of a file without its ending; empty where it names a layer alone.

    Parameters
    ----------
    name
        The name of a file, without folder and ending.

    Examples
    --------
    >>> file_subject("auth-store"), file_subject("UserService"), file_subject("index")
    ('auth', 'user', 'index')
    """
    silent = code_words("layer stems") | code_words("common")
    subject = " ".join(word for word in name_stems(name) if word not in silent)
    return subject if len(subject) >= 2 else ""


@cache
def _languages() -> dict[str, str]:
    return {end: name for name, ends in _read()["languages"].items() for end in ends.split()}


def file_language(path: str) -> str | None:
    """Return the programming language of a file by the end of its name; None for what is no source.

    Parameters
    ----------
    path
        The path of a file.

    Examples
    --------
    >>> file_language("src/app.TSX"), file_language("README.md")
    ('TypeScript', None)
    """
    dot = path.rfind(".")
    return _languages().get(path[dot:].lower()) if dot >= 0 else None
