"""Checks of a lab's files by their checksums, and repairs of damaged parts.

A lab's folder contains the journal and files that are derived from it. Derived files that fail a check are removed and
rebuilt later. A damaged row of the journal is replaced by the same row of a backup or a snapshot. Damage that no copy
can repair is reported.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl

from memlab.errors import DamagedLab, DamageWarning, LabError, MemlabError, NotALab
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.disk import writing
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.index import check_bases
from memlab.kernel.journal import (
    ENCRYPTED,
    FILE,
    HEAD,
    LOCK,
    Fault,
    Journal,
    KeySource,
    Vault,
    WriterLock,
    find_faults,
    lab_exists,
    open_connection,
    read_head,
    replace_rows,
    sql_errors,
    unlock,
)
from memlab.kernel.policies import VersionLog
from memlab.kernel.state import (
    State,
    add_extension_projections,
    latest_snapshot,
    load_snapshot,
    policy_events,
)
from memlab.kernel.storage.backup_folders import BACKUPS, list_backup_folders, list_backups
from memlab.kernel.storage.purging import DERIVED, PURGE_TIMEOUT
from memlab.kernel.verbs.projections import PROJECTIONS, new_state

# The columns of ``Checked.frame``.
_SCHEMA = {"file": pl.String, "part": pl.String, "state": pl.String, "detail": pl.String}


@dataclass(frozen=True)
class Checked(Displayed):
    """The result of a check of a lab's files.

    Attributes
    ----------
    path
        The folder of the lab, or None for a lab in memory.
    frame
        One row for each part of the lab, with the columns file, part, state and detail. ``state`` is "sound",
        "repaired", "damaged" (no copy can repair the part) or "lost" (acknowledged events are missing).

    Examples
    --------
    >>> memlab.open().io.check().frame["state"].to_list()
    ['sound']
    """

    path: Path | None
    frame: pl.DataFrame

    @property
    def sound(self) -> bool:
        """Whether every part is intact or was repaired."""
        return not self.frame["state"].is_in(["damaged", "lost"]).any()

    def __repr__(self) -> str:
        counts = self.frame.group_by("state").len().sort("state")
        summary = ", ".join(f"{count:,} {state}" for state, count in counts.iter_rows())
        return printable(f"<Checked {self.path.name if self.path else 'in memory'}: {summary}>")


@checked
def check(path: str | Path, *, repair: bool = True, key: KeySource | None = None) -> Checked:
    """Compare every part of a lab with its checksums, and repair damaged parts.

    The check covers every row of the journal, the fold of every event, snapshots, indexes, backups,
    and whether events are missing at the end. Damaged rows are repaired from a sound backup or
    snapshot. Derived files that fail the check are removed, and rebuilt when they are needed. Other
    processes may read and write meanwhile. The whole lab is read, which takes about a second for
    100,000 memories.

    Parameters
    ----------
    path
        The folder of the lab.
    repair
        Whether to repair damaged parts. With False, damage is only reported.
    key
        The key of an encrypted lab that is not open, as for ``memlab.open``.

    Returns
    -------
    Checked
        One row for each part of the lab.

    Raises
    ------
    NotALab
        If there is no lab at ``path``.
    NewerLab
        If a later version of memlab wrote the lab.
    LabBusy
        If another process holds a lock for a minute.
    WrongKey
        If the lab is encrypted and the key is missing or wrong.

    Examples
    --------
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/agent.memlab"
    >>> memlab.open(path).close()
    >>> memlab.check(path).sound
    True
    """
    folder = find_lab(path)
    checking = _Checking(folder, repair)
    with contextlib.suppress(DamagedLab):  # reported below
        checking.vault = unlock(folder, key)
    with WriterLock(folder / DERIVED).hold(PURGE_TIMEOUT) if repair else contextlib.nullcontext():
        checking.run()
    return Checked(folder, pl.DataFrame(checking.rows, schema=_SCHEMA, orient="row"))


def find_lab(path: str | Path) -> Path:
    """Return the absolute path of a lab that may be damaged, or raise NotALab."""
    folder = Path(path).expanduser().absolute()
    exists = folder.is_dir()
    with contextlib.suppress(DamagedLab):
        exists = exists and lab_exists(folder)
    if not exists:
        raise NotALab(f"There is no lab at {folder}. Check the path.")
    return folder


def check_in_memory(journal: Journal) -> Checked:
    """Check the rows of a journal in memory."""
    faults_found = journal.faults()
    rows = [
        ("in memory", str(fault).partition(": ")[0], "damaged", fault.detail)
        for fault in faults_found
    ]
    rows = rows or [("in memory", "rows", "sound", f"{journal.head:,} events")]
    return Checked(None, pl.DataFrame(rows, schema=_SCHEMA, orient="row"))


class _Checking:
    """A running check of a lab, which collects one row for each part."""

    def __init__(self, folder: Path, repair: bool) -> None:
        self.folder, self.repair = folder, repair
        self.vault: Vault | None = None
        self.database = ENCRYPTED if (folder / ENCRYPTED).exists() else FILE
        self.rows: list[tuple[str, str, str, str]] = []

    def run(self) -> None:
        """Check every part of the lab; fold the events only if the journal is sound."""
        journal = self._open_journal()
        if journal is None:
            self._check_backups(None)
            return
        with journal:
            sound = self._check_journal(journal)
            self._check_snapshots(journal)
            self._check_indexes()
            self._check_backups(journal)
            if sound:
                self._check_fold(journal)

    def _report(self, file: str, part: str, state: str, detail: str = "") -> None:
        """Add a row for a file to the result of the check."""
        self.rows.append((file, part, state, detail))

    def _open_journal(self) -> Journal | None:
        """Open the journal and report missing events, or return None for a damaged journal."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DamageWarning)
            try:
                journal = Journal.open(self.folder, create=False, read_only=not self.repair)
            except DamagedLab as error:
                self._report(self.database, "database", "damaged", str(error))
                return None
        for warning in caught:
            self._report(
                HEAD, "record", "repaired" if self.repair else "damaged", str(warning.message)
            )
        if journal.lost:
            self._report(
                HEAD,
                "events",
                "lost",
                f"{journal.lost}; run `memlab upkeep restore`",
            )
        elif not caught:
            self._report(HEAD, "record", "sound")
        return journal

    def _check_journal(self, journal: Journal) -> bool:
        """Check the rows of the journal, repair damage, and return whether all rows are sound."""
        try:
            with open_connection(self.folder) as connection:
                damage = find_faults(connection, self.folder)
        except DamagedLab as error:
            self._report(self.database, "database", "damaged", str(error))
            return False
        try:
            remaining = self._repair_rows(journal, damage) if damage and self.repair else damage
        except DamagedLab:
            remaining = damage
        for fault in damage:
            self._report(
                self.database,
                str(fault).partition(": ")[0],
                "damaged" if fault in remaining else "repaired",
                fault.detail,
            )
        if not damage:
            self._report(self.database, "rows", "sound", f"{journal.head:,} events")
        return not remaining

    def _repair_rows(self, journal: Journal, damage: list[Fault]) -> list[Fault]:
        """Replace damaged rows with sound copies, and return the remaining faults."""
        remaining = damage
        with (
            WriterLock(self.folder / LOCK).hold(PURGE_TIMEOUT),
            open_connection(self.folder, write=True) as connection,
        ):
            failures: tuple[type[Exception], ...] = (MemlabError, *sql_errors())
            for repair in self._sources(journal):
                connection.execute("BEGIN IMMEDIATE")
                try:
                    repair(connection, wanted=remaining)
                    after = find_faults(connection, self.folder)
                    better = len(after) < len(remaining) and set(after) <= set(remaining)
                    connection.execute("COMMIT" if better else "ROLLBACK")
                    remaining = after if better else remaining
                except failures:
                    continue  # Another source may repair the rows. Remaining faults are reported.
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                if not remaining:
                    break
        return remaining

    def _sources(self, journal: Journal) -> Iterator[_Repair]:
        """Yield functions that repair rows: rebuild SQL indexes, copy from the latest snapshot, copy from a backup."""

        def reindex(connection: sqlite3.Connection, wanted: list[Fault]) -> None:
            if any(fault.table == "database" for fault in wanted):
                connection.execute("REINDEX")

        yield reindex
        with contextlib.suppress(DamagedLab):
            path = latest_snapshot(self.folder / "snapshots")
            snapshot = (
                None
                if path is None
                else load_snapshot(path, add_extension_projections(PROJECTIONS))
            )
            if snapshot is not None and (snapshot.lab, snapshot.chain) == _identify_point(
                journal, snapshot.state.seq
            ):
                yield partial(_from_snapshot, snapshot.state)
        for folder in _backup_folders(journal, self.folder):
            for backup in reversed(list_backups(folder)):
                # A backup from before a purge is skipped, because it would restore purged rows.
                with contextlib.suppress(LabError):
                    head = read_head(backup.path)
                    if (head.lab, head.generation) == (journal.identity, journal.generation):
                        with open_connection(backup.path) as other:
                            yield partial(replace_rows, other=other)

    def _check_fold(self, journal: Journal) -> None:
        """Fold all events into an empty state, and check that each memory has a vector."""
        state, versions = new_state(), VersionLog()
        try:
            for event in journal.events(kinds=policy_events()):
                versions.fold(event, journal.source)
            state.fold(journal.events(), journal)
        except MemlabError as error:
            self._report(self.database, "fold", "damaged", str(error))
        else:
            short = len(state) - len(state.vectors)
            self._report(
                self.database, "fold", "damaged" if short else "sound", f"{len(state):,} memories"
            )

    def _check_snapshots(self, journal: Journal) -> None:
        """Report whether each snapshot can be read and belongs to this journal; a repair removes the others."""
        for path in sorted((self.folder / "snapshots").glob("*")):
            name = f"snapshots/{path.name}"
            try:
                snapshot = load_snapshot(path, add_extension_projections(PROJECTIONS))
                if (snapshot.lab, snapshot.chain) != _identify_point(journal, snapshot.state.seq):
                    raise DamagedLab(
                        "The snapshot belongs to another journal: lab id or event hash differ."
                    )
            except DamagedLab as error:
                self._remove(path, name, "snapshot", str(error))
            else:
                self._report(name, "snapshot", "sound")

    def _check_indexes(self) -> None:
        """Check the files of the nearest-neighbour indexes."""
        for path, reason in check_bases(self.folder / "neighbours"):
            name = f"neighbours/{path.name}"
            if reason:
                self._remove(path, name, "index", reason)
                if self.repair:
                    path.with_name(f"{path.name}.json").unlink(missing_ok=True)
            else:
                self._report(name, "index", "sound")

    def _remove(self, path: Path, name: str, part: str, reason: str) -> None:
        """Report a derived file that failed its check, and remove it if ``repair`` is true."""
        if self.repair:
            with writing(name):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        self._report(name, part, "repaired" if self.repair else "damaged", reason)

    def _check_backups(self, journal: Journal | None) -> None:
        """Check the journal of each backup of the lab."""
        for folder in _backup_folders(journal, self.folder):
            for backup in list_backups(folder):
                try:
                    head = read_head(backup.path)
                except DamagedLab as error:
                    self._report(str(backup.path), "backup", "damaged", str(error))
                else:
                    self._report(str(backup.path), "backup", "sound", f"{head.seq:,} events")


class _Repair(Protocol):
    """A function that repairs rows of a journal within an open transaction."""

    def __call__(self, connection: sqlite3.Connection, *, wanted: list[Fault]) -> object: ...


def _from_snapshot(state: State, connection: sqlite3.Connection, *, wanted: list[Fault]) -> None:
    """Repair damaged texts and vectors from a snapshot that belongs to the journal.

    Salts and digests are not changed, so a later check can verify the repaired rows.
    """
    fingerprint = connection.execute(
        "SELECT id FROM embedder WHERE fingerprint = ?", (state.fingerprint,)
    ).fetchone()
    for fault in wanted:
        if fault.table == "payload" and 1 <= fault.key[0] <= len(state):
            text = state.texts.value_at(fault.key[0] - 1)
            connection.execute("UPDATE payload SET text = ? WHERE id = ?", (text, fault.key[0]))
        # A row of vectors is identified by its embedder and first id. Its number of vectors and its dimension must be
        # undamaged.
        elif fault.table == "vector" and fingerprint is not None and fault.key[0] == fingerprint[0]:
            key = fault.key
            row = connection.execute(
                "SELECT count FROM vector WHERE embedder = ? AND first_id = ? AND dim = ?",
                (*key, state.vectors.dim),
            ).fetchone()
            if (
                row is not None
                and isinstance(row[0], int)
                and 0 <= key[1] - 1 <= key[1] - 1 + row[0] <= len(state)
            ):
                data = state.vectors.take(np.arange(key[1] - 1, key[1] - 1 + row[0])).tobytes()
                connection.execute(
                    "UPDATE vector SET data = ? WHERE embedder = ? AND first_id = ?", (data, *key)
                )


def _identify_point(journal: Journal, seq: int) -> tuple[str, bytes | None]:
    """Return the journal's identity, and the chain value of the event ``seq`` or None without that event."""
    return journal.identity, journal.chain(seq)


def _backup_folders(journal: Journal | None, folder: Path) -> list[Path]:
    """Return the backup folders that the journal records, or else the lab's own folder."""
    own = [folder / BACKUPS]
    if journal is None:
        return own
    try:
        return list_backup_folders(journal)
    except DamagedLab:
        return own
