"""Taking content out of a journal that otherwise only grows, so that no byte of it is left in its files.

What is taken out is overwritten in one transaction; then the log is emptied and the database written anew, because
SQLite leaves old bytes in free pages, in the gaps of pages and in the log.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import LabBusy, ReadOnlyLab
from memlab.journal._database import translated
from memlab.journal._event import encoded

if TYPE_CHECKING:
    from memlab.journal._journal import Journal

__all__ = ["Scrub", "expunge"]


@dataclass(frozen=True)
class Scrub:
    """What stands in the place of what is taken out: other bodies for events and other slates, by ``seq``.

    The texts of ``ids`` become empty, and their vectors zero, of every embedder.
    """

    bodies: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    slates: Mapping[int, bytes] = field(default_factory=dict)
    ids: Sequence[int] = ()

    def apply(self, connection: sqlite3.Connection) -> None:
        """Overwrite, within the transaction that is open."""
        # freed bytes are zeroed at once: if the disk is too full for a new database, the old one holds little already
        connection.execute("PRAGMA secure_delete=ON")
        bodies = [(encoded("rewritten", body), seq) for seq, body in self.bodies.items()]
        connection.executemany("UPDATE event SET body = ? WHERE seq = ?", bodies)
        slates = [(blob, seq) for seq, blob in self.slates.items()]
        connection.executemany("UPDATE slate SET data = ? WHERE seq = ?", slates)
        connection.executemany("UPDATE payload SET text = '' WHERE id = ?", [(id,) for id in self.ids])
        _blank_vectors(connection, np.unique(np.asarray(self.ids, dtype=np.int64)))


def _blank_vectors(connection: sqlite3.Connection, ids: NDArray[np.int64]) -> None:
    blocks = connection.execute("SELECT embedder, first_id, count, dim FROM vector").fetchall()
    for embedder, first, count, dim in blocks:
        start, stop = np.searchsorted(ids, [first, first + count])
        if start == stop:
            continue
        key = (embedder, first)
        (data,) = connection.execute("SELECT data FROM vector WHERE embedder = ? AND first_id = ?", key).fetchone()
        matrix = np.frombuffer(data, dtype=np.int8).reshape(count, dim).copy()
        matrix[ids[start:stop] - first] = 0
        connection.execute("UPDATE vector SET data = ? WHERE embedder = ? AND first_id = ?", (matrix.tobytes(), *key))


def expunge(journal: Journal) -> None:
    """Leave nothing of what was overwritten in the journal's files. Takes as much room again meanwhile.

    LabBusy if another process reads an old state of the journal for longer than the journal's timeout.
    """
    writer = journal._writer
    if writer is None:
        raise ReadOnlyLab(f"{journal.path} was opened with read_only=True.")
    if journal.path is None:
        return
    with journal._lock.held(journal._timeout), translated(journal.path):
        writer.execute(f"PRAGMA busy_timeout={round(journal._timeout * 1000)}")
        writer.execute("PRAGMA secure_delete=ON")
        writer.execute("VACUUM")
        (busy, _, _) = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise LabBusy(
            f"{journal.path} is read by another process that keeps an old state of it: what was overwritten can be "
            "read from its files until that process ends its reading and the lab is opened again."
        )
