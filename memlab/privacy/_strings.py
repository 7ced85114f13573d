"""Every string of an event: names, reasons and whatever else is stored as it was given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from memlab.privacy._screen import refuse, screen_many

__all__ = ["refuse_strings"]

_LONGEST, _MOST = 200, 20_000
_passed: set[str] = set()
"""Strings that hold no secret: names come again and again."""


def refuse_strings(value: Any, what: str) -> None:
    """Raise PrivacyError if any string in ``value``, however deep, holds a secret; ``what`` holds it.

    >>> refuse_strings({"project": "api", "ids": [1, 2]}, "event")
    """
    strings: set[str] = set()
    _gather(value, strings)
    strings -= _passed
    if not strings:
        return
    given = list(strings)
    if any(screening.findings for screening in screen_many(given)):
        for path, text in _named(value, ()):
            refuse(text, f"{what}, field {path}" if path else what)
    if len(_passed) > _MOST:
        _passed.clear()
    _passed.update(text for text in given if len(text) <= _LONGEST)


def _gather(value: Any, into: set[str]) -> None:
    kind = type(value)
    if kind is dict:
        into.update(value)
        for part in value.values():
            if type(part) is str:
                into.add(part)
            elif type(part) not in _NUMBERS:
                _gather(part, into)
    elif kind is list or kind is tuple:
        kinds = set(map(type, value))
        if kinds == {str}:
            into.update(value)
        elif kinds <= {list, tuple, type(None)}:
            if kinds:  # lists of lists, such as the tags of each row: as one
                _gather(list(chain.from_iterable(part for part in value if part)), into)
        elif not kinds <= _NUMBERS:
            for part in value:
                _gather(part, into)
    elif isinstance(value, str):
        into.add(str(value))
    elif isinstance(value, Mapping):
        _gather(dict(value), into)


_NUMBERS = frozenset((int, float, bool, bytes, type(None)))


def _named(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each string with the names that lead to it."""
    if isinstance(value, str):
        yield ".".join(path), value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield ".".join(path), str(name)
            yield from _named(part, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _named(part, path)
