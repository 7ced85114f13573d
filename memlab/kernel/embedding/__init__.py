"""From texts to integer vectors, by the model that ships with memlab or any other.

embedder = load_embedder()                       # no network, no torch
embedder.encode(["The user prefers tabs"])       # int8 (1, 256)
"""

from memlab.kernel.embedding._embedder import EMBEDDERS, Embedder, EmbedderSource, EmbedderSpec, evened, load_embedder

__all__ = ["EMBEDDERS", "Embedder", "EmbedderSource", "EmbedderSpec", "evened", "load_embedder"]
