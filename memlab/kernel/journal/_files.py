"""The writer's lock: one at a time, over threads, handles and processes.

SQLite's own lock is not enough: 3.7.0 to 3.51.2 may corrupt a WAL that two connections write or checkpoint at once.
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

from memlab.errors import DamagedLab, LabBusy, LabError, LabUnavailable, ReadOnlyLab
from memlab.kernel.base.disk import sync, sync_open
from memlab.kernel.base.threads import ThreadLock

__all__ = ["RESTORED", "Head", "HeadFile", "WriterLock"]


_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.002
"""Seconds between two attempts; a writer holds the lock for about half a millisecond."""


class WriterLock:
    """``flock`` on a file, under a thread lock. Without a path (a journal in memory) only the thread lock.

    The kernel lets the lock go when its holder dies. The file holds the pid of the last holder, for the message.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._name = None if path is None else os.fspath(path)
        self._threads = ThreadLock()

    @contextlib.contextmanager
    def hold(self, timeout: float) -> Iterator[None]:
        """Hold the lock; LabBusy after ``timeout`` seconds of waiting."""
        deadline = time.monotonic() + timeout
        # both halves in one block: each generator more would cost a write some microseconds
        with self._threads.held(self._patience(timeout)) as taken:
            self._check_taken(taken, timeout)
            if self._name is None or self._path is None:
                yield
                return
            with _opened(self._name) as file:
                try:
                    _take(file.fileno(), self._path, max(0.0, deadline - time.monotonic()))
                    yield
                finally:
                    # a process forked meanwhile has the same open file: closing alone would leave it locked
                    fcntl.flock(file, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def against_threads(self, timeout: float) -> Iterator[None]:
        """The first half: no other thread writes through this handle."""
        with self._threads.held(self._patience(timeout)) as taken:
            self._check_taken(taken, timeout)
            yield

    @contextlib.contextmanager
    def against_processes(self, timeout: float) -> Iterator[None]:
        """The second half: no other handle or process writes."""
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
        if self._threads.owned:
            raise LabError(
                "A write is already open in this thread: use its transaction, or end it first."
            )
        return timeout

    def _check_taken(self, taken: bool, timeout: float) -> None:
        if not taken:
            raise LabBusy(f"Another thread of this process has been writing for {timeout:g} s.")


def _opened(name: str) -> FileIO:
    """The lock file: an object and no number, so that it is closed even if an interrupt strikes before it is used."""
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
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _take(descriptor: int, path: Path, timeout: float) -> None:
    """Take the lock, and leave this process's number in the file, for the message of those that wait."""
    deadline = time.monotonic() + timeout
    pause = _FIRST_PAUSE
    while not _try_lock(descriptor):
        if time.monotonic() >= deadline:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            where = "" if _is_here(holder) else " of another machine, as none here has that number"
            raise LabBusy(
                f"{path.parent} is being written by process {holder or '(unknown)'}{where}, which has held the "
                f"writer's lock for more than {timeout:.3g} s. Nothing was written. Try again, or end that process."
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    os.pwrite(descriptor, b"%-20d" % os.getpid(), 0)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_here(holder: str) -> bool:
    """Whether a process of that number runs on this machine; True where nobody can tell."""
    if not holder.isdecimal() or not int(holder):
        return True
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


# The head file: how far a lab had come when it was last written, so that a shorter journal is noticed.
#
# SQLite takes a write-ahead log that was cut or damaged for one that ended there, without a word. So the last event
# and its chain value are written to a small file of their own after each commit. It is synced where the log is moved
# into the database, at a backup and on closing, not at each commit: what it tells is what a killed process had
# acknowledged. After a power loss it may be older than the journal (which is as good as none), or name recalls that
# were never synced.


_BYTES = 512
"""The length of the record, written in place at once: a block of a disk, so that it is not written by halves."""


RESTORED = "restored"
"""What a restored journal knows of itself: the text of the head that was given up for it."""


class Head(msgspec.Struct, frozen=True):
    """The last event of a journal. ``lost`` says what was found missing, until ``memlab restore`` settles it."""

    lab: str
    generation: int
    seq: int
    chain: str
    lost: str = ""

    @property
    def text(self) -> str:
        """It as one line."""
        return msgspec.json.encode(self).decode()


class HeadFile:
    """The file ``head`` of a lab's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def read(self) -> Head | None:
        """What was last written; None if there is no such file. DamagedLab if it is not what was written."""
        for attempt in range(3):  # another process may be writing it at this moment
            try:
                data = self.path.read_bytes()
            except FileNotFoundError:
                return None
            except OSError as error:
                raise DamagedLab(f"{self.path} cannot be read: {error.strerror}.") from None
            if not data:
                return None  # made, and not yet written
            if len(data) == _BYTES and data[:8] == b"%08x" % zlib.crc32(data[8:]):
                break
            if attempt == 2:
                raise DamagedLab(f"{self.path} is not what was written.")
        try:
            return msgspec.json.decode(data[8:].rstrip(), type=Head)
        except msgspec.MsgspecError:
            raise DamagedLab(f"{self.path} is not what was written.") from None

    def write(self, head: Head) -> None:
        """Put ``head`` in the place of what was there: ten microseconds. OSError where the disk refuses."""
        encoded = msgspec.json.encode(head)[: _BYTES - 8].ljust(_BYTES - 8)
        record = b"%08x" % zlib.crc32(encoded) + encoded
        if self._descriptor is not None and not os.fstat(self._descriptor).st_nlink:
            self.close()  # somebody removed the file
        if self._descriptor is None:
            new = not self.path.exists()
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if new:
                os.pwrite(self._descriptor, record, 0)
                sync_open(self._descriptor)
                sync(self.path.parent)
        os.pwrite(self._descriptor, record, 0)

    def sync(self) -> None:
        """Make what was written durable. OSError where the disk refuses."""
        if self._descriptor is not None:
            sync_open(self._descriptor)

    def close(self) -> None:
        """Let the file go."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
