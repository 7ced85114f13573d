"""Clusters: compared with scikit-learn's HDBSCAN, and their joins with brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from properties import examples
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score

from memlab.subjects.clusters.finding import (
    assign,
    cluster_vectors,
    compute_directions,
    default_min_size,
    number_by_size,
)


def brute(clusters, vectors):
    """Compute ``assign`` as documented, one vector at a time."""
    labels = []
    for vector in vectors:
        pointing = compute_directions(vector[None], clusters.centre)[0]
        distance = [
            1 - float(pointing @ centroid.astype(np.float64)) for centroid in clusters.centroids
        ]
        nearest = int(np.argmin(distance)) if distance else -1
        inside = nearest >= 0 and pointing.any() and distance[nearest] <= clusters.radii[nearest]
        labels.append(nearest if inside else -1)
    return labels


def test_planted_groups_are_found(blobs):
    vectors, planted = blobs(6, 40, 48, noise=20)
    clusters = cluster_vectors(vectors, np.arange(len(vectors)), min_size=20)
    assert len(clusters) == 6
    assert adjusted_rand_score(planted[planted >= 0], clusters.labels[planted >= 0]) > 0.95
    assert clusters.sizes.tolist() == np.bincount(clusters.labels[clusters.labels >= 0]).tolist()
    assert np.all(np.diff(clusters.sizes) <= 0)


@pytest.mark.parametrize("seed", range(3))
def test_with_few_dimensions_and_rows_the_labels_are_those_of_sklearn(blobs, seed):
    vectors, _ = blobs(5, 30, 8, spread=0.6, seed=seed, noise=40)
    clusters = cluster_vectors(vectors, np.arange(len(vectors)), min_size=8)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    away = unit - unit.mean(axis=0)
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    theirs = HDBSCAN(
        min_cluster_size=8, min_samples=1, cluster_selection_method="leaf", copy=True
    ).fit_predict(away)
    assert np.array_equal(clusters.labels, number_by_size(theirs, np.arange(len(vectors))))
    assert "dimensions" in clusters.settings
    assert "of" not in clusters.method.replace("leaves of at least", "")


@pytest.mark.parametrize(
    ("rows", "dim", "limit", "message"),
    [(300, 40, 1000, "16 of 40 dim"), (300, 8, 100, "100 of 300")],
)
def test_the_result_says_what_was_left_out(blobs, rows, dim, limit, message):
    vectors, _ = blobs(3, rows // 3, dim)
    assert message in cluster_vectors(vectors, range(rows), max_sample=limit).method


def test_vectors_outside_the_sample_join_the_nearest_cluster(blobs):
    vectors, planted = blobs(4, 500, 24)
    clusters = cluster_vectors(
        vectors, np.arange(len(vectors)), max_sample=400, min_size=40, seed=3
    )
    assert len(clusters) == 4
    inside = clusters.labels >= 0
    assert inside.mean() > 0.9
    assert adjusted_rand_score(planted[inside], clusters.labels[inside]) == 1
    assert clusters.settings["sample"] == 400


def test_centroids_are_the_mean_directions_and_radii_hold_most_members(blobs):
    vectors, _ = blobs(3, 50, 12, spread=0.5)
    clusters = cluster_vectors(vectors, range(150), min_size=10, reach=0.9)
    for index in range(len(clusters)):
        pointing = compute_directions(vectors[clusters.labels == index], clusters.centre)
        mean = pointing.mean(axis=0)
        mean /= np.linalg.norm(mean)
        assert np.allclose(clusters.centroids[index], mean, atol=1e-6)
        assert clusters.radii[index] == pytest.approx(
            np.quantile(1 - pointing @ mean, 0.9), abs=1e-6
        )


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_too_few_memories_have_no_clusters(count):
    clusters = cluster_vectors(np.ones((count, 3), dtype=np.int8), range(count), min_size=5)
    assert len(clusters) == 0
    assert clusters.labels.tolist() == [-1] * count
    assert assign(clusters, np.ones((2, 3), dtype=np.int8)).tolist() == [-1, -1]


def test_zero_vectors_belong_to_none_and_equal_ones_to_the_same(blobs):
    vectors, _ = blobs(2, 30, 6)
    vectors[[3, 40]] = 0
    vectors[50] = vectors[51]
    clusters = cluster_vectors(vectors, range(60), min_size=5)
    assert clusters.labels[[3, 40]].tolist() == [-1, -1]
    assert clusters.labels[50] == clusters.labels[51]
    assert assign(clusters, np.zeros((1, 6), dtype=np.int8)).tolist() == [-1]


VECTORS = hnp.arrays(
    np.int8, st.tuples(st.integers(0, 40), st.just(4)), elements=st.integers(-127, 127)
)


@pytest.mark.long
@examples(60)
@given(VECTORS, VECTORS, st.randoms())
def test_assigning_is_brute_force_and_each_vector_is_on_its_own(clustered, fresh, dice):
    clusters = cluster_vectors(clustered, range(len(clustered)), min_size=3)
    labels = assign(clusters, fresh)
    assert labels.tolist() == brute(clusters, fresh)
    order = np.array(dice.sample(range(len(fresh)), len(fresh)), dtype=np.int64)
    assert np.array_equal(assign(clusters, fresh[order]), labels[order])
    assert np.array_equal(assign(clusters, fresh.astype(np.float32)), labels)


@given(st.lists(st.integers(-1, 5)))
def test_the_largest_group_is_0(labels):
    given_labels = np.array(labels, dtype=np.int64)
    numbered = number_by_size(given_labels, np.arange(len(labels)))
    assert {tuple(np.flatnonzero(given_labels == item)) for item in set(labels) - {-1}} == {
        tuple(np.flatnonzero(numbered == item)) for item in set(numbered.tolist()) - {-1}
    }
    assert np.array_equal(numbered < 0, given_labels < 0)
    sizes = np.bincount(numbered[numbered >= 0])
    assert np.all(np.diff(sizes) <= 0)
    assert np.all(sizes > 0)


def test_the_natural_size_grows_with_the_root():
    assert [default_min_size(rows) for rows in (0, 50, 2_500, 10_000, 1_000_000)] == [
        5,
        5,
        10,
        20,
        200,
    ]
