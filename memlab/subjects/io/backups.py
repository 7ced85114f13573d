"""Backups of a lab: copies that open as labs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from memlab.errors import InputError, ReadOnlyLab
from memlab.kernel.base.clock import DAY, from_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.journal import Journal
from memlab.kernel.privacy import refuse
from memlab.kernel.storage.backup_folders import BACKUPS, BackupFolder, list_backups, write_backup
from memlab.kernel.storage.purging import PURGE_TIMEOUT
from memlab.kernel.storage.store import Store
from memlab.subjects.io.checking import Checked, check, check_in_memory

__all__ = ["Backup", "back_up", "back_up_if_due", "check_open"]


@dataclass(frozen=True)
class Backup(Displayed):
    """One backup of a lab.

    Attributes
    ----------
    path
        The folder of the backup: ``memlab.open(path)`` opens it as a lab.
    at
        When it was made, in UTC.
    event
        The number of the last event that it holds.
    size
        Its bytes.
    frame
        A row for each backup that is kept in the same folder, oldest first: path, at, event, size.
    """

    path: Path
    at: datetime
    event: int
    size: int
    frame: pl.DataFrame

    def _display(self) -> object:
        return self.frame


def back_up_if_due(store: Store, *, closing: bool, keep: int = 3) -> None:
    """What ``memlab.open(path, backups=True)`` does: a backup if the newest is a day old, and on closing if anything
    happened since it was made.
    """
    if store.folder is None:
        return
    found = list_backups(store.folder / BACKUPS)
    now, head = store.clock(), store.journal.head
    due = not found or (found[-1].head != head and (closing or not 0 <= now - found[-1].at < DAY))
    if due:
        _write(store, None, keep)


def back_up(store: Store, folder: str | Path | None, keep: int) -> Backup:
    """Write a backup; see ``LabIO.backup``."""
    return _result(_write(store, folder, keep))


def check_open(store: Store, *, repair: bool) -> Checked:
    """Check the files of a lab that is open; see ``LabIO.check``."""
    journal = store.journal
    if not isinstance(journal, Journal):
        raise ReadOnlyLab(f"{store.where}: check the lab itself.")
    if journal.path is None:
        return check_in_memory(journal)
    return check(journal.path, repair=repair and not journal.read_only)


def _write(store: Store, folder: str | Path | None, keep: int) -> BackupFolder:
    journal = store.journal
    refuse(str(folder or ""), "folder for backups")  # the journal notes where they are
    if not isinstance(journal, Journal):
        raise ReadOnlyLab(f"{store.where}: back up the lab that it is the past of.")
    if journal.read_only:
        raise ReadOnlyLab(
            f"{store.where} was opened with read_only=True, and a purge has to know of its backups."
        )
    if folder is not None:
        place = Path(folder).expanduser()
    elif journal.path is not None:
        place = journal.path / BACKUPS
    else:
        raise InputError(
            "A lab in memory has no folder: say where to put the backup, backup(folder)."
        )
    with store.derived.hold(PURGE_TIMEOUT):
        return write_backup(journal, place.absolute(), now=store.clock(), keep=keep)


def _result(made: BackupFolder) -> Backup:
    kept = list_backups(made.path.parent)
    sizes = [sum(file.stat().st_size for file in one.path.iterdir()) for one in kept]
    frame = pl.DataFrame(
        {
            "path": [str(one.path) for one in kept],
            "at": [from_micros(one.at) for one in kept],
            "event": [one.head for one in kept],
            "size": sizes,
        }
    )
    return Backup(made.path, from_micros(made.at), made.head, sizes[-1], frame)
