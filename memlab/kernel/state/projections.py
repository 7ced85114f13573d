"""Projections: what is folded from the journal besides memories and edges, a small table each.

A subject declares its own, and a state is made with those that it is given; a snapshot holds each of them whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from memlab.kernel.journal import Event
from memlab.kernel.registry import Owned, Registry
from memlab.kernel.state.events import declare_events, declare_register, extend_event
from memlab.kernel.state.roles import UNDECLARED, EventType, Field, Register

__all__ = ["EVERY_KIND", "EXTENDED", "Projection", "declare_projections", "with_extended"]

EVERY_KIND = "*"
"""In the ``kinds`` of a projection: it reads the parts that any event may carry."""


class Projection(ABC):
    """One such table."""

    name: ClassVar[str]
    """What it is called in snapshots, exports and imports."""

    kinds: ClassVar[tuple[str, ...]]
    """The kinds of events that it folds."""

    events: ClassVar[tuple[EventType, ...]] = ()
    """The kinds of events that its subject declares."""

    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = MappingProxyType({})
    """The fields that its subject writes into events of other subjects of memlab, by kind."""

    dumped: ClassVar[Field] = UNDECLARED
    """What ``dump`` returns; strings that are not declared are treated as private text."""

    exported: ClassVar[bool] = True
    """Whether an export carries the dump. What speaks of events of its own journal means nothing next to another."""

    @classmethod
    def register(cls) -> Register:
        """Return what its dump holds."""
        return Register(cls.name, cls.dumped, cls.exported, doc=(cls.__doc__ or "").partition("\n")[0])

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


def declare_projections(projections: Iterable[type[Projection]]) -> None:
    """Declare the events of memlab's projections, and what their dumps hold."""
    for kind in projections:
        declare_events(kind.events)
        declare_register(kind.register())
    for kind in projections:
        for extended, fields in kind.adds.items():
            extend_event(extended, fields)


def _refusal(declared: Owned) -> str | None:
    """Return why an extension's projection is refused."""
    kind = declared.value
    if not isinstance(kind, type) or not issubclass(kind, Projection):
        return f"{declared.name} is no subclass of memlab.kernel.state.Projection."
    if kind.adds:
        return f"The projection {declared.name} adds fields to the events of memlab: declare an event of its own."
    return None


EXTENDED: Registry[Owned] = Registry("projection", kind="projections", about="doc", check=_refusal)
"""The projections that extensions declare."""


def with_extended(projections: Sequence[type[Projection]]) -> tuple[type[Projection], ...]:
    """Return projections of memlab and those of the extensions that are registered."""
    return (*projections, *(declared.value for declared in EXTENDED.values()))
