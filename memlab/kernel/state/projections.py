"""Projections: what is folded from the journal besides memories and edges, a small table each.

A subject declares its own, and a state is made with those that it is given; a snapshot holds each of them whole.
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
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.journal import Event
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

__all__ = [
    "ENTITY_TYPES",
    "EVERY_KIND",
    "EXTENDED",
    "MOVED",
    "PLACEHOLDER",
    "Entities",
    "EntitySummary",
    "Entry",
    "Projection",
    "Tombstones",
    "add_extension_projections",
    "declare_projections",
    "entity_key",
    "normalize_entity_name",
    "normalize_text",
]


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
        return Register(
            cls.name, cls.dumped, cls.exported, doc=(cls.__doc__ or "").partition("\n")[0]
        )

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


def add_extension_projections(
    projections: Sequence[type[Projection]],
) -> tuple[type[Projection], ...]:
    """Return projections of memlab and those of the extensions that are registered."""
    return (*projections, *(declared.value for declared in EXTENDED.values()))


# -- tombstones -------------------------------------------------------------------------------------------------------

PLACEHOLDER = "[purged "
"""How the names begin that a purge puts in the place of others."""

_KEY_BYTES, _HASH_BYTES = 32, 16


def normalize_text(text: str) -> str:
    """What copies of one text have in common: composed, and one space for any white space.

    >>> normalize_text(" Tabs,\\n not  spaces ")
    'Tabs, not spaces'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


class Tombstones(Projection):
    """The purged texts of a lab by their hashes, and the origins of what was purged: an import does not bring it back.

    A tombstone is a keyed hash of the text and where the memory came from. The key is drawn once for a lab: whoever has
    the lab can ask whether a text was purged from it, and nobody can tell from it what was.

    >>> tombstones = Tombstones()
    >>> tombstones.is_purged("tabs")
    False
    """

    name: ClassVar[str] = "purged"
    kinds: ClassVar[tuple[str, ...]] = ("purge",)
    dumped: ClassVar[Field] = mapping_field(
        {"hashes": list_field(Field("bytes"), Field("bytes")), "origins": Field("word")},
    )

    def __init__(self) -> None:
        self._hashes: dict[bytes, set[bytes]] = {}
        """By the key that they were made with: the first is this lab's, others came with an import."""
        self._origins: set[str] = set()

    def __len__(self) -> int:
        """How many texts were purged."""
        return sum(map(len, self._hashes.values()))

    def is_purged(self, text: str, *, origin: str | None = None) -> bool:
        """Whether this text was purged here, as the privacy gate left it, or a memory that came from ``origin``."""
        if origin is not None and origin in self._origins:
            return True
        return any(_hash(key, text) in hashes for key, hashes in self._hashes.items())

    def build_body(self, texts: Iterable[str], origins: Iterable[str]) -> dict[str, Any]:
        """What the event of a purge holds of these texts and origins."""
        key = next(iter(self._hashes), b"") or secrets.token_bytes(_KEY_BYTES)
        return {
            "key": key,
            "hashes": sorted({_hash(key, text) for text in texts}),
            "origins": sorted(set(origins)),
        }

    def fold(self, event: Event) -> None:
        given = event.body["tombstones"]
        self._hashes.setdefault(given["key"], set()).update(given["hashes"])
        self._origins.update(given["origins"])

    def dump(self) -> Any:
        return {
            "hashes": [[key, sorted(hashes)] for key, hashes in self._hashes.items()],
            "origins": sorted(self._origins),
        }

    def load(self, dumped: Any) -> None:
        """On top of what is known: what was purged here or where an import comes from stays so."""
        for key, hashes in dumped["hashes"]:
            self._hashes.setdefault(key, set()).update(hashes)
        self._origins.update(dumped["origins"])


def _hash(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(normalize_text(text).encode(), key=key, digest_size=_HASH_BYTES).digest()


# -- entities ---------------------------------------------------------------------------------------------------------

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

MOVED = ("subject", "object", "edges", "shared")
_UNSEEN = dict.fromkeys(
    map(ord, "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
)
"""Marks of direction, which come along when a name in Arabic or Hebrew is pasted."""


def normalize_entity_name(name: str) -> str:
    """A name as it is kept: composed, single spaces, no marks of direction. InputError if nothing is left.

    >>> normalize_entity_name("  Ada  Lovelace ")
    'Ada Lovelace'
    """
    if not name.isascii():
        name = unicodedata.normalize("NFC", name).translate(_UNSEEN)
    kept = " ".join(name.split())
    if not kept:
        raise InputError(f"An entity has a name, not {name!r}.")
    return kept


def entity_key(name: str) -> str:
    """What two spellings of one name have in common: canonical caseless matching of the Unicode standard (3.13, D145).

    >>> entity_key("STRASSE") == entity_key("stra\\u00dfe"), entity_key("Zoe\\u0308") == entity_key("zo\\u00eb")
    (True, True)
    """
    kept = normalize_entity_name(name)
    if kept.isascii():
        return kept.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", kept).casefold())


@dataclass(slots=True)
class Entry:
    """One entity by itself, without what was merged into it.

    ``mentions`` counts the memories that were joined to it, ``last`` is the instant of the newest (``NEVER``: none).
    While it is merged ``into`` another, ``moved`` lists by id the memories that had it as ``subject`` or ``object``,
    all that mentioned it (``edges``), and those that mentioned the other too without naming it (``shared``).
    """

    name: str
    type: str | None = None
    mentions: int = 0
    last: int = NEVER
    into: int | None = None
    moved: dict[str, list[int]] = field(default_factory=dict)


class EntitySummary(NamedTuple):
    """An entity as people see it: with the aliases, mentions and last instant of what was merged into it."""

    id: int
    name: str
    type: str | None
    aliases: tuple[str, ...]
    mentions: int
    last: int
    merged_into: str | None


_MOVED = mapping_field({"*": Field("memory")})


class Entities(Projection):
    """Who and what facts are about, under all the names that were given to them, folded from the events that name them.

    A name is known in any case and any normal form of Unicode, and belongs to one entity at a time. An entity that was
    merged into another keeps its names, its count and what moved, so that splitting it off again gives back what was.

    >>> entities = Entities()
    >>> entities.canonical_name("ada") is None, entities.find_number("ada")
    (True, None)
    """

    name: ClassVar[str] = "entities"
    kinds: ClassVar[tuple[str, ...]] = (EVERY_KIND,)
    dumped: ClassVar[Field] = mapping_field(
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
        """Every name that was ever given, as it was first spelled; only ever longer."""
        self.owners: list[int] = []
        """The entity that each of ``names`` belongs to, by number from 0, merged or not."""
        self.version = 0
        """Changes where names that were known come to name another entity."""
        self._known: dict[str, int] = {}
        self._merged: set[int] = set()

    def __len__(self) -> int:
        return len(self.entries)

    # -- names ------------------------------------------------------------------------------------------------

    def find_owner(self, name: str) -> int | None:
        """The entity that bears this name, even if it is merged into another."""
        place = self._known.get(entity_key(name))
        return None if place is None else self.owners[place]

    def find_number(self, name: str) -> int | None:
        """The entity that this name denotes now."""
        owner = self.find_owner(name)
        return None if owner is None else self.find_root(owner)

    def canonical_name(self, name: str) -> str | None:
        """What the entity of this name is called, None for a name that nothing bears."""
        number = self.find_number(name)
        return None if number is None else self.entries[number].name

    def list_ancestors(self, number: int) -> list[int]:
        """An entity, what it was merged into, what that was merged into, and so on."""
        found = [number]
        while (into := self.entries[found[-1]].into) is not None:
            found.append(into)
        return found

    def find_root(self, number: int) -> int:
        """The entity into which this one was merged in the end; itself if it was not."""
        return self.list_ancestors(number)[-1]

    def find_roots(self) -> NDArray[np.int64]:
        """``root`` of every entity, by number."""
        found = np.arange(len(self.entries), dtype=np.int64)
        for number in self._merged:
            found[number] = self.find_root(number)
        return found

    def summarize_all(self) -> list[EntitySummary]:
        """Every entity as it stands, merged ones too, by number: one pass over all names."""
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
        """One entity as it stands."""
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

    # -- the fold ---------------------------------------------------------------------------------------------

    def fold(self, event: Event) -> None:
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
            for part in body.get("join", ()):
                if part["kind"] == "entity" and part["relation"] == "mentions":
                    self._mention(part["source"], part["target"], event)

    def shows(self, kind: str, body: dict[str, Any], *, viewer: str, seen: bool) -> bool | None:
        if kind not in ("merge-entity", "split-entity"):
            return None
        return seen or all(
            self.find_owner(body[name]) is not None for name in ("entity", "from") if name in body
        )

    def _numbered(self, name: str) -> int:
        """The entity that bears this name; a new name is a new entity."""
        owner = self.find_owner(name)
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
        elif self.owners[place] != owner:
            self.owners[place] = owner
            self.version += 1

    def _declare(self, name: str, type: str | None, aliases: Iterable[str]) -> None:
        number = self._numbered(name)
        if type is not None:
            self.entries[number].type = type
        for alias in aliases:
            self._give(alias, number)

    def _mention(self, ids: Sequence[int], names: Sequence[str], event: Event) -> None:
        created = event.body.get("columns", {}).get("created", event.at)
        first = event.body.get("first", 0)
        for id, name in zip(ids, names, strict=True):
            when = created
            if isinstance(created, list):
                when = created[id - first] if 0 <= id - first < len(created) else event.at
            self._count(name, when)

    def _count(self, name: str, when: int) -> None:
        entry = self.entries[self._numbered(name)]
        entry.mentions, entry.last = entry.mentions + 1, max(entry.last, when)

    def _import(self, graph: Mapping[str, Any]) -> None:
        """Mentions from another lab, dated by their edges: ends below zero are places among ``nodes``, from 1."""
        for target, relation, when in zip(
            graph["target"], graph["relation"], graph["created"], strict=True
        ):
            if relation == "mentions" and target < 0:
                kind, name = graph["nodes"][-target - 1]
                if kind == "entity":
                    self._count(name, when)

    def _merge(self, name: str, into: str, moved: Mapping[str, Sequence[int]]) -> None:
        number = self._numbered(name)
        entry = self.entries[number]
        entry.into, entry.moved = self._numbered(into), {what: list(moved[what]) for what in MOVED}
        self._merged.add(number)
        self.version += 1

    def _undo(self, name: str) -> None:
        """Split off what was merged. Those between it and the last in the chain no longer gave away what goes back."""
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
            # what mentions the one above for another reason
            named = gone["shared"].union(*moved.values())
            for what in ("edges", "shared"):
                moved[what] = [
                    id for id in above.moved[what] if id not in gone["edges"] or id in named
                ]
            above.moved = moved
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
        self._merged = {
            number for number, entry in enumerate(self.entries) if entry.into is not None
        }
        self._check_merges()
        self.version += 1

    @staticmethod
    def declared_in(dumped: Mapping[str, Any]) -> set[str]:
        """Return the names in a dump that a person declared: of an entity with a type, further names, or a merge."""
        entries, owners = dumped["entries"], dumped["owners"]
        several = {owner for owner, held in Counter(owners).items() if held > 1}
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
        dumped: Mapping[str, Any], known: Mapping[str, Any], lost: Mapping[str, int]
    ) -> dict[str, Any]:
        """Return a dump whose entities are mentioned less often, by how often the names in ``known`` lost a mention."""
        entries = [
            [name, type, max(0, mentions - lost.get(known["entries"][number][0], 0)), *rest]
            for number, (name, type, mentions, *rest) in enumerate(dumped["entries"])
        ]
        return {**dumped, "entries": entries}

    def _check_merges(self) -> None:
        """InputError where entities are merged in a circle, which has no last one, or into what is not there."""
        ending: set[int] = set()
        for number in self._merged:
            line: dict[int, None] = {}
            into: int | None = number
            while into is not None and into not in ending:
                if into in line or not 0 <= into < len(self.entries):
                    raise InputError(
                        f"The entity {self.entries[number].name!r} is merged in a circle, or into nothing."
                    )
                line[into] = None
                into = self.entries[into].into
            ending.update(line)
