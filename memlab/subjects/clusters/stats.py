"""What a memory is like as a whole: its numbers, layers, communities, bridges, key memories and clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import Micros, When, from_micros, to_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.progress import bar
from memlab.kernel.graph import Communities, communities
from memlab.kernel.recall import Moment
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import State, visible_rows
from memlab.subjects.clusters.finding import Clusters, clusters, directions
from memlab.subjects.clusters.topology import (
    LAYERS,
    Topology,
    key_scores,
    layers,
    newest_edges,
    topology,
)
from memlab.subjects.clusters.wording import keywords
from memlab.subjects.drawing import OnPanels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from memlab.kernel.policies import Pack

__all__ = ["Stats", "labels", "stats"]


# What a pack's ``label`` policy says of memories at an instant, without a question.


_BLOCK = 1 << 16
"""Memories at a time: what a policy makes in between takes some megabytes."""


def labels(state: State, pack: Pack, rows: NDArray[np.int64], now: Micros) -> pl.Series:
    """The word of each of ``rows``, null where the policy gives null."""
    policy = pack.policies["label"]
    parts = [pl.Series("layer", [], dtype=pl.String)]
    for start in range(0, len(rows), _BLOCK):
        words, nulls = Moment(state, pack, rows[start : start + _BLOCK], now).ask(policy)
        found = pl.Series("layer", words.tolist(), dtype=pl.String)
        parts.append(found if nulls is None else found.set(pl.Series(nulls), None))
    return pl.concat(parts)


Ints = NDArray[np.int64]

_MOST_EDGES = 300_000
"""Edges among which communities are found: some 6 s on one core."""

_READ = 10_000
"""Memories whose texts tell the words of communities, and as many for clusters."""

_KEY = 20
_CENTRAL = 3
_SLOW = 20_000
"""Memories and edges beyond which it takes more than a second, and a bar is drawn."""

_TRIED = 2_000
"""Members among which the nearest to a centroid are looked for."""


@dataclass(frozen=True)
class Stats(Displayed):
    """What a memory is like as a whole, as frames: each is an attribute (``stats.totals``) and an item of ``frames``.

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

    ``key`` has the memories that are most important and used. ``used``, ``density`` and ``clustering`` are shares, and
    ``central`` are ids of memories. A bridge joins the communities ``left`` and ``right``; ``relation``, ``source`` and
    ``target`` (ids of memories) are those of its strongest edge.

    Attributes
    ----------
    at
        The instant of the layers, in UTC.
    pack
        The name of the pack whose ``label`` says the layers, if it does.
    frames
        The frames by name.
    notes
        How figures came about: who says the layers, what was sampled.
    found
        The clusters themselves, which new memories may join by ``assign``.
    """

    at: datetime
    pack: str
    frames: Mapping[str, pl.DataFrame]
    notes: tuple[str, ...]
    found: Clusters = field(repr=False)

    def __getattr__(self, name: str) -> pl.DataFrame:
        frames: Mapping[str, pl.DataFrame] = self.__dict__.get("frames", {})
        if name not in frames:
            raise AttributeError(f"A Stats has no {name!r}. Its frames: {', '.join(frames)}.")
        return frames[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.frames]

    @checked
    def figure(self, *, axes: OnPanels | None = None) -> Figure:
        """A matplotlib figure: the sizes of communities, and what has become of each week's memories.

        Without edges the clusters stand in for communities, without clusters the kinds. It is drawn on two ``axes`` if
        they are given.
        """
        from memlab.subjects.clusters.render import figure

        return figure(self.frames, axes)

    def __repr__(self) -> str:
        from memlab.subjects.clusters.render import as_text

        return as_text(self.frames, self.notes)

    def _display(self) -> object:
        from memlab.subjects.clusters.render import as_parts

        return as_parts(self.frames, self.notes, self.figure())


def stats(state: State, pack: Pack, *, now: When, seed: int = 0, progress: bool = True) -> Stats:
    """What a memory is like at ``now``; nothing is changed.

    Kinds, layers, key memories and clusters are those of the memories that recall may find; the graph is there with
    all its edges. The pack's ``label`` policy says the layers if it gives one of their four words to every memory,
    else ``layer``. Clusters are found among 10,000 memories and communities among 300,000 edges, the newest; ``notes``
    say so where there are more. ``seed`` decides every draw.
    """
    instant = to_micros(now)
    rows = np.flatnonzero(state.names["status"].is_in(RECALLABLE))
    count = len(state) if (seen := visible_rows(state)) is None else len(seen)
    with bar(
        progress and len(state) + state.edges.live > _SLOW, 5, unit="step", desc="stats"
    ) as step:
        frame, source = _layered(state, pack, rows, instant)
        counted = layers(frame, instant)
        step(1)
        mask = newest_edges(state.edges, _MOST_EDGES)
        joined = communities(state.edges, seed=seed, keep=mask)
        step(1)
        shape = topology(state.edges, joined, memories=count, seed=seed)
        step(1)
        embedded = state.drop_unembedded(rows[rows < len(state.vectors)])
        found = clusters(state.vectors.take(embedded), embedded, seed=seed)
        step(1)
        frames = {
            "totals": _totals(state, count, rows, shape, found),
            "kinds": _kinds(frame),
            "layers": counted.overall,
            "layers_by_kind": counted.by_kind,
            "layers_by_week": counted.by_week,
            "relations": shape.relations,
            "nodes": shape.nodes,
            "communities": _with_words(state, joined, shape, seed),
            "bridges": shape.bridges,
            "key": _key(state, frame, shape),
            "clusters": _clusters(state, found, seed),
        }
        step(1)
    notes = _notes(source, joined, shape, found, cut=mask is not None)
    return Stats(from_micros(instant), pack.name, MappingProxyType(frames), notes, found)


def _layered(state: State, pack: Pack, rows: Ints, now: Micros) -> tuple[pl.DataFrame, str]:
    """What layers and kinds are counted of, and who says the layers."""
    numbers = state.numbers
    frame = pl.DataFrame(
        [
            pl.Series("memory_id", rows + 1),
            state.names["kind"].series("kind", rows),
            *(
                pl.Series(name, numbers[name].values[rows])
                for name in ("importance", "access", "success", "fail")
            ),
            *(
                pl.Series(name, numbers[name].values[rows]).cast(pl.Datetime("us", "UTC"))
                for name in _TIMES
            ),
        ]
    )
    if len(rows):
        given = labels(state, pack, rows, now)
        if not given.null_count() and given.is_in(LAYERS).all():
            return frame.with_columns(
                given
            ), f"Layers are those of the label policy of {pack.name}."
    return (
        frame,
        f"Layers are memlab's own: the label policy of {pack.name} speaks of something else.",
    )


_TIMES = ("created", "accessed")


def _kinds(frame: pl.DataFrame) -> pl.DataFrame:
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


def _totals(state: State, count: int, rows: Ints, shape: Topology, found: Clusters) -> pl.DataFrame:
    own = [
        ("memories", float(count)),
        ("in use", float(len(rows))),
        ("used", float((state.numbers["access"].values[rows] > 0).sum())),
        ("clusters", float(len(found))),
        ("clustered", float(found.sizes.sum())),
    ]
    frame = pl.DataFrame(own, schema=shape.totals.schema, orient="row")
    return pl.concat(
        [frame.head(3), shape.totals.filter(pl.col("measure") != "nodes"), frame.tail(2)]
    )


def _with_words(state: State, joined: Communities, shape: Topology, seed: int) -> pl.DataFrame:
    """The communities with their words."""
    memories = joined.rows < len(state)
    words = _words(state, joined.rows[memories], joined.labels[memories], len(joined), seed)
    return shape.communities.with_columns(words)


def _clusters(state: State, found: Clusters, seed: int) -> pl.DataFrame:
    """cluster, size, share (of all that take part), radius, central (ids of the nearest to the centroid), words."""
    central: list[list[int]] = []
    order = np.argsort(found.labels, kind="stable")
    bounds = np.searchsorted(found.labels[order], np.arange(len(found) + 1))
    chance = np.random.default_rng(seed)
    for one in range(len(found)):
        members = found.rows[order[bounds[one] : bounds[one + 1]]]
        if len(members) > _TRIED:
            members = np.sort(chance.choice(members, _TRIED, replace=False))
        near = directions(state.vectors.take(members), found.centre) @ found.centroids[one].astype(
            np.float64
        )
        central.append((members[np.lexsort((members, -near))[:_CENTRAL]] + 1).tolist())
    return pl.DataFrame(
        {
            "cluster": np.arange(len(found)),
            "size": found.sizes,
            "share": found.sizes / max(len(found.rows), 1),
            "radius": found.radii,
            "central": pl.Series(central, dtype=pl.List(pl.Int64)),
            "words": _words(state, found.rows, found.labels, len(found), seed),
        }
    )


def _words(state: State, rows: Ints, groups: Ints, count: int, seed: int) -> pl.Series:
    """The words of each group, read from a sample in which every group has its part."""
    chance = np.random.default_rng(seed)
    order = np.lexsort((chance.random(len(rows)), groups))
    start = np.flatnonzero(np.diff(groups[order], prepend=-2) != 0)
    rank = np.arange(len(rows)) - np.repeat(start, np.diff(start, append=len(rows)))
    drawn = np.sort(order[np.argsort(rank, kind="stable")[:_READ]])
    texts = state.texts.to_list(rows[drawn])
    # who speaks sets conversations apart, and says nothing of what they are about
    speakers = (word for name in state.names["speaker"].vocabulary for word in name.split())
    found = keywords(texts, groups[drawn], language=state.words.language, without=speakers)
    found += [()] * (count - len(found))
    return pl.Series("words", [list(words) for words in found], dtype=pl.List(pl.String))


def _key(state: State, frame: pl.DataFrame, shape: Topology) -> pl.DataFrame:
    """memory_id, key, importance, access, degree, community, bridge, kind, text: most important and used first."""
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


def _notes(
    source: str, joined: Communities, shape: Topology, found: Clusters, *, cut: bool
) -> tuple[str, ...]:
    notes = [source]
    if cut:
        notes.append(
            f"Communities and bridges are those of the {len(joined.rows):,} nodes with the newest edges."
        )
    if not shape.exact:
        notes.append(
            "The clustering coefficient is estimated from a thousand nodes (standard error at most .016)."
        )
    if len(found.rows):
        notes.append(f"Clusters: {found.method}.")
    return tuple(notes)
