"""Estimators of rankings: each recall shows several items at places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from memlab.arguments import checked
from memlab.errors import InputError
from memlab.evaluation._clusters import Estimate
from memlab.evaluation.estimators._arrays import (
    Array,
    Clusters,
    Floats,
    Level,
    check_size,
    cube,
    estimated,
    mean_of,
    ratios,
    vector,
)

__all__ = [
    "cascade_dr",
    "click_ips",
    "independent_ips",
    "interaction_ips",
    "position_based",
    "pseudo_inverse",
    "slate_ips",
    "slate_weights",
]


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
    earned = known.sum(axis=1) if known.ndim == 2 else vector(reward, "reward")
    weight = ratios(vector(logged, "logged"), vector(target, "target"))
    check_size("logged", len(weight), len(earned))
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
    chance, wanted = vector(logged, "logged"), vector(target, "target")
    for name, given in (("logged", chance), ("target", wanted)):
        check_size(name, len(given), len(items))
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
    earned = vector(reward, "reward")
    weight = ratios(cube(logged, "logged"), cube(target, "target"))
    check_size("logged", len(weight), len(earned))
    return mean_of((1 + (weight - 1).sum(axis=1)) * earned, cluster, level)


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
    model, drawn = cube(expected, "expected"), cube(chosen, "chosen")
    check_size("expected", model.shape, earned.shape)
    check_size("chosen", drawn.shape, earned.shape)
    whole = np.cumprod(weight, axis=1)
    before = np.column_stack([np.ones(len(whole)), whole[:, :-1]])
    return mean_of((whole * (earned - model) + before * drawn).sum(axis=1), cluster, level)


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
    earned, seen = cube(reward, "reward"), vector(examination, "examination")
    places = [cube(given, name, dimensions=3) for given, name in ((logged, "logged"), (target, "target"))]
    for name, given in zip(("logged", "target"), places, strict=True):
        check_size(name, given.shape, (*earned.shape, len(seen)))
    if (seen < 0).any():
        raise InputError("examination is a probability of each place, none below 0.")
    return _weighted(ratios(places[0] @ seen, places[1] @ seen), earned, False, cluster, level)


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


def _weighted(
    weight: Floats, reward: Floats, normalise: bool, cluster: Sequence[object] | None, level: float
) -> Estimate:
    """Of f64[n, k]: the sum over places of the mean of weight times reward, or of their weighted means."""
    if not normalise:
        return mean_of((weight * reward).sum(axis=1), cluster, level)
    places = weight.shape[1]

    def normalised(totals: Floats) -> Floats:
        weights, earned = totals[..., 1 : 1 + places], totals[..., 1 + places :]
        return np.asarray(np.divide(earned, weights, out=np.zeros_like(earned), where=weights > 0).sum(axis=-1))

    return estimated([np.ones(len(weight)), *weight.T, *(weight * reward).T], normalised, cluster, level)


def _by_place(reward: ArrayLike, logged: ArrayLike, target: ArrayLike) -> tuple[Floats, Floats]:
    earned = cube(reward, "reward")
    chances = cube(logged, "logged"), cube(target, "target")
    for name, given in zip(("logged", "target"), chances, strict=True):
        check_size(name, given.shape, earned.shape)
    return ratios(*chances), earned
