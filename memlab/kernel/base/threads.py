"""Threads: locks that an interrupted call gives back, and workers in the background.

An interrupt may strike between two instructions that open or close a block. The traceback then keeps the block open,
and where it is kept itself, as in a notebook, nothing closes it later. So a public call that an interrupt ends clears
the frames that have ended, which closes their blocks, and frees the locks that its thread still holds. A block that is
closed after that, by whoever collects it, releases nothing: another one may hold the lock by then.
"""

from __future__ import annotations

import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, Self

__all__ = [
    "Background",
    "Finished",
    "Holder",
    "ThreadLock",
    "Worker",
    "free_interrupted",
    "watch_interrupts",
]


class Holder(Protocol):
    """Whoever has a lock that an interrupted thread may still hold."""

    def free(self) -> None:
        """Release what this thread holds."""


_HOLDERS: weakref.WeakSet[Holder] = weakref.WeakSet()


def watch_interrupts(holder: Holder) -> None:
    """Have ``holder`` freed after every interrupted call, as long as it lives."""
    _HOLDERS.add(holder)


def free_interrupted(error: BaseException) -> None:
    """Close what the call that ``error`` ended has left open, and free the locks of its thread, unless memlab itself
    called it and may still need them.
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
    """A lock among threads, which a thread that holds it may take again, and which an interrupted call gives back.

    ``with lock:`` for a block of a function. ``held`` is for blocks that may be closed late, such as those of
    generators: they release nothing that was freed since.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._freed = 0
        watch_interrupts(self)

    @property
    def owned(self) -> bool:
        """Whether this thread holds it."""
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        if self.owned:  # an interrupt between the two lines leaves it to ``free``
            self._lock.release()

    @contextmanager
    def held(self, timeout: float = -1) -> Iterator[bool]:
        """Hold it; False, and it is not held, after ``timeout`` seconds of waiting, which has no end if negative."""
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
        """Release what this thread holds; blocks that are still open release nothing any more."""
        while self.owned:
            self._freed += 1
            self._lock.release()


# -- work in the background: linking, upkeep, watches and mirrors have a worker each ----------------------------------


class Finished(Exception):
    """Raised by a step after which there is nothing to do for ever."""


class Worker:
    """A thread that calls ``step`` until it is stopped. ``step`` gives the seconds until its next call; None: until
    ``wake``. It ends the thread by raising ``Finished``.

    What ``step`` raises is shown as the error of any thread is, and the work goes on ``after_error`` seconds later. The
    thread begins with ``start`` or the first ``wake``, and waits for ``delay`` seconds before its first step.

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
        """Whether the thread runs and is not to end."""
        return self._thread is not None and self._thread.is_alive() and not self._stopping.is_set()

    @property
    def stopping(self) -> bool:
        """Whether it is to end."""
        return self._stopping.is_set()

    def start(self) -> None:
        """Begin with the first step now; nothing if it has begun."""
        with self._starting:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(
                    target=self._run, name=f"memlab {self._name}", daemon=True
                )
                self._thread.start()

    def wake(self) -> None:
        """Have the next step done now."""
        self._work.set()
        self.start()

    def pause(self, seconds: float) -> bool:
        """Wait within a step, or until it is to end; whether it is."""
        return self._stopping.wait(seconds)

    def stop_soon(self) -> None:
        """End after the step that is at hand, without waiting for it: for a finalizer, which may run anywhere."""
        self._stopping.set()
        self._work.set()

    def stop(self) -> None:
        """End after the step that is at hand, and wait for it."""
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
            except Exception:  # noqa: BLE001  a caller's own: shown as any thread's is, and the work goes on
                threading.excepthook(
                    threading.ExceptHookArgs([*sys.exc_info(), threading.current_thread()])
                )
                seconds = self._after_error
            self._work.wait(seconds)


class Background:
    """What works in the background with a ``Worker`` of its own. ``stop`` it, or use it in a ``with``."""

    _worker: Worker

    @property
    def active(self) -> bool:
        """Whether it goes on."""
        return self._worker.active

    def stop(self) -> None:
        """End, and wait for the step that is at hand."""
        self._worker.stop()

    def stop_soon(self) -> None:
        """End after the step that is at hand, without waiting for it: for a finalizer, which may run anywhere."""
        self._worker.stop_soon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
