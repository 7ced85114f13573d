"""What one viewer sees of a state: the fold of the journal as if what is private to others had never been remembered.

A memory with the visibility "private" is seen by its creator alone. Its row stays, empty and purged, so that ids are
those of the lab; nothing else of it is there: no text, tag, entity, edge, use, cluster, event. Whatever is computed of
such a state is what it would be in a lab without those memories, and nobody who computes has to know of viewers.

Texts, vectors and postings are those of the whole state, which search only where a population admits rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.graph import NODE_KINDS, node_kinds
from memlab.kernel.index import Words
from memlab.kernel.journal import Event
from memlab.kernel.schema import MEMORY, NEVER
from memlab.kernel.state.columns import Texts
from memlab.kernel.state.events import EVENTS, STRINGS, Field, body_field
from memlab.kernel.state.state import Contents, State

__all__ = [
    "EVERYONE",
    "NOBODY",
    "Asker",
    "ViewerState",
    "VisibleBody",
    "find_audience",
    "hidden_rows",
    "list_audiences",
    "match_edges",
    "visible_rows",
]


EVERYONE = ""
"""A viewer that nobody is: it sees what everyone does."""

NOBODY = "nobody"
"""Whose what is private without a creator is."""


def hidden_rows(state: State, viewer: str) -> Flags | None:
    """bool[rows]: what is private to another than ``viewer``; None where nothing is."""
    visibility, creator = state.names["visibility"], state.names["creator"]
    if not visibility.has_values:
        return None
    hidden = visibility.codes == visibility.code("private")
    own = creator.code(viewer)
    if own >= 0:
        hidden &= creator.codes != own
    return hidden if hidden.any() else None


def find_audience(state: State, row: int) -> str:
    """Who sees a memory: everyone, or the creator of what is private."""
    if state.names["visibility"].value_at(row) != "private":
        return EVERYONE
    return state.names["creator"].value_at(row) or NOBODY


def list_audiences(state: State) -> list[str]:
    """Everyone, then who keeps something private: what one of them alone sees moves no cluster that others see."""
    visibility, creator = state.names["visibility"], state.names["creator"]
    if not visibility.has_values:
        return [EVERYONE]
    codes = np.unique(creator.codes[visibility.codes == visibility.code("private")]).tolist()
    return [EVERYONE, *sorted({NOBODY if code < 0 else creator.vocabulary[code] for code in codes})]


def visible_rows(state: State) -> Ints | None:
    """The rows that are there for whom the state is; None for all of them."""
    return np.flatnonzero(~state.hidden) if isinstance(state, ViewerState) else None


def match_edges(numbers: Ints, one: State, other: State) -> Ints:
    """The numbers in ``other`` of these edges of ``one``, -1 for what is not there. Both have the same rows."""
    source, target = (_same_nodes(ends, one, other) for ends in one.edges.ends(numbers))
    relation = other.edges.codes_of(one.edges.words_of(one.edges.relation[numbers]).tolist())
    found = np.full(len(numbers), -1, dtype=np.int64)
    there = np.flatnonzero((source >= 0) & (target >= 0))
    if not len(there):
        return found
    found[there] = other.edges.find(source[there], target[there], relation[there])
    # several edges may have the same ends and relation: the one that was made at the same time is meant
    made = one.edges.created[numbers]
    for place in there[
        (found[there] >= 0) & (other.edges.created[found[there]] != made[there])
    ].tolist():
        met = other.edges.crossings(source[place : place + 1])
        same = met.edge[
            (met.neighbour == target[place])
            & met.outgoing
            & (other.edges.created[met.edge] == made[place])
        ]
        same = same[other.edges.relation[same] == relation[place]]
        found[place] = same[0] if len(same) else found[place]
    return found


def _same_nodes(nodes: Ints, one: State, other: State) -> Ints:
    kinds = node_kinds(nodes)
    found = nodes.copy()
    for place in np.unique(kinds[kinds > 0]).tolist():
        mine = np.flatnonzero(kinds == place)
        names = [name or "" for name in one.nodes.names(nodes[mine])]
        found[mine] = other.nodes.find(NODE_KINDS[place], names)
    return found


class _SeenTexts(Texts):
    """The texts of another column, without those of some rows."""

    def __init__(self, full: Texts, hidden: Flags) -> None:
        self._full, self._hidden = full, hidden

    def __len__(self) -> int:
        return len(self._full)

    def series(self, name: str) -> pl.Series:
        return self._full.series(name).set(pl.Series(self._hidden), None)

    def value_at(self, row: int) -> str | None:
        return None if self._hidden[row] else self._full.value_at(row)

    def to_list(self, rows: NDArray[np.int64]) -> list[str | None]:
        texts = self._full.to_list(rows)
        for place in np.flatnonzero(self._hidden[rows]).tolist():
            texts[place] = None
        return texts


class ViewerState(State):
    """What ``viewer`` sees of ``full``, kept up by ``follow``. ``hidden`` says which rows are not there."""

    def __init__(self, full: State, viewer: str) -> None:
        super().__init__(full.declared)
        self.full, self.viewer = full, viewer
        self.hidden: Flags = np.zeros(0, dtype=np.bool_)
        self.visible: dict[int, None] = {}
        """The events that the viewer sees, by number, in order."""
        self._after = 0

    @property
    def upto(self) -> int:
        """The last event that was read, whether the viewer sees it or not."""
        return self._after

    def follow(
        self, events: Iterable[Event], contents: Contents, hidden: Flags, asker: Asker
    ) -> None:
        """Take in what has happened since. ``asker`` says as whom a logged recall was asked."""
        self.hidden = hidden
        self.fold(self._visible_events(events, asker), contents)
        self.seq, self._after = next(reversed(self.visible), 0), self.full.seq

    def _read_contents(self, contents: Contents) -> None:
        full = self.full
        self.texts, self.asks = _SeenTexts(full.texts, self.hidden), full.asks
        self.vectors, self.words, self.other_words = full.vectors, full.words, full.other_words

    def get_words(self, language: str) -> Words:
        return self.full.get_words(language)

    def memories(self) -> pl.DataFrame:
        return super().memories().filter(~self.hidden)

    def edge_frame(self) -> pl.DataFrame:
        """``edge`` is the number that the lab gave it."""
        frame = super().edge_frame()
        numbers = pl.Series("edge", match_edges(frame["edge"].to_numpy(), self, self.full))
        return frame.with_columns(numbers.replace(-1, None))

    # -- events as they are seen -----------------------------------------------------------------------------

    def _visible_events(self, events: Iterable[Event], asker: Asker) -> Iterator[Event]:
        for event in events:
            body, known = self._body(event, asker)
            if known:
                self.visible[event.seq] = None
            if known or "count" in body:
                if known:
                    body = self._numbered(body)
                yield Event(event.seq, event.at, event.kind, body)

    def visible_body(self, event: Event) -> dict[str, Any]:
        """The body of an event that the viewer sees, without what is hidden; edges have their own numbers."""
        return VisibleBody(event, self.hidden, self.full).body

    def _body(self, event: Event, asker: Asker) -> tuple[dict[str, Any], bool]:
        """The body without what is hidden, and whether the viewer sees the event."""
        found, declared = VisibleBody(event, self.hidden, self.full), body_field(event.kind)
        body, known = found.body, bool(found.seen or not found.unseen)
        kind, private = EVENTS.get(event.kind), declared.for_asker
        if kind is not None and kind.asks and not (found.seen or found.unseen):
            known = asker(event.seq) in (None, self.viewer)
        elif (
            private
            and (known or not private.isdisjoint(body))
            and asker(body[declared.decision]) not in (None, self.viewer)
        ):
            body = {name: value for name, value in body.items() if name not in private}
            known = bool(found.seen)
        for projection in self.get_projections(event.kind):
            shown = projection.shows(event.kind, body, viewer=self.viewer, seen=bool(found.seen))
            known = known if shown is None else shown
        return body, known

    def _numbered(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body with the numbers that its edges have here."""
        if "unlink" in body:
            here = match_edges(np.asarray(body["unlink"], dtype=np.int64), self.full, self)
            body = body | {"unlink": here[here >= 0].tolist()}
        if "strengthen" in body:
            given = body["strengthen"]
            here = match_edges(np.asarray(given["edges"], dtype=np.int64), self.full, self)
            kept = np.flatnonzero(here >= 0)
            weight = [given["weight"][place] for place in kept.tolist()]
            body = body | {"strengthen": {"edges": here[kept].tolist(), "weight": weight}}
        return body


# -- an event without some memories -----------------------------------------------------------------------------------

_CONTENT = frozenset(
    name for name, column in MEMORY.items() if column.storage in ("text", "name", "note", "list")
)


class VisibleBody:
    """The body of ``event`` without the memories that are ``hidden``.

    Rows stay, so that ids do: a memory that is left out has the status "purged", its numbers and words, and no content.
    Whatever else speaks of it goes: its edges, the values that were set, its place in a list. What a field holds is
    read from its declaration; strings that are not ``shared`` go with the memories beside them.

    ``seen`` and ``unseen`` count the memories and edges that it names, ``body`` is what is left. Edges are numbered as
    in ``full``, the state that has seen every event.
    """

    def __init__(self, event: Event, hidden: Flags, full: State) -> None:
        self._hidden, self._full = hidden, full
        self.seen = self.unseen = 0
        self._declared = body_field(event.kind)
        self.body = self._members(self._declared, event.body)
        if self.unseen and self._declared.has_private_strings:
            self.body = _without_strings(self._declared, self.body)

    def _members(self, field: Field, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members of a mapping of which anything is left."""
        visible: dict[str, Any] = {}
        for name, value in values.items():
            part = self._part(field.get(name), value, values)
            if part is not None or value is None:
                visible[name] = part
        return visible

    def _part(self, field: Field, value: Any, beside: Mapping[str, Any]) -> Any:
        """Return what is left of a value; None for nothing. ``beside`` has the other members of its mapping."""
        if field.role == "undeclared":
            return None  # nobody knows of which memories it tells
        if value is None or not field.names_memories:
            return value
        return _READ[field.role](self, field, value, beside)

    def _sees(self, ids: Sequence[int]) -> list[bool]:
        """Return which of these memories are not hidden, and count all of them."""
        return self._counted(~self._hidden[np.asarray(ids, dtype=np.int64) - 1])

    def _counted(self, seen: Flags) -> list[bool]:
        count = int(seen.sum())
        self.seen, self.unseen = self.seen + count, self.unseen + len(seen) - count
        flags: list[bool] = seen.tolist()
        return flags

    # -- references -------------------------------------------------------------------------------------------

    def _memory(self, field: Field, value: Any, beside: Mapping[str, Any]) -> Any:
        if isinstance(value, list):
            return _selected(value, self._sees(value))
        return value if self._sees([value])[0] else None

    def _edge(self, field: Field, value: Any, beside: Mapping[str, Any]) -> Any:
        if isinstance(value, list):
            return _selected(value, self._counted(self._join_visible(value))) or None
        return value if self._counted(self._join_visible([value]))[0] else None

    def _join_visible(self, numbers: Sequence[int]) -> Flags:
        """Return which of these edges join nothing that is hidden."""
        flags = np.ones(len(numbers), dtype=np.bool_)
        for ends in self._full.edges.ends(np.asarray(numbers, dtype=np.int64)):
            memory = ends < len(self._hidden)
            flags &= ~memory | ~self._hidden[np.where(memory, ends, 0)]
        return flags

    def _last_memory(self, field: Field, value: Any, beside: Mapping[str, Any]) -> int:
        return int(np.flatnonzero(~self._hidden[:value]).max(initial=-1)) + 1

    def _memory_count(self, field: Field, value: Any, beside: Mapping[str, Any]) -> int:
        return len(self._named_in(field, beside))

    def _newest_time(self, field: Field, value: Any, beside: Mapping[str, Any]) -> int:
        ids = self._named_in(field, beside)
        return int(self._full.numbers["created"].values[np.array(ids) - 1].max()) if ids else NEVER

    def _named_in(self, field: Field, beside: Mapping[str, Any]) -> list[int]:
        """Return the visible memories that the part named by ``of`` names."""
        part = self._declared.get(field.of)
        return [id for id in part.ids(beside.get(field.of)) if not self._hidden[id - 1]]

    def _flag(self, field: Field, value: Any, beside: Mapping[str, Any]) -> Any:
        first = beside["first"] - 1
        return value if not self._hidden[first : first + beside["count"]].all() else None

    # -- structure --------------------------------------------------------------------------------------------

    def _mapping(self, field: Field, value: Any, beside: Mapping[str, Any]) -> Any:
        return self._scope(field, list(value.items()), lambda: self._members(field, value))

    def _tuple(self, field: Field, value: Any, beside: Mapping[str, Any]) -> Any:
        parts = list(enumerate(value))
        return self._scope(
            field, parts, lambda: [self._part(field.item(place), part, {}) for place, part in parts]
        )

    def _scope(
        self, field: Field, parts: Sequence[tuple[Any, Any]], visible: Callable[[], Any]
    ) -> Any:
        """Return what is left of an item: nothing where its own memory is hidden."""
        unseen = self.unseen
        own = [
            part
            for name, part in parts
            if (field.get(name) if field.role == "mapping" else field.item(name)).role == "memory"
            and isinstance(part, int)
        ]
        if own and not all(self._sees(own)):
            return None
        left = visible()
        if self.unseen > unseen and field.has_private_strings:
            left = _without_strings(field, left)
        return left

    def _list(self, field: Field, value: Any, beside: Mapping[str, Any]) -> list[Any] | None:
        left = [
            part for item in value if (part := self._part(field.items[0], item, {})) is not None
        ]
        return left if left or field.required or not value else None

    def _rows(self, field: Field, value: Any, beside: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the rows whose memories and edges are all visible."""
        flags: Flags | None = None
        for name, part in value.items():
            role = field.get(name).role
            if role in ("memory", "edge") and isinstance(part, list):
                own = (
                    self._join_visible(part)
                    if role == "edge"
                    else ~self._hidden[np.asarray(part, dtype=np.int64) - 1]
                )
                flags = own if flags is None else flags & own
        if flags is None:
            return dict(value)
        kept = self._counted(flags)
        return {name: _selected(part, kept) for name, part in value.items()} if any(kept) else None

    # -- parts of the fold ------------------------------------------------------------------------------------

    def _columns(self, field: Field, columns: Any, beside: Mapping[str, Any]) -> Any:
        if "first" not in beside:
            return columns
        first, count = beside["first"], beside["count"]
        places = [
            place for place, seen in enumerate(self._sees(range(first, first + count))) if not seen
        ]
        if not places:
            return dict(columns)
        kept = dict(columns)
        for name in ("status", *(_CONTENT & columns.keys())):
            given = columns.get(name, MEMORY[name].default)
            values = list(given) if isinstance(given, list) else [given] * count
            for place in places:
                values[place] = "purged" if name == "status" else None
            kept[name] = values
        return kept

    def _values(self, field: Field, part: Any, beside: Mapping[str, Any]) -> dict[str, Any] | None:
        flags = self._sees(part["ids"])
        if not any(flags):
            return None
        columns = {name: _selected(values, flags) for name, values in part["columns"].items()}
        if "superseded_by" in columns:
            columns["superseded_by"] = self._successors(columns["superseded_by"])
        return {"ids": _selected(part["ids"], flags), "columns": columns}

    def _successors(self, given: Any) -> Any:
        if isinstance(given, list):
            return [self._successors(one) for one in given]
        return None if given is None or self._hidden[int(given) - 1] else given

    def _graph(self, field: Field, graph: Any, beside: Mapping[str, Any]) -> dict[str, Any]:
        ends = np.array([graph["source"], graph["target"]], dtype=np.int64).reshape(2, -1)
        flags = (
            (ends < 0) | ~self._hidden[np.maximum(ends, 1) - 1] if len(self._hidden) else ends < 0
        )
        keep: list[bool] = (flags[0] & flags[1]).tolist()
        visible = {
            name: _selected(values, keep) if name != "nodes" else values
            for name, values in graph.items()
        }
        # a node that only what is hidden was joined to is not known
        used = sorted({-end for name in ("source", "target") for end in visible[name] if end < 0})
        place = {old: new for new, old in enumerate(used, 1)}
        for name in ("source", "target"):
            visible[name] = [-place[-end] if end < 0 else end for end in visible[name]]
        return visible | {"nodes": [graph["nodes"][old - 1] for old in used]}

    def _registers(self, field: Field, dumped: Any, beside: Mapping[str, Any]) -> dict[str, Any]:
        """Return what came with an import beside memories: names and counts whose memories it does not tell."""
        return {} if self._hidden.any() else dict(dumped)


_READ: Mapping[str, Callable[[VisibleBody, Field, Any, Mapping[str, Any]], Any]] = {
    "memory": VisibleBody._memory,
    "edge": VisibleBody._edge,
    "last-memory": VisibleBody._last_memory,
    "memory-count": VisibleBody._memory_count,
    "newest-time": VisibleBody._newest_time,
    "flag": VisibleBody._flag,
    "mapping": VisibleBody._mapping,
    "tuple": VisibleBody._tuple,
    "list": VisibleBody._list,
    "rows": VisibleBody._rows,
    "columns": VisibleBody._columns,
    "values": VisibleBody._values,
    "graph": VisibleBody._graph,
    "registers": VisibleBody._registers,
}


def _without_strings(field: Field, value: Any) -> Any:
    """Return a value without the strings that are not shared. Items that name their own memories keep theirs."""
    if not field.has_private_strings or value is None:
        return value
    if field.role in STRINGS:
        return [] if isinstance(value, list) else _emptied(field, value)
    if field.role == "rows":
        return value if field.names_memories else _empty_rows(field, value)
    if isinstance(value, Mapping):
        if field.keys and not field.shared:
            return {}
        return {name: _without_strings(field.get(name), part) for name, part in value.items()}
    if field.role == "list" and not field.items[0].is_about_memories:
        return [_without_strings(field.items[0], part) for part in value]
    if field.role == "tuple":
        return [_without_strings(field.item(place), part) for place, part in enumerate(value)]
    return value


def _empty_rows(field: Field, columns: Mapping[str, Any]) -> dict[str, Any]:
    left = dict(columns)
    for name, part in columns.items():
        column = field.get(name)
        if column.has_private_strings:
            left[name] = (
                [_emptied(column, one) for one in part]
                if isinstance(part, list)
                else _emptied(column, part)
            )
    return left


def _emptied(field: Field, value: Any) -> Any:
    if isinstance(value, bytes):
        return bytes(len(value))
    return "" if field.role in ("text", "label") else None


def _selected(values: Any, flags: Sequence[bool]) -> Any:
    """Return the items of a column that are kept; one value for all of them stays."""
    return (
        [value for value, keep in zip(values, flags, strict=True) if keep]
        if isinstance(values, list)
        else values
    )


Ints = NDArray[np.int64]

Flags = NDArray[np.bool_]

Asker = Callable[[int], str | None]
"""As whom a logged recall, by its number, was asked."""
