"""Challenges: items are shown as often as their logged probabilities say, and differences are unbiased."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import load_pack
from memlab.kernel.policies import Challenge
from memlab.kernel.recall import drafted, draw_challenge, generator, maximum_draws

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
    ("extra", "auto", 1.0),
    ("lot", 1, 1.0),
    ("lot", 1, 0.5),
    ("ab", 1, 1.0),
    ("ab", 1, 0.3),
]


@pytest.mark.long
@pytest.mark.parametrize(("design", "extra", "rate"), DESIGNS)
@pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.slow)])
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
    shown, probes, propensity, draws, *_ = drawn(head, others, extra=extra, state=state)
    wanted = {item for other in others for item in other} - set(head)
    assert [item for item in shown.tolist() if item not in probes.tolist()] == head
    assert set(probes.tolist()) <= wanted
    assert len(probes) == draws == min(extra, len(wanted))
    assert set(np.flatnonzero(propensity).tolist()) == wanted | set(head)
    assert propensity.sum() == pytest.approx(len(head) + draws)


@given(HEADS, st.lists(HEADS, min_size=1, max_size=3), st.integers(0, 1000))
def test_an_ab_shows_the_head_of_one_pack_as_it_is(head, others, state):
    heads = [head, *others]
    shown, probes, propensity, draws, whose, _ = drawn(head, others, design="ab", state=state)
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


def test_of_one_challenger_each_item_is_as_likely_and_what_more_want_is_likelier():
    _, _, alone, *_ = drawn([0, 1], [[0, 5, 6, 7]])
    assert alone[[5, 6, 7]] == pytest.approx(1 / 3)
    _, _, shared, *_ = drawn([0, 1], [[0, 5], [5, 6]])
    assert shared[5] / shared[6] == pytest.approx(np.sqrt(2))


@pytest.mark.long
def test_a_drawn_item_is_at_its_best_rank():
    places = {5: [], 3: []}
    for state in range(400):
        shown = drawn([0, 1, 2, 3], [[5, 1, 2, 0]], design="lot", state=state)[0].tolist()
        for item, value in places.items():
            if item in shown:
                value.append(shown.index(item))
    assert set(places[5]) == {0, 1}  # 5 is first of one pack, 0 of the other: a draw decides
    assert set(places[3]) == {3}


def test_a_shorter_head_leaves_its_positions_to_the_active_pack():
    shown, _, propensity, *_, groups = drawn([0, 1, 2, 3], [[0, 9]], design="lot")
    assert len(shown) == 4
    assert groups == [[1, 9], [2], [3]]
    assert propensity[[0, 1, 9, 2, 3]].tolist() == [1, 0.5, 0.5, 1, 1]


def test_a_lot_of_two_packs_draws_from_pairs_of_equal_rank():
    *_, groups = drawn([0, 1, 2, 3], [[7, 1, 8, 9]], design="lot")
    assert groups == [[0, 7], [2, 8], [3, 9]]


def test_extra_items_are_drawn_one_from_each_group():
    *_, draws, _, groups = drawn([0, 1], [[0, 5, 6, 7, 8, 9]], extra=2)
    assert (draws, groups) == (2, [[5, 6], [7, 8, 9]])


@pytest.mark.parametrize(("limit", "own", "count"), [(1, 1, 1), (4, 4, 1), (10, 3, 2), (10, 10, 3)])
def test_auto_adds_half_of_the_disputed_items_and_at_most_three_tenths(limit, own, count):
    heads = np.arange(limit), [np.arange(limit, limit + own)]
    given = [challenge(extra="auto")]
    draw = draw_challenge(*heads, limit + own, given, generator(7, 0))
    assert draw.draws == len(draw.groups) == count == maximum_draws(given, limit, own)


def test_a_draft_shows_the_better_half_of_each_pack():
    shown, probes, propensity, draws, _, groups = drawn(
        [0, 1, 2, 3], [[7, 8, 9, 3]], design="draft", extra="auto"
    )
    assert (groups, draws) == ([[8, 1]], 1)
    assert propensity[[3, 0, 7, 1, 8, 2, 9]].tolist() == [1, 1, 1, 0.5, 0.5, 0, 0]
    assert set(shown.tolist()) - {1, 8} == {3, 0, 7}
    assert set(probes.tolist()) == set(shown.tolist()) & {7, 8}
    firsts = {
        int(drawn([0, 1, 2, 3], [[7, 8, 9, 3]], design="draft", extra="auto", state=n)[0][0])
        for n in range(30)
    }
    assert firsts == {0, 7}


@given(HEADS, HEADS, st.integers(0, 4), st.integers(0, 1000))
def test_a_draft_has_the_size_of_the_active_head_and_shows_what_both_share(
    head, other, extra, state
):
    shown, _, propensity, _, _, groups = drawn(
        head, [other], design="draft", extra=extra or "auto", state=state
    )
    live, own = drafted(head, other)
    disputed = set(head) ^ set(other)
    added = min(extra, len(disputed - set(np.flatnonzero(propensity >= 1 - 1e-12)))) if extra else 0
    assert set(head) & set(other) <= set(shown.tolist())
    assert len(shown) >= len(head)
    assert len(set(shown.tolist())) == len(shown)
    assert all(propensity[item] > 0 for item in live[: len(own)] + own)
    if extra:
        assert all(propensity[item] > 0 for item in disputed)
    else:
        assert len(shown) == len(head)
    assert len(shown) <= len(head) + max(added, extra)
    assert all(sum(item in shown for item in group) == 1 for group in groups)
