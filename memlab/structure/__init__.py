"""The structure of a memory at a glance: temporal layers, clusters, communities and the nodes between them.

stats(state, pack, now=clock())
"""

from memlab.structure.layers import LAYERS, Layers, layer, layers
from memlab.structure.stats import Stats, stats
from memlab.structure.topology import Topology, key_scores, topology

__all__ = ["LAYERS", "Layers", "Stats", "Topology", "key_scores", "layer", "layers", "stats", "topology"]
