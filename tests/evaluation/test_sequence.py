"""Confidence sequences: against an independent package, against the true value at each analysis, and at their edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from memlab.errors import InputError
from memlab.science.evaluation._sequence import (
    RATES,
    WEIGHTS,
    rate_penalty,
    recalls_of_sequence,
    recalls_to_end,
    sequence,
)
from memlab.science.evaluation.parts import log_mixture

# of confseq 0.0.11: gamma_exponential_log_mixture(s, v, v_opt, c, alpha_opt=.025)
CONFSEQ = [
    (30.0, 100.0, 100.0, 1.0, 2.9194549117728457),
    (12.0, 40.0, 250.0, 2.5, 0.8619646394830944),
    (80.0, 900.0, 400.0, 5.0, 1.6509011004145293),
    (3.0, 1.0, 50.0, 0.5, 0.9655250513068268),
]


@pytest.mark.parametrize(("excess", "variance", "tuned", "scale", "expected"), CONFSEQ)
def test_a_fine_mixture_is_confseqs_gamma_exponential_one(excess, variance, tuned, scale, expected):
    odds = np.log(1 / 0.05)  # one side
    shape = tuned / (2 * odds + np.log1p(2 * odds)) / scale**2
    edges = np.linspace(0, 1, 200_001)  # of 1 - scale * rate, which is gamma distributed below 1
    weights = np.diff(special.gammainc(shape, shape * edges)) / special.gammainc(shape, shape)
    rates = (1 - (edges[1:] + edges[:-1]) / 2) / scale
    penalty = rate_penalty(rates[:, None], np.array([scale])) * variance
    with np.errstate(divide="ignore"):
        result = log_mixture(np.array([excess]), penalty, rates, weights)
    assert result[0] == pytest.approx(expected, abs=2e-4)


@given(st.floats(-0.999, 50), st.floats(0.01, 0.99))
def test_the_factor_is_never_below_that_of_empirical_bernstein(deviation, rate):
    """The exponent of one minus that of the other, for any deviation from the expectation of at least -1."""
    bernstein = (
        rate * deviation - float(rate_penalty(np.array([rate]), np.array([1.0]))[0]) * deviation**2
    )
    assert np.log1p(rate * deviation) >= bernstein - 1e-9


@pytest.mark.long
@pytest.mark.parametrize("wide", [False, True])
def test_the_ends_are_those_of_the_definition(wide):
    """Bisected for each time by a plain loop over rates and observations; two of them from large slates if ``wide``."""
    dice = np.random.default_rng(8)
    values = dice.choice([-1.0, 0.0, 3.0], size=25, p=[0.3, 0.5, 0.2])
    floor = np.where(wide & np.isin(np.arange(25), (4, 12)), -30.0, -1.0)
    values[12] = -20.0 if wide else 0.0
    interval = sequence(values, floor=floor, ceiling=np.full(25, 3.0), level=0.9)

    def exceeds(count, mean):
        total = 0.0
        for rate, weight in zip(RATES, WEIGHTS, strict=True):
            product, drift = 1.0, 0.0
            for at in range(count):
                expected = max(sum(values[:at]) / (at + 1), floor[at])
                below = rate * (expected - floor[at])
                kept = 1.0 if below < 1 else 0.9 / below
                product *= 1 + rate * kept * (values[at] - expected)
                drift += rate * (floor[at] + kept * (expected - floor[at]) - mean)
            total += weight * product * np.exp(drift)
        return total >= 1 / 0.05

    for count in (1, 7, 25):
        low, high = floor[:count].min(), values[:count].mean()
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if exceeds(count, middle) else (low, middle)
        assert interval.low[count - 1] == pytest.approx(low, abs=1e-6)


def observed(dice, recalls, items, chance_own, chance_base):
    """Observe one of ``items`` own items, which counts for all, and every item of the base."""
    own = items * (dice.random(recalls) < chance_own)
    return own - (dice.random((recalls, items)) < chance_base).sum(axis=1).astype(float)


@pytest.mark.long
def test_the_truth_is_left_by_fewer_than_promised_though_looked_for_at_every_recall():
    dice, out = np.random.default_rng(1), 0
    for _ in range(200):
        values = observed(dice, 300, 4, 0.1, 0.1)
        interval = sequence(values, floor=np.full(300, -4.0), ceiling=np.full(300, 4.0), level=0.8)
        out += bool(((interval.low > 0) | (interval.high < 0)).any())
    assert out / 200 < 0.2


def slates_of_two_sizes(dice, recalls, chance_own, chance_base):
    """Return values as ``observed`` for 4 items a recall and for 40 in each twentieth recall, and the sizes."""
    size = np.where(np.arange(recalls) % 20 == 3, 40, 4)
    return size * (dice.random(recalls) < chance_own) - dice.binomial(size, chance_base).astype(
        float
    ), size * 1.0


@pytest.mark.long
def test_large_slates_among_small_ones_leave_the_truth_as_seldom():
    dice, out = np.random.default_rng(12), 0
    for _ in range(200):
        values, size = slates_of_two_sizes(dice, 300, 0.1, 0.1)
        interval = sequence(values, floor=-size, ceiling=size, level=0.8)
        out += bool(((interval.low > 0) | (interval.high < 0)).any())
    assert out / 200 < 0.2


@pytest.mark.long
def test_a_large_slate_does_not_set_the_range_of_all_later_ones():
    """The slate costs about its own share, although its reward may be 50 where the others reach 5."""
    dice, first = np.random.default_rng(13), {5: [], 50: []}
    for _ in range(20):
        for most, found_at in first.items():
            size = np.where(np.arange(900) == 20, most, 5)
            values = size * (dice.random(900) < 0.12) - dice.binomial(size, 0.05).astype(float)
            interval = sequence(values, floor=-1.0 * size, ceiling=1.0 * size)
            apart = np.flatnonzero(interval.low > 0)
            found_at.append(apart[0] if len(apart) else 900)
    assert np.median(first[50]) < 2.5 * np.median(first[5])  # 7 times while it set the range


def test_how_many_recalls_a_large_slate_still_lets_one_expect():
    values = np.tile([3.0, -1.0, 0.0, 0.0, 1.0], 40)
    floor = np.full(200, -4.0)
    alone = recalls_to_end(values, floor, unit=1.0, level=0.95)
    floor[7] = -50.0
    # 7 while it set the range
    assert alone < recalls_to_end(values, floor, unit=1.0, level=0.95) < 3.2 * alone
    scale = np.where(np.arange(200) == 7, 50.0, 4.0)
    planned = [
        recalls_of_sequence(0.6, 1.4, item, unit=1.0, level=0.95) for item in (scale[:1], scale)
    ]
    assert planned[0] < planned[1] < 3.2 * planned[0]


@pytest.mark.slow
def test_the_running_mean_of_changing_means_is_held_at_every_look():
    dice, out = np.random.default_rng(2), 0
    chances = np.where(np.arange(400) < 150, 0.05, 0.4)
    truth = np.cumsum(5 * chances - 1) / np.arange(1, 401)
    for _ in range(1000):
        values = 5 * (dice.random(400) < chances) - 1.0
        interval = sequence(values, floor=np.full(400, -1.0), ceiling=np.full(400, 4.0), level=0.9)
        out += bool(((interval.low > truth) | (interval.high < truth)).any())
    assert out / 1000 < 0.1


@pytest.mark.long
def test_a_difference_is_found_within_little_more_than_twice_the_recalls_of_one_look():
    dice, first = np.random.default_rng(3), []
    for _ in range(40):
        values = observed(dice, 1200, 5, 0.1, 0.05)
        interval = sequence(values, floor=np.full(1200, -5.0), ceiling=np.full(1200, 5.0))
        apart = np.flatnonzero(interval.low > 0)
        first.append(apart[0] if len(apart) else np.inf)
    assert (
        np.quantile(first, 0.8) < 2.3 * 312
    )  # a fixed-sample test with 312 recalls has a power of .8


@pytest.mark.long
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
def test_the_mean_lies_within_its_ends_and_the_ends_within_what_is_possible(values):
    values = np.array(values)
    interval = sequence(values, floor=np.full(len(values), -1.0), ceiling=np.full(len(values), 1.0))
    assert (interval.low <= interval.mean + 1e-9).all()
    assert (interval.mean <= interval.high + 1e-9).all()
    assert (interval.low >= -1 - 1e-9).all()
    assert (interval.high <= 1 + 1e-9).all()


@pytest.mark.long
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
def test_negating_the_values_negates_the_interval(values):
    values, ones = np.array(values), np.ones(len(values))
    here, there = (sequence(sign * values, floor=-ones, ceiling=ones) for sign in (1, -1))
    assert here.low == pytest.approx(-there.high, abs=1e-9)


def test_an_observation_is_judged_by_what_was_known_before_it():
    """The ends after t observations do not change when more come."""
    dice = np.random.default_rng(4)
    values, ones = dice.uniform(-1, 1, size=80), np.ones(80)
    all_of_it = sequence(values, floor=-ones, ceiling=ones)
    part = sequence(values[:50], floor=-ones[:50], ceiling=ones[:50])
    assert part.low == pytest.approx(all_of_it.low[:50], abs=1e-9)
    assert part.high == pytest.approx(all_of_it.high[:50], abs=1e-9)


def test_a_range_of_another_unit_is_the_same_sequence():
    dice = np.random.default_rng(5)
    values, ones = dice.uniform(-1, 1, size=80), np.ones(80)
    one, ten = (
        sequence(k * values, floor=-k * ones, ceiling=k * ones, unit=k) for k in (1.0, 10.0)
    )
    assert ten.low == pytest.approx(10 * one.low, rel=1e-6)


def test_blocks_of_one_are_recalls():
    dice = np.random.default_rng(6)
    values, ones = dice.uniform(-1, 1, size=80), np.ones(80)
    assert sequence(values, floor=-ones, ceiling=ones, sizes=ones).low == pytest.approx(
        sequence(values, floor=-ones, ceiling=ones).low
    )


def test_bounds_widen_either_end():
    dice = np.random.default_rng(7)
    values, ones = dice.uniform(-1, 1, size=200), np.ones(200)
    sharp = sequence(values, floor=-2 * ones, ceiling=2 * ones)
    wide = sequence(values - 0.5, values + 0.5, floor=-2 * ones, ceiling=2 * ones)
    assert (wide.low <= sharp.low + 1e-9).all()
    assert (wide.high >= sharp.high - 1e-9).all()


def test_unsupported_arguments_are_refused():
    ones = np.ones(3)
    with pytest.raises(InputError, match="below its minimum or above its maximum"):
        sequence(2 * ones, floor=0 * ones, ceiling=ones)
    with pytest.raises(InputError, match="finite"):
        sequence(np.nan * ones, floor=0 * ones, ceiling=ones)
