"""Typed nodes, weighted edges between them, and spreading activation.

>>> edges = Edges()
>>> edges.append([0, 1], [1, 2], [0, 0], [1.0, 1.0], nodes=3).tolist()
[0, 1]
>>> spread(edges, [0], [1.0], lambda batch: batch.activation * 0.5, steps=2, nodes=3).activation.tolist()
[1.0, 0.5, 0.25]
"""

from memlab.kernel.graph._edges import Crossings, Edges
from memlab.kernel.graph._nodes import (
    MIN_ROOM,
    NODE_KINDS,
    Layout,
    Nodes,
    node_codes,
    node_kinds,
    node_numbers,
)
from memlab.kernel.graph._shape import (
    Clustering,
    Communities,
    Path,
    SimpleGraph,
    Trace,
    bridges,
    clustering,
    communities,
    simple_graph,
    trace,
)
from memlab.kernel.graph._spread import (
    SPREAD_MODES,
    EdgeBatch,
    Spread,
    activate,
    select_within,
    spread,
)

__all__ = [
    "MIN_ROOM",
    "NODE_KINDS",
    "SPREAD_MODES",
    "Clustering",
    "Communities",
    "Crossings",
    "EdgeBatch",
    "Edges",
    "Layout",
    "Nodes",
    "Path",
    "SimpleGraph",
    "Spread",
    "Trace",
    "activate",
    "bridges",
    "clustering",
    "communities",
    "node_codes",
    "node_kinds",
    "node_numbers",
    "select_within",
    "simple_graph",
    "spread",
    "trace",
]
