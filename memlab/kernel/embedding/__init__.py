"""Embedders, which convert texts to integer vectors by the shipped model or another model.

>>> embedder = load_embedder()  # no network, no torch
>>> embedder.encode(["The user prefers tabs"]).shape
(1, 256)
"""

from memlab.kernel.embedding._embedder import (
    SHIPPED_KNOTS,
    Embedder,
    EmbedderSource,
    EmbedderSpec,
    evened,
    load_embedder,
)
from memlab.kernel.embedding._scale import SAMPLE, measure_scale

__all__ = [
    "SAMPLE",
    "SHIPPED_KNOTS",
    "Embedder",
    "EmbedderSource",
    "EmbedderSpec",
    "evened",
    "load_embedder",
    "measure_scale",
]
