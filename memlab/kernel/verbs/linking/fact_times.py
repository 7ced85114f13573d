"""When facts were told again, and the times within which another value held in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from memlab.kernel.journal import Event
from memlab.kernel.state import MEMORY_ID, TIME, Field, Projection, State, listed

__all__ = ["FactTimes", "segments_of", "tellings_of"]


class FactTimes(Projection):
    """Of a fact that was told more than once: the instants, and the gaps in which another value held.

    A ``link`` event whose body has ``fact_times`` gives both anew for some memories. Times are microseconds.
    """

    name: ClassVar[str] = "fact-times"
    kinds: ClassVar[tuple[str, ...]] = ("link",)
    dumped: ClassVar[Field] = listed(MEMORY_ID, TIME, TIME, drops=True)
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {"link": {"fact_times": dumped}}

    def __init__(self) -> None:
        self.told: dict[int, list[int]] = {}
        self.gaps: dict[int, list[tuple[int, int]]] = {}

    def fold(self, event: Event) -> None:
        for id, told, gaps in event.body.get("fact_times", ()):
            self.told[id] = list(told)
            self.gaps[id] = [(start, stop) for start, stop in gaps]

    def dump(self) -> Any:
        return [[id, told, [list(gap) for gap in self.gaps.get(id, [])]] for id, told in self.told.items()]

    def load(self, dumped: Any) -> None:
        self.told = {id: list(told) for id, told, _ in dumped}
        self.gaps = {id: [(start, stop) for start, stop in gaps] for id, _, gaps in dumped}


def tellings_of(state: State) -> FactTimes:
    """Return when the facts of a state were told again."""
    return state.projection(FactTimes)


def segments_of(start: int, stop: int, gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the times within which a fact held: from start to stop without the gaps.

    >>> segments_of(1, 9, [(3, 4)])
    [(1, 3), (4, 9)]
    """
    found, begins = [], start
    for low, high in sorted(gaps):
        if begins < low:
            found.append((begins, low))
        begins = max(begins, high)
    return [*found, (begins, stop)] if begins < stop or not found else found
