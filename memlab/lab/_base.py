"""What every part of a lab stands on: its store, and how a memory is named."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl

from memlab.clock import Micros, When, datable, to_micros
from memlab.errors import InputError, UnknownName
from memlab.lab._linker import Linker
from memlab.lab._recall import LabRecalls
from memlab.lab._results import Memory
from memlab.lab._schedule import Scheduler
from memlab.lab._watch import Watches
from memlab.memory import State
from memlab.privacy import personal_kinds
from memlab.recall import Hit, Hits

if TYPE_CHECKING:
    from memlab.store import Store

__all__ = ["LabBase", "MemoryLike"]

MemoryLike = Memory | Hit | int
"""How a person names a memory: as it was returned, as it was shown, or by its id."""


class LabBase:
    """The store of a lab, read under its mutex. The verbs of a lab are parts on top, by subject."""

    _store: Store
    _recalls: LabRecalls
    _watches: Watches
    _scheduler: Scheduler
    _linker: Linker

    def _begin(self, store: Store, seed: int) -> None:
        """Stand on ``store``. ``seed`` decides, with what the lab has seen, which probes are drawn."""
        self._store, self._recalls, self._watches = store, LabRecalls(store, seed), Watches(store)
        weakref.finalize(self, self._watches.let_go)
        self._scheduler = Scheduler(store)
        weakref.finalize(self, self._scheduler.let_go)
        self._linker = Linker(store, self._recalls)
        weakref.finalize(self, self._linker.let_go)
        self._linker.wake()

    @contextmanager
    def _reading(self) -> Iterator[State]:
        """The state as it is now, under the mutex."""
        with self._store.reading() as state:
            yield state

    @property
    def memories(self) -> pl.DataFrame:
        """Every memory as a row: a copy."""
        with self._reading() as state:
            return state.memories()

    def __getitem__(self, memory: int) -> Memory:
        with self._reading() as state:
            return Memory.of(state, self._row(memory))

    def _row(self, memory: MemoryLike) -> int:
        """The row of a memory in the folded state; UnknownName if there is none."""
        if isinstance(memory, Hits):
            raise InputError("One memory is wanted, such as hits[0], not all that a recall showed.")
        state = self._store.state
        id = memory.id if isinstance(memory, Memory | Hit) else memory
        if isinstance(id, np.integer):
            id = int(id)
        if isinstance(id, bool) or not isinstance(id, int) or not 1 <= id <= len(state):
            raise UnknownName("memory", id, [f"1 to {len(state)}"] if len(state) else ())
        return id - 1

    def _rows(self, memories: MemoryLike | Iterable[MemoryLike]) -> list[int]:
        """The rows of one memory or several, each once, in the order given."""
        if isinstance(memories, MemoryLike | np.integer | str) or not isinstance(memories, Iterable):
            return [self._row(cast("int", memories))]  # what is no memory is told there
        given = list(memories)
        return list(dict.fromkeys(map(self._row, given)))

    def _personal(self) -> frozenset[str]:
        """The personal identifiers that the live pack has redacted, besides secrets."""
        with self._reading():
            return personal_kinds(self._store.versions.pack.settings)

    def _instant(self, at: When | None, *, name: str = "at=") -> Micros:
        """Microseconds UTC: what the caller says, or now; ``name`` is that of the argument."""
        return self._store.clock() if at is None else datable(to_micros(at), name)
