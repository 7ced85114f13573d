"""Event bodies without what a purge takes out.

A body keeps its form, so that the fold goes on: rows, numbers and words of closed vocabularies stay, names and texts of
purged memories are null. Where a name stands for an edge (a tag, an entity), a placeholder takes its place, because
later events know edges by number; the purge itself then removes those edges. Names are never cut: they stay, or have a
placeholder, the same one wherever they stand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from memlab.journal import Event
from memlab.schema import MEMORY, NEVER
from memlab.state import EVERYONE
from memlab.subjects.purge.planning import BY_HAND, NAMED, PurgePlan

__all__ = ["redact_event"]

_CONTENT = frozenset(name for name, column in MEMORY.items() if column.storage in ("text", "name", "note", "list"))
_NOTES = frozenset(name for name, column in MEMORY.items() if column.storage == "note")

_UNTOUCHED = frozenset({"recall", "embedder"})
"""Kinds of events that hold ids and numbers only."""

_WITH_REASON = frozenset(
    {"use", "install", "rollback", "rollback-pack", "pin", "unpin", "challenge", "end-challenge", "purge"}
)
"""Kinds whose one field in a person's words is the reason."""

_PARTS = frozenset({"first", "count", "edges", "strengthen", "unlink", "uses", "operations", "pack", "hash"})
"""Fields that hold ids, numbers, hashes and words of closed vocabularies only."""

_TEXTS = frozenset({"reason", "snippet"})

_VOCABULARY = re.compile(r"[a-z][a-z0-9_-]*")
"""What may be a word that the code of a register knows; its place is not known here, so it stays."""


def redact_event(event: Event, gone: PurgePlan) -> dict[str, Any] | None:
    """The body of an event without what is gone; None if it holds nothing of it."""
    if event.kind in _UNTOUCHED:
        return None
    if event.kind in _WITH_REASON:
        reason = event.body.get("reason", "")
        return None if gone.cut(reason) == reason else {**event.body, "reason": gone.cut(reason)}
    body = {name: _field(event, name, value, gone) for name, value in event.body.items()}
    if event.kind == "split-entity" and "from" in body:
        body |= _counted(event.body, gone)
    return None if body == event.body else body


def _field(event: Event, name: str, value: Any, gone: PurgePlan) -> Any:
    if event.kind == "describe-tag":
        return _described(name, value, event.body["tag"], gone)
    if name in BY_HAND.get(event.kind, ()):
        return [gone.node("entity", one) for one in value] if isinstance(value, list) else gone.node("entity", value)
    if name == "columns" and "first" in event.body:
        return _columns(range(event.body["first"], event.body["first"] + event.body["count"]), value, gone)
    if name == "set":
        return [part for given in value for part in _set(given, gone)]
    if name == "join":
        return [_join(part, gone) for part in value]
    if name == "graph":
        return _graph(value, gone)
    if name == "registers":
        found = {register: _REGISTERS.get(register, _unchanged)(dumped, gone) for register, dumped in value.items()}
        if "entities" in value and "graph" in event.body:
            found["entities"]["entries"] = _mentioned(found["entities"]["entries"], value, event.body["graph"], gone)
        return found
    if name == "tellings":
        return _tellings(value, gone)
    if name == "fact_times":
        return _fact_times(value, gone)
    if name == "clusters":
        return [{**one, "name": gone.node("cluster", one["name"])} if "name" in one else one for one in value]
    if name == "summaries":
        return [{**one, "of": gone.node("cluster", one["of"])} for one in value]
    if name == "gap" and isinstance(value, dict):  # that of a recall which nobody in particular asked is seen by all
        gone = gone.asked_by(gone.askers.get(event.body["decision"], EVERYONE))
    return value if name in _PARTS else _walked(value, gone, name)


# -- what any event may carry -----------------------------------------------------------------------------------------


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
            whole[name] = [_aliased(tags, gone) if place in places else tags for place, tags in enumerate(given)]
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
    parts = [{"ids": ids, "columns": whole}, {"ids": [ids[place] for place in left], "columns": content}]
    return [part for part in parts if part["ids"] and part["columns"]]


def _join(part: Mapping[str, Any], gone: PurgePlan) -> dict[str, Any]:
    places = frozenset(gone.within(part["source"]))
    targets = [gone.node(part["kind"], name, own=place in places) for place, name in enumerate(part["target"])]
    return {**part, "target": targets}


def _counted(body: Mapping[str, Any], gone: PurgePlan) -> dict[str, int]:
    """How many of the memories that a new entity takes are left, and the instant of the newest of them."""
    taken = {id for part in body.get("join", ()) for id in part["source"]}
    left = taken.difference(gone.ids.tolist())
    if len(left) == len(taken):
        return {}
    created = gone.created[np.array(sorted(left), dtype=np.int64) - 1]
    return {"mentions": body["mentions"] - len(taken) + len(left), "last": int(created.max()) if left else NEVER}


# -- imports ----------------------------------------------------------------------------------------------------------


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


def _entities(dumped: Mapping[str, Any], gone: PurgePlan) -> dict[str, Any]:
    entries = [[gone.node("entity", name), *rest] for name, *rest in dumped["entries"]]
    return {**dumped, "entries": entries, "names": [gone.node("entity", name) for name in dumped["names"]]}


def _mentioned(
    entries: Sequence[Sequence[Any]], registers: Mapping[str, Any], graph: Mapping[str, Any], gone: PurgePlan
) -> list[Any]:
    """Imported entities, which purged memories mention no more."""
    purged = frozenset(gone.ids.tolist())
    lost = Counter(
        graph["nodes"][-target - 1][1]
        for source, target, relation in zip(graph["source"], graph["target"], graph["relation"], strict=True)
        if relation == "mentions" and target < 0 and source in purged
    )
    known = registers["entities"]["entries"]
    return [
        [name, type, max(0, mentions - lost[known[number][0]]), *rest]
        for number, (name, type, mentions, *rest) in enumerate(entries)
    ]


def _centroids(dumped: Mapping[str, Any], gone: PurgePlan) -> dict[str, Any]:
    clusters = [[id, gone.node("cluster", name), *rest] for id, name, *rest in dumped["clusters"]]
    return {**dumped, "clusters": clusters}


def _summaries(dumped: Iterable[Sequence[Any]], gone: PurgePlan) -> list[Any]:
    return [[id, at, by, gone.node("cluster", of), *rest] for id, at, by, of, *rest in dumped]


def _rows(dumped: Iterable[Mapping[str, Any]], gone: PurgePlan) -> list[Any]:
    return [_walked(row, gone) for row in dumped]


def _tags(dumped: Iterable[Mapping[str, Any]], gone: PurgePlan) -> list[Any]:
    return [{name: _described(name, value, row["tag"], gone) for name, value in row.items()} for row in dumped]


def _described(name: str, value: Any, tag: str, gone: PurgePlan) -> Any:
    """A tag by its name, or what is said of it: of one that only purged memories bore, nothing."""
    called = gone.node("tag", tag)
    return called if name == "tag" else gone.cut(value) if called == tag else ""


def _tellings(told: Iterable[Mapping[str, Any]], gone: PurgePlan) -> list[Any]:
    """How memories were told again, without those of purged memories and what was told where all of it goes."""
    return [
        {name: _told(name, value, gone) for name, value in row.items()}
        for row in told
        if not gone.within([row["memory"]])
        and not gone.takes(
            row.get("context") or "", project=row.get("project"), session=row.get("session"), viewer=row.get("creator")
        )
    ]


def _fact_times(told: Iterable[Sequence[Any]], gone: PurgePlan) -> list[Any]:
    """When facts were told again, without those of purged memories."""
    return [list(one) for one in told if not gone.within([one[0]])]


def _told(name: str, value: Any, gone: PurgePlan) -> Any:
    if name in ("context", "reason"):
        return gone.cut.note(name, value)
    return gone.named(value, name) if isinstance(value, str) else value


def _unchanged(dumped: Any, gone: PurgePlan) -> Any:
    """A register of ids, numbers and hashes."""
    return dumped


_REGISTERS: dict[str, Callable[[Any, PurgePlan], Any]] = {
    "entities": _entities,
    "clusters": _centroids,
    "summaries": _summaries,
    "gaps": _rows,
    "relationships": _rows,
    "modules": _rows,
    "tags": _tags,
    "tellings": _tellings,
    "fact-times": _fact_times,
    "switches": _rows,
    "consents": _rows,
    "synced": _rows,
}


# -- an event's own fields --------------------------------------------------------------------------------------------


def _walked(value: Any, gone: PurgePlan, field: str = "") -> Any:
    """Texts are cut out, and names that are gone have placeholders. What was looked for in a purged project, or quotes
    a purged text, has no vector any more. Keys and what may be a word of a vocabulary stay.
    """
    if isinstance(value, str):
        if field in NAMED:
            return gone.alias(value) if value in gone.names else value if field == "agent" else gone.named(value, field)
        return value if field not in _TEXTS and _VOCABULARY.fullmatch(value) else gone.cut(value)
    if isinstance(value, list):
        return [_walked(item, gone, field) for item in value]
    if isinstance(value, dict):
        found = {name: _walked(item, gone, name) for name, item in value.items()}
        if "snippet" in found:
            if gone.takes(value["snippet"], project=value.get("project"), session=value.get("session")):
                found["snippet"] = ""
            if found["snippet"] != value["snippet"]:
                found["vector"] = bytes(len(value["vector"]))
        return found
    return value
