"""What a purge puts in the place of what it takes out: event bodies and slates that hold the content no more.

A body keeps its form, so that the fold goes on: rows, numbers and words of closed vocabularies stay, names and texts of
purged memories are null. Where a name stands for an edge (a tag, an entity), a placeholder takes its place, because
later events know edges by number; the purge itself then removes those edges.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.journal import Event
from memlab.memory import PLACEHOLDER, Change, State, Tombstones, as_said, plain, values_of
from memlab.schema import MEMORY
from memlab.slates import decode, encode

__all__ = ["Gone", "gone_of", "purging", "rewritten", "rewritten_slate", "tombstones_of"]

_CONTENT = frozenset(name for name, column in MEMORY.items() if column.storage in ("text", "name", "note", "list"))
_NOTES = frozenset(name for name, column in MEMORY.items() if column.storage == "note")
_NAMES = frozenset(name for name in _CONTENT - _NOTES if name != "text")
_LISTS = frozenset(name for name, column in MEMORY.items() if column.storage == "list")

_UNTOUCHED = frozenset({"recall", "embedder", "use", "install", "rollback", "rollback-pack", "pin", "unpin", "purge"})
"""Kinds of events that hold ids, numbers and policies only."""

_BY_HAND = frozenset({"entity", "merge-entity", "split-entity"})
"""Names that a person declared are not those of the memories that bear them."""

_PARTS = frozenset({"first", "count", "columns", "edges", "strengthen", "unlink", "join", "set", "uses", "graph"})

_NAMING = frozenset({"name", "label", "of", "subject", "object", "speaker", "project", "session", "branch"})
"""Fields of events whose values are names, whatever they look like."""

_VOCABULARY = re.compile(r"[a-z][a-z0-9_-]*")
"""What may be a word that the code of a register knows; its place is not known here, so it stays."""

_PIECE = 12
"""Characters of a text by which it is looked for within others; a shorter one is only found whole."""

_UNREADABLE = {"where-text": "purged"}
"""The filter of a recall that cannot be asked again."""


@dataclass(frozen=True)
class Gone:
    """What is to go: the texts of these memories, and the names that no other memory ever had."""

    ids: NDArray[np.int64]
    names: frozenset[str]
    exact: frozenset[str]
    pieces: Mapping[str, tuple[str, ...]]
    mark: str
    project: str | None = None
    _aliases: dict[str, str] = field(default_factory=dict)

    def alias(self, name: str) -> str:
        """What stands for a name from now on: the same for the same, so that what was joined by it stays joined."""
        if name.startswith(PLACEHOLDER):
            return name
        return self._aliases.setdefault(name, f"{PLACEHOLDER}{self.mark}-{len(self._aliases) + 1}]")

    def within(self, ids: Sequence[int]) -> list[int]:
        """The places of purged memories among ``ids``."""
        found: list[int] = np.flatnonzero(np.isin(np.asarray(ids, dtype=np.int64), self.ids)).tolist()
        return found

    def cut(self, said: str) -> str:
        """A string without the purged texts that it is, begins or holds."""
        if plain(said) in self.exact:
            return ""
        if len(said) < _PIECE or not self.pieces:
            return said
        begun = said.rstrip("\u2026. ")
        if len(begun) >= _PIECE and any(text.startswith(begun) for text in self.pieces.get(said[:_PIECE], ())):
            return ""
        place = 0
        while place <= len(said) - _PIECE:
            found = next(
                (t for t in self.pieces.get(said[place : place + _PIECE], ()) if said.startswith(t, place)), ""
            )
            said = said[:place] + said[place + len(found) :] if found else said
            place += 0 if found else 1
        return said

    def named(self, name: str | None) -> str | None:
        """The name, or what stands for it."""
        return self.alias(name) if name is not None and (name in self.names or name == self.project) else name


def gone_of(state: State, events: Iterable[Event], rows: NDArray[np.int64], *, seq: int, project: str | None) -> Gone:
    """What the purge of ``rows`` by the event ``seq`` takes out; ``project`` if it is that of a whole project."""
    ids = rows + 1
    own, others = _held(events, ids)
    texts = [text for text in state.texts.take(rows) if text]
    speakers = state.names["speaker"]
    said = [as_said(state.texts.at(int(row)) or "", speakers.at(int(row))) for row in rows if state.texts.at(int(row))]
    pieces: dict[str, tuple[str, ...]] = {}
    for text in sorted({text for text in texts if len(text) >= _PIECE}, key=len, reverse=True):
        pieces[text[:_PIECE]] = (*pieces.get(text[:_PIECE], ()), text)
    exact = frozenset(map(plain, (*texts, *said)))
    names = frozenset((own - others) | _telling(state, rows))
    return Gone(ids, names, exact, pieces, str(seq), project)


def _telling(state: State, rows: NDArray[np.int64]) -> set[str]:
    """The names of clusters in which a word stands that only the memories in ``rows`` have said."""
    found = set()
    for name in state.nodes.vocabularies()["cluster"]:
        posted = state.words.hits(state.words.query(name)).rows
        if any(len(holders) and np.isin(holders, rows).all() for holders in posted):
            found.add(name)
    return found


def purging(state: State, rows: NDArray[np.int64], now: int) -> tuple[Change, dict[str, Any]]:
    """What the event of a purge changes in the state, and the tombstones that it leaves."""
    edges = state.edges
    purged = np.zeros(len(state), dtype=np.bool_)
    purged[rows] = True
    alive = np.flatnonzero(edges.alive)
    ends = np.stack([edges.source[alive], edges.target[alive]])
    memories = ends < len(state)
    touched = (purged[np.where(memories, ends, 0)] & memories).any(axis=0)
    nothing: list[None] = [None] * len(rows)
    columns = {"status": "purged", "changed": now, "superseded_by": None, "tags": nothing}
    change = Change(unlink=alive[touched].tolist(), set=[values_of((rows + 1).tolist(), **columns)])
    texts = [text for text in state.texts.take(rows) if text]
    origins = [origin for row in rows if (origin := state.names["origin"].at(int(row))) is not None]
    return change, tombstones_of(state).made(texts, origins)


def tombstones_of(state: State) -> Tombstones:
    """What was purged from this lab: imports ask it."""
    found = state.registers["purged"]
    assert isinstance(found, Tombstones)
    return found


# -- events -----------------------------------------------------------------------------------------------------


def _held(events: Iterable[Event], ids: NDArray[np.int64]) -> tuple[set[str], set[str]]:
    """The names that purged memories ever had, and those that others had or a person declared."""
    own: set[str] = set()
    others: set[str] = set()
    for event in events:
        body = event.body
        if event.kind in _BY_HAND:
            others.update(_strings(body))
        others.update(_strings([body.get("agent"), body.get("relationship")]))
        if "columns" in body:
            listed = range(body["first"], body["first"] + body["count"])
            _gather(listed, body["columns"], ids, own, others)
        for part in body.get("set", ()):
            _gather(part["ids"], part["columns"], ids, own, others)
        for part in body.get("join", ()):
            mine = np.isin(np.asarray(part["source"], dtype=np.int64), ids).tolist()
            for name, gone in zip(part["target"], mine, strict=True):
                (own if gone else others).add(name)
        for one in body.get("graph", {}).get("nodes", ()):
            others.add(one[1])
    return own, others


def _gather(
    listed: Sequence[int], columns: Mapping[str, Any], ids: NDArray[np.int64], own: set[str], others: set[str]
) -> None:
    mine = np.isin(np.asarray(listed, dtype=np.int64), ids)
    some, all_mine = bool(mine.any()), bool(mine.all())
    flags = mine.tolist()
    for name in columns.keys() & _NAMES:
        given = columns[name]
        if not isinstance(given, list):
            if given is not None:
                own.update([given] if some else ())
                others.update(() if all_mine else [given])
            continue
        for value, gone in zip(given, flags, strict=True):
            if value is not None:
                (own if gone else others).update([value] if isinstance(value, str) else value)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def rewritten(event: Event, gone: Gone) -> dict[str, Any] | None:
    """The body of an event without what is gone; None if it holds nothing of it."""
    if event.kind in _UNTOUCHED:
        return None
    body: dict[str, Any] = {}
    for name, value in event.body.items():
        if name == "columns" and "first" in event.body:
            body[name] = _columns(range(event.body["first"], event.body["first"] + event.body["count"]), value, gone)
        elif name == "set":
            body[name] = [part for given in value for part in _set(given, gone)]
        elif name == "join":
            body[name] = [_join(part, gone) for part in value]
        elif name == "graph":
            body[name] = _graph(value, gone)
        else:
            body[name] = value if name in _PARTS else _walked(value, gone, name)
    return None if body == event.body else body


def _columns(listed: Sequence[int], columns: Mapping[str, Any], gone: Gone) -> dict[str, Any]:
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
            values = [None if value is None else gone.cut(value) or None for value in values]
        if isinstance(given, list) or places:
            kept[name] = values
        else:
            kept[name] = values[0] if values else given
    return kept


def _aliased(tags: Sequence[str] | None, gone: Gone) -> list[str] | None:
    return None if tags is None else [gone.alias(tag) for tag in tags]


def _set(part: Mapping[str, Any], gone: Gone) -> list[dict[str, Any]]:
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
                values = [_cut(value, gone) for value in values] if isinstance(values, list) else _cut(values, gone)
            content[name] = values
    if not places:
        return [{"ids": ids, "columns": {name: (whole | content)[name] for name in columns}}]
    parts = [{"ids": ids, "columns": whole}, {"ids": [ids[place] for place in left], "columns": content}]
    return [part for part in parts if part["ids"] and part["columns"]]


def _cut(note: str | None, gone: Gone) -> str | None:
    return None if note is None else gone.cut(note) or None


def _join(part: Mapping[str, Any], gone: Gone) -> dict[str, Any]:
    places = frozenset(gone.within(part["source"]))
    # the name of a cluster is aliased for all of its members
    also = gone.names if part["kind"] == "cluster" else frozenset()
    targets = [
        gone.alias(name) if place in places or name in also else name for place, name in enumerate(part["target"])
    ]
    return {**part, "target": targets}


def _graph(graph: Mapping[str, Any], gone: Gone) -> dict[str, Any]:
    """Imported edges: a purged memory's lead to placeholders, and a node that only such had is called by one."""
    nodes = [list(node) for node in graph["nodes"]]
    source, target = list(graph["source"]), list(graph["target"])
    purged = frozenset(gone.ids.tolist())
    kept = {end for one, other in zip(source, target, strict=True) for end in (one, other) if not {one, other} & purged}
    moved: dict[int, int] = {}
    for here, there in ((source, target), (target, source)):
        for number, (one, other) in enumerate(zip(here, there, strict=True)):
            if one in purged and other < 0:
                if other not in moved:
                    kind, name = nodes[-other - 1]
                    moved[other] = other
                    if other in kept:
                        nodes.append([kind, gone.alias(name)])
                        moved[other] = -len(nodes)
                    else:
                        nodes[-other - 1] = [kind, gone.alias(name)]
                there[number] = moved[other]
    return {**graph, "nodes": nodes, "source": source, "target": target}


def _walked(value: Any, gone: Gone, field: str = "") -> Any:
    """An event's own fields: texts are cut out, names that are gone have placeholders, and a vector beside a text that
    was cut is zero. Keys and what may be a word of a vocabulary stay.
    """
    if isinstance(value, str):
        if value in gone.names and (field in _NAMING or not _VOCABULARY.fullmatch(value)):
            return gone.alias(value)
        return gone.cut(value)
    if isinstance(value, list):
        return [_walked(item, gone, field) for item in value]
    if isinstance(value, dict):
        found = {name: _walked(item, gone, name) for name, item in value.items()}
        emptied = any(isinstance(item, str) and item and not found[name] for name, item in value.items())
        return {name: bytes(len(item)) if emptied and isinstance(item, bytes) else item for name, item in found.items()}
    return value


# -- slates -----------------------------------------------------------------------------------------------------


def rewritten_slate(decision: int, blob: bytes, gone: Gone) -> bytes | None:
    """The slate of a recall without what is gone; None if it holds nothing of it.

    A question that was a purged text, or was asked in a purged project, loses its words and its vector, and cannot be
    asked again. Ids, features and scores stay.
    """
    slate = decode(blob, decision=decision)
    asked = slate.project is not None and slate.project == gone.project
    changed = replace(
        slate,
        project=gone.named(slate.project),
        session=gone.named(slate.session),
        branch=gone.named(slate.branch),
        filters=_filters(slate.filters, gone),
    )
    if asked or plain(slate.query) in gone.exact:
        changed = replace(changed, query="", vector=bytes(len(slate.vector)), filters=dict(_UNREADABLE))
    fields = ("project", "session", "branch", "filters", "query")
    return encode(changed) if any(getattr(changed, name) != getattr(slate, name) for name in fields) else None


def _filters(filters: Mapping[str, Any], gone: Gone) -> dict[str, Any]:
    """What a caller admitted: names that are gone have placeholders; an expression that holds one is dropped."""
    text = next((filters[name] for name in ("where", "where-text") if isinstance(filters.get(name), str)), "")
    if text and (gone.cut(text) != text or any(len(name) > 3 and name in text for name in gone.names)):
        return dict(_UNREADABLE)
    return {
        name: [gone.named(word) for word in given]
        if isinstance(given, list)
        else gone.named(given)
        if isinstance(given, str) and name != "where"
        else given
        for name, given in filters.items()
    }
