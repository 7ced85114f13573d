"""Bringing a journal of an earlier format to that of today, in one transaction.

Format 2 has the tables of today: its number is raised. Format 1 had neither chain nor checksums. What it holds is taken
as it is, and ``mend`` is asked of each event what its body should have been, because earlier versions could commit
events that cannot be applied.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from memlab.errors import DamagedLab
from memlab.kernel.journal._database import RESTORE, SCHEMA, VERSION, identified, mark_format, refuse_newer
from memlab.kernel.journal._event import Event, decoded, encoded
from memlab.kernel.journal._sums import CHAIN_BYTES, SALT_BYTES, chained, checksum, content_of, digest_of, first_link

__all__ = ["Mend", "in_memory_copy", "migrate"]

Mend = Callable[[Event], dict[str, Any] | None]
"""The body that an event should have had; None where it is right."""

_AT_ONCE = 1000
_TABLES = ("event", "payload", "embedder", "vector", "slate", "source", "meta")
_CHECKED = {
    "embedder": ("id", "fingerprint"),
    "vector": ("embedder", "first_id", "count", "dim", "data"),
    "slate": ("seq", "data"),
    "source": ("hash", "text"),
    "meta": ("key", "value"),
}
"""The tables whose rows have a checksum over these columns."""


def migrate(connection: sqlite3.Connection, path: Path, mend: Mend | None) -> None:
    """Migrate the open database unless another process has; under the writer's lock."""
    connection.create_function("memlab_sum", -1, lambda *values: checksum(*values), deterministic=True)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        refuse_newer(connection, path)  # another process may have raised it since it was asked
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 1:
            _migrate(connection, path, mend)
        if version < VERSION:
            mark_format(connection)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        # it would be reset by the next write otherwise, but that one sets only what it knows to have changed
        connection.execute("PRAGMA synchronous=FULL")


def in_memory_copy(reader: sqlite3.Connection, path: Path, mend: Mend | None) -> sqlite3.Connection:
    """What the database holds, migrated in memory: a lab that may not be written can be read all the same."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    reader.backup(copy)
    migrate(copy, path, mend)
    return copy


def _migrate(connection: sqlite3.Connection, path: Path, mend: Mend | None) -> None:
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(event)")]
    if columns != ["seq", "at", "kind", "body"]:
        raise DamagedLab(f"{path} says that its format is 1, and its tables are not of that format. {RESTORE}")
    for table in _TABLES:
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    for table, names in _CHECKED.items():
        listed = ", ".join(names)
        connection.execute(f"INSERT INTO {table} SELECT {listed}, memlab_sum({listed}) FROM old_{table}")
    # the same for every copy of one lab, so that its backups are known for its own
    began = connection.execute("SELECT at, kind, body FROM old_event ORDER BY seq LIMIT 2").fetchall()
    identified(connection, hashlib.blake2b(repr(began).encode(), digest_size=16).hexdigest() if began else None)
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM old_event").fetchone()
    _migrate_texts(connection, last)
    _migrate_events(connection, last, mend)
    for table in _TABLES:
        connection.execute(f"DROP TABLE old_{table}")


def _migrate_texts(connection: sqlite3.Connection, last: int) -> None:
    """Which event a text came with is not known here: the last one covers all of them."""
    rows = connection.execute("SELECT id, text FROM old_payload ORDER BY id")
    while some := rows.fetchmany(_AT_ONCE):
        salted = [(id, text, last, os.urandom(SALT_BYTES)) for id, text in some]
        connection.executemany(
            "INSERT INTO payload VALUES (?, ?, ?, ?, ?)",
            [(id, text, event, salt, digest_of(salt, id, text)) for id, text, event, salt in salted],
        )
    missing = _missing(connection.execute("SELECT id, 1 FROM payload ORDER BY id"))
    blank = [
        (id, "", last, None, os.urandom(CHAIN_BYTES)) for first, count in missing for id in range(first, first + count)
    ]
    connection.executemany("INSERT INTO payload VALUES (?, ?, ?, ?, ?)", blank)
    for (embedder,) in connection.execute("SELECT id FROM embedder").fetchall():
        blocks = connection.execute(
            "SELECT first_id, count FROM vector WHERE embedder = ? ORDER BY first_id", (embedder,)
        )
        gaps = _missing(blocks)
        (dim,) = connection.execute("SELECT max(dim) FROM vector WHERE embedder = ?", (embedder,)).fetchone()
        zeros = [(embedder, first, count, dim, bytes(count * dim)) for first, count in gaps]
        connection.executemany(
            "INSERT INTO vector VALUES (?, ?, ?, ?, ?, ?)", [(*row, checksum(*row)) for row in zeros]
        )


def _missing(runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The runs (first, count) that others leave out, from 1 on: ids that an interrupted write left out."""
    following, found = 1, []
    for first, count in runs:
        if first > following:
            found.append((following, first - following))
        following = first + count
    return found


def _migrate_events(connection: sqlite3.Connection, last: int, mend: Mend | None) -> None:
    (identity,) = connection.execute("SELECT value FROM meta WHERE key = 'lab'").fetchone()
    digests = connection.execute("SELECT digest FROM payload WHERE event = ? ORDER BY id", (last,)).fetchall()
    link = first_link(identity)
    rows = connection.execute("SELECT seq, at, kind, body FROM old_event ORDER BY seq")
    while some := rows.fetchmany(_AT_ONCE):
        chain = []
        for seq, at, kind, body in some:
            mended = None if mend is None else mend(Event(seq, at, kind, decoded(seq, body)))
            body = body if mended is None else encoded(kind, mended)
            content = content_of(digest for (digest,) in digests) if seq == last and digests else None
            link = chained(link, seq, at, kind, body, content)
            chain.append((seq, at, kind, body, content, link))
        connection.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", chain)
