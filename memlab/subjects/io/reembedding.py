"""The background worker that embeds memories again after a change of the embedder."""

from __future__ import annotations

import time
from dataclasses import dataclass

from memlab.errors import EmbedderMismatch, LabBusy, MemlabError, ReadOnlyLab
from memlab.kernel.base.printable import printable
from memlab.kernel.base.threads import Background, Finished, Worker
from memlab.kernel.state import visible_rows
from memlab.kernel.storage.store import Store

_PAUSE = 0.01
"""Minimum seconds between two batches, in which other threads and processes may use the lab."""

_BUSY, _FAILED = 1.0, 30.0
"""Seconds until the next attempt if another process was writing, and if the embedder failed."""


@dataclass(frozen=True)
class Reembedding:
    """The progress of a lab's change to another embedder.

    Attributes
    ----------
    done
        The number of memories with a vector of the current embedder.
    total
        The number of memories.
    error
        The error of the last attempt in the background, or None if it succeeded. The attempt is repeated later.

    Examples
    --------
    >>> memlab.open().io.reembedding()
    <Reembedding: 0 of 0 memories>
    """

    done: int
    total: int
    error: MemlabError | None = None

    @property
    def finished(self) -> bool:
        """Whether every memory has a vector of the current embedder."""
        return self.done == self.total

    def __repr__(self) -> str:
        failed = "" if self.error is None else f"; the last attempt failed: {self.error}"
        return printable(f"<Reembedding: {self.done:,} of {self.total:,} memories{failed}>")


class Reembedder(Background):
    """The background worker that computes the vectors that a lab still lacks.

    The journal records which memories lack vectors. If the lab is closed or the process dies, these memories are
    embedded after the next opening.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._worker = Worker(f"re-embedding of {store.where}", self._step)
        self._error: MemlabError | None = None
        # The number of running calls of embed_all, during which the thread pauses.
        self._foreground = 0

    def wake(self) -> None:
        """Start the worker if memories lack vectors and the lab is writable."""
        if not self._store.journal.read_only and self._store.state.unembedded:
            self._worker.wake()

    def progress(self) -> Reembedding:
        """Return the number of memories with a vector, among those that the viewer sees."""
        with self._store.reading() as state:
            rows = visible_rows(state)
            if rows is None:
                return Reembedding(state.rows - state.unembedded, state.rows, self._error)
            return Reembedding(len(state.drop_unembedded(rows)), len(rows), self._error)

    def embed_all(self, timeout: float | None) -> bool:
        """Embed waiting memories for up to ``timeout`` seconds; return False after a timeout."""
        if self.progress().finished:
            return True
        if self._store.journal.read_only:
            raise ReadOnlyLab(
                f"{self._store.where} was opened with read_only=True, so new vectors cannot be "
                "stored. Open the lab for writing."
            )
        until = None if timeout is None else time.monotonic() + timeout
        self._foreground += 1
        try:
            while self._store.embed_waiting(
                stopped=lambda: until is not None and time.monotonic() >= until
            ):
                if until is not None and time.monotonic() >= until:
                    return False
        finally:
            self._foreground -= 1
        self._error = None
        return True

    def _step(self) -> float | None:
        """Embed one batch of memories, and return the seconds until the next batch.

        Raises Finished when no memory waits, or when the lab is closed or has another embedder.
        """
        if self._foreground:
            return _BUSY
        try:
            more = self._store.embed_waiting(
                stopped=lambda: self._worker.stopping or self._foreground > 0
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
        return _PAUSE
