"""What weights say: effective sample, drift, tail; and which items a policy would show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.evaluation._top import best_of_each
from memlab.evaluation._weights import weigh

weights = st.lists(st.one_of(st.just(0.0), st.floats(1, 500)), min_size=1, max_size=300)


@given(weights, st.integers(1, 400))
def test_they_are_those_of_a_loop(values, supported):
    array = np.array(values)
    found = weigh(array, array > 0, supported=float(supported), logged=1000)
    held = sorted((value for value in values if value), reverse=True)
    total = sum(held)
    assert found.items == len(held)
    assert found.mean == pytest.approx(total / supported)
    if held:
        assert found.effective == pytest.approx(total**2 / sum(value**2 for value in held))
        assert found.effective_share == pytest.approx(found.effective / 1000)
        assert found.largest == held[0]
        assert found.top_share == pytest.approx(sum(held[: max(1, round(len(held) / 100))]) / total)
        assert 1 <= found.effective * (1 + 1e-9) <= len(held) * (1 + 1e-6) + 1e-6
    else:
        assert (found.effective, found.top_share) == (0, 0)


def test_what_has_no_reward_counts_for_the_mean_weight_alone():
    found = weigh(np.array([4.0, 4.0]), np.array([True, False]), supported=8, logged=1)
    assert (found.items, found.effective, found.mean) == (1, 1.0, 1.0)


def test_where_nothing_is_supported_the_mean_is_not_known():
    assert np.isnan(weigh(np.zeros(3), np.zeros(3, bool), supported=0, logged=5).mean)


scores = st.one_of(st.sampled_from([0.0, 1.0, 2.0, float("nan"), float("inf"), -float("inf")]), st.floats(-2, 2))


@given(st.data(), st.integers(1, 6), st.integers(1, 12))
def test_the_best_of_each_recall_are_those_of_a_loop(data, recalls, limit):
    sizes = [data.draw(st.integers(0, 12)) for _ in range(recalls)]
    pools = [data.draw(st.lists(scores, min_size=size, max_size=size)) for size in sizes]
    limits = [data.draw(st.integers(1, limit)) for _ in range(recalls)]
    recall = np.repeat(np.arange(recalls), sizes)
    flat = np.array([score for pool in pools for score in pool])
    rows, ranks = best_of_each(flat, recall, np.array(limits))
    expected, start = [], 0
    for pool, most in zip(pools, limits, strict=True):
        known = [at for at, score in enumerate(pool) if np.isfinite(score)]
        order = sorted(known, key=lambda at: (-pool[at], at))[:most]
        expected += [(start + at, rank) for rank, at in enumerate(order, 1)]
        start += len(pool)
    assert list(zip(rows.tolist(), ranks.tolist(), strict=True)) == expected
