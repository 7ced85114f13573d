"""What is folded from the journal besides memories and edges: one small table each, written whole into a snapshot."""

from __future__ import annotations

from typing import Any, Protocol

from memlab.memory._clusters import Centroids
from memlab.memory._entities import Entities
from memlab.memory._gaps import Gaps
from memlab.memory._judged import Judged
from memlab.memory._purged import Tombstones
from memlab.memory._recalls import Recalls
from memlab.memory._relationships import Relationships
from memlab.memory._summaries import Summaries
from memlab.memory._waiting import Waiting

__all__ = ["REGISTERS", "Happened", "Register"]


class Happened(Protocol):
    """What the fold reads of an event."""

    @property
    def seq(self) -> int: ...
    @property
    def at(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def body(self) -> dict[str, Any]: ...


class Register(Protocol):
    """One such table. ``dump`` gives what msgpack can hold, and ``load`` takes it back."""

    kinds: tuple[str, ...]
    """The events that it folds."""

    def fold(self, event: Happened) -> None: ...
    def dump(self) -> Any: ...
    def load(self, dumped: Any) -> None: ...


REGISTERS: dict[str, type[Register]] = {
    "clusters": Centroids,
    "entities": Entities,
    "gaps": Gaps,
    "judged": Judged,
    "purged": Tombstones,
    "recalls": Recalls,
    "relationships": Relationships,
    "summaries": Summaries,
    "waiting": Waiting,
}
"""By name, which is that of the attribute on disk; the fold asks each for the events of its ``kinds``."""
