"""From texts to integer vectors, by the model that ships with memlab or any other.

embedder = load_embedder()                       # no network, no torch
embedder.encode(["The user prefers tabs"])       # int8 (1, 256)
"""

from memlab.kernel.embedding._embedder import (
    EMBEDDERS,
    SHIPPED_KNOTS,
    Embedder,
    EmbedderSource,
    EmbedderSpec,
    Model,
    evened,
    load_embedder,
)

__all__ = [
    "EMBEDDERS",
    "SHIPPED_KNOTS",
    "Embedder",
    "EmbedderSource",
    "EmbedderSpec",
    "Model",
    "evened",
    "load_embedder",
]
