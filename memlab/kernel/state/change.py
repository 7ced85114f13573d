"""What a decision changes: the parts that any event may carry, so that the fold needs no policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Change", "edges_of", "join_of", "values_of"]


@dataclass(frozen=True)
class Change:
    """Parts of an event's body, by the order in which the fold applies them.

    ``edges`` are new ones, as columns (source, target, relation, weight: memories by id); ``strengthen`` gives edges by
    number another weight, ``unlink`` removes them. Each of ``join`` links memories (``source``) to nodes of another
    ``kind`` by their names (``target``). Each of ``set`` gives some memories (``ids``) other values in
    some ``columns``: one value for all of them or a list with one for each (columns of lists: always one for each).

    >>> Change(set=(values_of([3, 7], status="superseded"),)).body()
    {'set': [{'ids': [3, 7], 'columns': {'status': 'superseded'}}]}
    """

    edges: Mapping[str, Any] | None = None
    strengthen: Mapping[str, Any] | None = None
    unlink: Sequence[int] = ()
    join: Sequence[Mapping[str, Any]] = ()
    set: Sequence[Mapping[str, Any]] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.edges or self.strengthen or len(self.unlink) or self.join or self.set)

    def __add__(self, other: Change) -> Change:
        """Both, this one first."""
        return Change(
            _joined(self.edges, other.edges),
            _joined(self.strengthen, other.strengthen),
            [*self.unlink, *other.unlink],
            [*self.join, *other.join],
            [*self.set, *other.set],
        )

    def body(self) -> dict[str, Any]:
        """What an event carries; parts that change nothing are left out."""
        parts: dict[str, Any] = {}
        if self.edges:
            parts["edges"] = dict(self.edges)
        if self.strengthen:
            parts["strengthen"] = dict(self.strengthen)
        if len(self.unlink):
            parts["unlink"] = [int(edge) for edge in self.unlink]
        if self.join:
            parts["join"] = [dict(part) for part in self.join]
        if self.set:
            parts["set"] = [dict(part) for part in self.set]
        return parts


def values_of(ids: Sequence[int], **columns: Any) -> dict[str, Any]:
    """One of ``Change.set``."""
    return {"ids": [int(id) for id in ids], "columns": columns}


def edges_of(
    source: Sequence[int], target: Sequence[int], relation: str | Sequence[str], weight: float | Sequence[float]
) -> dict[str, Any]:
    """``Change.edges``: memories by id, one relation and weight for all or one for each."""
    count = len(source)
    relations = [relation] * count if isinstance(relation, str) else list(relation)
    weights = [float(weight)] * count if isinstance(weight, int | float) else [float(one) for one in weight]
    return {
        "source": [int(id) for id in source],
        "target": [int(id) for id in target],
        "relation": relations,
        "weight": weights,
    }


def join_of(
    source: Sequence[int], kind: str, target: Sequence[str], relation: str, weight: float | Sequence[float] = 1.0
) -> dict[str, Any]:
    """One of ``Change.join``: memories by id, tags, clusters or entities by name."""
    weights = [float(weight)] * len(source) if isinstance(weight, int | float) else [float(one) for one in weight]
    return {
        "source": [int(id) for id in source],
        "kind": kind,
        "target": list(target),
        "relation": relation,
        "weight": weights,
    }


def _joined(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if not one or not other:
        return one or other
    return {name: [*one[name], *other[name]] for name in one}
