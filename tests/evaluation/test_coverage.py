"""Over many logs: no bias beyond chance, and intervals that cover the true value as often as they claim."""

from functools import cache

import numpy as np
import pytest
from probed_logs import World

from memlab.science.evaluation import evaluate

pytestmark = pytest.mark.long

SHAPE = {"recalls": 160, "pool": 20, "limit": 5, "depth": 8, "rate": 0.8, "spread": 0.5}


@cache
def truth_by(clusters):
    """Estimate the value in the population from which clusters are drawn, from a log of ``clusters`` of them."""
    world = World(clusters=clusters, seed=10_000, **SHAPE)
    return {name: world.value(name) for name in ("good", "plain")}


def over_logs(clusters, logs, truth, estimator="snips"):
    """Return the coverage of value and difference, and the mean and standard error of their errors."""
    covered, errors = [], []
    for seed in range(logs):
        ev = evaluate(
            World(clusters=clusters, seed=seed, **SHAPE).slates(), ["good"], estimator=estimator
        )
        good = next(row for row in ev.rows if row.policy == "good")
        if good.value is None:
            continue
        gap = truth["good"] - truth["plain"]
        covered.append(
            (
                good.value.low <= truth["good"] <= good.value.high,
                good.difference.low <= gap <= good.difference.high,
            )
        )
        errors.append((good.value.value - truth["good"], good.difference.value - gap))
    assert len(covered) > 0.9 * logs
    errors = np.array(errors)
    return (
        np.mean(covered, axis=0),
        errors.mean(axis=0),
        errors.std(axis=0, ddof=1) / len(errors) ** 0.5,
    )


@pytest.mark.parametrize("clusters", [5, 12])
def test_a_few_logs(clusters):
    share, bias, error = over_logs(clusters, 14, truth_by(600))
    assert (share >= 0.85).all()
    assert (abs(bias) < 3 * error).all()


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["snips", "ht"])
@pytest.mark.parametrize("clusters", [5, 10, 50])
def test_three_hundred_logs(clusters, estimator):
    share, bias, error = over_logs(clusters, 300, truth_by(3000), estimator)
    # measured: snips .92-.95, ht .91-.95, whose errors are further from normal
    assert (share >= (0.92 if estimator == "snips" else 0.9)).all()
    assert (abs(bias) < 2.5 * error).all()
