"""Taking content out of a journal that otherwise only grows, so that no byte of it is left in its files.

What is taken out is overwritten in one transaction; then ``Journal.expunge`` empties the log and writes the database
again, because SQLite leaves old bytes in free pages, in the gaps of pages and in the log.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import DamagedLab
from memlab.kernel.journal._database import GENERATION, IDENTITY, RESTORE
from memlab.kernel.journal._event import encoded
from memlab.kernel.journal._reading import vectors_are_sound
from memlab.kernel.journal._sums import CHAIN_BYTES, chained, checksum, content_of, first_link

__all__ = ["Scrub", "rechain"]

_AT_ONCE = 900


@dataclass(frozen=True)
class Scrub:
    """What stands in the place of what is taken out: other bodies for events and other slates, by ``seq``.

    The texts of ``ids`` become empty, and their vectors zero, of every embedder.
    """

    bodies: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    slates: Mapping[int, bytes] = field(default_factory=dict)
    ids: Sequence[int] = ()

    def apply(self, connection: sqlite3.Connection) -> bytes:
        """Overwrite, within the transaction that is open, and chain what comes after again: another generation of the
        journal, so that nothing that was made of the one before is taken for its own. Returns the last chain value.
        """
        # freed bytes are zeroed at once: if the disk is too full for a new database, the old one holds little already
        connection.execute("PRAGMA secure_delete=ON")
        bodies = [(encoded("rewritten", body), seq) for seq, body in self.bodies.items()]
        connection.executemany("UPDATE event SET body = ? WHERE seq = ?", bodies)
        slates = [(blob, checksum(seq, blob), seq) for seq, blob in self.slates.items()]
        connection.executemany("UPDATE slate SET data = ?, sum = ? WHERE seq = ?", slates)
        emptied: set[int] = set()
        for id in self.ids:
            found = connection.execute("SELECT event FROM payload WHERE id = ?", (id,)).fetchone()
            emptied.update(found or ())
        # another digest too: the old one is in no chain that could be asked whether a guess was right
        blank = [(os.urandom(CHAIN_BYTES), id) for id in self.ids]
        connection.executemany("UPDATE payload SET text = '', salt = NULL, digest = ? WHERE id = ?", blank)
        _blank_vectors(connection, np.unique(np.asarray(self.ids, dtype=np.int64)))
        return rechain(connection, (*self.bodies, *self.slates), emptied)


def rechain(connection: sqlite3.Connection, changed: Collection[int], refilled: Collection[int]) -> bytes:
    """Chain again from the first of the events whose rows ``changed`` or whose texts did (``refilled``) on, as another
    generation of the journal; returns the last chain value.
    """
    (identity,) = connection.execute("SELECT value FROM meta WHERE key = ?", (IDENTITY,)).fetchone()
    (generation,) = connection.execute("SELECT value FROM meta WHERE key = ?", (GENERATION,)).fetchone()
    value = str(int(generation) + 1)
    connection.execute(
        "UPDATE meta SET value = ?, sum = ? WHERE key = ?", (value, checksum(GENERATION, value), GENERATION)
    )
    contents = _contents(connection, sorted(refilled))
    first = min((*changed, *refilled), default=1 << 62)
    row = connection.execute("SELECT chain FROM event WHERE seq < ? ORDER BY seq DESC LIMIT 1", (first,)).fetchone()
    link: bytes = first_link(identity) if row is None else row[0]
    rows = connection.execute("SELECT seq, at, kind, body, content FROM event WHERE seq >= ? ORDER BY seq", (first,))
    links = []
    for seq, at, kind, body, known in rows:
        content = contents.get(seq, known)
        link = chained(link, seq, at, kind, body, content)
        links.append((content, link, seq))
    connection.executemany("UPDATE event SET content = ?, chain = ? WHERE seq = ?", links)
    return link


def _contents(connection: sqlite3.Connection, events: Sequence[int]) -> dict[int, bytes]:
    """What these events keep of their texts: a sweep over all texts for each nine hundred of them."""
    digests: dict[int, list[bytes]] = {}
    for start in range(0, len(events), _AT_ONCE):
        some = events[start : start + _AT_ONCE]
        marks = ",".join("?" * len(some))
        for event, digest in connection.execute(
            f"SELECT event, digest FROM payload WHERE event IN ({marks}) ORDER BY id", some
        ):
            digests.setdefault(event, []).append(digest)
    return {event: content_of(of) for event, of in digests.items()}


def _blank_vectors(connection: sqlite3.Connection, ids: NDArray[np.int64]) -> None:
    blocks = connection.execute("SELECT embedder, first_id, count, dim FROM vector").fetchall()
    for embedder, first, count, dim in blocks:
        start, stop = np.searchsorted(ids, [first, first + count])
        if start == stop:
            continue
        key = (embedder, first)
        query = "SELECT data, sum FROM vector WHERE embedder = ? AND first_id = ?"
        data, sum = connection.execute(query, key).fetchone()
        if not vectors_are_sound(embedder, first, count, dim, data, sum):
            raise DamagedLab(f"The vectors from memory {first} on are not what was written. {RESTORE}")
        matrix = np.frombuffer(data, dtype=np.int8).reshape(count, dim).copy()
        matrix[ids[start:stop] - first] = 0
        data = matrix.tobytes()
        row = (data, checksum(embedder, first, count, dim, data), *key)
        connection.execute("UPDATE vector SET data = ?, sum = ? WHERE embedder = ? AND first_id = ?", row)
