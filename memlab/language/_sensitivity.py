"""What a score owes to each feature: how it moves when one of them changes and all else stays.

For one item (``Sensitivity``): the slope in each number, and the value when the feature is set to what is low or high
on the slate; a boolean is flipped, a string becomes each other word. For a whole slate (``SlateSensitivity``): each
feature in turn is made the same for every item, its median or its most common value, and the table shows how far scores
move, how much of the order turns and how many of the best are no longer among them.

Everything is one evaluation of columns for each feature: the changed items, or slates, are stacked.
Aggregates see the change: where an item is changed, its slate is the slate with that item changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from memlab.display import bar, table
from memlab.errors import InputError
from memlab.language._columns import DTYPES, ColumnProgram
from memlab.language._dag import Value
from memlab.language._row import RowProgram
from memlab.language._signature import Signature
from memlab.language._source import literal, shown
from memlab.printable import printable

__all__ = ["Scorer", "Sensitivity", "SlateSensitivity", "sensitivity", "slate_sensitivity", "turned_pairs"]

_STEP = 1e-3
"""The half width of a central difference, as a share of the feature's spread: small against the bends of a policy, and
large enough that the difference of two scores keeps ten digits."""
_LOW, _HIGH = 0.1, 0.9
_WORDS = 20


@dataclass(frozen=True)
class Change:
    """One feature set to another value, and what the policy then gives.

    ``at`` names it: ``10%`` or ``90%`` of the slate, ``flip`` or ``word``. ``change`` is ``result`` minus the value
    as it is (false and true count as 0 and 1); None when one of the two is null or a string.
    """

    feature: str
    value: Value
    to: Value
    at: str
    result: Value
    change: float | None


@dataclass(frozen=True)
class Sensitivity:
    """What changes the value of one item. ``slopes`` are per unit of each number, None where the value is null.

    ``changes`` are those that move it, furthest first, then those that do not.
    """

    policy: str
    value: Value
    slopes: Mapping[str, float | None]
    changes: tuple[Change, ...]

    @property
    def frame(self) -> pl.DataFrame:
        """One row a change: ``feature``, ``value``, ``to``, ``at``, ``result`` (as text), ``change``, ``slope``.

        A number with no slate, and so with nothing to be set to, has one row with its slope.
        """
        schema = dict.fromkeys(("feature", "value", "to", "at", "result"), pl.String)
        return pl.DataFrame(
            [(*texts, c and c.change, self.slopes.get(texts[0])) for texts, c in self._rows(literal)],
            schema={**schema, "change": pl.Float64, "slope": pl.Float64},
            orient="row",
        )

    def _rows(self, written: Any) -> list[tuple[tuple[Any, ...], Change | None]]:
        """The texts of each change, and the change; a feature that has a slope only has neither."""
        changed = {c.feature for c in self.changes}
        rows: list[tuple[tuple[Any, ...], Change | None]] = [
            ((c.feature, written(c.value), written(c.to), c.at, written(c.result)), c) for c in self.changes
        ]
        return rows + [((name, None, None, None, None), None) for name in self.slopes if name not in changed]

    def __repr__(self) -> str:
        lines = [f"{self._title}:"]
        width = max((len(c.feature) for c in self.changes), default=0)
        for (feature, value, to, at, result), c in self._rows(shown):
            if c is not None:
                lines.append(f"  {_signed(c.change):>10}  {feature:<{width}}  {value} -> {to} ({at}): {result}")
        slopes = [f"{name} {slope:.4g}" for name, slope in self.slopes.items() if slope]
        return printable("\n".join([*lines, *([f"slopes: {', '.join(slopes)}"] if slopes else [])]))

    def _repr_html_(self) -> str:
        sizes = [abs(c.change) for c in self.changes if c.change is not None and math.isfinite(c.change)]
        top = max(sizes, default=0.0)
        rows = []
        for texts, c in self._rows(shown):
            slope, change = self.slopes.get(texts[0]), None if c is None else c.change
            cells = [*[text or "" for text in texts], _signed(change), bar(change, top)]
            rows.append([*cells, "" if slope is None else f"{slope:.4g}"])
        return table(self._title, ("feature", "value", "set to", "", "result", "change", "", "slope"), rows)

    @property
    def _title(self) -> str:
        return f"{self.policy} gives {shown(self.value)}; one feature changed, all else as it is"


@dataclass(frozen=True)
class FeatureEffect:
    """One feature made the same for every item of a slate.

    ``moved`` is the mean absolute change of the score over items that have one before and after (None for strings);
    ``changed`` the share of items whose value changes at all; ``turned`` the share of pairs of items whose order turns,
    and ``lost`` how many of the best are no longer among them (None for strings).
    """

    feature: str
    to: Value
    moved: float | None
    changed: float
    turned: float | None
    lost: int | None


@dataclass(frozen=True)
class SlateSensitivity:
    """What the order of a slate owes to each feature.

    ``effects`` has what turns most first; ``top`` is the size of the head.
    """

    policy: str
    items: int
    top: int
    effects: tuple[FeatureEffect, ...]

    @property
    def frame(self) -> pl.DataFrame:
        """One row a feature: ``feature``, ``to``, ``moved``, ``changed``, ``turned``, ``lost``."""
        numbers = dict.fromkeys(("moved", "changed", "turned"), pl.Float64)
        return pl.DataFrame(
            [(e.feature, literal(e.to), *astuple(e)[2:]) for e in self.effects],
            schema={"feature": pl.String, "to": pl.String, **numbers, "lost": pl.Int64},
            orient="row",
        )

    def __repr__(self) -> str:
        heads, rows = self._table()
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [f"{self._title}:"]
        for row in (heads, *rows):
            cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  ".join(["", row[0].ljust(widths[0]), *cells[1:]]))
        return printable("\n".join(lines))

    def _repr_html_(self) -> str:
        top = max((e.turned for e in self.effects if e.turned is not None), default=0.0)
        heads, rows = self._table()
        drawn = [[*row, bar(e.turned, top)] for row, e in zip(rows, self.effects, strict=True)]
        return table(self._title, [*heads, ""], drawn)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [
                e.feature,
                shown(e.to),
                "" if e.moved is None else f"{e.moved:.4f}",
                f"{e.changed:.0%}",
                "" if e.turned is None else f"{e.turned:.1%}",
                "" if e.lost is None else str(e.lost),
            ]
            for e in self.effects
        ]
        return ["feature", "set to", "mean |change|", "changed", "pairs reordered", f"top {self.top} lost"], rows

    @property
    def _title(self) -> str:
        return f"{self.policy} over {self.items} items; one feature made the same for all"


class Scorer(NamedTuple):
    """What a policy gives for this: its name, two ways to run it, and its slot; ``order`` is as in ``columns``."""

    name: str
    row: RowProgram
    columns: ColumnProgram
    signature: Signature
    order: str

    def score(self, frame: pl.DataFrame, by: str | None = None) -> pl.Series:
        """One value for each row of a frame that ``inputs`` made."""
        return self.columns.run(frame, by, self.order, self.name)

    @property
    def types(self) -> dict[str, str]:
        """The type of each input, by name."""
        return {name: str(type) for name, type in sorted((name, type) for _, name, type in self.row.inputs)}

    def inputs(self, slate: pl.DataFrame) -> pl.DataFrame:
        """The slate's inputs under their own names, tests of sets computed, and the column that orders it."""
        if not slate.height:
            raise InputError("The slate is empty.")
        columns = [self.columns.input(slate, name, type).alias(name) for name, type in self.types.items()]
        if self.order in slate.columns and self.order not in self.types:
            columns.append(slate.get_column(self.order))
        return pl.DataFrame(columns) if columns else pl.DataFrame({self.order: np.arange(slate.height)})

    def given(self, item: Mapping[str, object]) -> pl.DataFrame:
        """One item as a frame of one row."""
        registers = self.row.run(item, None)
        columns = [pl.Series(name, [registers[i]], dtype=DTYPES[str(type)]) for i, name, type in self.row.inputs]
        return pl.DataFrame(columns) if columns else pl.DataFrame({self.order: [0]})

    def score_with(self, context: pl.DataFrame, row: int, name: str, values: Sequence[Value]) -> list[Value]:
        """The value of one row for each value of a feature: the slates with that change, stacked."""
        if not values:
            return []
        places = np.arange(len(values)) * context.height + row
        column = pl.concat([context.get_column(name)] * len(values))
        column = column.scatter(places, pl.Series(values, dtype=DTYPES[self.types[name]]))
        tiled = pl.concat([context] * len(values)).with_columns(
            column.alias(name), pl.Series("\x00slate", np.repeat(np.arange(len(values)), context.height))
        )
        return self.score(tiled, "\x00slate").gather(places).to_list()

    def options(self, name: str, value: Value, column: pl.Series | None) -> list[tuple[Value, str]]:
        """What a feature is set to, and what that is called."""
        type = self.types[name]
        if type == "bool":
            return [(not value, "flip")] if value is not None else [(False, "flip"), (True, "flip")]
        if type == "num":
            ends = None if column is None else _quantiles(column, _LOW, _HIGH)
            return [] if ends is None else [(ends[0], f"{_LOW:.0%}"), (ends[1], f"{_HIGH:.0%}")]
        declared = self.signature.inputs.get(name)
        words: Sequence[str] = declared.words if declared is not None else ()
        return [(word, "word") for word in words or (_common(column) if column is not None else ()) if word != value]


def sensitivity(scorer: Scorer, item: Mapping[str, object] | int, slate: pl.DataFrame | None) -> Sensitivity:
    """How the value of one item answers to each of its features; see ``Policy.sensitivity``."""
    base = None if slate is None else scorer.inputs(slate)
    ranges = bool(scorer.columns.aggregated)
    if isinstance(item, int):
        if base is None:
            raise InputError("An item given by its number is a row of a slate: pass the slate as well.")
        if not 0 <= item < base.height:
            raise InputError(f"The slate has {base.height} rows, from 0; there is no row {item}.")
        row, context = (item, base) if ranges else (0, base[item])
    elif ranges:
        raise InputError(f"{scorer.name} ranges over its slate: pass the slate and the number of the item's row.")
    else:
        row, context = 0, scorer.given(item)
    slopes: dict[str, float | None] = {}
    changes: list[Change] = []
    now = scorer.score(context)[row]
    for name, type in scorer.types.items():
        value = context.get_column(name)[row]
        column = None if base is None else base.get_column(name)
        step = _step(value, column) if type == "num" and value is not None else None
        options = scorer.options(name, value, column)
        tried = [to for to, _ in options] + ([value - step, value + step] if step is not None else [])
        results = scorer.score_with(context, row, name, tried)
        for (to, at), found in zip(options, results, strict=False):
            changes.append(Change(name, value, to, at, found, _difference(found, now)))
        if type == "num":
            rise = None if step is None else _difference(results[-1], results[-2])
            slopes[name] = None if rise is None or step is None else rise / ((value + step) - (value - step))
    changes.sort(key=lambda c: -_size(c, now))
    return Sensitivity(scorer.name, now, slopes, tuple(changes))


def slate_sensitivity(scorer: Scorer, slate: pl.DataFrame, *, top: int) -> SlateSensitivity:
    """What the order of a slate owes to each feature; see ``Policy.slate_sensitivity``."""
    if top < 1:
        raise InputError(f"top is at least 1; {top} is not.")
    base = scorer.inputs(slate)
    now = scorer.score(base)
    pairs = base.height * (base.height - 1) / 2
    effects = []
    for name, type in scorer.types.items():
        to = _typical(base.get_column(name), type)
        same = pl.Series(name, [to], dtype=DTYPES[type]).new_from_index(0, base.height)
        new = scorer.score(base.with_columns(same))
        changed = float(now.ne_missing(new).mean() or 0.0)  # type: ignore[arg-type]
        if now.dtype == pl.String:
            effects.append(FeatureEffect(name, to, None, changed, None, None))
            continue
        before, after = _ranked(now), _ranked(new)
        with np.errstate(invalid="ignore", over="ignore"):  # infinity less infinity is no gap
            gaps = np.abs(_numbers(new) - _numbers(now))
        moved = float(gaps[np.isfinite(gaps)].mean()) if np.isfinite(gaps).any() else 0.0
        turned = turned_pairs(before, after) / pairs if pairs else 0.0
        lost = len(set(before[:top].tolist()) - set(after[:top].tolist()))
        effects.append(FeatureEffect(name, to, moved, changed, turned, lost))
    effects.sort(key=lambda e: (-(e.turned or 0.0), -(e.moved or 0.0), -e.changed))
    return SlateSensitivity(scorer.name, base.height, min(top, base.height), tuple(effects))


def turned_pairs(before: npt.NDArray[np.intp], after: npt.NDArray[np.intp]) -> int:
    """How many pairs are the other way round in two orders of the same items, in O(n log n).

    Counts inversions digit by digit: two items that first differ in a bit of their new places are inverted when the
    one with the 1 is before the one with the 0.
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


def _step(value: float, column: pl.Series | None) -> float | None:
    """Half the width of a central difference, or None where a number has no neighbours."""
    if not math.isfinite(value):
        return None
    ends = None if column is None else _quantiles(column, _LOW, _HIGH)
    spread = 0.0 if ends is None else ends[1] - ends[0]
    # at 1e16 a step of one would not be a step: it stays above the spacing of numbers
    step = max(_STEP * (spread or max(abs(value), 1.0)), abs(value) * 1e-9)
    return step if math.isfinite(2.0 * step + abs(value)) else None


def _quantiles(column: pl.Series, *shares: float) -> list[float] | None:
    """Quantiles of the finite numbers of a column, as values that occur; None when there are none."""
    numbers = column.drop_nulls().to_numpy()
    numbers = numbers[np.isfinite(numbers)]
    return np.quantile(numbers, shares, method="nearest").tolist() if len(numbers) else None


def _common(column: pl.Series) -> list[Any]:
    """The most common values of a column, ties by the alphabet."""
    counted = column.drop_nulls().value_counts(name="count").sort(["count", column.name], descending=[True, False])
    return counted.get_column(column.name).head(_WORDS).to_list()


def _typical(column: pl.Series, type: str) -> Value:
    """The median that occurs, or the most common value; null when there is none."""
    found = _quantiles(column, 0.5) if type == "num" else _common(column)
    return found[0] if found else None


def _numbers(values: pl.Series) -> npt.NDArray[np.float64]:
    return np.asarray(values.cast(pl.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)


def _ranked(values: pl.Series) -> npt.NDArray[np.intp]:
    """Rows, best first."""
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


def _signed(change: float | None) -> str:
    return "" if change is None else f"{change:+.4f}"
