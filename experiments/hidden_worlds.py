"""Does an interval hold a truth that is known? Logs of invented worlds, evaluated as a user would.

    python experiments/hidden_worlds.py                    # 2,000 logs a world: hours on two cores
    python experiments/hidden_worlds.py --logs 100 --only base,position

Each world draws recalls of a pool of 30 under 60 users; a live policy shows the best five of its noisy scores, and two
probes from the 25 below (so p = .08 each), unless its line says otherwise. Another policy, closer to the truth, is
evaluated on the log. The truth is the mean reward of really showing the other policy's head, by 200,000 recalls of the
same world. *released*: an interval was given; *cover*: the share of released intervals that hold the truth (value /
difference); *wrong*: verdicts of the wrong side, or any verdict where the truth is a tie. Sound worlds must be covered
at .93; in the others, what misleads must be covered or refused.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import memlab
from memlab.errors import MemlabError

Floats = NDArray[np.float64]
_START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class World:
    """What is drawn. ``sizes``: recalls of each user, even or Pareto; ``tie``: the other policy is as good as live."""

    name: str
    sound: bool
    recalls: int = 600
    users: int = 60
    sizes: str = "even"
    design: str = "probes"  # probes, random, tilted
    rate: float = 1.0
    target: str = "better"  # better, tie
    drift: bool = False
    delay: bool = False
    silence: str = "none"  # none, random, item, outcome, clicks
    position: tuple[float, ...] = (1.0,) * 7
    redundant: bool = False
    rare: bool = False
    unsupported: str = "none"  # worthless, gold
    share: float = 0.0
    logged: str = "right"  # right, rate, tilt, none
    clusters: str = "named"  # named, forgotten
    pool: int = 30
    head: int = 5
    probes: int = 2
    missing: str | None = None
    horizon: str | None = None


WORLDS = (
    World("base", True),
    World("base, a tie", True, target="tie"),
    World("fully random slates", True, design="random"),
    World("tilted probes", True, design="tilted"),
    World("taste turns, probe rate changes", True, drift=True),
    World("delayed, horizon 7d", True, delay=True, horizon="7d", missing="zero"),
    World("missing at random, censored", True, silence="random", missing="censor"),
    World("12 users, Pareto sizes", True, users=12, sizes="pareto"),
    World("40 users, Pareto sizes", True, users=40, sizes="pareto"),
    World("rare reward", True, rare=True),
    World("n = 200", True, recalls=200),
    World("n = 120", True, recalls=120),
    World("missing by item, weighed", True, silence="item", missing="inverse"),
    World("missing by item, censored", False, silence="item", missing="censor"),
    World("missing by outcome, censored", False, silence="outcome", missing="censor"),
    World("missing by outcome, bounds", False, silence="outcome", missing="bounds"),
    World("clicks only, as it comes", False, silence="clicks"),
    World("position bias", False, position=(1.0, 0.75, 0.55, 0.42, 0.34, 0.28, 0.24)),
    World("position bias, mild", False, position=(1.0, 0.95, 0.9, 0.86, 0.83, 0.8, 0.78)),
    World("redundant items", False, redundant=True),
    World("8.5% unsupported, worthless", False, unsupported="worthless", share=0.085),
    World("8.5% unsupported, gold", False, unsupported="gold", share=0.085),
    World("30% unsupported, worthless", False, unsupported="worthless", share=0.3),
    World("30% unsupported, gold", False, unsupported="gold", share=0.3),
    World("rate .5 logged as .6", False, rate=0.5, logged="rate"),
    World("tilt .7 logged as even", False, design="tilted", logged="tilt"),
    World("impressions without propensities", False, logged="none"),
    World("40 users, Pareto, cluster forgotten", False, users=40, sizes="pareto", clusters="forgotten"),
    World("n = 60", False, recalls=60),
    World("n = 30", False, recalls=30),
)


@dataclass(frozen=True)
class Drawn:
    """One log: arrays f64[recalls, pool] and what a user would have of it."""

    user: NDArray[np.int64]
    live: Floats
    other: Floats
    worth: Floats
    group: NDArray[np.int64]


def draw(world: World, dice: np.random.Generator, recalls: int) -> Drawn:
    """Recalls of a world: scores of the two policies and the chance that an item is rewarded."""
    if world.sizes == "pareto":
        weight = dice.pareto(1.2, world.users) + 0.1
        user = np.sort(dice.choice(world.users, recalls, p=weight / weight.sum()))
    else:
        user = np.arange(recalls) * world.users // recalls
    mood = dice.normal(0, 0.5, world.users)[user]
    quality = dice.normal(size=(recalls, world.pool))
    if world.drift:
        turned = np.linspace(0, 1, recalls)[:, None]
        quality = quality * (1 - 2 * turned * 0.4)
    base = -2.9 if world.rare else 0.2
    worth = 1 / (1 + np.exp(-(0.9 * quality + mood[:, None] + base)))
    live = quality + dice.normal(0, 1.6, quality.shape)
    other = live + dice.normal(0, 1.0, quality.shape)
    if world.target == "better":
        other = other + 0.9 * quality
    else:
        other = quality + dice.normal(0, 1.6, quality.shape)
    group = dice.integers(0, 10, quality.shape)
    return Drawn(user, live, other, worth, group)


def ranks(scores: Floats) -> NDArray[np.int64]:
    order = np.argsort(-scores, axis=1, kind="stable")
    found = np.empty_like(order)
    np.put_along_axis(found, order, np.arange(scores.shape[1])[None, :], axis=1)
    return found


def forbidden(world: World, drawn: Drawn, dice: np.random.Generator) -> NDArray[np.bool_]:
    """Items of the other head that the logging system can never show."""
    head = ranks(drawn.other) < world.head
    return head & (ranks(drawn.live) >= world.head) & (dice.random(head.shape) < min(1.0, world.share * 2.2))


def truth(world: World, seed: int = 99) -> tuple[float, float]:
    """Value of the other head, and its difference to the live one, by really showing them."""
    values = []
    for part in range(20):
        dice = np.random.default_rng((seed, part))
        users = replace(world, users=world.users if world.sizes == "pareto" else 500)
        drawn = draw(users, dice, 10_000)
        dead = forbidden(world, drawn, dice) if world.unsupported != "none" else np.zeros(drawn.live.shape, bool)
        worth = drawn.worth
        if world.unsupported != "none":
            worth = np.where(dead, 0.02 if world.unsupported == "worthless" else 0.98, worth)
        pair = []
        for scores in (drawn.other, drawn.live):
            place = ranks(scores)
            shown = place < world.head
            pair.append(earned(world, worth, shown, place, drawn.group, dice).sum(axis=1).mean())
        values.append((pair[0], pair[0] - pair[1]))
    value, gap = np.mean(values, axis=0)
    return float(value), float(gap)


def earned(
    world: World, worth: Floats, shown: NDArray[Any], place: NDArray[Any], group: NDArray[Any], dice: Any
) -> Floats:
    """Rewards of what is shown at these places (from 0)."""
    seen = np.array([*world.position, *([world.position[-1]] * worth.shape[1])])[np.minimum(place, worth.shape[1] - 1)]
    reward = (dice.random(worth.shape) < worth * seen) & shown
    if world.redundant:
        order = np.argsort(np.where(shown, place, 99), axis=1, kind="stable")
        taken = np.zeros((len(worth), 10), dtype=bool)
        rows = np.arange(len(worth))
        for rank in range(world.head + world.probes):
            item = order[:, rank]
            there = shown[rows, item]
            its = group[rows, item] % 3
            hit = reward[rows, item] & there
            reward[rows, item] = hit & ~taken[rows, its]
            taken[rows, its] |= hit
    return np.asarray(reward.astype(np.float64))


def log_of(world: World, seed: int) -> pl.DataFrame:
    """A wide frame: one row a candidate."""
    dice = np.random.default_rng((7, seed))
    drawn = draw(world, dice, world.recalls)
    count, pool = drawn.live.shape
    place = ranks(drawn.live)
    dead = forbidden(world, drawn, dice) if world.unsupported != "none" else np.zeros(place.shape, bool)
    worth = drawn.worth
    if world.unsupported != "none":
        worth = np.where(dead, 0.02 if world.unsupported == "worthless" else 0.98, worth)
    head = (place < world.head) & ~dead
    below = ~head & ~dead
    if world.design == "random":
        head = np.zeros_like(head)
        weight = np.ones(place.shape)
        size = np.full(count, world.head + world.probes)
        below = ~dead
    else:
        tilt = np.where(place < 18, 0.7, 0.3) if world.design == "tilted" else np.ones(place.shape)
        weight = np.where(below, tilt, 0.0)
        rate = np.where(np.arange(count) < count / 2, 1.0, 0.5) if world.drift else np.full(count, world.rate)
        size = np.where(dice.random(count) < rate, world.probes, 0)
    # fixed inclusion probabilities: systematic sampling of a random order
    chance = np.zeros(place.shape)
    shown = head.copy()
    for recall in range(count):
        free = np.flatnonzero(below[recall])
        share = weight[recall, free] / weight[recall, free].sum()
        wanted = world.head + world.probes if world.design == "random" else world.probes
        p = share * wanted
        chance[recall, free] = p
        if size[recall]:
            mixed = dice.permutation(len(free))
            ends = np.cumsum(p[mixed])
            points = dice.random() + np.arange(wanted)
            picked = mixed[np.minimum(np.searchsorted(ends, points), len(mixed) - 1)]
            shown[recall, free[picked]] = True
    if world.design != "random":
        if world.drift:
            chance *= np.where(np.arange(count) < count / 2, 1.0, 0.5)[:, None]
        else:
            chance *= world.rate
    chance = np.where(head, 1.0, chance)
    if world.design == "random":
        at = np.where(shown, dice.random(place.shape), 9.0)
    else:
        at = np.where(shown, np.where(head, place, 100 + dice.random(place.shape)), 999.0)
    spot = np.argsort(np.argsort(at, axis=1, kind="stable"), axis=1, kind="stable")
    reward = earned(world, worth, shown, spot, drawn.group, dice)
    answered = shown.copy()
    if world.silence == "random":
        answered &= dice.random(place.shape) < 0.35
    elif world.silence == "item":
        answered &= dice.random(place.shape) < 1 / (1 + np.exp(-(drawn.live + 0.3)))
    elif world.silence == "outcome":
        answered &= dice.random(place.shape) < np.where(reward > 0, 0.9, 0.35)
    elif world.silence == "clicks":
        answered &= reward > 0
    logged = chance.copy()
    if world.logged == "rate":
        logged = np.where((chance > 0) & (chance < 1), chance * 0.6 / 0.5, chance)
    elif world.logged == "tilt":
        even = world.probes / np.maximum(below.sum(axis=1), 1)
        logged = np.where((chance > 0) & (chance < 1), even[:, None], chance)
    days = np.arange(count) / count * 60.0
    frame = {
        "recall": np.repeat(np.arange(count), pool),
        "item": np.tile(np.arange(pool), count),
        "live": drawn.live.ravel(),
        "other": drawn.other.ravel(),
        "place": np.where(shown, spot + 1, 0).ravel(),
        "p": logged.ravel(),
        "user": np.repeat(drawn.user, pool),
        "at": pl.Series([_START + timedelta(days=float(day)) for day in days]).gather(
            np.repeat(np.arange(count), pool)
        ),
    }
    value = np.where(answered, reward, np.nan).ravel()
    wide = pl.DataFrame(frame).with_columns(pl.Series("reward", value).fill_nan(None))
    if world.delay:
        # a reward comes within a week in four of five cases; what comes later is lost to the horizon
        late = np.where(
            dice.random(place.shape) < 0.8, dice.random(place.shape) * 6.9, 8 + dice.random(place.shape) * 20
        )
        when = np.repeat(days, pool) + late.ravel()
        end = 60.0
        seen = (value == 1) & (when <= end)
        wide = wide.with_columns(
            pl.Series("reward", np.where(seen, 1.0, np.nan)).fill_nan(None),
            pl.Series("feedback.at", [_START + timedelta(days=float(day)) for day in when]),
        )
    if world.logged == "none":
        wide = wide.filter(pl.col("place") > 0)
    return wide


def judge(task: tuple[World, int]) -> tuple[bool, float, float, float, float, str, str]:
    """Whether an interval was released, its ends for value and difference, the verdict, and why not."""
    world, seed = task
    warnings.simplefilter("ignore")
    wide = log_of(world, seed)
    try:
        slates = memlab.Slates.from_wide(
            wide,
            decision="recall",
            item="item",
            shown="place",
            reward="reward",
            propensity=None if world.logged == "none" else "p",
            score="live",
            scores=["other"],
            cluster=None if world.clusters == "forgotten" else "user",
            at="at",
            limit=world.head,
        )
        found = memlab.evaluate(slates, ["other"], missing=world.missing, horizon=world.horizon)
    except MemlabError as error:
        return False, np.nan, np.nan, np.nan, np.nan, "refused", str(error)[:70]
    row = next(one for one in found.rows if one.policy == "other")
    if row.value is None or row.difference is None:
        return False, np.nan, np.nan, np.nan, np.nan, "withheld", ", ".join(gate.name for gate in row.closed)
    value, gap = row.value, row.difference
    return True, value.low, value.high, gap.low, gap.high, row.verdict, ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--only", default="", help="worlds whose name holds one of these, by commas")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    wanted = [part for part in given.only.split(",") if part]
    print(f"{'world':<38}{'truth':>7}{'diff':>8}{'released':>9}{'cover v':>9}{'cover d':>9}{'right':>7}{'wrong':>7}")
    bad = 0
    began = time.monotonic()
    with get_context("spawn").Pool(given.processes) as pool:
        for world in WORLDS:
            if wanted and not any(part in world.name for part in wanted):
                continue
            value, gap = truth(world)
            if world.delay:
                value, gap = value * 0.8, gap * 0.8
            found = pool.map(judge, [(world, seed) for seed in range(given.logs)], chunksize=4)
            out = [one for one in found if one[0]]
            cover = [
                np.mean([one[at] <= true <= one[at + 1] for one in out]) if out else np.nan
                for at, true in ((1, value), (3, gap))
            ]
            tie = world.target == "tie"
            right = sum(one[5] == ("better" if gap > 0 else "worse") and not tie for one in out)
            wrong = sum(one[5] in ("better", "worse") for one in out) - right
            why: dict[str, int] = {}
            for one in found:
                if one[6]:
                    why[one[6]] = why.get(one[6], 0) + 1
            reasons = "; ".join(f"{name} {count}" for name, count in sorted(why.items(), key=lambda pair: -pair[1])[:3])
            low = len(out) >= 20 and min(cover) < 0.93
            bad += low
            print(
                f"{world.name:<38}{value:>7.3f}{gap:>+8.3f}{len(out) / len(found):>9.2f}"
                f"{cover[0]:>9.3f}{cover[1]:>9.3f}"
                f"{right:>7}{wrong:>7}  {reasons}{'  BELOW' if low else ''}",
                flush=True,
            )
    print(f"{bad} worlds below .93; {time.monotonic() - began:.0f} s")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
