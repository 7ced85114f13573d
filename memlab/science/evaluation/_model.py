"""The direct method: a model of rewards, asked about items that were never shown. An extrapolation, and called so.

A logistic regression where rewards are 0 and 1, a ridge regression otherwise, on the log's own numeric features,
standardised. Each recall is predicted by a model that saw no recall of its cluster.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["predicted_rewards"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_FOLDS = 5
_LEAST = 20
"""Answered items in a training fold below which a regression says nothing."""


def predicted_rewards(
    features: Floats, reward: Floats, answered: NDArray[np.bool_], cluster: Ints, reward_range: tuple[float, float]
) -> Floats | None:
    """f64[n]: the reward that a cross-fitted model expects of each candidate; none if there is too little to fit.

    ``features`` is f64[n, features] (NaN where unknown), ``reward`` is read where ``answered``, ``cluster`` is the
    number of each candidate's cluster.
    """
    clusters = np.unique(cluster)
    if len(clusters) < 2 or features.shape[1] == 0:
        return None
    fold = np.zeros(int(clusters.max()) + 1, dtype=np.int64)
    fold[clusters] = np.arange(len(clusters)) % min(_FOLDS, len(clusters))
    folds = fold[cluster]
    prepared = _standardised(features)
    binary = bool(np.isin(reward[answered], (0.0, 1.0)).all())
    expected = np.empty(len(reward))
    for number in range(int(folds.max()) + 1):
        seen, held = answered & (folds != number), folds == number
        if seen.sum() < _LEAST:
            return None
        expected[held] = _fitted(prepared[seen], reward[seen], prepared[held], binary)
    return np.clip(expected, *reward_range)


def _standardised(features: Floats) -> Floats:
    """Mean 0 and deviation 1 over the candidates; what is unknown or infinite becomes the mean."""
    finite = np.where(np.isfinite(features), features, np.nan)
    known = ~np.isnan(finite)
    counts = np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, finite - np.where(known, finite, 0.0).sum(axis=0) / counts, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=0) / counts)
    return np.asarray(centred / np.where(deviation > 0, deviation, 1.0))


def _fitted(features: Floats, reward: Floats, points: Floats, binary: bool) -> Floats:
    if np.ptp(reward) == 0:
        return np.full(len(points), reward[0])
    if binary:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(max_iter=1000).fit(features, reward)
        return np.asarray(model.predict_proba(points)[:, 1])
    from sklearn.linear_model import Ridge

    return np.asarray(Ridge(alpha=1.0).fit(features, reward).predict(points))
