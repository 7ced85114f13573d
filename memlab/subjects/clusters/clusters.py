"""Clusters of a lab: ``lab.graph.clusters``.

Vectors are clustered without the writer's lock. The result is checked and written under the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np
import polars as pl

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
from memlab.subjects.clusters.finding import Clusters, cluster_vectors
from memlab.subjects.clusters.membership import (
    Clustering,
    clusters_frame,
    current_clusters,
    decide_clusters,
    decide_joins,
    decide_refinement,
    get_centroids,
    rows_in_use,
)
from memlab.subjects.clusters.registers import is_refinement_due
from memlab.subjects.clusters.stats import Stats, compute_stats
from memlab.subjects.drawing import BLUE, OnAxes, draw_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Maximum number of rows that a notebook shows of a result, so that they fit on a screen.
MAX_ROWS = 12


@dataclass(frozen=True)
class Clustered(Displayed):
    """The result of clustering or refining the clusters of a lab.

    Attributes
    ----------
    at
        The time of the result, in UTC.
    event
        The position of the event in the journal; None if nothing was written.
    method
        The method of clustering and its main settings, in words.
    frame
        One row per cluster with the columns cluster (number), name, members, what and into. ``what`` is new, kept,
        moved, merged or gone. ``into`` is the number of the cluster that a merged cluster became part of.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember([f"The goat ate {count} bales of hay." for count in range(20)])
    >>> _ = lab.remember([f"Release {count} ships on Friday." for count in range(20)])
    >>> found = lab.graph.clusters.find(min_size=5)
    >>> len(found) == found.frame.height
    True
    """

    at: datetime
    event: int | None
    method: str
    frame: pl.DataFrame = field(repr=False)

    def __len__(self) -> int:
        """Return the number of active clusters."""
        return int(self.frame["what"].is_in(("new", "kept", "moved")).sum())

    @checked
    def figure(self, *, axes: OnAxes | None = None) -> Figure:
        """Draw the sizes of the 24 largest clusters.

        Parameters
        ----------
        axes
            The matplotlib axes to draw on; by default a new figure.

        Returns
        -------
        The matplotlib figure.
        """
        top = (
            self.frame.filter(pl.col("members") > 0)
            .sort("members", "cluster", descending=[True, False])
            .head(24)
        )
        names, sizes = top["name"].to_list()[::-1], top["members"].to_list()[::-1]

        def draw(axes: Axes) -> None:
            """Draw the sizes of the clusters as bars, with the names of the clusters."""
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
        """Return the table of the largest clusters for a notebook."""
        rows = (
            self.frame.filter(pl.col("members") > 0)
            .head(MAX_ROWS)
            .select("cluster", "name", "members", "what")
            .rows()
        )
        return table(repr(self), ("cluster", "name", "memories", "what"), rows)


class LabClusters:
    """Clusters of memories with similar meaning: ``lab.graph.clusters``.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["The goat eats hay.", "Releases ship on Friday."])
    >>> len(lab.graph.clusters.find())
    0
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    @checked
    def find(
        self, *, min_size: Annotated[int, Within(2)] | None = None, seed: Seed = 0
    ) -> Clustered:
        """Cluster the recallable memories by HDBSCAN over their vectors.

        Each member is linked to the node of its cluster by an edge ``in-cluster``, whose weight is the cosine to the
        centroid. Packs that follow these edges, such as cascade, can retrieve memories that share no word with the
        query. Clusters whose members stay together keep their number and name, even if the lab has a new embedder
        (``reembed=True``). After a change of the embedder, clusters gain no members and are not refined until the next
        call. A second call gives the same clusters and writes nothing.

        Parameters
        ----------
        min_size
            The minimum size of a cluster, at least 2. The default is a fifth of the square root of the number
            of memories, at least 5.
        seed
            The seed of the sample that is clustered if there are more than 10,000 memories. The others join
            the nearest cluster.

        Returns
        -------
        The clusters, with one row each in ``frame``.

        Raises
        ------
        ReadOnlyLab
            If the lab was opened read-only.
        InputError
            If `min_size` is below 2.

        Notes
        -----
        Other threads and processes can read and write meanwhile. Processor time is 2 s for 10,000 memories and 4 s for
        100,000.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The goat eats hay.", "Releases ship on Friday."])
        >>> lab.graph.clusters.find()
        <Clusters 0 of 0 memories: none>
        """
        return cluster_lab(self._core.store, self._core.store.clock(), min_size=min_size, seed=seed)

    def frame(self) -> pl.DataFrame:
        """Return a frame with one row per active cluster, in descending order of size.

        Returns
        -------
        One row per cluster with the columns cluster (number), name, members, radius, created and refined.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().graph.clusters.frame().columns
        ['cluster', 'name', 'members', 'radius', 'created', 'refined']
        """
        with self._core.reading() as state:
            return clusters_frame(state)

    def refine(self) -> Clustered:
        """Move centroids to the mean of their members, and merge near clusters.

        New memories near a cluster join it. Centroids move to the mean of their members, near clusters merge, and empty
        clusters are removed. The pack's ``cluster-closeness`` is the minimum cosine at which a memory joins (0 means
        that no memory joins). Its ``cluster-merge`` controls which clusters merge. Upkeep (``lab.upkeep``) refines
        clusters after ``refine-every`` recalls, or if the last recall returned members of several clusters. A recall
        itself only increments a counter.

        Returns
        -------
        The clusters, with one row each in ``frame``.

        Raises
        ------
        ReadOnlyLab
            If the lab was opened read-only.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> len(lab.graph.clusters.refine())
        0
        """
        return refine_lab(self._core.store, self._core.store.clock())


def cluster_lab(
    store: Store,
    now: Micros,
    *,
    min_size: int | None,
    seed: int,
    kind: str = "cluster",
    only: Sequence[str] | None = None,
) -> Clustered:
    """Cluster the memories of each audience, and write one event for each.

    Public memories are clustered together, and the private memories of each creator separately. `only` selects some of
    these audiences. A copy of the vectors is clustered, so the lab can be read and written meanwhile. Memories that are
    added meanwhile may join a cluster later.
    """
    check_writable(store)
    clusters, fingerprint, upto = find_clusters(store, min_size=min_size, seed=seed, only=only)
    results = []
    for audience, audience_clusters in clusters.items():
        with store.writing() as tx:
            decided = decide_clusters(store.state, audience_clusters, fingerprint, upto, audience)
            event = None
            if decided or (kind == "refine" and audience == EVERYONE):
                event = tx.event(kind, {**decided.body, **decided.change.body()}, at=now)
        results.append(Clustered(from_micros(now), event, audience_clusters.method, decided.frame))
    return _combine_results(results)


def refine_lab(store: Store, now: Micros) -> Clustered:
    """Refine the clusters of each audience, and reset the count of recalls."""
    check_writable(store)
    with store.reading():
        audience_names = list_audiences(store.state)
    return _combine_results(
        [
            _decide_and_write(
                store,
                "refine",
                partial(decide_refinement, audience=audience),
                now,
                always=audience == EVERYONE,
                audience=audience,
            )
            for audience in audience_names
        ]
    )


def maintain_clusters(store: Store, now: Micros, *, seed: int = 0) -> list[int]:
    """Refine the clusters if refinement is due; otherwise let new memories join clusters.

    If a refinement is due and there are no clusters, clusters are computed. Nothing is done if the pack sets neither
    ``cluster-closeness`` nor ``refine-every``. A refinement reads the vector of each member, which takes 0.2 s of
    processor time for 10,000 memories and 1.4 s for 100,000. Clustering takes 2 to 5 s.
    """
    refined = refine_if_due(store, now, seed=seed)
    if refined is not None:
        return refined
    with store.reading():
        state = store.state
        joinable = list_audiences(state) if store.versions.pack.number("cluster-closeness") else []
        fresh = [
            result
            for result in joinable
            if current_clusters(state, result)
            and get_centroids(state).part(result).looked < len(state)
        ]
    results = [
        _decide_and_write(
            store,
            "cluster",
            partial(_decide_new_joins, audience=result),
            now,
            always=False,
            audience=result,
        )
        for result in fresh
    ]
    return [result.event for result in results if result.event is not None]


def refine_if_due(
    store: Store, now: Micros, *, seed: int = 0, spanning: bool = True
) -> list[int] | None:
    """Refine or compute the clusters if due; return event numbers, or None if not due.

    Returns None if no refinement is due. A refinement is due after a number of recalls. With `spanning`, it is also due
    after a recall that returned members of several clusters.
    """
    with store.reading():
        pack = store.versions.pack
        # Recalls of private memories must not influence when public clusters are refined.
        if not pack.count("refine-every") or not is_refinement_due(
            view_state(store.journal, store.state, EVERYONE), pack, spanning=spanning
        ):
            return None
        has_clusters = current_clusters(store.state) is not None
    result = (
        refine_lab(store, now)
        if has_clusters
        else cluster_lab(store, now, min_size=None, seed=seed, kind="refine")
    )
    return [] if result.event is None else [result.event]


def refine_after_turn(store: Store, now: Micros, *, spanning: bool) -> list[int] | None:
    """Refine clusters between two turns of an agent if a refinement is due.

    Raises LabError if the refinement fails.
    """
    try:
        return refine_if_due(store, now, spanning=spanning)
    except MemlabError as error:
        raise LabError(f"Clusters were not refined: {error}") from error


def _decide_new_joins(state: State, pack: Pack, audience: str) -> Clustering:
    """Decide which memories added since the last such decision join an existing cluster of an audience."""
    return decide_joins(
        state, pack, np.arange(get_centroids(state).part(audience).looked, len(state)), audience
    )


def find_clusters(
    store: Store, *, min_size: int | None, seed: int, only: Sequence[str] | None = None
) -> tuple[dict[str, Clusters], str, int]:
    """Cluster the recallable memories of each audience.

    Returns the clusters by audience, the fingerprint of the embedder, and the last memory id that was included.
    """
    with store.reading():
        state = store.state
        rows = {
            audience: rows_in_use(state, audience)
            for audience in (list_audiences(state) if only is None else only)
        }
        vectors = {
            audience: state.vectors.take(audience_rows) for audience, audience_rows in rows.items()
        }
        fingerprint, upto = state.fingerprint, len(state)
    clusters = {
        audience: cluster_vectors(vectors[audience], rows[audience], min_size=min_size, seed=seed)
        for audience in rows
    }
    return clusters, fingerprint, upto


def _combine_results(results: Sequence[Clustered]) -> Clustered:
    """Combine the clusters found for several audiences into one result."""
    first, frames = results[0], [result.frame for result in results]
    event = next((result.event for result in results if result.event is not None), None)
    return Clustered(first.at, event, first.method, pl.concat(frames))


def _decide_and_write(
    store: Store,
    kind: str,
    decide: Callable[[State, Pack], Clustering],
    now: Micros,
    *,
    always: bool,
    audience: str,
) -> Clustered:
    """Decide changes without the writer's lock, then log them under it; without changes, log only with `always`.

    If the state changed in between, the decision is computed again under the lock.
    """
    with store.reading():
        before, decision = store.state.seq, decide(store.state, store.versions.pack)
        method = get_centroids(store.state).part(audience).method
    event = None
    if decision or always:
        with store.writing() as tx:
            if store.state.seq != before:
                decision = decide(store.state, store.versions.pack)
            if decision or always:
                event = tx.event(kind, {**decision.body, **decision.change.body()}, at=now)
    return Clustered(from_micros(now), event, method, decision.frame)


def check_writable(store: Store) -> None:
    """Raise ReadOnlyLab if the lab was opened read-only."""
    if store.journal.read_only:
        raise ReadOnlyLab(
            f"{store.where} was opened with read_only=True, but clusters and summaries must be stored in it. "
            "Open it without read_only."
        )


class LabGraph(GraphVerbs):
    """Links between memories, their paths and their overall structure: ``lab.graph``.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["The goat eats hay.", "Hay grows in summer."])
    >>> lab.graph.link(1, 2, "relates-to")
    >>> lab.graph.stats(progress=False).relations["relation"].to_list()
    ['relates-to']
    """

    @property
    def clusters(self) -> LabClusters:
        """The accessor for clusters of memories: find, refine and list clusters."""
        clusters: LabClusters = self._core.component("clusters")
        return clusters

    @checked
    def stats(self, *, at: When | None = None, seed: Seed = 0, progress: bool = True) -> Stats:
        """Compute statistics of all memories, as frames and one figure.

        The statistics cover kinds, temporal layers, clusters, communities, bridges and key memories.

        Parameters
        ----------
        at
            The time for which layers are computed, by default now.
        seed
            The seed of samples, so that results are reproducible.
        progress
            Whether to show a progress bar for large memories.

        Returns
        -------
        The statistics; each frame is an attribute.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The goat eats hay.", "Tests run on Friday."])
        >>> lab.graph.stats(progress=False).kinds["memories"].sum()
        2
        """
        with self._core.reading() as state:
            return compute_stats(
                state, self._core.pack, now=self._core.instant(at), seed=seed, progress=progress
            )
