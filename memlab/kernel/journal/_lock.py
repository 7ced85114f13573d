"""The writer's lock: one at a time, over threads, handles and processes.

SQLite's own lock is not enough: 3.7.0 to 3.51.2 may corrupt a WAL that two connections write or checkpoint at once.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from memlab.errors import LabBusy, LabError, LabUnavailable, ReadOnlyLab
from memlab.kernel.base.threads import ThreadLock

__all__ = ["WriterLock"]

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
    def held(self, timeout: float) -> Iterator[None]:
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
            raise LabError("A write is already open in this thread: use its transaction, or end it first.")
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
        raise ReadOnlyLab(f"{path.parent} cannot be written: {error.strerror}. Open it with read_only=True.") from None


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
