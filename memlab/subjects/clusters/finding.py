"""Clustering of memory vectors by HDBSCAN over their directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.errors import require_extra
from memlab.kernel.base.arrays import Floats, Ints, Values

# A direction is a vector without the mean of all vectors, rounded to a grid on which every sum is exact.
#
# The vectors of static encoders point in similar directions. The mean cosine of two turns of real conversations is .88,
# and the median cosine of a centroid with the nearest other centroid is .98. After subtracting the mean vector (Mu and
# Viswanath, 2018), these are .0 and .64, and a radius separates clusters.
#
# Components are multiples of 2**-24. So a dot product of two directions, and the sum of up to 2**29 directions, is
# exact in f64. The result is the same for any order, batch or BLAS, and f32 stores a component without loss.


# The precision of an f32 in 0.5..1, so that components fit into f32 without loss.
_GRID = float(1 << 24)
_BLOCK = 8192
"""Number of rows per block, which takes 16 MB of f64 with 256 dimensions."""


def iterate_blocks(matrix: Values) -> Iterator[tuple[int, Values]]:
    """Yield blocks of the matrix's rows, each with the index of the block's first row."""
    for start in range(0, len(matrix), _BLOCK):
        yield start, matrix[start : start + _BLOCK]


def compute_directions(vectors: Values, centre: Values | None = None) -> Floats:
    """Return vectors scaled to length 1, f64[rows, dim]; zero vectors stay zero.

    A direction is the vector scaled to length 1. If `centre` is given, it is subtracted and the result is scaled to
    length 1 again.
    """
    unit = _normalize(vectors.astype(np.float64))
    if centre is not None:
        centred = _normalize(unit - centre)
        centred[~unit.any(axis=1)] = (
            0.0  # a zero vector has no direction, in particular not away from the centre
        )
        unit = centred
    return round_to_grid(unit)


def compute_centre(vectors: Values) -> NDArray[np.float32]:
    """Return the mean of the directions of all non-zero vectors, f32[dim]."""
    total, count = np.zeros(vectors.shape[1]), 0
    for _, block in iterate_blocks(vectors):
        unit = compute_directions(block)
        total += unit.sum(axis=0)
        count += int(unit.any(axis=1).sum())
    return round_to_grid(total / max(count, 1)).astype(np.float32)


def round_to_grid(values: Floats) -> Floats:
    """Round values to multiples of 2**-24."""
    return np.asarray(np.rint(values * _GRID) / _GRID)


def _normalize(matrix: Floats) -> Floats:
    """Scale each row to length 1, except rows of length 0."""
    length = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
    return np.asarray(np.divide(matrix, length, out=np.zeros_like(matrix), where=length > 1e-9))


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of rows, numbered by descending size.

    Of clusters of equal size, the one with the smaller first row comes first.

    Attributes
    ----------
    rows, labels
        ``labels[i]`` is the cluster of ``rows[i]``, or -1 without a cluster. Rows ascend.
    centroids
        The mean direction of the members of each cluster after subtracting ``centre``, f32 of length 1.
    centre
        The mean of all vectors.
    radii
        The radius of each cluster: the quantile ``settings["reach"]`` of the cosine distances (0 to 2) of its members
        from the centroid.
    sizes
        The number of members of each cluster.
    method
        A description of the computation in words.
    """

    rows: Ints
    labels: Ints
    centroids: NDArray[np.float32]
    radii: Floats
    sizes: Ints
    centre: NDArray[np.float32]
    method: str
    settings: Mapping[str, int | float]

    def __len__(self) -> int:
        return len(self.centroids)

    def __repr__(self) -> str:
        inside = int(self.sizes.sum())
        return (
            f"<Clusters {len(self):,} of {inside:,} among {len(self.rows):,} rows; {self.method}>"
        )


def cluster_vectors(
    vectors: Values,
    rows: ArrayLike,
    *,
    min_size: int | None = None,
    seed: int = 0,
    max_sample: int = 10_000,
    dimensions: int = 16,
    reach: float = 0.95,
) -> Clusters:
    """Cluster the directions of `vectors` by HDBSCAN.

    ``vectors[i]`` belongs to ``rows[i]``, and rows ascend. `min_size` is the minimum size of a cluster, by default
    ``default_min_size``. If there are more than `max_sample` rows, a random sample drawn with `seed` is clustered, and
    ``assign`` labels the other rows. Vectors with more than `dimensions` are reduced to their first principal
    components. Zero vectors belong to no cluster. HDBSCAN is by Campello, Moulavi and Sander (2013).

    Clusters are the leaves of HDBSCAN's tree. Its default, the excess of mass, put two thirds of 10,000 synthetic turns
    into one cluster. Of 2,760 turns of real conversations, a quarter are in 26 leaves. On two busy cores, 10,000 rows
    of 16 dimensions take 2 s. With all 256 dimensions, 5,000 rows took over 30 s and gave no cluster.

    >>> ring = np.linspace(0, 0.2, 10)
    >>> east = np.stack([np.cos(ring), np.sin(ring)], 1)
    >>> north = np.stack([-np.sin(ring), np.cos(ring)], 1)
    >>> result = cluster_vectors(np.concatenate([east, north]), range(20), min_size=5)
    >>> result.labels.tolist() == [0] * 10 + [1] * 10
    True
    """
    numbers = np.asarray(rows, dtype=np.int64)
    if min_size is None:
        min_size = default_min_size(min(len(vectors), max_sample))
    drawn = np.arange(len(vectors))
    if len(vectors) > max_sample:
        drawn = np.sort(np.random.default_rng(seed).choice(len(vectors), max_sample, replace=False))
    sample = vectors[drawn]
    centre = compute_centre(sample)
    unit = compute_directions(sample, centre)
    reduced, kept_variance = _reduce_dimensions(unit, dimensions)
    dense = number_by_size(_label_dense(reduced, min_size), numbers[drawn])
    settings: dict[str, int | float] = {
        "min_size": min_size,
        "seed": seed,
        "sample": len(drawn),
        "dimensions": reduced.shape[1],
        "variance": kept_variance,
        "reach": reach,
    }
    result = recompute_clusters(
        sample,
        dense,
        numbers[drawn],
        centre,
        _describe_method(settings, vectors.shape),
        MappingProxyType(settings),
    )
    if len(drawn) == len(vectors):
        return result
    labels = assign(result, vectors)
    labels[drawn] = dense
    numbered = number_by_size(labels, numbers)
    inside = numbered >= 0
    before = np.empty(len(result), dtype=np.int64)
    before[numbered[inside]] = labels[inside]
    return Clusters(
        numbers,
        numbered,
        result.centroids[before],
        result.radii[before],
        np.bincount(numbered[inside], minlength=len(result)),
        centre,
        result.method,
        result.settings,
    )


def assign(clusters: Clusters, vectors: Values) -> Ints:
    """Return the label of the nearest cluster of each vector, or -1 outside its radius.

    Ties go to the smaller label. The label of a vector does not depend on the other vectors.
    """
    labels, cosine = find_nearest(clusters, vectors)
    return (
        np.where((labels >= 0) & (1.0 - cosine <= clusters.radii[labels]), labels, -1)
        if len(clusters)
        else labels
    )


def find_nearest(clusters: Clusters, vectors: Values) -> tuple[Ints, Floats]:
    """Return the label and cosine of the nearest centroid for each vector.

    The centre is subtracted first. Ties go to the smaller label. Zero vectors, and all vectors if
    there are no clusters, have label -1 and cosine 0.
    """
    labels, near = np.full(len(vectors), -1, dtype=np.int64), np.zeros(len(vectors))
    if not len(clusters):
        return labels, near
    centroids = clusters.centroids.astype(np.float64).T
    for start, block in iterate_blocks(vectors):
        unit = compute_directions(block, clusters.centre)
        cosine = unit @ centroids
        best = np.argmax(cosine, axis=1)
        nonzero = unit.any(axis=1)
        span = slice(start, start + len(block))
        labels[span] = np.where(nonzero, best, -1)
        near[span] = np.where(nonzero, cosine[np.arange(len(block)), best], 0.0)
    return labels, near


def compute_cosines(clusters: Clusters, vectors: Values, labels: Ints) -> Floats:
    """Return the cosine between each vector and the centroid of its cluster.

    The centre is subtracted first.
    """
    near = np.zeros(len(vectors))
    for start, block in iterate_blocks(vectors):
        centroids = clusters.centroids[labels[start : start + len(block)]].astype(np.float64)
        near[start : start + len(block)] = np.einsum(
            "ij,ij->i", compute_directions(block, clusters.centre), centroids
        )
    return near


def default_min_size(rows: int) -> int:
    """Return the default minimum size of a cluster, given the number of rows.

    The minimum is a fifth of the square root of the number of rows, and at least 5.

    >>> default_min_size(50), default_min_size(10_000)
    (5, 20)
    """
    return max(5, round(float(np.sqrt(rows)) / 5))


def recompute_clusters(
    vectors: Values,
    labels: Ints,
    rows: Ints,
    centre: NDArray[np.float32],
    method: str,
    settings: Mapping[str, int | float],
    before: NDArray[np.float32] | None = None,
) -> Clusters:
    """Build clusters from labels, with new centroids, radii and sizes.

    Labels are 0, 1, ... without a gap, or -1. If the directions of the members cancel out, the centroid in `before` is
    used.
    """
    count = int(labels.max(initial=-1)) + 1
    sums = np.zeros((count, vectors.shape[1]))
    for start, block in iterate_blocks(vectors):
        own = labels[start : start + len(block)]
        inside = own >= 0
        order = np.flatnonzero(inside)[np.argsort(own[inside], kind="stable")]
        present, first = np.unique(own[order], return_index=True)
        if len(present):
            # Sums of directions are exact in any order.
            sums[present] += np.add.reduceat(compute_directions(block, centre)[order], first)
    length = np.sqrt(np.einsum("ij,ij->i", sums, sums))
    cancelled = length < 1e-9
    centroids = round_to_grid(sums / np.where(cancelled, 1.0, length)[:, None]).astype(np.float32)
    if before is not None:
        centroids[cancelled] = before[cancelled]
    distance = np.zeros(len(vectors))
    for start, block in iterate_blocks(vectors):
        own = labels[start : start + len(block)]
        inside = own >= 0
        member_centroids = centroids[own[inside]].astype(np.float64)
        span = distance[start : start + len(block)]
        span[inside] = 1.0 - np.einsum(
            "ij,ij->i", compute_directions(block, centre)[inside], member_centroids
        )
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(count + 1))
    radii = np.array(
        [
            np.quantile(distance[order[bounds[label] : bounds[label + 1]]], settings["reach"])
            for label in range(count)
        ]
    )
    return Clusters(rows, labels, centroids, radii, np.diff(bounds), centre, method, settings)


def number_by_size(labels: Ints, rows: Ints) -> Ints:
    """Renumber groups by descending size; on ties, the group with the first row leads.

    The label -1 is unchanged, and empty groups leave no gap in the numbers.
    """
    inside = labels >= 0
    groups, index = np.unique(labels[inside], return_inverse=True)
    first = np.full(len(groups), np.iinfo(np.int64).max)
    np.minimum.at(first, index, rows[inside])
    rank = np.empty(len(groups), dtype=np.int64)
    rank[np.lexsort((first, -np.bincount(index, minlength=len(groups))))] = np.arange(len(groups))
    numbered = np.full(len(labels), -1, dtype=np.int64)
    numbered[inside] = rank[index]
    return numbered


def _label_dense(points: Floats, min_size: int) -> Ints:
    """Return the cluster labels of HDBSCAN; noise, zero vectors and any of fewer than ``2 * min_size`` vectors get -1."""
    labels = np.full(len(points), -1, dtype=np.int64)
    nonzero = np.flatnonzero(points.any(axis=1))
    if len(nonzero) < 2 * min_size:
        return labels
    with require_extra("science", "A search for clusters"):
        from sklearn.cluster import HDBSCAN

    model = HDBSCAN(
        min_cluster_size=min_size, min_samples=1, cluster_selection_method="leaf", copy=True
    )
    labels[nonzero] = model.fit_predict(points[nonzero])
    return labels


def _reduce_dimensions(unit: Floats, dimensions: int) -> tuple[Floats, float]:
    """Reduce vectors to at most `dimensions` normalised principal components; also return their share of variance.

    Vectors with at most `dimensions` columns are returned unchanged, with a share of 1.
    """
    if unit.shape[1] <= dimensions or not len(unit):
        return unit, 1.0
    strength, axes = np.linalg.eigh(unit.T @ unit)
    total = float(strength.sum())
    share = float(strength[-dimensions:].sum()) / total if total > 0 else 1.0
    return compute_directions(unit @ axes[:, -dimensions:]), share


def _describe_method(settings: Mapping[str, int | float], shape: tuple[int, ...]) -> str:
    """Return a phrase that names the clustering method and its main settings."""
    count, dim = shape
    method = f"HDBSCAN, leaves of at least {settings['min_size']}"
    if settings["dimensions"] < dim:
        method += f", on {settings['dimensions']} of {dim} dimensions ({settings['variance']:.0%} of the variance)"
    if settings["sample"] < count:
        method += (
            f", of {settings['sample']:,} of {count:,} rows; the others joined the nearest cluster"
        )
    return method


# Refinement moves centroids to the mean of their members and merges near clusters.


def refine_clusters(
    clusters: Clusters, vectors: Values, labels: Ints, *, merge_ratio: float = 0.5
) -> Clusters:
    """Move centroids to the mean of their present members, and merge near clusters.

    ``labels[i]`` (-1..len(clusters) - 1, as from ``assign``) is the cluster of ``vectors[i]``, which belongs to
    ``clusters.rows[i]``. Two clusters merge if each is the nearest of the other, and the distance of their centroids is
    less than `merge_ratio` times the smaller radius. One call merges only pairs, so a chain of clusters does not
    collapse into one cluster. Empty clusters are removed and the others are renumbered by size. Rows without a cluster
    stay without a cluster.

    The radius of a cluster that does not merge is unchanged. A quantile of members that were selected by the radius
    would shrink with every call. A merged cluster gets the quantile of all its members, or the larger of the two radii
    if that is greater.
    """
    rows = clusters.rows
    nonempty = np.unique(labels[labels >= 0])
    position = np.full(len(clusters) + 1, -1, dtype=np.int64)
    position[nonempty] = np.arange(len(nonempty))
    step = recompute_clusters(
        vectors,
        position[labels],
        rows,
        clusters.centre,
        clusters.method,
        clusters.settings,
        before=clusters.centroids[nonempty],
    )
    group = _pair_near_clusters(step, clusters.radii[nonempty], merge_ratio)
    labelled = number_by_size(group[step.labels], rows)
    count = int(labelled.max(initial=-1)) + 1
    survivor = np.zeros(
        len(step), dtype=np.int64
    )  # for each cluster, the number of the cluster that it becomes part of
    inside = labelled >= 0
    survivor[step.labels[inside]] = labelled[inside]
    predecessor = np.zeros(
        count, dtype=np.int64
    )  # for each resulting cluster, the first of the clusters that formed it
    predecessor[survivor[::-1]] = np.arange(len(step))[::-1]
    result = recompute_clusters(
        vectors,
        labelled,
        rows,
        clusters.centre,
        clusters.method,
        clusters.settings,
        before=step.centroids[predecessor],
    )
    radii = np.zeros(count)
    np.maximum.at(radii, survivor, clusters.radii[nonempty])
    several = np.bincount(survivor, minlength=count) > 1
    return replace(result, radii=np.where(several, np.maximum(result.radii, radii), radii))


def _pair_near_clusters(step: Clusters, radii: Floats, merge_ratio: float) -> Ints:
    """Return the number of each cluster's group after merging pairs of near clusters.

    The last entry is -1, so that the label -1 of rows without a cluster maps to itself.
    """
    count = len(step)
    group = np.append(np.arange(count), -1)
    if count < 2:
        return group
    centroids = step.centroids.astype(np.float64)
    distance = 1.0 - centroids @ centroids.T
    np.fill_diagonal(distance, np.inf)
    nearest = np.argmin(distance, axis=1)
    each = np.arange(count)
    close = distance[each, nearest] < merge_ratio * np.minimum(radii, radii[nearest])
    pair = close & (nearest[nearest] == each) & (each < nearest)
    group[nearest[pair]] = each[pair]
    return group
