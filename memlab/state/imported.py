"""What came from another lab, folded as it stood there: nothing of it is derived anew.

Body of an ``import`` event: ``first``, ``count`` and ``columns`` as those of ``remember``, with any column of MEMORY;
``uses`` (each row's latest uses, newest first); ``graph`` (edges between nodes of any kind); ``registers`` (dumps).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import NewerLab
from memlab.schema import RELATIONS

if TYPE_CHECKING:
    from memlab.state.projections import Happened
    from memlab.state.state import State

__all__ = ["fold_import"]


def fold_import(state: State, event: Happened) -> None:
    """What an import holds beside the rows, which the state has appended already."""
    body = event.body
    count = body.get("count", 0)
    if "uses" in body:
        rows = np.arange(len(state) - count, len(state))
        state.uses.put(rows, body["uses"])
    graph = body.get("graph")
    if graph is not None:
        _fold_graph(state, event, graph)
    for name, dumped in body.get("registers", {}).items():
        if name not in state.projections:
            raise NewerLab(
                f'Event {event.seq} imports a register "{name}", which this version of memlab does not know. '
                "Open the lab with the version that wrote it."
            )
        state.projections[name].load(dumped)
    state.generation += 1


def _fold_graph(state: State, event: Happened, graph: dict[str, Any]) -> None:
    """``nodes`` are pairs of kind and name; an end is a memory by id, or the place of a node, from 1, below zero."""
    places = np.array([int(state.nodes.intern(kind, [name])[0]) for kind, name in graph["nodes"]], dtype=np.int64)
    unknown = next((name for name in graph["relation"] if name not in RELATIONS), None)
    if unknown is not None:
        raise NewerLab(
            f'Event {event.seq} links by "{unknown}", which this version of memlab does not know. '
            "Open the lab with the version that wrote it."
        )
    state.edges.append(
        _nodes(graph["source"], places),
        _nodes(graph["target"], places),
        np.array([RELATIONS.index(name) for name in graph["relation"]], dtype=np.int64),
        np.asarray(graph["weight"], dtype=np.float64),
        nodes=state.nodes,
        reinforcements=np.asarray(graph["reinforcements"], dtype=np.int64),
        created=np.asarray(graph["created"], dtype=np.int64),
    )


def _nodes(ends: list[int], places: NDArray[np.int64]) -> NDArray[np.int64]:
    codes = np.asarray(ends, dtype=np.int64)
    nodes = codes - 1
    below = codes < 0
    nodes[below] = places[-codes[below] - 1]
    return nodes
