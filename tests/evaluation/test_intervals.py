"""Intervals of a mean by conversation: Student's t over whole clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from memlab.errors import InputError
from memlab.science.evaluation import cluster_interval


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=5), min_size=2, max_size=29))
def test_below_thirty_clusters_it_is_t_over_the_cluster_means(groups):
    values = [value for group in groups for value in group]
    clusters = [index for index, group in enumerate(groups) for _ in group]
    interval = cluster_interval(values, clusters)
    means = [np.mean(group) for group in groups]
    reach = stats.t.ppf(0.975, len(groups) - 1) * np.std(means, ddof=1) / len(groups) ** 0.5
    assert interval.value == pytest.approx(np.mean(means))
    assert interval.low == pytest.approx(np.mean(means) - reach, abs=1e-8)
    assert interval.high == pytest.approx(np.mean(means) + reach, abs=1e-8)


def test_from_thirty_clusters_on_it_is_the_mean_of_all_values():
    draw = np.random.default_rng(7)
    means = draw.normal(0.5, 0.1, size=60)
    values, clusters = np.repeat(means, 20), np.repeat(np.arange(60), 20).tolist()
    interval = cluster_interval(values, clusters)
    reach = stats.t.ppf(0.975, 59) * means.std(ddof=1) / 60**0.5
    assert interval.low == pytest.approx(means.mean() - reach)
    assert interval.high == pytest.approx(means.mean() + reach)
    # twenty copies of a value are one observation: by question it would be over four times as narrow
    assert interval.high - interval.low > 4 * 2 * 1.96 * values.std() / len(values) ** 0.5


@pytest.mark.parametrize("number", [2, 5, 29])
def test_twelve_digits_are_those_of_the_closed_form(number):
    dice = np.random.default_rng(number)
    sizes = dice.integers(1, 9, size=number)
    codes = np.repeat(np.arange(number), sizes)
    values = dice.uniform(size=len(codes))
    result = cluster_interval(values, codes.tolist())
    means = np.bincount(codes, weights=values) / sizes
    reach = stats.t.ppf(0.975, number - 1) * means.std(ddof=1) / number**0.5
    expected = means.mean() - reach, means.mean() + reach, means.mean()
    assert (result.low, result.high, result.value) == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_intervals_of_five_clusters_have_their_nominal_coverage():
    draw = np.random.default_rng(5)
    covered = 0
    for _ in range(1000):
        centres = draw.normal(0.6, 0.05, size=5)
        values = (centres[:, None] + draw.normal(0, 0.3, size=(5, 40))).ravel()
        interval = cluster_interval(values, [index // 40 for index in range(200)])
        covered += interval.low <= 0.6 <= interval.high
    assert 0.93 <= covered / 1000 <= 0.97


def test_a_mean_of_rounding_errors_is_not_told_from_zero():
    interval = cluster_interval([1e-17, 2e-17, 3e-17], list("abc"))
    assert interval is not None
    assert interval.p == 1.0


def test_values_that_are_not_defined_are_left_out():
    with_gaps = cluster_interval([0.2, float("nan"), 0.6, float("nan")], ["a", "a", "b", "c"])
    assert with_gaps == cluster_interval([0.2, 0.6], ["a", "b"])


@pytest.mark.parametrize(
    ("values", "clusters"), [([], []), ([0.5, 0.7], ["a", "a"]), ([float("nan"), 1.0], ["a", "b"])]
)
def test_fewer_than_two_clusters_have_no_interval(values, clusters):
    assert cluster_interval(values, clusters) is None


def test_values_and_clusters_must_pair():
    with pytest.raises(InputError, match=r"There are 2 clusters for values of shape \(1,\)"):
        cluster_interval([0.5], ["a", "b"])
