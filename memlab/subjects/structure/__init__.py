"""The structure of a memory at a glance: temporal layers, clusters, communities and the nodes between them.

stats(state, pack, now=clock())
"""

from memlab.subjects.structure._layers import LAYERS, Layers, layer, layers
from memlab.subjects.structure._stats import Stats, stats
from memlab.subjects.structure._topology import Topology, key_scores, topology

__all__ = ["LAYERS", "Layers", "Stats", "Topology", "key_scores", "layer", "layers", "stats", "topology"]
