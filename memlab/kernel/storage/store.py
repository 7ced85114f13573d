"""The journal of a lab and what is folded from it, kept in step: every verb reads and writes through here."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import (
    DamagedLab,
    DamageWarning,
    EmbedderMismatch,
    LabBusy,
    LabError,
    MemlabError,
    ReadOnlyLab,
    UnknownName,
)
from memlab.kernel.base.clock import Clock
from memlab.kernel.base.threads import ThreadLock, free_interrupted, watch_interrupts
from memlab.kernel.embedding import Embedder
from memlab.kernel.index import EXACT_UP_TO, Neighbours
from memlab.kernel.journal import (
    RESTORE,
    Event,
    Journal,
    JournalView,
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
    hash_paths,
    latest_snapshot,
    load_snapshot,
    policy_events,
    prefix_speaker,
    remove_snapshot,
    save_snapshot,
    undeclared_fields,
)
from memlab.kernel.storage.backup_folders import BACKUPS
from memlab.kernel.storage.purging import DERIVED, PURGE_TIMEOUT, PURGING, end_purge, last_purge

__all__ = ["Store"]

_SNAPSHOT_EVERY = 20_000
"""Memories since the last snapshot after which a new one is written; folding that many takes about a second."""

_SEAL_EVERY = 500
"""Slates of a segment: sealing that many takes .4 s, and decoding that many that are not sealed 50 ms."""

_SEAL_AT = 2 * _SEAL_EVERY
"""Slates that wait when a recall seals them, where nobody has asked for the log meanwhile."""

_EMBED_PIECE = 256
"""Texts that are embedded between two questions whether to stop."""

_EMBED_AT_ONCE, _EMBED_BATCHES = 1_024, 64
"""Memories at least that get their new vectors in one transaction, and how many transactions a large lab takes: after
each the vectors are read anew, 25 MB for 100,000 memories."""

_FEEDBACK = {
    "decision": pl.Int64,
    "memory": pl.Int64,
    "outcome": pl.String,
    "reward": pl.Float64,
    "source": pl.String,
    "confidence": pl.Float64,
    "at": pl.Int64,
}


def _fold(
    events: Iterable[Event],
    contents: _Contents,
    state: State,
    versions: VersionLog,
    *,
    strict: bool = False,
) -> None:
    """Apply events that come after ``state``, whose policies ``versions`` has seen."""

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
        raise DamagedLab(f"What an event needs is not there: {error} {RESTORE}") from error
    if len(state.vectors) < state.rows:
        raise DamagedLab(
            f"The vectors of memories {len(state.vectors) + 1:,} to {len(state):,} are gone. {RESTORE}"
        )


def _loaded(path: Path, projections: Sequence[type[Projection]]) -> Snapshot:
    """A snapshot, or the one that another process has put in its place meanwhile."""
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
    """LabError where a body holds what its declaration does not know: visibility and purges would miss it."""
    for event in tx.events:
        unknown = undeclared_fields(event.kind, event.body)
        if unknown:
            raise LabError(
                f"{unknown[0]} is not declared, so neither a purge nor another viewer's view knows what it holds. "
                f'Declare it in the EventType of "{event.kind}".'
            )


def _digest(journal: Journal, upto: int) -> str:
    return digest_parts(journal.segment_parts(upto).items())


class _Contents(Contents, Protocol):
    """Where policies are found besides texts and vectors."""

    def source(self, hash: str) -> str: ...


class _Written:
    """What a write has just stored, so that it need not be read back; anything else is the journal's."""

    def __init__(self, tx: Transaction, journal: Journal | JournalView) -> None:
        self._tx, self._journal = tx, journal

    def texts(self, ids: Sequence[int]) -> list[str]:
        own = self._tx.texts(ids) if isinstance(ids, range) else None
        return self._journal.texts(ids) if own is None else own

    def vectors(
        self, fingerprint: str, *, after_id: int = 0
    ) -> Iterator[tuple[int, NDArray[np.int8]]]:
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
    stored: Iterable[tuple[int, NDArray[np.int8]]],
    own: Sequence[tuple[int, NDArray[np.int8]]],
    after_id: int,
) -> Iterator[tuple[int, NDArray[np.int8]]]:
    """The vectors of the ids after ``after_id`` up to the first without one: those of a write over the stored ones."""
    blocks = [*stored, *own]
    count = max(first + len(matrix) - 1 for first, matrix in blocks) - after_id
    whole, known = (
        np.zeros((max(count, 0), own[0][1].shape[1]), dtype=np.int8),
        np.zeros(max(count, 0), dtype=np.bool_),
    )
    for first, matrix in blocks:
        begin = first - 1 - after_id
        cut = max(0, -begin)
        whole[begin + cut : begin + len(matrix)] = matrix[cut:]
        known[begin + cut : begin + len(matrix)] = True
    yield after_id + 1, whole if known.all() else whole[: int(np.argmin(known))]


class Store:
    """One journal, one state, one version log.

    ``state`` and ``versions`` are only read within ``reading`` or ``writing``. Several threads and processes may each
    have a store on one folder.

    A write is applied to the state before it is committed, so what cannot be applied is never in the journal. While
    state and journal may differ, a mark is set; it is cleared once they are known to agree. Whoever finds it set folds
    again from the last point that can be trusted. So it does not matter where an interrupt or an error strikes, and a
    commit of which nobody knows whether it took place is settled by reading the journal.
    """

    strict: ClassVar[bool] = False
    """Refuse an event with a field that its declaration does not know: for tests, which set it for all stores."""

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
    ) -> None:
        """``projections`` are kept with the state, and ``mend`` repairs events of the first format of the journal.

        With ``view``, a journal of the past, nothing is opened or kept beside it.
        """
        self.projections = tuple(projections)
        self.folder, self.embedder, self.clock = folder, embedder, clock
        self.mutex = ThreadLock()
        watch_interrupts(self)
        self.journal: Journal | JournalView = (
            Journal.open(folder, create=create, read_only=read_only, mend=mend)
            if view is None
            else view
        )
        self.derived = WriterLock(None if folder is None else folder / DERIVED)
        self._marked = False
        """State and journal may differ: a fold or a write has begun."""
        self._looking = False
        """Somebody reads the state, which fills what it keeps for later questions."""
        self._waiting: int | None = None
        """Slates that are not sealed; None until one is logged here."""
        self._sound: dict[int, str] = {}
        """Segments that were compared with the chain, by their digests."""
        self._opened = False
        """The vectors were found to be of this embedder: from then on others may have embedded anew."""
        try:
            if isinstance(self.journal, Journal):
                self.journal.hash_paths = hash_paths
            if self.journal.lost:
                warnings.warn(
                    f"{self.where}: {self.journal.lost}. `memlab upkeep check` says what is there; `memlab upkeep "
                    "restore` puts a backup in place, or settles that this is what there is.",
                    DamageWarning,
                    stacklevel=4,
                )
            self.state, self.versions = State(self.projections), VersionLog()
            self._refold()
            self._end_purge()
            self._sweep()
            self._match_embedder(reembed=not read_only and reembed)
            self._opened = True
            beside = None if folder is None else folder / "neighbours"
            self.neighbours = Neighbours(
                beside, self.state.vectors, kind=index, writable=not self.journal.read_only
            )
        except BaseException as error:
            free_interrupted(error)  # a write that was cut off would not let the journal close
            self.journal.close()
            raise

    def as_of(self, view: JournalView, clock: Clock) -> Store:
        """A store of the past, on the same journal and with the same embedder."""
        return Store(None, self.embedder, clock, projections=self.projections, view=view)

    @property
    def where(self) -> str:
        if isinstance(self.journal, JournalView):
            return f"as of event {self.journal.head:,}"
        return "in memory" if self.folder is None else self.folder.name

    def free(self) -> None:
        """The state is folded again if an interrupted call of this thread has left the mutex held."""
        if self.mutex.owned:
            self._marked = True
            self.mutex.free()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the mutex."""
        # asked before it is taken: a block within a block is not what an interrupt left
        first = not self.mutex.owned
        with self.mutex.held():
            self._begin(first)
            yield

    def _begin(self, first: bool) -> None:
        """What somebody who was interrupted while reading may have half filled is folded again."""
        if first and self._looking:
            self._marked, self._looking = True, False

    @contextmanager
    def reading(self) -> Iterator[State]:
        """The state as it is now, for the block, which nobody else reads or changes meanwhile."""
        first = not self.mutex.owned
        with self.mutex.held():
            self._begin(first)
            self._follow()
            self._check_embedder()
            within, self._looking = self._looking, True
            try:
                yield self.state
            except MemlabError:
                self._looking = within
                raise
            self._looking = within

    def fold(self) -> None:
        """Take in what has happened since, whoever wrote it; some microseconds when nothing has."""
        with self.exclusive():
            self._follow()

    def _follow(self) -> None:
        rewritten = (
            isinstance(self.journal, JournalView) and last_purge(self.journal) != self._purged
        )
        if self._marked or rewritten:  # of a purge no event tells the past
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
        """Fold from the last point that can be trusted: a snapshot that is believed, or the beginning."""
        self._marked = True
        state, versions = self._restored()
        _fold(self.journal.events(after=state.seq), self.journal, state, versions)
        self._adopt(state, versions)
        self._marked = False

    def _adopt(self, state: State, versions: VersionLog) -> None:
        """Go on with another state. Whoever keeps something by its numbers must not take one for the other."""
        state.generation += self.state.generation + 1
        state.changes += self.state.changes + 1
        self.state, self.versions = state, versions
        self._purged = last_purge(self.journal)

    def _end_purge(self) -> None:
        """Go on with a purge that another process did not live to end."""
        if (
            self.journal.read_only
            or isinstance(self.journal, JournalView)
            or not self.journal.meta(PURGING)
        ):
            return
        try:
            with self.derived.hold(PURGE_TIMEOUT):
                if self.journal.meta(PURGING):  # whoever held it may have ended it
                    end_purge(self.journal, now=self.clock())
        except LabError as error:
            warnings.warn(f"A purge of {self.where} is not ended: {error}", stacklevel=5)

    def refresh_index(self) -> None:
        """Before a search: take up the index that fits, if there are so many memories that one is used.

        While memories wait for their vectors each batch makes other ones: until the last no index is built.
        """
        if self.state.rows > EXACT_UP_TO and not self.state.unembedded:
            self.neighbours.refresh(self.state.vectors)

    @contextmanager
    def writing(
        self, *, durable: bool = True, verify: Callable[[State, State], None] | None = None
    ) -> Iterator[Transaction]:
        """The writer's lock and a transaction on a state that has seen every event.

        What is written is applied to the state before it is committed: what cannot be applied raises, and nothing is
        written. Where the write changes what earlier ones stored, the journal as it will be is folded again, and
        ``verify`` asked of the states before and after.
        """
        first = not self.mutex.owned
        with self.mutex.held():
            self._begin(first)
            with self.journal.write(durable=durable) as tx:
                if self._marked or tx.head != self.state.seq:
                    self._follow()
                self._check_embedder()
                if tx.next_id != self.state.rows + 1:
                    raise DamagedLab(
                        f"{self.where} has {len(self.state):,} memories, and the next text would be that of "
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
        if logged and self.folder is not None:
            self._waiting = self._unsealed() if self._waiting is None else self._waiting + logged
            if self._waiting >= _SEAL_AT:
                self.seal_if_due()

    def settle(self, tx: Transaction) -> None:
        """Apply what a transaction holds so far, so that what it writes next is decided with that in sight.

        Where the transaction fails afterwards, the state is folded anew from the journal when it is next asked for.
        """
        self._marked = True
        _fold(
            tx.events_after(self.state.seq),
            _Written(tx, self.journal),
            self.state,
            self.versions,
            strict=True,
        )

    # -- snapshots --------------------------------------------------------------------------------------------

    def snapshot(self, *, timeout: float = PURGE_TIMEOUT) -> None:
        """Write the folded state down, so that the next opening is quick. LabBusy after ``timeout`` seconds."""
        if self.folder is None or self.journal.read_only:
            return
        # a purge waits until this is written, and then removes it
        # what is written down is sealed first, which fills the state
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
        """What was remembered is durable also if this cannot be written: an error of the disk is a DamageWarning."""
        if self.folder is not None and self.state.rows - self._snapshot_at >= after:
            try:
                self.snapshot(timeout=0.0)
            except LabBusy:
                pass  # another process writes a derived file: the next write asks again
            except LabError as error:
                warnings.warn(f"{self.where}: {error}", DamageWarning, stacklevel=4)

    def close(self) -> None:
        with self.exclusive():
            if self.journal.closed:
                return
            try:
                self.snapshot_if_due(after=_SNAPSHOT_EVERY // 10)
            finally:
                self.neighbours.close()
                self.journal.close()

    def _restored(self) -> tuple[State, VersionLog]:
        """What the newest snapshot holds if it is of this journal and sound; else nothing, and a warning says why."""
        self._snapshot_at = 0
        found = latest_snapshot(self.folder / "snapshots") if self.folder is not None else None
        if found is None:
            return State(self.projections), VersionLog()
        try:
            snapshot = _loaded(found, self.projections)
            if (snapshot.lab, snapshot.chain) != (
                self.journal.identity,
                self.journal.chain(snapshot.state.seq),
            ):
                raise DamagedLab(
                    f"The snapshot {found.name} is not believed: it is of another history than the journal."
                )
        except OldSnapshot:
            self._remove(found)
            return State(self.projections), VersionLog()
        except DamagedLab as error:
            # during a purge in another process it is as it should be, and that process removes it
            if not self.journal.meta(PURGING):
                warnings.warn(
                    f"{self.where}: {error} It is rebuilt from the journal, which takes longer.",
                    DamageWarning,
                    stacklevel=5,
                )
            self._remove(found)
            return State(self.projections), VersionLog()
        versions = VersionLog()
        for event in snapshot.decided:
            versions.fold(Event(*event), self.journal.source)
        self._snapshot_at = len(snapshot.state)
        return snapshot.state, versions

    def _remove(self, snapshot: Path) -> None:
        """Remove a snapshot that is not believed; where that cannot be, the next opening tells of it again."""
        if not self.journal.read_only:
            with suppress(LabBusy), self.derived.hold(0.0):
                remove_snapshot(snapshot)

    def _sweep(self) -> None:
        """Remove what processes left that died, or were interrupted, while they wrote a derived file."""
        if self.folder is None or self.journal.read_only:
            return
        # a cache of earlier versions, which held again what the journal has
        if (self.folder / "slates").exists():
            with suppress(LabBusy), self.derived.hold(0.0):
                shutil.rmtree(self.folder / "slates", ignore_errors=True)
        left = [
            draft
            for name in ("snapshots", BACKUPS)
            for draft in (self.folder / name).glob(".draft-*")
        ]
        left += self.folder.glob("journal.db.new*")
        if left:
            # busy: somebody writes one at this moment
            with suppress(LabBusy), self.derived.hold(0.0), self.journal.write():
                for draft in left:
                    if draft.is_dir():
                        shutil.rmtree(draft, ignore_errors=True)
                    else:
                        draft.unlink(missing_ok=True)

    # -- slates -----------------------------------------------------------------------------------------------

    def slates(self, *, lab: Any = None) -> Slates:
        """The log of all recalls: sealed segments, and from the journal what came after them.

        A segment that is not what was written is left out, with the judgements of its recalls: a warning and the notes
        of the log say so.
        """
        journal, notes = self.journal, list[str]()
        log, after, gone = None, 0, list[tuple[int, int]]()
        if isinstance(journal, Journal):
            self.seal_if_due()
            sound, gone = self._segments(journal, notes)
            log, after = SealedLog(journal, sound), max(journal.segments(), default=0)
            if log.thinned:
                notes.append(
                    f"{log.thinned:,} recalls were thinned by lab.upkeep.thin: they have no features."
                )
        tail = read_slates(journal, after)
        rows = [{"at": event.at, **event.body} for event in journal.events(kinds=("feedback",))]
        feedback = pl.DataFrame(rows, schema=_FEEDBACK).with_columns(
            pl.col("at").cast(pl.Datetime("us", "UTC"))
        )
        for start, end in gone:
            judged = pl.col("decision").is_between(start, end, closed="right")
            feedback = feedback.filter(pl.col("decision").is_null() | ~judged)
        return Slates.of_log(
            log, tail, feedback.rename({"memory": "memory_id"}), lab=lab, notes=notes
        )

    def _segments(
        self, journal: Journal, notes: list[str]
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """The segments that are what was written, and the recalls (after, upto) of which there are no slates."""
        sound, gone, after = [], [], 0
        for upto, digest in journal.segments().items():
            if (
                digest is not None
                and self._sound.get(upto) != digest
                and _digest(journal, upto) == digest
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
                    f"The sealed slates after event {after:,} and up to {upto:,} are not what was written: this "
                    "evidence is lost, unless `memlab upkeep check` finds it in a backup."
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
                f"{self.where}: {len(missing):,} of {logged:,} logged recalls are gone. {RESTORE}"
            )
        return sound, gone

    def seal(self, *, every: int | None = None) -> int:
        """Seal slates of the journal, ``every`` to a segment; how many were sealed. A lab in memory keeps them.

        A segment and the event with its digest are written by the transaction that takes the slates out: there is no
        moment at which a recall has no slate, or two.
        """
        every, count = _SEAL_EVERY if every is None else every, 0
        while self.folder is not None and not self.journal.read_only:
            with self.writing() as tx:
                after = max(self.journal.segments(), default=0)
                slates = list(islice(read_slates(self.journal, after), every))
                if len(slates) < every:
                    break
                sealed = seal(slates, after=after)
                tx.segment(sealed.upto, sealed.parts, sealed.questions)
                tx.event("seal", sealed.body, at=self.clock())
                count += len(slates)
        self._waiting = None
        return count

    def _unsealed(self) -> int:
        return self.journal.unsealed() if isinstance(self.journal, Journal) else 0

    def seal_if_due(self) -> None:
        """Seal what waits. What was logged is durable also where that cannot be: a disk that refuses is a warning."""
        if self._unsealed() >= _SEAL_EVERY:
            try:
                self.seal()
            except LabBusy:
                pass  # another process writes: the next recall asks again
            except LabError as error:
                warnings.warn(
                    f"{self.where}: slates are not sealed. {error}", DamageWarning, stacklevel=4
                )

    # -- embedders --------------------------------------------------------------------------------------------

    def embed_waiting(self, *, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Embed the newest of the memories that wait for a vector, in one transaction; whether any wait after that.

        The texts are embedded before the lock is taken. What somebody else has embedded or purged meanwhile is left
        as it is. ``stopped`` is asked now and then: what was embedded until then is written.
        """
        with self.reading() as state:
            waiting, rows, purge = state.unembedded, state.rows, last_purge(self.journal)
        first, made = waiting, list[NDArray[np.int8]]()
        while (
            first
            and waiting - first < max(_EMBED_AT_ONCE, rows // _EMBED_BATCHES)
            and not stopped()
        ):
            ids = range(max(0, first - _EMBED_PIECE) + 1, first + 1)
            with self.reading() as state:
                said = self._said(state, ids)
            made.insert(0, self.embedder.encode(said))
            first = ids.start - 1
        if not made:
            return bool(waiting)
        with self.writing() as tx:
            if (self.state.unembedded, last_purge(self.journal)) == (waiting, purge):
                tx.vectors(first + 1, self.embedder.fingerprint, np.concatenate(made))
                tx.event("embedder", self._embedder_body(waiting=first), at=self.clock())
        with self.reading() as state:
            return bool(state.unembedded)

    def _said(self, state: State, ids: range) -> list[str]:
        """What is embedded of these memories."""
        speakers = state.names["speaker"]
        return [
            prefix_speaker(text, speakers.value_at(id - 1))
            for id, text in zip(ids, self.journal.texts(ids), strict=True)
        ]

    def _check_embedder(self) -> None:
        """EmbedderMismatch where another process has gone over to another embedder: no score mixes two models."""
        if self._opened and self.state.fingerprint != self.embedder.fingerprint:
            raise EmbedderMismatch(
                f"{self.where} was embedded anew by another process, with {self.state.embedder_name} "
                f"[{self.state.fingerprint[:12]}], and is open here with {self.embedder.name} "
                f"[{self.embedder.fingerprint[:12]}]. Close it, and open it with that embedder."
            )

    def _match_embedder(self, *, reembed: bool | Literal["background"]) -> None:
        if not self.state.fingerprint:
            if self.journal.read_only:
                raise ReadOnlyLab(f"{self.where} is empty: a read-only lab cannot be started.")
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
                vectors = none if later else self.embedder.encode(self._said(self.state, ids))
                tx.vectors(first, self.embedder.fingerprint, vectors)
            tx.event(
                "embedder", self._embedder_body(waiting=count if later else 0), at=self.clock()
            )

    def _embedder_body(self, *, waiting: int = 0) -> dict[str, Any]:
        """``waiting``: so many of the first memories have no vector yet."""
        body = {
            "fingerprint": self.embedder.fingerprint,
            "name": self.embedder.name,
            "dim": self.embedder.dim,
        }
        return body | {"waiting": waiting} if waiting else body
