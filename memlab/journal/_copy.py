"""A copy of a journal as it is at one moment, made while others read and write it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from memlab.disk import sync
from memlab.errors import DamagedLab, LabError
from memlab.journal import _database
from memlab.journal._database import translated

if TYPE_CHECKING:
    from memlab.journal._journal import Journal

__all__ = ["copied", "whole"]

_COPY_TIMEOUT = 30.0


def copied(journal: Journal, folder: Path, *, without: tuple[str, ...] = ()) -> None:
    """Make the directory ``folder``, which must be new, a lab that holds what the journal does now.

    Writers go on meanwhile and are not in it. Every page is read on the way, and the copy is checked before it is
    synced: DamagedLab if the journal or the copy is not whole. ``without`` names values (``meta``) that stay behind.
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
                source.execute("VACUUM INTO ?", (str(file),))
    with translated(folder), contextlib.closing(_database.connect(file, "rw", _COPY_TIMEOUT)) as copy:
        copy.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in without])
        copy.executescript(
            f"PRAGMA application_id={_database.APPLICATION}; PRAGMA user_version={_database.VERSION}; "
            "PRAGMA journal_mode=WAL;"
        )
        _check(copy, folder)
    sync(file)
    sync(folder)


def whole(folder: Path) -> bool:
    """Whether the lab at ``folder`` is structurally sound: every page of its journal is read."""
    file = folder / _database.FILE
    try:
        with translated(folder), contextlib.closing(_database.connect(file, "ro", _COPY_TIMEOUT)) as connection:
            _check(connection, folder)
    except LabError:
        return False
    return True


def _check(connection: sqlite3.Connection, folder: Path) -> None:
    (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        raise DamagedLab(f"{folder}: {_database.FILE} is damaged ({said}). Restore the lab from a copy.")
