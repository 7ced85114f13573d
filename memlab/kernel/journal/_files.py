"""The writer's lock of a lab, and the file ``head`` that records the last event.

One writer holds the lock at a time, among all threads, handles and processes. SQLite's own lock is
not enough, because versions 3.7.0 to 3.51.2 may corrupt a WAL that two connections write or
checkpoint at once.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
import zlib
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import msgspec

from memlab.errors import DamagedLab, InputError, LabBusy, LabError, LabUnavailable, ReadOnlyLab
from memlab.kernel.base.disk import open_regular, sync, sync_open
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.journal._events import RESTORE

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.002
"""Seconds between two attempts to take the lock.

A writer holds the lock for about half a millisecond.
"""


class WriterLock:
    """A ``flock`` on a file, combined with a thread lock.

    A journal in memory has no path and uses only the thread lock. The operating system releases the
    file lock when its holder dies. The file holds the process id of the last holder, for messages.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._name = None if path is None else os.fspath(path)
        self._threads = ThreadLock()

    @contextlib.contextmanager
    def hold(self, timeout: float) -> Iterator[None]:
        """Hold the lock within the block; raise LabBusy after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        # Both locks are taken in one function, because each further generator would cost a write
        # some microseconds.
        with self._threads.hold(self._patience(timeout)) as acquired:
            self._check_taken(acquired, timeout)
            if self._name is None or self._path is None:
                yield
                return
            with _opened(self._name) as file:
                try:
                    _take(file.fileno(), self._path, max(0.0, deadline - time.monotonic()))
                    yield
                finally:
                    # A process forked in the meantime shares the open file, so closing the file
                    # would not release the lock.
                    fcntl.flock(file, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def against_threads(self, timeout: float) -> Iterator[None]:
        """Hold only the thread lock, so that no other thread writes through this handle."""
        with self._threads.hold(self._patience(timeout)) as acquired:
            self._check_taken(acquired, timeout)
            yield

    @contextlib.contextmanager
    def against_processes(self, timeout: float) -> Iterator[None]:
        """Hold only the file lock, so that no other handle or process writes."""
        if self._name is None or self._path is None:
            yield
            return
        with _opened(self._name) as file:
            try:
                _take(file.fileno(), self._path, timeout)
                yield
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)

    def _patience(self, timeout: float) -> float:
        """Return ``timeout``, or raise LabError if this thread already holds the lock."""
        if self._threads.owned:
            raise LabError(
                "A write is already open in this thread: use its transaction, or end it first."
            )
        return timeout

    def _check_taken(self, acquired: bool, timeout: float) -> None:
        """Raise LabBusy if the thread lock was not acquired."""
        if not acquired:
            raise LabBusy(
                f"Another thread of this process has been writing for {timeout:g} s. Try again."
            )


def _opened(name: str) -> FileIO:
    """Open the lock file, creating it if needed.

    The result is a file object and not a descriptor, so that an interrupt before its first use
    closes it too.
    """
    try:
        return open(name, "r+b", buffering=0, opener=_created)
    except OSError as error:
        path = Path(name)
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise LabUnavailable.at(path.parent, error.strerror or "cannot be written") from None
        raise ReadOnlyLab(
            f"{path.parent} cannot be written: {error.strerror}. Open it with read_only=True."
        ) from None


def _created(path: str, flags: int) -> int:
    """Open or create a file that child programs do not inherit, and refuse a symbolic link; an opener for ``open``."""
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)


def _take(descriptor: int, path: Path, timeout: float) -> None:
    """Acquire the file lock, or raise LabBusy after ``timeout`` seconds; write this process's id into the file.

    Other processes that wait for the lock name this id in their messages.
    """
    deadline = time.monotonic() + timeout
    pause = _FIRST_PAUSE
    while not _try_lock(descriptor):
        if time.monotonic() >= deadline:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            where = "" if _is_here(holder) else " (of another machine: none here has this number)"
            raise LabBusy(
                f"{path.parent} is being written by process {holder or '(unknown)'}{where}, which has held the "
                f"writer's lock for more than {timeout:.3g} s. Nothing was written. Try again, or end that process."
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    os.pwrite(descriptor, b"%-20d" % os.getpid(), 0)


def _try_lock(descriptor: int) -> bool:
    """Try to acquire the file lock without waiting, and return whether this succeeded."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_here(holder: str) -> bool:
    """Return whether a process with the id ``holder`` runs on this machine.

    Returns True if this cannot be determined.
    """
    if not holder.isdecimal() or not int(holder):
        return True
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


# The file ``head`` records the last event that was written, so that a shorter journal is noticed.
#
# SQLite silently treats a write-ahead log that was cut or damaged as one that ended there. So the
# last event and its chain value are written to a separate small file after each commit. This file
# is synced when the log is moved into the database, at a backup and on closing, but not at each
# commit. It protects writes that a killed process had acknowledged. After a power loss it may be
# older than the journal, which does no harm, or name recalls that were never synced.


_BYTES = 512
"""The length of the record in bytes.

The record is one disk block, so that it is never half written.
"""


RESTORED = "restored"
"""The key in ``meta`` of the ``head`` record that a restore abandoned, as text."""


class Head(msgspec.Struct, frozen=True):
    """The record of a journal's last event in the file ``head``.

    ``lost`` describes missing events, until ``memlab upkeep restore`` accepts the loss.
    """

    lab: str
    generation: int
    seq: int
    chain: str
    lost: str = ""

    @property
    def text(self) -> str:
        """The record as one line of JSON."""
        return msgspec.json.encode(self).decode()


class HeadFile:
    """The file ``head`` of a lab's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_written = False

    def read(self) -> Head | None:
        """Return the record of the last event, or None if the file does not exist.

        Raises DamagedLab if the file was changed.
        """
        for attempt in range(3):  # another process may be writing the file at this moment
            try:
                with open_regular(self.path) as file:
                    data = file.read(_BYTES + 1)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise DamagedLab(f"{self.path} cannot be read: {error.strerror}.") from None
            except InputError as error:
                raise DamagedLab(str(error)) from None
            if not data:
                return None  # created, and not written yet
            if len(data) == _BYTES and data[:8] == b"%08x" % zlib.crc32(data[8:]):
                break
            if attempt == 2:
                raise DamagedLab(f"{self.path} was changed since it was written. {RESTORE}")
        try:
            return msgspec.json.decode(data[8:].rstrip(), type=Head)
        except msgspec.MsgspecError:
            raise DamagedLab(f"{self.path} was changed since it was written. {RESTORE}") from None

    def write(self, head: Head) -> None:
        """Replace the record in the file. Raises OSError if the write fails."""
        encoded = msgspec.json.encode(head)[: _BYTES - 8].ljust(_BYTES - 8)
        record = b"%08x" % zlib.crc32(encoded) + encoded
        new = not self.path.exists()
        # Opened for each record, which takes 20 microseconds: a lab that stays open needs no descriptor for it.
        with open(self.path, "r+b", buffering=0, opener=_created) as file:
            os.pwrite(file.fileno(), record, 0)
            if new:
                sync_open(file.fileno())
                sync(self.path.parent)
        self._is_written = True

    def sync(self) -> None:
        """Make the record durable, or raise OSError if writing to the disk fails."""
        if self._is_written and self.path.exists():
            sync(self.path)
