"""Restoring a lab from a backup, or accepting its own journal as complete."""

from __future__ import annotations

import contextlib
import os
import shutil
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
)
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.disk import sync, writing
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.index import sweep
from memlab.kernel.journal import (
    ENCRYPTED,
    FILE,
    HEAD,
    LOCK,
    RESTORED,
    Head,
    HeadFile,
    Journal,
    KeySource,
    WriterLock,
    encryption_of,
    open_connection,
    open_database,
    read_head,
    stamp_copy,
    unlock,
    write_record,
)
from memlab.kernel.storage.backup_folders import (
    BACKUPS,
    UNCOPIED,
    BackupFolder,
    list_backup_folders,
    list_backups,
)
from memlab.kernel.storage.purging import DERIVED, PURGE_TIMEOUT, REPLACED
from memlab.subjects.io.checking import find_lab
from memlab.subjects.mending import make_repairer


@dataclass(frozen=True)
class Restored(Displayed):
    """The result of ``memlab.restore``.

    Attributes
    ----------
    path
        The folder of the lab.
    backup
        The backup that was restored, or None if the lab's own journal was kept.
    event
        The number of the last event of the restored lab.
    replaced
        The folder with the former files, or None if no file was replaced.

    Examples
    --------
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/agent.memlab"
    >>> memlab.open(path).close()
    >>> memlab.restore(path).replaced is None
    True
    """

    path: Path
    backup: Path | None
    event: int
    replaced: Path | None

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row and the columns path, backup, event and replaced."""
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
def restore(
    path: str | Path,
    backup: str | Path | None = None,
    *,
    key: KeySource | None = None,
) -> Restored:
    """Restore the lab at ``path`` from a backup, or from its own journal.

    Without ``backup``, the lab's own journal is kept if it is sound, and lost events are no longer reported. If the
    journal is damaged, the sound backup with the latest event is restored. The former files are moved to the folder
    ``replaced``, where they stay until a purge. Every process that has the lab open must open it again. A backup from
    before a purge is refused, because it contains the purged texts.

    Parameters
    ----------
    path
        The folder of the lab.
    backup
        The folder of a backup of this lab.
    key
        The key of an encrypted lab that is not open, as for ``memlab.open``.

    Returns
    -------
    Restored
        The restored backup, and the folder with the former files.

    Raises
    ------
    NotALab
        If there is no lab at ``path``.
    NewerLab
        If a later version of memlab wrote the lab or the backup.
    InputError
        If ``backup`` belongs to another lab, is from before a purge, or only one of lab and backup
        is encrypted.
    DamagedLab
        If neither the journal nor a backup is sound.
    LabBusy
        If another process is writing or reading.
    WrongKey
        If the lab is encrypted and the key is missing or wrong.

    Examples
    --------
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/agent.memlab"
    >>> with memlab.open(path) as lab:
    ...     hit = lab.remember("The build needs Node 20.")
    ...     backup = lab.io.backup()
    >>> memlab.restore(path, backup.path).backup == backup.path
    True
    """
    folder = find_lab(path)
    vaults = _unlock_all(folder, backup, key)
    # All code takes the lock on derived files first, so that a purge and a restore cannot deadlock.
    with WriterLock(folder / DERIVED).hold(PURGE_TIMEOUT):
        with WriterLock(folder / LOCK).hold(PURGE_TIMEOUT):
            own, recorded = _sound_head(folder), _recorded_head(folder)
            chosen: Path | None
            if backup is not None:
                chosen = _check_backup(
                    Path(backup).expanduser().absolute(), _latest_head(own, recorded)
                )
            else:
                chosen = _best_backup(folder, own, recorded)
            replaced = (
                None
                if chosen is None
                else _put_in_place(folder, chosen, recorded, sound=own is not None)
            )
        with Journal.open(folder, create=False, mend=make_repairer()) as journal:
            journal.settle()
            del vaults  # held until here, so that no call above needs a key
            return Restored(folder, chosen, journal.head, replaced)


def _unlock_all(folder: Path, backup: str | Path | None, key: KeySource | None) -> list[object]:
    """Unlock a lab and its backups with ``key``, and return their vaults."""
    paths = [folder, *(copy.path for copy in list_backups(folder / BACKUPS))]
    paths += [] if backup is None else [Path(backup).expanduser()]
    vaults: list[object] = []
    for path in paths:
        with contextlib.suppress(DamagedLab):
            vaults.append(unlock(path, None if any(vaults) else key))
    return vaults


def _latest_head(own: Head | None, recorded: Head | None) -> Head | None:
    """Return whichever record of the last event counts more purges, or None without records.

    A generation is a number that grows with each purge. The journal's own record is not enough, because the journal may
    be a copy from before a purge.
    """
    return max(
        (head for head in (own, recorded) if head is not None),
        key=lambda head: head.generation,
        default=None,
    )


def _sound_head(folder: Path) -> Head | None:
    """Return the last event of a journal, or None for a damaged journal.

    Raises NewerLab for a journal of a later memlab, which is not damaged. An older backup must not replace it.
    """
    try:
        return read_head(folder)
    except NewerLab:
        raise
    except LabError:
        return None


def _recorded_head(folder: Path) -> Head | None:
    """Return the last event in the head file, or None if the file is unreadable."""
    try:
        return HeadFile(folder / HEAD).read()
    except DamagedLab:
        return None


def _check_backup(backup: Path, latest: Head | None) -> Path:
    """Check that a backup belongs to the lab and is no older than the lab's last purge.

    ``latest`` is the last known event of the lab's journal.
    """
    if not (backup / FILE).is_file():
        raise InputError(
            f"{backup} is not a backup: it has no {FILE}. `ls LAB/{BACKUPS}` lists the backups of a lab."
        )
    head = read_head(backup)
    if latest is not None and head.lab != latest.lab:
        raise InputError(f"{backup} is a backup of another lab. Choose a backup of this lab.")
    if latest is not None and head.generation < latest.generation:
        raise InputError(
            f"{backup} is from before a purge and contains the purged texts. Choose a newer backup."
        )
    return backup


def _best_backup(folder: Path, own: Head | None, recorded: Head | None) -> Path | None:
    """Return the latest sound backup, or None if the journal is sound and as recent.

    Raises DamagedLab if neither the journal nor a backup is sound.
    """
    latest = _latest_head(own, recorded)
    if own is not None and latest is not None and own.generation < latest.generation:
        own = None  # The journal is a copy from before a purge.
    ranked: list[tuple[int, int, Path | None]] = (
        [] if own is None else [(own.generation, own.seq, None)]
    )
    for backup in _backups_of(folder):
        head = _sound_head(backup.path)
        if head is None:
            continue
        if latest is None or (head.lab == latest.lab and head.generation >= latest.generation):
            ranked.append((head.generation, head.seq, backup.path))
    if not ranked:
        raise DamagedLab(
            f"The journal of {folder} is damaged, and it records no sound backup. Name a backup: "
            "memlab restore LAB BACKUP."
        )
    best = max(candidate[:2] for candidate in ranked)
    if own is not None and best <= (own.generation, own.seq):
        return None
    backups = (candidate for candidate in ranked if candidate[2] is not None)
    return max(backups, key=lambda candidate: candidate[:2])[2]


def _backups_of(folder: Path) -> list[BackupFolder]:
    """Return all backups of a lab, from all folders that the lab has used.

    The journal records folders other than the lab's own. If it cannot be read, only the lab's own folder is searched.
    """
    folders = [folder / BACKUPS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        with (
            contextlib.suppress(LabError),
            Journal.open(folder, read_only=True, create=False) as journal,
        ):
            folders = list_backup_folders(journal)
    return [backup for parent in folders for backup in list_backups(parent)]


def _read_copies(folder: Path) -> dict[str, str]:
    """Return the journal's lists of this lab's copies, which a purge must reach.

    A backup may be older than some copies, so the lists are kept from the journal that it replaces.
    """
    record: dict[str, str] = {}
    with (
        contextlib.suppress(LabError),
        Journal.open(folder, read_only=True, create=False) as journal,
    ):
        for key in UNCOPIED:
            record |= {key: value} if (value := journal.meta(key)) else {}
    return record


def _put_in_place(folder: Path, backup: Path, recorded: Head | None, *, sound: bool) -> Path:
    """Replace a lab's journal with a backup; return the folder of the former files.

    One rename replaces the database, so the lab has a journal at every moment. SQLite would apply the old write-ahead
    log to the new database. Therefore the log is first merged into the old database and moved away. The new database
    stores the last event of the old journal (``recorded``), so nothing needs to be written after the rename.
    """
    record = encryption_of(backup)
    if (record is not None) != (folder / ENCRYPTED).exists():
        raise InputError(
            f"{folder} and {backup} differ: one is encrypted, and the other is not. "
            "Nothing was replaced. Encrypt the other with memlab.encrypt; a backup opens as a lab."
        )
    file = FILE if record is None else ENCRYPTED
    draft = folder / f"{file}.new"
    with writing(f"The journal of {folder.name}"):
        draft.unlink(missing_ok=True)
        with open_connection(
            backup
        ) as source:  # This includes the write-ahead log of a backup that is open.
            source.execute("VACUUM INTO ?", (str(draft),))
        metadata = _read_copies(folder) | ({} if recorded is None else {RESTORED: recorded.text})
        with contextlib.closing(
            open_database(draft, "mode=rw", PURGE_TIMEOUT, unlock(backup))
        ) as copy:
            stamp_copy(copy, metadata)
        sync(draft)
        number = 1 + max(
            (int(path.name) for path in (folder / REPLACED).glob("*") if path.name.isdecimal()),
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
        for name in (FILE, ENCRYPTED):
            if (folder / name).exists():
                os.link(folder / name, aside / name)
        if (folder / HEAD).exists():
            shutil.copyfile(folder / HEAD, aside / HEAD)
        for name in (f"{file}-wal", f"{file}-shm"):
            if (folder / name).exists():
                (folder / name).rename(aside / name)
        # Snapshots of another journal would be refused with a warning when the lab is opened.
        derived = [name for name in ("snapshots",) if (folder / name).is_dir()]
        for name in derived:
            (folder / name).rename(aside / name)
        if record is None:
            draft.rename(folder / FILE)
        else:
            write_record(folder, record, draft)
        sync(folder)
        for name in derived:
            shutil.rmtree(aside / name, ignore_errors=True)
    sweep(folder / "neighbours")
    return aside
