"""What each version of a pack earned while it was live, and whether the live one earns less than an earlier one did.

Unlike ``memlab.evaluate`` this needs nothing that was left to chance. The price is a confounding that no log can
remove: versions were live at different times, so a change of use or of queries at the same time would look the same.
What is called a fall therefore has to hold at every look (``_falls``), and to begin where the version changed, as a
step or a slope, rather than follow a trend or begin at another time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.slates import Slates
from memlab.science.evaluation._intervals import Floats
from memlab.science.evaluation._log import Horizon, Log, Missing, horizon_micros, read_log
from memlab.science.evaluation._prepared import HasSlates, check_missing, check_settings
from memlab.science.evaluation._sequence import level_of

__all__ = [
    "BY_DAY",
    "BY_PART",
    "CONFOUNDED",
    "PART",
    "PARTS",
    "Bets",
    "Earnings",
    "Period",
    "Periods",
    "Unit",
    "compare_periods",
    "difference_bounds",
    "falls_at",
    "lower_bound",
    "pair_numbers",
    "part_of_day",
]


# Whether what is earned has fallen: betting bounds, and whether it fell at one time or along a trend.
#
# A block is what belongs together (a day or a part of it, a session), and its value is the mean reward of what it
# showed, from 0 to 1. If every block has a mean of at most m given those before it, then
#
# prod(1 + share (value / m - 1))        with 0 <= share < 1
#
# is a nonnegative supermartingale that begins at 1: a bet that values lie above m cannot be expected to win. By
# Ville's inequality it ever reaches 1 / alpha with probability alpha at most, so one may look after every block. So
# is a mixture over shares (Waudby-Smith & Ramdas 2024). Nothing is assumed of how blocks vary but the range.
#
# If the earlier version does not earn more than the live one, some m lies between the two means. The bet that the
# earlier blocks lie above m, times the bet that the live ones lie below it, is such a process too. So the smallest
# product over all m reaches 1 / alpha with probability alpha at most, however often it is looked at.
#
# The confidence sequence of ``_sequence`` is for sums over recalls that may lie far below what is expected; its rates
# are at most .2 of the range and would need some 40 blocks to see a fall from 1 to 0. These bets see it in 3.


_SHARES: Floats = np.array([0.1, 0.3, 0.6, 0.9])
"""A small share is for a small fall over many blocks, a large one for a total fall in few."""

_CELLS = 200
"""Cells of 0..1: a bound is known to half a hundredth. Within a cell each bet is taken at the end where it is less."""

_GRID: Floats = np.linspace(0.0, 1.0, _CELLS + 1)

_EDGE = 1e-6

_LIKELIER = math.log(20)
"""How much likelier one shape of the fall must be than another: as 20 to 1."""

_RIVAL = math.log(3)
"""How much likelier a fall at another time may be than a slope that begins at the change. A slope half fits a later
step, so it gets less benefit of the doubt than a step does. At one judged recall a day, a slope over ten days is found
in 46 of 100 runs (60 with 20 to 1), and a step three days after the change is taken for a fall in 30 of 200 (71 with 20
to 1, 15 with steps alone)."""

_SLOPES = tuple(number / 16 for number in range(1, 17))
"""How long a slope may last, as shares of the time since it began. With 3 of them, a slope of another length seemed to
begin elsewhere, the more surely the more recalls there were."""

_STARTS = 200
"""Times at which a fall may begin elsewhere: of more blocks, some evenly spaced."""

PART, PARTS = 5, 8
"""The judged recalls of a part of a day, and the most parts that a day has."""


class Unit(NamedTuple):
    """What counts as a block: it has ``share`` of the error, and tells falls by more than ``gap`` cells alone."""

    share: float
    gap: int


BY_DAY = Unit(0.5, 0)
BY_PART = Unit(0.5, 30)
"""Days, and parts of days. Recalls of one day share its mood, so parts tell of falls by more than .15 alone: they see a
total fall within 40 recalls of a day or two."""

_SPREAD = 0.05
"""A sum of squares that is added to every fit, as one block that is off by .22 would: a few equal blocks prove no line
exact."""


class Bets:
    """The bets that the blocks of one version lie above each mean, and below it; constant work for each block.

    >>> good, bad = Bets(), Bets()
    >>> for _ in range(12):
    ...     good.add(1.0)
    >>> for _ in range(4):
    ...     bad.add(0.0)
    >>> good.evidence_above(bad) > 66
    True
    """

    def __init__(self, values: Sequence[float] | Floats = ()) -> None:
        self._above, self._below = (
            np.zeros((len(_SHARES), _CELLS)),
            np.zeros((len(_SHARES), _CELLS)),
        )
        self.count = 0
        for value in values:
            self.add(float(value))

    def add(self, value: float) -> None:
        """Count one block."""
        self.count += 1
        self._above += np.log1p(_SHARES[:, None] * (value / _GRID[1:] - 1))
        self._below += np.log1p(_SHARES[:, None] * ((1 - value) / (1 - _GRID[:-1]) - 1))

    def evidence_above(self, other: Bets, gap: int = 0) -> float:
        """The evidence that these blocks have a mean of more than the other's and ``gap`` cells."""
        above, below = _mixed(self._above), _mixed(other._below)
        if gap >= 0:
            sums = above[gap:] + below[: _CELLS - gap]
        else:
            sums = above[: _CELLS + gap] + below[-gap:]
        return math.exp(min(float(sums.min()), 700.0)) if len(sums) else math.inf

    def least_above(self, other: Bets, alpha: float) -> float:
        """The lower bound of how much larger the mean of these blocks is; fails with probability ``alpha`` at most."""
        low, high = -_CELLS, _CELLS
        while high - low > 1:
            middle = (low + high) // 2
            won = self.evidence_above(other, middle) >= 1 / alpha
            low, high = (middle, high) if won else (low, middle)
        return low / _CELLS


def _mixed(logs: Floats) -> Floats:
    top = logs.max(axis=0)
    return np.asarray(top + np.log(np.exp(logs - top).mean(axis=0)))


def difference_bounds(first: Bets, second: Bets, alpha: float) -> tuple[float, float]:
    """An interval for the mean of ``first`` less that of ``second``; each end fails with probability ``alpha``."""
    return first.least_above(second, alpha), -second.least_above(first, alpha)


def lower_bound(values: Floats, alpha: float) -> float:
    """Return a lower bound for the mean of values in 0..1 that fails with probability ``alpha`` at most.

    >>> round(lower_bound(np.ones(60), 0.025), 2)
    0.91
    """
    low, high = 0.0, float(values.mean()) if len(values) else 0.0
    if high <= _EDGE:
        return 0.0
    for _ in range(40):
        middle = max((low + high) / 2, _EDGE)
        logs = np.log1p(_SHARES[:, None] * (values / middle - 1)).sum(axis=1)
        low, high = (middle, high) if _mixed(logs) >= -math.log(alpha) else (low, middle)
    return low


def falls_at(times: Floats, values: Floats, after: NDArray[np.bool_]) -> bool:
    """Return whether a fall begins where the version changed, rather than follow a trend or begin elsewhere.

    ``times`` and ``values`` are f64[blocks] in the order of time, ``after`` says which blocks are on the later side. A
    fall is a step, or a slope that ends at a new level. By the likelihood of normal errors, it must be 20 times
    likelier than a line and than a parabola; each number beyond the second costs what Schwarz's rule says. No fall that
    begins elsewhere may be 20 times likelier than the step, or 3 times likelier than the slope.
    """
    count = len(values)
    if count < 4 or after.all() or not after.any():
        return False
    half, third = count / 2, math.log(count) / 2
    scaled = (times - times[0]) / max(times[-1] - times[0], 1e-12)
    line = -half * math.log(_residue(np.column_stack([np.ones(count), scaled]), values))
    curve = (
        -half * math.log(_residue(np.column_stack([np.ones(count), scaled, scaled**2]), values))
        - third
    )
    smooth = max(line, curve) + _LIKELIER
    starts = np.unique(np.linspace(1, count - 1, min(count - 1, _STARTS)).astype(np.int64))
    elsewhere = max(_step_at(starts, values).max(), _slope_at(starts, scaled, values).max())
    step = -half * math.log(_residue(np.column_stack([np.ones(count), after]), values))
    if step >= smooth and elsewhere - step <= _LIKELIER:
        return True
    slope = float(_slope_at(np.array([int(np.argmax(after))]), scaled, values)[0])
    return slope >= smooth and elsewhere - slope <= _RIVAL


def _step_at(starts: NDArray[np.int64], values: Floats) -> Floats:
    """Return the log likelihood of a step at each of ``starts``: f64[starts]."""
    return _likelihood((np.arange(len(values)) >= starts[:, None]).astype(np.float64), values)


def _slope_at(starts: NDArray[np.int64], scaled: Floats, values: Floats) -> Floats:
    """Return the log likelihood of the best slope that begins before each of ``starts``: f64[starts]."""
    began = scaled[starts - 1]
    best = np.full(len(starts), -np.inf)
    for share in _SLOPES:
        lasts = np.maximum(share * (1 - began), 1e-12)
        done = np.clip((scaled - began[:, None]) / lasts[:, None], 0.0, 1.0)
        best = np.maximum(best, _likelihood(done, values))
    return best - math.log(len(values)) / 2


def _likelihood(shapes: Floats, values: Floats) -> Floats:
    """Return the log likelihood of each row of ``shapes`` (f64[shapes, blocks]), by a regression on it."""
    centred, around = shapes - shapes.mean(axis=1, keepdims=True), values - values.mean()
    squares, products = (centred**2).sum(axis=1), centred @ around
    explained = np.where(squares > 1e-12, products**2 / np.maximum(squares, 1e-12), 0.0)
    left = np.maximum((around**2).sum() - explained, 0.0) + _SPREAD
    return np.asarray(-len(values) / 2 * np.log(left))


def part_of_day(number: int) -> int:
    """Return the part of its day in which the judged recall of this number is, both from 0.

    >>> [part_of_day(number) for number in (0, 4, 5, 34, 35, 200)]
    [0, 0, 1, 6, 7, 7]
    """
    return min(number // PART, PARTS - 1)


def pair_numbers(packs: Sequence[str]) -> Mapping[frozenset[str], int]:
    """Number each pair of versions from 1, when the later one is first live: no version changes an earlier number."""
    pairs = sorted(combinations(range(len(packs)), 2), key=lambda pair: (pair[1], pair[0]))
    return {frozenset((packs[a], packs[b])): number for number, (a, b) in enumerate(pairs, 1)}


class Earnings:
    """What each version earned, judgement by judgement, and whether the live one may have fallen.

    Blocks are the days of the recalls and parts of them. A block ends when the next one is judged, so a judgement costs
    constant work. ``may_have_fallen`` says when ``compare_periods`` is worth its work; it calls nothing a fall.
    """

    def __init__(self, level: float = 0.95) -> None:
        self._level = level
        self._packs: dict[str, _Earned] = {}

    def add(self, pack: str, day: int, reward: float, recall: int = 0) -> None:
        """Count one judgement, in 0..1, of what a pack showed in a recall of this day."""
        self._packs.setdefault(pack, _Earned()).add(day, reward, recall)

    def blocks(self, pack: str) -> int:
        """How many parts of days of a pack have ended."""
        return self._packs[pack].parts.bets.count if pack in self._packs else 0

    def may_have_fallen(self, packs: Sequence[str], live: str) -> bool:
        """Whether the bet is won that ``live`` earns less than another of ``packs`` did."""
        if live not in self._packs:
            return False
        judged = [hash for hash in self._packs if hash in packs]
        numbers = pair_numbers(judged)
        own = self._packs[live]
        for hash in judged:
            if hash == live:
                continue
            other, error = (
                self._packs[hash],
                1 - level_of(numbers[frozenset((hash, live))], self._level),
            )
            pairs = (
                (BY_DAY, other.days.bets, own.days.bets),
                (BY_PART, other.parts.bets, own.parts.bets),
            )
            for unit, before, after in pairs:
                if min(before.count, after.count) < 2:
                    continue
                if before.evidence_above(after, unit.gap) >= 2 / (error * unit.share):
                    return True
        return False


class _Earned:
    """What one version earned, by day and by part of a day."""

    def __init__(self) -> None:
        self.days, self.parts = _Blocks(), _Blocks()
        self._latest = (0, 0)
        self._number = 0

    def add(self, day: int, reward: float, recall: int) -> None:
        same_day = self._latest[0] == day
        self._number = self._number + (self._latest[1] != recall) if same_day else 0
        self._latest = day, recall
        self.days.add((day, 0), reward)
        self.parts.add((day, part_of_day(self._number)), reward)


class _Blocks:
    """The bets of the blocks that ended, and the block that has not."""

    def __init__(self) -> None:
        self.bets = Bets()
        self._open: tuple[int, int] | None = None
        self._total, self._count = 0.0, 0

    def add(self, block: tuple[int, int], reward: float) -> None:
        if self._open != block:
            if self._count:
                self.bets.add(self._total / self._count)
            self._open, self._total, self._count = block, 0.0, 0
        self._total += reward
        self._count += 1


def _residue(design: Floats, values: Floats) -> float:
    coefficients = np.linalg.lstsq(design, values, rcond=None)[0]
    return float(((values - design @ coefficients) ** 2).sum()) + _SPREAD


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
                *(
                    one.pack_hash,
                    one is self.live,
                    one.since,
                    one.blocks,
                    one.recalls,
                    one.judged,
                    one.earned,
                    one.low,
                ),
                *(
                    one.high,
                    one.evidence,
                    one.needed,
                    one.fell if one.needed is not None else None,
                    one.begins,
                ),
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
    log = read_log(
        slates,
        horizon=window,
        zero=missing == "zero",
        reward_range=settings.reward_range,
        cluster=given,
    )
    if missing is None:
        check_missing(log)
    notes = [CONFOUNDED, *log.notes]
    if log.open:
        notes.append(f"{log.open:,} recalls whose time to earn had not passed are left out.")
    live = packs[-1] if live is None else live
    hashes = _that_answered(log, (*packs, live))
    recalls = _recalls(log, slates, settings.reward_range, missing == "bounds", hashes)
    if cluster is not None:
        return _compare_blocks(
            _blocks(recalls, given in _IN_TURN), hashes, live, level, _WHOLE, notes
        )
    by_day = _compare_blocks(_blocks(recalls, True), hashes, live, level, BY_DAY, notes)
    if by_day.fallen:
        return by_day
    by_part = _compare_blocks(
        _blocks(_in_parts(recalls), True), hashes, live, level, BY_PART, notes
    )
    return by_part if by_part.fallen or by_day.live is None else by_day


def _compare_blocks(
    blocks: pl.DataFrame,
    hashes: Sequence[str],
    live: str,
    level: float,
    unit: Unit,
    notes: Sequence[str],
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
    decisions = (
        log.decisions.sort("at", maintain_order=True)
        if "at" in log.decisions.columns
        else log.decisions
    )
    first = decisions["pack_hash"].unique(maintain_order=True).to_list()
    return tuple(hash for hash in first if hash in packs)


def _usual_delay(slates: Slates) -> int | None:
    """The microseconds within which 90% of the judgements came; None where they came at once, or have no time."""
    tables = slates.decisions, slates.feedback
    if any("at" not in table.collect_schema() for table in tables):
        return None
    asked = slates.decisions.select("decision", asked=pl.col("at").dt.epoch("us"))
    delays = slates.feedback.select("decision", came=pl.col("at").dt.epoch("us")).join(
        asked, on="decision"
    )
    late = (
        delays.select((pl.col("came") - pl.col("asked")).quantile(_LATE, "higher")).collect().item()
    )
    return int(late) if late is not None and late > 0 else None


def _recalls(
    log: Log,
    slates: Slates,
    reward_range: tuple[float, float],
    anything: bool,
    hashes: Sequence[str],
) -> pl.DataFrame:
    """Return a row for each judged memory: ``pack_hash``, ``time``, ``recall``, ``cluster``, ``low`` and ``high``.

    ``low`` and ``high`` are its reward, scaled to 0..1; they differ where a reward is unknown and may be ``anything``.
    ``last`` marks the rows of the cluster in which the latest recall is.
    """
    low, high = reward_range
    shown = log.ids.with_columns(recall=pl.Series(log.recall), reward=pl.Series(log.reward)).filter(
        pl.Series(log.exposed)
    )
    exposures = slates.exposures.collect()
    if "probe" in exposures.columns:
        probes = exposures.filter(pl.col("probe")).select("decision", "memory_id")
        shown = shown.join(probes, on=["decision", "memory_id"], how="anti", maintain_order="left")
    reward = (pl.col("reward").fill_nan(None) - low) / (high - low)
    low_reward, high_reward = (
        (reward.fill_null(0.0), reward.fill_null(1.0)) if anything else (reward, reward)
    )
    shown = shown.select("recall", low=low_reward, high=high_reward).drop_nulls()
    columns = log.decisions.columns
    decisions = log.decisions.select(
        "pack_hash",
        sampler=pl.col("sampler") if "sampler" in columns else pl.lit(None, pl.String),
        time=pl.col("at").dt.epoch("us")
        if "at" in columns
        else pl.int_range(pl.len(), dtype=pl.Int64),
        cluster=pl.Series(log.cluster),
        recall=pl.int_range(pl.len(), dtype=pl.Int64),
    ).sort("time", "recall")
    return (
        decisions.with_columns(
            last=pl.col("cluster") == pl.col("cluster").last(), part=pl.lit(0, pl.UInt32)
        )
        .join(shown, on="recall", maintain_order="left")
        .filter(
            pl.col("pack_hash").is_in(list(hashes)),
            ~pl.col("sampler").fill_null("").is_in(_OF_OTHERS),
        )
    )


def _in_parts(recalls: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of ``_recalls`` with each version's days in parts of a few judged recalls."""
    parts = recalls.with_columns(number=pl.col("recall").rle_id()).with_columns(
        part=((pl.col("number").rank("dense").over("pack_hash", "cluster") - 1) // PART).clip(
            upper_bound=PARTS - 1
        )
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
    return replace(
        period, evidence=evidence, needed=1 / alpha, begins=begins, difference=difference
    )
