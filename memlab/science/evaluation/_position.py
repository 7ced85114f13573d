"""Estimate how often users examine each position, from randomly placed items.

A probe is at a random position from F to S, where S items are shown. In a lab it is below the first
result (F = 2); in logs of other systems and of earlier memlabs it is anywhere (F = 1). The probe
moves the items below it down by one. An item of rank k >= F is at position k or k + 1 at random, so
the log shows the same item at two positions. The item moves with probability (k - F + 1)/(S - F + 1).
A lower reward after the move is an effect of the position alone. This is intervention harvesting
(Agarwal, Zaitsev, Wang, Li, Najork & Joachims 2019). The probe itself is at each of the positions F
to S equally often.

A log with a probe at position 1 is tested for F = 1 first. If its positions do not fit, because a
later memlab continued the log, everything is computed given that a probe is below position 1
(F = 2).

Under the position-based model, the reward of an item is its value times the examination rate theta
of its position, here theta_k = k^-eta. Given that an item has a reward at one of its positions, the
position follows a logistic regression on eta. The randomness of positions is tested, not assumed:
the position of a probe must depend neither on its rank nor on a constant.

A challenge by lot orders its items by the best rank that any pack gives them, so a better item is
rarely below a worse one. But the number of drawn items above an item is random. So is its position
minus the mean of its possible positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.science.evaluation._intervals import Estimate, Sample
from memlab.science.evaluation._log import CERTAIN, Log, is_randomised, read_challenges
from memlab.science.evaluation._tests import by_recall, falling_p, hotelling_p

_MIN_P = 0.001
"""The p-value below which positions do not count as random, equal to that of the gates."""
_EVEN = 1e-6
"""The difference of propensities up to which a draw counts as an even lot.

Logged propensities are rounded.
"""
_MAX_PROBES = 3
"""The number of probes of a recall that are compared with its other items.

More probes add work and little information.
"""


@dataclass(frozen=True)
class PairedItems:
    """The items that each probe was shown with.

    Probes are at random positions from ``first`` on, which is 1 or 2. ``probe`` is the row of each
    probe, and ``probe_size`` the number of items that its recall showed. The other attributes have
    a value for each pair of a probe and another item:

    - - ``row``: the row of the other item
      - ``at``: the position of the other item without the probe, from 1
      - ``moved``: whether the probe is above the other item
      - ``size``: the number of items that the recall showed
    """

    first: int
    probe: Ints
    probe_size: Ints
    row: Ints
    at: Ints
    moved: Flags
    size: Ints


def pair_probes(log: Log, ranks: Floats) -> PairedItems | None:
    """Return pairs of a probe and another item, or None if positions are not random.

    ``ranks`` is the rank of each candidate by the score, f64[n], scaled to 0..1.
    """
    exposed = np.flatnonzero(log.exposed)
    recall, position = log.recall[exposed], log.position[exposed]
    size = np.bincount(recall, minlength=len(log))
    # Each recall must have every position from 1 to its size exactly once.
    seat = recall * (int(size.max(initial=0)) + 1) + position
    if (
        not len(exposed)
        or not ((position >= 1) & (position <= size[recall])).all()
        or len(np.unique(seat)) < len(seat)
    ):
        return None
    randomised = is_randomised(log.propensity[exposed])
    for first in (1, 2) if (randomised & (position == 1)).any() else (2,):
        probes = np.flatnonzero(randomised & (position >= first) & (size[recall] > first))
        offset = position[probes] - (size[recall[probes]] + first) / 2
        weighed = offset[:, None] * np.column_stack([np.ones(len(probes)), ranks[exposed[probes]]])
        if len(probes) and hotelling_p(by_recall(weighed, recall[probes])) >= _MIN_P:
            break
    else:
        return None
    begins = np.concatenate([[True], recall[probes][1:] != recall[probes][:-1]])
    number = np.arange(len(probes)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    parts = []
    for order in range(min(_MAX_PROBES, int(number.max()) + 1)):
        chosen = probes[number == order]
        probe_position, is_probe = (
            np.zeros(len(log), dtype=np.int64),
            np.zeros(len(exposed), dtype=np.bool_),
        )
        probe_position[recall[chosen]], is_probe[chosen] = position[chosen], True
        others = np.flatnonzero((probe_position[recall] > 0) & ~is_probe)
        moved = position[others] > probe_position[recall[others]]
        parts.append((chosen, others, position[others] - moved, moved))
    probe, others, at, moved = (
        np.concatenate([part[column] for part in parts]) for column in range(4)
    )
    return PairedItems(
        first, exposed[probe], size[recall[probe]], exposed[others], at, moved, size[recall[others]]
    )


def random_position_p(places: PairedItems, log: Log) -> float:
    """Test whether rewards depend on the position, using only random positions.

    An item differs between its two positions in nothing else, so no model of rewards is needed.
    Returns a p-value.
    """
    reward = np.nan_to_num(log.reward)
    stays = (places.size - places.at) / (places.size + 1 - places.first)
    here, next_ = np.log(places.at), np.log(places.at + 1.0)
    excess = np.where(places.moved, next_, here) - stays * here - (1 - stays) * next_
    own = np.log(log.position[places.probe]) - _mean_log_position(places.probe_size, places.first)
    parts = np.concatenate([reward[places.row] * excess, reward[places.probe] * own])
    recall = log.recall[np.concatenate([places.row, places.probe])]
    return falling_p(by_recall(parts[:, None], recall)[:, 0])


def lot_position_p(log: Log) -> float | None:
    """Test whether rewards depend on the position in challenges with drawn results.

    Returns a p-value, or None if the log has no challenge by lot that can be tested.

    The number of drawn items above an item is random. If the log has the groups from which items
    were drawn, an item of another group is shown with its own probability, and no other item of the
    same group. In a log without groups, d of n items on which packs differ are shown, all with the
    same probability. If an item was drawn, each other item was drawn with probability (d - 1) / (n
    - 1). If an item was certain, each other item was drawn with probability d / n.
    """
    parts = []
    for number, challenge in enumerate(read_challenges(log)):
        if challenge is not None and challenge.design == "lot":
            heads = [challenge.live, *(head.ids for head in challenge.heads.values())]
            is_grouped = challenge.groups is not None
            number_of = {
                item: at for at, items in enumerate(challenge.groups or ()) for item in items
            }
            parts += [
                (number, item, rank, len(heads), is_grouped, number_of.get(item, -1))
                for head in heads
                for rank, item in enumerate(head)
            ]
    if not parts:
        return None
    names = ["recall", "memory_id", "rank", "heads", "grouped", "group"]
    listed = pl.DataFrame(parts, schema=names, orient="row")
    listed = listed.with_columns(pl.col("memory_id").cast(log.ids["memory_id"].dtype))
    items = (
        listed.group_by("recall", "memory_id", "heads", "grouped", "group")
        .agg(pl.col("rank").min(), votes=pl.len())
        .sort("recall", "rank")
    )
    rows = log.rows_of(items.select("recall", "memory_id"))
    items, row = items.filter(rows.is_not_null()), rows.drop_nulls().to_numpy()
    recall, rank = items["recall"].to_numpy(), items["rank"].to_numpy()
    free = (items["votes"] < items["heads"]).to_numpy()
    count = np.bincount(recall, weights=free, minlength=len(log))[recall]
    draws = np.bincount(recall, weights=free & log.exposed[row], minlength=len(log))[recall]
    with np.errstate(divide="ignore", invalid="ignore"):
        probability = np.where(
            free, np.where(count > 1, (draws - 1) / (count - 1), 0.0), draws / count
        )
        even = np.abs(log.propensity[row] - draws / count) < _EVEN
    grouped, group = items["grouped"].to_numpy(), items["group"].to_numpy()
    # Recalls whose items were not drawn by an even lot are left out: the formula of the usual position does not hold.
    uneven = np.bincount(recall, weights=free & ~even & ~grouped, minlength=len(log))[recall] > 0
    width, groups = int(rank.max()) + 1, int(group.max()) + 2
    chance = log.propensity[row]

    def before(weight: Floats, part: Ints) -> Floats:
        """Sum the weights of items ranked above each item in the same part; ties count as half."""
        key = part * width + rank
        order = np.argsort(key, kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(weight[order])])
        ranked = key[order]
        lower, first = (np.searchsorted(ranked, ends) for ends in (key, part * width))
        upper = np.searchsorted(ranked, key, side="right")
        return np.asarray((sums[lower] + sums[upper] - weight) / 2 - sums[first])

    own = np.where(group >= 0, before(chance, recall * groups + group + 1), 0.0)
    with np.errstate(invalid="ignore"):
        usual = np.where(
            grouped,
            1 + before(chance, recall) - own,
            1
            + before(~free * 1.0, recall)
            + np.where(count > 0, before(free * 1.0, recall) * probability, 0.0),
        )
    counted = log.answered[row] & (log.position[row] > 0) & ~uneven & (count > 0)
    if not counted.any():
        return None
    reward, off = log.reward[row[counted]], log.position[row[counted]] - usual[counted]
    return falling_p(by_recall(((reward - reward.mean()) * off)[:, None], recall[counted])[:, 0])


def _mean_log_position(size: Ints, first: int) -> Floats:
    """Return the mean of log(position) over positions from ``first`` to each ``size``."""
    means = [
        np.log(np.arange(first, last + 1)).mean() if last >= first else 0.0
        for last in range(size.max() + 1)
    ]
    return np.array(means)[size]


@dataclass(frozen=True)
class Examination:
    """The estimated examination rates of positions, theta_k = k^-eta.

    ``eta`` is the estimate. ``counts`` (f64[recalls, c]) are the sums from which ``solve`` computes
    eta.
    """

    eta: Estimate
    counts: Floats = field(repr=False)
    _cells: _Cells = field(repr=False)
    _extras: Ints = field(repr=False)
    """For each candidate: the number of probes and drawn items that its recall showed."""
    _others: Ints = field(repr=False)
    """For each candidate: the number of items that its recall was certain to show."""
    _at: Ints = field(repr=False)
    """For each candidate: its position among the certain items, 0 for other candidates."""
    _drawn_first: Ints = field(repr=False)
    """For each candidate: 1 if the first item of its recall was drawn, otherwise 0."""

    def solve(self, counts: Floats) -> Floats:
        """Return the exponent eta, f64[...], from sums of counts f64[..., c]."""
        return self._cells.solve(counts)

    def theta(self, position: Ints | Floats, eta: float) -> Floats:
        """Return the examination rate of positions relative to position 1."""
        return np.asarray(np.asarray(position, dtype=np.float64) ** -eta)

    def average(self, eta: float) -> Floats:
        """Return each candidate's mean examination rate over its possible positions, f64[n].

        If the recall had a drawn item first, the mean is over the orders with a drawn item first, otherwise over the
        orders with a certain item first. The value is 1 for candidates that were not shown.
        """
        keys, inverse = np.unique(
            np.stack([self._extras, self._others, self._at, self._drawn_first]),
            axis=1,
            return_inverse=True,
        )
        values = np.ones(keys.shape[1])
        for column, (extras, others, at, drawn) in enumerate(keys.T.tolist()):
            below = self.theta(np.arange(2, extras + others + 1), eta)
            if at == 0:
                if extras:
                    # One of the drawn items is first, or none. The others are anywhere below.
                    rest = below.sum() * (extras - drawn) / max(len(below), 1)
                    values[column] = (drawn + rest) / extras
                continue
            # Leave out the first position and its item. The number of extra items above an item then follows a
            # hypergeometric distribution.
            extras, others, at = extras - drawn, others - 1 + drawn, at - 1 + drawn
            if at == 0:
                continue
            before = np.arange(extras + 1)
            ways = [
                math.comb(at - 1 + j, j) * math.comb(others - at + extras - j, extras - j)
                for j in before.tolist()
            ]
            values[column] = float(np.array(ways) @ below[at - 1 + before]) / math.comb(
                others + extras, extras
            )
        return np.asarray(values[inverse.ravel()])


def estimate_examination(places: PairedItems, log: Log, level: float) -> Examination | None:
    """Estimate how often users examine each position.

    Returns None if no item at a random position has a reward.
    """
    reward = np.nan_to_num(log.reward)
    cells = _Cells(np.unique(places.probe_size), places.first)
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
    return Examination(eta, counts, cells, *_arrange_items(log))


def _arrange_items(log: Log) -> tuple[Ints, Ints, Ints, Ints]:
    """Return, for each candidate, numbers of extra and certain items, its position, and if an extra item was first.

    The arrays are int64[n]. The first two are the numbers of items with a propensity below 1 and of
    certain items that its recall showed. The third is its position among the certain items. The last is
    1 where an item with a propensity below 1 was first.
    """
    exposed = np.flatnonzero(log.exposed)
    exposed = exposed[np.lexsort((log.position[exposed], log.recall[exposed]))]
    recall, extra = log.recall[exposed], log.propensity[exposed] < CERTAIN
    extras = np.bincount(recall, weights=extra, minlength=len(log)).astype(np.int64)
    others = np.bincount(recall, weights=~extra, minlength=len(log)).astype(np.int64)
    before = np.cumsum(others) - others
    at = np.zeros(len(log.recall), dtype=np.int64)
    at[exposed] = np.where(extra, 0, np.cumsum(~extra) - before[recall])
    drawn_first = np.bincount(
        recall, weights=extra & (log.position[exposed] == 1), minlength=len(log)
    ).astype(np.int64)
    extras, others, drawn_first = (
        np.where(log.exposed, counts[log.recall], 0) for counts in (extras, others, drawn_first)
    )
    return extras, others, at, drawn_first


class _Cells:
    """The layout of the counts from which eta is estimated.

    Counts are kept for each number S of items that a recall showed. For each position k below S
    there are two columns: the rewards at k, and at k + 1, of items that may be at both positions.
    Only positions from ``start`` on are counted. Two more columns hold the sum of the rewards of
    probes, and the sum of these rewards times the logarithm of the position.
    """

    def __init__(self, sizes: Ints, start: int) -> None:
        self.sizes, self.start = sizes.tolist(), start
        self.first = np.zeros(max(self.sizes) + 1, dtype=np.int64)
        self.width = 0
        for size in self.sizes:
            self.first[size] = self.width
            self.width += 2 * size

    def solve(self, counts: Floats) -> Floats:
        """Estimate eta by maximum likelihood, with Newton's method; NaN without rewards.

        The likelihood is concave, so the steps converge from any start.
        """
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
        """Return the first derivative and negative second derivative of the log likelihood."""
        score, slope = np.zeros(eta.shape), np.zeros(eta.shape)
        for size in self.sizes:
            part = counts[..., self.first[size] : self.first[size] + 2 * size]
            at, begin = np.arange(float(self.start), size), 2 * self.start - 2
            here, next_ = part[..., begin:-2:2], part[..., begin + 1 : -2 : 2]
            length = np.log((at + 1) / at)
            odds = np.log((size - at) / (at + 1 - self.start))
            stays = 1 / (1 + np.exp(-(odds + eta[..., None] * length)))
            score += (length * (here - (here + next_) * stays)).sum(axis=-1)
            slope += (length**2 * (here + next_) * stays * (1 - stays)).sum(axis=-1)
            logs = np.log(np.arange(float(self.start), size + 1))
            theta = np.exp(-eta[..., None] * logs)
            theta /= theta.sum(axis=-1, keepdims=True)
            mean = theta @ logs
            score += part[..., -2] * mean - part[..., -1]
            slope += part[..., -2] * (theta @ logs**2 - mean**2)
        return score, slope
