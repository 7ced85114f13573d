"""Which edges a pack's ``prune`` policy removes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.clock import DAY, Micros
from memlab.kernel.graph import NODE_KINDS, kind_of, number_of
from memlab.kernel.language import Policy
from memlab.kernel.policies import Pack
from memlab.kernel.schema import RELATIONS
from memlab.kernel.state import EVERYONE, State, hidden_from

__all__ = ["edges_frame_of", "may_prune", "pruned", "reads_degrees"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_HAS_TAG = RELATIONS.index("has-tag")
_EVERYONES, _NOBODYS = -3, -2
"""Codes beside those of creators."""

_DEGREES = ("source-degree", "target-degree")


def may_prune(pack: Pack) -> bool:
    """Whether the policy removes anything: one that reads nothing is asked once, and not of every edge."""
    policy = pack.policies["prune"]
    return bool(policy.inputs) or bool(_prunes(policy, {"weight": lambda: np.zeros(1)})[0])


def reads_degrees(pack: Pack) -> bool:
    """Whether what is removed may decide about what is joined to the same nodes."""
    return any(name in _DEGREES for name in pack.policies["prune"].inputs)


def pruned(state: State, pack: Pack, edges: Ints, now: Micros) -> Ints:
    """Those of ``edges`` (by number) that are still there and that the policy removes at ``now``.

    Edges from memories to their tags follow from the column ``tags`` and are never asked about. Null keeps an edge.
    """
    graph = state.edges
    edges = edges[graph.alive[edges] & (graph.relation[edges] != _HAS_TAG)]
    if not len(edges):
        return edges
    source, target = graph.ends(edges)

    def age() -> Floats:
        return np.asarray(np.maximum((float(now) - graph.created[edges]) / DAY, 0.0))

    def idle() -> Floats:
        accessed = state.numbers["accessed"].values
        last = graph.created[edges].astype(np.float64)
        both = np.full(len(edges), np.inf)
        for end in (source, target):
            memory = end < len(state)
            both[memory] = np.minimum(both[memory], accessed[end[memory]])
        # an edge between others than memories is never recalled; and none was used before it was made
        last = np.where(np.isfinite(both), np.maximum(both, last), last)
        return np.asarray(np.maximum((float(now) - last) / DAY, 0.0))

    given: dict[str, Callable[[], NDArray[Any]]] = {
        "weight": lambda: graph.weight[edges],
        "relation": lambda: graph.words_of(graph.relation[edges]),
        "reinforcements": lambda: graph.reinforcements[edges].astype(np.float64),
        "age-days": age,
        "idle-days": idle,
        "source-degree": lambda: _degree(state, edges, source),
        "target-degree": lambda: _degree(state, edges, target),
    }
    return edges[_prunes(pack.policies["prune"], given)]


def _degree(state: State, edges: Ints, ends: Ints) -> Floats:
    """How many edges meet the end of each, of those that whoever sees the edge sees."""
    graph = state.edges
    degree = graph.degree(ends).astype(np.float64)
    if hidden_from(state, EVERYONE) is None:
        return degree
    own = _whose(state, edges)
    met = graph.crossings(ends)
    theirs = _whose(state, met.edge)
    counts = (theirs == _EVERYONES) | (theirs == own[met.position])
    return np.bincount(met.position[counts], minlength=len(ends)).astype(np.float64)


def _whose(state: State, edges: Ints) -> Ints:
    """Who sees each edge: everyone, or the creator (by code) of what is private at one end, or nobody."""
    visibility, creator = state.names["visibility"], state.names["creator"]
    private = visibility.codes == visibility.code("private")
    found = np.full(len(edges), _EVERYONES, dtype=np.int64)
    for ends in state.edges.ends(edges):
        rows = np.where(ends < len(state), ends, 0)
        mine = (ends < len(state)) & private[rows]
        codes = creator.codes[rows].astype(np.int64)
        found = np.where(~mine, found, np.where((found == _EVERYONES) | (found == codes), codes, _NOBODYS))
    return found


def edges_frame_of(state: State, edges: Ints) -> pl.DataFrame:
    """Edges as ``lab.edges`` names them: edge, relation, weight, from_kind, source, to_kind, target."""
    source, target = state.edges.ends(edges)
    kinds = np.array(NODE_KINDS, dtype=object)
    return pl.DataFrame(
        [
            pl.Series("edge", edges, dtype=pl.Int64),
            pl.Series("relation", state.edges.words_of(state.edges.relation[edges]).tolist(), dtype=pl.String),
            pl.Series("weight", state.edges.weight[edges], dtype=pl.Float64),
            pl.Series("from_kind", kinds[kind_of(source)].tolist(), dtype=pl.String),
            pl.Series("source", number_of(source) + 1, dtype=pl.Int64),
            pl.Series("to_kind", kinds[kind_of(target)].tolist(), dtype=pl.String),
            pl.Series("target", number_of(target) + 1, dtype=pl.Int64),
        ]
    )


def _prunes(policy: Policy, given: dict[str, Callable[[], NDArray[Any]]]) -> NDArray[np.bool_]:
    columns = {name: given[name]() for name in policy.inputs or ("weight",)}
    values, nulls = policy.arrays(columns)
    return np.asarray(values if nulls is None else values & ~nulls, dtype=np.bool_)
