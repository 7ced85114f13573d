"""Uncertainty over clusters: the jackknife with t when there are few, the bootstrap when there are many."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from memlab.evaluation._clusters import Sample, cluster_sums, holm


def mean(totals):
    return totals[..., 1] / totals[..., 0]


def sums_of(values):
    return np.stack([np.ones(len(values)), np.asarray(values, dtype=float)], axis=1)


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-5, 5)), min_size=1, max_size=30))
def test_sums_are_those_of_a_loop(rows):
    clusters = np.array([cluster for cluster, _ in rows])
    values = np.array([value for _, value in rows])
    found = cluster_sums([values, values**2], clusters, 5)
    for cluster in range(5):
        own = [value for place, value in rows if place == cluster]
        assert found[cluster, 0] == pytest.approx(sum(own))
        assert found[cluster, 1] == pytest.approx(sum(value**2 for value in own))


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=29), st.sampled_from([0.8, 0.95, 0.99]))
def test_for_a_mean_of_equal_clusters_the_jackknife_is_students_interval(values, level):
    found = Sample(sums_of(values), level=level).estimate(mean)
    error = np.std(values, ddof=1) / len(values) ** 0.5
    reach = stats.t.ppf((1 + level) / 2, len(values) - 1) * error
    assert found.value == pytest.approx(np.mean(values), abs=1e-9)
    assert found.low == pytest.approx(np.mean(values) - reach, abs=1e-6)
    assert found.high == pytest.approx(np.mean(values) + reach, abs=1e-6)
    if error > 1e-6:
        assert found.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=1e-6)


def test_the_jackknife_of_a_ratio_leaves_out_one_cluster_after_another():
    dice = np.random.default_rng(1)
    sums = dice.uniform(1, 2, size=(7, 2))
    found = Sample(sums).estimate(mean)
    without = [mean(np.delete(sums, at, axis=0).sum(axis=0)) for at in range(7)]
    assert found.error == pytest.approx(np.sqrt(6 / 7 * ((without - np.mean(without)) ** 2).sum()))


def test_from_thirty_clusters_on_it_is_the_bootstrap():
    values = np.random.default_rng(2).normal(0.3, 1, size=80)
    sample = Sample(sums_of(values))
    found = sample.estimate(mean)
    error = values.std(ddof=1) / 80**0.5
    assert "bootstrap of 80 clusters" in sample.method
    assert found.error == pytest.approx(error, rel=0.06)
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.25 * error)
    assert found.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=0.02)


def test_draws_are_the_same_for_every_statistic_and_seed():
    sums = np.random.default_rng(3).uniform(size=(40, 2))
    doubled = np.concatenate([sums, 2 * sums], axis=1)
    sample = Sample(doubled, seed=5)
    gap = sample.estimate(lambda totals: totals[..., 3] / totals[..., 2] - totals[..., 1] / totals[..., 0])
    assert (gap.low, gap.value, gap.high) == pytest.approx((0, 0, 0), abs=1e-12)
    assert sample.estimate(mean) == Sample(doubled, seed=5).estimate(mean)
    assert sample.estimate(mean) != Sample(doubled, seed=6).estimate(mean)


def test_one_cluster_has_a_value_and_no_interval():
    sample = Sample(sums_of([0.5]))
    found = sample.estimate(mean)
    assert found.value == 0.5
    assert np.isnan([found.low, found.high, found.error, found.p]).all()
    assert sample.method.startswith("no interval")


def test_no_difference_at_all_has_a_p_of_one():
    for count in (5, 50):
        assert Sample(sums_of([0.0] * count)).estimate(mean).p == 1.0


def test_a_statistic_that_some_draws_leave_undefined_has_no_interval():
    sums = np.zeros((40, 2))
    sums[0] = 1
    found = Sample(sums).estimate(mean)
    assert found.value == 1
    assert np.isnan(found.low)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_the_closed_test(p):
    """A hypothesis is rejected at its adjusted p exactly when every set that holds it is rejected by Bonferroni."""
    adjusted = holm(p)
    for index in range(len(p)):
        sets = [
            chosen
            for size in range(1, len(p) + 1)
            for chosen in itertools.combinations(range(len(p)), size)
            if index in chosen
        ]
        closed = max(min(1.0, len(chosen) * min(p[at] for at in chosen)) for chosen in sets)
        assert adjusted[index] == pytest.approx(closed)


def test_holm_leaves_out_what_is_not_known():
    assert holm([0.02, float("nan"), 0.01])[::2] == [0.02, 0.02]
    assert np.isnan(holm([float("nan")])[0])
