"""Estimators beside the core of ``memlab.evaluate``: arrays in, a value with its interval out.

Of single choices: n recalls, each of which shows one of m items, drawn by known probabilities. Of rankings: n recalls
that show k items each. A target policy may be stochastic: it is given by its probabilities. Every interval is made by
the rule of ``memlab.evaluate``: the jackknife over ``cluster``, which names what belongs together (the i-th recall that
of ``cluster[i]``; each recall by itself unless given).

With ``w`` the probability under the target over that under the logging policy, r the reward and q the expected one:

    ips                  mean of w r                                         Horvitz & Thompson 1952
    snips                sum of w r / sum of w                               Swaminathan & Joachims 2015
    clipped_ips          mean of min(w, cap) r, and what that can hide       Ionides 2008; Bottou et al. 2013
    direct_method        mean of q under the target, q a ridge regression    Dudik, Langford & Li 2011
    doubly_robust        mean of q under the target + w (r - q)              Dudik, Langford & Li 2011
    switch_dr            the same, without w above a cap                     Wang, Agarwal & Dudik 2017
    shrunk_dr            the same, with w shrunk                             Su, Dimakopoulou et al. 2020
    slate_ips            mean of w r, w of whole slates                      Swaminathan et al. 2017
    pseudo_inverse       rewards that add up over places                     Swaminathan et al. 2017
    independent_ips      w of each item and place by itself                  Li et al. 2018
    interaction_ips      w of an item and all above it                       McInerney et al. 2020
    cascade_dr           the same with expected rewards                      Kiyohara et al. 2022
    position_based       w of an item's chance of being examined             Li et al. 2018
    click_ips            w of an item's chance of being clicked              Tanaka et al. 2026

What the log could not have shown is in none of them: where the target's probability is above 0 and the logging
policy's is 0, they are wrong by an unknown amount. ``memlab.evaluate`` bounds it.

>>> action, reward, propensity = [0, 1, 0, 1], [1.0, 0.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5]
>>> target = [[1.0, 0.0]] * 4                                                     # always shows the first
>>> ips(action, reward, propensity, target).value
1.0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.arguments import AsGiven, Within, checked
from memlab.errors import InputError
from memlab.evaluation._clusters import Estimate, Sample, Statistic, mean
from memlab.evaluation._model import predicted_rewards

__all__ = [
    "ClippedEstimate",
    "cascade_dr",
    "click_ips",
    "clipped_ips",
    "direct_method",
    "doubly_robust",
    "expected_rewards",
    "independent_ips",
    "interaction_ips",
    "ips",
    "position_based",
    "pseudo_inverse",
    "shrunk_dr",
    "slate_ips",
    "slate_weights",
    "snips",
    "switch_dr",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Array = Annotated[ArrayLike, AsGiven]
Clusters = Annotated[Sequence[object] | None, AsGiven]
Level = Annotated[float, Within(0.5, 0.9999)]
Above = Annotated[float, Within(0, above=True)]

_GROUPS = 400
"""Into so many groups fall recalls without clusters where leaving one out means to fit a model again."""


@dataclass(frozen=True)
class ClippedEstimate(Estimate):
    """A value of clipped weights; its interval holds what clipping can hide, which is ``bias`` at most."""

    bias: float


# -- one item a recall ------------------------------------------------------------------------------------------------


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
    return _mean(log.weight * log.reward, cluster, level)


@checked
def snips(
    action: Array, reward: Array, propensity: Array, target: Array, *, cluster: Clusters = None, level: Level = 0.95
) -> Estimate:
    """The weighted mean of the rewards: within their range, with a bias of order 1/n. Arguments as for ``ips``.

    >>> round(snips([0, 1], [1.0, 0.0], [0.8, 0.2], [[0.5, 0.5], [0.5, 0.5]]).value, 3)
    0.2
    """
    log = _Choices.of(action, reward, propensity, target)
    return _estimate([np.ones(len(log.reward)), log.weight, log.weight * log.reward], _ratio, cluster, level)


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

    found = _estimate(columns, least, cluster, level, upper=most)
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
    known, earned = _vector(reward, "reward"), _cube(features, "features", dimensions=3)
    shown = _places(action, known, earned.shape[1])
    _same("features", len(earned), len(known))
    rows = np.zeros(earned.shape[:2], dtype=np.bool_)
    rows[np.arange(len(known)), shown] = True
    rewards = np.full(earned.shape[:2], np.nan)
    rewards[np.arange(len(known)), shown] = known
    codes = np.repeat(_codes(cluster, len(known)), earned.shape[1])
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
    known, given = _vector(reward, "reward"), _cube(features, "features", dimensions=3)
    chances = _probabilities(target, len(known))
    _same("features", given.shape[:2], chances.shape)
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

    codes = np.arange(len(known)) % _GROUPS if cluster is None else _codes(cluster, len(known))
    return _by_sums(columns, predicted, codes, level)


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
        return _mean(log.model + log.weight * log.residual, cluster, level)
    columns = [np.ones(len(log.reward)), log.weight, log.weight * log.residual, log.model]
    return _estimate(columns, lambda totals: _ratio(totals) + totals[..., 3] / totals[..., 0], cluster, level)


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
    return _mean(log.model + np.where(log.weight <= cap, log.weight, 0.0) * log.residual, cluster, level)


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
    return _mean(log.model + weight * log.residual, cluster, level)


# -- rankings ---------------------------------------------------------------------------------------------------------


@checked
def slate_ips(
    reward: Array,
    logged: Array,
    target: Array,
    *,
    normalise: bool = False,
    cluster: Clusters = None,
    level: Level = 0.95,
) -> Estimate:
    """The rewards of whole slates, weighted by the probability of the slate: nothing is assumed of what earns them.

    ``reward`` is f64[n] or f64[n, k], which is summed; ``logged`` and ``target`` f64[n] are the probabilities of the
    slate that was shown, under either policy. ``normalise`` divides by the sum of weights in place of n.

    >>> slate_ips([1.0, 0.0], [0.25, 0.5], [0.5, 0.25]).value
    1.0
    """
    known = np.asarray(reward, dtype=np.float64)
    earned = known.sum(axis=1) if known.ndim == 2 else _vector(reward, "reward")
    weight = _ratios(_vector(logged, "logged"), _vector(target, "target"))
    _same("logged", len(weight), len(earned))
    return _weighted(weight[:, None], earned[:, None], normalise, cluster, level)


@checked
def slate_weights(slates: Array, logged: Array, target: Array) -> Floats:
    """By how much each slate that could be shown counts, f64[s], where rewards add up over items and places.

    ``slates`` int[s, k] lists all slates that the logging policy could show, ``logged`` and ``target`` f64[s] are their
    probabilities. The weight of a slate is 1_target' G^+ 1_slate, G the mean of 1_slate 1_slate' under logging: the
    pseudo-inverse of Swaminathan et al. (2017). The mean of weight times the reward of a whole slate is the value.

    >>> slate_weights([[0, 1], [1, 0]], [0.5, 0.5], [1.0, 0.0]).round(9).tolist()
    [2.0, 0.0]
    """
    items = np.asarray(slates)
    if items.ndim != 2 or not np.issubdtype(items.dtype, np.integer) or not items.size or items.min() < 0:
        raise InputError(f"slates is int[s, k], items from 0; not an array of {items.dtype} and shape {items.shape}.")
    chance, wanted = _vector(logged, "logged"), _vector(target, "target")
    for name, given in (("logged", chance), ("target", wanted)):
        _same(name, len(given), len(items))
        if (given < 0).any() or abs(given.sum() - 1) > 1e-6:
            raise InputError(f"{name} is a probability for each slate; these add up to {given.sum():g}.")
    count = int(items.max()) + 1
    places = np.zeros((len(items), items.shape[1] * count))
    for place in range(items.shape[1]):
        places[np.arange(len(items)), place * count + items[:, place]] = 1.0
    moments = (places * chance[:, None]).T @ places
    return np.asarray(places @ np.linalg.pinv(moments, hermitian=True) @ (wanted @ places))


@checked
def pseudo_inverse(
    reward: Array, logged: Array, target: Array, *, cluster: Clusters = None, level: Level = 0.95
) -> Estimate:
    """The reward of slates whose places are drawn independently, if it is a sum over places that nobody observes.

    ``reward`` f64[n] is that of the whole slate; ``logged`` and ``target`` f64[n, k] are the probabilities of what was
    shown at each place: the weight is 1 + the sum of (target / logged - 1). For other logging policies (rankings
    without repetition), ``slate_weights`` gives the weights.

    >>> pseudo_inverse([1.0, 0.0], [[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.5], [0.0, 0.5]]).value
    1.0
    """
    earned = _vector(reward, "reward")
    weight = _ratios(_cube(logged, "logged"), _cube(target, "target"))
    _same("logged", len(weight), len(earned))
    return _mean((1 + (weight - 1).sum(axis=1)) * earned, cluster, level)


@checked
def independent_ips(
    reward: Array,
    logged: Array,
    target: Array,
    *,
    normalise: bool = False,
    cluster: Clusters = None,
    level: Level = 0.95,
) -> Estimate:
    """Rewards by item and place: what an item earns depends on where it stands, and on no other item.

    ``reward`` f64[n, k] is what was earned at each place; ``logged`` and ``target`` f64[n, k] are the probabilities of
    that item at that place. ``normalise`` divides what each place earned by the sum of its weights in place of n.

    >>> independent_ips([[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5]] * 2, [[1.0, 1.0], [0.0, 0.0]]).value
    1.0
    """
    return _weighted(*_by_place(reward, logged, target), normalise, cluster, level)


@checked
def interaction_ips(
    reward: Array,
    logged: Array,
    target: Array,
    *,
    normalise: bool = False,
    cluster: Clusters = None,
    level: Level = 0.95,
) -> Estimate:
    """Rewards in a cascade: what an item earns depends on the items above it, and on none below.

    ``logged`` and ``target`` f64[n, k] are the probabilities of the item at each place given the items above it; their
    products weigh. Other arguments as for ``independent_ips``.

    >>> interaction_ips([[1.0, 1.0]], [[0.5, 1.0]], [[1.0, 1.0]]).value
    4.0
    """
    weight, earned = _by_place(reward, logged, target)
    return _weighted(np.asarray(np.cumprod(weight, axis=1)), earned, normalise, cluster, level)


@checked
def cascade_dr(
    reward: Array,
    logged: Array,
    target: Array,
    expected: Array,
    chosen: Array,
    *,
    cluster: Clusters = None,
    level: Level = 0.95,
) -> Estimate:
    """The cascade of ``interaction_ips`` with a model of what a place and those below it earn: doubly robust.

    ``expected`` f64[n, k] is what the model expects from each place on, given the items down to that which was shown
    there; ``chosen`` f64[n, k] the same with the item there drawn by the target. Any model leaves it unbiased.

    >>> cascade_dr([[1.0]], [[0.5]], [[1.0]], [[0.8]], [[0.8]]).value
    1.2
    """
    weight, earned = _by_place(reward, logged, target)
    model, drawn = _cube(expected, "expected"), _cube(chosen, "chosen")
    _same("expected", model.shape, earned.shape)
    _same("chosen", drawn.shape, earned.shape)
    whole = np.cumprod(weight, axis=1)
    before = np.column_stack([np.ones(len(whole)), whole[:, :-1]])
    return _mean((whole * (earned - model) + before * drawn).sum(axis=1), cluster, level)


@checked
def position_based(
    reward: Array,
    logged: Array,
    target: Array,
    examination: Array,
    *,
    cluster: Clusters = None,
    level: Level = 0.95,
) -> Estimate:
    """Rewards by item, seen with a chance that depends on the place alone: the position-based model.

    ``reward`` f64[n, k] of each item shown; ``logged`` and ``target`` f64[n, k, places] are the probabilities that
    this item stands at each place (all 0: it is not shown); ``examination`` f64[places] that a place is looked at, on
    any scale. The weight of an item is its chance of being examined under the target over that under logging.

    >>> position_based([[1.0]], [[[0.0, 1.0]]], [[[1.0, 0.0]]], [1.0, 0.5]).value
    2.0
    """
    earned, seen = _cube(reward, "reward"), _vector(examination, "examination")
    places = [_cube(given, name, dimensions=3) for given, name in ((logged, "logged"), (target, "target"))]
    for name, given in zip(("logged", "target"), places, strict=True):
        _same(name, given.shape, (*earned.shape, len(seen)))
    if (seen < 0).any():
        raise InputError("examination is a probability of each place, none below 0.")
    return _weighted(_ratios(places[0] @ seen, places[1] @ seen), earned, False, cluster, level)


@checked
def click_ips(
    reward: Array, logged: Array, target: Array, *, cluster: Clusters = None, level: Level = 0.95
) -> Estimate:
    """The order of what was shown, where the log always shows the same: weights are ratios of click probabilities.

    ``logged`` and ``target`` f64[n, k] are the probabilities of a click on each item that was shown, by a click model,
    in the order of the log and in that of the target (examination times attraction); ``reward`` f64[n, k] follows a
    click. An item's reward must not depend on the others, and of what was never shown it says nothing.

    >>> click_ips([[1.0, 0.0]], [[0.5, 0.25]], [[0.25, 0.5]]).value
    0.5
    """
    return _weighted(*_by_place(reward, logged, target), False, cluster, level)


# -- what they share --------------------------------------------------------------------------------------------------


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
        known = _vector(reward, "reward")
        chances = _probabilities(target, len(known))
        at = np.arange(len(known)), _places(action, known, chances.shape[1])
        logged = _vector(propensity, "propensity")
        _same("propensity", len(logged), len(known))
        weight = _ratios(logged, chances[at], name="propensity")
        if expected is None:
            return cls(weight, known, known, np.zeros(len(known)))
        model = _cube(expected, "expected")
        _same("expected", model.shape, chances.shape)
        return cls(weight, known, known - model[at], (chances * model).sum(axis=1))


def _mean(values: Floats, cluster: Sequence[object] | None, level: float) -> Estimate:
    return _estimate([np.ones(len(values)), values], mean, cluster, level)


def _weighted(
    weight: Floats, reward: Floats, normalise: bool, cluster: Sequence[object] | None, level: float
) -> Estimate:
    """Of f64[n, k]: the sum over places of the mean of weight times reward, or of their weighted means."""
    if not normalise:
        return _mean((weight * reward).sum(axis=1), cluster, level)
    places = weight.shape[1]

    def normalised(totals: Floats) -> Floats:
        weights, earned = totals[..., 1 : 1 + places], totals[..., 1 + places :]
        return np.asarray(np.divide(earned, weights, out=np.zeros_like(earned), where=weights > 0).sum(axis=-1))

    return _estimate([np.ones(len(weight)), *weight.T, *(weight * reward).T], normalised, cluster, level)


def _ratio(totals: Floats) -> Floats:
    return np.asarray(totals[..., 2] / totals[..., 1])


def _estimate(
    columns: Sequence[Floats],
    statistic: Statistic,
    cluster: Sequence[object] | None,
    level: float,
    *,
    upper: Statistic | None = None,
) -> Estimate:
    codes = _codes(cluster, len(columns[0]))
    return _by_sums(np.column_stack(columns), statistic, codes, level, upper)


def _by_sums(
    columns: Floats, statistic: Statistic, codes: Ints, level: float, upper: Statistic | None = None
) -> Estimate:
    sums = np.zeros((int(codes.max()) + 1, columns.shape[1]))
    np.add.at(sums, codes, columns)
    return Sample(sums, level=level).estimate(statistic, upper)


def _codes(cluster: Sequence[object] | None, count: int) -> Ints:
    if cluster is None:
        return np.arange(count)
    _same("cluster", len(cluster), count)
    order = {name: place for place, name in enumerate(dict.fromkeys(cluster))}
    return np.array([order[name] for name in cluster], dtype=np.int64)


def _by_place(reward: ArrayLike, logged: ArrayLike, target: ArrayLike) -> tuple[Floats, Floats]:
    earned = _cube(reward, "reward")
    chances = _cube(logged, "logged"), _cube(target, "target")
    for name, given in zip(("logged", "target"), chances, strict=True):
        _same(name, given.shape, earned.shape)
    return _ratios(*chances), earned


def _ratios(logged: Floats, target: Floats, name: str = "logged") -> Floats:
    """Target over logged; what was shown had a probability above 0."""
    _same("target", target.shape, logged.shape)
    if not ((logged > 0) & (logged <= 1 + 1e-9)).all():
        raise InputError(f"{name} holds the probability of what was shown, above 0 and at most 1.")
    if not ((target >= 0) & (target <= 1 + 1e-9)).all():
        raise InputError("target holds probabilities, from 0 to 1.")
    return target / logged


def _probabilities(target: ArrayLike, count: int) -> Floats:
    found = _cube(target, "target")
    _same("target", len(found), count)
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


def _vector(given: ArrayLike, name: str) -> Floats:
    return _cube(given, name, dimensions=1)


def _cube(given: ArrayLike, name: str, *, dimensions: int = 2) -> Floats:
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is an array of numbers.") from None
    if found.ndim != dimensions or not found.size:
        raise InputError(f"{name} has {dimensions} dimensions and holds something; not the shape {found.shape}.")
    if name != "features" and not np.isfinite(found).all():
        raise InputError(f"{name} holds numbers that are not finite.")
    return found


def _same(name: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise InputError(f"{name} is of the size {found}; the other arrays are of {wanted}.")
