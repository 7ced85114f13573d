"""The worker that links in the background what was remembered with linking "later"."""

from __future__ import annotations

import threading
import time

from memlab.errors import LabBusy, MemlabError
from memlab.subjects.core import Core
from memlab.subjects.linking.comparing import link_waiting, waiting_of

__all__ = ["Linker"]

_GATHER = 0.2
"""Seconds that pass before what waits is linked: together, memories cost a quarter of what they cost one by one (5 ms
of processor time each beside 100,000, against 20)."""

_BREATH = 0.01
"""Seconds at least between two blocks, and as long as the block took: others get at the lab for half of the time."""

_RETRY = 1.0
"""Seconds until the next attempt where another process holds the lab."""


class Linker:
    """One daemon thread a lab, started when something waits for the first time.

    What waits is in the journal, so nothing is handed to the thread: it is woken, and asks. What is left when the lab
    is closed or the process dies is linked after the next opening.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._work = threading.Event()
        self._stopping = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._error: MemlabError | None = None

    def wake(self) -> None:
        """Link what waits, soon; nothing happens where nothing waits or the lab cannot be written."""
        if self._core.store.journal.read_only or self._stopping.is_set() or not waiting_of(self._core.store.state):
            return
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name=f"memlab links {self._core.store.where}", daemon=True
                )
                self._thread.start()
        self._work.set()

    def link_all(self, timeout: float | None) -> bool:
        """Link here and now until nothing waits, for at most ``timeout`` seconds; whether nothing does."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._core.store.reading():
            if not waiting_of(self._core.store.state):
                return True
        while until is None or time.monotonic() < until:
            if not link_waiting(self._core):
                self._error = None
                return True
        return False

    @property
    def error(self) -> MemlabError | None:
        """Why the last block could not be linked in the background, None if it was."""
        return self._error

    def stop_soon(self) -> None:
        """End without waiting."""
        self._stopping.set()
        self._work.set()

    def stop(self) -> None:
        """End after the block that is at hand."""
        self.stop_soon()
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._work.wait()
            self._stopping.wait(_GATHER)
            self._work.clear()
            try:
                began = time.monotonic()
                while not self._stopping.is_set() and link_waiting(self._core):
                    self._error = None
                    self._stopping.wait(max(_BREATH, time.monotonic() - began))
                    began = time.monotonic()
            except LabBusy as error:
                self._error = error
                self._stopping.wait(_RETRY)
                self._work.set()
            except MemlabError as error:
                # a policy that cannot be asked, a full disk: it stays waiting, and link_all() raises the same
                self._error = error
