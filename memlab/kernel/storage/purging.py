"""The last step of a purge: purged content is removed from derived files.

Derived files are snapshots, indexes, backups and other files that were written from the journal.

The transaction that removes the content from the journal also sets the journal's value ``purging``. The value is
cleared when all files are done. If a process dies during a purge, the next process that opens the lab completes it.
"""

from __future__ import annotations

from pathlib import Path

from memlab.errors import LabError
from memlab.kernel.base.clock import Micros
from memlab.kernel.base.disk import sync, writing
from memlab.kernel.index import sweep
from memlab.kernel.journal import Journal, JournalView
from memlab.kernel.storage.backup_folders import (
    list_backup_folders,
    list_backups,
    remove_folder,
    write_backup,
)

__all__ = ["DERIVED", "PURGED", "PURGE_TIMEOUT", "PURGING", "REPLACED", "end_purge", "last_purge"]

DERIVED = "derived.lock"
"""The lock of processes that write a file derived from the journal, such as a snapshot or a backup.

A purge waits for this lock, so that no derived file is written with purged content.
"""

PURGE_TIMEOUT = 60.0
"""The seconds that a purge waits for the lock ``DERIVED``. A snapshot of a million memories takes ten seconds."""

REPLACED = "replaced"
"""The folder of a lab to which ``restore`` moves the files that a backup replaces."""

PURGED, PURGING = "purged", "purging"
"""Keys of the journal's values for the event of the last purge, and for the event of a purge that is incomplete."""


_COPIES = "copies"
"""The value of ``PURGING`` when the lab's own files are done and backups in other folders are not."""


def last_purge(journal: Journal | JournalView) -> int:
    """Return the number of the event of the last purge, or 0 without a purge.

    States before this event contain purged content.
    """
    return int(journal.meta(PURGED) or 0)


def end_purge(journal: Journal, *, now: Micros) -> None:
    """Remove purged content from all derived files, and rewrite the database.

    The caller holds the lock ``DERIVED``. Snapshots and indexes are removed. The backups in each folder are replaced by
    one backup of the lab's current state. Raises LabBusy if another process holds a lock, and LabError if a file cannot
    be written. The next process that opens the lab then continues.
    """
    folder = journal.path
    with writing(f"The rest of a purge in {folder}"):
        if folder is not None and journal.meta(PURGING) != _COPIES:
            remove_folder(folder / "snapshots")
            remove_folder(folder / REPLACED)
            remove_folder(folder / "slates")  # a cache of earlier versions
            sweep(folder / "neighbours")
            sync(folder)
            journal.expunge()
            with journal.write() as tx:
                tx.meta(
                    PURGING, _COPIES
                )  # if a folder cannot be reached, only backups remain to be replaced
        for backups in list_backup_folders(journal):
            _renew(journal, backups, now)
    with journal.write() as tx:
        tx.meta(PURGING, "")


def _renew(journal: Journal, backups: Path, now: Micros) -> None:
    """Replace the backups in a folder, if any, by one of the lab's current state, and remove drafts.

    Raises LabError if the folder is missing, unless it is the lab's own.
    """
    if not backups.exists():
        if journal.path is not None and backups.parent == journal.path:
            return
        raise LabError(
            f"The backups in {backups} cannot be reached, and contain purged memories. Make the folder reachable, or "
            "create it empty if it no longer exists, and open the lab again."
        )
    if list_backups(backups):
        write_backup(journal, backups, now=now, keep=1)
    for left in backups.glob(".draft-*"):
        remove_folder(left)
    sync(backups)
