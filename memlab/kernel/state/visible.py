"""An event without some memories: what another viewer sees of it.

Rows stay, so that ids do: a memory that is left out has the status "purged", its numbers and words, and no content.
Whatever else speaks of it goes: its edges, the values that were set, its place in a list. What a field holds is read
from its declaration; strings that are not ``shared`` go with the memories beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.journal import Event
from memlab.kernel.schema import MEMORY, NEVER
from memlab.kernel.state.events import body_field
from memlab.kernel.state.roles import STRINGS, Field

if TYPE_CHECKING:
    from memlab.kernel.state.state import State

__all__ = ["VisibleBody"]

Flags = NDArray[np.bool_]

_CONTENT = frozenset(name for name, column in MEMORY.items() if column.storage in ("text", "name", "note", "list"))


class VisibleBody:
    """The body of ``event`` without the memories that are ``hidden``.

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
        return self._scope(field, parts, lambda: [self._part(field.item(place), part, {}) for place, part in parts])

    def _scope(self, field: Field, parts: Sequence[tuple[Any, Any]], visible: Callable[[], Any]) -> Any:
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
        left = [part for item in value if (part := self._part(field.items[0], item, {})) is not None]
        return left if left or field.required or not value else None

    def _rows(self, field: Field, value: Any, beside: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the rows whose memories and edges are all visible."""
        flags: Flags | None = None
        for name, part in value.items():
            role = field.get(name).role
            if role in ("memory", "edge") and isinstance(part, list):
                own = (
                    self._join_visible(part) if role == "edge" else ~self._hidden[np.asarray(part, dtype=np.int64) - 1]
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
        places = [place for place, seen in enumerate(self._sees(range(first, first + count))) if not seen]
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
        flags = (ends < 0) | ~self._hidden[np.maximum(ends, 1) - 1] if len(self._hidden) else ends < 0
        keep: list[bool] = (flags[0] & flags[1]).tolist()
        visible = {name: _selected(values, keep) if name != "nodes" else values for name, values in graph.items()}
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
            left[name] = [_emptied(column, one) for one in part] if isinstance(part, list) else _emptied(column, part)
    return left


def _emptied(field: Field, value: Any) -> Any:
    if isinstance(value, bytes):
        return bytes(len(value))
    return "" if field.role in ("text", "label") else None


def _selected(values: Any, flags: Sequence[bool]) -> Any:
    """Return the items of a column that are kept; one value for all of them stays."""
    return [value for value, keep in zip(values, flags, strict=True) if keep] if isinstance(values, list) else values
