"""The structure of a memory graph: communities, bridges, degrees and temporal layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.base.clock import INSTANT, When, from_micros, to_micros
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

# A clustering coefficient takes 0.7 ms per member, so it is estimated from at most _TRIED members of the _CLUSTERED
# largest communities. Three central memories fit into one cell of a table.
_CLUSTERED = 20
_TRIED = 50
_CENTRAL = 3


@dataclass(frozen=True)
class Topology:
    """Frames that describe the structure of a graph.

    ``nodes`` has a row for each node with an edge. The columns are node, kind, memory_id (null for other kinds),
    degree, community (null for a node without a community) and bridge (whether an edge leads into another
    community).

    ``communities`` has the columns community, memories, size, edges (pairs inside), density, clustering, bridges (pairs
    that lead out) and central. Clustering is the mean over at most 50 members, and null except for the 20 largest
    communities. ``central`` lists the memories with the greatest weight of edges inside the community.

    ``bridges`` has the columns left, right, edges and weight, and the relation, source and target
    (memory ids) of the strongest edge. ``relations`` has relation, edges, share, mean weight and
    reinforcements.

    ``totals`` has the columns measure and value. The measures are nodes, edges, density, clustering, components,
    largest component, communities and modularity. ``exact`` is False if clustering was estimated from a thousand nodes.
    """

    nodes: pl.DataFrame
    communities: pl.DataFrame
    bridges: pl.DataFrame
    relations: pl.DataFrame
    totals: pl.DataFrame
    exact: bool


def measure_topology(
    edges: Edges, partition: Communities, *, memories: int | None = None, seed: int = 0
) -> Topology:
    """Measure an undirected graph whose communities are already computed.

    `memories` is the number of all memories, by default the number of memories with an edge. Other kinds of nodes are
    counted only if they have an edge. Density and components count pairs of nodes, no matter how many edges join a
    pair. `seed` draws the nodes from which clustering is estimated. Removed edges are ignored.
    """
    numbers = np.flatnonzero(edges.alive)
    graph = simple_graph(edges)
    nodes = graph.nodes
    kinds = node_kinds(nodes)
    is_memory = kinds == 0
    others = len(nodes) - int(is_memory.sum())
    count = len(nodes) if memories is None else memories + others
    left, right = (graph.places(ends) for ends in edges.ends(numbers))
    rows, columns = graph.matrix.rows(), graph.matrix.columns
    pair_left, pair_right = rows[rows <= columns], columns[rows <= columns]
    community = np.full(len(nodes), -1, dtype=np.int64)
    community[np.searchsorted(nodes, partition.rows)] = partition.labels
    between = _both_labelled(community, pair_left, pair_right) & (
        community[pair_left] != community[pair_right]
    )
    bridging = np.zeros(len(nodes), dtype=np.bool_)
    bridging[pair_left[between]] = bridging[pair_right[between]] = True
    node_frame = pl.DataFrame(
        {
            "node": nodes,
            "kind": pl.Series(NODE_KINDS, dtype=pl.Enum(NODE_KINDS)).gather(kinds),
            "memory_id": pl.Series(np.where(is_memory, nodes + 1, 0)).set(
                pl.Series(~is_memory), None
            ),
            "degree": edges.degree(nodes),
            "community": pl.Series(community).set(pl.Series(community < 0), None),
            "bridge": bridging,
        }
    )
    coefficient = clustering(graph, nodes, seed=seed)
    components, largest = _count_components(graph)
    totals = [
        ("nodes", float(count)),
        ("joined", float(len(nodes))),
        ("edges", float(len(numbers))),
        ("density", len(pair_left) / (count * (count - 1) / 2) if count > 1 else 0.0),
        ("clustering", coefficient.mean),
        ("components", float(components + count - len(nodes))),
        ("largest component", float(largest if components else min(count, 1))),
        ("communities", float(len(partition))),
        ("modularity", partition.modularity),
    ]
    return Topology(
        node_frame,
        _community_table(
            edges,
            graph,
            partition,
            community,
            (pair_left, pair_right),
            (numbers, left, right),
            seed,
        ),
        _bridge_table(edges, partition),
        _relation_table(edges, numbers),
        pl.DataFrame(totals, schema={"measure": pl.String, "value": pl.Float64}, orient="row"),
        coefficient.exact,
    )


def newest_edges(edges: Edges, max_edges: int) -> Flags | None:
    """Return a mask of the newest memories' edges, or None if there are few edges.

    Returns None if there are at most `max_edges` edges. Most edges of a memory lead to memories from shortly before. So
    the newest memories keep their communities, which a random sample of edges would destroy.
    """
    if edges.live <= max_edges:
        return None
    numbers = np.flatnonzero(edges.alive)
    # Memories are numbered by age, and other kinds of nodes have larger numbers.
    oldest = np.minimum(*edges.ends(numbers))
    first = np.partition(oldest, len(oldest) - max_edges)[len(oldest) - max_edges]
    mask = np.zeros(len(edges), dtype=np.bool_)
    mask[numbers[oldest >= first]] = True
    return mask


def key_scores(importance: Floats, access: Floats) -> Floats:
    """Return a score from 0 to 1 that combines a memory's importance and its number of uses.

    The score is ``sqrt(importance * log(1 + access) / log(1 + maximum))``, where ``maximum`` is the largest number of
    uses. The score is the geometric mean of two shares, as in the Human Development Index (UNDP, 2010). So a high share
    cannot compensate for a low one. The logarithm counts uses by their order of magnitude.

    >>> key_scores(np.array([1.0, 0.5, 1.0]), np.array([3.0, 3.0, 0.0])).round(2).tolist()
    [1.0, 0.71, 0.0]
    """
    used = np.log1p(access)
    maximum = used.max(initial=0.0)
    return np.sqrt(importance * used / maximum) if maximum > 0 else np.zeros(len(used))


def _community_table(
    edges: Edges,
    graph: SimpleGraph,
    partition: Communities,
    community: Ints,
    pairs: tuple[Ints, Ints],
    joined: tuple[Ints, Ints, Ints],
    seed: int,
) -> pl.DataFrame:
    """Return a row for each community, as ``Topology.communities``."""
    count = len(partition)
    left, right = pairs
    labelled = _both_labelled(community, left, right)
    own, other = community[left[labelled]], community[right[labelled]]
    inside = np.bincount(own[own == other], minlength=count)
    apart = own != other
    out = np.bincount(own[apart], minlength=count) + np.bincount(other[apart], minlength=count)
    size = np.bincount(partition.labels, minlength=count)
    possible = size * (size - 1) / 2
    memories = np.bincount(partition.labels[node_kinds(partition.rows) == 0], minlength=count)
    coefficient: list[float | None] = [None] * count
    order = np.argsort(partition.labels, kind="stable")
    bounds = np.searchsorted(partition.labels[order], np.arange(count + 1))
    for label in range(min(count, _CLUSTERED)):
        members = partition.rows[order[bounds[label] : bounds[label + 1]]]
        coefficient[label] = clustering(graph, members, max_rows=_TRIED, seed=seed).mean
    return pl.DataFrame(
        {
            "community": np.arange(count),
            "memories": memories,
            "size": size,
            "edges": inside,
            "density": np.divide(inside, possible, out=np.zeros(count), where=possible > 0),
            "clustering": pl.Series(coefficient, dtype=pl.Float64),
            "bridges": out,
            "central": _find_central(edges, graph.nodes, community, joined, count),
        }
    )


def _find_central(
    edges: Edges, nodes: Ints, community: Ints, joined: tuple[Ints, Ints, Ints], count: int
) -> pl.Series:
    """Return for each community the ids of the ``_CENTRAL`` memories with the most edge weight inside it, in this order."""
    numbers, left, right = joined
    within = _both_labelled(community, left, right) & (community[left] == community[right])
    weight = edges.weight[numbers[within]]
    strength = np.bincount(left[within], weights=weight, minlength=len(nodes))
    strength += np.bincount(right[within], weights=weight, minlength=len(nodes))
    candidates = np.flatnonzero((community >= 0) & (node_kinds(nodes) == 0))
    order = candidates[np.lexsort((candidates, -strength[candidates], community[candidates]))]
    best = (
        pl.DataFrame({"community": community[order], "id": nodes[order] + 1})
        .group_by("community", maintain_order=True)
        .agg(pl.col("id").head(_CENTRAL))
    )
    all_communities = pl.DataFrame({"community": np.arange(count)}, schema={"community": pl.Int64})
    return all_communities.join(best, on="community", how="left", maintain_order="left")[
        "id"
    ].fill_null(pl.Series([[]], dtype=pl.List(pl.Int64)))


def _bridge_table(edges: Edges, partition: Communities) -> pl.DataFrame:
    """Return a row for each pair of linked communities, with their strongest edge, as ``Topology.bridges``."""
    between = bridges(edges, partition.rows, partition.labels)
    strongest = between["strongest"].to_numpy()
    source, target = edges.ends(strongest)
    words = pl.Series(edges.relations, dtype=pl.String)
    return between.drop("strongest").with_columns(
        words.gather(edges.relation[strongest].astype(np.int64)).alias("relation"),
        _memory_ids("source", source),
        _memory_ids("target", target),
    )


def _relation_table(edges: Edges, numbers: Ints) -> pl.DataFrame:
    """Return a row for each relation of the edges ``numbers``, as ``Topology.relations``."""
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


def _count_components(graph: SimpleGraph) -> tuple[int, int]:
    """Return the number of connected components, and the size of the largest component."""
    if not len(graph.nodes):
        return 0, 0
    starts, columns = graph.matrix.starts, graph.matrix.columns
    nodes = np.flatnonzero(np.diff(starts))
    label: Ints = np.arange(len(graph.nodes))
    # Each component has the number of its smallest node when no neighbour has a smaller one.
    while len(nodes):
        own, lowest = label[nodes], np.minimum.reduceat(label[columns], starts[nodes])
        if (own <= lowest).all():
            break
        np.minimum.at(label, own, lowest)
        while not np.array_equal(label, following := label[label]):
            label = following
    sizes = np.bincount(label)
    return int(np.count_nonzero(sizes)), int(sizes.max())


def _both_labelled(community: Ints, left: Ints, right: Ints) -> Flags:
    """Return a mask of the pairs whose two ends both belong to a community."""
    return np.asarray((community[left] >= 0) & (community[right] >= 0))


def _memory_ids(name: str, nodes: Ints) -> pl.Series:
    """Return the memory id of each node, or null for a node of another kind."""
    other = node_kinds(nodes) != 0
    return pl.Series(name, nodes + 1).set(pl.Series(other), None)


# Temporal layers classify memories as active, stable, emerging or decaying.


# The order in which tables list the layers.
LAYERS = ("active", "stable", "emerging", "decaying")

# An enum sorts values in the order above. The number is the microseconds in a day.
_WORDS = pl.Enum(LAYERS)
_DAY_US = 86_400_000_000


def layer_expression(now: When) -> pl.Expr:
    """Return the default layer of each row of ``lab.memories`` at `now`.

    - emerging: created less than 7 days ago and used less than twice
    - else active: used within 7 days
    - else stable: used at least 5 times
    - else decaying

    The first matching line decides. The ``label`` policy of the pack ``associative`` gives the same labels.
    """
    instant = pl.lit(from_micros(to_micros(now)), dtype=INSTANT)

    def days(column: str) -> pl.Expr:
        """Return the days from the instant in `column` until `now`, at least 0."""
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
    """The number of memories in each temporal layer.

    All frames have the columns ``layer``, ``memories`` and ``share``, and a row for each layer, even if it is empty.

    Attributes
    ----------
    overall
        The layers of all memories.
    by_kind
        The layers of each kind. ``share`` is the share of the memories of the kind.
    by_week
        The layers by week of creation. ``share`` is the share of the memories of the week. Weeks begin on Monday in
        UTC, and weeks without memories have no rows.

    Examples
    --------
    >>> import polars as pl
    >>> from datetime import datetime, timezone
    >>> from memlab.subjects.clusters.topology import count_layers
    >>> created = datetime(2026, 3, 2, tzinfo=timezone.utc)
    >>> memories = pl.DataFrame(
    ...     {"kind": ["fact"], "created": [created], "accessed": [created], "access": [0]}
    ... )
    >>> count_layers(memories, created).overall["memories"].to_list()
    [0, 0, 1, 0]
    """

    overall: pl.DataFrame
    by_kind: pl.DataFrame
    by_week: pl.DataFrame


def count_layers(memories: pl.DataFrame, now: When) -> Layers:
    """Count the memories of each layer, overall, by kind and by week of creation.

    `memories` needs the columns kind, created, accessed and access of ``lab.memories``. If it has a column ``layer``,
    its values are used instead of the default layers of ``layer_expression``.
    """
    by = pl.col("layer").cast(_WORDS) if "layer" in memories.columns else layer_expression(now)
    memories = memories.with_columns(by)
    weeks = pl.col("created").dt.truncate("1w").alias("week")
    return Layers(
        _count_memories(memories.select("layer"), []),
        _count_memories(memories.select("kind", "layer"), ["kind"]).sort(
            pl.col("memories").sum().over("kind"), "kind", "layer", descending=[True, False, False]
        ),
        _count_memories(memories.select(weeks, "layer"), ["week"]),
    )


def _count_memories(memories: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Count the memories of each layer in each group of the columns `by`, 0 for none, with their share of the group."""
    combinations = pl.DataFrame({"layer": pl.Series(LAYERS, dtype=_WORDS)})
    if by:
        combinations = memories.select(by).unique().join(combinations, how="cross")
    counted = memories.group_by(*by, "layer").agg(pl.len().cast(pl.Int64).alias("memories"))
    total = pl.col("memories").sum()
    share = (pl.col("memories") / (total.over(by) if by else total)).fill_nan(0.0)
    return (
        combinations.join(counted, on=[*by, "layer"], how="left", nulls_equal=True)
        .with_columns(pl.col("memories").fill_null(0))
        .with_columns(share.alias("share"))
        .sort(*by, "layer")
    )
