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
from memlab.errors import DamagedLab, EmbedderMismatch, ReadOnlyLab
from memlab.index import EXACT_UP_TO, Neighbours
from memlab.journal import Event, Journal, Transaction
from memlab.memory import Contents, State, as_said, latest_snapshot, load_snapshot, save_snapshot
from memlab.policies import POLICY_EVENTS, VersionLog
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

    def __init__(self, tx: Transaction, journal: Journal) -> None:
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
    ) -> None:
        self.folder, self.embedder, self.clock = folder, embedder, clock
        self.mutex = threading.RLock()
        self.journal = Journal.open(folder, read_only=read_only)
        self.versions = VersionLog()
        try:
            self.state = self._restored()
            self._snapshot_at = len(self.state)
            for event in self.journal.events(kinds=POLICY_EVENTS, upto=self.state.seq):
                self.versions.fold(event, self.journal.source)
            self.fold()
            self._match_embedder(reembed=reembed and not read_only)
            beside = None if folder is None else folder / "neighbours"
            self.neighbours = Neighbours(beside, self.state.vectors, kind=index, writable=not read_only)
        except BaseException:
            self.journal.close()
            raise

    @property
    def where(self) -> str:
        return "in memory" if self.folder is None else self.folder.name

    def fold(self) -> None:
        """Take in what has happened since, whoever wrote it; some microseconds when nothing has."""
        with self.mutex:
            if self.journal.head == self.state.seq:
                return
            self._take_in(list(self.journal.events(after=self.state.seq)), self.journal)

    def _take_in(self, events: list[Event], contents: Contents) -> None:
        # Policies first: what cannot be compiled here raises, again at every call, and leaves the state behind it.
        for event in events:
            if event.kind in POLICY_EVENTS:
                self.versions.fold(event, self.journal.source)
        self.state.fold(events, contents)

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
            # The state has seen all up to this write, and what others have written since comes after it.
            if tx.head == self.state.seq:
                self._take_in(tx.events, _Written(tx, self.journal))
            else:
                self.fold()

    # -- snapshots --------------------------------------------------------------------------------------------

    def snapshot(self) -> None:
        """Write the folded state down, so that the next opening is quick."""
        if self.folder is None or self.journal.read_only:
            return
        with self.mutex:
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
        # A journal restored from an older copy is the truth; what a later snapshot knew is not.
        return state if state.seq <= self.journal.head else State()

    # -- slates -----------------------------------------------------------------------------------------------

    def slates(self, *, lab: Any = None) -> Slates:
        """The log of all recalls: sealed segments, and from the journal what came after them."""
        log = self._sealed_slates()
        tail = [decode(blob, decision=seq) for seq, blob in self.journal.slates(log.sealed if log else 0)]
        if log is not None and len(tail) >= _SEAL_EVERY and not self.journal.read_only:
            with self.mutex, self.journal.write():
                log.append(tail)
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
