"""A log as arrays: what was asked, what could be shown, what was, and what it earned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal, get_args

import msgspec
import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.schema import OUTCOMES
from memlab.kernel.slates import ATTRIBUTED, Slates
from memlab.science.evaluation._intervals import Flags, Floats, Ints

__all__ = [
    "CERTAIN",
    "MISSING",
    "RESERVED",
    "Answers",
    "Challenged",
    "Horizon",
    "Log",
    "Missing",
    "challenges_of",
    "closed",
    "horizon_micros",
    "left_to_chance",
    "read_answers",
    "read_log",
]


# From feedback to rewards: what counts, what is not known yet, and what is never averaged away.
#
# With a horizon, a recall's window runs from its time to the horizon's end. A recall whose window is still open at the
# last event of the log is left out whole: keeping what it has earned so far would favour what pays early. Feedback that
# came after the window is left out too, so that every recall had the same time to earn.
#
# Silence about an item that was shown in a recall that counts (``MISSING``):
#
# - ``"censor"``: left out. The estimate then speaks for the items that people answered, which is right where silence
# does not depend on the item; a gate tests that it does not follow the item's features.
# - ``"inverse"``: left out, and what was answered counts for 1 / P(answered | features, position), by a model that saw
# no recall of its cluster. Right where silence depends on those alone.
# - ``"bounds"``: anything within the range of rewards, which widens the interval. Nothing is assumed.
# - ``"zero"``: a reward of 0. With a horizon that is known, because the window has closed; without one it is the
# caller's word that nothing more will come.
#
# A log in which more than a tenth is silent, or in which only one reward occurs (clicks, and nothing for the rest),
# does not say which of these holds: the caller must.


Missing = Literal["censor", "inverse", "bounds", "zero"]
MISSING: tuple[Missing, ...] = get_args(Missing)


Horizon = str | timedelta | None
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([mhdw])\Z")
_KEY = ["decision", "memory_id"]


def horizon_micros(horizon: Horizon) -> int | None:
    """A horizon in microseconds: a ``timedelta``, or a number and m, h, d or w.

    >>> horizon_micros("7d") == 7 * 86_400_000_000
    True
    """
    if horizon is None:
        return None
    if isinstance(horizon, str):
        match = _SPAN.match(horizon.strip())
        if match is None:
            raise InputError(
                f'horizon is a number and m, h, d or w, such as "7d" or "12h"; not "{horizon}".'
            )
        horizon = timedelta(**{_UNITS[match[2]]: float(match[1])})
    if not isinstance(horizon, timedelta) or horizon <= timedelta(0):
        raise InputError(
            f"horizon is a positive span of time, such as '7d' or a timedelta; not {horizon!r}."
        )
    return horizon // timedelta(microseconds=1)


def closed(decisions: pl.DataFrame, feedback: pl.DataFrame, horizon: int) -> pl.Series:
    """Whether the window of each recall had closed at the last event of the log."""
    for name, frame in (("decisions", decisions), ("feedback", feedback)):
        if "at" not in frame.columns or frame["at"].null_count():
            raise InputError(
                f"A horizon needs the time of every row, and column at of {name} has gaps. Leave it out?"
            )
    micros = pl.col("at").dt.epoch("us")
    ends = [frame.select(micros.max()).item() for frame in (decisions, feedback)]
    last = max(end for end in ends if end is not None)
    known = decisions.select(micros + horizon <= last).to_series()
    if not known.any():
        raise InputError(
            "No recall's window has closed: the log is shorter than the horizon. Shorten it, or wait."
        )
    return known


@dataclass(frozen=True)
class Answers:
    """``frame``: every item that was shown and answered; ``notes`` what was left out.

    decision, memory_id, reward; ``attributed`` (the reward that was read from an answer, null where none was) and
    ``stated`` (whether somebody gave the reward).
    """

    frame: pl.DataFrame
    notes: tuple[str, ...]


def read_answers(
    feedback: pl.DataFrame,
    exposures: pl.DataFrame,
    decisions: pl.DataFrame,
    *,
    horizon: int | None,
    reward_range: tuple[float, float],
) -> Answers:
    """One reward for each item that was shown and answered within its window.

    ``exposures`` and ``decisions`` are those of all recalls, open windows included, so that what names neither is seen.
    """
    rewards = _rewards(feedback, reward_range)
    notes: list[str] = []
    # a judgement of a memory without a recall tells policies something, and evaluation nothing; Slates notes how many
    rewards = rewards.filter(pl.col("decision").is_not_null() & pl.col("memory_id").is_not_null())
    strays = rewards.join(exposures, on=_KEY, how="anti")
    if strays.height:
        first = strays.row(0, named=True)
        notes.append(
            f"{strays.height} feedbacks name an item that its recall did not show: left out "
            f"(the first: recall {first['decision']}, memory {first['memory_id']})."
        )
        rewards = rewards.join(exposures, on=_KEY, how="semi")
    early = _early(rewards, decisions)
    if early:
        notes.append(
            f"{early} feedbacks are dated before their recall: a clock ran back. They count as given at once."
        )
    if horizon is not None:
        within = rewards.join(decisions.select("decision", asked="at"), on="decision").filter(
            pl.col("at").dt.epoch("us") <= pl.col("asked").dt.epoch("us") + horizon
        )
        if within.height < rewards.height:
            notes.append(
                f"{rewards.height - within.height} feedbacks came after the horizon: left out."
            )
        rewards = within
    frame, more = _once(rewards.select(*_KEY, "reward", "at", "attributed", "stated"))
    return Answers(frame, (*notes, *more))


def _early(rewards: pl.DataFrame, decisions: pl.DataFrame) -> int:
    """How many are dated before their recall."""
    if "at" not in decisions.columns or rewards["at"].null_count() == rewards.height:
        return 0
    asked = rewards.join(decisions.select("decision", asked="at"), on="decision", how="left")
    return asked.filter(pl.col("at") < pl.col("asked")).height


def _rewards(feedback: pl.DataFrame, reward_range: tuple[float, float]) -> pl.DataFrame:
    """Every row with its reward: the one given, or 1 for a success and 0 for a fail."""
    missing = [name for name in _KEY if name not in feedback.columns]
    if missing:
        raise InputError(f"The table feedback has no column {missing[0]}.")
    given = (
        pl.col("reward").cast(pl.Float64)
        if "reward" in feedback.columns
        else pl.lit(None, dtype=pl.Float64)
    )
    outcome = pl.col("outcome") if "outcome" in feedback.columns else pl.lit(None, dtype=pl.String)
    at = pl.col("at") if "at" in feedback.columns else pl.lit(None, dtype=pl.Datetime("us", "UTC"))
    by_outcome = pl.when(outcome == OUTCOMES[0]).then(1.0).when(outcome == OUTCOMES[1]).then(0.0)
    source = pl.col("source") if "source" in feedback.columns else pl.lit(None, dtype=pl.String)
    read = (
        pl.col("attributed").cast(pl.Float64)
        if "attributed" in feedback.columns
        else pl.lit(None, dtype=pl.Float64)
    )
    rewards = feedback.select(
        *_KEY,
        reward=pl.coalesce(given, by_outcome),
        at=at,
        attributed=read,
        stated=source.ne_missing(ATTRIBUTED),
    )
    low, high = reward_range
    bad = rewards.with_row_index("row").filter(
        pl.col("reward").is_null()
        | ~pl.col("reward").is_finite()
        | ~pl.col("reward").is_between(low, high)
    )
    if not bad.height:
        return rewards
    row = bad.row(0, named=True)
    where = f"Row {row['row']} of feedback (recall {row['decision']}, memory {row['memory_id']})"
    if row["reward"] is None:
        raise InputError(f"{where} has neither a reward nor an outcome that is success or fail.")
    raise InputError(
        f"{where} has the reward {row['reward']:g}, outside {low:g}..{high:g}. State the range of your rewards: "
        f"reward_range=(low, high)."
    )


def _once(rewards: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """One row an item: repeats count once, and of contradicting ones the last."""
    again = rewards.select(pl.struct(_KEY).is_duplicated().sum()).item()
    if not again:
        return rewards.drop("at"), []
    groups = rewards.group_by(_KEY, maintain_order=True).agg(
        pl.col("reward").n_unique().alias("values"),
        pl.col("reward").sort_by("at").last(),
        pl.col("at").null_count().alias("timeless"),
        (pl.col("at") == pl.col("at").max()).sum().alias("last"),
        pl.col("attributed").drop_nulls().last(),
        pl.col("stated").any(),
    )
    unclear = groups.filter(
        (pl.col("values") > 1) & ((pl.col("timeless") > 0) | (pl.col("last") > 1))
    )
    if unclear.height:
        first = unclear.row(0, named=True)
        raise InputError(
            f"Recall {first['decision']}, memory {first['memory_id']} has feedback that contradicts itself, and no "
            f"time that tells which came last."
        )
    notes = []
    repeats = rewards.height - groups.height
    changed = groups.filter(pl.col("values") > 1).height
    if repeats:
        note = (
            f"{repeats} feedbacks repeat one about the same item of the same recall: counted once"
        )
        notes.append(
            note
            + (
                f"; {changed} items were judged otherwise later: the last counts."
                if changed
                else "."
            )
        )
    return groups.select(*_KEY, "reward", "attributed", "stated"), notes


CERTAIN = 1 - 1e-9
"""A probability from which on an item is as good as sure to be shown."""

RESERVED = ("decision", "memory_id", "propensity", "rank", "score", "text")
"""Columns of the candidates that are no features."""


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
    shown: Flags
    position: Ints
    reward: Floats
    attributed: Floats
    stated: Flags
    limit: Ints
    cluster: Ints
    clusters: int
    clustered: str
    silent: float
    open: int
    notes: tuple[str, ...]
    _candidates: pl.LazyFrame = field(repr=False)
    _order: Ints | None = field(repr=False)
    _kept: Flags | None = field(default=None, repr=False)

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
        held = self.ids.select("memory_id").with_columns(
            recall=pl.Series(self.recall), row=pl.int_range(pl.len())
        )
        return wanted.join(held, on=["recall", "memory_id"], how="left", maintain_order="left")[
            "row"
        ]

    @property
    def answered(self) -> Flags:
        return self.shown & ~np.isnan(self.reward)


def _spread(outer: Flags, inner: Flags) -> Flags:
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
        answers = read_answers(
            judgements, exposures, decisions, horizon=horizon, reward_range=reward_range
        )
        notes += answers.notes
        if horizon is not None:
            kept = decisions.filter(closed(decisions, judgements, horizon))
    rows, order, empty = _candidates(tables.candidates, decisions, kept)
    if empty:
        notes.append(
            f"{empty} recalls have no candidates: whatever a policy says, they show nothing and earn 0."
        )
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
            raise InputError(
                f"The table {name} has no column {column}: {UnknownName('column', column, known)}"
            )


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
        raise InputError(
            f"Row {row['row']} of decisions has the id {row['decision']}; ids are present and unique."
        )
    if row := _first(frame, pl.col("limit").is_null() | (pl.col("limit") < 1)):
        raise InputError(
            f"Recall {row['decision']} has the limit {row['limit']}; a head holds at least 1 item."
        )
    return frame.with_columns(pl.col("limit").cast(pl.Int64)).sort("decision")


def _exposures(frame: pl.DataFrame, decisions: pl.DataFrame, *, needed: bool) -> pl.DataFrame:
    _same_types(frame, decisions, "exposures")
    if "propensity" not in frame.columns:
        frame = frame.with_columns(propensity=pl.lit(None, dtype=pl.Float64))
    places = (
        pl.col("position").cast(pl.Int64)
        if "position" in frame.columns
        else pl.lit(None, dtype=pl.Int64)
    )
    frame = frame.select(*_KEY, pl.col("propensity").cast(pl.Float64), position=places)
    if needed and not frame.height:
        raise InputError(
            "Nothing was shown: the table exposures is empty, so nothing can be learned from this log."
        )
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
        raise InputError(
            f"exposures names recall {stray['decision'][0]}, which decisions does not hold."
        )
    return frame


def _candidates(
    table: pl.LazyFrame, decisions: pl.DataFrame, kept: pl.DataFrame
) -> tuple[pl.DataFrame, Ints | None, int]:
    """decision, memory_id, propensity and recall, sorted; the order that sorts the table; recalls without any."""
    schema = table.collect_schema()
    _require(schema, "candidates", _KEY)
    chance = (
        pl.col("propensity").cast(pl.Float64)
        if "propensity" in schema
        else pl.lit(None, dtype=pl.Float64)
    )
    frame = table.select(*_KEY, propensity=chance).collect()
    _same_types(frame, decisions, "candidates")
    if row := _first(frame, ~pl.col("propensity").is_between(0, 1)):
        raise InputError(
            f"Row {row['row']} of candidates (recall {row['decision']}, memory {row['memory_id']}) has propensity "
            f"{row['propensity']}; a probability lies in 0..1, or is null if unknown."
        )
    numbered = (
        kept.select("decision")
        .with_row_index("recall")
        .with_columns(pl.col("recall").cast(pl.Int64))
    )
    joined = frame.join(numbered, on="decision", how="left", maintain_order="left")
    if joined["recall"].null_count():
        stray = frame.join(decisions, on="decision", how="anti").head(1)
        if stray.height:
            raise InputError(
                f"candidates names recall {stray['decision'][0]}, which decisions does not hold."
            )
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
        raise InputError(
            f"Memory {memory[at]} is a candidate of recall {rows['decision'][at]} twice."
        )
    empty = kept.height - len(np.unique(code))
    return rows, order, empty


def _order(joined: pl.DataFrame) -> Ints | None:
    """The rows of recalls that count, by recall and memory id; none if they all stand so."""
    memory = joined["memory_id"]
    key = memory.to_numpy() if memory.dtype.is_integer() else memory.rank("dense").to_numpy()
    known = joined["recall"].is_not_null().to_numpy()
    code = joined["recall"].fill_null(0).to_numpy()
    if (
        known.all()
        and len(code)
        and ((code[1:] > code[:-1]) | ((code[1:] == code[:-1]) & (key[1:] > key[:-1]))).all()
    ):
        return None
    order: Ints = np.lexsort((key, code))
    return np.asarray(order[known[order]])


def _joined(
    rows: pl.DataFrame,
    exposures: pl.DataFrame,
    answers: Answers | None,
    kept: pl.DataFrame,
    *,
    zero: bool,
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
        # blocks of time, for what is near in time is not independent (Politis & Romano 1994)
        return _days(kept)
    return numbers, clusters, column


def _days(kept: pl.DataFrame) -> tuple[Ints, int, str]:
    if "at" not in kept.columns or kept["at"].null_count():
        raise InputError(
            'cluster="day" needs the time of every recall, and column at of decisions has gaps.'
        )
    numbers = np.unique(kept["at"].dt.date().to_physical().to_numpy(), return_inverse=True)[
        1
    ].astype(np.int64)
    return numbers, int(numbers.max()) + 1, "day"


# What the decisions of a log say of challenges: the heads that stood against each other, and how one was drawn.


class _Head(msgspec.Struct):
    ids: list[int | str]
    hash: str = ""


class Challenged(msgspec.Struct):
    """One recall: the items of the live head and of each challenger's, best first, and how many were drawn at most.

    With the design "ab" ``whose`` names the pack whose head was shown ("" the live one), and ``shares`` gives the
    probability of each.
    """

    live: list[int | str]
    heads: dict[str, _Head]
    draws: float = 0.0
    design: str = ""
    whose: str = ""
    shares: dict[str, float] = {}


_DECODER = msgspec.json.Decoder(Challenged)


def challenges_of(log: Log) -> list[Challenged | None]:
    """Of each recall; None where nothing was challenged. InputError with the recall where it cannot be read."""
    if "challenge" not in log.decisions.columns:
        return [None] * len(log)
    texts = log.decisions["challenge"].to_list()
    return [text and _read(text, log, number) for number, text in enumerate(texts)]


def _read(text: str, log: Log, number: int) -> Challenged:
    where = f"The challenge of recall {log.decisions['decision'][number]}"
    try:
        found = _DECODER.decode(text)
    except (msgspec.DecodeError, TypeError) as error:
        raise InputError(f"{where} cannot be read: {error}.") from None
    kind = str if log.ids["memory_id"].dtype == pl.String else int
    named = (
        item for head in (found.live, *(head.ids for head in found.heads.values())) for item in head
    )
    stray = next((item for item in named if not isinstance(item, kind)), None)
    if stray is not None:
        raise InputError(
            f"{where} names the memory {stray!r}; ids of this log are {log.ids['memory_id'].dtype}."
        )
    if found.design == "ab" or found.shares:
        names = ("", *found.heads)
        wrong = next((name for name in names if not 0 < found.shares.get(name, 0) <= 1), None)
        if wrong is not None:
            raise InputError(
                f"{where} gives the head of {wrong or 'the live pack'} no probability above 0."
            )
        if found.whose not in names:
            raise InputError(
                f"{where} shows the head of {found.whose!r}, which is none of its packs."
            )
    return found
