"""Measure how soon ``lab.guard`` rolls a worse pack back, and how often one that is as good.

    python experiments/guard.py                      # 200 runs a cell: about four minutes
    python experiments/guard.py --runs 50 --share 0.2

A coin gives each recall of a run to the guarded pack with the probability ``--share``. Rewards of the active pack are
drawn from one of these distributions, from 0 to 1:

- *smooth*: beta(3, 2), mean .60
- *0/1, p*: success with probability p; all rewards are ties
- *three values*: 0, .5 and 1 with .3, .3 and .4
- *skewed low*, *skewed high*: beta(.3, 1.7) and beta(1.7, .3), means .15 and .85

Under the guarded pack, the mean is lower by a loss of 0, .2 or .4 standard deviations of the active pack's rewards; the
distribution keeps its kind. The runs go through ``LossProcess``, the code of the lab. The figures:

- *rolled back*: the share of runs that are rolled back within 2,000 recalls (.4), 8,000 (.2) or 20,000 (0)
- *median*: the recall of the rollback in half of the runs; *forecast*: that of ``lab.guard(..., plan=True)``

**Ways.** ``--ways`` runs other tests on the same recalls:

- *no expectation*: plain inverse probabilities, without the expectation of the reward
- *betting product*: the product of 1 + rate times loss, which has no interval
- *two-sided*: half of the error for each bound
- *guarded alone, known mean*: guarded recalls against the true mean of the active pack, which no lab knows
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from results import Results, plot_bars

from memlab.science.evaluation.parts import log_mixture, observation_penalties
from memlab.subjects.guard.process import GAINS, WEIGHTS, LossProcess, forecast_recalls

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, float], Floats]

AIMS = ((0.4, 2_000), (0.2, 8_000), (0.0, 20_000))
LEVEL = 0.95


class World:
    """A distribution of rewards, which keeps its kind when its mean falls."""

    def __init__(self, name: str, values: tuple[float, ...], shape: tuple[float, ...]) -> None:
        self.name, self._values, self._shape = name, values, shape
        if values:
            self.mean = float(np.dot(values, shape))
            self.sd = math.sqrt(np.dot(np.square(values), shape) - self.mean**2)
        else:
            first, second = shape
            total = first + second
            self.mean = first / total
            self.sd = math.sqrt(self.mean * (1 - self.mean) / (total + 1))

    def draw(self, rng: np.random.Generator, size: int, loss: float) -> Floats:
        """Draw rewards whose mean is lower by ``loss``."""
        if not self._values:
            total, mean = sum(self._shape), self.mean - loss
            return rng.beta(mean * total, (1 - mean) * total, size)
        shares = np.array(self._shape)
        # The loss moves probability from the highest value to the lowest one.
        shares[[0, -1]] += np.array([loss, -loss]) / (self._values[-1] - self._values[0])
        return rng.choice(self._values, size, p=shares)


WORLDS = (
    World("smooth", (), (3, 2)),
    World("0/1, .2", (0, 1), (0.8, 0.2)),
    World("0/1, .5", (0, 1), (0.5, 0.5)),
    World("0/1, .9", (0, 1), (0.1, 0.9)),
    World("three values", (0, 0.5, 1), (0.3, 0.3, 0.4)),
    World("skewed low", (), (0.3, 1.7)),
    World("skewed high", (), (1.7, 0.3)),
)


class Plain:
    """Inverse probabilities without an expectation of the reward."""

    def __init__(self, share: float, world: World, runs: int) -> None:
        self.share, self.rates = share, share * (1 - share) * GAINS
        self.total, self.penalty, self.count = np.zeros(runs), np.zeros((len(GAINS), runs)), 0

    def observe(self, guarded: NDArray[np.int64], reward: Floats) -> tuple[Floats, float]:
        """Return the observation of each run and its minimum."""
        loss = np.where(guarded == 1, -reward / self.share, reward / (1 - self.share))
        return loss, -1 / self.share

    def add(self, guarded: NDArray[np.int64], reward: Floats) -> None:
        """Add one recall to each run."""
        loss, lowest = self.observe(guarded, reward)
        floor = np.full(len(loss), lowest)
        expected = np.maximum(self.total / (self.count + 1), floor)
        self.penalty += observation_penalties(loss, expected, floor, self.rates)
        self.total, self.count = self.total + loss, self.count + 1

    def exceeds(self, tolerance: float, level: float) -> NDArray[np.bool_]:
        """Return the runs that are rolled back."""
        excess = self.total - tolerance * self.count
        mixture = log_mixture(excess, self.penalty, self.rates, WEIGHTS)
        return np.asarray(mixture >= -math.log(1 - level))


class GuardedAlone(Plain):
    """Guarded recalls alone, against the true mean of the active pack."""

    def __init__(self, share: float, world: World, runs: int) -> None:
        super().__init__(share, world, runs)
        self.mean = world.mean

    def observe(self, guarded: NDArray[np.int64], reward: Floats) -> tuple[Floats, float]:
        """Return the observation of each run and its minimum."""
        return np.where(guarded == 1, (self.mean - reward) / self.share, 0.0), -(
            1 - self.mean
        ) / self.share


class Betting(LossProcess):
    """The product of 1 + rate times loss, with rates that no reward can ruin."""

    def __init__(self, share: float, world: World, runs: int) -> None:
        super().__init__(share, runs=runs)
        self.capital = np.zeros((len(GAINS), runs))

    def add(self, guarded: NDArray[np.int64], reward: Floats) -> None:
        """Add one recall to each run."""
        before = self.loss.copy()
        typical = self._typical()
        super().add(guarded, reward)
        worst = np.maximum((1 - typical) / self.share, typical / (1 - self.share))
        rates = np.minimum(self.rates[:, None], 0.9 / worst)
        self.capital += np.log1p(rates * (self.loss - before))

    def _typical(self) -> Floats:
        active = (self._sums[0] + 0.5) / (self._count[0] + 1)
        own = (self._sums[1] + 10 * active) / (self._count[1] + 10)
        return np.asarray((1 - self.share) * own + self.share * active)

    def exceeds(self, tolerance: float, level: float) -> NDArray[np.bool_]:
        """Return the runs that are rolled back; the tolerance must be 0."""
        mixture = log_mixture(np.zeros(len(self.loss)), -self.capital, self.rates, WEIGHTS)
        return np.asarray(mixture >= -math.log(1 - level))


class Shipped(LossProcess):
    """The test of the lab."""

    def __init__(self, share: float, world: World, runs: int) -> None:
        super().__init__(share, runs=runs)


class TwoSided(Shipped):
    """The test of the lab with half of the error for each bound."""

    def exceeds(self, tolerance: float, level: float) -> NDArray[np.bool_]:
        """Return the runs that are rolled back."""
        return super().exceeds(tolerance, 1 - (1 - level) / 2)


WAYS: dict[str, type] = {
    "shipped": Shipped,
    "two-sided": TwoSided,
    "betting product": Betting,
    "no expectation": Plain,
    "guarded alone, known mean": GuardedAlone,
}


def find_rollbacks(
    way: type, world: World, sd: float, recalls: int, share: float, runs: int, seed: int
) -> Floats:
    """Return the recall after which each run is rolled back, infinite for none."""
    rng, process = np.random.default_rng(seed), way(share, world, runs)
    ends = np.full(runs, np.inf)
    for number in range(1, recalls + 1):
        guarded = (rng.random(runs) < share).astype(np.int64)
        active, own = world.draw(rng, runs, 0.0), world.draw(rng, runs, sd * world.sd)
        process.add(guarded, np.where(guarded == 1, own, active))
        ends[process.exceeds(0.0, LEVEL) & np.isinf(ends)] = number
        if sd and np.isfinite(ends).all():
            break
    return ends


def forecast(world: World, sd: float, share: float) -> int | None:
    """Return the recalls after which half of the guards end, as ``lab.guard`` forecasts them."""
    rewards = world.draw(np.random.default_rng(0), 1_000, 0.0)
    return forecast_recalls(rewards, sd * world.sd, share, level=LEVEL, chance=0.5)


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("--runs", type=int, default=200, help="runs of each cell")
    parser.add_argument("--share", type=float, default=0.1, help="the share of guarded recalls")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["shipped"])
    parser.add_argument("--aims", type=int, default=len(AIMS), help="losses: .4, .2 and 0")
    parser.add_argument("--seed", type=int, default=8)
    arguments = parser.parse_args()
    results = Results("guard", arguments)
    rows: list[dict[str, Any]] = []
    print(
        f"{'way':<27}{'rewards':<14}{'loss':>5}{'recalls':>9}{'rolled back':>13}{'median':>8}{'forecast':>10}"
    )
    for way in arguments.ways:
        for world in WORLDS:
            for sd, recalls in AIMS[: arguments.aims]:
                ends = find_rollbacks(
                    WAYS[way], world, sd, recalls, arguments.share, arguments.runs, arguments.seed
                )
                share = float(np.isfinite(ends).mean())
                median = float(np.median(ends))
                expected = forecast(world, sd, arguments.share) if sd else None
                rows.append(
                    {
                        "way": way,
                        "rewards": world.name,
                        "loss": sd,
                        "recalls": recalls,
                        "rolled back": share,
                        "median": median,
                        "forecast": expected,
                    }
                )
                printed = "-" if math.isinf(median) else f"{median:,.0f}"
                print(
                    f"{way:<27}{world.name:<14}{sd:>5}{recalls:>9,}{share:>13.3f}{printed:>8}{expected or '-':>10}",
                    flush=True,
                )
    shipped = [row for row in rows if row["loss"]]
    results.save(rows, plot_bars(shipped, label="rewards", value="rolled back"))


if __name__ == "__main__":
    main()
