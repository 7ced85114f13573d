"""Read a log's tables into arrays: recalls, candidates, items shown and rewards."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal, get_args

import msgspec
import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.base.clock import INSTANT
from memlab.kernel.base.printable import count_of
from memlab.kernel.schema import OUTCOMES
from memlab.kernel.slates import ATTRIBUTED, CONTENT, Slates
from memlab.kernel.version import __version__

# Rewards from feedback: which feedback counts, and how missing feedback is treated.
#
# With a horizon, the window of a recall is the time from the recall to the end of the horizon. A recall whose window is
# still open at the last event of the log is left out: counting its early rewards would favour items with quick
# feedback. Feedback after the window is left out too, so that every recall has the same time.
#
# ``MISSING`` lists the treatments of missing feedback on an item that was shown in a recall that counts:
#
# - ``"censor"``: the item is left out. The estimate then represents the items that users answered. That is right if
#   missingness does not depend on the item; a gate tests whether it depends on the item's features.
# - ``"inverse"``: the item is left out, and each answered item is weighted by 1 / P(answered | features, position). The
#   model of that probability is fitted without the recalls of the item's cluster. It is right if missingness depends on
#   features and position alone.
# - ``"bounds"``: the item may have any reward within the range, which widens the interval. Nothing is assumed.
# - ``"zero"``: the item has a reward of 0. With a horizon that is known, because the window has closed. Without one,
#   the caller asserts that no more feedback will come.
#
# If more than a tenth of the feedback is missing, or only one reward value occurs (clicks without a reward for other
# items), the log does not show which treatment applies. The caller must then choose.


Missing = Literal["censor", "inverse", "bounds", "zero"]
MISSING: tuple[Missing, ...] = get_args(Missing)
"""The treatments of missing feedback."""


Horizon = str | timedelta | None
# Horizons are written as a number and a unit, such as "7d".
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([mhdw])\Z")
_KEY = ["decision", "memory_id"]
"""The columns that identify a candidate of a recall."""


def horizon_micros(horizon: Horizon) -> int | None:
    """Convert a horizon to microseconds, or return None for no horizon.

    A horizon is a ``timedelta``, or a text of a number and the unit m, h, d or w.

    >>> horizon_micros("7d") == 7 * 86_400_000_000
    True
    """
    if horizon is None:
        return None
    if isinstance(horizon, str):
        match = _SPAN.match(horizon.strip())
        if match is None:
            raise InputError(
                f'horizon must be a number and a unit (m, h, d or w), such as "7d" or "12h", not "{horizon}".'
            )
        horizon = timedelta(**{_UNITS[match[2]]: float(match[1])})
    if not isinstance(horizon, timedelta) or horizon <= timedelta(0):
        raise InputError(
            f"horizon must be a positive duration, such as '7d' or a timedelta, not {horizon!r}."
        )
    return horizon // timedelta(microseconds=1)


def optional_column(
    columns: Container[str], name: str, dtype: pl.DataType | type[pl.DataType]
) -> pl.Expr:
    """Return a column as an expression, or nulls if the table lacks the column."""
    return pl.col(name) if name in columns else pl.lit(None, dtype=dtype)


def number_recalls(recalls: pl.DataFrame) -> pl.DataFrame:
    """Add the column ``recall``, which numbers the rows from 0."""
    return recalls.with_row_index("recall").with_columns(pl.col("recall").cast(pl.Int64))


def closed(decisions: pl.DataFrame, feedback: pl.DataFrame, horizon: int) -> pl.Series:
    """Return whether each recall's feedback window ended before the log's last event."""
    for name, frame in (("decisions", decisions), ("feedback", feedback)):
        if "at" not in frame.columns or frame["at"].null_count():
            raise InputError(
                f"A horizon needs the time of every row, and the column at of {name} is absent or has nulls. Fill it, or "
                f"omit horizon."
            )
    micros = pl.col("at").dt.epoch("us")
    ends = [frame.select(micros.max()).item() for frame in (decisions, feedback)]
    last = max(end for end in ends if end is not None)
    is_closed = decisions.select(micros + horizon <= last).to_series()
    if not is_closed.any():
        raise InputError(
            "No recall is older than the horizon, so feedback on all of them may still "
            "come. Use a shorter horizon, or wait."
        )
    return is_closed


@dataclass(frozen=True)
class Answers:
    """The rewards of a log, one row for each item that was shown and answered.

    Attributes
    ----------
    frame
        The columns decision, memory_id, reward, ``attributed`` and ``stated``. ``attributed`` is
        the reward that was inferred from the agent's answer, null if none was inferred. ``stated``
        is whether a user gave the reward.
    notes
        Sentences about the feedback that was left out or merged.
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
    """Return one reward for each shown item with feedback inside its window.

    ``exposures`` and ``decisions`` cover all recalls, also those with open windows. So feedback on
    items that no recall showed is detected.
    """
    rewards = _parse_rewards(feedback, reward_range)
    notes: list[str] = []
    # Feedback without a recall says nothing about a ranking. Slates reports how many rows of that kind there are.
    rewards = rewards.filter(pl.col("decision").is_not_null() & pl.col("memory_id").is_not_null())
    strays = rewards.join(exposures, on=_KEY, how="anti")
    if strays.height:
        first = strays.row(0, named=True)
        notes.append(
            f"Feedback on {count_of(strays.height, 'item')} that the recall did not show is left out "
            f"(first: recall {first['decision']}, memory {first['memory_id']})."
        )
        rewards = rewards.join(exposures, on=_KEY, how="semi")
    backdated = _count_backdated(rewards, decisions)
    if backdated:
        notes.append(
            f"{count_of(backdated, 'judgement')} dated before the recall (a clock ran back): counted as given at once."
        )
    if horizon is not None:
        within = rewards.join(decisions.select("decision", asked="at"), on="decision").filter(
            pl.col("at").dt.epoch("us") <= pl.col("asked").dt.epoch("us") + horizon
        )
        if within.height < rewards.height:
            notes.append(
                f"{count_of(rewards.height - within.height, 'judgement')} after the horizon: left out."
            )
        rewards = within
    frame, more = _drop_repeats(rewards.select(*_KEY, "reward", "at", "attributed", "stated"))
    return Answers(frame, (*notes, *more))


def _describe_arrivals(judgements: pl.DataFrame, decisions: pl.DataFrame) -> list[str]:
    """Return a remark if feedback on recent recalls of the log is probably still missing."""
    frames = judgements, decisions
    if not judgements.height or not all(
        frame.schema.get("at", pl.Null()).is_temporal() and not frame["at"].null_count()
        for frame in frames
    ):
        return []
    judged, recalled = (
        frame.select("decision", micros=pl.col("at").dt.epoch("us")) for frame in frames
    )
    times = judged.join(recalled, on="decision", suffix="_asked")
    delays = (times["micros"] - times["micros_asked"]).clip(lower_bound=0).to_numpy()
    delay = float(delays.mean()) if len(delays) else 0.0
    moments = recalled["micros"].to_numpy()
    last = max(moments.max(), judged["micros"].to_numpy().max())
    young = float((moments > last - _ARRIVED * delay).mean())
    if not delay or young <= _MAX_YOUNG:
        return []
    days = delay / (86_400 * 1e6)
    return [
        f"Feedback comes {days:.1f} days after a recall on average, and {young:.0%} of the recalls are younger than "
        f'{_ARRIVED} times that, so some of their feedback is still to come. Set horizon="{math.ceil(_ARRIVED * days)}d".'
    ]


def _count_backdated(rewards: pl.DataFrame, decisions: pl.DataFrame) -> int:
    """Count the judgements that are dated before their recalls."""
    if "at" not in decisions.columns or rewards["at"].null_count() == rewards.height:
        return 0
    times = rewards.join(decisions.select("decision", asked="at"), on="decision", how="left")
    return times.filter(pl.col("at") < pl.col("asked")).height


def _parse_rewards(feedback: pl.DataFrame, reward_range: tuple[float, float]) -> pl.DataFrame:
    """Return the reward of each feedback row, after checking the range.

    A row without a reward has 1 for the outcome success and 0 for fail.
    """
    missing = [name for name in _KEY if name not in feedback.columns]
    if missing:
        raise InputError(
            f"The table feedback has no column {missing[0]}. Add it: feedback is joined to recalls by decision and "
            "memory_id."
        )
    columns = feedback.columns
    explicit = optional_column(columns, "reward", pl.Float64).cast(pl.Float64)
    outcome = optional_column(columns, "outcome", pl.String)
    by_outcome = pl.when(outcome == OUTCOMES[0]).then(1.0).when(outcome == OUTCOMES[1]).then(0.0)
    rewards = feedback.select(
        *_KEY,
        reward=pl.coalesce(explicit, by_outcome),
        at=optional_column(columns, "at", INSTANT),
        attributed=optional_column(columns, "attributed", pl.Float64).cast(pl.Float64),
        stated=optional_column(columns, "source", pl.String).ne_missing(ATTRIBUTED),
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
        raise InputError(
            f"{where} has neither a reward nor an outcome. Set one of them; an outcome is success or fail."
        )
    raise InputError(
        f"{where} has the reward {row['reward']:g}, outside {low:g}..{high:g}. Pass the range of your rewards as "
        f"reward_range=(low, high)."
    )


def _drop_repeats(rewards: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return one row for each shown item, with its latest judgement, and remarks.

    Raises InputError if judgements contradict each other and their times do not show which is latest.
    """
    duplicates = rewards.select(pl.struct(_KEY).is_duplicated().sum()).item()
    if not duplicates:
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
            f"Recall {first['decision']}, memory {first['memory_id']} has contradicting feedback, and no times that show "
            f"which judgement is the latest. Add a column 'at' to feedback, with a distinct time for each judgement."
        )
    notes = []
    repeats = rewards.height - groups.height
    changed = groups.filter(pl.col("values") > 1).height
    if repeats:
        note = f"{count_of(repeats, 'judgement')} repeated for the same item of the same recall: counted once"
        revised = f"; {count_of(changed, 'item')} revised later: the last judgement counts"
        notes.append(f"{note}{revised * bool(changed)}.")
    return groups.select(*_KEY, "reward", "attributed", "stated"), notes


_ARRIVED = 3
"""The number of mean delays after which feedback counts as complete: .95 of it, if delays are exponential."""
_MAX_YOUNG = 0.1
"""The share of recalls with incomplete feedback that needs no remark."""

CERTAIN = 1 - 1e-9
"""The minimum propensity of items that count as certain to be shown."""

RESERVED = ("decision", "memory_id", "propensity", "rank", "score", "text")
"""Columns of the candidates that are never read as features."""


def is_randomised(propensity: Floats) -> Flags:
    """Return whether the propensity of each item is between 0 and 1, so that it was randomised."""
    return (propensity > 0) & (propensity < CERTAIN)


@dataclass(frozen=True)
class Log:
    """The evaluated recalls of a log, with their candidates, as arrays.

    Recalls are sorted by id, candidates by recall and memory id.

    These arrays have one value for each of the n candidates:

    - ``recall``: the index of the candidate's recall
    - ``propensity``: the probability that the candidate was shown, NaN if unknown
    - ``exposed``: whether the candidate was shown
    - ``position``: the position from 1, 0 if not shown
    - ``reward``: NaN if not shown or unknown
    - ``attributed``: the reward inferred from an answer, NaN if none
    - ``stated``: whether a user gave the reward

    ``limit`` and ``cluster`` have one value for each recall.

    These are single values:

    - ``clusters``: the number of clusters
    - ``clustered``: the name of the unit that forms a cluster
    - ``silent``: the share of shown items whose reward is unknown
    - ``open``: the number of recalls left out because their window is open
    """

    decisions: pl.DataFrame
    ids: pl.DataFrame
    recall: Ints
    propensity: Floats
    exposed: Flags
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
    _selected: Flags | None = field(default=None, repr=False)
    lab: Any = field(default=None, repr=False)
    """The lab of the log, or None."""

    def __len__(self) -> int:
        return self.decisions.height

    @property
    def packs(self) -> list[str | None]:
        """The distinct hashes of the packs that logged; empty if the log has no hashes."""
        if "pack_hash" not in self.decisions.columns:
            return []
        return self.decisions["pack_hash"].unique().to_list()

    @property
    def reward_ends(self) -> tuple[float, float]:
        """The minimum and the maximum reward; NaN for a log without rewards."""
        rewards = self.reward[self.answered]
        return (float(rewards.min()), float(rewards.max())) if len(rewards) else (np.nan, np.nan)

    def __getstate__(self) -> dict[str, object]:
        # Workers get the columns that they rank with, and the table of candidates may be large.
        return self.__dict__ | {"_candidates": pl.LazyFrame()}

    def pool(self, columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the candidates' ids and ``columns``, in the order of the arrays."""
        return self.sorted(self._candidates.select(*_KEY, *columns).collect())

    def sorted(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Filter and reorder rows of the candidates' table to match the arrays."""
        frame = frame if self._order is None else frame[self._order]
        return frame if self._selected is None else frame.filter(self._selected)

    def only(self, recalls: Ints) -> Log:
        """Return the log restricted to the recalls at these ascending indices."""
        new_index = np.full(len(self), -1, dtype=np.int64)
        new_index[recalls] = np.arange(len(recalls))
        selected = new_index[self.recall] >= 0
        codes, cluster = np.unique(self.cluster[recalls], return_inverse=True)
        exposed, reward = self.exposed[selected], self.reward[selected]
        rows = np.flatnonzero(selected)
        selection = selected if self._selected is None else _expand_mask(self._selected, selected)
        return replace(
            self,
            decisions=self.decisions[recalls],
            ids=self.ids[rows],
            recall=new_index[self.recall[selected]],
            propensity=self.propensity[selected],
            exposed=exposed,
            position=self.position[selected],
            reward=reward,
            attributed=self.attributed[selected],
            stated=self.stated[selected],
            limit=self.limit[recalls],
            cluster=cluster.astype(np.int64),
            clusters=len(codes),
            silent=float(np.isnan(reward[exposed]).mean()) if exposed.any() else 0.0,
            _selected=selection,
        )

    def rows_of(self, wanted: pl.DataFrame) -> pl.Series:
        """Return the row of each candidate (``recall``, ``memory_id``); null if it is absent."""
        candidates = self.ids.select("memory_id").with_columns(
            recall=pl.Series(self.recall), row=pl.int_range(pl.len())
        )
        return wanted.join(
            candidates, on=["recall", "memory_id"], how="left", maintain_order="left"
        )["row"]

    @cached_property
    def content(self) -> str | None:
        """The column that identifies near-duplicates: the first of ``CONTENT`` in the log."""
        columns = self._candidates.collect_schema()
        return next((name for name in CONTENT if name in columns), None)

    @property
    def answered(self) -> Flags:
        """Whether each candidate was shown and has a reward."""
        return self.exposed & ~np.isnan(self.reward)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the random draws; empty if the log has no seeds."""
        if "seed" not in self.decisions.columns:
            return ()
        return tuple(map(int, self.decisions["seed"].drop_nulls().unique().sort()))

    def provenance(self, hashes: Mapping[str, str | None]) -> str:
        """Return a phrase for captions with the hashes and seeds of the log and the policies."""
        policies = "".join(f"{name} {(text or 'unknown')[:12]}, " for name, text in hashes.items())
        seeds = ", ".join(map(str, self.seeds)) or "not logged"
        return f"SHA-256: {policies}log {self.digest()[:16]}; seed of the draws: {seeds}; memlab {__version__}."

    def sum_by_cluster(self, totals: Floats) -> Floats:
        """Sum rows of recalls within each cluster: f64[clusters, width]."""
        sums = np.zeros((self.clusters, totals.shape[1]))
        np.add.at(sums, self.cluster, totals)
        return sums

    def digest(self) -> str:
        """Return a SHA-256 digest of the log.

        It covers recalls, candidates, probabilities, items shown, rewards, limits and clusters, and
        the packs and challenges of recalls if they were logged.
        """
        digest = hashlib.sha256()
        for array in (
            self.recall,
            self.propensity,
            self.exposed,
            self.reward,
            self.limit,
            self.cluster,
        ):
            digest.update(np.ascontiguousarray(array).tobytes())
        logged = [
            self.decisions[name]
            for name in ("pack_hash", "challenge")
            if name in self.decisions.columns
        ]
        for column in (self.ids["decision"], self.ids["memory_id"], *logged):
            digest.update("\x1f".join(map(str, column.to_list())).encode())
        return digest.hexdigest()


def _expand_mask(outer: Flags, inner: Flags) -> Flags:
    """Convert a mask over the rows that ``outer`` selects to a mask over all rows."""
    mask = np.zeros(len(outer), dtype=np.bool_)
    mask[np.flatnonzero(outer)[inner]] = True
    return mask


def read_log(
    tables: Slates,
    *,
    horizon: int | None = None,
    zero: bool = False,
    reward_range: tuple[float, float] = (0.0, 1.0),
    feedback: bool = True,
    cluster: str | None = None,
) -> Log:
    """Check the tables of a log and return them as arrays.

    Without ``feedback`` no item has a reward, and every recall counts. ``cluster`` names the
    independent unit: a column of the decisions, "day" or "decision". The default is the column
    ``cluster``. If that puts the whole log into one cluster, days are the clusters.

    Raises InputError, which names the table, the row and the reason.
    """
    decisions = _check_decisions(tables.decisions.collect())
    exposures = _check_exposures(tables.exposures.collect(), decisions, needed=feedback)
    answers, counted = None, decisions
    notes: list[str] = []
    if feedback:
        judgements = tables.feedback.collect()
        _check_types(judgements, decisions, "feedback")
        answers = read_answers(
            judgements, exposures, decisions, horizon=horizon, reward_range=reward_range
        )
        notes += answers.notes
        if horizon is not None:
            counted = decisions.filter(closed(decisions, judgements, horizon))
        else:
            notes += _describe_arrivals(judgements, decisions)
    rows, order, empty = _check_candidates(tables.candidates, decisions, counted)
    if empty:
        notes.append(
            f"{count_of(empty, 'recall')} without candidates: no policy can show an item, so the reward is 0."
        )
    joined, propensity, silent = _join_exposures(rows, exposures, answers, counted, zero=zero)
    codes, clusters, clustered = _assign_clusters(counted, cluster)
    return Log(
        decisions=counted,
        ids=rows.select(_KEY),
        recall=rows["recall"].to_numpy(),
        propensity=propensity,
        exposed=joined["shown"].to_numpy(),
        position=joined["position"].fill_null(0).to_numpy(),
        reward=joined["reward"].to_numpy(),
        attributed=joined["attributed"].to_numpy(),
        stated=joined["stated"].fill_null(False).to_numpy(),
        limit=counted["limit"].to_numpy(),
        cluster=codes,
        clusters=clusters,
        clustered=clustered,
        silent=silent,
        open=decisions.height - counted.height,
        notes=tuple(notes),
        _candidates=tables.candidates,
        _order=order,
        lab=tables.lab,
    )


def _require(frame: pl.DataFrame | pl.Schema, name: str, columns: Sequence[str]) -> None:
    """Raise InputError if the table ``name`` lacks one of the columns."""
    present = frame.columns if isinstance(frame, pl.DataFrame) else frame.names()
    for column in columns:
        if column not in present:
            raise InputError(
                f"The table {name} has no column {column}: {UnknownName('column', column, present)}"
            )


def _check_types(frame: pl.DataFrame, decisions: pl.DataFrame, name: str) -> None:
    """Raise InputError if a table's decision ids differ in type from the decisions table."""
    _require(frame, name, _KEY)
    if frame.height and frame["decision"].dtype not in (decisions["decision"].dtype, pl.Null):
        raise InputError(
            f"The column decision is {frame['decision'].dtype} in {name} and {decisions['decision'].dtype} in decisions. "
            f"Cast both to one type."
        )


def _first_row(frame: pl.DataFrame, bad: pl.Expr) -> dict[str, object] | None:
    """Return the first row where ``bad`` is true, with its number as "row", or None without such a row."""
    matches = frame.with_row_index("row").filter(bad).head(1)
    return matches.row(0, named=True) if matches.height else None


def _check_decisions(frame: pl.DataFrame) -> pl.DataFrame:
    """Check the table of decisions and return it sorted by id."""
    _require(frame, "decisions", ("decision", "limit"))
    if not frame.height:
        raise InputError(
            "The log has no recalls, so there is nothing to evaluate. Log some recalls first."
        )
    if row := _first_row(frame, pl.col("decision").is_null() | pl.col("decision").is_duplicated()):
        raise InputError(
            f"Row {row['row']} of decisions has the id {row['decision']}, which is null or not unique. Give each recall an "
            f"id of its own."
        )
    if row := _first_row(frame, pl.col("limit").is_null() | (pl.col("limit") < 1)):
        raise InputError(
            f"Recall {row['decision']} has the limit {row['limit']}. Set the number of results that it asked for, at "
            "least 1."
        )
    return frame.with_columns(pl.col("limit").cast(pl.Int64)).sort("decision")


def _check_exposures(frame: pl.DataFrame, decisions: pl.DataFrame, *, needed: bool) -> pl.DataFrame:
    """Check the table of exposures; return its ids, propensities and positions.

    With ``needed``, an empty table is refused.
    """
    _check_types(frame, decisions, "exposures")
    frame = frame.select(
        *_KEY,
        propensity=optional_column(frame.columns, "propensity", pl.Float64).cast(pl.Float64),
        position=optional_column(frame.columns, "position", pl.Int64).cast(pl.Int64),
    )
    if needed and not frame.height:
        raise InputError(
            "The table exposures is empty: no item was shown, so this log has no evidence. Log the items that each recall "
            "showed, or pass labels."
        )
    if row := _first_row(frame, pl.struct(_KEY).is_duplicated()):
        raise InputError(
            f"Recall {row['decision']} shows memory {row['memory_id']} twice. Keep one row of exposures for each memory "
            "of a recall."
        )
    wrong = pl.col("propensity").is_nan() | (pl.col("propensity") <= 0) | (pl.col("propensity") > 1)
    if row := _first_row(frame, wrong):
        raise InputError(
            f"Row {row['row']} of exposures (recall {row['decision']}, memory {row['memory_id']}) has the propensity "
            f"{row['propensity']}. Log the probability, above 0 and at most 1, or null if it is unknown."
        )
    stray = frame.join(decisions, on="decision", how="anti").head(1)
    if stray.height:
        raise InputError(
            f"The table exposures has the recall {stray['decision'][0]}, and decisions does not. Add the recall to "
            f"decisions, or drop its exposures."
        )
    return frame


def _check_candidates(
    table: pl.LazyFrame, decisions: pl.DataFrame, counted: pl.DataFrame
) -> tuple[pl.DataFrame, Ints | None, int]:
    """Check the table of candidates and return it sorted.

    Returns the rows (decision, memory_id, propensity, recall), the order that sorts the table (None
    if it is sorted), and the number of recalls without candidates.
    """
    schema = table.collect_schema()
    _require(schema, "candidates", _KEY)
    propensity = optional_column(schema, "propensity", pl.Float64).cast(pl.Float64)
    frame = table.select(*_KEY, propensity=propensity).collect()
    _check_types(frame, decisions, "candidates")
    if row := _first_row(frame, ~pl.col("propensity").is_between(0, 1)):
        raise InputError(
            f"Row {row['row']} of candidates (recall {row['decision']}, memory {row['memory_id']}) has the propensity "
            f"{row['propensity']}. Log a probability between 0 and 1, or null if it is unknown."
        )
    numbered = number_recalls(counted.select("decision"))
    joined = frame.join(numbered, on="decision", how="left", maintain_order="left")
    if joined["recall"].null_count():
        stray = frame.join(decisions, on="decision", how="anti").head(1)
        if stray.height:
            raise InputError(
                f"The table candidates has the recall {stray['decision'][0]}, and decisions does not. Add the recall to "
                f"decisions, or drop its candidates."
            )
    if joined["memory_id"].null_count():
        raise InputError(
            f"A candidate of recall {joined.filter(pl.col('memory_id').is_null())['decision'][0]} has no memory_id. Set "
            f"the id of the memory in candidates."
        )
    order = _sorted_order(joined)
    rows = joined if order is None else joined[order]
    number, memory = rows["recall"].to_numpy(), rows["memory_id"]
    repeated = (number[1:] == number[:-1]) & (memory[1:] == memory[:-1]).to_numpy()
    if repeated.any():
        row_number = int(np.argmax(repeated))
        raise InputError(
            f"Memory {memory[row_number]} is a candidate of recall {rows['decision'][row_number]} twice. Keep one row of "
            f"candidates for each memory of a recall."
        )
    empty = counted.height - len(np.unique(number))
    return rows, order, empty


def _sorted_order(joined: pl.DataFrame) -> Ints | None:
    """Return the order that sorts candidates by recall and memory id.

    Candidates of recalls that do not count are left out. The result is None if the table needs no
    change.
    """
    memory = joined["memory_id"]
    key = memory.to_numpy() if memory.dtype.is_integer() else memory.rank("dense").to_numpy()
    counts = joined["recall"].is_not_null().to_numpy()
    number = joined["recall"].fill_null(0).to_numpy()
    if (
        counts.all()
        and len(number)
        and (
            (number[1:] > number[:-1]) | ((number[1:] == number[:-1]) & (key[1:] > key[:-1]))
        ).all()
    ):
        return None
    order: Ints = np.lexsort((key, number))
    return np.asarray(order[counts[order]])


def _join_exposures(
    rows: pl.DataFrame,
    exposures: pl.DataFrame,
    answers: Answers | None,
    counted: pl.DataFrame,
    *,
    zero: bool,
) -> tuple[pl.DataFrame, Floats, float]:
    """Join exposures and rewards to the candidates.

    Returns the joined rows, the propensity of each candidate, and the share of shown items whose reward
    is unknown. With ``zero``, shown items without feedback get the reward 0.
    """
    exposed = exposures.join(counted.select("decision"), on="decision", how="semi")
    if answers is not None:
        exposed = exposed.join(answers.frame, on=_KEY, how="left")
    else:
        null = pl.lit(None, dtype=pl.Float64)
        exposed = exposed.with_columns(reward=null, attributed=null, stated=pl.lit(False))
    if zero:
        exposed = exposed.with_columns(pl.col("reward").fill_null(0.0))
    columns = ("reward", "attributed", "stated", "position")
    details = exposed.select(*_KEY, *columns, chance="propensity", shown=pl.lit(True))
    joined = rows.join(details, on=_KEY, how="left", maintain_order="left")
    joined = joined.with_columns(pl.col("shown").fill_null(False))
    is_exposed = joined["shown"].to_numpy()
    if int(is_exposed.sum()) < exposed.height:
        row = exposed.join(rows, on=_KEY, how="anti", maintain_order="left").row(0, named=True)
        raise InputError(
            f"Recall {row['decision']} shows memory {row['memory_id']}, which is not among its candidates. Add the memory "
            f"to candidates."
        )
    chance, propensity = joined["chance"].to_numpy(), joined["propensity"].to_numpy()
    impossible = is_exposed & np.isnan(chance) & (propensity == 0)
    if impossible.any():
        row = joined.row(int(np.argmax(impossible)), named=True)
        raise InputError(
            f"Recall {row['decision']} shows memory {row['memory_id']}, whose propensity in candidates is 0. Log the "
            f"probability with which it was shown."
        )
    silent = exposed["reward"].null_count() / exposed.height if exposed.height else 0.0
    return joined, np.where(np.isnan(chance), propensity, chance), silent


def _assign_clusters(counted: pl.DataFrame, by: str | None) -> tuple[Ints, int, str]:
    """Return each recall's cluster, the number of clusters, and the unit of clusters.

    A recall whose cluster is null is a cluster of its own. If no unit is named and each recall would
    be a cluster, the recalls of one query are a cluster.
    """
    numbers, clusters, unit = _assign_named(counted, by)
    if by is None and clusters == counted.height:
        queries = number_queries(counted)
        distinct = clusters if queries is None else int(queries.max()) + 1
        if queries is not None and distinct < clusters:
            return queries, distinct, "query"
    return numbers, clusters, unit


def number_queries(decisions: pl.DataFrame) -> Ints | None:
    """Return a number from 0 for each recall's query; None if a query text is missing."""
    if not decisions.height or "query" not in decisions.columns or decisions["query"].null_count():
        return None
    return decisions["query"].str.strip_chars().rank("dense").cast(pl.Int64).to_numpy() - 1


def _assign_named(counted: pl.DataFrame, by: str | None) -> tuple[Ints, int, str]:
    """Group recalls by a unit, by default the column ``cluster``; return cluster numbers, their count and the unit."""
    count = counted.height
    if by == "decision" or (by is None and "cluster" not in counted.columns):
        return np.arange(count), count, "decision"
    if by == "day":
        return _assign_days(counted)
    column = by or "cluster"
    _require(counted, "decisions", (column,))
    codes = counted[column].rank("dense").cast(pl.Int64).to_numpy().astype(np.float64)
    unnamed = np.isnan(codes)
    codes[unnamed] = codes.size + 1 + np.arange(int(unnamed.sum()))
    numbers = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    clusters = int(numbers.max()) + 1
    if by is None and clusters == 1 and "at" in counted.columns and not counted["at"].null_count():
        # Blocks of time, because recalls near in time are not independent (Politis & Romano 1994).
        return _assign_days(counted)
    return numbers, clusters, column


def _assign_days(counted: pl.DataFrame) -> tuple[Ints, int, str]:
    """Group recalls by day; return each recall's cluster number, the number of clusters and "day"."""
    if "at" not in counted.columns or counted["at"].null_count():
        raise InputError(
            'cluster="day" needs the time of every recall, and the column at of decisions is absent or has nulls. Fill it, '
            "or choose another cluster."
        )
    numbers = np.unique(counted["at"].dt.date().to_physical().to_numpy(), return_inverse=True)[
        1
    ].astype(np.int64)
    return numbers, int(numbers.max()) + 1, "day"


# Challenges in the log: the competing result lists of a recall, and how the items shown were drawn.


class _Ranking(msgspec.Struct):
    """The top-k memory ids of one pack, best first, and the hash of the pack.

    ``number`` is the number of the pack's comparison in the lab, and ``share`` its share of the
    error. Both are 0 in recalls from before comparisons were numbered.
    """

    ids: list[int | str]
    hash: str = ""
    number: int = 0
    share: float = 0.0


class Challenged(msgspec.Struct):
    """The challenge of one recall: the top-k memory ids of each pack, best first.

    ``live`` is the top-k of the live pack, and ``heads`` contains the top-k of each challenger. ``draws`` is the
    maximum number of extra items that were drawn, and ``extra`` the number that the owner set, 0
    for "auto". One item of each of ``groups`` was drawn, independently of the other groups; None in
    logs that do not record them. With the design "ab", ``whose`` names the pack whose results were
    shown ("" for the live pack), and ``shares`` holds the probability of each pack.
    """

    live: list[int | str]
    heads: dict[str, _Ranking]
    draws: float = 0.0
    design: str = ""
    whose: str = ""
    shares: dict[str, float] = {}
    extra: int = 1
    groups: list[list[int | str]] | None = None

    @property
    def kind(self) -> str:
        """The design of the comparison: "ab", "draft", or "" for single items."""
        if self.shares:
            return "ab"
        return "draft" if self.design == "draft" and not self.extra else ""


# The decoder is built once, because a log has as many challenges as recalls.
_DECODER = msgspec.json.Decoder(Challenged)


def read_challenges(log: Log) -> list[Challenged | None]:
    """Return the challenge of each recall, or None for a recall without a challenge.

    Raises InputError, which names the recall, if a challenge cannot be read.
    """
    if "challenge" not in log.decisions.columns:
        return [None] * len(log)
    texts = log.decisions["challenge"].to_list()
    return [text and _decode_challenge(text, log, number) for number, text in enumerate(texts)]


def _decode_challenge(text: str, log: Log, number: int) -> Challenged | None:
    """Decode and check the challenge of a recall; return None for a shadow comparison."""
    where = f"The challenge of recall {log.decisions['decision'][number]}"
    try:
        challenge = _DECODER.decode(text)
    except (msgspec.DecodeError, TypeError) as error:
        raise InputError(
            f"{where} cannot be read: {error}. Drop this recall, or log its comparison of packs in the column "
            "challenge again."
        ) from None
    if challenge.design == "shadow":  # No recall shows results of a pack in shadow.
        return None
    # A wrong challenge, written by a faulty logger, would bias a verdict silently. So ids and shares are checked.
    kind = str if log.ids["memory_id"].dtype == pl.String else int
    memories = (
        item
        for head in (
            challenge.live,
            *(head.ids for head in challenge.heads.values()),
            *(challenge.groups or ()),
        )
        for item in head
    )
    stray = next((item for item in memories if not isinstance(item, kind)), None)
    if stray is not None:
        raise InputError(
            f"{where} names the memory {stray!r}, but memory ids of this log are {log.ids['memory_id'].dtype}. Write "
            f"ids of that type to the log."
        )
    for name, head in challenge.heads.items():
        if (head.number or head.share) and not (head.number > 0 and 0 < head.share <= 1):
            raise InputError(
                f"{where} gives {name} the number {head.number} and the share {head.share:g} of the error. Log a number "
                "of at least 1 and a share above 0 and at most 1, or neither."
            )
    if challenge.design == "ab" or challenge.shares:
        names = ("", *challenge.heads)
        wrong = next((name for name in names if not 0 < challenge.shares.get(name, 0) <= 1), None)
        if wrong is not None:
            raise InputError(
                f"{where} gives {wrong or 'the live pack'} no probability above 0. Log each pack's probability of being "
                "shown as its share."
            )
        if challenge.whose not in names:
            raise InputError(
                f"{where} shows the results of {challenge.whose!r}, which is none of its packs. Log the name of a "
                f"challenger, or an empty text for the live pack."
            )
    return challenge
