"""Growable columns against plain lists."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.kernel.state.columns import Lists, Names, Numbers, RecentTimes, Texts

batches = st.lists(
    st.lists(st.none() | st.sampled_from(["a", "b", "c", "née"]), max_size=5), max_size=6
)


@pytest.mark.long
@given(st.lists(st.lists(st.floats(allow_nan=False), max_size=40), max_size=8))
def test_numbers(parts):
    column = Numbers(np.float64)
    for part in parts:
        column.append(part)
    assert column.values.tolist() == [value for part in parts for value in part]


@pytest.mark.long
@given(batches)
def test_names(parts):
    column, flat = Names(), [name for part in parts for name in part]
    for part in parts:
        column.append(part)
    rows = np.arange(len(flat))
    assert column.series("n").to_list() == flat
    assert column.to_objects(rows).tolist() == flat
    assert [column.value_at(row) for row in rows] == flat


def test_a_name_that_no_row_has_is_not_null():
    column = Names()
    column.append(["a", None])
    assert column.code(None) == -1
    assert column.code("b") == -2


@given(batches)
def test_texts(parts):
    column, flat = Texts(pl.Series(["base"])), ["base", *(text for part in parts for text in part)]
    for part in parts:
        column.append(part)
    assert column.series("t").to_list() == flat
    assert column.to_list(np.arange(len(flat))) == flat


def test_texts_are_sealed_when_the_delta_grows():
    column = Texts()
    column.append(["x"] * 5000)
    column.append(["y"])
    assert (len(column), column.value_at(4999), column.value_at(5000)) == (5001, "x", "y")


@pytest.mark.long
@given(batches)
def test_lists(parts):
    column = Lists()
    flat = [[name for name in part if name] for part in parts]
    column.append(flat)
    again = Lists()
    again.append_series(column.series("l"))
    assert again.series("l").to_list() == flat


@pytest.mark.long
@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=6),
    st.lists(
        st.tuples(st.lists(st.integers(0, 5), unique=True), st.integers(-50, 50)), max_size=30
    ),
)
def test_latest(first, uses):
    """The newest three instants of each row, whatever order they come in."""
    column = RecentTimes(3)
    expected = [[instant] for instant in first]
    column.append(first)
    for rows, instant in uses:
        rows = [row for row in rows if row < len(first)]
        column.add_time(np.array(rows, dtype=np.int64), instant)
        for row in rows:
            expected[row].append(instant)
    for row, instants in enumerate(expected):
        newest = sorted(instants, reverse=True)[:3]
        assert column.values[row].tolist() == newest + [RecentTimes.NEVER] * (3 - len(newest))
