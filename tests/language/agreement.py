"""Decide whether the back ends agree on a policy, for the fuzzer and the random tests.

A row and a column agree on every bit. NumPy rounds exp, log, log1p, tanh and pow differently, and a difference in the
last place may choose another branch later. So an array is compared with the graph evaluated value by value twice, once
with C's functions and once with NumPy's. It must agree with one of the two within 1e-12.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.kernel.language import Input, Policy
from memlab.kernel.language.arrays import Slates, aggregate
from memlab.kernel.language.graph import Node, reachable
from memlab.kernel.language.primitives import AGGREGATES, PRIMITIVES
from tests.language.grammar import INEXACT

__all__ = ["arrays_of", "bits", "disagreement", "frame_of", "over_slate"]

_DTYPES: dict[str, Any] = {
    "num": pl.Float64,
    "bool": pl.Boolean,
    "str": pl.String,
    "set": pl.List(pl.String),
}
_BLANK = {"num": (0.0, float), "bool": (False, bool), "str": ("", object)}


def bits(value: object) -> object:
    """Return a key for the bits of a value: signed zeros differ, all NaNs are equal."""
    if isinstance(value, dict):
        return {name: bits(v) for name, v in value.items()}
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value)
    return value


def frame_of(rows: Sequence[dict[str, Any]], inputs: Iterable[Input]) -> pl.DataFrame:
    """Return rows as a frame, with ids."""
    frame = pl.DataFrame(list(rows), schema={i.name: _DTYPES[i.type] for i in inputs})
    return frame.with_columns(memory_id=pl.Series(range(len(rows)), dtype=pl.Int64))


def arrays_of(rows: Sequence[dict[str, Any]], inputs: Iterable[Input]) -> dict[str, Any]:
    """Return rows as arrays with masks of nulls."""
    arguments: dict[str, Any] = {}
    for declared in inputs:
        values = [row[declared.name] for row in rows]
        if declared.type == "set":
            arguments[declared.name] = values
        else:
            blank, dtype = _BLANK[declared.type]
            filled = np.array([blank if v is None else v for v in values], dtype)
            arguments[declared.name] = (filled, np.array([v is None for v in values]))
    return arguments


def disagreement(policy: Policy, rows: Sequence[dict[str, Any]]) -> str | None:
    """Return how the back ends disagree over a slate of rows, or None."""
    inputs = policy.signature.inputs.values()
    if "tail-n" in policy.signature.inputs:
        rows = [{**row, "tail-n": float(len(rows))} for row in rows]
    frame = frame_of(rows, inputs)
    slate = (
        policy.aggregates(frame).rows(named=True) if over_slate(policy.root) else [None] * len(rows)
    )
    single = [
        policy.row(row, aggregates=aggregates) for row, aggregates in zip(rows, slate, strict=True)
    ]
    columns = policy.columns(frame).to_list()
    if policy.root.op == "record" and not policy.fields:
        columns = single
    for i, (row, column) in enumerate(zip(single, columns, strict=True)):
        if bits(row) != bits(column):
            return f"row {i} of {len(rows)}: {row!r}, its column: {column!r}"
    if policy.root.op == "record":
        nodes = list(policy.root.args)
        arrays = list(policy.updates(arrays_of(rows, inputs)).values())
        expected = [[row[name] for row in single] for name in policy.fields]  # type: ignore[index,call-overload]
    else:
        nodes, arrays, expected = [policy.root], [policy.arrays(arrays_of(rows, inputs))], [single]
    for node, (values, nulls), wanted in zip(nodes, arrays, expected, strict=True):
        listed = values.tolist()
        given = (
            listed
            if nulls is None
            else [None if n else v for v, n in zip(listed, nulls.tolist(), strict=True)]
        )
        if not all(map(_near, given, wanted)):
            rounded = _walked(node, rows, policy)
            for i, (array, row, other) in enumerate(zip(given, wanted, rounded, strict=True)):
                if not _near(array, row) and not _near(array, other):
                    return f"row {i} of {len(rows)}: {row!r}, its array: {array!r}, with NumPy's functions: {other!r}"
    return None


def over_slate(root: Node) -> bool:
    """Return whether any node ranges over the slate."""
    return any(node.op in AGGREGATES for node in reachable(root))


def _near(x: object, y: object) -> bool:
    if not (isinstance(x, float) and isinstance(y, float)):
        return x == y and type(x) is type(y)
    if x == y:
        return x != 0.0 or math.copysign(1, x) == math.copysign(1, y)
    return (x != x and y != y) or abs(x - y) <= 1e-12 * max(abs(x), abs(y)) < math.inf


def _numpy(name: str) -> Callable[..., float]:
    function = {"pow": np.power}.get(name) or getattr(np, name)

    def rounded(*values: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(*[np.full(8, v) for v in values])[0])

    return rounded


_NUMPY = {name: _numpy(name) for name in INEXACT}


def _walked(root: Node, rows: Sequence[dict[str, Any]], policy: Policy) -> list[Any]:
    """Evaluate the graph node by node and value by value, with NumPy's functions where its rounding differs."""
    result: dict[int, list[Any]] = {}
    for node in reachable(root):
        args = [result[a.index] for a in node.args]
        if node.op == "const":
            values: list[Any] = [node.value] * len(rows)
        elif node.op == "input":
            derived = policy.derived.get(node.value)
            values = [row[node.value] if derived is None else derived.row(row) for row in rows]
        elif node.op == "in":
            values = [None if x is None else x in node.value for x in args[0]]
        elif node.op == "table":
            words, numbers, default = node.value
            lookup = dict(zip(words, numbers, strict=True))
            values = [lookup.get(x, default) for x in args[0]]
        elif node.op in AGGREGATES:
            values = _aggregated(node, args, len(rows))
        else:
            primitive = PRIMITIVES[node.op]
            function = _NUMPY.get(node.op, primitive.scalar)
            values = [
                None if primitive.strict and None in values else function(*values)
                for values in zip(*args, strict=True)
            ]
        result[node.index] = values
    return result[root.index]


def _aggregated(node: Node, args: list[list[Any]], size: int) -> list[Any]:
    slates = Slates(size)
    numbers = np.array([math.nan if v is None else v for v in args[0]], float)
    missing = np.array([v is None for v in args[0]])
    values, nulls = aggregate(node.op, numbers, missing, slates)
    listed: list[Any] = values.tolist()
    return (
        listed
        if nulls is None
        else [None if n else v for v, n in zip(listed, nulls.tolist(), strict=True)]
    )
