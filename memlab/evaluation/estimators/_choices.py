"""Estimators of single choices: each recall shows one item."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from memlab.arguments import Within, checked
from memlab.errors import InputError
from memlab.evaluation._clusters import Estimate
from memlab.evaluation._model import predicted_rewards
from memlab.evaluation.estimators._arrays import (
    Array,
    Clusters,
    Floats,
    Ints,
    Level,
    by_sums,
    check_size,
    codes_of,
    cube,
    estimated,
    mean_of,
    ratios,
    vector,
)

__all__ = [
    "ClippedEstimate",
    "clipped_ips",
    "direct_method",
    "doubly_robust",
    "expected_rewards",
    "ips",
    "shrunk_dr",
    "snips",
    "switch_dr",
]

Above = Annotated[float, Within(0, above=True)]

_GROUPS = 400
"""Into so many groups fall recalls without clusters where leaving one out means to fit a model again."""


@dataclass(frozen=True)
class ClippedEstimate(Estimate):
    """A value of clipped weights; its interval holds what clipping can hide, which is ``bias`` at most."""

    bias: float


@checked
def ips(
    action: Array, reward: Array, propensity: Array, target: Array, *, cluster: Clusters = None, level: Level = 0.95
) -> Estimate:
    """The mean of the rewards, weighted by inverse propensities: without bias, and of great variance.

    ``action`` int[n] is what was shown, ``reward`` f64[n] what it earned, ``propensity`` f64[n] with which probability
    it was shown; ``target`` f64[n, m] gives the probability of each item under the other policy.

    >>> ips([0, 1], [1.0, 0.0], [0.8, 0.2], [[0.5, 0.5], [0.5, 0.5]]).value
    0.3125
    """
    log = _Choices.of(action, reward, propensity, target)
    return mean_of(log.weight * log.reward, cluster, level)


@checked
def snips(
    action: Array, reward: Array, propensity: Array, target: Array, *, cluster: Clusters = None, level: Level = 0.95
) -> Estimate:
    """The weighted mean of the rewards: within their range, with a bias of order 1/n. Arguments as for ``ips``.

    >>> round(snips([0, 1], [1.0, 0.0], [0.8, 0.2], [[0.5, 0.5], [0.5, 0.5]]).value, 3)
    0.2
    """
    log = _Choices.of(action, reward, propensity, target)
    return estimated([np.ones(len(log.reward)), log.weight, log.weight * log.reward], _ratio, cluster, level)


@checked
def clipped_ips(
    action: Array,
    reward: Array,
    propensity: Array,
    target: Array,
    *,
    cap: Above,
    reward_range: tuple[float, float] = (0.0, 1.0),
    cluster: Clusters = None,
    level: Level = 0.95,
) -> ClippedEstimate:
    """The value by weights of at most ``cap``, in an interval that holds the bias that this brings.

    Weights are 1 on average; what clipping takes from that is the part of the target's choices that is not counted,
    and it earns something within ``reward_range`` (Bottou et al. 2013).

    >>> found = clipped_ips([0, 1], [1.0, 0.0], [0.8, 0.2], [[0.5, 0.5], [0.5, 0.5]], cap=2.0)
    >>> found.value, found.bias
    (0.3125, 0.0)
    """
    log = _Choices.of(action, reward, propensity, target)
    low, high = reward_range
    if not (np.isfinite([low, high]).all() and low < high):
        raise InputError(f"reward_range runs from the least to the greatest reward; not {reward_range!r}.")
    clipped = np.minimum(log.weight, cap)
    columns = [np.ones(len(clipped)), clipped, clipped * log.reward]

    def least(totals: Floats) -> Floats:
        return np.asarray((totals[..., 2] + np.maximum(totals[..., 0] - totals[..., 1], 0.0) * low) / totals[..., 0])

    def most(totals: Floats) -> Floats:
        return np.asarray((totals[..., 2] + np.maximum(totals[..., 0] - totals[..., 1], 0.0) * high) / totals[..., 0])

    found = estimated(columns, least, cluster, level, upper=most)
    missing = max(0.0, 1.0 - float(clipped.mean()))
    value = float((clipped * log.reward).mean())
    return ClippedEstimate(**(asdict(found) | {"value": value}), bias=missing * max(abs(low), abs(high)))


@checked
def expected_rewards(
    action: Array,
    reward: Array,
    features: Array,
    *,
    reward_range: tuple[float, float] = (0.0, 1.0),
    cluster: Clusters = None,
) -> Floats:
    """What each item would earn, f64[n, m], by models that never saw the cluster they predict (five folds).

    ``features`` f64[n, m, d] describe each item of each recall, NaN where unknown. A logistic regression where rewards
    are 0 and 1, ridge regression otherwise. For ``doubly_robust`` and its like. InputError where there is too little.
    """
    known, earned = vector(reward, "reward"), cube(features, "features", dimensions=3)
    shown = _places(action, known, earned.shape[1])
    check_size("features", len(earned), len(known))
    rows = np.zeros(earned.shape[:2], dtype=np.bool_)
    rows[np.arange(len(known)), shown] = True
    rewards = np.full(earned.shape[:2], np.nan)
    rewards[np.arange(len(known)), shown] = known
    codes = np.repeat(codes_of(cluster, len(known)), earned.shape[1])
    flat = earned.reshape(-1, earned.shape[2])
    found = predicted_rewards(flat, rewards.ravel(), rows.ravel(), codes, reward_range)
    if found is None:
        raise InputError("There are too few rewards, too few clusters or no features: no model can be fitted.")
    return found.reshape(rows.shape)


@checked
def direct_method(
    action: Array,
    reward: Array,
    target: Array,
    features: Array,
    *,
    ridge: Annotated[float, Within(0)] = 1.0,
    cluster: Clusters = None,
    level: Level = 0.95,
) -> Estimate:
    """What a ridge regression expects of the target's choices: an extrapolation, which no weight corrects.

    ``features`` f64[n, m, d] describe each item of each recall; a constant is added. The interval holds what the model
    would say on other data, for it is fitted again without each cluster (of recalls without clusters, without each of
    400 groups). That rewards are no linear function of the features is not in it.

    >>> features = [[[0.0], [1.0]]] * 4
    >>> round(direct_method([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0], [[0.0, 1.0]] * 4, features, ridge=0.0).value, 6)
    1.0
    """
    known, given = vector(reward, "reward"), cube(features, "features", dimensions=3)
    chances = _probabilities(target, len(known))
    check_size("features", given.shape[:2], chances.shape)
    given = np.concatenate([np.ones((*given.shape[:2], 1)), given], axis=2)
    shown = given[np.arange(len(known)), _places(action, known, given.shape[1])]
    size = given.shape[2]
    wanted = np.einsum("nm,nmd->nd", chances, given)
    squares = np.einsum("nd,ne->nde", shown, shown).reshape(len(known), size * size)
    columns = np.column_stack([np.ones(len(known)), squares, shown * known[:, None], wanted])
    penalty = ridge * np.diag([0.0] + [1.0] * (size - 1))

    def predicted(totals: Floats) -> Floats:
        products = totals[..., 1 : 1 + size * size].reshape(*totals.shape[:-1], size, size) + penalty
        targets = totals[..., 1 + size * size : 1 + size * size + size]
        weights = np.linalg.pinv(products, hermitian=True) @ targets[..., None]
        return np.asarray((totals[..., -size:] * weights[..., 0]).sum(axis=-1) / totals[..., 0])

    codes = np.arange(len(known)) % _GROUPS if cluster is None else codes_of(cluster, len(known))
    return by_sums(columns, predicted, codes, level)


@checked
def doubly_robust(
    action: Array,
    reward: Array,
    propensity: Array,
    target: Array,
    expected: Array,
    *,
    normalise: bool = False,
    cluster: Clusters = None,
    level: Level = 0.95,
) -> Estimate:
    """What a model expects, corrected by the weighted error that it makes on what was shown.

    ``expected`` f64[n, m] is the reward that a model expects of each item, fitted without the recall itself
    (``expected_rewards``). Unbiased whatever the model says; ``normalise`` divides the correction by the weights' sum
    in place of n (self-normalised). Other arguments as for ``ips``.

    >>> doubly_robust([0, 1], [1.0, 0.0], [0.8, 0.2], [[0.5, 0.5]] * 2, [[1.0, 0.0]] * 2).value
    0.5
    """
    log = _Choices.of(action, reward, propensity, target, expected)
    if not normalise:
        return mean_of(log.model + log.weight * log.residual, cluster, level)
    columns = [np.ones(len(log.reward)), log.weight, log.weight * log.residual, log.model]
    return estimated(columns, lambda totals: _ratio(totals) + totals[..., 3] / totals[..., 0], cluster, level)


@checked
def switch_dr(
    action: Array,
    reward: Array,
    propensity: Array,
    target: Array,
    expected: Array,
    *,
    cap: Above,
    cluster: Clusters = None,
    level: Level = 0.95,
) -> Estimate:
    """Doubly robust where the weight is at most ``cap``, the model alone where it is greater.

    >>> switch_dr([0, 1], [1.0, 0.0], [0.8, 0.2], [[0.5, 0.5]] * 2, [[0.9, 0.1]] * 2, cap=1.0).value
    0.53125
    """
    log = _Choices.of(action, reward, propensity, target, expected)
    return mean_of(log.model + np.where(log.weight <= cap, log.weight, 0.0) * log.residual, cluster, level)


@checked
def shrunk_dr(
    action: Array,
    reward: Array,
    propensity: Array,
    target: Array,
    expected: Array,
    *,
    shrinkage: Above,
    cluster: Clusters = None,
    level: Level = 0.95,
) -> Estimate:
    """Doubly robust with weights w shrunk to s w / (w^2 + s), s the ``shrinkage``: optimistic shrinkage.

    With s near 0 it is the model alone, with a great one doubly robust.

    >>> round(shrunk_dr([0, 1], [1.0, 0.0], [0.8, 0.2], [[0.5, 0.5]] * 2, [[0.9, 0.1]] * 2, shrinkage=1.0).value, 4)
    0.5052
    """
    log = _Choices.of(action, reward, propensity, target, expected)
    weight = shrinkage * log.weight / (log.weight**2 + shrinkage)
    return mean_of(log.model + weight * log.residual, cluster, level)


@dataclass(frozen=True)
class _Choices:
    """f64[n] each: the weight of what was shown, its reward, and with a model what that makes of it."""

    weight: Floats
    reward: Floats
    residual: Floats
    model: Floats

    @classmethod
    def of(
        cls,
        action: ArrayLike,
        reward: ArrayLike,
        propensity: ArrayLike,
        target: ArrayLike,
        expected: ArrayLike | None = None,
    ) -> _Choices:
        known = vector(reward, "reward")
        chances = _probabilities(target, len(known))
        at = np.arange(len(known)), _places(action, known, chances.shape[1])
        logged = vector(propensity, "propensity")
        check_size("propensity", len(logged), len(known))
        weight = ratios(logged, chances[at], name="propensity")
        if expected is None:
            return cls(weight, known, known, np.zeros(len(known)))
        model = cube(expected, "expected")
        check_size("expected", model.shape, chances.shape)
        return cls(weight, known, known - model[at], (chances * model).sum(axis=1))


def _ratio(totals: Floats) -> Floats:
    return np.asarray(totals[..., 2] / totals[..., 1])


def _probabilities(target: ArrayLike, count: int) -> Floats:
    found = cube(target, "target")
    check_size("target", len(found), count)
    sums = found.sum(axis=1)
    if (found < 0).any() or (sums > 1 + 1e-6).any():
        raise InputError(f"A row of target adds up to 1 at most; one adds up to {sums.max():g}.")
    return found


def _places(action: ArrayLike, reward: Floats, items: int) -> Ints:
    found = np.asarray(action)
    if found.shape != reward.shape or not np.issubdtype(found.dtype, np.integer):
        raise InputError(f"action is int[{len(reward)}], not an array of {found.dtype} and shape {found.shape}.")
    if len(found) and not (found.min() >= 0 and found.max() < items):
        raise InputError(f"action counts items from 0 to {items - 1}; it has {found.min()} to {found.max()}.")
    return found.astype(np.int64)
