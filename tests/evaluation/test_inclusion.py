"""Inclusion-weighted values: against loops, against vw-estimators, and against an enumeration of all outcomes."""

import itertools

import numpy as np
import pytest
from estimators.bandits import ips, snips
from hypothesis import given
from hypothesis import strategies as st

from memlab.science.evaluation._evidence import COLUMNS, difference_statistic
from memlab.science.evaluation.parts import ARM, value_statistic

chances = st.floats(0.01, 0.99)
items = st.lists(st.tuples(st.booleans(), chances, st.floats(0, 1)), min_size=1, max_size=40)
sures = st.lists(st.floats(0, 1), max_size=5)


def arm(rows=(), sure=(), *, unsupported=0, silent=0.0):
    """Return the totals of an arm: ``rows`` of random items (shown, propensity, reward), and ``sure`` rewards."""
    weights = [1 / chance if shown else 0.0 for shown, chance, _ in rows]
    earned = sum(weight * reward for weight, (_, _, reward) in zip(weights, rows, strict=True))
    result = {
        "certain": len(sure),
        "certain weight": len(sure),
        "certain reward": sum(sure),
        "probes": len(rows),
        "weight": sum(weights),
        "weighted reward": earned,
        "silent": silent,
        "unsupported": unsupported,
    }
    return np.array([result[name] for name in COLUMNS], dtype=float)


def totals(recalls, *arms):
    return np.concatenate([[recalls], *arms])


@given(items)
def test_with_a_single_item_the_estimators_equal_vw_ips_and_snips(rows):
    """A policy that takes one item: where the log took another, vw counts a prediction of 0."""
    oracles = ips.Estimator(), snips.Estimator()
    for matches, chance, reward in rows:
        for oracle in oracles:
            oracle.add_example(chance, reward, 1.0 if matches else 0.0)
    total = totals(len(rows), arm(rows))
    assert value_statistic("ht", 0.0)(total) == pytest.approx(oracles[0].get())
    if any(shown for shown, _, _ in rows):
        assert value_statistic("snips", 0.0)(total) == pytest.approx(oracles[1].get())


@pytest.mark.long
@given(items, sures, st.integers(1, 5))
def test_a_value_is_the_sum_of_what_is_certain_and_the_weighted_mean_of_what_is_not(
    rows, sure, recalls
):
    total = totals(recalls, arm(rows, sure))
    pairs = [(1 / chance, reward) for matches, chance, reward in rows if matches]
    weight, earned = sum(w for w, _ in pairs), sum(w * r for w, r in pairs)
    assert value_statistic("ht", 0.0)(total) == pytest.approx((sum(sure) + earned) / recalls)
    if weight:
        expected = (sum(sure) + len(rows) * earned / weight) / recalls
        assert value_statistic("snips", 0.0)(total) == pytest.approx(expected)
        # it never leaves the range of the rewards
        assert (
            -1e-9
            <= value_statistic("snips", 0.0)(total)
            <= (len(rows) + len(sure)) / recalls + 1e-9
        )


def test_horvitz_thompson_is_right_on_average():
    """Every outcome of a log with a head of one and a probe of one, weighted by its probability."""
    rewards, chance, target = [0.9, 0.2, 0.7, 0.4], [1.0, 0.3, 0.1, 0.1], [2]
    expected = 0.0
    for probed, probability in ((None, 0.5), (1, 0.3), (2, 0.1), (3, 0.1)):
        rows = [(at == probed, chance[at], rewards[at]) for at in target]
        expected += probability * float(
            value_statistic("ht", 0.0)(totals(1, arm(rows, rewards[:1])))
        )
    assert expected == pytest.approx(rewards[0] + rewards[2])


@given(st.integers(0, 5), st.floats(0, 1), st.sampled_from(["ht", "snips"]))
def test_bounds_hold_whatever_the_unsupported_earn(unsupported, earned, estimator):
    sure = [0.2, 0.5, 0.8]
    total = totals(1, arm(sure=sure, unsupported=unsupported))
    low, high = value_statistic(estimator, 0.0)(total), value_statistic(estimator, 1.0)(total)
    assert low - 1e-9 <= sum(sure) + unsupported * earned <= high + 1e-9
    assert high - low == pytest.approx(unsupported)


@pytest.mark.long
@given(items, sures, items, sures)
def test_a_difference_is_that_of_its_arms(rows, sure, others, other_sure):
    for estimator in ("ht", "snips"):
        first, second = arm(rows, sure, unsupported=1), arm(others, other_sure, unsupported=2)
        for ends in ((0.0, 1.0), (1.0, 0.0)):
            apart = [
                value_statistic(estimator, fill)(totals(3, item))
                for fill, item in zip(ends, (first, second), strict=True)
            ]
            result = difference_statistic(estimator, *ends)(totals(3, first, second))
            assert result == pytest.approx(apart[0] - apart[1], abs=1e-9)


def test_silent_probes_earn_anything_within_the_bounds():
    rows = [(True, 0.5, 1.0)]
    total = totals(1, arm(rows, silent=2.0))
    assert value_statistic("snips", 0.0)(total) == pytest.approx(0.5)
    assert value_statistic("snips", 1.0)(total) == pytest.approx(1.0)


def test_of_a_stratum_that_nobody_answered_only_the_range_is_known():
    total = totals(1, arm([(False, 0.5, 0.0)], [0.5]))
    assert value_statistic("snips", 0.0)(total) == 0.5
    assert value_statistic("snips", 1.0)(total) == 1.5


def test_certain_items_set_the_typical_reward_if_no_probe_has_feedback():
    total = totals(1, arm(sure=[0.5], unsupported=1))
    assert value_statistic("snips", np.nan)(total) == 1.0


def test_where_nothing_was_shown_there_is_no_typical_value():
    nothing = totals(2, arm(unsupported=4))
    with np.errstate(divide="ignore", invalid="ignore"):
        assert np.isnan(value_statistic("snips", np.nan)(nothing))
        assert (value_statistic("snips", 0.0)(nothing), value_statistic("snips", 1.0)(nothing)) == (
            0,
            2,
        )


def test_statistics_take_a_stack_of_totals():
    stack = np.stack([totals(2, arm([(True, 0.5, 1.0)], [0.25])), totals(1, arm(unsupported=1))])
    for statistic in (value_statistic("ht", 0.5), value_statistic("snips", 0.5)):
        with np.errstate(divide="ignore", invalid="ignore"):
            assert statistic(stack).tolist() == [float(statistic(row)) for row in stack]
    assert stack.shape[1] == 1 + ARM


def test_every_subset_of_a_small_log_agrees_with_the_definition():
    rewards, chance = [1.0, 0.0, 0.5], [0.5, 0.25, 0.75]
    for shown in itertools.product([False, True], repeat=3):
        rows = list(zip(shown, chance, rewards, strict=True))
        by_hand = sum(r / p for s, p, r in rows if s)
        assert value_statistic("ht", 0.0)(totals(1, arm(rows))) == pytest.approx(by_hand)
