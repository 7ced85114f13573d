"""The end of a purge: removal of purged content from derived files.

Derived files are all files that were written from the journal.

The transaction that removes the content also sets the journal's value ``purging``, which stays until all files are
done. So if a process dies during a purge, the next process that opens the lab completes it.
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

A purge waits for it, so that no such file is written with purged content.
"""

PURGE_TIMEOUT = 60.0
"""Seconds that a purge and the holder of ``DERIVED`` wait for each other; a snapshot of a million takes ten."""

REPLACED = "replaced"
"""The folder of a lab to which ``restore`` moves the files that a backup replaces."""

PURGED, PURGING = "purged", "purging"
"""Values of the journal: the event of the last purge, and the event of a purge that is not complete."""


_COPIES = "copies"
"""The value of ``PURGING`` when the lab's own files are done and copies elsewhere are not."""


def last_purge(journal: Journal | JournalView) -> int:
    """Return the event of the last purge, 0 if there was none.

    States before it contain purged content.
    """
    return int(journal.meta(PURGED) or 0)


def end_purge(journal: Journal, *, now: Micros) -> None:
    """Remove snapshots, indexes and backups, and rewrite the database.

    The caller holds ``DERIVED``. The backups in each folder are replaced by one backup of the lab as it is now.
    Raises LabBusy if another process is in the way and LabError if a disk refuses; the next process that opens
    the lab continues.
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
                )  # if a copy is out of reach, only copies remain to be done
        for backups in list_backup_folders(journal):
            _renew(journal, backups, now)
    with journal.write() as tx:
        tx.meta(PURGING, "")


def _renew(journal: Journal, backups: Path, now: Micros) -> None:
    """Replace all backups in a folder by one backup of the lab's current state."""
    if not backups.exists():
        if journal.path is not None and backups.parent == journal.path:
            return
        raise LabError(
            f"The backups in {backups} cannot be reached, and hold what was purged. Make the folder reachable, or "
            "create it empty if it no longer exists, and open the lab again."
        )
    if list_backups(backups):
        write_backup(journal, backups, now=now, keep=1)
    for left in backups.glob(".draft-*"):
        remove_folder(left)
    sync(backups)
