"""The calibration of an embedder on the texts of a lab, by comparison with the shipped model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from memlab.kernel.base.arrays import Components, Floats
from memlab.kernel.embedding._embedder import Embedder, load_embedder

SAMPLE = 200
"""Texts of a calibration. They make 19,900 pairs, so about 20 are beyond the last quantile below."""

_QUANTILES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""Quantiles at which cosines and closeness are compared."""

_READ = 400
"""Characters of a text that are cut into halves: two or three sentences."""

_MINIMUM_EFFECT = 0.3
"""Lower bound of the shipped model's effect in the ratio below; short turns have .2 to .3, with an error of .07."""

_NONE, _FULL = 1.25, 2.5
"""Ratios of effects that mean a reliance of 0 and of 1. Measured with 200 texts each on preferences, six chats and German
paragraphs (``experiments/embedders.py``): all-MiniLM-L6-v2 2.6 to 4.0, its first 48 components 1.7 to 2.2, its first 8
components .8 to 1.2, counts of letters at most .8, random vectors at most .5. On Arabic, which it does not know, .8."""


def measure_scale(embedder: Embedder, texts: Sequence[str]) -> dict[str, Any]:
    """Compare an embedder with the shipped model on texts of a lab.

    Equal quantiles of pairs of texts map the embedder's cosines to closeness. The embedder's quality is how much nearer
    the second half of a text is to the first half than other second halves are.

    Parameters
    ----------
    embedder
        An embedder of a lab.
    texts
        At least two texts, in the form in which they are embedded.

    Returns
    -------
    dict
        ``knots`` and ``pairs`` (pairs of a cosine and a closeness, without and with the correction for length),
        ``reliance`` (0 to 1) and ``texts`` (their number).

    Examples
    --------
    >>> scale = measure_scale(load_embedder(), ["Ana prefers tabs", "Ben prefers spaces", "It rains"])
    >>> scale["reliance"]
    0.0
    """
    shipped, texts = load_embedder(), list(texts)
    above = np.triu_indices(len(texts), 1)
    cosines = _products(embedder.encode_queries(texts), embedder.embed(texts))[above]
    twins = cosines if embedder._query is None else _products(*[embedder.embed(texts)] * 2)[above]
    own = shipped.embed(texts)
    expected = _products(own, own)[above]
    lengths = np.array([float(len(text)) for text in texts])
    corrected = shipped.pair_closeness(expected, np.sqrt(np.outer(lengths, lengths)[above]))
    halves = [text[:_READ] for text in texts]
    first = [text[: len(text) // 2] for text in halves]
    second = [text[len(text) // 2 :] for text in halves]
    effects = [
        _effect(_products(model.embed(first), model.embed(second))) for model in (embedder, shipped)
    ]
    ratio = effects[0] / max(effects[1], _MINIMUM_EFFECT)
    return {
        "knots": _match_quantiles(cosines, shipped.closeness(expected)),
        "pairs": _match_quantiles(twins, corrected),
        "reliance": round(float(np.clip((ratio - _NONE) / (_FULL - _NONE), 0.0, 1.0)), 3),
        "texts": len(texts),
    }


def _products(first: Components, second: Components) -> Floats:
    """Return the cosine of each row of ``first`` with each row of ``second``, as a matrix; 0 where a row is zero."""
    wide = [matrix.astype(np.float64) for matrix in (first, second)]
    unit = [
        matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1.0) for matrix in wide
    ]
    return np.asarray(unit[0] @ unit[1].T)


def _effect(cosines: Floats) -> float:
    """Return the mean z-score of a square matrix's diagonal entries among the other entries of their rows."""
    others = cosines[~np.eye(len(cosines), dtype=bool)].reshape(len(cosines), -1)
    deviation = np.maximum(others.std(axis=1), 1e-9)
    return float(np.mean((np.diag(cosines) - others.mean(axis=1)) / deviation))


def _match_quantiles(cosines: Floats, closeness: Floats) -> list[list[float]]:
    """Return (cosine, closeness) pairs at equal quantiles, strictly increasing from -1 to 1."""
    knots = [[-1.0, -1.0]]
    levels = zip(np.quantile(cosines, _QUANTILES), np.quantile(closeness, _QUANTILES), strict=True)
    for cosine, level in levels:
        if knots[-1][0] + 1e-4 < cosine < 1.0 and knots[-1][1] < level < 1.0:
            knots.append([round(float(cosine), 4), round(float(level), 4)])
    return [*knots, [1.0, 1.0]]
