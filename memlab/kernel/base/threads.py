"""Locks that survive interrupted calls, and workers in the background.

An interrupt may strike between two instructions that open or close a block. The traceback then keeps the block open, and
in a notebook the traceback itself is kept. A public call that an interrupt ends therefore clears its finished frames,
which closes their blocks, and frees the locks of its thread. A block closed after that releases nothing, because another
caller may hold the lock by then.
"""

from __future__ import annotations

import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, Self


class Holder(Protocol):
    """An object with locks that an interrupted call must release."""

    def free(self) -> None:
        """Release all locks that the current thread holds."""


# Holders are registered weakly, so that a closed lab can be collected.
_HOLDERS: weakref.WeakSet[Holder] = weakref.WeakSet()


def watch_interrupts(holder: Holder) -> None:
    """Register `holder` so that its locks are released when a call is interrupted."""
    _HOLDERS.add(holder)


def free_interrupted(error: BaseException) -> None:
    """Close blocks and release locks that an interrupted call left behind.

    The locks are kept if memlab itself made the call, because the outer call may still need them.
    """
    traceback.clear_frames(error.__traceback__)
    frame = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("memlab."):
            return
        frame = frame.f_back  # type: ignore[assignment]
    for holder in list(_HOLDERS):
        holder.free()


class ThreadLock:
    """A reentrant lock that an interrupted call releases.

    Use ``with lock:`` for a block of a function. Use ``hold`` for blocks that may be closed late,
    such as those of generators. Such a block does not release a lock that was freed in the
    meantime.
    """

    def __init__(self) -> None:
        # The lock is reentrant, because public calls of a lab call each other.
        self._lock = threading.RLock()
        self._freed = 0
        watch_interrupts(self)

    @property
    def owned(self) -> bool:
        """True if this thread holds the lock."""
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        if self.owned:  # An interrupt between these two lines leaves the release to ``free``.
            self._lock.release()

    @contextmanager
    def hold(self, timeout: float = -1) -> Iterator[bool]:
        """Hold the lock within the block. Yield False if acquiring it times out.

        Parameters
        ----------
        timeout
            Maximum time to wait in seconds; a negative number means no limit.

        Returns
        -------
        Iterator
            A context manager that yields True while the lock is held.
        """
        if not self._lock.acquire(timeout=min(timeout, threading.TIMEOUT_MAX)):
            yield False
            return
        freed = self._freed
        try:
            yield True
        finally:
            if freed == self._freed and self.owned:
                self._lock.release()

    def free(self) -> None:
        """Release this thread's lock, even inside open ``hold`` blocks.

        Blocks that are still open release nothing later.
        """
        while self.owned:
            self._freed += 1
            self._lock.release()


# -- background work: linking, upkeep, watches and mirrors have one worker each ---------------------------------------


class Finished(Exception):
    """Raised by the step of a worker to end its thread."""


class Worker:
    """A thread that calls `step` until it is stopped.

    The thread starts with `start` or the first `wake`. An exception in `step` is printed like that of any thread, and the
    work continues.

    Parameters
    ----------
    name
        Name of the thread after "memlab".
    step
        Function that does one piece of work. The function returns the seconds until the next call,
        or None to wait for `wake`. It raises `Finished` to end the thread.
    delay
        Seconds before the first step.
    after_error
        Seconds between an exception and the next step.

    Examples
    --------
    >>> import threading
    >>> done = threading.Event()
    >>> worker = Worker("counts", lambda: done.set())
    >>> worker.wake()
    >>> done.wait(5), worker.stop()
    (True, None)
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], float | None],
        *,
        delay: float = 0.0,
        after_error: float = 1.0,
    ) -> None:
        self._name, self._step, self._delay, self._after_error = name, step, delay, after_error
        self._work, self._stopping = threading.Event(), threading.Event()
        self._starting = ThreadLock()
        self._thread: threading.Thread | None = None

    @property
    def active(self) -> bool:
        """True if the thread is running and was not told to stop."""
        return self._thread is not None and self._thread.is_alive() and not self._stopping.is_set()

    @property
    def stopping(self) -> bool:
        """True if the thread was told to stop."""
        return self._stopping.is_set()

    def start(self) -> None:
        """Start the thread with the first step, unless the thread was started before."""
        with self._starting:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(
                    target=self._run, name=f"memlab {self._name}", daemon=True
                )
                self._thread.start()

    def wake(self) -> None:
        """Run the next step now, and start the thread if needed."""
        self._work.set()
        self.start()

    def pause(self, seconds: float) -> bool:
        """Wait within a step. Return True if the worker was told to stop.

        Parameters
        ----------
        seconds
            Maximum time to wait.

        Returns
        -------
        bool
            True if the step should end.
        """
        return self._stopping.wait(seconds)

    def stop_soon(self) -> None:
        """Stop after the current step without waiting; safe within a finalizer."""
        self._stopping.set()
        self._work.set()

    def stop(self) -> None:
        """Stop after the current step, and wait until the thread has ended."""
        self.stop_soon()
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        self._work.wait(self._delay)
        while not self._stopping.is_set():
            self._work.clear()
            try:
                seconds = self._step()
            except Finished:
                return
            except Exception:  # noqa: BLE001 - an error of a caller's function is printed, and the work continues
                threading.excepthook(
                    threading.ExceptHookArgs([*sys.exc_info(), threading.current_thread()])
                )
                seconds = self._after_error
            self._work.wait(seconds)


class Background:
    """Base class of objects that work in the background with a `Worker`.

    Call ``stop`` to end the work, or use the object in a ``with`` statement.
    """

    _worker: Worker

    @property
    def active(self) -> bool:
        """True if the worker is running and was not told to stop."""
        return self._worker.active

    def stop(self) -> None:
        """Stop after the current step, and wait until the thread has ended."""
        self._worker.stop()

    def stop_soon(self) -> None:
        """Stop after the current step without waiting; safe within a finalizer."""
        self._worker.stop_soon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
