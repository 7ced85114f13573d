"""The worker that links in the background what was remembered with linking "later"."""

from __future__ import annotations

import time

from memlab.errors import LabBusy, MemlabError
from memlab.kernel.base.threads import Background, Worker
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.linking.comparing import link_waiting, waiting_of

__all__ = ["Linker"]

_GATHER = 0.2
"""Seconds that pass before what waits is linked: together, memories cost a quarter of what they cost one by one (5 ms
of processor time each beside 100,000, against 20)."""

_BREATH = 0.01
"""Seconds at least between two blocks, and as long as the block took: others get at the lab for half of the time."""

_RETRY = 1.0
"""Seconds until the next attempt where another process holds the lab."""


class Linker(Background):
    """One worker a lab, which begins when something waits for the first time.

    What waits is in the journal, so nothing is handed to the worker: it is woken, and asks. What is left when the lab
    is closed or the process dies is linked after the next opening. While the lab is embedded anew, all of it waits.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._worker = Worker(f"links {core.store.where}", self._step)
        self._error: MemlabError | None = None
        self._gathers = True
        """Nothing waited after the last block: what comes is given time to become more."""

    def wake(self) -> None:
        """Link what waits, soon; nothing happens where nothing waits or the lab cannot be written."""
        store = self._core.store
        if not store.journal.read_only and waiting_of(store.state):
            self._worker.wake()

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

    def _step(self) -> float | None:
        """One block, if anything waits; the seconds until the next."""
        self._worker.pause(_GATHER if self._gathers else 0.0)
        began = time.monotonic()
        try:
            with self._core.store.reading() as state:
                if state.unembedded:
                    return _RETRY  # what has no vector yet would be missed
            more = not self._worker.stopping and link_waiting(self._core)
        except LabBusy as error:
            self._error = error
            return _RETRY
        except MemlabError as error:
            # a policy that cannot be asked, a full disk: it stays waiting, and link_all() raises the same
            self._error = error
            more = False
        else:
            self._error = None
        self._gathers = not more
        return max(_BREATH, time.monotonic() - began) if more else None
