"""Errors between a server and a client: the class that a refusal names, and that class again from it."""

from __future__ import annotations

from typing import Any

import memlab.errors
from memlab.errors import MemlabError, MissingExtra, UnknownName

__all__ = ["describe_error", "restore_error"]

_KEY = "memlab/error"
_CLASSES: dict[str, type[MemlabError]] = {
    name: value
    for name in memlab.errors.__all__
    if isinstance(value := getattr(memlab.errors, name), type)
    and issubclass(value, MemlabError)
    and value is not MissingExtra  # it is made of three names, and says what to install on another machine
}
_LONGEST = 2_000
"""Characters of a message; a policy's error, with its source, is the longest and has a third of it."""


def describe_error(error: MemlabError) -> dict[str, Any]:
    """Return what a refusal says beside its text: the nearest public class of the error."""
    name = next(one.__name__ for one in type(error).__mro__ if _CLASSES.get(one.__name__) is one)
    details = {"what": error.what, "name": str(error.name)[:200]} if isinstance(error, UnknownName) else {}
    return {_KEY: {"class": name, **details}}


def restore_error(beside: object, message: str) -> MemlabError:
    """Return the error that a refusal describes; MemlabError where it names no class of memlab's.

    >>> restore_error(describe_error(UnknownName("pack", "old")), 'There is no pack "old".')
    UnknownName('There is no pack "old".')
    """
    described = beside.get(_KEY) if isinstance(beside, dict) else None
    described = described if isinstance(described, dict) else {}
    cls = _CLASSES.get(str(described.get("class")), MemlabError)
    text = message[:_LONGEST]
    if not issubclass(cls, UnknownName):
        return cls(text)
    error = cls(str(described.get("what"))[:200], str(described.get("name"))[:200])
    error.args = (text,)
    return error
