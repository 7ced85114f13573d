"""The fields of an event's body, and of a register's dump: what each holds, by its role.

Whatever depends on what a field holds is derived from its role: what another viewer sees (``visible``), what a purge
takes out, what an export carries, and which strings are content hashes that need no screening for secrets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

__all__ = ["NAMES", "STRINGS", "UNDECLARED", "EventType", "Field", "Register", "Role", "listed", "mapping", "rows"]

Role = Literal[
    # values that tell nothing of a memory's content
    "number",
    "time",
    "flag",
    "bytes",
    "word",
    "hash",
    # what they refer to
    "memory",
    "edge",
    "last-memory",
    "memory-count",
    "newest-time",
    "decision",
    # strings in somebody's words
    "text",
    "note",
    "label",
    "vector",
    # names that memories bear
    "name",
    "project",
    "session",
    "agent",
    "creator",
    "tag",
    "cluster",
    "entity",
    "node",
    # structure
    "mapping",
    "list",
    "tuple",
    "rows",
    # parts that the fold of the state reads
    "columns",
    "values",
    "graph",
    "registers",
    # a field that no declaration knows
    "undeclared",
]
"""What a field holds. Scalars may stand in a list of them.

``number``, ``time``, ``flag``, ``bytes``, ``word`` (of memlab's own vocabularies, or the source of a policy) and
``hash`` (64 hexadecimal digits) stay as they are. ``memory`` is an id, ``edge`` the number of an edge, ``last-memory``
an id up to which something was done, ``memory-count`` and ``newest-time`` say how many memories the part ``of`` names
and when the newest of them was created, ``decision`` is the event of a recall.

``text`` is cut where it quotes a purged memory, ``note`` also becomes None where nothing is left, ``label`` (a path, a
command) stays where it may be a word of a vocabulary. ``vector`` embeds the question beside it. ``node`` is the name of
a tag, cluster or entity whose kind stands beside it as ``kind``.

``columns`` are values of memory columns for the rows ``first`` and ``count``, ``values`` is one of ``Change.set``,
``graph`` and ``registers`` are parts of an import.
"""

NAMES = frozenset(("name", "project", "session", "agent", "creator", "tag", "cluster", "entity", "node"))
"""Roles of names that memories bear in their columns or by their edges."""

STRINGS = NAMES | {"text", "note", "label", "vector", "undeclared"}
"""Roles of what may tell of a memory's content."""

_REFERRING = frozenset(
    ("memory", "edge", "last-memory", "memory-count", "newest-time", "columns", "values", "graph", "registers")
)
_REWRITTEN = STRINGS | {"columns", "values", "graph", "registers", "memory-count", "newest-time"}
_NAMING = frozenset(("columns", "values", "graph", "registers"))


@dataclass(frozen=True)
class Field:
    """One field of an event's body, or of a mapping, item or column within it.

    Attributes
    ----------
    role
        What it holds.
    fields
        The fields of a mapping by name, ``*`` for any other name; the columns of ``rows``, which are parallel lists or
        one value for all rows.
    items
        The field of each item of a list (one), or of each position of a tuple.
    keys
        What the names in a mapping are where they are no names of fields: a role of ``NAMES``; empty for words.
    shared
        Whoever sees the event may read it. Any other string is left out where the event names a memory that is hidden
        from the viewer.
    held
        Who bears a name: the memories that are named beside it; a person ``declared`` it, so it stays when memories are
        purged; or it is a ``reference`` to what memories bear elsewhere.
    asked
        Somebody asked this text: it goes when a purge takes out questions like it, with its vector. An item of a list
        that names a memory goes as a whole.
    asker
        Only the viewer who asked the recall of the event's ``decision`` sees it.
    of
        The field beside it that this one speaks of. A text goes with the memories or the name that it describes, a flag
        with the rows.
    drops
        A purge leaves out the items that name a purged memory. Items of other lists keep their places.
    required
        The list stays where nothing of it is left.
    """

    role: Role
    fields: Mapping[str, Field] = field(default_factory=dict)
    items: tuple[Field, ...] = ()
    keys: str = ""
    shared: bool = False
    held: Literal["memories", "declared", "reference"] = "memories"
    asked: bool = False
    asker: bool = False
    of: str = ""
    drops: bool = False
    required: bool = False

    @property
    def parts(self) -> tuple[Field, ...]:
        """The fields within this one."""
        return (*self.fields.values(), *self.items)

    def get(self, name: str) -> Field:
        """Return the field of this name in a mapping."""
        return self.fields.get(name) or self.fields.get("*") or UNDECLARED

    def item(self, number: int) -> Field:
        """Return the field of an item of a list, or of a position of a tuple."""
        if self.role == "list":
            return self.items[0]
        return self.items[number] if number < len(self.items) else UNDECLARED

    @cached_property
    def names_memories(self) -> bool:
        """Whether it refers to memories, itself or within."""
        own = self.role in _REFERRING or (self.role == "flag" and bool(self.of))
        return own or any(part.names_memories for part in self.parts)

    @cached_property
    def is_about_memories(self) -> bool:
        """Whether it names memories itself: then its strings speak of these, and else of those that enclose it."""
        return self.role == "values" or any(part.role == "memory" for part in self.parts)

    @cached_property
    def decision(self) -> str:
        """The field of this mapping that names a recall; empty for none."""
        return next((name for name, part in self.fields.items() if part.role == "decision"), "")

    @cached_property
    def for_asker(self) -> frozenset[str]:
        """The fields of this mapping that only the asker of the recall sees."""
        return frozenset(name for name, part in self.fields.items() if part.asker)

    @cached_property
    def has_private_strings(self) -> bool:
        """Whether it has strings that are not shared with whoever sees the event."""
        own = self.role in STRINGS and not self.shared
        return own or bool(self.keys and not self.shared) or any(part.has_private_strings for part in self.parts)

    @cached_property
    def rewritten(self) -> bool:
        """Whether a purge may change it."""
        return self.role in _REWRITTEN or self.drops or bool(self.keys) or any(part.rewritten for part in self.parts)

    @cached_property
    def bears_names(self) -> bool:
        """Whether it says which names memories bear, or which ones a person declared."""
        own = (self.role in NAMES or bool(self.keys)) and self.held != "reference"
        return own or self.role in _NAMING or any(part.bears_names for part in self.parts)

    @cached_property
    def asks(self) -> Field | None:
        """The text in this mapping that somebody asked."""
        return next((part for part in self.fields.values() if part.asked), None)

    def ids(self, value: Any) -> Iterator[int]:
        """Yield the ids of the memories that a value of this field names, within it too."""
        if self.role == "memory":
            yield from value if isinstance(value, list) else () if value is None else (value,)
        elif self.role == "values":
            yield from value["ids"]
        elif self.role in ("mapping", "rows") and isinstance(value, Mapping):
            for name, part in value.items():
                yield from self.get(name).ids(part)
        elif self.role in ("list", "tuple") and isinstance(value, list | tuple):
            for number, part in enumerate(value):
                yield from self.item(number).ids(part)


UNDECLARED = Field("undeclared")
"""A field that no declaration knows: its strings are treated as private text."""


def mapping(fields: Mapping[str, Field], **options: Any) -> Field:
    """Return a field whose value is a mapping; ``*`` declares all other names."""
    return Field("mapping", fields=fields, **options)


def listed(*items: Field, **options: Any) -> Field:
    """Return a field whose value is a list: of one kind of item, or with several fields, of tuples of these."""
    return Field("list", items=items if len(items) == 1 else (Field("tuple", items=items),), **options)


def rows(columns: Mapping[str, Field], **options: Any) -> Field:
    """Return a field whose value is a mapping of parallel columns: a row goes where one of its memories does."""
    return Field("rows", fields=columns, **options)


@dataclass(frozen=True)
class EventType:
    """One kind of event.

    Attributes
    ----------
    kind
        The word by which the journal knows it.
    doc
        What happened, in one sentence.
    fields
        The fields of its body, besides those that any event may carry.
    version
        The newest form of its body that this version of memlab reads.
    owner
        The extension that declared it; empty for memlab.
    adds
        It adds memories: ``first``, ``count`` and ``columns``, with an edge to the node of each tag.
    policies
        It changes which policies are live: the version log folds it.
    asks
        It is a recall: where it names no memory, the viewer who asked sees it.
    replay
        What a replay under another pack does with it: carries out the values that it sets (``values``), or counts it
        as left out because it depends on the state that the lab had (``left-out``). Empty where a replay knows the kind
        itself, or the pack decides again.
    """

    kind: str
    doc: str
    fields: Mapping[str, Field] = field(default_factory=dict)
    version: int = 1
    owner: str = ""
    adds: bool = False
    policies: bool = False
    asks: bool = False
    replay: Literal["", "values", "left-out"] = ""

    @property
    def name(self) -> str:
        """The kind: the name in the registry."""
        return self.kind

    @cached_property
    def body(self) -> Field:
        """The body as a mapping of its fields."""
        return mapping(self.fields)


@dataclass(frozen=True)
class Register:
    """What the dump of a projection holds, as exports, imports and purges read it.

    Attributes
    ----------
    name
        The name of the projection.
    dumped
        What ``Projection.dump`` returns.
    exported
        Whether an export carries it. One that speaks of events of its own journal means nothing next to another.
    owner
        The extension that declared it; empty for memlab.
    doc
        What the projection keeps.
    """

    name: str
    dumped: Field
    exported: bool = True
    owner: str = ""
    doc: str = ""
