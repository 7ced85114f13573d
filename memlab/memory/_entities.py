"""Entities: who and what facts are about, under all the names that were given to them.

A name is known in any case and any normal form of Unicode, and belongs to one entity at a time. An entity that was
merged into another keeps its names, its count and what moved, so that splitting it off again gives back what was.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.schema import NEVER

if TYPE_CHECKING:
    from memlab.memory._registers import Happened

__all__ = ["ENTITY_TYPES", "MOVED", "Entities", "Entry", "Listed", "entity_key", "entity_name"]

ENTITY_TYPES = ("person", "project", "concept", "decision", "preference")

MOVED = ("subject", "object", "edges", "shared")
_UNSEEN = dict.fromkeys(map(ord, "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"))
"""Marks of direction, which come along when a name in Arabic or Hebrew is pasted."""


def entity_name(name: str) -> str:
    """A name as it is kept: composed, single spaces, no marks of direction. InputError if nothing is left.

    >>> entity_name("  Ada  Lovelace ")
    'Ada Lovelace'
    """
    kept = " ".join(unicodedata.normalize("NFC", name).translate(_UNSEEN).split())
    if not kept:
        raise InputError(f"An entity has a name, not {name!r}.")
    return kept


def entity_key(name: str) -> str:
    """What two spellings of one name have in common: canonical caseless matching of the Unicode standard (3.13, D145).

    >>> entity_key("STRASSE") == entity_key("stra\\u00dfe"), entity_key("Zoe\\u0308") == entity_key("zo\\u00eb")
    (True, True)
    """
    folded = unicodedata.normalize("NFD", entity_name(name)).casefold()
    return unicodedata.normalize("NFC", folded)


@dataclass(slots=True)
class Entry:
    """One entity by itself, without what was merged into it.

    ``mentions`` counts the memories that were joined to it, ``last`` is the instant of the newest (``NEVER``: none).
    While it is merged ``into`` another, ``moved`` lists by id the memories whose ``subject``, ``object`` or edge
    (``edges``) it gave away, and those that mentioned both (``shared``).
    """

    name: str
    type: str | None = None
    mentions: int = 0
    last: int = NEVER
    into: int | None = None
    moved: dict[str, list[int]] = field(default_factory=dict)


class Listed(NamedTuple):
    """An entity as people see it: with the aliases, mentions and last instant of what was merged into it."""

    id: int
    name: str
    type: str | None
    aliases: tuple[str, ...]
    mentions: int
    last: int
    merged_into: str | None


class Entities:
    """The register of entities, folded from the events that name them.

    >>> entities = Entities()
    >>> entities.canonical("ada") is None, entities.number("ada")
    (True, None)
    """

    kinds: tuple[str, ...] = (
        *("remember", "import", "link", "edit", "restore", "resolve", "maintain", "consolidate", "reinforce"),
        *("entity", "merge-entity", "split-entity"),
    )

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.names: list[str] = []
        """Every name that was ever given, as it was first spelled; only ever longer."""
        self.owners: list[int] = []
        """The entity that each of ``names`` belongs to, by number from 0, merged or not."""
        self.version = 0
        """Changes with whatever changes names or merges."""
        self._known: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.entries)

    # -- names ------------------------------------------------------------------------------------------------

    def owner(self, name: str) -> int | None:
        """The entity that bears this name, even if it is merged into another."""
        place = self._known.get(entity_key(name))
        return None if place is None else self.owners[place]

    def number(self, name: str) -> int | None:
        """The entity that this name stands for now."""
        owner = self.owner(name)
        return None if owner is None else self.root(owner)

    def canonical(self, name: str) -> str | None:
        """What the entity of this name is called, None for a name that nothing bears."""
        number = self.number(name)
        return None if number is None else self.entries[number].name

    def root(self, number: int) -> int:
        """The entity into which this one was merged in the end; itself if it was not."""
        while (into := self.entries[number].into) is not None:
            number = into
        return number

    def roots(self) -> NDArray[np.int64]:
        """``root`` of every entity, by number."""
        found = np.arange(len(self.entries), dtype=np.int64)
        merged = [number for number, entry in enumerate(self.entries) if entry.into is not None]
        for number in merged:
            found[number] = self.root(number)
        return found

    def listed(self) -> list[Listed]:
        """Every entity as it stands, merged ones too, by number: one pass over all names."""
        roots = self.roots().tolist()
        own = [self._known[entity_key(entry.name)] for entry in self.entries]
        names: list[list[str]] = [[] for _ in self.entries]
        for place, (name, owner) in enumerate(zip(self.names, self.owners, strict=True)):
            for number in {owner, roots[owner]}:
                if place != own[number]:
                    names[number].append(name)
        counts = [entry.mentions for entry in self.entries]
        lasts = [entry.last for entry in self.entries]
        for number, root in enumerate(roots):
            if root != number:
                counts[root] += self.entries[number].mentions
                lasts[root] = max(lasts[root], self.entries[number].last)
        return [
            Listed(
                number + 1,
                entry.name,
                entry.type,
                tuple(names[number]),
                counts[number],
                lasts[number],
                None if roots[number] == number else self.entries[roots[number]].name,
            )
            for number, entry in enumerate(self.entries)
        ]

    # -- the fold ---------------------------------------------------------------------------------------------

    def fold(self, event: Happened) -> None:
        body = event.body
        if event.kind == "entity":
            self._declare(body["name"], body.get("type"), body.get("aliases", ()))
        elif event.kind == "merge-entity":
            self._merge(body["entity"], body["into"], body["moved"])
        elif event.kind == "split-entity":
            self._part(body) if "from" in body else self._undo(body["entity"])
        else:
            for part in body.get("join", ()):
                if part["kind"] == "entity" and part["relation"] == "mentions":
                    self._mention(part["source"], part["target"], event)

    def _numbered(self, name: str) -> int:
        """The entity that bears this name; a new name is a new entity."""
        owner = self.owner(name)
        if owner is None:
            owner = self._added(Entry(name))
        return owner

    def _added(self, entry: Entry) -> int:
        self.entries.append(entry)
        self._give(entry.name, len(self.entries) - 1)
        return len(self.entries) - 1

    def _give(self, name: str, owner: int) -> None:
        key = entity_key(name)
        place = self._known.get(key)
        if place is None:
            self._known[key] = len(self.names)
            self.names.append(name)
            self.owners.append(owner)
        else:
            self.owners[place] = owner
        self.version += 1

    def _declare(self, name: str, type: str | None, aliases: Iterable[str]) -> None:
        number = self._numbered(name)
        if type is not None:
            self.entries[number].type = type
        for alias in aliases:
            self._give(alias, number)

    def _mention(self, ids: Sequence[int], names: Sequence[str], event: Happened) -> None:
        created = event.body.get("columns", {}).get("created", event.at)
        first = event.body.get("first", 0)
        for id, name in zip(ids, names, strict=True):
            when = created
            if isinstance(created, list):
                when = created[id - first] if 0 <= id - first < len(created) else event.at
            entry = self.entries[self._numbered(name)]
            entry.mentions, entry.last = entry.mentions + 1, max(entry.last, when)

    def _merge(self, name: str, into: str, moved: Mapping[str, Sequence[int]]) -> None:
        entry = self.entries[self._numbered(name)]
        entry.into, entry.moved = self._numbered(into), {what: list(moved[what]) for what in MOVED}
        self.version += 1

    def _undo(self, name: str) -> None:
        """Split off what was merged. Those between it and the last in the chain no longer gave away what goes back."""
        entry = self.entries[self._numbered(name)]
        above, gone = entry.into, {what: set(ids) for what, ids in entry.moved.items()}
        entry.into, entry.moved = None, {}
        while above is not None and (between := self.entries[above]).into is not None:
            between.moved = {what: [id for id in ids if id not in gone[what]] for what, ids in between.moved.items()}
            above = between.into
        self.version += 1

    def _part(self, body: Mapping[str, Any]) -> None:
        """A new entity out of another: some of its names and mentions."""
        source = self.entries[self._numbered(body["from"])]
        source.mentions -= min(body["mentions"], source.mentions)
        number = self._added(Entry(body["entity"], source.type, body["mentions"], body["last"]))
        for alias in body["aliases"]:
            self._give(alias, number)

    # -- snapshots --------------------------------------------------------------------------------------------

    def dump(self) -> Any:
        entries = [
            [entry.name, entry.type, entry.mentions, entry.last, entry.into, dict(entry.moved)]
            for entry in self.entries
        ]
        return {"entries": entries, "names": list(self.names), "owners": list(self.owners)}

    def load(self, dumped: Any) -> None:
        self.entries = [Entry(*fields) for fields in dumped["entries"]]
        self.names, self.owners = list(dumped["names"]), list(dumped["owners"])
        self._known = {entity_key(name): place for place, name in enumerate(self.names)}
        self.version = 1
