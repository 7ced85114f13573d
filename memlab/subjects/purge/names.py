"""Names in a journal, grouped by their source: purged or other memories, or users.

The names are read from all events, by the declared role of each field.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from memlab.kernel.base.arrays import Ints
from memlab.kernel.journal import Event
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import NAMES, Entities, Field, Siblings, body_field, dump_field
from memlab.subjects.purge.questions import ALL

# Columns of a memory with names, and those whose names are entities.
_NAMED_COLUMNS = frozenset(
    name for name, column in MEMORY.items() if column.storage in ("name", "list") or name == "ref"
)
_ENTITY_COLUMNS = ("subject", "object")


@dataclass
class NameBearers:
    """The names in a journal, grouped by the memories or users they come from.

    Attributes
    ----------
    own
        The names that purged memories ever had.
    others
        The names of other memories, by owner: the creator to whom a memory is private, or ``ALL``.
    declared
        The names that a user or a caller declared.
    own_entities, entities, by_hand
        The names of entities among ``own``, ``others`` and ``declared``.
    """

    own: set[str] = field(default_factory=set)
    others: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    declared: set[str] = field(default_factory=set)
    own_entities: set[str] = field(default_factory=set)
    entities: set[str] = field(default_factory=set)
    by_hand: set[str] = field(default_factory=set)

    def add(self, name: str, *, mine: bool, entity: bool, owner: int = ALL) -> None:
        """Record a name as a name of purged memories (``mine``) or of other memories."""
        (self.own if mine else self.others[owner]).add(name)
        if entity:
            (self.own_entities if mine else self.entities).add(name)

    def declare(self, names: Iterable[str], *, entity: bool) -> None:
        """Add names that a user declared."""
        names = set(names)
        self.declared |= names
        if entity:
            self.by_hand |= names


def gather_names(events: Iterable[Event], ids: Ints, owners: Ints) -> NameBearers:
    """Return the names in a journal, grouped by the memories that contain them.

    Parameters
    ----------
    events
        All events of the journal that may contain names.
    ids
        The ids of the memories to purge.
    owners
        The owner to whom each memory is private, by row; see ``owners_of``.
    """
    gathering = _Gathering(ids, owners)
    for event in events:
        body = body_field(event.kind)
        gathering.add_members(body, event.body, gathering.bearers(body, event.body))
    return gathering.names


class _Gathering:
    """A collector of names that walks through the bodies of events.

    ``bearers`` are the ids of the memories to which the names of a body or item belong.
    """

    def __init__(self, ids: Ints, owners: Ints) -> None:
        self.names = NameBearers()
        self._ids, self._owners = ids, owners
        self._purged = frozenset(ids.tolist())

    def bearers(self, field: Field, value: Any) -> list[int]:
        """Return the ids of memories that contain the names in an event's body or item."""
        return sorted(set(field.ids(value))) if field.bears_names and field.names_memories else []

    def add_members(self, field: Field, values: Mapping[str, Any], bearers: Sequence[int]) -> None:
        """Add the names in each member of a mapping according to the member's declared field."""
        for name, value in values.items():
            part = field.get(name)
            if value is not None and part.bears_names:
                self.add_part(part, value, values, bearers)

    def add_part(
        self, field: Field, value: Any, siblings: Siblings, bearers: Sequence[int]
    ) -> None:
        """Add the names in a value; ``siblings`` are the other members of its mapping."""
        # One case for each role that a field may have. A mapping or item about memories has bearers of its own.
        if field.role in NAMES:
            self._add_names(field, value, siblings, bearers)
        elif field.role == "mapping":
            own = self.bearers(field, value) if field.is_about_memories else bearers
            for key in value if field.keys and field.held == "memories" else ():
                self._add_name(key, own, entity=field.keys == "entity")
            self.add_members(field, value, own)
        elif field.role in ("list", "tuple"):
            for number, item in enumerate(value):
                inner = field.item(number)
                if item is not None and inner.bears_names:
                    own = self.bearers(inner, item) if inner.is_about_memories else bearers
                    self.add_part(inner, item, siblings, own)
        elif field.role == "rows":
            self._rows(field, value)
        elif field.role == "columns" and "first" in siblings:
            self._columns(range(siblings["first"], siblings["first"] + siblings["count"]), value)
        elif field.role == "values":
            self._columns(value["ids"], value["columns"])
        elif field.role == "graph":
            self._graph(value)
        elif field.role == "registers":
            self._registers(value)

    def _add_names(
        self, field: Field, value: Any, siblings: Siblings, bearers: Sequence[int]
    ) -> None:
        """Add the names in a field, either as declared names or as names that the memories ``bearers`` share."""
        entity = field.role == "entity" or (
            field.role == "node" and siblings.get("kind") == "entity"
        )
        if field.held == "declared":
            self.names.declare(_strings(value), entity=entity)
        elif field.held == "memories":
            for name in _strings(value):
                self._add_name(name, bearers, entity=entity)

    def _add_name(self, name: str, bearers: Collection[int], *, entity: bool) -> None:
        """Add a name that several memories share: as purged if one of them is purged, or else for each of their owners."""
        if not self._purged.isdisjoint(bearers):
            self.names.add(name, mine=True, entity=entity)
            return
        for owner in {int(self._owners[id - 1]) for id in bearers}:
            self.names.add(name, mine=False, entity=entity, owner=owner)

    def _rows(self, field: Field, columns: Mapping[str, Any]) -> None:
        """Add the names in parallel columns, whose rows belong to different memories."""
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
                for text in _strings(value):
                    self._add_name(text, ids, entity=entity)

    def _columns(self, ids: Sequence[int], columns: Mapping[str, Any]) -> None:
        """Add the names in columns of memories; a scalar value applies to all memories."""
        numbers = np.asarray(ids, dtype=np.int64)
        mine, owner_of = np.isin(numbers, self._ids), self._owners[numbers - 1]
        flags, owners = mine.tolist(), owner_of.tolist()
        staying_owners = np.unique(owner_of[~mine]).tolist()
        for name in columns.keys() & _NAMED_COLUMNS:
            column, entity = columns[name], name in _ENTITY_COLUMNS
            if isinstance(column, list):
                for value, gone, owner in zip(column, flags, owners, strict=True):
                    for text in _strings(value):
                        self.names.add(text, mine=gone, entity=entity, owner=owner)
            elif column is not None:
                if mine.any():
                    self.names.add(column, mine=True, entity=entity)
                for owner in staying_owners:
                    self.names.add(column, mine=False, entity=entity, owner=owner)

    def _graph(self, graph: Mapping[str, Any]) -> None:
        """Add the names of imported nodes.

        A node that no edge joins to a purged memory counts as one of others.
        """
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
        """Add the names in imported registers, with names of entities as declared names."""
        for name, dumped in registers.items():
            if name == Entities.name:
                self.names.declare(Entities.declared_in(dumped), entity=True)
            elif dump_field(name).bears_names:
                self.add_part(dump_field(name), dumped, {}, self.bearers(dump_field(name), dumped))


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings in a value and in its nested lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
