"""Logs of other systems in one frame with a row for each candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from memlab.errors import InputError
from memlab.kernel.slates._checking import Duplicates, one_feedback
from memlab.kernel.slates._faults import ROW, Labels, brief, read_frame
from memlab.kernel.slates._schema import CANDIDATES, CONTENT, DECISIONS, EXPOSURES, FEEDBACK, IDS

WIDE = {
    "decision": "decision",
    "item": "memory_id",
    "shown": "shown",
    "reward": "reward",
    "propensity": "propensity",
    "score": "score",
    "cluster": "cluster",
    "at": "at",
    "query": "query",
    "limit": "limit",
}
"""The arguments of ``from_wide`` that read a frame from ``to_wide``: the column for each parameter."""

# Columns of decisions for which ``from_wide`` has a parameter, the parameter for each column of candidates, and the
# columns whose names begin with their table in a wide frame.
_OF_DECISION = ("at", "query", "cluster", "limit")
_ARGUMENTS = {"score": "score", "propensity": "propensity", "rank": "shown"}
_PREFIXED = {
    "decision": {name for name in DECISIONS if name not in (*_OF_DECISION, "decision")},
    "candidate": {"rank"},
    "exposure": {"conditional", "probe"},
    "feedback": {"outcome", "at", "source"},
}


def narrow(
    frame: pl.DataFrame | pl.LazyFrame,
    *,
    decision: str,
    item: str,
    shown: str | None,
    reward: str | None,
    propensity: str | None,
    score: str | None,
    scores: Sequence[str],
    cluster: str | None,
    at: str | None,
    limit: str | int | None,
    query: str | None,
    feedback_at: str | None,
    features: Sequence[str] | None,
) -> tuple[dict[str, pl.DataFrame], Labels, list[str]]:
    """Split a wide frame into the four tables of a log.

    Returns the tables, the wide frame's names of their columns, and observations about the log.
    """
    # For each table, the column of the wide frame for each of its columns. Columns that `to_wide` named by table and
    # column are recognised.
    wide = read_frame(frame, "frame")
    if isinstance(scores, str):
        raise InputError(f"scores must be a sequence of column names: scores=[{scores!r}].")
    roles: dict[str, dict[str, str]] = {
        "decisions": {"decision": decision, **_present_names(at=at, query=query, cluster=cluster)},
        "candidates": {
            "decision": decision,
            "memory_id": item,
            **_present_names(score=score, propensity=propensity),
        },
        "exposures": {"decision": decision, "memory_id": item, **_present_names(position=shown)},
        "feedback": {
            "decision": decision,
            "memory_id": item,
            **_present_names(reward=reward, at=feedback_at),
        },
    }
    if isinstance(limit, str):
        roles["decisions"]["limit"] = limit
    used = {name for role in roles.values() for name in role.values()}
    for name in wide.columns:
        table, _, column = name.partition(".")
        if name not in used and (
            column in _PREFIXED.get(table, ()) or (table == "decision" and column)
        ):
            roles[{"feedback": "feedback"}.get(table, f"{table}s")][column] = name
    labels = Labels(
        dict.fromkeys(roles, "frame"),
        {(table, column): name for table, role in roles.items() for column, name in role.items()}
        | {("exposures", "propensity"): propensity or "propensity"},
    )
    labels.require("candidates", wide, *used, *scores, *(features or ()))
    used |= {name for role in roles.values() for name in role.values()} | {*scores, ROW}
    chosen = _choose_features(wide, used, features)
    chosen += [name for name in CONTENT if name in wide.columns and name not in {*used, *chosen}]
    notes: list[str] = []
    decisions = _split_decisions(wide, roles["decisions"], labels)
    if isinstance(limit, int):
        decisions = decisions.with_columns(limit=pl.lit(limit, dtype=pl.Int64))
    candidates = wide.select(
        ROW,
        *(pl.col(name).alias(column) for column, name in roles["candidates"].items()),
        *chosen,
        *scores,
    )
    exposures = _split_exposures(wide, roles["exposures"], labels)
    if (
        limit is None
        and propensity is not None
        and wide.select((pl.col(propensity) < 1).any()).item()
    ):
        notes.append(
            "No limit is given, so the results of a recall are all items that it showed, probes included."
        )
    feedback = _split_feedback(wide, roles["feedback"], exposures, labels, notes)
    return (
        {
            "decisions": decisions,
            "candidates": candidates,
            "exposures": exposures,
            "feedback": feedback,
        },
        labels,
        notes,
    )


def _present_names(**columns: str | None) -> dict[str, str]:
    """Return the column names that are not None, by role."""
    return {role: name for role, name in columns.items() if name is not None}


def _choose_features(
    wide: pl.DataFrame, used: set[str], features: Sequence[str] | None
) -> list[str]:
    """Return the feature columns of a wide frame, which has one row per candidate.

    By default, these are all unused columns of numbers or booleans. Raises InputError for a column with
    another use or with the name of a column of the log.
    """
    if features is None:
        left = [name for name in wide.columns if name not in used]
        chosen = [
            name
            for name in left
            if wide.schema[name].is_numeric() or wide.schema[name] == pl.Boolean
        ]
    else:
        chosen = list(features)
    for name in chosen:
        if name in CANDIDATES or name in used:
            raise InputError(
                f"The column {name!r} would be a feature, but a column of the log has this name. "
                + (f"Pass {_ARGUMENTS[name]}={name!r}, rename" if name in _ARGUMENTS else "Rename")
                + " it, or list the features with features=[...]."
            )
    return chosen


def _split_decisions(wide: pl.DataFrame, role: dict[str, str], labels: Labels) -> pl.DataFrame:
    """Extract the table of decisions from a wide frame, which has one row per candidate.

    Raises DatasetError if the rows of a decision differ in one of these columns.
    """
    first = wide.select(ROW, *(pl.col(name).alias(column) for column, name in role.items()))
    for column, name in role.items():
        if column == "decision":
            continue
        differs = first.filter(pl.col(column).ne_missing(pl.col(column).first().over("decision")))
        labels.refuse("decisions", differs, partial(_describe_difference, column=column, name=name))
    return first.unique("decision", keep="first", maintain_order=True)


def _describe_difference(row: Mapping[str, Any], column: str, name: str) -> str:
    """Return why a row contradicts the first row of its decision, for a message."""
    return f"{name} is {brief(row[column])}, which differs from the first row of the decision"


def _split_exposures(wide: pl.DataFrame, role: dict[str, str], labels: Labels) -> pl.DataFrame:
    """Return a wide frame's rows of shown items in display order, or all rows if no column has positions."""
    rows = wide.select(ROW, *(pl.col(name).alias(column) for column, name in role.items()))
    if "position" not in role:
        return rows
    label = role["position"]
    kind = rows.schema["position"]
    if kind == pl.Boolean:
        return rows.filter("position").drop("position")
    if not kind.is_numeric() and kind != pl.Null:
        raise InputError(
            f"frame: {label} is {kind}. It must be a rank among shown items (null or 0: not shown) or Boolean."
        )
    position = pl.col("position")
    labels.refuse_where(
        "exposures",
        rows,
        position.is_nan() if kind.is_float() else pl.lit(False),
        f"{label} is NaN",
    )
    labels.refuse_where(
        "exposures", rows, position < 0, lambda row: f"{label} is {row['position']}, below 0"
    )
    shown_rows = rows.filter(position.fill_null(0) != 0)
    return shown_rows.sort(pl.col(ROW).first().over("decision"), position)


def _split_feedback(
    wide: pl.DataFrame,
    role: dict[str, str],
    exposures: pl.DataFrame,
    labels: Labels,
    notes: list[str],
) -> pl.DataFrame:
    """Return the rows of a wide frame that have feedback.

    A reward of 0 for an item that was not shown counts as no feedback.
    """
    if "reward" not in role:
        return wide.clear().select(
            ROW,
            *(pl.col(role[name]).alias(name) for name in IDS),
            pl.lit(None, dtype=pl.Float64).alias("reward"),
        )
    rows = wide.select(ROW, *(pl.col(name).alias(column) for column, name in role.items()))
    rows = labels.cast("feedback", rows, {"reward": FEEDBACK["reward"]})
    rows = rows.filter(pl.col("reward").is_not_null() & pl.col("reward").is_not_nan())
    unseen = rows.join(exposures, on=ROW, how="anti").filter(pl.col("reward") == 0)
    if unseen.height:
        notes.append(
            f"{unseen.height:,} rows that were not shown have {role['reward']} 0; they are left out, as without feedback."
        )
    return rows.join(unseen, on=ROW, how="anti", maintain_order="left")


def widen(
    tables: Sequence[pl.LazyFrame],
    *,
    features: Sequence[str],
    policies: Sequence[str],
    duplicates: Duplicates,
) -> pl.DataFrame:
    """Join the four tables of a log to one row per candidate; see ``Slates.to_wide``."""
    decisions, candidates, exposures, feedback = pl.collect_all(tables)
    kind = candidates.schema["decision"]
    rows = feedback.filter(pl.col("decision").is_not_null()).with_row_index(ROW)
    rows = one_feedback(
        rows.with_columns(source=pl.lit(None, dtype=pl.String)), duplicates, Labels()
    )
    judged = rows.join(
        feedback.with_row_index(ROW).select(ROW, "source"), on=ROW, how="left", suffix="_was"
    )
    judged = judged.select(
        pl.col("decision").cast(kind),
        "memory_id",
        "reward",
        *(pl.col(name).alias(f"feedback.{name}") for name in ("outcome", "at")),
        pl.col("source_was").alias("feedback.source"),
    )
    placed = exposures.select(
        *IDS,
        pl.col("position").alias("shown"),
        *(
            pl.col(name).alias(f"exposure.{name}")
            for name in EXPOSURES
            if name in _PREFIXED["exposure"]
        ),
    )
    whole = decisions.select(
        "decision",
        *_OF_DECISION,
        *(
            pl.col(name).alias(f"decision.{name}")
            for name in decisions.columns
            if name not in (*_OF_DECISION, "decision")
        ),
    )
    taken_names = {*WIDE.values(), *judged.columns, *placed.columns, *whole.columns}
    for name in (*features, *policies):
        if name in taken_names:
            raise InputError(
                f"The feature or policy {name!r} has the name of another column of the exported frame. Rename it first."
            )
    wide = (
        candidates.rename({"rank": "candidate.rank"})
        .join(whole, on="decision", how="left", maintain_order="left")
        .join(placed, on=list(IDS), how="left", maintain_order="left")
        .join(judged, on=list(IDS), how="left", maintain_order="left")
    )
    front = [*IDS, *_OF_DECISION, "shown", "reward", "propensity", "score", *features, *policies]
    return wide.select(*front, *(name for name in wide.columns if name not in front))
