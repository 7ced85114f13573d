"""Projections: what is folded from the journal besides memories and edges, a small table each.

A subject declares its own, and a state is made with those that it is given; a snapshot holds each of them whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from memlab.journal import Event

__all__ = ["Projection"]


class Projection(ABC):
    """One such table."""

    name: ClassVar[str]
    """What it is called in snapshots, exports and imports."""

    kinds: ClassVar[tuple[str, ...]]
    """The kinds of events that it folds."""

    @abstractmethod
    def fold(self, event: Event) -> None:
        """Apply one event of its ``kinds``."""

    @abstractmethod
    def dump(self) -> Any:
        """All of it, as msgpack can hold it."""

    @abstractmethod
    def load(self, dumped: Any) -> None:
        """Take in what ``dump`` gave."""

    def shows(self, kind: str, body: dict[str, Any], *, viewer: str, seen: bool) -> bool | None:
        """Whether an event of its ``kinds`` is part of what ``viewer`` sees; None where memories alone decide that.

        ``body`` is without what is hidden from the viewer, and ``seen`` says whether it names a memory that is not.
        """
        return None
