"""The words of a simulated life, as ``words.toml`` has them: what can be decided, and how it is said."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from memlab.errors import InputError

__all__ = ["ASPECTS", "DUTIES", "FORMS", "NAMES", "TASTES", "Aspect", "named"]


@dataclass(frozen=True)
class Aspect:
    """Something that has one value at a time. ``names`` are synonyms, ``values`` what it can be."""

    names: tuple[str, ...]
    values: tuple[str, ...]
    kind: str


_TABLES = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


def _aspects(name: str) -> tuple[Aspect, ...]:
    return tuple(Aspect(tuple(one["names"]), tuple(one["values"]), one["kind"]) for one in _TABLES[name])


ASPECTS, TASTES, (DUTIES,) = _aspects("aspects"), _aspects("tastes"), _aspects("duties")
NAMES: dict[str, list[str]] = _TABLES["names"]
"""Of people, projects and places, and reasons why."""

FORMS: dict[str, dict[str, list[str]]] = _TABLES["forms"]
"""Templates by the sort of what is said (project, taste, duty, talk) and by what they say of it."""


def named(pool: list[str], number: int, what: str) -> tuple[str, ...]:
    """The first ``number`` names of a pool, numbered where it runs out: Lantern, ..., Lantern 2.

    >>> named(["Ida", "Bo"], 3, "person")
    ('Ida', 'Bo', 'Ida 2')
    """
    if number < 1:
        raise InputError(f"A world needs at least one {what}, not {number}.")
    rounds = (divmod(index, len(pool)) for index in range(number))
    return tuple(pool[place] + (f" {turn + 1}" if turn else "") for turn, place in rounds)
