"""Intervals of a mean by conversation: Student's t over whole clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from memlab.errors import InputError
from memlab.science.evaluation import cluster_interval


def delete_clusters(groups, level=0.95):
    """Return mean and interval by the textbook: delete each cluster, Bell and McCaffrey's degrees of freedom."""
    count, everything = len(groups), np.concatenate(groups)
    without = [np.concatenate(groups[:i] + groups[i + 1 :]).mean() for i in range(count)]
    error = (np.var(without) * (count - 1)) ** 0.5
    share = np.array([len(group) for group in groups]) / len(everything)
    root = np.sqrt(share / (1 - share))
    covariance = np.diag(share) - np.outer(share * root, share * root) / np.sqrt(
        np.outer(share, share)
    ) * (1 - np.eye(count))
    freedom = max(1.0, 1 / (covariance**2).sum())
    reach = stats.t.ppf((1 + level) / 2, freedom) * error
    return everything.mean(), everything.mean() - reach, everything.mean() + reach


GROUPS = st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=5), min_size=2, max_size=40)


@pytest.mark.long
@given(GROUPS)
def test_it_is_the_mean_of_all_values_with_each_cluster_left_out(groups):
    values = [value for group in groups for value in group]
    clusters = [index for index, group in enumerate(groups) for _ in group]
    interval = cluster_interval(values, clusters)
    expected = delete_clusters([np.array(group) for group in groups])
    assert (interval.value, interval.low, interval.high) == pytest.approx(expected, abs=1e-8)
    assert interval.low <= np.mean(values) + 1e-12
    assert np.mean(values) - 1e-12 <= interval.high


@pytest.mark.long
@given(GROUPS.map(lambda groups: [[group[0]] * 3 for group in groups]))
def test_over_clusters_of_equal_size_it_is_t_over_the_cluster_means(groups):
    values = [value for group in groups for value in group]
    interval = cluster_interval(values, np.repeat(np.arange(len(groups)), 3).tolist())
    means = [np.mean(group) for group in groups]
    reach = stats.t.ppf(0.975, len(groups) - 1) * np.std(means, ddof=1) / len(groups) ** 0.5
    expected = np.mean(means), np.mean(means) - reach, np.mean(means) + reach
    assert (interval.value, interval.low, interval.high) == pytest.approx(expected, abs=1e-8)


@pytest.mark.long
def test_unequal_clusters_of_unequal_means_are_covered():
    """An interval of the mean over clusters contains the mean over values in .43 of these samples."""
    draw = np.random.default_rng(8)
    covered, inside = [], []
    for _ in range(300):
        sizes = np.minimum(3 + 20 * draw.pareto(1.5, 10), 400).astype(int)
        chances = np.clip(0.6 + 0.1 * np.log(sizes / 40) + draw.normal(0, 0.06, 10), 0, 1)
        groups = [draw.random(size) < chance for size, chance in zip(sizes, chances, strict=True)]
        interval = cluster_interval(np.concatenate(groups) * 1.0, np.repeat(np.arange(10), sizes))
        mean = (sizes * chances).sum() / sizes.sum()
        covered.append(interval.low <= mean <= interval.high)
        inside.append(interval.low <= np.concatenate(groups).mean() <= interval.high)
    assert all(inside)
    assert np.mean(covered) > 0.8


def test_copies_of_a_value_do_not_narrow_it():
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
def test_digits_are_those_of_the_textbook(number):
    dice = np.random.default_rng(number)
    sizes = dice.integers(1, 9, size=number)
    codes = np.repeat(np.arange(number), sizes)
    values = dice.uniform(size=len(codes))
    result = cluster_interval(values, codes.tolist())
    expected = delete_clusters([values[codes == code] for code in range(number)])
    # Degrees of freedom are rounded to nine digits.
    assert (result.value, result.low, result.high) == pytest.approx(expected, rel=1e-8, abs=1e-9)


@pytest.mark.long
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
