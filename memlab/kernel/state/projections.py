"""Projections: small tables folded from the journal.

They store what memories and edges do not. A subject declares its own projections, and a state is created with a list of
their classes. A snapshot stores the dump of each projection.
"""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from memlab.errors import InputError
from memlab.kernel.base.arrays import Ints
from memlab.kernel.journal import Body, Event
from memlab.kernel.registry import Owned, Registry
from memlab.kernel.schema import NEVER
from memlab.kernel.state.events import (
    UNDECLARED,
    EventType,
    Field,
    Register,
    declare_events,
    declare_register,
    extend_event,
    list_field,
    mapping_field,
)

EVERY_KIND = "*"
"""An item of ``Projection.kinds`` that matches every kind: the projection reads parts that any event may have."""


class Projection(ABC):
    """A table that is folded from events and stored with the state of a lab.

    Subclass it in an extension and pass the class to ``Extension(projections=...)``. The class names the kinds of
    events that it folds, and the instance stores, dumps and loads the table.

    Examples
    --------
    >>> from typing import ClassVar
    >>> class Visits(Projection):
    ...     '''How many recalls were logged.'''
    ...
    ...     name: ClassVar[str] = "visits"
    ...     kinds: ClassVar[tuple[str, ...]] = ("recall",)
    ...
    ...     def __init__(self):
    ...         self.count = 0
    ...
    ...     def fold(self, event):
    ...         self.count += 1
    ...
    ...     def dump(self):
    ...         return self.count
    ...
    ...     def load(self, dumped):
    ...         self.count = dumped
    >>> visits = Visits()
    >>> visits.fold(Event(1, 0, "recall", {}))
    >>> visits.dump()
    1
    """

    name: ClassVar[str]
    """The name in snapshots, exports and imports."""

    kinds: ClassVar[tuple[str, ...]]
    """The kinds of events that the projection folds."""

    events: ClassVar[tuple[EventType, ...]] = ()
    """The new kinds of events that the projection declares."""

    adds: ClassVar[Mapping[str, Mapping[str, Field]]] = MappingProxyType({})
    """Fields that the subject adds to the event types of other subjects of memlab, by kind."""

    dumped: ClassVar[Field] = UNDECLARED
    """The declaration of the value that ``dump`` returns. Undeclared strings are treated as private text."""

    exported: ClassVar[bool] = True
    """Whether exports carry the dump. Numbers of events are meaningless in the journal of another lab."""

    @classmethod
    def register(cls) -> Register:
        """Return the declaration of the dump for exports, imports and purges.

        Returns
        -------
        Register
            The name, the declared dump and the first line of the class's docstring.
        """
        return Register(
            cls.name, cls.dumped, cls.exported, doc=(cls.__doc__ or "").partition("\n")[0]
        )

    @abstractmethod
    def fold(self, event: Event) -> None:
        """Update the projection from one event.

        Parameters
        ----------
        event
            An event of one of the ``kinds``, in the order of the journal.
        """

    @abstractmethod
    def dump(self) -> Any:
        """Return the whole table as values that msgpack can encode.

        Returns
        -------
        Any
            A value of None, numbers, strings, bytes, lists and dicts. Exports leave out a table whose dump is None.
        """

    @abstractmethod
    def load(self, dumped: Any) -> None:
        """Restore the table of the projection from a dump.

        Parameters
        ----------
        dumped
            The return value of ``dump`` in this lab or in the source of an import.
        """

    def shows(self, kind: str, body: Body, *, viewer: str, seen: bool) -> bool | None:
        """Return whether an event of one of the ``kinds`` is visible to a viewer.

        Parameters
        ----------
        kind
            The kind of the event.
        body
            The body of the event, without the parts that are hidden from the viewer.
        viewer
            The name of the user or agent whose view is computed.
        seen
            Whether the event names a memory that the viewer sees.

        Returns
        -------
        bool | None
            None, the default, leaves the decision to the memories that the event names.
        """
        return None


def declare_projections(projections: Iterable[type[Projection]]) -> None:
    """Declare the events and dumps of memlab's own projections."""
    for kind in projections:
        declare_events(kind.events)
        declare_register(kind.register())
    for kind in projections:
        for extended, fields in kind.adds.items():
            extend_event(extended, fields)


def _describe_projection_fault(declared: Owned) -> str | None:
    """Return why an extension's projection is refused, or None if it is accepted."""
    kind = declared.value
    if not isinstance(kind, type) or not issubclass(kind, Projection):
        return f"{declared.name} is not a subclass of memlab.kernel.state.Projection: derive the class from it."
    if kind.adds:
        return f"The projection {declared.name} adds fields to events of memlab: declare an event of its own instead."
    return None


EXTENDED: Registry[Owned] = Registry(
    "projection", kind="projections", about="doc", check=_describe_projection_fault
)
"""The projections that extensions declare."""


def add_extension_projections(
    projections: Sequence[type[Projection]],
) -> tuple[type[Projection], ...]:
    """Return ``projections``, followed by the projections of registered extensions."""
    return (*projections, *(declared.value for declared in EXTENDED.values()))


# -- Tombstones -------------------------------------------------------------------------------------------------------

PLACEHOLDER = "[purged "
"""The first characters of every name that a purge writes in place of a purged name."""

# BLAKE2b takes keys of up to 64 bytes. A key of 32 bytes cannot be guessed, and digests of 16 bytes have no collisions
# in practice.
_KEY_BYTES, _HASH_BYTES = 32, 16


def normalize_text(text: str) -> str:
    r"""Return a text in Unicode's composed form with single spaces.

    Copies of a text compare equal in this form.

    >>> normalize_text(" Tabs,\n not  spaces ")
    'Tabs, not spaces'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


class Tombstones(Projection):
    """Hashes of the texts, and origins of the memories, that were purged from a lab.

    An import skips texts and memories that have a tombstone.

    A tombstone is a keyed hash of a text. The key is drawn once for each lab. A person who has the lab can test
    whether a given text was purged from it, and cannot learn from a tombstone what the text was.

    >>> tombstones = Tombstones()
    >>> tombstones.is_purged("tabs")
    False
    """

    name = "purged"
    kinds = ("purge",)
    dumped = mapping_field(
        {"hashes": list_field(Field("bytes"), Field("bytes")), "origins": Field("word")},
    )

    def __init__(self) -> None:
        self._hashes: dict[bytes, set[bytes]] = {}
        """The hashes of purged texts by key. The first key is this lab's, and others came with imports."""
        self._origins: set[str] = set()

    def __len__(self) -> int:
        """Return the number of purged texts."""
        return sum(map(len, self._hashes.values()))

    def is_purged(self, text: str, *, origin: str | None = None) -> bool:
        """Return whether a text, or a memory with the given origin, was purged from the lab.

        ``text`` is the text after redaction, because purged texts were redacted before they were stored.
        """
        if origin is not None and origin in self._origins:
            return True
        return any(_hash(key, text) in hashes for key, hashes in self._hashes.items())

    def build_body(self, texts: Iterable[str], origins: Iterable[str]) -> Body:
        """Return the field ``tombstones`` of a purge event for texts and origins."""
        key = next(iter(self._hashes), b"") or secrets.token_bytes(_KEY_BYTES)
        return {
            "key": key,
            "hashes": sorted({_hash(key, text) for text in texts}),
            "origins": sorted(set(origins)),
        }

    def fold(self, event: Event) -> None:
        """Add the tombstones of a purge event."""
        tombstones = event.body["tombstones"]
        self._hashes.setdefault(tombstones["key"], set()).update(tombstones["hashes"])
        self._origins.update(tombstones["origins"])

    def dump(self) -> Any:
        """Return the hashes and origins of all tombstones."""
        return {
            "hashes": [[key, sorted(hashes)] for key, hashes in self._hashes.items()],
            "origins": sorted(self._origins),
        }

    def load(self, dumped: Any) -> None:
        """Add the tombstones in a dump of this lab or of another lab."""
        for key, hashes in dumped["hashes"]:
            self._hashes.setdefault(key, set()).update(hashes)
        self._origins.update(dumped["origins"])


def _hash(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(normalize_text(text).encode(), key=key, digest_size=_HASH_BYTES).digest()


# -- entities ---------------------------------------------------------------------------------------------------------

# The types of entities that a person may declare.
ENTITY_TYPES = (
    "person",
    "project",
    "concept",
    "decision",
    "preference",
    "place",
    "organization",
    "thing",
)

MOVED = ("subject", "object", "edges", "shared")  # see ``Entry``
# Pasting a name in Arabic or Hebrew often copies direction marks, which make equal names differ.
_UNSEEN = dict.fromkeys(
    map(ord, "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
)


def normalize_entity_name(name: str) -> str:
    """Return a name in Unicode's composed form, without direction marks.

    Runs of white space become one space. Raises InputError if no character is left.

    >>> normalize_entity_name("  Ada  Lovelace ")
    'Ada Lovelace'
    """
    if not name.isascii():
        name = unicodedata.normalize("NFC", name).translate(_UNSEEN)
    normalized = " ".join(name.split())
    if not normalized:
        raise InputError(
            f"The name of an entity is empty: {name!r}. Give at least one visible character."
        )
    return normalized


def entity_key(name: str) -> str:
    r"""Return a key that is equal for all spellings of an entity's name.

    The key follows Unicode's canonical caseless matching (section 3.13, D145).

    >>> entity_key("STRASSE") == entity_key("stra\u00dfe"), entity_key("Zoe\u0308") == entity_key("zo\u00eb")
    (True, True)
    """
    normalized = normalize_entity_name(name)
    if normalized.isascii():
        return normalized.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", normalized).casefold())


@dataclass(slots=True)
class Entry:
    """One entity, without the entities that were merged into it.

    ``mentions`` counts the memories that mention the entity. ``last`` is the time of the newest of them, or ``NEVER``.
    While the entity is merged ``into`` another, ``moved`` has four lists of memory ids. ``subject`` and ``object`` list
    the memories with the entity in that column, and ``edges`` all memories that mention it. ``shared`` lists the
    memories that mention both entities and name neither column.
    """

    name: str
    type: str | None = None
    mentions: int = 0
    last: int = NEVER
    into: int | None = None
    moved: dict[str, list[int]] = field(default_factory=dict)


class EntitySummary(NamedTuple):
    """An entity with the aliases, mentions and last time of all entities merged into it."""

    id: int
    name: str
    type: str | None
    aliases: tuple[str, ...]
    mentions: int
    last: int
    merged_into: str | None


# The declarations of several dumps share this field.
_MOVED = mapping_field({"*": Field("memory")})


class Entities(Projection):
    """The entities of a lab under all their names.

    A name matches in any letter case and any normal form of Unicode, and belongs to one entity at a time. A merged
    entity keeps its names, its number of mentions and the lists of moved memories. So splitting it off restores the
    state before the merge.

    >>> entities = Entities()
    >>> entities.canonical_name("ada") is None, entities.find_number("ada")
    (True, None)
    """

    name = "entities"
    kinds = (EVERY_KIND,)
    dumped = mapping_field(
        {
            "entries": list_field(
                Field("entity", held="reference"),
                Field("word"),
                Field("number"),
                Field("time"),
                Field("number"),
                _MOVED,
            ),
            "names": Field("entity", held="reference"),
            "owners": Field("number"),
        }
    )

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.names: list[str] = []
        """Every name ever used, as it was first spelled. Names are only added."""
        self.owners: list[int] = []
        """For each of ``names``, the number (from 0) of the entity that owns it, even if that entity is merged."""
        self.version = 0
        """A counter that changes whenever an existing name starts to refer to another entity."""
        self._known: dict[str, int] = {}
        self._merged: set[int] = set()

    def __len__(self) -> int:
        return len(self.entries)

    # -- Names ------------------------------------------------------------------------------------------------

    def find_owner(self, name: str) -> int | None:
        """Return the id of the entity with the given name; merged entities are included.

        Returns None if no entity has the name.
        """
        index = self._known.get(entity_key(name))
        return None if index is None else self.owners[index]

    def find_number(self, name: str) -> int | None:
        """Return the number of the entity that a name now refers to, or None if unknown."""
        owner = self.find_owner(name)
        return None if owner is None else self.find_root(owner)

    def canonical_name(self, name: str) -> str | None:
        """Return the main name of the entity that a name refers to.

        Returns None if no entity has the name.
        """
        number = self.find_number(name)
        return None if number is None else self.entries[number].name

    def list_ancestors(self, number: int) -> list[int]:
        """Return the numbers of an entity and, in order, of the entities it was merged into."""
        chain = [number]
        while (into := self.entries[chain[-1]].into) is not None:
            chain.append(into)
        return chain

    def find_root(self, number: int) -> int:
        """Return the number of the entity that ``number`` is finally merged into."""
        return self.list_ancestors(number)[-1]

    def find_roots(self) -> Ints:
        """Return the entity that each entity is finally merged into, by entity number."""
        roots = np.arange(len(self.entries), dtype=np.int64)
        for number in self._merged:
            roots[number] = self.find_root(number)
        return roots

    def summarize_all(self) -> list[EntitySummary]:
        """Return a summary of every entity, ordered by number.

        Merged entities are included. The method passes over all names once.
        """
        roots = self.find_roots().tolist()
        names: list[list[str]] = [[] for _ in self.entries]
        for name, owner in zip(self.names, self.owners, strict=True):
            names[owner].append(name)
            if roots[owner] != owner:
                names[roots[owner]].append(name)
        families = [[entry] for entry in self.entries]
        for number in self._merged:
            families[roots[number]].append(self.entries[number])
        return [
            self._as_listed(number, roots[number], families[number], names[number])
            for number in range(len(self))
        ]

    def summarize(self, number: int) -> EntitySummary:
        """Return the summary of one entity."""
        family = {number, *(merged for merged in self._merged if self.find_root(merged) == number)}
        names = [
            name for name, owner in zip(self.names, self.owners, strict=True) if owner in family
        ]
        return self._as_listed(
            number, self.find_root(number), [self.entries[member] for member in family], names
        )

    def _as_listed(
        self, number: int, root: int, family: Sequence[Entry], names: Sequence[str]
    ) -> EntitySummary:
        entry = self.entries[number]
        own = self.names[self._known[entity_key(entry.name)]]
        return EntitySummary(
            number + 1,
            entry.name,
            entry.type,
            tuple(name for name in names if name != own and not name.startswith(PLACEHOLDER)),
            sum(member.mentions for member in family),
            max(member.last for member in family),
            None if root == number else self.entries[root].name,
        )

    # -- Folding events ---------------------------------------------------------------------------------------

    def fold(self, event: Event) -> None:
        """Update the entities from an event: declarations, mentions, merges and splits."""
        body = event.body
        if event.kind == "entity":
            self._declare(body["name"], body.get("type"), body.get("aliases", ()))
        elif event.kind == "merge-entity":
            self._merge(body["entity"], body["into"], body["moved"])
        elif event.kind == "split-entity":
            self._part(body) if "from" in body else self._undo(body["entity"])
        else:
            if "graph" in body and "entities" not in body.get("registers", ()):
                self._import(body["graph"])
            for join in body.get("join", ()):
                if join["kind"] == "entity" and join["relation"] == "mentions":
                    self._mention(join["source"], join["target"], event)

    def shows(self, kind: str, body: Body, *, viewer: str, seen: bool) -> bool | None:
        """Return whether a viewer sees an event that merges or splits entities.

        The viewer sees the event if they see a memory that it names, or all of its entities.
        """
        if kind not in ("merge-entity", "split-entity"):
            return None
        return seen or all(
            self.find_owner(body[name]) is not None for name in ("entity", "from") if name in body
        )

    def _numbered(self, name: str) -> int:
        """Return the number of the entity with the given name, adding a missing entity."""
        owner = self.find_owner(name)
        if owner is None:
            owner = self._added(Entry(name))
        return owner

    def _added(self, entry: Entry) -> int:
        """Append an entity to the table and return its number."""
        self.entries.append(entry)
        self._give(entry.name, len(self.entries) - 1)
        return len(self.entries) - 1

    def _give(self, name: str, owner: int) -> None:
        """Assign a name to an entity, removing it from its previous owner."""
        key = entity_key(name)
        index = self._known.get(key)
        if index is None:
            self._known[key] = len(self.names)
            self.names.append(name)
            self.owners.append(owner)
        elif self.owners[index] != owner:
            self.owners[index] = owner
            self.version += 1

    def _declare(self, name: str, type: str | None, aliases: Iterable[str]) -> None:
        """Apply a person's declaration of an entity: its name, type and aliases."""
        number = self._numbered(name)
        if type is not None:
            self.entries[number].type = type
        for alias in aliases:
            self._give(alias, number)

    def _mention(self, ids: Sequence[int], names: Sequence[str], event: Event) -> None:
        """Count the mentions of entities by memories, at the times of these memories."""
        created = event.body.get("columns", {}).get("created", event.at)
        first = event.body.get("first", 0)
        for id, name in zip(ids, names, strict=True):
            when = created
            if isinstance(created, list):
                when = created[id - first] if 0 <= id - first < len(created) else event.at
            self._count(name, when)

    def _count(self, name: str, when: int) -> None:
        """Count one mention of an entity at the time ``when``."""
        entry = self.entries[self._numbered(name)]
        entry.mentions, entry.last = entry.mentions + 1, max(entry.last, when)

    def _import(self, graph: Mapping[str, Any]) -> None:
        """Count the mentions among imported edges, at the times of these edges.

        An end below zero is the position of a node in ``nodes``, counted from -1.
        """
        for target, relation, when in zip(
            graph["target"], graph["relation"], graph["created"], strict=True
        ):
            if relation == "mentions" and target < 0:
                kind, name = graph["nodes"][-target - 1]
                if kind == "entity":
                    self._count(name, when)

    def _merge(self, name: str, into: str, moved: Mapping[str, Sequence[int]]) -> None:
        """Merge an entity into another and record the moved memories."""
        number = self._numbered(name)
        entry = self.entries[number]
        entry.into, entry.moved = self._numbered(into), {what: list(moved[what]) for what in MOVED}
        self._merged.add(number)
        self.version += 1

    def _undo(self, name: str) -> None:
        """Undo the merge of an entity and move its memories back to it.

        The entities between this entity and the entity it was finally merged into no longer list these memories as
        moved.
        """
        number = self._numbered(name)
        entry = self.entries[number]
        gone = {what: set(ids) for what, ids in entry.moved.items()}
        between = [self.entries[above] for above in self.list_ancestors(number)[1:-1]]
        entry.into, entry.moved = None, {}
        self._merged.discard(number)
        for above in between:
            moved = {
                what: [id for id in above.moved[what] if id not in gone[what]]
                for what in ("subject", "object")
            }
            # Memories that mention the entity above for another reason stay listed.
            otherwise = gone["shared"].union(*moved.values())
            for what in ("edges", "shared"):
                moved[what] = [
                    id for id in above.moved[what] if id not in gone["edges"] or id in otherwise
                ]
            above.moved = moved
        self.version += 1

    def _part(self, body: Mapping[str, Any]) -> None:
        """Split a new entity from another, with some of the names and mentions."""
        source = self.entries[self._numbered(body["from"])]
        source.mentions -= min(body["mentions"], source.mentions)
        number = self._added(Entry(body["entity"], source.type, body["mentions"], body["last"]))
        for alias in body["aliases"]:
            self._give(alias, number)

    # -- Snapshots --------------------------------------------------------------------------------------------

    def dump(self) -> Any:
        """Return all entities, their names and the owner of each name."""
        entries = [
            [entry.name, entry.type, entry.mentions, entry.last, entry.into, dict(entry.moved)]
            for entry in self.entries
        ]
        return {"entries": entries, "names": list(self.names), "owners": list(self.owners)}

    def load(self, dumped: Any) -> None:
        """Restore all entities from a dump. Raises InputError for invalid merges."""
        self.entries = [Entry(*fields) for fields in dumped["entries"]]
        self.names, self.owners = list(dumped["names"]), list(dumped["owners"])
        self._known = {entity_key(name): index for index, name in enumerate(self.names)}
        self._merged = {
            number for number, entry in enumerate(self.entries) if entry.into is not None
        }
        self._check_merges()
        self.version += 1

    @staticmethod
    def declared_in(dumped: Mapping[str, Any]) -> set[str]:
        """Return the names in a dump that a person declared, without names found in texts.

        A person declared the names of an entity if it has a type, several names, or a merge.
        """
        entries, owners = dumped["entries"], dumped["owners"]
        several = {owner for owner, names_held in Counter(owners).items() if names_held > 1}
        merged = {entry[4] for entry in entries} - {None}
        by_hand = {
            number
            for number, (_, type, _, _, into, _) in enumerate(entries)
            if type is not None or into is not None or number in several | merged
        }
        names = {entries[number][0] for number in by_hand}
        return names | {
            name for name, owner in zip(dumped["names"], owners, strict=True) if owner in by_hand
        }

    @staticmethod
    def count_fewer(
        dumped: Mapping[str, Any], original: Mapping[str, Any], lost: Mapping[str, int]
    ) -> dict[str, Any]:
        """Return a dump with the mention counts of entities reduced by ``lost``.

        ``lost`` has the number of lost mentions of each name. ``original`` is the dump before a purge replaced names.
        """
        entries = [
            [name, type, max(0, mentions - lost.get(original["entries"][number][0], 0)), *rest]
            for number, (name, type, mentions, *rest) in enumerate(dumped["entries"])
        ]
        return {**dumped, "entries": entries}

    def _check_merges(self) -> None:
        """Raise InputError if merges form a cycle or lead to a missing entity."""
        ending: set[int] = set()
        for number in self._merged:
            line: dict[int, None] = {}
            into: int | None = number
            while into is not None and into not in ending:
                if into in line or not 0 <= into < len(self.entries):
                    raise InputError(
                        f"The entity {self.entries[number].name!r} is merged in a cycle or into a missing entity: "
                        "import a dump without this fault."
                    )
                line[into] = None
                into = self.entries[into].into
            ending.update(line)
