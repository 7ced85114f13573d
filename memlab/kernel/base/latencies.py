"""How long the parts of a lab's calls took in this process. Nothing of it is stored: a journal holds no wall time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter

from memlab.kernel.base.interrupts import ThreadLock

__all__ = ["PARTS", "Latencies"]

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
