"""Uncertainty over clusters: the jackknife with Student's t, and intervals of partially identified values."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from memlab.science.evaluation._intervals import (
    benjamini_hochberg,
    bonferroni,
    cluster_interval,
    cluster_sums,
    degrees_of_freedom,
)
from memlab.science.evaluation.parts import Sample, adjust_all


def mean(totals):
    return totals[..., 1] / totals[..., 0]


def sums_of(values):
    return np.stack([np.ones(len(values)), np.asarray(values, dtype=float)], axis=1)


@pytest.mark.long
@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-5, 5)), min_size=1, max_size=30))
def test_sums_are_those_of_a_loop(rows):
    clusters = np.array([cluster for cluster, _ in rows])
    values = np.array([value for _, value in rows])
    result = cluster_sums([values, values**2], clusters, 5)
    for cluster in range(5):
        own = [value for place, value in rows if place == cluster]
        assert result[cluster, 0] == pytest.approx(sum(own))
        assert result[cluster, 1] == pytest.approx(sum(value**2 for value in own))


@pytest.mark.long
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=29), st.sampled_from([0.8, 0.95, 0.99]))
def test_for_a_mean_of_equal_clusters_the_jackknife_is_students_interval(values, level):
    estimate = Sample(sums_of(values), level=level).estimate(mean)
    error = np.std(values, ddof=1) / len(values) ** 0.5
    reach = stats.t.ppf((1 + level) / 2, len(values) - 1) * error
    assert estimate.value == pytest.approx(np.mean(values), abs=1e-9)
    assert estimate.low == pytest.approx(np.mean(values) - reach, abs=1e-6)
    assert estimate.high == pytest.approx(np.mean(values) + reach, abs=1e-6)
    if error > 1e-6:
        assert estimate.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=1e-6)


def test_the_jackknife_of_a_ratio_leaves_out_one_cluster_after_another():
    dice = np.random.default_rng(1)
    sums = dice.uniform(1, 2, size=(7, 2))
    estimate = Sample(sums).estimate(mean)
    without = [mean(np.delete(sums, at, axis=0).sum(axis=0)) for at in range(7)]
    assert estimate.error == pytest.approx(
        np.sqrt(6 / 7 * ((without - np.mean(without)) ** 2).sum())
    )


def bell_mccaffrey(sizes):
    """Compute the degrees of freedom by definition: traces of products of whole matrices over all observations."""
    total = int(sum(sizes))
    design = np.ones((total, 1))
    hat = design @ design.T / total
    rest = np.eye(total) - hat
    columns, start = [], 0
    for size in sizes:
        part = slice(start, start + int(size))
        values, vectors = np.linalg.eigh(np.eye(int(size)) - hat[part, part])
        adjusted = (
            vectors
            @ np.diag(np.where(values > 1e-9, 1 / np.sqrt(np.maximum(values, 1e-9)), 0))
            @ vectors.T
        )
        columns.append(rest[:, part] @ adjusted @ design[part][:, 0] / total)
        start += int(size)
    spread = np.array(columns) @ np.array(columns).T
    return np.trace(spread) ** 2 / (spread**2).sum()


@pytest.mark.long
@given(st.lists(st.integers(1, 12), min_size=2, max_size=8))
def test_degrees_of_freedom_are_bell_and_mccaffreys(sizes):
    assert degrees_of_freedom(sizes) == pytest.approx(max(1.0, bell_mccaffrey(sizes)), rel=1e-6)


def test_equal_clusters_lose_one_degree_of_freedom_and_a_giant_most_of_them():
    assert degrees_of_freedom([7] * 12) == pytest.approx(11)
    assert degrees_of_freedom([1000, *[1] * 40]) < 2
    assert degrees_of_freedom([5]) == 1


def within(low, high):
    """Return two statistics of the same mean that differ by an unknown amount."""
    return (lambda totals: mean(totals) + low), (lambda totals: mean(totals) + high)


def test_an_interval_of_bounds_holds_every_point_between_them_and_not_both_at_once():
    values = np.random.default_rng(4).normal(0.3, 1, size=40)
    sample = Sample(sums_of(values))
    point, spread = sample.estimate(mean), sample.estimate(*within(-0.5, 0.5))
    assert spread.value == pytest.approx(point.value)
    assert spread.low < point.value - 0.5
    # what lies far apart needs one side only: 1.685 standard errors and not 2.023
    far = sample.estimate(*within(-50, 50))
    assert point.value - 50 - far.low == pytest.approx(
        stats.t.ppf(0.95, 39) * point.error, rel=1e-6
    )
    none = sample.estimate(*within(0, 0))
    assert (none.low, none.high) == pytest.approx((point.low, point.high))


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.9), (-0.9, -0.2), (-0.1, 0.4), (0.3, 0.3)])
def test_the_p_value_is_that_of_the_level_at_which_the_interval_ends_at_zero(low, high):
    values = np.random.default_rng(5).normal(0.0, 1, size=30)
    sample = Sample(sums_of(values - values.mean()))
    estimate = sample.estimate(*within(low, high))
    if low <= 0 <= high:
        assert estimate.p == 1
    else:
        edge = sample.estimate(*within(low, high), level=1 - estimate.p)
        assert min(abs(edge.low), abs(edge.high)) == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [8, 40])
def test_an_interval_of_bounds_covers_both_ends(clusters):
    dice, held = np.random.default_rng(6), np.zeros(2)
    for _ in range(3000):
        sample = Sample(sums_of(dice.normal(0, 1, size=clusters)))
        estimate = sample.estimate(*within(-0.4, 0.4))
        held += [estimate.low <= -0.4, estimate.high >= 0.4]
    assert (held / 3000 > 0.94).all()


def test_a_statistic_is_paired_with_another_of_the_same_clusters():
    sums = np.random.default_rng(3).uniform(size=(40, 2))
    sample = Sample(np.concatenate([sums, 2 * sums], axis=1))
    gap = sample.estimate(
        lambda totals: totals[..., 3] / totals[..., 2] - totals[..., 1] / totals[..., 0]
    )
    assert (gap.low, gap.value, gap.high) == pytest.approx((0, 0, 0), abs=1e-12)


def test_a_single_cluster_has_a_value_and_no_interval():
    sample = Sample(sums_of([0.5]))
    estimate = sample.estimate(mean)
    assert estimate.value == 0.5
    assert np.isnan([estimate.low, estimate.high, estimate.error, estimate.p]).all()
    assert sample.method.startswith("no interval")


def test_no_difference_at_all_has_a_p_of_one():
    for count in (5, 50):
        assert Sample(sums_of([0.0] * count)).estimate(mean).p == 1.0


def test_a_statistic_that_one_cluster_alone_defines_has_no_interval():
    sums = np.zeros((40, 2))
    sums[0] = 1
    estimate = Sample(sums).estimate(mean)
    assert estimate.value == 1
    assert np.isnan(estimate.low)


def test_bonferroni_leaves_out_what_is_not_known():
    adjusted = bonferroni([0.02, float("nan"), 0.01, 0.9])
    assert adjusted[::2] == pytest.approx([0.06, 0.03])
    assert adjusted[3] == 1.0
    assert np.isnan(adjusted[1])


def family(values, widths, level):
    """Return estimates of means, each known only up to a width, over clusters of unequal sizes."""
    sizes = np.arange(1.0, values.shape[1] + 1)
    return [
        Sample(np.stack([sizes, sizes * row, sizes * (row + width)], axis=1), level=level).estimate(
            mean, lambda totals: totals[..., 2] / totals[..., 0]
        )
        for row, width in zip(values, widths, strict=True)
    ]


@pytest.mark.long
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(2, 12),
    st.sampled_from([0.5, 0.8, 0.95, 0.99]),
    st.sampled_from(["bonferroni", "bh"]),
    st.booleans(),
)
def test_an_interval_excludes_zero_exactly_when_its_adjusted_p_is_below_the_level(
    seed, count, clusters, level, adjust, bounded
):
    dice = np.random.default_rng(seed)
    values = dice.normal(
        dice.normal(0, 1.5, (count, 1)), dice.choice([0.0, 1.0]), (count, clusters)
    )
    if dice.random() < 0.2:
        values[0] = 0.0
    estimates = family(values, np.abs(dice.normal(0, 0.3, count)) * bounded, level)
    for estimate, p in adjust_all(estimates, level, adjust):
        assert (estimate.low > 0 or estimate.high < 0) == (p < 1 - level)
        assert estimate.low <= estimate.value <= estimate.high


def test_an_estimate_without_a_p_value_is_not_part_of_a_family():
    known, other = family(np.array([[1.0, 2.0, 4.0], [0.0, 1.0, 5.0]]), [0, 0], 0.95)
    (first, p), (lone, none) = adjust_all([known, replace(other, p=np.nan)], 0.95)
    assert (first.low, p) == (pytest.approx(known.low), known.p)
    assert lone.low == other.low
    assert np.isnan(none)


@pytest.mark.long
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_adjusted_intervals_hold_together(share):
    """Five comparisons with one baseline, of which a share differs from it: all intervals cover in 95% of samples.

    Holm's method rejects more, but no two-sided intervals at the level of its steps hold together: if all five
    differ, the last one is at 95% alone.
    """
    dice = np.random.default_rng(1)
    truth = np.where(np.arange(5) < 5 * share, 2.0, 0.0)
    wrong, runs = 0, 1_000
    for _ in range(runs):
        values = dice.normal(truth[:, None], 1.0, (5, 12)) - dice.normal(0, 0.5, 12)
        covers = [
            estimate.low <= target <= estimate.high
            for (estimate, _), target in zip(
                adjust_all([Sample(sums_of(row)).estimate(mean) for row in values], 0.95),
                truth,
                strict=True,
            )
        ]
        wrong += not all(covers)
    assert wrong / runs <= 0.05 + 2 * 0.007


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_benjamini_and_hochberg_are_scipys(p):
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p).tolist())


def between(low, high):
    """Return two bounds that lie around these values: means of columns with different errors."""

    def statistics(sums):
        means = sums.sum(axis=0) / sums[:, 0].sum()
        return (
            lambda totals: totals[..., 1] / totals[..., 0] - means[1] + low,
            lambda totals: totals[..., 2] / totals[..., 0] - means[2] + high,
        )

    return statistics


@pytest.mark.long
@given(st.integers(0, 1000), st.floats(0.05, 1), st.floats(0, 1), st.floats(0.2, 5))
def test_a_bounded_difference_is_as_surely_negative_as_its_opposite_is_positive(
    seed, near, width, ratio
):
    """The bound that is nearer to zero decides with its own error, on either side."""
    dice = np.random.default_rng(seed)
    sums = np.stack([np.ones(25), dice.normal(size=25), ratio * dice.normal(size=25)], axis=1)
    positive = Sample(sums).estimate(*between(near, near + width)(sums))
    mirrored = sums[:, [0, 2, 1]] * [1, -1, -1]
    negative = Sample(mirrored).estimate(*between(-near - width, -near)(mirrored))
    assert negative.p == pytest.approx(positive.p, rel=1e-6)
    assert (-negative.high, -negative.low) == pytest.approx((positive.low, positive.high))


@pytest.mark.parametrize(("low", "high"), [(0.3, 0.9), (-0.9, -0.3)])
@pytest.mark.parametrize("ratio", [0.2, 5.0])
def test_the_p_value_is_that_of_the_bound_that_is_nearer_to_zero(low, high, ratio):
    dice = np.random.default_rng(7)
    sums = np.stack([np.ones(30), dice.normal(size=30), ratio * dice.normal(size=30)], axis=1)
    sample, statistics = Sample(sums), between(low, high)(sums)
    estimate = sample.estimate(*statistics)
    edge = sample.estimate(*statistics, level=1 - estimate.p)
    assert min(abs(edge.low), abs(edge.high)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("count", [2, 29, 30, 31])
def test_each_value_counts_alike_with_any_number_of_clusters(count):
    """Docstring of ``cluster_interval``: the first cluster has three values of 1, every other one value of 0."""
    values, clusters = [1.0, 1.0, 1.0] + [0.0] * (count - 1), [0, 0, 0, *range(1, count)]
    result = cluster_interval(values, clusters)
    assert result.value == pytest.approx(3 / (count + 2))


def test_degrees_of_freedom_of_many_clusters_need_no_matrix_of_them():
    assert degrees_of_freedom(np.ones(200_000)) == 199_999
