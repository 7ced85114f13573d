"""The kinds of events: what each one's body holds, declared by the kernel here and by each subject in its own folder.

``EVENTS`` has every kind, ``REGISTERS`` what the dump of each projection holds. A kind that is in neither is of a newer
version of memlab. ``memlab.kernel.state.roles`` says what follows from a declaration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from memlab.kernel.journal import FORMAT
from memlab.kernel.policies import VOCABULARY
from memlab.kernel.registry import Registry, split_owner
from memlab.kernel.state.roles import UNDECLARED, EventType, Field, Register, listed, mapping, rows

__all__ = [
    "ADDED",
    "AGENT",
    "EVENTS",
    "FLAG",
    "HASH",
    "MEMORY_ID",
    "NUMBER",
    "PROJECT",
    "REASON",
    "REGISTERS",
    "SESSION",
    "TIME",
    "WORD",
    "body_field",
    "declare_events",
    "declare_register",
    "declared_names",
    "dump_field",
    "extend_event",
    "extension_of",
    "hash_paths",
    "policy_events",
    "register_hash_paths",
    "undeclared_fields",
]

NUMBER, TIME, FLAG, WORD, HASH = (Field(role) for role in ("number", "time", "flag", "word", "hash"))
MEMORY_ID, EDGE, BYTES = Field("memory"), Field("edge"), Field("bytes")

REASON = Field("text", shared=True)
"""Why somebody did something: whoever sees the event may read it."""

PROJECT, SESSION, AGENT = (Field(role, held="reference", shared=True) for role in ("project", "session", "agent"))
"""The project, session or agent in which something happened."""

_ENTITY = Field("entity", held="declared", shared=True)

_EDGES = {"source": MEMORY_ID, "target": MEMORY_ID, "relation": WORD, "weight": NUMBER, "most": NUMBER}

PARTS: Mapping[str, Field] = {
    FORMAT: NUMBER,
    "edges": rows(_EDGES),
    "strengthen": rows({"edges": EDGE, "weight": NUMBER}),
    "unlink": EDGE,
    "join": listed(
        rows({"source": MEMORY_ID, "kind": WORD, "target": Field("node"), "relation": WORD, "weight": NUMBER})
    ),
    "set": listed(Field("values")),
}
"""The parts that any event may carry; see ``Change``."""

ADDED: Mapping[str, Field] = {
    "first": NUMBER,
    "count": NUMBER,
    "columns": Field("columns"),
    "redacted": listed(MEMORY_ID, WORD),
}
"""The fields of an event that adds memories."""

_DERIVED = mapping({"rebuilt": WORD, "dropped": WORD, "given": WORD})
"""The columns that an edit derived again, emptied, and was given."""

_LIVE = {"slot": WORD, "hash": HASH, "source": HASH, "helpers": WORD, "params": mapping({"*": NUMBER})}
_CHANGED = {"live": HASH, "reason": REASON, "to": NUMBER, "needs": mapping({"*": WORD}), VOCABULARY: NUMBER}
_PACK = {"pack": WORD, "hash": HASH, "sources": HASH, "policies": mapping({"*": HASH})}


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
            "params": mapping({"*": NUMBER}),
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
    EventType("edit", "Fields of a memory were changed.", {"memory": MEMORY_ID, "derived": _DERIVED}, replay="values"),
    EventType(
        "deprecate",
        "Memories were flagged as wrong.",
        {"reason": REASON, "was": listed(Field("values"), required=True)},
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
    EventType("status", "Memories got another status, in labs of the first days.", {"ids": MEMORY_ID, "status": WORD}),
    EventType("retract", "Facts were withdrawn.", {"reason": REASON}, replay="values"),
    EventType("resolve", "A conflict was decided.", {"reason": REASON}),
    EventType("reinforce", "Use changed numbers of memories.", {"pack": HASH}),
    EventType(
        "purge",
        "Memories were removed for good.",
        {
            "reason": REASON,
            "tombstones": mapping({"key": BYTES, "hashes": BYTES, "origins": WORD}),
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
        {"entity": _ENTITY, "into": _ENTITY, "moved": mapping({"*": MEMORY_ID})},
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
        return f"The kind of event {kind!r} begins with the name of its extension: {extension}/{kind}."
    if declared.adds or declared.policies or declared.asks:
        return f"The event {kind} adds memories, changes policies or is a recall: only memlab's own do."
    return _unclear_text(declared)


def _unclear_text(declared: EventType) -> str | None:
    """Return which text of an event has no subject, so that nobody knows when a purge takes it out."""
    if not any(field.role == "memory" for field in declared.fields.values()):
        return None
    for name, field in declared.fields.items():
        if field.role in ("text", "note", "label") and not field.shared and not field.of:
            return (
                f"The field {name} of the event {declared.kind} does not say of which memory it speaks: "
                'give of="...", the field with the memory, or shared=True for what stays when memories are purged.'
            )
    return None


EVENTS: Registry[EventType] = Registry("kind of event", _KERNEL, kind="events", about="doc", check=_refusal)
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


def extension_of(kind: str) -> str | None:
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
        known = _bodies[kind] = (EVENTS.changes, mapping({**PARTS, **own}))
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
