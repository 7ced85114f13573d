"""One daemon thread that does a piece of work again and again: what links, maintains, watches and mirrors has one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Self

from memlab.kernel.base.interrupts import ThreadLock

__all__ = ["Background", "Finished", "Worker"]


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
        self, name: str, step: Callable[[], float | None], *, delay: float = 0.0, after_error: float = 1.0
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
                self._thread = threading.Thread(target=self._run, name=f"memlab {self._name}", daemon=True)
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
                threading.excepthook(threading.ExceptHookArgs([*sys.exc_info(), threading.current_thread()]))
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
