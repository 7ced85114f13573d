"""Which memories wait to be linked: those remembered with linking "later" that no link event has come to yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from memlab.kernel.journal import Event
from memlab.kernel.state import NUMBER, Field, Projection, list_field

__all__ = ["Waiting"]


class Waiting(Projection):
    """Runs of ids, ascending and apart. What waits is known by the journal alone, so nothing is lost with a process.

    A ``remember`` event whose body says ``waits`` adds its memories; a ``link`` event takes away all ids up to its
    ``upto``, whether or not anything was joined to them.
    """

    name: ClassVar[str] = "waiting"
    kinds: ClassVar[tuple[str, ...]] = ("remember", "link")
    dumped: ClassVar[Field] = list_field(NUMBER, NUMBER)
    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = {
        "remember": {"waits": Field("flag", of="columns")},
        "link": {"upto": Field("last-memory")},
    }

    def __init__(self) -> None:
        self._runs: list[list[int]] = []

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __len__(self) -> int:
        return sum(stop - first for first, stop in self._runs)

    @property
    def ids(self) -> list[int]:
        """All that waits, ascending."""
        return [id for first, stop in self._runs for id in range(first, stop)]

    def first(self, most: int) -> range:
        """The first ids that wait, one after the other: at most ``most``."""
        if not self._runs:
            return range(0)
        first, stop = self._runs[0]
        return range(first, min(stop, first + most))

    def fold(self, event: Event) -> None:
        body = event.body
        if event.kind == "remember":
            if body.get("waits"):
                first, stop = body["first"], body["first"] + body["count"]
                if self._runs and self._runs[-1][1] == first:
                    self._runs[-1][1] = stop
                else:
                    self._runs.append([first, stop])
        elif "upto" in body:
            done = body["upto"] + 1
            self._runs = [[max(first, done), stop] for first, stop in self._runs if stop > done]

    def shows(self, kind: str, body: dict[str, Any], *, viewer: str, seen: bool) -> bool | None:
        if kind != "link" or "upto" not in body or seen:
            return None
        return bool(self._runs) and self._runs[0][0] <= int(body["upto"])

    def dump(self) -> Any:
        return self._runs

    def load(self, dumped: Any) -> None:
        self._runs = [list(run) for run in dumped]
