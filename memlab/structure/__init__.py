"""The structure of a memory: clusters, communities, temporal layers, and all of it at a glance.

found = clusters(state.vectors.take(rows), rows)
assign(found, embedder.encode(["where a new memory would belong"]))
stats(state, pack, now=clock())
"""

from memlab.structure._clusters import Clusters, assign, clusters, nearest, nearness
from memlab.structure._keywords import keywords
from memlab.structure._layers import LAYERS, Layers, layer, layers
from memlab.structure._refine import refine
from memlab.structure._stats import Stats, stats
from memlab.structure._topology import Topology, key_scores, topology

__all__ = [
    "LAYERS",
    "Clusters",
    "Layers",
    "Stats",
    "Topology",
    "assign",
    "clusters",
    "key_scores",
    "keywords",
    "layer",
    "layers",
    "nearest",
    "nearness",
    "refine",
    "stats",
    "topology",
]
