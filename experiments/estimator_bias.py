"""Measure bias, error and coverage of the estimators on simulated logs with known values.

    python experiments/estimator_bias.py                      # 300 logs for each number of clusters, seeded
    python experiments/estimator_bias.py --logs 50 --answers 1.0

One run is simulated: thirty projects, eighty recalls each, five results and one exploration item per recall. Each log
draws 5, 10 or 50 projects from it with replacement, and then new exploration items and feedback. So an interval should
cover the value over the whole run.

The table has the true value, the bias with its standard error, and the root mean squared error of each policy and
estimator. The column *cover* is the share of intervals that cover the true value. The column *withheld* is the share of
logs on which a gate was closed. These logs are left out of the coverage.

- snips is the default of ``memlab.evaluate``.
- ht is Horvitz-Thompson; missing feedback counts as 0, and the estimate is divided by the share of answers.
- naive is the mean reward of items shown by both the policy and the log, times the number of results.
- model is the direct method, fitted on the first fifty logs only, because fitting takes longest.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import polars as pl
from redraw import Pools
from results import Results, plot_dots

import memlab
from memlab.science.evaluation import evaluate
from memlab.science.simulation import Life, Phase, User, World, live

LOGGING = """(pack logging "Five memories of a pool of thirty." :inherits memlab)
(setting limit 5) (setting pool 30) (setting probe-rate 1) (setting probe-depth 25) (setting probe-floor 0.5)
(defpolicy explore [activation nearness] (+ (max 0 activation) (* 0 nearness)))"""
"""Every candidate below the top five can be the exploration item, so the log supports each policy that ranks this pool.

A log records the features that its own pack reads. ``explore`` reads ``nearness`` with the weight 0 because companion
scores by it and the default pack does not.
"""

POLICIES = {
    "companion": "companion",
    "fresh": """(pack fresh "Near and new.")
        (defpolicy recall-score [similarity lexical age-days]
          (- (+ (min-max similarity) (min-max lexical)) (* 0.6 (min-max age-days))))""",
    "by-similarity": """(pack by-similarity "Near.") (defpolicy recall-score [similarity] similarity)""",
}
MODELLED = 50
FEATURES = (
    "similarity",
    "lexical",
    "coverage",
    "age-days",
    "idle-days",
    "access",
    "importance",
    "length",
)


def build_world(answers: float, seed: int) -> World:
    """Return the simulated world: thirty different projects with eighty recalls each."""
    return World(
        "study",
        seed=seed,
        days=60,
        projects=30,
        aspects=8,
        messages_per_day=50,
        questions_per_day=40,
        phases=(Phase(0.4, change_days=40.0), Phase(1.0, change_days=20.0)),
        user=User(answers=answers, errors=0.04, delay_hours=1.0),
        packs=((0, LOGGING),),
    )


def score_pools(life: Life) -> Pools:
    """Return the pools with one score column per policy and the model's features."""
    pools = Pools.of(life, rate=1.0, depth=25, floor=0.5, explore=pl.col("activation").clip(0))
    frame = pools.candidates
    scores = {
        name: memlab.load_pack(pack).policies["recall-score"].columns(frame, by="decision")
        for name, pack in POLICIES.items()
    }
    columns = ["decision", "memory_id", "propensity", "rank", "score", *FEATURES]
    return replace(pools, candidates=frame.select(columns).with_columns(**scores))


@dataclass
class Column:
    """Estimates of one estimator for one policy on every log."""

    values: list[float] = field(default_factory=list)
    covered: list[bool] = field(default_factory=list)
    withheld: int = 0


def evaluate_logs(
    pools: Pools, clusters: int, logs: int, truth: dict[str, float]
) -> dict[tuple[str, str], Column]:
    """Evaluate ``logs`` redrawn logs by every estimator."""
    columns = {key: Column() for key in product(POLICIES, ("snips", "ht", "naive", "model"))}
    for seed in range(logs):
        slates = pools.redraw(seed, clusters=clusters)
        policies = [pl.col(name) for name in POLICIES]
        default = evaluate(slates, policies, missing="censor")  # feedback is missing at random here
        total = evaluate(slates, policies, estimator="ht", missing="zero")
        answered = (
            slates.feedback.select(pl.len()).collect().item()
            / slates.exposures.select(pl.len()).collect().item()
        )
        for estimator, evaluation, scale in (("snips", default, 1.0), ("ht", total, answered)):
            for row in evaluation.rows:
                if row.policy not in POLICIES:
                    continue
                column = columns[row.policy, estimator]
                column.values.append(row.estimate / scale)
                if row.value is None:
                    column.withheld += 1
                else:
                    column.covered.append(
                        row.value.low / scale <= truth[row.policy] <= row.value.high / scale
                    )
        for name in POLICIES:
            columns[name, "naive"].values.append(estimate_naively(slates, name))
            if seed < MODELLED:
                columns[name, "model"].values.append(default.model_values[name])
    return columns


def estimate_naively(slates: memlab.Slates, name: str) -> float:
    """Return the mean reward of shown results of a policy, times the number of results."""
    order = pl.struct(-pl.col(name), "memory_id").rank("ordinal").over("decision")
    limit = slates.decisions.select("decision", "limit")
    head = (
        slates.candidates.join(limit, on="decision")
        .filter(order <= pl.col("limit"))
        .select("decision", "memory_id")
    )
    feedback = slates.feedback.select("decision", "memory_id", "reward")
    mean = (
        head.join(feedback, on=["decision", "memory_id"])
        .select(pl.col("reward").mean())
        .collect()
        .item()
    )
    return float(mean * count_rows(head) / count_rows(slates.decisions))


def count_rows(frame: pl.LazyFrame) -> int:
    """Return the number of rows of a frame."""
    return int(frame.select(pl.len()).collect().item())


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("--logs", type=int, default=300)
    parser.add_argument("--clusters", type=int, nargs="+", default=[5, 10, 50])
    parser.add_argument(
        "--answers", type=float, default=0.85, help="share of shown items that get feedback"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    results = Results("estimator_bias", arguments)
    rows: list[dict[str, object]] = []
    started = time.perf_counter()
    with live(build_world(arguments.answers, arguments.seed), progress=sys.stderr.isatty()) as life:
        print(
            f"{life!r}, simulated in {time.perf_counter() - started:.0f} s; "
            f"{arguments.logs} logs for each number of clusters"
        )
        pools = score_pools(life)
        truth = {name: life.truth(pack, how="rescore") for name, pack in POLICIES.items()}
    print(f"{'clusters':>8}  {'policy':<14}{'estimator':<10}{'truth':>6}{'bias':>9}{'s.e.':>7}{'bias/s.e.':>10}"
          f"{'RMSE':>7}{'cover':>7}{'withheld':>9}")  # fmt: skip
    for clusters in arguments.clusters:
        started = time.perf_counter()
        for (name, estimator), column in evaluate_logs(
            pools, clusters, arguments.logs, truth
        ).items():
            errors = np.array(column.values) - truth[name]
            bias, error = errors.mean(), errors.std(ddof=1) / np.sqrt(len(errors))
            cover = f"{np.mean(column.covered):.3f}" if column.covered else ""
            rows.append(
                {
                    "clusters": clusters,
                    "policy": name,
                    "estimator": estimator,
                    "true value": truth[name],
                    "bias": float(bias),
                    "low": float(bias - 2 * error),
                    "high": float(bias + 2 * error),
                    "rmse": float(np.sqrt((errors**2).mean())),
                    "coverage": float(np.mean(column.covered)) if column.covered else None,
                    "withheld": column.withheld / arguments.logs,
                }
            )
            withheld = (
                f"{column.withheld / arguments.logs:.2f}" if estimator in ("snips", "ht") else ""
            )
            print(f"{clusters:>8}  {name:<14}{estimator:<10}{truth[name]:>6.3f}{bias:>+9.4f}{error:>7.4f}"
                  f"{bias / error:>+10.1f}{np.sqrt((errors**2).mean()):>7.3f}{cover:>7}{withheld:>9}")  # fmt: skip
        print(f"{'':>10}{arguments.logs} logs in {time.perf_counter() - started:.0f} s")
    points = [row | {"case": f"{row['policy']}, {row['clusters']} clusters"} for row in rows]
    results.save(
        rows,
        plot_dots(
            points,
            label="case",
            value="bias",
            group="estimator",
            interval=("low", "high"),
            reference=0.0,
            title="Bias by estimator, with two standard errors",
        ),
        height=5.0,
    )


if __name__ == "__main__":
    main()
