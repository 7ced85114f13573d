"""Who bears which names: purged memories, memories that stay, or a person who declared them.

Read from all events of a journal, by what each field of theirs is declared to hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.journal import Event
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import NAMES, Entities, Field, body_field, dump_field
from memlab.subjects.purge.questions import ALL

__all__ = ["HeldNames", "gather_names"]

_NAMED_COLUMNS = frozenset(
    name for name, column in MEMORY.items() if column.storage in ("name", "list") or name == "ref"
)
_ENTITY_COLUMNS = ("subject", "object")


@dataclass
class HeldNames:
    """The names that purged memories ever had (``own``), that others had, and that a person or caller declared.

    ``others`` by who may see them. Those of entities once more, by themselves: ``own_entities``, ``entities`` of
    others, ``by_hand``.
    """

    own: set[str] = field(default_factory=set)
    others: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    declared: set[str] = field(default_factory=set)
    own_entities: set[str] = field(default_factory=set)
    entities: set[str] = field(default_factory=set)
    by_hand: set[str] = field(default_factory=set)

    def add(self, name: str, *, mine: bool, entity: bool, owner: int = ALL) -> None:
        """Add a name that a purged memory (``mine``) or another one bears."""
        (self.own if mine else self.others[owner]).add(name)
        if entity:
            (self.own_entities if mine else self.entities).add(name)

    def declare(self, names: Iterable[str], *, entity: bool) -> None:
        """Add names that a person declared."""
        names = set(names)
        self.declared |= names
        if entity:
            self.by_hand |= names


def gather_names(
    events: Iterable[Event], ids: NDArray[np.int64], owners: NDArray[np.int64]
) -> HeldNames:
    """Return who bears which names.

    Parameters
    ----------
    events
        All events of the journal.
    ids
        The memories to purge.
    owners
        To whom each memory is private, by row.
    """
    gathering = _Gathering(ids, owners)
    for event in events:
        body = body_field(event.kind)
        gathering.members(body, event.body, gathering.bearers(body, event.body))
    return gathering.names


class _Gathering:
    """A walk through bodies; ``bearers`` are the memories that the names of a body or item belong to."""

    def __init__(self, ids: NDArray[np.int64], owners: NDArray[np.int64]) -> None:
        self.names = HeldNames()
        self._ids, self._owners = ids, owners
        self._purged = frozenset(ids.tolist())

    def bearers(self, field: Field, value: Any) -> list[int]:
        """Return the memories that a body or item names, where it has names that belong to them."""
        return sorted(set(field.ids(value))) if field.bears_names and field.names_memories else []

    def members(self, field: Field, values: Mapping[str, Any], bearers: Sequence[int]) -> None:
        for name, value in values.items():
            part = field.get(name)
            if value is not None and part.bears_names:
                self.part(part, value, values, bearers)

    def part(
        self, field: Field, value: Any, beside: Mapping[str, Any], bearers: Sequence[int]
    ) -> None:
        if field.role in NAMES:
            self._names(field, value, beside, bearers)
        elif field.role == "mapping":
            own = self.bearers(field, value) if field.is_about_memories else bearers
            for key in value if field.keys and field.held == "memories" else ():
                self._bear(key, own, entity=field.keys == "entity")
            self.members(field, value, own)
        elif field.role in ("list", "tuple"):
            for number, item in enumerate(value):
                inner = field.item(number)
                if item is not None and inner.bears_names:
                    own = self.bearers(inner, item) if inner.is_about_memories else bearers
                    self.part(inner, item, beside, own)
        elif field.role == "rows":
            self._rows(field, value)
        elif field.role == "columns" and "first" in beside:
            self._columns(range(beside["first"], beside["first"] + beside["count"]), value)
        elif field.role == "values":
            self._columns(value["ids"], value["columns"])
        elif field.role == "graph":
            self._graph(value)
        elif field.role == "registers":
            self._registers(value)

    def _names(
        self, field: Field, value: Any, beside: Mapping[str, Any], bearers: Sequence[int]
    ) -> None:
        entity = field.role == "entity" or (field.role == "node" and beside.get("kind") == "entity")
        if field.held == "declared":
            self.names.declare(_strings(value), entity=entity)
        elif field.held == "memories":
            for name in _strings(value):
                self._bear(name, bearers, entity=entity)

    def _bear(self, name: str, bearers: Collection[int], *, entity: bool) -> None:
        """Add a name that these memories bear together: it is of a purged one if any of them is."""
        if not self._purged.isdisjoint(bearers):
            self.names.add(name, mine=True, entity=entity)
            return
        for owner in {int(self._owners[id - 1]) for id in bearers}:
            self.names.add(name, mine=False, entity=entity, owner=owner)

    def _rows(self, field: Field, columns: Mapping[str, Any]) -> None:
        """Each name in a row belongs to the memories of that row."""
        bearing = [part for name, part in columns.items() if field.get(name).role == "memory"]
        for name, part in columns.items():
            column = field.get(name)
            if column.role not in NAMES:
                continue
            entity = column.role == "entity" or (
                column.role == "node" and columns.get("kind") == "entity"
            )
            for row, value in enumerate(part if isinstance(part, list) else ()):
                ids = [memories[row] for memories in bearing if memories[row] is not None]
                for one in _strings(value):
                    self._bear(one, ids, entity=entity)

    def _columns(self, listed: Sequence[int], columns: Mapping[str, Any]) -> None:
        numbers = np.asarray(listed, dtype=np.int64)
        mine, of = np.isin(numbers, self._ids), self._owners[numbers - 1]
        flags, owning = mine.tolist(), of.tolist()
        stays = np.unique(of[~mine]).tolist()
        for name in columns.keys() & _NAMED_COLUMNS:
            given, entity = columns[name], name in _ENTITY_COLUMNS
            if isinstance(given, list):
                for value, gone, owner in zip(given, flags, owning, strict=True):
                    for one in _strings(value):
                        self.names.add(one, mine=gone, entity=entity, owner=owner)
            elif given is not None:
                if mine.any():
                    self.names.add(given, mine=True, entity=entity)
                for owner in stays:
                    self.names.add(given, mine=False, entity=entity, owner=owner)

    def _graph(self, graph: Mapping[str, Any]) -> None:
        """Imported nodes: those of purged memories, and all others, whatever joins them."""
        ends = list(zip(graph["source"], graph["target"], strict=True))
        mine = {
            end for pair in ends for end in pair if end < 0 and not self._purged.isdisjoint(pair)
        }
        others = {end for pair in ends for end in pair if end < 0 and self._purged.isdisjoint(pair)}
        for number, (kind, name) in enumerate(graph["nodes"], 1):
            if -number in mine:
                self.names.add(name, mine=True, entity=kind == "entity")
            if -number in others or -number not in mine:
                self.names.add(name, mine=False, entity=kind == "entity")

    def _registers(self, registers: Mapping[str, Any]) -> None:
        """Imported registers tell what was declared in the other lab."""
        for name, dumped in registers.items():
            if name == Entities.name:
                self.names.declare(Entities.declared_in(dumped), entity=True)
            elif dump_field(name).bears_names:
                self.part(dump_field(name), dumped, {}, self.bearers(dump_field(name), dumped))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
