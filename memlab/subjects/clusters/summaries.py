"""What consolidation made: which memories each summary replaces, and what status they had before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from memlab.kernel.journal import Event
from memlab.kernel.state import ADDED, HASH, MEMORY_ID, TIME, WORD, EventType, Field, Projection, listed, mapping

__all__ = ["Summaries", "Summary"]


_OF = Field("cluster", held="reference", shared=True)
_WAS = mapping({"*": MEMORY_ID})


@dataclass(slots=True)
class Summary:
    """What one summary replaces: ``was`` has the members' ids by the status that they had.

    ``by`` says what the members had in common (clusters or communities) and ``of`` which of these it was. ``undone`` is
    the instant at which they were restored.
    """

    at: int
    by: str
    of: str
    was: dict[str, list[int]]
    undone: int | None = None

    @property
    def members(self) -> list[int]:
        """The ids of the members, ascending."""
        return sorted(id for ids in self.was.values() for id in ids)


class Summaries(Projection):
    """The register of summaries, by the id of the memory that is one."""

    name: ClassVar[str] = "summaries"
    kinds: ClassVar[tuple[str, ...]] = ("consolidate", "unconsolidate")
    events: ClassVar[tuple[EventType, ...]] = (
        EventType(
            "consolidate",
            "Summaries were written for memories that have something in common.",
            {
                **ADDED,
                "pack": HASH,
                "by": WORD,
                "summaries": listed(mapping({"summary": MEMORY_ID, "of": _OF, "was": _WAS})),
            },
            adds=True,
            replay="left-out",
        ),
        EventType(
            "unconsolidate",
            "A summary was undone, and its members are back.",
            {"summary": MEMORY_ID},
            replay="left-out",
        ),
    )
    dumped: ClassVar[Field] = listed(MEMORY_ID, TIME, WORD, _OF, _WAS, TIME)

    def __init__(self) -> None:
        self.all: dict[int, Summary] = {}

    def fold(self, event: Event) -> None:
        if event.kind == "unconsolidate":
            self.all[event.body["summary"]].undone = event.at
            return
        for row in event.body.get("summaries", ()):
            was = {status: list(ids) for status, ids in row["was"].items()}
            self.all[row["summary"]] = Summary(event.at, event.body["by"], row["of"], was)

    def dump(self) -> Any:
        return [[id, one.at, one.by, one.of, one.was, one.undone] for id, one in self.all.items()]

    def load(self, dumped: Any) -> None:
        self.all = {id: Summary(*fields) for id, *fields in dumped}
