"""The journal: what a lab reads, and the one way in which it is written."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from memlab.errors import (
    DamagedLab,
    DamageWarning,
    InputError,
    LabBusy,
    LabError,
    LabUnavailable,
    NotALab,
    ReadOnlyLab,
)
from memlab.kernel.base.disk import writing
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.journal import _database
from memlab.kernel.journal._copies import Fault, find_faults
from memlab.kernel.journal._database import (
    Mode,
    RepairEvent,
    Synchronous,
    copy_to_memory,
    migrate,
    translate_error,
    translate_errors,
)
from memlab.kernel.journal._events import Event
from memlab.kernel.journal._files import RESTORED, Head, HeadFile, WriterLock
from memlab.kernel.journal._reading import Reading
from memlab.kernel.journal._writing import HashPaths, Transaction, no_hashes

__all__ = ["Journal", "JournalView"]


_WAL_LIMIT = 4_000_000
"""Bytes of write-ahead log from which the next write first moves it into the database (about 10 ms)."""

_LAST = (
    "SELECT (SELECT max(seq) FROM event), (SELECT chain FROM event ORDER BY seq DESC LIMIT 1), "
    "(SELECT value FROM meta WHERE key = 'generation'), (SELECT coalesce(max(id), 0) + 1 FROM payload)"
)


_NOTHING_HIDDEN: contextlib.nullcontext[None] = contextlib.nullcontext()
"""On a disk a reader has a connection of its own, which does not see what is not committed."""


class Journal(Reading):
    """An append-only log of events and what they refer to, in a lab's directory or in memory.

    One writer at a time, over threads and processes; readers never wait for it, and see whole writes only. A long
    read goes by chunks, each its own snapshot: rows are only ever added, so the whole is that of the moment it began.
    Every method may be called from any thread. A journal does not survive ``fork``: open another in the child.

    >>> journal = Journal.open(None)
    >>> with journal.write() as tx:
    ...     seq = tx.event("noted", {"what": "a"}, at=0)
    >>> [event.body for event in journal.events()]
    [{'what': 'a'}]
    """

    def __init__(
        self,
        path: Path | None,
        reader: sqlite3.Connection,
        writer: sqlite3.Connection | None,
        *,
        timeout: float,
        synchronous: Synchronous,
        immutable: bool,
    ) -> None:
        """Use ``Journal.open``."""
        self._guard = ThreadLock()
        super().__init__(path, reader, self._guard)
        self.read_only = writer is None
        self.immutable = immutable
        self.closed = False
        self._writer = writer
        self._timeout = timeout
        self._durable_level: Synchronous = synchronous
        self._level: Synchronous | None = None
        self._checkpoint_at = _WAL_LIMIT
        self._wal = None if path is None else os.fspath(path / f"{_database.FILE}-wal")
        self._lock = WriterLock(None if path is None else path / _database.LOCK)
        self._process = os.getpid()
        self._head = None if path is None else HeadFile(path / _database.HEAD)
        self._database = None if path is None else os.fspath(path / _database.FILE)
        self._file = None if self._database is None else _inode(self._database)
        self._identity: str | None = None
        self._lost_is_written = False
        self.hash_paths: HashPaths = no_hashes
        """Where the bodies of events hold content hashes, which are not screened for secrets: the store knows."""
        self.lost = ""
        """What is known to be missing from this journal, as a sentence; empty if nothing is."""
        try:
            self._compare_head()
        except BaseException:
            self.closed = True
            raise

    @classmethod
    def open(
        cls,
        path: Path | str | None,
        *,
        create: bool = True,
        read_only: bool = False,
        immutable: bool = False,
        timeout: float = 30.0,
        mend: RepairEvent | None = None,
        _synchronous: Synchronous = "FULL",
    ) -> Journal:
        """Open the lab at the directory ``path``, creating it where there is nothing; None keeps it in memory.

        ``timeout`` is how many seconds a write waits for another writer. ``immutable=True`` (with ``read_only``) opens
        a cleanly closed lab on a disk where SQLite cannot keep its index of the log: nobody, on any machine, may write
        it meanwhile, as nothing would notice. A journal of an older format is brought to this one, and ``mend`` asked
        what the events of format 1 should have held; with ``read_only`` a copy in memory is, or, where only the number
        differs, nothing. What was acknowledged and is missing
        is given by ``lost``. Raises NotALab, NewerLab, DamagedLab, ReadOnlyLab.
        """
        if immutable and not read_only:
            raise InputError("immutable=True is a way of reading: give read_only=True as well.")
        if path is None:
            if read_only:
                raise InputError(
                    "A lab in memory starts empty: there is nothing to open with read_only=True."
                )
            memory = _database.create_in_memory()
            return cls(
                None, memory, memory, timeout=timeout, synchronous=_synchronous, immutable=False
            )
        path = Path(path).absolute()
        if not _database.lab_exists(path):
            if read_only or not create:
                raise NotALab(
                    f"There is no lab at {path}. Check the path, or open it for writing to create one."
                )
            _database.make_directory(path)
            with WriterLock(path / _database.LOCK).hold(timeout):
                _database.create_database(path)
        file = path / _database.FILE
        # asked of the kernel, which also knows of read-only mounts and immutable files; SQLite would notice at a write
        if not read_only and not (os.access(file, os.W_OK) and os.access(path, os.W_OK)):
            raise ReadOnlyLab(f"{path} cannot be written. Open it with read_only=True.")
        with contextlib.ExitStack() as opened, translate_errors(path):
            reader = _open_reader(path, immutable, timeout, opened)
            version, writer = _database.check_format(reader, file), None
            if not read_only:
                writer = opened.enter_context(
                    contextlib.closing(_database.connect(file, "rw", timeout))
                )
            if version != _database.VERSION and writer is not None:
                with WriterLock(path / _database.LOCK).hold(timeout):
                    migrate(writer, path, mend)
            elif version == 1:
                reader = opened.enter_context(
                    contextlib.closing(copy_to_memory(reader, path, mend))
                )
            elif version != _database.VERSION:
                _database.add_missing_tables(reader)
            journal = cls(
                path, reader, writer, timeout=timeout, synchronous=_synchronous, immutable=immutable
            )
            opened.pop_all()
        return journal

    # -- what is missing ------------------------------------------------------------------------------------------

    def _compare_head(self) -> None:
        """Find out whether the journal holds all that was last written to it, and bring the head file up to it."""
        if self._head is None:
            return
        self.lost = self._lost_by(self._recorded_head())
        if self._writer is not None:
            # another process may have committed since the head was read, and it writes the head itself
            with contextlib.suppress(LabBusy), self._lock.hold(0.0):
                self.lost = self._lost_by(self._recorded_head() if self.lost else None)
                self._write_head()

    def _lost_by(self, recorded: Head | None) -> str:
        """What is missing, by the head file, that was not given up when the journal was restored."""
        lost = "" if recorded is None else recorded.lost or self._missing(recorded)
        return (
            "" if lost and recorded is not None and self.meta(RESTORED) == recorded.text else lost
        )

    def _recorded_head(self) -> Head | None:
        assert self._head is not None
        try:
            return self._head.read()
        except DamagedLab as error:
            warnings.warn(
                f"{error} Whether events are missing at the end of the journal is unknown.",
                DamageWarning,
                stacklevel=4,
            )
            return None

    def _missing(self, recorded: Head) -> str:
        """What the head file knows and the journal does not, as a sentence."""
        head, generation = self.head, self.generation
        if recorded.lab != self.identity:
            return f"the journal is not that of this lab, which had come to event {recorded.seq:,}"
        if recorded.generation > generation:
            return (
                f"the journal is a copy from before a purge, and holds again what was purged; this lab had come to "
                f"event {recorded.seq:,}, and the copy ends at event {head:,}"
            )
        if head < recorded.seq:
            return f"events {head + 1:,} to {recorded.seq:,} were acknowledged and are gone from the journal"
        link = self.chain(recorded.seq)
        if recorded.generation == generation and (link is None or link.hex() != recorded.chain):
            return f"the journal has gone another way than up to event {recorded.seq:,}, which was last written here"
        return ""

    def _write_head(
        self, last: tuple[int, bytes] | None = None, generation: int | None = None
    ) -> None:
        """Write the head file, under the writer's lock. An error of the disk is recorded, not raised."""
        if self._head is None:
            return
        seq = self.head if last is None else last[0]
        link = (self.chain(seq) or b"") if last is None else last[1]
        if self._identity is None:
            self._identity = self.identity
        try:
            if self.lost and self._lost_is_written:
                recorded = self._head.read()
                # somebody else may have settled it
                self.lost = self.lost if recorded is None else recorded.lost
            generation = self.generation if generation is None else generation
            self._head.write(Head(self._identity, generation, seq, link.hex(), self.lost))
            self._lost_is_written = bool(self.lost)
        except (OSError, DamagedLab) as error:
            warnings.warn(
                f"{self.path}: the file head cannot be written ({error}). Events that a damaged log loses would not "
                "be noticed.",
                DamageWarning,
                stacklevel=3,
            )

    def faults(self) -> list[Fault]:
        """Every row that is not what was written."""
        self._check_usable()
        with self._reading:
            return find_faults(self._reader, self.path)

    def settle(self) -> None:
        """Accept the journal as it is: what was missing is no longer reported."""
        with self._lock.hold(self._timeout):
            self.lost, self._lost_is_written = "", False
            self._write_head()
            self.sync_head()

    def sync_head(self) -> None:
        """Make the head file durable."""
        if self._head is not None:
            with writing(f"{self.path}: the file head"):
                self._head.sync()

    # -- writing --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Transaction]:
        """Write under the writer's lock: all of it when the block ends, nothing if it raises.

        A durable write is on the disk when the block has ended. One with ``durable=False`` is with the operating
        system: it survives the death of this process, and reaches the disk no later than the next durable write,
        in order. Raises LabBusy after ``timeout`` seconds, ReadOnlyLab, and LabError when the disk is full.
        """
        self._check_open()
        writer = self._writer
        if writer is None:
            raise ReadOnlyLab(f"{self.path} was opened with read_only=True.")
        with self._lock.hold(self._timeout):
            self._check_open()
            self._check_in_place()
            with contextlib.ExitStack() if self.path is None else _NOTHING_HIDDEN as hidden:

                def apply(tx: Transaction) -> Reading:
                    # in memory the reader is the same connection, and must not see what is not committed
                    if hidden is not None:
                        hidden.enter_context(self._guard.held())
                    with translate_errors(self.path):
                        tx._apply(writer)
                    return Reading(self.path, writer, contextlib.nullcontext())

                try:
                    try:
                        # before the write and not after: a failure here must not look like that of a committed write
                        self._checkpoint_if_due(writer)
                        self._begin(
                            writer, self._durable_level if durable else _lower(self._durable_level)
                        )
                        # asked of the writer, whose pages are good; a reader must read them again after every write
                        head, link, generation, next_id = writer.execute(_LAST).fetchone()
                    except sqlite3.Error as error:
                        raise translate_error(error, self.path) from error
                    tx = Transaction(
                        int(head or 0),
                        bytes(link or self.chain(0) or b""),
                        int(next_id),
                        apply,
                        self.hash_paths,
                    )
                    try:
                        yield tx
                    finally:
                        tx._open = False
                    if hidden is not None:
                        hidden.enter_context(self._guard.held())
                    try:
                        wrote = tx._apply(writer)
                        writer.execute("COMMIT" if wrote else "ROLLBACK")
                    except sqlite3.Error as error:
                        raise translate_error(error, self.path) from error
                    if wrote:
                        self._write_head(tx.last, None if tx.rewrites else int(generation or 0))
                finally:
                    if writer.in_transaction:
                        with translate_errors(self.path):
                            _undo(writer)

    def expunge(self) -> None:
        """Leave nothing of what was overwritten in the journal's files. Takes as much room again meanwhile.

        ReadOnlyLab; LabBusy if another process reads an old state of the journal for longer than the timeout.
        """
        writer = self._writer
        if writer is None:
            raise ReadOnlyLab(f"{self.path} was opened with read_only=True.")
        if self.path is None:
            return
        with self._lock.hold(self._timeout), translate_errors(self.path):
            writer.execute(f"PRAGMA busy_timeout={round(self._timeout * 1000)}")
            writer.execute("PRAGMA secure_delete=ON")
            writer.execute("VACUUM")
            (busy, _, _) = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise LabBusy(
                f"{self.path} is read by another process that keeps an old state of it: what was overwritten can be "
                "read from its files until that process ends its reading and the lab is opened again."
            )

    def close(self) -> None:
        """Move the log into the database and let the files go. Closing twice is the same as once."""
        if self.closed:
            return
        if self._process != os.getpid():
            self.closed = True  # the connections are those of the parent
            return
        # another process that writes will checkpoint when it closes: do not wait for it
        with self._lock.against_threads(self._timeout), contextlib.ExitStack() as stack:
            if self._writer is not None:
                with contextlib.suppress(LabBusy, LabUnavailable, ReadOnlyLab):
                    stack.enter_context(self._lock.against_processes(0.0))
            with self._guard:
                self.closed = True
                self._reader.close()
            # The last connection checkpoints and removes the log as it closes, which belongs under the lock. One that
            # never read does not know of the log: let it read; what is damaged has been reported, or will be.
            if self._writer is not None and self.path is not None:
                with contextlib.suppress(sqlite3.DatabaseError):
                    self._writer.execute("PRAGMA schema_version").fetchone()
                self._writer.close()
            if self._head is not None:
                try:
                    self.sync_head()
                finally:
                    self._head.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- within ---------------------------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        self._check_open()
        # what is open is still read and written after its folder was moved or a disk was let go
        if self._database is not None and not os.access(self._database, os.F_OK):
            raise self._gone()

    def _check_open(self) -> None:
        if self.closed:
            raise LabError(
                f"The journal of {self.path or 'the lab in memory'} was closed. Open it again."
            )
        if self._process != os.getpid():
            raise LabError(
                f"The journal was opened by process {self._process}, of which this one is a fork. "
                "SQLite does not allow that: open the lab again in this process."
            )

    def _gone(self) -> LabUnavailable:
        assert self.path is not None
        return LabUnavailable.at(self.path, "its journal is not there any more")

    def _check_in_place(self) -> None:
        """LabError if the database is not the file that was opened: what is written would be in a file without name."""
        if self._file is None or self._database is None:
            return
        found = _inode(self._database)
        if found is None:
            raise self._gone()
        if found != self._file:
            raise LabError(
                f"{self.path}: {_database.FILE} was replaced or removed since it was opened. Close the lab and open it "
                "again."
            )

    def _begin(self, writer: sqlite3.Connection, level: Synchronous) -> None:
        _undo(writer)  # what an interrupt before the write's own handlers may have left open
        if level != self._level:
            self._level = None  # not known, should an interrupt strike here
            writer.execute(f"PRAGMA synchronous={level}")
            self._level = level
        writer.execute("BEGIN IMMEDIATE")

    def _checkpoint_if_due(self, writer: sqlite3.Connection) -> None:
        if self._wal is None:
            return
        try:
            size = os.stat(self._wal).st_size  # noqa: PTH116  a Path costs as much again
        except FileNotFoundError:
            return
        if size < self._checkpoint_at:
            return
        self.sync_head()
        try:
            writer.execute("PRAGMA busy_timeout=0")
            (busy, _, _) = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            writer.execute(f"PRAGMA busy_timeout={round(self._timeout * 1000)}")
        # a reader that keeps an old snapshot keeps the log: try again when as much has come on top
        self._checkpoint_at = size + _WAL_LIMIT if busy else _WAL_LIMIT


def _open_reader(
    path: Path, immutable: bool, timeout: float, opened: contextlib.ExitStack
) -> sqlite3.Connection:
    file = path / _database.FILE
    wal = path / f"{_database.FILE}-wal"
    if immutable and wal.exists() and wal.stat().st_size > 0:
        raise ReadOnlyLab(
            f"{path} was not closed: immutable=True would miss what is in {wal.name}. Copy the lab to a disk that can "
            "be written and open the copy."
        )
    mode: Mode = "immutable" if immutable else "ro"
    reader = opened.enter_context(contextlib.closing(_database.connect(file, mode, timeout)))
    try:
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CANTOPEN and not os.access(
            path, os.W_OK
        ):
            raise ReadOnlyLab(
                f"{path} is on a disk that cannot be written: SQLite cannot keep its log's index there. If nobody, "
                "on any machine, writes to it meanwhile, open it with read_only=True, immutable=True; else copy it."
            ) from None
        raise
    return reader


def _inode(file: str) -> tuple[int, int] | None:
    """What tells a file from another that is put in its place."""
    try:
        found = os.stat(file)  # noqa: PTH116  a Path costs as much again
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _undo(writer: sqlite3.Connection) -> None:
    if writer.in_transaction:
        writer.execute("ROLLBACK")


def _lower(level: Synchronous) -> Synchronous:
    return "NORMAL" if level == "FULL" else level


# A journal as it was after one of its events: everything that came later is not there, and nothing can be written.


class JournalView:
    """What ``journal`` held when ``head`` was its last event. The journal stays its owner's to close.

    Texts and vectors are known by id, and an id is known by its event, so those of later ones are out of sight.
    """

    read_only = True
    lost = ""

    def __init__(self, journal: Journal | JournalView, head: int) -> None:
        self._journal: Journal = journal._journal if isinstance(journal, JournalView) else journal
        self.head: int = min(head, journal.head)
        self._closed = False

    @property
    def path(self) -> Path | None:
        return self._journal.path

    @property
    def closed(self) -> bool:
        return self._closed or self._journal.closed

    def events(
        self, after: int = 0, *, upto: int | None = None, kinds: Iterable[str] | None = None
    ) -> Iterator[Event]:
        return self._journal.events(after, upto=self._capped(upto), kinds=kinds)

    def slates(self, after: int = 0, *, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        return self._journal.slates(after, upto=self._capped(upto))

    def segments(self) -> dict[int, str | None]:
        return self._journal.segments()

    def segment_part(self, upto: int, name: str) -> bytes:
        return self._journal.segment_part(upto, name)

    def texts(self, ids: Sequence[int]) -> list[str]:
        return self._journal.texts(ids)

    def vectors(
        self, fingerprint: str, *, after_id: int = 0
    ) -> Iterator[tuple[int, NDArray[np.int8]]]:
        return self._journal.vectors(fingerprint, after_id=after_id)

    @property
    def identity(self) -> str:
        return self._journal.identity

    def chain(self, seq: int) -> bytes | None:
        return self._journal.chain(seq) if seq <= self.head else None

    def source(self, hash: str) -> str:
        return self._journal.source(hash)

    def meta(self, key: str) -> str | None:
        return self._journal.meta(key)

    def last_at(self, instant: int) -> int:
        return min(self._journal.last_at(instant), self.head)

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Transaction]:
        raise ReadOnlyLab(
            f"This is the lab as it was after event {self.head:,}: the past cannot be written."
        )
        yield  # what makes it a context manager

    def close(self) -> None:
        self._closed = True

    def _capped(self, upto: int | None) -> int:
        return self.head if upto is None else min(upto, self.head)
