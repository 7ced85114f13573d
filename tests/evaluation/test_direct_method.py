"""The direct method: a model that never sees the cluster it predicts, and an extrapolation in name."""

import numpy as np
import polars as pl
import pytest
from probed_logs import World

from memlab.science.evaluation import evaluate
from memlab.science.evaluation._reward_model import predicted_rewards


def data(*, clusters=6, rows=400, seed=0, binary=True):
    dice = np.random.default_rng(seed)
    features = dice.normal(size=(rows, 3))
    chance = 1 / (1 + np.exp(-2 * features[:, 0]))
    reward = (dice.random(rows) < chance).astype(float) if binary else chance
    return features, reward, dice.random(rows) < 0.5, dice.integers(clusters, size=rows), chance


@pytest.mark.parametrize("binary", [True, False])
def test_the_model_recovers_the_rewards(binary):
    features, reward, answered, cluster, chance = data(binary=binary)
    expected = predicted_rewards(
        features, np.where(answered, reward, np.nan), answered, cluster, (0, 1)
    )
    assert np.corrcoef(expected, chance)[0, 1] > 0.95
    assert ((expected >= 0) & (expected <= 1)).all()


def test_no_prediction_has_seen_its_own_cluster():
    features, reward, answered, cluster, _ = data()
    plain = predicted_rewards(features, reward, answered, cluster, (0, 1))
    own = cluster == 2
    changed = predicted_rewards(
        features, np.where(own, 1 - reward, reward), answered, cluster, (0, 1)
    )
    np.testing.assert_array_equal(plain[own], changed[own])
    assert (plain[~own] != changed[~own]).any()


def test_gaps_in_features_are_the_mean():
    features, reward, answered, cluster, chance = data()
    holes = features.copy()
    holes[::7, 1], holes[3, 2] = np.nan, np.inf
    expected = predicted_rewards(holes, reward, answered, cluster, (0, 1))
    assert np.isfinite(expected).all()
    assert np.corrcoef(expected, chance)[0, 1] > 0.95


def test_equal_rewards_are_predicted_as_they_are():
    features, reward, answered, cluster, _ = data()
    assert (predicted_rewards(features, np.ones(len(reward)), answered, cluster, (0, 1)) == 1).all()


@pytest.mark.parametrize("few", ["clusters", "answers", "features"])
def test_too_little_to_learn_from_gives_nothing(few):
    features, reward, answered, cluster, _ = data()
    if few == "clusters":
        cluster = np.zeros_like(cluster)
    elif few == "answers":
        answered = np.arange(len(answered)) < 10
    else:
        features = features[:, :0]
    assert predicted_rewards(features, reward, answered, cluster, (0, 1)) is None


@pytest.mark.long
def test_the_model_is_reported_next_to_the_estimate_and_named_a_model():
    world = World(clusters=6, recalls=50)
    ev = evaluate(world.slates(), ["good", "far"])
    assert ev.model_values["good"] == pytest.approx(world.value("good"), abs=0.4)
    # where nothing could be shown it is all there is, and no value
    assert ev.frame.row(by_predicate=pl.col("policy") == "far", named=True)["value"] is None
    assert np.isfinite(ev.model_values["far"])
