"""Memories that extensions make of the words of others: what a correction, and bringing memories back, asks of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

from memlab.kernel.hooks import hooks
from memlab.kernel.state import State
from memlab.kernel.storage.store import Store

__all__ = ["Dependents", "dependents", "fields_equal", "find_dependents"]


class Dependents:
    """Memories of one sort that were made of other memories. A hook at the point "dependents" returns one."""

    label: ClassVar[str] = ""
    """The word by which results of a correction tell of them."""

    def made(self, state: State) -> Collection[int]:
        """Return the ids of all memories that the extension made and that no other extension has to look at."""
        return ()

    def find(self, state: State, row: int, new: str, others: Collection[int]) -> list[int]:
        """Return the rows of memories that were made of the one in ``row`` and that its text ``new`` leaves unfounded.

        ``others`` are the ids of what other extensions made.
        """
        return []

    def withdraw(
        self, editor: Any, row: int, rows: Sequence[int], before: dict[str, Any], outcome: Any
    ) -> dict[str, Any]:
        """Take ``rows`` back before the memory in ``row`` is replaced; return the fields that it has then."""
        return before

    def revise(self, editor: Any, row: int, text: str, rows: Sequence[int], outcome: Any) -> None:
        """Make ``rows`` again of the new text, once the memory in ``row`` is replaced."""

    def stand_ins(self, state: State, rows: Sequence[int]) -> list[int]:
        """Return those of ``rows`` that stand for others, which come back in their place when they are restored."""
        return []

    def members(self, state: State, row: int) -> Sequence[int]:
        """Return the ids of the memories that the one in ``row`` stands for."""
        return ()

    def undo(self, store: Store, rows: Sequence[int]) -> None:
        """Bring back the members of ``rows``, and take these out of use."""


def dependents() -> list[Dependents]:
    """Return what the extensions declare."""
    return [make() for make in hooks("dependents")]


def find_dependents(state: State, row: int, new: str) -> list[tuple[Dependents, list[int]]]:
    """Return by sort the rows that were made of the one in ``row``, and that its text ``new`` leaves unfounded."""
    sorts = dependents()
    made = [sort.made(state) for sort in sorts]
    found = []
    for sort in sorts:
        others = {id for other, ids in zip(sorts, made, strict=True) if other is not sort for id in ids}
        found.append((sort, sort.find(state, row, new, others)))
    return found


def fields_equal(one: Any, other: Any) -> bool:
    """Return whether two values of a field are the same; lists and tuples with equal items are."""
    if isinstance(one, list | tuple) or isinstance(other, list | tuple):
        return list(one or ()) == list(other or ())
    return bool(one == other)
