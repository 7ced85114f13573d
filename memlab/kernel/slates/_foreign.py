"""Logs of other systems, in four frames or one, which are checked and completed.

An invalid log is refused. The message names the table, the row, its ids and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NoReturn, get_args

import msgspec
import polars as pl

from memlab.errors import DatasetError, InputError, UnknownName, did_you_mean
from memlab.kernel.base.clock import to_micros
from memlab.kernel.schema import OUTCOMES
from memlab.kernel.slates._schema import (
    CANDIDATES,
    CONTENT,
    DECISIONS,
    EXPOSURES,
    FEEDBACK,
    IDS,
    SAMPLERS,
    STAMP,
    TABLES,
    reward_of,
)
from memlab.kernel.slates._slate import FORMAT

ROW = "#row"
"""The column with the row number in the caller's frame, from 0, while a frame is checked."""

Why = str | Callable[[Mapping[str, Any]], str]


def brief(value: object) -> str:
    """Return a value as text for a message, at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def read_frame(frame: object, table: str) -> pl.DataFrame:
    """Collect a caller's frame and add a column with row numbers."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, pl.DataFrame):
        raise InputError(
            f"{table} must be a Polars DataFrame or LazyFrame, not {type(frame).__name__}."
        )
    return frame if ROW in frame.columns else frame.with_row_index(ROW)


@dataclass(frozen=True)
class Labels:
    """The names that the caller uses for tables and columns, for error messages."""

    tables: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def table(self, table: str) -> str:
        """Return the name that the caller gave to a table."""
        return self.tables.get(table, table)

    def column(self, table: str, column: str) -> str:
        """Return the name that the caller gave to a column."""
        return self.columns.get((table, column), column)

    def refuse(self, table: str, rows: pl.DataFrame, why: Why) -> None:
        """Raise DatasetError about the first of ``rows``; do nothing if there are no rows."""
        if rows.is_empty():
            return
        first = rows.sort(ROW).row(0, named=True)
        ids = ", ".join(
            f"{self.column(table, name)} {brief(first[name])}" for name in IDS if name in first
        )
        reason = why if isinstance(why, str) else why(first)
        more = f" {rows.height - 1:,} more rows have this fault." if rows.height > 1 else ""
        raise DatasetError(f"{self.table(table)}, row {first[ROW]} ({ids}): {reason}.{more}")

    def refuse_where(self, table: str, frame: pl.DataFrame, bad: pl.Expr, why: Why) -> None:
        """Raise DatasetError about the first row of ``frame`` that satisfies ``bad``."""
        self.refuse(table, frame.filter(bad), why)

    def require(self, table: str, frame: pl.DataFrame, *columns: str) -> None:
        """Raise UnknownName if the table lacks a required column."""
        for column in columns:
            if column not in frame.columns:
                available = [name for name in frame.columns if name != ROW]
                raise UnknownName(f"column of {self.table(table)} named", column, available)

    def cast(
        self, table: str, frame: pl.DataFrame, kinds: Mapping[str, pl.DataType]
    ) -> pl.DataFrame:
        """Return the table with its columns in their declared types.

        A missing column becomes null. A value that cannot be converted raises DatasetError.
        """
        columns = []
        for name, kind in kinds.items():
            if name not in frame.columns:
                columns.append(pl.lit(None, dtype=kind).alias(name))
            elif name in IDS:
                columns.append(self._convert_ids(table, frame, name))
            elif kind == STAMP:
                columns.append(pl.lit(self._convert_times(table, frame, name)))
            elif frame.schema[name] != kind:
                columns.append(pl.lit(self._convert(table, frame, name, kind)))
        return frame.with_columns(columns)

    def _convert_ids(self, table: str, frame: pl.DataFrame, name: str) -> pl.Expr:
        """Return an expression that casts an id column to Int64 or String."""
        kind = frame.schema[name]
        if kind.is_integer():
            self.refuse_where(
                table,
                frame,
                pl.col(name).is_not_null() & pl.col(name).cast(pl.Int64, strict=False).is_null(),
                lambda row: f"{self.column(table, name)} {row[name]} is beyond 64 bits",
            )
            return pl.col(name).cast(pl.Int64)
        if kind in (pl.String, pl.Categorical, pl.Enum):
            return pl.col(name).cast(pl.String)
        if kind == pl.Null:
            return pl.col(name).cast(pl.Int64)
        raise InputError(
            f"{self.table(table)}: {self.column(table, name)} is {kind}, but ids must be "
            "whole numbers or text. Cast it first, as in "
            f"frame.with_columns(pl.col({self.column(table, name)!r}).cast(pl.Int64))."
        )

    def _convert(self, table: str, frame: pl.DataFrame, name: str, kind: pl.DataType) -> pl.Series:
        """Convert a column to its declared type.

        The first value that cannot be converted raises DatasetError.
        """
        before = frame[name]
        label = self.column(table, name)
        text = before.dtype in (pl.String, pl.Categorical, pl.Enum)
        plain = before.dtype.is_numeric() or before.dtype in (pl.Boolean, pl.Null)
        if not plain and not (text and kind != pl.Boolean):
            raise InputError(
                f"{self.table(table)}: {label} is {before.dtype}. Cast the column to {kind}."
            )
        # Categories are cast to text first, because a direct cast would convert their codes.
        after = (before.cast(pl.String) if text else before).cast(kind, strict=False)
        wrong = after.is_null() & before.is_not_null()
        if before.dtype.is_numeric() and kind in (pl.Int64, pl.Boolean):
            wrong |= (after.cast(before.dtype, strict=False) != before).fill_null(False)
        self.refuse(
            table,
            frame.filter(wrong),
            lambda row: f"{label} is {brief(row[name])}, which is not a {_WORDS[kind]}",
        )
        return after.alias(name)

    def _convert_times(self, table: str, frame: pl.DataFrame, name: str) -> pl.Series:
        """Convert a column of times to UTC with microseconds.

        Numbers are microseconds since 1970. Times without a zone are read as UTC.
        """
        values = frame[name]
        kind = values.dtype
        if isinstance(kind, pl.Datetime):
            aware = values.dt.replace_time_zone("UTC") if kind.time_zone is None else values
            return aware.dt.convert_time_zone("UTC").dt.cast_time_unit("us")
        if kind == pl.Date:
            return values.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        if kind.is_integer() or kind == pl.Null:
            return values.cast(pl.Int64).cast(STAMP)
        if kind != pl.String:
            label = self.column(table, name)
            raise InputError(
                f"{self.table(table)}: {label} is {kind}, but a time must be a Datetime, ISO 8601 text or an Int64."
            )
        micros = []
        for row, text in enumerate(values.to_list()):
            try:
                micros.append(None if text is None else to_micros(text))
            except InputError as error:
                self._refuse_row(table, frame[row : row + 1], str(error).rstrip("."))
        return pl.Series(name, micros, dtype=pl.Int64).cast(STAMP)

    def _refuse_row(self, table: str, row: pl.DataFrame, why: str) -> NoReturn:
        """Raise DatasetError about the only row of a frame."""
        self.refuse(table, row, why)
        raise AssertionError("unreachable: refuse() raises for a frame with one row")


# The names of types in messages.
_WORDS: dict[pl.DataType, str] = {
    pl.Int64(): "whole number",
    pl.Float64(): "number",
    pl.Boolean(): "truth value",
    pl.String(): "text",
}


# A propensity is logged, or follows from the sampler, or stays unknown. Propensities are never guessed.


SLACK = 1e-9
"""The tolerance for rounding errors, by which a probability may exceed 1 or differ between two tables."""

# The columns that identify a candidate.
_PAIR = list(IDS)


def propensities(
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
    """Give each shown item the same propensity among candidates and exposures.

    Raises DatasetError if the two tables contradict each other.
    """
    label = labels.column("exposures", "propensity")
    rows = _pool_rows(exposures, candidates)
    if rows is None:
        exposed = exposures.join(
            candidates.select(*IDS, pl.col("propensity").alias("#pool")),
            on=_PAIR,
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
        pool = candidates.join(marks.drop(ROW), on=_PAIR, how="left", maintain_order="left")
    else:
        pool = candidates.join(marks.drop(IDS), on=ROW, how="left", maintain_order="left")
    return exposed, pool.with_columns(
        pl.coalesce("#p", "propensity").alias("propensity"), pl.col("#shown").fill_null(False)
    ).drop("#p")


def _fill_samplers(
    decisions: pl.DataFrame, exposures: pl.DataFrame, labels: Labels
) -> pl.DataFrame:
    """Fill in the missing samplers of decisions, derived from their propensities."""
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
    """Fill in the propensities 1 and 0 of deterministic decisions.

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
        lambda row: f"{label} is missing, and the sampler is {row['sampler']}",
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
        lambda row: f"{label} is missing, and the sampler is {row['sampler']}",
    )
    labels.refuse(
        "candidates",
        gaps.join(partial, on="decision", how="semi"),
        f"{label} is missing, though others have it. Leave these recalls out, or pass no propensity",
    )


# The check of the four frames of a log. A log is accepted as a whole or refused.


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
    decisions, candidates, exposures = propensities(
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
    """Cast the columns of a table to their types, and drop unused columns."""
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
    """Raise an error if ids are missing or have different types in different tables."""
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
            labels.refuse(name, tables[name].filter(~pl.struct(_PAIR).is_first_distinct()), what)
    if _pool_rows(exposures, candidates) is None:
        labels.refuse(
            "exposures",
            exposures.join(candidates, on=_PAIR, how="anti"),
            "the memory was shown but is not a candidate",
        )
    stray = tables["feedback"].join(exposures, on=_PAIR, how="anti")
    labels.refuse("feedback", stray, "the memory has feedback but was not shown")


def _is_ordered(frame: pl.DataFrame) -> bool:
    """Return whether the ids of a table ascend strictly, so that no pair of ids is repeated."""
    decision, memory = (pl.col(name) for name in _PAIR)
    later = (decision > decision.shift()) | (
        (decision == decision.shift()) & (memory > memory.shift())
    )
    return bool(frame.select(later.all()).item())


def _pool_rows(exposures: pl.DataFrame, candidates: pl.DataFrame) -> pl.Series | None:
    """Return the candidate row of each shown item if both tables come from one wide frame.

    Reading a row by its number takes a tenth of the time of a join by ids. The result is None for
    tables whose rows were numbered apart.
    """
    rows = exposures[ROW]
    is_numbered = (candidates[ROW] == pl.int_range(candidates.height, eager=True)).all()
    if not is_numbered or (rows >= candidates.height).any():
        return None
    same = exposures.select(_PAIR).equals(candidates.select(_PAIR)[rows])
    return rows if same else None


def _handle_empty(
    tables: dict[str, pl.DataFrame], empty: Empty, labels: Labels, notes: list[str]
) -> dict[str, pl.DataFrame]:
    """Refuse, keep or drop decisions that showed no item."""
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
    """Check that all candidates, or none, have the logging policy's score.

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
    """Check logged ranks; without ranks, derive them from scores, with ties by id.

    Ranks stay missing if a score is missing.
    """
    ranks = candidates["rank"]
    if ranks.null_count() < ranks.len():
        labels.refuse_where("candidates", candidates, pl.col("rank").is_null(), "rank is missing")
        labels.refuse_where(
            "candidates",
            candidates,
            pl.col("rank") < 1,
            lambda row: f"rank is {row['rank']}, below 1",
        )
        twice = ~pl.struct("decision", "rank").is_first_distinct()
        labels.refuse_where(
            "candidates", candidates, twice, lambda row: f"rank {row['rank']} occurs twice"
        )
        return candidates
    if candidates["score"].null_count():
        return candidates
    order = candidates.select(*IDS, "score").with_row_index("row")
    order = order.sort("decision", "score", "memory_id", descending=[False, True, False])
    order = order.with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("decision"))
    return candidates.with_columns(order.sort("row")["rank"])


def _fill_positions(exposures: pl.DataFrame, labels: Labels) -> pl.DataFrame:
    """Check the positions of shown items, and fill in missing positions.

    Missing positions are filled in from the order of rows.
    """
    label = labels.column("exposures", "position")
    if exposures["position"].null_count() == exposures.height:
        exposures = exposures.with_columns(
            position=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("decision")
        )
    labels.refuse_where("exposures", exposures, pl.col("position").is_null(), f"{label} is missing")
    labels.refuse_where(
        "exposures",
        exposures,
        pl.col("position") < 1,
        lambda row: f"{label} is {row['position']}, below 1",
    )
    twice = ~pl.struct("decision", "position").is_first_distinct()
    labels.refuse_where(
        "exposures", exposures, twice, lambda row: f"{label} {row['position']} occurs twice"
    )
    conditional = pl.col("conditional")
    labels.refuse_where(
        "exposures",
        exposures,
        conditional.is_nan() | (conditional <= 0) | (conditional > 1 + SLACK),
        lambda row: f"conditional is {row['conditional']}, outside 0..1",
    )
    return exposures.with_columns(
        pl.col("probe").fill_null(False), conditional.clip(upper_bound=1.0)
    )


def _complete_decisions(
    decisions: pl.DataFrame, candidates: pl.DataFrame, exposures: pl.DataFrame, labels: Labels
) -> pl.DataFrame:
    """Fill in each decision's limit, number of candidates and cluster."""
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
    """Fill in rewards from outcomes, and check all rewards."""
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
        pl.col("at").max().cast(STAMP),
        pl.col("confidence").mean(),
        pl.col("attributed").mean(),
        pl.col(ROW).first(),
    )


# A log in one wide frame with one row per candidate, the form that most systems export.


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

    By default, these are all unused columns of numbers or booleans.
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
    """Return the rows of shown items of a wide frame, in the order of display."""
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
