"""What each version of a pack earned while it was live, and whether the live one earns less than an earlier one did.

Unlike ``memlab.evaluate`` this needs nothing that was left to chance. The price is a confounding that no log can
remove: versions were live at different times, so a change of use or of queries at the same time would look the same.
What is called a fall therefore has to hold at every look (``_falls``), and to be a step where the version changed,
rather than a trend or a step at another time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.arguments import checked
from memlab.errors import InputError
from memlab.evaluation._falls import Bets, difference_bounds, falls_at, lower_bound, pair_numbers
from memlab.evaluation._feedback import Horizon, Missing, horizon_micros
from memlab.evaluation._log import Log, read_log
from memlab.evaluation._prepared import HasSlates, check_settings, check_silence
from memlab.evaluation._sequence import level_of
from memlab.slates import Slates

__all__ = ["CONFOUNDED", "Period", "Periods", "compare_periods"]

Floats = NDArray[np.float64]

CONFOUNDED = (
    "The versions were live at different times: a change of use or of questions when the version changed would look "
    "the same."
)

_MIN_BLOCKS = 2
"""Blocks that each side needs."""

_LATE = 0.99
"""Without a horizon a recall counts when this share of the log's judgements would have come."""

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
    "step": pl.Boolean,
}


@dataclass(frozen=True)
class Period:
    """What one version earned while it was live: the mean reward of a judged memory, over blocks of equal weight.

    ``low`` and ``high`` hold at every look. Of an earlier version, ``evidence`` is that of the bet that the live one
    earns less, ``needed`` the evidence at which the bet is won, and ``step`` whether the fall is a
    step where the version changed; None where the bet is not won. ``fell`` is both.
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
    step: bool | None = None
    difference: tuple[float, float, float] | None = None
    """What an earlier version earned more than the live one, with an interval that holds at every look."""

    @property
    def fell(self) -> bool:
        """Whether the live version earns less than this one did, by a step where the version changed."""
        return bool(self.step)


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
                *(one.high, one.evidence, one.needed, one.fell if one.needed is not None else None, one.step),
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
        Hashes of the packs that have been live, in the order in which they first were. What others showed is left out.
    live
        The hash of the live pack; the last of ``packs`` by default.
    horizon
        The time that each recall has to earn, such as "7d". Without it, the time within which 99% of the judgements of
        the log came; recalls that are younger are left out.
    missing
        What a memory without feedback earns: "zero" for 0, "censor" or "inverse" to leave it out, "bounds" for
        anything in ``reward_range`` (the live version the most, the earlier ones the least).
    cluster
        What belongs together and counts once: "day" (the default), "session", "decision" or a column of the decisions.
        The latest block counts when the next one begins.
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
    when the version changed would look the same. A fall has to be a step at that time, 20 times likelier than a trend.

    Examples
    --------
    >>> memlab.evaluation.compare_periods(lab, [first_hash, lab.pack.hash]).frame            # doctest: +SKIP
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
    blocks = _blocks(log, slates, settings.reward_range, missing == "bounds", (live, *packs), given in _IN_TURN)
    known = set(blocks["pack_hash"])
    if live not in known:
        return Periods(None, (), tuple(notes))
    numbers = pair_numbers(list(dict.fromkeys((*packs, live))))
    own = blocks.filter(pl.col("pack_hash") == live)
    found = []
    for hash in dict.fromkeys(packs):
        if hash == live or hash not in known:
            continue
        other = blocks.filter(pl.col("pack_hash") == hash)
        number = numbers[frozenset((live, hash))]
        found.append(_compared(other, own, (1 - level_of(number, level)) / 2))
    found.sort(key=lambda one: (-one.low, one.since))
    return Periods(_period(own, "high", (1 - level) / 2), tuple(found), tuple(notes))


def _usual_delay(slates: Slates) -> int | None:
    """The microseconds within which 99% of the judgements came; None where they came at once, or have no time."""
    tables = slates.decisions, slates.feedback
    if any("at" not in table.collect_schema() for table in tables):
        return None
    asked = slates.decisions.select("decision", asked=pl.col("at").dt.epoch("us"))
    delays = slates.feedback.select("decision", came=pl.col("at").dt.epoch("us")).join(asked, on="decision")
    late = delays.select((pl.col("came") - pl.col("asked")).quantile(_LATE, "higher")).collect().item()
    return int(late) if late is not None and late > 0 else None


def _blocks(
    log: Log,
    slates: Slates,
    reward_range: tuple[float, float],
    anything: bool,
    hashes: Sequence[str],
    in_turn: bool,
) -> pl.DataFrame:
    """A row for each block of each version, in the order of time: ``pack_hash``, ``time``, ``low`` and ``high``.

    ``low`` and ``high`` are the mean rewards of what was shown, scaled to 0..1; they differ where a reward is unknown
    and may be ``anything``. ``in_turn``: a block ends when the next begins, and the latest is left out.
    """
    if "pack_hash" not in log.decisions.columns:
        raise InputError("The log does not say which pack answered: it has no column pack_hash.")
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
    )
    last = decisions.filter(pl.col("time") == pl.col("time").max())["cluster"].to_list() if in_turn else []
    joined = shown.join(decisions, on="recall", maintain_order="left").filter(
        pl.col("pack_hash").is_in(list(hashes)),
        ~pl.col("sampler").fill_null("").is_in(_OF_OTHERS),
        ~pl.col("cluster").is_in(last),
    )
    return (
        joined.group_by("pack_hash", "cluster")
        .agg(
            pl.col("time").mean(),
            pl.col("time").min().alias("since"),
            pl.col("low", "high").mean(),
            recalls=pl.col("recall").n_unique(),
            judged=pl.len(),
        )
        .sort("time", "pack_hash")
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


def _compared(other: pl.DataFrame, own: pl.DataFrame, alpha: float) -> Period:
    """An earlier version, with the bet that the live one earns less. Each end of an interval fails with ``alpha``."""
    period = _period(other, "low", alpha)
    least, most = Bets(other["low"].to_numpy()), Bets(own["high"].to_numpy())
    evidence = least.evidence_above(most)
    step = None
    if min(period.blocks, own.height) >= _MIN_BLOCKS and evidence >= 1 / alpha:
        both = pl.concat(
            [
                other.select("time", value="low", after=pl.lit(False)),
                own.select("time", value="high", after=pl.lit(True)),
            ]
        ).sort("time")
        step = falls_at(*(both[name].to_numpy() for name in ("time", "value", "after")))
    low = difference_bounds(least, most, alpha)[0]
    high = difference_bounds(Bets(other["high"].to_numpy()), Bets(own["low"].to_numpy()), alpha)[1]
    difference = period.earned - float(own["high"].mean()), low, high  # type: ignore[arg-type]
    return replace(period, evidence=evidence, needed=1 / alpha, step=step, difference=difference)
