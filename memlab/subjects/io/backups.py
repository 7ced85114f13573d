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


@dataclass(frozen=True)
class Backup(Displayed):
    """One backup of a lab, as ``lab.io.backup`` returns it.

    Attributes
    ----------
    path
        The folder of the backup, which ``memlab.open(path)`` opens as a lab.
    at
        The time of the backup, in UTC.
    event
        The number of the last event in the backup.
    size
        The size of the backup in bytes.
    frame
        One row for each backup in the same folder, oldest first, with the columns path, at, event and
        size.

    Examples
    --------
    >>> import tempfile
    >>> memlab.open().io.backup(tempfile.mkdtemp()).event > 0
    True
    """

    path: Path
    at: datetime
    event: int
    size: int
    frame: pl.DataFrame

    def _display(self) -> object:
        return self.frame


def back_up_if_due(store: Store, *, closing: bool, keep: int = 3) -> None:
    """Write the daily backup if it is due and the lab was opened with ``backups=True``.

    A backup is due if there is none, or if events are newer than the last backup and it is a day old. With ``closing``,
    the age of the last backup does not matter.
    """
    if store.folder is None:
        return
    backups = list_backups(store.folder / BACKUPS)
    now, head = store.clock(), store.journal.head
    due = not backups or (
        backups[-1].head != head and (closing or not 0 <= now - backups[-1].at < DAY)
    )
    if due:
        _write(store, None, keep)


def back_up(store: Store, folder: str | Path | None, keep: int) -> Backup:
    """Write a backup and return its description; see ``LabIO.backup``."""
    return _result(_write(store, folder, keep))


def check_open(store: Store, *, repair: bool) -> Checked:
    """Check the files of an open lab, and repair damage if ``repair`` is true."""
    journal = store.journal
    if not isinstance(journal, Journal):
        raise ReadOnlyLab(f"{store.where} has no files of its own. Check the lab itself.")
    if journal.path is None:
        return check_in_memory(journal)
    return check(journal.path, repair=repair and not journal.read_only)


def _write(store: Store, folder: str | Path | None, keep: int) -> BackupFolder:
    """Write a backup into ``folder``, or into the lab's own folder of backups."""
    journal = store.journal
    # The journal records the folder, so its name must contain no secret.
    refuse(str(folder or ""), "folder for backups")
    if not isinstance(journal, Journal):
        raise ReadOnlyLab(f"{store.where} is a view of a lab. Back up the lab itself.")
    if journal.read_only:
        raise ReadOnlyLab(
            f"{store.where} was opened with read_only=True, but the journal must record a backup "
            "for later purges. Open the lab for writing."
        )
    if folder is not None:
        backups = Path(folder).expanduser()
    elif journal.path is not None:
        backups = journal.path / BACKUPS
    else:
        raise InputError(
            "A lab in memory has no folder for backups. Name a folder: backup(folder)."
        )
    with store.derived.hold(PURGE_TIMEOUT):
        return write_backup(journal, backups.absolute(), now=store.clock(), keep=keep)


def _result(newest: BackupFolder) -> Backup:
    """Return the description of a new backup, with a table of its folder's backups."""
    backups = list_backups(newest.path.parent)
    sizes = [sum(file.stat().st_size for file in backup.path.iterdir()) for backup in backups]
    frame = pl.DataFrame(
        {
            "path": [str(backup.path) for backup in backups],
            "at": [from_micros(backup.at) for backup in backups],
            "event": [backup.head for backup in backups],
            "size": sizes,
        }
    )
    return Backup(newest.path, from_micros(newest.at), newest.head, sizes[-1], frame)
