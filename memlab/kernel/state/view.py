"""A state as one viewer sees it.

The view is folded as if memories that are private to others had never been stored.

A memory with the visibility "private" is visible to its creator alone. In the states of other viewers, its row is empty
and has the status "purged", so that ids are the same for everyone. These states have no text, tag, entity, edge, use,
cluster or event of the memory. So code that reads a state needs no check of the viewer.

Texts, vectors and postings are shared with the whole state. Searches read them only in the rows that they are allowed
to return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import Flags, Ints
from memlab.kernel.graph import NODE_KINDS, node_kinds
from memlab.kernel.index import Words
from memlab.kernel.journal import Body, Event
from memlab.kernel.schema import MEMORY, NEVER
from memlab.kernel.state.columns import Texts
from memlab.kernel.state.events import EVENTS, STRINGS, Field, Siblings, body_field
from memlab.kernel.state.state import Contents, State

EVERYONE = ""
"""The viewer without a name, who sees only what every user sees."""

NOBODY = "nobody"
"""The creator of private memories that name no creator."""


def hidden_rows(state: State, viewer: str) -> Flags | None:
    """Return a mask of the rows that are private to users other than ``viewer``.

    Returns None if no row is hidden.
    """
    visibility, creator = state.names["visibility"], state.names["creator"]
    if not visibility.has_values:
        return None
    hidden = visibility.codes == visibility.code("private")
    own = creator.code(viewer)
    if own >= 0:
        hidden &= creator.codes != own
    return hidden if hidden.any() else None


def find_audience(state: State, row: int) -> str:
    """Return who sees a memory: ``EVERYONE``, or only its creator if it is private."""
    if state.names["visibility"].value_at(row) != "private":
        return EVERYONE
    return state.names["creator"].value_at(row) or NOBODY


def list_audiences(state: State) -> list[str]:
    """Return ``EVERYONE``, followed by the creators of private memories.

    Clusters are computed for each of them, so that private memories change no cluster that other users see.
    """
    visibility, creator = state.names["visibility"], state.names["creator"]
    if not visibility.has_values:
        return [EVERYONE]
    codes = np.unique(creator.codes[visibility.codes == visibility.code("private")]).tolist()
    return [EVERYONE, *sorted({NOBODY if code < 0 else creator.vocabulary[code] for code in codes})]


def visible_rows(state: State) -> Ints | None:
    """Return the rows that the viewer of ``state`` sees, or None for all rows."""
    return np.flatnonzero(~state.hidden) if isinstance(state, ViewerState) else None


def match_edges(numbers: Ints, state: State, other: State) -> Ints:
    """Convert the edge numbers of ``state`` to the numbers of the same edges in ``other``.

    An edge that ``other`` lacks gets -1. Both states have the same rows of memories.
    """
    source, target = (_map_nodes(ends, state, other) for ends in state.edges.ends(numbers))
    relation = other.edges.codes_of(state.edges.words_of(state.edges.relation[numbers]).tolist())
    matches = np.full(len(numbers), -1, dtype=np.int64)
    present = np.flatnonzero((source >= 0) & (target >= 0))
    if not len(present):
        return matches
    matches[present] = other.edges.find(source[present], target[present], relation[present])
    # Several edges may have the same ends and relation. They differ in their time of creation.
    created = state.edges.created[numbers]
    for position in present[
        (matches[present] >= 0) & (other.edges.created[matches[present]] != created[present])
    ].tolist():
        met = other.edges.crossings(source[position : position + 1])
        same = met.edge[
            (met.neighbour == target[position])
            & met.outgoing
            & (other.edges.created[met.edge] == created[position])
        ]
        same = same[other.edges.relation[same] == relation[position]]
        matches[position] = same[0] if len(same) else matches[position]
    return matches


def _map_nodes(nodes: Ints, state: State, other: State) -> Ints:
    """Map nodes of ``state`` to those of ``other`` with the same kind and name, or -1; memories are unchanged."""
    kinds = node_kinds(nodes)
    matches = nodes.copy()
    for kind in np.unique(kinds[kinds > 0]).tolist():
        mine = np.flatnonzero(kinds == kind)
        names = [name or "" for name in state.nodes.names(nodes[mine])]
        matches[mine] = other.nodes.find(NODE_KINDS[kind], names)
    return matches


class _SeenTexts(Texts):
    """The texts of another column, with None in hidden rows."""

    def __init__(self, full: Texts, hidden: Flags) -> None:
        self._full, self._hidden = full, hidden

    def __len__(self) -> int:
        return len(self._full)

    def series(self, name: str) -> pl.Series:
        """Return all texts as a Polars series called ``name``."""
        return self._full.series(name).set(pl.Series(self._hidden), None)

    def value_at(self, row: int) -> str | None:
        """Return the text of one row."""
        return None if self._hidden[row] else self._full.value_at(row)

    def to_list(self, rows: Ints) -> list[str | None]:
        """Return the texts of ``rows``."""
        texts = self._full.to_list(rows)
        for position in np.flatnonzero(self._hidden[rows]).tolist():
            texts[position] = None
        return texts


class ViewerState(State):
    """The part of the state ``full`` that ``viewer`` sees.

    ``follow`` adds later events. ``hidden`` is a mask of the rows that the viewer does not see.
    """

    def __init__(self, full: State, viewer: str) -> None:
        super().__init__(full.declared)
        self.full, self.viewer = full, viewer
        self.hidden: Flags = np.zeros(0, dtype=np.bool_)
        self.visible: dict[int, None] = {}
        """The numbers of the events that the viewer sees, in order."""
        self._after = 0

    @property
    def upto(self) -> int:
        """The number of the last event that was read, including hidden events."""
        return self._after

    def follow(
        self, events: Iterable[Event], contents: Contents, hidden: Flags, asker: Asker
    ) -> None:
        """Fold the events that were added since the last call.

        ``hidden`` masks the rows that the viewer must not see. ``asker`` returns the viewer who asked a logged recall.
        """
        self.hidden = hidden
        self.fold(self._visible_events(events, asker), contents)
        self.seq, self._after = next(reversed(self.visible), 0), self.full.seq

    def _read_contents(self, contents: Contents) -> None:
        full = self.full
        self.texts, self.asks = _SeenTexts(full.texts, self.hidden), full.asks
        self.vectors, self.words, self.other_words = full.vectors, full.words, full.other_words

    def get_words(self, language: str) -> Words:
        """Return the word index of a language, over the whole state."""
        return self.full.get_words(language)

    def memories(self) -> pl.DataFrame:
        """Return a frame with one row for each visible memory."""
        return super().memories().filter(~self.hidden)

    def edge_frame(self) -> pl.DataFrame:
        """Return a frame with one row for each visible edge."""
        frame = super().edge_frame()
        numbers = pl.Series("edge", match_edges(frame["edge"].to_numpy(), self, self.full))
        return frame.with_columns(numbers.replace(-1, None))

    # -- Events without hidden memories ----------------------------------------------------------------------

    def _visible_events(self, events: Iterable[Event], asker: Asker) -> Iterator[Event]:
        """Yield the visible events and the events that add rows, without their hidden parts."""
        for event in events:
            body, is_visible = self._body(event, asker)
            if is_visible:
                self.visible[event.seq] = None
            if is_visible or "count" in body:
                if is_visible:
                    body = self._numbered(body)
                yield Event(event.seq, event.at, event.kind, body)

    def visible_body(self, event: Event) -> Body:
        """Return the body of a visible event without hidden parts.

        Edges in the body have their numbers in the whole state.
        """
        return VisibleBody(event, self.hidden, self.full).body

    def _body(self, event: Event, asker: Asker) -> tuple[dict[str, Any], bool]:
        """Return an event body without hidden parts, and whether the event is visible."""
        visible, declared = VisibleBody(event, self.hidden, self.full), body_field(event.kind)
        body, is_visible = visible.body, bool(visible.seen or not visible.unseen)
        kind, private = EVENTS.get(event.kind), declared.for_asker
        if kind is not None and kind.asks and not (visible.seen or visible.unseen):
            is_visible = asker(event.seq) in (None, self.viewer)
        elif (
            private
            and (is_visible or not private.isdisjoint(body))
            and asker(body[declared.decision]) not in (None, self.viewer)
        ):
            body = {name: value for name, value in body.items() if name not in private}
            is_visible = bool(visible.seen)
        for projection in self.get_projections(event.kind):
            decided = projection.shows(
                event.kind, body, viewer=self.viewer, seen=bool(visible.seen)
            )
            is_visible = is_visible if decided is None else decided
        return body, is_visible

    def _numbered(self, body: Body) -> dict[str, Any]:
        """Return an event's body with the edge numbers of the viewer's state instead of those of the full state.

        Edges that the viewer's state lacks are left out.
        """
        if "unlink" in body:
            here = match_edges(np.asarray(body["unlink"], dtype=np.int64), self.full, self)
            body = body | {"unlink": here[here >= 0].tolist()}
        if "strengthen" in body:
            strengthened = body["strengthen"]
            here = match_edges(np.asarray(strengthened["edges"], dtype=np.int64), self.full, self)
            present = np.flatnonzero(here >= 0)
            weight = [strengthened["weight"][index] for index in present.tolist()]
            body = body | {"strengthen": {"edges": here[present].tolist(), "weight": weight}}
        return body


# -- The body of an event without some memories -----------------------------------------------------------------------

# The columns with a memory's content. Numbers and words of fixed vocabularies are not content.
_CONTENT = frozenset(
    name for name, column in MEMORY.items() if column.storage in ("text", "name", "note", "list")
)


class VisibleBody:
    """The body of ``event`` without the memories in the mask ``hidden``.

    The rows of hidden memories stay, so that ids do not shift. Such a row keeps its numbers and words of fixed
    vocabularies, has the status "purged" and no content. Other references to the memory are removed: edges, assigned
    values and items of lists. Strings that are not declared ``shared`` are removed with the memories in the same
    mapping.

    ``seen`` and ``unseen`` count the visible and the hidden memories and edges that the event names. ``body`` is the
    visible part of the body. Edges have their numbers in ``full``, the state that has folded every event.
    """

    def __init__(self, event: Event, hidden: Flags, full: State) -> None:
        self._hidden, self._full = hidden, full
        self.seen = self.unseen = 0
        self._declared = body_field(event.kind)
        self.body = self._members(self._declared, event.body)
        if self.unseen and self._declared.has_private_strings:
            self.body = _without_strings(self._declared, self.body)

    def _members(self, field: Field, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the visible parts of a mapping, omitting wholly hidden members."""
        visible: dict[str, Any] = {}
        for name, value in values.items():
            part = self._part(field.get(name), value, values)
            if part is not None or value is None:
                visible[name] = part
        return visible

    def _part(self, field: Field, value: Any, siblings: Siblings) -> Any:
        """Return the visible part of a value, or None if all of it is hidden.

        ``siblings`` is the mapping that contains the value.
        """
        if field.role == "undeclared":
            return None  # no declaration says which memories the value describes
        if value is None or not field.names_memories:
            return value
        return _READ[field.role](self, field, value, siblings)

    def _sees(self, ids: Sequence[int]) -> list[bool]:
        """Return whether each memory id is visible, and count visible and hidden ids."""
        return self._counted(~self._hidden[np.asarray(ids, dtype=np.int64) - 1])

    def _counted(self, flags: Flags) -> list[bool]:
        """Count visible memories and edges by ``flags``; return the flags as a list."""
        count = int(flags.sum())
        self.seen, self.unseen = self.seen + count, self.unseen + len(flags) - count
        listed: list[bool] = flags.tolist()
        return listed

    # -- References to memories and edges. Each method has the signature of ``_part`` -------------------------

    def _memory(self, field: Field, value: Any, siblings: Siblings) -> Any:
        """Return the visible memory ids of a list; for a single id, the id, or None if it is hidden."""
        if isinstance(value, list):
            return _keep_flagged(value, self._sees(value))
        return value if self._sees([value])[0] else None

    def _edge(self, field: Field, value: Any, siblings: Siblings) -> Any:
        """Return the numbers of the edges that join no hidden memory, or None if there are none."""
        if isinstance(value, list):
            return _keep_flagged(value, self._counted(self._join_visible(value))) or None
        return value if self._counted(self._join_visible([value]))[0] else None

    def _join_visible(self, numbers: Sequence[int]) -> Flags:
        """Return a mask of the edge numbers that join no hidden memory."""
        flags = np.ones(len(numbers), dtype=np.bool_)
        for ends in self._full.edges.ends(np.asarray(numbers, dtype=np.int64)):
            memory = ends < len(self._hidden)
            flags &= ~memory | ~self._hidden[np.where(memory, ends, 0)]
        return flags

    def _last_memory(self, field: Field, value: Any, siblings: Siblings) -> int:
        """Return the last visible memory id up to ``value``, or 0 if no such id is visible."""
        return int(np.flatnonzero(~self._hidden[:value]).max(initial=-1)) + 1

    def _memory_count(self, field: Field, value: Any, siblings: Siblings) -> int:
        """Count the visible memories in the field that ``of`` names."""
        return len(self._named_in(field, siblings))

    def _newest_time(self, field: Field, value: Any, siblings: Siblings) -> int:
        """Return the latest creation time of the visible memories in the field ``of``, or NEVER if there are none."""
        ids = self._named_in(field, siblings)
        return int(self._full.numbers["created"].values[np.array(ids) - 1].max()) if ids else NEVER

    def _named_in(self, field: Field, siblings: Siblings) -> list[int]:
        """Return the visible memory ids in the field that ``of`` names."""
        part = self._declared.get(field.of)
        return [id for id in part.ids(siblings.get(field.of)) if not self._hidden[id - 1]]

    def _flag(self, field: Field, value: Any, siblings: Siblings) -> Any:
        """Return a true/false field about added memories, or None if all of them are hidden."""
        first = siblings["first"] - 1
        return value if not self._hidden[first : first + siblings["count"]].all() else None

    # -- Structure --------------------------------------------------------------------------------------------

    def _mapping(self, field: Field, value: Any, siblings: Siblings) -> Any:
        """Filter an object of an event for a viewer, or return None if it is hidden."""
        return self._scope(field, list(value.items()), lambda: self._members(field, value))

    def _tuple(self, field: Field, value: Any, siblings: Siblings) -> Any:
        """Filter a tuple of an event for a viewer, or return None if it is hidden."""
        parts = list(enumerate(value))
        return self._scope(
            field,
            parts,
            lambda: [self._part(field.item(position), part, {}) for position, part in parts],
        )

    def _scope(
        self, field: Field, parts: Sequence[tuple[Any, Any]], visible: Callable[[], Any]
    ) -> Any:
        """Return the part that ``visible`` builds, or None if the object or tuple names a hidden memory."""
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

    def _list(self, field: Field, value: Any, siblings: Siblings) -> list[Any] | None:
        """Return the visible items of a list, or None if an optional list has lost all its items."""
        left = [
            part for item in value if (part := self._part(field.items[0], item, {})) is not None
        ]
        return left if left or field.required or not value else None

    def _rows(self, field: Field, value: Any, siblings: Siblings) -> dict[str, Any] | None:
        """Return a table's rows whose memories and edges are all visible, or None without rows."""
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
        visible = self._counted(flags)
        return (
            {name: _keep_flagged(part, visible) for name, part in value.items()}
            if any(visible)
            else None
        )

    # -- Parts that the fold of a state reads -----------------------------------------------------------------

    def _columns(self, field: Field, columns: Any, siblings: Siblings) -> Any:
        """Return the columns of added rows; hidden memories lose their content and get the status "purged"."""
        if "first" not in siblings:
            return columns
        first, count = siblings["first"], siblings["count"]
        positions = [
            position
            for position, is_visible in enumerate(self._sees(range(first, first + count)))
            if not is_visible
        ]
        if not positions:
            return dict(columns)
        visible = dict(columns)
        for name in ("status", *(_CONTENT & columns.keys())):
            column = columns.get(name, MEMORY[name].default)
            values = list(column) if isinstance(column, list) else [column] * count
            for position in positions:
                values[position] = "purged" if name == "status" else None
            visible[name] = values
        return visible

    def _values(self, field: Field, part: Any, siblings: Siblings) -> dict[str, Any] | None:
        """Return the part of an assignment that sets visible memories, or None if empty."""
        flags = self._sees(part["ids"])
        if not any(flags):
            return None
        columns = {name: _keep_flagged(values, flags) for name, values in part["columns"].items()}
        if "superseded_by" in columns:
            columns["superseded_by"] = self._successors(columns["superseded_by"])
        return {"ids": _keep_flagged(part["ids"], flags), "columns": columns}

    def _successors(self, successors: Any) -> Any:
        """Return ``superseded_by`` with None in place of the ids of hidden memories."""
        if isinstance(successors, list):
            return [self._successors(successor) for successor in successors]
        return None if successors is None or self._hidden[int(successors) - 1] else successors

    def _graph(self, field: Field, graph: Any, siblings: Siblings) -> dict[str, Any]:
        """Return the imported edges between visible nodes, and the nodes of these edges."""
        ends = np.array([graph["source"], graph["target"]], dtype=np.int64).reshape(2, -1)
        flags = (
            (ends < 0) | ~self._hidden[np.maximum(ends, 1) - 1] if len(self._hidden) else ends < 0
        )
        keep: list[bool] = (flags[0] & flags[1]).tolist()
        visible = {
            name: _keep_flagged(values, keep) if name != "nodes" else values
            for name, values in graph.items()
        }
        # A node that is joined only to hidden memories is not visible.
        used = sorted({-end for name in ("source", "target") for end in visible[name] if end < 0})
        position = {old: new for new, old in enumerate(used, 1)}
        for name in ("source", "target"):
            visible[name] = [-position[-end] if end < 0 else end for end in visible[name]]
        return visible | {"nodes": [graph["nodes"][old - 1] for old in used]}

    def _registers(self, field: Field, dumped: Any, siblings: Siblings) -> dict[str, Any]:
        """Return an import's dumps of state tables, or {} if any memory is hidden.

        The dumps do not say which memories their values describe.
        """
        return {} if self._hidden.any() else dict(dumped)


# The method for each role that refers to memories. Values of other roles are returned unchanged.
_READ: Mapping[str, Callable[[VisibleBody, Field, Any, Siblings], Any]] = {
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
    """Return a value of an event's body without its private strings.

    Items of lists that name their own memories keep their strings, because they were filtered before.
    """
    # The order of these cases matters. A list of strings has the role of a string, and rows that name memories were
    # already filtered row by row.
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
        return [_without_strings(field.item(position), part) for position, part in enumerate(value)]
    return value


def _empty_rows(field: Field, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of rows of an event's body, with their private strings emptied."""
    left = dict(columns)
    for name, part in columns.items():
        column = field.get(name)
        if column.has_private_strings:
            left[name] = (
                [_emptied(column, value) for value in part]
                if isinstance(part, list)
                else _emptied(column, part)
            )
    return left


def _emptied(field: Field, value: Any) -> Any:
    """Return the value that replaces a private string.

    The replacement is "" for texts and labels, as many zero bytes for bytes, and None otherwise.
    """
    if isinstance(value, bytes):
        return bytes(len(value))
    return "" if field.role in ("text", "label") else None


def _keep_flagged(values: Any, flags: Sequence[bool]) -> Any:
    """Keep the items of a list where ``flags`` is true; return other values unchanged."""
    return (
        [value for value, keep in zip(values, flags, strict=True) if keep]
        if isinstance(values, list)
        else values
    )


Asker = Callable[[int], str | None]
"""A function from the number of a logged recall to the viewer who asked it."""
