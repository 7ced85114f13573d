"""Which edges a pack's ``prune`` policy removes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.clock import DAY, Micros
from memlab.graph import NODE_KINDS, kind_of, number_of
from memlab.language import Policy
from memlab.memory import State
from memlab.policies import Pack
from memlab.schema import RELATIONS

__all__ = ["edges_told", "may_prune", "pruned", "reads_degrees"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_RELATIONS: NDArray[Any] = np.array(RELATIONS, dtype=object)
_HAS_TAG = RELATIONS.index("has-tag")
_DEGREES = ("source-degree", "target-degree")


def may_prune(pack: Pack) -> bool:
    """Whether the policy removes anything: one that reads nothing is asked once, and not of every edge."""
    policy = pack.policies["prune"]
    return bool(policy.inputs) or bool(_asked(policy, {"weight": lambda: np.zeros(1)})[0])


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
        "relation": lambda: _RELATIONS[graph.relation[edges]],
        "reinforcements": lambda: graph.reinforcements[edges].astype(np.float64),
        "age-days": age,
        "idle-days": idle,
        "source-degree": lambda: graph.degree(source).astype(np.float64),
        "target-degree": lambda: graph.degree(target).astype(np.float64),
    }
    return edges[_asked(pack.policies["prune"], given)]


def edges_told(state: State, edges: Ints) -> pl.DataFrame:
    """Edges as ``lab.edges`` names them: edge, relation, weight, from_kind, source, to_kind, target."""
    source, target = state.edges.ends(edges)
    kinds = np.array(NODE_KINDS, dtype=object)
    return pl.DataFrame(
        [
            pl.Series("edge", edges, dtype=pl.Int64),
            pl.Series("relation", _RELATIONS[state.edges.relation[edges]].tolist(), dtype=pl.String),
            pl.Series("weight", state.edges.weight[edges], dtype=pl.Float64),
            pl.Series("from_kind", kinds[kind_of(source)].tolist(), dtype=pl.String),
            pl.Series("source", number_of(source) + 1, dtype=pl.Int64),
            pl.Series("to_kind", kinds[kind_of(target)].tolist(), dtype=pl.String),
            pl.Series("target", number_of(target) + 1, dtype=pl.Int64),
        ]
    )


def _asked(policy: Policy, given: dict[str, Callable[[], NDArray[Any]]]) -> NDArray[np.bool_]:
    columns = {name: given[name]() for name in policy.inputs or ("weight",)}
    values, nulls = policy.arrays(columns)
    return np.asarray(values if nulls is None else values & ~nulls, dtype=np.bool_)
