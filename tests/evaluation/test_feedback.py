"""From feedback to rewards: horizons, missing feedback, repeats, and errors that name their cause."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError
from memlab.science.evaluation._log import closed, horizon_micros, read_answers

DAY0 = datetime(2026, 3, 1, tzinfo=UTC)
STAMP = pl.Datetime("us", "UTC")


def day(number):
    return DAY0 + timedelta(days=number)


DECISIONS = pl.DataFrame(
    {"decision": [1, 2, 3], "at": [day(0), day(5), day(9)]}, schema_overrides={"at": STAMP}
)
EXPOSURES = pl.DataFrame({"decision": [1, 1, 2, 3], "memory_id": [7, 8, 7, 9]})


def judgements(*rows):
    return pl.DataFrame(
        rows,
        schema={
            "decision": pl.Int64,
            "memory_id": pl.Int64,
            "reward": pl.Float64,
            "outcome": pl.String,
            "at": STAMP,
        },
        orient="row",
    )


def answers(*rows, horizon=None, reward_range=(0.0, 1.0)):
    return read_answers(
        judgements(*rows), EXPOSURES, DECISIONS, horizon=horizon, reward_range=reward_range
    )


def rewards(outcomes):
    return {(row[0], row[1]): row[2] for row in outcomes.frame.iter_rows()}


def test_an_outcome_is_worth_one_or_nothing_unless_a_reward_is_given():
    results = answers(
        (1, 7, None, "success", day(1)),
        (1, 8, None, "fail", day(1)),
        (2, 7, 0.3, "success", day(6)),
    )
    assert rewards(results) == {(1, 7): 1.0, (1, 8): 0.0, (2, 7): 0.3}
    assert results.notes == ()


@pytest.mark.parametrize(
    ("span", "days"),
    [("7d", 7), ("12h", 0.5), ("90m", 1 / 16), ("2w", 14), ("1.5d", 1.5), (timedelta(days=3), 3)],
)
def test_a_horizon_is_a_number_and_a_unit(span, days):
    assert horizon_micros(span) == days * 86_400_000_000


@pytest.mark.parametrize("span", ["7", "d", "7 days", "-1d", "0d", timedelta(0), 7, True, ""])
def test_other_horizons_are_refused(span):
    with pytest.raises(InputError, match="horizon must be a"):
        horizon_micros(span)


@given(st.integers(1, 20))
def test_a_window_is_closed_when_the_log_has_outlived_it(days):
    feedback = judgements((1, 7, 1.0, None, day(12)))
    horizon = horizon_micros(f"{days}d")
    expected = [number + days <= 12 for number in (0, 5, 9)]
    if any(expected):
        assert closed(DECISIONS, feedback, horizon).to_list() == expected
    else:
        with pytest.raises(InputError, match="No recall is older than the horizon"):
            closed(DECISIONS, feedback, horizon)


def test_the_last_recall_ends_a_log_without_feedback():
    assert closed(DECISIONS, judgements(), horizon_micros("4d")).to_list() == [True, True, False]


def test_a_horizon_needs_times():
    gaps = DECISIONS.with_columns(at=pl.when(pl.col("decision") > 1).then("at"))
    with pytest.raises(InputError, match="column at of decisions is absent or has nulls"):
        closed(gaps, judgements(), 1)
    with pytest.raises(InputError, match="column at of feedback is absent or has nulls"):
        closed(DECISIONS, judgements((1, 7, 1.0, None, None)), 1)


def test_feedback_after_the_horizon_is_left_out_and_reported():
    results = answers(
        (1, 7, 1.0, None, day(3)), (1, 8, 1.0, None, day(4)), horizon=horizon_micros("3d")
    )
    assert rewards(results) == {(1, 7): 1.0}
    assert results.notes == ("1 judgement after the horizon: left out.",)


def test_feedback_for_what_was_never_shown_is_left_out_and_named():
    results = answers(
        (2, 8, 1.0, None, day(6)), (9, 7, 1.0, None, day(6)), (1, 7, 1.0, None, day(1))
    )
    assert rewards(results) == {(1, 7): 1.0}
    assert "Feedback on 2 items that the recall did not show is left out" in results.notes[0]
    assert "recall 2, memory 8" in results.notes[0]


def test_feedback_without_a_recall_is_no_reward():
    assert rewards(answers((None, 7, 1.0, None, day(1)))) == {}


def test_a_repeat_counts_once_and_a_change_of_mind_counts_last():
    results = answers(
        (1, 7, 1.0, None, day(2)),
        (1, 7, 0.0, None, day(1)),
        (1, 8, 0.5, None, day(1)),
        (1, 8, 0.5, None, day(2)),
    )
    assert rewards(results) == {(1, 7): 1.0, (1, 8): 0.5}
    assert results.notes == (
        "2 judgements repeated for the same item of the same recall: counted once; "
        "1 item revised later: the last judgement counts.",
    )


@pytest.mark.parametrize("at", [None, day(1)])
def test_a_contradiction_without_an_order_is_refused(at):
    with pytest.raises(InputError, match="Recall 1, memory 7 has contradicting feedback"):
        answers((1, 7, 1.0, None, at), (1, 7, 0.0, None, at))


@pytest.mark.parametrize("reward", [1.5, -0.1, float("nan"), float("inf")])
def test_a_reward_outside_its_range_is_refused_by_row(reward):
    with pytest.raises(
        InputError, match=r"Row 1 of feedback \(recall 2, memory 7\) has the reward .* outside 0..1"
    ):
        answers((1, 7, 1.0, None, day(1)), (2, 7, reward, None, day(6)))


def test_another_range_takes_other_rewards():
    results = answers((1, 7, -2.0, None, day(1)), reward_range=(-5.0, 5.0))
    assert rewards(results) == {(1, 7): -2.0}


@pytest.mark.parametrize("outcome", [None, "maybe"])
def test_feedback_that_says_nothing_is_refused(outcome):
    with pytest.raises(InputError, match="has neither a reward nor an outcome"):
        answers((1, 7, None, outcome, day(1)))
