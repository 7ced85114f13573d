"""Going through a whole journal: which rows are not what was written, and putting others in their place."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlab.errors import DamagedLab, LabError
from memlab.kernel.base.disk import sync, writing
from memlab.kernel.base.printable import printable
from memlab.kernel.journal import _database
from memlab.kernel.journal._database import (
    GENERATION,
    IDENTITY,
    Mode,
    copy_to_memory,
    translate_errors,
)
from memlab.kernel.journal._events import (
    RESTORE,
    checksum,
    decode_body,
    digest_parts,
    hash_digests,
    initial_chain,
)
from memlab.kernel.journal._files import Head, HeadFile
from memlab.kernel.journal._reading import (
    Reading,
    compute_link,
    row_is_sound,
    text_is_sound,
    vectors_are_sound,
)

__all__ = [
    "Fault",
    "copy_journal",
    "find_faults",
    "is_intact",
    "open_connection",
    "read_head",
    "replace_rows",
    "stamp_copy",
]


_KEYS = {
    "event": ("seq",),
    "payload": ("id",),
    "embedder": ("id",),
    "vector": ("embedder", "first_id"),
    "slate": ("seq",),
    "segment": ("upto", "name"),
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
    "segment": "sealed slates up to event {0}",
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


def find_faults(connection: sqlite3.Connection, where: Path | None) -> list[Fault]:
    """Every row of a journal that is not what was written, in the order of tables and keys. Reads all of it, as it is
    at one moment; ``where`` is the lab's folder, for messages.
    """
    with translate_errors(where):
        began = not connection.in_transaction
        if began:
            connection.execute("BEGIN")
        try:
            problems = [line for (line,) in connection.execute("PRAGMA integrity_check(8)")]
            found = (
                []
                if problems == ["ok"]
                else [Fault("database", (), " ".join(str(line).split())) for line in problems]
            )
            found += _events(connection)
            found += _texts(connection)
            found += _checked(connection)
            found += _sealed(connection)
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
    before: bytes | None = initial_chain(identity[0])
    last = 0
    rows = connection.execute("SELECT seq, at, kind, body, content, chain FROM event ORDER BY seq")
    for seq, at, kind, body, content, link in rows:
        for missing in range(last + 1, seq):
            yield Fault("event", (missing,), "is missing")
        if before is not None and compute_link(before, seq, at, kind, body, content) != link:
            yield Fault("event", (seq,), "is not what was written")
        elif content is not None and contents.get(seq) != content:
            yield Fault(
                "event", (seq,), "the texts that came with it are not those that were written"
            )
        # what follows is compared with what stands here, so that one damage is one fault or two
        before, last = link if isinstance(link, bytes) else None, seq


def _contents(connection: sqlite3.Connection) -> dict[int, bytes]:
    """What each event should keep of its texts."""
    digests: dict[int, list[bytes]] = {}
    for event, digest in connection.execute("SELECT event, digest FROM payload ORDER BY id"):
        digests.setdefault(event, []).append(digest if isinstance(digest, bytes) else b"")
    return {event: hash_digests(of) for event, of in digests.items()}


def _texts(connection: sqlite3.Connection) -> Iterator[Fault]:
    last = 0
    for id, text, salt, digest in connection.execute(
        "SELECT id, text, salt, digest FROM payload ORDER BY id"
    ):
        for missing in range(last + 1, id):
            yield Fault("payload", (missing,), "is missing")
        if not text_is_sound(id, text, salt, digest):
            yield Fault("payload", (id,), "is not what was written")
        last = id


def _sealed(connection: sqlite3.Connection) -> Iterator[Fault]:
    """A recall is logged with its slate, and a segment sealed with its digest: nothing is missing unnoticed."""
    digests, dropped = _digests(connection)
    rows = connection.execute(
        "SELECT seq FROM event WHERE kind = 'recall' AND seq NOT IN (SELECT seq FROM slate)"
    )
    for (seq,) in rows:
        if not any(after < seq <= upto for after, upto in dropped):
            yield Fault("slate", (seq,), "is missing")
    for upto, digest in digests.items():
        parts = connection.execute(
            "SELECT name, data, sum FROM segment WHERE upto = ? ORDER BY name", (upto,)
        )
        held = []
        for name, data, sum in parts:
            if row_is_sound(sum, upto, name, data):
                held.append((name, data))
            else:
                yield Fault("segment", (upto, name), f"the part {name!r} is not what was written")
        if digest_parts(held) != digest:
            # named by the part that all segments have, so that a backup is asked for each that it holds
            yield Fault("segment", (upto, ""), "is not what the chain says")


def _digests(connection: sqlite3.Connection) -> tuple[dict[int, str], list[tuple[int, int]]]:
    """The digest of each segment by the last event that tells of it, and the recalls of those that were dropped."""
    digests: dict[int, str] = {}
    began: dict[int, int] = {}
    dropped = []
    rows = connection.execute(
        "SELECT seq, kind, body FROM event WHERE kind IN ('seal', 'thin') ORDER BY seq"
    )
    for seq, kind, blob in rows:
        try:
            body = decode_body(seq, blob)
            if kind == "seal":
                began[body["upto"]], digests[body["upto"]] = body["after"], body["digest"]
                continue
            for upto, digest in zip(body["upto"], body["digest"], strict=True):
                if digest is None:
                    dropped.append((began[upto], upto))
                    digests.pop(upto)
                else:
                    digests[upto] = digest
        except (DamagedLab, KeyError, TypeError, ValueError):
            continue  # the event is a fault of its own
    return digests, dropped


def _checked(connection: sqlite3.Connection) -> Iterator[Fault]:
    for embedder, *values in connection.execute(
        "SELECT embedder, first_id, count, dim, data, sum FROM vector"
    ):
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


def replace_rows(
    connection: sqlite3.Connection, other: sqlite3.Connection, wanted: Iterable[Fault]
) -> int:
    """Put the rows that ``other`` holds in the place of faulty ones, within the open transaction; how many it had."""
    count = 0
    for fault in wanted:
        if fault.table not in _KEYS:
            continue
        where = " AND ".join(f"{column} = ?" for column in _KEYS[fault.table])
        rows = other.execute(f"SELECT * FROM {fault.table} WHERE {where}", fault.key).fetchall()
        if fault.table == "segment":  # a part may be missing of which no row tells
            rows = other.execute("SELECT * FROM segment WHERE upto = ?", fault.key[:1]).fetchall()
        for row in rows:
            marks = ",".join("?" * len(row))
            connection.execute(f"INSERT OR REPLACE INTO {fault.table} VALUES ({marks})", row)
        count += bool(rows)
    return count


# A copy of a journal as it is at one moment, made while others read and write it.


_COPY_TIMEOUT = 30.0


def copy_journal(journal: Reading, folder: Path, *, without: tuple[str, ...] = ()) -> None:
    """Make the directory ``folder``, which must be new, a lab that holds what the journal does now.

    Writers go on meanwhile and are not in it. Every row is compared with its chain or checksum before the copy is
    synced: DamagedLab if one is not what was written. ``without`` names values (``meta``) that stay behind.
    """
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise LabError(f"No copy can be made at {folder}: {error.strerror}.") from None
    file = folder / _database.FILE
    with translate_errors(journal.path):
        if journal.path is None:
            with journal._reading:
                journal._reader.execute("VACUUM INTO ?", (str(file),))
        else:
            source = _database.connect(journal.path / _database.FILE, "ro", _COPY_TIMEOUT)
            with contextlib.closing(source):
                # what is left out of a damaged tree would be missing from a sound one
                _check_structure(source, journal.path)
                source.execute("VACUUM INTO ?", (str(file),))
    with (
        translate_errors(folder),
        contextlib.closing(_database.connect(file, "rw", _COPY_TIMEOUT)) as copy,
    ):
        copy.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in without])
        stamp_copy(copy, {})
        _check(copy, folder)
        head = _head_of(copy)
    with writing(f"The copy {folder.name}"):
        beside = HeadFile(folder / _database.HEAD)
        try:
            beside.write(head)
            beside.sync()
        finally:
            beside.close()
        sync(file)
        sync(folder)


def stamp_copy(copy: sqlite3.Connection, values: Mapping[str, str]) -> None:
    """Make a copy by ``VACUUM INTO`` a journal, as that leaves out of what format it is, and give it ``values``."""
    columns = [name for _, name, *_ in copy.execute("PRAGMA table_info(event)")]
    checked = "chain" in columns
    copy.execute(f"PRAGMA application_id={_database.APPLICATION}")
    if checked:
        _database.mark_format(copy)  # a copy of format 2 is one of today
    else:
        copy.execute("PRAGMA user_version=1")
    for key, value in values.items():
        row = (key, value, checksum(key, value)) if checked else (key, value)
        copy.execute(f"INSERT OR REPLACE INTO meta VALUES ({', '.join('?' * len(row))})", row)
    copy.execute("PRAGMA journal_mode=WAL").fetchone()


def _head_of(connection: sqlite3.Connection) -> Head:
    named = dict(
        connection.execute(
            "SELECT key, value FROM meta WHERE key IN (?, ?)", (IDENTITY, GENERATION)
        )
    )
    last = connection.execute(
        "SELECT seq, chain FROM event ORDER BY seq DESC LIMIT 1"
    ).fetchone() or (0, b"")
    return Head(named[IDENTITY], int(named[GENERATION]), last[0], last[1].hex())


@contextlib.contextmanager
def open_connection(folder: Path, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection of its own to the journal of the lab at ``folder``; who writes needs the writer's lock.

    NewerLab where its format is a later one: read as this one it would be misread, and copied as it is.
    """
    file = folder / _database.FILE
    mode: Mode = "rw" if write else "ro"
    with (
        translate_errors(folder),
        contextlib.closing(_database.connect(file, mode, _COPY_TIMEOUT)) as connection,
    ):
        _database.refuse_newer(connection, folder)
        _database.add_missing_tables(connection)
        yield connection


def read_head(folder: Path) -> Head:
    """The last event of the journal of the lab at ``folder``; DamagedLab unless every row is what was written."""
    with open_connection(folder) as connection:
        if connection.execute("PRAGMA user_version").fetchone() == (1,):
            with contextlib.closing(copy_to_memory(connection, folder, None)) as copy:
                return _sound_head(copy, folder)
        return _sound_head(connection, folder)


def _sound_head(connection: sqlite3.Connection, folder: Path) -> Head:
    connection.execute("BEGIN")  # what is checked is what is reported
    try:
        _check(connection, folder)
        return _head_of(connection)
    finally:
        connection.execute("ROLLBACK")


def is_intact(folder: Path) -> bool:
    """Whether every row of the journal of the lab at ``folder`` is what was written."""
    try:
        read_head(folder)
    except LabError:
        return False
    return True


def _check_structure(connection: sqlite3.Connection, folder: Path) -> None:
    (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if problem != "ok":
        raise DamagedLab(f"{folder}: {_database.FILE} is damaged ({problem}). {RESTORE}")


def _check(connection: sqlite3.Connection, folder: Path) -> None:
    found = find_faults(connection, folder)
    if found:
        more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        raise DamagedLab(f"{folder}: {_database.FILE} is damaged ({found[0]}{more}). {RESTORE}")
