"""Regressions compared with those of scikit-learn."""

import numpy as np
import pytest

from memlab.science.regression import fit_isotonic, fit_logistic, fit_ridge, predict_chance

linear_model = pytest.importorskip("sklearn.linear_model")
isotonic = pytest.importorskip("sklearn.isotonic")


def make_features(seed, rows, columns):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, columns)) * rng.uniform(0.1, 3, columns)
    features[:, -1] = features[:, 0]  # collinear, as features of a log often are
    return rng, features


@pytest.mark.parametrize(("rows", "columns"), [(20, 3), (300, 8), (40, 60), (2_000, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_ridge(seed, rows, columns):
    rng, features = make_features(seed, rows, columns)
    target = features @ rng.normal(size=columns) + rng.normal(size=rows) + 5
    own, reference = (
        fit_ridge(features, target),
        linear_model.Ridge(alpha=1.0).fit(features, target),
    )
    assert own == pytest.approx(
        np.append(reference.coef_, reference.intercept_), rel=1e-8, abs=1e-10
    )


@pytest.mark.parametrize(("rows", "columns"), [(20, 2), (300, 8), (40, 60), (2_000, 2)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_logistic(seed, scale, rows, columns):
    rng, features = make_features(seed, rows, columns)
    score = scale * features[:, 0] + rng.logistic(size=rows)
    label = score > np.quantile(score, rng.uniform(0.02, 0.98))
    model = linear_model.LogisticRegression(tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    model.fit(features, label)
    own = fit_logistic(features, label)
    assert own == pytest.approx(np.append(model.coef_[0], model.intercept_), rel=1e-8, abs=1e-8)
    assert predict_chance(features, own) == pytest.approx(
        model.predict_proba(features)[:, 1], abs=1e-8
    )


@pytest.mark.parametrize("rows", [2, 30, 1_000])
@pytest.mark.parametrize("digits", [1, 12])
@pytest.mark.parametrize("seed", range(5))
def test_isotonic(seed, digits, rows):
    rng = np.random.default_rng(seed)
    x = rng.random(rows).round(digits)  # one digit: many observations of each argument
    y = (rng.random(rows) < x**2).astype(float) if seed % 2 else rng.random(rows).round(2)
    model = isotonic.IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(x, y)
    points = np.concatenate((np.linspace(-0.1, 1.1, 77), x))
    assert np.interp(points, *fit_isotonic(x, y)) == pytest.approx(model.predict(points), abs=1e-8)
