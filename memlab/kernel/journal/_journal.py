"""The journal of a lab: its class for reading and writing, and views of its past."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

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
from memlab.kernel.base.arrays import Components
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
from memlab.kernel.journal._vault import KeySource, Vault, data_file, sql_errors, unlock
from memlab.kernel.journal._writing import HashPaths, Transaction, no_hashes

_WAL_LIMIT = 4_000_000
"""Size in bytes of the write-ahead log above which the next write empties it.

Moving such a log into the database takes about 10 ms.
"""

# One statement instead of four makes each write some ten microseconds faster.
_LAST = (
    "SELECT (SELECT max(seq) FROM event), (SELECT chain FROM event ORDER BY seq DESC LIMIT 1), "
    "(SELECT value FROM meta WHERE key = 'generation'), (SELECT coalesce(max(id), 0) + 1 FROM payload)"
)


"""A context that does nothing, for journals on a disk.

On a disk, readers have a connection of their own and see only committed rows.
"""


class Journal(Reading):
    """An append-only log of events and their content, on disk or in memory.

    There is one writer at a time, among all threads and processes. Readers never wait for the
    writer and see whole writes only. A long read is done in chunks, each with its own snapshot.
    Because rows are only ever added, its result is that of the moment when it began. Every method
    may be called from any thread. A journal does not survive ``fork``, so open another in the child
    process.

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
        """Initialise a journal on open connections; use ``Journal.open`` instead."""
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
        file = None if path is None else data_file(path)
        self._wal = None if file is None else f"{file}-wal"
        self._lock = WriterLock(None if path is None else path / _database.LOCK)
        self._process = os.getpid()
        self._head = None if path is None else HeadFile(path / _database.HEAD)
        self._database = None if file is None else os.fspath(file)
        self._file = None if self._database is None else _inode(self._database)
        self._identity: str | None = None
        self._lost_is_written = False
        self.vault: Vault | None = None
        """The data key of an encrypted lab; held here, so that other connections need no key."""
        self.hash_paths: HashPaths = no_hashes
        """The function that returns the paths of content hashes in a kind of event.

        The store sets it. Content hashes are not screened for secrets.
        """
        self.lost = ""
        """A sentence that describes known missing events; empty if there are none."""
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
        key: KeySource | None = None,
        _synchronous: Synchronous = "FULL",
    ) -> Journal:
        """Open the lab at the directory ``path``, creating the lab if it does not exist.

        If ``path`` is None, the lab is kept in memory. A lab that is created with a ``key`` is
        encrypted; ``unlock`` says where the key of an encrypted lab comes from otherwise.

        ``timeout`` is the number of seconds for which a write waits for another writer. Together with ``read_only``,
        ``immutable=True`` opens a cleanly closed lab on a disk where SQLite cannot write the index of its log. No
        process, on any machine, may write the lab during this time, because such a write would go unnoticed.

        A journal of an older format is migrated. ``mend`` returns corrected bodies of the events of
        format 1. With ``read_only``, a copy in memory is migrated if its tables differ. The
        attribute ``lost`` describes missing acknowledged events. Raises NotALab, NewerLab,
        DamagedLab or ReadOnlyLab.
        """
        if immutable and not read_only:
            raise InputError("immutable=True is for reading only: give read_only=True as well.")
        if path is None:
            if read_only:
                raise InputError(
                    "A lab in memory starts empty: there is nothing to open with read_only=True."
                )
            if key is not None:
                raise InputError(
                    "A lab in memory has no files to encrypt. Give a path, or leave out key."
                )
            memory = _database.create_in_memory()
            return cls(
                None, memory, memory, timeout=timeout, synchronous=_synchronous, immutable=False
            )
        path = Path(path).absolute()
        vault = None
        if not _database.lab_exists(path):
            if read_only or not create:
                raise NotALab(
                    f"There is no lab at {path}. Check the path, or open it for writing to create one."
                )
            _database.make_directory(path)
            with WriterLock(path / _database.LOCK).hold(timeout):
                vault = _database.create_database(path, key)
        vault = vault or unlock(path, key)
        if key is not None and vault is None:
            raise InputError(
                f"{path} is not encrypted. Encrypt it with memlab.encrypt(path, key), or leave out key."
            )
        file = data_file(path)
        # The operating system also knows of read-only mounts and immutable files, which SQLite notices at a write.
        if not read_only and not (os.access(file, os.W_OK) and os.access(path, os.W_OK)):
            raise ReadOnlyLab(f"{path} cannot be written. Open it with read_only=True.")
        with contextlib.ExitStack() as opened, translate_errors(path):
            reader = _open_reader(path, file, immutable, timeout, opened)
            version, writer = _database.check_format(reader, file), None
            if not read_only:
                # One connection reads and writes, so that a lab needs three descriptors: database, log and its index.
                # The first connection is closed before, because SQLite keeps the descriptor of a connection that closes
                # while another is open.
                reader.close()
                reader = writer = opened.enter_context(
                    contextlib.closing(_database.connect_journal(path, "rw", timeout))
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
            journal.vault = vault
            opened.pop_all()
        return journal

    # -- Missing events -------------------------------------------------------------------------------------------

    def _compare_head(self) -> None:
        """Store in ``lost`` a sentence on missing acknowledged events, or "", and update the ``head`` file."""
        if self._head is None:
            return
        self.lost = self._lost_by(self._recorded_head())
        if self._writer is not None:
            # Another process may have committed since ``head`` was read; it then writes that file itself.
            with contextlib.suppress(LabBusy), self._lock.hold(0.0):
                self.lost = self._lost_by(self._recorded_head() if self.lost else None)
                self._write_head()

    def _lost_by(self, recorded: Head | None) -> str:
        """Describe the lost events, or return "" if none is lost or a restore accepted the loss."""
        lost = "" if recorded is None else recorded.lost or self._missing(recorded)
        return (
            "" if lost and recorded is not None and self.meta(RESTORED) == recorded.text else lost
        )

    def _recorded_head(self) -> Head | None:
        """Return the record of the ``head`` file, or None if it is missing or, with a warning, damaged."""
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
        """Return a sentence that says how the journal differs from a recorded head, or "" if it does not.

        It is that of another lab, dates from before a purge, lacks events, or has other events.
        """
        head, generation = self.head, self.generation
        if recorded.lab != self.identity:
            return f"the journal is not that of this lab, whose last event was {recorded.seq:,}"
        if recorded.generation > generation:
            return (
                f"the journal is a copy from before a purge, and holds again what was purged; the last event of this "
                f"lab was {recorded.seq:,}, and the copy ends at event {head:,}"
            )
        if head < recorded.seq:
            return f"events {head + 1:,} to {recorded.seq:,} were acknowledged and are missing from the journal"
        link = self.chain(recorded.seq)
        if recorded.generation == generation and (link is None or link.hex() != recorded.chain):
            return f"the journal differs from the one that was last written here, at event {recorded.seq:,} or before"
        return ""

    def _write_head(
        self, last: tuple[int, bytes] | None = None, generation: int | None = None
    ) -> None:
        """Write the ``head`` file under the writer's lock.

        By default, ``last`` (number and chain value of the last event) and ``generation`` are those of the
        journal. An error of the disk becomes a warning and raises nothing.
        """
        if self._head is None:
            return
        seq = self.head if last is None else last[0]
        link = (self.chain(seq) or b"") if last is None else last[1]
        if self._identity is None:
            self._identity = self.identity
        try:
            if self.lost and self._lost_is_written:
                recorded = self._head.read()
                # Another process may have accepted the loss.
                self.lost = self.lost if recorded is None else recorded.lost
            generation = self.generation if generation is None else generation
            self._head.write(Head(self._identity, generation, seq, link.hex(), self.lost))
            self._lost_is_written = bool(self.lost)
        except (OSError, DamagedLab) as error:
            warnings.warn(
                f'{self.path}: the file "head" cannot be written ({error}). If a damaged log loses events, that will '
                "not be noticed.",
                DamageWarning,
                stacklevel=3,
            )

    def faults(self) -> list[Fault]:
        """Return every missing or changed row."""
        self._check_usable()
        with self._reading:
            return find_faults(self._reader, self.path)

    def settle(self) -> None:
        """Accept the journal as it is, so that missing events are no longer reported."""
        with self._lock.hold(self._timeout):
            self.lost, self._lost_is_written = "", False
            self._write_head()
            self.sync_head()

    def sync_head(self) -> None:
        """Make the ``head`` file durable."""
        if self._head is not None:
            with writing(f"{self.path}: the file head"):
                self._head.sync()

    # -- Writing --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Transaction]:
        """Hold the writer's lock and commit all writes of the block, or none.

        Nothing is written if the block raises.

        A durable write is on the disk when the block has ended. A write with ``durable=False`` is
        held by the operating system: it survives the death of this process. Such a write reaches
        the disk no later than the next durable write, in order. Raises LabBusy after ``timeout``
        seconds, ReadOnlyLab, and LabError if the disk is full.
        """
        self._check_open()
        writer = self._writer
        if writer is None:
            raise ReadOnlyLab(
                f"Nothing was written: {self.path} was opened with read_only=True. Open the lab for writing."
            )
        with self._lock.hold(self._timeout):
            self._check_open()
            self._check_in_place()
            with contextlib.ExitStack() as hidden:

                def apply(tx: Transaction) -> Reading:
                    # The reader uses the same connection, and must not see uncommitted rows.
                    hidden.enter_context(self._guard.hold())
                    with translate_errors(self.path):
                        tx._apply(writer)
                    return Reading(self.path, writer, contextlib.nullcontext())

                try:
                    try:
                        # The log is checkpointed before the write, because a failure afterwards
                        # would look like a failure of a committed write.
                        with self._guard:
                            self._checkpoint_if_due(writer)
                            self._begin(
                                writer,
                                self._durable_level if durable else _lower(self._durable_level),
                            )
                            head, link, generation, next_id = writer.execute(_LAST).fetchone()
                    except sql_errors() as error:
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
                    hidden.enter_context(self._guard.hold())
                    try:
                        wrote = tx._apply(writer)
                        writer.execute("COMMIT" if wrote else "ROLLBACK")
                    except sql_errors() as error:
                        raise translate_error(error, self.path) from error
                    if wrote:
                        self._write_head(tx.last, None if tx.rewrites else int(generation or 0))
                finally:
                    if writer.in_transaction:
                        with translate_errors(self.path):
                            _undo(writer)

    def expunge(self) -> None:
        """Remove the overwritten bytes from the files of the journal.

        This temporarily needs twice the disk space of the journal.

        Raises ReadOnlyLab, and LabBusy if another process reads an old state of the journal for longer than the
        timeout.
        """
        writer = self._writer
        if writer is None:
            raise ReadOnlyLab(
                f"Nothing was written: {self.path} was opened with read_only=True. Open the lab for writing."
            )
        if self.path is None:
            return
        with self._lock.hold(self._timeout), self._guard, translate_errors(self.path):
            writer.execute(f"PRAGMA busy_timeout={round(self._timeout * 1000)}")
            writer.execute("PRAGMA secure_delete=ON")
            writer.execute("VACUUM")
            (busy, _, _) = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise LabBusy(
                f"{self.path} is being read by another process, which still uses an old state of it. Overwritten "
                "content stays in the files until that process has finished and the lab is opened again."
            )

    def close(self) -> None:
        """Move the write-ahead log into the database and close all files.

        Further calls have no effect.
        """
        if self.closed:
            return
        if self._process != os.getpid():
            self.closed = True  # the connections belong to the parent process
            return
        # Another process that writes will checkpoint when it closes, so do not wait for it.
        with self._lock.against_threads(self._timeout), contextlib.ExitStack() as stack:
            if self._writer is not None:
                with contextlib.suppress(LabBusy, LabUnavailable, ReadOnlyLab):
                    stack.enter_context(self._lock.against_processes(0.0))
            # The last connection checkpoints and removes the log as it closes, which needs the
            # lock. A connection that never read does not know of the log, so it reads first. Damage
            # has been reported already, or will be reported.
            with self._guard:
                self.closed = True
                if self._writer is not None and self.path is not None:
                    with contextlib.suppress(*sql_errors()):
                        self._writer.execute("PRAGMA schema_version").fetchone()
                self._reader.close()
            self.vault = None  # the next opening needs the key again
            if self._head is not None:
                self.sync_head()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- Private --------------------------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        """Raise an error if the journal is closed or forked, or if its file is missing."""
        self._check_open()
        # Open files can still be read and written after their folder was moved or a disk was unmounted.
        if self._database is not None and not os.access(self._database, os.F_OK):
            raise self._gone()

    def _check_open(self) -> None:
        """Raise LabError if the journal is closed or was opened by a parent process."""
        if self.closed:
            raise LabError(
                f"The journal of {self.path or 'the lab in memory'} was closed. Open it again."
            )
        if self._process != os.getpid():
            raise LabError(
                f"The journal was opened by process {self._process}, and this process is a "
                "fork of it. SQLite cannot share a connection with a fork: open the lab again in this process."
            )

    def _gone(self) -> LabUnavailable:
        """Return the error for a journal whose file is missing."""
        assert self.path is not None
        return LabUnavailable.at(self.path, "its journal is no longer there")

    def _check_in_place(self) -> None:
        """Raise LabError if the database file was replaced or is missing.

        Otherwise writes would go to a deleted file.
        """
        if self._file is None or self._database is None:
            return
        inode = _inode(self._database)
        if inode is None:
            raise self._gone()
        if inode != self._file:
            raise LabError(
                f"{self.path}: {Path(self._database).name} was replaced or removed since it was opened. Close the lab "
                "and open it again."
            )

    def _begin(self, writer: sqlite3.Connection, level: Synchronous) -> None:
        """Roll back any open transaction, and begin a transaction with a durability level."""
        _undo(
            writer
        )  # an interrupt before the write's own handlers may have left a transaction open
        if level != self._level:
            self._level = None  # unknown if an interrupt strikes before the next line has run
            writer.execute(f"PRAGMA synchronous={level}")
            self._level = level
        writer.execute("BEGIN IMMEDIATE")

    def _checkpoint_if_due(self, writer: sqlite3.Connection) -> None:
        """Move the write-ahead log into the database if it has grown beyond its limit."""
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
        # A reader of an old snapshot keeps the log. The next attempt is made when the log has grown
        # by as much again.
        self._checkpoint_at = size + _WAL_LIMIT if busy else _WAL_LIMIT


def _open_reader(
    path: Path, file: Path, immutable: bool, timeout: float, opened: contextlib.ExitStack
) -> sqlite3.Connection:
    """Open a read-only connection.

    Raises ReadOnlyLab if ``immutable`` would miss events of the write-ahead log, or if the disk is
    read-only and SQLite must write.
    """
    wal = file.with_name(f"{file.name}-wal")
    if immutable and wal.exists() and wal.stat().st_size > 0:
        raise ReadOnlyLab(
            f"{path} was not closed: immutable=True would miss the events in {wal.name}. Copy the lab to a writable "
            "disk and open the copy."
        )
    mode: Mode = "immutable" if immutable else "ro"
    reader = opened.enter_context(
        contextlib.closing(_database.connect_journal(path, mode, timeout))
    )
    try:
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sql_errors() as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_CANTOPEN and not os.access(path, os.W_OK):
            raise ReadOnlyLab(
                f"{path} is on a read-only disk, where SQLite cannot write the index of its log. If no process, on any "
                "machine, writes to the lab meanwhile, open it with read_only=True, immutable=True; otherwise copy it."
            ) from None
        raise
    return reader


def _inode(file: str) -> tuple[int, int] | None:
    """Return the device and inode of a file, or None if the file is missing.

    A file that replaces this one has another identity.
    """
    try:
        status = os.stat(file)  # noqa: PTH116  a Path costs as much again
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _undo(writer: sqlite3.Connection) -> None:
    """Roll back an open transaction."""
    if writer.in_transaction:
        writer.execute("ROLLBACK")


def _lower(level: Synchronous) -> Synchronous:
    """Return the durability level of writes that need no immediate disk sync: NORMAL instead of FULL."""
    return "NORMAL" if level == "FULL" else level


# A journal as it was after one of its events: read-only, and without later events.


class JournalView:
    """A read-only view of ``journal`` up to the event ``head``.

    Closing the view leaves the journal open. Texts and vectors are found by ids, which only events
    reveal, so the texts and vectors of later events are out of reach.
    """

    read_only = True
    lost = ""

    def __init__(self, journal: Journal | JournalView, head: int) -> None:
        self._journal: Journal = journal._journal if isinstance(journal, JournalView) else journal
        self.head: int = min(head, journal.head)
        self._closed = False

    @property
    def vault(self) -> Vault | None:
        """The data key of an encrypted lab."""
        return self._journal.vault

    @property
    def path(self) -> Path | None:
        """The directory of the lab, or None for a lab in memory."""
        return self._journal.path

    @property
    def closed(self) -> bool:
        """Whether the view or its journal is closed."""
        return self._closed or self._journal.closed

    def events(
        self, after: int = 0, *, upto: int | None = None, kinds: Iterable[str] | None = None
    ) -> Iterator[Event]:
        """Yield the events with ``after < seq <= upto`` in order; see ``Reading.events``."""
        return self._journal.events(after, upto=self._capped(upto), kinds=kinds)

    def slates(self, after: int = 0, *, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the slates of events in order; see ``Reading.slates``."""
        return self._journal.slates(after, upto=self._capped(upto))

    def segments(self) -> dict[int, str | None]:
        """Return the digests of segments; see ``Reading.segments``."""
        return self._journal.segments()

    def segment_part(self, upto: int, name: str) -> bytes:
        """Return one part of a segment; see ``Reading.segment_part``."""
        return self._journal.segment_part(upto, name)

    def texts(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each id; see ``Reading.texts``."""
        return self._journal.texts(ids)

    def vectors(self, fingerprint: str, *, after_id: int = 0) -> Iterator[tuple[int, Components]]:
        """Yield the vectors of one embedder; see ``Reading.vectors``."""
        return self._journal.vectors(fingerprint, after_id=after_id)

    @property
    def identity(self) -> str:
        """The identity of the journal, which its copies share."""
        return self._journal.identity

    def chain(self, seq: int) -> bytes | None:
        """Return the chain value at an event, or None for an event outside the view."""
        return self._journal.chain(seq) if seq <= self.head else None

    def source(self, hash: str) -> str:
        """Return the policy source stored under ``hash``."""
        return self._journal.source(hash)

    def meta(self, key: str) -> str | None:
        """Return a metadata value by name, or None if it was never set."""
        return self._journal.meta(key)

    def last_at(self, instant: int) -> int:
        """Return the ``seq`` of the last event at or before ``instant``, within the view."""
        return min(self._journal.last_at(instant), self.head)

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Transaction]:
        """Raise ReadOnlyLab: the past cannot be written."""
        raise ReadOnlyLab(
            f"This is the lab as it was after event {self.head:,}, which is read-only. Write to the lab itself."
        )
        yield  # the statement that makes this method a context manager

    def close(self) -> None:
        """Close the view; the journal stays open."""
        self._closed = True

    def _capped(self, upto: int | None) -> int:
        """Return the smaller of ``upto`` and the last event of this view; by default, the last event."""
        return self.head if upto is None else min(upto, self.head)
