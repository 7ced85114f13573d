"""Typed nodes, weighted edges between them, and spreading activation.

>>> edges = Edges()
>>> edges.append([0, 1], [1, 2], [0, 0], [1.0, 1.0], nodes=3).tolist()
[0, 1]
>>> spread(edges, [0], [1.0], lambda batch: batch.activation * 0.5, steps=2, nodes=3).activation.tolist()
[1.0, 0.5, 0.25]
"""

from memlab.kernel.graph._edges import Edges
from memlab.kernel.graph._nodes import NODE_KINDS, Nodes, node_kinds, node_numbers
from memlab.kernel.graph._shape import (
    Communities,
    SimpleGraph,
    Trace,
    bridges,
    clustering,
    communities,
    simple_graph,
    trace,
)
from memlab.kernel.graph._spread import SPREAD_MODES, EdgeBatch, activate, spread

__all__ = [
    "NODE_KINDS",
    "SPREAD_MODES",
    "Communities",
    "EdgeBatch",
    "Edges",
    "Nodes",
    "SimpleGraph",
    "Trace",
    "activate",
    "bridges",
    "clustering",
    "communities",
    "node_kinds",
    "node_numbers",
    "simple_graph",
    "spread",
    "trace",
]
