"""What is measured of a comparison: how many recalls it needs, and the range of corrected rewards."""

import math
from dataclasses import replace

import numpy as np
import pytest

from memlab.science.evaluation._credited import Credited
from memlab.science.evaluation._intervals import Estimate
from memlab.science.evaluation._measure import Compared, recalls_for, recalls_needed
from memlab.science.evaluation.parts import TopK

GAP = Estimate(value=0.1, low=0.0, high=0.2, error=0.05, p=0.05)
HEAD = TopK("new", np.arange(2), np.zeros(1))
COMPARED = Compared(
    HEAD,
    HEAD,
    np.zeros((1, 1)),
    GAP,
    0.1,
    0.1,
    difference=GAP,
    difference_lower=0.08,
    difference_upper=0.12,
)


@pytest.mark.parametrize("gap", [replace(GAP, value=0.0), replace(GAP, error=math.nan)])
def test_a_difference_of_zero_or_without_an_error_needs_no_number_of_recalls(gap):
    assert recalls_for(gap, 100, 0.95) is None


def test_recalls_are_needed_for_the_bound_that_is_nearer_to_zero():
    assert recalls_for(GAP, 100, 0.95) == 197  # ((1.96 + 0.84) * error / gap) ** 2 times as many
    assert recalls_needed(COMPARED, 100, 0.95) == recalls_for(replace(GAP, value=0.08), 100, 0.95)


@pytest.mark.parametrize(
    "compared",
    [
        replace(COMPARED, difference_lower=-0.08),
        replace(COMPARED, difference=None, difference_lower=math.nan, difference_upper=math.nan),
    ],
)
def test_no_number_of_recalls_is_enough_where_what_is_unsupported_could_reverse_the_difference(
    compared,
):
    assert recalls_needed(compared, 100, 0.95) is None


def test_the_range_of_rewards_includes_the_ends_of_the_corrected_ones():
    credited = Credited(np.array([-0.1, 1.5]), 30, 70, np.zeros((1, 5)), np.zeros((1, 2)))
    assert credited.range_of(0.0, 1.0) == pytest.approx((-0.1, 1.4))
    assert replace(credited, line=np.array([0.2, 0.5])).range_of(0.0, 1.0) == pytest.approx(
        (0.0, 1.0)
    )
