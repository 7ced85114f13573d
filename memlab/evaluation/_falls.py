"""Whether what is earned has fallen: betting bounds, and whether it fell at one time or along a trend.

A block is what belongs together (a day, a session), and its value is the mean reward of what it showed, from 0 to 1.
If every block has a mean of at most m given those before it, then

    prod(1 + share (value / m - 1))        with 0 <= share < 1

is a nonnegative supermartingale that begins at 1: a bet that values lie above m cannot be expected to win. By Ville's
inequality it ever reaches 1 / alpha with probability alpha at most, so one may look after every block. So is a mixture
over shares (Waudby-Smith & Ramdas 2024). Nothing is assumed of how blocks vary but the range.

If the earlier version does not earn more than the live one, some m lies between the two means. The bet that the earlier
blocks lie above m, times the bet that the live ones lie below it, is such a process too. So the smallest product over
all m reaches 1 / alpha with probability alpha at most, however often it is looked at.

The confidence sequence of ``_sequence`` is for sums over recalls that may lie far below what is expected; its rates are
at most .2 of the range and would need some 40 blocks to see a fall from 1 to 0. These bets see it in 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from memlab.evaluation._sequence import level_of

__all__ = ["Bets", "Earnings", "difference_bounds", "falls_at", "lower_bound", "pair_numbers"]

Floats = NDArray[np.float64]

_SHARES: Floats = np.array([0.1, 0.3, 0.6, 0.9])
"""A small share is for a small fall over many blocks, a large one for a total fall in few."""

_CELLS = 200
"""Cells of 0..1: a bound is known to half a hundredth. Within a cell each bet is taken at the end where it is less."""

_GRID: Floats = np.linspace(0.0, 1.0, _CELLS + 1)

_EDGE = 1e-6

_LIKELIER = math.log(20)
"""How much likelier one shape of the fall must be than another: as 20 to 1."""

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
        self._above, self._below = np.zeros((len(_SHARES), _CELLS)), np.zeros((len(_SHARES), _CELLS))
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
    """Whether a fall is a step between the two sides, rather than a trend or a step at another time.

    ``times`` and ``values`` are f64[blocks] in the order of time, ``after`` says which blocks are on the later side. By
    the likelihood of normal errors, the step must be 20 times likelier than a line and than a parabola (less what its
    third number costs by Schwarz's rule), and no step at another time may be 20 times likelier than it.
    """
    count = len(values)
    if count < 4 or after.all() or not after.any():
        return False
    step = _residue(np.column_stack([np.ones(count), after]), values)
    scaled = (times - times[0]) / max(times[-1] - times[0], 1e-12)
    line = _residue(np.column_stack([np.ones(count), scaled]), values)
    curve = _residue(np.column_stack([np.ones(count), scaled, scaled**2]), values)
    half = count / 2
    smooth = -min(half * math.log(line), half * math.log(curve) + math.log(count) / 2)
    here = -half * math.log(step)
    totals, squares, sizes = np.cumsum(values)[:-1], float((values**2).sum()), np.arange(1.0, count)
    rest = values.sum() - totals
    others = squares - totals**2 / sizes - rest**2 / (count - sizes) + _SPREAD
    elsewhere = -half * math.log(float(others.min()))
    return here - smooth >= _LIKELIER and elsewhere - here <= _LIKELIER


def pair_numbers(packs: Sequence[str]) -> Mapping[frozenset[str], int]:
    """Number each pair of versions from 1, when the later one is first live: no version changes an earlier number."""
    pairs = sorted(combinations(range(len(packs)), 2), key=lambda pair: (pair[1], pair[0]))
    return {frozenset((packs[a], packs[b])): number for number, (a, b) in enumerate(pairs, 1)}


class Earnings:
    """What each version earned, judgement by judgement, and whether the live one may have fallen.

    Blocks are days of judgement, which end when the next begins, so a judgement costs constant work.
    ``may_have_fallen`` says when ``compare_periods`` is worth its work; it calls nothing a fall.
    """

    def __init__(self, level: float = 0.95) -> None:
        self._level = level
        self._bets: dict[str, Bets] = {}
        self._open: dict[str, tuple[int, float, int]] = {}

    def add(self, pack: str, block: int, reward: float) -> None:
        """Count one judgement of what a pack showed, in 0..1."""
        known, total, count = self._open.get(pack, (block, 0.0, 0))
        if known != block:
            self._bets.setdefault(pack, Bets()).add(total / count)
            total, count = 0.0, 0
        self._open[pack] = block, total + reward, count + 1

    def blocks(self, pack: str) -> int:
        """How many blocks of a pack have ended."""
        return self._bets[pack].count if pack in self._bets else 0

    def may_have_fallen(self, packs: Sequence[str], live: str) -> bool:
        """Whether the bet is won that ``live`` earns less than another of ``packs`` did; these in order of time."""
        if self.blocks(live) < 2:
            return False
        numbers = pair_numbers(packs)
        return any(
            self._bets[other].evidence_above(self._bets[live])
            >= 2 / (1 - level_of(numbers[frozenset((other, live))], self._level))
            for other in packs
            if other != live and self.blocks(other) >= 2
        )


def _residue(design: Floats, values: Floats) -> float:
    coefficients = np.linalg.lstsq(design, values, rcond=None)[0]
    return float(((values - design @ coefficients) ** 2).sum()) + _SPREAD
