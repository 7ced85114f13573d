"""Which rows of a source are in the lab already: a memory's own columns are its key, so nothing else is kept of it.

A row is known if the lab has as many memories of its project, session, speaker and text (and its time, where it has
one) as the source has had rows like it. So the same file twice adds nothing, a load that was cut off goes on, a log
that has grown adds its end, and one that repeats itself keeps its repetitions. What is purged leaves no key behind; it
stays away by its tombstone.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memlab.kernel.state import State, Tombstones

__all__ = ["Known"]

_PLACE = ("project", "session", "speaker")


class Known:
    """What a lab has of one source. ``fresh`` looks at rows, ``still`` again under the lock, ``stored`` counts them."""

    def __init__(self) -> None:
        self._rows = 0
        self._held: Counter[bytes] = Counter()
        """Memories by key, those with a time by that too."""
        self._read: Counter[bytes] = Counter()
        """Rows of the source so far, likewise."""
        self._asked: list[tuple[bytes, int]] = []
        self._counted: list[bytes] = []
        self.timed: Sequence[bool] = ()
        """Of each row that is asked about: whether the source gives its time."""
        self.found: list[str] = []
        """Of each row: added, known or purged."""

    def fresh(
        self, state: State, columns: Mapping[str, Sequence[Any]], texts: Sequence[str]
    ) -> NDArray[np.bool_]:
        """Which rows are new."""
        self._catch_up(state)
        nothing = [None] * len(texts)
        places = zip(*(columns.get(name, nothing) for name in _PLACE), strict=True)
        created = columns.get("created", nothing)
        tombstones = state.projection(Tombstones)
        purged = len(tombstones) > 0
        batch: Counter[bytes] = Counter()
        self._asked, self._counted, self.found = [], [], []
        for row, (place, text) in enumerate(zip(places, texts, strict=True)):
            bare = _key(place, text)
            dated = _dated(bare, created[row])
            key = dated if self.timed[row] else bare
            nth = self._read[key] + batch[key]
            batch.update((bare, dated))
            self._counted += (bare, dated)
            known = self._held[key] > nth
            self.found.append(
                "known" if known else "purged" if purged and tombstones.is_purged(text) else "added"
            )
            if self.found[-1] == "added":
                self._asked.append((key, nth))
        return np.array([one == "added" for one in self.found], dtype=np.bool_)

    def still(self, state: State) -> NDArray[np.bool_]:
        """Which of the rows that were new are so now: another process may have loaded them meanwhile."""
        self._catch_up(state)
        left = [self._held[key] <= nth for key, nth in self._asked]
        added = [row for row, what in enumerate(self.found) if what == "added"]
        for row, new in zip(added, left, strict=True):
            if not new:
                self.found[row] = "known"
        return np.array(left, dtype=np.bool_)

    def stored(self) -> None:
        """The rows that were asked about are stored."""
        self._read.update(self._counted)
        self._counted = []

    def _catch_up(self, state: State) -> None:
        columns = [state.names[name] for name in _PLACE]
        created = state.numbers["created"].values
        for row in range(self._rows, len(state)):
            text = state.texts.value_at(row)
            if text is not None:
                bare = _key(tuple(column.value_at(row) for column in columns), text)
                self._held.update((bare, _dated(bare, int(created[row]))))
        self._rows = len(state)


def _key(place: Sequence[str | None], text: str) -> bytes:
    return hashlib.blake2b(msgspec.msgpack.encode((*place, text)), digest_size=16).digest()


def _dated(key: bytes, created: int | None) -> bytes:
    return key + (created or 0).to_bytes(8, "little", signed=True)
