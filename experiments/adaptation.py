"""Does ``adapt-policy`` notice that a policy got worse, leave alone what did not, and find another weight?

    python experiments/adaptation.py                    # all three parts: some ten minutes on two cores
    python experiments/adaptation.py --only falls --runs 5

Each run is a lab under the pack ``associative`` with its own settings and a user who judges every memory that is shown.

- *falls*: the user asks one thing. A policy under which every memory that is shown answers it is replaced by one under
  which none does. After how many
  judged recalls is the return to the first one proposed, unasked (the notice of ``lab.feedback``), and is it proposed
  when asked for after 40 (``adapt_policy``)?
- *nothing*: a policy is replaced by another one that ranks otherwise, and what is of use follows neither. Any notice in
  the run, and any proposal when asked for at its end, is false.
- *weights*: importance alone tells what helps: 60 days, three new notes and four judged recalls a day. Are other numbers
  proposed?
"""

from __future__ import annotations

import argparse
import math
import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import memlab

_TOPICS = ("rust build", "sourdough bread", "harbour tides", "tax returns")
_WORSE = "(lambda (activation recency) (+ (* -0.9 activation) (* 0.1 recency)))"
_OTHER = "(lambda (activation importance) (- (* 0.2 activation) importance))"


@dataclass(frozen=True)
class Still:
    """A world without change: ``rate`` is how often a memory is of use; the rest says how that varies."""

    rate: float
    days: int = 60
    a_day: int = 2
    moods: float = 0.0
    """The standard deviation of a day's effect on the logit."""
    memory: float = 0.0
    """How much of a mood the next day keeps (0..1)."""
    clustered: float = 0.0
    """The standard deviation of a recall's effect on the logit, shared by what it showed."""
    delay: float = 0.0
    """The mean delay of a judgement in days."""
    late: float = 0.0
    """How many days later a success is told than a failure."""
    drift: float = 0.0
    """By how much the rate falls from the first day to the last, for all policies alike."""


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


def opened(clock: memlab.ManualClock, seed: int, *, each: int = 3, alike: bool = False) -> memlab.Lab:
    """A lab of a few notes on each of four topics, of various importance unless they are ``alike``."""
    chance = random.Random(seed)
    lab = memlab.open(pack="associative", clock=clock)
    for topic in _TOPICS:
        for number in range(each):
            importance = 0.5 if alike else chance.random()
            lab.remember(f"{topic} note {number}", importance=importance, linking="off")
    return lab


def fall(seed: int) -> dict[str, Any]:
    """One run of *falls*."""
    chance, clock = random.Random(seed), memlab.ManualClock("2026-06-01")
    before, a_day = chance.randrange(40, 121), chance.choice((1, 2, 4, 8))
    lab, topic = opened(clock, seed, each=4, alike=True), chance.choice(_TOPICS)

    def live(recalls: int) -> int | None:
        for number in range(recalls):
            clock.advance(days=1 / a_day)
            for hit in lab.recall(topic, limit=3):
                told = lab.feedback(hit, "success" if topic in hit.text else "fail")
                if told.notice is not None:
                    return number + 1
        return None

    early = live(before)
    lab.policies.install("recall-score", _WORSE)
    noticed = live(40)
    rows = lab.policies.attribution("recall-score").frame["rate"].to_list()
    asked = lab.operations.adapt_policy(missing="zero")
    found = lab.operations.adapt_policy(missing="zero", consent=True)
    back = lab.policies["recall-score"].hash == lab.policies.history("recall-score")["hash"][0]
    return {
        "a_day": a_day,
        "before": before,
        "early": early is not None,
        "rates": rows[:2],
        "noticed": noticed,
        "proposed": asked.action == "proposed",
        "reverted": found.action == "rolled back" and back,
    }


def still(seed: int, name: str) -> dict[str, Any]:
    """One run of *nothing*."""
    world, chance, clock = WORLDS[name], random.Random(seed), memlab.ManualClock("2026-06-01")
    lab = opened(clock, seed)
    waiting: list[tuple[float, int, int, str]] = []
    notices, mood = 0, 0.0
    for day in range(world.days):
        if day == world.days // 2:
            lab.policies.install("recall-score", _OTHER)
        keep = math.sqrt(1 - world.memory**2)
        mood = world.memory * mood + keep * chance.gauss(0, world.moods)
        rate = world.rate - world.drift * day / world.days
        for number in range(world.a_day):
            clock.advance(days=1 / world.a_day)
            now = day + (number + 1) / world.a_day
            shared = math.log(rate / (1 - rate)) + mood + chance.gauss(0, world.clustered)
            for hit in lab.recall(chance.choice(_TOPICS), limit=3):
                good = chance.random() < 1 / (1 + math.exp(-shared))
                wait = (chance.expovariate(1 / world.delay) if world.delay else 0.0) + world.late * good
                waiting.append((now + wait, hit.decision, hit.id, "success" if good else "fail"))
            due = [one for one in waiting if one[0] <= now]
            waiting = [one for one in waiting if one[0] > now]
            for _, decision, memory, outcome in due:
                told = lab.feedback(memory, outcome, decision=decision)
                notices += told.notice is not None
    found = lab.operations.adapt_policy(missing="censor")
    return {"world": name, "notice": notices > 0, "proposed": found.action == "proposed", "reason": found.reason}


def weights(seed: int) -> dict[str, Any]:
    """One run of *weights*."""
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
            for hit in lab.recall(chance.choice(_TOPICS), limit=5):
                helped = chance.random() < 0.05 + 0.9 * importance[hit.id - 1]
                lab.feedback(hit, "success" if helped else "fail")
    found = lab.operations.adapt_policy(missing="zero")
    return {"proposed": found.action == "proposed", "reason": found.reason, "gain": found.gain}


def main() -> None:
    """Run the parts and print their figures."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--only", choices=("falls", "nothing", "weights"))
    asked.add_argument("--runs", type=int, help="runs of a part; of each world of *nothing* a tenth of them")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--processes", type=int, default=2)
    asked.add_argument("--verbose", action="store_true")
    given = asked.parse_args()
    with get_context("spawn").Pool(given.processes) as pool:
        for part in ("falls", "nothing", "weights"):
            if given.only in (None, part):
                began = time.perf_counter()
                _PARTS[part](pool, given)
                print(f"  {time.perf_counter() - began:.0f} s\n")


def _falls(pool: Any, given: argparse.Namespace) -> None:
    runs = pool.map(fall, range(given.seed, given.seed + (given.runs or 20)))
    print(f"falls: {len(runs)} runs")
    for one in runs if given.verbose else ():
        print("  ", one)
    told = sorted(one["noticed"] for one in runs if one["noticed"] is not None)
    print(f"  noticed unasked within 40 judged recalls {len(told)} of {len(runs)}: {told}")
    for what in ("proposed", "reverted"):
        print(f"  {what} when asked after 40: {sum(one[what] for one in runs)} of {len(runs)}")
    print(f"  a notice before anything had changed: {sum(one['early'] for one in runs)} of {len(runs)}")


def _nothing(pool: Any, given: argparse.Namespace) -> None:
    each = max(1, (given.runs or 100) // len(WORLDS))
    false = 0
    print(f"nothing: {each} runs of each world")
    for name in WORLDS:
        runs = pool.map(partial(still, name=name), range(given.seed, given.seed + each))
        wrong = [one for one in runs if one["notice"] or one["proposed"]]
        false += len(wrong)
        notices, proposals = (sum(one[what] for one in runs) for what in ("notice", "proposed"))
        print(f"  {name:<28} notices {notices}, proposals when asked {proposals}, of {each}", flush=True)
        for one in wrong if given.verbose else ():
            print("     ", one["reason"])
    print(f"  false in {false} of {each * len(WORLDS)} runs")


def _weights(pool: Any, given: argparse.Namespace) -> None:
    runs = pool.map(weights, range(given.seed, given.seed + (given.runs or 20)))
    print(f"weights: other numbers proposed in {sum(one['proposed'] for one in runs)} of {len(runs)} runs")
    for one in runs:
        if given.verbose or not one["proposed"]:
            print("  ", one["reason"][:200])


_PARTS: dict[str, Callable[[Any, argparse.Namespace], None]] = {
    "falls": _falls,
    "nothing": _nothing,
    "weights": _weights,
}

if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
