"""Ending a purge: what was taken out of the journal goes from every file that was made of it.

The journal says that a purge has to be ended (the value ``purging``) from the transaction that takes the content out
until all is done, so whoever opens the lab next ends what a killed process left.
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
"""Held by whoever writes a file that is made of the journal: a snapshot or a backup. A purge waits for it."""

PURGE_TIMEOUT = 60.0
"""Seconds that a purge and whoever holds ``DERIVED`` wait for each other; a snapshot of a million takes about ten."""

REPLACED = "replaced"
"""The folder of a lab in which ``restore`` leaves what was in the place of a backup."""

PURGED, PURGING = "purged", "purging"
"""Values of the journal: the event of the last purge, and that of one that is not ended."""


_COPIES = "copies"
"""The value of ``PURGING`` once the lab's own files are done, and copies elsewhere are not."""


def last_purge(journal: Journal | JournalView) -> int:
    """The event of the last purge; 0 if there was none. A state from before it holds what is gone."""
    return int(journal.meta(PURGED) or 0)


def end_purge(journal: Journal, *, now: Micros) -> None:
    """Remove snapshots, indexes and backups, and rewrite the database; all but backups come again.

    Needs ``DERIVED`` held. In place of the backups in each folder comes one, of the lab as it is now. Raises LabBusy
    where another process is in the way, LabError where a disk refuses; then the next opening goes on with it.
    """
    folder = journal.path
    with writing(f"What is left of a purge in {folder}"):
        if folder is not None and journal.meta(PURGING) != _COPIES:
            remove_folder(folder / "snapshots")
            remove_folder(folder / REPLACED)
            remove_folder(folder / "slates")  # a cache of earlier versions
            sweep(folder / "neighbours")
            sync(folder)
            journal.expunge()
            with journal.write() as tx:
                tx.meta(PURGING, _COPIES)  # only these are left, should one of them be out of reach
        for place in list_backup_folders(journal):
            _renew(journal, place, now)
    with journal.write() as tx:
        tx.meta(PURGING, "")


def _renew(journal: Journal, place: Path, now: Micros) -> None:
    """One backup of the lab as it is now in place of those before."""
    if not place.exists():
        if journal.path is not None and place.parent == journal.path:
            return
        raise LabError(
            f"The backups in {place} cannot be reached, and hold what was purged. Make the folder reachable, or "
            "create it empty if it is gone for good, and open the lab again."
        )
    if list_backups(place):
        write_backup(journal, place, now=now, keep=1)
    for left in place.glob(".draft-*"):
        remove_folder(left)
    sync(place)
