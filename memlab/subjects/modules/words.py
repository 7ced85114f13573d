"""Words of code bases, from ``projects.toml``: languages, frameworks, folders of generated files, common words."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["language", "words"]


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("projects.toml").read_text(encoding="utf-8"))


@cache
def words(name: str) -> frozenset[str]:
    """One of the lists: generated, frameworks, common."""
    return frozenset(_read()[name].split())


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
