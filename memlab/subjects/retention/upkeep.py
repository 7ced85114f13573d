"""Upkeep: one pass over memories and edges that records what time has done to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import ReadOnlyLab
from memlab.kernel.base.clock import Micros, from_micros
from memlab.kernel.base.display import Displayed, table
from memlab.kernel.base.printable import printable
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.hooks import hooks
from memlab.kernel.state import Change
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.corrections.editing import due_for_purge
from memlab.subjects.retention.pruning import edges_frame_of, may_prune, pruned, reads_degrees
from memlab.subjects.retention.transitions import Transitions, transitions

__all__ = ["Upkeep", "maintain_after_session", "run_upkeep"]

Ints = NDArray[np.int64]
Found = TypeVar("Found")

_BLOCK = 1 << 16
"""Memories that are asked about, and written down, at a time: some 30 ms in which no one else writes."""

_EDGES = 1 << 18
"""Edges at a time."""

_NODES = 1 << 14
"""Nodes at a time, whose edges are asked about once more."""

_SLOW = 500_000
"""Memories beyond which a pass takes a second, and a bar is drawn."""

_SHOWN = 12


@dataclass(frozen=True)
class Upkeep(Displayed):
    """What one pass of ``lab.upkeep.maintain`` recorded, as of ``at``, under the pack of this name and hash.

    ``frame``: one row for each memory's change (id, what: status or label, from, to, at). ``pruned``: the edges that
    were removed (edge, relation, weight, from_kind, source, to_kind, target). ``due``: what was deleted so long ago
    that it may be purged (id, deleted, due). ``events`` are the places in the journal of what was written, none where
    nothing changed; one may have refined clusters. ``complete`` is false if it was stopped; the next pass goes on.
    """

    at: datetime
    pack: str
    pack_hash: str
    events: tuple[int, ...]
    complete: bool
    frame: pl.DataFrame = field(repr=False)
    pruned: pl.DataFrame = field(repr=False)
    due: pl.DataFrame = field(repr=False)

    @property
    def counts(self) -> pl.DataFrame:
        """How many memories made each transition: what, from, to, memories; the most frequent first."""
        counted = self.frame.group_by("what", "from", "to").agg(pl.len().cast(pl.Int64).alias("memories"))
        return counted.sort("memories", "what", "from", "to", descending=[True, False, False, False])

    def __len__(self) -> int:
        """How many changes were recorded."""
        return self.frame.height + self.pruned.height

    def __bool__(self) -> bool:
        return len(self) > 0

    def __repr__(self) -> str:
        parts = [f"{count:,} {what} {old or 'none'} -> {new}" for what, old, new, count in self._most()]
        more = self.counts.height - len(parts)
        parts += [f"{more} other transitions"] if more > 0 else []
        parts += [f"{self.pruned.height:,} edges pruned"] if self.pruned.height else []
        parts += [f"{self.due.height:,} due to be purged"] if self.due.height else []
        stopped = "" if self.complete else ", stopped before its end"
        return printable(
            f"<Upkeep {self.at:%Y-%m-%d %H:%M} UTC, pack {self.pack}: {'; '.join(parts) or 'nothing changed'}{stopped}>"
        )

    def _display(self) -> object:
        head = f"Upkeep as of {self.at:%Y-%m-%d %H:%M} UTC, pack {self.pack}"
        notes = [] if self else ["nothing changed"]
        notes += [f"{self.pruned.height:,} edges pruned"] if self.pruned.height else []
        notes += [f"{self.due.height:,} deleted memories are due to be purged"] if self.due.height else []
        notes += [] if self.complete else ["it was stopped before its end, and the next pass goes on"]
        rows = [(what, old or "none", new, f"{count:,}") for what, old, new, count in self._most()]
        return table(head, ("what", "from", "to", "memories"), rows, notes=["; ".join(notes)] if notes else [])

    def _most(self) -> list[tuple[str, str | None, str, int]]:
        return self.counts.head(_SHOWN).rows()


def run_upkeep(
    store: Store, now: Micros, *, progress: bool = False, stopped: Callable[[], bool] = lambda: False
) -> Upkeep:
    """One pass as of ``now``, block by block: each is decided and written under the writer's lock, or left alone.

    ``stopped`` is asked between blocks. What a killed pass has written stays, and another pass does the rest.
    """
    if store.journal.read_only:
        raise ReadOnlyLab(f"{store.where} was opened with read_only=True: upkeep writes down what it finds.")
    with store.reading():
        pack, memories, edges = store.versions.pack, len(store.state), len(store.state.edges)
    edges = edges if may_prune(pack) else 0
    work = _Pass(store, now, stopped)
    with bar(progress and memories + edges > _SLOW, memories + edges, unit="row", desc="upkeep") as step:
        work.over_memories(memories, step)
        if edges:
            work.over_edges(edges, step)
    if not work.ended:
        for follow in hooks("upkeep"):
            work.events += follow(store, now)
    with store.reading():
        waiting = due_for_purge(store.state, store.versions.pack, now)
    at = pl.lit(now).cast(pl.Datetime("us", "UTC")).alias("at")
    return Upkeep(
        at=from_micros(now),
        pack=pack.name,
        pack_hash=pack.hash,
        events=tuple(work.events),
        complete=not work.ended,
        frame=pl.concat(work.frames).with_columns(at),
        pruned=pl.concat(work.removed),
        due=waiting,
    )


def maintain_after_session(store: Store) -> None:
    """Run a pass of upkeep where the pack's setting ``maintain-after-session`` asks for one."""
    with store.reading():
        wanted = bool(store.versions.pack.settings["maintain-after-session"])
    if wanted:
        run_upkeep(store, store.clock())


class _Pass:
    """One pass: where it writes, and what it has found so far."""

    def __init__(self, store: Store, now: Micros, stopped: Callable[[], bool]) -> None:
        self.store, self.now, self.stopped = store, now, stopped
        self.events: list[int] = []
        self.ended = False
        none = np.empty(0, dtype=np.int64)
        self.frames = [transitions(store.state, store.versions.pack, none, now).frame]
        self.removed = [edges_frame_of(store.state, none)]

    def over_memories(self, count: int, step: Step) -> None:
        for start in range(0, count, _BLOCK):
            if self._ended():
                return
            rows = np.arange(start, min(start + _BLOCK, count))
            self._memories(rows)
            step(len(rows))

    def _memories(self, rows: Ints) -> None:
        def decide() -> tuple[Transitions, Change]:
            found = transitions(self.store.state, self.store.versions.pack, rows, self.now)
            return found, found.change

        found = self._written(decide)
        if found is not None:
            self.frames.append(found.frame)

    def over_edges(self, count: int, step: Step) -> None:
        """Every edge once; where degrees decide, then what meets the ends of those that went, until none goes."""
        again = reads_degrees(self.store.versions.pack)
        near = []
        for start in range(0, count, _EDGES):
            if self._ended():
                return
            edges = np.arange(start, min(start + _EDGES, count))
            near.append(self._edges(edges, again))
            step(len(edges))
        ends = _distinct(np.concatenate(near))
        while len(ends):
            near = []
            for start in range(0, len(ends), _NODES):
                if self._ended():
                    return
                with self.store.reading() as state:
                    met = _distinct(state.edges.crossings(ends[start : start + _NODES]).edge)
                near += [self._edges(met[at : at + _EDGES], again) for at in range(0, len(met), _EDGES)]
            ends = _distinct(np.concatenate(near))

    def _edges(self, edges: Ints, again: bool) -> Ints:
        """Prune among ``edges``; the nodes at the ends of what went, if they matter."""

        def decide() -> tuple[tuple[pl.DataFrame, Ints], Change]:
            state = self.store.state
            gone = pruned(state, self.store.versions.pack, edges, self.now)
            ends = _distinct(np.concatenate(state.edges.ends(gone))) if again else gone[:0]
            return (edges_frame_of(state, gone), ends), Change(unlink=gone.tolist())

        found = self._written(decide)
        if found is None:
            return np.empty(0, dtype=np.int64)
        self.removed.append(found[0])
        return found[1]

    def _written(self, decide: Callable[[], tuple[Found, Change]]) -> Found | None:
        """What ``decide`` found, with its change written; None where nothing changes.

        Decided first without the writer's lock, which is taken only where there is something to write, and then again
        if anything has happened in between.
        """
        store = self.store
        with store.reading():
            seen, (found, change) = store.state.seq, decide()
        if not change:
            return None
        with store.writing() as tx:
            if store.state.seq != seen:
                found, change = decide()
            if not change:
                return None
            body = {"pack": store.versions.pack.hash, **change.body()}
            self.events.append(tx.event("maintain", body, at=self.now))
        return found

    def _ended(self) -> bool:
        self.ended = self.ended or self.stopped()
        return self.ended


def _distinct(numbers: Ints) -> Ints:
    """Each number once, ascending: by sorting, which is ten times as quick as a set of millions."""
    ordered = np.sort(numbers)
    return np.asarray(ordered[np.diff(ordered, prepend=-1) > 0])
