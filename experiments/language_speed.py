"""Measure the speed of the policy language as ratios to hand-written code.

    python experiments/language_speed.py
    python experiments/language_speed.py --runs 31 --json

Columns are compared with hand-written Polars (the faster of an eager and a lazy query), and arrays of one slate with
hand-written NumPy. Also timed are reading and checking a policy, a pack and the library, and a swap in a running lab
until the end of the next recall. Contenders alternate; every figure is a median. The results are compared, too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

import memlab
from memlab.kernel.language import Input, Policy, Signature, compile_policy
from memlab.kernel.language.texts import library
from memlab.kernel.policies import DEFAULT_PACK, load_pack
from memlab.kernel.policies._packs import pack_source

LN2 = 0.6931471805599453
KINDS = ("fact", "event", "goal", "preference", "correction", "turn", "context")
SLOT = Signature(
    "recall-score",
    [
        *(Input(n) for n in ("similarity", "importance", "age-days", "access", "success", "fail")),
        Input("kind", "str"),
        Input("pinned", "bool"),
    ],
    aggregates=True,
)
SUM = "(fn [similarity importance] (+ (* 0.7 similarity) (* 0.3 importance)))"
SCORE = """(fn [similarity importance age-days access success fail kind pinned]
  (let [freshness (half-life-decay age-days (case kind "preference" 180 "goal" 90 ["event" "turn"] 7 else 30))]
    (+ (* 0.5 similarity)
       (* 0.2 (if pinned 1 freshness))
       (* 0.1 importance)
       (* 0.1 (saturate (log1p access) 3))
       (* 0.1 (success-rate success fail)))))"""
SCALED = (
    "(fn [similarity importance] (+ (* 0.7 (min-max similarity)) (* 0.3 (min-max importance))))"
)


def list_contenders() -> dict[str, tuple[str, pl.Expr]]:
    """Return the timed policies with their hand-written Polars expressions."""
    c = pl.col
    half = (
        pl.when(c("kind") == "preference")
        .then(180.0)
        .when(c("kind") == "goal")
        .then(90.0)
        .when(c("kind").is_in(["event", "turn"]))
        .then(7.0)
        .otherwise(30.0)
    )
    freshness = (-LN2 * c("age_days") / half).exp()
    use = c("access").log1p()
    score = (
        0.5 * c("similarity")
        + 0.2 * pl.when(c("pinned")).then(1.0).otherwise(freshness)
        + 0.1 * c("importance")
        + 0.1 * (use / (use + 3))
        + 0.1 * ((c("success") + 1) / (c("success") + c("fail") + 2))
    )

    def scaled(name: str) -> pl.Expr:
        return (c(name) - c(name).min()) / (c(name).max() - c(name).min())

    return {
        "a weighted sum": (SUM, 0.7 * c("similarity") + 0.3 * c("importance")),
        "eight features": (SCORE, score),
        "two aggregates": (SCALED, 0.7 * scaled("similarity") + 0.3 * scaled("importance")),
    }


def draw_frame(rows: int, seed: int) -> pl.DataFrame:
    """Return random candidates."""
    dice = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "memory_id": np.arange(rows),
            "similarity": dice.uniform(-1, 1, rows),
            "importance": dice.random(rows),
            "age_days": dice.exponential(60, rows),
            "access": dice.poisson(3, rows).astype(float),
            "success": dice.poisson(1, rows).astype(float),
            "fail": dice.poisson(0.3, rows).astype(float),
            "kind": np.array(KINDS)[dice.integers(0, len(KINDS), rows)],
            "pinned": dice.random(rows) < 0.1,
        }
    )


def time_contenders(contenders: Mapping[str, Callable[[], object]], runs: int) -> dict[str, float]:
    """Return the median seconds of each contender over ``runs`` turns after a warm-up."""
    durations: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(runs + 1):
        for name, call in contenders.items():
            started = time.perf_counter()
            call()
            if turn:
                durations[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in durations.items()}


def time_columns(sizes: list[int], runs: int, seed: int) -> list[dict[str, Any]]:
    """Compare compiled columns with hand-written Polars."""
    timings = []
    for rows, (name, (source, expression)) in itertools.product(sizes, list_contenders().items()):
        data = draw_frame(rows, seed)
        policy = compile_policy(source, SLOT)
        expected = data.select(expression).to_series().to_numpy()
        np.testing.assert_allclose(policy.columns(data).to_numpy(), expected, rtol=1e-12)
        lazy = data.lazy()
        times = time_contenders(
            {
                "compiled": lambda p=policy, d=data: p.columns(d),
                "eager": lambda d=data, e=expression: d.select(e),
                "lazy": lambda z=lazy, e=expression: z.select(e).collect(),
            },
            runs,
        )
        hand = min(times["eager"], times["lazy"])
        timings.append(
            {
                "policy": name,
                "rows": rows,
                **{k: 1000 * v for k, v in times.items()},
                "ratio": times["compiled"] / hand,
            }
        )
    return timings


def draw_slate(policy: Policy, rows: int, seed: int) -> dict[str, Any]:
    """Return random arrays of one slate."""
    dice = np.random.default_rng(seed)
    inputs = policy.signature.inputs
    return {
        n: dice.random(rows) < 0.2
        if inputs[n].type == "bool"
        else dice.choice(np.array(inputs[n].words or ("",), object), rows)
        if inputs[n].type == "str"
        else dice.random(rows)
        for n in policy.inputs
    }


def build_numpy_score(inputs: Mapping[str, Any]) -> Callable[[], Any]:
    """Return the default pack's recall-score in NumPy, with equal weights."""
    values = list(inputs.items())

    def scored() -> Any:
        total = np.zeros(len(values[0][1]))
        for _, column in values:
            if column.dtype == bool:
                total += np.where(column, 0.05, 0.0)
            elif column.dtype == object:
                total += np.where(column == column[0], 0.05, 0.0)
            else:
                low, high = column.min(), column.max()
                total += 0.1 * (column - low) / (high - low)
        return total

    return scored


def time_arrays(runs: int, seed: int) -> list[dict[str, Any]]:
    """Time one slate of 300 candidates, in microseconds."""
    rows = []
    default = load_pack(DEFAULT_PACK).policies["recall-score"]
    for name, policy in (
        ("default recall-score", default),
        ("eight features", compile_policy(SCORE, SLOT)),
    ):
        inputs = draw_slate(policy, 300, seed)
        contenders: dict[str, Callable[[], object]] = {
            "arrays": lambda p=policy, g=inputs: p.arrays(g)
        }
        table = pl.DataFrame({k: pl.Series(v.tolist()) for k, v in inputs.items()}).with_columns(
            memory_id=pl.int_range(300)
        )
        contenders["columns"] = lambda p=policy, t=table: p.columns(t)
        if policy is default:
            contenders["NumPy by hand"] = build_numpy_score(inputs)
        times = time_contenders(contenders, 40 * runs)
        rows.append({"policy": name, **{k: 1e6 * v for k, v in times.items()}})
    return rows


def time_reading(runs: int) -> list[dict[str, Any]]:
    """Time reading a policy, in milliseconds; every text is new unless cached."""
    default = load_pack(DEFAULT_PACK).policies["recall-score"]
    slot, text = default.signature, default.source
    number = itertools.count()

    def fresh(source: str, signature: Signature) -> None:
        policy = compile_policy(f"{source} ; {next(number)}", signature)
        _ = policy._columns, policy._arrays, policy._row

    pack = pack_source(DEFAULT_PACK)
    times = time_contenders(
        {
            "eight features: read, check, lower": lambda: fresh(SCORE, SLOT),
            "default recall-score: read, check, lower": lambda: fresh(text, slot),
            "the same, cached": lambda: compile_policy(text, slot),
            "a pack": lambda: load_pack(f"{pack}\n; {next(number)}\n"),
            "the library, once a process": lambda: (library.cache_clear(), library()),
        },
        4 * runs,
    )
    return [{"what": name, "ms": 1000 * seconds} for name, seconds in times.items()]


def time_swap(runs: int, seed: int) -> list[dict[str, Any]]:
    """Time a new policy in a running lab until the end of the next recall, in milliseconds."""
    dice = random.Random(seed)
    words = [
        "tabs",
        "spaces",
        "python",
        "review",
        "deploy",
        "friday",
        "coffee",
        "train",
        "garden",
        "piano",
    ]
    number = itertools.count(1)
    with memlab.open() as lab:
        lab.remember(
            [{"text": " ".join(dice.sample(words, 5)), "kind": "fact"} for _ in range(1000)]
        )

        def install() -> None:
            lab.policies.install("recall-score", f"(fn [similarity] (* {next(number)} similarity))")

        def install_and_recall() -> None:
            install()
            lab.recall("tabs or spaces?")

        def use_and_recall() -> None:
            lab.policies.use("associative" if next(number) % 2 else DEFAULT_PACK)
            lab.recall("tabs or spaces?")

        times = time_contenders(
            {
                "a recall of 1,000 memories": lambda: lab.recall("tabs or spaces?"),
                "install a policy": install,
                "install a policy, and the next recall": install_and_recall,
                "use another pack, and the next recall": use_and_recall,
            },
            runs,
        )
    return [{"what": name, "ms": 1000 * seconds} for name, seconds in times.items()]


def main() -> None:
    """Run the measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = {
        "columns": time_columns(arguments.sizes, arguments.runs, arguments.seed),
        "arrays": time_arrays(arguments.runs, arguments.seed),
        "reading": time_reading(arguments.runs),
        "swap": time_swap(arguments.runs, arguments.seed),
    }
    if arguments.json:
        print(json.dumps(results, indent=1))
        return
    print(f"{'columns, ms':<22}{'rows':>11}{'compiled':>11}{'eager':>9}{'lazy':>9}{'ratio':>9}")
    for row in results["columns"]:
        numbers = "".join(
            f"{row[k]:>{w}.3f}" for k, w in (("compiled", 11), ("eager", 9), ("lazy", 9))
        )
        print(f"{row['policy']:<22}{row['rows']:>11,}{numbers}{row['ratio']:>9.2f}")
    print("\n300 candidates, microseconds")
    for row in results["arrays"]:
        print(
            f"{row['policy']:<22}"
            + ", ".join(f"{k} {v:.1f}" for k, v in row.items() if k != "policy")
        )
    for title in ("reading", "swap"):
        print(f"\n{title}, ms")
        for row in results[title]:
            print(f"{row['what']:<44}{row['ms']:>9.3f}")


if __name__ == "__main__":
    main()
