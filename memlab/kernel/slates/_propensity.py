"""With which probability each candidate was to be shown: as logged, as it follows, or unknown, and never guessed."""

from __future__ import annotations

import polars as pl

from memlab.kernel.slates._checks import Labels, Why
from memlab.kernel.slates._schema import IDS

__all__ = ["SLACK", "propensities"]

SLACK = 1e-9
"""By how much a probability may exceed 1, or differ between two tables: what arithmetic on doubles leaves."""

_PAIR = list(IDS)


def propensities(
    decisions: pl.DataFrame, candidates: pl.DataFrame, exposures: pl.DataFrame, labels: Labels, notes: list[str]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """The tables with the sampler of every decision, and with every propensity that can be told.

    What was shown has the same propensity in both tables. Without a declared sampler a log is ``deterministic`` if
    all that it showed was certain, ``logged`` if not, and ``unknown`` if it has no propensities.
    """
    _check_range("exposures", exposures, labels)
    _check_range("candidates", candidates, labels)
    top = pl.col("propensity").clip(upper_bound=1.0)
    exposures, candidates = _agreed(exposures.with_columns(top), candidates.with_columns(top), labels)
    decisions = _sampled(decisions, exposures, labels)
    samplers = decisions.select("decision", "sampler")
    shown = exposures.join(samplers, on="decision", how="left", maintain_order="left")
    pool = candidates.join(samplers, on="decision", how="left", maintain_order="left")
    pool, shown = _certain(pool, shown, labels)
    _check_complete(pool, shown, labels)
    unseen = pool.filter(pl.col("propensity").is_null() & ~pl.col("#shown") & (pl.col("sampler") != "unknown"))
    if unseen.height:
        notes.append(
            f"{unseen.height:,} candidates that were not shown have no propensity: "
            "how much of another policy the log supports cannot be told exactly."
        )
    unknown = shown.filter(pl.col("propensity").is_null())["decision"].n_unique()
    if unknown:
        notes.append(
            f"{unknown:,} of {decisions.height:,} decisions have no propensities (sampler unknown): "
            "what was shown cannot be weighted, and estimators that weigh will refuse."
        )
    sure = pl.when(pl.col("propensity") == 1).then(1.0)
    shown = shown.with_columns(pl.coalesce("conditional", sure).alias("conditional"))
    return decisions, pool.drop("sampler", "#shown"), shown.drop("sampler")


def _check_range(table: str, frame: pl.DataFrame, labels: Labels) -> None:
    p, label = pl.col("propensity"), labels.column(table, "propensity")

    def refuse(bad: pl.Expr, why: Why) -> None:
        labels.refuse_where(table, frame, bad, why)

    refuse(p.is_nan(), f"{label} is NaN")
    refuse(p < 0, lambda row: f"{label} is {row['propensity']:g}, below 0")
    refuse(p > 1 + SLACK, lambda row: f"{label} is {row['propensity']:g}, above 1")
    if table == "exposures":
        refuse(p == 0, f"it was shown with {label} 0, which cannot be")


def _agreed(exposures: pl.DataFrame, candidates: pl.DataFrame, labels: Labels) -> tuple[pl.DataFrame, pl.DataFrame]:
    label = labels.column("exposures", "propensity")
    shown = exposures.join(
        candidates.select(*IDS, pl.col("propensity").alias("#pool")), on=_PAIR, how="left", maintain_order="left"
    )
    labels.refuse_where(
        "exposures",
        shown,
        (pl.col("propensity") - pl.col("#pool")).abs() > SLACK,
        lambda row: f"{label} is {row['propensity']:g}, and {row['#pool']:g} among the candidates",
    )
    labels.refuse_where("exposures", shown, pl.col("#pool") == 0, f"it was shown with {label} 0, which cannot be")
    here, there = pl.col("propensity").is_null(), pl.col("#pool").is_null()
    for table, frame, gap in (("exposures", exposures, here & ~there), ("candidates", candidates, there & ~here)):
        if frame["propensity"].null_count() < frame.height:
            labels.refuse_where("exposures", shown, gap, f"{label} is missing in {labels.table(table)}")
    shown = shown.with_columns(pl.coalesce("propensity", "#pool").alias("propensity")).drop("#pool")
    marks = shown.select(*IDS, pl.col("propensity").alias("#p"), pl.lit(True).alias("#shown"))
    pool = candidates.join(marks, on=_PAIR, how="left", maintain_order="left")
    return shown, pool.with_columns(
        pl.coalesce("#p", "propensity").alias("propensity"), pl.col("#shown").fill_null(False)
    ).drop("#p")


def _sampled(decisions: pl.DataFrame, exposures: pl.DataFrame, labels: Labels) -> pl.DataFrame:
    """Fill in the samplers that are not declared, by what the decisions without one have in common."""
    undeclared = decisions.filter(pl.col("sampler").is_null())
    if undeclared.is_empty():
        return decisions
    theirs = exposures.join(undeclared, on="decision", how="semi")
    missing = theirs["propensity"].null_count()
    if 0 < missing < theirs.height:
        label = labels.column("exposures", "propensity")
        labels.refuse_where(
            "exposures", theirs, pl.col("propensity").is_null(), f"{label} is missing, though others have it"
        )
    if missing:
        sampler = "unknown"
    else:
        sampler = "deterministic" if (theirs["propensity"] == 1).all() else "logged"
    return decisions.with_columns(pl.col("sampler").fill_null(sampler))


def _certain(pool: pl.DataFrame, shown: pl.DataFrame, labels: Labels) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Of deterministic decisions what was shown was certain, and the rest impossible."""
    sure = pl.col("sampler") == "deterministic"
    label = labels.column("candidates", "propensity")
    labels.refuse_where(
        "exposures",
        shown,
        sure & (pl.col("propensity") != 1),
        lambda row: f"the decision is deterministic, and {label} is {row['propensity']:g}, not 1",
    )
    labels.refuse_where(
        "candidates",
        pool,
        sure & ~pl.col("#shown") & (pl.col("propensity") != 0),
        lambda row: f"the decision is deterministic and did not show it, and {label} is {row['propensity']:g}, not 0",
    )
    labels.refuse_where(
        "candidates",
        pool,
        (pl.col("sampler") != "gumbel") & ~pl.col("#shown") & (pl.col("propensity") >= 1),
        f"{label} is 1, and it was not shown",
    )
    follows = pl.when(sure).then(pl.col("#shown").cast(pl.Float64))
    pool = pool.with_columns(pl.coalesce("propensity", follows).alias("propensity"))
    shown = shown.with_columns(pl.coalesce("propensity", pl.when(sure).then(1.0)).alias("propensity"))
    return pool, shown


def _check_complete(pool: pl.DataFrame, shown: pl.DataFrame, labels: Labels) -> None:
    """Where a decision has propensities, all that it showed has one; so has the rest, or none of it."""
    p, label = pl.col("propensity"), labels.column("exposures", "propensity")
    known = pool.filter(p.is_not_null()).select("decision").unique()
    missing = shown.filter(p.is_null())
    labels.refuse(
        "exposures",
        missing.filter(pl.col("sampler") != "unknown"),
        lambda row: f"{label} is missing, and the sampler is {row['sampler']}",
    )
    labels.refuse(
        "exposures", missing.join(known, on="decision", how="semi"), f"{label} is missing, though others have it"
    )
    rest = pool.filter(~pl.col("#shown"))
    some = rest.filter(p.is_not_null()).select("decision").unique()
    gaps = rest.filter(p.is_null())
    labels.refuse(
        "candidates",
        gaps.filter(pl.col("sampler").is_in(["probe", "gumbel", "challenge", "lot", "ab"])),
        lambda row: f"{label} is missing, and the sampler is {row['sampler']}",
    )
    labels.refuse(
        "candidates", gaps.join(some, on="decision", how="semi"), f"{label} is missing, though others have it"
    )
