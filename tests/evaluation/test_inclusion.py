"""Inclusion-weighted values: against loops, against vw-estimators, and against the truth by enumeration."""

import itertools

import numpy as np
import pytest
from estimators.bandits import ips, snips
from hypothesis import given
from hypothesis import strategies as st

from memlab.evaluation._inclusion import (
    WIDTH,
    difference,
    filled,
    horvitz_thompson,
    inclusion_weights,
    self_normalised,
)

chances = st.floats(0.01, 1)
items = st.lists(st.tuples(st.booleans(), chances, st.floats(0, 1)), min_size=1, max_size=40)


def totals(recalls, size, unsupported, weights, rewards):
    return np.array(
        [recalls, size, unsupported, sum(weights), sum(w * r for w, r in zip(weights, rewards, strict=True))]
    )


@given(items)
def test_one_item_a_recall_is_vws_ips_and_snips(rows):
    """A policy that takes one item: where the log took another, vw counts a prediction of 0."""
    oracles = ips.Estimator(), snips.Estimator()
    for matches, chance, reward in rows:
        for oracle in oracles:
            oracle.add_example(chance, reward, 1.0 if matches else 0.0)
    shown = np.array([matches for matches, _, _ in rows])
    weights = inclusion_weights(shown, np.array([chance for _, chance, _ in rows]))
    found = totals(len(rows), len(rows), 0, weights, [reward for _, _, reward in rows])
    assert horvitz_thompson(found) == pytest.approx(oracles[0].get())
    if shown.any():
        assert self_normalised(found) == pytest.approx(oracles[1].get())


@given(items, st.integers(1, 5))
def test_values_are_those_of_a_loop(rows, recalls):
    shown = np.array([matches for matches, _, _ in rows])
    weights = inclusion_weights(shown, np.array([chance for _, chance, _ in rows]))
    rewards = [reward for _, _, reward in rows]
    found = totals(recalls, len(rows), 0, weights, rewards)
    weighted = weight = 0.0
    for matches, chance, reward in rows:
        if matches:
            weighted += reward / chance
            weight += 1 / chance
    assert horvitz_thompson(found) == pytest.approx(weighted / recalls)
    if weight:
        assert self_normalised(found) == pytest.approx(len(rows) / recalls * weighted / weight)
        # it never leaves the range of the rewards
        assert -1e-9 <= self_normalised(found) <= len(rows) / recalls + 1e-9


def test_horvitz_thompson_is_right_on_average():
    """Every outcome of a log with a head of one and a probe of one, weighted by its probability."""
    rewards = np.array([0.9, 0.2, 0.7, 0.4])
    chance = np.array([1.0, 0.3, 0.1, 0.1])
    target = [0, 2]
    expected = 0.0
    for probed, probability in ((None, 0.5), (1, 0.3), (2, 0.1), (3, 0.1)):
        shown = np.array([at == 0 or at == probed for at in range(4)])
        weights = inclusion_weights(shown, chance)[target]
        expected += probability * float(horvitz_thompson(totals(1, 2, 0, weights, rewards[target])))
    assert expected == pytest.approx(rewards[target].sum())


@given(st.integers(0, 5), st.floats(0, 1), st.sampled_from(["ht", "snips"]))
def test_bounds_hold_whatever_the_unsupported_earn(unsupported, earned, estimator):
    supported, rewards = 3, [0.2, 0.5, 0.8]
    found = totals(1, supported + unsupported, unsupported, [1.0] * supported, rewards)
    truth = sum(rewards) + unsupported * earned
    low, high = filled(estimator, 0.0)(found), filled(estimator, 1.0)(found)
    assert low - 1e-9 <= truth <= high + 1e-9
    assert high - low == pytest.approx(unsupported)


def test_without_any_support_bounds_are_all_there_is():
    nothing = totals(2, 10, 10, [], [])
    with np.errstate(divide="ignore", invalid="ignore"):
        assert filled("snips", 0.0)(nothing) == 0
        assert filled("snips", 1.0)(nothing) == 5


def test_an_unsupported_item_of_both_policies_cancels():
    one = totals(1, 3, 1, [1.0, 1.0], [0.5, 0.9])
    other = totals(1, 3, 1, [1.0, 1.0], [0.5, 0.1])
    shared = np.concatenate([one, other, [0, 0]])
    apart = np.concatenate([one, other, [1, 1]])
    for estimator in ("ht", "snips"):
        least, most = difference(estimator, 0.0, 1.0), difference(estimator, 1.0, 0.0)
        assert least(shared) == pytest.approx(most(shared)) == pytest.approx(0.8)
        assert (least(apart), most(apart)) == (pytest.approx(-0.2), pytest.approx(1.8))


def test_statistics_take_a_stack_of_totals():
    stack = np.stack([totals(2, 4, 0, [1, 2], [0.5, 0.25]), totals(1, 4, 1, [3], [1.0])])
    for statistic in (horvitz_thompson, self_normalised, filled("ht", 0.5), filled("snips", 0.5)):
        assert statistic(stack).tolist() == [float(statistic(row)) for row in stack]
    assert stack.shape[1] == WIDTH


def test_weights_of_what_was_not_shown_are_zero_whatever_its_propensity():
    shown = np.array([False, False, True, True])
    found = inclusion_weights(shown, np.array([0.0, np.nan, 0.5, np.nan]))
    assert found[:3].tolist() == [0, 0, 2]
    assert np.isnan(found[3])


def test_every_subset_of_a_small_log_agrees_with_the_definition():
    rewards, chance = [1.0, 0.0, 0.5], [0.5, 0.25, 1.0]
    for shown in itertools.product([False, True], repeat=3):
        weights = inclusion_weights(np.array(shown), np.array(chance))
        by_hand = sum(r / p for s, r, p in zip(shown, rewards, chance, strict=True) if s)
        assert horvitz_thompson(totals(1, 3, 0, weights, rewards)) == by_hand
