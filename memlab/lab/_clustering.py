"""Clusters of a lab: sought beside the writer's lock, decided and written under it."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.clock import Micros, from_micros
from memlab.errors import ReadOnlyLab
from memlab.life import (
    Clustering,
    centroids_of,
    clustered,
    current,
    in_use,
    near_clusters,
    refine_due,
    refined,
)
from memlab.memory import State
from memlab.policies import Pack
from memlab.store import Store
from memlab.structure import Clusters, clusters

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["SHOWN", "Clustered", "check_writable", "cluster", "clusters_kept", "refine", "sought", "table"]

Ints = NDArray[np.int64]

SHOWN = 12


@dataclass(frozen=True)
class Clustered:
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

    def figure(self) -> Figure:
        """A matplotlib figure: the members of the largest clusters."""
        from memlab.drawing import BLUE, drawn  # late: matplotlib

        top = self.frame.filter(pl.col("members") > 0).sort("members", "cluster", descending=[True, False]).head(24)
        names, sizes = top["name"].to_list()[::-1], top["members"].to_list()[::-1]

        def draw(axes: Axes) -> None:
            axes.barh(range(len(sizes)), sizes, color=BLUE)
            axes.set_yticks(range(len(names)), [name[:48] for name in names])
            axes.set_xlabel("memories")
            axes.set_title(f"{len(self):,} clusters")

        return drawn(draw, width=8.0, height=max(1.5, 0.6 + 0.24 * len(sizes)))

    def __repr__(self) -> str:
        counts = self.frame["what"].value_counts().sort("what").rows()
        told = ", ".join(f"{count:,} {what}" for what, count in counts) or "none"
        inside = int(self.frame["members"].sum())
        return f"<Clusters {len(self):,} of {inside:,} memories: {told}{'' if self.event else '; nothing was written'}>"

    def _repr_html_(self) -> str:
        rows = self.frame.filter(pl.col("members") > 0).head(SHOWN).select("cluster", "name", "members", "what").rows()
        return table(repr(self), ("cluster", "name", "memories", "what"), rows)


# -- clusters ---------------------------------------------------------------------------------------------------


def cluster(store: Store, now: Micros, *, min_size: int | None, seed: int, kind: str = "cluster") -> Clustered:
    """Find clusters anew. They are sought in a copy, while others read and write; what came since may join later."""
    check_writable(store)
    found, fingerprint, upto = sought(store, min_size=min_size, seed=seed)
    with store.writing() as tx:
        decided = clustered(store.state, found, fingerprint, upto)
        event = None
        if decided or kind == "refine":
            event = tx.event(kind, {**decided.body, **decided.change.body()}, at=now)
    return Clustered(from_micros(now), event, found.method, decided.frame)


def refine(store: Store, now: Micros) -> Clustered:
    """Move centroids to their members and merge what is near; the count of recalls since begins anew."""
    check_writable(store)
    return _written(store, "refine", refined, now, always=True)


def clusters_kept(store: Store, now: Micros, *, seed: int = 0) -> list[int]:
    """What upkeep does about clusters: what is new joins, and where the pack says that it is due they are refined, or
    found where there are none. The events that it wrote.

    It costs nothing where the pack has neither ``cluster-closeness`` nor ``refine-every``; a refinement reads each
    member's vector (CPU: 0.2 s of 10,000 memories, 1.4 s of 100,000), and finding clusters takes 2 to 5 s.
    """
    with store.mutex:
        store.fold()
        state, pack = store.state, store.versions.pack
        due, looked = refine_due(state, pack), centroids_of(state).looked
        known = current(state) is not None if due or pack.number("cluster-closeness") else False
        fresh = looked < len(state)
    if due:
        made = refine(store, now) if known else cluster(store, now, min_size=None, seed=seed, kind="refine")
    elif known and fresh and pack.number("cluster-closeness"):
        made = _written(store, "cluster", _joining, now, always=False)
    else:
        return []
    return [] if made.event is None else [made.event]


def _joining(state: State, pack: Pack) -> Clustering:
    return near_clusters(state, pack, np.arange(centroids_of(state).looked, len(state)))


def sought(store: Store, *, min_size: int | None, seed: int) -> tuple[Clusters, str, int]:
    """Clusters among the memories in use, with the embedder and the last id that they were sought among."""
    with store.mutex:
        store.fold()
        state = store.state
        rows = in_use(state)
        vectors, fingerprint, upto = state.vectors.take(rows), state.fingerprint, len(state)
    return clusters(vectors, rows, min_size=min_size, seed=seed), fingerprint, upto


def _written(
    store: Store, kind: str, decide: Callable[[State, Pack], Clustering], now: Micros, *, always: bool
) -> Clustered:
    """Decided without the writer's lock, and under it again if anything has happened in between."""
    with store.mutex:
        store.fold()
        seen, decided = store.state.seq, decide(store.state, store.versions.pack)
        method = centroids_of(store.state).method
    event = None
    if decided or always:
        with store.writing() as tx:
            if store.state.seq != seen:
                decided = decide(store.state, store.versions.pack)
            if decided or always:
                event = tx.event(kind, {**decided.body, **decided.change.body()}, at=now)
    return Clustered(from_micros(now), event, method, decided.frame)


def check_writable(store: Store) -> None:
    if store.journal.read_only:
        raise ReadOnlyLab(f"{store.where} was opened with read_only=True: clusters and summaries are written down.")


def table(head: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    cell = "style='text-align:left;padding:.1em .5em'"
    body = "".join(
        "<tr>"
        + "".join(f"<td {cell} dir='auto'>{html.escape('' if word is None else str(word))}</td>" for word in row)
        + "</tr>"
        for row in rows
    )
    top = "".join(f"<th {cell}>{html.escape(name)}</th>" for name in names)
    table = f"<table style='margin:0'><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return f"<div><p style='margin:.2em 0'>{html.escape(head[1:-1])}</p>{table}</div>"
