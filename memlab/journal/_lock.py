"""The writer's lock: one at a time, over threads, handles and processes.

SQLite's own lock is not enough: 3.7.0 to 3.51.2 may corrupt a WAL that two connections write or checkpoint at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from memlab.errors import LabBusy, LabError, ReadOnlyLab

__all__ = ["WriterLock"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.002
"""Seconds between two attempts; a writer holds the lock for about half a millisecond."""


class WriterLock:
    """``flock`` on a file, under a thread lock. Without a path (a journal in memory) only the thread lock.

    The kernel lets the lock go when its holder dies. The file holds the pid of the last holder, for the message.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._threads = threading.Lock()
        self._owner: int | None = None

    @contextlib.contextmanager
    def held(self, timeout: float) -> Iterator[None]:
        """Hold the lock; LabBusy after ``timeout`` seconds of waiting."""
        deadline = time.monotonic() + timeout
        with self.against_threads(timeout), self.against_processes(max(0.0, deadline - time.monotonic())):
            yield

    @contextlib.contextmanager
    def against_threads(self, timeout: float) -> Iterator[None]:
        """The first half: no other thread writes through this handle."""
        if self._owner == threading.get_ident():
            raise LabError("A write is already open in this thread: use its transaction, or end it first.")
        if not self._threads.acquire(timeout=min(timeout, threading.TIMEOUT_MAX)):
            raise LabBusy(f"Another thread of this process has been writing for {timeout:g} s.")
        try:
            self._owner = threading.get_ident()
            yield
        finally:
            self._owner = None
            self._threads.release()

    @contextlib.contextmanager
    def against_processes(self, timeout: float) -> Iterator[None]:
        """The second half: no other handle or process writes."""
        if self._path is None:
            yield
            return
        descriptor = _locked(self._path, timeout)
        try:
            yield
        finally:
            # a process forked meanwhile has the same open file: closing alone would leave it locked
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def _locked(path: Path, timeout: float) -> int:
    """A descriptor of the lock file that holds the lock."""
    deadline = time.monotonic() + timeout
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ReadOnlyLab(f"{path.parent} cannot be written: {error.strerror}. Open it with read_only=True.") from None
    pause = _FIRST_PAUSE
    try:
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
                raise LabBusy(
                    f"{path.parent} is being written by process {holder or '(unknown)'}, which has held the writer's "
                    f"lock for more than {timeout:.3g} s. Try again, or end that process."
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        os.pwrite(descriptor, b"%-20d" % os.getpid(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
