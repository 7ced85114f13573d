"""Groups of memories that mean much the same: HDBSCAN over directions, kept as centroids that others may join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Clusters",
    "assign",
    "blocks",
    "by_size",
    "centre_of",
    "clusters",
    "directions",
    "moved",
    "natural_size",
    "nearest",
    "nearness",
    "on_grid",
    "refine",
]


# Where vectors point once what they have in common is taken away, on a grid on which every sum is exact.
#
# Static encoders crowd: the mean cosine of two turns of real conversations is .88, and that of a cluster's centroid
# with the nearest other one .98 (median). Without the mean vector (Mu and Viswanath, 2018) these are .0 and .64, and
# a radius means something.
#
# Components are multiples of 2**-24. So a dot product of two directions, and the sum of up to 2**29 of them, is exact
# in f64: it is the same in any order, batch or BLAS, and f32 holds a component without loss.


Floats = NDArray[np.float64]

_GRID = float(1 << 24)
_BLOCK = 8192
"""Rows at a time: 16 MB of f64 with 256 dimensions."""


def blocks(matrix: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """The matrix in pieces of some thousand rows, each with the number of its first."""
    for start in range(0, len(matrix), _BLOCK):
        yield start, matrix[start : start + _BLOCK]


def directions(vectors: NDArray[Any], centre: NDArray[Any] | None = None) -> Floats:
    """f64[rows, dim]: each vector at length 1, less ``centre``, at length 1 again; zero where nothing is left."""
    unit = _unit(vectors.astype(np.float64))
    if centre is not None:
        away = _unit(unit - centre)
        away[~unit.any(axis=1)] = 0.0  # a zero vector points nowhere, not away from the centre
        unit = away
    return on_grid(unit)


def centre_of(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """f32[dim]: the mean direction of all vectors that are not zero."""
    total, count = np.zeros(vectors.shape[1]), 0
    for _, block in blocks(vectors):
        pointing = directions(block)
        total += pointing.sum(axis=0)
        count += int(pointing.any(axis=1).sum())
    return on_grid(total / max(count, 1)).astype(np.float32)


def on_grid(values: Floats) -> Floats:
    """The nearest multiples of 2**-24."""
    return np.asarray(np.rint(values * _GRID) / _GRID)


def _unit(matrix: Floats) -> Floats:
    length = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
    return np.asarray(np.divide(matrix, length, out=np.zeros_like(matrix), where=length > 1e-9))


Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Clusters:
    """``labels[i]`` is the cluster of ``rows[i]`` (ascending): 0 is the largest, ties by the least row; -1 is none.

    ``centroids`` (f32, at length 1) are the mean directions of the members, where a direction is that of a vector at
    length 1 less ``centre``, the mean of all. ``radii`` are cosine distances (0..2): the quantile ``settings["reach"]``
    of the members' distances from their centroid. ``sizes`` count members. ``method`` says in words what was done.
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


def clusters(
    vectors: NDArray[Any],
    rows: ArrayLike,
    *,
    min_size: int | None = None,
    seed: int = 0,
    most: int = 10_000,
    dimensions: int = 16,
    reach: float = 0.95,
) -> Clusters:
    """HDBSCAN (Campello, Moulavi and Sander, 2013) over the directions of ``vectors``; ``vectors[i]`` is ``rows[i]``.

    Rows ascend. ``min_size`` is the least size of a cluster, unless given ``natural_size``. Of more than ``most`` rows
    that many are drawn by ``seed``, and the others join what they are near, by ``assign``. More than ``dimensions`` are
    reduced to the first principal components. Zero vectors belong to no cluster.

    Leaves of the tree are taken: the excess of mass, HDBSCAN's own choice, put two thirds of 10,000 synthetic turns in
    one cluster. Of 2,760 turns of real conversations 26 leaves hold a quarter. On two busy cores 10,000 rows of 16
    dimensions take 2 s; 5,000 of all 256 took over 30 s, and nothing was dense.

    >>> ring = np.linspace(0, 0.2, 10)
    >>> east, north = np.stack([np.cos(ring), np.sin(ring)], 1), np.stack([-np.sin(ring), np.cos(ring)], 1)
    >>> found = clusters(np.concatenate([east, north]), range(20), min_size=5)
    >>> found.labels.tolist() == [0] * 10 + [1] * 10
    True
    """
    numbers = np.asarray(rows, dtype=np.int64)
    if min_size is None:
        min_size = natural_size(min(len(vectors), most))
    drawn = np.arange(len(vectors))
    if len(vectors) > most:
        drawn = np.sort(np.random.default_rng(seed).choice(len(vectors), most, replace=False))
    sample = vectors[drawn]
    centre = centre_of(sample)
    pointing = directions(sample, centre)
    reduced, kept_variance = _reduced(pointing, dimensions)
    dense = by_size(_dense(reduced, min_size), numbers[drawn])
    settings: dict[str, int | float] = {
        "min_size": min_size,
        "seed": seed,
        "sample": len(drawn),
        "dimensions": reduced.shape[1],
        "variance": kept_variance,
        "reach": reach,
    }
    found = moved(
        sample,
        dense,
        numbers[drawn],
        centre,
        _described(settings, vectors.shape),
        MappingProxyType(settings),
    )
    if len(drawn) == len(vectors):
        return found
    labels = assign(found, vectors)
    labels[drawn] = dense
    numbered = by_size(labels, numbers)
    inside = numbered >= 0
    before = np.empty(len(found), dtype=np.int64)
    before[numbered[inside]] = labels[inside]
    return Clusters(
        numbers,
        numbered,
        found.centroids[before],
        found.radii[before],
        np.bincount(numbered[inside], minlength=len(found)),
        centre,
        found.method,
        found.settings,
    )


def assign(found: Clusters, vectors: NDArray[Any]) -> Ints:
    """The cluster of each vector (rows, dim): that of the nearest centroid if it lies within its radius, else -1.

    Ties by the lesser label. A vector's label depends on no other vector.
    """
    labels, cosine = nearest(found, vectors)
    return (
        np.where((labels >= 0) & (1.0 - cosine <= found.radii[labels]), labels, -1)
        if len(found)
        else labels
    )


def nearest(found: Clusters, vectors: NDArray[Any]) -> tuple[Ints, Floats]:
    """The cluster whose centroid is nearest to each vector (rows, dim), and the cosine of the two, less the centre.

    Ties by the lesser label; -1 and 0 for a vector that points nowhere, and where there are no clusters.
    """
    labels, near = np.full(len(vectors), -1, dtype=np.int64), np.zeros(len(vectors))
    if not len(found):
        return labels, near
    centroids = found.centroids.astype(np.float64).T
    for start, block in blocks(vectors):
        pointing = directions(block, found.centre)
        cosine = pointing @ centroids
        best = np.argmax(cosine, axis=1)
        somewhere = pointing.any(axis=1)
        span = slice(start, start + len(block))
        labels[span] = np.where(somewhere, best, -1)
        near[span] = np.where(somewhere, cosine[np.arange(len(block)), best], 0.0)
    return labels, near


def nearness(found: Clusters, vectors: NDArray[Any], labels: Ints) -> Floats:
    """The cosine of each vector (rows, dim) to the centroid of its cluster, which ``labels`` names, less the centre."""
    near = np.zeros(len(vectors))
    for start, block in blocks(vectors):
        centroids = found.centroids[labels[start : start + len(block)]].astype(np.float64)
        near[start : start + len(block)] = np.einsum(
            "ij,ij->i", directions(block, found.centre), centroids
        )
    return near


def natural_size(rows: int) -> int:
    """The least size of a cluster among so many rows: a fifth of the square root, at least 5.

    >>> natural_size(50), natural_size(10_000)
    (5, 20)
    """
    return max(5, round(float(np.sqrt(rows)) / 5))


def moved(
    vectors: NDArray[Any],
    labels: Ints,
    rows: Ints,
    centre: NDArray[np.float32],
    method: str,
    settings: Mapping[str, int | float],
    before: NDArray[np.float32] | None = None,
) -> Clusters:
    """Clusters of these labels, 0, 1, ... without a gap, with the centroids and radii of their members.

    Where members cancel out a centroid stays what it was ``before``.
    """
    count = int(labels.max(initial=-1)) + 1
    sums = np.zeros((count, vectors.shape[1]))
    for start, block in blocks(vectors):
        own = labels[start : start + len(block)]
        inside = own >= 0
        sums += _indicator(own[inside], count).T @ directions(block, centre)[inside]
    length = np.sqrt(np.einsum("ij,ij->i", sums, sums))
    none = length < 1e-9
    centroids = on_grid(sums / np.where(none, 1.0, length)[:, None]).astype(np.float32)
    if before is not None:
        centroids[none] = before[none]
    distance = np.zeros(len(vectors))
    for start, block in blocks(vectors):
        own = labels[start : start + len(block)]
        inside = own >= 0
        theirs = centroids[own[inside]].astype(np.float64)
        span = distance[start : start + len(block)]
        span[inside] = 1.0 - np.einsum("ij,ij->i", directions(block, centre)[inside], theirs)
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(count + 1))
    radii = np.array(
        [
            np.quantile(distance[order[bounds[one] : bounds[one + 1]]], settings["reach"])
            for one in range(count)
        ]
    )
    return Clusters(rows, labels, centroids, radii, np.diff(bounds), centre, method, settings)


def by_size(labels: Ints, rows: Ints) -> Ints:
    """The same groups: the largest is 0, ties by the least row; -1 stays, and empty groups leave no gap."""
    inside = labels >= 0
    groups, index = np.unique(labels[inside], return_inverse=True)
    first = np.full(len(groups), np.iinfo(np.int64).max)
    np.minimum.at(first, index, rows[inside])
    rank = np.empty(len(groups), dtype=np.int64)
    rank[np.lexsort((first, -np.bincount(index, minlength=len(groups))))] = np.arange(len(groups))
    numbered = np.full(len(labels), -1, dtype=np.int64)
    numbered[inside] = rank[index]
    return numbered


def _dense(points: Floats, min_size: int) -> Ints:
    """HDBSCAN's labels; -1 also for points at the origin, which have no direction."""
    labels = np.full(len(points), -1, dtype=np.int64)
    taking_part = np.flatnonzero(points.any(axis=1))
    if len(taking_part) < 2 * min_size:
        return labels
    from sklearn.cluster import HDBSCAN

    model = HDBSCAN(
        min_cluster_size=min_size, min_samples=1, cluster_selection_method="leaf", copy=True
    )
    labels[taking_part] = model.fit_predict(points[taking_part])
    return labels


def _reduced(pointing: Floats, dimensions: int) -> tuple[Floats, float]:
    """The first principal components at length 1 again, and their share of the variance; all if they are few."""
    if pointing.shape[1] <= dimensions or not len(pointing):
        return pointing, 1.0
    strength, axes = np.linalg.eigh(pointing.T @ pointing)
    total = float(strength.sum())
    kept = float(strength[-dimensions:].sum()) / total if total > 0 else 1.0
    return directions(pointing @ axes[:, -dimensions:]), kept


def _described(settings: Mapping[str, int | float], shape: tuple[int, ...]) -> str:
    count, dim = shape
    method = f"HDBSCAN, leaves of at least {settings['min_size']}"
    if settings["dimensions"] < dim:
        method += f", on {settings['dimensions']} of {dim} dimensions ({settings['variance']:.0%} of the variance)"
    if settings["sample"] < count:
        method += f", of {settings['sample']:,} of {count:,} rows; the others joined the nearest"
    return method


def _indicator(labels: Ints, count: int) -> Any:
    from scipy.sparse import csr_array

    size = len(labels)
    return csr_array((np.ones(size), labels, np.arange(size + 1)), shape=(size, count))


# Clusters that follow what they hold: centroids move to their members, near ones merge.


def refine(found: Clusters, vectors: NDArray[Any], labels: Ints, *, near: float = 0.5) -> Clusters:
    """Clusters whose centroids are the mean directions of the members that they have by now.

    ``labels[i]`` (-1..len(found) - 1, as from ``assign``) is the cluster of ``vectors[i]``, which is that of
    ``found.rows[i]``. Two clusters merge if each is the other's nearest and their
    centroids lie closer than ``near`` times the lesser of the two radii: so a call merges pairs, and a chain of
    clusters does not collapse into one. A cluster without members goes. Groups are renumbered by size; what is in
    none stays so.

    A radius stays what it was: its quantile of members that were chosen by it would be less, and less at every turn. Of
    two clusters that merge it is the quantile of all members, or the greater of theirs.
    """
    rows = found.rows
    kept = np.unique(labels[labels >= 0])
    place = np.full(len(found) + 1, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    step = moved(
        vectors,
        place[labels],
        rows,
        found.centre,
        found.method,
        found.settings,
        before=found.centroids[kept],
    )
    group = _merged(step, found.radii[kept], near)
    joined = by_size(group[step.labels], rows)
    count = int(joined.max(initial=-1)) + 1
    new = np.zeros(len(step), dtype=np.int64)  # what each has become
    inside = joined >= 0
    new[step.labels[inside]] = joined[inside]
    old = np.zeros(count, dtype=np.int64)  # one that has become each
    old[new[::-1]] = np.arange(len(step))[::-1]
    refined = moved(
        vectors,
        joined,
        rows,
        found.centre,
        found.method,
        found.settings,
        before=step.centroids[old],
    )
    radii = np.zeros(count)
    np.maximum.at(radii, new, found.radii[kept])
    several = np.bincount(new, minlength=count) > 1
    return replace(refined, radii=np.where(several, np.maximum(refined.radii, radii), radii))


def _merged(step: Clusters, radii: NDArray[np.float64], near: float) -> Ints:
    """The group of each cluster, that of the lesser one for a pair, and -1 at the end for what is in none."""
    count = len(step)
    group = np.append(np.arange(count), -1)
    if count < 2:
        return group
    centroids = step.centroids.astype(np.float64)
    distance = 1.0 - centroids @ centroids.T
    np.fill_diagonal(distance, np.inf)
    nearest = np.argmin(distance, axis=1)
    each = np.arange(count)
    close = distance[each, nearest] < near * np.minimum(radii, radii[nearest])
    pair = close & (nearest[nearest] == each) & (each < nearest)
    group[nearest[pair]] = each[pair]
    return group
