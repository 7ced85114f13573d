"""Event bodies without what a purge takes out.

A body keeps its form, so that the fold goes on: rows, numbers and words of closed vocabularies stay, names and texts of
purged memories are null. Where a name stands for an edge (a tag, an entity), a placeholder takes its place, because
later events know edges by number; the purge itself then removes those edges. Names are never cut: they stay, or have a
placeholder, the same one wherever they stand. What a field holds is read from its declaration.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from memlab.kernel.journal import Event
from memlab.kernel.schema import MEMORY, NEVER
from memlab.kernel.state import EVERYONE, NAMES, Entities, Field, body_field, dump_field
from memlab.subjects.purge.planning import PurgePlan

__all__ = ["events_that_may_hold", "redact_event", "without_redactable"]

_CONTENT = frozenset(
    name for name, column in MEMORY.items() if column.storage in ("text", "name", "note", "list")
)
_NOTES = frozenset(name for name, column in MEMORY.items() if column.storage == "note")

_VOCABULARY = re.compile(r"[a-z][a-z0-9_-]*")
"""What may be a word that code knows: a label of this form stays."""

Beside = Mapping[str, Any]
"""The other members of the mapping in which a value stands."""


def events_that_may_hold(events: Iterable[Event]) -> list[Event]:
    """Return the events with fields that say who bears which names, or that a purge may change."""
    known: dict[tuple[str, ...], bool] = {}
    found = []
    for event in events:
        shape = (event.kind, *event.body)
        if shape not in known:
            fields = map(body_field(event.kind).get, event.body)
            known[shape] = any(field.bears_names or field.rewritten for field in fields)
        if known[shape]:
            found.append(event)
    return found


def redact_event(event: Event, gone: PurgePlan) -> dict[str, Any] | None:
    """The body of an event without what is gone; None if it holds nothing of it."""
    declared = body_field(event.kind)
    decision = event.body.get(declared.decision) if declared.decision else None
    body = _members(declared, event.body, gone, decision)
    return None if body == event.body else body


# -- mappings and lists -----------------------------------------------------------------------------------------------


def _members(
    field: Field, values: Beside, gone: PurgePlan, decision: int | None = None
) -> dict[str, Any]:
    """Return the members of a mapping without what is gone; ``decision`` is the recall that the event speaks of."""
    body: dict[str, Any] = {}
    for name, value in values.items():
        part = field.get(name)
        # what was asked as somebody is seen by them alone; of a recall that nobody in particular asked, by all
        plan = (
            gone.asked_by(gone.askers.get(decision, EVERYONE))
            if part.asker and decision is not None
            else gone
        )
        key = name if not field.keys or name in field.fields else gone.name(field.keys, name)
        body[key] = _part(part, value, values, plan)
    return body


def _part(field: Field, value: Any, beside: Beside, gone: PurgePlan) -> Any:
    if value is None or not field.rewritten:
        return value
    return _REDACT[field.role](field, value, beside, gone)


def _mapping(field: Field, value: Any, beside: Beside, gone: PurgePlan) -> Any:
    body = _members(field, value, gone)
    asked = field.asks
    if asked is None:
        return body
    for name, part in value.items():
        if field.get(name) is asked and isinstance(part, str):
            if _is_taken(field, value, gone):
                body[name] = "" if asked.role == "text" else None
            if body[name] != part:
                body |= _without_vectors(field, value)
    return body


def _is_taken(field: Field, value: Beside, gone: PurgePlan) -> bool:
    """Return whether the question in a mapping goes, by its words and by where and as whom it was asked."""
    filters: dict[str, str | None] = {"project": None, "session": None, "viewer": None}
    question = ""
    for name, part in value.items():
        own = field.get(name)
        if own.asked:
            question = part or ""
        elif own.role in ("project", "session"):
            filters[own.role] = part
        elif own.role == "creator":
            filters["viewer"] = part
    return gone.takes(question, **filters)


def _without_vectors(field: Field, value: Beside) -> dict[str, bytes]:
    return {
        name: bytes(len(part)) for name, part in value.items() if field.get(name).role == "vector"
    }


def _list(field: Field, value: Any, beside: Beside, gone: PurgePlan) -> list[Any]:
    items = [item for item in value if not (field.drops and _goes(field.items[0], item, gone))]
    found: list[Any] = []
    for item in items:
        part = _part(field.items[0], item, beside, gone)
        found += part if field.items[0].role == "values" else [part]
    return found


def _goes(field: Field, item: Any, gone: PurgePlan) -> bool:
    """Return whether an item goes as a whole: its memory is purged, or its question is taken."""
    if not field.names_memories or not isinstance(item, Mapping | list | tuple):
        return False
    parts = item.items() if isinstance(item, Mapping) else enumerate(item)
    own = [
        part
        for name, part in parts
        if _inner(field, name).role == "memory" and isinstance(part, int)
    ]
    if gone.within(own):
        return True
    return field.asks is not None and isinstance(item, Mapping) and _is_taken(field, item, gone)


def _inner(field: Field, name: Any) -> Field:
    return field.get(name) if field.role == "mapping" else field.item(name)


def _tuple(field: Field, value: Any, beside: Beside, gone: PurgePlan) -> list[Any]:
    return [_part(field.item(place), part, beside, gone) for place, part in enumerate(value)]


def _rows(field: Field, columns: Any, beside: Beside, gone: PurgePlan) -> dict[str, Any]:
    """Parallel columns: a node that a purged memory is joined to has a placeholder in that row."""
    places: set[int] = set()
    for name, part in columns.items():
        if field.get(name).role == "memory" and isinstance(part, list):
            places |= set(gone.within(part))
    body = dict(columns)
    for name, part in columns.items():
        column = field.get(name)
        if column.role == "node" and isinstance(part, list):
            kind = columns["kind"]
            body[name] = [
                gone.node(kind, called, own=place in places) for place, called in enumerate(part)
            ]
        else:
            body[name] = _part(column, part, columns, gone)
    return body


# -- strings ----------------------------------------------------------------------------------------------------------


def _text(field: Field, value: Any, beside: Beside, gone: PurgePlan) -> Any:
    if isinstance(value, list):
        return [_text(field, one, beside, gone) for one in value]
    if not isinstance(value, str):
        return value
    return "" if field.of and _is_gone(beside.get(field.of), gone) else gone.cut(value)


def _is_gone(subject: Any, gone: PurgePlan) -> bool:
    """Return whether what a text speaks of is purged: a memory, all of some memories, or a name."""
    if isinstance(subject, str):
        return gone.node("tag", subject) != subject
    ids = [subject] if isinstance(subject, int) else subject
    return isinstance(ids, list) and bool(ids) and len(gone.within(ids)) == len(ids)


def _note(field: Field, value: Any, beside: Beside, gone: PurgePlan) -> Any:
    if isinstance(value, list):
        return [_note(field, one, beside, gone) for one in value]
    if not isinstance(value, str):
        return value
    return None if field.of and _is_gone(beside.get(field.of), gone) else gone.cut.note("", value)


def _label(field: Field, value: Any, beside: Beside, gone: PurgePlan) -> Any:
    """A string is cut, unless it may be a word of a vocabulary."""
    if isinstance(value, list):
        return [_label(field, one, beside, gone) for one in value]
    if isinstance(value, str) and field.of and _is_gone(beside.get(field.of), gone):
        return ""
    return value if not isinstance(value, str) or _VOCABULARY.fullmatch(value) else gone.cut(value)


def _undeclared(field: Field, value: Any, beside: Beside, gone: PurgePlan) -> Any:
    """Strings anywhere in a value: a name that goes has a placeholder, others are cut. Keys stay."""
    if isinstance(value, list):
        return [_undeclared(field, one, beside, gone) for one in value]
    if isinstance(value, Mapping):
        return {name: _undeclared(field, part, beside, gone) for name, part in value.items()}
    if isinstance(value, str) and value in gone.names and not _VOCABULARY.fullmatch(value):
        return gone.alias(value)
    return _label(field, value, beside, gone)


def _vector(field: Field, value: Any, beside: Beside, gone: PurgePlan) -> Any:
    return value


def _name(field: Field, value: Any, beside: Beside, gone: PurgePlan) -> Any:
    if isinstance(value, list):
        return [_name(field, one, beside, gone) for one in value]
    if not isinstance(value, str):
        return value
    return gone.name(str(beside.get("kind", "")) if field.role == "node" else field.role, value)


# -- parts that the fold of the state reads ---------------------------------------------------------------------------


def _added(field: Field, columns: Any, beside: Beside, gone: PurgePlan) -> Any:
    if "first" not in beside:
        return columns
    return _columns(range(beside["first"], beside["first"] + beside["count"]), columns, gone)


def _changed(field: Field, part: Any, beside: Beside, gone: PurgePlan) -> list[dict[str, Any]]:
    return _set(part, gone)


def _count(field: Field, value: Any, beside: Beside, gone: PurgePlan) -> int:
    taken, left = _counted(field, beside, gone)
    return int(value) - len(taken) + len(left)


def _newest(field: Field, value: Any, beside: Beside, gone: PurgePlan) -> int:
    taken, left = _counted(field, beside, gone)
    if len(left) == len(taken):
        return int(value)
    created = gone.created[np.array(sorted(left), dtype=np.int64) - 1]
    return int(created.max()) if left else NEVER


def _counted(field: Field, beside: Beside, gone: PurgePlan) -> tuple[set[int], set[int]]:
    """Return the memories that the part ``of`` names, and those of them that are left."""
    part = _PARTS.get(field.of)
    taken = set(part.ids(beside.get(field.of)))
    return taken, taken.difference(gone.ids.tolist())


_PARTS = body_field("")
"""The parts that any event may carry."""


def _columns(listed: Sequence[int], columns: Mapping[str, Any], gone: PurgePlan) -> dict[str, Any]:
    """Columns of remembered rows: what is content of a purged one is null, its tags have placeholders."""
    places = gone.within(listed)
    kept: dict[str, Any] = {}
    for name, given in columns.items():
        if name not in _CONTENT:
            kept[name] = given
            continue
        values = list(given) if isinstance(given, list) else [given] * len(listed)
        for place in places:
            values[place] = _aliased(values[place], gone) if name == "tags" else None
        if name in _NOTES:
            values = [gone.cut.note(name, value) for value in values]
        if isinstance(given, list) or places:
            kept[name] = values
        else:
            kept[name] = values[0] if values else given
    return kept


def _aliased(tags: Sequence[str] | None, gone: PurgePlan) -> list[str] | None:
    return None if tags is None else [gone.alias(tag) for tag in tags]


def _set(part: Mapping[str, Any], gone: PurgePlan) -> list[dict[str, Any]]:
    """What a change sets, without the content of purged memories. Tags stay together: each makes an edge, in order."""
    ids, columns = part["ids"], part["columns"]
    places = frozenset(gone.within(ids))
    left = [place for place in range(len(ids)) if place not in places]
    whole: dict[str, Any] = {}
    content: dict[str, Any] = {}
    for name, given in columns.items():
        if name not in _CONTENT:
            whole[name] = given
        elif name == "tags":
            whole[name] = [
                _aliased(tags, gone) if place in places else tags
                for place, tags in enumerate(given)
            ]
        else:
            values = [given[place] for place in left] if isinstance(given, list) else given
            if name in _NOTES:
                if isinstance(values, list):
                    values = [gone.cut.note(name, one) for one in values]
                else:
                    values = gone.cut.note(name, values)
            content[name] = values
    if not places:
        return [{"ids": ids, "columns": {name: (whole | content)[name] for name in columns}}]
    parts = [
        {"ids": ids, "columns": whole},
        {"ids": [ids[place] for place in left], "columns": content},
    ]
    return [part for part in parts if part["ids"] and part["columns"]]


# -- imports ----------------------------------------------------------------------------------------------------------


def _imported(field: Field, graph: Any, beside: Beside, gone: PurgePlan) -> dict[str, Any]:
    return _graph(graph, gone)


def _graph(graph: Mapping[str, Any], gone: PurgePlan) -> dict[str, Any]:
    """Imported edges: a purged memory's lead to placeholders, and a node that only such had is called by one."""
    nodes = [[kind, gone.node(kind, name)] for kind, name in graph["nodes"]]
    source, target = list(graph["source"]), list(graph["target"])
    purged = frozenset(gone.ids.tolist())
    moved: dict[int, int] = {}
    for here, there in ((source, target), (target, source)):
        for number, (one, other) in enumerate(zip(here, there, strict=True)):
            if one in purged and other < 0:
                if other not in moved:
                    kind, name = graph["nodes"][-other - 1]
                    called = [kind, gone.node(kind, name, own=True)]
                    moved[other] = other
                    if called != nodes[-other - 1]:
                        nodes.append(called)
                        moved[other] = -len(nodes)
                there[number] = moved[other]
    return {**graph, "nodes": nodes, "source": source, "target": target}


def _registers(field: Field, registers: Any, beside: Beside, gone: PurgePlan) -> dict[str, Any]:
    found = {name: _part(dump_field(name), dumped, {}, gone) for name, dumped in registers.items()}
    if Entities.name in registers and "graph" in beside:
        lost = _lost_mentions(beside["graph"], gone)
        found[Entities.name] = Entities.count_fewer(
            found[Entities.name], registers[Entities.name], lost
        )
    return found


def _lost_mentions(graph: Mapping[str, Any], gone: PurgePlan) -> Counter[str]:
    """Return how often purged memories mention each imported entity."""
    purged = frozenset(gone.ids.tolist())
    return Counter(
        graph["nodes"][-target - 1][1]
        for source, target, relation in zip(
            graph["source"], graph["target"], graph["relation"], strict=True
        )
        if relation == "mentions" and target < 0 and source in purged
    )


_REDACT: Mapping[str, Callable[[Field, Any, Beside, PurgePlan], Any]] = {
    "mapping": _mapping,
    "list": _list,
    "tuple": _tuple,
    "rows": _rows,
    "text": _text,
    "note": _note,
    "label": _label,
    "undeclared": _undeclared,
    "vector": _vector,
    "columns": _added,
    "values": _changed,
    "memory-count": _count,
    "newest-time": _newest,
    "graph": _imported,
    "registers": _registers,
    **dict.fromkeys(NAMES, _name),
}


# -- what is compared -------------------------------------------------------------------------------------------------


def without_redactable(field: Field, value: Any) -> Any:
    """Return a value without whatever a purge may change of it: the rest of a dump is equal before and after."""
    if value is None or not field.rewritten:
        return value
    if field.role == "mapping" and isinstance(value, Mapping):
        parts = {name: without_redactable(field.get(name), part) for name, part in value.items()}
        return list(parts.values()) if field.keys else parts
    if field.role == "list":
        return [] if field.drops else [without_redactable(field.items[0], item) for item in value]
    if field.role == "tuple":
        return [without_redactable(field.item(place), part) for place, part in enumerate(value)]
    return None
