"""Distribution functions compared with SciPy, in their tails as well."""

import math

import numpy as np
import pytest

from memlab.science.distributions import (
    beta_quantile,
    f_tail,
    log_beta,
    normal_cdf,
    normal_quantile,
    t_cdf,
    t_quantile,
)

scipy = pytest.importorskip("scipy.special")

# up to a million clusters; SciPy's own beta function loses digits beyond
FREEDOMS = [0.3, 0.7, 1, 1.5, 2, 2.7, 3, 5, 8.4, 10, 19.9, 30, 57, 100, 333.3, 1e3, 1e4, 1e5, 1e6]
POINTS = [0, 1e-5, 1e-3, 0.1, 0.5, 1, 1.5, 1.96, 2.5, 3, 4, 6, 8, 12, 20, 37, 100, 1e4]
TAILS = [1e-12, 1e-9, 1e-6, 1e-4, 0.001, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.45, 0.499]
CHANCES = [*TAILS, 0.5, *(1 - tail for tail in TAILS)]
COUNTS = [0.5, 1, 1.5, 2.5, 5.5, 10.5, 100.5, 1e4 + 0.5, 1e6 + 0.5]


def close(own, reference):
    # a p-value below 1e-100 decides nothing
    assert own == pytest.approx(float(reference), rel=1e-10, abs=1e-100, nan_ok=True)


@pytest.mark.long
@pytest.mark.parametrize("freedom", FREEDOMS)
def test_functions_with_degrees_of_freedom(freedom):
    for point in POINTS:
        for signed in (point, -point):
            close(t_cdf(freedom, signed), scipy.stdtr(freedom, signed))
        for other in FREEDOMS:
            close(f_tail(freedom, other, point), scipy.fdtrc(freedom, other, point))
            if max(freedom, other) <= 1e4:
                close(log_beta(freedom, other), scipy.betaln(freedom, other))
    for chance in CHANCES:
        close(t_quantile(freedom, chance), scipy.stdtrit(freedom, chance))


def test_the_normal_distribution():
    for chance in CHANCES:
        close(normal_quantile(chance), scipy.ndtri(chance))
    for point in POINTS:
        for signed in (point, -point):
            close(normal_cdf(signed), scipy.ndtr(signed))


@pytest.mark.parametrize("a", COUNTS)
def test_quantiles_of_beta(a):
    for b in COUNTS:
        for chance in (1e-6, 0.001, 0.025, 0.25, 0.5, 0.75, 0.975, 0.999):
            close(beta_quantile(a, b, chance), scipy.betaincinv(a, b, chance))


def test_limits():
    assert (normal_quantile(0), normal_quantile(1)) == (-math.inf, math.inf)
    assert (t_quantile(3, 0), t_quantile(3, 1), t_quantile(3, 0.5)) == (-math.inf, math.inf, 0)
    assert (t_cdf(3, -math.inf), t_cdf(3, math.inf), t_cdf(3, 1e200)) == (0, 1, 1)
    assert (f_tail(2, 3, 0), f_tail(2, 3, math.inf), f_tail(2, 3, -1e-30)) == (1, 0, 1)
    assert (beta_quantile(2, 3, 0), beta_quantile(2, 3, 1)) == (0, 1)
    for value in (t_cdf(3, math.nan), t_quantile(math.nan, 0.9), f_tail(2, 3, math.nan)):
        assert math.isnan(value)


def test_a_quantile_is_the_inverse():
    rng = np.random.default_rng(1)
    for freedom, tail in zip(10 ** rng.uniform(-0.5, 6, 50), rng.uniform(0, 0.5, 50), strict=True):
        assert t_cdf(freedom, t_quantile(freedom, tail)) == pytest.approx(tail, rel=1e-11)
