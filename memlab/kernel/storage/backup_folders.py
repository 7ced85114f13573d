"""Backups: copies of a lab's journal, each of which opens as a lab.

A backup is a folder ``backup-NUMBER-HEAD-WHEN``. It is written beside and renamed, so it is there whole or not at all.
What a lab keeps beside its journal (snapshots, sealed slates, indexes) is rebuilt from it.
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

__all__ = [
    "BACKUPS",
    "UNCOPIED",
    "BackupFolder",
    "list_backup_folders",
    "list_backups",
    "remove_folder",
    "write_backup",
]

BACKUPS = "backups"
"""Where a lab keeps its own, below its folder."""

_META = "backup-folders"
"""The value of the journal that lists the other folders; a copy does not have it, as those backups are not its own."""

UNCOPIED = (_META, "copies")
"""The values of the journal that list copies of this lab: a copy has none, and ``restore`` carries them over."""

_NAME = re.compile(r"backup-(\d{6,})-(\d{12,})-(\d{8}T\d{6}Z)")
_STAMP = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class BackupFolder:
    """One backup: its folder, the number that it has among them, the last event in it, and when it was made."""

    path: Path
    number: int
    head: int
    at: Micros


def list_backups(folder: Path) -> list[BackupFolder]:
    """The backups in ``folder``, oldest first; other things there are passed over."""
    found = []
    for path in folder.glob("backup-*"):
        match = _NAME.fullmatch(path.name)
        if match is not None:
            at = to_micros(f"{match[3][:8]}T{match[3][9:15]}+00:00")
            found.append(BackupFolder(path, int(match[1]), int(match[2]), at))
    return sorted(found, key=lambda kept: kept.number)


def write_backup(journal: Journal, folder: Path, *, now: Micros, keep: int) -> BackupFolder:
    """Copy the journal into ``folder`` as its newest backup, and delete all but the newest ``keep``."""
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
    """Every folder in which backups of this lab were put, its own first."""
    own = [] if journal.path is None else [journal.path / BACKUPS]
    return [*own, *map(Path, msgspec.json.decode(journal.meta(_META) or "[]", type=list[str]))]


def _note(journal: Journal, folder: Path) -> None:
    known = msgspec.json.decode(journal.meta(_META) or "[]", type=list[str])
    if not journal.read_only and str(folder) not in known:
        with journal.write() as tx:
            tx.meta(_META, msgspec.json.encode([*known, str(folder)]).decode())


def remove_folder(path: Path) -> None:
    """Remove a folder with all that is in it; LabError where the disk refuses."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise LabError(f"{path} cannot be removed: {error.strerror}.") from None
