"""Names of earlier versions: each still works, with a warning that says what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from memlab.errors import RenamedWarning
from memlab.kernel.base.arguments._warning import warn_caller

__all__ = ["renamed"]


def renamed(owner: object, called: str, name: str, table: Mapping[str, str | tuple[str, Callable[[Any], Any]]]) -> Any:
    """Return what a former name of an attribute stands for, and warn.

    Parameters
    ----------
    owner
        The object that had the attribute.
    called
        What the owner is called in examples, such as ``lab``.
    name
        The former name.
    table
        By former name, the path of the attribute that replaces it, or the call to write and a function from the owner
        to something that is called as the former attribute was.

    Raises
    ------
    KeyError
        If the table does not have the name.
    """
    entry = table[name]
    instead, found = (entry, attrgetter(entry)) if isinstance(entry, str) else entry
    message = f"{called}.{name} is {called}.{instead} from now on; the former name works throughout 0.2."
    warn_caller(message, RenamedWarning)
    return found(owner)
