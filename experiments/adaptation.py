"""Measure whether ``adapt-policy`` detects that a policy got worse, without false alarms.

    python experiments/adaptation.py                    # falls, nothing and weights: nine minutes of processor time
    python experiments/adaptation.py --only falls --runs 5
    python experiments/adaptation.py --only more,beside,lives
    python experiments/adaptation.py --only logged --log reviews.csv

Each run of the first three parts is a lab under the pack ``associative``. A simulated user judges every result.

- *falls*: a policy whose results all answer the query is replaced by one whose results never do. Counted are the judged
  recalls until ``lab.feedback`` proposes the return, and whether ``adapt_policy`` proposes it after 40.
- *nothing*: a policy is replaced by one with another ranking, and usefulness depends on neither. Every notice or
  proposal is a false alarm.
- *weights*: only importance predicts usefulness, over 60 days with three notes and four judged recalls a day. Counted
  are the runs in which new parameters are proposed.
- *more*: smaller and slower falls, other packs, late judgements, or a fall within one day (``FALLS``).
- *beside*: as *nothing*, but usefulness falls for all policies near the change (``BESIDE``), or queries come all day.
  Some of these no log can distinguish from a worse policy; they are counted, too.
- *lives*: worlds of ``memlab.simulation``, whose events and user are independent of this experiment.
- *logged*: a real log of rewards, such as a learner's reviews (``review_time``, ``review_rating``). The version name
  changes at many times, so any alarm is false. Then later successes are thinned, which makes true falls.
"""

from __future__ import annotations

import argparse
import math
import random
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl

import memlab
from memlab.science.evaluation import Earnings, compare_periods
from memlab.science.simulation import FRESH, HABIT, PROBING, SURE
from memlab.science.simulation import WORLDS as SIMULATED
from memlab.science.simulation import live as live_through

_TOPICS = ("rust build", "sourdough bread", "harbour tides", "tax returns")
_WORSE = "(lambda (activation recency) (+ (* -0.9 activation) (* 0.1 recency)))"
_OTHER = "(lambda (activation importance) (- (* 0.2 activation) importance))"


@dataclass(frozen=True)
class Still:
    """World without a policy effect: ``rate`` of useful results, and how it varies."""

    rate: float
    days: int = 60
    a_day: int = 2
    moods: float = 0.0
    """The standard deviation of a day's effect on the logit."""
    memory: float = 0.0
    """The autocorrelation of a day's effect with the next day (0..1)."""
    clustered: float = 0.0
    """The standard deviation of a recall's effect on the logit, shared by its results."""
    delay: float = 0.0
    """The mean delay of a judgement in days."""
    late: float = 0.0
    """The extra delay of a success compared with a failure, in days."""
    drift: float = 0.0
    """The decrease of the rate over the whole run, for all policies."""
    step: float | None = None
    """The day, relative to the policy change, on which the rate becomes ``low`` for all policies."""
    over: float = 0.0
    """The duration of that decrease in days."""
    low: float = 0.3


WORLDS: dict[str, Still] = {
    "rate .3": Still(0.3),
    "rate .6": Still(0.6),
    "rate .9": Still(0.9),
    "rate .98": Still(0.98),
    "moods of days": Still(0.6, moods=1.0),
    "moods that last": Still(0.6, moods=0.8, memory=0.7),
    "recalls of one mind": Still(0.6, clustered=3.0, a_day=4),
    "delays": Still(0.6, delay=2.0),
    "success told 2 days late": Still(0.6, late=2.0),
    "drift for all, .8 to .5": Still(0.8, drift=0.3),
}

BESIDE: dict[str, Still] = {
    "24 a day with lasting moods": Still(0.6, moods=0.8, memory=0.7, a_day=24, days=20),
    "10 days before the change": Still(0.9, step=-10),
    "3 days before the change": Still(0.9, step=-3),
    "3 days after the change": Still(0.9, step=3),
    "10 days after the change": Still(0.9, step=10),
    "over 10 days from 10 before": Still(0.9, step=-10, over=10),
    "over 10 days around it": Still(0.9, step=-5, over=10),
    "over 10 days from 5 after": Still(0.9, step=5, over=10),
}


def open_lab(
    clock: memlab.ManualClock,
    seed: int,
    *,
    each: int = 3,
    alike: bool = False,
    pack: str = "associative",
) -> memlab.Lab:
    """Open a lab with notes on four topics, of equal importance if ``alike``."""
    chance = random.Random(seed)
    lab = memlab.open(pack=pack, clock=clock)
    for topic in _TOPICS:
        for number in range(each):
            importance = 0.5 if alike else chance.random()
            lab.remember(f"{topic} note {number}", importance=importance, linking="off")
    return lab


@dataclass(frozen=True)
class Falling:
    """A fall of usefulness: the rates before and after the change, 0..1."""

    before: float = 1.0
    after: float = 0.0
    over: float = 0.0
    """The duration of the fall in days."""
    a_day: tuple[int, ...] = (1, 2, 4, 8)
    """Recalls a day; 0 if the clock does not advance."""
    every: int = 0
    """Days between two batches of judgements; 0 if each result is judged at once."""
    delay: float = 0.0
    """The mean delay of a judgement in days."""
    pack: str = "associative"
    worse: str = _WORSE
    limit: int = 40
    """The maximum number of judged recalls after the change."""


_UPSIDE_DOWN = "(lambda (similarity lexical) (- (+ similarity lexical)))"

FALLS: dict[str, Falling] = {
    "1.0 to 0.0": Falling(),
    "associative-plus": Falling(pack="associative-plus", worse=_UPSIDE_DOWN),
    "memlab": Falling(pack="memlab", worse=_UPSIDE_DOWN),
    "a recall an hour": Falling(a_day=(24,)),
    "40 recalls a day": Falling(a_day=(40,)),
    "all within a day": Falling(a_day=(0,)),
    "0.9 to 0.4": Falling(0.9, 0.4, limit=120),
    "0.9 to 0.6": Falling(0.9, 0.6, limit=240),
    "1.0 to 0.0 over 10 days": Falling(over=10, limit=240),
    "0.9 to 0.3 over 10 days": Falling(0.9, 0.3, over=10, limit=240),
    "judged once a week": Falling(every=7, limit=120),
    "delays of 2 days": Falling(delay=2.0, limit=120),
}


def simulate_fall(seed: int, name: str = "1.0 to 0.0") -> dict[str, Any]:
    """Simulate one run of *falls* or *more*."""
    world, chance, clock = FALLS[name], random.Random(seed), memlab.ManualClock("2026-06-01")
    before, a_day = chance.randrange(40, 121), chance.choice(world.a_day)
    lab, topic = open_lab(clock, seed, each=4, alike=True, pack=world.pack), chance.choice(_TOPICS)
    waiting: list[tuple[float, dict[str, Any]]] = []
    day = 0.0

    def live(recalls: int, began: float | None) -> int | None:
        nonlocal day, waiting
        for number in range(recalls):
            if a_day:
                clock.advance(days=1 / a_day)
                day += 1 / a_day
            done = (
                0.0 if began is None else min((day - began) / world.over, 1) if world.over else 1.0
            )
            hits = lab.recall(topic, limit=3, explore=True)
            for hit in hits:
                if began is None or not world.over:
                    rate = world.before if topic in hit.text else world.after
                else:  # usefulness decreases for every result
                    rate = world.before + done * (world.after - world.before)
                row = {"memory": hit, "outcome": "success" if chance.random() < rate else "fail"}
                wait = chance.expovariate(1 / world.delay) if world.delay else 0.0
                due = (
                    (math.floor(day / world.every) + 1) * world.every if world.every else day + wait
                )
                waiting.append((due, row))
            rows = [row for due, row in waiting if due <= day]
            waiting = [entry for entry in waiting if entry[0] > day]
            if any(receipt.notice is not None for receipt in lab.feedback(rows)):
                return number + 1
        return None

    early = live(before, None)
    lab.policies.install("recall-score", world.worse)
    noticed = live(world.limit, day)
    rows = lab.policies.attribution("recall-score").frame["rate"].to_list()
    first = lab.upkeep.operations.adapt_policy(
        missing="zero" if not world.delay and not world.every else "censor"
    )
    change = lab.upkeep.operations.adapt_policy(missing="censor", consent=True)
    back = lab.policies["recall-score"].hash == lab.policies.history("recall-score")["hash"][0]
    return {
        "a_day": a_day,
        "before": before,
        "early": early is not None,
        "rates": rows[:2],
        "noticed": noticed,
        "proposed": first.action == "proposed",
        "reverted": change.action == "rolled back" and back,
    }


def simulate_still(seed: int, name: str) -> dict[str, Any]:
    """Simulate one run of *nothing*."""
    world, chance, clock = (
        (WORLDS | BESIDE)[name],
        random.Random(seed),
        memlab.ManualClock("2026-06-01"),
    )
    lab = open_lab(clock, seed)
    waiting: list[tuple[float, int, int, str]] = []
    notices, mood = 0, 0.0
    for day in range(world.days):
        if day == world.days // 2:
            lab.policies.install("recall-score", _OTHER)
        keep = math.sqrt(1 - world.memory**2)
        mood = world.memory * mood + keep * chance.gauss(0, world.moods)
        rate = world.rate - world.drift * day / world.days
        if world.step is not None:
            past = day - world.days // 2 - world.step
            rate += (world.low - world.rate) * (
                min(max(past / world.over, 0), 1) if world.over else past >= 0
            )
        for number in range(world.a_day):
            clock.advance(days=1 / world.a_day)
            now = day + (number + 1) / world.a_day
            shared = math.log(rate / (1 - rate)) + mood + chance.gauss(0, world.clustered)
            for hit in lab.recall(chance.choice(_TOPICS), limit=3, explore=True):
                good = chance.random() < 1 / (1 + math.exp(-shared))
                wait = (
                    chance.expovariate(1 / world.delay) if world.delay else 0.0
                ) + world.late * good
                waiting.append((now + wait, hit.decision, hit.id, "success" if good else "fail"))
            due = [entry for entry in waiting if entry[0] <= now]
            waiting = [entry for entry in waiting if entry[0] > now]
            for _, decision, memory, outcome in due:
                receipt = lab.feedback(memory, outcome, decision=decision)
                notices += receipt.notice is not None
    change = lab.upkeep.operations.adapt_policy(missing="censor")
    return {
        "world": name,
        "notice": notices > 0,
        "proposed": change.action == "proposed",
        "reason": change.reason,
    }


def simulate_weights(seed: int) -> dict[str, Any]:
    """Simulate one run of *weights*."""
    chance, clock = random.Random(seed), memlab.ManualClock("2026-06-01")
    lab = memlab.open(pack="associative", clock=clock)
    importance: list[float] = []
    for day in range(60):
        for number in range(3):
            importance.append(chance.random())
            text = f"{chance.choice(_TOPICS)} on day {day}, note {number}"
            lab.remember(text, importance=importance[-1], linking="off")
        for _ in range(4):
            clock.advance(hours=6)
            for hit in lab.recall(chance.choice(_TOPICS), limit=5, explore=True):
                helped = chance.random() < 0.05 + 0.9 * importance[hit.id - 1]
                lab.feedback(hit, "success" if helped else "fail")
    change = lab.upkeep.operations.adapt_policy(missing="zero")
    return {"proposed": change.action == "proposed", "reason": change.reason, "gain": change.gain}


@dataclass(frozen=True)
class Lived:
    """Simulated run in ``world``: pack ``before`` until day 20 of 40, then ``after``."""

    world: str
    before: str
    after: str
    falls: bool | None
    """Whether the later pack is worse; None if the world changes at the same time."""


_AGAINST = """(pack against "What is far from the question." :inherits memlab)
(setting limit 5)
(defpolicy recall-score [similarity lexical] (- (+ (min-max similarity) (min-max lexical))))
"""

LIVES: dict[str, Lived] = {
    "same: other numbers": Lived("same", PROBING, FRESH, False),
    "same: what is far": Lived("same", PROBING, _AGAINST, False),
    "no probes: what is far": Lived("differs", SURE, _AGAINST, True),
    "differs: what is far": Lived("differs", PROBING, _AGAINST, True),
    "reverses: habit, then fresh": Lived("reverses", HABIT, FRESH, None),
}


def simulate_life(seed: int, name: str) -> dict[str, Any]:
    """Simulate one run of *lives*; return its notices and its final proposal."""
    lived, notices = LIVES[name], []
    plain = memlab.Lab.feedback

    def feedback(lab: memlab.Lab, *args: Any, **options: Any) -> Any:
        receipt = plain(lab, *args, **options)
        if receipt.notice is not None:
            notices.append(lab.upkeep.operations.check_fall())
        return receipt

    world = replace(
        SIMULATED[lived.world], seed=seed, days=40, packs=((0, lived.before), (20, lived.after))
    )
    memlab.Lab.feedback = feedback  # type: ignore[method-assign]
    try:
        with live_through(world) as lived_through:
            lab = lived_through.lab
            options = lab.upkeep.operations.check_fall()
            judged = int(lab.slates().feedback.collect()["decision"].n_unique())
    finally:
        memlab.Lab.feedback = plain  # type: ignore[method-assign]
    return {"notice": bool(notices), "proposed": options is not None, "judged": judged}


def measure_log(path: Path, share: float) -> tuple[int, int, list[int]]:
    """Return the number of changes, of detected falls, and the judged recalls until each."""
    rows = pl.read_csv(path, try_parse_dates=True).sort("review_time")
    times, good = rows["review_time"], (rows["review_rating"] > 1).to_numpy()
    days = times.dt.epoch("us") // 86_400_000_000
    in_turn = (days.rank("dense") - 1).to_list()  # the days on which something was judged, numbered
    change_days: list[int] = []
    changes = range(8, in_turn[-1] - 8)
    for change in changes:
        chance = random.Random(change)
        rewards = [
            float(ok and (day < change or chance.random() < share))
            for ok, day in zip(good, in_turn, strict=True)
        ]
        judged = find_fall(
            times, days.to_list(), rewards, in_turn.index(change), in_turn.index(change + 8)
        )
        if judged is not None:
            change_days.append(judged)
    return len(changes), len(change_days), sorted(change_days)


def find_fall(
    times: pl.Series, days: list[int], rewards: list[float], since: int, until: int
) -> int | None:
    """Return the judged recalls until a fall is detected, checked after each recall."""
    earned, again = Earnings(), 0.0
    for row in range(until):
        earned.add("after" if row >= since else "before", days[row], rewards[row], row)
        if row < since or not earned.may_have_fallen(("before", "after"), "after"):
            continue
        if earned.blocks("after") < again:
            continue
        again = 1.5 * earned.blocks("after")
        ids = list(range(row + 1))
        hashes = ["after" if number >= since else "before" for number in ids]
        exposures = pl.DataFrame({"decision": ids, "memory_id": ids, "propensity": 1.0})
        judged = pl.DataFrame(
            {
                "decision": ids,
                "memory_id": ids,
                "reward": rewards[: row + 1],
                "at": times[: row + 1],
            }
        )
        slates = memlab.Slates.from_frames(
            decisions=pl.DataFrame({"decision": ids, "at": times[: row + 1], "pack_hash": hashes}),
            candidates=exposures,
            exposures=exposures.with_columns(position=pl.lit(1)),
            feedback=judged,
        )
        if compare_periods(slates, ["before", "after"], missing="censor").fallen:
            return row + 1 - since
    return None


def main() -> None:
    """Run the parts and print their figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="comma-separated parts (default: falls,nothing,weights)")
    parser.add_argument(
        "--worlds", help="comma-separated worlds of the parts more, beside and lives"
    )
    parser.add_argument("--log", type=Path, help="the log for the part logged")
    parser.add_argument(
        "--runs",
        type=int,
        help="runs of a part; the part nothing runs a tenth of them in each world",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    with get_context("spawn").Pool(arguments.processes) as pool:
        for part in (arguments.only or "falls,nothing,weights").split(","):
            began = time.perf_counter()
            _PARTS[part](pool, arguments)
            print(f"  {time.perf_counter() - began:.0f} s\n")


def _print_falls(pool: Any, arguments: argparse.Namespace) -> None:
    """Print the part *falls*."""
    runs = pool.map(simulate_fall, range(arguments.seed, arguments.seed + (arguments.runs or 20)))
    print(f"falls: {len(runs)} runs")
    for run in runs if arguments.verbose else ():
        print("  ", run)
    delays = sorted(run["noticed"] for run in runs if run["noticed"] is not None)
    print(
        f"  noticed without a request within 40 judged recalls {len(delays)} of {len(runs)}: {delays}"
    )
    for what in ("proposed", "reverted"):
        print(f"  {what} on request after 40: {sum(run[what] for run in runs)} of {len(runs)}")
    print(
        f"  a notice before anything had changed: {sum(run['early'] for run in runs)} of {len(runs)}"
    )


def _print_nothing(pool: Any, arguments: argparse.Namespace) -> None:
    """Print the part *nothing*."""
    each = max(1, (arguments.runs or 100) // len(WORLDS))
    false = 0
    print(f"nothing: {each} runs of each world")
    for name in WORLDS:
        runs = pool.map(
            partial(simulate_still, name=name), range(arguments.seed, arguments.seed + each)
        )
        wrong = [run for run in runs if run["notice"] or run["proposed"]]
        false += len(wrong)
        notices, proposals = (sum(run[what] for run in runs) for what in ("notice", "proposed"))
        print(
            f"  {name:<28} notices {notices}, proposals on request {proposals}, of {each}",
            flush=True,
        )
        for run in wrong if arguments.verbose else ():
            print("     ", run["reason"])
    print(f"  false in {false} of {each * len(WORLDS)} runs")


def _print_weights(pool: Any, arguments: argparse.Namespace) -> None:
    """Print the part *weights*."""
    runs = pool.map(
        simulate_weights, range(arguments.seed, arguments.seed + (arguments.runs or 20))
    )
    print(
        f"weights: other numbers proposed in {sum(run['proposed'] for run in runs)} of {len(runs)} runs"
    )
    for run in runs:
        if arguments.verbose or not run["proposed"]:
            print("  ", run["reason"][:200])


def select_worlds(worlds: Iterable[str], arguments: argparse.Namespace) -> list[str]:
    """Return the worlds that ``--worlds`` names, or all."""
    return (
        list(worlds)
        if arguments.worlds is None
        else [name for name in arguments.worlds.split(",") if name in worlds]
    )


def _print_more(pool: Any, arguments: argparse.Namespace) -> None:
    """Print the part *more*."""
    count = arguments.runs or 20
    print(f"more: {count} runs each; judged recalls until the notice")
    for name in select_worlds(FALLS, arguments):
        runs = pool.map(
            partial(simulate_fall, name=name), range(arguments.seed, arguments.seed + count)
        )
        delays = sorted(run["noticed"] for run in runs if run["noticed"] is not None)
        within = sum(run <= 40 for run in delays)
        proposals, early = (sum(run[what] for run in runs) for what in ("proposed", "early"))
        print(
            f"  {name:<26} noticed {len(delays)} of {count}, within 40 recalls {within}, median "
            f"{delays[len(delays) // 2] if delays else '-'}, last {delays[-1] if delays else '-'}; "
            f"within {FALLS[name].limit}; proposed on request at the end {proposals}; too early {early}",
            flush=True,
        )


def _print_concurrent(pool: Any, arguments: argparse.Namespace) -> None:
    """Print the part *beside*."""
    count = arguments.runs or 20
    print(f"beside: {count} runs each")
    for name in select_worlds(BESIDE, arguments):
        runs = pool.map(
            partial(simulate_still, name=name), range(arguments.seed, arguments.seed + count)
        )
        notices, proposals = (sum(run[what] for run in runs) for what in ("notice", "proposed"))
        print(
            f"  {name:<28} notices {notices}, proposals on request {proposals}, of {count}",
            flush=True,
        )


def _print_lives(pool: Any, arguments: argparse.Namespace) -> None:
    """Print the part *lives*."""
    count = arguments.runs or 5
    print(f"lives: {count} runs each")
    for name in select_worlds(LIVES, arguments):
        lived = LIVES[name]
        runs = pool.map(
            partial(simulate_life, name=name), range(arguments.seed, arguments.seed + count)
        )
        notices, proposals = (sum(run[what] for run in runs) for what in ("notice", "proposed"))
        truth = {True: "a fall", False: "no fall", None: "the world changes too"}[lived.falls]
        print(
            f"  {name:<32} ({truth}) notices {notices}, at the end {proposals}, of {count}",
            flush=True,
        )


def _print_logged(pool: Any, arguments: argparse.Namespace) -> None:
    """Print the part *logged*."""
    print("logged: a change of name at many times, and the successes after it thinned to a share")
    shares = (1.0, 0.75, 0.5, 0.0)
    for share, (changes, days, judged) in zip(
        shares, pool.map(partial(measure_log, arguments.log), shares), strict=True
    ):
        median = judged[len(judged) // 2] if judged else "-"
        print(
            f"  share {share:<5} fallen {days} of {changes}; judged until then, median {median}",
            flush=True,
        )


_PARTS: dict[str, Callable[[Any, argparse.Namespace], None]] = {
    "falls": _print_falls,
    "nothing": _print_nothing,
    "weights": _print_weights,
    "more": _print_more,
    "beside": _print_concurrent,
    "lives": _print_lives,
    "logged": _print_logged,
}

if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
