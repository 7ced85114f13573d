"""The journal as the rooms above see it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import DamagedLab, InputError, LabBusy, LabError, NotALab, ReadOnlyLab, UnknownName
from memlab.journal import _database
from memlab.journal._database import Mode, Synchronous, translated
from memlab.journal._event import Event, decoded
from memlab.journal._lock import WriterLock
from memlab.journal._transaction import Transaction

__all__ = ["Journal"]

_WAL_LIMIT = 4_000_000
"""Bytes of write-ahead log from which the next write first moves it into the database (about 10 ms)."""

_HEAD = "SELECT coalesce(max(seq), 0) FROM event"
_EVENTS_AT_ONCE, _IDS_AT_ONCE = 256, 900
_ROWS_AT_ONCE = 32_768
_SLATE_BYTES_AT_ONCE = 4_000_000


class Journal:
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
        self.path = path
        self.read_only = writer is None
        self.immutable = immutable
        self.closed = False
        self._reader, self._writer = reader, writer
        self._timeout = timeout
        self._durable_level: Synchronous = synchronous
        self._level: Synchronous | None = None
        self._checkpoint_at = _WAL_LIMIT
        self._wal = None if path is None else path / f"{_database.FILE}-wal"
        self._lock = WriterLock(None if path is None else path / _database.LOCK)
        self._reading = threading.Lock()
        self._process = os.getpid()

    @classmethod
    def open(
        cls,
        path: Path | str | None,
        *,
        create: bool = True,
        read_only: bool = False,
        immutable: bool = False,
        timeout: float = 30.0,
        _synchronous: Synchronous = "FULL",
    ) -> Journal:
        """Open the lab at the directory ``path``, creating it where there is nothing; None keeps it in memory.

        ``timeout`` is how many seconds a write waits for another writer. ``immutable=True`` (with ``read_only``) opens
        a cleanly closed lab on a disk where SQLite cannot keep its index of the log: nobody, on any machine, may write
        it meanwhile, as nothing would notice. Raises NotALab, NewerLab, DamagedLab, ReadOnlyLab.
        """
        if immutable and not read_only:
            raise InputError("immutable=True is a way of reading: give read_only=True as well.")
        if path is None:
            if read_only:
                raise InputError("A lab in memory starts empty: there is nothing to open with read_only=True.")
            memory = _database.in_memory()
            return cls(None, memory, memory, timeout=timeout, synchronous=_synchronous, immutable=False)
        path = Path(path).absolute()
        if not _database.present(path):
            if read_only or not create:
                raise NotALab(f"There is no lab at {path}. Check the path, or open it for writing to create one.")
            _database.make_directory(path)
            with WriterLock(path / _database.LOCK).held(timeout):
                _database.create(path)
        file = path / _database.FILE
        # asked of the kernel, which also knows of read-only mounts and immutable files; SQLite would notice at a write
        if not read_only and not (os.access(file, os.W_OK) and os.access(path, os.W_OK)):
            raise ReadOnlyLab(f"{path} cannot be written. Open it with read_only=True.")
        with contextlib.ExitStack() as opened, translated(path):
            reader = _open_reader(path, immutable, timeout, opened)
            _database.check(reader, file)
            writer = None
            if not read_only:
                writer = opened.enter_context(contextlib.closing(_database.connect(file, "rw", timeout)))
            opened.pop_all()
        return cls(path, reader, writer, timeout=timeout, synchronous=_synchronous, immutable=immutable)

    # -- reading --------------------------------------------------------------------------------------------------

    @property
    def head(self) -> int:
        """The ``seq`` of the last event, 0 if there is none; 4 microseconds, less than asking whether it changed."""
        return int(self._value(_HEAD))

    def events(self, after: int = 0, *, upto: int | None = None, kinds: Iterable[str] | None = None) -> Iterator[Event]:
        """The events with ``after < seq <= upto``, in order; up to the head of now if ``upto`` is None."""
        upto = self.head if upto is None else upto
        chosen = None if kinds is None else list(kinds)
        among = "" if chosen is None else f" AND kind IN ({_marks(chosen)})"
        while after < upto:
            rows = self._rows(
                f"SELECT seq, at, kind, body FROM event WHERE seq > ? AND seq <= ?{among} ORDER BY seq LIMIT ?",
                (after, upto, *(chosen or ()), _EVENTS_AT_ONCE),
            )
            for seq, at, kind, body in rows:
                yield Event(seq, at, kind, decoded(seq, body))
            if len(rows) < _EVENTS_AT_ONCE:
                return
            after = rows[-1][0]

    def last_at(self, instant: int) -> int:
        """The ``seq`` of the last event that happened at ``instant`` (microseconds UTC) or before; 0 if none did."""
        return int(self._rows("SELECT coalesce(max(seq), 0) FROM event WHERE at <= ?", (instant,))[0][0])

    def texts(self, ids: Sequence[int]) -> list[str]:
        """The text of each id, in the order given; a ``range`` is read in one sweep. UnknownName if one has none."""
        ids = ids if isinstance(ids, range) else [int(id) for id in ids]
        found: dict[int, str] = {}
        if isinstance(ids, range) and ids.step == 1:
            found.update(self._rows("SELECT id, text FROM payload WHERE id >= ? AND id < ?", (ids.start, ids.stop)))
        else:
            for start in range(0, len(ids), _IDS_AT_ONCE):
                some = ids[start : start + _IDS_AT_ONCE]
                found.update(self._rows(f"SELECT id, text FROM payload WHERE id IN ({_marks(some)})", tuple(some)))
        try:
            return [found[id] for id in ids]
        except KeyError as error:
            raise self._no_text(int(error.args[0])) from None

    def vectors(self, fingerprint: str, *, after_id: int = 0) -> Iterator[tuple[int, NDArray[np.int8]]]:
        """The vectors of one embedder in order of id, as ``(first_id, matrix of shape (n, dim))``, read-only.

        Blocks that follow one another come as one. A gap between two matrices is a gap in the ids.
        """
        embedder = self._rows("SELECT id FROM embedder WHERE fingerprint = ?", (fingerprint,))
        if not embedder:
            return
        first = after_id + 1
        while True:
            blocks = self._rows(
                "SELECT first_id, count, dim, data FROM vector WHERE embedder = ?1 AND first_id + count > ?2 AND "
                "first_id >= coalesce((SELECT max(first_id) FROM vector WHERE embedder = ?1 AND first_id <= ?2), 0) "
                "ORDER BY first_id",
                (embedder[0][0], first),
                budget=(1, _ROWS_AT_ONCE),
            )
            if not blocks:
                return
            for begin, matrix in _joined(blocks):
                cut = max(0, first - begin)
                yield begin + cut, matrix[cut:]
            first = blocks[-1][0] + blocks[-1][1]

    def slates(self, after: int = 0, *, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        """``(seq, bytes)`` of each event with a slate, ``after < seq <= upto``, in order."""
        upto = self.head if upto is None else upto
        while True:
            rows = self._rows(
                "SELECT seq, data, length(data) FROM slate WHERE seq > ? AND seq <= ? ORDER BY seq",
                (after, upto),
                budget=(2, _SLATE_BYTES_AT_ONCE),
            )
            if not rows:
                return
            for seq, data, _ in rows:
                yield seq, data
            after = rows[-1][0]

    def source(self, hash: str) -> str:
        """The policy source kept under ``hash``; UnknownName if there is none."""
        rows = self._rows("SELECT text FROM source WHERE hash = ?", (hash,))
        if not rows:
            raise UnknownName("policy source", hash, [known for (known,) in self._rows("SELECT hash FROM source")])
        return str(rows[0][0])

    def meta(self, key: str) -> str | None:
        """A named value, None if it was never set."""
        rows = self._rows("SELECT value FROM meta WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else None

    # -- writing --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Transaction]:
        """Write under the writer's lock: all of it when the block ends, nothing if it raises.

        A durable write is on the disk when the block has ended. One with ``durable=False`` is with the operating
        system: it survives the death of this process, and reaches the disk no later than the next durable write,
        in order. Raises LabBusy after ``timeout`` seconds, ReadOnlyLab, and LabError when the disk is full.
        """
        self._check_usable()
        writer = self._writer
        if writer is None:
            raise ReadOnlyLab(f"{self.path} was opened with read_only=True.")
        with self._lock.held(self._timeout):
            self._check_usable()
            with translated(self.path):
                # before the write and not after: a failure here must not look like that of a committed write
                self._checkpoint_if_due(writer)
                self._begin(writer, self._durable_level if durable else _lower(self._durable_level))
            try:
                # asked of the writer, whose pages are still good; a reader must read them anew after every write
                (head,) = writer.execute(_HEAD).fetchone()
                tx = Transaction(int(head))
                try:
                    yield tx
                finally:
                    tx._open = False
                # in memory the reader is the same connection, and must not see half of the rows
                with translated(self.path), self._reading if self.path is None else contextlib.nullcontext():
                    try:
                        writer.execute("COMMIT" if tx._apply(writer) else "ROLLBACK")
                    finally:
                        _undo(writer)
            finally:
                with translated(self.path):
                    _undo(writer)

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
                with contextlib.suppress(LabBusy, ReadOnlyLab):
                    stack.enter_context(self._lock.against_processes(0.0))
            with self._reading:
                self.closed = True
                self._reader.close()
            # The last connection checkpoints and removes the log as it closes, which belongs under the lock. One that
            # never read does not know of the log: let it read; what is damaged has been reported, or will be.
            if self._writer is not None and self.path is not None:
                with contextlib.suppress(sqlite3.DatabaseError):
                    self._writer.execute("PRAGMA schema_version").fetchone()
                self._writer.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- within ---------------------------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if self.closed:
            raise LabError(f"The journal of {self.path or 'the lab in memory'} was closed. Open it again.")
        if self._process != os.getpid():
            raise LabError(
                f"The journal was opened by process {self._process}, of which this one is a fork. "
                "SQLite does not allow that: open the lab again in this process."
            )

    def _rows(
        self, statement: str, parameters: Sequence[Any] = (), *, budget: tuple[int, int] | None = None
    ) -> list[tuple[Any, ...]]:
        """All rows, or those until the sum of column ``budget[0]`` reaches ``budget[1]``."""
        self._check_usable()
        with self._reading, translated(self.path):
            cursor = self._reader.execute(statement, parameters)
            if budget is None:
                return cursor.fetchall()
            column, left = budget
            rows = []
            with contextlib.closing(cursor):
                for row in cursor:
                    rows.append(row)
                    left -= row[column]
                    if left <= 0:
                        break
            return rows

    def _value(self, statement: str) -> Any:
        self._check_usable()
        with self._reading, translated(self.path):
            return self._reader.execute(statement).fetchone()[0]

    def _no_text(self, id: int) -> UnknownName:
        below = self._rows("SELECT max(id) FROM payload WHERE id < ?", (id,))
        above = self._rows("SELECT min(id) FROM payload WHERE id > ?", (id,))
        return UnknownName("stored text of memory", id, [str(near) for (near,) in below + above if near is not None])

    def _begin(self, writer: sqlite3.Connection, level: Synchronous) -> None:
        if level != self._level:
            writer.execute(f"PRAGMA synchronous={level}")
            self._level = level
        writer.execute("BEGIN IMMEDIATE")

    def _checkpoint_if_due(self, writer: sqlite3.Connection) -> None:
        if self._wal is None:
            return
        try:
            size = self._wal.stat().st_size
        except FileNotFoundError:
            return
        if size < self._checkpoint_at:
            return
        writer.execute("PRAGMA busy_timeout=0")
        (busy, _, _) = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        writer.execute(f"PRAGMA busy_timeout={round(self._timeout * 1000)}")
        # a reader that keeps an old snapshot keeps the log: try again when as much has come on top
        self._checkpoint_at = size + _WAL_LIMIT if busy else _WAL_LIMIT


def _open_reader(path: Path, immutable: bool, timeout: float, opened: contextlib.ExitStack) -> sqlite3.Connection:
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
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CANTOPEN and not os.access(path, os.W_OK):
            raise ReadOnlyLab(
                f"{path} is on a disk that cannot be written: SQLite cannot keep its log's index there. If nobody, "
                "on any machine, writes to it meanwhile, open it with read_only=True, immutable=True; else copy it."
            ) from None
        raise
    return reader


def _undo(writer: sqlite3.Connection) -> None:
    if writer.in_transaction:
        writer.execute("ROLLBACK")


def _lower(level: Synchronous) -> Synchronous:
    return "NORMAL" if level == "FULL" else level


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))


def _joined(blocks: Sequence[tuple[int, int, int, bytes]]) -> Iterator[tuple[int, NDArray[np.int8]]]:
    """Runs of blocks whose ids follow one another, each as one matrix."""
    start = 0
    for stop in range(1, len(blocks) + 1):
        first, count, dim, _ = blocks[stop - 1]
        if stop < len(blocks) and blocks[stop][0] == first + count and blocks[stop][2] == dim:
            continue
        run = blocks[start:stop]
        data = run[0][3] if len(run) == 1 else b"".join(block[3] for block in run)
        rows = sum(block[1] for block in run)
        if len(data) != rows * dim:
            raise DamagedLab(
                f"The vectors from id {run[0][0]} on are not what was written. Restore the lab from a copy."
            )
        yield run[0][0], np.frombuffer(data, dtype=np.int8).reshape(rows, dim)
        start = stop
