"""Aggregates over a slate, and execution of a graph on NumPy arrays.

Arrays serve a few hundred candidates, for which the fixed cost of a Polars query would dominate.

The graph becomes a flat list of steps, each of which applies a function to numbered registers. Which registers can contain
nulls is known before a run, so masks cost nothing without nulls. One program is cached for each set of inputs with nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arrays import Flags, Floats, Values
from memlab.kernel.language.graph import Node, reachable
from memlab.kernel.language.primitives import AGGREGATES, PRIMITIVES
from memlab.kernel.language.signature import Derived

# Aggregates over a slate: one float64 kernel in NumPy, which every back end uses as a stage of the graph.
#
# NaN and null are skipped. Sums run in the order of memory ids, one term after another, so a value depends neither on the
# order of the rows nor on the CPU's vector width. Zeros are made positive first, so that an extreme does not depend on the
# order either.
#
# ======================== ==============================================================================
# ``slate-min max mean``   the same for each row of the slate; null if no row has a number
# ``slate-rank``           1 for the largest value, ties by id; NaN and null are returned as they are
# ``min-max``              (x - min) / (max - min), 0 if all are equal; NaN and null are returned as they are
# ======================== ==============================================================================


class Slates:
    """The assignment of rows to slates.

    `codes` are integers, one per row. Without them, all rows form one slate. `order` are the memory
    ids.
    """

    def __init__(
        self,
        size: int,
        *,
        codes: Values | None = None,
        order: Values | None = None,
    ) -> None:
        self.size, self.codes, self.order = size, codes, order

    @cached_property
    def permutation(self) -> npt.NDArray[np.intp] | None:
        """The row positions sorted by slate, then by id, or None if rows are sorted already."""
        keys = [k for k in (self.codes, self.order) if k is not None]
        if not keys or self.size < 2:
            return None
        if len(keys) == 1:
            key = keys[0]
            return None if bool(np.all(key[1:] >= key[:-1])) else np.argsort(key, kind="stable")
        codes, order = keys
        step = codes[1:] == codes[:-1]
        if bool(np.all((codes[1:] > codes[:-1]) | (step & (order[1:] >= order[:-1])))):
            return None
        return np.lexsort((order, codes))

    @cached_property
    def dense(self) -> npt.NDArray[np.intp]:
        """The slate number of each row, in permuted order."""
        if self.codes is None or self.size == 0:
            return np.zeros(self.size, np.intp)
        codes = self.codes if self.permutation is None else self.codes[self.permutation]
        changes = np.concatenate(([False], codes[1:] != codes[:-1]))
        return np.cumsum(changes, dtype=np.intp)

    @cached_property
    def starts(self) -> npt.NDArray[np.intp]:
        """The index of each slate's first row, in permuted order."""
        return (
            np.flatnonzero(np.concatenate(([True], self.dense[1:] != self.dense[:-1])))
            if self.size
            else self.dense
        )


def aggregate(
    op: str, values: Floats, nulls: Flags | None, slates: Slates
) -> tuple[Floats, Flags | None]:
    """Compute the aggregate `op` of each row's slate, with a mask of nulls."""
    size = slates.size
    if size == 0:
        return np.empty(0), None
    # Callers have switched NumPy's warnings off. Doing so for each aggregate would cost microseconds every time.
    if op == "min-max" and nulls is None and (scaled := scale_min_max(values, slates)) is not None:
        return scaled, None
    if op in _ONE_SLATE and slates.codes is None and values.shape == (size,):
        return _of_one_slate(op, values, nulls, slates)
    order = slates.permutation
    dense, starts = slates.dense, slates.starts
    ordered = (values if order is None else values[order]) + 0.0
    missing = np.isnan(ordered)
    if nulls is not None:
        missing = missing | (nulls if order is None else nulls[order])
    count = np.bincount(dense, weights=~missing, minlength=len(starts))
    empty = count == 0.0
    with np.errstate(all="ignore"):
        if op == "slate-mean":
            total = np.bincount(
                dense, weights=np.where(missing, 0.0, ordered), minlength=len(starts)
            )
            return _copy_to_rows(total / count, empty, dense, order)
        if op == "slate-rank":
            ranked = np.lexsort((np.where(missing, np.inf, -ordered), missing, dense))
            rank = np.empty(size)
            rank[ranked] = np.arange(size) - starts[dense] + 1.0
            return _in_row_order(np.where(missing, np.nan, rank), order), nulls
        low = np.minimum.reduceat(np.where(missing, np.inf, ordered), starts)
        if op == "slate-min":
            return _copy_to_rows(low, empty, dense, order)
        high = np.maximum.reduceat(np.where(missing, -np.inf, ordered), starts)
        if op == "slate-max":
            return _copy_to_rows(high, empty, dense, order)
        assert op == "min-max"
        low_of_row, high_of_row = low[dense], high[dense]
        scaled = np.where(
            low_of_row == high_of_row, 0.0, (ordered - low_of_row) / (high_of_row - low_of_row)
        )
        return _in_row_order(np.where(missing, np.nan, scaled), order), nulls


# The aggregates with a fast path for a single slate; a mean has no ufunc.
_ONE_SLATE = {"slate-min": np.minimum, "slate-max": np.maximum, "slate-mean": None}


def _of_one_slate(
    op: str, values: Floats, nulls: Flags | None, slates: Slates
) -> tuple[Floats, Flags | None]:
    """Compute an aggregate over a single slate, as a constant for each row, and the null mask.

    The mask is None unless all values are missing. A recall has a single slate. This path takes a fifth of the time
    of the general path.
    """
    missing = np.isnan(values)
    if nulls is not None:
        missing |= nulls
    present = ~missing
    count = int(np.count_nonzero(present))
    extreme = _ONE_SLATE[op]
    if extreme is None:
        order = slates.permutation
        if order is not None:
            values, present = values[order], present[order]
        # A cumulative sum adds one term after another, as the general case does.
        result = np.where(present, values + 0.0, 0.0).cumsum()[-1] / np.float64(count)
    else:
        result = (
            extreme.reduce(values, where=present, initial=np.inf if op == "slate-min" else -np.inf)
            + 0.0
        )
    return np.full(slates.size, result), None if count else np.ones(slates.size, dtype=np.bool_)


def scale_min_max(values: Floats, slates: Slates) -> Floats | None:
    """Scale one slate's values by ``min-max``, excluding nulls.

    A recall has such a slate; 300 values take 4 microseconds.

    The result is None if a value is NaN, if the rows belong to several slates, or if one value
    represents all rows.
    """
    if slates.codes is not None or values.shape != (slates.size,):
        return None
    low, high = np.minimum.reduce(values) + 0.0, np.maximum.reduce(values) + 0.0
    if low == high:
        return np.zeros(len(values))
    if low != low:
        return None
    if low == 0.0:
        values = values + 0.0  # -0.0 minus 0.0 would be -0.0.
    scaled: Floats = values - low
    scaled /= high - low
    return scaled


# Thompson sampling: each item draws a number from its beta distribution, and the largest wins. The chance that an item
# wins is the integral of its density times the distribution functions of the others, so a draw by these chances is the
# same as the draws themselves, and the logged probability is exact.

_BETA_BOUNDS = 1e-6, 1e12
"""Bounds of a parameter, beyond which the tails exceed the range of float64. A lab counts feedback, from 0 to millions."""

_BETA_NODES = 4_000
"""Minimum number of nodes of the integral. The error is 2e-7 for 20 different items and 5e-5 for 300, in 3 and 230
ms."""


def beta_chances(
    columns: Sequence[tuple[Floats, Flags | None]], slates: Slates
) -> tuple[Floats, Flags | None]:
    """Return the chance that each row's draw from Beta(a, b) is the largest of its slate.

    The chance is null if a parameter is null, not positive or not finite. Such a row does not take part.
    """
    valid = np.ones(slates.size, np.bool_)
    for values, nulls in columns:
        valid &= np.isfinite(values) & (values > 0.0)
        if nulls is not None:
            valid &= ~nulls
    pairs = np.clip(np.column_stack([values for values, _ in columns]), *_BETA_BOUNDS)
    result = np.zeros(slates.size)
    order = np.arange(slates.size) if slates.permutation is None else slates.permutation
    for rows in np.split(order, slates.starts[1:]):
        chosen = rows[valid[rows]]
        if len(chosen):
            result[chosen] = _chances_of_largest(pairs[chosen])
    return result, None if valid.all() else ~valid


def _chances_of_largest(pairs: Floats) -> Floats:
    """Return, for each row (a, b) of ``pairs``, the chance that its draw from Beta(a, b) is the largest."""
    distinct, kind, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    a, b = distinct[:, :1], distinct[:, 1:]
    # On the scale of log(x / (1 - x)) every density is smooth, has its mode at log(a / b), and falls as exp(a y) and
    # exp(-b y). The nodes are densest at the modes.
    centre, width = np.log(a / b), 9.0 * np.sqrt(1.0 / a + 1.0 / b)
    steps = np.linspace(0.0, 1.0, max(16, _BETA_NODES // (2 * len(distinct)))) ** 2
    nodes = np.unique([centre - (width + 40.0 / a) * steps, centre + (width + 40.0 / b) * steps])
    density = a * nodes - (a + b) * np.logaddexp(0.0, nodes)
    density = np.exp(density - density.max(axis=1, keepdims=True))
    gaps = np.diff(nodes) / 2.0
    below = np.cumsum((density[:, 1:] + density[:, :-1]) * gaps, axis=1)
    total = below[:, -1:]
    below = np.log(np.maximum(np.pad(below / total, ((0, 0), (1, 0))), 1e-300))
    wins = density / total * np.exp((counts[:, None] * below).sum(axis=0) - below)
    chances = ((wins[:, 1:] + wins[:, :-1]) * gaps).sum(axis=1)
    result: Floats = (chances / (counts * chances).sum())[kind.reshape(-1)]
    return result


def _in_row_order(values: Floats, order: npt.NDArray[np.intp] | None) -> Floats:
    """Return permuted values in the original order of rows."""
    if order is None:
        return values
    result = np.empty_like(values)
    result[order] = values
    return result


def _copy_to_rows(
    values: Floats, empty: Flags, dense: npt.NDArray[np.intp], order: npt.NDArray[np.intp] | None
) -> tuple[Floats, Flags | None]:
    """Copy the aggregate and null flag of each group (slate) of rows to its rows.

    ``dense`` has the group of each row in the order ``order``. The null mask is None if no group is
    empty.
    """
    result = _in_row_order(values[dense], order)
    if not empty.any():
        return result, None
    null = empty[dense]
    if order is not None:
        restored = np.empty_like(null)
        restored[order] = null
        null = restored
    return result, null


Column = npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike | None]
Registers = list[Any]
Ready = tuple[Any, Flags | None]
Step = tuple[int, Callable[..., Any], int, int, int, int]
"""One step: how the function is applied, the function, the register that it writes and up to three that it reads."""

# How a function is applied. `_BY_ITSELF` functions read and write the registers themselves, masks included.
_UNARY, _BINARY, _TERNARY, _MIN_MAX, _SAME_MASK, _BY_ITSELF = range(6)


class Coded:
    """A column of words as codes into a table, -1 for null.

    Comparing codes takes a tenth of the time of strings.
    """

    __slots__ = ("_code_of", "codes", "words")

    def __init__(self, codes: Values, words: Sequence[str], code_of: Mapping[str, int]) -> None:
        self.codes, self.words, self._code_of = codes, words, code_of

    def __len__(self) -> int:
        return len(self.codes)

    def equal(self, word: str) -> Flags:
        """Return a mask of the rows that contain the given word."""
        return np.asarray(self.codes == self._code_of.get(word, _NO_CODE))

    def array(self) -> Values:
        """Return the words of the column as an array."""
        return np.asarray(np.array([*self.words, None], dtype=object)[self.codes])


_NO_CODE = -3
"""A code that no word and no null has, for words outside the table."""

# NumPy types, placeholders for nulls, and the aggregates that have one value per slate.
_DTYPES: dict[str, Any] = {"num": np.dtype(np.float64), "bool": np.dtype(np.bool_), "str": None}
_BLANK: dict[str | None, Any] = {
    "num": np.nan,
    "bool": False,
    "str": "",
    None: np.nan,
    "record": None,
}
_PER_SLATE = ("slate-min", "slate-max", "slate-mean")


class ArrayProgram:
    """A graph as a program over arrays.

    `run` returns values and nulls, or None if there is no null. A record has one pair per field. The inputs in `coded` may
    be passed as `Coded`, because they are words that are only compared with constants. The caller has the values of the
    nodes in `computed`, by index, which are inputs too.
    """

    def __init__(
        self, root: Node, derived: Mapping[str, Derived], computed: Container[int] = ()
    ) -> None:
        self.derived, self.computed = derived, computed
        self.nodes = reachable(root, ends=computed)
        self.slot = {node.index: i for i, node in enumerate(self.nodes)}
        self.inputs = [
            (i, str(n.value), str(n.value).replace("-", "_"), _DTYPES[str(n.type)])
            for i, n in enumerate(self.nodes)
            if n.op == "input" or n.index in computed
        ]
        constants = [
            _constant(n.value if n.constant and n.value is not None else _BLANK[n.type])
            for n in self.nodes
        ]
        # One register per node, and a last one for the slates.
        self.values: Registers = [*constants, None]
        self.masks: Registers = [
            *(True if n.constant and n.value is None else None for n in self.nodes),
            None,
        ]
        results = root.args if root.op == "record" else (root,)
        self.results = [
            (
                self.slot[r.index],
                _DTYPES[str(r.type)],
                r.op not in ("input", "const") and r.type != "str",
            )
            for r in results
        ]
        self.programs: dict[int, list[Step]] = {}
        self.aggregates = any(n.op in AGGREGATES for n in self.nodes)
        self.coded = _only_compared(root, self.nodes)

    def run(
        self, columns: Mapping[str, Column], order: Values | None
    ) -> list[tuple[Values, Flags | None]]:
        """Run the program on named columns.

        Names may have hyphens or underscores, and columns may be any sequences.
        """
        if order is not None and not isinstance(order, np.ndarray):
            raise InputError(f"order must be an array of memory ids, not {type(order).__name__}.")
        # The first column determines the number of rows; without inputs the other arguments do.
        size, ready = -1, []
        for _, name, snake, dtype in self.inputs:
            column: Any = columns.get(name)
            if column is None:
                derived = self.derived.get(name)
                column = columns.get(snake) if derived is None else derived.array(columns)
                if column is None:
                    raise UnknownName("column", name, columns)
            values, mask = _ready(column, dtype)
            if size < 0:
                size = len(values)
            elif len(values) != size:
                raise InputError(
                    f"Column {name} has {len(values)} rows, but another has {size}. Pass columns of equal length."
                )
            ready.append((values, mask))
        if size < 0:
            size = _size(columns, order)
        if self.aggregates and order is not None and len(order) != size:
            raise InputError(
                f"order has {len(order)} rows, but the input columns have {size}. Pass one memory id per row."
            )
        return self.compute(ready, size, order)

    def compute(
        self, ready: Sequence[Ready], size: int, order: Values | None, quiet: bool = False
    ) -> list[tuple[Values, Flags | None]]:
        """Run the program on arrays in the order of `inputs`, with null masks.

        A mask without nulls costs as much as a mask with nulls, so callers should pass None. `quiet` is True if the
        caller has switched warnings off.
        """
        # Bit i of `nullable` is set if input i has nulls; each combination has a program of its own.
        values, masks = self.values.copy(), self.masks.copy()
        nullable, bit = 0, 1
        for (i, name, _, dtype), (column, mask) in zip(self.inputs, ready, strict=True):
            if type(column) is Coded:
                column = column if name in self.coded else column.array()
            elif column.dtype is not dtype:
                column = np.asarray(column, dtype)
            values[i] = column
            if mask is not None:
                masks[i] = mask
                nullable |= bit
            bit += bit
        program = self.programs.get(nullable)
        if program is None:
            program = self.programs[nullable] = self.compile(nullable)
        if self.aggregates:
            values[-1] = Slates(size, order=None if order is None else np.asarray(order))
        if size and program and quiet:
            execute(program, values, masks)
        elif size and program:
            with np.errstate(all="ignore"):
                execute(program, values, masks)
        if len(self.results) == 1:
            i, dtype, computed = self.results[0]
            return [_result(values[i], masks[i], dtype, computed, size)]
        return [
            _result(values[i], masks[i], dtype, computed, size)
            for i, dtype, computed in self.results
        ]

    def compile(self, nullable: int) -> list[Step]:
        """Return the program steps for a bit mask of the inputs that contain nulls."""
        # A step with masks is used only where an argument can be null.
        steps: list[Step] = []
        null = [n.constant and n.value is None for n in self.nodes]
        for position, (i, *_) in enumerate(self.inputs):
            null[i] = bool(nullable >> position & 1)
        for i, node in enumerate(self.nodes):
            op = node.op
            if op in ("input", "const", "record") or node.index in self.computed:
                continue
            args = [self.slot[a.index] for a in node.args]
            missing = [null[a] for a in args]
            primitive = PRIMITIVES.get(op)
            if primitive is None:
                null[i] = op in _PER_SLATE or (
                    op in ("in", "min-max", "slate-rank") and any(missing)
                )
                steps.append(self._slate_step(node, i, args, missing))
                continue
            null[i] = primitive.nullable(missing)
            if primitive.masked is not None and any(missing):
                steps.append(_masked(primitive.masked, i, args))
                continue
            steps.append(
                self._word_step(node, i, args)
                or _build_plain_step(_array_function(op, node.args), i, args)
            )
            if null[i]:
                steps.append(_strict_mask(i, [a for a, m in zip(args, missing, strict=True) if m]))
        return steps

    def _word_step(self, node: Node, i: int, args: list[int]) -> Step | None:
        """Return the step that compares a coded string input with a constant, or None for other nodes."""
        if node.op != "same" or len(args) != 2:
            return None
        for side, other in ((0, 1), (1, 0)):
            word = node.args[other].value
            if (
                node.args[side].op == "input"
                and str(node.args[side].value) in self.coded
                and isinstance(word, str)
            ):
                return _UNARY, _equals(word), i, args[side], 0, 0
        return None

    def _slate_step(self, node: Node, i: int, args: list[int], missing: list[bool]) -> Step:
        """Build the instruction of a table lookup, a membership test or an aggregate.

        ``missing`` says which arguments may have nulls.
        """
        last = len(self.nodes)
        other = _slate_function(node)
        if node.op == "min-max" and not any(missing):
            return _MIN_MAX, other, i, args[0], last, 0
        return _masked(other, i, [*args, last])


def execute(program: list[Step], values: Registers, masks: Registers) -> None:
    """Run the steps on the registers in order."""
    for kind, function, i, a, b, c in program:
        # The most frequent kinds come first, because this loop runs for every recall.
        if kind == _BINARY:
            values[i] = function(values[a], values[b])
        elif kind == _UNARY:
            values[i] = function(values[a])
        elif kind == _TERNARY:
            values[i] = function(values[a], values[b], values[c])
        elif kind == _SAME_MASK:
            masks[i] = masks[a]
        elif kind == _MIN_MAX:
            scaled = scale_min_max(values[a], values[b])
            values[i], masks[i] = (
                function((values[a], None), (values[b], None)) if scaled is None else (scaled, None)
            )
        else:
            function(values, masks)


def _equals(word: str) -> Callable[[Any], Flags]:
    """Return a function that compares a coded or plain column with a constant word."""
    compare = PRIMITIVES["same"].array
    return lambda column: column.equal(word) if type(column) is Coded else compare(column, word)


def _only_compared(root: Node, nodes: Sequence[Node]) -> frozenset[str]:
    """Return the string inputs that a policy only compares with string constants."""
    words = {str(node.value) for node in nodes if node.op == "input" and node.type == "str"}
    for node in nodes:
        plain = node.op == "same" and any(
            arg.op == "const" and isinstance(arg.value, str) for arg in node.args
        )
        if not plain:
            words -= {str(arg.value) for arg in node.args if arg.op == "input"}
    return frozenset(words - {str(root.value)} if root.op == "input" else words)


def _ready(column: Any, dtype: Any) -> Ready:
    """Convert a column to an array of `dtype` and a null mask, or None without nulls."""
    mask = None
    if type(column) is tuple:
        column, mask = column
        if mask is not None:
            mask = np.asarray(mask, np.bool_)
            mask = mask if mask.any() else None
    if type(column) is np.ndarray and column.dtype is dtype:
        return column, mask
    return np.asarray(column, dtype), mask


def _constant(value: Any) -> Any:
    """Return a float as a zero-dimensional array, and any other value unchanged.

    Converting a number once is faster than in every run.
    """
    return np.asarray(value) if isinstance(value, float) else value


def _result(
    values: Any, mask: Any, dtype: Any, computed: bool, size: int
) -> tuple[Values, Flags | None]:
    """Broadcast the values and the null mask of a result to all rows; the mask is None without a null.

    Values that are not ``computed``, such as inputs and constants, are copied.
    """
    if mask is not None:
        mask = np.array(np.broadcast_to(mask, size)) if np.any(mask) else None
    if computed and size and type(values) is np.ndarray and values.shape == (size,):
        return values, mask
    return np.array(
        np.broadcast_to(np.asarray(values, dtype), size) if size else np.empty(0, dtype)
    ), mask


def _size(columns: Mapping[str, Column], order: Values | None) -> int:
    """Return the row count, from the order or a column, for a policy that reads no inputs."""
    if order is not None:
        return len(order)
    for column in columns.values():
        return len(np.asarray(column[0] if type(column) is tuple else column))
    raise InputError(
        "A policy without inputs needs a column or an order to know how many rows there are."
    )


def _finite(node: Node) -> bool:
    """Return True if a node is a constant number other than NaN."""
    return node.constant and isinstance(node.value, float) and node.value == node.value


def _array_function(op: str, args: tuple[Node, ...]) -> Callable[..., Any]:
    """Return the NumPy function of a node, simplified for a constant argument."""
    # The general forms handle NaN on both sides, at two to three times the cost.
    if op == "=" and (_finite(args[0]) or _finite(args[1])):
        return np.equal
    if op in ("<", "<="):
        if _finite(args[1]):
            return np.less if op == "<" else np.less_equal
        if _finite(args[0]):
            opposite = np.greater_equal if op == "<" else np.greater
            return lambda x, y: np.logical_not(opposite(x, y))
    if op in ("min", "max") and any(_finite(a) and a.value != 0.0 for a in args):
        return np.fmin if op == "min" else np.fmax
    return PRIMITIVES[op].array


def _build_plain_step(function: Callable[..., Any], i: int, args: list[int]) -> Step:
    """Return the step that applies a function to the values of its arguments, whatever is null."""
    a, b, c = (*args, 0, 0)[:3]
    return (_UNARY, _BINARY, _TERNARY)[len(args) - 1], function, i, a, b, c


def _strict_mask(i: int, args: list[int]) -> Step:
    """Return a step that makes the result null where an argument is null."""
    if len(args) == 1:
        return _SAME_MASK, _nothing, i, args[0], 0, 0
    first, *rest = args

    def union(values: Registers, masks: Registers) -> None:
        mask = masks[first]
        for a in rest:
            other = masks[a]
            mask = other if mask is None else mask if other is None else np.logical_or(mask, other)
        masks[i] = mask

    return _BY_ITSELF, union, i, 0, 0, 0


def _nothing(*_: Any) -> None:
    """Do nothing. Steps that only copy a null mask use this function."""


def _masked(function: Callable[..., Any], i: int, args: list[int]) -> Step:
    """Build a step whose function takes and returns values with null masks."""
    if len(args) == 2:
        a, b = args

        def pair(values: Registers, masks: Registers) -> None:
            values[i], masks[i] = function((values[a], masks[a]), (values[b], masks[b]))

        return _BY_ITSELF, pair, i, 0, 0, 0

    def several(values: Registers, masks: Registers) -> None:
        values[i], masks[i] = function(*[(values[a], masks[a]) for a in args])

    return _BY_ITSELF, several, i, 0, 0, 0


def _slate_function(node: Node) -> Callable[..., Any]:
    """Return a node's function: a table lookup, a membership test or an aggregate.

    The last argument of the function is the register of the slates.
    """
    op = node.op
    if op == "in":
        options = frozenset(node.value)
        return lambda column, _: (
            np.array([v in options for v in column[0].tolist()], np.bool_),
            column[1],
        )
    if op == "table":
        words, numbers, default = node.value
        lookup = dict(zip(words, numbers, strict=True))

        def table(column: Any, _: Any) -> Any:
            values = np.array([lookup.get(v, default) for v in column[0].tolist()], np.float64)
            return values if column[1] is None else np.where(column[1], default, values), None

        return table

    def slate(*columns: Any) -> Any:
        slates = columns[-1][0]
        spread = [
            (
                values if values.shape == (slates.size,) else np.broadcast_to(values, slates.size),
                None if mask is None else np.broadcast_to(mask, slates.size),
            )
            for values, mask in columns[:-1]
        ]
        return (
            beta_chances(spread, slates) if len(spread) > 1 else aggregate(op, *spread[0], slates)
        )

    return slate
