"""The shape of a graph: density, clustering, and what lies between communities.

They see a simple graph: direction and relation do not count, and edges that join the same two nodes are one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from memlab.errors import InputError
from memlab.graph._edges import Edges
from memlab.graph._nodes import whole

__all__ = ["Clustering", "bridges", "clustering", "density"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST_PAIRS = 2_000
"""Pairs of neighbours tried for one node: all of them below 64 neighbours, else as many drawn; s.e. at most 0.011."""


@dataclass(frozen=True)
class Clustering:
    """The share of a node's pairs of neighbours that are joined (Watts and Strogatz 1998), and its mean.

    ``exact`` is false where nodes or pairs were drawn at random instead of trying all.
    """

    rows: Ints
    coefficient: Floats
    mean: float
    exact: bool


def density(edges: Edges, *, nodes: int) -> float:
    """The share of all pairs of ``nodes`` nodes that are joined; 0 for fewer than two nodes.

    >>> edges = Edges()
    >>> edges.append([0, 1, 1], [1, 0, 2], 0, 1.0, nodes=4).tolist()
    [0, 1, 2]
    >>> round(density(edges, nodes=4), 3)
    0.333
    """
    return len(_pairs(edges)) / (nodes * (nodes - 1) / 2) if nodes > 1 else 0.0


def clustering(edges: Edges, rows: ArrayLike, *, most: int = 1_000, seed: int = 0) -> Clustering:
    """The local clustering coefficient of ``rows``, 0 where there are fewer than two neighbours.

    Of more than ``most`` rows that many are drawn by ``seed``, and of a node with more than 63 neighbours 2,000
    pairs; with most of its rows drawn the mean has a standard error of at most 0.016.
    """
    wanted = np.sort(whole("row", rows))
    wanted = wanted[np.diff(wanted, prepend=-1) > 0]
    chance = np.random.default_rng(seed)
    exact = len(wanted) <= most
    if not exact:
        wanted = np.sort(chance.choice(wanted, most, replace=False))
    coefficient = np.zeros(len(wanted))
    for at, row in enumerate(wanted):
        near = _neighbours(edges, row)
        if len(near) < 2:
            continue
        if len(near) * (len(near) - 1) // 2 <= _MOST_PAIRS:
            left, right = np.triu_indices(len(near), 1)
        else:
            exact = False
            left = chance.integers(0, len(near), _MOST_PAIRS)
            right = (left + chance.integers(1, len(near), _MOST_PAIRS)) % len(near)
        coefficient[at] = np.mean(_joined(edges, near[left], near[right]))
    return Clustering(wanted, coefficient, float(coefficient.mean()) if len(wanted) else 0.0, exact)


def bridges(edges: Edges, rows: ArrayLike, labels: ArrayLike) -> pl.DataFrame:
    """What joins communities: a row for each two, with how many edges, their weight, and the strongest one's number.

    ``labels[i]`` is the community of ``rows[i]``; edges of other nodes do not count. Most weight first.
    """
    nodes, groups = whole("row", rows), whole("label", labels)
    if nodes.ndim != 1 or nodes.shape != groups.shape:
        raise InputError(f"{nodes.size} rows do not pair with {groups.size} labels.")
    order = np.argsort(nodes, kind="stable")
    nodes, groups = nodes[order], groups[order]
    if (nodes[1:] == nodes[:-1]).any():
        raise InputError("A row has one label; these repeat.")
    numbers = np.flatnonzero(edges.alive)
    source, target = edges.ends(numbers)
    left, right = _looked_up(nodes, groups, source), _looked_up(nodes, groups, target)
    between = (left[0] & right[0]) & (left[1] != right[1])
    numbers = numbers[between]
    return (
        pl.DataFrame(
            {
                "left": np.minimum(left[1], right[1])[between],
                "right": np.maximum(left[1], right[1])[between],
                "edge": numbers,
                "weight": edges.weight[numbers],
            }
        )
        .sort("weight", "edge", descending=[True, False])
        .group_by("left", "right", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("edges"),
            pl.col("weight").sum(),
            pl.col("edge").first().alias("strongest"),
        )
        .sort("weight", "left", "right", descending=[True, False, False])
    )


def _looked_up(nodes: Ints, groups: Ints, wanted: Ints) -> tuple[NDArray[np.bool_], Ints]:
    """Whether each node has a label, and the label."""
    if not len(nodes):
        return np.zeros(len(wanted), dtype=np.bool_), np.zeros(len(wanted), dtype=np.int64)
    place = np.minimum(np.searchsorted(nodes, wanted), len(nodes) - 1)
    return nodes[place] == wanted, groups[place]


def _pairs(edges: Edges) -> Ints:
    """The two nodes of each joined pair as one number, ascending."""
    source, target = edges.ends(np.flatnonzero(edges.alive))
    pairs = np.sort(np.minimum(source, target) << 32 | np.maximum(source, target))
    return pairs[np.diff(pairs, prepend=-1) > 0]


def _neighbours(edges: Edges, row: np.int64) -> Ints:
    near = np.sort(edges.crossings(np.array([row])).neighbour)
    return near[np.diff(near, prepend=-1) > 0]


def _joined(edges: Edges, left: Ints, right: Ints) -> NDArray[np.bool_]:
    """Whether any edge joins the two; each of the lesser nodes is looked up once."""
    few = edges.degree(left) <= edges.degree(right)
    near, far = np.where(few, left, right), np.where(few, right, left)
    nodes = np.sort(near)
    nodes = nodes[np.diff(nodes, prepend=-1) > 0]
    crossed = edges.crossings(nodes)
    known = np.sort(nodes[crossed.position] << 32 | crossed.neighbour)
    wanted = near << 32 | far
    place = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
    return known[place] == wanted if len(known) else np.zeros(len(wanted), dtype=np.bool_)
