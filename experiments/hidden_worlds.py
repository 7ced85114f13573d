"""Measure whether intervals cover the true value when a log's assumptions hold or fail.

    python experiments/hidden_worlds.py --half report --pools locomo-dev5.json      # 200 logs a world
    python experiments/hidden_worlds.py --half fit --only base,position             # the half on which gates are tuned
    python experiments/hidden_worlds.py --logs 2000                                 # worlds with fixed parameters

With ``--half``, each log draws the size of pool and results, noise, users, exploration items and the strength of the
position bias (``RANGES``). Each range has four quarters; constants of gates are fixed on the first and third
(``fit``), and reported on the others (``report``). Without it, a world has recalls of 60 users with a pool of 30. The
active policy shows the best five of its noisy scores and two exploration items of the 25 below, each with probability
.08. Another policy, with better scores, is evaluated on the log. The true value is the mean reward of showing the
other policy's results, over 200,000 recalls, or 20,000 for each log with ``--half``.

Worlds *as README* load a wide table with ``Slates.from_wide(..., scores=["old", "new"])``. *Real pools* are those of
LoCoMo or BEAM (``--pools``); a hidden user rewards the evidence of a question and its neighbours.

The column *released* is the share of logs with an interval. The column *warned* is the share of these with an untested
gate in the headline, or a note on heavy tails. The column *cover* is the share of released intervals that
cover the true value or difference. The column *wrong* counts verdicts for the wrong side, or any verdict if both are
equal. If the assumptions hold, coverage must be at least .93. If they fail, intervals must cover or be refused.

If the other policy is a challenger (*challenged*, *A/B*), ``memlab.verdict`` judges the log. The column *cover v* is then
the share of runs whose confidence sequence covers the running mean difference at all interim analyses. The columns
*right* and *wrong* count verdicts at any interim analysis.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from challenges import Opponent, reward_probability
from numpy.typing import NDArray
from results import Results, plot_dots

import memlab
from memlab.errors import MemlabError
from memlab.io.ingest import conversation, read_beam, read_locomo

Floats = NDArray[np.float64]
_START = np.datetime64("2026-01-01", "us")
_SAMPLERS = {"": "logged", "extra": "challenge", "lot": "lot", "ab": "ab"}


@dataclass(frozen=True)
class World:
    """A world: recalls per user (``sizes``), how the other policy compares (``target``), and so on."""

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
    no_answer: str = "none"  # none, random, item, outcome, clicks
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
    challenge: str = ""  # extra, lot, ab
    noise: float = 1.6
    readme: bool = False
    group: bool = True  # whether the table as README has the column group
    copies: bool = False  # each fact has several copies, and the first that is used earns
    tastes: int = 1
    heavy: bool = False
    real: bool = False


_BIASED = (1.0, 0.75, 0.55, 0.42, 0.34, 0.28, 0.24)
_MILD = (1.0, 0.95, 0.9, 0.86, 0.83, 0.8, 0.78)

WORLDS = (
    World("base", True),
    World("base, a tie", True, target="tie"),
    World("fully random slates", True, design="random"),
    World("tilted probes", True, design="tilted"),
    World("taste turns, probe rate changes", True, drift=True),
    World("delayed, horizon 7d", True, delay=True, horizon="7d", missing="zero"),
    World("missing at random, censored", True, no_answer="random", missing="censor"),
    World("12 users, Pareto sizes", True, users=12, sizes="pareto"),
    World("40 users, Pareto sizes", True, users=40, sizes="pareto"),
    World("rare reward", True, rare=True),
    World("n = 200", True, recalls=200),
    World("n = 120", True, recalls=120),
    World("missing by item, weighed", True, no_answer="item", missing="inverse"),
    World("missing by item, censored", False, no_answer="item", missing="censor"),
    World("missing by outcome, censored", False, no_answer="outcome", missing="censor"),
    World("missing by outcome, bounds", False, no_answer="outcome", missing="bounds"),
    World("clicks only, as it comes", False, no_answer="clicks"),
    World("position bias", False, position=_BIASED),
    World("position bias, mild", False, position=_MILD),
    World("redundant items", False, redundant=True),
    World("8.5% unsupported, worthless", False, unsupported="worthless", share=0.085),
    World("8.5% unsupported, gold", False, unsupported="gold", share=0.085),
    World("30% unsupported, worthless", False, unsupported="worthless", share=0.3),
    World("30% unsupported, gold", False, unsupported="gold", share=0.3),
    World("rate .5 logged as .6", False, rate=0.5, logged="rate"),
    World("tilt .7 logged as even", False, design="tilted", logged="tilt"),
    World("impressions without propensities", False, logged="none"),
    World(
        "40 users, Pareto, cluster forgotten", False, users=40, sizes="pareto", clusters="forgotten"
    ),
    World("n = 60", False, recalls=60),
    World("n = 30", False, recalls=30),
    World("challenged, one extra", True, challenge="extra", recalls=1200),
    World("challenged, one extra, a tie", True, challenge="extra", recalls=1200, target="tie"),
    World("challenged by lot", True, challenge="lot", recalls=1200),
    World("A/B", True, challenge="ab", recalls=1200),
    World("A/B, a tie", True, challenge="ab", recalls=1200, target="tie"),
    World(
        "A/B, missing at random",
        True,
        challenge="ab",
        recalls=1200,
        no_answer="random",
        missing="censor",
    ),
    World("A/B, position bias", True, challenge="ab", recalls=1200, position=_BIASED),
    World("A/B, redundant items", True, challenge="ab", recalls=1200, redundant=True),
    World("lot, position bias", False, challenge="lot", recalls=1200, position=_BIASED),
    World("challenged, position bias", False, challenge="extra", recalls=1200, position=_BIASED),
    World(
        "challenged position bias n = 300",
        False,
        challenge="extra",
        recalls=300,
        position=_BIASED,
    ),
    World(
        "challenged position bias in a tie n = 300",
        False,
        challenge="extra",
        recalls=300,
        position=_BIASED,
        target="tie",
    ),
    World(
        "challenged, position bias, mild", False, challenge="extra", recalls=1200, position=_MILD
    ),
    World("challenged, redundant items", False, challenge="extra", recalls=1200, redundant=True),
    World("base as README", True, readme=True),
    World("tie as README", True, readme=True, target="tie"),
    World("position bias as README", False, readme=True, position=_BIASED),
    World("position bias in a tie as README", False, readme=True, position=_BIASED, target="tie"),
    World("redundant items as README", False, readme=True, redundant=True),
    World("copies as README", False, readme=True, copies=True),
    World("copies as README without group", False, readme=True, copies=True, group=False),
    World("copies challenged", False, challenge="extra", copies=True),
    World("two tastes as README", True, readme=True, tastes=2),
    World("two tastes challenged", True, challenge="extra", tastes=2),
    World("two tastes of five users challenged", True, challenge="extra", tastes=2, users=5),
    World("heavy tails as README", False, readme=True, heavy=True),
    World("equal packs", True, challenge="extra", target="equal"),
    *(
        World(f"real pools {name} n = {count}", True, real=True, recalls=count, **more)  # type: ignore[arg-type]
        for count in (100, 300, 1000)
        for name, more in (("as README", {"readme": True}), ("challenged", {"challenge": "extra"}))
    ),
    World(
        "real pools with position bias challenged",
        False,
        300,
        real=True,
        challenge="extra",
        position=_BIASED,
    ),
    World(
        "real pools of five users challenged", True, 500, 5, real=True, challenge="extra", tastes=2
    ),
)

RANGES = {
    "pool": (20, 41),
    "head": (3, 9),
    "noise": (1.2, 2.2),
    "users": (30, 121),
    "probes": (1, 4),
    "strong": (0.45, 1.0),
    "mild": (0.08, 0.2),
}
"""The range of each free parameter; the last two are exponents of the examination k^-eta of position k."""


def draw_parameters(world: World, seed: int, half: str) -> World:
    """Return a world with parameters drawn for one log, from one half of their ranges."""
    dice = np.random.default_rng((6, seed))
    drawn = {}
    for name, (low, high) in RANGES.items():
        share = (2 * dice.integers(2) + (half == "report") + dice.random()) / 4
        drawn[name] = low + share * (high - low)
    pool, head, users, probes = (int(drawn[name]) for name in ("pool", "head", "users", "probes"))
    eta = (
        0.0 if world.position[1] == 1 else drawn["strong" if world.position == _BIASED else "mild"]
    )
    return replace(
        world,
        pool=30 if world.real else pool,
        head=head,
        noise=drawn["noise"],
        probes=probes,
        users=world.users if world.users == 5 else users,
        position=tuple((np.arange(1, pool + 1) ** -eta).tolist()),
    )


@dataclass(frozen=True)
class Drawn:
    """One log: arrays f64[recalls, pool] of scores and reward probabilities."""

    user: NDArray[np.int64]
    live: Floats
    other: Floats
    worth: Floats
    group: NDArray[np.int64]


def draw(world: World, dice: np.random.Generator, recalls: int) -> Drawn:
    """Draw recalls: the scores of both policies and the reward probability of each item."""
    if world.sizes == "pareto":
        weight = dice.pareto(1.2, world.users) + 0.1
        user = np.sort(dice.choice(world.users, recalls, p=weight / weight.sum()))
    else:
        user = np.arange(recalls) * world.users // recalls
    if world.real:
        return draw_real(world, dice, user)
    mood = dice.normal(0, 0.5, world.users)[user]
    quality = dice.normal(size=(recalls, world.pool))
    group = np.zeros(quality.shape, dtype=np.int64)
    if world.copies:
        group = dice.integers(0, world.pool // 3, quality.shape)
        quality = np.take_along_axis(quality, group, axis=1)
    if world.drift:
        turned = np.linspace(0, 1, recalls)[:, None]
        quality = quality * (1 - 2 * turned * 0.4)
    base = -2.9 if world.rare else 0.2
    worth = 1 / (1 + np.exp(-(0.9 * quality + mood[:, None] + base)))
    live = quality + dice.normal(0, world.noise, quality.shape)
    other = live + dice.normal(0, 1.0, quality.shape)
    if world.target == "better":
        other = other + 0.9 * quality
    elif world.target == "equal":
        other = 2 * live
    else:
        other = quality + dice.normal(0, world.noise, quality.shape)
    if world.copies:
        other = quality + dice.normal(0, 0.3, quality.shape)
    else:
        group = dice.integers(0, 10, quality.shape) % 3
    if world.tastes == 2:
        # two of five users like items that neither score knows of
        another = 1 / (1 + np.exp(-0.9 * dice.normal(size=quality.shape) - 0.2))
        worth = np.where((user % 5 < 2)[:, None], another, worth)
    return Drawn(user, live, other, worth, group)


_POOLS: list[Floats] = []
"""The scores of the default pack, similarities and reward probabilities of real pools, f64[questions, 30] each."""


def read_pools(path: Path) -> list[Floats]:
    """Return the pools of every question of a LoCoMo file, or of a folder with chats of BEAM."""
    parts: list[list[Floats]] = [[], [], []]
    chats = read_beam(path) if path.is_dir() else read_locomo(path)
    for benchmark in chats:
        with memlab.open(pack="memlab") as lab:
            conversation(lab, benchmark.conversation, project="p")
            rows = lab.memories.select("ref", "id", "session")
            ids = dict(zip(rows["ref"], rows["id"], strict=True))
            sessions = dict(zip(rows["id"], rows["session"], strict=True))
            for question in benchmark.questions:
                if question.category == 5 or not question.evidence:
                    continue
                gold = {ids[ref] for ref in question.evidence if ref in ids}
                near = {sessions[item] for item in gold}
                slate = lab.recall(question.text, project="p", at=benchmark.conversation.end).slate
                best = slate.frame.sort("score", descending=True).head(30)
                if best.height < 30:
                    continue
                parts[0].append(best["score"].to_numpy())
                parts[1].append(best["similarity"].to_numpy())
                parts[2].append(
                    np.array(
                        [
                            reward_probability(item, gold, sessions[item] in near)
                            for item in best["memory_id"].to_list()
                        ]
                    )
                )
    return [np.stack(part) for part in parts]


def store_pools(pools: list[Floats]) -> None:
    """Store the pools in a worker process."""
    _POOLS[:] = pools


def draw_real(world: World, dice: np.random.Generator, user: NDArray[np.int64]) -> Drawn:
    """Draw recalls from the real pools; users of the other taste like what is similar."""
    rows = dice.integers(len(_POOLS[0]), size=len(user))
    live, other, worth = (values[rows] for values in _POOLS)
    if world.tastes == 2:
        liked = np.where(rank_scores(other) < 3, 0.6, 0.05)
        worth = np.where((user % 5 < 2)[:, None], liked, worth)
    return Drawn(user, live, other, worth, np.zeros(live.shape, dtype=np.int64))


def rank_scores(scores: Floats) -> NDArray[np.int64]:
    """Return the rank of each score within its row, from 0."""
    order = np.argsort(-scores, axis=1, kind="stable")
    positions = np.empty_like(order)
    np.put_along_axis(positions, order, np.arange(scores.shape[1])[None, :], axis=1)
    return positions


def draw_unsupported(world: World, drawn: Drawn, dice: np.random.Generator) -> NDArray[np.bool_]:
    """Return the items of the other policy's results that the logging policy cannot show."""
    head = rank_scores(drawn.other) < world.head
    return (
        head
        & (rank_scores(drawn.live) >= world.head)
        & (dice.random(head.shape) < min(1.0, world.share * 2.2))
    )


def simulate_true_values(world: World, seed: int = 99, parts: int = 20) -> tuple[float, float]:
    """Return the true value of the other policy, and its difference to the active one."""
    values = []
    for part in range(parts):
        dice = np.random.default_rng((seed, part))
        users = replace(world, users=world.users if world.sizes == "pareto" else 500)
        drawn = draw(users, dice, 10_000)
        dead = (
            draw_unsupported(world, drawn, dice)
            if world.unsupported != "none"
            else np.zeros(drawn.live.shape, bool)
        )
        worth = drawn.worth
        if world.unsupported != "none":
            worth = np.where(dead, 0.02 if world.unsupported == "worthless" else 0.98, worth)
        pair = []
        for scores in (drawn.other, drawn.live):
            rank = rank_scores(scores)
            is_shown = rank < world.head
            pair.append(
                draw_rewards(world, worth, is_shown, rank, drawn.group, dice).sum(axis=1).mean()
            )
        values.append((pair[0], pair[0] - pair[1]))
    value, gap = np.mean(values, axis=0)
    # four of five rewards of the delayed world arrive within its horizon
    share = 0.8 if world.delay else 1.0
    return float(value) * share, float(gap) * share


def draw_rewards(
    world: World,
    worth: Floats,
    is_shown: NDArray[Any],
    rank_of_item: NDArray[Any],
    group: NDArray[Any],
    dice: Any,
) -> Floats:
    """Draw the rewards of items shown at these ranks (from 0)."""
    examination = np.array([*world.position, *([world.position[-1]] * worth.shape[1])])[
        np.minimum(rank_of_item, worth.shape[1] - 1)
    ]
    reward = (dice.random(worth.shape) < worth * examination) & is_shown
    if world.redundant or world.copies:
        order = np.argsort(np.where(is_shown, rank_of_item, 99), axis=1, kind="stable")
        used = np.zeros((len(worth), world.pool), dtype=bool)
        rows = np.arange(len(worth))
        for rank in range(world.head + world.probes):
            item = order[:, rank]
            there = is_shown[rows, item]
            its = group[rows, item]
            hit = reward[rows, item] & there
            reward[rows, item] = hit & ~used[rows, its]
            used[rows, its] |= hit
    size = np.ones(worth.shape)
    if world.heavy:
        # Pareto with the exponent 1.6, truncated at 100
        size = np.minimum((1 - dice.random(worth.shape)) ** (-1 / 1.6), 100.0)
    return np.asarray(reward * size)


@dataclass(frozen=True)
class Shown:
    """Exposure of each candidate, f64[recalls, pool]: shown, position, probability and reward.

    The position starts at 1 and is 0 for items that are not shown. A reward without feedback is NaN. ``head`` and
    ``own`` are the results of the active and the other policy.
    """

    drawn: Drawn
    head: NDArray[np.bool_]
    own: NDArray[np.bool_]
    is_shown: NDArray[np.bool_]
    position: NDArray[np.int64]
    chance: Floats
    worth: Floats
    reward: Floats


def sample_items(chance: Floats, dice: np.random.Generator) -> NDArray[np.bool_]:
    """Draw items by systematic sampling in random order; row sums of the chances are kept."""
    order = np.argsort(np.where(chance > 0, dice.random(chance.shape), 2.0), axis=1)
    ends = np.cumsum(np.take_along_axis(chance, order, axis=1), axis=1) - dice.random(
        (len(chance), 1)
    )
    points = np.ceil(ends - 1e-12)
    is_sampled = np.zeros(chance.shape, dtype=np.bool_)
    np.put_along_axis(
        is_sampled, order, np.diff(points, axis=1, prepend=np.zeros((len(chance), 1))) > 0, axis=1
    )
    return is_sampled


def simulate_log(world: World, seed: int) -> Shown:
    """Simulate one log of a world."""
    dice = np.random.default_rng((7, seed))
    drawn = draw(world, dice, world.recalls)
    count, _ = drawn.live.shape
    rank = rank_scores(drawn.live)
    dead = (
        draw_unsupported(world, drawn, dice)
        if world.unsupported != "none"
        else np.zeros(rank.shape, bool)
    )
    worth = drawn.worth
    if world.unsupported != "none":
        worth = np.where(dead, 0.02 if world.unsupported == "worthless" else 0.98, worth)
    head = (rank < world.head) & ~dead
    rate = np.full(count, world.rate)
    if world.design == "random":
        certain, below, weight, wanted = (
            np.zeros_like(head),
            ~dead,
            np.ones(rank.shape),
            world.head + world.probes,
        )
    else:
        certain, below, wanted = head, ~head & ~dead, world.probes
        weight = np.where(rank < 18, 0.7, 0.3) if world.design == "tilted" else np.ones(rank.shape)
        if world.drift:
            rate = np.where(np.arange(count) < count / 2, 1.0, 0.5)
    weight = np.where(below, weight, 0.0)
    chance = weight / weight.sum(axis=1, keepdims=True) * wanted
    is_shown = certain | (sample_items(chance, dice) & (dice.random(count) < rate)[:, None])
    chance = np.where(certain, 1.0, chance * rate[:, None])
    at = np.where(is_shown, np.where(certain, rank, 100 + dice.random(rank.shape)), 999.0)
    spot = np.argsort(np.argsort(at, axis=1, kind="stable"), axis=1, kind="stable")
    reward = draw_rewards(world, worth, is_shown, spot, drawn.group, dice)
    answered = is_shown.copy()
    if world.no_answer == "random":
        answered &= dice.random(rank.shape) < 0.35
    elif world.no_answer == "item":
        answered &= dice.random(rank.shape) < 1 / (1 + np.exp(-(drawn.live + 0.3)))
    elif world.no_answer == "outcome":
        answered &= dice.random(rank.shape) < np.where(reward > 0, 0.9, 0.35)
    elif world.no_answer == "clicks":
        answered &= reward > 0
    left = (chance > 0) & (chance < 1)
    if world.logged == "rate":
        chance = np.where(left, chance * 0.6 / 0.5, chance)
    elif world.logged == "tilt":
        chance = np.where(left, (world.probes / np.maximum(below.sum(axis=1), 1))[:, None], chance)
    own = rank_scores(drawn.other) < world.head
    return Shown(
        drawn,
        head,
        own,
        is_shown,
        np.where(is_shown, spot + 1, 0),
        chance,
        worth,
        np.where(answered, reward, np.nan),
    )


def build_slates(
    world: World, log: Shown, seed: int, challenges: list[str] | None = None
) -> memlab.Slates:
    """Return a log as slates, with the recorded ``challenges`` if there are any."""
    count, pool = log.is_shown.shape
    recall, item = np.repeat(np.arange(count), pool), np.tile(np.arange(pool), count)
    day = np.arange(count) / count * 60.0
    reward, answered = log.reward, ~np.isnan(log.reward)
    when = np.zeros(reward.shape)
    if world.delay:
        # four of five rewards arrive within a week; the horizon excludes later ones
        dice = np.random.default_rng((8, seed))
        late = np.where(
            dice.random(reward.shape) < 0.8,
            dice.random(reward.shape) * 6.9,
            8 + dice.random(reward.shape) * 20,
        )
        when = day[:, None] + late
        answered = (reward == 1) & (when <= 60.0)
    has_propensities = world.logged != "none"
    chance = pl.Series(
        "propensity", log.chance.ravel() if has_propensities else np.full(recall.size, np.nan)
    ).fill_nan(None)
    candidates = pl.DataFrame(
        {
            "decision": recall,
            "memory_id": item,
            "other": log.drawn.other.ravel(),
            "score": log.drawn.live.ravel(),
        }
    ).with_columns(chance)
    users = range(count) if world.clusters == "forgotten" else log.drawn.user
    decisions = pl.DataFrame(
        {"decision": np.arange(count), "at": _build_times(day), "limit": np.full(count, world.head)}
    )
    sampler = pl.lit(_SAMPLERS[world.challenge] if has_propensities else "unknown")
    decisions = decisions.with_columns(
        cluster=pl.Series([f"{user:06d}" for user in users]), sampler=sampler
    )
    if challenges is not None:
        pack_columns = {"pack": "live", "pack_hash": "a"}
        decisions = decisions.with_columns(
            *(pl.lit(value).alias(name) for name, value in pack_columns.items()),
            challenge=pl.Series(challenges),
        )
    is_shown, answers = pl.Series(log.is_shown.ravel()), pl.Series(answered.ravel())
    rows = candidates.select("decision", "memory_id", "propensity").with_columns(
        position=pl.Series(log.position.ravel())
    )
    feedback = candidates.select("decision", "memory_id").filter(answers)
    feedback = feedback.with_columns(reward=pl.Series(reward[answered]))
    if world.delay:
        feedback = feedback.with_columns(at=_build_times(when[answered]))
    tables = (
        decisions,
        candidates if has_propensities else candidates.filter(is_shown),
        rows.filter(is_shown),
        feedback,
    )
    return memlab.Slates(*(table.lazy() for table in tables), policies=("other",))


def _build_times(day: Floats) -> pl.Series:
    """Return times from days."""
    return pl.Series(_START + (day * 86_400e6).astype("timedelta64[us]")).dt.replace_time_zone(
        "UTC"
    )


def simulate_challenge(world: World, seed: int) -> tuple[Shown, list[str], Floats]:
    """Simulate a challenge; return log, recorded challenges and true differences."""
    dice = np.random.default_rng((9, seed))
    drawn, opponent = draw(world, dice, world.recalls), Opponent("other", world.challenge)
    places = rank_scores(drawn.live), rank_scores(drawn.other)
    is_shown, spot = (
        np.zeros(drawn.live.shape, dtype=np.bool_),
        np.full(drawn.live.shape, world.pool),
    )
    chance, logged = np.zeros(drawn.live.shape), []
    heads = [np.argsort(rank, axis=1)[:, : world.head].tolist() for rank in places]
    for recall, (live, own) in enumerate(zip(*heads, strict=True)):
        items, chance[recall], text = opponent.show(range(world.pool), live, own, dice)
        is_shown[recall, items], spot[recall, items] = True, np.arange(len(items))
        logged.append(text)
    reward = np.where(
        is_shown, draw_rewards(world, drawn.worth, is_shown, spot, drawn.group, dice), np.nan
    )
    if world.no_answer == "random":
        reward = np.where(dice.random(reward.shape) < 0.35, reward, np.nan)
    worth = [compute_expected(world, drawn, rank) for rank in places]
    head, own = (rank < world.head for rank in places)
    rank = np.where(is_shown, spot + 1, 0)
    return (
        Shown(drawn, head, own, is_shown, rank, chance, drawn.worth, reward),
        logged,
        worth[1] - worth[0],
    )


def compute_expected(world: World, drawn: Drawn, rank: NDArray[np.int64]) -> Floats:
    """Return the expected reward of showing the top ranks, f64[recalls]."""
    head = rank < world.head
    examination = np.array(world.position)[np.minimum(rank, len(world.position) - 1)]
    worth = np.where(head, drawn.worth * examination, 0.0)
    if not (world.redundant or world.copies):
        return np.asarray(worth.sum(axis=1))
    kinds = [
        1 - np.where(drawn.group == kind, 1 - worth, 1.0).prod(axis=1) for kind in range(world.pool)
    ]
    return np.asarray(sum(kinds))


@dataclass(frozen=True)
class Outcome:
    """One log: interval released, true values covered, verdict, and reason of a refusal."""

    released: bool
    covered: tuple[bool, bool] = (False, False)
    verdict: str = ""
    why: str = ""
    warned: bool = False
    gap: float = 0.0


def judge(task: tuple[World, int, float, float, str]) -> Outcome:
    """Evaluate one log of a world, whose value and difference are known unless it draws its parameters."""
    world, seed, value, gap, half = task
    warnings.simplefilter("ignore")
    if half:
        seed += 100_000 * (half == "report")
        world = draw_parameters(world, seed, half)
        value, gap = simulate_true_values(world, seed, parts=2)
        gap = gap if world.target == "better" else 0.0
    try:
        return (_judge_challenge if world.challenge else _judge_evaluation)(world, seed, value, gap)
    except MemlabError as error:
        return Outcome(False, why=str(error)[:70])


def _judge_evaluation(world: World, seed: int, value: float, gap: float) -> Outcome:
    """Evaluate the log of a world."""
    log = simulate_log(world, seed)
    if world.readme:
        slates, names = load_as_readme(world, log), ["new", "old"]
    else:
        slates, names = build_slates(world, log, seed), ["other"]
    baseline = "old" if world.readme else None
    evaluation = memlab.evaluate(
        slates,
        names,
        baseline=baseline,
        missing=world.missing,  # type: ignore[arg-type]
        horizon=world.horizon,
    )
    row = next(entry for entry in evaluation.rows if entry.policy == names[0])
    if row.value is None or row.difference is None:
        return Outcome(False, why=", ".join(gate.name for gate in row.closed))
    ends = (row.value, value), (row.difference, gap)
    covered = tuple(entry.low <= true <= entry.high for entry, true in ends)
    tails = any("heavy tails" in note for note in evaluation.notes)
    return Outcome(True, covered, row.verdict, warned=bool(row.untested) or tails, gap=gap)  # type: ignore[arg-type]


def load_as_readme(world: World, log: Shown) -> memlab.Slates:
    """Return a log as README loads one: a wide table with two scores, and no score that ranked it."""
    recall, item = np.indices(log.is_shown.shape)
    columns = {"query_id": recall, "memory_id": item, "rank": log.position, "clicked": log.reward}
    columns |= {"p": log.chance, "old": log.drawn.live, "new": log.drawn.other}
    frame = pl.DataFrame({name: values.ravel() for name, values in columns.items()})
    frame = frame.with_columns(user=pl.Series(log.drawn.user)[pl.Series(recall.ravel())])
    if world.copies and world.group:
        frame = frame.with_columns(group=pl.Series(log.drawn.group.ravel()))
    return memlab.Slates.from_wide(
        frame,
        decision="query_id",
        item="memory_id",
        shown="rank",
        reward="clicked",
        propensity="p",
        cluster="user",
        limit=world.head,
        scores=["old", "new"],
        reward_range=(0.0, 100.0) if world.heavy else None,
    )


def _judge_challenge(world: World, seed: int, _: float, gap: float) -> Outcome:
    """Judge the challenge of a world."""
    log, logged, worth = simulate_challenge(world, seed)
    verdict = memlab.verdict(build_slates(world, log, seed, logged), missing=world.missing)["other"]  # type: ignore[arg-type]
    if verdict.closed or verdict.planned is None:
        return Outcome(False, why=", ".join(gate.name for gate in verdict.closed))
    low, high = verdict.track["low"].to_numpy(), verdict.track["high"].to_numpy()
    truth = np.cumsum(worth) / np.arange(1, len(worth) + 1)
    always = bool(((low <= truth) & (truth <= high)).all())
    first = np.flatnonzero((low > 0) | (high < 0))
    side = "" if not len(first) else "better" if low[first[0]] > 0 else "worse"
    covered = always, verdict.planned.low <= gap <= verdict.planned.high
    return Outcome(True, covered, side, warned=bool(verdict.untested), gap=gap)


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first log")
    parser.add_argument(
        "--only", default="", help="comma-separated parts of names of worlds, or one name"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--half", default="", choices=("fit", "report"))
    parser.add_argument("--pools", type=Path, help="a LoCoMo file, for the worlds of real pools")
    arguments = parser.parse_args()
    results = Results("hidden_worlds", arguments)
    pools = [] if arguments.pools is None else read_pools(arguments.pools)
    rows: list[dict[str, Any]] = []
    wanted = [part for part in arguments.only.split(",") if part]
    names = {world.name for world in WORLDS}
    print(
        f"{'world':<38}{'true':>7}{'diff':>8}{'released':>9}{'cover v':>9}{'cover d':>9}{'right':>7}{'wrong':>7}"
        f"{'warned':>7}"
    )
    bad = 0
    began = time.monotonic()
    with get_context("spawn").Pool(arguments.processes, store_pools, (pools,)) as pool:
        store_pools(pools)
        for world in WORLDS:
            if arguments.only in names and world.name != arguments.only:
                continue
            if (wanted and not any(part in world.name for part in wanted)) or world.real > bool(
                pools
            ):
                continue
            value, gap = (np.nan, np.nan) if arguments.half else simulate_true_values(world)
            outcomes = pool.map(
                judge,
                [
                    (world, arguments.first + index, value, gap, arguments.half)
                    for index in range(arguments.logs)
                ],
                chunksize=4,
            )
            out = [outcome for outcome in outcomes if outcome.released]
            warned = float(np.mean([outcome.warned for outcome in out])) if out else np.nan
            gap = float(np.mean([outcome.gap for outcome in out])) if out else gap
            cover = [
                np.mean([outcome.covered[at] for outcome in out]) if out else np.nan
                for at in (0, 1)
            ]
            tie = world.target != "better"
            right = sum(
                outcome.verdict == ("better" if outcome.gap > 0 else "worse") and not tie
                for outcome in out
            )
            wrong = sum(outcome.verdict in ("better", "worse") for outcome in out) - right
            why = Counter(outcome.why for outcome in outcomes if outcome.why)
            reasons = "; ".join(f"{name} {count}" for name, count in why.most_common(3))
            low = len(out) >= 20 and min(cover) < 0.93
            bad += low
            rows.append(
                {
                    "world": world.name,
                    "assumptions": "hold" if world.sound else "violated",
                    "true value": float(value),
                    "true difference": float(gap),
                    "released": len(out) / len(outcomes),
                    "coverage of value": float(cover[0]) if out else None,
                    "coverage": float(cover[1]) if out else None,
                    "right": right,
                    "wrong": wrong,
                    "warned": warned if out else None,
                    "reasons": reasons,
                }
            )
            print(
                f"{world.name:<38}{value:>7.3f}{gap:>+8.3f}{len(out) / len(outcomes):>9.2f}"
                f"{cover[0]:>9.3f}{cover[1]:>9.3f}"
                f"{right:>7}{wrong:>7}{warned:>6.2f}  {reasons}{'  BELOW' if low else ''}",
                flush=True,
            )
    print(f"{bad} worlds below .93; {time.monotonic() - began:.0f} s")
    results.save(
        rows,
        plot_dots(
            rows,
            label="world",
            value="coverage",
            group="assumptions",
            reference=0.95,
            title="Share of released intervals that cover the true difference",
        ),
        height=1.0 + 0.22 * len(rows),
    )
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
