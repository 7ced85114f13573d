"""Detection of rows that a lab already stores, when a source is loaded again.

Rows and memories are compared by project, session, speaker, text and, if the source gives it, time. The nth equal row
of a source is known if the lab has at least n equal memories. So loading a file twice adds nothing, an interrupted load
can resume, and a log that has grown adds its new rows. Repetitions within one file are stored. Purged memories are not
compared; their tombstone refuses the text.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from memlab.kernel.base.arrays import Flags
from memlab.kernel.state import State, Tombstones

# The fields that identify a row, in addition to its text.
_CONTEXT = ("project", "session", "speaker")


class Known:
    """Rows of one source, compared with the memories of a lab.

    ``fresh`` selects the new rows, ``still`` checks them again under the lock, and ``stored`` counts them as stored.
    """

    def __init__(self) -> None:
        self._rows = 0
        # Numbers of memories by key, and of rows of the source so far, with and without the time.
        self._stored_counts: Counter[bytes] = Counter()
        self._source_counts: Counter[bytes] = Counter()
        self._pending: list[tuple[bytes, int]] = []
        self._counted: list[bytes] = []
        # For each examined row: whether the source gives its time, and "added", "known" or "purged".
        self.timed: Sequence[bool] = ()
        self.found: list[str] = []

    def fresh(
        self, state: State, columns: Mapping[str, Sequence[Any]], texts: Sequence[str]
    ) -> Flags:
        """Return a mask of the rows that are neither stored nor purged."""
        self._catch_up(state)
        nothing = [None] * len(texts)
        places = zip(*(columns.get(name, nothing) for name in _CONTEXT), strict=True)
        created = columns.get("created", nothing)
        tombstones = state.projection(Tombstones)
        purged = len(tombstones) > 0
        batch: Counter[bytes] = Counter()
        self._pending, self._counted, self.found = [], [], []
        for row, (context, text) in enumerate(zip(places, texts, strict=True)):
            bare = _make_key(context, text)
            dated = _add_time(bare, created[row])
            key = dated if self.timed[row] else bare
            nth = self._source_counts[key] + batch[key]
            batch.update((bare, dated))
            self._counted += (bare, dated)
            is_known = self._stored_counts[key] > nth
            self.found.append(
                "known"
                if is_known
                else "purged"
                if purged and tombstones.is_purged(text)
                else "added"
            )
            if self.found[-1] == "added":
                self._pending.append((key, nth))
        return np.array([outcome == "added" for outcome in self.found], dtype=np.bool_)

    def still(self, state: State) -> Flags:
        """Return a mask of the new rows that no other process has stored meanwhile.

        Another process may have loaded some of these rows in the meantime.
        """
        self._catch_up(state)
        left = [self._stored_counts[key] <= nth for key, nth in self._pending]
        added = [row for row, outcome in enumerate(self.found) if outcome == "added"]
        for row, new in zip(added, left, strict=True):
            if not new:
                self.found[row] = "known"
        return np.array(left, dtype=np.bool_)

    def stored(self) -> None:
        """Record that the rows passed to ``fresh`` are now stored."""
        self._source_counts.update(self._counted)
        self._counted = []

    def _catch_up(self, state: State) -> None:
        """Count the duplicate-detection keys of memories added since the last call."""
        columns = [state.names[name] for name in _CONTEXT]
        created = state.numbers["created"].values
        for row in range(self._rows, len(state)):
            text = state.texts.value_at(row)
            if text is not None:
                bare = _make_key(tuple(column.value_at(row) for column in columns), text)
                self._stored_counts.update((bare, _add_time(bare, int(created[row]))))
        self._rows = len(state)


def _make_key(context: Sequence[str | None], text: str) -> bytes:
    """Return a hash of a row's project, session, speaker and text, without its time."""
    return hashlib.blake2b(msgspec.msgpack.encode((*context, text)), digest_size=16).digest()


def _add_time(key: bytes, created: int | None) -> bytes:
    """Return the key of a row extended by the row's time of creation."""
    return key + (created or 0).to_bytes(8, "little", signed=True)
