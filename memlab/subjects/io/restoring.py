"""Putting a backup in the place of a lab's journal, or settling that what is there is what there is."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import warnings
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from memlab.errors import (
    DamagedLab,
    DamageWarning,
    InputError,
    LabBusy,
    LabError,
    NewerLab,
    NotALab,
)
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.disk import sync, writing
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.index import sweep
from memlab.kernel.journal import (
    FILE,
    HEAD,
    LOCK,
    RESTORED,
    Head,
    HeadFile,
    Journal,
    WriterLock,
    lab_exists,
    open_connection,
    read_head,
    stamp_copy,
)
from memlab.kernel.storage.backup_folders import (
    BACKUPS,
    UNCOPIED,
    BackupFolder,
    list_backup_folders,
    list_backups,
)
from memlab.kernel.storage.purging import DERIVED, PURGE_TIMEOUT, REPLACED
from memlab.subjects.mending import make_repairer

__all__ = ["Restored", "restore"]


@dataclass(frozen=True)
class Restored(Displayed):
    """What ``restore`` did.

    ``backup`` is in place now (None: the journal was kept as it is), ``event`` is its last, and ``replaced`` the folder
    with what was in its place.
    """

    path: Path
    backup: Path | None
    event: int
    replaced: Path | None

    @property
    def frame(self) -> pl.DataFrame:
        """One row: path, backup, event, replaced."""
        return pl.DataFrame(
            {
                "path": [str(self.path)],
                "backup": [None if self.backup is None else str(self.backup)],
                "event": [self.event],
                "replaced": [None if self.replaced is None else str(self.replaced)],
            },
            schema_overrides={"backup": pl.String, "replaced": pl.String},
        )

    def __repr__(self) -> str:
        source = "its own journal" if self.backup is None else self.backup.name
        return printable(f"<Restored {self.path.name} from {source}, up to event {self.event:,}>")

    def _display(self) -> object:
        return repr(self)


@checked
def restore(path: str | Path, backup: str | Path | None = None) -> Restored:
    """Make the lab at ``path`` complete again: with ``backup``, or with what holds the most of it.

    Without ``backup`` that is the lab's own journal if it is sound, else the sound backup with the latest event, and
    what was missing is no longer reported. What was in the place of a backup is moved to the folder ``replaced``,
    until a purge. Whoever has the lab open must open it again. A backup from before a purge is refused: it
    holds what was purged.

    Raises NotALab; NewerLab for a lab or a backup of a later memlab; InputError for a backup of another lab; DamagedLab
    if nothing sound is left; LabBusy.

    >>> memlab.restore("agent.memlab").event                                               # doctest: +SKIP
    """
    folder = Path(path).expanduser().absolute()
    if not folder.is_dir():
        raise NotALab(f"There is no lab at {folder}. Check the path.")
    with contextlib.suppress(DamagedLab):  # what is wrong is looked at below
        if not lab_exists(folder):
            raise NotALab(f"There is no lab at {folder}. Check the path.")
    with WriterLock(folder / DERIVED).hold(PURGE_TIMEOUT):
        with WriterLock(folder / LOCK).hold(PURGE_TIMEOUT):  # nobody writes what is being judged
            own, recorded = _sound_head(folder), _recorded_head(folder)
            chosen: Path | None
            if backup is not None:
                chosen = _of_this_lab(Path(backup).expanduser().absolute(), _newest(own, recorded))
            else:
                chosen = _best(folder, own, recorded)
            replaced = (
                None
                if chosen is None
                else _put_in_place(folder, chosen, recorded, sound=own is not None)
            )
        with Journal.open(folder, create=False, mend=make_repairer()) as journal:
            journal.settle()
            return Restored(folder, chosen, journal.head, replaced)


def _newest(own: Head | None, recorded: Head | None) -> Head | None:
    """Whose generation a backup must have: a copy from before a purge hides what the head file knows."""
    return max(
        (head for head in (own, recorded) if head is not None),
        key=lambda head: head.generation,
        default=None,
    )


def _sound_head(folder: Path) -> Head | None:
    """The last event of the journal in ``folder`` if every row of it is what was written.

    NewerLab is raised: what a later memlab wrote is no damage, and must not give way to an older backup.
    """
    try:
        return read_head(folder)
    except NewerLab:
        raise
    except LabError:
        return None


def _recorded_head(folder: Path) -> Head | None:
    try:
        return HeadFile(folder / HEAD).read()
    except DamagedLab:
        return None


def _of_this_lab(backup: Path, known: Head | None) -> Path:
    if not (backup / FILE).is_file():
        raise InputError(
            f"{backup} is no backup: it has no {FILE}. `ls LAB/{BACKUPS}` shows those of a lab."
        )
    head = read_head(backup)
    if known is not None and head.lab != known.lab:
        raise InputError(f"{backup} is a backup of another lab.")
    if known is not None and head.generation < known.generation:
        raise InputError(
            f"{backup} is from before a purge, and holds what was purged. A newer backup does not."
        )
    return backup


def _best(folder: Path, own: Head | None, recorded: Head | None) -> Path | None:
    """The backup that holds more than the journal; None if the journal is sound and holds the most."""
    known = _newest(own, recorded)
    if own is not None and known is not None and own.generation < known.generation:
        own = None  # from before a purge
    ranked: list[tuple[int, int, Path | None]] = (
        [] if own is None else [(own.generation, own.seq, None)]
    )
    for kept in _backups_of(folder):
        head = _sound_head(kept.path)
        if head is None:
            continue
        if known is None or (head.lab == known.lab and head.generation >= known.generation):
            ranked.append((head.generation, head.seq, kept.path))
    if not ranked:
        raise DamagedLab(
            f"The journal of {folder} is damaged, and there is no sound backup of it that it knows of. Name one: "
            "memlab restore LAB BACKUP."
        )
    most = max(one[:2] for one in ranked)
    if own is not None and most <= (own.generation, own.seq):
        return None
    return max((one for one in ranked if one[2] is not None), key=lambda one: one[:2])[2]


def _backups_of(folder: Path) -> list[BackupFolder]:
    """Every backup of the lab that can be found: the folders besides its own are listed in the journal."""
    found = [folder / BACKUPS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        with (
            contextlib.suppress(LabError),
            Journal.open(folder, read_only=True, create=False) as journal,
        ):
            found = list_backup_folders(journal)
    return [kept for place in found for kept in list_backups(place)]


def _listed(folder: Path) -> dict[str, str]:
    """What the journal that goes knows of copies of this lab, which a backup does not: a purge has to reach them."""
    found: dict[str, str] = {}
    with (
        contextlib.suppress(LabError),
        Journal.open(folder, read_only=True, create=False) as journal,
    ):
        for key in UNCOPIED:
            found |= {key: value} if (value := journal.meta(key)) else {}
    return found


def _put_in_place(folder: Path, backup: Path, recorded: Head | None, *, sound: bool) -> Path:
    """Put a copy of the backup's journal in the place of the lab's; returns where that is which was there.

    The new database takes the place of the old by one renaming, so there is a journal at any instant. The old log must
    be gone by then, as it would be taken for the new one's: what it holds is moved into the old database first. The
    new database knows which head (``recorded``) was given up for it, so that with the renaming all is settled.
    """
    draft = folder / f"{FILE}.new"
    with writing(f"The journal of {folder.name}"):
        draft.unlink(missing_ok=True)
        with open_connection(backup) as source:  # with its log, if somebody has it open
            source.execute("VACUUM INTO ?", (str(draft),))
        listed = _listed(folder) | ({} if recorded is None else {RESTORED: recorded.text})
        with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as copy:
            stamp_copy(copy, listed)
        sync(draft)
        number = 1 + max(
            (int(one.name) for one in (folder / REPLACED).glob("*") if one.name.isdecimal()),
            default=0,
        )
        aside = folder / REPLACED / f"{number:03d}"
        aside.mkdir(parents=True)
        busy = 0
        with contextlib.suppress(LabError), open_connection(folder, write=True) as connection:
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy and sound:
            raise LabBusy(
                f"{folder} is being read by another process. Close it there, and try again."
            )
        if (folder / FILE).exists():
            os.link(folder / FILE, aside / FILE)
        if (folder / HEAD).exists():
            shutil.copyfile(folder / HEAD, aside / HEAD)
        for name in (f"{FILE}-wal", f"{FILE}-shm"):
            if (folder / name).exists():
                (folder / name).rename(aside / name)
        # made of another journal: what stays beside the new one would not be believed, and said so at the next opening
        made = [name for name in ("snapshots",) if (folder / name).is_dir()]
        for name in made:
            (folder / name).rename(aside / name)
        draft.rename(folder / FILE)
        sync(folder)
        for name in made:
            shutil.rmtree(aside / name, ignore_errors=True)
    sweep(folder / "neighbours")
    return aside
