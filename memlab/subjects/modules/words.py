"""Words of code bases, from ``projects.toml``: languages, frameworks, folders of generated files, common words."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["language", "stem_of", "words"]


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("projects.toml").read_text(encoding="utf-8"))


@cache
def words(name: str) -> frozenset[str]:
    """One of the lists: generated, frameworks, common, layers, entries; "layer stems" are the stems of layers."""
    if name == "layer stems":
        return frozenset(map(stem_of, words("layers")))
    return frozenset(_read()[name].split())


@cache
def _short() -> dict[str, str]:
    return {long: short for short, longer in _read()["abbreviations"].items() for long in longer.split()}


def stem_of(word: str) -> str:
    """The stem of a word in small letters; what is usually abbreviated has the abbreviation.

    >>> stem_of("routes"), stem_of("authentication")
    ('rout', 'auth')
    """
    if word in _short():
        return _short()[word]
    for end in ("ings", "ing", "ers", "er", "ed", "es", "s"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[: -len(end)]
    return word


@cache
def _languages() -> dict[str, str]:
    return {end: name for name, ends in _read()["languages"].items() for end in ends.split()}


def language(path: str) -> str | None:
    """The language of a file by the end of its name; None for what is no source.

    >>> language("src/app.TSX"), language("README.md")
    ('TypeScript', None)
    """
    dot = path.rfind(".")
    return _languages().get(path[dot:].lower()) if dot >= 0 else None
