"""What a caller gives: shown in an error whatever it is, and called so that its own errors are reported as ours."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from memlab.errors import InputError, MemlabError, NoSuchItem

__all__ = ["Called", "item", "raised", "shown"]


def shown(value: object, most: int = 60) -> str:
    """What was given, in few characters, also where its ``__repr__`` raises."""
    try:
        text = repr(value[:most]) if isinstance(value, str | bytes) else _REPR.repr(value)
    except Exception:  # noqa: BLE001 - what tells of an error does not add its own
        return f"an object of the type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


Item = TypeVar("Item")

_REPR = reprlib.Repr()
_REPR.maxother = _REPR.maxlong = 60


@overload
def item(items: Sequence[Item], index: int, what: str) -> Item: ...
@overload
def item(items: Sequence[Item], index: slice, what: str) -> Sequence[Item]: ...
@overload
def item(items: Sequence[Item], index: int | slice, what: str) -> Any: ...
def item(items: Sequence[Item], index: int | slice, what: str) -> Any:
    """What stands at a place of a sequence, or in a slice of it; NoSuchItem beyond its end."""
    try:
        return items[index]
    except IndexError:
        raise NoSuchItem(what, index, [f"0 to {len(items) - 1}"] if items else ()) from None


class Called:
    """A caller's function: what it raises is an InputError that names it, with the cause.

    >>> Called(int, "verify(accepted=...)")("x")
    Traceback (most recent call last):
    memlab.errors.InputError: verify(accepted=...): int raised ValueError: invalid literal for int() with base 10: 'x'
    """

    def __init__(self, function: Callable[..., Any], where: str) -> None:
        self.function, self.where = function, where

    def __call__(self, *args: Any, **given: Any) -> Any:
        try:
            return self.function(*args, **given)
        except MemlabError:
            raise
        except Exception as error:
            name = getattr(self.function, "__qualname__", type(self.function).__name__)
            raise InputError(f"{self.where}: {name} raised {raised(error)}") from error

    def __repr__(self) -> str:
        return repr(self.function)


def raised(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - what tells of an error does not add its own
        return type(error).__name__
