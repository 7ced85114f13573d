"""Every operation of the policy language: its types and its implementation for one value, a column and an array.

The result for one value and for a column agree on every bit. The scalar functions are therefore written with ``math``
and branches instead of Python's operators, which raise where IEEE 754 returns infinity or NaN. NumPy's exp, log and tanh
differ in the last digit, so arrays agree within a relative error of 1e-12. The exception is cancellation: log(tanh x) of
a large x loses 1e-11. All functions are total over float64 with infinities and NaN. Numbers have a total order, in which
NaN equals itself and is greater than every other number.

A *strict* operation returns null if any argument is null, and its functions never receive null. Each of the other
operations documents its own behaviour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add, and_, eq, inv, le, lt, mul, neg, not_, or_, sub, truediv
from typing import Any

import numpy as np
import polars as pl

from memlab.kernel.language.signature import Type


@dataclass(frozen=True)
class Primitive:
    """One operation with its types and implementations.

    `array` receives values only. A non-strict operation also has `masked`, which maps pairs of
    values and nulls to such a pair. The function `nullable` decides from the nullability of the
    arguments whether the result can be null.
    """

    takes: tuple[Type, ...]
    gives: Type
    scalar: Callable[..., Any]
    column: Callable[..., pl.Expr]
    array: Callable[..., Any]
    masked: Callable[..., Any] | None = None
    nullable: Callable[[Sequence[bool]], bool] = any

    @property
    def strict(self) -> bool:
        """True if a null argument makes the result null."""
        return self.masked is None


def divide(x: float, y: float) -> float:
    """Return x / y with the infinities and NaN of IEEE 754."""
    if y != 0.0:
        return x / y
    if x == 0.0 or x != x:
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def exp(x: float) -> float:
    """Return e to the power of x, or infinity on overflow."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def log(x: float) -> float:
    """Return the natural logarithm of x, or -infinity for 0 and NaN for negative numbers."""
    if x > 0.0:
        return math.log(x)
    return -math.inf if x == 0.0 else math.nan


def log1p(x: float) -> float:
    """Return ln(1 + x), or -infinity for x = -1 and NaN for x < -1."""
    if x > -1.0:
        return math.log1p(x)
    return -math.inf if x == -1.0 else math.nan


def sqrt(x: float) -> float:
    """Return the square root of x, or NaN if x is negative."""
    return math.sqrt(x) if x >= 0.0 else math.nan  # -0.0 stays -0.0


def power(x: float, y: float) -> float:
    """Return x to the power of y with the special cases of IEEE 754."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0.0 and math.fmod(y, 2.0) != 0.0 else math.inf
    # math.pow raises for a negative base with a fractional exponent (NaN) and for zero with a negative one (infinity).
    except ValueError:
        if x != 0.0:
            return math.nan
        return math.copysign(math.inf, x) if abs(math.fmod(y, 2.0)) == 1.0 else math.inf


def sign(x: float) -> float:
    """Return the sign of x as -1 or 1, or x itself if x is 0 or NaN."""
    return math.copysign(1.0, x) if x < 0.0 or x > 0.0 else x


def floor(x: float) -> float:
    """Return the largest integer <= x; infinities and NaN stay unchanged."""
    return math.copysign(float(math.floor(x)), x) if math.isfinite(x) else x


def ceil(x: float) -> float:
    """Return the smallest integer >= x; infinities and NaN stay unchanged."""
    return math.copysign(float(math.ceil(x)), x) if math.isfinite(x) else x


def equal(x: Any, y: Any) -> bool:
    """Return True if x equals y; NaN equals itself."""
    return bool(x == y or (x != x and y != y))


def less(x: float, y: float) -> bool:
    """Return True if x is less than y; NaN is greater than every other number."""
    return x < y or (y != y and x == x)


def less_equal(x: float, y: float) -> bool:
    """Return True if x is at most y; NaN is greater than every other number."""
    return x <= y or y != y


def minimum(x: float | None, y: float | None) -> float | None:
    """Return the smaller number, skipping NaN and null.

    Of two equal zeros the last is returned.
    """
    if x is None or (x != x and y is not None):
        return y
    if y is None or y != y:
        return x
    return x if x < y else y


def maximum(x: float | None, y: float | None) -> float | None:
    """Return the larger number, skipping NaN and null.

    Of two equal zeros the last is returned.
    """
    if x is None or (x != x and y is not None):
        return y
    if y is None or y != y:
        return x
    return x if x > y else y


def clamp(x: float | None, low: float | None, high: float | None) -> float | None:
    """Return x limited to the interval from low to high.

    NaN and null are returned as they are. A bound of NaN or null does not limit.
    """
    if x is None:
        return None
    if low is not None and x < low:
        return low
    return high if high is not None and x > high else x


def both(x: bool | None, y: bool | None) -> bool | None:
    """Return the three-valued conjunction, in which null and false is false."""
    if x is False or y is False:
        return False
    return None if x is None or y is None else True


def either(x: bool | None, y: bool | None) -> bool | None:
    """Return the three-valued disjunction, in which null or true is true."""
    if x is True or y is True:
        return True
    return None if x is None or y is None else False


def choose(test: bool | None, then: Any, otherwise: Any) -> Any:
    """Return `then` if the test is true, `otherwise` if it is false or null."""
    return then if test else otherwise


def is_null(x: Any) -> bool:
    """Return True if x is null."""
    return x is None


def if_null(x: Any, y: Any) -> Any:
    """Return y if x is null, otherwise x."""
    return y if x is None else x


def _column_if(test: pl.Expr, then: pl.Expr, otherwise: pl.Expr) -> pl.Expr:
    """Return a Polars expression that selects by a test; a null test selects `otherwise`."""
    return pl.when(test).then(then).otherwise(otherwise)


# Implementations for arrays. A mask is True where a value is null, and None if no value can be null.

Masked = tuple[Any, Any]


def _none(mask: Any) -> Any:
    """Return a null mask for use in logical functions: False if there is no mask."""
    return False if mask is None else mask


def _skip(choose: Callable[..., Any]) -> Callable[[Masked, Masked], Masked]:
    """Return the null-skipping form of a minimum or maximum."""

    def masked(a: Masked, b: Masked) -> Masked:
        (x, p), (y, q) = a, b
        p, q = _none(p), _none(q)
        return np.where(p, y, np.where(q, x, choose(x, y))), np.logical_and(p, q)

    return masked


def _clamp_masked(a: Masked, b: Masked, c: Masked) -> Masked:
    """Clamp values to bounds; a null bound becomes NaN and has no effect."""
    low, high = (np.where(_none(mask), np.nan, bound) for bound, mask in (b, c))
    return _array_clamp(a[0], low, high), a[1]


def _and_masked(a: Masked, b: Masked) -> Masked:
    """Return the three-valued conjunction of values with null masks."""
    (x, p), (y, q) = a, b
    p, q = _none(p), _none(q)
    false = np.logical_or(np.greater(~np.asarray(x), p), np.greater(~np.asarray(y), q))
    null = np.greater(np.logical_or(p, q), false)
    return ~np.logical_or(false, null), null


def _or_masked(a: Masked, b: Masked) -> Masked:
    """Return the three-valued disjunction of values with null masks."""
    (x, p), (y, q) = a, b
    p, q = _none(p), _none(q)
    true = np.logical_or(np.greater(x, p), np.greater(y, q))
    return true, np.greater(np.logical_or(p, q), true)


def _if_masked(c: Masked, a: Masked, b: Masked) -> Masked:
    """Select values by a test; where the test is null, select the last argument."""
    test = np.greater(c[0], _none(c[1]))
    if a[1] is None and b[1] is None:
        return np.where(test, a[0], b[0]), None
    return np.where(test, a[0], b[0]), np.where(test, _none(a[1]), _none(b[1]))


def _if_null_masked(a: Masked, b: Masked) -> Masked:
    """Replace nulls by the values of the second argument."""
    (x, p), (y, q) = a, b
    if p is None:
        return a
    return np.where(p, y, x), None if q is None else np.logical_and(p, q)


def _is_null_masked(a: Masked) -> Masked:
    """Return a mask of the nulls, which itself contains no nulls."""
    x, p = a
    return (np.zeros(np.shape(x), bool) if p is None else np.asarray(p)), None


def _array_is_null(x: Any) -> Any:
    return np.zeros(np.shape(x), bool)


def _array_equal(x: Any, y: Any) -> Any:
    return np.logical_or(np.equal(x, y), np.logical_and(np.isnan(x), np.isnan(y)))


def _array_less(x: Any, y: Any) -> Any:
    return np.logical_not(np.logical_or(np.greater_equal(x, y), np.isnan(x)))


def _array_less_equal(x: Any, y: Any) -> Any:
    return np.logical_or(np.less_equal(x, y), np.isnan(y))


def _array_clamp(x: Any, low: Any, high: Any) -> Any:
    return np.where(np.less(x, low), low, np.where(np.greater(x, high), high, x))


def _array_sign(x: Any) -> Any:
    return np.where(np.equal(x, 0.0), x, np.sign(x))


def _array_minimum(x: Any, y: Any) -> Any:
    # fmin takes a third of the time, but which of two equal zeros it returns depends on the CPU's vector unit.
    return np.where(np.logical_or(np.less(x, y), np.isnan(y)), x, y)


def _array_maximum(x: Any, y: Any) -> Any:
    return np.where(np.logical_or(np.greater(x, y), np.isnan(y)), x, y)


N: Type = "num"
B: Type = "bool"
S: Type = "str"

# ``same`` and ``iff`` are ``=`` on strings and on booleans.
PRIMITIVES: dict[str, Primitive] = {
    "+": Primitive((N, N), N, add, add, np.add),
    "-": Primitive((N, N), N, sub, sub, np.subtract),
    "*": Primitive((N, N), N, mul, mul, np.multiply),
    "/": Primitive((N, N), N, divide, truediv, np.divide),
    "neg": Primitive((N,), N, neg, neg, np.negative),
    "abs": Primitive((N,), N, abs, pl.Expr.abs, np.absolute),
    "exp": Primitive((N,), N, exp, pl.Expr.exp, np.exp),
    "log": Primitive((N,), N, log, pl.Expr.log, np.log),
    "log1p": Primitive((N,), N, log1p, pl.Expr.log1p, np.log1p),
    "sqrt": Primitive((N,), N, sqrt, pl.Expr.sqrt, np.sqrt),
    "tanh": Primitive((N,), N, math.tanh, pl.Expr.tanh, np.tanh),
    "pow": Primitive((N, N), N, power, pl.Expr.pow, np.power),
    "sign": Primitive((N,), N, sign, pl.Expr.sign, _array_sign),
    "floor": Primitive((N,), N, floor, pl.Expr.floor, np.floor),
    "ceil": Primitive((N,), N, ceil, pl.Expr.ceil, np.ceil),
    "clamp": Primitive(
        (N, N, N), N, clamp, pl.Expr.clip, _array_clamp, _clamp_masked, lambda null: null[0]
    ),
    "min": Primitive(
        (N, N), N, minimum, pl.min_horizontal, _array_minimum, _skip(_array_minimum), all
    ),
    "max": Primitive(
        (N, N), N, maximum, pl.max_horizontal, _array_maximum, _skip(_array_maximum), all
    ),
    "=": Primitive((N, N), B, equal, eq, _array_equal),
    "same": Primitive((S, S), B, eq, eq, np.equal),
    "iff": Primitive((B, B), B, eq, eq, np.equal),
    "<": Primitive((N, N), B, less, lt, _array_less),
    "<=": Primitive((N, N), B, less_equal, le, _array_less_equal),
    "not": Primitive((B,), B, not_, inv, np.logical_not),
    "and": Primitive((B, B), B, both, and_, np.logical_and, _and_masked),
    "or": Primitive((B, B), B, either, or_, np.logical_or, _or_masked),
    # Operations on any type; the entry of the result's type is a placeholder.
    "if": Primitive(
        (B, N, N), N, choose, _column_if, np.where, _if_masked, lambda null: null[1] or null[2]
    ),
    "null?": Primitive(
        (N,), B, is_null, pl.Expr.is_null, _array_is_null, _is_null_masked, lambda null: False
    ),
    "if-null": Primitive((N, N), N, if_null, pl.coalesce, lambda x, y: x, _if_null_masked, all),
}


AGGREGATES = ("slate-min", "slate-max", "slate-mean", "slate-rank", "min-max", "beta-sample")
"""Operations over all candidates of a slate."""
