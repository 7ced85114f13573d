"""Which memories a question calls up by their triggers.

A trigger is a text that occurs in the question, in any case; ``*`` in it stands for any text between, also none
(``log*password``). There is nothing else to the language, so that no pattern can be slow: a search goes once through
the question for each part between stars, from left to right. A trigger of stars alone stands for itself.

Triggers are kept by the first letters of their longest part, and only those whose letters stand in the question are
looked at.
"""

from __future__ import annotations

import weakref
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.state import State

__all__ = ["Triggers", "occurs"]

_START = 4

_Parts = tuple[str, ...]


def occurs(trigger: str, text: str) -> bool:
    """Whether ``trigger`` occurs in ``text``, in any case.

    >>> occurs("Log*password", "please log the user's PASSWORD"), occurs("log*password", "password log")
    (True, False)
    """
    return _occurs(_parts(trigger), text.lower())


class Triggers:
    """The triggers of a state; those of new memories are added when they are asked for."""

    def __init__(self) -> None:
        self._of: weakref.ref[object] | None = None
        self._seen = 0
        self._kept: dict[str, dict[_Parts, list[int]]] = {}

    def called(self, state: State, text: str) -> NDArray[np.int64]:
        """The rows with a trigger in ``text``, ascending."""
        if not state.lists["triggers"].held:
            return np.empty(0, dtype=np.int64)
        self._learn(state)
        said = text.lower()
        rows: list[int] = []
        for start in self._starts(said):
            for parts, calls in self._kept[start].items():
                if _occurs(parts, said):
                    rows += calls
        return np.array(sorted(set(rows)), dtype=np.int64)

    def _starts(self, said: str) -> list[str]:
        """The kept beginnings that occur; by whichever are fewer, those or the pieces of the text."""
        if _START * len(said) > len(self._kept):
            return [start for start in self._kept if start in said]
        pieces = {said[at : at + size] for at in range(len(said)) for size in range(1, _START + 1)}
        return [piece for piece in pieces if piece in self._kept]

    def _learn(self, state: State) -> None:
        """The triggers of rows that came since; all of them of another state."""
        lists = state.lists["triggers"]
        if self._of is None or self._of() is not lists:
            self._of, self._seen, self._kept = weakref.ref(lists), 0, {}
        for row, triggers in islice(lists.filled(), self._seen, None):
            for parts in map(_parts, triggers):
                start = max(parts, key=len)[:_START]
                self._kept.setdefault(start, {}).setdefault(parts, []).append(row)
            self._seen += 1


def _parts(trigger: str) -> _Parts:
    low = trigger.lower()
    return tuple(part for part in low.split("*") if part) or (low,)


def _occurs(parts: _Parts, text: str) -> bool:
    start = 0
    for part in parts:
        start = text.find(part, start)
        if start < 0:
            return False
        start += len(part)
    return True
