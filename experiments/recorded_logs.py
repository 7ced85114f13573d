"""Measure recorded logs of a stand-in retriever: coverage of intervals, probabilities, and time of a search.

    python experiments/recorded_logs.py [--logs 200] [--seed 1000]
    taskset -c 1 python experiments/recorded_logs.py --cost             # the time of a search alone, in seconds

Each log has 500 searches of 60 users. Its pool (20 to 30 items), the slope of rewards (.5 to 3) and their noise (up to
.09) are drawn for each log. The recorded search ranks by one signal. The policy that is evaluated ranks by another one,
which correlates with it. The true value is the expected reward of the policy's first five items.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import memlab

Floats = NDArray[np.float64]

LIMIT, POOL, SEARCHES, USERS = 5, 20, 500, 60


def run_log(seed: int, folder: Path) -> dict[str, float]:
    """Record one log; return whether its intervals cover the true values, and the largest wrong probability."""
    rng = np.random.default_rng(seed)
    depth, slope, noise = int(rng.integers(20, 31)), rng.uniform(0.5, 3), rng.uniform(0, 0.09)
    signals: dict[str, Any] = {}

    def search(query: str, k: int) -> list[dict[str, Any]]:
        order = np.argsort(-signals["old"], kind="stable")[:k]
        return [
            {"id": f"{query}-{item}", "score": float(signals["old"][item]), "item": int(item)}
            for item in order
        ]

    features = {"new": lambda query, items: [signals["new"][item["item"]] for item in items]}
    recorded = memlab.record(
        search, log=folder, limit=LIMIT, pool=POOL, probes=2, seed=seed, features=features
    )
    truths = []
    for number in range(SEARCHES):
        old = rng.normal(size=depth)
        new = 0.5 * old + rng.normal(size=depth)
        signals.update(old=old, new=new)
        chance = 1 / (1 + np.exp(1 - slope * new))
        chance = chance * (1 - noise) + (1 - chance) * noise
        rewards = rng.random(depth) < chance
        hits = recorded(f"query {number}", session=f"user {rng.integers(USERS)}")
        for hit in hits:
            hits.feedback(hit, float(rewards[hit["item"]]))
        pool = np.argsort(-old, kind="stable")[:POOL]
        top = pool[np.argsort(-new[pool], kind="stable")[:LIMIT]]
        truths.append((chance[top].sum(), chance[top].sum() - chance[pool[:LIMIT]].sum()))
    candidates = recorded.slates().candidates.collect()
    expected = np.where(candidates["rank"] <= LIMIT, 1.0, 2 / (POOL - LIMIT))
    result = memlab.evaluate(recorded, {"new": "(fn [new] new)"}, missing="zero")
    recorded.close()
    (row,) = (row for row in result.frame.to_dicts() if row["policy"] == "new")
    value, difference = np.mean(truths, axis=0)
    if row["value"] is None:
        return {"released": 0.0, "value": np.nan, "difference": np.nan, "error": 0.0}
    return {
        "released": 1.0,
        "value": float(row["low"] <= value <= row["high"]),
        "difference": float(row["difference_low"] <= difference <= row["difference_high"]),
        "error": float(np.abs(candidates["propensity"].to_numpy() - expected).max()),
    }


def time_searches(folder: Path, rounds: int = 40, count: int = 50) -> tuple[Floats, Floats]:
    """Return the processor time in milliseconds that recording adds to a search of 20 texts, for each round.

    The second array has the time of a loop of 10,000 additions in each round. On a busy machine both are longer.
    """
    items = [
        {
            "id": f"{number:032x}",
            "score": 1 - number / 20,
            "memory": f"Note {number} " + "word " * 25,
        }
        for number in range(20)
    ]
    recorded = memlab.record(lambda query, k: items[:k], log=folder)
    times, loops = [], []
    for part in range(rounds):
        begin = time.process_time()
        sum(number for number in range(10_000))
        loops.append(1_000 * (time.process_time() - begin))
        begin = time.process_time()
        for number in range(count):
            recorded(f"When does team {part * count + number} deploy?")
        times.append(1_000 * (time.process_time() - begin) / count)
    recorded.close()
    return np.array(times), np.array(loops)


def main() -> None:
    """Run the logs and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1_000)
    parser.add_argument("--cost", action="store_true", help="measure the time of a search alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        times, loops = time_searches(Path(folder) / "log")
    low, middle, high = np.quantile(times, (0, 0.5, 1))
    print(
        f"added to a search: {middle:.3f} ms of processor time, {low:.3f} to {high:.3f} in {len(times)} rounds"
    )
    print(
        f"that is {np.median(times / loops):.2f} times a loop of 10,000 additions ({np.median(loops):.3f} ms)"
    )
    if options.cost:
        return
    rows = []
    for seed in range(options.seed, options.seed + options.logs):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(run_log(seed, Path(folder) / "log"))
    released = [row for row in rows if row["released"]]
    print(f"logs {len(rows)}, released {len(released)}")
    for name in ("value", "difference"):
        print(f"coverage of the {name}: {np.mean([row[name] for row in released]):.3f}")
    print(f"largest error of a probability: {max(row['error'] for row in rows):.1e}")


if __name__ == "__main__":
    main()
