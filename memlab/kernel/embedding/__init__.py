"""From texts to integer vectors, by the model that ships with memlab or any other.

embedder = load_embedder()                       # no network, no torch
embedder.encode(["The user prefers tabs"])       # int8 (1, 256)
"""

from memlab.kernel.embedding._calibration import SHIPPED_KNOTS, evened
from memlab.kernel.embedding._embedder import EMBEDDERS, Embedder, EmbedderSource, EmbedderSpec, load_embedder

__all__ = ["EMBEDDERS", "SHIPPED_KNOTS", "Embedder", "EmbedderSource", "EmbedderSpec", "evened", "load_embedder"]
