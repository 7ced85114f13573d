"""Rewards that were read from answers: what a few judged ones say of the rest, and how sure that is."""

import numpy as np
import polars as pl
import pytest
from probed_logs import World

import memlab
from memlab.science.evaluation import evaluate

pytestmark = pytest.mark.long

SHAPE = {"clusters": 40, "recalls": 40, "pool": 20, "limit": 5, "depth": 8, "rate": 0.8}


def read(reward, dice):
    """Simulate an attribution that misses two uses in five and sees one in seven where there was none."""
    seen = dice.random(len(reward)) < np.where(reward > 0, 0.6, 0.15)
    return np.where(seen, 0.8, 0.0) + 0.2 * dice.random(len(reward))


def log_of(world, judged, *, keep_judged=True, seed=5):
    """Return the log of a world in which a share of the attributed items is judged as well, and both are kept."""
    dice = np.random.default_rng(seed)
    table = world.frames()["feedback"]
    true = table["reward"].to_numpy()
    given, by_hand = read(true, dice), dice.random(len(true)) < judged
    table = table.with_columns(
        reward=pl.Series(np.where(by_hand, true, given)),
        source=pl.Series(np.where(by_hand, "user", "attributed")),
        attributed=pl.Series(given) if keep_judged else pl.lit(None, dtype=pl.Float64),
    )
    return world.slates(feedback=table), true, given, by_hand


def row(slates):
    evaluation = evaluate(slates, ["good"], missing="censor")
    return next(row for row in evaluation.rows if row.policy == "good")


@pytest.fixture(scope="module")
def world():
    return World(seed=1, **SHAPE)


def test_a_tenth_that_was_judged_sets_the_rest_right(world):
    slates, *_ = log_of(world, 0.1)
    found, blind = row(slates), row(log_of(world, 0.1, keep_judged=False)[0])
    assert found.value.low < world.value("good") < found.value.high
    assert not blind.value.low < world.value("good") < blind.value.high
    gap = world.value("good") - world.value("plain")
    assert found.difference.low < gap < found.difference.high


def test_the_line_is_that_of_what_was_read_on_what_was_judged_turned_round(world):
    slates, true, given, by_hand = log_of(world, 0.2)
    slope, start = np.polyfit(true[by_hand], given[by_hand], 1)
    note = next(
        note
        for note in evaluate(slates, ["good"], missing="censor").notes
        if "x the inferred reward" in note
    )
    assert f"as {-start / slope:+.2f} {1 / slope:+.2f} x the inferred reward" in note
    assert f"{by_hand.sum():,} that were judged" in note


def test_fewer_judged_make_wider_intervals(world):
    few, many = (row(log_of(world, share)[0]) for share in (0.05, 0.5))
    assert few.difference.high - few.difference.low > many.difference.high - many.difference.low
    # 1.8 times if the line were taken as certain
    assert few.value.error > 2.5 * row(world.slates()).value.error


def test_where_all_was_judged_nothing_changes(world):
    every, plain = row(log_of(world, 2.0)[0]), row(world.slates())
    assert (every.value, every.difference) == (plain.value, plain.difference)


def test_too_few_judged_leave_it_as_it_was_read_and_the_report_says_so(world):
    slates, *_ = log_of(world, 0.001)
    evaluation = evaluate(slates, ["good"], missing="censor")
    assert any("are not calibrated" in note for note in evaluation.notes)
    assert evaluation.rows[0].value == row(log_of(world, 0.001, keep_judged=False)[0]).value


def test_a_lab_stores_attributed_and_stated_feedback_separately():
    with memlab.open(seed=1) as lab:
        lab.remember("Ada keeps a parrot called Figaro in the kitchen.")
        hits = lab.recall("What does Ada keep in the kitchen?")
        lab.agents.credits.answer("Ada keeps a parrot called Figaro.", hits)
        lab.feedback(hits[0], "fail")
        table = lab.slates().feedback.collect()
    assert table["source"].to_list() != ["attributed"]
    assert table["reward"].to_list() == [0.0]
    assert table["attributed"][0] > 0.5
