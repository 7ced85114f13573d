"""``Lab``: every verb that a person uses, each a few lines that call a room below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import polars as pl

from memlab.clock import Clock, When, system_clock
from memlab.copies import unreached
from memlab.embedding import Embedder, EmbedderSpec, load_embedder
from memlab.errors import InputError
from memlab.lab._backup import LabBackup, back_up_if_due
from memlab.lab._base import MemoryLike
from memlab.lab._clusters import LabClusters
from memlab.lab._correcting import LabCorrecting
from memlab.lab._facts import LabFacts
from memlab.lab._graph import LabTrace, activated, traced
from memlab.lab._history import LabHistory
from memlab.lab._index import LabIndex
from memlab.lab._living import LabLiving
from memlab.lab._moving import LabMoving
from memlab.lab._policies import LabPolicies
from memlab.lab._quarantine import LabQuarantine
from memlab.lab._turns import LabTurns
from memlab.lab._watch import OnChange, Watch
from memlab.policies import DEFAULT_PACK, Pack, load_pack
from memlab.printable import printable
from memlab.slates import Slates
from memlab.store import Store
from memlab.structure import Stats, stats

__all__ = ["Lab", "open_lab"]


def open_lab(
    path: str | Path | None = None,
    *,
    pack: str | Path | Pack | None = None,
    embedder: EmbedderSpec = None,
    clock: Clock = system_clock,
    seed: int = 0,
    read_only: bool = False,
    reembed: bool = False,
    index: str = "annoy",
    backups: bool = False,
) -> Lab:
    """Open the lab in the directory ``path``, or a new one there; without a path, a lab in memory.

    ``pack`` is used from now on (a new lab starts with "memlab"). ``embedder`` is the shipped static model, or a
    model2vec folder or hub name, or a callable from texts to vectors. A lab that holds vectors of another embedder
    is refused, unless ``reembed=True`` embeds every memory anew.

    ``seed`` decides, with what the lab has seen, which probes are drawn. ``index`` is what proposes neighbours among
    more than 100,000 memories: "annoy", or "graph" (an extra).

    ``backups=True`` keeps three backups in the lab's folder: one is made on opening if the newest is a day old, and one
    on closing if anything happened since; ``lab.backup()`` makes one at any time. Each reads every page of the journal,
    so that damage is noticed (DamagedLab) while there is a sound copy.

    Raises NotALab, NewerLab, DamagedLab, ReadOnlyLab, EmbedderMismatch, MissingExtra.

    >>> with open_lab() as lab:
    ...     _ = lab.remember("The user prefers tabs", kind="preference")
    ...     lab.recall("tabs or spaces?")[0].text
    'The user prefers tabs'
    """
    return Lab(
        path,
        pack=pack,
        embedder=embedder,
        clock=clock,
        seed=seed,
        read_only=read_only,
        reembed=reembed,
        index=index,
        backups=backups,
    )


class Lab(LabFacts, LabTurns, LabCorrecting, LabQuarantine, LabBackup, LabLiving, LabClusters, LabHistory, LabMoving):
    """A memory: its journal, the state folded from it, and the pack that decides. Use ``memlab.open``."""

    _backs_up = False

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        pack: str | Path | Pack | None = None,
        embedder: EmbedderSpec = None,
        clock: Clock = system_clock,
        seed: int = 0,
        read_only: bool = False,
        reembed: bool = False,
        index: str = "annoy",
        backups: bool = False,
    ) -> None:
        chosen = load_pack(pack) if pack is not None else None
        folder = None if path is None else Path(path).expanduser()
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
            raise InputError(f"A seed is a whole number of at least 0, not {seed!r}.")
        if backups and (folder is None or read_only):
            raise InputError("backups=True needs a lab in a directory that is opened for writing.")
        options: dict[str, Any] = {"read_only": read_only, "reembed": reembed, "index": index}
        self._begin(Store(folder, load_embedder(embedder), clock, **options), seed)
        try:
            if chosen is not None or self._store.versions.empty:
                self.use(chosen or DEFAULT_PACK)
            if not read_only and unreached(self._store.journal):
                self._reach_mirrors()
            if backups:
                self._backs_up = True
                back_up_if_due(self._store, closing=False)
        except BaseException:
            self._store.journal.close()
            raise

    # -- policies ---------------------------------------------------------------------------------------------

    @property
    def pack(self) -> Pack:
        """The live pack."""
        with self._reading():
            return self._store.versions.pack

    def use(self, pack: str | Path | Pack, *, reason: str = "") -> Pack:
        """Let another pack decide from the next recall on: logged, hashed, reversible."""
        return self.policies.use(pack, reason=reason)

    @property
    def policies(self) -> LabPolicies:
        """Install, roll back, pin, compare and attribute: see ``LabPolicies``."""
        return LabPolicies(self._store)

    def watch(
        self, path: str | Path, slot: str | None = None, *, every: float = 0.2, on_change: OnChange | None = None
    ) -> Watch:
        """Use the pack in a ``.hy`` file, now and at every save, until ``stop`` or ``close``; see ``Watch``.

        With ``slot``, the file holds one policy for it. ``on_change`` is called, in the watching thread, in place of
        showing changes. A file that is broken to begin with raises a PolicyError.

        >>> watch = lab.watch("mine.hy")                                                   # doctest: +SKIP
        """
        return self._watches.start(path, slot, every=every, on_change=on_change)

    # -- looking ----------------------------------------------------------------------------------------------

    @property
    def edges(self) -> pl.DataFrame:
        """Every edge as a row: a copy."""
        with self._reading() as state:
            return state.edge_frame()

    def activate(
        self,
        seeds: MemoryLike | Iterable[MemoryLike],
        *,
        steps: int = 3,
        decay: float = 0.7,
        threshold: float = 0.01,
    ) -> pl.DataFrame:
        """Spreading activation from ``seeds`` (energy 1 each): A[j] += A[i] * W[i,j] * D, in both directions.

        One row a node that is active in the end: kind, id, name, activation, received, hops. Below ``threshold``
        nothing passes. Nothing is changed or logged; a pack's ``spread`` policy is not asked.
        """
        with self._reading() as state:
            rows = dict.fromkeys(self._rows(seeds), 1.0)
            return activated(state, rows, steps=steps, decay=decay, threshold=threshold)

    def trace(self, memory: MemoryLike, depth: int = 2, *, most: int = 100) -> LabTrace:
        """How a memory is joined to others: the ``most`` strongest paths of at most ``depth`` edges."""
        with self._reading() as state:
            return traced(state, self._row(memory), depth=depth, most=most)

    def stats(self, *, at: When | None = None, seed: int = 0, progress: bool = True) -> Stats:
        """Kinds, temporal layers, clusters, communities, bridges and key memories, as frames and one figure."""
        with self._reading() as state:
            return stats(state, self._store.versions.pack, now=self._instant(at), seed=seed, progress=progress)

    @property
    def index(self) -> LabIndex:
        """The search for neighbours: ``lab.index.report()`` measures it."""
        return LabIndex(self._store)

    @property
    def slates(self) -> Slates:
        """Every logged recall and what was said about it, as four lazy frames."""
        return self._store.slates(lab=self)

    def _recall_at(self, decision: Mapping[str, Any], pack: Pack) -> pl.DataFrame | None:
        return self._recalls.again(decision, pack)

    def __len__(self) -> int:
        with self._reading() as state:
            return len(state)

    @property
    def path(self) -> Path | None:
        return self._store.folder

    @property
    def embedder(self) -> Embedder:
        return self._store.embedder

    def __repr__(self) -> str:
        with self._reading() as state:
            return printable(
                f"<Lab {self._store.where}: {len(state):,} memories, {state.edges.live:,} edges, "
                f"pack {self.pack.name} [{self.pack.hash[:12]}]>"
            )

    # -- opening and closing ----------------------------------------------------------------------------------

    def snapshot(self) -> None:
        """Write the folded state down, so that the next opening is quick. ``close`` does it when there is much new."""
        self._store.snapshot()

    def close(self) -> None:
        """End watches, the schedule and turns, write a snapshot if that will save time, and let the journal go."""
        self._watches.stop()
        self._scheduler.stop()
        self._linker.stop()
        self._end_turns()
        try:
            if self._backs_up and not self._store.journal.closed:
                back_up_if_due(self._store, closing=True)
        finally:
            self._store.close()

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
