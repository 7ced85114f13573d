"""The store: the journal of a lab and its folded state, kept in step.

Every verb of a lab reads and writes through its store.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import islice
from logging import DEBUG, INFO
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import polars as pl

from memlab.errors import (
    DamagedLab,
    DamageWarning,
    EmbedderMismatch,
    LabBusy,
    LabError,
    MemlabError,
    NotALab,
    ReadOnlyLab,
    UnknownName,
)
from memlab.kernel.base.arrays import Components, Ints
from memlab.kernel.base.clock import INSTANT, Clock
from memlab.kernel.base.logs import LOGGER
from memlab.kernel.base.scratch import return_memory
from memlab.kernel.base.threads import ThreadLock, free_interrupted, watch_interrupts
from memlab.kernel.embedding import SAMPLE, Embedder, measure_scale
from memlab.kernel.index import EXACT_UP_TO, Neighbours
from memlab.kernel.journal import (
    RESTORE,
    Body,
    Event,
    Journal,
    JournalView,
    KeySource,
    RepairEvent,
    Transaction,
    WriterLock,
    digest_parts,
)
from memlab.kernel.policies import VersionLog
from memlab.kernel.slates import SealedLog, Slates, read_slates, seal
from memlab.kernel.state import (
    Contents,
    OldSnapshot,
    Projection,
    Snapshot,
    State,
    add_prefix,
    hash_paths,
    latest_snapshot,
    load_snapshot,
    policy_events,
    remove_snapshot,
    save_snapshot,
    undeclared_fields,
)
from memlab.kernel.storage.backup_folders import BACKUPS
from memlab.kernel.storage.purging import DERIVED, PURGE_TIMEOUT, PURGING, end_purge, last_purge

_SNAPSHOT_EVERY = 20_000
"""The number of new memories after which a snapshot is written. Folding as many takes about a second."""

_SEAL_EVERY = 500
"""The number of slates in a segment. Sealing them takes 0.4 s, and decoding as many unsealed slates takes 50 ms."""

_SEAL_AT = 2 * _SEAL_EVERY
"""The number of unsealed slates at which a recall seals them, unless reading the log has sealed them before."""

_EMBED_PIECE = 256
"""The number of texts that are embedded between two checks whether to stop."""

_EMBED_AT_ONCE, _EMBED_BATCHES = 1_024, 64
"""The minimum number of memories whose vectors are replaced in one transaction, and the number of transactions for a
large lab. All vectors are reread after each transaction, 25 MB for 100,000 memories."""

# The columns of the frame of feedback events from which the log is built, with their types.
_FEEDBACK = {
    "decision": pl.Int64,
    "memory": pl.Int64,
    "outcome": pl.String,
    "reward": pl.Float64,
    "source": pl.String,
    "confidence": pl.Float64,
    "at": pl.Int64,
}


_CALIBRATED_AT = (1_000, 100)
"""Numbers of memories from which an embedder is calibrated. The quality of 100 short turns is known to a fifth, of 200
spread over 1,000 memories to a seventh."""

_CALIBRATION_LENGTH = 20
"""Minimum characters of a text in a calibration. The halves of shorter texts are single words."""


def _fold(
    events: Iterable[Event],
    contents: _Contents,
    state: State,
    versions: VersionLog,
    *,
    strict: bool = False,
) -> None:
    """Apply new events to a state and to the version log.

    The state and the version log must have the same earlier events. With ``strict``, an error of an
    extension's projection is raised.
    """
    decided = policy_events()

    def passing() -> Iterator[Event]:
        for event in events:
            if event.kind in decided:
                versions.fold(event, contents.source)
            yield event

    few = isinstance(events, list) and not any(event.kind in decided for event in events)
    try:
        state.fold(events if few else passing(), contents, strict=strict)
    except UnknownName as error:
        raise DamagedLab(
            f"The journal lacks content that an event refers to: {error} {RESTORE}"
        ) from error
    if len(state.vectors) < state.rows:
        raise DamagedLab(
            f"The vectors of memories {len(state.vectors) + 1:,} to {len(state):,} are missing. {RESTORE}"
        )


def _loaded(path: Path, projections: Sequence[type[Projection]]) -> Snapshot:
    """Load a snapshot, or a newer snapshot that another process has written meanwhile."""
    for _ in range(3):
        try:
            return load_snapshot(path, projections)
        except DamagedLab:
            newest = latest_snapshot(path.parent)
            if newest is None or newest == path:
                break
            path = newest
    return load_snapshot(path, projections)


def _check_declared(tx: Transaction) -> None:
    """Raise LabError if an event body has an undeclared field.

    Views of other viewers and purges would miss such a field.
    """
    for event in tx.events:
        unknown = undeclared_fields(event.kind, event.body)
        if unknown:
            raise LabError(
                f"{unknown[0]} is not declared, so purges and views of other viewers cannot handle it. "
                f'Declare it in the EventType of "{event.kind}".'
            )


def _hash_segment(journal: Journal, upto: int) -> str:
    """Hash the stored segment of recall logs that ends at the recall ``upto``."""
    return digest_parts(journal.segment_parts(upto).items())


class _Contents(Contents, Protocol):
    """A source of texts, vectors and sources of policies."""

    def source(self, hash: str) -> str: ...


class _Written:
    """The content of a running transaction, which is served from memory.

    All other content is read from the journal.
    """

    def __init__(self, tx: Transaction, journal: Journal | JournalView) -> None:
        self._tx, self._journal = tx, journal

    def texts(self, ids: Sequence[int]) -> list[str]:
        own = self._tx.texts(ids) if isinstance(ids, range) else None
        return self._journal.texts(ids) if own is None else own

    def vectors(self, fingerprint: str, *, after_id: int = 0) -> Iterator[tuple[int, Components]]:
        if after_id + 1 < self._tx.next_id and (own := self._tx.vectors_of(fingerprint)):
            return _replaced(self._journal.vectors(fingerprint, after_id=after_id), own, after_id)
        fresh = self._tx.vectors_from(fingerprint, after_id + 1)
        return (
            self._journal.vectors(fingerprint, after_id=after_id) if fresh is None else iter(fresh)
        )

    def source(self, hash: str) -> str:
        own = self._tx.source_of(hash)
        return self._journal.source(hash) if own is None else own


def _replaced(
    stored: Iterable[tuple[int, Components]],
    own: Sequence[tuple[int, Components]],
    after_id: int,
) -> Iterator[tuple[int, Components]]:
    """Yield the vectors after ``after_id``, with new vectors in place of stored ones.

    The result ends before the first id that has no vector.
    """
    blocks = [*stored, *own]
    count = max(first + len(matrix) - 1 for first, matrix in blocks) - after_id
    whole, present = (
        np.zeros((max(count, 0), own[0][1].shape[1]), dtype=np.int8),
        np.zeros(max(count, 0), dtype=np.bool_),
    )
    for first, matrix in blocks:
        begin = first - 1 - after_id
        cut = max(0, -begin)
        whole[begin + cut : begin + len(matrix)] = matrix[cut:]
        present[begin + cut : begin + len(matrix)] = True
    yield after_id + 1, whole if present.all() else whole[: int(np.argmin(present))]


# One thread seals for all labs and threads of a process: Polars keeps the peak of each thread that it works for. After a
# fork the child has a thread of its own.
@lru_cache(maxsize=1)
def _sealer(_process: int) -> ThreadPoolExecutor:
    """Return the thread that seals slates in this process."""
    return ThreadPoolExecutor(1, thread_name_prefix="memlab-seal")


class Store:
    """The journal of a lab, with the state and the version log folded from it.

    ``state`` and ``versions`` may be read only within ``reading`` or ``writing``. Several threads and processes
    may each have a store on the same folder.

    A write is applied to the state before it is committed, so an event that cannot be applied never enters the journal.
    A mark is set while state and journal may differ, and cleared when they are known to agree. A call that finds the
    mark set folds the journal again from the last sound snapshot. Therefore an interrupt or an error at any moment
    leaves no wrong state.
    """

    strict: ClassVar[bool] = False
    """Whether events with undeclared fields are refused. The tests set this to True for all stores."""

    def __init__(
        self,
        folder: Path | None,
        embedder: Embedder,
        clock: Clock,
        *,
        read_only: bool = False,
        create: bool = True,
        reembed: bool | Literal["background"] = False,
        index: str = "annoy",
        projections: Sequence[type[Projection]] = (),
        mend: RepairEvent | None = None,
        view: JournalView | None = None,
        key: KeySource | None = None,
    ) -> None:
        """Open the lab at ``folder``, or a lab in memory if ``folder`` is None.

        ``projections`` are folded with the state. ``mend`` corrects events of the journal's first format. ``view`` is
        the journal of a lab of the past. With a ``view``, the store opens and writes no files.
        """
        self.projections = tuple(projections)
        self.folder, self._embedder, self.clock = folder, embedder.plain, clock
        self.mutex = ThreadLock()
        watch_interrupts(self)
        self.journal: Journal | JournalView = (
            Journal.open(folder, create=create, read_only=read_only, mend=mend, key=key)
            if view is None
            else view
        )
        self.derived = WriterLock(None if folder is None else folder / DERIVED)
        self._marked = False
        """Whether a fold or a write has begun, so that state and journal may differ."""
        self._is_reading = False
        """Whether a thread is reading the state, which may fill caches of the state."""
        self._tried = 0
        """The number in ``_CALIBRATED_AT`` at which this store last tried to calibrate the embedder."""
        self._waiting: int | None = None
        """The number of unsealed slates, or None until this store logs a recall."""
        self._sound: dict[int, str] = {}
        """The digests of the segments that were verified. They are cached, because verifying reads the whole segment."""
        self._opened = False
        """Whether the vectors were checked to be of this embedder. Another process may change the embedder later."""
        try:
            if isinstance(self.journal, Journal):
                self.journal.hash_paths = hash_paths
            if self.journal.lost:
                LOGGER.warning("%s: %s", self.where, self.journal.lost)
                warnings.warn(
                    f"{self.where}: {self.journal.lost}. `memlab upkeep check` shows what is left; `memlab upkeep "
                    "restore` restores a backup, or accepts the lab as it is.",
                    DamageWarning,
                    stacklevel=4,
                )
            self.state, self.versions = State(self.projections), VersionLog()
            self._refold()
            self._end_purge()
            self._sweep()
            self._match_embedder(reembed=not read_only and reembed)
            self._opened = True
            secret = self.journal.vault is not None
            indexes = None if folder is None or secret else folder / "neighbours"
            self.neighbours = Neighbours(
                indexes,
                self.state.vectors,
                kind=index,
                writable=not self.journal.read_only,
                secret=secret,
            )
            if view is None:
                LOGGER.info("%s: opened, %d memories", self.where, len(self.state))
        except BaseException as error:
            free_interrupted(
                error
            )  # the lock of an interrupted write would prevent closing the journal
            self.journal.close()
            raise

    def as_of(self, view: JournalView, clock: Clock) -> Store:
        """Return a read-only store of an earlier state of the lab."""
        return Store(None, self._embedder, clock, projections=self.projections, view=view)

    @property
    def embedder(self) -> Embedder:
        """The embedder, with its calibration on this lab if one is recorded."""
        scale = self.state.scale
        return self._embedder if scale is None else self._embedder.scaled(scale)

    @property
    def where(self) -> str:
        """The name of the lab, for error messages."""
        if isinstance(self.journal, JournalView):
            return f"as of event {self.journal.head:,}"
        return "in memory" if self.folder is None else self.folder.name

    def free(self) -> None:
        """Release the mutex that an interrupted call of this thread still holds.

        The state is folded again at the next use.
        """
        if self.mutex.owned:
            self._marked = True
            self.mutex.free()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the mutex of the store within a ``with`` block."""
        # The flag is read before the mutex is taken, so that a nested block is not mistaken for an interrupted call.
        first = not self.mutex.owned
        with self.mutex.hold():
            self._begin(first)
            yield

    def _begin(self, first: bool) -> None:
        """Mark the state for a rebuild if the last reader was interrupted.

        ``first`` is whether this thread is not within another access of the store.
        """
        if first and self._is_reading:
            self._marked, self._is_reading = True, False

    @contextmanager
    def reading(self) -> Iterator[State]:
        """Provide the current state within a ``with`` block.

        No other thread reads or changes the state within the block.
        """
        first = not self.mutex.owned
        with self.mutex.hold():
            self._begin(first)
            self._follow()
            self._check_embedder()
            before, self._is_reading = self._is_reading, True
            try:
                yield self.state
            except MemlabError:
                self._is_reading = before
                raise
            self._is_reading = before

    def fold(self) -> None:
        """Fold the events that any process has added to the journal.

        This takes microseconds if there are no new events.
        """
        with self.exclusive():
            self._follow()

    def _follow(self) -> None:
        """Apply new events to the state; rebuild it first if it may be inconsistent."""
        rewritten = (
            isinstance(self.journal, JournalView) and last_purge(self.journal) != self._purged
        )
        if (
            self._marked or rewritten
        ):  # in a lab of the past, the event of a later purge is not visible
            self._refold()
        if self.journal.head != self.state.seq:
            events = list(self.journal.events(after=self.state.seq))
            if any(event.kind == "purge" for event in events):
                self._refold()
            else:
                self._marked = True
                _fold(events, self.journal, self.state, self.versions)
                self._marked = False

    def _refold(self) -> None:
        """Rebuild the state from a sound snapshot, or from the first event if there is no such snapshot."""
        self._marked = True
        state, versions = self._restored()
        _fold(self.journal.events(after=state.seq), self.journal, state, versions)
        self._adopt(state, versions)
        self._marked = False

    def _adopt(self, state: State, versions: VersionLog) -> None:
        """Replace the state and the version log.

        The state's counters of changes continue to grow, so that caches keyed by them are not used with the new state.
        """
        state.generation += self.state.generation + 1
        state.changes += self.state.changes + 1
        self.state, self.versions = state, versions
        self._purged = last_purge(self.journal)

    def _end_purge(self) -> None:
        """Complete a purge that another process began and did not complete."""
        if (
            self.journal.read_only
            or isinstance(self.journal, JournalView)
            or not self.journal.meta(PURGING)
        ):
            return
        try:
            with self.derived.hold(PURGE_TIMEOUT):
                if self.journal.meta(
                    PURGING
                ):  # the previous holder of the lock may have completed it
                    end_purge(self.journal, now=self.clock())
        except LabError as error:
            warnings.warn(f"A purge of {self.where} is not complete: {error}", stacklevel=5)

    def refresh_index(self) -> None:
        """Load the newest nearest-neighbour index if the lab has enough memories.

        While memories wait for vectors, each batch of vectors changes them. So the index is built only after the last
        batch.
        """
        if self.state.rows > EXACT_UP_TO and not self.state.unembedded:
            self.neighbours.refresh(self.state.vectors)

    @contextmanager
    def writing(
        self, *, durable: bool = True, verify: Callable[[State, State], None] | None = None
    ) -> Iterator[Transaction]:
        """Hold the writer's lock and provide a transaction on the current state.

        The events are applied to the state before the commit. If an event cannot be applied, its error is raised and
        nothing is written. If the write changes earlier rows of the journal, the whole changed journal is folded again
        before the commit. ``verify`` is then called with the states before and after.
        """
        # The mutex is taken before the journal's lock, and readers take only the mutex. So two threads cannot deadlock.
        first = not self.mutex.owned
        with self.mutex.hold():
            self._begin(first)
            with self.journal.write(durable=durable) as tx:
                if self._marked or tx.head != self.state.seq:
                    self._follow()
                self._check_embedder()
                if tx.next_id != self.state.rows + 1:
                    raise DamagedLab(
                        f"{self.where} has {len(self.state):,} memories, but the next text would have the id "
                        f"{tx.next_id:,}. {RESTORE}"
                    )
                yield tx
                if self.strict:
                    _check_declared(tx)
                self._marked = True
                rewrites = tx.rewrites
                if rewrites:
                    after, versions = State(self.projections), VersionLog()
                    preview = tx.preview()
                    _fold(preview.events(), preview, after, versions)
                    if verify is not None:
                        verify(self.state, after)
                else:
                    self.settle(tx)
            if rewrites:
                self._adopt(after, versions)
                self._snapshot_at = 0
            self._marked = False
            logged = tx.slates
        level = INFO if durable else DEBUG  # recalls, the frequent writes, are not durable
        if LOGGER.isEnabledFor(level):
            LOGGER.log(level, "%s: %s, event %d", self.where, tx.kinds, tx.last[0])
        if logged and self.folder is not None:
            self._waiting = self._unsealed() if self._waiting is None else self._waiting + logged
            if self._waiting >= _SEAL_AT:
                self.seal_if_due()

    def settle(self, tx: Transaction) -> None:
        """Apply to the state the events that a transaction has recorded so far.

        Later events of the transaction can then be decided with the new state.

        If the transaction fails afterwards, the state is folded again from the journal at its next use.
        """
        self._marked = True
        _fold(
            tx.events_after(self.state.seq),
            _Written(tx, self.journal),
            self.state,
            self.versions,
            strict=True,
        )

    # -- Snapshots --------------------------------------------------------------------------------------------

    def snapshot(self, *, timeout: float = PURGE_TIMEOUT) -> None:
        """Write a snapshot of the state, so that the lab opens quickly.

        Raises LabBusy after ``timeout`` seconds.
        """
        if self.folder is None or self.journal.read_only:
            return
        # A purge waits until the snapshot is written, and then removes it. Writing seals the edges and so changes the
        # state. Therefore the state's lock is needed too.
        with self.reading(), self.derived.hold(timeout):
            seq = self.state.seq
            decided = [
                (event.seq, event.at, event.kind, event.body)
                for event in self.journal.events(kinds=policy_events(), upto=seq)
            ]
            lab, chain = self.journal.identity, self.journal.chain(seq) or b""
            save_snapshot(
                self.state, self.folder / "snapshots", lab=lab, chain=chain, decided=decided
            )
            self._snapshot_at = len(self.state)

    def snapshot_if_due(self, *, after: int = _SNAPSHOT_EVERY) -> None:
        """Write a snapshot if ``after`` or more memories were added since the last snapshot.

        Memories are durable without a snapshot, so a failed write is only reported as a DamageWarning.
        """
        if self.folder is not None and self.state.rows - self._snapshot_at >= after:
            try:
                self.snapshot(timeout=0.0)
            except LabBusy:
                pass  # another process writes a derived file; the next write tries again
            except LabError as error:
                warnings.warn(f"{self.where}: {error}", DamageWarning, stacklevel=4)

    def close(self) -> None:
        """Write a snapshot if it is due, and close all files."""
        with self.exclusive():
            if self.journal.closed:
                return
            try:
                self.snapshot_if_due(after=_SNAPSHOT_EVERY // 10)
            finally:
                self.neighbours.close()
                self.journal.close()
                LOGGER.info("%s: closed", self.where)

    def _restored(self) -> tuple[State, VersionLog]:
        """Return the state and version log of the newest sound snapshot of this journal.

        Without a sound snapshot, both are empty.
        """
        self._snapshot_at = 0
        path = latest_snapshot(self.folder / "snapshots") if self.folder is not None else None
        if path is None:
            return State(self.projections), VersionLog()
        try:
            snapshot = _loaded(path, self.projections)
            if (snapshot.lab, snapshot.chain) != (
                self.journal.identity,
                self.journal.chain(snapshot.state.seq),
            ):
                raise DamagedLab(
                    f"The snapshot {path.name} cannot be used: it belongs to another history than the journal."
                )
        except OldSnapshot:
            self._remove(path)
            return State(self.projections), VersionLog()
        except DamagedLab as error:
            # During a purge in another process this is expected, and that process removes the snapshot.
            if not self.journal.meta(PURGING):
                warnings.warn(
                    f"{self.where}: {error} It is rebuilt from the journal, which takes longer.",
                    DamageWarning,
                    stacklevel=5,
                )
            self._remove(path)
            return State(self.projections), VersionLog()
        versions = VersionLog()
        for event in snapshot.decided:
            versions.fold(Event(*event), self.journal.source)
        self._snapshot_at = len(snapshot.state)
        return snapshot.state, versions

    def _remove(self, snapshot: Path) -> None:
        """Remove the folder of a snapshot that cannot be used.

        If the removal fails, the next process that opens the lab warns again.
        """
        if not self.journal.read_only:
            with suppress(LabBusy), self.derived.hold(0.0):
                remove_snapshot(snapshot)

    def _sweep(self) -> None:
        """Remove unfinished files that a dead or interrupted process has left."""
        if self.folder is None or self.journal.read_only:
            return
        # This folder is a cache of earlier versions, which duplicates content of the journal.
        if (self.folder / "slates").exists():
            with suppress(LabBusy), self.derived.hold(0.0):
                shutil.rmtree(self.folder / "slates", ignore_errors=True)
        left = [
            draft
            for name in ("snapshots", BACKUPS)
            for draft in (self.folder / name).glob(".draft-*")
        ]
        left += self.folder.glob("journal.*.new*")
        if isinstance(self.journal, Journal) and self.journal.vault is None:
            left += self.folder.glob("journal.enc*")  # of an interrupted encryption or decryption
        if left:
            # If the lock is busy, another process is writing such a file at this moment.
            with suppress(LabBusy), self.derived.hold(0.0), self.journal.write():
                for draft in left:
                    if draft.is_dir():
                        shutil.rmtree(draft, ignore_errors=True)
                    else:
                        draft.unlink(missing_ok=True)

    # -- Slates -----------------------------------------------------------------------------------------------

    def slates(self, *, lab: Any = None) -> Slates:
        """Return the log of all recalls: sealed segments, then unsealed slates.

        Sealed segments come first, then the unsealed slates of the journal.

        A damaged segment is left out, with the feedback on its recalls. A warning and the notes of the log report this.
        """
        journal, notes = self.journal, list[str]()
        log, after, missing = None, 0, list[tuple[int, int]]()
        if isinstance(journal, Journal):
            self.seal_if_due()
            sound, missing = self._segments(journal, notes)
            log, after = SealedLog(journal, sound), max(journal.segments(), default=0)
            if log.thinned:
                notes.append(
                    f"{log.thinned:,} recalls were thinned by lab.upkeep.thin: they have no features."
                )
        tail = read_slates(journal, after)
        rows = [{"at": event.at, **event.body} for event in journal.events(kinds=("feedback",))]
        feedback = pl.DataFrame(rows, schema=_FEEDBACK).with_columns(pl.col("at").cast(INSTANT))
        for start, end in missing:
            judged = pl.col("decision").is_between(start, end, closed="right")
            feedback = feedback.filter(pl.col("decision").is_null() | ~judged)
        return Slates.of_log(
            log, tail, feedback.rename({"memory": "memory_id"}), lab=lab, notes=notes
        )

    def _segments(
        self, journal: Journal, notes: list[str]
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ends of sound segments, and the ranges of recalls with lost slates.

        A range is a pair (after, upto) of event numbers, and gets a note in ``notes``. Raises DamagedLab if
        logged recalls are missing.
        """
        sound, gone, after = [], [], 0
        for upto, digest in journal.segments().items():
            if (
                digest is not None
                and self._sound.get(upto) != digest
                and _hash_segment(journal, upto) == digest
            ):
                self._sound[upto] = digest
            if digest is not None and self._sound.get(upto) == digest:
                sound.append(upto)
            else:
                gone.append((after, upto))
                notes.append(
                    f"The recalls after event {after:,} and up to {upto:,} were dropped by lab.upkeep.thin."
                )
            if digest is not None and sound[-1:] != [upto]:
                notes[-1] = (
                    f"The sealed slates after event {after:,} and up to {upto:,} were changed since they were written. "
                    "These slates are lost, unless `memlab upkeep check` finds them in a backup."
                )
                warnings.warn(f"{self.where}: {notes[-1]}", DamageWarning, stacklevel=4)
            after = upto
        missing = [
            recall
            for recall in journal.without_slate()
            if not any(start < recall <= end for start, end in gone)
        ]
        if missing:
            logged = journal.count("recall")
            raise DamagedLab(
                f"{self.where}: {len(missing):,} of {logged:,} logged recalls are missing. {RESTORE}"
            )
        return sound, gone

    def seal(self, *, every: int | None = None) -> int:
        """Seal slates into segments of ``every`` slates; return the number of sealed slates.

        One transaction writes a segment and the event with its digest, and removes the slates. So each recall has
        exactly one slate at every moment. A lab in memory seals nothing.
        """
        every, count = _SEAL_EVERY if every is None else every, 0
        if self.folder is not None and not self.journal.read_only:
            while self._seal_segment(every):
                count += every
        self._waiting = None
        if count:
            return_memory()
        return count

    def _seal_segment(self, every: int) -> bool:
        """Seal the oldest ``every`` unsealed slates; return False if fewer slates are unsealed."""
        with self.writing() as tx:
            after = max(self.journal.segments(), default=0)
            slates = list(islice(read_slates(self.journal, after), every))
            if len(slates) < every:
                return False
            try:
                sealed = _sealer(os.getpid()).submit(seal, slates, after=after).result()
            except RuntimeError:  # the interpreter is ending and starts no thread
                sealed = seal(slates, after=after)
            tx.segment(sealed.upto, sealed.parts, sealed.questions)
            tx.event("seal", sealed.body, at=self.clock())
        return True

    def _unsealed(self) -> int:
        """Return the number of recall logs that are not yet packed into a segment."""
        return self.journal.unsealed() if isinstance(self.journal, Journal) else 0

    def seal_if_due(self) -> None:
        """Seal slates if there are enough unsealed slates for a segment.

        Slates are durable without sealing, so a failed write is only reported as a DamageWarning.
        """
        if self._unsealed() >= _SEAL_EVERY:
            try:
                self.seal()
            except LabBusy:
                pass  # another process is writing; the next recall tries again
            except LabError as error:
                warnings.warn(
                    f"{self.where}: slates are not sealed. {error}", DamageWarning, stacklevel=4
                )

    # -- Embedders --------------------------------------------------------------------------------------------

    def embed_waiting(self, *, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Embed the newest memories that wait for vectors, in one transaction.

        Returns whether memories still wait for vectors.

        The texts are embedded before the writer's lock is taken. If another process embeds or purges memories in the
        meantime, the vectors are discarded. ``stopped`` is called between batches. If it returns True, the vectors
        computed so far are written.
        """
        with self.reading() as state:
            waiting, rows, purge = state.unembedded, state.rows, last_purge(self.journal)
        first, blocks = waiting, list[Components]()
        while (
            first
            and waiting - first < max(_EMBED_AT_ONCE, rows // _EMBED_BATCHES)
            and not stopped()
        ):
            ids = range(max(0, first - _EMBED_PIECE) + 1, first + 1)
            with self.reading() as state:
                texts = self._embedded_texts(state, ids)
            blocks.insert(0, self.embedder.encode(texts))
            first = ids.start - 1
        if not blocks:
            return bool(waiting)
        with self.writing() as tx:
            if (self.state.unembedded, last_purge(self.journal)) == (waiting, purge):
                tx.vectors(first + 1, self.embedder.fingerprint, np.concatenate(blocks))
                tx.event("embedder", self._embedder_body(waiting=first), at=self.clock())
        with self.reading() as state:
            return bool(state.unembedded)

    def _embedded_texts(self, state: State, ids: range) -> list[str]:
        """Return texts with their speakers or titles, in the form in which they are embedded."""
        return list(map(add_prefix, self.journal.texts(ids), state.prefixes(id - 1 for id in ids)))

    def _check_embedder(self) -> None:
        """Raise EmbedderMismatch if another process has changed the embedder.

        Scores must not mix the vectors of two models.
        """
        if self._opened and self.state.fingerprint != self.embedder.fingerprint:
            raise EmbedderMismatch(
                f"{self.where} was embedded again by another process, with {self.state.embedder_name} "
                f"[{self.state.fingerprint[:12]}], and is open here with {self.embedder.name} "
                f"[{self.embedder.fingerprint[:12]}]. Close it, and open it with that embedder."
            )

    def _match_embedder(self, *, reembed: bool | Literal["background"]) -> None:
        """Check that the stored vectors come from this embedder, or embed all memories again.

        An empty lab records the embedder. If the vectors are of another embedder, memories are embedded now
        (``reembed`` is True) or later ("background"); with False, EmbedderMismatch is raised.
        """
        # The embedder is recorded as an event, so the first process that opens a new lab must be able to write.
        if not self.state.fingerprint:
            if self.state.seq:  # the first event of every lab is its embedder
                raise NotALab(
                    f"{self.where} is a journal but not a lab, for example a log of memlab.record. Read such a log with "
                    "memlab.read_record, or give another path."
                )
            if self.journal.read_only:
                raise ReadOnlyLab(f"{self.where} is empty. Open it for writing once to start it.")
            with self.writing() as tx:
                if not self.state.fingerprint:
                    tx.event("embedder", self._embedder_body(), at=self.clock())
        if self.state.fingerprint == self.embedder.fingerprint:
            while reembed is True and self.state.unembedded:
                self.embed_waiting()
            return
        if not reembed:
            raise EmbedderMismatch(
                f"{self.where} holds vectors of {self.state.embedder_name} [{self.state.fingerprint[:12]}], and was "
                f"opened with {self.embedder.name} [{self.embedder.fingerprint[:12]}]. Open it with the embedder "
                "that wrote it, or embed every memory again with memlab.open(path, embedder=..., reembed=True), "
                'or reembed="background" to use the lab meanwhile.'
            )
        with self.writing() as tx:
            count, later = len(self.state), reembed == "background"
            for first in range(1, count + 1, _SNAPSHOT_EVERY):
                ids = range(first, min(first + _SNAPSHOT_EVERY, count + 1))
                none = np.zeros((len(ids) if later else 0, self.embedder.dim), dtype=np.int8)
                vectors = (
                    none if later else self.embedder.encode(self._embedded_texts(self.state, ids))
                )
                tx.vectors(first, self.embedder.fingerprint, vectors)
            tx.event(
                "embedder", self._embedder_body(waiting=count if later else 0), at=self.clock()
            )

    def calibrate_embedder(self, eligible: Callable[[State], Ints]) -> None:
        """Calibrate a user's embedder if the lab has enough memories and no calibration yet.

        ``eligible`` returns the rows whose texts the embedder may get.
        """
        state = self.state
        before, rows = state.scale, state.rows - state.unembedded
        wanted = next((count for count in _CALIBRATED_AT if count <= rows), 0)
        if self._embedder.is_shipped or self.journal.read_only or wanted <= self._tried:
            return
        if before is not None and before["rows"] >= wanted:
            return
        with self.reading() as state:
            chosen = state.drop_unembedded(eligible(state))
            count = min(len(chosen), SAMPLE)
            chosen = chosen[np.arange(count) * len(chosen) // max(count, 1)]
            texts = [
                add_prefix(text, prefix)
                for text, prefix in zip(
                    state.texts.to_list(chosen), state.prefixes(chosen.tolist()), strict=True
                )
                if text and len(text) >= _CALIBRATION_LENGTH
            ]
        self._tried = wanted
        if len(texts) < _CALIBRATED_AT[-1] // 2:
            return
        scale = measure_scale(self._embedder, texts) | {"rows": wanted}
        with self.writing() as tx:
            if self.state.scale == before:
                tx.event("embedder", self._embedder_body() | {"scale": scale}, at=self.clock())

    def _embedder_body(self, *, waiting: int = 0) -> Body:
        """Return the body of an event that records the embedder.

        ``waiting`` is the number of memories, from the first, that have no vector yet.
        """
        body = {
            "fingerprint": self.embedder.fingerprint,
            "name": self.embedder.name,
            "dim": self.embedder.dim,
        }
        return body | {"waiting": waiting} if waiting else body
