"""The last logged recall that showed each memory: what feedback by id belongs to."""

from __future__ import annotations

from typing import Any, ClassVar

from memlab.kernel.journal import Event
from memlab.kernel.state import MEMORY_ID, NUMBER, Field, Projection

__all__ = ["LastShown"]


class LastShown(Projection):
    """The decision of each memory that a recall showed."""

    name: ClassVar[str] = "last-shown"
    kinds: ClassVar[tuple[str, ...]] = ("recall",)
    dumped: ClassVar[Field] = Field("tuple", items=(MEMORY_ID, NUMBER))
    exported: ClassVar[bool] = False

    def __init__(self) -> None:
        self._decisions: dict[int, int] = {}

    def decision(self, memory: int) -> int | None:
        """The last recall that showed the memory of this id; None if none did."""
        return self._decisions.get(memory)

    def fold(self, event: Event) -> None:
        self._decisions.update(dict.fromkeys(event.body["ids"], event.seq))

    def dump(self) -> Any:
        return [list(self._decisions), list(self._decisions.values())]

    def load(self, dumped: Any) -> None:
        self._decisions = dict(zip(*dumped, strict=True))
