"""The shape of a memory's graph: communities and what joins them, where every node stands, and the temporal layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.clock import When, from_micros, to_micros
from memlab.kernel.graph import (
    NODE_KINDS,
    Communities,
    Edges,
    SimpleGraph,
    bridges,
    clustering,
    node_kinds,
    simple_graph,
)

__all__ = [
    "LAYERS",
    "Layers",
    "Topology",
    "key_scores",
    "layer",
    "layers",
    "newest_edges",
    "topology",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_CLUSTERED = 20
"""Communities whose clustering coefficient is estimated, the largest ones: 0.7 ms a member tried."""

_TRIED = 50
_CENTRAL = 3


@dataclass(frozen=True)
class Topology:
    """Frames about a graph.

    ``nodes``: every node that an edge meets: node, kind, memory_id (null for another kind), degree, community (null
    outside the communities given), bridge (an edge of it leads into another community).
    ``communities``: community, memories, size, edges (inside; joined pairs), density, clustering (mean over at most 50
    members, the 20 largest communities; else null), bridges (pairs that lead out), central (ids of the memories with
    most weight inside).
    ``bridges``: left, right, edges, weight, and of the strongest of them relation, source and target (memory ids).
    ``relations``: relation, edges, share, weight (mean), reinforcements.
    ``totals``: measure and value of nodes, edges, density, clustering, components, largest component, communities,
    modularity. ``exact`` is false where clustering was estimated from a thousand nodes.
    """

    nodes: pl.DataFrame
    communities: pl.DataFrame
    bridges: pl.DataFrame
    relations: pl.DataFrame
    totals: pl.DataFrame
    exact: bool


def topology(
    edges: Edges, found: Communities, *, memories: int | None = None, seed: int = 0
) -> Topology:
    """The shape of a graph, given its communities; direction counts nowhere.

    ``memories`` is how many there are; unless given, and of other kinds always, those that an edge meets. Density and
    components count joined pairs, however many edges join them. ``seed`` draws the nodes from which clustering is
    estimated. Removed edges do not count.
    """
    from scipy.sparse import triu

    numbers = np.flatnonzero(edges.alive)
    graph = simple_graph(edges)
    met = graph.nodes
    kinds = node_kinds(met)
    is_memory = kinds == 0
    others = len(met) - int(is_memory.sum())
    count = len(met) if memories is None else memories + others
    left, right = (graph.places(ends) for ends in edges.ends(numbers))
    upper = triu(graph.matrix, format="coo")
    pair_left, pair_right = upper.row.astype(np.int64), upper.col.astype(np.int64)
    community = np.full(len(met), -1, dtype=np.int64)
    community[np.searchsorted(met, found.rows)] = found.labels
    between = _both(community, pair_left, pair_right) & (
        community[pair_left] != community[pair_right]
    )
    bridging = np.zeros(len(met), dtype=np.bool_)
    bridging[pair_left[between]] = bridging[pair_right[between]] = True
    node_frame = pl.DataFrame(
        {
            "node": met,
            "kind": pl.Series(NODE_KINDS, dtype=pl.Enum(NODE_KINDS)).gather(kinds),
            "memory_id": pl.Series(np.where(is_memory, met + 1, 0)).set(
                pl.Series(~is_memory), None
            ),
            "degree": edges.degree(met),
            "community": pl.Series(community).set(pl.Series(community < 0), None),
            "bridge": bridging,
        }
    )
    coefficient = clustering(graph, met, seed=seed)
    components, largest = _components(graph)
    totals = [
        ("nodes", float(count)),
        ("joined", float(len(met))),
        ("edges", float(len(numbers))),
        ("density", len(pair_left) / (count * (count - 1) / 2) if count > 1 else 0.0),
        ("clustering", coefficient.mean),
        ("components", float(components + count - len(met))),
        ("largest component", float(largest if components else min(count, 1))),
        ("communities", float(len(found))),
        ("modularity", found.modularity),
    ]
    return Topology(
        node_frame,
        _communities(
            edges, graph, found, community, (pair_left, pair_right), (numbers, left, right), seed
        ),
        _bridges(edges, found),
        _relations(edges, numbers),
        pl.DataFrame(totals, schema={"measure": pl.String, "value": pl.Float64}, orient="row"),
        coefficient.exact,
    )


def newest_edges(edges: Edges, most: int) -> NDArray[np.bool_] | None:
    """A mask of about ``most`` edges, of the newest memories that are joined by so many; None if that is all.

    What a memory is joined to was mostly there just before it, so the newest memories keep their communities where
    a random share of all would lose them.
    """
    if edges.live <= most:
        return None
    numbers = np.flatnonzero(edges.alive)
    # memories are numbered as they come, other kinds of node lie above
    oldest = np.minimum(*edges.ends(numbers))
    first = np.partition(oldest, len(oldest) - most)[len(oldest) - most]
    mask = np.zeros(len(edges), dtype=np.bool_)
    mask[numbers[oldest >= first]] = True
    return mask


def key_scores(importance: Floats, access: Floats) -> Floats:
    """How far each memory is both important and used, 0-1: ``sqrt(importance * log(1 + access) / log(1 + most))``.

    The geometric mean of two shares, as in the Human Development Index (UNDP, 2010): neither makes up for a lack of
    the other. Uses count by their order of magnitude; ``most`` is the greatest number of uses.

    >>> key_scores(np.array([1.0, 0.5, 1.0]), np.array([3.0, 3.0, 0.0])).round(2).tolist()
    [1.0, 0.71, 0.0]
    """
    used = np.log1p(access)
    most = used.max(initial=0.0)
    return np.sqrt(importance * used / most) if most > 0 else np.zeros(len(used))


def _communities(
    edges: Edges,
    graph: SimpleGraph,
    found: Communities,
    community: Ints,
    pairs: tuple[Ints, Ints],
    joined: tuple[Ints, Ints, Ints],
    seed: int,
) -> pl.DataFrame:
    count = len(found)
    left, right = pairs
    labelled = _both(community, left, right)
    own, other = community[left[labelled]], community[right[labelled]]
    inside = np.bincount(own[own == other], minlength=count)
    apart = own != other
    out = np.bincount(own[apart], minlength=count) + np.bincount(other[apart], minlength=count)
    size = np.bincount(found.labels, minlength=count)
    possible = size * (size - 1) / 2
    memories = np.bincount(found.labels[node_kinds(found.rows) == 0], minlength=count)
    coefficient: list[float | None] = [None] * count
    order = np.argsort(found.labels, kind="stable")
    bounds = np.searchsorted(found.labels[order], np.arange(count + 1))
    for one in range(min(count, _CLUSTERED)):
        members = found.rows[order[bounds[one] : bounds[one + 1]]]
        coefficient[one] = clustering(graph, members, most=_TRIED, seed=seed).mean
    return pl.DataFrame(
        {
            "community": np.arange(count),
            "memories": memories,
            "size": size,
            "edges": inside,
            "density": np.divide(inside, possible, out=np.zeros(count), where=possible > 0),
            "clustering": pl.Series(coefficient, dtype=pl.Float64),
            "bridges": out,
            "central": _central(edges, graph.nodes, community, joined, count),
        }
    )


def _central(
    edges: Edges, met: Ints, community: Ints, joined: tuple[Ints, Ints, Ints], count: int
) -> pl.Series:
    """The ids of the memories of each community that have most weight inside."""
    numbers, left, right = joined
    within = _both(community, left, right) & (community[left] == community[right])
    weight = edges.weight[numbers[within]]
    strength = np.bincount(left[within], weights=weight, minlength=len(met))
    strength += np.bincount(right[within], weights=weight, minlength=len(met))
    candidates = np.flatnonzero((community >= 0) & (node_kinds(met) == 0))
    order = candidates[np.lexsort((candidates, -strength[candidates], community[candidates]))]
    best = (
        pl.DataFrame({"community": community[order], "id": met[order] + 1})
        .group_by("community", maintain_order=True)
        .agg(pl.col("id").head(_CENTRAL))
    )
    every = pl.DataFrame({"community": np.arange(count)}, schema={"community": pl.Int64})
    return every.join(best, on="community", how="left", maintain_order="left")["id"].fill_null(
        pl.Series([[]], dtype=pl.List(pl.Int64))
    )


def _bridges(edges: Edges, found: Communities) -> pl.DataFrame:
    between = bridges(edges, found.rows, found.labels)
    strongest = between["strongest"].to_numpy()
    source, target = edges.ends(strongest)
    words = pl.Series(edges.relations, dtype=pl.String)
    return between.drop("strongest").with_columns(
        words.gather(edges.relation[strongest].astype(np.int64)).alias("relation"),
        _ids("source", source),
        _ids("target", target),
    )


def _relations(edges: Edges, numbers: Ints) -> pl.DataFrame:
    codes = edges.relation[numbers].astype(np.int64)
    frame = pl.DataFrame(
        {
            "relation": pl.Series(edges.relations, dtype=pl.String).gather(codes),
            "weight": edges.weight[numbers],
            "reinforcements": edges.reinforcements[numbers].astype(np.int64),
        }
    )
    return (
        frame.group_by("relation")
        .agg(
            pl.len().cast(pl.Int64).alias("edges"),
            (pl.len() / max(len(numbers), 1)).alias("share"),
            pl.col("weight").mean(),
            pl.col("reinforcements").sum(),
        )
        .sort("edges", "relation", descending=[True, False])
    )


def _components(graph: SimpleGraph) -> tuple[int, int]:
    """How many connected components there are, and the size of the largest."""
    if not len(graph.nodes):
        return 0, 0
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(graph.matrix, directed=False)
    return int(count), int(np.bincount(label).max())


def _both(community: Ints, left: Ints, right: Ints) -> NDArray[np.bool_]:
    return np.asarray((community[left] >= 0) & (community[right] >= 0))


def _ids(name: str, nodes: Ints) -> pl.Series:
    """The ids of memories, null for another kind of node."""
    other = node_kinds(nodes) != 0
    return pl.Series(name, nodes + 1).set(pl.Series(other), None)


# Temporal layers: which memories are active, stable, emerging or decaying.


LAYERS = ("active", "stable", "emerging", "decaying")

_WORDS = pl.Enum(LAYERS)
_DAY_US = 86_400_000_000


def layer(now: When) -> pl.Expr:
    """The layer of a row of ``lab.memories`` at ``now``, where no policy says another.

    emerging: newer than 7 days and used less than twice; else active: used within 7 days; else stable: used 5 times;
    else decaying. This is what the ``label`` policy of the pack ``associative`` says.
    """
    instant = pl.lit(from_micros(to_micros(now)), dtype=pl.Datetime("us", "UTC"))

    def days(column: str) -> pl.Expr:
        return ((instant - pl.col(column)).dt.total_microseconds() / _DAY_US).clip(0)

    return (
        pl.when((days("created") < 7) & (pl.col("access") < 2))
        .then(pl.lit("emerging"))
        .when((days("accessed") <= 7) & (pl.col("access") > 0))
        .then(pl.lit("active"))
        .when(pl.col("access") >= 5)
        .then(pl.lit("stable"))
        .otherwise(pl.lit("decaying"))
        .cast(_WORDS)
        .alias("layer")
    )


@dataclass(frozen=True)
class Layers:
    """How many memories each layer has: ``overall``, ``by_kind``, and ``by_week`` in which they were created.

    All three have the columns ``layer``, ``memories`` and ``share`` (of all, of the kind, of the week), and a row for
    each layer, empty ones too. Weeks begin on Mondays, UTC; a week in which nothing was created has no rows.
    """

    overall: pl.DataFrame
    by_kind: pl.DataFrame
    by_week: pl.DataFrame


def layers(memories: pl.DataFrame, now: When) -> Layers:
    """Count the rows of a frame with the columns kind, created, accessed and access of ``lab.memories``.

    A column ``layer`` of the four words decides where there is one, else ``layer(now)``.
    """
    by = pl.col("layer").cast(_WORDS) if "layer" in memories.columns else layer(now)
    memories = memories.with_columns(by)
    weeks = pl.col("created").dt.truncate("1w").alias("week")
    return Layers(
        _counted(memories.select("layer"), []),
        _counted(memories.select("kind", "layer"), ["kind"]).sort(
            pl.col("memories").sum().over("kind"), "kind", "layer", descending=[True, False, False]
        ),
        _counted(memories.select(weeks, "layer"), ["week"]),
    )


def _counted(memories: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """A row for each group and layer, sorted."""
    every = pl.DataFrame({"layer": pl.Series(LAYERS, dtype=_WORDS)})
    if by:
        every = memories.select(by).unique().join(every, how="cross")
    counted = memories.group_by(*by, "layer").agg(pl.len().cast(pl.Int64).alias("memories"))
    total = pl.col("memories").sum()
    share = (pl.col("memories") / (total.over(by) if by else total)).fill_nan(0.0)
    return (
        every.join(counted, on=[*by, "layer"], how="left", nulls_equal=True)
        .with_columns(pl.col("memories").fill_null(0))
        .with_columns(share.alias("share"))
        .sort(*by, "layer")
    )
