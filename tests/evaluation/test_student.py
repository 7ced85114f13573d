"""Student's t in closed form, against scipy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from memlab.evaluation._student import central_mass, normal_quantile, t_quantile

dof = st.integers(1, 200)


@given(st.floats(0, 50), dof)
def test_the_central_mass_is_scipys(t, freedom):
    assert central_mass(t, freedom) == pytest.approx(1 - 2 * stats.t.sf(t, freedom), abs=1e-12)
    assert central_mass(-t, freedom) == central_mass(t, freedom)


@given(st.floats(0.01, 0.999), dof)
def test_the_quantile_is_scipys(level, freedom):
    assert t_quantile(level, freedom) == pytest.approx(stats.t.ppf((1 + level) / 2, freedom), rel=1e-8)


@given(st.floats(0.01, 0.99))
def test_the_normal_quantile_is_scipys(share):
    assert normal_quantile(share) == pytest.approx(stats.norm.ppf(share), abs=1e-9)
