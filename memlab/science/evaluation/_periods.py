"""What each version of a pack earned while it was live, and whether the live one earns less than an earlier one did.

Unlike ``memlab.evaluate`` this needs nothing that was left to chance. The price is a confounding that no log can
remove: versions were live at different times, so a change of use or of queries at the same time would look the same.
What is called a fall therefore has to hold at every look (``_falls``), and to begin where the version changed, as a
step or a slope, rather than follow a trend or begin at another time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.slates import Slates
from memlab.science.evaluation._falls import (
    BY_DAY,
    BY_PART,
    PART,
    PARTS,
    Bets,
    Unit,
    difference_bounds,
    falls_at,
    lower_bound,
    pair_numbers,
)
from memlab.science.evaluation._feedback import Horizon, Missing, horizon_micros
from memlab.science.evaluation._log import Log, read_log
from memlab.science.evaluation._prepared import HasSlates, check_settings, check_silence
from memlab.science.evaluation._sequence import level_of

__all__ = ["CONFOUNDED", "Period", "Periods", "compare_periods"]

Floats = NDArray[np.float64]

CONFOUNDED = (
    "The versions were live at different times: a change of use or of questions when the version changed would look "
    "the same."
)

_MIN_BLOCKS = 2
"""Blocks that each side needs."""

_LATE = 0.9
"""Without a horizon a recall counts when this share of the log's judgements would have come. Later judgements are left
out of all versions alike, so the share decides only how long one waits and how much is left out."""

_WHOLE = Unit(1.0, 0)
"""Blocks that were asked for: all of the error is theirs, and they tell of any fall."""

_IN_TURN = ("day", "session", "decision")
"""Clusters that end when the next begins. Others, such as users, go on: their comparison holds at one look."""

_OF_OTHERS = ("lot", "ab")
"""Samplers that show what other packs chose as well."""

_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "pack_hash": pl.String,
    "live": pl.Boolean,
    "since": pl.Datetime("us", "UTC"),
    "blocks": pl.Int64,
    "recalls": pl.Int64,
    "judged": pl.Int64,
    "earned": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "evidence": pl.Float64,
    "needed": pl.Float64,
    "fell": pl.Boolean,
    "begins": pl.Boolean,
}


@dataclass(frozen=True)
class Period:
    """What one version earned while it was live: the mean reward of a judged memory, over blocks of equal weight.

    ``low`` and ``high`` hold at every look. Of an earlier version, ``evidence`` is that of the bet that the live one
    earns less, ``needed`` the evidence at which the bet is won, and ``begins`` whether the fall begins
    where the version changed; None where the bet is not won. ``fell`` is both.
    """

    pack_hash: str
    since: int
    blocks: int
    recalls: int
    judged: int
    earned: float
    low: float
    high: float
    evidence: float | None = None
    needed: float | None = None
    begins: bool | None = None
    difference: tuple[float, float, float] | None = None
    """What an earlier version earned more than the live one, with an interval that holds at every look."""

    @property
    def fell(self) -> bool:
        """Whether the live version earns less than this one did, by a fall that begins where the version changed."""
        return bool(self.begins)


@dataclass(frozen=True)
class Periods:
    """The live version and the earlier ones, best first; ``fallen`` are those that the live one does worse than."""

    live: Period | None
    earlier: tuple[Period, ...]
    notes: tuple[str, ...] = field(repr=False)

    @property
    def fallen(self) -> tuple[Period, ...]:
        """The earlier versions that the live one does worse than, the best first."""
        return tuple(one for one in self.earlier if one.fell)

    @property
    def frame(self) -> pl.DataFrame:
        """A row a version, the live one first: what it earned, with its interval, and what the comparison found."""
        rows = [
            (
                *(one.pack_hash, one is self.live, one.since, one.blocks, one.recalls, one.judged, one.earned, one.low),
                *(one.high, one.evidence, one.needed, one.fell if one.needed is not None else None, one.begins),
            )
            for one in (*((self.live,) if self.live else ()), *self.earlier)
        ]
        return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


@checked
def compare_periods(
    slates: Slates | HasSlates,
    packs: Sequence[str],
    live: str | None = None,
    *,
    horizon: Horizon = None,
    missing: Missing | None = None,
    cluster: str | None = None,
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
) -> Periods:
    """Compare what the live version of a pack earned with what earlier versions earned while they were live.

    Parameters
    ----------
    slates
        The log, or a lab.
    packs
        Hashes of the packs that have been live. What others showed is left out.
    live
        The hash of the live pack; the last of ``packs`` by default.
    horizon
        The time that each recall has to earn, such as "7d". Without it, the time within which 90% of the judgements of
        the log came. Recalls that are younger and judgements that came later are left out.
    missing
        What a memory without feedback earns: "zero" for 0, "censor" or "inverse" to leave it out, "bounds" for
        anything in ``reward_range`` (the live version the most, the earlier ones the least).
    cluster
        What belongs together and counts once: "day", "session", "decision" or a column of the decisions. Without it,
        days; and for a fall by more than .2 each five judged recalls of a day, in at most eight parts. The latest block
        counts when the next one begins.
    level
        The probability with which no fall is called one wrongly, over all comparisons of the log's versions and all
        looks. The k-th comparison has 6 / (pi k)^2 of the error, as in ``memlab.verdict``.
    reward_range
        The smallest and the largest reward; that of the log by default.

    Returns
    -------
    Periods
        The live version and the earlier ones, best first.

    Raises
    ------
    InputError
        Where silence must be given a meaning, or the log contradicts itself.

    Notes
    -----
    The comparison is observational. Versions were live at different times: a change of use or of questions at the time
    when the version changed would look the same. A fall has to begin at that time, 20 times likelier than a trend.

    Examples
    --------
    >>> compare_periods(lab, [first_hash, lab.policies.pack.hash]).frame                     # doctest: +SKIP
    """
    slates = slates if isinstance(slates, Slates) else slates.slates()
    bounds = (slates.reward_range or (0.0, 1.0)) if reward_range is None else reward_range
    given = "day" if cluster is None else cluster
    settings = check_settings(horizon, missing, "snips", level, bounds, None, given)
    window = horizon_micros(horizon) if horizon is not None else _usual_delay(slates)
    log = read_log(slates, horizon=window, zero=missing == "zero", reward_range=settings.reward_range, cluster=given)
    if missing is None:
        check_silence(log)
    notes = [CONFOUNDED, *log.notes]
    if log.open:
        notes.append(f"{log.open:,} recalls whose time to earn had not passed are left out.")
    live = packs[-1] if live is None else live
    hashes = _that_answered(log, (*packs, live))
    recalls = _recalls(log, slates, settings.reward_range, missing == "bounds", hashes)
    if cluster is not None:
        return _compare_blocks(_blocks(recalls, given in _IN_TURN), hashes, live, level, _WHOLE, notes)
    by_day = _compare_blocks(_blocks(recalls, True), hashes, live, level, BY_DAY, notes)
    if by_day.fallen:
        return by_day
    by_part = _compare_blocks(_blocks(_in_parts(recalls), True), hashes, live, level, BY_PART, notes)
    return by_part if by_part.fallen or by_day.live is None else by_day


def _compare_blocks(
    blocks: pl.DataFrame, hashes: Sequence[str], live: str, level: float, unit: Unit, notes: Sequence[str]
) -> Periods:
    """Compare the live version's blocks with those of each other version."""
    known = set(blocks["pack_hash"])
    if live not in known:
        return Periods(None, (), tuple(notes))
    numbers = pair_numbers(hashes)
    own = blocks.filter(pl.col("pack_hash") == live)
    found = []
    for hash in hashes:
        if hash == live or hash not in known:
            continue
        other = blocks.filter(pl.col("pack_hash") == hash)
        error = 1 - level_of(numbers[frozenset((live, hash))], level)
        found.append(_compared(other, own, error * unit.share / 2, unit.gap))
    found.sort(key=lambda one: (-one.low, one.since))
    return Periods(_period(own, "high", (1 - level) / 2), tuple(found), tuple(notes))


def _that_answered(log: Log, packs: Sequence[str]) -> tuple[str, ...]:
    """Return those of the packs that answered a recall of the log, in the order in which they first did.

    A pack that was live and answered nothing, such as the one with which a lab was opened, begins no comparison.
    """
    if "pack_hash" not in log.decisions.columns:
        raise InputError("The log does not say which pack answered: it has no column pack_hash.")
    decisions = log.decisions.sort("at", maintain_order=True) if "at" in log.decisions.columns else log.decisions
    first = decisions["pack_hash"].unique(maintain_order=True).to_list()
    return tuple(hash for hash in first if hash in packs)


def _usual_delay(slates: Slates) -> int | None:
    """The microseconds within which 90% of the judgements came; None where they came at once, or have no time."""
    tables = slates.decisions, slates.feedback
    if any("at" not in table.collect_schema() for table in tables):
        return None
    asked = slates.decisions.select("decision", asked=pl.col("at").dt.epoch("us"))
    delays = slates.feedback.select("decision", came=pl.col("at").dt.epoch("us")).join(asked, on="decision")
    late = delays.select((pl.col("came") - pl.col("asked")).quantile(_LATE, "higher")).collect().item()
    return int(late) if late is not None and late > 0 else None


def _recalls(
    log: Log, slates: Slates, reward_range: tuple[float, float], anything: bool, hashes: Sequence[str]
) -> pl.DataFrame:
    """Return a row for each judged memory: ``pack_hash``, ``time``, ``recall``, ``cluster``, ``low`` and ``high``.

    ``low`` and ``high`` are its reward, scaled to 0..1; they differ where a reward is unknown and may be ``anything``.
    ``last`` marks the rows of the cluster in which the latest recall is.
    """
    low, high = reward_range
    shown = log.ids.with_columns(recall=pl.Series(log.recall), reward=pl.Series(log.reward)).filter(
        pl.Series(log.shown)
    )
    exposures = slates.exposures.collect()
    if "probe" in exposures.columns:
        probes = exposures.filter(pl.col("probe")).select("decision", "memory_id")
        shown = shown.join(probes, on=["decision", "memory_id"], how="anti", maintain_order="left")
    reward = (pl.col("reward").fill_nan(None) - low) / (high - low)
    low_reward, high_reward = (reward.fill_null(0.0), reward.fill_null(1.0)) if anything else (reward, reward)
    shown = shown.select("recall", low=low_reward, high=high_reward).drop_nulls()
    columns = log.decisions.columns
    decisions = log.decisions.select(
        "pack_hash",
        sampler=pl.col("sampler") if "sampler" in columns else pl.lit(None, pl.String),
        time=pl.col("at").dt.epoch("us") if "at" in columns else pl.int_range(pl.len(), dtype=pl.Int64),
        cluster=pl.Series(log.cluster),
        recall=pl.int_range(pl.len(), dtype=pl.Int64),
    ).sort("time", "recall")
    return (
        decisions.with_columns(last=pl.col("cluster") == pl.col("cluster").last(), part=pl.lit(0, pl.UInt32))
        .join(shown, on="recall", maintain_order="left")
        .filter(pl.col("pack_hash").is_in(list(hashes)), ~pl.col("sampler").fill_null("").is_in(_OF_OTHERS))
    )


def _in_parts(recalls: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of ``_recalls`` with each version's days in parts of a few judged recalls."""
    parts = recalls.with_columns(number=pl.col("recall").rle_id()).with_columns(
        part=((pl.col("number").rank("dense").over("pack_hash", "cluster") - 1) // PART).clip(upper_bound=PARTS - 1)
    )
    latest = [pl.col(name) == pl.col(name).last() for name in ("pack_hash", "part")]
    return parts.with_columns(last=pl.all_horizontal("last", *latest))


def _blocks(recalls: pl.DataFrame, in_turn: bool) -> pl.DataFrame:
    """Return a row for each block of each version in the order of time, with the means of ``low`` and ``high``.

    ``in_turn``: a block ends when the next one begins, and the latest is left out.
    """
    return (
        (recalls.filter(~pl.col("last")) if in_turn else recalls)
        .group_by("pack_hash", "cluster", "part")
        .agg(
            pl.col("time").mean(),
            pl.col("recall").mean().alias("order"),
            pl.col("time").min().alias("since"),
            pl.col("low", "high").mean(),
            recalls=pl.col("recall").n_unique(),
            judged=pl.len(),
        )
        .sort("time", "order")
    )


def _period(blocks: pl.DataFrame, side: str, alpha: float) -> Period:
    values = blocks[side].to_numpy()
    return Period(
        pack_hash=str(blocks["pack_hash"][0]),
        since=int(blocks["since"].min()),  # type: ignore[arg-type]
        blocks=blocks.height,
        recalls=int(blocks["recalls"].sum()),
        judged=int(blocks["judged"].sum()),
        earned=float(values.mean()),
        low=lower_bound(blocks["low"].to_numpy(), alpha),
        high=1 - lower_bound(1 - blocks["high"].to_numpy(), alpha),
    )


def _compared(other: pl.DataFrame, own: pl.DataFrame, alpha: float, gap: int) -> Period:
    """An earlier version, with the bet that the live one earns less. Each end of an interval fails with ``alpha``."""
    period = _period(other, "low", alpha)
    least, most = Bets(other["low"].to_numpy()), Bets(own["high"].to_numpy())
    evidence = least.evidence_above(most, gap)
    begins = None
    if min(period.blocks, own.height) >= _MIN_BLOCKS and evidence >= 1 / alpha:
        both = pl.concat(
            [
                other.select("time", "order", value="low", after=pl.lit(False)),
                own.select("time", "order", value="high", after=pl.lit(True)),
            ]
        ).sort("time", "order")
        begins = falls_at(*(both[name].to_numpy() for name in ("time", "value", "after")))
    low = difference_bounds(least, most, alpha)[0]
    high = difference_bounds(Bets(other["high"].to_numpy()), Bets(own["low"].to_numpy()), alpha)[1]
    difference = period.earned - float(own["high"].mean()), low, high  # type: ignore[arg-type]
    return replace(period, evidence=evidence, needed=1 / alpha, begins=begins, difference=difference)
