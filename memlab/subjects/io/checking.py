"""Checking a lab's files against what was written, and mending what can be mended.

Everything in a lab's folder is either the journal or made of it. So what is made of it and is not believed goes, and
comes again; a damaged row of the journal is taken from a backup, or from a snapshot, that holds it as it was written;
and what nothing holds is named.
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
    FILE,
    HEAD,
    LOCK,
    Fault,
    Journal,
    WriterLock,
    find_faults,
    lab_exists,
    open_connection,
    read_head,
    replace_rows,
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

__all__ = ["Checked", "check", "check_in_memory"]

_SCHEMA = {"file": pl.String, "part": pl.String, "state": pl.String, "detail": pl.String}


@dataclass(frozen=True)
class Checked(Displayed):
    """What a check found: a row of ``frame`` for each part of a lab (file, part, state, detail).

    ``state`` is "sound"; "repaired"; "damaged", where nothing holds what was written; or "lost", where events that
    were acknowledged are not there.
    """

    path: Path | None
    frame: pl.DataFrame

    @property
    def sound(self) -> bool:
        """Whether all is as it was written, or is so again."""
        return not self.frame["state"].is_in(["damaged", "lost"]).any()

    def __repr__(self) -> str:
        counts = self.frame.group_by("state").len().sort("state")
        summary = ", ".join(f"{count:,} {state}" for state, count in counts.iter_rows())
        return printable(f"<Checked {self.path.name if self.path else 'in memory'}: {summary}>")


@checked
def check(path: str | Path, *, repair: bool = True) -> Checked:
    """Compare everything in the lab at ``path`` with what was written, and mend what can be mended.

    Every row of the journal, every event applied to an empty state, snapshots, indexes, backups, and
    whether the journal is as long as it was. With ``repair`` damaged rows come from a sound backup or snapshot, and
    derived files that are not believed are removed; they are rebuilt when they are needed. Others may read and write
    meanwhile. It reads all of the lab: about a second for 100,000 memories.

    Raises NotALab, NewerLab, and LabBusy where another process is in the way for a minute.

    >>> memlab.check("agent.memlab").sound                                                 # doctest: +SKIP
    True
    """
    folder = Path(path).expanduser().absolute()
    if not folder.is_dir():
        raise NotALab(f"There is no lab at {folder}. Check the path.")
    with contextlib.suppress(DamagedLab):  # reported below
        if not lab_exists(folder):
            raise NotALab(f"There is no lab at {folder}. Check the path.")
    checking = _Checking(folder, repair)
    with WriterLock(folder / DERIVED).hold(PURGE_TIMEOUT) if repair else contextlib.nullcontext():
        checking.go()
    return Checked(folder, pl.DataFrame(checking.rows, schema=_SCHEMA, orient="row"))


def check_in_memory(journal: Journal) -> Checked:
    """What ``check`` finds of a journal that has no files: its rows."""
    found = journal.faults()
    rows = [
        ("in memory", str(fault).partition(": ")[0], "damaged", fault.detail) for fault in found
    ]
    rows = rows or [("in memory", "rows", "sound", f"{journal.head:,} events")]
    return Checked(None, pl.DataFrame(rows, schema=_SCHEMA, orient="row"))


class _Checking:
    """One check: the parts of a lab in turn, and a row for each thing that was found."""

    def __init__(self, folder: Path, repair: bool) -> None:
        self.folder, self.repair = folder, repair
        self.rows: list[tuple[str, str, str, str]] = []

    def go(self) -> None:
        journal = self._opened()
        if journal is None:
            self._backups(None)
            return
        with journal:
            sound = self._journal(journal)
            self._snapshots(journal)
            self._indexes()
            self._backups(journal)
            if sound:
                self._fold(journal)

    def _tell(self, file: str, part: str, state: str, detail: str = "") -> None:
        self.rows.append((file, part, state, detail))

    def _opened(self) -> Journal | None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DamageWarning)
            try:
                journal = Journal.open(self.folder, create=False, read_only=not self.repair)
            except DamagedLab as error:
                self._tell(FILE, "database", "damaged", str(error))
                return None
        for warning in caught:
            self._tell(
                HEAD, "record", "repaired" if self.repair else "damaged", str(warning.message)
            )
        if journal.lost:
            self._tell(
                HEAD, "events", "lost", f"{journal.lost}; `memlab upkeep restore` settles it"
            )
        elif not caught:
            self._tell(HEAD, "record", "sound")
        return journal

    # -- the journal ------------------------------------------------------------------------------------------

    def _journal(self, journal: Journal) -> bool:
        try:
            with open_connection(self.folder) as connection:
                found = find_faults(connection, self.folder)
        except DamagedLab as error:
            self._tell(FILE, "database", "damaged", str(error))
            return False
        try:
            left = self._mended(journal, found) if found and self.repair else found
        except DamagedLab:
            left = found
        for fault in found:
            self._tell(
                FILE,
                str(fault).partition(": ")[0],
                "damaged" if fault in left else "repaired",
                fault.detail,
            )
        if not found:
            self._tell(FILE, "rows", "sound", f"{journal.head:,} events")
        return not left

    def _mended(self, journal: Journal, found: list[Fault]) -> list[Fault]:
        """Put sound rows in the place of those; what is left."""
        left = found
        with (
            WriterLock(self.folder / LOCK).hold(PURGE_TIMEOUT),
            open_connection(self.folder, write=True) as connection,
        ):
            for mend in self._sources(journal):
                connection.execute("BEGIN IMMEDIATE")
                try:
                    mend(connection, wanted=left)
                    still = find_faults(connection, self.folder)
                    better = len(still) < len(left) and set(still) <= set(left)
                    connection.execute("COMMIT" if better else "ROLLBACK")
                    left = still if better else left
                except (MemlabError, sqlite3.Error):
                    continue  # this source does not help; what is left is reported
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                if not left:
                    break
        return left

    def _sources(self, journal: Journal) -> Iterator[_Mend]:
        """Ways of mending rows: SQLite's indexes rebuilt, the snapshot, backups, the newest first."""

        def reindex(connection: sqlite3.Connection, wanted: list[Fault]) -> None:
            if any(fault.table == "database" for fault in wanted):
                connection.execute("REINDEX")

        yield reindex
        with contextlib.suppress(DamagedLab):
            found = latest_snapshot(self.folder / "snapshots")
            snapshot = (
                None
                if found is None
                else load_snapshot(found, add_extension_projections(PROJECTIONS))
            )
            if snapshot is not None and (snapshot.lab, snapshot.chain) == _point(
                journal, snapshot.state.seq
            ):
                yield partial(_from_snapshot, snapshot.state)
        for place in _places(journal, self.folder):
            for kept in reversed(list_backups(place)):
                # one from before a purge holds what was purged, and one of another lab what is not this one's
                with contextlib.suppress(LabError):
                    head = read_head(kept.path)
                    if (head.lab, head.generation) == (journal.identity, journal.generation):
                        with open_connection(kept.path) as other:
                            yield partial(replace_rows, other=other)

    def _fold(self, journal: Journal) -> None:
        state, versions = new_state(), VersionLog()
        try:
            for event in journal.events(kinds=policy_events()):
                versions.fold(event, journal.source)
            state.fold(journal.events(), journal)
        except MemlabError as error:
            self._tell(FILE, "fold", "damaged", str(error))
        else:
            short = len(state) - len(state.vectors)
            self._tell(FILE, "fold", "damaged" if short else "sound", f"{len(state):,} memories")

    # -- what is made of it -----------------------------------------------------------------------------------

    def _snapshots(self, journal: Journal) -> None:
        for path in sorted((self.folder / "snapshots").glob("*")):
            name = f"snapshots/{path.name}"
            try:
                snapshot = load_snapshot(path, add_extension_projections(PROJECTIONS))
                if (snapshot.lab, snapshot.chain) != _point(journal, snapshot.state.seq):
                    raise DamagedLab("It is of another history than the journal.")
            except DamagedLab as error:
                self._remove(path, name, "snapshot", str(error))
            else:
                self._tell(name, "snapshot", "sound")

    def _indexes(self) -> None:
        for path, reason in check_bases(self.folder / "neighbours"):
            name = f"neighbours/{path.name}"
            if reason:
                self._remove(path, name, "index", reason)
                if self.repair:
                    path.with_name(f"{path.name}.json").unlink(missing_ok=True)
            else:
                self._tell(name, "index", "sound")

    def _remove(self, path: Path, name: str, part: str, reason: str) -> None:
        """What is made of the journal goes; it is rebuilt when it is needed."""
        if self.repair:
            with writing(name):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        self._tell(name, part, "repaired" if self.repair else "damaged", reason)

    def _backups(self, journal: Journal | None) -> None:
        for place in _places(journal, self.folder):
            for kept in list_backups(place):
                try:
                    head = read_head(kept.path)
                except DamagedLab as error:
                    self._tell(str(kept.path), "backup", "damaged", str(error))
                else:
                    self._tell(str(kept.path), "backup", "sound", f"{head.seq:,} events")


class _Mend(Protocol):
    """A way of mending rows of a journal, within the transaction that is open on ``connection``."""

    def __call__(self, connection: sqlite3.Connection, *, wanted: list[Fault]) -> object: ...


def _from_snapshot(state: State, connection: sqlite3.Connection, *, wanted: list[Fault]) -> None:
    """Texts and vectors as a snapshot that is believed holds them; salts and digests must be those in the journal."""
    fingerprint = connection.execute(
        "SELECT id FROM embedder WHERE fingerprint = ?", (state.fingerprint,)
    ).fetchone()
    for fault in wanted:
        if fault.table == "payload" and 1 <= fault.key[0] <= len(state):
            text = state.texts.value_at(fault.key[0] - 1)
            connection.execute("UPDATE payload SET text = ? WHERE id = ?", (text, fault.key[0]))
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


def _point(journal: Journal, seq: int) -> tuple[str, bytes | None]:
    """What a file that was made of the journal at ``seq`` says of it."""
    return journal.identity, journal.chain(seq)


def _places(journal: Journal | None, folder: Path) -> list[Path]:
    """Where backups are: every folder that was used, as far as the journal can say."""
    own = [folder / BACKUPS]
    if journal is None:
        return own
    try:
        return list_backup_folders(journal)
    except DamagedLab:
        return own
