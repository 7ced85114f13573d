"""Copies and repairs of a journal.

The functions check a whole journal for missing and changed rows, replace such rows, and copy a
journal.
"""

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
from memlab.kernel.journal._vault import ENCRYPTED, data_file, encryption_of

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
"""The key columns of each table."""

# The names of rows in messages, with the values of their keys.
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


_CHANGED = (
    "was changed since it was written"  # shown by ``memlab upkeep check`` after the name of a row
)


@dataclass(frozen=True)
class Fault:
    """A missing or changed row of a journal.

    ``table`` is "database" if SQLite's own structure is damaged.
    """

    table: str
    key: tuple[Any, ...]
    detail: str

    def __str__(self) -> str:
        what = _NAMES[self.table].format(*self.key) if self.table in _NAMES else "database"
        return printable(f"{what}: {self.detail}")


def find_faults(connection: sqlite3.Connection, where: Path | None) -> list[Fault]:
    """Return every missing or changed row of a journal, by table and key.

    The whole journal is read as it is at one moment. ``where`` is the lab's folder, for messages.
    """
    with translate_errors(where):
        began = not connection.in_transaction
        if began:
            connection.execute("BEGIN")
        try:
            problems = [line for (line,) in connection.execute("PRAGMA integrity_check(8)")]
            faults = (
                []
                if problems == ["ok"]
                else [Fault("database", (), " ".join(str(line).split())) for line in problems]
            )
            faults += _events(connection)
            faults += _texts(connection)
            faults += _checked(connection)
            faults += _sealed(connection)
        finally:
            if began:
                connection.execute("ROLLBACK")
    return faults


def _events(connection: sqlite3.Connection) -> Iterator[Fault]:
    """Yield the faults in the event table of a journal.

    Faults are missing event numbers, broken chain values, and texts that do not belong to their
    events.
    """
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
            yield Fault("event", (seq,), _CHANGED)
        elif content is not None and contents.get(seq) != content:
            yield Fault(
                "event", (seq,), "the texts that came with it were changed since they were written"
            )
        # The next event is compared with the stored value, so that one damaged row causes at most two faults.
        before, last = link if isinstance(link, bytes) else None, seq


def _contents(connection: sqlite3.Connection) -> dict[int, bytes]:
    """Return the digest of all texts of each event, by event number."""
    digests: dict[int, list[bytes]] = {}
    for event, digest in connection.execute("SELECT event, digest FROM payload ORDER BY id"):
        digests.setdefault(event, []).append(digest if isinstance(digest, bytes) else b"")
    return {event: hash_digests(hashes) for event, hashes in digests.items()}


def _texts(connection: sqlite3.Connection) -> Iterator[Fault]:
    """Yield a fault for each missing or changed text of a journal."""
    last = 0
    for id, text, salt, digest in connection.execute(
        "SELECT id, text, salt, digest FROM payload ORDER BY id"
    ):
        for missing in range(last + 1, id):
            yield Fault("payload", (missing,), "is missing")
        if not text_is_sound(id, text, salt, digest):
            yield Fault("payload", (id,), _CHANGED)
        last = id


def _sealed(connection: sqlite3.Connection) -> Iterator[Fault]:
    """Yield a fault for each recall whose slate is missing but was not dropped, and for each faulty segment.

    A segment is faulty if it was changed or is incomplete.
    """
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
        sound = []
        for name, data, sum in parts:
            if row_is_sound(sum, upto, name, data):
                sound.append((name, data))
            else:
                yield Fault("segment", (upto, name), f"the part {name!r} {_CHANGED}")
        if digest_parts(sound) != digest:
            # The fault has the key of the part "", which all segments have, so that every part is
            # taken from a backup.
            yield Fault("segment", (upto, ""), "differs from its digest in the chain")


def _digests(connection: sqlite3.Connection) -> tuple[dict[int, str], list[tuple[int, int]]]:
    """Return the digest of each segment, and the ranges of recalls that were dropped.

    The digest comes from the last event about the segment.
    """
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
            continue  # the event itself is reported as a fault
    return digests, dropped


def _checked(connection: sqlite3.Connection) -> Iterator[Fault]:
    """Yield a fault for each changed row of the tables vector, embedder, slate, source and meta."""
    for embedder, *values in connection.execute(
        "SELECT embedder, first_id, count, dim, data, sum FROM vector"
    ):
        if not vectors_are_sound(embedder, *values):
            yield Fault("vector", (embedder, values[0]), _CHANGED)
    for table, columns in (
        ("embedder", "id, fingerprint"),
        ("slate", "seq, data"),
        ("source", "hash, text"),
        ("meta", "key, value"),
    ):
        for *values, sum in connection.execute(f"SELECT {columns}, sum FROM {table}"):
            if not row_is_sound(sum, *values):
                yield Fault(table, (values[0],), _CHANGED)


def replace_rows(
    connection: sqlite3.Connection, other: sqlite3.Connection, wanted: Iterable[Fault]
) -> int:
    """Replace faulty rows by the same rows of ``other`` within the open transaction.

    Returns the number of faults for which ``other`` has the row.
    """
    count = 0
    for fault in wanted:
        if fault.table not in _KEYS:
            continue
        where = " AND ".join(f"{column} = ?" for column in _KEYS[fault.table])
        rows = other.execute(f"SELECT * FROM {fault.table} WHERE {where}", fault.key).fetchall()
        if fault.table == "segment":  # all parts, because a missing part has no row that names it
            rows = other.execute("SELECT * FROM segment WHERE upto = ?", fault.key[:1]).fetchall()
        for row in rows:
            marks = ",".join("?" * len(row))
            connection.execute(f"INSERT OR REPLACE INTO {fault.table} VALUES ({marks})", row)
        count += bool(rows)
    return count


# Copies of a journal as it is at one moment, while others read and write it.


_COPY_TIMEOUT = 30.0
"""Seconds that a connection waits for SQLite's locks, the default of ``Journal.open``."""


def copy_journal(journal: Reading, folder: Path, *, without: tuple[str, ...] = ()) -> None:
    """Copy the journal into the new directory ``folder``, which becomes a lab.

    Writes that end during the copy are not in it. Every row is checked before the copy is synced,
    and a changed row raises DamagedLab. ``without`` names values of ``meta`` that are left out.
    """
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise LabError(f"No copy can be made at {folder}: {error.strerror}.") from None
    record = None if journal.path is None else encryption_of(journal.path)
    if record is not None:
        with writing(f"The copy {folder.name}"):
            (folder / ENCRYPTED).touch()
            _database.write_record(folder, record)
    file = data_file(folder)
    with translate_errors(journal.path):
        if journal.path is None:
            with journal._reading:
                journal._reader.execute("VACUUM INTO ?", (str(file),))
        else:
            source = _database.connect_journal(journal.path, "ro", _COPY_TIMEOUT)
            with contextlib.closing(source):
                # Rows that a damaged tree hides would be missing from a copy that looks sound.
                _check_structure(source, journal.path)
                source.execute("VACUUM INTO ?", (str(file),))
    with (
        translate_errors(folder),
        contextlib.closing(_database.connect_journal(folder, "rw", _COPY_TIMEOUT)) as copy,
    ):
        copy.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in without])
        stamp_copy(copy, {})
        _check(copy, folder)
        head = _head_of(copy)
    with writing(f"The copy {folder.name}"):
        head_file = HeadFile(folder / _database.HEAD)
        head_file.write(head)
        head_file.sync()
        sync(file)
        sync(folder)


def stamp_copy(copy: sqlite3.Connection, values: Mapping[str, str]) -> None:
    """Set the format and the given values in a copy made by ``VACUUM INTO``.

    ``VACUUM INTO`` does not copy the format.
    """
    columns = [name for _, name, *_ in copy.execute("PRAGMA table_info(event)")]
    checked = "chain" in columns
    copy.execute(f"PRAGMA application_id={_database.APPLICATION}")
    if checked:
        _database.mark_format(copy)  # a copy of format 2 gets the current format
    else:
        copy.execute("PRAGMA user_version=1")
    for key, value in values.items():
        row = (key, value, checksum(key, value)) if checked else (key, value)
        copy.execute(f"INSERT OR REPLACE INTO meta VALUES ({', '.join('?' * len(row))})", row)
    copy.execute("PRAGMA journal_mode=WAL").fetchone()


def _head_of(connection: sqlite3.Connection) -> Head:
    """Return a journal's identity and generation, and the number and chain value of its last event."""
    values = dict(
        connection.execute(
            "SELECT key, value FROM meta WHERE key IN (?, ?)", (IDENTITY, GENERATION)
        )
    )
    last = connection.execute(
        "SELECT seq, chain FROM event ORDER BY seq DESC LIMIT 1"
    ).fetchone() or (0, b"")
    return Head(values[IDENTITY], int(values[GENERATION]), last[0], last[1].hex())


def copy_rows(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Copy all rows of a current-format journal into an empty journal in the open transaction."""
    for table in _KEYS:
        rows = source.execute(f"SELECT * FROM {table}")
        width = len(rows.description)
        target.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * width)})", rows)
    target.execute(f"PRAGMA user_version={_database.VERSION}")


@contextlib.contextmanager
def open_connection(folder: Path, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a separate connection to the journal of the lab at ``folder``.

    Writing needs the writer's lock. Raises NewerLab for a later format, because its rows would be
    misread.
    """
    mode: Mode = "rw" if write else "ro"
    with (
        translate_errors(folder),
        contextlib.closing(_database.connect_journal(folder, mode, _COPY_TIMEOUT)) as connection,
    ):
        _database.refuse_newer(connection, folder)
        _database.add_missing_tables(connection)
        yield connection


def read_head(folder: Path) -> Head:
    """Return the last event of the journal of the lab at ``folder``.

    Raises DamagedLab if any row is damaged.
    """
    with open_connection(folder) as connection:
        if connection.execute("PRAGMA user_version").fetchone() == (1,):
            with contextlib.closing(copy_to_memory(connection, folder, None)) as copy:
                return _sound_head(copy, folder)
        return _sound_head(connection, folder)


def _sound_head(connection: sqlite3.Connection, folder: Path) -> Head:
    """Check all rows of a journal and return its ``Head``. Raises DamagedLab if a row is missing or changed."""
    connection.execute("BEGIN")  # the check and the result see the same moment
    try:
        _check(connection, folder)
        return _head_of(connection)
    finally:
        connection.execute("ROLLBACK")


def is_intact(folder: Path) -> bool:
    """Return True if no row of a lab's journal is missing or changed."""
    try:
        read_head(folder)
    except LabError:
        return False
    return True


def _check_structure(connection: sqlite3.Connection, folder: Path) -> None:
    """Raise DamagedLab if SQLite finds the structure of the database damaged."""
    (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if problem != "ok":
        raise DamagedLab(f"{folder}: {data_file(folder).name} is damaged ({problem}). {RESTORE}")


def _check(connection: sqlite3.Connection, folder: Path) -> None:
    """Raise DamagedLab if any row is missing or changed."""
    problems = find_faults(connection, folder)
    if problems:
        more = f" and {len(problems) - 1:,} more" if len(problems) > 1 else ""
        raise DamagedLab(
            f"{folder}: {data_file(folder).name} is damaged ({problems[0]}{more}). {RESTORE}"
        )
