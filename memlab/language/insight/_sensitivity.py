"""What a score owes to each feature: how it moves when one of them changes and all else stays.

For one item (``Sensitivity``): the slope in each number, and the value when the feature is set to what is low or high
on the slate; a boolean is flipped, a string becomes each other word. For a whole slate (``SlateSensitivity``): each
feature in turn is made the same for every item, its median or its most common value, and the table says how far scores
move, how much of the order turns and how many of the best are no longer among them.

Everything is one evaluation of columns for each feature: the changed items, or slates, stand below one another.
Aggregates see the change: where an item is changed, its slate is the slate with that item changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from memlab.errors import InputError
from memlab.language._columns import cast, find_column
from memlab.language._dag import Value
from memlab.language.insight._effects import Change, FeatureEffect, Sensitivity, SlateSensitivity

if TYPE_CHECKING:
    from memlab.language._policy import Policy

__all__ = ["sensitivity", "slate_sensitivity", "turned"]

_STEP = 1e-3
"""The half width of a central difference, as a share of the feature's spread: small against the bends of a policy, and
large enough that the difference of two scores keeps ten digits."""
_LOW, _HIGH = 0.1, 0.9
_WORDS = 20
_DTYPES: dict[str, Any] = {"num": pl.Float64, "bool": pl.Boolean, "str": pl.String}


def sensitivity(
    policy: Policy,
    item: Mapping[str, object] | int,
    slate: pl.DataFrame | None = None,
    *,
    order: str = "memory_id",
) -> Sensitivity:
    """How the value of one item answers to each of its features.

    ``item`` gives values by name, or with a ``slate`` the number of its row there. Without a slate a number has its
    slope only; a policy with aggregates needs the slate and the row. ``order`` is as in ``Policy.columns``.

    InputError for a record (take one field of it), or where the slate is missing.

    >>> from memlab.language import Input, Signature, compile_policy
    >>> slot = Signature("score", [Input("x"), Input("pinned", "bool")])
    >>> policy = compile_policy("(fn [x pinned] (if pinned 1 (* 0.5 x)))", slot)
    >>> sensitivity(policy, {"x": 1, "pinned": False}).frame.select("feature", "to", "change").rows()
    [('pinned', 'true', 0.5), ('x', None, None)]
    """
    policy._scalar("sensitivity")
    base = None if slate is None else _inputs(policy, slate, order)
    if isinstance(item, int):
        if base is None or not 0 <= item < base.height:
            raise InputError(
                "An item by number is a row of a slate: pass the slate."
                if base is None
                else f"The slate has {base.height} rows, from 0; there is no row {item}."
            )
        row, context = item, base if policy._columns.aggregated else base[item]
    else:
        if policy._columns.aggregated:
            raise InputError(f"{policy.name} ranges over its slate: pass the slate and the number of the item's row.")
        row, context = 0, _given(policy, item)
    if context.height == 1:
        row = 0
    types = _types(policy)
    slopes: dict[str, float | None] = {}
    changes: list[Change] = []
    now = policy.columns(context, order=order)[row]
    for name in policy.inputs:
        value = context.get_column(name)[row]
        column = None if base is None else base.get_column(name)
        step = _step(value, column) if types[name] == "num" and value is not None else None
        options = _options(policy, name, types[name], value, column)
        tried = [to for to, _ in options] + ([value - step, value + step] if step is not None else [])
        results = _with(policy, context, row, name, types[name], tried, order)
        changes += [
            Change(name, value, to, at, found, _difference(found, now))
            for (to, at), found in zip(options, results, strict=False)
        ]
        if types[name] == "num":
            rise = None if step is None else _difference(results[-1], results[-2])
            slopes[name] = None if rise is None or step is None else rise / ((value + step) - (value - step))
    changes.sort(key=lambda c: -_size(c, now))
    return Sensitivity(policy.name, now, slopes, tuple(changes))


def slate_sensitivity(
    policy: Policy, slate: pl.DataFrame, *, top: int = 10, order: str = "memory_id"
) -> SlateSensitivity:
    """What the order of a slate owes to each feature. Items rank by value, null and NaN last, ties as rows stand.

    InputError for a record: take one field of it.
    """
    policy._scalar("sensitivity")
    if top < 1:
        raise InputError(f"top is at least 1; {top} is not.")
    base = _inputs(policy, slate, order)
    now = policy.columns(base, order=order)
    ranked = _ranked(now)
    effects = []
    for name, type in _types(policy).items():
        column = base.get_column(name)
        to = _typical(column, type)
        new = policy.columns(
            base.with_columns(pl.Series(name, [to], dtype=_DTYPES[type]).new_from_index(0, base.height)), order=order
        )
        changed = float(now.ne_missing(new).mean() or 0.0)  # type: ignore[arg-type]
        if ranked is None:
            effects.append(FeatureEffect(name, to, None, changed, None, None))
            continue
        after = _ranked(new)
        assert after is not None
        with np.errstate(invalid="ignore", over="ignore"):  # infinity less infinity is no gap
            gaps = np.abs(_numbers(new) - _numbers(now))
            moved = float(gaps[np.isfinite(gaps)].mean()) if np.isfinite(gaps).any() else 0.0
        pairs = base.height * (base.height - 1) / 2
        effects.append(
            FeatureEffect(
                name,
                to,
                moved,
                changed,
                turned(ranked, after) / pairs if pairs else 0.0,
                len(set(ranked[:top].tolist()) - set(after[:top].tolist())),
            )
        )
    effects.sort(key=lambda e: (-(e.turned or 0.0), -(e.moved or 0.0), -e.changed))
    return SlateSensitivity(policy.name, base.height, min(top, base.height), tuple(effects))


def turned(before: npt.NDArray[np.intp], after: npt.NDArray[np.intp]) -> int:
    """How many pairs stand the other way round in two orders of the same items, in O(n log n).

    Counts inversions digit by digit: two items that first differ in a bit of their new places are inverted when the
    one with the 1 stands before the one with the 0.
    """
    size = len(before)
    places = np.empty(size, np.int64)
    places[after] = np.arange(size)
    places = places[before]
    total = 0
    for bit in reversed(range(max(size - 1, 0).bit_length())):
        ones = places >> bit & 1
        group = places >> (bit + 1)
        before_here = np.cumsum(ones) - ones
        first = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
        lengths = np.diff(np.append(first, size))
        total += int(((before_here - np.repeat(before_here[first], lengths)) * (1 - ones)).sum())
        places = places[np.argsort(places >> bit, kind="stable")]
    return total


def _types(policy: Policy) -> dict[str, str]:
    nodes = {str(node.value): str(node.type) for node in policy._row.nodes if node.op == "input"}
    return {name: nodes[name] for name in policy.inputs}


def _inputs(policy: Policy, slate: pl.DataFrame, order: str) -> pl.DataFrame:
    """The slate's inputs under their own names, tests of sets computed, and the column that orders it."""
    if not slate.height:
        raise InputError("The slate is empty.")
    columns = []
    for name, type in _types(policy).items():
        derived = policy.derived.get(name)
        if derived is None or name in slate.columns:
            series = slate.get_column(find_column(slate, name))
        else:
            series = derived.series({s: slate.get_column(find_column(slate, s)) for s in derived.sets})
        columns.append(cast(series, type, name).alias(name))
    if order in slate.columns and order not in policy.inputs:
        columns.append(slate.get_column(order))
    return pl.DataFrame(columns) if columns else pl.DataFrame({order: np.arange(slate.height)})


def _given(policy: Policy, item: Mapping[str, object]) -> pl.DataFrame:
    """One item as a frame of one row."""
    registers = policy._row.run(item, None)
    columns = [pl.Series(name, [registers[i]], dtype=_DTYPES[str(type)]) for i, name, type in policy._row.inputs]
    return pl.DataFrame(columns) if columns else pl.DataFrame({"memory_id": [0]})


def _with(
    policy: Policy, context: pl.DataFrame, row: int, name: str, type: str, values: list[Any], order: str
) -> list[Value]:
    """The value of one row for each value of a feature: the slates with that change, below one another."""
    if not values:
        return []
    size = context.height
    column = pl.concat([context.get_column(name)] * len(values))
    column = column.scatter(np.arange(len(values)) * size + row, pl.Series(values, dtype=_DTYPES[type]))
    tiled = pl.concat([context] * len(values)).with_columns(
        column.alias(name), pl.Series("\x00slate", np.repeat(np.arange(len(values)), size))
    )
    found = policy.columns(tiled, by="\x00slate", order=order)
    return found.gather(np.arange(len(values)) * size + row).to_list()


def _step(value: float, column: pl.Series | None) -> float | None:
    """Half the width of a central difference, or None where a number has no neighbours."""
    if not math.isfinite(value):
        return None
    spread = 0.0
    if column is not None:
        numbers = _finite(column)
        if len(numbers):
            low, high = _ends(numbers)
            spread = high - low
    # at 1e16 a step of one would not be a step: it stays above the spacing of numbers
    step = max(_STEP * (spread or max(abs(value), 1.0)), abs(value) * 1e-9)
    return step if math.isfinite(2.0 * step + abs(value)) else None


def _options(policy: Policy, name: str, type: str, value: Value, column: pl.Series | None) -> list[tuple[Value, str]]:
    """What a feature is set to, and what that is called."""
    if type == "bool":
        return [(not value, "flip")] if value is not None else [(False, "flip"), (True, "flip")]
    if type == "num":
        numbers = np.empty(0) if column is None else _finite(column)
        if not len(numbers):
            return []
        low, high = _ends(numbers)
        return [(low, f"{_LOW:.0%}"), (high, f"{_HIGH:.0%}")]
    declared = policy.signature.inputs.get(name)
    words: list[str] = list(declared.words) if declared is not None else []
    if not words and column is not None:
        words = _common(column)
    return [(word, "word") for word in words if word != value]


def _ends(numbers: npt.NDArray[np.float64]) -> tuple[float, float]:
    """What is low and what is high, as values that occur."""
    low, high = np.quantile(numbers, (_LOW, _HIGH), method="nearest").tolist()
    return low, high


def _finite(column: pl.Series) -> npt.NDArray[np.float64]:
    numbers = column.drop_nulls().to_numpy()
    return np.asarray(numbers[np.isfinite(numbers)], dtype=np.float64)


def _common(column: pl.Series) -> list[str]:
    """The most common strings of a column, ties by the alphabet."""
    counted = column.drop_nulls().value_counts(name="count").sort(["count", column.name], descending=[True, False])
    return counted.get_column(column.name).head(_WORDS).to_list()


def _typical(column: pl.Series, type: str) -> Value:
    """The median that occurs, or the most common value; null when there is none."""
    if type == "num":
        numbers = _finite(column)
        return float(np.quantile(numbers, 0.5, method="nearest")) if len(numbers) else None
    known = column.drop_nulls()
    if not len(known):
        return None
    if type == "bool":
        return bool(2 * int(known.sum()) > len(known))
    return _common(column)[0]


def _numbers(values: pl.Series) -> npt.NDArray[np.float64]:
    return np.asarray(values.cast(pl.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)


def _ranked(values: pl.Series) -> npt.NDArray[np.intp] | None:
    """Rows, best first; None when the values are strings."""
    if values.dtype == pl.String:
        return None
    numbers = _numbers(values)
    return np.argsort(-np.where(np.isnan(numbers), -np.inf, numbers), kind="stable")


def _difference(new: Value, old: Value) -> float | None:
    if new is None or old is None or isinstance(new, str) or isinstance(old, str):
        return None
    return float(new) - float(old)


def _size(change: Change, now: Value) -> float:
    if change.change is None:
        return math.inf if change.result != now else -1.0
    return abs(change.change) if not math.isnan(change.change) else math.inf
