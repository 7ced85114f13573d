"""Execution of a graph on one row of Python values and on Polars columns, which agree on every bit.

The columns are a lazy query of ``with_columns`` stages, in which each shared node is computed once. A plain expression
tree would compute a shared node once per use, and Polars' own search for common subexpressions does not run in every
context. A node that is used twice, or that is deep, therefore becomes a column of its own. Aggregates are computed between
stages. The query runs without optimizations: none remain, and an optimizer that folds literals would change bits.

Polars 2.1 computes differently with a literal than with a column: ``x/c`` as ``x*(1/c)``, ``x+0`` as ``x``, ``0-x`` as
``-x``. Such a constant becomes a column of its own, and so does a constant that may be the only result of a choice.

Polars treats a column of length 1 as a literal, which also changes bits: (1/3)^5 is then a product instead of a call of
``pow``. A frame of one row is therefore computed by the row program. A short frame is computed eagerly, because a lazy
query splits the rows among threads, and a share may be a single row (observed with 3 rows and 2 threads).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import eq, ge, gt
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.arrays import Flags, Floats, Values
from memlab.kernel.language.arrays import Slates, aggregate, beta_chances
from memlab.kernel.language.checker import kind_of
from memlab.kernel.language.graph import Node, Value, reachable
from memlab.kernel.language.primitives import AGGREGATES, PRIMITIVES
from memlab.kernel.language.reader import canonical
from memlab.kernel.language.signature import Derived

# Execution on one row of Python values, equal to the columns on every bit.


Step = Callable[[list[Any]], None]


def aggregate_name(node: Node) -> str:
    """Return the name of an aggregate in ``Policy.aggregates``.

    The name is the start of the node's meaning hash.
    """
    return node.digest[:16]


def row_value(name: str, value: object, type: str | None) -> Value:
    """Convert a caller's value to the input's type, or raise an error.

    The error names the input.
    """
    if value is None:
        return None
    if type == "num":
        if isinstance(value, int | float | np.number | np.bool_):
            return float(value)
    elif type == "bool":
        if isinstance(value, bool | np.bool_):
            return bool(value)
    elif isinstance(value, str):
        return str(value)
    raise InputError(f"{name} must be a {type}, not {value!r}.")


class RowProgram:
    """A graph as a program for one row.

    `run` returns the values of all nodes, the root's last. `value` reads the result from them.
    """

    def __init__(self, root: Node, derived: Mapping[str, Derived]) -> None:
        self.nodes = reachable(root)
        self.derived = derived
        self.slot = {node.index: i for i, node in enumerate(self.nodes)}
        self.template = [n.value if n.constant else None for n in self.nodes]
        self.inputs = [
            (i, str(n.value), n.type) for i, n in enumerate(self.nodes) if n.op == "input"
        ]
        self.aggregates = [
            (i, aggregate_name(n), n.op) for i, n in enumerate(self.nodes) if n.op in AGGREGATES
        ]
        self.steps = [
            _step(n, i, [self.slot[a.index] for a in n.args])
            for i, n in enumerate(self.nodes)
            if n.op not in AGGREGATES and n.op not in ("const", "input", "record")
        ]
        self.fields = (
            [(name, self.slot[a.index]) for name, a in zip(root.value, root.args, strict=True)]
            if (root.op == "record")
            else None
        )

    def value(self, registers: list[Any]) -> Value | dict[str, Value]:
        """Return the result of one run of the program."""
        if self.fields is None:
            return registers[-1]  # type: ignore[no-any-return]
        return {name: registers[i] for name, i in self.fields}

    def run(
        self, values: Mapping[str, object], aggregates: Mapping[str, float | None] | None
    ) -> list[Any]:
        """Return the value of every node for one item."""
        if aggregates is not None and not isinstance(aggregates, Mapping):
            raise InputError(
                f"aggregates must be a row of Policy.aggregates, by name, not {describe_value(aggregates)}."
            )
        # Inputs come first, then aggregates, then every operation after its arguments.
        registers: list[Any] = self.template.copy()
        for i, name, type in self.inputs:
            if name in values:
                raw = values[name]
            elif name in self.derived:
                raw = self.derived[name].row(values)
            else:
                snake = name.replace("-", "_")
                if snake not in values:
                    if self.fields is not None and name in dict(self.fields):
                        raise InputError(
                            f"A branch of the policy does not update {name}, so {name} keeps its present value. "
                            f"Pass {name} among the values as well."
                        )
                    raise UnknownName("value", name, (canonical(v) for v in values))
                raw = values[snake]
            registers[i] = (
                raw if raw.__class__ is float and type == "num" else row_value(name, raw, type)
            )
        for i, key, op in self.aggregates:
            if aggregates is None or key not in aggregates:
                raise InputError(
                    f"The policy aggregates over its slate ({op}): pass aggregates=, this item's row of Policy.aggregates."
                )
            value = aggregates[key]
            registers[i] = None if value is None else float(value)
        for step in self.steps:
            step(registers)
        return registers


class Evaluation(NamedTuple):
    """A program and the values of all its nodes for one item."""

    program: RowProgram
    registers: list[Any]

    @property
    def root(self) -> Node:
        """The graph node of the policy's result."""
        return self.program.nodes[-1]

    def value(self, node: Node) -> Any:
        """Return the value of a node.

        Parameters
        ----------
        node
            A node of the program.

        Returns
        -------
        float, bool, str or None
            The value of the node.
        """
        return self.registers[self.program.slot[node.index]]


def _step(node: Node, i: int, args: list[int]) -> Step:
    """Build the function that computes one node into register `i`."""
    if node.op == "in":
        options = frozenset(node.value)
        return _unary(lambda x: x in options, i, args[0])
    if node.op == "table":
        words, numbers, default = node.value
        lookup, a = dict(zip(words, numbers, strict=True)), args[0]

        def table(registers: list[Any]) -> None:
            registers[i] = lookup.get(registers[a], default)

        return table
    # Calls with one and two arguments have functions of their own, which take half of the time.
    primitive = PRIMITIVES[node.op]
    function = primitive.scalar
    if not primitive.strict:

        def loose(registers: list[Any]) -> None:
            registers[i] = function(*[registers[a] for a in args])

        return loose
    if len(args) == 1:
        return _unary(function, i, args[0])
    a, b = args

    def binary(registers: list[Any]) -> None:
        x, y = registers[a], registers[b]
        registers[i] = None if x is None or y is None else function(x, y)

    return binary


def _unary(function: Callable[[Any], Any], i: int, a: int) -> Step:
    """Build the instruction that applies a function to one argument and keeps None as None."""

    def unary(registers: list[Any]) -> None:
        x = registers[a]
        registers[i] = None if x is None else function(x)

    return unary


# Types of columns; the literal null has none of its own and is a number.
DTYPES: dict[str | None, Any] = {
    "num": pl.Float64,
    "bool": pl.Boolean,
    "str": pl.String,
    None: pl.Float64,
}
_MAX_CHAIN = 24
"""Maximum depth of an expression. Polars walks it recursively several times, so a deeper one is cut into columns."""
_MAX_COMPARISONS = 12
"""Maximum number of words compared one by one. A million strings against 12 words take 11 ms by comparisons and 19 ms by a
lookup; against 28 words 21 ms and 11 ms."""
_MIRRORED: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "=": eq,
    "same": eq,
    "iff": eq,
    "<": gt,
    "<=": ge,
}
"""Comparisons with exchanged arguments, so that a constant is on the right. With a constant on the left, Polars 2.1
returns a single row for a ``when`` that is equal for all rows."""

# No optimizations, the number of rows below which a frame is computed eagerly (64 per thread), and the aggregates that
# depend on the order of memories.
_FLAGS = pl.QueryOptFlags.none()
_SHORT = 64 * pl.thread_pool_size()
_NEEDS_ORDER = ("slate-mean", "slate-rank")


class ColumnProgram:
    """A graph as a query over columns.

    The constructor plans everything that does not depend on the frame; `run` returns the result.
    """

    def __init__(self, root: Node, derived: Mapping[str, Derived]) -> None:
        self.root, self.derived = root, derived
        nodes = reachable(root)
        self.inputs = [(n, str(n.value), f"n{n.index}") for n in nodes if n.op == "input"]
        self.aggregated = [n for n in nodes if n.op in AGGREGATES]
        self.needs_order = any(n.op in _NEEDS_ORDER for n in self.aggregated)
        self.constants: dict[int, float] = {}
        self.plain: list[list[pl.Expr]] = []
        self.slates: list[list[Node]] = []
        self._plan(nodes)

    def _plan(self, nodes: list[Node]) -> None:
        """Decide which graph nodes get their own column, and in which stage of evaluation.

        A stage can read the columns of earlier stages, but not its own.
        """
        # `ready` is the first stage that can read a node, `chain` the depth of its expression so far.
        uses: dict[int, int] = {}
        materialised = {self.root.index}
        for node in nodes:
            for a in node.args:
                uses[a.index] = uses.get(a.index, 0) + 1
                if node.op in AGGREGATES or node.op in ("table", "record"):
                    materialised.add(a.index)
        materialised.update(i for i, count in uses.items() if count > 1)
        ready: dict[int, int] = {}
        chain: dict[int, int] = {}
        read: dict[int, pl.Expr] = {}
        for node in nodes:
            i = node.index
            ready[i], chain[i] = 0, 0
            if node.op == "const":
                read[i] = pl.lit(node.value, dtype=DTYPES[node.type])
                continue
            read[i] = pl.col(f"n{i}")
            if node.op in ("input", "record"):
                continue
            stage = max([ready[a.index] for a in node.args], default=0)
            depth = 1 + max([chain[a.index] for a in node.args], default=0)
            if node.op in AGGREGATES:
                self._add_stages(stage)
                self.slates[stage].append(node)
                ready[i] = stage + 1
                continue
            expression = _expression(
                node,
                [self._full(a) if _needs_column(node, a) else read[a.index] for a in node.args],
            )
            if i in materialised or depth >= _MAX_CHAIN:
                self._add_stages(stage)
                self.plain[stage].append(expression.alias(f"n{i}"))
                ready[i] = stage + 1
            else:
                read[i], ready[i], chain[i] = expression, stage, depth

    def _full(self, node: Node) -> pl.Expr:
        """Register a constant for a full-length column and return the expression of that column."""
        self.constants[node.index] = float(node.value)
        return pl.col(f"n{node.index}")

    def _add_stages(self, stage: int) -> None:
        """Create empty evaluation stages up to the number `stage`."""
        while len(self.plain) <= stage:
            self.plain.append([])
            self.slates.append([])

    def run(self, frame: pl.DataFrame, by: str | None, order: str, name: str) -> pl.Series:
        """Compute the policy for each row of a frame.

        A record gives a struct of its fields.
        """
        root = self.root
        wanted = (
            list(zip(root.value, root.args, strict=True)) if root.op == "record" else [(name, root)]
        )
        columns = self._results(frame, by, order, wanted)
        if root.op != "record":
            return columns[0]
        if not columns:
            return pl.Series(name, [{}] * frame.height, dtype=pl.Struct({}))
        return pl.DataFrame(columns).to_struct(name)

    def _results(
        self, frame: pl.DataFrame, by: str | None, order: str, wanted: list[tuple[str, Node]]
    ) -> list[pl.Series]:
        """Evaluate graph nodes on a frame; return one series for each name in ``wanted``."""
        base = self._base(frame)
        # A frame without rows, a single row, and constant results are computed without Polars.
        if frame.height == 0:
            return [pl.Series(name, [], dtype=DTYPES[node.type]) for name, node in wanted]
        if all(node.constant for _, node in wanted):
            return [_repeated(name, node, frame.height) for name, node in wanted]
        if frame.height == 1:
            values_of_row = {key: base.item(0, alias) for _, key, alias in self.inputs}
            aggregates = (
                self.aggregates(frame, by, order).row(0, named=True) if self.aggregated else None
            )
            program = RowProgram(self.root, {})
            value = program.value(program.run(values_of_row, aggregates))
            values = value if isinstance(value, dict) else {wanted[0][0]: value}
            return [
                pl.Series(name, [values[name]], dtype=DTYPES[node.type]) for name, node in wanted
            ]
        work = self._evaluate(base, frame, by, order, len(self.plain))
        read = [pl.col(f"n{node.index}").alias(name) for name, node in wanted if not node.constant]
        done = _collected(work.select(read))
        return [
            _repeated(name, node, frame.height) if node.constant else done.get_column(name)
            for name, node in wanted
        ]

    def aggregates(self, frame: pl.DataFrame, by: str | None, order: str) -> pl.DataFrame:
        """Return one column per aggregate, named by the aggregate's hash."""
        last = max([i + 1 for i, stage in enumerate(self.slates) if stage], default=0)
        work = self._evaluate(self._base(frame), frame, by, order, last)
        names = [pl.col(f"n{n.index}").alias(aggregate_name(n)) for n in self.aggregated]
        return _collected(work.select(names))

    def _base(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a frame with a policy's inputs and the constants that need a column.

        Polars would treat a column made from a literal as a literal.
        """
        columns = [
            self.input(frame, name, node.type).alias(alias) for node, name, alias in self.inputs
        ]
        columns += [
            pl.Series(f"n{i}", np.full(frame.height, value)) for i, value in self.constants.items()
        ]
        return (
            pl.DataFrame(columns).rechunk()
            if columns
            else pl.DataFrame({"rows": np.zeros(frame.height)})
        )

    def input(self, frame: pl.DataFrame, name: str, type: str | None) -> pl.Series:
        """Return the column of an input, cast to its type.

        A test of sets is computed unless the frame has its result.
        """
        derived = self.derived.get(name)
        if derived is None or name in frame.columns:
            series = _column(frame, name)
        else:
            series = derived.series({s: _column(frame, s) for s in derived.sets})
        return _cast(series, type, name)

    def _evaluate(
        self, base: pl.DataFrame, frame: pl.DataFrame, by: str | None, order: str, stages: int
    ) -> pl.DataFrame | pl.LazyFrame:
        """Evaluate the first `stages` stages of a policy's expressions on a frame."""
        short = base.height < _SHORT
        work: pl.DataFrame | pl.LazyFrame = base if short else base.lazy()
        slates: Slates | None = None
        for plain, aggregates in zip(self.plain[:stages], self.slates[:stages], strict=True):
            if aggregates:
                slates = slates or _slates(frame, by, order, self.needs_order)
                done = _collected(work)
                done = done.with_columns([_aggregate(node, done, slates) for node in aggregates])
                work = done if short else done.lazy()
            if plain:
                work = work.with_columns(plain)
        return work


def _repeated(name: str, node: Node, height: int) -> pl.Series:
    """Return a series that repeats a constant in each row."""
    return pl.Series(name, [node.value], dtype=DTYPES[node.type]).new_from_index(0, height)


def _collected(work: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """Collect a lazy frame without optimizations."""
    return work if isinstance(work, pl.DataFrame) else work.collect(optimizations=_FLAGS)


def _column(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return the frame's column for an input, named with hyphens or with underscores."""
    if name in frame.columns:
        return frame.get_column(name)
    for column in frame.columns:
        if canonical(column) == name:
            return frame.get_column(column)
    raise UnknownName("column", name, frame.columns)


def _cast(series: pl.Series, type: str | None, name: str) -> pl.Series:
    """Convert an input column to its policy-language type.

    Every number becomes a float64.
    """
    dtype = series.dtype
    if type == "num":
        fits = dtype.is_numeric() or dtype == pl.Boolean
    elif type == "bool":
        fits = dtype == pl.Boolean
    else:
        fits = dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)
    if not (fits or dtype == pl.Null):
        raise InputError(
            f"Column {name} contains {dtype}, but the feature is {kind_of(type)}. Cast the column."
        )
    return series.cast(DTYPES[type])


def _slates(frame: pl.DataFrame, by: str | None, order: str, needs_order: bool) -> Slates:
    """Return the assignment of the rows of a frame to slates.

    The column ``by`` has the slate of each row (None: all rows are one slate). The column ``order`` has
    their order, and is read only if ``needs_order``.
    """
    codes = None if by is None else _sortable(frame, by)
    if not needs_order:
        return Slates(frame.height, codes=codes)
    return Slates(frame.height, codes=codes, order=_sortable(frame, order))


def _sortable(frame: pl.DataFrame, name: str) -> Values:
    """Convert a column without nulls to integers of the same sort order."""
    if name not in frame.columns:
        raise UnknownName("column", name, frame.columns)
    series = frame.get_column(name)
    if series.null_count():
        raise InputError(
            f"Column {name} contains nulls. A column of slates or of memory ids must have a value in each row."
        )
    if series.dtype.is_integer():
        return series.to_numpy()
    return series.rank("dense").to_numpy()


def _aggregate(node: Node, done: pl.DataFrame, slates: Slates) -> pl.Series:
    """Compute an aggregate for each row and return it as a series."""
    columns: list[tuple[Floats, Flags | None]] = []
    for a in node.args:
        if a.constant:
            values = np.full(slates.size, np.nan if a.value is None else a.value, np.float64)
            columns.append((values, np.ones(slates.size, np.bool_) if a.value is None else None))
        else:
            series = done.get_column(f"n{a.index}")
            nulls = series.is_null().to_numpy() if series.null_count() else None
            columns.append((series.to_numpy(), nulls))
    with np.errstate(all="ignore"):
        result, missing = (
            beta_chances(columns, slates)
            if len(columns) > 1
            else aggregate(node.op, *columns[0], slates)
        )
    series = pl.Series(f"n{node.index}", result)
    return series if missing is None else series.set(pl.Series(missing), None)


def _needs_column(node: Node, argument: Node) -> bool:
    """Return True if a constant number must be passed as a column.

    A divisor, an added zero, and a possible result of a choice must be columns.
    """
    if not argument.constant or not isinstance(argument.value, float):
        return False
    if node.op in ("+", "-"):
        return argument.value == 0.0
    return node.op in ("if", "if-null") or (node.op == "/" and argument is node.args[1])


def _as_it_is(series: pl.Series) -> pl.Series:
    """Return the series unchanged.

    Mapping this function over a Polars literal turns the literal into a column, in 20 microseconds.
    """
    return series


def _expression(node: Node, args: list[pl.Expr]) -> pl.Expr:
    """Return the Polars expression of one node."""
    if node.op == "in":
        return args[0].is_in(list(node.value))
    if node.op == "table":
        words, numbers, default = node.value
        if len(words) <= _MAX_COMPARISONS:
            choice = pl.lit(default, dtype=pl.Float64)
            for word, number in zip(reversed(words), reversed(numbers), strict=True):
                choice = (
                    pl.when(args[0] == word)
                    .then(pl.lit(number, dtype=pl.Float64))
                    .otherwise(choice)
                )
            # A column with a single distinct word would give a literal.
            return choice.map_batches(_as_it_is, return_dtype=pl.Float64)
        return args[0].replace_strict(
            list(words), list(numbers), default=default, return_dtype=pl.Float64
        )
    if node.op in _MIRRORED and node.args[0].constant:
        return _MIRRORED[node.op](args[1], args[0])
    return PRIMITIVES[node.op].column(*args)
