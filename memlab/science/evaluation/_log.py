"""A log as arrays: what was asked, what could be shown, what was, and what it earned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.slates import Slates
from memlab.science.evaluation._feedback import Answers, closed, read_answers

__all__ = ["CERTAIN", "RESERVED", "Log", "left_to_chance", "read_log"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

CERTAIN = 1 - 1e-9
"""A probability from which on an item is as good as sure to be shown."""

RESERVED = ("decision", "memory_id", "propensity", "rank", "score", "text")
"""Columns of the candidates that are no features."""

_KEY = ["decision", "memory_id"]


def left_to_chance(propensity: Floats) -> Flags:
    """What may be shown and need not be."""
    return (propensity > 0) & (propensity < CERTAIN)


@dataclass(frozen=True)
class Log:
    """The recalls that count, sorted by id, and their candidates, sorted by recall and memory id.

    Arrays over candidates (n): ``recall`` (the number of its recall), ``propensity`` (NaN if unknown), ``shown``,
    ``position`` (from 1 as shown, 0 if it was not), ``reward`` (NaN where it was not shown or its reward is not known),
    ``attributed`` (the reward that was read from an answer, NaN if none was), ``stated`` (somebody gave the reward).
    Over recalls: ``limit``, ``cluster``. ``clustered`` says what a cluster is, ``silent`` is the share of what was
    shown whose reward is not known; ``open`` counts recalls left out.
    """

    decisions: pl.DataFrame
    ids: pl.DataFrame
    recall: Ints
    propensity: Floats
    shown: NDArray[np.bool_]
    position: Ints
    reward: Floats
    attributed: Floats
    stated: NDArray[np.bool_]
    limit: Ints
    cluster: Ints
    clusters: int
    clustered: str
    silent: float
    open: int
    notes: tuple[str, ...]
    _candidates: pl.LazyFrame = field(repr=False)
    _order: Ints | None = field(repr=False)
    _kept: NDArray[np.bool_] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return self.decisions.height

    def pool(self, columns: Sequence[str] = ()) -> pl.DataFrame:
        """``decision``, ``memory_id`` and these columns, in the order of the arrays."""
        return self.sorted(self._candidates.select(*_KEY, *columns).collect())

    def sorted(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Rows in the order of the table of candidates, brought into that of the arrays."""
        frame = frame if self._order is None else frame[self._order]
        return frame if self._kept is None else frame.filter(self._kept)

    def only(self, recalls: Ints) -> Log:
        """The log of these recalls (ascending) alone."""
        number = np.full(len(self), -1, dtype=np.int64)
        number[recalls] = np.arange(len(recalls))
        kept = number[self.recall] >= 0
        codes, cluster = np.unique(self.cluster[recalls], return_inverse=True)
        shown, reward = self.shown[kept], self.reward[kept]
        rows = np.flatnonzero(kept)
        whole = kept if self._kept is None else _spread(self._kept, kept)
        return replace(
            self,
            decisions=self.decisions[recalls],
            ids=self.ids[rows],
            recall=number[self.recall[kept]],
            propensity=self.propensity[kept],
            shown=shown,
            position=self.position[kept],
            reward=reward,
            attributed=self.attributed[kept],
            stated=self.stated[kept],
            limit=self.limit[recalls],
            cluster=cluster.astype(np.int64),
            clusters=len(codes),
            silent=float(np.isnan(reward[shown]).mean()) if shown.any() else 0.0,
            _kept=whole,
        )

    def rows_of(self, wanted: pl.DataFrame) -> pl.Series:
        """Where among the candidates each ``recall`` (its number) and ``memory_id`` stands; null where it does not."""
        held = self.ids.select("memory_id").with_columns(recall=pl.Series(self.recall), row=pl.int_range(pl.len()))
        return wanted.join(held, on=["recall", "memory_id"], how="left", maintain_order="left")["row"]

    @property
    def answered(self) -> NDArray[np.bool_]:
        return self.shown & ~np.isnan(self.reward)


def _spread(outer: NDArray[np.bool_], inner: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``inner`` speaks of the rows that ``outer`` keeps: the same of all rows."""
    found = np.zeros(len(outer), dtype=np.bool_)
    found[np.flatnonzero(outer)[inner]] = True
    return found


def read_log(
    tables: Slates,
    *,
    horizon: int | None = None,
    zero: bool = False,
    reward_range: tuple[float, float] = (0.0, 1.0),
    feedback: bool = True,
    cluster: str | None = None,
) -> Log:
    """The tables, checked, as arrays; without ``feedback`` nothing has a reward and every recall counts.

    ``cluster`` names what is independent: a column of the decisions, "day" or "decision". Without it, the column
    cluster; a log that is one cluster falls into days.

    Raises ``InputError`` with table, row and reason.
    """
    decisions = _decisions(tables.decisions.collect())
    exposures = _exposures(tables.exposures.collect(), decisions, needed=feedback)
    answers, kept = None, decisions
    notes: list[str] = []
    if feedback:
        judgements = tables.feedback.collect()
        _same_types(judgements, decisions, "feedback")
        answers = read_answers(judgements, exposures, decisions, horizon=horizon, reward_range=reward_range)
        notes += answers.notes
        if horizon is not None:
            kept = decisions.filter(closed(decisions, judgements, horizon))
    rows, order, empty = _candidates(tables.candidates, decisions, kept)
    if empty:
        notes.append(f"{empty} recalls have no candidates: whatever a policy says, they show nothing and earn 0.")
    joined, propensity, silent = _joined(rows, exposures, answers, kept, zero=zero)
    codes, clusters, clustered = _clusters(kept, cluster)
    return Log(
        decisions=kept,
        ids=rows.select(_KEY),
        recall=rows["recall"].to_numpy(),
        propensity=propensity,
        shown=joined["shown"].to_numpy(),
        position=joined["position"].fill_null(0).to_numpy(),
        reward=joined["reward"].to_numpy(),
        attributed=joined["attributed"].to_numpy(),
        stated=joined["stated"].fill_null(False).to_numpy(),
        limit=kept["limit"].to_numpy(),
        cluster=codes,
        clusters=clusters,
        clustered=clustered,
        silent=silent,
        open=decisions.height - kept.height,
        notes=tuple(notes),
        _candidates=tables.candidates,
        _order=order,
    )


def _require(frame: pl.DataFrame | pl.Schema, name: str, columns: Sequence[str]) -> None:
    known = frame.columns if isinstance(frame, pl.DataFrame) else frame.names()
    for column in columns:
        if column not in known:
            raise InputError(f"The table {name} has no column {column}: {UnknownName('column', column, known)}")


def _same_types(frame: pl.DataFrame, decisions: pl.DataFrame, name: str) -> None:
    _require(frame, name, _KEY)
    if frame.height and frame["decision"].dtype not in (decisions["decision"].dtype, pl.Null):
        raise InputError(
            f"decision is {frame['decision'].dtype} in {name} and {decisions['decision'].dtype} in decisions."
        )


def _first(frame: pl.DataFrame, bad: pl.Expr) -> dict[str, object] | None:
    found = frame.with_row_index("row").filter(bad).head(1)
    return found.row(0, named=True) if found.height else None


def _decisions(frame: pl.DataFrame) -> pl.DataFrame:
    _require(frame, "decisions", ("decision", "limit"))
    if not frame.height:
        raise InputError("The log holds no recalls: there is nothing to evaluate.")
    if row := _first(frame, pl.col("decision").is_null() | pl.col("decision").is_duplicated()):
        raise InputError(f"Row {row['row']} of decisions has the id {row['decision']}; ids are present and unique.")
    if row := _first(frame, pl.col("limit").is_null() | (pl.col("limit") < 1)):
        raise InputError(f"Recall {row['decision']} has the limit {row['limit']}; a head holds at least 1 item.")
    return frame.with_columns(pl.col("limit").cast(pl.Int64)).sort("decision")


def _exposures(frame: pl.DataFrame, decisions: pl.DataFrame, *, needed: bool) -> pl.DataFrame:
    _same_types(frame, decisions, "exposures")
    if "propensity" not in frame.columns:
        frame = frame.with_columns(propensity=pl.lit(None, dtype=pl.Float64))
    places = pl.col("position").cast(pl.Int64) if "position" in frame.columns else pl.lit(None, dtype=pl.Int64)
    frame = frame.select(*_KEY, pl.col("propensity").cast(pl.Float64), position=places)
    if needed and not frame.height:
        raise InputError("Nothing was shown: the table exposures is empty, so nothing can be learned from this log.")
    if row := _first(frame, pl.struct(_KEY).is_duplicated()):
        raise InputError(f"Recall {row['decision']} shows memory {row['memory_id']} twice.")
    wrong = pl.col("propensity").is_nan() | (pl.col("propensity") <= 0) | (pl.col("propensity") > 1)
    if row := _first(frame, wrong):
        raise InputError(
            f"Row {row['row']} of exposures (recall {row['decision']}, memory {row['memory_id']}) was shown with "
            f"propensity {row['propensity']}; what was shown has one above 0 and at most 1, or null if unknown."
        )
    stray = frame.join(decisions, on="decision", how="anti").head(1)
    if stray.height:
        raise InputError(f"exposures names recall {stray['decision'][0]}, which decisions does not hold.")
    return frame


def _candidates(
    table: pl.LazyFrame, decisions: pl.DataFrame, kept: pl.DataFrame
) -> tuple[pl.DataFrame, Ints | None, int]:
    """decision, memory_id, propensity and recall, sorted; the order that sorts the table; recalls without any."""
    schema = table.collect_schema()
    _require(schema, "candidates", _KEY)
    chance = pl.col("propensity").cast(pl.Float64) if "propensity" in schema else pl.lit(None, dtype=pl.Float64)
    frame = table.select(*_KEY, propensity=chance).collect()
    _same_types(frame, decisions, "candidates")
    if row := _first(frame, ~pl.col("propensity").is_between(0, 1)):
        raise InputError(
            f"Row {row['row']} of candidates (recall {row['decision']}, memory {row['memory_id']}) has propensity "
            f"{row['propensity']}; a probability lies in 0..1, or is null if unknown."
        )
    numbered = kept.select("decision").with_row_index("recall").with_columns(pl.col("recall").cast(pl.Int64))
    joined = frame.join(numbered, on="decision", how="left", maintain_order="left")
    if joined["recall"].null_count():
        stray = frame.join(decisions, on="decision", how="anti").head(1)
        if stray.height:
            raise InputError(f"candidates names recall {stray['decision'][0]}, which decisions does not hold.")
    if joined["memory_id"].null_count():
        raise InputError(
            f"A candidate of recall {joined.filter(pl.col('memory_id').is_null())['decision'][0]} has no id."
        )
    order = _order(joined)
    rows = joined if order is None else joined[order]
    code, memory = rows["recall"].to_numpy(), rows["memory_id"]
    twice = (code[1:] == code[:-1]) & (memory[1:] == memory[:-1]).to_numpy()
    if twice.any():
        at = int(np.argmax(twice))
        raise InputError(f"Memory {memory[at]} is a candidate of recall {rows['decision'][at]} twice.")
    empty = kept.height - len(np.unique(code))
    return rows, order, empty


def _order(joined: pl.DataFrame) -> Ints | None:
    """The rows of recalls that count, by recall and memory id; none if they all stand so."""
    memory = joined["memory_id"]
    key = memory.to_numpy() if memory.dtype.is_integer() else memory.rank("dense").to_numpy()
    known = joined["recall"].is_not_null().to_numpy()
    code = joined["recall"].fill_null(0).to_numpy()
    if known.all() and len(code) and ((code[1:] > code[:-1]) | ((code[1:] == code[:-1]) & (key[1:] > key[:-1]))).all():
        return None
    order: Ints = np.lexsort((key, code))
    return np.asarray(order[known[order]])


def _joined(
    rows: pl.DataFrame, exposures: pl.DataFrame, answers: Answers | None, kept: pl.DataFrame, *, zero: bool
) -> tuple[pl.DataFrame, Floats, float]:
    """What was shown, where, and what it earned, over candidates; with which probability; the share not known."""
    given = exposures.join(kept.select("decision"), on="decision", how="semi")
    if answers is not None:
        given = given.join(answers.frame, on=_KEY, how="left")
    else:
        none = pl.lit(None, dtype=pl.Float64)
        given = given.with_columns(reward=none, attributed=none, stated=pl.lit(False))
    if zero:
        given = given.with_columns(pl.col("reward").fill_null(0.0))
    kept_of = ("reward", "attributed", "stated", "position")
    own = given.select(*_KEY, *kept_of, chance="propensity", shown=pl.lit(True))
    joined = rows.join(own, on=_KEY, how="left", maintain_order="left")
    joined = joined.with_columns(pl.col("shown").fill_null(False))
    shown = joined["shown"].to_numpy()
    if int(shown.sum()) < given.height:
        lost = given.join(rows, on=_KEY, how="anti", maintain_order="left").row(0, named=True)
        raise InputError(
            f"Recall {lost['decision']} shows memory {lost['memory_id']}, which is not among its candidates."
        )
    chance, propensity = joined["chance"].to_numpy(), joined["propensity"].to_numpy()
    impossible = shown & np.isnan(chance) & (propensity == 0)
    if impossible.any():
        lost = joined.row(int(np.argmax(impossible)), named=True)
        raise InputError(
            f"Recall {lost['decision']} shows memory {lost['memory_id']}, to which candidates gives propensity 0."
        )
    silent = given["reward"].null_count() / given.height if given.height else 0.0
    return joined, np.where(np.isnan(chance), propensity, chance), silent


def _clusters(kept: pl.DataFrame, by: str | None) -> tuple[Ints, int, str]:
    """The number of each recall's cluster, how many there are, and what one is; a recall without one is its own."""
    count = kept.height
    if by == "decision" or (by is None and "cluster" not in kept.columns):
        return np.arange(count), count, "decision"
    if by == "day":
        return _days(kept)
    column = by or "cluster"
    _require(kept, "decisions", (column,))
    named = kept[column]
    codes = named.rank("dense").cast(pl.Int64).to_numpy().astype(np.float64)
    own = np.isnan(codes)
    codes[own] = codes.size + 1 + np.arange(int(own.sum()))
    numbers = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    clusters = int(numbers.max()) + 1
    if by is None and clusters == 1 and "at" in kept.columns and not kept["at"].null_count():
        return _days(kept)  # blocks of time, for what is near in time is not independent (Politis & Romano 1994)
    return numbers, clusters, column


def _days(kept: pl.DataFrame) -> tuple[Ints, int, str]:
    if "at" not in kept.columns or kept["at"].null_count():
        raise InputError('cluster="day" needs the time of every recall, and column at of decisions has gaps.')
    numbers = np.unique(kept["at"].dt.date().to_physical().to_numpy(), return_inverse=True)[1].astype(np.int64)
    return numbers, int(numbers.max()) + 1, "day"
