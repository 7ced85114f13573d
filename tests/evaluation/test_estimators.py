"""Estimators by arrays: equal to obp and vw-estimators, without bias where they promise it, and honest about the rest.

The frozen values are those of obp 0.5.7 on the arrays of ``choices`` and ``rankings``.
"""

import itertools

import numpy as np
import pytest
from estimators.bandits import ips as vw_ips
from estimators.bandits import snips as vw_snips
from estimators.slates import pseudo_inverse as vw_pseudo_inverse
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError
from memlab.evaluation import estimators
from memlab.evaluation.estimators import (
    cascade_dr,
    click_ips,
    clipped_ips,
    direct_method,
    doubly_robust,
    expected_rewards,
    independent_ips,
    interaction_ips,
    ips,
    position_based,
    pseudo_inverse,
    shrunk_dr,
    slate_ips,
    slate_weights,
    snips,
    switch_dr,
)

ROWS, ITEMS, PLACES = 300, 5, 3


def log():
    """What the frozen values were made on: choices, then rankings, by one generator."""
    dice = np.random.default_rng(20261122)
    logged = np.exp(dice.normal(size=(ROWS, ITEMS)))
    logged /= logged.sum(axis=1, keepdims=True)
    target = np.exp(dice.normal(size=(ROWS, ITEMS)))
    target /= target.sum(axis=1, keepdims=True)
    action = np.array([dice.choice(ITEMS, p=row) for row in logged])
    truth = 1 / (1 + np.exp(-dice.normal(size=(ROWS, ITEMS))))
    at = np.arange(ROWS), action
    reward = (dice.random(ROWS) < truth[at]).astype(float)
    expected = np.clip(truth + dice.normal(0, 0.1, (ROWS, ITEMS)), 0, 1)
    chances = dice.uniform(0.1, 0.9, (ROWS, PLACES)), dice.uniform(0, 1, (ROWS, PLACES))
    rewards = (dice.random((ROWS, PLACES)) < 0.4).astype(float)
    model, drawn = dice.random((ROWS, PLACES, ITEMS)), dice.random((ROWS, PLACES, ITEMS))
    drawn /= drawn.sum(axis=2, keepdims=True)
    shown = dice.integers(0, ITEMS, (ROWS, PLACES))
    of_shown = np.take_along_axis(model, shown[:, :, None], axis=2)[:, :, 0]
    return (action, reward, logged[at], target), expected, (rewards, *chances), (of_shown, (model * drawn).sum(axis=2))


CHOICES, EXPECTED, RANKINGS, MODEL = log()


@pytest.mark.parametrize(
    ("found", "obp"),
    [
        (lambda: ips(*CHOICES), 0.4263851256212644),
        (lambda: snips(*CHOICES), 0.43799942604559317),
        (lambda: clipped_ips(*CHOICES, cap=2.0), 0.35631001911935795),
        (lambda: doubly_robust(*CHOICES, EXPECTED), 0.4505601782802591),
        (lambda: doubly_robust(*CHOICES, EXPECTED, normalise=True), 0.4492273344439737),
        (lambda: switch_dr(*CHOICES, EXPECTED, cap=2.0), 0.5085413686469726),
        (lambda: shrunk_dr(*CHOICES, EXPECTED, shrinkage=2.0), 0.5004834964576912),
        (lambda: independent_ips(*RANKINGS), 1.5078841760480384),
        (lambda: independent_ips(*RANKINGS, normalise=True), 1.0918572466553125),
        (lambda: interaction_ips(*RANKINGS), 2.281500631018909),
        (lambda: interaction_ips(*RANKINGS, normalise=True), 1.1742562328333386),
        (lambda: cascade_dr(*RANKINGS, *MODEL), 1.6079849983795902),
        (lambda: slate_ips(RANKINGS[0], RANKINGS[1].prod(axis=1), RANKINGS[2].prod(axis=1)), 3.0198571446926725),
        (
            lambda: slate_ips(RANKINGS[0], RANKINGS[1].prod(axis=1), RANKINGS[2].prod(axis=1), normalise=True),
            1.23370457376034,
        ),
    ],
)
def test_it_is_obps_value(found, obp):
    estimate = found()
    assert estimate.value == pytest.approx(obp, rel=1e-12)
    assert estimate.low < estimate.value < estimate.high


def test_they_are_vws_values():
    action, reward, propensity, target = CHOICES
    one, two, slates = vw_ips.Estimator(), vw_snips.Estimator(), vw_pseudo_inverse.Estimator()
    for at in range(ROWS):
        one.add_example(propensity[at], reward[at], target[at, action[at]])
        two.add_example(propensity[at], reward[at], target[at, action[at]])
        slates.add_example(RANKINGS[1][at].tolist(), reward[at], RANKINGS[2][at].tolist())
    assert ips(*CHOICES).value == pytest.approx(one.get())
    assert snips(*CHOICES).value == pytest.approx(two.get())
    assert pseudo_inverse(reward, *RANKINGS[1:]).value == pytest.approx(slates.get())


# -- without bias: every outcome of a tiny world, by its probability --------------------------------------------------

LOGGED, TARGET = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
WORTH = np.array([0.2, 0.9, 0.4])


@pytest.mark.parametrize("wrong", [0.0, 0.3])
def test_weights_and_any_model_find_the_value(wrong):
    model = WORTH[None, :] + wrong * np.array([[1.0, -2.0, 0.5]])
    found = {"ips": 0.0, "dr": 0.0, "switch": 0.0}
    for item in range(3):
        one = [item], [WORTH[item]], [LOGGED[item]], TARGET[None, :]
        found["ips"] += LOGGED[item] * ips(*one).value
        found["dr"] += LOGGED[item] * doubly_robust(*one, model).value
        found["switch"] += LOGGED[item] * switch_dr(*one, model, cap=10.0).value
    assert found == pytest.approx(dict.fromkeys(found, float(WORTH @ TARGET)))


def permutations(scores, k=2):
    """Plackett and Luce's probability of each ranking of k items: of the whole, of each item given those above."""
    items = range(len(scores))
    for slate in itertools.permutations(items, k):
        left, given_above = list(items), []
        for item in slate:
            given_above.append(scores[item] / sum(scores[one] for one in left))
            left.remove(item)
        yield slate, np.array(given_above)


@pytest.fixture
def slates():
    logging, wanted = ([1.0, 2.0, 1.5], [3.0, 1.0, 1.0])
    logged, target = dict(permutations(logging)), dict(permutations(wanted))
    return list(logged), np.array(list(logged.values())), np.array(list(target.values()))


def value_of(slates, earned):
    """The true value, by the reward of each slate."""
    shown, _, target = slates
    return sum(chances.prod() * earned(slate) for slate, chances in zip(shown, target, strict=True))


def averaged(slates, estimate):
    return sum(chances.prod() * estimate(at) for at, chances in enumerate(slates[1]))


def test_whole_slates_may_earn_anything(slates):
    shown, logged, target = slates

    def earned(slate):
        return float(slate[0] * 2 + slate[1] ** 2 - 3 * (slate == (1, 2)))

    found = averaged(slates, lambda at: slate_ips([earned(shown[at])], [logged[at].prod()], [target[at].prod()]).value)
    assert found == pytest.approx(value_of(slates, earned))


def test_a_cascade_depends_on_what_is_above(slates):
    shown, logged, target = slates

    def parts(slate):
        return [0.3 + 0.2 * slate[0], 0.5 * slate[1] - 0.4 * (slate[0] == 1)]

    truth = value_of(slates, lambda slate: sum(parts(slate)))
    found = averaged(slates, lambda at: interaction_ips([parts(shown[at])], logged[[at]], target[[at]]).value)
    assert found == pytest.approx(truth)
    # a model of what is earned from each place on, right or wrong
    scores = [3.0, 1.0, 1.0]
    wrong = np.random.default_rng(0).normal(size=(3, 3, 3))

    def model(slate):
        first = np.array([wrong[0, 0, item] for item in range(3)])
        second = np.array([wrong[1, slate[0], item] for item in range(3)])
        left = [item for item in range(3) if item != slate[0]]
        drawn = [
            sum(scores[item] / 5 * first[item] for item in range(3)),
            sum(scores[item] / sum(scores[one] for one in left) * second[item] for item in left),
        ]
        return [[first[slate[0]], second[slate[1]]]], [drawn]

    found = averaged(
        slates, lambda at: cascade_dr([parts(shown[at])], logged[[at]], target[[at]], *model(shown[at])).value
    )
    assert found == pytest.approx(truth)


def marginal(slates, which, item, place):
    return sum(c.prod() for slate, c in zip(slates[0], slates[which], strict=True) if slate[place] == item)


def test_items_and_places_by_themselves(slates):
    shown = slates[0]

    def parts(slate):
        return [0.1 * slate[0] + 0.2, 0.3 * slate[1]]

    def chances(which, slate):
        return [[marginal(slates, which, item, place) for place, item in enumerate(slate)]]

    found = averaged(
        slates,
        lambda at: independent_ips([parts(shown[at])], chances(1, shown[at]), chances(2, shown[at])).value,
    )
    assert found == pytest.approx(value_of(slates, lambda slate: sum(parts(slate))))


def test_items_that_are_seen_by_their_place(slates):
    shown, seen, worth = slates[0], [1.0, 0.4], [0.3, 0.8, 0.5]

    def parts(slate):
        return [seen[place] * worth[item] for place, item in enumerate(slate)]

    def places(which, slate):
        return [[[marginal(slates, which, item, place) for place in range(2)] for item in slate]]

    found = averaged(
        slates,
        lambda at: position_based([parts(shown[at])], places(1, shown[at]), places(2, shown[at]), seen).value,
    )
    assert found == pytest.approx(value_of(slates, lambda slate: sum(parts(slate))))


def test_the_pseudo_inverse_needs_the_sum_alone(slates):
    """The reward of a slate is a sum over items and places, of which nobody sees the parts."""
    shown, logged, target = slates
    weights = slate_weights(shown, logged.prod(axis=1), target.prod(axis=1))

    def earned(slate):
        return 0.1 * slate[0] + 0.2 + 0.3 * slate[1] ** 2

    found = averaged(slates, lambda at: weights[at] * earned(shown[at]))
    assert found == pytest.approx(value_of(slates, earned))


def test_an_order_by_what_is_clicked():
    """The log always shows a, b; the target b, a. Clicks follow examination and what the items are."""
    seen, drawn, worth = np.array([1.0, 0.5]), np.array([0.6, 0.2]), np.array([0.5, 0.9])
    logged, target = seen * drawn, seen[::-1] * drawn
    # the expectation of the estimator: clicks by the log's chances, rewards after them
    found = click_ips([logged * worth], [logged], [target]).value
    assert found == pytest.approx(float(target @ worth))


# -- properties -------------------------------------------------------------------------------------------------------


@given(st.floats(0.01, 50), st.floats(0.01, 50))
def test_clipping_hides_no_more_than_it_says(cap, other):
    low, high = sorted((cap, other))
    tight, loose = clipped_ips(*CHOICES, cap=low), clipped_ips(*CHOICES, cap=high)
    assert tight.bias >= loose.bias - 1e-12
    assert tight.value <= loose.value + 1e-12
    assert tight.low <= tight.value <= tight.value + tight.bias <= tight.high + 1e-9
    assert clipped_ips(*CHOICES, cap=1e6).value == pytest.approx(ips(*CHOICES).value)


@pytest.mark.parametrize("low", [-3.0, -1.0, 0.0, 0.5])
@pytest.mark.parametrize("high", [-0.5, 0.0, 1.0, 2.0])
def test_clipping_hides_at_most_the_share_that_is_left_times_the_greatest_reward(low, high):
    """Whatever the rewards of the range that were not counted were, the value is off by no more than the bias."""
    if low >= high:
        return
    action, reward, propensity, target = CHOICES
    weight = target[np.arange(len(action)), action] / propensity
    hidden = 1 - np.minimum(weight, 0.7).mean()
    found = clipped_ips(action, low + (high - low) * reward, propensity, target, cap=0.7, reward_range=(low, high))
    assert hidden > 0.1
    assert found.bias == pytest.approx(max(abs(hidden * one) for one in np.linspace(low, high, 50)))
    for one in (low, high):
        assert found.low <= found.value + hidden * one <= found.high


def test_switching_trusts_a_weight_of_just_the_cap_and_no_greater_one():
    one = ([0, 1], [1.0, 0.0], [0.25, 0.25], [[0.5, 0.5]] * 2)
    model = [[0.7, 0.1]] * 2
    assert switch_dr(*one, model, cap=2.0).value == doubly_robust(*one, model).value
    below = switch_dr(*one, model, cap=np.nextafter(2.0, 0.0)).value
    assert below == np.mean(np.sum(np.multiply(one[3], model), axis=1)) != doubly_robust(*one, model).value


@given(st.integers(0, 2**32))
def test_self_normalised_values_stay_within_the_rewards_and_move_with_them(seed):
    dice = np.random.default_rng(seed)
    action, propensity = dice.integers(0, 3, 40), dice.uniform(0.05, 1, 40)
    target = dice.dirichlet(np.ones(3), 40)
    reward = dice.uniform(-2, 5, 40)
    found = snips(action, reward, propensity, target).value
    assert reward.min() - 1e-9 <= found <= reward.max() + 1e-9
    assert snips(action, 2 * reward + 1, propensity, target).value == pytest.approx(2 * found + 1)
    model = dice.normal(size=(40, 3))
    assert shrunk_dr(action, reward, propensity, target, model, shrinkage=1e12).value == pytest.approx(
        doubly_robust(action, reward, propensity, target, model).value, rel=1e-6
    )
    assert shrunk_dr(action, reward, propensity, target, model, shrinkage=1e-12).value == pytest.approx(
        switch_dr(action, reward, propensity, target, model, cap=1e-9).value, rel=1e-6, abs=1e-9
    )


def test_clusters_widen_what_recalls_share():
    shared = np.repeat(np.random.default_rng(0).random(30), 10)
    action, propensity, target = np.zeros(300, int), np.ones(300), np.ones((300, 1))
    alone = ips(action, shared, propensity, target)
    together = ips(action, shared, propensity, target, cluster=np.repeat(np.arange(30), 10).tolist())
    assert together.error == pytest.approx(alone.error * np.sqrt(10), rel=0.03)


def test_the_direct_method_knows_how_little_it_saw():
    """Its interval holds the truth of a linear world as often as it says, and is that of fitting again."""
    dice, held = np.random.default_rng(3), 0
    for _ in range(200):
        features = dice.normal(size=(60, 4, 2))
        truth = 0.5 + features @ [0.3, -0.2]
        action = dice.integers(0, 4, 60)
        reward = truth[np.arange(60), action] + dice.normal(0, 0.5, 60)
        target = np.eye(4)[truth.argmax(axis=1)]
        found = direct_method(action, reward, target, features, ridge=0.0)
        value = 0.5 + 0.3606 * 1.0294  # the greatest of four normals, over the length of the slope
        held += found.low <= value <= found.high
    assert held >= 182


def test_models_do_not_see_what_they_predict():
    dice = np.random.default_rng(1)
    features = dice.normal(size=(200, 3, 2))
    action, cluster = dice.integers(0, 3, 200), np.repeat(np.arange(20), 10).tolist()
    reward = (dice.random(200) < 0.5).astype(float)
    plain = expected_rewards(action, reward, features, cluster=cluster)
    changed = expected_rewards(action, np.where(np.arange(200) < 10, 1 - reward, reward), features, cluster=cluster)
    np.testing.assert_array_equal(plain[:10], changed[:10])
    assert plain.shape == (200, 3)
    assert (plain[10:] != changed[10:]).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ips([0], [1.0], [0.0], [[1.0]]), "propensity holds the probability of what was shown"),
        (lambda: ips([2], [1.0], [0.5], [[0.5, 0.5]]), "action counts items from 0 to 1"),
        (lambda: ips([0], [np.nan], [0.5], [[1.0]]), "reward holds numbers that are not finite"),
        (lambda: ips([0], [1.0], [0.5], [[0.8, 0.8]]), "adds up to 1 at most"),
        (lambda: ips([0], [1.0], [0.5, 0.5], [[1.0]]), "propensity is of the size 2"),
        (lambda: ips([0.5], [1.0], [0.5], [[1.0]]), "action is int"),
        (lambda: ips(["x"], ["y"], [0.5], [[1.0]]), "reward is an array of numbers"),
        (lambda: clipped_ips([0], [1.0], [0.5], [[1.0]], cap=0.0), "above 0"),
        (lambda: clipped_ips([0], [1.0], [0.5], [[1.0]], cap=1.0, reward_range=(1.0, 0.0)), "reward_range"),
        (lambda: independent_ips([[1.0]], [[0.5, 0.5]], [[0.5, 0.5]]), "logged is of the size"),
        (lambda: position_based([[1.0]], [[[1.0]]], [[[1.0]]], [-1.0]), "examination"),
        (lambda: slate_weights([[0.5]], [1.0], [1.0]), "slates is int"),
        (lambda: slate_weights([[0], [1]], [0.5, 0.1], [1.0, 0.0]), "add up to 0.6"),
        (lambda: expected_rewards([0], [1.0], [[[1.0]]]), "no model can be fitted"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_every_estimator_names_what_it_is_and_shows_an_example():
    for name in estimators.__all__:
        doc = getattr(estimators, name).__doc__
        assert name in ("ClippedEstimate", "expected_rewards") or ">>>" in doc, name
