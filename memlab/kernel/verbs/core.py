"""The context that every verb of a lab needs: store, recaller, clock and memory lookup."""

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
from memlab.kernel.base.clock import Micros, When, check_instant, to_micros
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.privacy import personal_kinds
from memlab.kernel.recall import Hit, Recaller
from memlab.kernel.state import State, ViewerState, visible_rows
from memlab.kernel.verbs.results import Memory

if TYPE_CHECKING:
    from memlab.kernel.policies import Pack
    from memlab.kernel.storage.store import Store

MemoryLike = Annotated[
    Memory | Hit | int, Taken("a memory (what remember returned, a hit such as hits[0], or an id)")
]
"""One memory: a `Memory` that a call returned, a `Hit` of a recall, or its id, an int."""

Memories = MemoryLike | pl.DataFrame | Iterable[MemoryLike]
"""One memory or several: a `MemoryLike`, an iterable of them, or a Polars frame.

A frame names memories by its column ``id`` or ``memory_id``, for example rows of
``lab.memories`` or of ``hits.frame``. An empty list names none.
"""


# The parts of a call whose durations `lab.agents.metrics` reports.
PARTS = ("embedding", "search", "write")
_KEPT = 1_000
"""Maximum number of stored durations for each part of a call.

The median of a thousand durations is stable, and the three parts need 24 kB.
"""


class Latencies:
    """Latest durations of embedding, search and write in a lab's calls."""

    def __init__(self) -> None:
        self._durations: dict[str, deque[float]] = {part: deque(maxlen=_KEPT) for part in PARTS}
        # Recalls run in several threads, and each adds its own durations.
        self._lock = ThreadLock()

    @contextmanager
    def measured(self, part: str) -> Iterator[None]:
        """Record the duration of the block under ``part``, unless the block raises."""
        start = perf_counter()
        yield
        self.add(part, perf_counter() - start)

    def add(self, part: str, seconds: float) -> None:
        """Record one duration of ``part``, given in seconds."""
        with self._lock:
            self._durations[part].append(1000.0 * seconds)

    def typical(self, part: str) -> tuple[float | None, int]:
        """Return the median duration of ``part`` in milliseconds and the sample size.

        The median is None if no duration is stored.

        >>> Latencies().typical("search")
        (None, 0)
        """
        with self._lock:
            durations = list(self._durations[part])
        return (median(durations) if durations else None), len(durations)


def _refuse_component(name: str) -> Any:
    """Raise LookupError: components exist only after ``Core.held_by`` sets the lab."""
    raise LookupError(
        f"This Core is not attached to a Lab yet, so it has no component {name}. Call Core.held_by(lab) first."
    )


class Core:
    """The store, the recaller and the seed of one lab.

    ``seed`` and the recalls so far decide which exploration items are drawn. ``row`` and ``rows``
    need the state to be locked: call them within ``reading`` or ``store.writing``.
    """

    def __init__(
        self,
        store: Store,
        seed: int,
        recaller: Recaller | None = None,
        *,
        owner: object = None,
        component: Callable[[str], Any] = _refuse_component,
    ) -> None:
        self.store, self.seed = store, seed
        self.latencies = Latencies()
        self.recaller = Recaller(store.embedder) if recaller is None else recaller
        self.owner, self.component = owner, component
        # An accessor holds its lab, so that the lab's workers do not end while the accessor is in use.

    def held_by(self, owner: object, component: Callable[[str], Any]) -> Core:
        """Return a core on the same store; the core keeps ``owner`` alive.

        ``component`` returns components of other subjects by name.
        """
        core = Core(self.store, self.seed, self.recaller, owner=owner, component=component)
        core.latencies = self.latencies
        return core

    def reading(self) -> AbstractContextManager[State]:
        """Return a context that locks the state, so that it does not change in the block."""
        return self.store.reading()

    @property
    def pack(self) -> Pack:
        """The active pack. The state must be locked while it is read."""
        return self.store.versions.pack

    def memories(self) -> pl.DataFrame:
        """Return all memories as a new frame."""
        with self.reading() as state:
            return state.memories()

    def count(self) -> int:
        """Return the number of memories, excluding memories hidden from the lab's viewer."""
        with self.reading() as state:
            visible = visible_rows(state)
            return len(state) if visible is None else len(visible)

    def memory(self, memory: MemoryLike) -> Memory:
        """Return the current values of a memory. Raises UnknownName if it does not exist."""
        with self.reading() as state:
            return Memory.of(state, self.row(memory))

    def row(self, memory: MemoryLike) -> int:
        """Return the row of a memory in the state; raise UnknownName if it does not exist."""
        state = self.store.state
        id = memory.id if isinstance(memory, Memory | Hit) else memory
        if not 1 <= id <= state.rows or (isinstance(state, ViewerState) and state.hidden[id - 1]):
            raise UnknownName("memory", id)
        return id - 1

    def rows(self, memories: Memories) -> list[int]:
        """Return the distinct row numbers of the given memories, in the given order."""
        return list(dict.fromkeys(map(self.row, listed_memories(memories))))

    def personal(self) -> frozenset[str]:
        """Return the kinds of personal data that the active pack redacts."""
        with self.reading():
            return personal_kinds(self.pack.settings)

    @property
    def open_words(self) -> bool:
        """Whether the active pack admits kinds and relations outside the built-in lists."""
        with self.reading():
            return bool(self.pack.settings["open-words"])

    def instant(self, at: When | None, *, name: str = "at=") -> Micros:
        """Convert ``at`` to microseconds UTC; the default is the current time.

        ``name`` is the name of the argument in error messages.
        """
        return self.store.clock() if at is None else check_instant(to_micros(at), name)


def listed_memories(memories: Memories) -> list[MemoryLike]:
    """Convert one memory, several memories or a frame to a list of memories."""
    if isinstance(memories, Memory | Hit | int):
        return [memories]
    return list(_ids_of(memories)) if isinstance(memories, pl.DataFrame) else list(memories)


def _ids_of(frame: pl.DataFrame) -> list[int]:
    """Return the ids in the column ``id`` or ``memory_id`` of a frame."""
    name = next((name for name in ("id", "memory_id") if name in frame.columns), None)
    if name is None or not frame[name].dtype.is_integer() or frame[name].null_count():
        raise InputError(
            "A frame of memories needs the column id or memory_id, with an integer in each row."
        )
    return frame[name].to_list()
