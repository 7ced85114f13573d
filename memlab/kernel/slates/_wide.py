"""A log as one wide frame, a row a candidate: how most people have it, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from memlab.errors import InputError
from memlab.kernel.slates._checks import ROW, Labels, brief, taken
from memlab.kernel.slates._frames import Duplicates, one_feedback
from memlab.kernel.slates._schema import CANDIDATES, DECISIONS, EXPOSURES, FEEDBACK, IDS

__all__ = ["WIDE", "narrow", "widened"]

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
"""What ``to_wide`` calls its columns, as ``from_wide`` takes them."""

_OF_DECISION = ("at", "query", "cluster", "limit")
_ASKED = {"score": "score", "propensity": "propensity", "rank": "shown"}
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
    """The four frames of a wide one, what their columns are called there, and what was left out on the way."""
    wide = taken(frame, "frame")
    if isinstance(scores, str):
        raise InputError(f"scores is a sequence of column names: scores=[{scores!r}].")
    roles: dict[str, dict[str, str]] = {
        "decisions": {"decision": decision, **_named(at=at, query=query, cluster=cluster)},
        "candidates": {"decision": decision, "memory_id": item, **_named(score=score, propensity=propensity)},
        "exposures": {"decision": decision, "memory_id": item, **_named(position=shown)},
        "feedback": {"decision": decision, "memory_id": item, **_named(reward=reward, at=feedback_at)},
    }
    if isinstance(limit, str):
        roles["decisions"]["limit"] = limit
    used = {name for role in roles.values() for name in role.values()}
    for name in wide.columns:
        table, _, column = name.partition(".")
        if name not in used and (column in _PREFIXED.get(table, ()) or (table == "decision" and column)):
            roles[{"feedback": "feedback"}.get(table, f"{table}s")][column] = name
    labels = Labels(
        dict.fromkeys(roles, "frame"),
        {(table, column): name for table, role in roles.items() for column, name in role.items()}
        | {("exposures", "propensity"): propensity or "propensity"},
    )
    labels.require("candidates", wide, *used, *scores, *(features or ()))
    used |= {name for role in roles.values() for name in role.values()} | {*scores, ROW}
    chosen = _features(wide, used, features)
    notes: list[str] = []
    decisions = _decisions(wide, roles["decisions"], labels)
    if isinstance(limit, int):
        decisions = decisions.with_columns(limit=pl.lit(limit, dtype=pl.Int64))
    candidates = wide.select(
        ROW, *(pl.col(name).alias(column) for column, name in roles["candidates"].items()), *chosen, *scores
    )
    exposures = _exposures(wide, roles["exposures"], labels)
    if limit is None and propensity is not None and wide.select((pl.col(propensity) < 1).any()).item():
        notes.append("No limit is given: a head is all that its recall showed, probes included.")
    feedback = _feedback(wide, roles["feedback"], exposures, labels, notes)
    return (
        {"decisions": decisions, "candidates": candidates, "exposures": exposures, "feedback": feedback},
        labels,
        notes,
    )


def _named(**columns: str | None) -> dict[str, str]:
    return {role: name for role, name in columns.items() if name is not None}


def _features(wide: pl.DataFrame, used: set[str], features: Sequence[str] | None) -> list[str]:
    if features is None:
        left = [name for name in wide.columns if name not in used]
        chosen = [name for name in left if wide.schema[name].is_numeric() or wide.schema[name] == pl.Boolean]
    else:
        chosen = list(features)
    for name in chosen:
        if name in CANDIDATES or name in used:
            raise InputError(
                f"The column {name!r} would be a feature, and the log has another use for that name. "
                + (f"Say what it is ({_ASKED[name]}={name!r}), or " if name in _ASKED else "")
                + "rename it, or list the features that you want: features=[...]."
            )
    return chosen


def _decisions(wide: pl.DataFrame, role: dict[str, str], labels: Labels) -> pl.DataFrame:
    first = wide.select(ROW, *(pl.col(name).alias(column) for column, name in role.items()))
    for column, name in role.items():
        if column == "decision":
            continue
        differs = first.filter(pl.col(column).ne_missing(pl.col(column).first().over("decision")))
        labels.refuse("decisions", differs, lambda row, c=column, n=name: _differs(row, c, n))  # type: ignore[misc]
    return first.unique("decision", keep="first", maintain_order=True)


def _differs(row: dict[str, Any], column: str, name: str) -> str:
    return f"{name} is {brief(row[column])}, and the decision began with another"


def _exposures(wide: pl.DataFrame, role: dict[str, str], labels: Labels) -> pl.DataFrame:
    rows = wide.select(ROW, *(pl.col(name).alias(column) for column, name in role.items()))
    if "position" not in role:
        return rows
    label = role["position"]
    kind = rows.schema["position"]
    if kind == pl.Boolean:
        return rows.filter("position").drop("position")
    if not kind.is_numeric() and kind != pl.Null:
        raise InputError(
            f"frame: {label} is {kind}; it says what was shown, as a rank (null or 0: not shown) or Boolean."
        )
    position = pl.col("position")
    labels.refuse_where("exposures", rows, position.is_nan() if kind.is_float() else pl.lit(False), f"{label} is NaN")
    labels.refuse_where("exposures", rows, position < 0, lambda row: f"{label} is {row['position']}, below 0")
    ours = rows.filter(position.fill_null(0) != 0)
    return ours.sort(pl.col(ROW).first().over("decision"), position)


def _feedback(
    wide: pl.DataFrame, role: dict[str, str], exposures: pl.DataFrame, labels: Labels, notes: list[str]
) -> pl.DataFrame:
    if "reward" not in role:
        return wide.clear().select(
            ROW, *(pl.col(role[name]).alias(name) for name in IDS), pl.lit(None, dtype=pl.Float64).alias("reward")
        )
    rows = wide.select(ROW, *(pl.col(name).alias(column) for column, name in role.items()))
    rows = labels.cast("feedback", rows, {"reward": FEEDBACK["reward"]})
    rows = rows.filter(pl.col("reward").is_not_null() & pl.col("reward").is_not_nan())
    unseen = rows.join(exposures, on=ROW, how="anti").filter(pl.col("reward") == 0)
    if unseen.height:
        notes.append(f"{unseen.height:,} rows that were not shown have {role['reward']} 0: no feedback, and left out.")
    return rows.join(unseen, on=ROW, how="anti", maintain_order="left")


def widened(
    tables: Sequence[pl.LazyFrame], *, features: Sequence[str], policies: Sequence[str], duplicates: Duplicates
) -> pl.DataFrame:
    """One row a candidate, of the four tables of a log; see ``Slates.to_wide``."""
    decisions, candidates, exposures, feedback = pl.collect_all(tables)
    kind = candidates.schema["decision"]
    rows = feedback.filter(pl.col("decision").is_not_null()).with_row_index(ROW)
    rows = one_feedback(rows.with_columns(source=pl.lit(None, dtype=pl.String)), duplicates, Labels())
    judged = rows.join(feedback.with_row_index(ROW).select(ROW, "source"), on=ROW, how="left", suffix="_was")
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
        *(pl.col(name).alias(f"exposure.{name}") for name in EXPOSURES if name in _PREFIXED["exposure"]),
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
            raise InputError(f"The feature {name!r} has the name of a column of the wide frame; rename it first.")
    wide = (
        candidates.rename({"rank": "candidate.rank"})
        .join(whole, on="decision", how="left", maintain_order="left")
        .join(placed, on=list(IDS), how="left", maintain_order="left")
        .join(judged, on=list(IDS), how="left", maintain_order="left")
    )
    front = [*IDS, *_OF_DECISION, "shown", "reward", "propensity", "score", *features, *policies]
    return wide.select(*front, *(name for name in wide.columns if name not in front))
