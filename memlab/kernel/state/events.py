"""The kinds of events: what each one's body holds, declared by the kernel here and by each subject in its own folder.

``EVENTS`` has every kind, ``REGISTERS`` what the dump of each projection holds. A kind that is in neither is of a newer
version of memlab. Whatever depends on what a field holds is derived from its role: what another viewer sees, what a
purge takes out, what an export carries, and which strings are content hashes that need no screening for secrets.
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


# -- what a field of a body, or of the dump of a register, holds ------------------------------------------------------


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

NAMES = frozenset(
    ("name", "project", "session", "agent", "creator", "tag", "cluster", "entity", "node")
)
"""Roles of names that memories bear in their columns or by their edges."""

STRINGS = NAMES | {"text", "note", "label", "vector", "undeclared"}
"""Roles of what may tell of a memory's content."""

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
        return (
            own
            or bool(self.keys and not self.shared)
            or any(part.has_private_strings for part in self.parts)
        )

    @cached_property
    def rewritten(self) -> bool:
        """Whether a purge may change it."""
        return (
            self.role in _REWRITTEN
            or self.drops
            or bool(self.keys)
            or any(part.rewritten for part in self.parts)
        )

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


def mapping_field(fields: Mapping[str, Field], **options: Any) -> Field:
    """Return a field whose value is a mapping; ``*`` declares all other names."""
    return Field("mapping", fields=fields, **options)


def list_field(*items: Field, **options: Any) -> Field:
    """Return a field whose value is a list: of one kind of item, or with several fields, of tuples of these."""
    return Field(
        "list", items=items if len(items) == 1 else (Field("tuple", items=items),), **options
    )


def rows_field(columns: Mapping[str, Field], **options: Any) -> Field:
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
        return mapping_field(self.fields)


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


# -- the kernel's own kinds -------------------------------------------------------------------------------------------

NUMBER, TIME, FLAG, WORD, HASH = (
    Field(role) for role in ("number", "time", "flag", "word", "hash")
)
MEMORY_ID, EDGE, BYTES = Field("memory"), Field("edge"), Field("bytes")

REASON = Field("text", shared=True)
"""Why somebody did something: whoever sees the event may read it."""

PROJECT, SESSION, AGENT = (
    Field(role, held="reference", shared=True) for role in ("project", "session", "agent")
)
"""The project, session or agent in which something happened."""

_ENTITY = Field("entity", held="declared", shared=True)

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
"""The columns that an edit derived again, emptied, and was given."""

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
    VOCABULARY: NUMBER,
}
_PACK = {"pack": WORD, "hash": HASH, "sources": HASH, "policies": mapping_field({"*": HASH})}


def _policy_event(kind: str, doc: str, fields: Mapping[str, Field]) -> EventType:
    return EventType(kind, doc, {**fields, **_CHANGED}, policies=True)


_KERNEL = (
    EventType(
        "embedder",
        "Vectors are of another embedder from here on; the first memories may wait for theirs.",
        {"fingerprint": HASH, "name": WORD, "dim": NUMBER, "waiting": NUMBER},
    ),
    EventType(
        "remember",
        "Memories were added, or one in the place of an edited one.",
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
        "A query was answered; the slate has the rest.",
        {
            "ids": MEMORY_ID,
            "probes": MEMORY_ID,
            "pack": HASH,
            "of": HASH,
            "params": mapping_field({"*": NUMBER}),
            "budget": NUMBER,
            "redacted": WORD,
        },
        asks=True,
    ),
    EventType(
        "seal",
        "Slates were sealed: the digest is that of the segment that took their place.",
        {"after": NUMBER, "upto": NUMBER, "recalls": NUMBER, "digest": HASH},
    ),
    EventType(
        "thin",
        "Sealed slates lost their features, or were dropped, which leaves no digest.",
        {"upto": NUMBER, "recalls": NUMBER, "digest": HASH, "to": WORD},
    ),
    EventType(
        "feedback",
        "Somebody judged a memory, or a judgement was attributed to it.",
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
        "deprecate",
        "Memories were flagged as wrong.",
        {"reason": REASON, "was": list_field(Field("values"), required=True)},
        replay="values",
    ),
    EventType("forget", "Memories were taken out of use.", {"reason": REASON}, replay="values"),
    EventType("restore", "Memories came back into use.", {"reason": REASON}, replay="values"),
    EventType(
        "delete",
        "Memories, or all of a project, were deleted: they are purged later.",
        {"reason": REASON, "project": replace(PROJECT, held="declared")},
        replay="values",
    ),
    EventType(
        "status",
        "Memories got another status, in labs of the first days.",
        {"ids": MEMORY_ID, "status": WORD},
    ),
    EventType("retract", "Facts were withdrawn.", {"reason": REASON}, replay="values"),
    EventType("resolve", "A conflict was decided.", {"reason": REASON}),
    EventType("reinforce", "Use changed numbers of memories.", {"pack": HASH}),
    EventType(
        "purge",
        "Memories were removed for good.",
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
        "A person said that two entities are one.",
        {"entity": _ENTITY, "into": _ENTITY, "moved": mapping_field({"*": MEMORY_ID})},
        replay="left-out",
    ),
    EventType(
        "split-entity",
        "A person said that one entity is two, or that a merged one is its own.",
        {
            "entity": _ENTITY,
            "from": _ENTITY,
            "aliases": _ENTITY,
            "mentions": Field("memory-count", of="join"),
            "last": Field("newest-time", of="join"),
        },
        replay="left-out",
    ),
    _policy_event("use", "A pack became the live one.", _PACK),
    _policy_event("install", "A slot got another policy.", _LIVE),
    _policy_event("rollback", "A slot got an earlier policy back.", _LIVE),
    _policy_event("rollback-pack", "An earlier pack became the live one again.", _PACK),
    _policy_event("pin", "A slot was held at a policy.", _LIVE),
    _policy_event("unpin", "A slot was released.", _LIVE),
    _policy_event(
        "challenge",
        "A pack began to be compared with the live one.",
        {**_PACK, "design": WORD, "extra": NUMBER, "rate": NUMBER},
    ),
    _policy_event("end-challenge", "A comparison with the live pack ended.", _PACK),
)


def _refusal(declared: EventType) -> str | None:
    """Return why an extension's kind of event is refused: a memlab without the extension has to know whose it is."""
    extension, kind = split_owner(declared.owner)[0], declared.kind
    if kind.partition("/")[0] != extension or not kind.partition("/")[2]:
        return (
            f"The kind of event {kind!r} begins with the name of its extension: {extension}/{kind}."
        )
    if declared.adds or declared.policies or declared.asks:
        return f"The event {kind} adds memories, changes policies or is a recall: only memlab's own do."
    return _unclear_text(declared)


def _unclear_text(declared: EventType) -> str | None:
    """Return which text of an event has no subject, so that nobody knows when a purge takes it out."""
    if not any(field.role == "memory" for field in declared.fields.values()):
        return None
    for name, held in declared.fields.items():
        if held.role in ("text", "note", "label") and not held.shared and not held.of:
            return (
                f"The field {name} of the event {declared.kind} does not say of which memory it speaks: "
                'give of="...", the field with the memory, or shared=True for what stays when memories are purged.'
            )
    return None


EVENTS: Registry[EventType] = Registry(
    "kind of event", _KERNEL, kind="events", about="doc", check=_refusal
)
"""Every kind of event that this version of memlab knows, with those of extensions."""

REGISTERS: Registry[Register] = Registry("register", kind="registers", about="doc")
"""What the dump of each projection holds."""


# -- declaring ----------------------------------------------------------------------------------------------------


def declare_events(types: Iterable[EventType]) -> None:
    """Add kinds of events; InputError for a kind that another owner has declared."""
    EVENTS.register(types)


def declare_register(register: Register) -> None:
    """Add what the dump of a projection holds."""
    REGISTERS.register([register])


def extend_event(kind: str, fields: Mapping[str, Field]) -> None:
    """Add the fields that a subject of memlab writes into another's events."""
    known = EVENTS[kind]
    EVENTS.amend(replace(known, fields={**known.fields, **fields}))


def find_extension(kind: str) -> str | None:
    """Return the extension of an event's kind by name; None for a kind of memlab."""
    name, slash, _ = kind.partition("/")
    return name if slash else None


# -- what is derived ----------------------------------------------------------------------------------------------

_bodies: dict[str, tuple[int, Field]] = {}


def body_field(kind: str) -> Field:
    """Return the body of a kind of event as a mapping of its fields, with the parts that any event may carry."""
    known = _bodies.get(kind)
    if known is None or known[0] != EVENTS.changes:
        own = EVENTS[kind].fields if kind in EVENTS else {}
        known = _bodies[kind] = (EVENTS.changes, mapping_field({**PARTS, **own}))
    return known[1]


def dump_field(name: str) -> Field:
    """Return what the dump of a projection holds."""
    return REGISTERS[name].dumped if name in REGISTERS else UNDECLARED


def policy_events() -> tuple[str, ...]:
    """Return the kinds of events that the version log folds."""
    return _policy_events(EVENTS.changes)


@lru_cache(maxsize=1)
def _policy_events(changes: int) -> tuple[str, ...]:
    return tuple(kind for kind, known in EVENTS.items() if known.policies)


def declared_names(kind: str, role: str) -> tuple[str, ...]:
    """Return the fields of an event in which a person declares names of this role."""
    if kind not in EVENTS:
        return ()
    fields = EVENTS[kind].fields.items()
    return tuple(name for name, field in fields if field.role == role and field.held == "declared")


Path = tuple[str, ...]

_hashes: dict[str, tuple[tuple[int, int], tuple[Path, ...]]] = {}


def hash_paths(kind: str) -> tuple[Path, ...]:
    """Return the names that lead to each content hash in the body of an event; items of lists have no name.

    A hash is as random as a credential: of 300,000 random ones 36 look like a token. So these fields are not screened
    for secrets where they hold 64 hexadecimal digits.
    """
    changes = EVENTS.changes, REGISTERS.changes
    known = _hashes.get(kind)
    if known is None or known[0] != changes:
        known = _hashes[kind] = (changes, tuple(dict.fromkeys(_hash_paths(body_field(kind), ()))))
    return known[1]


def register_hash_paths(name: str) -> tuple[Path, ...]:
    """Return the names that lead to each content hash in the dump of a register."""
    return tuple(dict.fromkeys(_hash_paths(dump_field(name), ())))


def _hash_paths(field: Field, path: Path) -> Iterator[Path]:
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
    """Return the names that lead to what the declaration of an event does not know; the fold refuses unknown kinds."""
    return list(_undeclared(body_field(kind), body, kind)) if kind in EVENTS else []


_OWN_FORM = ("columns", "values", "graph", "registers")
_FITTING: Mapping[str, type[Any] | tuple[type[Any], ...]] = {
    **dict.fromkeys(("mapping", "rows"), dict),
    **dict.fromkeys(("list", "tuple"), (list, tuple)),
}


def _undeclared(field: Field, value: Any, path: str) -> Iterator[str]:
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
