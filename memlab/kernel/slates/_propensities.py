"""Propensities of the items of a log.

A propensity is logged, or follows from the sampler, or stays unknown. Propensities are never guessed.
"""

from __future__ import annotations

import polars as pl

from memlab.kernel.slates._faults import ROW, Labels, Why
from memlab.kernel.slates._schema import IDS

SLACK = 1e-9
"""The tolerance for rounding errors, by which a probability may exceed 1 or differ between two tables."""

PAIR = list(IDS)
"""The columns that identify a candidate."""


def fill_propensities(
    decisions: pl.DataFrame,
    candidates: pl.DataFrame,
    exposures: pl.DataFrame,
    labels: Labels,
    notes: list[str],
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Fill in missing samplers of decisions and the propensities that they imply.

    A shown item gets the same propensity in the tables of candidates and exposures. Without a declared sampler, the log
    is ``deterministic`` if all shown items have propensity 1, ``logged`` if others occur, and ``unknown`` without
    propensities.
    """
    _check_range("exposures", exposures, labels)
    _check_range("candidates", candidates, labels)
    top = pl.col("propensity").clip(upper_bound=1.0)
    exposures, candidates = _reconcile(
        exposures.with_columns(top), candidates.with_columns(top), labels
    )
    decisions = _fill_samplers(decisions, exposures, labels)
    samplers = decisions.select("decision", "sampler")
    exposed = exposures.join(samplers, on="decision", how="left", maintain_order="left")
    pool = candidates.join(samplers, on="decision", how="left", maintain_order="left")
    pool, exposed = _fill_certain(pool, exposed, labels)
    _check_complete(pool, exposed, labels)
    unseen = pool.filter(
        pl.col("propensity").is_null() & ~pl.col("#shown") & (pl.col("sampler") != "unknown")
    )
    if unseen.height:
        notes.append(
            f"{unseen.height:,} candidates that were not shown have no propensity, "
            "so the support of another policy cannot be computed exactly."
        )
    unknown = exposed.filter(pl.col("propensity").is_null())["decision"].n_unique()
    if unknown:
        notes.append(
            f"{unknown:,} of {decisions.height:,} decisions have no propensities (sampler unknown), "
            "so estimators that weight by propensity are refused."
        )
    certain = pl.when(pl.col("propensity") == 1).then(1.0)
    exposed = exposed.with_columns(pl.coalesce("conditional", certain).alias("conditional"))
    return decisions, pool.drop("sampler", "#shown"), exposed.drop("sampler")


def _check_range(table: str, frame: pl.DataFrame, labels: Labels) -> None:
    """Raise DatasetError for propensities that are not probabilities."""
    p, label = pl.col("propensity"), labels.column(table, "propensity")

    def refuse(bad: pl.Expr, why: Why) -> None:
        """Raise an error for the first row that satisfies a condition."""
        labels.refuse_where(table, frame, bad, why)

    refuse(p.is_nan(), f"{label} is NaN")
    refuse(p < 0, lambda row: f"{label} is {row['propensity']:g}, below 0")
    refuse(p > 1 + SLACK, lambda row: f"{label} is {row['propensity']:g}, above 1")
    if table == "exposures":
        refuse(p == 0, f"the item was shown with {label} 0, which is impossible")


def _reconcile(
    exposures: pl.DataFrame, candidates: pl.DataFrame, labels: Labels
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return exposures and candidates in which each shown item has the same propensity in both.

    Raises DatasetError if the two tables contradict each other.
    """
    label = labels.column("exposures", "propensity")
    rows = pool_rows(exposures, candidates)
    if rows is None:
        exposed = exposures.join(
            candidates.select(*IDS, pl.col("propensity").alias("#pool")),
            on=PAIR,
            how="left",
            maintain_order="left",
        )
    else:
        exposed = exposures.with_columns(candidates["propensity"][rows].alias("#pool"))
    labels.refuse_where(
        "exposures",
        exposed,
        (pl.col("propensity") - pl.col("#pool")).abs() > SLACK,
        lambda row: f"{label} is {row['propensity']:g}, and {row['#pool']:g} among the candidates",
    )
    labels.refuse_where(
        "exposures",
        exposed,
        pl.col("#pool") == 0,
        f"the item was shown with {label} 0, which is impossible",
    )
    lacks_own, lacks_pool = pl.col("propensity").is_null(), pl.col("#pool").is_null()
    for table, frame, gap in (
        ("exposures", exposures, lacks_own & ~lacks_pool),
        ("candidates", candidates, lacks_pool & ~lacks_own),
    ):
        if frame["propensity"].null_count() < frame.height:
            labels.refuse_where(
                "exposures", exposed, gap, f"{label} is missing in {labels.table(table)}"
            )
    exposed = exposed.with_columns(pl.coalesce("propensity", "#pool").alias("propensity")).drop(
        "#pool"
    )
    marks = exposed.select(
        *IDS, ROW, pl.col("propensity").alias("#p"), pl.lit(True).alias("#shown")
    )
    if rows is None:
        pool = candidates.join(marks.drop(ROW), on=PAIR, how="left", maintain_order="left")
    else:
        pool = candidates.join(marks.drop(IDS), on=ROW, how="left", maintain_order="left")
    return exposed, pool.with_columns(
        pl.coalesce("#p", "propensity").alias("propensity"), pl.col("#shown").fill_null(False)
    ).drop("#p")


def _fill_samplers(
    decisions: pl.DataFrame, exposures: pl.DataFrame, labels: Labels
) -> pl.DataFrame:
    """Return the decisions with one value for all missing samplers, derived from the propensities of these decisions."""
    undeclared = decisions.filter(pl.col("sampler").is_null())
    if undeclared.is_empty():
        return decisions
    exposed = exposures.join(undeclared, on="decision", how="semi")
    missing = exposed["propensity"].null_count()
    if 0 < missing < exposed.height:
        label = labels.column("exposures", "propensity")
        labels.refuse_where(
            "exposures",
            exposed,
            pl.col("propensity").is_null(),
            f"{label} is missing, though others have it. Leave these recalls out, or pass no propensity",
        )
    if missing:
        sampler = "unknown"
    else:
        sampler = "deterministic" if (exposed["propensity"] == 1).all() else "logged"
    return decisions.with_columns(pl.col("sampler").fill_null(sampler))


def _fill_certain(
    pool: pl.DataFrame, exposed: pl.DataFrame, labels: Labels
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return candidates and exposures with the propensities 1 and 0 of deterministic decisions filled in.

    Raises DatasetError if a logged propensity contradicts the sampler of its decision.
    """
    is_certain = pl.col("sampler") == "deterministic"
    label = labels.column("candidates", "propensity")
    labels.refuse_where(
        "exposures",
        exposed,
        is_certain & (pl.col("propensity") != 1),
        lambda row: f"the decision is deterministic, and {label} is {row['propensity']:g}, not 1",
    )
    labels.refuse_where(
        "candidates",
        pool,
        is_certain & ~pl.col("#shown") & (pl.col("propensity") != 0),
        lambda row: (
            f"the decision is deterministic and did not show it, and {label} is {row['propensity']:g}, not 0"
        ),
    )
    labels.refuse_where(
        "candidates",
        pool,
        (pl.col("sampler") != "gumbel") & ~pl.col("#shown") & (pl.col("propensity") >= 1),
        f"{label} is 1, and it was not shown. Give it the probability of being shown, below 1",
    )
    follows = pl.when(is_certain).then(pl.col("#shown").cast(pl.Float64))
    pool = pool.with_columns(pl.coalesce("propensity", follows).alias("propensity"))
    exposed = exposed.with_columns(
        pl.coalesce("propensity", pl.when(is_certain).then(1.0)).alias("propensity")
    )
    return pool, exposed


def _check_complete(pool: pl.DataFrame, exposed: pl.DataFrame, labels: Labels) -> None:
    """Raise DatasetError for decisions with incomplete propensities.

    Either all shown items of a decision have a propensity, or none has. The same holds for its candidates that were not
    shown.
    """
    p, label = pl.col("propensity"), labels.column("exposures", "propensity")
    complete = pool.filter(p.is_not_null()).select("decision").unique()
    missing = exposed.filter(p.is_null())
    labels.refuse(
        "exposures",
        missing.filter(pl.col("sampler") != "unknown"),
        lambda row: f"{label} is missing, and the sampler is {row['sampler']}, which needs it",
    )
    labels.refuse(
        "exposures",
        missing.join(complete, on="decision", how="semi"),
        f"{label} is missing, though others have it. Leave these recalls out, or pass no propensity",
    )
    rest = pool.filter(~pl.col("#shown"))
    partial = rest.filter(p.is_not_null()).select("decision").unique()
    gaps = rest.filter(p.is_null())
    labels.refuse(
        "candidates",
        gaps.filter(
            pl.col("sampler").is_in(["probe", "gumbel", "challenge", "lot", "draft", "ab"])
        ),
        lambda row: f"{label} is missing, and the sampler is {row['sampler']}, which needs it",
    )
    labels.refuse(
        "candidates",
        gaps.join(partial, on="decision", how="semi"),
        f"{label} is missing, though others have it. Leave these recalls out, or pass no propensity",
    )


def pool_rows(exposures: pl.DataFrame, candidates: pl.DataFrame) -> pl.Series | None:
    """Return the candidate row of each shown item if both tables come from one wide frame.

    Reading a row by its number takes a tenth of the time of a join by ids. The result is None for
    tables whose rows were numbered apart.
    """
    rows = exposures[ROW]
    is_numbered = (candidates[ROW] == pl.int_range(candidates.height, eager=True)).all()
    if not is_numbered or (rows >= candidates.height).any():
        return None
    same = exposures.select(PAIR).equals(candidates.select(PAIR)[rows])
    return rows if same else None
