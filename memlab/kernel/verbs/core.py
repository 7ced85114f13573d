"""What every verb of a lab stands on: its store, its recaller, and how a memory is named."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Taken
from memlab.kernel.base.clock import Micros, When, datable, to_micros
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.privacy import personal_kinds
from memlab.kernel.recall import Hit, Recaller
from memlab.kernel.state import State, ViewerState, visible_rows
from memlab.kernel.verbs.results import Memory

if TYPE_CHECKING:
    from memlab.kernel.policies import Pack
    from memlab.kernel.storage.store import Store

__all__ = ["PARTS", "Core", "Latencies", "Memories", "MemoryLike", "listed_memories"]

MemoryLike = Annotated[
    Memory | Hit | int, Taken("a memory (what remember returned, a hit such as hits[0], or an id)")
]
"""One memory, as a caller may name it: a `Memory` that a call returned, a `Hit` of a recall, or its id, an int."""

Memories = MemoryLike | pl.DataFrame | Iterable[MemoryLike]
"""One memory or several: a `MemoryLike`, any number of these (a list, the hits of a recall), or a Polars frame.

A frame names memories by its column ``id`` or ``memory_id``: rows of ``lab.memories``, say, or of ``hits.frame``. An
empty list names none.
"""


PARTS = ("embedding", "search", "write")
_KEPT = 1_000
"""Durations of each part that are kept, the latest: a median of a thousand is steady, and 24 kB hold all three."""


class Latencies:
    """The latest durations of embedding, search and write, in milliseconds."""

    def __init__(self) -> None:
        self._durations: dict[str, deque[float]] = {part: deque(maxlen=_KEPT) for part in PARTS}
        self._lock = ThreadLock()

    @contextmanager
    def measured(self, part: str) -> Iterator[None]:
        """Measure the block as one call of ``part``; a block that raises is not counted."""
        start = perf_counter()
        yield
        self.add(part, perf_counter() - start)

    def add(self, part: str, seconds: float) -> None:
        """Count one call of ``part``."""
        with self._lock:
            self._durations[part].append(1000.0 * seconds)

    def typical(self, part: str) -> tuple[float | None, int]:
        """Return the median of the calls of ``part`` that are kept, None without any, and their number.

        >>> Latencies().typical("search")
        (None, 0)
        """
        with self._lock:
            durations = list(self._durations[part])
        return (median(durations) if durations else None), len(durations)


def _unheld(name: str) -> Any:
    raise LookupError(f"Only what is held by a lab can offer its {name}.")


class Core:
    """The store of one lab. ``seed`` decides, with what the lab has seen, which probes are drawn.

    ``row`` and ``rows`` need the state to be held: within ``reading`` or ``store.writing``.
    """

    def __init__(
        self,
        store: Store,
        seed: int,
        recaller: Recaller | None = None,
        *,
        owner: object = None,
        made: Callable[[str], Any] = _unheld,
    ) -> None:
        self.store, self.seed = store, seed
        self.latencies = Latencies()
        self.recaller = Recaller(store.embedder) if recaller is None else recaller
        self.owner, self.made = owner, made
        """The lab, for an accessor: what it is used for is not ended while the accessor is at hand."""

    def held_by(self, owner: object, made: Callable[[str], Any]) -> Core:
        """The same, which keeps ``owner`` alive; ``made`` gives accessors what they offer of other subjects."""
        held = Core(self.store, self.seed, self.recaller, owner=owner, made=made)
        held.latencies = self.latencies
        return held

    def reading(self) -> AbstractContextManager[State]:
        """The state as it is now, which nobody changes within the block."""
        return self.store.reading()

    @property
    def pack(self) -> Pack:
        """The live pack, as of the state that is held."""
        return self.store.versions.pack

    def memories(self) -> pl.DataFrame:
        """Every memory as a row: a copy."""
        with self.reading() as state:
            return state.memories()

    def count(self) -> int:
        """How many memories there are to see."""
        with self.reading() as state:
            seen = visible_rows(state)
            return len(state) if seen is None else len(seen)

    def memory(self, memory: MemoryLike) -> Memory:
        """A memory as it stands; UnknownName if there is none."""
        with self.reading() as state:
            return Memory.of(state, self.row(memory))

    def row(self, memory: MemoryLike) -> int:
        """The row of a memory in the folded state; UnknownName if there is none."""
        state = self.store.state
        id = memory.id if isinstance(memory, Memory | Hit) else memory
        if not 1 <= id <= state.rows:
            raise UnknownName("memory", id, [f"1 to {state.rows}"] if state.rows else ())
        if isinstance(state, ViewerState) and state.hidden[id - 1]:
            raise UnknownName("memory", id)
        return id - 1

    def rows(self, memories: Memories) -> list[int]:
        """The rows of one memory or several, each once, in the order given."""
        return list(dict.fromkeys(map(self.row, listed_memories(memories))))

    def personal(self) -> frozenset[str]:
        """The kinds of personal identifiers that the live pack has redacted, besides secrets."""
        with self.reading():
            return personal_kinds(self.pack.settings)

    @property
    def open_words(self) -> bool:
        """Whether the live pack lets in kinds and relations that have no name here."""
        with self.reading():
            return bool(self.pack.settings["open-words"])

    def instant(self, at: When | None, *, name: str = "at=") -> Micros:
        """Microseconds UTC: ``at``, or now; ``name`` is that of the argument, for its errors."""
        return self.store.clock() if at is None else datable(to_micros(at), name)


def listed_memories(memories: Memories) -> list[MemoryLike]:
    """Return one memory, several, or those that a frame names, as a list."""
    if isinstance(memories, Memory | Hit | int):
        return [memories]
    return list(_ids_of(memories)) if isinstance(memories, pl.DataFrame) else list(memories)


def _ids_of(frame: pl.DataFrame) -> list[int]:
    """Return the ids of a frame of memories or of hits."""
    name = next((name for name in ("id", "memory_id") if name in frame.columns), None)
    if name is None or not frame[name].dtype.is_integer() or frame[name].null_count():
        raise InputError(
            "A frame that names memories has the column id or memory_id, with a whole number in each row."
        )
    return frame[name].to_list()
