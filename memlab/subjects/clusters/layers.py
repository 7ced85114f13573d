"""Temporal layers: which memories are active, stable, emerging or decaying."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memlab.kernel.base.clock import When, from_micros, to_micros

__all__ = ["LAYERS", "Layers", "layer", "layers"]

LAYERS = ("active", "stable", "emerging", "decaying")

_WORDS = pl.Enum(LAYERS)
_DAY_US = 86_400_000_000


def layer(now: When) -> pl.Expr:
    """The layer of a row of ``lab.memories`` at ``now``, where no policy says another.

    emerging: newer than 7 days and used less than twice; else active: used within 7 days; else stable: used 5 times;
    else decaying. This is what the ``label`` policy of the pack ``associative`` says.
    """
    instant = pl.lit(from_micros(to_micros(now)), dtype=pl.Datetime("us", "UTC"))

    def days(column: str) -> pl.Expr:
        return ((instant - pl.col(column)).dt.total_microseconds() / _DAY_US).clip(0)

    return (
        pl.when((days("created") < 7) & (pl.col("access") < 2))
        .then(pl.lit("emerging"))
        .when((days("accessed") <= 7) & (pl.col("access") > 0))
        .then(pl.lit("active"))
        .when(pl.col("access") >= 5)
        .then(pl.lit("stable"))
        .otherwise(pl.lit("decaying"))
        .cast(_WORDS)
        .alias("layer")
    )


@dataclass(frozen=True)
class Layers:
    """How many memories each layer has: ``overall``, ``by_kind``, and ``by_week`` in which they were created.

    All three have the columns ``layer``, ``memories`` and ``share`` (of all, of the kind, of the week), and a row for
    each layer, empty ones too. Weeks begin on Mondays, UTC; a week in which nothing was created has no rows.
    """

    overall: pl.DataFrame
    by_kind: pl.DataFrame
    by_week: pl.DataFrame


def layers(memories: pl.DataFrame, now: When) -> Layers:
    """Count the rows of a frame with the columns kind, created, accessed and access of ``lab.memories``.

    A column ``layer`` of the four words decides where there is one, else ``layer(now)``.
    """
    by = pl.col("layer").cast(_WORDS) if "layer" in memories.columns else layer(now)
    memories = memories.with_columns(by)
    weeks = pl.col("created").dt.truncate("1w").alias("week")
    return Layers(
        _counted(memories.select("layer"), []),
        _counted(memories.select("kind", "layer"), ["kind"]).sort(
            pl.col("memories").sum().over("kind"), "kind", "layer", descending=[True, False, False]
        ),
        _counted(memories.select(weeks, "layer"), ["week"]),
    )


def _counted(memories: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """A row for each group and layer, sorted."""
    every = pl.DataFrame({"layer": pl.Series(LAYERS, dtype=_WORDS)})
    if by:
        every = memories.select(by).unique().join(every, how="cross")
    counted = memories.group_by(*by, "layer").agg(pl.len().cast(pl.Int64).alias("memories"))
    total = pl.col("memories").sum()
    share = (pl.col("memories") / (total.over(by) if by else total)).fill_nan(0.0)
    return (
        every.join(counted, on=[*by, "layer"], how="left", nulls_equal=True)
        .with_columns(pl.col("memories").fill_null(0))
        .with_columns(share.alias("share"))
        .sort(*by, "layer")
    )
