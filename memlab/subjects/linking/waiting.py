"""The register of the memories that wait to be linked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from memlab.kernel.journal import Body, Event
from memlab.kernel.state import NUMBER, Field, Projection, list_field


class Waiting(Projection):
    """The ids of the waiting memories, as ascending and disjoint ranges.

    A ``remember`` event with ``waits`` adds its memories. A ``link`` event removes all ids up to
    ``upto``. The journal is the only record, so nothing is lost if a process ends.
    """

    name = "waiting"
    kinds = ("remember", "link")
    dumped = list_field(NUMBER, NUMBER)
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
        """The ids of all waiting memories, ascending."""
        return [id for first, stop in self._runs for id in range(first, stop)]

    def first(self, limit: int) -> range:
        """Return the ids of the first consecutive waiting memories, at most `limit` ids."""
        if not self._runs:
            return range(0)
        first, stop = self._runs[0]
        return range(first, min(stop, first + limit))

    def fold(self, event: Event) -> None:
        """Apply an event: add new waiting memories, or remove linked memories."""
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

    def shows(self, kind: str, body: Body, *, viewer: str, seen: bool) -> bool | None:
        """Return whether a viewer may see a link event, or None for an event of another kind."""
        if kind != "link" or "upto" not in body or seen:
            return None
        return bool(self._runs) and self._runs[0][0] <= int(body["upto"])

    def dump(self) -> Any:
        """Return the id ranges of waiting memories as plain values for a snapshot."""
        return self._runs

    def load(self, dumped: Any) -> None:
        """Restore the id ranges of waiting memories from the result of ``dump``."""
        self._runs = [list(run) for run in dumped]
