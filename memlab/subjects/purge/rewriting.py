"""Removal of purged content from the bodies of events.

A body keeps its structure, so that the fold still works. Rows, numbers and words of closed
vocabularies stay; names and texts of purged memories become null. A name that defines an edge (a
tag, an entity) becomes a placeholder, because later events refer to edges by number; the purge then
removes those edges. A name is never cut: it stays, or the same placeholder replaces it everywhere.
The declared role of a field decides how its value is redacted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from memlab.kernel.journal import Body, Event
from memlab.kernel.schema import MEMORY, NEVER
from memlab.kernel.state import EVERYONE, NAMES, Entities, Field, Siblings, body_field, dump_field
from memlab.subjects.purge.planning import PurgePlan

# Columns of a memory with content, and those among them that may quote other memories.
_CONTENT = frozenset(
    name for name, column in MEMORY.items() if column.storage in ("text", "name", "note", "list")
)
_NOTES = frozenset(name for name, column in MEMORY.items() if column.storage == "note")

_VOCABULARY = re.compile(r"[a-z][a-z0-9_-]*")
"""The form of words that code may use: a label of this form stays."""


def select_affected_events(events: Iterable[Event]) -> list[Event]:
    """Return the events with fields that may contain names or must be rewritten."""
    affected: dict[tuple[str, ...], bool] = {}
    selected = []
    for event in events:
        shape = (event.kind, *event.body)
        if shape not in affected:
            fields = map(body_field(event.kind).get, event.body)
            affected[shape] = any(field.bears_names or field.rewritten for field in fields)
        if affected[shape]:
            selected.append(event)
    return selected


def redact_event(event: Event, gone: PurgePlan) -> Body | None:
    """Return the redacted body of an event, or None if nothing changes."""
    declared = body_field(event.kind)
    decision = event.body.get(declared.decision) if declared.decision else None
    body = _redact_members(declared, event.body, gone, decision)
    return None if body == event.body else body


def _redact_members(
    field: Field, values: Siblings, gone: PurgePlan, decision: int | None = None
) -> dict[str, Any]:
    """Redact each value of a mapping according to its declared field.

    ``decision`` is the recall that the event belongs to.
    """
    body: Body = {}
    for name, value in values.items():
        part = field.get(name)
        # Only the viewer of a recall sees what belongs to it, so names that the viewer knows otherwise are kept.
        plan = (
            gone.for_viewer(gone.askers.get(decision, EVERYONE))
            if part.asker and decision is not None
            else gone
        )
        key = name if not field.keys or name in field.fields else gone.name(field.keys, name)
        body[key] = _redact(part, value, values, plan)
    return body


def _redact(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> Any:
    """Redact a value with the function for the role of its field."""
    if value is None or not field.rewritten:
        return value
    return _REDACT[field.role](field, value, siblings, gone)


# The functions below redact a value of one role each; the table _REDACT at the end assigns them.


def _mapping(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> Any:
    """Redact a mapping, and remove a purged query together with its vectors."""
    body = _redact_members(field, value, gone)
    query_field = field.asks
    if query_field is None:
        return body
    for name, part in value.items():
        if field.get(name) is query_field and isinstance(part, str):
            if _is_query_removed(field, value, gone):
                body[name] = "" if query_field.role == "text" else None
            if body[name] != part:
                body |= _zero_vectors(field, value)
    return body


def _is_query_removed(field: Field, value: Siblings, gone: PurgePlan) -> bool:
    """Return whether a purge removes a recall's query because of its text or filters."""
    filters: dict[str, str | None] = {"project": None, "session": None, "viewer": None}
    query = ""
    for name, part in value.items():
        own = field.get(name)
        if own.asked:
            query = part or ""
        elif own.role in ("project", "session"):
            filters[own.role] = part
        elif own.role == "creator":
            filters["viewer"] = part
    return gone.removes_query(query, **filters)


def _zero_vectors(field: Field, value: Siblings) -> dict[str, bytes]:
    """Return zero vectors that replace the vectors of a mapping."""
    return {
        name: bytes(len(part)) for name, part in value.items() if field.get(name).role == "vector"
    }


def _list(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> list[Any]:
    """Redact the items of a list; drop items about purged memories if the field requires it."""
    items = [
        item for item in value if not (field.drops and _is_dropped(field.items[0], item, gone))
    ]
    redacted: list[Any] = []
    for item in items:
        part = _redact(field.items[0], item, siblings, gone)
        # A change of purged memories may become two: one of their rows, and one of all other rows.
        redacted += part if field.items[0].role == "values" else [part]
    return redacted


def _is_dropped(field: Field, item: Any, gone: PurgePlan) -> bool:
    """Return whether a purge drops an item because of its memory or its query."""
    if not field.names_memories or not isinstance(item, Mapping | list | tuple):
        return False
    parts = item.items() if isinstance(item, Mapping) else enumerate(item)
    own = [
        id
        for name, part in parts
        if _member_field(field, name).role == "memory"
        for id in (part if isinstance(part, list) else (part,))
        if isinstance(id, int)
    ]
    if gone.within(own):
        return True
    return (
        field.asks is not None
        and isinstance(item, Mapping)
        and _is_query_removed(field, item, gone)
    )


def _member_field(field: Field, name: Any) -> Field:
    """Return the field of a mapping's member or of a sequence's item."""
    return field.get(name) if field.role == "mapping" else field.item(name)


def _tuple(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> list[Any]:
    """Redact the items of a tuple."""
    return [_redact(field.item(index), part, siblings, gone) for index, part in enumerate(value)]


def _rewrite_rows(
    field: Field, columns: Any, siblings: Siblings, gone: PurgePlan
) -> dict[str, Any]:
    """Redact parallel columns; nodes linked to purged memories become placeholders."""
    purged_rows: set[int] = set()
    for name, part in columns.items():
        if field.get(name).role == "memory" and isinstance(part, list):
            purged_rows |= set(gone.within(part))
    body = dict(columns)
    for name, part in columns.items():
        column = field.get(name)
        if column.role == "node" and isinstance(part, list):
            kind = columns["kind"]
            body[name] = [
                gone.node(kind, node_name, own=row in purged_rows)
                for row, node_name in enumerate(part)
            ]
        else:
            body[name] = _redact(column, part, columns, gone)
    return body


Redact = Callable[[Field, Any, Siblings, PurgePlan], Any]
"""A function that redacts a value: its field, the value, its siblings and the plan of the purge."""


def _for_each_string(redact: Redact) -> Redact:
    """Return a function that applies ``redact`` to every string in nested lists."""

    def redact_all(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> Any:
        if isinstance(value, list):
            return [redact_all(field, item, siblings, gone) for item in value]
        return redact(field, value, siblings, gone) if isinstance(value, str) else value

    return redact_all


@_for_each_string
def _text(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> Any:
    """Redact a text or a list of texts; a text about purged memories becomes ""."""
    return "" if field.of and _is_gone(siblings.get(field.of), gone) else gone.cut(value)


def _is_gone(subject: Any, gone: PurgePlan) -> bool:
    """Return whether a text describes only purged memories or a purged name."""
    if isinstance(subject, str):
        return gone.node("tag", subject) != subject
    ids = [subject] if isinstance(subject, int) else subject
    return isinstance(ids, list) and bool(ids) and len(gone.within(ids)) == len(ids)


@_for_each_string
def _note(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> Any:
    """Redact a note or a list of notes; a note without remaining text becomes None."""
    return None if field.of and _is_gone(siblings.get(field.of), gone) else gone.cut.note("", value)


@_for_each_string
def _label(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> Any:
    """Redact a label or a list of labels, except code words such as "user-edit"."""
    if field.of and _is_gone(siblings.get(field.of), gone):
        return ""
    return value if _VOCABULARY.fullmatch(value) else gone.cut(value)


def _undeclared(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> Any:
    """Redact every string in the value of an undeclared field, but no mapping keys."""
    if isinstance(value, list):
        return [_undeclared(field, item, siblings, gone) for item in value]
    if isinstance(value, Mapping):
        return {name: _undeclared(field, part, siblings, gone) for name, part in value.items()}
    if isinstance(value, str) and value in gone.names and not _VOCABULARY.fullmatch(value):
        return gone.alias(value)
    return _label(field, value, siblings, gone)


def _vector(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> Any:
    """Return a vector unchanged; its mapping removes the vector if necessary."""
    return value


@_for_each_string
def _name(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> Any:
    """Replace the purged names in a name or a list of names with placeholders."""
    return gone.name(str(siblings.get("kind", "")) if field.role == "node" else field.role, value)


def _added(field: Field, columns: Any, siblings: Siblings, gone: PurgePlan) -> Any:
    """Redact the columns of memories that an event adds."""
    if "first" not in siblings:
        return columns
    return _columns(range(siblings["first"], siblings["first"] + siblings["count"]), columns, gone)


def _count(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> int:
    """Return a count without the purged memories."""
    memories, left = _counted(field, siblings, gone)
    return int(value) - len(memories) + len(left)


def _newest(field: Field, value: Any, siblings: Siblings, gone: PurgePlan) -> int:
    """Return the creation time of the newest memory that a purge leaves, or NEVER if none is left.

    If the purge removes none of the memories, ``value`` is returned unchanged.
    """
    memories, left = _counted(field, siblings, gone)
    if len(left) == len(memories):
        return int(value)
    created = gone.created[np.array(sorted(left), dtype=np.int64) - 1]
    return int(created.max()) if left else NEVER


def _counted(field: Field, siblings: Siblings, gone: PurgePlan) -> tuple[set[int], set[int]]:
    """Return the memories that a field describes, and the remaining memories among them."""
    part = _PARTS.get(field.of)
    memories = set(part.ids(siblings.get(field.of)))
    return memories, memories.difference(gone.ids.tolist())


_PARTS = body_field("")
"""The fields that an event of any kind may have."""


def _columns(ids: Sequence[int], columns: Mapping[str, Any], gone: PurgePlan) -> dict[str, Any]:
    """Redact columns: purged rows lose their content, and their tags become placeholders."""
    purged = gone.within(ids)
    redacted: dict[str, Any] = {}
    for name, column in columns.items():
        if name not in _CONTENT:
            redacted[name] = column
            continue
        values = list(column) if isinstance(column, list) else [column] * len(ids)
        for index in purged:
            values[index] = _aliased(values[index], gone) if name == "tags" else None
        if name in _NOTES:
            values = [gone.cut.note(name, value) for value in values]
        if isinstance(column, list) or purged:
            redacted[name] = values
        else:
            redacted[name] = values[0] if values else column
    return redacted


def _aliased(tags: Sequence[str] | None, gone: PurgePlan) -> list[str] | None:
    """Return placeholders for the tags of a purged memory, or None if it has no tags."""
    return None if tags is None else [gone.alias(tag) for tag in tags]


def _split_change(
    field: Field, part: Any, siblings: Siblings, gone: PurgePlan
) -> list[dict[str, Any]]:
    """Redact a change of memories, and split it in two if it covers purged memories."""
    # Values of purged memories are removed from content, so content and other columns have different ids then. Tags
    # stay with the other columns, because each tag creates an edge and later events refer to edges by number.
    ids, columns = part["ids"], part["columns"]
    purged = frozenset(gone.within(ids))
    left = [index for index in range(len(ids)) if index not in purged]
    whole: dict[str, Any] = {}
    content: dict[str, Any] = {}
    for name, column in columns.items():
        if name not in _CONTENT:
            whole[name] = column
        elif name == "tags":
            whole[name] = [
                _aliased(tags, gone) if index in purged else tags
                for index, tags in enumerate(column)
            ]
        else:
            values = [column[index] for index in left] if isinstance(column, list) else column
            if name in _NOTES:
                if isinstance(values, list):
                    values = [gone.cut.note(name, note) for note in values]
                else:
                    values = gone.cut.note(name, values)
            content[name] = values
    if not purged:
        return [{"ids": ids, "columns": {name: (whole | content)[name] for name in columns}}]
    parts = [
        {"ids": ids, "columns": whole},
        {"ids": [ids[index] for index in left], "columns": content},
    ]
    return [part for part in parts if part["ids"] and part["columns"]]


def _graph(field: Field, graph: Any, siblings: Siblings, gone: PurgePlan) -> dict[str, Any]:
    """Redact imported edges; the edges of a purged memory point to placeholders.

    A node that only purged memories had becomes a placeholder itself.
    """
    nodes = [[kind, gone.node(kind, name)] for kind, name in graph["nodes"]]
    source, target = list(graph["source"]), list(graph["target"])
    purged = frozenset(gone.ids.tolist())
    moved: dict[int, int] = {}
    for starts, ends in ((source, target), (target, source)):
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if start in purged and end < 0:
                if end not in moved:
                    kind, name = graph["nodes"][-end - 1]
                    placeholder = [kind, gone.node(kind, name, own=True)]
                    moved[end] = end
                    if placeholder != nodes[-end - 1]:
                        nodes.append(placeholder)
                        moved[end] = -len(nodes)
                ends[number] = moved[end]
    return {**graph, "nodes": nodes, "source": source, "target": target}


def _registers(field: Field, registers: Any, siblings: Siblings, gone: PurgePlan) -> dict[str, Any]:
    """Redact imported registers, and remove purged mentions from entities."""
    redacted = {
        name: _redact(dump_field(name), dumped, {}, gone) for name, dumped in registers.items()
    }
    if Entities.name in registers and "graph" in siblings:
        lost = _lost_mentions(siblings["graph"], gone)
        redacted[Entities.name] = Entities.count_fewer(
            redacted[Entities.name], registers[Entities.name], lost
        )
    return redacted


def _lost_mentions(graph: Mapping[str, Any], gone: PurgePlan) -> Counter[str]:
    """Return the number of purged mentions of each imported entity."""
    purged = frozenset(gone.ids.tolist())
    return Counter(
        graph["nodes"][-target - 1][1]
        for source, target, relation in zip(
            graph["source"], graph["target"], graph["relation"], strict=True
        )
        if relation == "mentions" and target < 0 and source in purged
    )


# One function for each role that a field may have.
_REDACT: Mapping[str, Redact] = {
    "mapping": _mapping,
    "list": _list,
    "tuple": _tuple,
    "rows": _rewrite_rows,
    "text": _text,
    "note": _note,
    "label": _label,
    "undeclared": _undeclared,
    "vector": _vector,
    "columns": _added,
    "values": _split_change,
    "memory-count": _count,
    "newest-time": _newest,
    "graph": _graph,
    "registers": _registers,
    **dict.fromkeys(NAMES, _name),
}


def without_redactable(field: Field, value: Any) -> Any:
    """Return the parts of a value that a purge may not change, for comparison."""
    if value is None or not field.rewritten:
        return value
    if field.role == "mapping" and isinstance(value, Mapping):
        parts = {name: without_redactable(field.get(name), part) for name, part in value.items()}
        return list(parts.values()) if field.keys else parts
    if field.role == "list":
        return [] if field.drops else [without_redactable(field.items[0], item) for item in value]
    if field.role == "tuple":
        return [without_redactable(field.item(index), part) for index, part in enumerate(value)]
    return None
