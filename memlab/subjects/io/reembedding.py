"""The worker that goes over to another embedder while the lab is used, and what it says of that."""

from __future__ import annotations

import time
from dataclasses import dataclass

from memlab.errors import EmbedderMismatch, LabBusy, MemlabError, ReadOnlyLab
from memlab.kernel.base.printable import printable
from memlab.kernel.base.threads import Background, Finished, Worker
from memlab.kernel.state import visible_rows
from memlab.kernel.storage.store import Store

__all__ = ["Reembedder", "Reembedding"]

_BREATH = 0.01
"""Seconds at least between two batches: others get at the lab."""

_BUSY, _FAILED = 1.0, 30.0
"""Seconds until the next attempt where another process holds the lab, and where the embedder failed."""


@dataclass(frozen=True)
class Reembedding:
    """How far a lab has gone over to its embedder.

    Attributes
    ----------
    done
        How many memories have a vector of it.
    total
        How many memories there are.
    error
        Why the last attempt in the background failed; None if it did not. It is tried again.
    """

    done: int
    total: int
    error: MemlabError | None = None

    @property
    def finished(self) -> bool:
        """Whether every memory has its vector."""
        return self.done == self.total

    def __repr__(self) -> str:
        failed = "" if self.error is None else f"; the last attempt failed: {self.error}"
        return printable(f"<Reembedding: {self.done:,} of {self.total:,} memories{failed}>")


class Reembedder(Background):
    """One worker a lab, which begins when memories wait for a vector.

    What waits is in the journal, so nothing is handed to the worker. What is left when the lab is closed or the process
    dies is embedded after the next opening.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._worker = Worker(f"embeds {store.where} anew", self._step)
        self._error: MemlabError | None = None
        self._here = 0
        """How many calls embed in the foreground: the thread leaves it to them."""

    def wake(self) -> None:
        """Embed what waits, soon; nothing happens where nothing waits or the lab cannot be written."""
        if not self._store.journal.read_only and self._store.state.unembedded:
            self._worker.wake()

    def progress(self) -> Reembedding:
        """How far it is."""
        with self._store.reading() as state:
            seen = visible_rows(state)
            if seen is None:
                return Reembedding(state.rows - state.unembedded, state.rows, self._error)
            return Reembedding(len(state.drop_unembedded(seen)), len(seen), self._error)

    def embed_all(self, timeout: float | None) -> bool:
        """Embed here and now, for at most ``timeout`` seconds; whether nothing waits any more."""
        if self.progress().finished:
            return True
        if self._store.journal.read_only:
            raise ReadOnlyLab(
                f"{self._store.where} can only be read here: whoever embeds it anew writes down the vectors."
            )
        until = None if timeout is None else time.monotonic() + timeout
        self._here += 1
        try:
            while self._store.embed_waiting(
                stopped=lambda: until is not None and time.monotonic() >= until
            ):
                if until is not None and time.monotonic() >= until:
                    return False
        finally:
            self._here -= 1
        self._error = None
        return True

    def _step(self) -> float | None:
        """One batch, if anything waits; the seconds until the next."""
        if self._here:
            return _BUSY
        try:
            more = self._store.embed_waiting(
                stopped=lambda: self._worker.stopping or self._here > 0
            )
        except LabBusy as error:
            self._error = error
            return _BUSY
        except MemlabError as error:
            self._error = error
            if self._store.journal.closed or isinstance(error, EmbedderMismatch):
                raise Finished from error
            return _FAILED
        self._error = None
        if not more:
            raise Finished
        return _BREATH
