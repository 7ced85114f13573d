"""Distributions of our own, against scipy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from memlab.science.evaluation import _intervals

FREEDOM = st.floats(1, 1e5)


@given(FREEDOM, st.floats(-60, 60))
def test_students_t(freedom, x):
    assert _intervals.t_cdf(freedom, x) == pytest.approx(float(special.stdtr(freedom, x)), rel=1e-10, abs=1e-10)


@given(FREEDOM, st.floats(1e-6, 1 - 1e-6))
def test_its_quantiles(freedom, p):
    assert _intervals.t_quantile(freedom, p) == pytest.approx(float(special.stdtrit(freedom, p)), rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("freedom", [1, 1.37, 4, 11.2, 59, 1e3, 1e5])
def test_its_density_is_the_slope(freedom):
    slope = (special.stdtr(freedom, 1.3 + 1e-5) - special.stdtr(freedom, 1.3 - 1e-5)) / 2e-5
    assert _intervals.t_density(freedom, 1.3) == pytest.approx(float(slope), rel=1e-8)


@given(st.integers(1, 30), st.integers(1, 100_000), st.floats(0, 1e4))
def test_the_tail_of_f(numerator, denominator, x):
    expected = float(special.fdtrc(numerator, denominator, x))
    assert _intervals.f_survival(numerator, denominator, x) == pytest.approx(expected, rel=1e-9, abs=1e-10)


@given(st.floats(-12, 12))
def test_the_normal_distribution(x):
    assert _intervals.normal_cdf(x) == pytest.approx(float(special.ndtr(x)), rel=1e-10)


def test_its_quantiles_too():
    for p in np.linspace(1e-6, 1 - 1e-6, 501):
        assert _intervals.normal_quantile(float(p)) == pytest.approx(float(special.ndtri(p)), rel=1e-10, abs=1e-12)
