"""What is shown while packs are challenged: frequencies are the logged probabilities, and differences are unbiased."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import load_pack
from memlab.kernel.policies import Challenge
from memlab.kernel.recall import draw_challenge, generator, inclusion

COUNT = 14
HEADS = st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=5, unique=True)


COMPANION = load_pack("companion")


def challenge(design="extra", extra=1, rate=1.0):
    return Challenge(COMPANION, design, extra, rate, 1, 0, "")


def drawn(head, others, *, design="extra", extra=1, rate=1.0, state=0):
    given = [challenge(design, extra, rate)] * len(others)
    chance = generator(7, state)
    return draw_challenge(
        np.array(head), [np.array(other) for other in others], COUNT, given, chance
    )


DESIGNS = [
    ("extra", 1, 1.0),
    ("extra", 2, 1.0),
    ("extra", 1, 0.4),
    ("lot", 1, 1.0),
    ("lot", 1, 0.5),
    ("ab", 1, 1.0),
    ("ab", 1, 0.3),
]


@pytest.mark.parametrize(("design", "extra", "rate"), DESIGNS)
@pytest.mark.parametrize("count", [600, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "others", [[[0, 7, 8, 2]], [[0, 7, 8, 2], [7, 9, 1, 0]], [[5, 6, 7, 8], [5, 9], [3, 2, 1, 0]]]
)
def test_frequencies_are_the_propensities(design, extra, rate, others, count):
    head, seen = [0, 1, 2, 3], np.zeros(COUNT)
    for state in range(count):
        shown, _, expected, *_ = drawn(
            head, others, design=design, extra=extra, rate=rate, state=state
        )
        seen[shown] += 1
    error = np.sqrt(np.maximum(expected * (1 - expected), 0) / count)
    assert (np.abs(seen / count - expected) <= 4.5 * error + 1e-12).all()


@given(HEADS, st.lists(HEADS, min_size=1, max_size=3), st.integers(1, 4), st.integers(0, 1000))
def test_the_top_k_keeps_its_order_and_only_items_of_challengers_are_added(
    head, others, extra, state
):
    shown, probes, propensity, draws, _ = drawn(head, others, extra=extra, state=state)
    wanted = {item for other in others for item in other} - set(head)
    assert [item for item in shown.tolist() if item not in probes.tolist()] == head
    assert set(probes.tolist()) <= wanted
    assert len(probes) == draws == min(extra, len(wanted))
    assert set(np.flatnonzero(propensity).tolist()) == wanted | set(head)
    assert propensity.sum() == pytest.approx(len(head) + draws)


@given(HEADS, st.lists(HEADS, min_size=1, max_size=3), st.integers(0, 1000))
def test_an_ab_shows_the_head_of_one_pack_as_it_is(head, others, state):
    heads = [head, *others]
    shown, probes, propensity, draws, whose = drawn(head, others, design="ab", state=state)
    assert shown.tolist() == heads[whose]
    assert set(probes.tolist()) == set(heads[whose]) - set(head)
    assert len(probes) <= draws
    for item in range(COUNT):
        assert propensity[item] == pytest.approx(sum(item in head for head in heads) / len(heads))


@given(HEADS, st.lists(HEADS, min_size=1, max_size=3), st.integers(0, 1000))
def test_a_lot_shows_as_many_as_ever_and_always_what_all_would_show(head, others, state):
    shown, probes, propensity, *_ = drawn(head, others, design="lot", state=state)
    common = set(head).intersection(*others)
    assert len(shown) == len(head)
    assert common <= set(shown.tolist()) <= set(head).union(*others)
    assert set(probes.tolist()) == set(shown.tolist()) - set(head)
    assert propensity.sum() == pytest.approx(len(head))


@given(
    HEADS,
    HEADS,
    st.sampled_from(["extra", "lot"]),
    st.lists(st.floats(0, 1), min_size=COUNT, max_size=COUNT),
)
def test_the_weighted_difference_is_right_on_average(head, other, design, rewards):
    """By enumeration of what can be drawn first, in place of luck: sums over items need their probabilities alone."""
    _, _, propensity, draws, _ = drawn(head, [other], design=design)
    rewards = np.array(rewards)
    if not draws:  # a head that lacks nothing has no room for what else another one would show
        assert design == "lot" or not set(other) - set(head)
        return
    for arm in (set(other) - set(head), set(head) - set(other)):
        assert all(propensity[item] > 0 for item in arm)
        expected = sum(propensity[item] * rewards[item] / propensity[item] for item in arm)
        assert expected == pytest.approx(sum(rewards[item] for item in arm))


def test_of_one_challenger_each_item_is_as_likely_and_what_more_want_is_likelier():
    _, _, alone, *_ = drawn([0, 1], [[0, 5, 6, 7]])
    assert alone[[5, 6, 7]] == pytest.approx(1 / 3)
    _, _, shared, *_ = drawn([0, 1], [[0, 5], [5, 6]])
    assert shared[5] / shared[6] == pytest.approx(np.sqrt(2))


def test_a_drawn_item_is_at_its_best_rank():
    places = {5: [], 3: []}
    for state in range(400):
        shown = drawn([0, 1, 2, 3], [[5, 1, 2, 0]], design="lot", state=state)[0].tolist()
        for item, value in places.items():
            if item in shown:
                value.append(shown.index(item))
    assert set(places[5]) == {0, 1}  # 5 is first of one pack, 0 of the other: a draw decides
    assert set(places[3]) == {3}


def test_heads_of_another_length_share_what_room_the_live_head_has():
    shown, _, propensity, *_ = drawn([0, 1, 2, 3], [[0, 9]], design="lot")
    assert len(shown) == 4
    assert propensity[[1, 2, 3, 9]] == pytest.approx(3 / 4)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12), st.data())
def test_inclusion_probabilities_sum_to_the_draws_and_keep_their_proportions(weights, data):
    draws = data.draw(st.integers(1, len(weights)))
    share = inclusion(np.array(weights), draws)
    assert share.sum() == pytest.approx(draws)
    assert ((share > 0) & (share <= 1 + 1e-12)).all()
    below = share < 1
    ratio = share[below] / np.array(weights)[below]
    assert ratio == pytest.approx(np.full(below.sum(), ratio.mean() if below.any() else 0))
