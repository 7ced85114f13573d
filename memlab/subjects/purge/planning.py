"""What a purge takes out, and what stands in its place: aliases, cut texts, slates that hold the content no more.

What becomes of events is in ``rewriting``, and what a purge may change of the state in ``verifying``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.journal import Event
from memlab.schema import MEMORY
from memlab.slates import decode, encode
from memlab.state import EVERYONE, PLACEHOLDER, Change, State, Tombstones, entity_key, plain, values_of, with_speaker
from memlab.subjects.purge.questions import ALL, NOTHING, Quotes, owners_of, quotes_of

__all__ = ["BY_HAND", "NAMED", "Cut", "PurgePlan", "cut_of", "plan_purge", "purging", "redact_slate", "tombstones_of"]

_NAMES = frozenset(name for name, column in MEMORY.items() if column.storage in ("name", "list") or name == "ref")
_OF_ENTITIES = ("subject", "object")

BY_HAND = {
    "entity": ("name", "aliases"),
    "merge-entity": ("entity", "into"),
    "split-entity": ("entity", "from", "aliases"),
}
"""Events by which a person declares entities, and the fields that name them: these are not names of memories."""

NAMED = ("agent", "project", "session")
"""Names in the own fields of other events, and of the rows of registers."""

_PLACEHOLDER = re.compile(re.escape(PLACEHOLDER) + r"\d+-\d+\]")

_PIECE = 12
"""Characters of a text by which it is looked for within others; a shorter one is only found whole."""

_UNREADABLE = {"where-text": "purged"}
"""The filter of a recall that cannot be asked again."""


@dataclass(frozen=True)
class Cut:
    """Takes purged texts out of others: ``exact`` where they are the whole, ``pieces`` by how they begin."""

    exact: frozenset[str]
    pieces: Mapping[str, tuple[str, ...]]

    def __call__(self, content: str) -> str:
        """A string without the purged texts that it is, begins or holds."""
        if plain(content) in self.exact:
            return ""
        if len(content) < _PIECE or not self.pieces:
            return content
        begun = content.rstrip("\u2026. ")
        if len(begun) >= _PIECE and any(text.startswith(begun) for text in self.pieces.get(content[:_PIECE], ())):
            return ""
        place = 0
        while place <= len(content) - _PIECE:
            found = next(
                (t for t in self.pieces.get(content[place : place + _PIECE], ()) if content.startswith(t, place)), ""
            )
            content = content[:place] + content[place + len(found) :] if found else content
            place += 0 if found else 1
        return content

    def note(self, column: str, note: str | None) -> str | None:
        """A note without the purged texts; None where nothing is left, and for operations, of which no part is run."""
        if note is None:
            return None
        left = self(note)
        return None if column == "operations" and left != note else left or None


def cut_of(state: State, rows: NDArray[np.int64]) -> Cut:
    """What the texts of these rows are taken out of others by."""
    texts = [text for text in state.texts.take(rows) if text]
    speakers = state.names["speaker"]
    attributed = [
        with_speaker(state.texts.at(int(row)) or "", speakers.at(int(row))) for row in rows if state.texts.at(int(row))
    ]
    pieces: dict[str, tuple[str, ...]] = {}
    for text in sorted({text for text in texts if len(text) >= _PIECE}, key=len, reverse=True):
        pieces[text[:_PIECE]] = (*pieces.get(text[:_PIECE], ()), text)
    return Cut(frozenset(map(plain, (*texts, *attributed))), pieces)


@dataclass(frozen=True)
class PurgePlan:
    """What is to go: the texts of these memories, and the names that no other memory ever had and nobody declared.

    A name that was declared stays unless it is a purged text as a whole. Entities are known by ``entity_key``, so that
    every spelling of one has one alias; ``clusters`` are the names that tell what only purged memories said.
    """

    ids: NDArray[np.int64]
    names: frozenset[str]
    entities: frozenset[str]
    clusters: frozenset[str]
    cut: Cut
    created: NDArray[np.int64]
    """When each memory was remembered, by row."""
    mark: str
    quotes: Quotes = NOTHING
    """What of a question tells of the purged memories."""
    hidden: Mapping[str, tuple[frozenset[str], Quotes]] = field(default_factory=dict)
    """``names`` and ``quotes`` by viewer, where memories stay that are private: what those bear counts for their
    creators alone."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """The project, session or viewer that goes as a whole: what was asked there goes too."""
    taken: frozenset[str] = frozenset()
    emptied: set[int] = field(default_factory=set)
    """The recalls whose questions were taken out, filled by ``redact_slate``."""
    askers: dict[int, str] = field(default_factory=dict)
    """As whom recalls were asked, by decision, filled by ``redact_slate``."""
    _aliases: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def asked_by(self, viewer: str | None) -> PurgePlan:
        """What goes of a recall that was asked as ``viewer``; of one that nobody in particular asked, this."""
        if viewer is None or not self.hidden:
            return self
        names, quotes = self.hidden.get(viewer, self.hidden[EVERYONE])
        return replace(self, names=names, quotes=quotes)

    def alias(self, name: str) -> str:
        """What stands for a name from now on: the same for the same, so that what was joined by it stays joined.

        Never a placeholder that is there already: an import may have brought those of another lab.
        """
        if _PLACEHOLDER.fullmatch(name):
            return name
        while name not in self._aliases:
            made = f"{PLACEHOLDER}{self.mark}-{next(self._numbers)}]"
            if made not in self.taken:
                self._aliases[name] = made
        return self._aliases[name]

    def within(self, ids: Sequence[int]) -> list[int]:
        """The places of purged memories among ``ids``."""
        found: list[int] = np.flatnonzero(np.isin(np.asarray(ids, dtype=np.int64), self.ids)).tolist()
        return found

    def named(self, name: str | None, field: str = "") -> str | None:
        """The name, or what stands for it; ``field`` is whose name it is."""
        matches = len(self.filters) == 1 and field in self.filters and self.filters[field] == name
        return self.alias(name) if name is not None and (matches or name in self.names) else name

    def takes(self, question: str, **filters: str | None) -> bool:
        """Whether the words of a question go: they are or quote what is gone, or were asked of what goes."""
        matches = bool(self.filters) and all(filters.get(name) == given for name, given in self.filters.items())
        return matches or plain(question) in self.cut.exact or self.quotes.within(question)

    def node(self, kind: str, name: str, *, own: bool = False) -> str:
        """What a node is called now; ``own`` says that a purged memory was joined to it."""
        if kind == "entity":
            key = _key(name)
            return self.alias(key) if own or key in self.entities else name
        also = kind == "cluster" and name in self.clusters
        return self.alias(name) if own or also or name in self.names else name


def plan_purge(
    state: State,
    events: Iterable[Event],
    rows: NDArray[np.int64],
    *,
    seq: int,
    filters: Mapping[str, str] | None = None,
    entity: Collection[str] = (),
) -> PurgePlan:
    """What the purge of ``rows`` by the event ``seq`` takes out.

    ``filters`` names the project, session or viewer that goes as a whole, ``entity`` all names of the one that goes:
    they go even where a person declared them, unless a memory that stays bears them.
    """
    ids = rows + 1
    known, owners = _keys(entity), owners_of(state)
    held, cut = _held(events, ids, owners), cut_of(state, rows)
    every = held.own.union(held.declared, *held.others.values())
    named_alike = {name for name in held.declared if plain(name) in cut.exact or _key(name) in known}
    # an entity is one under every spelling
    others, declared = _keys(held.entities), _keys(held.by_hand - named_alike)
    go = frozenset(held.own - held.declared | named_alike)
    quotes, shown = quotes_of(state, rows, entity, owners), held.others[ALL]
    creators = state.names["creator"]
    hidden = {
        viewer: (go - shown - held.others[creators.code(viewer)], found)
        for viewer, found in quotes.items()
        if viewer is not None
    }
    return PurgePlan(
        ids,
        go.difference(*held.others.values()),
        frozenset((_keys(held.own_entities) - declared | _keys(held.by_hand & named_alike)) - others),
        frozenset(_telling(state, rows)),
        cut,
        np.array(state.numbers["created"].values),
        str(seq),
        quotes[None],
        hidden if (owners != ALL).any() else {},
        filters or {},
        frozenset(name for name in every if _PLACEHOLDER.fullmatch(name)),
    )


def _keys(names: Iterable[str]) -> set[str]:
    return set(map(_key, names))


def _key(name: str) -> str:
    """What all spellings of an entity's name share; an imported name may be none, and stays what it is."""
    try:
        return entity_key(name)
    except InputError:
        return name


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
    return state.projection(Tombstones)


# -- who had which names ------------------------------------------------------------------------------------------


@dataclass
class _Names:
    """The names that purged memories ever had (``own``), that others had, and that a person or caller declared.

    ``others`` by who may see them. Those of entities once more, by themselves: ``own_entities``, ``entities`` of
    others, ``by_hand``.
    """

    own: set[str] = field(default_factory=set)
    others: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    declared: set[str] = field(default_factory=set)
    own_entities: set[str] = field(default_factory=set)
    entities: set[str] = field(default_factory=set)
    by_hand: set[str] = field(default_factory=set)

    def add(self, name: str, *, mine: bool, entity: bool, owner: int = ALL) -> None:
        (self.own if mine else self.others[owner]).add(name)
        if entity:
            (self.own_entities if mine else self.entities).add(name)


def _held(events: Iterable[Event], ids: NDArray[np.int64], owners: NDArray[np.int64]) -> _Names:
    names = _Names()
    for event in events:
        body = event.body
        declared = set(_strings([body[key] for key in BY_HAND.get(event.kind, ()) if key in body]))
        names.by_hand |= declared
        names.declared |= declared
        names.declared.update(_strings((body.get("relationship") or {}).get("agent")))
        if event.kind in ("scan", "describe-module", "switch", "delete"):
            names.declared.update(_strings(body.get("project")))
        if "columns" in body:
            _gather(range(body["first"], body["first"] + body["count"]), body["columns"], ids, owners, names)
        for part in body.get("set", ()):
            _gather(part["ids"], part["columns"], ids, owners, names)
        for part in body.get("join", ()):
            source = np.asarray(part["source"], dtype=np.int64)
            mine = np.isin(source, ids).tolist()
            for name, gone, owner in zip(part["target"], mine, owners[source - 1].tolist(), strict=True):
                names.add(name, mine=gone, entity=part["kind"] == "entity", owner=owner)
        if "graph" in body:
            _gather_graph(body["graph"], frozenset(ids.tolist()), names)
        _gather_registers(body.get("registers", {}), names)
    return names


def _gather(
    listed: Sequence[int], columns: Mapping[str, Any], ids: NDArray[np.int64], owners: NDArray[np.int64], names: _Names
) -> None:
    numbers = np.asarray(listed, dtype=np.int64)
    mine, of = np.isin(numbers, ids), owners[numbers - 1]
    flags, owning = mine.tolist(), of.tolist()
    stays = np.unique(of[~mine]).tolist()
    for name in columns.keys() & _NAMES:
        given, entity = columns[name], name in _OF_ENTITIES
        if not isinstance(given, list):
            if given is not None and mine.any():
                names.add(given, mine=True, entity=entity)
            for owner in stays if given is not None else ():
                names.add(given, mine=False, entity=entity, owner=owner)
            continue
        for value, gone, owner in zip(given, flags, owning, strict=True):
            for one in [value] if isinstance(value, str) else value or ():
                names.add(one, mine=gone, entity=entity, owner=owner)


def _gather_graph(graph: Mapping[str, Any], ids: frozenset[int], names: _Names) -> None:
    """Imported nodes: those of purged memories, and all others, whatever joins them."""
    ends = list(zip(graph["source"], graph["target"], strict=True))
    mine = {end for pair in ends for end in pair if end < 0 and not ids.isdisjoint(pair)}
    others = {end for pair in ends for end in pair if end < 0 and ids.isdisjoint(pair)}
    for number, (kind, name) in enumerate(graph["nodes"], 1):
        if -number in mine:
            names.add(name, mine=True, entity=kind == "entity")
        if -number in others or -number not in mine:
            names.add(name, mine=False, entity=kind == "entity")


def _gather_registers(registers: Mapping[str, Any], names: _Names) -> None:
    """Imported registers: an entity that has a type, further names, or was merged, was declared in the other lab."""
    if "entities" in registers:
        entries, owners = registers["entities"]["entries"], registers["entities"]["owners"]
        several = {owner for owner, held in Counter(owners).items() if held > 1}
        merged = {entry[4] for entry in entries} - {None}
        by_hand = {
            number
            for number, (_, type, _, _, into, _) in enumerate(entries)
            if type is not None or into is not None or number in several | merged
        }
        names.by_hand.update(entries[number][0] for number in by_hand)
        names.by_hand.update(
            name for name, owner in zip(registers["entities"]["names"], owners, strict=True) if owner in by_hand
        )
    names.declared |= names.by_hand
    names.declared.update(row["agent"] for row in registers.get("relationships", ()))
    for name in ("modules", "switches", "consents"):
        names.declared.update(_strings([row["project"] for row in registers.get(name, ())]))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


# -- slates -----------------------------------------------------------------------------------------------------


def redact_slate(decision: int, blob: bytes, gone: PurgePlan) -> bytes | None:
    """The slate of a recall without what is gone; None if it holds nothing of it.

    A question that was or quotes a purged text, or was asked in a purged project or session, loses its words and its
    vector, and cannot be asked again. Ids, features and scores stay.
    """
    slate = decode(blob, decision=decision)
    viewer = slate.filters.get("viewer")
    if viewer is not None:
        gone.askers[decision] = viewer
    gone = gone.asked_by(viewer)
    changed = replace(
        slate,
        project=gone.named(slate.project, "project"),
        session=gone.named(slate.session, "session"),
        branch=gone.named(slate.branch),
        filters=_filters(slate.filters, gone),
    )
    if slate.query and gone.takes(slate.query, project=slate.project, session=slate.session, viewer=viewer):
        gone.emptied.add(decision)
        changed = replace(changed, query="", vector=bytes(len(slate.vector)), filters=_unreadable(slate.filters, gone))
    fields = ("project", "session", "branch", "filters", "query")
    return encode(changed) if any(getattr(changed, name) != getattr(slate, name) for name in fields) else None


def _unreadable(filters: Mapping[str, Any], gone: PurgePlan) -> dict[str, Any]:
    """Filters with which nothing is asked again. As whom it was asked stays: it says who may see the recall."""
    viewer = filters.get("viewer")
    return {**_UNREADABLE, **({} if viewer is None else {"viewer": gone.named(viewer, "viewer")})}


def _filters(filters: Mapping[str, Any], gone: PurgePlan) -> dict[str, Any]:
    """What a caller admitted: names that are gone have placeholders; an expression that holds one is dropped."""
    text = next((filters[name] for name in ("where", "where-text") if isinstance(filters.get(name), str)), "")
    if text and (gone.cut(text) != text or any(len(name) > 3 and name in text for name in gone.names)):
        return _unreadable(filters, gone)
    return {
        name: [gone.named(word) for word in given]
        if isinstance(given, list)
        else gone.named(given, name)
        if isinstance(given, str) and name != "where"
        else given
        for name, given in filters.items()
    }
