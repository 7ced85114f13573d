"""Refining: centroids follow their members, near clusters merge, and nothing else happens."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.subjects.clusters.finding import (
    assign,
    cluster_vectors,
    compute_directions,
    refine_clusters,
)


@pytest.fixture(scope="module")
def clustered_blobs(blobs):
    vectors, _ = blobs(4, 40, 10, spread=0.5, noise=20)
    return vectors, cluster_vectors(vectors, range(len(vectors)), min_size=8)


@pytest.mark.long
def test_with_the_same_members_nothing_moves(clustered_blobs):
    vectors, found = clustered_blobs
    again = refine_clusters(found, vectors, found.labels, merge_ratio=0)
    for name in ("rows", "labels", "centroids", "radii", "sizes"):
        assert np.array_equal(getattr(again, name), getattr(found, name))


def test_centroids_move_to_what_has_joined(clustered_blobs):
    vectors, found = clustered_blobs
    dice = np.random.default_rng(5)
    near = np.clip(
        vectors[found.labels == 0] + dice.integers(-20, 21, (found.sizes[0], 10)), -127, 127
    ).astype(np.int8)
    both = np.concatenate([vectors, near])
    labels = np.concatenate([found.labels, np.zeros(len(near), dtype=np.int64)])
    moved = refine_clusters(replace(found, rows=np.arange(len(both))), both, labels, merge_ratio=0)
    assert moved.sizes[0] == found.sizes[0] * 2
    mean = compute_directions(both[labels == 0], found.centre).mean(axis=0)
    assert np.allclose(moved.centroids[0], mean / np.linalg.norm(mean), atol=1e-6)
    assert np.array_equal(moved.centroids[1:], found.centroids[1:])


def test_two_halves_of_one_cluster_become_one(clustered_blobs):
    vectors, found = clustered_blobs
    labels = found.labels.copy()
    half = np.flatnonzero(labels == 1)[::2]
    labels[half] = 3
    labels[found.labels == 3] = -1
    merged = refine_clusters(found, vectors, labels)
    assert len(merged) == len(found) - 1
    assert len(set(merged.labels[found.labels == 1].tolist())) == 1
    assert np.array_equal(merged.labels < 0, labels < 0)


def test_turn_after_turn_clusters_settle_and_keep_what_they_hold(clustered_blobs):
    vectors, found = clustered_blobs
    held = [assign(found, vectors)]
    for _ in range(6):
        found = refine_clusters(found, vectors, held[-1], merge_ratio=0)
        held.append(assign(found, vectors))
    assert np.array_equal(held[-1], held[-2])
    assert (held[-1] >= 0).sum() > 0.9 * (held[0] >= 0).sum()


def test_a_merged_radius_is_no_less_than_either(clustered_blobs):
    vectors, found = clustered_blobs
    merged = refine_clusters(found, vectors, found.labels, merge_ratio=100)
    assert len(merged) < len(found)
    assert merged.radii.max() >= found.radii.max()


def test_a_cluster_without_members_goes(clustered_blobs):
    vectors, found = clustered_blobs
    labels = np.where(found.labels == 2, -1, found.labels)
    assert len(refine_clusters(found, vectors, labels, merge_ratio=0)) == len(found) - 1
    nothing = refine_clusters(found, vectors, np.full(len(vectors), -1))
    assert len(nothing) == 0
    assert assign(nothing, vectors).max() == -1


def test_members_that_cancel_out_leave_the_centroid_where_it_was(clustered_blobs):
    _, found = clustered_blobs
    away = found.centroids[0].astype(np.float64)
    opposite = np.stack([found.centre + 4 * away, found.centre - 4 * away]).astype(np.float64)
    kept = refine_clusters(replace(found, rows=np.arange(2)), opposite, np.zeros(2, dtype=np.int64))
    assert len(kept) == 1
    assert np.isfinite(kept.centroids).all()
    assert np.linalg.norm(kept.centroids[0]) == pytest.approx(1, abs=1e-5)


LABELS = st.lists(st.integers(-1, 3), min_size=180, max_size=180).map(np.array)


@pytest.mark.long
@examples(40)
@given(LABELS, st.floats(0, 3))
def test_clusters_only_merge(clustered_blobs, labels, near):
    vectors, found = clustered_blobs
    refined = refine_clusters(found, vectors, labels, merge_ratio=near)
    assert refined.labels.min() >= -1
    assert refined.labels.max() < len(refined) <= len(found)
    assert np.array_equal(refined.labels < 0, labels < 0)
    assert all(
        len(set(refined.labels[labels == index].tolist())) <= 1 for index in range(len(found))
    )
    assert np.allclose(np.linalg.norm(refined.centroids, axis=1), 1, atol=1e-5)
    assert (
        refined.sizes.tolist()
        == np.bincount(refined.labels[labels >= 0], minlength=len(refined)).tolist()
    )
    assert np.all(np.diff(refined.sizes) <= 0)
