"""``lab.graph.clusters``: found beside the writer's lock, decided and written under it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import LabError, MemlabError, ReadOnlyLab
from memlab.kernel.base.arguments import Seed, Within, checked
from memlab.kernel.base.clock import Micros, When, from_micros
from memlab.kernel.base.display import Displayed, table
from memlab.kernel.policies import Pack
from memlab.kernel.state import EVERYONE, State, list_audiences
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import view_state
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.graph import GraphVerbs
from memlab.subjects.clusters.finding import Clusters, clusters
from memlab.subjects.clusters.membership import (
    Clustering,
    centroids_of,
    clustered,
    clusters_frame,
    current,
    in_use,
    near_clusters,
    refined,
)
from memlab.subjects.clusters.registers import refine_due
from memlab.subjects.clusters.stats import Stats, stats
from memlab.subjects.drawing import BLUE, OnAxes, draw_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "SHOWN",
    "Clustered",
    "LabClusters",
    "LabGraph",
    "check_writable",
    "cluster",
    "find_clusters",
    "keep_clusters",
    "refine",
    "refine_after_turn",
    "refine_if_due",
]


Ints = NDArray[np.int64]

SHOWN = 12


@dataclass(frozen=True)
class Clustered(Displayed):
    """What became of the clusters of a lab, as of ``at``.

    ``frame``: a row a cluster (cluster, name, members, what: new, kept, moved, merged or gone; into: the number of the
    one that it merged into). ``event`` is the place in the journal of what was written, None where nothing changed.
    """

    at: datetime
    event: int | None
    method: str
    frame: pl.DataFrame = field(repr=False)

    def __len__(self) -> int:
        """How many clusters there are now."""
        return int(self.frame["what"].is_in(("new", "kept", "moved")).sum())

    @checked
    def figure(self, *, axes: OnAxes | None = None) -> Figure:
        """A matplotlib figure: the members of the largest clusters. With ``axes`` it is drawn there."""
        top = (
            self.frame.filter(pl.col("members") > 0)
            .sort("members", "cluster", descending=[True, False])
            .head(24)
        )
        names, sizes = top["name"].to_list()[::-1], top["members"].to_list()[::-1]

        def draw(axes: Axes) -> None:
            axes.barh(range(len(sizes)), sizes, color=BLUE)
            axes.set_yticks(range(len(names)), [name[:48] for name in names])
            axes.set_xlabel("memories")
            axes.set_title(f"{len(self):,} clusters")

        return draw_figure(draw, width=8.0, height=max(1.5, 0.6 + 0.24 * len(sizes)), axes=axes)

    def __repr__(self) -> str:
        counts = self.frame["what"].value_counts().sort("what").rows()
        counted = ", ".join(f"{count:,} {what}" for what, count in counts) or "none"
        inside = int(self.frame["members"].sum())
        return f"<Clusters {len(self):,} of {inside:,} memories: {counted}{'' if self.event else '; nothing was written'}>"

    def _display(self) -> object:
        rows = (
            self.frame.filter(pl.col("members") > 0)
            .head(SHOWN)
            .select("cluster", "name", "members", "what")
            .rows()
        )
        return table(repr(self), ("cluster", "name", "memories", "what"), rows)


class LabClusters:
    """``lab.graph.clusters``: what memories have in common."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @checked
    def find(
        self, *, min_size: Annotated[int, Within(2)] | None = None, seed: Seed = 0
    ) -> Clustered:
        """Find clusters among the memories that take part in recall, by HDBSCAN over their vectors; one event.

        Each memory of a cluster is joined to the cluster's node by an edge ``in-cluster``, as heavy as the cosine to
        the centroid; packs that pass over it (cascade) find through it what shares no word with the question. Clusters
        whose members stay together keep their number and name, also where the lab was given another embedder
        (``reembed=True``): until this is called, the clusters of the old one gain nobody and are not refined.
        ``min_size`` is the least size of a cluster, a fifth of the square root of all unless given. A second call finds
        the same, and writes nothing.

        Above 10,000 memories that many are drawn by ``seed``, and the others join what they are near. Others read and
        write meanwhile. CPU: 2 s of 10,000 memories, 4 s of 100,000. Raises ReadOnlyLab, and InputError for min_size.

        >>> lab.graph.clusters.find().frame                                                            # doctest: +SKIP
        """
        return cluster(self._core.store, self._core.store.clock(), min_size=min_size, seed=seed)

    def frame(self) -> pl.DataFrame:
        """The clusters as they are: cluster (number), name, members, radius, created, refined; the largest first."""
        with self._core.reading() as state:
            return clusters_frame(state)

    def refine(self) -> Clustered:
        """Let clusters follow what they hold.

        What is new and near joins, centroids move to the mean of their members, near clusters merge, and empty ones are
        removed. The pack's ``cluster-closeness`` says how near (0: nothing joins), ``cluster-merge`` what merges.
        Upkeep (``lab.upkeep``) does this when it is due: after ``refine-every`` recalls, or when the last one showed
        memories of several clusters. A recall itself is not slowed by it: it only counts. Raises ReadOnlyLab.
        """
        return refine(self._core.store, self._core.store.clock())


def cluster(
    store: Store,
    now: Micros,
    *,
    min_size: int | None,
    seed: int,
    kind: str = "cluster",
    among: Sequence[str] | None = None,
) -> Clustered:
    """Find clusters. It is done in a copy, while others read and write; what came since may join later.

    What everyone sees is clustered by itself, and so is what each creator keeps private, an event each; ``among``
    names some of these audiences.
    """
    check_writable(store)
    found, fingerprint, upto = find_clusters(store, min_size=min_size, seed=seed, among=among)
    made = []
    for audience, theirs in found.items():
        with store.writing() as tx:
            decided = clustered(store.state, theirs, fingerprint, upto, audience)
            event = None
            if decided or (kind == "refine" and audience == EVERYONE):
                event = tx.event(kind, {**decided.body, **decided.change.body()}, at=now)
        made.append(Clustered(from_micros(now), event, theirs.method, decided.frame))
    return _together(made)


def refine(store: Store, now: Micros) -> Clustered:
    """Move centroids to their members and merge what is near; the count of recalls since restarts."""
    check_writable(store)
    with store.reading():
        known = list_audiences(store.state)
    return _together(
        [
            _written(
                store,
                "refine",
                partial(refined, audience=one),
                now,
                always=one == EVERYONE,
                audience=one,
            )
            for one in known
        ]
    )


def keep_clusters(store: Store, now: Micros, *, seed: int = 0) -> list[int]:
    """What upkeep does about clusters: what is new joins, and where the pack says that it is due they are refined, or
    found where there are none. The events that it wrote.

    It costs nothing where the pack has neither ``cluster-closeness`` nor ``refine-every``; a refinement reads each
    member's vector (CPU: 0.2 s of 10,000 memories, 1.4 s of 100,000), and finding clusters takes 2 to 5 s.
    """
    refined = refine_if_due(store, now, seed=seed)
    if refined is not None:
        return refined
    with store.reading():
        state = store.state
        own = list_audiences(state) if store.versions.pack.number("cluster-closeness") else []
        fresh = [
            one
            for one in own
            if current(state, one) and centroids_of(state).part(one).looked < len(state)
        ]
    made = [
        _written(store, "cluster", partial(_joining, audience=one), now, always=False, audience=one)
        for one in fresh
    ]
    return [one.event for one in made if one.event is not None]


def refine_if_due(
    store: Store, now: Micros, *, seed: int = 0, spanning: bool = True
) -> list[int] | None:
    """Refine clusters where the pack says that it is due, or find them where there are none; None where it is not.

    ``spanning``: also for a recall that showed several clusters, and not for the number of recalls alone. Returned are
    the events that it wrote.
    """
    with store.reading():
        pack = store.versions.pack
        # when they are refined says nothing of recalls that showed what is private
        if not pack.count("refine-every") or not refine_due(
            view_state(store.journal, store.state, EVERYONE), pack, spanning=spanning
        ):
            return None
        known = current(store.state) is not None
    made = (
        refine(store, now)
        if known
        else cluster(store, now, min_size=None, seed=seed, kind="refine")
    )
    return [] if made.event is None else [made.event]


def refine_after_turn(store: Store, now: Micros, *, spanning: bool) -> list[int] | None:
    """Refine clusters between two turns of an agent, where it is due; LabError says that it failed."""
    try:
        return refine_if_due(store, now, spanning=spanning)
    except MemlabError as error:
        raise LabError(f"Clusters were not refined: {error}") from error


def _joining(state: State, pack: Pack, audience: str) -> Clustering:
    return near_clusters(
        state, pack, np.arange(centroids_of(state).part(audience).looked, len(state)), audience
    )


def find_clusters(
    store: Store, *, min_size: int | None, seed: int, among: Sequence[str] | None = None
) -> tuple[dict[str, Clusters], str, int]:
    """Clusters among the memories in use, of each audience; the embedder, and the last id that was looked at."""
    with store.reading():
        state = store.state
        rows = {
            one: in_use(state, one) for one in (list_audiences(state) if among is None else among)
        }
        vectors = {one: state.vectors.take(own) for one, own in rows.items()}
        fingerprint, upto = state.fingerprint, len(state)
    found = {one: clusters(vectors[one], rows[one], min_size=min_size, seed=seed) for one in rows}
    return found, fingerprint, upto


def _together(made: Sequence[Clustered]) -> Clustered:
    """What became of the clusters of everyone and of those who keep something private, as one."""
    first, frames = made[0], [one.frame for one in made]
    event = next((one.event for one in made if one.event is not None), None)
    return Clustered(first.at, event, first.method, pl.concat(frames))


def _written(
    store: Store,
    kind: str,
    decide: Callable[[State, Pack], Clustering],
    now: Micros,
    *,
    always: bool,
    audience: str,
) -> Clustered:
    """Decided without the writer's lock, and under it again if anything has happened in between."""
    with store.reading():
        before, decided = store.state.seq, decide(store.state, store.versions.pack)
        method = centroids_of(store.state).part(audience).method
    event = None
    if decided or always:
        with store.writing() as tx:
            if store.state.seq != before:
                decided = decide(store.state, store.versions.pack)
            if decided or always:
                event = tx.event(kind, {**decided.body, **decided.change.body()}, at=now)
    return Clustered(from_micros(now), event, method, decided.frame)


def check_writable(store: Store) -> None:
    if store.journal.read_only:
        raise ReadOnlyLab(
            f"{store.where} was opened with read_only=True: clusters and summaries are written down."
        )


# ``lab.graph`` with the structure of it all.


class LabGraph(GraphVerbs):
    """``lab.graph``: link memories, follow their edges, and see what they are as a whole."""

    @property
    def clusters(self) -> LabClusters:
        """Find, refine and list clusters."""
        clusters: LabClusters = self._core.component("clusters")
        return clusters

    @checked
    def stats(self, *, at: When | None = None, seed: Seed = 0, progress: bool = True) -> Stats:
        """Kinds, temporal layers, clusters, communities, bridges and key memories, as frames and one figure."""
        with self._core.reading() as state:
            return stats(
                state, self._core.pack, now=self._core.instant(at), seed=seed, progress=progress
            )
