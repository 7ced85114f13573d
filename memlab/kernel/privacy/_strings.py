"""Every string of an event: names, reasons and whatever else is stored as it was given."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from memlab.kernel.privacy._screen import refuse, screen_many

__all__ = ["refuse_strings"]

Path = tuple[str, ...]

_LONGEST, _MOST = 200, 20_000
_HASH = re.compile(r"[0-9a-f]{64}")
_passed: set[str] = set()
"""Strings that hold no secret: names come again and again."""


def refuse_strings(value: Any, what: str, *, hashes: Collection[Path] = ()) -> None:
    """Raise PrivacyError if any string in ``value``, however deep, holds a secret; ``what`` holds it.

    ``hashes`` are the names that lead to fields of content hashes, ``*`` for any name. What has the exact form of one
    there is not looked at: by chance a hash looks like a token.

    >>> refuse_strings({"project": "api", "ids": [1, 2]}, "event")
    """
    if hashes:
        value = _without_hashes(value, hashes)
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


def _without_hashes(value: Any, paths: Collection[Path]) -> Any:
    """Return ``value`` with None for each content hash in the fields at ``paths``; names of fields stay."""
    if type(value) in _NUMBERS:
        return value
    if isinstance(value, str):
        return None if () in paths and _HASH.fullmatch(value) else value
    if isinstance(value, list | tuple):
        return [_without_hashes(part, paths) for part in value]
    if not isinstance(value, Mapping):
        return value
    screened = dict(value)
    for name in {path[0] for path in paths if path}:
        for known in list(value) if name == "*" else [name]:
            if known in value:
                rests = [path[1:] for path in paths if path and path[0] in (known, "*")]
                screened[known] = _without_hashes(value[known], rests)
    return screened


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
