"""Going through a whole journal: which rows are not what was written, and putting others in their place."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlab.kernel.base.printable import printable
from memlab.kernel.journal._database import IDENTITY, translated
from memlab.kernel.journal._reading import link_of, row_is_sound, text_is_sound, vectors_are_sound
from memlab.kernel.journal._sums import content_of, first_link

__all__ = ["Fault", "faults", "replace_rows"]

_KEYS = {
    "event": ("seq",),
    "payload": ("id",),
    "embedder": ("id",),
    "vector": ("embedder", "first_id"),
    "slate": ("seq",),
    "source": ("hash",),
    "meta": ("key",),
}
"""What names a row of each table."""

_NAMES = {
    "event": "event {}",
    "payload": "text of memory {}",
    "embedder": "embedder {}",
    "vector": "vectors of embedder {} from memory {}",
    "slate": "slate of event {}",
    "source": "policy source {}",
    "meta": "value {}",
}


@dataclass(frozen=True)
class Fault:
    """A row that is not what was written, or is missing; ``table`` is "database" where SQLite's own structure is."""

    table: str
    key: tuple[Any, ...]
    detail: str

    def __str__(self) -> str:
        what = _NAMES[self.table].format(*self.key) if self.table in _NAMES else "database"
        return printable(f"{what}: {self.detail}")


def faults(connection: sqlite3.Connection, where: Path | None) -> list[Fault]:
    """Every row of a journal that is not what was written, in the order of tables and keys. Reads all of it, as it is
    at one moment; ``where`` is the lab's folder, for messages.
    """
    with translated(where):
        began = not connection.in_transaction
        if began:
            connection.execute("BEGIN")
        try:
            problems = [line for (line,) in connection.execute("PRAGMA integrity_check(8)")]
            found = (
                [] if problems == ["ok"] else [Fault("database", (), " ".join(str(line).split())) for line in problems]
            )
            found += _events(connection)
            found += _texts(connection)
            found += _checked(connection)
            found += _slates(connection)
        finally:
            if began:
                connection.execute("ROLLBACK")
    return found


def _events(connection: sqlite3.Connection) -> Iterator[Fault]:
    identity = connection.execute("SELECT value FROM meta WHERE key = ?", (IDENTITY,)).fetchone()
    if identity is None or not isinstance(identity[0], str):
        yield Fault("meta", (IDENTITY,), "is missing")
        return
    contents = _contents(connection)
    before: bytes | None = first_link(identity[0])
    last = 0
    rows = connection.execute("SELECT seq, at, kind, body, content, chain FROM event ORDER BY seq")
    for seq, at, kind, body, content, link in rows:
        for missing in range(last + 1, seq):
            yield Fault("event", (missing,), "is missing")
        if before is not None and link_of(before, seq, at, kind, body, content) != link:
            yield Fault("event", (seq,), "is not what was written")
        elif content is not None and contents.get(seq) != content:
            yield Fault("event", (seq,), "the texts that came with it are not those that were written")
        # what follows is compared with what stands here, so that one damage is one fault or two
        before, last = link if isinstance(link, bytes) else None, seq


def _contents(connection: sqlite3.Connection) -> dict[int, bytes]:
    """What each event should keep of its texts."""
    digests: dict[int, list[bytes]] = {}
    for event, digest in connection.execute("SELECT event, digest FROM payload ORDER BY id"):
        digests.setdefault(event, []).append(digest if isinstance(digest, bytes) else b"")
    return {event: content_of(of) for event, of in digests.items()}


def _texts(connection: sqlite3.Connection) -> Iterator[Fault]:
    last = 0
    for id, text, salt, digest in connection.execute("SELECT id, text, salt, digest FROM payload ORDER BY id"):
        for missing in range(last + 1, id):
            yield Fault("payload", (missing,), "is missing")
        if not text_is_sound(id, text, salt, digest):
            yield Fault("payload", (id,), "is not what was written")
        last = id


def _slates(connection: sqlite3.Connection) -> Iterator[Fault]:
    """A recall is logged with its slate: no row of which nothing tells is missing unnoticed."""
    rows = connection.execute("SELECT seq FROM event WHERE kind = 'recall' AND seq NOT IN (SELECT seq FROM slate)")
    for (seq,) in rows:
        yield Fault("slate", (seq,), "is missing")


def _checked(connection: sqlite3.Connection) -> Iterator[Fault]:
    for embedder, *values in connection.execute("SELECT embedder, first_id, count, dim, data, sum FROM vector"):
        if not vectors_are_sound(embedder, *values):
            yield Fault("vector", (embedder, values[0]), "is not what was written")
    for table, columns in (
        ("embedder", "id, fingerprint"),
        ("slate", "seq, data"),
        ("source", "hash, text"),
        ("meta", "key, value"),
    ):
        for *values, sum in connection.execute(f"SELECT {columns}, sum FROM {table}"):
            if not row_is_sound(sum, *values):
                yield Fault(table, (values[0],), "is not what was written")


def replace_rows(connection: sqlite3.Connection, other: sqlite3.Connection, wanted: Iterable[Fault]) -> int:
    """Put the rows that ``other`` holds in the place of faulty ones, within the open transaction; how many it had."""
    count = 0
    for fault in wanted:
        if fault.table not in _KEYS:
            continue
        where = " AND ".join(f"{column} = ?" for column in _KEYS[fault.table])
        row = other.execute(f"SELECT * FROM {fault.table} WHERE {where}", fault.key).fetchone()
        if row is not None:
            marks = ",".join("?" * len(row))
            connection.execute(f"INSERT OR REPLACE INTO {fault.table} VALUES ({marks})", row)
            count += 1
    return count
