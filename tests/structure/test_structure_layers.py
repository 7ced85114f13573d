"""Layers: the same four as the pack associative has, and counts that add up."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.kernel.policies import load_pack
from memlab.subjects.clusters.topology import LAYERS, count_layers, layer_expression

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAYS = st.one_of(st.floats(0, 60), st.sampled_from([0.0, 6.999, 7.0, 7.001]))


def memories(rows):
    """Return memories from rows of (kind, age in days, idle days, accesses)."""
    return pl.DataFrame(
        {
            "kind": [row[0] for row in rows],
            "created": [NOW - timedelta(days=row[1]) for row in rows],
            "accessed": [NOW - timedelta(days=row[2]) for row in rows],
            "access": [float(row[3]) for row in rows],
        },
        schema={
            "kind": pl.String,
            "created": pl.Datetime("us", "UTC"),
            "accessed": pl.Datetime("us", "UTC"),
            "access": pl.Float64,
        },
    )


@pytest.mark.parametrize(
    ("age", "idle", "access", "word"),
    [
        (1, 1, 0, "emerging"),
        (1, 0.5, 1, "emerging"),
        (1, 0.5, 2, "active"),
        (30, 7, 1, "active"),
        (30, 8, 5, "stable"),
        (30, 8, 4, "decaying"),
        (30, 0, 0, "decaying"),
        (-2, -2, 0, "emerging"),
    ],
)
def test_the_layer_of_one_memory(age, idle, access, word):
    assert memories([("fact", age, idle, access)]).select(layer_expression(NOW)).item() == word


@pytest.mark.long
@examples(60)
@given(st.lists(st.tuples(st.just("fact"), DAYS, DAYS, st.integers(0, 8)), min_size=1))
def test_layers_equal_the_label_policy_of_associative(rows):
    frame = memories(rows)
    ages = frame.select(
        ((NOW - pl.col("created")).dt.total_microseconds() / 86_400_000_000).alias("age-days"),
        ((NOW - pl.col("accessed")).dt.total_microseconds() / 86_400_000_000).alias("idle-days"),
        "access",
    )
    theirs = load_pack("associative").policies["label"].columns(ages)
    assert (
        frame.select(layer_expression(NOW)).to_series().cast(pl.String).to_list()
        == theirs.to_list()
    )


KINDS = st.sampled_from(["fact", "goal", "event"])


@pytest.mark.long
@examples(40)
@given(st.lists(st.tuples(KINDS, DAYS, DAYS, st.integers(0, 8))))
def test_counts_and_shares_add_up(rows):
    frame = memories(rows)
    counted = count_layers(frame, NOW)
    words = frame.select(layer_expression(NOW)).to_series().cast(pl.String).to_list()
    assert dict(counted.overall.select("layer", "memories").iter_rows()) == {
        word: words.count(word) for word in LAYERS
    }
    assert counted.overall["layer"].to_list() == list(LAYERS)
    assert counted.by_kind["memories"].sum() == counted.by_week["memories"].sum() == len(rows)
    for table, by in ((counted.by_kind, "kind"), (counted.by_week, "week")):
        groups = table.group_by(by).agg(pl.len(), pl.col("share").sum())
        assert set(groups["len"].to_list()) <= {4}
        assert all(abs(share - 1) < 1e-9 for share in groups["share"].to_list())


def test_weeks_begin_on_mondays():
    assert count_layers(memories([("fact", 0, 0, 0)]), NOW).by_week["week"].unique().to_list() == [
        datetime(2026, 2, 23, tzinfo=UTC)
    ]


def test_a_column_of_layers_decides():
    frame = memories([("fact", 30, 30, 0)]).with_columns(pl.lit("stable").alias("layer"))
    assert count_layers(frame, NOW).overall.filter(pl.col("memories") > 0)["layer"].to_list() == [
        "stable"
    ]


def test_layers_of_the_frame_of_a_lab(lab, clock):
    lab.remember("One", kind="goal")
    assert count_layers(lab.memories, clock()).by_kind.row(2) == ("goal", "emerging", 1, 1.0)
