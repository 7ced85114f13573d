"""Measure the search of policies: speed, gains on data that it never read, and false discoveries.

    python experiments/evolve.py speed                                   # programs a minute and core, 20 seconds
    python experiments/evolve.py planted --runs 10                       # an interaction of two features
    python experiments/evolve.py null --runs 100                         # nothing better exists: false discoveries
    python experiments/evolve.py worlds --runs 10                        # hidden truths, next to memlab.tune
    python experiments/evolve.py folds --data locomo-dev5.json           # from similarity alone, one chat left out
    python experiments/evolve.py against --data locomo-dev5.json         # a grid of fusion weights, and memlab.tune
    python experiments/evolve.py moonshot --data locomo-dev5.json        # from the shipped pack, one chat left out
    python experiments/evolve.py correct --data beam100k --leave 2 --own    # the shipped pack plus a fitted sum
    python experiments/evolve.py moonshot --data beam100k --leave 2 --own --minutes 9   # with features of own_features.py

In *planted*, the ground truth is a product of two features, and the start reads one of them. The column *recovered* is
the share of the possible gain that the winner has on 2,000 recalls that no search read.

In *null*, the ground truth is the start plus noise, so every policy that is called better is a false discovery.

In *worlds*, the ground truth is one of five forms of three of eight features, with weights drawn for each run.
``memlab.tune`` searches the weights of the sum of all features with as many programs as ``memlab.evolve``.

In *folds*, a search reads four conversations, and its most promising policy is scored on the fifth. With four
conversations, ``memlab.evolve`` splits them by question.

*against* is a ``memlab.Experiment``, whose seed is the number of the conversation left out. EvolveMem's action space is
all 231 weights of semantic, keyword and temporal scores in steps of .05. ``memlab.tune`` scores as many policies as
``memlab.evolve``.

Seeds are those of ``--seed`` and on. Runs are sequential, in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import own_features
import polars as pl
from results import Results, run_experiment

import memlab
from memlab.io.ingest import read_beam, read_locomo
from memlab.kernel.base.arrays import Floats
from memlab.kernel.policies import as_pack
from memlab.science.evaluation import cluster_interval
from memlab.science.evolution._correction import fit_correction
from memlab.science.evolution._data import (
    Data,
    _recall_questions,
    read_data,
)
from memlab.science.evolution._search import open_search, run_round, score_program
from memlab.subjects.lens.packing import text_of

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


def score_questions(log: Log, policy: Any, metric: str) -> list[dict[str, Any]]:
    """Return the metric of a policy in each recall of a log."""
    data = read_data(log[0], policy, log[1], metric, [], 0, **SETTINGS)
    return [
        {"chat": chat, "decision": decision, "value": value}
        for part in data.parts.values()
        for chat, decision, value in zip(
            part.log.decisions["project"].to_list(),
            part.log.decisions["decision"].to_list(),
            score_program(part, data.start, (), "").outcome.tolist(),
            strict=True,
        )
    ]


def score_policies(log: Log, policies: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return two metrics of each policy in each recall of a log."""
    return [
        row | {"policy": kind, "metric": metric}
        for metric in (METRIC, "recall@10")
        for kind, policy in policies.items()
        for row in score_questions(log, policy, metric)
    ]


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


@cache
def read_chats(path: Path) -> Log:
    """Return the recalls and labels of conversations under the shipped pack, with all features.

    The path is a file of LoCoMo or a folder of BEAM's chats.
    """
    lab = memlab.open(pack="memlab")
    chats = read_beam(path) if path.is_dir() else read_locomo(path)
    for chat in chats:
        lab.remember(chat.conversation.rows(project=chat.conversation.name), chain=True)
    lab.questions.add(chats)
    return _recall_questions(lab)


def split_chats(
    path: Path, chats: list[str] | None, leave: int = 1
) -> Iterator[tuple[str, Log, Log]]:
    """Return the other conversations and those left out, in turn."""
    slates, labels = read_chats(path)
    names = sorted(slates.decisions.select("project").unique().collect()["project"])
    for first in range(0, len(names), leave):
        left_out = names[first : first + leave]
        if chats and not set(left_out) & set(chats):
            continue
        condition = pl.col("project").is_in(left_out)
        inside, outside = (
            (
                part := slates.filter(side),
                labels.join(part.decisions.select("decision").collect(), on="decision", how="semi"),
            )
            for side in (~condition, condition)
        )
        yield " ".join(left_out), inside, outside


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
    """Return the search from the shipped pack, with each question of the chats left out.

    The policy *chosen* is preferred by the selection part. The policy *searched* has the best value on
    the search part. The policy *used* is the winner or, if nothing better was found, the shipped pack.
    """
    if arguments.own:
        own_features.register()
    for name, inside, outside in split_chats(arguments.data, arguments.chats, arguments.leave):
        begun = time.process_time()

        def stop(frame: pl.DataFrame, begun: float = begun) -> None:
            """Interrupt the search after its processor time; the rounds so far are the result."""
            if time.process_time() - begun > arguments.minutes * 60:
                raise KeyboardInterrupt

        evolved = memlab.evolve(
            inside[0],
            "memlab",
            labels=inside[1],
            metric=METRIC,
            budget=arguments.budget,
            seed=arguments.seed,
            progress=stop,
        )
        seconds = round(time.process_time() - begun)
        searched = evolved.frame.filter(pl.col("operator") != "correction")["policy"][0]
        start = str(evolved.front["policy"][0])
        policies = {"shipped": start, "chosen": choose(evolved), "searched": searched}
        winner = evolved.front.filter(hash=evolved.best_hash or evolved.front["hash"][0])
        policies["used"] = str(winner["policy"][0])
        gain = evolved.gain
        yield {
            "left out": name,
            "tried": evolved.tried,
            "seconds": seconds,
            "better": evolved.best is not None,
            "gain inside": None if gain is None else gain.value,
            "low": None if gain is None else gain.low,
            "high": None if gain is None else gain.high,
            "missed": evolved.front["gain_high"].max(),
            "clusters": dict(evolved.clusters),
            "questions": score_policies(outside, policies),
            "policies": policies,
            "front": evolved.front.drop("policy").to_dicts(),
        }


def measure_correct(arguments: Any) -> Iterator[dict[str, Any]]:
    """Return the shipped policy plus a weighted sum of features, with each question of the chats left out.

    The sum is the correction of ``memlab.evolve``, fitted to all other chats.
    """
    if arguments.own:
        own_features.register()
    for name, inside, outside in split_chats(arguments.data, arguments.chats, arguments.leave):
        begun = time.process_time()
        settings = SETTINGS | {"cluster": None}
        data = read_data(inside[0], "memlab", inside[1], METRIC, [], arguments.seed, **settings)
        fitted = fit_correction(data, arguments.seed, "report")
        policy = data.start if fitted is None else fitted[0]
        seconds = round(time.process_time() - begun)
        policies = {"shipped": text_of(data.start), "corrected": text_of(policy)}
        yield {
            "left out": name,
            "seconds": seconds,
            "questions": score_policies(outside, policies),
            "policies": policies,
        }


def summarise(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return the mean of each policy of *moonshot* on the chats left out, and its gain by chat and by question."""
    frame = pl.DataFrame([question for row in rows for question in row["questions"]])
    lines = []
    for (metric, policy), part in frame.group_by("metric", "policy", maintain_order=True):
        shipped = frame.filter(metric=metric, policy="shipped")
        paired = part.join(
            shipped, on=["chat", "decision"], suffix="_shipped", maintain_order="left"
        )
        gain = (paired["value"] - paired["value_shipped"]).to_numpy()
        line: dict[str, Any] = {
            "metric": metric,
            "policy": policy,
            "value": part["value"].mean(),
            "gain": gain.mean(),
            "changed": int((gain != 0).sum()),
            "questions": len(gain),
        }
        for unit, clusters in (("chats", paired["chat"]), ("questions", paired["decision"])):
            interval = cluster_interval(gain, clusters.to_numpy())
            line |= {f"{end} by {unit}": getattr(interval, end, None) for end in ("low", "high")}
        lines.append(line)
    return pl.DataFrame(lines)


FUSED = (
    "(fn [similarity lexical recency] "
    "(+ (* {} (min-max similarity)) (* {} (min-max lexical)) (* {} (min-max recency))))"
)
"""The form of EvolveMem's action space."""
_TUNED = [
    "similarity",
    "lexical",
    "recency",
    "coverage",
    "around-lexical",
    "session-lexical",
    "session-seed",
    "late",
]
STARTS = {
    "grid": FUSED.format(1, 0, 0),
    "tune": f"(fn [{' '.join(_TUNED)}] (+ "
    + " ".join(f"(* (param :{name} 0.5 :low 0 :high 1) (min-max {name}))" for name in _TUNED)
    + "))",
    "evolve": "similarity",
    "shipped": "memlab",
}
"""The policy from which each way of *against* starts; the features of *tune* were chosen by hand."""


def search_grid(inside: Log, budget: int) -> str:
    """Return the best of all fusion weights in steps of .05."""
    steps = range(21)
    weights = [(a / 20, b / 20, (20 - a - b) / 20) for a, b in product(steps, steps) if a + b <= 20]
    texts = [FUSED.format(*point) for point in weights]
    return texts[int(np.argmax(score(inside, *texts)))]


def search_tune(inside: Log, budget: int) -> Any:
    """Return the policy with tuned weights; a point is scored on two folds and on all questions."""
    return memlab.tune(
        inside[0],
        STARTS["tune"],
        labels=inside[1],
        metric=METRIC,
        cluster="decision",
        folds=2,
        budget=budget // 3,
    ).policy


WAYS: dict[str, Callable[[Log, int], Any]] = {
    "grid": search_grid,
    "tune": search_tune,
    "evolve": lambda inside, budget: choose(search(inside, "similarity", budget, 0)),
    "shipped": lambda inside, budget: "memlab",
}


def measure_way(pack: memlab.Pack, data: Path, fold: int, budget: int) -> pl.DataFrame:
    """Search from a pack on all conversations but one, and score each question of that one."""
    way = next(
        name for name, start in STARTS.items() if as_pack(start, None, name).hash == pack.hash
    )
    _, inside, outside = list(split_chats(data, None))[fold]
    rows = score_questions(outside, WAYS[way](inside, budget), METRIC)
    return pl.DataFrame(rows).select(question="decision", cluster="chat", **{METRIC: "value"})


def run_against(arguments: Any) -> None:
    """Compare a grid, memlab.tune, memlab.evolve and the shipped pack, as an experiment."""
    experiment = memlab.Experiment(
        "evolve-against",
        STARTS,
        arguments.data,
        metrics=METRIC,
        seeds=range(len(read_locomo(arguments.data))),
        folder=arguments.results,
        measure=partial(measure_way, budget=arguments.budget or 900),
    )
    run_experiment(experiment)
    for name in ("grid", "tune", "shipped"):
        print(f"\n{experiment.compare('evolve', name)}")


STUDIES: dict[str, tuple[Callable[[Any], Iterator[dict[str, Any]]], int, int]] = {
    "speed": (measure_speed, 2_000, 1),
    "planted": (measure_planted, 4_000, 10),
    "null": (measure_null, 1_000, 100),
    "worlds": (measure_worlds, 6_000, 10),
    "folds": (measure_folds, 20_000, 1),
    "correct": (measure_correct, 0, 1),
    "moonshot": (measure_moonshot, 10**6, 1),
}
"""The studies, with the default number of programs and of runs."""


def main() -> None:
    """Run a study, and print its rows and their means."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("study", choices=[*STUDIES, "against"])
    parser.add_argument("--data", type=Path, help="conversations in LoCoMo's format")
    parser.add_argument(
        "--chats", nargs="+", help="the conversations to leave out, in turn; default: all"
    )
    parser.add_argument("--budget", type=int, help="programs of a search")
    parser.add_argument(
        "--leave", type=int, default=1, help="chats left out at a time, in moonshot"
    )
    parser.add_argument("--own", action="store_true", help="add the features of own_features.py")
    parser.add_argument("--minutes", type=float, default=np.inf, help="processor time, in moonshot")
    parser.add_argument("--runs", type=int, help="runs, each with its own seed")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    if arguments.study == "against":
        run_against(arguments)
        return
    study, budget, runs = STUDIES[arguments.study]
    arguments.budget, arguments.runs = arguments.budget or budget, arguments.runs or runs
    results = Results(
        f"evolve-{arguments.study}", arguments, data=[arguments.data] if arguments.data else []
    )
    rows = []
    for row in study(arguments):
        rows.append(row)
        results.write_table(rows)
        print(
            "  ".join(
                f"{key} {value:.4f}" if isinstance(value, float) else f"{key} {value}"
                for key, value in row.items()
                if not isinstance(value, list | dict)
            ),
            flush=True,
        )
    frame = pl.DataFrame(rows)
    print(
        "mean of",
        frame.height,
        frame.select((pl.selectors.numeric() | pl.selectors.boolean()).mean()).to_dicts()[0],
    )
    if "questions" in frame.columns and "policies" in frame.columns:
        with pl.Config(tbl_cols=-1, tbl_width_chars=200):
            print(summarise(rows))
    results.save(rows)


if __name__ == "__main__":
    main()
