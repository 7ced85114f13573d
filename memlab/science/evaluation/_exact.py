"""Sums of floats whose bits do not depend on the order of addition.

Adding floats rounds, so a sum depends on the order, and sums over partitions of a log would depend on
how the log was cut. Sums of integers do not. Two representations are used:

- *Fixed point*, for sums of each cluster. Each value is rounded once to a multiple of 2^-60, and
  kept as two 64-bit integers in columns of a frame.
- *Exact*, for sums of the whole log. A value is added without any rounding, as a superaccumulator
  does, and kept as a Python integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arrays import Floats, Ints

LOWER = "'"
"""The last character of the name of a column with lower parts."""

_UPPER_BITS, _LOWER_BITS = 20, 40
"""The bits of a fraction in the upper and the lower part: 2^-60 is 9e-19, far below the errors of statistics."""

_LIMIT = 2.0**42
"""The maximum sum of a column, 4e12: its upper part then needs 62 bits."""


def fix(values: Floats) -> Ints:
    """Convert values to fixed point: the upper parts, then the lower parts, int64[n, 2 columns].

    ``values`` is f64[n, columns]. Raises InputError if their sum could exceed the range.
    """
    if float(np.abs(values).sum(axis=0).max(initial=0.0)) > _LIMIT:
        raise _out_of_range()
    scaled = np.ldexp(values, _UPPER_BITS)
    upper = np.rint(scaled)
    return np.concatenate(
        [upper, np.rint(np.ldexp(scaled - upper, _LOWER_BITS))],
        axis=1,
        dtype=np.int64,
        casting="unsafe",
    )


def unfix(upper: Ints, lower: Ints) -> Floats:
    """Convert values from fixed point to floats."""
    return np.asarray(
        np.ldexp(upper.astype(np.float64), -_UPPER_BITS)
        + np.ldexp(lower.astype(np.float64), -_UPPER_BITS - _LOWER_BITS)
    )


def add_frames(frames: Sequence[pl.DataFrame], key: str) -> pl.DataFrame:
    """Add the integer columns of frames by a key; for the column ``at``, keep the minimum.

    The result is canonical: equal sums give equal frames, independently of the frames that were added.
    Its rows are sorted by the key, its columns by their names. Lower parts are within half of a
    unit of the upper part, and columns without a value are left out.
    """
    # Integers of 64 bits wrap around silently, so the largest ends are added in Python first.
    names = sorted({name for frame in frames for name in frame.columns} - {key, "at"})
    largest = sum(
        max((abs(int(end)) for end in _ends(frame, names)), default=0) for frame in frames
    )
    if len(frames) > 1 and largest > np.ldexp(_LIMIT, _UPPER_BITS):
        raise _out_of_range()
    earliest = [pl.col("at").min()] if any("at" in frame.columns for frame in frames) else []
    # Sums below half a unit have a lower part only.
    absent = {name[:-1] for name in names if name.endswith(LOWER)} - {*names}
    names = sorted({*names, *absent})
    added = (
        pl.concat(frames, how="diagonal")
        .with_columns(pl.lit(0, pl.Int64).alias(name) for name in sorted(absent))
        .group_by(key)
        .agg(*earliest, pl.col(names).sum())
        .sort(key)
    )
    half, unit = 1 << (_LOWER_BITS - 1), 1 << _LOWER_BITS
    lower = [name for name in names if name.endswith(LOWER)]
    carry = {name: (pl.col(name) + half) // unit for name in lower}
    added = added.with_columns(
        *(pl.col(name) - carry[name] * unit for name in lower),
        *(pl.col(name[:-1]) + carry[name] for name in lower),
    )
    used = added.select(pl.col(names).ne(0).any()).row(0, named=True) if names else {}
    kept_names = [name for name in names if used[name]]
    return added.select(key, *(["at"] if earliest else []), *kept_names).rechunk()


def _ends(frame: pl.DataFrame, names: Sequence[str]) -> list[Any]:
    """Return the minima, then the maxima, of the named columns that the frame contains; [] without rows."""
    columns = [name for name in names if name in frame.columns] if frame.height else []
    ends = frame.select(
        pl.col(columns).min().name.suffix("<"), pl.col(columns).max().name.suffix(">")
    )
    return list(ends.row(0)) if columns else []


def _out_of_range() -> InputError:
    """Return the error for sums that are too large for fixed-point numbers."""
    return InputError(
        f"Weights or rewards of a partition add up to more than {_LIMIT:.0e}, the limit of exact sums. Check the "
        "propensities near 0, or scale the rewards."
    )


_SCALE = 1127
"""Exact sums are integer multiples of 2^-1127: the smallest positive float is 2^-1074, with a mantissa of 53 bits."""


def exact_sums(values: Floats) -> tuple[int, ...]:
    """Return exact sums of columns of finite values f64[n, columns], in units of 2^-1127."""
    mantissa, exponent = np.frexp(values)
    # Halves of 27 and 26 bits, so that sums of 2^26 values are integers that a float holds exactly.
    whole = np.ldexp(mantissa, 27)
    high = np.floor(whole)
    low = np.ldexp(whole - high, 26)
    first = int(exponent.min(initial=0))
    span = int(exponent.max(initial=0)) - first + 1
    bins = (exponent - first) + span * np.arange(values.shape[1])
    highs, lows = (
        np.bincount(bins.ravel(), part.ravel(), span * values.shape[1]).reshape(-1, span)
        for part in (high, low)
    )
    return tuple(
        sum(
            ((int(upper) << 26) + int(lower)) << (shift + first - 53 + _SCALE)
            for shift, (upper, lower) in enumerate(zip(row_high, row_low, strict=True))
            if upper or lower
        )
        for row_high, row_low in zip(highs.tolist(), lows.tolist(), strict=True)
    )


def round_exact(total: int, divisor: int = 1) -> float:
    """Divide an exact sum by a number, and return the nearest float."""
    return total / (divisor << _SCALE)
