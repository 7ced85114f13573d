"""Events that an earlier version committed and that cannot be applied: without a name, or with ids left out.

Its purge cut purged texts out of the names that a person had declared, too: "Adele Quuxley" became nothing when
"Adele Quuxley likes cheese" was purged. What the same event still tells of the entity is taken from there, and what no
event tells has a placeholder: the entity is nobody then, and the memories that name it keep its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memlab.errors import InputError
from memlab.kernel.journal import Event
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import PLACEHOLDER, declared_names, entity_key

__all__ = ["mended", "mending"]


def mending() -> Callable[[Event], dict[str, Any] | None]:
    """What mends the events of one journal, which it is asked of in order: see ``mended`` and ``without_gap``."""
    following = 1

    def mend(event: Event) -> dict[str, Any] | None:
        nonlocal following
        body = mended(event)
        if "first" in event.body and "count" in event.body:
            body = without_gap(event, following) or body
            following = event.body["first"] + event.body["count"]
        return body

    return mend


def without_gap(event: Event, following: int) -> dict[str, Any] | None:
    """The body of an event that adds memories, with rows for the ids from ``following`` on that it leaves out.

    After an interrupted write an earlier version gave the id 27 where 24 was next. The three that never were are rows
    without content that count as purged; None where nothing was left out.
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
        name: [absent[name]] * gap + (given if isinstance(given, list) else [given] * body["count"])
        for name, given in columns.items()
    }
    return {**body, "first": following, "count": body["count"] + gap, "columns": padded}


def mended(event: Event) -> dict[str, Any] | None:
    """The body of an event with names where an earlier purge left none; None if nothing is wrong with it.

    >>> mended(Event(9, 0, "entity", {"name": "", "type": "person", "aliases": ["", "Della"]}))
    {'name': 'Della', 'type': 'person', 'aliases': []}
    """
    body = dict(event.body)
    if declared_names(event.kind, "entity"):
        body |= _declared(event, body)
    if "clusters" in body:
        body["clusters"] = [
            {**cluster, "name": _called(cluster["name"], event, cluster["id"])}
            if "name" in cluster
            else cluster
            for cluster in body["clusters"]
        ]
    if "registers" in body:
        body["registers"] = {
            name: _MEND.get(name, _unchanged)(one, event) for name, one in body["registers"].items()
        }
    return None if body == event.body else body


def _declared(event: Event, body: dict[str, Any]) -> dict[str, Any]:
    """The fields by which a person named entities."""
    if "aliases" in body:
        body["aliases"] = [name for name in body["aliases"] if _is_name(name)]
    for place, field in enumerate(_declared_fields(event, body)):
        if not _is_name(body[field]):
            body[field] = _name_in_event(event, field, body) or _called("", event, place)
    if event.kind == "merge-entity" and entity_key(body["entity"]) == entity_key(body["into"]):
        body["entity"] = _called("", event, 2)  # both were cut to the same rest
    return body


def _declared_fields(event: Event, body: dict[str, Any]) -> list[str]:
    return [
        name for name in declared_names(event.kind, "entity") if name in body and name != "aliases"
    ]


def _called(name: str, event: Event, number: int) -> str:
    return name if _is_name(name) else f"{PLACEHOLDER}{event.seq}-0{number}]"


def _entities(dumped: dict[str, Any], event: Event) -> dict[str, Any]:
    entries = [
        [_called(name, event, number), *rest]
        for number, (name, *rest) in enumerate(dumped["entries"])
    ]
    names = [
        _called(name, event, owner)
        for name, owner in zip(dumped["names"], dumped["owners"], strict=True)
    ]
    return {**dumped, "entries": entries, "names": names}


def _centroids(dumped: dict[str, Any], event: Event) -> dict[str, Any]:
    return {
        **dumped,
        "clusters": [
            [id, _called(name, event, id), *rest] for id, name, *rest in dumped["clusters"]
        ],
    }


def _unchanged(dumped: Any, event: Event) -> Any:
    return dumped


_MEND: dict[str, Callable[[Any, Event], Any]] = {"entities": _entities, "clusters": _centroids}


def _name_in_event(event: Event, field: str, body: dict[str, Any]) -> str | None:
    """The name as other parts of its event have it: who gained the facts, else the first of the other names."""
    if event.kind == "entity" and body["aliases"]:
        return str(body["aliases"].pop(0))
    gains = (event.kind, field) in (("merge-entity", "into"), ("split-entity", "entity"))
    joined = [
        name for part in body.get("join", ()) if part["kind"] == "entity" for name in part["target"]
    ]
    renamed = [part["columns"][name] for part in body.get("set", ()) for name in part["columns"]]
    found = (
        name for name in (*joined, *renamed) if gains and isinstance(name, str) and _is_name(name)
    )
    return next((name for name in found if not name.startswith(PLACEHOLDER)), None)


def _is_name(name: str) -> bool:
    try:
        entity_key(name)
    except InputError:
        return False
    return True
