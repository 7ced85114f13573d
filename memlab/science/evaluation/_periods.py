"""Compare the rewards of a pack's live version with the rewards of earlier versions.

Unlike ``memlab.evaluate``, this comparison needs no randomised items. The price is a confounding
that no log can remove: versions were live at different times, so a simultaneous change of use or of
queries would look the same. Therefore a fall must be significant in an anytime-valid test, and it
must begin where the version changed, as a step or a slope. A fall that follows a trend or begins at
another time does not count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.base.clock import INSTANT
from memlab.kernel.base.printable import count_of
from memlab.kernel.slates import Slates
from memlab.science.evaluation._log import (
    Horizon,
    Log,
    Missing,
    horizon_micros,
    optional_column,
    read_log,
)
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


# The comparison answers two questions: have rewards fallen, and did they fall at one time or along a trend?
#
# A block is a set of dependent recalls (a day or a part of it, a session). Its value is the mean reward of the items
# shown, from 0 to 1. If every block has a conditional mean of at most m, then
#
# prod(1 + share (value / m - 1))        with 0 <= share < 1
#
# is a nonnegative supermartingale that begins at 1: a bet that values are above m has no expected gain. By Ville's
# inequality the product ever reaches 1 / alpha with probability at most alpha, so an analysis after every block is
# valid. The same holds for a mixture over shares (Waudby-Smith & Ramdas 2024). The only assumption on blocks is their
# range.
#
# If the earlier version is not better than the live version, some m is between the two means. The bet that earlier
# blocks are above m, times the bet that live blocks are below m, is such a process too. So the minimum of the product
# over all m reaches 1 / alpha with probability at most alpha, however often it is analysed.
#
# The confidence sequence of ``_sequence`` is for sums over recalls that may be far below their expectation. Its rates
# are at most .2 of the range, so that sequence would need about 40 blocks to detect a fall from 1 to 0. These bets
# detect it in 3.


_SHARES: Floats = np.array([0.1, 0.3, 0.6, 0.9])
"""The shares of a bet.

Small shares detect a small fall over many blocks, large shares a total fall in few blocks.
"""

_CELLS = 200
"""The number of cells of the range 0..1, so that bounds have a resolution of .005.

Within a cell, the end at which a bet wins less counts.
"""

_GRID: Floats = np.linspace(0.0, 1.0, _CELLS + 1)
"""The ends of the cells."""

_MIN_MEAN = 1e-6
"""The smallest mean that a bet is made on, because a bet divides by the mean."""

_LIKELIER = math.log(20)
"""The log likelihood ratio that decides between two shapes of a fall.

A ratio of 20 to 1 is the usual bound for strong evidence.
"""

_RIVAL = math.log(3)
"""The log likelihood ratio by which another fall may exceed a slope from the change.

A fall that begins at another time may be up to 3 times likelier than a slope that begins at the
change of version. The ratio is smaller than for a step, because a slope partly fits a later step.
At one judged recall per day, a slope over ten days is detected in 46 of 100 runs (60 with 20 to 1).
A step three days after the change is wrongly called a fall in 30 of 200 runs (71 with 20 to 1, 15
with steps alone).
"""

_SLOPES = tuple(number / 16 for number in range(1, 17))
"""The tested durations of a slope, as shares of the time after its start.

With only 3 durations, a slope of another duration seemed to start elsewhere, and more recalls made
that error more certain.
"""

_STARTS = 200
"""The maximum number of starts of a fall that are tested.

With more blocks, the tested starts are evenly spaced.
"""

PART, PARTS = 5, 8
"""The judged recalls in a part of a day, and the maximum number of parts of a day."""


class Unit(NamedTuple):
    """A kind of block: its share of the error and the minimum fall that it reports.

    ``gap`` is the minimum fall, in cells of .005.
    """

    share: float
    gap: int


# Days and parts of days share the error equally.
BY_DAY = Unit(0.5, 0)
BY_PART = Unit(0.5, 30)
"""The kinds of blocks by default: days, and parts of days.

Recalls of one day are correlated, so parts of days may only report falls by more than .15. They
detect a total fall within 40 recalls of one or two days.
"""

_PRIOR_SQUARES = 0.05
"""A sum of squares that is added to every fit, like one block with a residual of .22.

Without it, a few equal blocks would count as proof of an exact line.
"""


class Bets:
    """Bets on the mean of the blocks of one version, in constant time per block.

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
        """Add the mean reward of a block, from 0 to 1."""
        self.count += 1
        self._above += np.log1p(_SHARES[:, None] * (value / _GRID[1:] - 1))
        self._below += np.log1p(_SHARES[:, None] * ((1 - value) / (1 - _GRID[:-1]) - 1))

    def evidence_above(self, other: Bets, gap: int = 0) -> float:
        """Return the evidence that this version's mean exceeds the mean of ``other``.

        The evidence is that it exceeds the other mean by more than ``gap`` cells. A value of 1 /
        alpha or more is significant at the level alpha.
        """
        above, below = _mix_bets(self._above), _mix_bets(other._below)
        if gap >= 0:
            sums = above[gap:] + below[: _CELLS - gap]
        else:
            sums = above[: _CELLS + gap] + below[-gap:]
        return math.exp(min(float(sums.min()), 700.0)) if len(sums) else math.inf

    def lower_difference(self, other: Bets, alpha: float) -> float:
        """Return a lower bound for this version's mean minus the mean of ``other``.

        The bound is wrong with probability at most ``alpha``.
        """
        low, high = -_CELLS, _CELLS
        while high - low > 1:
            middle = (low + high) // 2
            is_won = self.evidence_above(other, middle) >= 1 / alpha
            low, high = (middle, high) if is_won else (low, middle)
        return low / _CELLS


def _mix_bets(logs: Floats) -> Floats:
    """Return the log capital of a betting test, averaged over its bet sizes."""
    top = logs.max(axis=0)
    return np.asarray(top + np.log(np.exp(logs - top).mean(axis=0)))


def difference_bounds(first: Bets, second: Bets, alpha: float) -> tuple[float, float]:
    """Return a confidence interval for the mean of ``first`` minus the mean of ``second``.

    Each end is wrong with probability at most ``alpha``.
    """
    return first.lower_difference(second, alpha), -second.lower_difference(first, alpha)


def lower_bound(values: Floats, alpha: float) -> float:
    """Return a lower bound of the mean of values between 0 and 1.

    The bound is wrong with probability at most ``alpha``.

    >>> round(lower_bound(np.ones(60), 0.025), 2)
    0.91
    """
    low, high = 0.0, float(values.mean()) if len(values) else 0.0
    if high <= _MIN_MEAN:
        return 0.0
    for _ in range(40):
        middle = max((low + high) / 2, _MIN_MEAN)
        logs = np.log1p(_SHARES[:, None] * (values / middle - 1)).sum(axis=1)
        low, high = (middle, high) if _mix_bets(logs) >= -math.log(alpha) else (low, middle)
    return low


def falls_at(times: Floats, values: Floats, after: Flags) -> bool:
    """Return whether rewards fell at the change of version, rather than before or after.

    ``times`` and ``values`` are f64[blocks] in order of time; ``after`` marks the blocks after the
    change. A fall is a step, or a slope that ends at a new level. With normal errors it must be 20
    times likelier than a line and than a parabola. Each parameter beyond the second has the penalty
    of Schwarz's criterion. No fall that begins at another block may be 20 times likelier than the
    step, or 3 times likelier than the slope.
    """
    count = len(values)
    if count < 4 or after.all() or not after.any():
        return False
    half, third = count / 2, math.log(count) / 2
    scaled = (times - times[0]) / max(times[-1] - times[0], 1e-12)
    line = -half * math.log(_residual_squares(np.column_stack([np.ones(count), scaled]), values))
    curve = (
        -half
        * math.log(_residual_squares(np.column_stack([np.ones(count), scaled, scaled**2]), values))
        - third
    )
    smooth = max(line, curve) + _LIKELIER
    starts = np.unique(np.linspace(1, count - 1, min(count - 1, _STARTS)).astype(np.int64))
    elsewhere = max(_step_at(starts, values).max(), _slope_at(starts, scaled, values).max())
    step = -half * math.log(_residual_squares(np.column_stack([np.ones(count), after]), values))
    if step >= smooth and elsewhere - step <= _LIKELIER:
        return True
    slope = float(_slope_at(np.array([int(np.argmax(after))]), scaled, values)[0])
    return slope >= smooth and elsewhere - slope <= _RIVAL


def _step_at(starts: Ints, values: Floats) -> Floats:
    """Return the log likelihood of a sudden change, for each block where it may happen."""
    return _likelihood((np.arange(len(values)) >= starts[:, None]).astype(np.float64), values)


def _slope_at(starts: Ints, scaled: Floats, values: Floats) -> Floats:
    """Return the best log likelihood of a gradual change, for each block where it may start."""
    began = scaled[starts - 1]
    best = np.full(len(starts), -np.inf)
    for share in _SLOPES:
        lasts = np.maximum(share * (1 - began), 1e-12)
        done = np.clip((scaled - began[:, None]) / lasts[:, None], 0.0, 1.0)
        best = np.maximum(best, _likelihood(done, values))
    return best - math.log(len(values)) / 2


def _likelihood(shapes: Floats, values: Floats) -> Floats:
    """Regress ``values`` on each curve over time; return the log likelihoods.

    ``shapes`` is f64[shapes, blocks].
    """
    centred, residuals = shapes - shapes.mean(axis=1, keepdims=True), values - values.mean()
    squares, products = (centred**2).sum(axis=1), centred @ residuals
    explained = np.where(squares > 1e-12, products**2 / np.maximum(squares, 1e-12), 0.0)
    unexplained = np.maximum((residuals**2).sum() - explained, 0.0) + _PRIOR_SQUARES
    return np.asarray(-len(values) / 2 * np.log(unexplained))


def part_of_day(number: int) -> int:
    """Return the part of a day for a judged recall, given its number within the day.

    Parts and recalls are numbered from 0.

    >>> [part_of_day(number) for number in (0, 4, 5, 34, 35, 200)]
    [0, 0, 1, 6, 7, 7]
    """
    return min(number // PART, PARTS - 1)


def pair_numbers(packs: Sequence[str]) -> Mapping[frozenset[str], int]:
    """Assign a number to each pair of versions, in order of the later version.

    Numbers begin at 1. A new version never changes the numbers of earlier pairs.
    """
    pairs = sorted(combinations(range(len(packs)), 2), key=lambda pair: (pair[1], pair[0]))
    return {frozenset((packs[a], packs[b])): number for number, (a, b) in enumerate(pairs, 1)}


class Earnings:
    """The rewards of each version, for a cheap test of a fall of the live version.

    Blocks are the days of the recalls, and parts of days. A block ends when the next block has a
    judgement, so adding a judgement takes constant time. The method ``may_have_fallen`` decides
    whether ``compare_periods`` is worth its cost; it does not decide whether there was a fall.

    Parameters
    ----------
    level
        The confidence level, between 0 and 1.

    Examples
    --------
    >>> earnings = Earnings()
    >>> for day in range(8):
    ...     earnings.add("first", day, 1.0)
    >>> for day in range(8, 16):
    ...     earnings.add("second", day, 0.0)
    >>> earnings.may_have_fallen(["first", "second"], "second")
    True
    """

    def __init__(self, level: float = 0.95) -> None:
        self._level = level
        self._packs: dict[str, _Earned] = {}

    @checked
    def add(self, pack: str, day: int, reward: float, recall: int = 0) -> None:
        """Add a judgement of a memory.

        Parameters
        ----------
        pack
            The hash of the pack that answered the recall.
        day
            The day of the recall as a number of days.
        reward
            The reward, scaled to 0..1.
        recall
            The number of the recall. Judgements with the same number belong to one recall.
        """
        self._packs.setdefault(pack, _Earned()).add(day, reward, recall)

    @checked
    def blocks(self, pack: str) -> int:
        """Count the completed blocks of recalls of a pack.

        Parameters
        ----------
        pack
            The hash of the pack.

        Returns
        -------
        int
            The number of parts; 0 for an unknown pack.
        """
        return self._packs[pack].parts.bets.count if pack in self._packs else 0

    @checked
    def may_have_fallen(self, packs: Sequence[str], live: str) -> bool:
        """Return whether the live pack may have lower rewards than an earlier pack.

        The method tests the hypothesis that their means are equal.

        Parameters
        ----------
        packs
            The hashes of the packs that have been live, in order.
        live
            The hash of the live pack.

        Returns
        -------
        bool
            Whether ``compare_periods`` may find a fall.
        """
        if live not in self._packs:
            return False
        judged = [hash for hash in self._packs if hash in packs]
        # Each pair has its own share of the error, and each kind of block has its own share of the pair's error.
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
    """The rewards of one version, in blocks of days and of parts of days."""

    def __init__(self) -> None:
        self.days, self.parts = _Blocks(), _Blocks()
        self._latest = (0, 0)
        self._number = 0

    def add(self, day: int, reward: float, recall: int) -> None:
        """Add a judgement of a recall to its day and to the part of that day."""
        same_day = self._latest[0] == day
        self._number = self._number + (self._latest[1] != recall) if same_day else 0
        self._latest = day, recall
        self.days.add((day, 0), reward)
        self.parts.add((day, part_of_day(self._number)), reward)


class _Blocks:
    """The bets on the blocks that have ended, and the rewards of the current block."""

    def __init__(self) -> None:
        self.bets = Bets()
        self._open: tuple[int, int] | None = None
        self._total, self._count = 0.0, 0

    def add(self, block: tuple[int, int], reward: float) -> None:
        """Add a reward; the first reward of a new block completes the previous block."""
        if self._open != block:
            if self._count:
                self.bets.add(self._total / self._count)
            self._open, self._total, self._count = block, 0.0, 0
        self._total += reward
        self._count += 1


def _residual_squares(design: Floats, values: Floats) -> float:
    """Return the residual sum of squares of a regression, with a constant prior added."""
    coefficients = np.linalg.lstsq(design, values, rcond=None)[0]
    return float(((values - design @ coefficients) ** 2).sum()) + _PRIOR_SQUARES


CONFOUNDED = (
    "The versions were live at different times, so a change of use or of questions at the time of the change would "
    "look the same."
)
"""The remark on confounding that accompanies every comparison of versions."""

_MIN_BLOCKS = 2
"""The minimum number of blocks of each version, because one block has no variance."""

_JUDGED_SHARE = 0.9
"""The share of judgements that come within the default horizon.

A recall counts after the time within which this share of the log's judgements came. Later
judgements are left out of all versions alike, so the share only decides the delay and the amount of
data left out.
"""

_WHOLE = Unit(1.0, 0)
"""The kind of blocks that the caller chose: they have all of the error, and report any fall."""

_IN_TURN = ("day", "session", "decision")
"""Clusters that end when the next begins.

Others, such as users, go on, so their comparison is a fixed-sample test.
"""

_MIXED_SAMPLERS = ("lot", "draft", "ab")
"""Samplers whose recalls also show items that other packs chose."""

# The types are fixed, so that a frame without rows has the same columns.
_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "pack_hash": pl.String,
    "live": pl.Boolean,
    "since": INSTANT,
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
    """The rewards of one version of a pack while it was live.

    Parameters
    ----------
    pack_hash
        The hash of the version.
    since
        The time of its first recall, in microseconds since 1970.
    blocks, recalls, judged
        The number of blocks, recalls and judged memories.
    earned
        The mean reward of a judged memory, scaled to 0..1. Each block has equal weight.
    low, high
        The anytime-valid interval of ``earned``.
    evidence
        For an earlier version, the evidence that the live version has lower rewards.
    needed
        The evidence from which on that difference is significant.
    begins
        Whether rewards fell at the change of versions; None if the evidence is not significant.
    difference
        The mean of the earlier version minus the mean of the live version, with the anytime-valid
        interval.
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

    @property
    def fell(self) -> bool:
        """Whether the live version has lower rewards since the version changed."""
        return bool(self.begins)


@dataclass(frozen=True)
class Periods:
    """The live version of a pack and the earlier versions, with their rewards.

    Parameters
    ----------
    live
        The live version; None if it has no judged recall.
    earlier
        The earlier versions, best first.
    notes
        Remarks on the assumptions and on data that were left out.

    Examples
    --------
    >>> period = Period("hash", 0, 3, 9, 12, 0.5, 0.2, 0.8)
    >>> Periods(period, (), ()).frame["earned"].to_list()
    [0.5]
    """

    live: Period | None
    earlier: tuple[Period, ...]
    notes: tuple[str, ...] = field(repr=False)

    @property
    def fallen(self) -> tuple[Period, ...]:
        """The earlier versions that are better than the live version, best first."""
        return tuple(period for period in self.earlier if period.fell)

    @property
    def frame(self) -> pl.DataFrame:
        """A row for each version with rewards and comparison; the live version is first."""
        rows = [
            (
                period.pack_hash,
                period is self.live,
                period.since,
                period.blocks,
                period.recalls,
                period.judged,
                period.earned,
                period.low,
                period.high,
                period.evidence,
                period.needed,
                period.fell if period.needed is not None else None,
                period.begins,
            )
            for period in (*((self.live,) if self.live else ()), *self.earlier)
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
    """Compare the rewards of a pack's live version with those of earlier versions.

    Parameters
    ----------
    slates
        The tables of a log, or a lab.
    packs
        The hashes of the packs that have been live. Recalls of other packs are left out.
    live
        The hash of the live pack; the last of ``packs`` by default.
    horizon
        The time that each recall has to get feedback, such as "7d". By default it is the time
        within which 90% of the log's judgements came. Younger recalls and later judgements are left
        out.
    missing
        What missing feedback counts as. "zero" is a reward of 0; "censor" and "inverse" leave the
        memory out. "bounds" is the reward that is least favourable to a fall: the maximum for the
        live version, the minimum for earlier versions.
    cluster
        The recalls that form one block: "day", "session", "decision" or a column of the decisions.
        By default blocks are days and, for falls by more than .15, groups of five judged recalls of
        a day (at most eight groups). The latest block counts when the next block begins.
    level
        The probability with which no fall is reported wrongly, over all comparisons and interim
        analyses of the log. The k-th comparison has 6 / (pi k)^2 of the error, as in
        ``memlab.verdict``.
    reward_range
        The minimum and maximum reward. Default: the range of the log.

    Returns
    -------
    Periods
        The live version, and the earlier versions with the best first.

    Raises
    ------
    InputError
        If the treatment of missing feedback must be set, or the tables of the log contradict each
        other.

    Notes
    -----
    The comparison is observational. Versions were live at different times, so a change of use or of
    queries at that time would look the same. A fall must begin at the change of versions and be 20
    times likelier than a trend.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memories = lab.remember("The deploy day is Friday.")
    >>> judgement = lab.feedback(lab.recall("When do we deploy?")[0], "success")
    >>> periods = compare_periods(lab, [lab.policies.pack.hash], cluster="day")
    >>> periods.live is None, periods.fallen  # the only day has not ended
    (True, ())
    """
    slates = slates if isinstance(slates, Slates) else slates.slates()
    bounds = (slates.reward_range or (0.0, 1.0)) if reward_range is None else reward_range
    unit = "day" if cluster is None else cluster
    settings = check_settings(horizon, missing, "snips", level, bounds, None, unit)
    window = horizon_micros(horizon) if horizon is not None else _default_horizon(slates)
    log = read_log(
        slates,
        horizon=window,
        zero=missing == "zero",
        reward_range=settings.reward_range,
        cluster=unit,
    )
    if missing is None:
        check_missing(log.silent, *log.reward_ends)
    notes = [CONFOUNDED, *log.notes]
    if log.open:
        notes.append(
            f"{count_of(log.open, 'recall')} left out, because the time for feedback (horizon) is not over."
        )
    live = packs[-1] if live is None else live
    hashes = _answering_packs(log, (*packs, live))
    recalls = _judged_memories(log, slates, settings.reward_range, missing == "bounds", hashes)
    if cluster is not None:
        return _compare_blocks(
            _form_blocks(recalls, unit in _IN_TURN), hashes, live, level, _WHOLE, notes
        )
    by_day = _compare_blocks(_form_blocks(recalls, True), hashes, live, level, BY_DAY, notes)
    if by_day.fallen:
        return by_day
    by_part = _compare_blocks(
        _form_blocks(_split_days(recalls), True), hashes, live, level, BY_PART, notes
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
    """Compare the active version's mean rewards in time blocks with those of other versions.

    Without a block of the active version, the result has no comparison.
    """
    present = set(blocks["pack_hash"])
    if live not in present:
        return Periods(None, (), tuple(notes))
    numbers = pair_numbers(hashes)
    own = blocks.filter(pl.col("pack_hash") == live)
    earlier = []
    for hash in hashes:
        if hash == live or hash not in present:
            continue
        other = blocks.filter(pl.col("pack_hash") == hash)
        error = 1 - level_of(numbers[frozenset((live, hash))], level)
        earlier.append(_compare_period(other, own, error * unit.share / 2, unit.gap))
    earlier.sort(key=lambda period: (-period.low, period.since))
    return Periods(_summarise_period(own, "high", (1 - level) / 2), tuple(earlier), tuple(notes))


def _answering_packs(log: Log, packs: Sequence[str]) -> tuple[str, ...]:
    """Return those of ``packs`` that answered recalls, in the order of their first recall.

    A pack that was live without answering a recall, such as the first pack of a lab, begins no
    comparison.
    """
    if "pack_hash" not in log.decisions.columns:
        raise InputError(
            "The log does not record which pack answered. Add the column pack_hash to the decisions."
        )
    decisions = (
        log.decisions.sort("at", maintain_order=True)
        if "at" in log.decisions.columns
        else log.decisions
    )
    first = decisions["pack_hash"].unique(maintain_order=True).to_list()
    return tuple(hash for hash in first if hash in packs)


def _default_horizon(slates: Slates) -> int | None:
    """Return the microseconds within which 90% of the judgements arrived.

    The result is None if the log has no times, or no judgement came after its recall.
    """
    tables = slates.decisions, slates.feedback
    if any("at" not in table.collect_schema() for table in tables):
        return None
    recalls = slates.decisions.select("decision", asked=pl.col("at").dt.epoch("us"))
    delays = slates.feedback.select("decision", came=pl.col("at").dt.epoch("us")).join(
        recalls, on="decision"
    )
    delay = (
        delays.select((pl.col("came") - pl.col("asked")).quantile(_JUDGED_SHARE, "higher"))
        .collect()
        .item()
    )
    return int(delay) if delay is not None and delay > 0 else None


def _judged_memories(
    log: Log,
    slates: Slates,
    reward_range: tuple[float, float],
    anything: bool,
    hashes: Sequence[str],
) -> pl.DataFrame:
    """Return a row for each judged memory, sorted by time.

    The columns are ``pack_hash``, ``sampler``, ``time``, ``cluster``, ``recall``, ``last``,
    ``part``, ``low`` and ``high``. ``low`` and ``high`` are the bounds of the reward, scaled to
    0..1. They differ if the reward is unknown and ``anything`` is true. ``last`` marks the rows of
    the cluster with the latest recall. Probes, and recalls that mix the items of several packs, are
    left out.
    """
    low, high = reward_range
    items = log.ids.with_columns(recall=pl.Series(log.recall), reward=pl.Series(log.reward)).filter(
        pl.Series(log.exposed)
    )
    exposures = slates.exposures.collect()
    if "probe" in exposures.columns:
        probes = exposures.filter(pl.col("probe")).select("decision", "memory_id")
        items = items.join(probes, on=["decision", "memory_id"], how="anti", maintain_order="left")
    reward = (pl.col("reward").fill_nan(None) - low) / (high - low)
    low_reward, high_reward = (
        (reward.fill_null(0.0), reward.fill_null(1.0)) if anything else (reward, reward)
    )
    items = items.select("recall", low=low_reward, high=high_reward).drop_nulls()
    columns = log.decisions.columns
    decisions = log.decisions.select(
        "pack_hash",
        sampler=optional_column(columns, "sampler", pl.String),
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
        .join(items, on="recall", maintain_order="left")
        .filter(
            pl.col("pack_hash").is_in(list(hashes)),
            ~pl.col("sampler").fill_null("").is_in(_MIXED_SAMPLERS),
        )
    )


def _split_days(recalls: pl.DataFrame) -> pl.DataFrame:
    """Split each version's days into parts with a few judged recalls each."""
    parts = recalls.with_columns(number=pl.col("recall").rle_id()).with_columns(
        part=((pl.col("number").rank("dense").over("pack_hash", "cluster") - 1) // PART).clip(
            upper_bound=PARTS - 1
        )
    )
    latest = [pl.col(name) == pl.col(name).last() for name in ("pack_hash", "part")]
    return parts.with_columns(last=pl.all_horizontal("last", *latest))


def _form_blocks(recalls: pl.DataFrame, in_turn: bool) -> pl.DataFrame:
    """Average recalls by time block: one row for each block of each pack version.

    A row has the means of ``low`` and ``high``. If clusters come ``in_turn``, a block ends when the
    next begins, and the latest block is left out.
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


def _summarise_period(blocks: pl.DataFrame, side: str, alpha: float) -> Period:
    """Summarise the rewards of one version from its blocks.

    The mean is computed from the column ``side``. Each end of the interval is wrong with probability
    ``alpha``.
    """
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


def _compare_period(other: pl.DataFrame, own: pl.DataFrame, alpha: float, gap: int) -> Period:
    """Compare an earlier version with the live version, and test whether the live one is worse.

    Each end of an interval is wrong with probability ``alpha``.
    """
    period = _summarise_period(other, "low", alpha)
    lowest, highest = Bets(other["low"].to_numpy()), Bets(own["high"].to_numpy())
    evidence = lowest.evidence_above(highest, gap)
    begins = None
    if min(period.blocks, own.height) >= _MIN_BLOCKS and evidence >= 1 / alpha:
        both = pl.concat(
            [
                other.select("time", "order", value="low", after=pl.lit(False)),
                own.select("time", "order", value="high", after=pl.lit(True)),
            ]
        ).sort("time", "order")
        begins = falls_at(*(both[name].to_numpy() for name in ("time", "value", "after")))
    low = difference_bounds(lowest, highest, alpha)[0]
    high = difference_bounds(Bets(other["high"].to_numpy()), Bets(own["low"].to_numpy()), alpha)[1]
    difference = period.earned - float(own["high"].mean()), low, high  # type: ignore[arg-type]
    return replace(
        period, evidence=evidence, needed=1 / alpha, begins=begins, difference=difference
    )
