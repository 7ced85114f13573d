"""How often each place of a slate is looked at, from items that stand at random places.

A probe stands at a random place among the head, so an item of rank k stands at k or at k + 1 by chance: the same item,
seen from two places. Of S items shown it moves with probability k/S; what it then earns less is the place's doing alone
(intervention harvesting: Agarwal, Zaitsev, Wang, Li, Najork & Joachims 2019). The probe itself stands at each of the S
places equally often. Under the position-based model an item earns what it is worth times theta of its place, here
theta_k = k^-eta: given that an item earned at one of its places, at which one is a logistic regression on eta.

Whether places are random is tested, not believed: a probe's place must follow neither its rank nor anything constant.

A challenge by lot orders what it shows by the best rank that any pack gave an item, and what is better is seldom shown
below what is worse. But how many of the items before it were drawn is chance, and so is an item's place less the mean
of the places that it might have had.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.science.evaluation._intervals import Estimate, Floats, Ints, Sample
from memlab.science.evaluation._log import CERTAIN, Log, challenges_of, left_to_chance
from memlab.science.evaluation._tests import by_recall, hotelling_p

__all__ = ["Examination", "Places", "harvest", "lot_p", "moved_p", "random_places"]

_ODDS = 0.001
_EVEN = 1e-6
_MOST = 3
"""So many probes of a recall are looked at, each beside all else that it shows."""


@dataclass(frozen=True)
class Places:
    """Of each probe (``probe``, its row): every other item shown (``row``) in the order of what was shown without it.

    ``at`` is an item's place in that order, from 1; ``moved`` whether the probe stands before it; ``size`` how many
    items were shown.
    """

    probe: Ints
    probe_size: Ints
    row: Ints
    at: Ints
    moved: NDArray[np.bool_]
    size: Ints


def random_places(log: Log, ranks: Floats) -> Places | None:
    """Probes and what stands beside them; None where their places are not random. ``ranks`` is f64[n], 0..1."""
    shown = np.flatnonzero(log.shown)
    recall, position = log.recall[shown], log.position[shown]
    size = np.bincount(recall, minlength=len(log))
    seats = recall * (int(size.max(initial=0)) + 1) + position
    if (
        not len(shown)
        or not ((position >= 1) & (position <= size[recall])).all()
        or len(np.unique(seats)) < len(seats)
    ):
        return None
    chance = log.propensity[shown]
    probes = np.flatnonzero(left_to_chance(chance) & (size[recall] > 1))
    if not len(probes):
        return None
    off = position[probes] - (size[recall[probes]] + 1) / 2
    weighed = off[:, None] * np.column_stack([np.ones(len(probes)), ranks[shown[probes]]])
    if not hotelling_p(by_recall(weighed, recall[probes])) >= _ODDS:
        return None
    first = np.concatenate([[True], recall[probes][1:] != recall[probes][:-1]])
    number = np.arange(len(probes)) - np.flatnonzero(first)[np.cumsum(first) - 1]
    parts = []
    for order in range(min(_MOST, int(number.max()) + 1)):
        chosen = probes[number == order]
        place, own = np.zeros(len(log), dtype=np.int64), np.zeros(len(shown), dtype=np.bool_)
        place[recall[chosen]], own[chosen] = position[chosen], True
        others = np.flatnonzero((place[recall] > 0) & ~own)
        moved = position[others] > place[recall[others]]
        parts.append((chosen, others, position[others] - moved, moved))
    probe, others, at, moved = (
        np.concatenate([part[column] for part in parts]) for column in range(4)
    )
    return Places(shown[probe], size[recall[probe]], shown[others], at, moved, size[recall[others]])


def moved_p(places: Places, log: Log) -> float:
    """The p-value of rewards that do not follow the place, by the random places alone: nothing else differs."""
    reward = np.nan_to_num(log.reward)
    stays = (places.size - places.at) / places.size
    here, next_ = np.log(places.at), np.log(places.at + 1.0)
    excess = np.where(places.moved, next_, here) - stays * here - (1 - stays) * next_
    own = np.log(log.position[places.probe]) - _mean_log(places.probe_size)
    parts = np.concatenate([reward[places.row] * excess, reward[places.probe] * own])
    return hotelling_p(
        by_recall(parts[:, None], log.recall[np.concatenate([places.row, places.probe])])
    )


def lot_p(log: Log) -> float | None:
    """The same for a challenge by lot, by which items stand before an item by chance; None where nothing was drawn so.

    Of n items on which packs differ d are shown, each as likely: beside one that was drawn another one is with
    probability (d - 1) / (n - 1), beside one that was certain with d / n.
    """
    parts = []
    for number, one in enumerate(challenges_of(log)):
        if one is not None and one.design == "lot":
            heads = [one.live, *(head.ids for head in one.heads.values())]
            parts += [
                (number, item, rank, len(heads)) for head in heads for rank, item in enumerate(head)
            ]
    if not parts:
        return None
    given = pl.DataFrame(parts, schema=["recall", "memory_id", "rank", "heads"], orient="row")
    given = given.with_columns(pl.col("memory_id").cast(log.ids["memory_id"].dtype))
    items = (
        given.group_by("recall", "memory_id", "heads")
        .agg(pl.col("rank").min(), votes=pl.len())
        .sort("recall", "rank")
    )
    found = log.rows_of(items.select("recall", "memory_id"))
    items, row = items.filter(found.is_not_null()), found.drop_nulls().to_numpy()
    recall, place = items["recall"].to_numpy(), items["rank"].to_numpy()
    free = (items["votes"] < items["heads"]).to_numpy()
    count = np.bincount(recall, weights=free, minlength=len(log))[recall]
    draws = np.bincount(recall, weights=free & log.shown[row], minlength=len(log))[recall]
    with np.errstate(divide="ignore", invalid="ignore"):
        beside = np.where(free, np.where(count > 1, (draws - 1) / (count - 1), 0.0), draws / count)
        even = np.abs(log.propensity[row] - draws / count) < _EVEN
    # not in every recall by lot
    uneven = np.bincount(recall, weights=free & ~even, minlength=len(log))[recall] > 0
    width = int(place.max()) + 1
    key = recall * width + place

    def before(among: NDArray[np.bool_]) -> Floats:
        """How many of them stand before each item of its recall; of those of the same rank half."""
        keys = key[among]
        lower, upper = (np.searchsorted(keys, key, side=side) for side in ("left", "right"))
        return np.asarray((lower + upper - among) / 2 - np.searchsorted(keys, recall * width))

    with np.errstate(invalid="ignore"):
        usual = 1 + before(~free) + np.where(count > 0, before(free) * beside, 0.0)
    counted = log.answered[row] & (log.position[row] > 0) & ~uneven & (count > 0)
    if not counted.any():
        return None
    reward, off = log.reward[row[counted]], log.position[row[counted]] - usual[counted]
    return hotelling_p(by_recall(((reward - reward.mean()) * off)[:, None], recall[counted]))


def _mean_log(size: Ints) -> Floats:
    return np.array(
        [np.log(np.arange(1, most + 1)).mean() if most else 0.0 for most in range(size.max() + 1)]
    )[size]


@dataclass(frozen=True)
class Examination:
    """theta_k = k^-eta. ``counts`` f64[recalls, c] are what eta is a function of, which ``solve`` is."""

    eta: Estimate
    counts: Floats = field(repr=False)
    _cells: _Cells = field(repr=False)
    _extras: Ints = field(repr=False)
    """Of each candidate: how many items at random places its recall shows."""
    _others: Ints = field(repr=False)
    """How many others, and the candidate's place among them, 0 for a probe and for what was not shown."""
    _at: Ints = field(repr=False)

    def solve(self, counts: Floats) -> Floats:
        """eta, f64[...], from sums of counts f64[..., c]."""
        return self._cells.solve(counts)

    def theta(self, place: Ints | Floats, eta: float) -> Floats:
        """How often places are looked at, the first one always."""
        return np.asarray(np.asarray(place, dtype=np.float64) ** -eta)

    def seen(self, eta: float) -> Floats:
        """f64[n]: how often each candidate that was shown would be looked at, over the places at which it might have
        stood; 1 for what was not shown.
        """
        found = np.ones(len(self._at))
        keys, inverse = np.unique(
            np.stack([self._extras, self._others, self._at]), axis=1, return_inverse=True
        )
        values = np.ones(keys.shape[1])
        for column, (extras, others, at) in enumerate(keys.T.tolist()):
            if at == 0:
                values[column] = (
                    self.theta(np.arange(1, extras + others + 1), eta).mean() if extras else 1.0
                )
                continue
            before = np.arange(extras + 1)
            ways = [
                math.comb(at - 1 + j, j) * math.comb(others - at + extras - j, extras - j)
                for j in before.tolist()
            ]
            values[column] = float(np.array(ways) @ self.theta(at + before, eta)) / math.comb(
                others + extras, extras
            )
        found[:] = values[inverse.ravel()]
        return found


def harvest(places: Places, log: Log, level: float) -> Examination | None:
    """The examination of places; None where nothing at a random place earned anything."""
    reward = np.nan_to_num(log.reward)
    cells = _Cells(np.unique(places.probe_size))
    counts = np.zeros((len(log), cells.width))
    column = cells.first[places.size] + 2 * (places.at - 1) + places.moved
    np.add.at(counts, (log.recall[places.row], column), reward[places.row])
    own = cells.first[places.probe_size] + 2 * (places.probe_size - 1)
    recall, earned = log.recall[places.probe], reward[places.probe]
    np.add.at(counts, (recall, own), earned)
    np.add.at(counts, (recall, own + 1), earned * np.log(log.position[places.probe]))
    if not counts.any():
        return None
    sums = np.zeros((log.clusters, 1 + cells.width))
    np.add.at(sums, log.cluster, np.column_stack([np.ones(len(log)), counts]))
    eta = Sample(sums, level=level).estimate(lambda totals: cells.solve(totals[..., 1:]))
    return Examination(eta, counts, cells, *_arranged(log))


def _arranged(log: Log) -> tuple[Ints, Ints, Ints]:
    shown = np.flatnonzero(log.shown)
    shown = shown[np.lexsort((log.position[shown], log.recall[shown]))]
    recall, extra = log.recall[shown], log.propensity[shown] < CERTAIN
    extras = np.bincount(recall, weights=extra, minlength=len(log)).astype(np.int64)
    others = np.bincount(recall, weights=~extra, minlength=len(log)).astype(np.int64)
    before = np.cumsum(others) - others
    at = np.zeros(len(log.recall), dtype=np.int64)
    at[shown] = np.where(extra, 0, np.cumsum(~extra) - before[recall])
    by_row = np.where(log.shown, extras[log.recall], 0), np.where(log.shown, others[log.recall], 0)
    return by_row[0], by_row[1], at


class _Cells:
    """Columns of counts. Of each size S: for k below S what was earned at k and at k + 1 by what may stand at both,
    and of probes what they earned, and that times the logarithm of the place.
    """

    def __init__(self, sizes: Ints) -> None:
        self.sizes = sizes.tolist()
        self.first = np.zeros(max(self.sizes) + 1, dtype=np.int64)
        self.width = 0
        for size in self.sizes:
            self.first[size] = self.width
            self.width += 2 * size

    def solve(self, counts: Floats) -> Floats:
        """The eta at which the likelihood is greatest, by Newton's steps; it is concave. NaN where nothing speaks."""
        eta = np.zeros(counts.shape[:-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(50):
                score, slope = self._slopes(counts, eta)
                step = np.clip(score / slope, -1.0, 1.0)
                eta = np.clip(eta + step, -5.0, 8.0)
                if not (np.abs(step) > 1e-10).any():
                    break
            return np.where(slope > 0, eta, np.nan)

    def _slopes(self, counts: Floats, eta: Floats) -> tuple[Floats, Floats]:
        score, slope = np.zeros(eta.shape), np.zeros(eta.shape)
        for size in self.sizes:
            part = counts[..., self.first[size] : self.first[size] + 2 * size]
            at = np.arange(1.0, size)
            here, next_ = part[..., 0 : 2 * size - 2 : 2], part[..., 1 : 2 * size - 2 : 2]
            length = np.log((at + 1) / at)
            stays = 1 / (1 + np.exp(-(np.log((size - at) / at) + eta[..., None] * length)))
            score += (length * (here - (here + next_) * stays)).sum(axis=-1)
            slope += (length**2 * (here + next_) * stays * (1 - stays)).sum(axis=-1)
            logs = np.log(np.arange(1.0, size + 1))
            theta = np.exp(-eta[..., None] * logs)
            theta /= theta.sum(axis=-1, keepdims=True)
            mean = theta @ logs
            score += part[..., -2] * mean - part[..., -1]
            slope += part[..., -2] * (theta @ logs**2 - mean**2)
        return score, slope
