"""How quick an evaluation is: 760 recalls of 100 candidates, one policy, intervals included.

    python experiments/evaluation_speed.py
    python experiments/evaluation_speed.py --recalls 20000

Prints the median of several runs of ``memlab.evaluate`` for a column of scores, a policy with aggregates and the whole
family, with few clusters (jackknife and t) and with many (bootstrap). The baseline is evaluated in the same call.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from memlab import Slates
from memlab.evaluation import evaluate

FEATURES = ("similarity", "lexical", "coverage", "session-lexical", "session-seed", "received", "before-coverage")
FLAGS = ("names-other", "asks", "answers")
LIMIT, DEPTH, RATE = 10, 30, 0.5


def made_log(recalls: int, pool: int, clusters: int, seed: int = 0) -> Slates:
    """A log with a head, probes below it, and answers to everything that was shown."""
    dice = np.random.default_rng(seed)
    size = recalls * pool
    numbers = {name: dice.random(size) for name in FEATURES}
    flags = {name: dice.random(size) < 0.2 for name in FLAGS}
    score = numbers["similarity"] + 0.5 * numbers["lexical"]
    rank = np.argsort(np.argsort(-score.reshape(recalls, pool), axis=1), axis=1) + 1
    propensity = np.where(rank <= LIMIT, 1.0, np.where(rank <= LIMIT + DEPTH, RATE / DEPTH, 0.0))
    probed = dice.random(recalls) < RATE
    at = LIMIT + dice.integers(1, DEPTH + 1, recalls)
    shown = ((rank <= LIMIT) | (probed[:, None] & (rank == at[:, None]))).ravel()
    decision = np.repeat(np.arange(1, recalls + 1), pool)
    candidates = pl.DataFrame(
        {
            "decision": decision,
            "memory_id": np.tile(np.arange(1, pool + 1), recalls),
            **numbers,
            **flags,
            "score": score,
            "rank": rank.ravel(),
            "propensity": propensity.ravel(),
        }
    )
    exposures = candidates.filter(pl.Series(shown)).select("decision", "memory_id", "propensity", position="rank")
    chance = 0.2 + 0.5 * exposures.join(candidates, on=["decision", "memory_id"])["similarity"].to_numpy()
    reward = (dice.random(exposures.height) < chance).astype(float)
    feedback = exposures.select("decision", "memory_id").with_columns(reward=pl.Series(reward))
    decisions = pl.DataFrame(
        {
            "decision": np.arange(1, recalls + 1),
            "cluster": [f"c{number % clusters}" for number in range(recalls)],
            "limit": np.full(recalls, LIMIT),
        }
    )
    return Slates.from_frames(decisions, candidates, exposures, feedback)


def milliseconds(call: Callable[[], object], runs: int) -> float:
    call()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return 1000 * statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recalls", type=int, default=760)
    parser.add_argument("--pool", type=int, default=100)
    parser.add_argument("--runs", type=int, default=15)
    given = parser.parse_args()
    policies = {
        "a column of scores": ["similarity"],
        "the pack memlab": ["memlab"],
        "six policies": ["memlab", *FEATURES[:5]],
    }
    print(f"{given.recalls:,} recalls of {given.pool} candidates; median of {given.runs} runs, in ms")
    print(f"{'':<22}{'10 clusters':>14}{'50 clusters':>14}{'each its own':>14}")
    for name, chosen in policies.items():
        row = []
        for clusters in (10, 50, given.recalls):
            slates = made_log(given.recalls, given.pool, clusters)
            row.append(milliseconds(lambda slates=slates, chosen=chosen: evaluate(slates, chosen), given.runs))
        print(f"{name:<22}" + "".join(f"{value:>14.1f}" for value in row))


if __name__ == "__main__":
    main()
