"""Repair of events that an earlier version committed and that cannot be applied.

Such an event lacks a name or skips ids. A purge of that version removed purged texts from the names
that a person had declared, too: "Adele Quuxley" became "" when "Adele Quuxley likes cheese" was
purged. Names are taken from other parts of the same event. A name that no event contains gets a
placeholder: the entity is unknown then, and memories that name it keep its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memlab.errors import InputError
from memlab.kernel.journal import Body, Event
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import PLACEHOLDER, declared_names, entity_key


def make_repairer() -> Callable[[Event], Body | None]:
    """Return a function that repairs the events of one journal when called in order.

    It applies ``repair_names`` and ``fill_gap``.
    """
    following = 1

    def mend(event: Event) -> Body | None:
        nonlocal following
        body = repair_names(event)
        if "first" in event.body and "count" in event.body:
            body = fill_gap(event, following) or body
            following = event.body["first"] + event.body["count"]
        return body

    return mend


def fill_gap(event: Event, following: int) -> Body | None:
    """Return an event's body with rows for skipped ids, or None if no id was skipped.

    After an interrupted write an earlier version assigned the id 27 where 24 was next. The three
    missing memories become rows without content and with the status "purged".
    """
    body, gap = event.body, event.body["first"] - following
    if gap <= 0:
        return None
    columns = {"status": MEMORY["status"].default, **body["columns"]}
    absent = {
        name: None if column.storage == "name" else column.default
        for name, column in MEMORY.items()
    }
    absent |= {"status": "purged", "created": event.at}
    padded = {
        name: [absent[name]] * gap
        + (values if isinstance(values, list) else [values] * body["count"])
        for name, values in columns.items()
    }
    return {**body, "first": following, "count": body["count"] + gap, "columns": padded}


def repair_names(event: Event) -> Body | None:
    """Return an event's body with missing names filled in, or None if no name is missing.

    >>> repair_names(Event(9, 0, "entity", {"name": "", "type": "person", "aliases": ["", "Della"]}))
    {'name': 'Della', 'type': 'person', 'aliases': []}
    """
    body = dict(event.body)
    if declared_names(event.kind, "entity"):
        body |= _repair_declared(event, body)
    if "clusters" in body:
        body["clusters"] = [
            {**cluster, "name": _name_or_placeholder(cluster["name"], event, cluster["id"])}
            if "name" in cluster
            else cluster
            for cluster in body["clusters"]
        ]
    if "registers" in body:
        body["registers"] = {
            name: _REPAIRS.get(name, _return_unchanged)(dumped, event)
            for name, dumped in body["registers"].items()
        }
    return None if body == event.body else body


def _repair_declared(event: Event, body: Body) -> Body:
    """Return an event's body with repaired entity names in its declared fields."""
    if "aliases" in body:
        body["aliases"] = [name for name in body["aliases"] if _is_name(name)]
    for number, field in enumerate(_declared_fields(event, body)):
        if not _is_name(body[field]):
            body[field] = _find_name_in_event(event, field, body) or _name_or_placeholder(
                "", event, number
            )
    if event.kind == "merge-entity" and entity_key(body["entity"]) == entity_key(body["into"]):
        body["entity"] = _name_or_placeholder("", event, 2)  # the purge left both alike
    return body


def _declared_fields(event: Event, body: Body) -> list[str]:
    """Return the fields of an event that contain an entity's name."""
    return [
        name for name in declared_names(event.kind, "entity") if name in body and name != "aliases"
    ]


def _name_or_placeholder(name: str, event: Event, number: int) -> str:
    """Return a valid name unchanged, or a placeholder for an invalid name."""
    return name if _is_name(name) else f"{PLACEHOLDER}{event.seq}-0{number}]"


def _repair_entities(dumped: dict[str, Any], event: Event) -> dict[str, Any]:
    """Replace invalid entity names in a dumped register with placeholders."""
    entries = [
        [_name_or_placeholder(name, event, number), *rest]
        for number, (name, *rest) in enumerate(dumped["entries"])
    ]
    names = [
        _name_or_placeholder(name, event, owner)
        for name, owner in zip(dumped["names"], dumped["owners"], strict=True)
    ]
    return {**dumped, "entries": entries, "names": names}


def _repair_centroids(dumped: dict[str, Any], event: Event) -> dict[str, Any]:
    """Replace invalid cluster names in a dumped register with placeholders."""
    return {
        **dumped,
        "clusters": [
            [id, _name_or_placeholder(name, event, id), *rest]
            for id, name, *rest in dumped["clusters"]
        ],
    }


def _return_unchanged(dumped: Any, event: Event) -> Any:
    """Return a dumped register unchanged, because its names need no repair."""
    return dumped


_REPAIRS: dict[str, Callable[[Any, Event], Any]] = {
    "entities": _repair_entities,
    "clusters": _repair_centroids,
}
"""The repair of each register that holds names."""


def _find_name_in_event(event: Event, field: str, body: Body) -> str | None:
    """Return an entity's name from another part of the event, or None without a name.

    For a declaration, this is the first alias, which is removed from ``body``. For a merge or a
    split, it is a name in the event's edges or changed columns.
    """
    if event.kind == "entity" and body["aliases"]:
        return str(body["aliases"].pop(0))
    gains = (event.kind, field) in (("merge-entity", "into"), ("split-entity", "entity"))
    joined = [
        name for part in body.get("join", ()) if part["kind"] == "entity" for name in part["target"]
    ]
    renamed = [part["columns"][name] for part in body.get("set", ()) for name in part["columns"]]
    candidates = (
        name for name in (*joined, *renamed) if gains and isinstance(name, str) and _is_name(name)
    )
    return next((name for name in candidates if not name.startswith(PLACEHOLDER)), None)


def _is_name(name: str) -> bool:
    """Return whether a text is a valid name of an entity."""
    try:
        entity_key(name)
    except InputError:
        return False
    return True
