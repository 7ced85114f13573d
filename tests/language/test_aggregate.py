"""The slate kernel against a slow reference, whatever the order in which rows arrive."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError, PolicyTypeError, UnknownName
from memlab.kernel.language import Input, Signature, compile_policy

SLOT = Signature("recall-score", [Input("x"), Input("y")], aggregates=True)
OPS = ("slate-min", "slate-max", "slate-mean", "slate-rank", "min-max")

numbers = st.one_of(
    st.none(), st.just(math.nan), st.sampled_from([0.0, -0.0, 1.0, 1.0, 2.5]), st.floats(-1e6, 1e6)
)
rows = st.lists(st.tuples(st.integers(0, 3), numbers), min_size=1, max_size=30)


def missing(x: float | None) -> bool:
    return x is None or math.isnan(x)


def reference(op: str, slate: list[tuple[int, float | None]]) -> dict[int, float | None]:
    """Compute an aggregate for one slate of (id, value) pairs; return its value by id."""
    slate = sorted(slate)
    known = [x for _, x in slate if x is not None and not math.isnan(x)]
    if op == "slate-rank":
        order = sorted(
            [(i, x) for i, x in slate if not missing(x)], key=lambda pair: (-pair[1], pair[0])
        )
        ranks = {i: float(n) for n, (i, _) in enumerate(order, 1)}
        return {i: ranks.get(i, x) for i, x in slate}
    if op == "min-max":
        low, high = min(known, default=0.0), max(known, default=0.0)
        return {
            i: x if missing(x) else 0.0 if low == high else (x - low) / (high - low)
            for i, x in slate
        }
    if not known:
        return {i: None for i, _ in slate}
    total = 0.0
    for x in known:
        total += x
    value = {"slate-min": min(known), "slate-max": max(known), "slate-mean": total / len(known)}[op]
    return {i: value for i, _ in slate}


def same(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return a == b or (math.isnan(a) and math.isnan(b))


@pytest.mark.long
@pytest.mark.parametrize("op", OPS)
@given(rows=rows, seed=st.randoms(use_true_random=False))
def test_every_back_end_gives_the_reference(
    op: str, rows: list[tuple[int, float | None]], seed
) -> None:
    policy = compile_policy(f"(fn [x] ({op} x))", SLOT)
    table = [(slate, i, x) for i, (slate, x) in enumerate(rows)]
    expected = {}
    for slate in {s for s, _, _ in table}:
        expected |= reference(op, [(i, x) for s, i, x in table if s == slate])
    seed.shuffle(table)
    frame = pl.DataFrame(
        table, schema={"slate": pl.Int64, "memory_id": pl.Int64, "x": pl.Float64}, orient="row"
    )

    columns = policy.columns(frame, by="slate").to_list()
    for i, value in zip(frame["memory_id"], columns, strict=True):
        assert same(value, expected[i])

    aggregates = policy.aggregates(frame, by="slate")
    for values, row, value in zip(
        frame.iter_rows(named=True), aggregates.iter_rows(named=True), columns, strict=True
    ):
        assert same(policy.row(values, aggregates=row), value)

    for (_,), slate in frame.group_by(["slate"]):
        x = slate["x"]
        values, nulls = policy.arrays(
            {"x": (x.fill_null(0.0).to_numpy(), x.is_null().to_numpy())},
            order=slate["memory_id"].to_numpy(),
        )
        for k, i in enumerate(slate["memory_id"]):
            assert same(None if nulls is not None and nulls[k] else float(values[k]), expected[i])


zeros = st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, 5e-324]), min_size=1, max_size=6)


@given(zeros)
def test_a_slate_is_scaled_to_the_same_bits_alone_and_among_many(values: list[float]) -> None:
    """A zero has no sign in the result: a policy that divides by it goes the same way in a recall and in a frame."""
    policy = compile_policy("(fn [x] (min-max x))", SLOT)
    alone, nulls = policy.arrays({"x": np.array(values)}, order=np.arange(len(values)))
    frame = pl.DataFrame(
        {"x": values * 2, "memory_id": range(2 * len(values)), "slate": [0, 1] * len(values)}
    )
    frame = frame.with_columns(slate=pl.int_range(pl.len()) // len(values))
    together = policy.columns(frame, by="slate").to_numpy()
    assert nulls is None
    assert alone.tobytes() * 2 == together.tobytes()
    assert not np.signbit(alone).any()


def test_aggregates_of_expressions_and_of_aggregates() -> None:
    policy = compile_policy(
        "(fn [x y] (let [d (- x (slate-mean x))] (+ (min-max (* d d)) (slate-max (slate-rank y)))))",
        SLOT,
    )
    x, y = np.array([1.0, 2.0, 6.0]), np.array([5.0, 5.0, 1.0])
    frame = pl.DataFrame({"x": x, "y": y, "memory_id": [1, 2, 3]})
    expected = [(4 - 1) / 8 + 3, 0 + 3, 1 + 3]
    assert policy.columns(frame).to_list() == expected
    assert policy.arrays({"x": x, "y": y})[0].tolist() == expected


def test_a_constant_slate_gives_zero_and_a_constant_argument_is_a_slate() -> None:
    frame = pl.DataFrame({"x": [3.0, 3.0], "y": [0.0, 0.0], "memory_id": [1, 2]})
    assert compile_policy("(fn [x] (min-max x))", SLOT).columns(frame).to_list() == [0.0, 0.0]
    assert compile_policy("(fn [] (slate-max 4))", SLOT).columns(frame).to_list() == [4.0, 4.0]
    assert compile_policy("(fn [] (slate-max 4))", SLOT).arrays({}, order=np.arange(2))[
        0
    ].tolist() == [4.0, 4.0]


def test_a_single_row_is_a_slate() -> None:
    frame = pl.DataFrame({"x": [3.0], "memory_id": [9]})
    assert compile_policy("(fn [x] (+ (slate-rank x) (slate-mean x)))", SLOT).columns(
        frame
    ).to_list() == [4.0]


def test_ids_may_be_strings_and_are_needed_only_where_order_counts() -> None:
    frame = pl.DataFrame({"x": [3.0, 3.0, 1.0], "memory_id": ["b", "a", "c"]})
    assert compile_policy("(fn [x] (slate-rank x))", SLOT).columns(frame).to_list() == [
        2.0,
        1.0,
        3.0,
    ]
    without = frame.drop("memory_id")
    assert compile_policy("(fn [x] (min-max x))", SLOT).columns(without).to_list() == [
        1.0,
        1.0,
        0.0,
    ]
    with pytest.raises(UnknownName, match="memory_id"):
        compile_policy("(fn [x] (slate-rank x))", SLOT).columns(without)


def test_a_row_needs_its_aggregates() -> None:
    with pytest.raises(InputError, match=r"aggregates over its slate \(min-max\)"):
        compile_policy("(fn [x] (min-max x))", SLOT).row({"x": 1.0})


def test_a_slot_without_slates_refuses_aggregates() -> None:
    with pytest.raises(PolicyTypeError, match="sees one item at a time"):
        compile_policy("(fn [x] (min-max x))", Signature("half-life", [Input("x")]))
