"""Time ``memlab.evaluate`` on a log of 760 recalls with 100 candidates each.

    python experiments/evaluation_speed.py
    python experiments/evaluation_speed.py --recalls 20000
    python experiments/evaluation_speed.py --targets
    python experiments/evaluation_speed.py --disk 10000000

Printed are medians over several runs, intervals and the baseline included: for a score column, for a policy with
aggregates, and for six policies, with few and many clusters.

``--targets`` compares the speed with three targets for a minute on two cores: 10,000 weighted sums of features, 1,000
policies of other forms, and 100 packs that a lab recalls again. It counts processor time of one process with one thread
(POLARS_MAX_THREADS=1), so that other programs do not matter.

``--disk`` writes a log of that many candidates as a folder of Parquet, and evaluates two policies and the log's own. It
does so as a stream and by two and four processes, next to a bare weighted sum by Polars. Printed are the processor time
of all processes, the wall time, the largest process, and whether all results have the same bits.
"""

from __future__ import annotations

import re
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
from results import Results, plot_dots

import memlab
from memlab import Slates
from memlab.science.evaluation import evaluate

FEATURES = (
    "similarity",
    "lexical",
    "coverage",
    "session-lexical",
    "session-seed",
    "received",
    "before-coverage",
)
FLAGS = ("names-other", "asks", "answers")
LIMIT, DEPTH, RATE = 10, 30, 0.5


def build_log(recalls: int, pool: int, clusters: int, seed: int = 0) -> Slates:
    """Return a log with ten results, one exploration item and feedback on all of them."""
    dice = np.random.default_rng(seed)
    size = recalls * pool
    numbers = {name: dice.random(size) for name in FEATURES}
    flags = {name: dice.random(size) < 0.2 for name in FLAGS}
    score = numbers["similarity"] + 0.5 * numbers["lexical"]
    rank = np.argsort(np.argsort(-score.reshape(recalls, pool), axis=1), axis=1) + 1
    propensity = np.where(rank <= LIMIT, 1.0, np.where(rank <= LIMIT + DEPTH, RATE / DEPTH, 0.0))
    probed = dice.random(recalls) < RATE
    at = LIMIT + dice.integers(1, DEPTH + 1, recalls)
    is_shown = ((rank <= LIMIT) | (probed[:, None] & (rank == at[:, None]))).ravel()
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
    exposures = candidates.filter(pl.Series(is_shown)).select(
        "decision", "memory_id", "propensity", position="rank"
    )
    chance = (
        0.2
        + 0.5 * exposures.join(candidates, on=["decision", "memory_id"])["similarity"].to_numpy()
    )
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


def time_call(call: Callable[[], object], runs: int) -> float:
    """Return the median time of a call."""
    call()
    durations = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        durations.append(time.perf_counter() - start)
    return 1000 * statistics.median(durations)


WEIGHTED = (
    "(+ (* {0:.3f} similarity) (* {1:.3f} lexical) (* {2:.3f} coverage) (* {3:.3f} session-seed))"
)
FORMS = (
    "(+ (* {0:.3f} (min-max lexical)) similarity)",
    "(if (> coverage {1:.3f}) (+ similarity lexical) (* {2:.3f} similarity))",
    "(/ similarity (+ {0:.3f} (exp (- 0 lexical))))",
    "(+ similarity (* {3:.3f} (min-max session-lexical)) (if asks {1:.3f} 0))",
    "(max similarity (* {2:.3f} lexical) (min received coverage))",
)
PACK = "(pack again-{0} :inherits companion) (setting dense-candidates {1}) (setting lexical-candidates {1})"
TARGETS = (
    ("weighted sums", 10_000),
    ("policies of other forms", 1_000),
    ("packs recalled again", 100),
)


def draw_policies(forms: Sequence[str], count: int) -> dict[str, str]:
    """Return policies of these forms in turn, with random numbers."""
    dice, names = np.random.default_rng(1), [*FEATURES, *FLAGS]
    bodies = [forms[number % len(forms)].format(*dice.random(4)) for number in range(count)]
    reads = [
        [name for name in names if re.search(rf"(?<![\w-]){name}(?![\w-])", body)]
        for body in bodies
    ]
    return {
        f"p{number}": f"(defpolicy recall-score [{' '.join(inputs)}] {body})"
        for number, (inputs, body) in enumerate(zip(reads, bodies, strict=True))
    }


def time_policies(
    slates: Slates | memlab.Lab, policies: Mapping[str, str] | Sequence[str]
) -> float:
    """Return the processor time of each further policy of one evaluation."""
    whole = list(policies) if isinstance(policies, Sequence) else dict(policies)
    durations = []
    for members in (whole[:1] if isinstance(whole, list) else dict(list(whole.items())[:1]), whole):
        evaluate(slates, members, missing="zero")
        start = time.process_time()
        evaluate(slates, members, missing="zero")
        durations.append(time.process_time() - start)
    return (durations[1] - durations[0]) / (len(whole) - 1)


def build_lab(recalls: int) -> memlab.Lab:
    """Return a lab of 1,500 memories with ``recalls`` judged recalls."""
    dice, words = np.random.default_rng(2), [f"word{number}" for number in range(400)]
    clock = memlab.ManualClock("2026-03-01T12:00:00")
    lab = memlab.open(clock=clock)
    lab.remember([" ".join(dice.choice(words, 8)) for _ in range(1500)])
    for _ in range(recalls):
        clock.advance(hours=1)
        for hit in lab.recall(" ".join(dice.choice(words, 3)), limit=LIMIT, explore=True):
            lab.feedback(hit, "success" if dice.random() < 0.3 else "fail")
    return lab


def print_targets() -> None:
    """Print the targets and the rates reached."""
    log, queries = build_log(760, 100, 50), 40
    with build_lab(queries) as lab:
        again = (
            time_policies(lab, [PACK.format(number, 40 + number) for number in range(5)])
            * 760
            / queries
        )
    each = (
        time_policies(log, draw_policies([WEIGHTED], 100)),
        time_policies(log, draw_policies(FORMS, 100)),
        again,
    )
    print(f"{'a minute on two cores':<26}{'target':>8}{'ms each':>10}{'reached':>10}")
    for (name, wanted), seconds in zip(TARGETS, each, strict=True):
        reached = 2 * 60 / seconds
        verdict = "met" if reached >= wanted else f"missed by {wanted / reached:.1f}"
        print(f"{name:<26}{wanted:>8,}{1000 * seconds:>10.1f}{reached:>10,.0f}  {verdict}")


DISK = {
    "decision": "query_id",
    "item": "memory_id",
    "shown": "rank",
    "reward": "clicked",
    "propensity": "p",
    "score": "old_score",
    "limit": LIMIT,
    "cluster": "user",
    "scores": ["new_score", "third"],
}


def write_part(path: Path, recalls: int, pool: int, first: int) -> None:
    """Write recalls as a Parquet file: ten results, a probe in half of them, 1,000 users."""
    dice = np.random.default_rng(first)
    old = dice.random((recalls, pool))
    rank = np.argsort(np.argsort(-old, axis=1), axis=1) + 1
    probed = dice.random(recalls) < RATE
    is_probe = probed[:, None] & (rank == (LIMIT + dice.integers(1, DEPTH + 1, recalls))[:, None])
    seat = np.where(probed, dice.integers(2, LIMIT + 2, recalls), pool)[:, None]
    position = np.where(is_probe, seat, np.where(rank <= LIMIT, rank + (rank >= seat), 0))
    new = 0.7 * old + 0.3 * dice.random((recalls, pool))
    reward = np.where(dice.random((recalls, pool)) < 0.1 + 0.5 * new, 1.0, 0.0)
    pl.DataFrame(
        {
            "query_id": np.repeat(np.arange(first, first + recalls), pool),
            "memory_id": np.tile(np.arange(pool), recalls),
            "rank": position.ravel(),
            "clicked": pl.Series(np.where(position > 0, reward, np.nan).ravel()).fill_nan(None),
            "p": np.where(
                rank <= LIMIT, 1.0, np.where(rank <= LIMIT + DEPTH, RATE / DEPTH, 0.0)
            ).ravel(),
            "old_score": old.ravel(),
            "new_score": new.ravel(),
            "third": (0.5 * old + 0.5 * dice.random((recalls, pool))).ravel(),
            "user": np.repeat(dice.integers(0, 1000, recalls), pool),
        }
    ).write_parquet(path)


def sum_bare(folder: Path) -> object:
    """Return the Horvitz-Thompson sum of one policy, by Polars alone."""
    score = pl.col("new_score")
    earned = (
        pl.col("clicked") * (score.rank(descending=True).over("query_id") <= LIMIT) / pl.col("p")
    )
    return (
        pl.scan_parquet(folder)
        .filter(pl.col("p") > 0)
        .select(earned.sum())
        .collect(engine="streaming")
        .item()
    )


def measure_disk(kind: str, folder: Path) -> tuple[float, float, float, object]:
    """Return the processor time, wall time, largest process (GB) and result of one way."""
    start, began = time.process_time(), time.perf_counter()
    if kind == "a bare sum by Polars":
        result = sum_bare(folder)
    else:
        workers = {"two processes": 2, "four processes": 4}.get(kind)
        frame = evaluate(
            folder, ["new_score", "third"], columns=DISK, missing="zero", executor=workers
        ).frame
        result = frame.rows()
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = time.process_time() - start + usage[1].ru_utime + usage[1].ru_stime
    return seconds, time.perf_counter() - began, max(use.ru_maxrss for use in usage) / 1e6, result


def print_disk(rows: int, pool: int) -> None:
    """Print the cost of each way to evaluate a log on disk."""
    files, results = 20, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = rows // pool // files
        for number in range(files):
            write_part(folder / f"{number:03}.parquet", count, pool, number * count)
        print(f"{rows:,} candidates of {count * files:,} recalls, three policies")
        for kind in ("stream", "two processes", "four processes", "a bare sum by Polars"):
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                cpu, wall, memory, result = process.submit(measure_disk, kind, folder).result()
            results.append(result)
            print(f"{kind:<24}{cpu:>8.1f} s of processor time{wall:>8.1f} s wall{memory:>8.2f} GB")
    print("the same bits" if results[0] == results[1] == results[2] else "OTHER BITS")


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("--recalls", type=int, default=760)
    parser.add_argument("--pool", type=int, default=100)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--targets", action="store_true")
    parser.add_argument("--disk", type=int, metavar="CANDIDATES")
    arguments = parser.parse_args()
    results = Results("evaluation_speed", arguments)
    if arguments.disk:
        print_disk(arguments.disk, arguments.pool)
        return
    if arguments.targets:
        print_targets()
        return
    rows: list[dict[str, object]] = []
    policies = {
        "a column of scores": ["similarity"],
        "the pack memlab": ["memlab"],
        "six policies": ["memlab", *FEATURES[:5]],
    }
    print(
        f"{arguments.recalls:,} recalls of {arguments.pool} candidates; median of {arguments.runs} runs, in ms"
    )
    print(f"{'':<22}{'10 clusters':>14}{'50 clusters':>14}{'each its own':>14}")
    for name, members in policies.items():
        row = []
        for clusters in (10, 50, arguments.recalls):
            slates = build_log(arguments.recalls, arguments.pool, clusters)
            row.append(
                time_call(
                    lambda slates=slates, members=members: evaluate(
                        slates, members, missing="zero"
                    ),
                    arguments.runs,
                )
            )
            rows.append({"policies": name, "clusters": str(clusters), "ms": row[-1]})
        print(f"{name:<22}" + "".join(f"{value:>14.1f}" for value in row))
    results.save(
        rows,
        plot_dots(
            rows,
            label="policies",
            value="ms",
            group="clusters",
            title="Time of one evaluation by number of clusters",
        ),
    )


if __name__ == "__main__":
    main()
