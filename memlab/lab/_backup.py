"""Backups of a lab: copies that open as labs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from memlab.backups import BACKUPS, Kept, backups_in, write_backup
from memlab.checking import Checked, check
from memlab.clock import DAY, from_micros
from memlab.errors import InputError, ReadOnlyLab
from memlab.journal import Journal
from memlab.lab._base import LabBase
from memlab.privacy import refuse
from memlab.purging import PURGE_TIMEOUT
from memlab.store import Store

__all__ = ["Backup", "LabBackup", "back_up_if_due"]


@dataclass(frozen=True)
class Backup:
    """One backup: where it is, the instant and the last event that it holds, its bytes, and all that are kept there."""

    path: Path
    at: datetime
    event: int
    size: int
    frame: pl.DataFrame

    def _repr_html_(self) -> str:
        return self.frame._repr_html_()


class LabBackup(LabBase):
    """``backup``, ``check``."""

    def backup(self, folder: str | Path | None = None, *, keep: int = 3) -> Backup:
        """Copy the lab into ``folder`` (``backups`` in its own, unless given), and keep the newest ``keep`` there.

        Others read and write meanwhile; the copy is the lab as it was at one moment, every row of it checked, and is
        there whole or not at all. It opens as a lab: ``memlab.open(backup.path)``. To go back to it, close the lab and
        use ``memlab.restore(path, backup.path)``. Give each lab a folder of its own. ``purge`` reaches every folder
        that was used.

        Raises InputError for ``keep`` below 1 and for a lab in memory without a folder, ReadOnlyLab, LabError where the
        disk refuses, DamagedLab if the lab or the copy is not whole. A lab of 100,000 memories (90 MB) takes 0.4
        seconds of processor time.

        >>> lab.backup().path                                                              # doctest: +SKIP
        """
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise InputError(f"keep is a whole number of at least 1, not {keep!r}.")
        return _told(_written(self._store, folder, keep))

    def check(self, *, repair: bool = True) -> Checked:
        """Compare everything in this lab with what was written, and mend what can be mended: see ``memlab.check``.

        >>> lab.check().sound                                                              # doctest: +SKIP
        True
        """
        store = self._store
        if isinstance(store.journal, Journal) and store.journal.path is not None:
            return check(store.journal.path, repair=repair and not store.journal.read_only)
        raise InputError(f"{store.where} has no files that could be damaged.")


def back_up_if_due(store: Store, *, closing: bool, keep: int = 3) -> None:
    """What ``memlab.open(path, backups=True)`` does: a backup if the newest is a day old, and on closing if anything
    happened since it was made.
    """
    if store.folder is None:
        return
    found = backups_in(store.folder / BACKUPS)
    now, head = store.clock(), store.journal.head
    due = not found or (found[-1].head != head and (closing or not 0 <= now - found[-1].at < DAY))
    if due:
        _written(store, None, keep)


def _written(store: Store, folder: str | Path | None, keep: int) -> Kept:
    journal = store.journal
    refuse(str(folder or ""), "folder for backups")  # the journal notes where they are
    if not isinstance(journal, Journal):
        raise ReadOnlyLab(f"{store.where}: back up the lab that it is the past of.")
    if journal.read_only:
        raise ReadOnlyLab(f"{store.where} was opened with read_only=True, and a purge has to know of its backups.")
    if folder is not None:
        place = Path(folder).expanduser()
    elif journal.path is not None:
        place = journal.path / BACKUPS
    else:
        raise InputError("A lab in memory has no folder: say where to put the backup, backup(folder).")
    with store.derived.held(PURGE_TIMEOUT):
        return write_backup(journal, place.absolute(), now=store.clock(), keep=keep)


def _told(made: Kept) -> Backup:
    kept = backups_in(made.path.parent)
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
