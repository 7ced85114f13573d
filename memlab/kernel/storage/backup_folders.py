"""Backups: copies of a lab's journal, each of which opens as a lab.

A backup is a folder ``backup-NUMBER-HEAD-WHEN``. It is written under a draft name and renamed, so a backup is either
complete or absent. Snapshots and indexes are not copied, because they can be rebuilt from the journal.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec

from memlab.errors import LabError
from memlab.kernel.base.clock import Micros, from_micros, to_micros
from memlab.kernel.base.disk import sync, writing
from memlab.kernel.journal import RESTORED, Journal, copy_journal

BACKUPS = "backups"
"""The folder of a lab's own backups, below the lab's folder."""

_META = "backup-folders"
"""The key of the journal's list of other backup folders. A backup lacks this list, because these are backups of the lab."""

UNCOPIED = (_META, "copies")
"""The keys of the journal's lists of copies of this lab. Backups lack them, and ``restore`` keeps the lab's own."""

# Names are sorted by number. The last event and the time are for people, in UTC because clocks change twice a year.
_NAME = re.compile(r"backup-(\d{6,})-(\d{12,})-(\d{8}T\d{6}Z)")
_STAMP = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class BackupFolder:
    """A backup, with its folder, its number, its last event and its time."""

    path: Path
    number: int
    head: int
    at: Micros


def list_backups(folder: Path) -> list[BackupFolder]:
    """Return the backups in ``folder``, oldest first."""
    backups = []
    for path in folder.glob("backup-*"):
        match = _NAME.fullmatch(path.name)
        if match is not None:
            at = to_micros(f"{match[3][:8]}T{match[3][9:15]}+00:00")
            backups.append(BackupFolder(path, int(match[1]), int(match[2]), at))
    return sorted(backups, key=lambda backup: backup.number)


def write_backup(journal: Journal, folder: Path, *, now: Micros, keep: int) -> BackupFolder:
    """Copy the journal into ``folder`` as the newest backup.

    All but the newest ``keep`` backups are deleted.
    """
    with writing(f"A backup in {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(".draft-*"):
        remove_folder(left)
    before = list_backups(folder)
    number, head = (before[-1].number if before else 0) + 1, journal.head
    draft = folder / f".draft-{os.getpid()}-{number:06d}"
    final = folder / f"backup-{number:06d}-{head:012d}-{from_micros(now).strftime(_STAMP)}"
    with writing(f"A backup in {folder}"):
        try:
            journal.sync_head()
            copy_journal(journal, draft, without=(*UNCOPIED, RESTORED, "purging"))
            draft.rename(final)
            sync(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    if journal.path is None or folder != journal.path / BACKUPS:
        _note(journal, folder)
    for old in [*before][: max(0, len(before) + 1 - keep)]:
        remove_folder(old.path)
    return BackupFolder(final, number, head, now)


def list_backup_folders(journal: Journal) -> list[Path]:
    """Return all folders with backups of a lab, the lab's own folder first."""
    own = [] if journal.path is None else [journal.path / BACKUPS]
    return [*own, *map(Path, msgspec.json.decode(journal.meta(_META) or "[]", type=list[str]))]


def _note(journal: Journal, folder: Path) -> None:
    """Record a folder in the journal's list of backup folders."""
    folders = msgspec.json.decode(journal.meta(_META) or "[]", type=list[str])
    if not journal.read_only and str(folder) not in folders:
        with journal.write() as tx:
            tx.meta(_META, msgspec.json.encode([*folders, str(folder)]).decode())


def remove_folder(path: Path) -> None:
    """Remove a folder with its contents. Raises LabError if this fails."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise LabError(
            f"{path} cannot be removed: {error.strerror}. Remove the folder by hand and try again."
        ) from None
