"""Measure how often a hostile session, or one of many challenges, leads a verdict to the wrong pack.

    python experiments/hostile_sessions.py                 # 500 logs a cell, 20 labs: six minutes
    python experiments/hostile_sessions.py --runs 50 --labs 2

**Hostile sessions.** Each log has recalls with one extra item under a challenge, observed as ``memlab.verdict`` observes
them. The difference is -.35, .35 or 0 rewards per recall. These are drawn for each log:

- 4 to 7 disputed items
- a mean session of 5 to 30 recalls, and moods of sessions with a standard deviation of 0 to .5
- a success probability of .05 to .2

One session of 12% of the recalls rewards only what makes the worse pack better; in a tie, the challenger. The figures:

- *wrong*: the share of logs in which a rule names a wrong pack after any recall (any pack, in a tie)
- *median*: the first recall after which the right pack is named

The rule of memlab.verdict is ``without each session``. The others are the sequence alone, the same at other levels,
sessions of bounded weight, and session means cut at one reward.

**Blocks.** After how many of 5,000 honest recalls a difference of -.35 is found if sessions are blocks, by the maximum
weight of a block in recalls.

**Challenges.** Ten challenges of equal packs one after another, 300 recalls each, with the levels of their numbers.
Then real labs in which ten challenges start one after another: how many verdicts the start of another withdraws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from results import Results, plot_dots

import memlab
from memlab.science.evaluation._influence import level_without
from memlab.science.evaluation._sequence import Process, level_of

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
_HOSTILE = 10**6
"""The number of the hostile session; honest sessions count from 0."""
_LEVEL = level_of(1, 0.95)


@dataclass(frozen=True)
class Recalls:
    """Observations of the difference, their bound in both directions, and sessions."""

    values: Floats
    limit: float
    session: NDArray[np.int64]

    def weigh(self, weights: Floats) -> Process:
        """Return the process of the observations with weights known before each of them."""
        limit = self.limit * weights
        return Process(self.values * weights, self.values * weights, -limit, limit, weights, 1.0)


def simulate_recalls(
    dice: np.random.Generator, count: int, difference: float, hostile: str
) -> Recalls:
    """Simulate a challenge with one extra item per recall."""
    disputed, mean = int(dice.integers(4, 8)), float(dice.uniform(5, 30))
    base, mood = dice.uniform(0.05, 0.2), dice.uniform(0, 0.5)
    session = np.repeat(np.arange(count), dice.geometric(1 / mean, count))[:count]
    if hostile:
        size = round(0.12 * count)
        start = {"begin": 0, "middle": (count - size) // 2, "end": count - size}[hostile]
        session = np.concatenate(
            [session[:start], np.full(size, _HOSTILE), session[start : count - size]]
        )
    factor = np.exp(dice.normal(0, mood, count + 1))[np.unique(session, return_inverse=True)[1]]
    gain = np.array([max(difference, 0), max(-difference, 0)]) / disputed
    own, live = np.minimum((base + gain)[:, None] * factor, 1)
    values = disputed * (dice.random(count) < own) - dice.binomial(disputed, live).astype(float)
    values[session == _HOSTILE] = disputed if difference <= 0 else -disputed
    return Recalls(values, float(disputed), session)


def cap_weights(session: NDArray[np.int64], share: float, free: float) -> Floats:
    """Return weights: a session has at most ``free`` recalls, or a share of the weight so far."""
    weights, total, spent = np.zeros(len(session)), 0.0, dict.fromkeys(session.tolist(), 0.0)
    for index, number in enumerate(session.tolist()):
        weights[index] = min(max(max(free, share * total) - spent[number], 1e-9), 1.0)
        spent[number] += weights[index]
        total += weights[index]
    return weights


def decide(
    process: Process, level: float, session: NDArray[np.int64] | None = None
) -> tuple[Flags, Flags]:
    """Return after which recalls each side holds, without any one session if they are given."""
    # No observation has the group 1, so nothing is left out.
    groups = [1] if session is None else np.unique(session).tolist()
    session = np.zeros(len(process.lower), dtype=np.int64) if session is None else session
    above, below = (
        process.decided_without(session, groups, level, above=side) for side in (True, False)
    )
    return above, below


def name_packs(recalls: Recalls) -> Iterator[tuple[str, Flags, Flags]]:
    """Yield each rule, and after which recalls it names the challenger and the live pack."""
    count = len(recalls.values)
    plain = recalls.weigh(np.ones(count))
    above, below = decide(plain, _LEVEL)
    yield "all recalls", above, below
    for rule, level in (
        ("without each session", level_without(0.95)),
        ("the same, half of its error", 0.9),
        ("the same, at the level of all", _LEVEL),
    ):
        without = decide(plain, level, recalls.session)
        yield rule, above & without[0], below & without[1]
    for share, free in ((0.05, 10.0), (0.1, 20.0)):
        capped = recalls.weigh(cap_weights(recalls.session, share, free))
        yield f"at most {share:.0%} or {free:.0f} recalls", *decide(capped, _LEVEL)
    first, number = np.unique(recalls.session, return_inverse=True)
    ends = np.zeros(len(first), dtype=np.int64)
    np.maximum.at(ends, number, np.arange(count))
    order = np.argsort(ends)
    means = np.clip(np.bincount(number, recalls.values) / np.bincount(number), -1, 1)[order]
    # Rates are in units of the range of rewards; a quarter of it lets them reach that of a mean between -1 and 1.
    blocks = Process(means, means, *(np.full(len(means), s) for s in (-1.0, 1.0, 1.0)), 0.25)
    latest = np.searchsorted(ends[order], np.arange(count), side="right") - 1
    sides = decide(blocks, _LEVEL)
    yield "session means cut at 1", *(side[latest] & (latest >= 0) for side in sides)


def measure_hostile(runs: int, count: int) -> list[dict[str, object]]:
    """Return a row for each difference, hostile session and rule."""
    rows: list[dict[str, object]] = []
    for cell, (difference, hostile) in enumerate(
        (difference, hostile)
        for difference in (-0.35, 0.35, 0.0)
        for hostile in ("", "begin", "middle", "end")
    ):
        wrong: dict[str, list[bool]] = {}
        first: dict[str, list[float]] = {}
        for seed in range(runs):
            recalls = simulate_recalls(
                np.random.default_rng((31, cell, seed)), count, difference, hostile
            )
            for rule, above, below in name_packs(recalls):
                right, other = (above, below) if difference > 0 else (below, above)
                bad = above | below if difference == 0 else other
                wrong.setdefault(rule, []).append(bool(bad.any()))
                first.setdefault(rule, []).append(
                    float(np.argmax(right)) + 1 if right.any() else np.inf
                )
        for rule in wrong:
            median = float(np.median(first[rule]))
            row = {
                "difference": difference,
                "hostile": hostile or "none",
                "rule": rule,
                "wrong": float(np.mean(wrong[rule])),
                "by 450": float(np.mean(np.array(first[rule]) <= 450)) if difference else None,
                "median": median if difference and np.isfinite(median) else None,
            }
            rows.append(row)
            print("  ".join(f"{value}" for value in row.values()), flush=True)
    return rows


def join_sessions(recalls: Recalls, maximum: float) -> tuple[Process, NDArray[np.int64]]:
    """Return the process of session means with a maximum weight, and the last recall of each."""
    first, number, sizes = np.unique(recalls.session, return_inverse=True, return_counts=True)
    ends = np.zeros(len(first), dtype=np.int64)
    np.maximum.at(ends, number, np.arange(len(number)))
    weights = np.minimum(sizes, maximum).astype(float)
    values = np.bincount(number, recalls.values) / sizes * weights
    limit = recalls.limit * weights
    return Process(values, values, -limit, limit, weights, 1.0), ends


def measure_blocks(runs: int) -> dict[float, float]:
    """Return the median number of recalls until a verdict, by the maximum weight of a block."""
    medians = {}
    for maximum in (1.0, 2.0, 4.0, 8.0, np.inf):
        counts = []
        for seed in range(runs):
            recalls = simulate_recalls(np.random.default_rng((34, seed)), 5000, -0.35, "")
            process, ends = join_sessions(recalls, maximum)
            below = np.flatnonzero(decide(process, _LEVEL)[1])
            counts.append(ends[below[0]] + 1 if len(below) else np.inf)
        medians[maximum] = float(np.median(counts))
    return medians


def measure_challenges(runs: int, count: int) -> float:
    """Return the share of labs in which any of ten challenges of equal packs gives a verdict."""
    wrong = []
    for seed in range(runs):
        dice = np.random.default_rng((32, seed))
        is_named = False
        for number in range(1, 11):
            recalls = simulate_recalls(dice, count, 0.0, "")
            sides = decide(recalls.weigh(np.ones(count)), level_of(number, 0.95))
            is_named |= bool((sides[0] | sides[1]).any())
        wrong.append(is_named)
    return float(np.mean(wrong))


def count_withdrawn(labs: int) -> tuple[int, int]:
    """Return how many verdicts there were when another challenge began or ended, and how many it withdrew."""
    verdicts = withdrawn = 0
    for seed in range(labs):
        dice, clock = np.random.default_rng((33, seed)), memlab.ManualClock("2026-03-01")
        with memlab.open(clock=clock) as lab:
            lab.remember([f"note {n} on {'red' if n % 2 else 'blue'} birds" for n in range(20)])
            for number in range(10):
                score = "(- 0 lexical)" if number % 3 == 0 else f"(* {number + 1} lexical)"
                lab.challenge(f"(pack p{number}) (defpolicy recall-score [lexical] {score})")
                for _ in range(20):
                    clock.advance(hours=1)
                    for hit in lab.recall("red birds", limit=4):
                        lab.feedback(hit, reward=float("red" in hit.text and dice.random() < 0.9))
                before = {item.challenger: item for item in lab.verdict(missing="zero")}
                if number % 2:
                    lab.policies.end_challenge(f"p{number}")
                else:
                    lab.challenge(
                        f"(pack q{number}) (defpolicy recall-score [closeness] closeness)"
                    )
                    lab.recall("blue birds", limit=4)
                    lab.policies.end_challenge(f"q{number}")
                after = lab.verdict(missing="zero")
                for name, item in before.items():
                    verdicts += item.better is not None
                    same = item.level == after[name].level and item.number == after[name].number
                    withdrawn += item.better is not None and not (
                        same and after[name].better == item.better
                    )
    return verdicts, withdrawn


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--recalls", type=int, default=600)
    parser.add_argument("--labs", type=int, default=20)
    arguments = parser.parse_args()
    results = Results("hostile_sessions", arguments)
    rows = measure_hostile(arguments.runs, arguments.recalls)
    print(
        f"ten challenges of equal packs: a verdict in {measure_challenges(arguments.runs, 300):.3f}"
    )
    print("recalls by the maximum weight of a block:", measure_blocks(min(arguments.runs, 100)))
    verdicts, withdrawn = count_withdrawn(arguments.labs)
    print(f"verdicts when another challenge began or ended: {verdicts}, withdrawn {withdrawn}")
    tied = [row for row in rows if row["difference"] == 0.0]
    results.save(
        rows,
        plot_dots(
            [{**row, "rule": f"{row['rule']}, {row['hostile']}"} for row in tied],
            label="rule",
            value="wrong",
            group="hostile",
            reference=0.05,
            title="Share of ties in which a verdict names a pack",
        ),
        height=1.0 + 0.22 * len(tied),
    )


if __name__ == "__main__":
    main()
