"""Measure the search of policies: speed, gains on data that it never read, and false discoveries.

    python experiments/evolve.py speed                                   # programs a minute and core, 20 seconds
    python experiments/evolve.py planted --runs 10                       # an interaction of two features
    python experiments/evolve.py null --runs 100                         # nothing better exists: false discoveries
    python experiments/evolve.py worlds --runs 10                        # hidden truths, next to memlab.tune
    python experiments/evolve.py folds --data locomo-dev5.json           # from similarity alone, one chat left out
    python experiments/evolve.py against --data locomo-dev5.json         # a grid of fusion weights, and memlab.tune
    python experiments/evolve.py moonshot --data locomo-dev5.json        # from the shipped pack, one chat left out

In *planted*, the ground truth is a product of two features, and the start reads one of them. The column *recovered* is
the share of the possible gain that the winner has on 2,000 recalls that no search read.

In *null*, the ground truth is the start plus noise, so every policy that is called better is a false discovery.

In *worlds*, the ground truth is one of five forms of three of eight features, with weights drawn for each run.
``memlab.tune`` searches the weights of the sum of all features with as many programs as ``memlab.evolve``.

In *folds*, a search reads four conversations, and its most promising policy is scored on the fifth. With four
conversations, ``memlab.evolve`` splits them by question. In *against*, EvolveMem's action space is all 231 weights of
semantic, keyword and temporal scores in steps of .05.

Seeds are those of ``--seed`` and on. Runs are sequential, in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from results import Results

import memlab
from memlab.io.ingest import read_locomo
from memlab.science.evolution._data import Data, _recall_questions, read_data
from memlab.science.evolution._search import open_search, run_round, score_program

Floats = NDArray[np.float64]
Log = tuple[memlab.Slates, pl.DataFrame]
METRIC = "recall@5"
SETTINGS: dict[str, Any] = {
    "horizon": None,
    "missing": None,
    "cluster": "decision",
    "estimator": "snips",
    "level": 0.95,
    "reward_range": None,
}
FRESH = 2_000
"""The recalls on which a true value is computed: a standard error of .006 for recall@5."""


def build_log(
    worth: Callable[[dict[str, Floats]], Floats], seed: int, recalls: int, noise: float
) -> Log:
    """Return a log of 30 candidates with eight features, and labels for the three of the highest noisy worth."""
    dice = np.random.default_rng(seed)
    values = {f"f{number}": dice.random((recalls, 30)) for number in range(8)}
    truth = worth(values) + noise * dice.standard_normal((recalls, 30))
    best = np.argsort(-truth, axis=1)[:, :3]
    numbers = np.arange(1, recalls + 1)
    slates = memlab.Slates.from_frames(
        pl.DataFrame(
            {"decision": numbers, "limit": 5, "cluster": [f"u{number % 60}" for number in numbers]}
        ),
        pl.DataFrame(
            {
                "decision": np.repeat(numbers, 30),
                "memory_id": np.tile(np.arange(1, 31), recalls),
                **{name: column.ravel() for name, column in values.items()},
            }
        ),
        pl.DataFrame(schema={"decision": pl.Int64, "memory_id": pl.Int64}),
        empty="keep",
    )
    labels = pl.DataFrame(
        {"decision": np.repeat(numbers, 3), "memory_id": best.ravel() + 1, "relevance": 1.0}
    )
    return slates, labels


def score(log: Log, *policies: Any) -> list[float]:
    """Return the metric of policies over all recalls of a log; later ones read what the first reads."""
    data = read_data(log[0], policies[0], log[1], METRIC, [], 0, **SETTINGS)
    weights = [len(part.log) for part in data.parts.values()]
    compiled = [data.start, *(data.compile(text) for text in policies[1:])]
    values = [
        [score_program(part, policy, (), "").value for part in data.parts.values()]
        for policy in compiled
    ]
    return [float(np.average(value, weights=weights)) for value in values]


def search(log: Log, start: Any, budget: int, seed: int) -> memlab.science.evolution.Evolved:
    """Search with a number of programs."""
    return memlab.evolve(log[0], start, labels=log[1], metric=METRIC, budget=budget, seed=seed)


def choose(evolved: memlab.science.evolution.Evolved) -> str:
    """Return the most promising policy, whether or not it was called better."""
    return str(evolved.front["policy"][min(1, evolved.front.height - 1)])


def measure_speed(arguments: Any) -> Iterator[dict[str, Any]]:
    """Return the programs a minute of processor time on 300 recalls of 100 candidates."""
    dice = np.random.default_rng(arguments.seed)
    for start in ("similarity", "memlab"):
        log = read_chats(arguments.data) if arguments.data else None
        if log is None:
            raise SystemExit("speed needs --data, for the features of real recalls.")
        keep = dice.choice(log[0].decisions.collect()["decision"].to_numpy(), 600, replace=False)
        data: Data = read_data(
            log[0].filter(pl.col("decision").is_in(keep.tolist())),
            start,
            log[1],
            METRIC,
            [],
            0,
            **SETTINGS,
        )
        space, state = open_search(data, arguments.seed, len(data.start.source))
        run_round(space, state, 500, None)
        begun = time.process_time()
        for _ in range(4):
            run_round(space, state, 500, None)
        spent = time.process_time() - begun
        part = data.parts["search"]
        yield {
            "start": start,
            "recalls": len(part.log),
            "candidates": len(part.log.recall),
            "programs": 2_000,
            "a minute": round(2_000 / spent * 60),
        }


def measure_planted(arguments: Any) -> Iterator[dict[str, Any]]:
    """Return how much of a planted gain is evolved."""
    truth = "(fn [f0 f1] (* f0 f1))"
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        log, fresh = (
            build_log(lambda v: v["f0"] * v["f1"], key, n, 0.05)
            for key, n in ((seed, 300), (seed + 10**6, FRESH))
        )
        evolved = search(log, "f0", arguments.budget, seed)
        start, best, ceiling = (score(fresh, text)[0] for text in ("f0", choose(evolved), truth))
        yield {
            "seed": seed,
            "start": start,
            "evolved": best,
            "truth": ceiling,
            "recovered": (best - start) / (ceiling - start),
            "better": evolved.best is not None,
        }


def measure_null(arguments: Any) -> Iterator[dict[str, Any]]:
    """Return whether a policy is called better where the start is the ground truth."""
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        evolved = search(build_log(lambda v: v["f0"], seed, 300, 0.3), "f0", arguments.budget, seed)
        yield {
            "seed": seed,
            "better": evolved.best is not None,
            "gain": None if evolved.gain is None else evolved.gain.value,
        }


FORMS: dict[str, Callable[[Floats, Floats, Floats, Floats], Floats]] = {
    "product": lambda w, a, b, c: w[0] * a * b + w[1] * c,
    "gate": lambda w, a, b, c: np.where(a > w[2], w[0] * b, w[1] * c),
    "least": lambda w, a, b, c: w[0] * np.minimum(a, b) + w[1] * c,
    "rank": lambda w, a, b, c: (
        w[0] * a / (a.max(axis=1, keepdims=True) + 0.1) + w[1] * np.sqrt(b) * c
    ),
    "sum": lambda w, a, b, c: w[0] * a + w[1] * b + w[2] * c,
}
"""The forms of hidden truths. The last is linear, so that memlab.tune can have it."""


def measure_worlds(arguments: Any) -> Iterator[dict[str, Any]]:
    """Return the true values of what evolve and tune find in worlds with parameters of their own."""
    names = [f"f{number}" for number in range(8)]
    total = (
        "(+ " + " ".join(f"(* (param :{name} 1.0 :low 0 :high 2) {name})" for name in names) + ")"
    )
    start = f"(fn [{' '.join(names)}] {total})"
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        dice = np.random.default_rng((7, seed))
        form = list(FORMS)[seed % len(FORMS)]
        chosen, weights = dice.permutation(8)[:3], dice.uniform(0.3, 1.0, 3)

        def worth(
            values: dict[str, Floats],
            form: str = form,
            chosen: Any = chosen,
            weights: Any = weights,
        ) -> Floats:
            return FORMS[form](weights, *(values[f"f{number}"] for number in chosen))

        log, fresh = build_log(worth, seed, 300, 0.1), build_log(worth, seed + 10**6, FRESH, 0.1)
        evolved = search(log, start, arguments.budget, seed)
        fitted = memlab.tune(
            log[0],
            start,
            labels=log[1],
            metric=METRIC,
            budget=max(20, arguments.budget // 6),
            seed=seed,
        )
        yield {
            "seed": seed,
            "form": form,
            "start": score(fresh, start)[0],
            "tune": score(fresh, fitted.policy)[0],
            "evolve": score(fresh, choose(evolved))[0],
            "better": evolved.best is not None,
        }


def read_chats(path: Path) -> Log:
    """Return the recalls and labels of conversations under the shipped pack, with all features."""
    lab = memlab.open(pack="memlab")
    chats = read_locomo(path)
    for chat in chats:
        lab.remember(chat.conversation.rows(project=chat.conversation.name), chain=True)
    lab.questions.add(chats)
    return _recall_questions(lab)


def split_chats(path: Path, chats: list[str] | None) -> Iterator[tuple[str, Log, Log]]:
    """Return the other conversations and the one left out, in turn."""
    slates, labels = read_chats(path)
    for name in chats or sorted(slates.decisions.select("project").unique().collect()["project"]):
        inside, outside = (
            (
                part := slates.filter(condition),
                labels.join(part.decisions.select("decision").collect(), on="decision", how="semi"),
            )
            for condition in (pl.col("project") != name, pl.col("project") == name)
        )
        yield name, inside, outside


def measure_folds(arguments: Any, start: str = "similarity") -> Iterator[dict[str, Any]]:
    """Return the metric of the start, the shipped pack and the policy evolved, on the chat left out."""
    for name, inside, outside in split_chats(arguments.data, arguments.chats):
        begun = time.process_time()
        evolved = search(inside, start, arguments.budget, arguments.seed)
        gain = evolved.gain
        yield {
            "left out": name,
            "questions": len(outside[0]),
            "start": score(outside, start)[0],
            "evolve": score(outside, choose(evolved))[0],
            "shipped": score(outside, "memlab")[0],
            "better": evolved.best is not None,
            "gain inside": None if gain is None else gain.value,
            "low": None if gain is None else gain.low,
            "high": None if gain is None else gain.high,
            "seconds": round(time.process_time() - begun),
            "policy": choose(evolved),
        }


def measure_moonshot(arguments: Any) -> Iterator[dict[str, Any]]:
    """Return the same from the shipped pack."""
    yield from measure_folds(arguments, "memlab")


def measure_against(arguments: Any) -> Iterator[dict[str, Any]]:
    """Return the metric of three searches on the chat left out: a grid, memlab.tune and memlab.evolve."""
    fused = (
        "(fn [similarity lexical recency] "
        "(+ (* {} (min-max similarity)) (* {} (min-max lexical)) (* {} (min-max recency))))"
    )
    steps = range(21)
    weights = [(a / 20, b / 20, (20 - a - b) / 20) for a, b in product(steps, steps) if a + b <= 20]
    names = [
        "similarity",
        "lexical",
        "recency",
        "coverage",
        "around-lexical",
        "session-lexical",
        "session-seed",
        "late",
    ]
    terms = [f"(* (param :{name} 0.5 :low 0 :high 1) (min-max {name}))" for name in names]
    linear = f"(fn [{' '.join(names)}] (+ {' '.join(terms)}))"
    for name, inside, outside in split_chats(arguments.data, arguments.chats):
        scores = score(inside, *(fused.format(*point) for point in weights))
        grid = weights[int(np.argmax(scores))]
        fitted = memlab.tune(
            inside[0],
            linear,
            labels=inside[1],
            metric=METRIC,
            cluster="decision",
            folds=2,
            budget=arguments.budget // 3,
        )
        evolved = search(inside, "similarity", arguments.budget, arguments.seed)
        yield {
            "left out": name,
            "grid": score(outside, fused.format(*grid))[0],
            "tune": score(outside, fitted.policy)[0],
            "evolve": score(outside, choose(evolved))[0],
            "shipped": score(outside, "memlab")[0],
        }


STUDIES: dict[str, tuple[Callable[[Any], Iterator[dict[str, Any]]], int, int]] = {
    "speed": (measure_speed, 2_000, 1),
    "planted": (measure_planted, 4_000, 10),
    "null": (measure_null, 1_000, 100),
    "worlds": (measure_worlds, 6_000, 10),
    "folds": (measure_folds, 20_000, 1),
    "against": (measure_against, 6_000, 1),
    "moonshot": (measure_moonshot, 10_000, 1),
}
"""The studies, with the default number of programs and of runs."""


def main() -> None:
    """Run a study, and print its rows and their means."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--data", type=Path, help="conversations in LoCoMo's format")
    parser.add_argument(
        "--chats", nargs="+", help="the conversations to leave out, in turn; default: all"
    )
    parser.add_argument("--budget", type=int, help="programs of a search")
    parser.add_argument("--runs", type=int, help="runs, each with its own seed")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    study, budget, runs = STUDIES[arguments.study]
    arguments.budget, arguments.runs = arguments.budget or budget, arguments.runs or runs
    results = Results(
        f"evolve-{arguments.study}", arguments, data=[arguments.data] if arguments.data else []
    )
    rows = []
    for row in study(arguments):
        rows.append(row)
        print(
            "  ".join(
                f"{key} {value:.4f}" if isinstance(value, float) else f"{key} {value}"
                for key, value in row.items()
            ),
            flush=True,
        )
    frame = pl.DataFrame(rows)
    print(
        "mean of",
        frame.height,
        frame.select((pl.selectors.numeric() | pl.selectors.boolean()).mean()).to_dicts()[0],
    )
    results.save(rows)


if __name__ == "__main__":
    main()
