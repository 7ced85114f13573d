"""What came from another lab, folded as it stood there: nothing of it is derived again.

Body of an ``import`` event: ``first``, ``count`` and ``columns`` as those of ``remember``, with any column of MEMORY;
``uses`` (each row's latest uses, newest first); ``graph`` (edges between nodes of any kind); ``registers`` (dumps).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from memlab.errors import NewerLab
from memlab.kernel.graph import Edges, Nodes
from memlab.kernel.journal import Event
from memlab.kernel.schema import is_open_word
from memlab.kernel.state.projections import Projection

__all__ = ["fold_graph", "fold_registers"]


def fold_graph(nodes: Nodes, edges: Edges, event: Event) -> None:
    """Edges between nodes of any kind, if the import has some.

    ``nodes`` are pairs of kind and name; an end is a memory by id, or the place of a node, from 1, below zero.
    """
    graph = event.body.get("graph")
    if graph is None:
        return
    places = np.array([int(nodes.intern(kind, [name])[0]) for kind, name in graph["nodes"]], dtype=np.int64)
    unknown = next((name for name in graph["relation"] if not is_open_word(name)), None)
    if unknown is not None:
        raise NewerLab.of_word(f'Event {event.seq} links by "{unknown}"')
    edges.append(
        _nodes(graph["source"], places),
        _nodes(graph["target"], places),
        edges.codes_of(graph["relation"], grow=True),
        np.asarray(graph["weight"], dtype=np.float64),
        nodes=nodes,
        reinforcements=np.asarray(graph["reinforcements"], dtype=np.int64),
        created=np.asarray(graph["created"], dtype=np.int64),
    )


def fold_registers(projections: Mapping[str, Projection], event: Event) -> None:
    """The tables beside memories that came along."""
    for name, dumped in event.body.get("registers", {}).items():
        if name not in projections:
            raise NewerLab.of_word(f'Event {event.seq} imports a register "{name}"')
        projections[name].load(dumped)


def _nodes(ends: list[int], places: NDArray[np.int64]) -> NDArray[np.int64]:
    codes = np.asarray(ends, dtype=np.int64)
    nodes = codes - 1
    below = codes < 0
    nodes[below] = places[-codes[below] - 1]
    return nodes
