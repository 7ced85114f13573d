"""Small regressions: ridge, logistic and isotonic."""

from __future__ import annotations

import numpy as np

from memlab.kernel.base.arrays import Flags, Floats

_STEPS = 100
"""Maximum number of Newton steps. Fits of logs take 4 to 10."""
_TOLERANCE = 1e-9
"""The relative size of the last step. Newton's error after it is about its square."""
_ROUNDING = 1e-12
"""The relative rounding of a sum of losses."""


def fit_ridge(features: Floats, target: Floats) -> Floats:
    """Fit a linear regression with a penalty of half the squared weights, without intercept.

    Parameters
    ----------
    features
        One row for each observation.
    target
        The value of each observation.

    Returns
    -------
    ndarray
        The weight of each feature, and the intercept last.
    """
    centre, mean = features.mean(axis=0), target.mean()
    centred = features - centre
    weights = np.linalg.solve(
        centred.T @ centred + np.eye(features.shape[1]), centred.T @ (target - mean)
    )
    return np.append(weights, mean - centre @ weights)


def fit_logistic(features: Floats, label: Flags) -> Floats:
    """Fit a logistic regression with the penalty of `fit_ridge`, by Newton's method.

    Parameters
    ----------
    features
        One row for each observation.
    label
        The class of each observation; both classes occur.

    Returns
    -------
    ndarray
        The weight of each feature, and the intercept last.
    """
    columns = np.column_stack((features, np.ones(len(features))))
    penalty = np.append(np.ones(features.shape[1]), 0.0)
    weights = np.zeros(columns.shape[1])
    for _ in range(_STEPS):
        chance = predict_chance(features, weights)
        gradient = columns.T @ (chance - label) + penalty * weights
        curvature = (columns.T * (chance * (1 - chance))) @ columns + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        # Far from the optimum a whole step may go too far.
        bound = _measure_loss(columns, label, penalty, weights) * (1 + _ROUNDING)
        while _measure_loss(columns, label, penalty, weights - step) > bound:
            step /= 2
        weights -= step
        if np.abs(step).max() <= _TOLERANCE * (1 + np.abs(weights).max()):
            break
    return weights


def _measure_loss(columns: Floats, label: Flags, penalty: Floats, weights: Floats) -> float:
    """Return the negative log-likelihood of the labels plus half the penalty times the squared weights."""
    signed = np.where(label, -1.0, 1.0) * (columns @ weights)
    return float(np.logaddexp(0.0, signed).sum() + (penalty * weights**2).sum() / 2)


def predict_chance(features: Floats, weights: Floats) -> Floats:
    """Return the probability of True for each row, using weights of `fit_logistic`.

    Parameters
    ----------
    features
        The rows.
    weights
        The weight of each feature, and the intercept last.

    Returns
    -------
    ndarray
        The probabilities.
    """
    return np.asarray(np.exp(-np.logaddexp(0.0, -(features @ weights[:-1] + weights[-1]))))


def fit_isotonic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Fit a non-decreasing function by pooling adjacent violators (Ayer et al. 1955).

    Parameters
    ----------
    x
        The argument of each observation.
    y
        The value of each observation.

    Returns
    -------
    tuple
        The distinct arguments in order, and the value of the function at each; linear in between.
    """
    points, index, counts = np.unique(x, return_inverse=True, return_counts=True)
    sums = np.bincount(index, weights=y)
    blocks: list[tuple[float, int, int]] = []  # the sum, the number of observations and of points
    for total, count in zip(sums.tolist(), counts.tolist(), strict=True):
        size = 1
        while blocks and blocks[-1][0] * count >= total * blocks[-1][1]:
            before = blocks.pop()
            total, count, size = total + before[0], count + before[1], size + before[2]
        blocks.append((total, count, size))
    means = np.array([total / count for total, count, _ in blocks])
    return points, means.repeat([size for *_, size in blocks])
