"""An event without some memories: what another viewer sees of it.

Rows stay, so that ids do: a memory that is left out has the status "purged", its numbers and words, and no content.
Whatever else speaks of it goes: its edges, the values that were set, its place in a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memlab.schema import MEMORY, NEVER

if TYPE_CHECKING:
    from memlab.state.state import State

__all__ = ["VisibleBody"]

Flags = NDArray[np.bool_]

_CONTENT = frozenset(name for name, column in MEMORY.items() if column.storage in ("text", "name", "note", "list"))
_PARTS = (
    "edges",
    "strengthen",
    "unlink",
    "join",
    "set",
    "graph",
    "summaries",
    "moved",
    "registers",
    "tellings",
    "fact_times",
)
_LISTED = ("again", "ids", "probes", "verified", "rejected")
_SINGLE = ("memory", "summary", "edit")


class VisibleBody:
    """The ``body`` of an event without the memories that are ``hidden``; ``seen`` and ``unseen`` count what it spoke
    of. Edges are numbered as in ``full``, the state that has seen every event.
    """

    def __init__(self, body: Mapping[str, Any], hidden: Flags, full: State) -> None:
        self._hidden, self._full = hidden, full
        self.seen = self.unseen = 0
        self.body: dict[str, Any] = {}
        for name, value in body.items():
            visible = self._part(name, value, body)
            if visible is not None or value is None:
                self.body[name] = visible

    def _part(self, name: str, value: Any, body: Mapping[str, Any]) -> Any:
        if name == "columns" and "first" in body:
            return self._columns(body["first"], body["count"], value)
        if name in _PARTS:
            return getattr(self, f"_{name}")(value)
        if name == "was" and isinstance(value, list):  # of a quarantine
            return self._set(value) or []
        if name in _LISTED and isinstance(value, list):
            return self._among(value)
        if name in _SINGLE and isinstance(value, int):
            return value if self._sees([value])[0] else None
        if name in ("upto", "looked") and isinstance(value, int):
            return int(np.flatnonzero(~self._hidden[:value]).max(initial=-1)) + 1
        if name == "waits" and "first" in body:
            return value if not self._hidden[body["first"] - 1 : body["first"] - 1 + body["count"]].all() else None
        if name in ("mentions", "last") and "from" in body:
            ids = [id for part in self._join(body.get("join", ())) or () for id in part["source"]]
            created = self._full.numbers["created"].values[np.array(ids, dtype=np.int64) - 1]
            return len(ids) if name == "mentions" else int(created.max()) if ids else NEVER
        return value

    def _sees(self, ids: Sequence[int]) -> list[bool]:
        """Which of these memories are not hidden; all are counted."""
        return self._counted(~self._hidden[np.asarray(ids, dtype=np.int64) - 1])

    def _counted(self, seen: Flags) -> list[bool]:
        count = int(seen.sum())
        self.seen, self.unseen = self.seen + count, self.unseen + len(seen) - count
        flags: list[bool] = seen.tolist()
        return flags

    def _among(self, ids: Sequence[int]) -> list[int]:
        return [id for id, seen in zip(ids, self._sees(ids), strict=True) if seen]

    # -- parts ------------------------------------------------------------------------------------------------

    def _columns(self, first: int, count: int, columns: Mapping[str, Any]) -> dict[str, Any]:
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

    def _edges(self, edges: Mapping[str, Any]) -> dict[str, Any] | None:
        ends = np.array([edges["source"], edges["target"]], dtype=np.int64).reshape(2, -1) - 1
        return self._rows_of(edges, self._counted(~self._hidden[ends[0]] & ~self._hidden[ends[1]]))

    def _join(self, parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
        return [
            visible for part in parts if (visible := self._rows_of(part, self._sees(part["source"]))) is not None
        ] or None

    def _set(self, parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
        found = []
        for part in parts:
            flags = self._sees(part["ids"])
            columns = {name: _selected(values, flags) for name, values in part["columns"].items()}
            if "superseded_by" in columns:
                columns["superseded_by"] = self._successors(columns["superseded_by"])
            if any(flags):
                found.append({"ids": _selected(part["ids"], flags), "columns": columns})
        return found or None

    def _successors(self, given: Any) -> Any:
        if isinstance(given, list):
            return [self._successors(one) for one in given]
        return None if given is None or self._hidden[int(given) - 1] else given

    def _unlink(self, numbers: Sequence[int]) -> list[int] | None:
        return _selected(numbers, self._joins(numbers)) or None

    def _strengthen(self, strengthened: Mapping[str, Any]) -> dict[str, Any] | None:
        return self._rows_of(strengthened, self._joins(strengthened["edges"]))

    def _joins(self, numbers: Sequence[int]) -> list[bool]:
        """Which of these edges join nothing that is hidden."""
        flags = np.ones(len(numbers), dtype=np.bool_)
        for ends in self._full.edges.ends(np.asarray(numbers, dtype=np.int64)):
            memory = ends < len(self._hidden)
            flags &= ~memory | ~self._hidden[np.where(memory, ends, 0)]
        return self._counted(flags)

    def _graph(self, graph: Mapping[str, Any]) -> dict[str, Any]:
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

    def _summaries(self, summaries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [
            {**one, "was": {status: self._among(ids) for status, ids in one["was"].items()}}
            for one in summaries
            if self._sees([one["summary"]])[0]
        ]

    def _tellings(self, tellings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
        return [dict(one) for one in tellings if self._sees([one["memory"]])[0]] or None

    def _fact_times(self, told: Sequence[Sequence[Any]]) -> list[list[Any]] | None:
        return [list(one) for one in told if self._sees([one[0]])[0]] or None

    def _moved(self, moved: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
        return {what: self._among(ids) for what, ids in moved.items()}

    def _registers(self, dumped: Mapping[str, Any]) -> dict[str, Any]:
        """What came with an import beside memories and edges: names and counts whose memories it does not tell."""
        return {} if self._hidden.any() else dict(dumped)

    def _rows_of(self, columns: Mapping[str, Any], flags: list[bool]) -> dict[str, Any] | None:
        return {name: _selected(values, flags) for name, values in columns.items()} if any(flags) else None


def _selected(values: Any, flags: Sequence[bool]) -> Any:
    """Those of a column that are kept; one value for all of them stays."""
    return [value for value, keep in zip(values, flags, strict=True) if keep] if isinstance(values, list) else values
