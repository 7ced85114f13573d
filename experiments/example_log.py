"""Simulate the example log of memlab: ``python experiments/example_log.py [TARGET]``.

The log spans two simulated months in which values change every ten days. The active policy prefers old memories, the
other policy new ones. The true values, which the log does not contain, are printed. The same code gives the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from memlab.science.examples import LOG
from memlab.science.simulation import Phase, World, live

OLD = """(pack established "What is near, and what is old." :inherits memlab)
(setting limit 3) (setting pool 10)
(setting probe-rate 1) (setting probe-depth 7) (setting probe-floor 1)
(defpolicy recall-score [similarity age-days] (+ (min-max similarity) (* 0.5 (min-max age-days))))
"""
WORLD = World(
    "example",
    seed=7,
    days=60,
    messages_per_day=12,
    questions_per_day=7,
    phases=(Phase(change_days=10.0),),
    synonyms=0.8,
    packs=((0, OLD),),
)


def main(target: Path) -> None:
    """Write the log and print the true values."""
    with live(WORLD) as life:
        slates = life.slates
        key = ["decision", "memory_id"]
        new = _scale("similarity") + _scale("lexical") - 0.8 * _scale("age-days")
        answers = slates.feedback.select(
            *key, clicked=(pl.col("outcome") == "success").cast(pl.Int8)
        )
        log = (
            slates.candidates.with_columns(new_score=new)
            .join(slates.exposures.select(*key, "position"), on=key, how="left")
            .join(answers, on=key, how="left")
            .sort("decision", "score", "memory_id", descending=[False, True, False])
            .select(
                pl.col("decision").cast(pl.Int32).alias("query_id"),
                pl.col("memory_id").cast(pl.Int32),
                pl.col("position").cast(pl.Int8).alias("rank"),
                "clicked",
                pl.col("propensity").cast(pl.Float32).alias("p"),
                pl.col("score").round(3).cast(pl.Float32).alias("old_score"),
                pl.col("new_score").round(3).cast(pl.Float32),
            )
            .collect()
        )
        print(f"true values: {life.truth(OLD):.3f} and {life.truth(new):.3f}")
    log.write_parquet(target, compression="zstd", compression_level=19)
    print(
        f"{target}: {log['query_id'].n_unique()} recalls, {log.height:,} rows, {target.stat().st_size:,} bytes"
    )


def _scale(name: str) -> pl.Expr:
    """Return a column scaled to 0..1 within each recall."""
    value = pl.col(name)
    return ((value - value.min()) / (value.max() - value.min())).fill_nan(0.0).over("decision")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else LOG)
