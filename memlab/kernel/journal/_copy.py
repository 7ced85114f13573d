"""A copy of a journal as it is at one moment, made while others read and write it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memlab.errors import DamagedLab, LabError
from memlab.kernel.base.disk import sync, writing
from memlab.kernel.journal import _database
from memlab.kernel.journal._check import faults
from memlab.kernel.journal._database import GENERATION, IDENTITY, RESTORE, Mode, translated
from memlab.kernel.journal._head import Head, HeadFile
from memlab.kernel.journal._migration import in_memory_copy
from memlab.kernel.journal._sums import checksum

if TYPE_CHECKING:
    from memlab.kernel.journal._journal import Journal

__all__ = ["connected", "copied", "head_of", "is_complete", "stamp"]

_COPY_TIMEOUT = 30.0


def copied(journal: Journal, folder: Path, *, without: tuple[str, ...] = ()) -> None:
    """Make the directory ``folder``, which must be new, a lab that holds what the journal does now.

    Writers go on meanwhile and are not in it. Every row is compared with its chain or checksum before the copy is
    synced: DamagedLab if one is not what was written. ``without`` names values (``meta``) that stay behind.
    """
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise LabError(f"No copy can be made at {folder}: {error.strerror}.") from None
    file = folder / _database.FILE
    with translated(journal.path):
        if journal.path is None:
            with journal._guard:
                journal._reader.execute("VACUUM INTO ?", (str(file),))
        else:
            source = _database.connect(journal.path / _database.FILE, "ro", _COPY_TIMEOUT)
            with contextlib.closing(source):
                # what is left out of a damaged tree would be missing from a sound one
                _check_structure(source, journal.path)
                source.execute("VACUUM INTO ?", (str(file),))
    with translated(folder), contextlib.closing(_database.connect(file, "rw", _COPY_TIMEOUT)) as copy:
        copy.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in without])
        stamp(copy, {})
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


def stamp(copy: sqlite3.Connection, values: Mapping[str, str]) -> None:
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
    named = dict(connection.execute("SELECT key, value FROM meta WHERE key IN (?, ?)", (IDENTITY, GENERATION)))
    last = connection.execute("SELECT seq, chain FROM event ORDER BY seq DESC LIMIT 1").fetchone() or (0, b"")
    return Head(named[IDENTITY], int(named[GENERATION]), last[0], last[1].hex())


@contextlib.contextmanager
def connected(folder: Path, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection of its own to the journal of the lab at ``folder``; who writes needs the writer's lock.

    NewerLab where its format is a later one: read as this one it would be misread, and copied as it is.
    """
    file = folder / _database.FILE
    mode: Mode = "rw" if write else "ro"
    with translated(folder), contextlib.closing(_database.connect(file, mode, _COPY_TIMEOUT)) as connection:
        _database.refuse_newer(connection, folder)
        _database.stand_in(connection)
        yield connection


def head_of(folder: Path) -> Head:
    """The last event of the journal of the lab at ``folder``; DamagedLab unless every row is what was written."""
    with connected(folder) as connection:
        if connection.execute("PRAGMA user_version").fetchone() == (1,):
            with contextlib.closing(in_memory_copy(connection, folder, None)) as copy:
                return _sound_head(copy, folder)
        return _sound_head(connection, folder)


def _sound_head(connection: sqlite3.Connection, folder: Path) -> Head:
    connection.execute("BEGIN")  # what is checked is what is reported
    try:
        _check(connection, folder)
        return _head_of(connection)
    finally:
        connection.execute("ROLLBACK")


def is_complete(folder: Path) -> bool:
    """Whether every row of the journal of the lab at ``folder`` is what was written."""
    try:
        head_of(folder)
    except LabError:
        return False
    return True


def _check_structure(connection: sqlite3.Connection, folder: Path) -> None:
    (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if problem != "ok":
        raise DamagedLab(f"{folder}: {_database.FILE} is damaged ({problem}). {RESTORE}")


def _check(connection: sqlite3.Connection, folder: Path) -> None:
    found = faults(connection, folder)
    if found:
        more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        raise DamagedLab(f"{folder}: {_database.FILE} is damaged ({found[0]}{more}). {RESTORE}")
