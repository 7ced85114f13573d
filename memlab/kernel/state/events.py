"""The kinds of events, with a declaration of each field of their bodies.

The kernel declares its kinds here, and each subject declares others in its own folder. ``EVENTS`` has every kind, and
``REGISTERS`` has the declared dump of each projection. A kind of memlab that is not in ``EVENTS`` was written by a
newer version.

The role of a field says which sort of value it has. The roles decide what another viewer sees, what a purge removes and
what an export contains. They also decide which strings are content hashes and so are not screened for secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

from memlab.kernel.journal import FORMAT
from memlab.kernel.policies import VOCABULARY
from memlab.kernel.registry import Registry, split_owner

__all__ = [
    "ADDED",
    "AGENT",
    "EVENTS",
    "FLAG",
    "HASH",
    "MEMORY_ID",
    "NAMES",
    "NUMBER",
    "PROJECT",
    "REASON",
    "REGISTERS",
    "SESSION",
    "STRINGS",
    "TIME",
    "UNDECLARED",
    "WORD",
    "EventType",
    "Field",
    "Register",
    "Role",
    "body_field",
    "declare_events",
    "declare_register",
    "declared_names",
    "dump_field",
    "extend_event",
    "find_extension",
    "hash_paths",
    "list_field",
    "mapping_field",
    "policy_events",
    "register_hash_paths",
    "rows_field",
    "undeclared_fields",
]


# -- Declarations of fields -------------------------------------------------------------------------------------------


Role = Literal[
    # values that reveal nothing about a memory's content
    "number",
    "time",
    "flag",
    "bytes",
    "word",
    "hash",
    # references
    "memory",
    "edge",
    "last-memory",
    "memory-count",
    "newest-time",
    "decision",
    # strings in a person's words
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
    # a field without a declaration
    "undeclared",
]
"""The sort of value that a field has. A field has one value of its role, or a list of them.

``number``, ``time``, ``flag``, ``bytes``, ``word`` (of memlab's own vocabularies, or the source of a policy) and
``hash`` (64 hexadecimal digits) are never changed. ``memory`` is an id, ``edge`` the number of an edge, and
``last-memory`` the id of the last memory that was processed. ``memory-count`` is the number of memories in the field
named by ``of``, and ``newest-time`` the creation time of the newest of them. ``decision`` is the event of a recall.

A purge cuts a ``text`` where it quotes a purged memory. A ``note`` also becomes None if nothing is left, and a
``label`` (a path, a command) stays if it may be a word of a vocabulary. ``vector`` embeds the query in the same
mapping. ``node`` is the name of a tag, cluster or entity, whose kind is the field ``kind`` of the same mapping.

``columns`` are values of memory columns for the rows ``first`` and ``count``. ``values`` is an item of
``Change.set``. ``graph`` and ``registers`` are parts of an import.
"""

NAMES = frozenset(
    ("name", "project", "session", "agent", "creator", "tag", "cluster", "entity", "node")
)
"""Roles of names that a memory has in a column or through an edge."""

STRINGS = NAMES | {"text", "note", "label", "vector", "undeclared"}
"""Roles of values that may reveal a memory's content."""

# Three sets of roles: values that refer to memories, values that a purge may change, and values that contain names
# which memories have.
_REFERRING = frozenset(
    (
        "memory",
        "edge",
        "last-memory",
        "memory-count",
        "newest-time",
        "columns",
        "values",
        "graph",
        "registers",
    )
)
_REWRITTEN = STRINGS | {"columns", "values", "graph", "registers", "memory-count", "newest-time"}
_NAMING = frozenset(("columns", "values", "graph", "registers"))

Siblings = Mapping[str, Any]
"""The members of the mapping that contains a value of an event's body."""


@dataclass(frozen=True)
class Field:
    """One field of an event's body, or of a mapping, item or column within it.

    Attributes
    ----------
    role
        The sort of value that the field has; see ``Role``.
    fields
        The fields of a mapping by name, with ``*`` for any other name, or the columns of ``rows``. A column is a list
        with one item for each row, or one value for all rows.
    items
        The field of each item of a list (one field), or of each position of a tuple.
    keys
        The role of a mapping's keys, from ``NAMES``, if the keys are names. Empty if they are words of memlab.
    shared
        Whether everyone who sees the event may read the string. A string that is not shared is left out if the event
        names a memory that is hidden from the viewer.
    held
        The origin of a name. By default, the name belongs to the memories in the same mapping. A name that a person
        ``declared`` stays when memories are purged. A ``reference`` is a name that memories have in another event.
    asked
        Whether the text is a query. A purge of similar queries removes the text and its vector. If the text belongs to
        an item of a list that names a memory, the purge removes the whole item.
    asker
        Whether only the viewer who asked the recall of the event's ``decision`` sees the field.
    of
        The name of the field, in the same mapping, that this field describes. A text is removed with the memories or
        the name that it describes, and a flag with the rows.
    drops
        Whether a purge removes the items of this list that name a purged memory. Items of other lists keep their
        positions.
    required
        Whether the list stays in the event's body when it becomes empty.

    Examples
    --------
    >>> Field("text", of="memory").role
    'text'
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
        """The fields nested in this field."""
        return (*self.fields.values(), *self.items)

    def get(self, name: str) -> Field:
        """Return the declaration of a member of a mapping.

        Parameters
        ----------
        name
            The name of the member.

        Returns
        -------
        Field
            The field of that name, the field ``*``, or ``UNDECLARED``.
        """
        return self.fields.get(name) or self.fields.get("*") or UNDECLARED

    def item(self, number: int) -> Field:
        """Return the declaration of an item of a list or tuple.

        Parameters
        ----------
        number
            The position of the item, from 0.

        Returns
        -------
        Field
            The field of the item, or ``UNDECLARED`` beyond the end of a tuple.
        """
        if self.role == "list":
            return self.items[0]
        return self.items[number] if number < len(self.items) else UNDECLARED

    @cached_property
    def names_memories(self) -> bool:
        """Whether the field, or a field nested in it, refers to memories."""
        own = self.role in _REFERRING or (self.role == "flag" and bool(self.of))
        return own or any(part.names_memories for part in self.parts)

    @cached_property
    def is_about_memories(self) -> bool:
        """Whether the field names memories, so that its strings describe these memories."""
        return self.role == "values" or any(part.role == "memory" for part in self.parts)

    @cached_property
    def decision(self) -> str:
        """The name of the nested field that refers to a recall, or "" if no field does."""
        return next((name for name, part in self.fields.items() if part.role == "decision"), "")

    @cached_property
    def for_asker(self) -> frozenset[str]:
        """The names of nested fields that are visible only to the viewer of the recall."""
        return frozenset(name for name, part in self.fields.items() if part.asker)

    @cached_property
    def has_private_strings(self) -> bool:
        """Whether the field has strings that some viewers of the event may not see."""
        own = self.role in STRINGS and not self.shared
        return (
            own
            or bool(self.keys and not self.shared)
            or any(part.has_private_strings for part in self.parts)
        )

    @cached_property
    def rewritten(self) -> bool:
        """Whether a purge may change values of the field."""
        return (
            self.role in _REWRITTEN
            or self.drops
            or bool(self.keys)
            or any(part.rewritten for part in self.parts)
        )

    @cached_property
    def bears_names(self) -> bool:
        """Whether the field contains names of memories, or names that a person declared."""
        own = (self.role in NAMES or bool(self.keys)) and self.held != "reference"
        return own or self.role in _NAMING or any(part.bears_names for part in self.parts)

    @cached_property
    def asks(self) -> Field | None:
        """The field of this mapping that holds a query, or None if no field does."""
        return next((part for part in self.fields.values() if part.asked), None)

    def ids(self, value: Any) -> Iterator[int]:
        """Yield the ids of all memories that a value of this field names, at any depth.

        Parameters
        ----------
        value
            A value of this field.

        Returns
        -------
        Iterator[int]
            Ids in the order of the value; an id may occur more than once.
        """
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
"""The field of values without a declaration, whose strings are treated as private text."""


def mapping_field(fields: Mapping[str, Field], **options: Any) -> Field:
    """Return a field whose value is a mapping. ``*`` declares all other member names."""
    return Field("mapping", fields=fields, **options)


def list_field(*items: Field, **options: Any) -> Field:
    """Return a field for a list of values, or for a list of tuples of several fields."""
    return Field(
        "list", items=items if len(items) == 1 else (Field("tuple", items=items),), **options
    )


def rows_field(columns: Mapping[str, Field], **options: Any) -> Field:
    """Return a field for a table: a mapping of columns of equal length.

    If a memory that a row names is removed, the row is removed too.
    """
    return Field("rows", fields=columns, **options)


@dataclass(frozen=True)
class EventType:
    """The declaration of one kind of event.

    Attributes
    ----------
    kind
        The word that names the kind in the journal.
    doc
        One sentence about what such an event records.
    fields
        The fields of the body, without the fields that any event may have.
    version
        The newest format of the body that this version of memlab reads, from 1.
    owner
        The name and version of the extension that declared the kind, or "" for memlab.
    adds
        Whether the event adds memories with ``first``, ``count`` and ``columns``, and an edge to the node of each
        tag.
    policies
        Whether the event changes the active policies, so that the version log folds it.
    asks
        Whether the event is a recall. The user who asked it sees the event even if it names no memory.
    replay
        What a replay under another pack does with the event. With ``values``, the replay applies the values
        that the event sets. With ``left-out``, the replay counts the event as left out, because it depends on
        the state of the original lab. Empty, the default, means that a replay handles the kind itself or that
        the pack decides again.

    Examples
    --------
    >>> EventType("weather/seen", "The weather was observed.", {"degrees": Field("number")}).name
    'weather/seen'
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
        """The name in the registry, which is the kind."""
        return self.kind

    @cached_property
    def body(self) -> Field:
        """The body as a mapping of its fields."""
        return mapping_field(self.fields)


@dataclass(frozen=True)
class Register:
    """The declared form of a projection's dump. Exports, imports and purges read it.

    Attributes
    ----------
    name
        The name of the projection.
    dumped
        The declaration of the value that ``Projection.dump`` returns.
    exported
        Whether exports carry the dump. Numbers of events are meaningless in the journal of another lab.
    owner
        The name and version of the extension that declared the projection, or "" for memlab.
    doc
        A sentence about the content of the projection.
    """

    name: str
    dumped: Field
    exported: bool = True
    owner: str = ""
    doc: str = ""


# -- The kernel's own kinds -------------------------------------------------------------------------------------------

# Fields without options are shared, so that declarations read as tables.
NUMBER, TIME, FLAG, WORD, HASH = (
    Field(role) for role in ("number", "time", "flag", "word", "hash")
)
MEMORY_ID, EDGE, BYTES = Field("memory"), Field("edge"), Field("bytes")

REASON = Field("text", shared=True)
"""A reason given by a person. Everyone who sees the event may read it."""

PROJECT, SESSION, AGENT = (
    Field(role, held="reference", shared=True) for role in ("project", "session", "agent")
)
"""The project, session or agent in which something happened."""

# A name that a person declared stays when memories that mention the entity are purged.
_ENTITY = Field("entity", held="declared", shared=True)

# The columns of ``Change.edges``, with the maximum number of edges for each node.
_EDGES = {
    "source": MEMORY_ID,
    "target": MEMORY_ID,
    "relation": WORD,
    "weight": NUMBER,
    "most": NUMBER,
}

PARTS: Mapping[str, Field] = {
    FORMAT: NUMBER,
    "edges": rows_field(_EDGES),
    "strengthen": rows_field({"edges": EDGE, "weight": NUMBER}),
    "unlink": EDGE,
    "join": list_field(
        rows_field(
            {
                "source": MEMORY_ID,
                "kind": WORD,
                "target": Field("node"),
                "relation": WORD,
                "weight": NUMBER,
            }
        )
    ),
    "set": list_field(Field("values")),
}
"""The parts that any event may carry; see ``Change``."""

ADDED: Mapping[str, Field] = {
    "first": NUMBER,
    "count": NUMBER,
    "columns": Field("columns"),
    "redacted": list_field(MEMORY_ID, WORD),
}
"""The fields of an event that adds memories."""

_DERIVED = mapping_field({"rebuilt": WORD, "dropped": WORD, "given": WORD})
"""The columns that an edit recomputed, emptied, or received from the user."""

# The fields of events that change one slot, of all policy events, and of events about whole packs.
_LIVE = {
    "slot": WORD,
    "hash": HASH,
    "source": HASH,
    "helpers": WORD,
    "params": mapping_field({"*": NUMBER}),
}
_CHANGED = {
    "live": HASH,
    "reason": REASON,
    "to": NUMBER,
    "needs": mapping_field({"*": WORD}),
    "parents": HASH,
    "operator": WORD,
    "evidence": HASH,
    VOCABULARY: NUMBER,
}
_PACK = {"pack": WORD, "hash": HASH, "sources": HASH, "policies": mapping_field({"*": HASH})}


def _policy_event(kind: str, doc: str, fields: Mapping[str, Field]) -> EventType:
    """Return the declaration of a kind of event that changes policies."""
    return EventType(kind, doc, {**fields, **_CHANGED}, policies=True)


# The kinds that the kernel writes. Sentences are in the past tense because an event says what happened.
_KERNEL = (
    EventType(
        "embedder",
        "The embedder was changed, and the first memories may still wait for their vectors; or it was calibrated.",
        {
            "fingerprint": HASH,
            "name": WORD,
            "dim": NUMBER,
            "waiting": NUMBER,
            "scale": mapping_field({"*": NUMBER}),
        },
    ),
    EventType(
        "remember",
        "Memories were added, or one replaced an edited memory.",
        {**ADDED, "edit": MEMORY_ID, "derived": _DERIVED},
        adds=True,
    ),
    EventType(
        "import",
        "Memories, edges and registers came from another lab.",
        {
            **ADDED,
            "lab": Field("label", shared=True),
            "uses": TIME,
            "graph": Field("graph"),
            "registers": Field("registers"),
        },
    ),
    EventType(
        "recall",
        "A query was answered; the slate has the details.",
        {
            "ids": MEMORY_ID,
            "probes": MEMORY_ID,
            "pack": HASH,
            "of": HASH,
            "params": mapping_field({"*": NUMBER}),
            "budget": NUMBER,
            "again": FLAG,
            "redacted": WORD,
        },
        asks=True,
    ),
    EventType(
        "seal",
        "Slates were sealed; the digest is that of the segment that replaced them.",
        {"after": NUMBER, "upto": NUMBER, "recalls": NUMBER, "digest": HASH},
    ),
    EventType(
        "thin",
        "Sealed slates lost their features, or were dropped and have no digest.",
        {"upto": NUMBER, "recalls": NUMBER, "digest": HASH, "to": WORD},
    ),
    EventType(
        "feedback",
        "A person judged a memory, or a judgement was attributed to it.",
        {
            "decision": Field("decision"),
            "memory": MEMORY_ID,
            "outcome": WORD,
            "reward": NUMBER,
            "rating": NUMBER,
            "source": WORD,
            "pack": HASH,
            "probe": FLAG,
        },
    ),
    EventType(
        "verify",
        "A verifier accepted or rejected the memories that a recall showed.",
        {"decision": Field("decision"), "used": TIME, "verified": MEMORY_ID, "rejected": MEMORY_ID},
    ),
    EventType("link", "Memories were joined, by hand or by the pack.", {"by": WORD}),
    EventType("unlink", "Edges were removed.", {"by": WORD}),
    EventType("strengthen", "Edges got other weights.", {"by": WORD}),
    EventType(
        "edit",
        "Fields of a memory were changed.",
        {"memory": MEMORY_ID, "derived": _DERIVED},
        replay="values",
    ),
    EventType(
        "edit-frame",
        "Fields of several memories were changed in a frame.",
        {"memories": MEMORY_ID, "derived": _DERIVED},
        replay="values",
    ),
    EventType(
        "deprecate",
        "Memories were flagged as wrong.",
        {"reason": REASON, "was": list_field(Field("values"), required=True)},
        replay="values",
    ),
    EventType(
        "forget",
        "Memories were deprecated by a pack or a person.",
        {"reason": REASON},
        replay="values",
    ),
    EventType("restore", "Memories were restored.", {"reason": REASON}, replay="values"),
    EventType(
        "delete",
        "Memories, or all memories of a project, were deleted; they are purged later.",
        {"reason": REASON, "project": replace(PROJECT, held="declared")},
        replay="values",
    ),
    EventType(
        "status",
        "Memories got another status; written by early versions only.",
        {"ids": MEMORY_ID, "status": WORD},
    ),
    EventType("retract", "Facts were withdrawn.", {"reason": REASON}, replay="values"),
    EventType("resolve", "A conflict was decided.", {"reason": REASON}),
    EventType("reinforce", "Use changed numbers of memories.", {"pack": HASH}),
    EventType(
        "purge",
        "Memories were removed permanently.",
        {
            "reason": REASON,
            "tombstones": mapping_field({"key": BYTES, "hashes": BYTES, "origins": WORD}),
        },
        replay="left-out",
    ),
    EventType(
        "entity",
        "A person declared an entity.",
        {"name": _ENTITY, "aliases": _ENTITY, "type": WORD},
        replay="left-out",
    ),
    EventType(
        "merge-entity",
        "A person merged two entities.",
        {"entity": _ENTITY, "into": _ENTITY, "moved": mapping_field({"*": MEMORY_ID})},
        replay="left-out",
    ),
    EventType(
        "split-entity",
        "A person split an entity, or split a merged one off again.",
        {
            "entity": _ENTITY,
            "from": _ENTITY,
            "aliases": _ENTITY,
            "mentions": Field("memory-count", of="join"),
            "last": Field("newest-time", of="join"),
        },
        replay="left-out",
    ),
    _policy_event("use", "A pack became active.", _PACK),
    _policy_event("install", "A slot got another policy.", _LIVE),
    _policy_event("rollback", "A slot returned to an earlier policy.", _LIVE),
    _policy_event("rollback-pack", "An earlier pack became active again.", _PACK),
    _policy_event("pin", "A slot was pinned to a policy.", _LIVE),
    _policy_event("unpin", "A slot was unpinned.", _LIVE),
    _policy_event(
        "challenge",
        "A comparison of a pack with the active one began.",
        {**_PACK, "design": WORD, **dict.fromkeys(("extra", "rate", "number", "share"), NUMBER)},
    ),
    _policy_event("end-challenge", "A comparison with the active pack ended.", _PACK),
    _policy_event("explore", "Exploration of plain recalls was switched on or off.", {"on": FLAG}),
)


def _describe_event_type_fault(declared: EventType) -> str | None:
    """Return why an extension's kind of event is refused, or None if it is accepted."""
    # A memlab without the extension must know from the kind alone which extension is missing.
    extension, kind = split_owner(declared.owner)[0], declared.kind
    if kind.partition("/")[0] != extension or not kind.partition("/")[2]:
        return f"The kind of event {kind!r} must begin with the name of its extension: {extension}/{kind}."
    if declared.adds or declared.policies or declared.asks:
        return f"The event {kind} adds memories, changes policies or is a recall, as only memlab's own events may."
    return _unclear_text(declared)


def _unclear_text(declared: EventType) -> str | None:
    """Return why a purge could not decide when to remove an event's text, or None if it could."""
    if not any(part.role == "memory" for part in declared.fields.values()):
        return None
    for name, part in declared.fields.items():
        if part.role in ("text", "note", "label") and not part.shared and not part.of:
            return (
                f"The field {name} of the event {declared.kind} does not say which memory it describes: "
                'give of="...", the name of the field with the memory, or shared=True if a purge may leave the text.'
            )
    return None


EVENTS: Registry[EventType] = Registry(
    "kind of event", _KERNEL, kind="events", about="doc", check=_describe_event_type_fault
)
"""Every kind of event that this version of memlab knows, with those of extensions."""

REGISTERS: Registry[Register] = Registry("register", kind="registers", about="doc")
"""The declared dump of each projection."""


# -- Declaring kinds ----------------------------------------------------------------------------------------------


def declare_events(types: Iterable[EventType]) -> None:
    """Register event types. Raises InputError if another owner declared one of them."""
    EVENTS.register(types)


def declare_register(register: Register) -> None:
    """Register the declaration of a projection's dump."""
    REGISTERS.register([register])


def extend_event(kind: str, fields: Mapping[str, Field]) -> None:
    """Add fields to the registered event type ``kind``."""
    event = EVENTS[kind]
    EVENTS.amend(replace(event, fields={**event.fields, **fields}))


def find_extension(kind: str) -> str | None:
    """Return the name of the extension that owns an event type.

    Returns None for an event type of memlab.
    """
    name, slash, _ = kind.partition("/")
    return name if slash else None


# -- Derived from declarations ------------------------------------------------------------------------------------
# Each cache is keyed by the registries' counters of changes, because an extension may be registered at any time. The
# derived values are needed for every event that is written.

_bodies: dict[str, tuple[int, Field]] = {}


def body_field(kind: str) -> Field:
    """Return the declaration of an event type's whole body.

    The body has the fields of the type and the parts that any event may have.
    """
    cached = _bodies.get(kind)
    if cached is None or cached[0] != EVENTS.changes:
        own = EVENTS[kind].fields if kind in EVENTS else {}
        cached = _bodies[kind] = (EVENTS.changes, mapping_field({**PARTS, **own}))
    return cached[1]


def dump_field(name: str) -> Field:
    """Return the declaration of a projection's dump as a field."""
    return REGISTERS[name].dumped if name in REGISTERS else UNDECLARED


def policy_events() -> tuple[str, ...]:
    """Return the kinds of events that the version log folds."""
    return _policy_events(EVENTS.changes)


@lru_cache(maxsize=1)  # read at every fold, and changed only by registering an extension
def _policy_events(changes: int) -> tuple[str, ...]:
    return tuple(kind for kind, event in EVENTS.items() if event.policies)


def declared_names(kind: str, role: str) -> tuple[str, ...]:
    """Return the fields of an event type whose names a person declared, by role."""
    if kind not in EVENTS:
        return ()
    fields = EVENTS[kind].fields.items()
    return tuple(name for name, field in fields if field.role == role and field.held == "declared")


Path = tuple[str, ...]

_hashes: dict[str, tuple[tuple[int, int], tuple[Path, ...]]] = {}


def hash_paths(kind: str) -> tuple[Path, ...]:
    """Return the path of each content hash in an event body, as a tuple of names.

    A path has no element for the position in a list.

    A hash looks as random as a credential: 36 of 300,000 random hashes look like a token. So a value at these paths is
    not screened for secrets if it has 64 hexadecimal digits.
    """
    changes = EVENTS.changes, REGISTERS.changes
    cached = _hashes.get(kind)
    if cached is None or cached[0] != changes:
        cached = _hashes[kind] = (changes, tuple(dict.fromkeys(_hash_paths(body_field(kind), ()))))
    return cached[1]


def register_hash_paths(name: str) -> tuple[Path, ...]:
    """Return the paths of the content hashes in a projection's dump."""
    return tuple(dict.fromkeys(_hash_paths(dump_field(name), ())))


def _hash_paths(field: Field, path: Path) -> Iterator[Path]:
    """Yield the paths of all content hashes within a field."""
    if field.role == "hash":
        yield path
    elif field.role == "registers":
        for name, register in REGISTERS.items():
            yield from _hash_paths(register.dumped, (*path, name))
    for name, part in field.fields.items():
        yield from _hash_paths(part, (*path, name))
    for item in field.items:
        yield from _hash_paths(item, path)


def undeclared_fields(kind: str, body: Mapping[str, Any]) -> list[str]:
    """Return the paths of fields in a body that the event type does not declare.

    Returns an empty list for an unknown event type, because folding such an event raises an error.
    """
    return list(_undeclared(body_field(kind), body, kind)) if kind in EVENTS else []


# Roles whose values are mappings with a layout of their own, and the types that values of structural roles must have.
_OWN_FORM = ("columns", "values", "graph", "registers")
_FITTING: Mapping[str, type[Any] | tuple[type[Any], ...]] = {
    **dict.fromkeys(("mapping", "rows"), dict),
    **dict.fromkeys(("list", "tuple"), (list, tuple)),
}


def _undeclared(field: Field, value: Any, path: str) -> Iterator[str]:
    """Yield the paths of undeclared values and of values with the wrong type."""
    if value is None:
        return
    if field.role == "undeclared" or not isinstance(value, _FITTING.get(field.role, object)):
        yield path
    elif field.role in ("mapping", "rows"):
        for name, part in value.items():
            yield from _undeclared(field.get(name), part, f"{path}.{name}")
    elif field.role in ("list", "tuple"):
        for number, part in enumerate(value):
            yield from _undeclared(field.item(number), part, f"{path}[{number}]")
    elif field.role not in _OWN_FORM and isinstance(value, Mapping):
        yield path
