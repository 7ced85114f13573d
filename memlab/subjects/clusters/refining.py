"""Clusters that follow what they hold: centroids move to their members, near ones merge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.subjects.clusters.finding import Clusters, by_size, moved

__all__ = ["refine"]

Ints = NDArray[np.int64]


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
    step = moved(vectors, place[labels], rows, found.centre, found.method, found.settings, before=found.centroids[kept])
    group = _merged(step, found.radii[kept], near)
    joined = by_size(group[step.labels], rows)
    count = int(joined.max(initial=-1)) + 1
    new = np.zeros(len(step), dtype=np.int64)  # what each has become
    inside = joined >= 0
    new[step.labels[inside]] = joined[inside]
    old = np.zeros(count, dtype=np.int64)  # one that has become each
    old[new[::-1]] = np.arange(len(step))[::-1]
    refined = moved(vectors, joined, rows, found.centre, found.method, found.settings, before=step.centroids[old])
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
