"""The journal of a lab and what is folded from it, kept in step: every verb reads and writes through here."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.clock import Clock
from memlab.embedding import Embedder
from memlab.errors import DamagedLab, EmbedderMismatch, LabError, ReadOnlyLab
from memlab.index import EXACT_UP_TO, Neighbours
from memlab.journal import Event, Journal, Transaction, Until, WriterLock
from memlab.memory import Contents, State, as_said, latest_snapshot, load_snapshot, save_snapshot
from memlab.policies import POLICY_EVENTS, VersionLog
from memlab.purging import DERIVED, PURGE_TIMEOUT, PURGING, end_purge, last_purge
from memlab.slates import SlateLog, Slates, decode

__all__ = ["Store"]

_SNAPSHOT_EVERY = 20_000
"""Memories since the last snapshot after which a new one is written; folding that many takes about a second."""

_SEAL_EVERY = 500
"""Slates in the journal's tail after which they are sealed: decoding that many takes some 50 ms."""

_FEEDBACK = {
    "decision": pl.Int64,
    "memory": pl.Int64,
    "outcome": pl.String,
    "reward": pl.Float64,
    "source": pl.String,
    "at": pl.Int64,
}


class _Written:
    """What a write has just stored, so that it need not be read back; anything else is the journal's."""

    def __init__(self, tx: Transaction, journal: Contents) -> None:
        self._tx, self._journal = tx, journal

    def texts(self, ids: Sequence[int]) -> list[str]:
        own = self._tx.texts(ids) if isinstance(ids, range) else None
        return self._journal.texts(ids) if own is None else own

    def vectors(self, fingerprint: str, *, after_id: int = 0) -> Iterator[tuple[int, NDArray[np.int8]]]:
        own = self._tx.vectors_from(fingerprint, after_id + 1)
        return self._journal.vectors(fingerprint, after_id=after_id) if own is None else iter(own)


class Store:
    """One journal, one state, one version log.

    ``state`` and ``versions`` are only read under ``mutex``, after ``fold``. Several threads and processes may each
    have a store on one folder.
    """

    def __init__(
        self,
        folder: Path | None,
        embedder: Embedder,
        clock: Clock,
        *,
        read_only: bool = False,
        reembed: bool = False,
        index: str = "annoy",
        until: Until | None = None,
    ) -> None:
        """With ``until``, a journal of the past, nothing is opened or kept beside it."""
        self.folder, self.embedder, self.clock = folder, embedder, clock
        self.mutex = threading.RLock()
        self.journal: Journal | Until = Journal.open(folder, read_only=read_only) if until is None else until
        self.derived = WriterLock(None if folder is None else folder / DERIVED)
        self.versions = VersionLog()
        try:
            self._end_purge()
            self._purged = last_purge(self.journal)
            self.state = self._restored()
            self._snapshot_at = len(self.state)
            for event in self.journal.events(kinds=POLICY_EVENTS, upto=self.state.seq):
                self.versions.fold(event, self.journal.source)
            self.fold()
            self._match_embedder(reembed=reembed and not read_only)
            beside = None if folder is None else folder / "neighbours"
            self.neighbours = Neighbours(beside, self.state.vectors, kind=index, writable=not self.journal.read_only)
        except BaseException:
            self.journal.close()
            raise

    def as_of(self, until: Until, clock: Clock) -> Store:
        """A store of the past, on the same journal and with the same embedder."""
        return Store(None, self.embedder, clock, until=until)

    @property
    def where(self) -> str:
        if isinstance(self.journal, Until):
            return f"as of event {self.journal.head:,}"
        return "in memory" if self.folder is None else self.folder.name

    def fold(self) -> None:
        """Take in what has happened since, whoever wrote it; some microseconds when nothing has."""
        with self.mutex:
            if isinstance(self.journal, Until) and last_purge(self.journal) != self._purged:
                self._fold_anew()  # the past has changed, and no event of it tells
            if self.journal.head == self.state.seq:
                return
            self._take_in(list(self.journal.events(after=self.state.seq)), self.journal)

    def _take_in(self, events: list[Event], contents: Contents) -> None:
        # Policies first: what cannot be compiled here raises, again at every call, and leaves the state behind it.
        for event in events:
            if event.kind in POLICY_EVENTS:
                self.versions.fold(event, self.journal.source)
        if any(event.kind == "purge" for event in events):
            self._fold_anew()
        else:
            self.state.fold(events, contents)

    def _fold_anew(self) -> None:
        """After a purge: the journal is another one than that which the state was folded from."""
        fresh, old = State(), self.state
        fresh.fold(self.journal.events(), self.journal)
        versions = VersionLog()  # a reason may have quoted what is gone
        for event in self.journal.events(kinds=POLICY_EVENTS):
            versions.fold(event, self.journal.source)
        # whoever keeps something by these numbers must not take the new state for the old
        fresh.generation += old.generation + 1
        fresh.changes += old.changes + 1
        self.state, self._snapshot_at, self._purged = fresh, 0, last_purge(self.journal)
        self.versions = versions

    def _end_purge(self) -> None:
        """Go on with a purge that another process did not live to end."""
        if self.journal.read_only or isinstance(self.journal, Until) or not self.journal.meta(PURGING):
            return
        try:
            with self.derived.held(PURGE_TIMEOUT):
                end_purge(self.journal, now=self.clock())
        except LabError as error:
            warnings.warn(f"A purge of {self.where} is not ended: {error}", stacklevel=5)

    def refresh_index(self) -> None:
        """Before a search: take up the index that fits, if there are so many memories that one is used."""
        if len(self.state) > EXACT_UP_TO:
            self.neighbours.refresh(self.state.vectors)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Transaction]:
        """The writer's lock and a transaction on a state that has seen every event; its own is folded at the end."""
        with self.mutex:
            with self.journal.write(durable=durable) as tx:
                if tx.head != self.state.seq:
                    self.fold()
                yield tx
            # The state has seen all up to this write; what others have written since comes after it.
            self._take_in(tx.events, _Written(tx, self.journal))

    # -- snapshots --------------------------------------------------------------------------------------------

    def snapshot(self) -> None:
        """Write the folded state down, so that the next opening is quick."""
        if self.folder is None or self.journal.read_only:
            return
        # a purge waits until this is written, and then removes it
        with self.mutex, self.derived.held(PURGE_TIMEOUT):
            self.fold()
            save_snapshot(self.state, self.folder / "snapshots")
            self._snapshot_at = len(self.state)

    def snapshot_if_due(self, *, after: int = _SNAPSHOT_EVERY) -> None:
        if self.folder is not None and len(self.state) - self._snapshot_at >= after:
            self.snapshot()

    def close(self) -> None:
        with self.mutex:
            if self.journal.closed:
                return
            try:
                self.snapshot_if_due(after=_SNAPSHOT_EVERY // 10)
            finally:
                self.neighbours.close()
                self.journal.close()

    def _restored(self) -> State:
        found = latest_snapshot(self.folder / "snapshots") if self.folder is not None else None
        if found is None:
            return State()
        try:
            state = load_snapshot(found)
        except DamagedLab as error:
            warnings.warn(f"{error} It is rebuilt from the journal, which takes longer.", stacklevel=5)
            return State()
        # A journal restored from an older copy is the truth; what a later snapshot knew is not. (What one from before a
        # purge knew goes when that event is folded.)
        return state if state.seq <= self.journal.head else State()

    # -- slates -----------------------------------------------------------------------------------------------

    def slates(self, *, lab: Any = None) -> Slates:
        """The log of all recalls: sealed segments, and from the journal what came after them."""
        log = self._sealed_slates()
        tail = [decode(blob, decision=seq) for seq, blob in self.journal.slates(log.sealed if log else 0)]
        if log is not None and len(tail) >= _SEAL_EVERY and not self.journal.read_only:
            with self.mutex, self.journal.write():
                # read again under the lock: a purge may have been there since
                log = self._sealed_slates() or log
                log.append([decode(blob, decision=seq) for seq, blob in self.journal.slates(log.sealed)])
            tail = []
        rows = [{"at": event.at, **event.body} for event in self.journal.events(kinds=("feedback",))]
        feedback = pl.DataFrame(rows, schema=_FEEDBACK).with_columns(pl.col("at").cast(pl.Datetime("us", "UTC")))
        return Slates.of_log(log, tail, feedback.rename({"memory": "memory_id"}), lab=lab)

    def _sealed_slates(self) -> SlateLog | None:
        if self.folder is None:
            return None
        log = SlateLog(self.folder / "slates")
        if log.sealed:
            last = [decode(blob, decision=seq) for seq, blob in self.journal.slates(log.sealed - 1, upto=log.sealed)]
            if not last or not log.agrees(last[0]):
                # A journal restored from an older copy has gone another way; it has every slate that counts.
                if self.journal.read_only:
                    return None
                log.clear()
        return log

    # -- embedders --------------------------------------------------------------------------------------------

    def _match_embedder(self, *, reembed: bool) -> None:
        if not self.state.fingerprint:
            if self.journal.read_only:
                raise ReadOnlyLab(f"{self.where} is empty: a read-only lab cannot be started.")
            with self.writing() as tx:
                if not self.state.fingerprint:
                    tx.event("embedder", self._embedder_body(), at=self.clock())
        if self.state.fingerprint == self.embedder.fingerprint:
            return
        if not reembed:
            raise EmbedderMismatch(
                f"{self.where} holds vectors of {self.state.embedder_name} [{self.state.fingerprint[:12]}], and was "
                f"opened with {self.embedder.name} [{self.embedder.fingerprint[:12]}]. Open it with the embedder "
                "that wrote it, or embed every memory anew with memlab.open(path, embedder=..., reembed=True)."
            )
        with self.writing() as tx:
            count, speakers = len(self.state), self.state.names["speaker"]
            for first in range(1, count + 1, _SNAPSHOT_EVERY):
                ids = range(first, min(first + _SNAPSHOT_EVERY, count + 1))
                texts = self.journal.texts(ids)
                said = [as_said(text, speakers.at(id - 1)) for id, text in zip(ids, texts, strict=True)]
                tx.vectors(first, self.embedder.fingerprint, self.embedder.encode(said))
            tx.event("embedder", self._embedder_body(), at=self.clock())

    def _embedder_body(self) -> dict[str, Any]:
        return {"fingerprint": self.embedder.fingerprint, "name": self.embedder.name, "dim": self.embedder.dim}
