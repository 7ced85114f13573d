"""Edges between rows 0..n-1, and activation that spreads over them.

edges = Edges(); edges.append([0, 1], [1, 2], [0, 0], [1.0, 1.0], nodes=3)
spread(edges, [0], [1.0], lambda batch: 0.5 * batch.activation * batch.weight, steps=2, nodes=3)
"""

from memlab.graph._edges import Crossings, Edges
from memlab.graph._spread import EdgeBatch, Spread, spread

__all__ = ["Crossings", "EdgeBatch", "Edges", "Spread", "spread"]
