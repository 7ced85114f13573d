"""The loss of a guarded pack: a confidence sequence that is updated by one recall at a time.

A coin with the probability p decides whether a recall shows the results of the guarded pack. Let r
be the reward of the recall, from 0 to 1, and c an expectation from earlier recalls. The
observation is (c - r) / p under the guarded pack, and (r - c) / (1 - p) under the active one. Its
mean given the past is the loss of the recall, whatever c is, because c is known before the coin.
The variance is least for c = (1 - p) m1 + p m0, where m1 and m0 are the mean rewards under the
guarded and the active pack.

``memlab.science.evaluation`` has the sequence: a mixture over rates, of which only sums over the
recalls are stored. So each recall costs the same, however many there were. A recall in which both
packs have the same results has a loss of exactly 0.
"""

from __future__ import annotations

import math

import numpy as np

from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.science.distributions import normal_cdf
from memlab.science.evaluation.parts import excluded_mean, log_mixture, observation_penalties

GAINS: Floats = 0.2 * 2.0 ** (np.arange(10) / 2)
"""The rates of the mixture, times 1 / (p (1 - p)).

The best rate for a loss of d standard deviations s of the reward is p (1 - p) d / s. Losses of .1
to 1 with s from .2 to .5 have their best rate among these; half octaves cost at most 4% of growth.
"""

WEIGHTS: Floats = np.array([0.03, 0.06, 0.12, 0.2, 0.22, 0.16, 0.1, 0.06, 0.03, 0.02])
"""The weights of the rates: half of it on .6 to 1.2, the best rates for losses of .2 to .4.

With equal weights, rewards of 0 and 1 took 10 to 20% more recalls (experiments/guard.py).
"""

_CLOSE_WEIGHT = 0.5
"""The weight of the rates that grow like the best one, for forecasts.

A rate half an octave below the best one grows 9% slower, and half an octave above 17%. Three rates in
the middle have half of the weight.
"""

_PRIOR = 10.0
"""Recalls that the mean under the guarded pack is shrunk by, towards the mean under the active pack.

It has no effect on validity. With a share of .1, ten guarded recalls are those of 100.
"""


def forecast_recalls(
    rewards: Floats, loss: float, share: float, *, level: float, chance: float
) -> int | None:
    """Forecast the number of recalls within which a loss leads to a rollback.

    ``rewards`` (f64[n], 0 to 1) are the rewards of recalls under the active pack. Under the guarded pack, enough
    rewards become 0 to cause the loss. The result is None if the loss exceeds the mean reward or needs more than ten
    million recalls.
    """
    mean, count = float(rewards.mean()), len(rewards)
    if not 0 < loss <= mean:
        return None
    typical, lost = mean - (1 - share) * loss, loss / mean
    values = np.concatenate(
        [(typical - rewards) / share, [typical / share], (rewards - typical) / (1 - share)]
    )
    chances = np.repeat(
        [share * (1 - lost) / count, share * lost, (1 - share) / count], [count, 1, count]
    )
    floor = np.full(len(values), -max((1 - typical) / share, typical / (1 - share)))
    rates = share * (1 - share) * GAINS
    growth = rates[:, None] * values - observation_penalties(
        values, np.full(len(values), loss), floor, rates
    )
    drift = growth @ chances
    spread = np.sqrt((growth - drift[:, None]) ** 2 @ chances)
    counts = np.unique(np.geomspace(10, 1e7, 600).astype(np.int64))
    reached, cdf = np.zeros(len(counts)), np.vectorize(normal_cdf)
    for rate in np.flatnonzero(drift > 0).tolist():
        # The first passage of a Brownian motion with drift has an inverse Gaussian distribution.
        target = -math.log((1 - level) * _CLOSE_WEIGHT)
        width, way = spread[rate] * np.sqrt(counts), drift[rate] * counts
        tilt = np.exp(min(2 * drift[rate] * target / spread[rate] ** 2, 700.0))
        passed = cdf((way - target) / width) + tilt * cdf(-(way + target) / width)
        reached = np.maximum(reached, passed)
    enough = np.flatnonzero(reached >= chance)
    return int(counts[enough[0]]) if len(enough) else None


class LossProcess:
    """The state of the confidence sequence, for one guard or for many simulated ones.

    Attributes
    ----------
    share
        The probability that a recall shows the results of the guarded pack.
    recalls, loss
        The number of recalls and the sum of their observations, f64[runs].
    """

    def __init__(self, share: float, *, runs: int = 1) -> None:
        self.share, self.rates = share, share * (1 - share) * GAINS
        self.recalls, self.loss = np.zeros(runs), np.zeros(runs)
        # By pack, the active one first; and by end of the interval, the lower one first.
        self._count, self._sums = np.zeros((2, runs)), np.zeros((2, runs))
        self._penalties = np.zeros((2, len(GAINS), runs))

    def add(self, guarded: Ints, reward: Floats) -> None:
        """Add one recall to each run.

        ``guarded`` is 1 if the results were those of the guarded pack, 0 for the active pack, and
        -1 if both have the same. ``reward`` is from 0 to 1.
        """
        share, differs = self.share, guarded >= 0
        active = (self._sums[0] + 0.5) / (self._count[0] + 1)
        own = (self._sums[1] + _PRIOR * active) / (self._count[1] + _PRIOR)
        typical = (1 - share) * own + share * active
        loss = np.where(guarded == 1, (typical - reward) / share, (reward - typical) / (1 - share))
        ends = (
            -np.maximum((1 - typical) / share, typical / (1 - share)),
            -np.maximum(typical / share, (1 - typical) / (1 - share)),
        )
        expected = self.loss / (self._count.sum(axis=0) + 1)
        for side, (sign, floor) in enumerate(zip((1.0, -1.0), ends, strict=True)):
            penalties = observation_penalties(
                sign * loss, np.maximum(sign * expected, floor), floor, self.rates
            )
            self._penalties[side] += np.where(differs, penalties, 0.0)
        self.loss += np.where(differs, loss, 0.0)
        self.recalls += 1
        for pack in (0, 1):
            self._count[pack] += guarded == pack
            self._sums[pack] += np.where(guarded == pack, reward, 0.0)

    def exceeds(self, tolerance: float, level: float) -> Flags:
        """Return whether the loss per recall exceeds ``tolerance`` with confidence ``level``."""
        excess = self.loss - tolerance * self.recalls
        mixture = log_mixture(excess, self._penalties[0], self.rates, WEIGHTS)
        return np.asarray(mixture >= -math.log(1 - level))

    def bounds(self, level: float) -> tuple[Floats, Floats, Floats]:
        """Return the loss per recall, and its lower and upper confidence bound, f64[runs] each.

        Each bound holds with confidence ``level`` after every recall. Each run needs a recall.
        """
        low, high = (
            excluded_mean(
                sign * self.loss,
                self.recalls,
                penalties,
                self.rates,
                1 - level,
                np.full(len(self.loss), -1.0),
                WEIGHTS,
            )
            for sign, penalties in zip((1.0, -1.0), self._penalties, strict=True)
        )
        return np.clip(self.loss / self.recalls, -1.0, 1.0), low, -high

    @property
    def _parts(self) -> tuple[Floats, ...]:
        return self.recalls, self.loss, self._count, self._sums, self._penalties

    def dump(self) -> list[float]:
        """Return the state of the confidence sequence of the first run."""
        return [value for part in self._parts for value in part[..., 0].ravel().tolist()]

    def load(self, values: Floats) -> None:
        """Restore the states of all runs from results of ``dump``, f64[values, runs]."""
        parts, runs = self._parts, len(self.recalls)
        ends = np.cumsum([part.size // runs for part in parts])[:-1]
        for part, stored in zip(parts, np.split(values, ends), strict=True):
            part[...] = stored.reshape(part.shape)
