"""A model of rewards, and the features of candidates that models and tests read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.science.evaluation._log import CERTAIN, Log
from memlab.science.evaluation._targets import pad_scores
from memlab.science.regression import fit_logistic, fit_ridge, predict_chance

# The direct method applies a model of rewards to items that were not shown. Reports call the result an extrapolation.
#
# The model is a logistic regression where rewards are 0 and 1, and a ridge regression otherwise. It is fitted on the
# log's own numeric features, standardised. Each recall is predicted by a model that was fitted without the recalls of
# its cluster.


_FOLDS = 5
"""The number of folds of the cross-fitting: each model is fitted on 80% of the clusters."""
_MIN_FITTED = 20
"""The minimum number of answered items of a training fold; a regression on fewer is noise."""


def predicted_rewards(
    features: Floats,
    reward: Floats,
    answered: Flags,
    cluster: Ints,
    reward_range: tuple[float, float],
) -> Floats | None:
    """Predict the reward of each candidate by a cross-fitted model, f64[n].

    Returns None if there are too few data. ``features`` is f64[n, features], NaN where unknown.
    ``reward`` is read where ``answered``. ``cluster`` is the cluster of each candidate.
    """
    clusters = np.unique(cluster)
    if len(clusters) < 2 or features.shape[1] == 0:
        return None
    fold = np.zeros(int(clusters.max()) + 1, dtype=np.int64)
    fold[clusters] = np.arange(len(clusters)) % min(_FOLDS, len(clusters))
    folds = fold[cluster]
    standardised = _standardise(features)
    binary = bool(np.isin(reward[answered], (0.0, 1.0)).all())
    expected = np.empty(len(reward))
    for number in range(int(folds.max()) + 1):
        training, predicted = answered & (folds != number), folds == number
        if training.sum() < _MIN_FITTED:
            return None
        expected[predicted] = _fit_and_predict(
            standardised[training], reward[training], standardised[predicted], binary
        )
    return np.clip(expected, *reward_range)


def _standardise(features: Floats) -> Floats:
    """Standardise columns; missing and infinite values become the mean, 0."""
    finite = np.where(np.isfinite(features), features, np.nan)
    is_finite = ~np.isnan(finite)
    counts = np.maximum(is_finite.sum(axis=0), 1)
    centred = np.where(
        is_finite, finite - np.where(is_finite, finite, 0.0).sum(axis=0) / counts, 0.0
    )
    deviation = np.sqrt((centred**2).sum(axis=0) / counts)
    return np.asarray(centred / np.where(deviation > 0, deviation, 1.0))


def _fit_and_predict(features: Floats, reward: Floats, points: Floats, binary: bool) -> Floats:
    """Fit a logistic (``binary``) or ridge regression of rewards and return its predictions at ``points``.

    Equal rewards are predicted as they are. With ``binary``, the prediction is the chance of a reward
    above 0.
    """
    if np.ptp(reward) == 0:
        return np.full(len(points), reward[0])
    if binary:
        return predict_chance(points, fit_logistic(features, reward > 0))
    weights = fit_ridge(features, reward)
    return np.asarray(points @ weights[:-1] + weights[-1])


_MISRANKED = 0.01
"""The share of neighbours in the wrong order up to which a score counts as that of the log.

Scores are rounded when they are logged.
"""
_RECALLS_PER_FEATURE = 10
"""The number of recalls per feature that a test needs.

With fewer recalls, a test uses only the score and the position.
"""


def enough_recalls(recalls: int, features: int) -> bool:
    """Return whether ``recalls`` recalls suffice to test ``features`` numeric features."""
    return recalls >= _RECALLS_PER_FEATURE * (features + 1)


def name_numeric(names: Sequence[str], schema: pl.Schema) -> list[str]:
    """Return the names of the features that are numeric or boolean."""
    return [
        name
        for name in names
        if name in schema and (schema[name].is_numeric() or schema[name] == pl.Boolean)
    ]


def read_score(log: Log, names: Sequence[str], schema: pl.Schema) -> tuple[str | None, Floats]:
    """Return the name and values of the score that ranked the log, where higher is better.

    The score is ``score``, otherwise minus ``rank``, otherwise the first feature whose values decrease
    with the position of the certain items. If no feature does, the name is None and the score 0.
    """
    first = next((name for name in ("score", "rank") if name in schema), None)
    score = _read_columns(log, [] if first is None else [first]) * (-1 if first == "rank" else 1)
    if score.any() and np.ptp(score):
        return first, score
    # A log without the score that ranked it has the constant 0 there.
    numeric = name_numeric(names, schema)
    scores = _read_columns(log, numeric)
    ranking = _find_ranking(log, scores)
    if ranking is None:
        return None, np.zeros((len(log.recall), 1))
    return numeric[ranking], scores[:, [ranking]]


def select_features(
    log: Log, names: Sequence[str], schema: pl.Schema, recalls: int | None = None
) -> Floats:
    """Return the feature columns that tests and models use, f64[n, k].

    The first column is the score from ``read_score``. Numeric features follow if there are enough recalls
    for them; the number of recalls is ``recalls``, by default the log's own number.
    """
    numeric = name_numeric(names, schema)
    ranking, score = read_score(log, names, schema)
    is_enough = enough_recalls(len(log) if recalls is None else recalls, len(numeric))
    rest = [name for name in numeric if name not in (ranking, "score", "rank")] if is_enough else []
    return np.column_stack([score, _read_columns(log, rest)])


def _read_columns(log: Log, names: Sequence[str]) -> Floats:
    """Return columns of the candidates, f64[n, columns]; infinite and missing numbers become 0."""
    if not names:
        return np.zeros((len(log.recall), 0))
    values = log.pool(names).select(pl.col(name).cast(pl.Float64) for name in names).to_numpy()
    return np.asarray(np.where(np.isfinite(values), values, 0.0))


def _find_ranking(log: Log, scores: Floats) -> int | None:
    """Return the index of the first score column that decreases with the position of surely shown items.

    A share of exceptions is tolerated. The result is None if no column decreases.
    """
    rows = np.flatnonzero(log.exposed & (log.propensity >= CERTAIN) & (log.position > 0))
    rows = rows[np.lexsort((log.position[rows], log.recall[rows]))]
    is_next = np.diff(log.recall[rows]) == 0
    if not is_next.any():
        return None
    for column, score in enumerate(scores.T):
        steps = np.diff(score[rows])[is_next]
        if steps.any() and (steps > 0).mean() <= _MISRANKED:
            return column
    return None


def scale_ranks(score: Floats, log: Log) -> Floats:
    """Return each candidate's rank in its recall, from 0 for the highest score to below 1."""
    size = np.bincount(log.recall, minlength=len(log))
    first = np.cumsum(size) - size
    rows = pad_scores(score, log.recall, size)
    offset = np.arange(len(score)) - first[log.recall]
    if rows is None:
        order = np.lexsort((-score, log.recall))
        ranks = np.empty(len(score))
        ranks[order] = offset[order]
    else:
        order = np.argsort(-rows, axis=1, kind="stable")
        ranks = np.empty(rows.shape)
        np.put_along_axis(ranks, order, np.arange(rows.shape[1], dtype=np.float64)[None, :], axis=1)
        ranks = ranks[log.recall, offset]
    return np.asarray(ranks / np.maximum(size[log.recall], 1))
