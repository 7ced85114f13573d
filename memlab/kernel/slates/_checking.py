"""The check of the four frames of a log of another system. A log is accepted as a whole or refused.

An invalid log is refused with a message that names the table, the row, its ids and the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import msgspec
import polars as pl

from memlab.errors import InputError, UnknownName, did_you_mean
from memlab.kernel.base.clock import INSTANT
from memlab.kernel.schema import OUTCOMES
from memlab.kernel.slates._faults import ROW, Labels, brief
from memlab.kernel.slates._propensities import PAIR, SLACK, fill_propensities, pool_rows
from memlab.kernel.slates._schema import (
    CANDIDATES,
    DECISIONS,
    EXPOSURES,
    FEEDBACK,
    IDS,
    SAMPLERS,
    TABLES,
    reward_of,
)
from memlab.kernel.slates._slate import FORMAT

Duplicates = Literal["refuse", "last", "mean"]
Empty = Literal["refuse", "keep", "drop"]


@dataclass(frozen=True)
class Checked:
    """The four tables of a valid log, completed, with observations about them."""

    decisions: pl.DataFrame
    candidates: pl.DataFrame
    exposures: pl.DataFrame
    feedback: pl.DataFrame
    notes: tuple[str, ...]


def check_log(
    frames: Mapping[str, pl.DataFrame],
    *,
    policies: Sequence[str] = (),
    reward_range: tuple[float, float] | None = None,
    duplicates: Duplicates = "refuse",
    empty: Empty = "refuse",
    labels: Labels | None = None,
) -> Checked:
    """Check and complete the tables of a log; see ``Slates.from_frames``.

    Raises
    ------
    DatasetError
        If a row is impossible.
    InputError
        If a column has the wrong type.
    UnknownName
        If a column is missing.
    """
    labels = labels or Labels()
    _check_choices(reward_range, duplicates, empty)
    notes: list[str] = []
    tables = {
        name: _cast_table(name, frame, policies, labels, notes) for name, frame in frames.items()
    }
    _check_ids(tables, labels)
    _check_decisions(tables["decisions"], labels)
    _check_belonging(tables, labels)
    tables = _handle_empty(tables, empty, labels, notes)
    candidates = _fill_ranks(_check_scores(tables["candidates"], policies, labels), labels)
    exposures = _fill_positions(tables["exposures"], labels)
    decisions, candidates, exposures = fill_propensities(
        tables["decisions"], candidates, exposures, labels, notes
    )
    decisions = _complete_decisions(decisions, candidates, exposures, labels)
    feedback = _fill_rewards(tables["feedback"], reward_range, labels)
    feedback = one_feedback(feedback, duplicates, labels, notes)
    features = [
        name
        for name in candidates.columns
        if name not in CANDIDATES and name != ROW and name not in policies
    ]
    last = [name for name in CANDIDATES if name not in IDS]
    extra = [name for name in decisions.columns if name not in DECISIONS and name != ROW]
    return Checked(
        decisions.select(*DECISIONS, *extra),
        candidates.select(*IDS, *features, *policies, *last),
        exposures.select(*EXPOSURES),
        feedback.select(*FEEDBACK),
        tuple(notes),
    )


def _check_choices(reward_range: tuple[float, float] | None, duplicates: str, empty: str) -> None:
    """Raise an error for an invalid ``reward_range``, ``duplicates`` or ``empty``."""
    for name, value, allowed in (
        ("duplicates", duplicates, get_args(Duplicates)),
        ("empty", empty, get_args(Empty)),
    ):
        if value not in allowed:
            raise UnknownName(f"value of {name}=", value, allowed)
    if reward_range is not None and not (
        len(reward_range) == 2 and reward_range[0] < reward_range[1]
    ):
        raise InputError(f"reward_range must be a pair (minimum, maximum), not {reward_range!r}.")


def _cast_table(
    name: str, frame: pl.DataFrame, policies: Sequence[str], labels: Labels, notes: list[str]
) -> pl.DataFrame:
    """Cast the columns of a table to their types, drop unused columns, and list these in ``notes``.

    ``policies`` are the names of columns of scores.
    """
    # Candidates may have any features, and decisions any further columns. Other tables keep only their declared columns.
    schema = TABLES[name]
    labels.require(name, frame, "decision", *(() if name == "decisions" else ("memory_id",)))
    if name == "feedback" and "reward" not in frame.columns:
        labels.require(name, frame, "outcome")
    more: dict[str, pl.DataType] = {}
    others = [column for column in frame.columns if column not in schema and column != ROW]
    if name == "candidates":
        for policy in policies:
            if policy in schema:
                raise InputError(
                    f"The policy {policy!r} has the name of a column of the log. Rename it."
                )
            labels.require(name, frame, policy)
        more = {
            column: kind
            for column in others
            if (kind := _feature_type(frame.schema[column])) is not None
        }
        more |= dict.fromkeys(policies, pl.Float64())
        left = [column for column in others if column not in more]
    else:
        left = [] if name == "decisions" else others
    if left:
        names = ", ".join(f"{column} ({frame.schema[column]})" for column in left)
        notes.append(f"{labels.table(name)}: columns without a use were left out: {names}.")
        frame = frame.drop(left)
    return labels.cast(name, frame, schema | more)


def _feature_type(kind: pl.DataType) -> pl.DataType | None:
    """Return the feature type for a given column type, or None if unusable."""
    if kind.is_numeric() or kind == pl.Null:
        return pl.Float64()
    if kind == pl.Boolean:
        return pl.Boolean()
    return pl.String() if kind in (pl.String, pl.Categorical, pl.Enum) else None


def _check_ids(tables: dict[str, pl.DataFrame], labels: Labels) -> None:
    """Cast the ids in ``tables`` to one type. Raises an error if ids are missing or differ in type."""
    for name in IDS:
        kinds = {
            table: frame.schema[name]
            for table, frame in tables.items()
            if name in frame.columns and len(frame)
        }
        if len(set(kinds.values())) > 1:
            types = ", ".join(f"{kind} in {labels.table(table)}" for table, kind in kinds.items())
            raise InputError(f"{name} is {types}. Cast it to one type.")
        kind = next(iter(kinds.values()), pl.Int64())
        for table, frame in tables.items():
            if name not in frame.columns:
                continue
            labels.refuse_where(
                table, frame, pl.col(name).is_null(), f"{labels.column(table, name)} is missing"
            )
            tables[table] = frame.with_columns(pl.col(name).cast(kind))


def _check_decisions(decisions: pl.DataFrame, labels: Labels) -> None:
    """Raise DatasetError for an invalid value in the table of decisions."""

    def say(column: str) -> str:
        """Return the name that the caller gave to a column."""
        return labels.column("decisions", column)

    def refuse(bad: pl.Expr, why: Any) -> None:
        """Refuse the first decision that satisfies a condition."""
        labels.refuse_where("decisions", decisions, bad, why)

    refuse(
        pl.col("format") < FORMAT,
        lambda row: (
            f"format {row['format']} is an older schema; convert the log to format {FORMAT}"
        ),
    )
    refuse(
        pl.col("format") > FORMAT,
        lambda row: (
            f"format {row['format']} is a later schema; upgrade memlab, which reads format {FORMAT}"
        ),
    )
    refuse(~pl.col("decision").is_first_distinct(), "the decision occurs twice")
    refuse(
        pl.col("sampler").is_not_null() & ~pl.col("sampler").is_in(SAMPLERS),
        lambda row: (
            f"there is no sampler {brief(row['sampler'])}. {did_you_mean(row['sampler'], SAMPLERS)[:-1]}"
        ),
    )
    refuse(
        pl.col("limit") < 1,
        lambda row: f"{say('limit')} is {row['limit']}, and has to be at least 1",
    )
    refuse(pl.col("kappa").is_nan(), "kappa is NaN")
    for column in ("at", "limit"):
        if decisions[column].null_count() < decisions.height:
            refuse(
                pl.col(column).is_null(),
                f"{say(column)} is missing, though other decisions have it",
            )
    for column in ("fingerprints", "settings", "filters"):
        wrong = [
            value
            for value in decisions[column].unique().drop_nulls().to_list()
            if not _is_object(value)
        ]
        refuse(pl.col(column).is_in(wrong), f"{column} is not a JSON object")


def _is_object(text: str) -> bool:
    """Return whether a text is a JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except msgspec.DecodeError:
        return False


def _check_belonging(tables: Mapping[str, pl.DataFrame], labels: Labels) -> None:
    """Raise DatasetError for duplicate rows and for references to missing rows.

    Shown items must be candidates of their decision, and judged items must have been shown.
    """
    decisions, candidates, exposures = (
        tables["decisions"],
        tables["candidates"],
        tables["exposures"],
    )
    for name in ("candidates", "exposures", "feedback"):
        stray = tables[name].join(decisions, on="decision", how="anti")
        labels.refuse(name, stray, f"there is no such decision in {labels.table('decisions')}")
    for name, what in (
        ("candidates", "the memory is a candidate twice"),
        ("exposures", "the memory was shown twice"),
    ):
        if not _is_ordered(tables[name]):
            labels.refuse(name, tables[name].filter(~pl.struct(PAIR).is_first_distinct()), what)
    if pool_rows(exposures, candidates) is None:
        labels.refuse(
            "exposures",
            exposures.join(candidates, on=PAIR, how="anti"),
            "the memory was shown but is not a candidate",
        )
    stray = tables["feedback"].join(exposures, on=PAIR, how="anti")
    labels.refuse("feedback", stray, "the memory has feedback but was not shown")


def _is_ordered(frame: pl.DataFrame) -> bool:
    """Return whether the ids of a table ascend strictly, so that no pair of ids is repeated."""
    decision, memory = (pl.col(name) for name in PAIR)
    later = (decision > decision.shift()) | (
        (decision == decision.shift()) & (memory > memory.shift())
    )
    return bool(frame.select(later.all()).item())


def _handle_empty(
    tables: dict[str, pl.DataFrame], empty: Empty, labels: Labels, notes: list[str]
) -> dict[str, pl.DataFrame]:
    """Refuse, keep or drop decisions that showed no item, as ``empty`` says, and return the tables.

    Kept and dropped decisions are counted in ``notes``.
    """
    decisions = tables["decisions"]
    blank = decisions.join(tables["exposures"], on="decision", how="anti", maintain_order="left")
    if blank.is_empty():
        return tables
    if empty == "refuse":
        poolless = blank.join(tables["candidates"], on="decision", how="anti")
        way = 'pass empty="drop" to leave such decisions out, or empty="keep" if showing nothing was a choice'
        labels.refuse("decisions", poolless, f"the decision has no candidates; {way}")
        labels.refuse("decisions", blank, f"nothing was shown; {way}")
    if empty == "keep":
        notes.append(f"{blank.height:,} decision{'s' * (blank.height > 1)} showed nothing.")
        return tables
    notes.append(
        f"{blank.height:,} decision{'s' * (blank.height > 1)} without shown items left out."
    )
    return {
        name: frame.join(blank, on="decision", how="anti", maintain_order="left")
        for name, frame in tables.items()
    }


def _check_scores(
    candidates: pl.DataFrame, policies: Sequence[str], labels: Labels
) -> pl.DataFrame:
    """Return the candidates, after checking that all of them, or none, have the logging policy's score.

    NaN in the scores of other policies becomes null.
    """
    label = labels.column("candidates", "score")
    labels.refuse_where("candidates", candidates, pl.col("score").is_nan(), f"{label} is NaN")
    if candidates["score"].null_count() < candidates.height:
        labels.refuse_where(
            "candidates", candidates, pl.col("score").is_null(), f"{label} is missing"
        )
    return candidates.with_columns(
        pl.col(name).cast(pl.Float64).fill_nan(None) for name in policies
    )


def _fill_ranks(candidates: pl.DataFrame, labels: Labels) -> pl.DataFrame:
    """Return the candidates with checked ranks; without ranks, they are derived from scores, with ties by id.

    Ranks stay missing if a score is missing.
    """
    ranks = candidates["rank"]
    if ranks.null_count() < ranks.len():
        _check_numbering(labels, "candidates", candidates, "rank", "rank")
        return candidates
    if candidates["score"].null_count():
        return candidates
    order = candidates.select(*IDS, "score").with_row_index("row")
    order = order.sort("decision", "score", "memory_id", descending=[False, True, False])
    order = order.with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("decision"))
    return candidates.with_columns(order.sort("row")["rank"])


def _check_numbering(
    labels: Labels, table: str, frame: pl.DataFrame, column: str, label: str
) -> None:
    """Raise InputError unless a column numbers the items of each decision from 1, none twice.

    Gaps are allowed. Messages call the column ``label``.
    """
    number = pl.col(column)
    twice = ~pl.struct("decision", column).is_first_distinct()
    labels.refuse_where(table, frame, number.is_null(), f"{label} is missing")
    labels.refuse_where(table, frame, number < 1, lambda row: f"{label} is {row[column]}, below 1")
    labels.refuse_where(table, frame, twice, lambda row: f"{label} {row[column]} occurs twice")


def _fill_positions(exposures: pl.DataFrame, labels: Labels) -> pl.DataFrame:
    """Return the exposures with checked positions and conditional probabilities of shown items.

    If all positions are missing, they are filled in from the order of rows.
    """
    label = labels.column("exposures", "position")
    if exposures["position"].null_count() == exposures.height:
        exposures = exposures.with_columns(
            position=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("decision")
        )
    _check_numbering(labels, "exposures", exposures, "position", label)
    conditional = pl.col("conditional")
    labels.refuse_where(
        "exposures",
        exposures,
        conditional.is_nan() | (conditional <= 0) | (conditional > 1 + SLACK),
        lambda row: f"conditional is {row['conditional']}, and must be above 0 and at most 1",
    )
    return exposures.with_columns(
        pl.col("probe").fill_null(False), conditional.clip(upper_bound=1.0)
    )


def _complete_decisions(
    decisions: pl.DataFrame, candidates: pl.DataFrame, exposures: pl.DataFrame, labels: Labels
) -> pl.DataFrame:
    """Return the decisions with each one's limit, number of candidates and cluster filled in.

    Raises DatasetError for a number of candidates that differs from the table, and for an unknown
    limit.
    """
    pools = candidates.group_by("decision").agg(pl.len().cast(pl.Int64).alias("#pool"))
    heads = exposures.group_by("decision").agg(
        (~pl.col("probe")).sum().cast(pl.Int64).clip(1).alias("#head")
    )
    completed = decisions.join(
        pools, on="decision", how="left", maintain_order="left"
    ).with_columns(pl.col("#pool").fill_null(0))
    completed = completed.join(heads, on="decision", how="left", maintain_order="left")
    labels.refuse_where(
        "decisions",
        completed,
        pl.col("candidates") != pl.col("#pool"),
        lambda row: (
            f"the decision had {row['candidates']:,} candidates, and {row['#pool']:,} are in the table"
        ),
    )
    labels.refuse_where(
        "decisions",
        completed,
        pl.col("limit").is_null() & pl.col("#head").is_null(),
        "nothing was shown, so its limit is unknown; add a limit",
    )
    own = pl.col("decision").cast(pl.String)
    return completed.with_columns(
        pl.coalesce("limit", "#head").alias("limit"),
        pl.col("#pool").alias("candidates"),
        pl.coalesce("cluster", "project", "session", own).alias("cluster"),
        pl.lit(FORMAT, dtype=pl.Int64).alias("format"),
    ).drop("#pool", "#head")


def _fill_rewards(
    feedback: pl.DataFrame, reward_range: tuple[float, float] | None, labels: Labels
) -> pl.DataFrame:
    """Return the feedback with rewards filled in from outcomes, after checking all rewards."""
    label = labels.column("feedback", "reward")
    labels.refuse_where(
        "feedback",
        feedback,
        pl.col("reward").is_nan(),
        f"{label} is NaN; without feedback leave the row out or the cell null",
    )
    labels.refuse_where(
        "feedback", feedback, pl.col("reward").is_infinite(), f"{label} is infinite"
    )
    outcomes = ", ".join(OUTCOMES)
    judged = feedback.with_columns(reward_of("reward", "outcome"))
    labels.refuse_where(
        "feedback",
        judged,
        pl.col("reward").is_null(),
        lambda row: (
            f"{label} is missing, and the outcome {brief(row['outcome'])} is none of {outcomes}"
        ),
    )
    if reward_range is not None:
        low, high = reward_range
        outside = ~pl.col("reward").is_between(low, high)
        labels.refuse_where(
            "feedback",
            judged,
            outside,
            lambda row: f"{label} is {row['reward']:g}, outside the range {low:g}..{high:g}",
        )
    return judged


def one_feedback(
    feedback: pl.DataFrame, duplicates: Duplicates, labels: Labels, notes: list[str] | None = None
) -> pl.DataFrame:
    """Reduce feedback to one judgement for each decision, memory and source."""
    key = [*IDS, "source"]
    repeated = feedback.filter(~pl.struct(key).is_first_distinct())
    if repeated.is_empty():
        return feedback
    if duplicates == "refuse":
        labels.refuse(
            "feedback",
            repeated,
            lambda row: (
                f"it has feedback of source {row['source']!r} twice; choose which counts with "
                'duplicates="last" or duplicates="mean"'
            ),
        )
    if notes is not None:
        notes.append(
            f"{repeated.height:,} repeated judgement{'s' * (repeated.height > 1)}: the {duplicates} of each counts."
        )
    if duplicates == "last":
        return (
            feedback.sort("at", ROW, nulls_last=False, maintain_order=True)
            .unique(key, keep="last", maintain_order=True)
            .sort(ROW)
        )
    return feedback.group_by(key, maintain_order=True).agg(
        pl.col("reward").mean(),
        pl.when(pl.col("outcome").n_unique() == 1).then(pl.col("outcome").first()).alias("outcome"),
        pl.col("at").max().cast(INSTANT),
        pl.col("confidence").mean(),
        pl.col("attributed").mean(),
        pl.col(ROW).first(),
    )


# A log in one wide frame with one row per candidate, the form that most systems export.
