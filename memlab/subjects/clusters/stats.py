"""Statistics of a whole memory: layers, communities, bridges, key memories, clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import Ints
from memlab.kernel.base.clock import INSTANT, Micros, When, from_micros, to_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.progress import bar
from memlab.kernel.graph import Communities, communities
from memlab.kernel.recall import Moment
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import State, visible_rows
from memlab.subjects.clusters.finding import Clusters, cluster_vectors, compute_directions
from memlab.subjects.clusters.topology import (
    LAYERS,
    Topology,
    count_layers,
    key_scores,
    measure_topology,
    newest_edges,
)
from memlab.subjects.clusters.wording import keywords
from memlab.subjects.drawing import OnPanels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from memlab.kernel.policies import Pack

# The ``label`` policy of a pack labels memories at an instant, without a query.


_BLOCK = 1 << 16
"""The number of memories per evaluation, so that intermediate columns take a few megabytes."""


def label_memories(state: State, pack: Pack, rows: Ints, now: Micros) -> pl.Series:
    """Return the label of each row under the pack's ``label`` policy, or null without a label."""
    policy = pack.policies["label"]
    parts = [pl.Series("layer", [], dtype=pl.String)]
    for start in range(0, len(rows), _BLOCK):
        words, nulls = Moment(state, pack, rows[start : start + _BLOCK], now).ask(policy)
        labels = pl.Series("layer", words.tolist(), dtype=pl.String)
        parts.append(labels if nulls is None else labels.set(pl.Series(nulls), None))
    return pl.concat(parts)


_MOST_EDGES = 300_000
"""Maximum number of edges for computing communities, which takes about 6 s on one core."""

_READ = 10_000
"""The number of memories whose texts are read for the keywords of communities, and again for the keywords of clusters."""

# The numbers of key memories, and of central memories per group, in a report.
_KEY = 20
_CENTRAL = 3
_SLOW = 20_000  # nodes and edges from which counting takes more than a second, so that it shows its progress
"""The number of memories and edges from which the computation lasts longer than a second and shows a progress bar."""

_TRIED = 2_000
"""Maximum number of members of a cluster that are compared to find the central members."""


@dataclass(frozen=True)
class Stats(Displayed):
    """Statistics of a whole memory, as frames.

    Each frame is an attribute (``stats.totals``) and an item of ``frames``.

    - ``totals``: measure, value
    - ``kinds``: kind, memories, share, importance, used, access, success, fail
    - ``layers``: layer, memories, share
    - ``layers_by_kind``: kind, layer, memories, share
    - ``layers_by_week``: week, layer, memories, share
    - ``relations``: relation, edges, share, weight, reinforcements
    - ``nodes``: node, kind, memory_id, degree, community, bridge
    - ``communities``: community, memories, size, edges, density, clustering, bridges, central, words
    - ``bridges``: left, right, edges, weight, relation, source, target
    - ``key``: memory_id, key, importance, access, degree, community, bridge, kind, text
    - ``clusters``: cluster, size, share, radius, central, words

    ``key`` lists the most important and most used memories. ``used``, ``density`` and ``clustering`` are shares, and
    ``central`` lists memory ids. A bridge joins the communities ``left`` and ``right``. Its ``relation``, ``source``
    and ``target`` (memory ids) are those of its strongest edge.

    Attributes
    ----------
    at
        The instant of the layers, in UTC.
    pack
        The name of the pack whose ``label`` policy was evaluated.
    frames
        The frames by name.
    notes
        Sentences about the source of the layers and about samples.
    found
        The clusters as an object, for example to ``assign`` new vectors to them.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["The goat eats hay.", "Tests run on Friday."])
    >>> lab.graph.stats(progress=False).layers["memories"].to_list()
    [0, 0, 2, 0]
    """

    at: datetime
    pack: str
    frames: Mapping[str, pl.DataFrame]
    notes: tuple[str, ...]
    found: Clusters = field(repr=False)

    def __getattr__(self, name: str) -> pl.DataFrame:
        frames: Mapping[str, pl.DataFrame] = self.__dict__.get("frames", {})
        if name not in frames:
            raise AttributeError(
                f"Stats has no attribute {name!r}. Its frames: {', '.join(frames)}."
            )
        return frames[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.frames]

    @checked
    def figure(self, *, axes: OnPanels | None = None) -> Figure:
        """Draw the sizes of the largest communities, and the layers of each week.

        Without edges, the clusters are drawn instead of communities. Without clusters, the kinds of memories are drawn.

        Parameters
        ----------
        axes
            Two matplotlib axes to draw on; by default a new figure.

        Returns
        -------
        The matplotlib figure.
        """
        from memlab.subjects.clusters.render import draw_figure

        return draw_figure(self.frames, axes)

    def __repr__(self) -> str:
        from memlab.subjects.clusters.render import render_text_report

        return render_text_report(self.frames, self.notes)

    def _display(self) -> object:
        """Return the parts that a notebook shows: headline, figure, tables and notes."""
        from memlab.subjects.clusters.render import build_parts

        return build_parts(self.frames, self.notes, self.figure())


def compute_stats(
    state: State, pack: Pack, *, now: When, seed: int = 0, progress: bool = True
) -> Stats:
    """Compute the statistics of a lab's memories at `now`, without changing the lab.

    Kinds, layers, key memories and clusters cover the memories that recall may return. The graph covers all edges. The
    layers come from the pack's ``label`` policy if it gives every memory one of the four layers. Otherwise they come
    from ``layer_expression``. Clusters are computed from at most 10,000 memories, and communities from the newest
    300,000 edges. ``notes`` reports such samples. `seed` makes every sample reproducible.
    """
    instant = to_micros(now)
    rows = np.flatnonzero(state.names["status"].is_in(RECALLABLE))
    count = len(state) if (visible := visible_rows(state)) is None else len(visible)
    with bar(
        progress and len(state) + state.edges.live > _SLOW, 5, unit="step", desc="stats"
    ) as step:
        frame, source = _read_layers(state, pack, rows, instant)
        counted = count_layers(frame, instant)
        step(1)
        mask = newest_edges(state.edges, _MOST_EDGES)
        partition = communities(state.edges, seed=seed, keep=mask)
        step(1)
        shape = measure_topology(state.edges, partition, memories=count, seed=seed)
        step(1)
        embedded = state.drop_unembedded(rows[rows < len(state.vectors)])
        clusters = cluster_vectors(state.vectors.take(embedded), embedded, seed=seed)
        step(1)
        frames = {
            "totals": _total_measures(state, count, rows, shape, clusters),
            "kinds": _count_kinds(frame),
            "layers": counted.overall,
            "layers_by_kind": counted.by_kind,
            "layers_by_week": counted.by_week,
            "relations": shape.relations,
            "nodes": shape.nodes,
            "communities": _add_keywords(state, partition, shape, seed),
            "bridges": shape.bridges,
            "key": _key_memories(state, frame, shape),
            "clusters": _cluster_table(state, clusters, seed),
        }
        step(1)
    notes = _write_notes(source, partition, shape, clusters, cut=mask is not None)
    return Stats(from_micros(instant), pack.name, MappingProxyType(frames), notes, clusters)


def _read_layers(state: State, pack: Pack, rows: Ints, now: Micros) -> tuple[pl.DataFrame, str]:
    """Return a table with a row of measures for each memory, and a note on the source of the layers.

    The table has a column of layers only if the label policy gives every memory one of ``LAYERS``.
    """
    numbers = state.numbers
    frame = pl.DataFrame(
        [
            pl.Series("memory_id", rows + 1),
            state.names["kind"].series("kind", rows),
            *(
                pl.Series(name, numbers[name].values[rows])
                for name in ("importance", "access", "success", "fail")
            ),
            *(pl.Series(name, numbers[name].values[rows]).cast(INSTANT) for name in _TIMES),
        ]
    )
    if len(rows):
        layer_labels = label_memories(state, pack, rows, now)
        if not layer_labels.null_count() and layer_labels.is_in(LAYERS).all():
            return frame.with_columns(
                layer_labels
            ), f"Layers come from the label policy of {pack.name}."
    return (
        frame,
        f"Layers are memlab's defaults, because the label policy of {pack.name} gives other labels.",
    )


# The columns of times from which layers are computed.
_TIMES = ("created", "accessed")


def _count_kinds(frame: pl.DataFrame) -> pl.DataFrame:
    """Return each kind's number and share of memories, mean importance, share in use, and total uses and outcomes."""
    counted = frame.group_by("kind").agg(
        pl.len().cast(pl.Int64).alias("memories"),
        pl.col("importance").mean(),
        (pl.col("access") > 0).mean().alias("used"),
        pl.col("access", "success", "fail").sum(),
    )
    share = (pl.col("memories") / pl.col("memories").sum()).alias("share")
    return counted.select(
        "kind", "memories", share, "importance", "used", "access", "success", "fail"
    ).sort("memories", "kind", descending=[True, False])


def _total_measures(
    state: State, count: int, rows: Ints, shape: Topology, clusters: Clusters
) -> pl.DataFrame:
    """Return the totals of the graph, then the totals of memories and clusters."""
    own = [
        ("memories", float(count)),
        ("in use", float(len(rows))),
        ("used", float((state.numbers["access"].values[rows] > 0).sum())),
        ("clusters", float(len(clusters))),
        ("clustered", float(clusters.sizes.sum())),
    ]
    frame = pl.DataFrame(own, schema=shape.totals.schema, orient="row")
    return pl.concat(
        [frame.head(3), shape.totals.filter(pl.col("measure") != "nodes"), frame.tail(2)]
    )


def _add_keywords(state: State, partition: Communities, shape: Topology, seed: int) -> pl.DataFrame:
    """Return the table of communities with a column of their keywords."""
    memories = partition.rows < len(state)
    words = _group_keywords(
        state, partition.rows[memories], partition.labels[memories], len(partition), seed
    )
    return shape.communities.with_columns(words)


def _cluster_table(state: State, clusters: Clusters, seed: int) -> pl.DataFrame:
    """Return the size, share, radius, central memories and keywords of each cluster.

    A share is of all memories that were clustered or left without a cluster. Central memories are the nearest to the
    centroid.
    """
    central: list[list[int]] = []
    order = np.argsort(clusters.labels, kind="stable")
    bounds = np.searchsorted(clusters.labels[order], np.arange(len(clusters) + 1))
    generator = np.random.default_rng(seed)
    for label in range(len(clusters)):
        members = clusters.rows[order[bounds[label] : bounds[label + 1]]]
        if len(members) > _TRIED:
            members = np.sort(generator.choice(members, _TRIED, replace=False))
        similarity = compute_directions(
            state.vectors.take(members), clusters.centre
        ) @ clusters.centroids[label].astype(np.float64)
        central.append((members[np.lexsort((members, -similarity))[:_CENTRAL]] + 1).tolist())
    return pl.DataFrame(
        {
            "cluster": np.arange(len(clusters)),
            "size": clusters.sizes,
            "share": clusters.sizes / max(len(clusters.rows), 1),
            "radius": clusters.radii,
            "central": pl.Series(central, dtype=pl.List(pl.Int64)),
            "words": _group_keywords(state, clusters.rows, clusters.labels, len(clusters), seed),
        }
    )


def _group_keywords(state: State, rows: Ints, groups: Ints, count: int, seed: int) -> pl.Series:
    """Return the keywords of each of `count` groups, from a sample balanced over the groups; an empty list without any."""
    generator = np.random.default_rng(seed)
    order = np.lexsort((generator.random(len(rows)), groups))
    start = np.flatnonzero(np.diff(groups[order], prepend=-2) != 0)
    rank = np.arange(len(rows)) - np.repeat(start, np.diff(start, append=len(rows)))
    sample = np.sort(order[np.argsort(rank, kind="stable")[:_READ]])
    texts = state.texts.to_list(rows[sample])
    # Names of speakers distinguish conversations, but do not describe their subject.
    speakers = (word for name in state.names["speaker"].vocabulary for word in name.split())
    terms = keywords(texts, groups[sample], language=state.words.language, exclude=speakers)
    terms += [()] * (count - len(terms))
    return pl.Series("words", [list(words) for words in terms], dtype=pl.List(pl.String))


def _key_memories(state: State, frame: pl.DataFrame, shape: Topology) -> pl.DataFrame:
    """Return at most ``_KEY`` memories that are both important and often used, in descending score."""
    scores = key_scores(frame["importance"].to_numpy(), frame["access"].to_numpy())
    best = (
        frame.select("memory_id", "importance", "access", "kind")
        .with_columns(pl.Series("key", scores))
        .filter(pl.col("key") > 0)
        .sort("key", "memory_id", descending=[True, False])
        .head(_KEY)
    )
    texts = state.texts.to_list(best["memory_id"].to_numpy() - 1)
    return (
        best.join(shape.nodes.drop("kind"), on="memory_id", how="left", maintain_order="left")
        .with_columns(pl.col("degree").fill_null(0), pl.col("bridge").fill_null(False))
        .with_columns(pl.Series("text", texts, dtype=pl.String))
        .select(
            "memory_id",
            "key",
            "importance",
            "access",
            "degree",
            "community",
            "bridge",
            "kind",
            "text",
        )
    )


def _write_notes(
    source: str, partition: Communities, shape: Topology, clusters: Clusters, *, cut: bool
) -> tuple[str, ...]:
    """Return notes on the source of the layers, on sampling and on the clustering method."""
    notes = [source]
    if cut:
        notes.append(
            f"Communities and bridges cover the {len(partition.rows):,} nodes with the newest edges."
        )
    if not shape.exact:
        notes.append(
            "The clustering coefficient is estimated from a thousand nodes (standard error at most .016)."
        )
    if len(clusters.rows):
        notes.append(f"Clusters: {clusters.method}.")
    return tuple(notes)
