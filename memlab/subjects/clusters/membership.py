"""Decisions about which memories belong to which cluster.

``finding`` groups vectors. This module turns the groups into clusters of a lab. A group takes the number and name of
the existing cluster with which it shares most members. Membership is an edge ``in-cluster`` from a memory to the node
of the cluster. The weight of the edge is the cosine to the centroid (0 to 1) at the time of the decision. The pack's
``spread`` policy decides how much activation the edge passes on.

Members are memories that take part in recall. A memory that no longer takes part keeps its edge
until the next clustering, so that it is a member again if it is restored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.arrays import NO_ROWS, Floats, Ints
from memlab.kernel.base.clock import INSTANT
from memlab.kernel.policies import Pack
from memlab.kernel.schema import RECALLABLE, RELATIONS
from memlab.kernel.state import EVERYONE, NOBODY, Change, State, build_join
from memlab.subjects.clusters.finding import (
    Clusters,
    compute_cosines,
    find_nearest,
    refine_clusters,
)
from memlab.subjects.clusters.registers import Centroids
from memlab.subjects.clusters.wording import describe_groups, name_cluster

# The code of the relation "in-cluster" in the columns of edges.
_IN_CLUSTER = RELATIONS.index("in-cluster")
_DIGITS = 4
"""Number of decimals of an edge's weight. Rounding ensures that clustering unchanged memories again writes nothing."""

# The columns of ``Clustering.frame``.
_SCHEMA = {
    "cluster": pl.Int64,
    "name": pl.String,
    "members": pl.Int64,
    "what": pl.String,
    "into": pl.Int64,
}


@dataclass(frozen=True)
class Clustering:
    """A decision about clusters, whose truth value is False if nothing changes.

    Attributes
    ----------
    body
        The fields of the event.
    change
        The changes of edges that the event contains.
    frame
        One row per cluster with the columns cluster, name, members, what (new, kept, moved, merged
        or gone) and into.
    """

    frame: pl.DataFrame
    body: Mapping[str, Any] = field(default_factory=dict)
    change: Change = field(default_factory=Change)

    def __bool__(self) -> bool:
        return bool(self.body) or bool(self.change)


# The decision that changes nothing.
NO_CHANGE = Clustering(pl.DataFrame(schema=_SCHEMA))


def get_centroids(state: State) -> Centroids:
    """Return the register of all clusters."""
    return state.projection(Centroids)


def rows_in_use(state: State, audience: str | None = None) -> Ints:
    """Return the rows of recallable memories that have a vector.

    With an `audience`, only public rows (EVERYONE) or the private rows of one creator are returned.
    """
    rows = np.flatnonzero(state.names["status"].is_in(RECALLABLE))
    rows = state.drop_unembedded(rows[rows < len(state.vectors)])
    visibility, creator = state.names["visibility"], state.names["creator"]
    if audience is None or not visibility.has_values:
        return rows
    private = visibility.codes[rows] == visibility.code("private")
    if audience == EVERYONE:
        public: Ints = rows[~private]
        return public
    own = creator.codes[rows] == creator.code(audience)
    mine: Ints = rows[private & (own | (creator.codes[rows] < 0) if audience == NOBODY else own)]
    return mine


@dataclass(frozen=True)
class Members:
    """The edges ``in-cluster`` as columns: edge number, memory row and cluster number.

    The cluster number is -1 if the node has no registered cluster.
    """

    edges: Ints
    rows: Ints
    clusters: Ints

    def numbers_of(self, rows: Ints) -> Ints:
        """Return the cluster number of each row, or -1 for a row without a cluster."""
        numbers = np.full(
            int(max(rows.max(initial=-1), self.rows.max(initial=-1))) + 1, -1, dtype=np.int64
        )
        numbers[self.rows] = self.clusters
        return numbers[rows]


def read_members(state: State) -> Members:
    """Return the cluster memberships of all memories, for every embedder."""
    registered = get_centroids(state).every
    nodes = state.nodes.find("cluster", [cluster.name for cluster in registered.values()])
    edges = np.flatnonzero(state.edges.alive & (state.edges.relation == _IN_CLUSTER))
    source, target = state.edges.ends(edges)
    order = np.argsort(nodes, kind="stable")
    nodes, ids = nodes[order], np.array(list(registered), dtype=np.int64)[order]
    position = np.minimum(np.searchsorted(nodes, target), max(len(nodes) - 1, 0))
    clusters = np.full(len(edges), -1, dtype=np.int64)
    if len(nodes):
        clusters = np.where(nodes[position] == target, ids[position], -1)
    memories = source < len(state)
    return Members(edges[memories], source[memories], clusters[memories])


def current_clusters(state: State, audience: str = EVERYONE) -> tuple[Clusters, Ints] | None:
    """Return the active clusters of the current embedder, and each cluster's number.

    Returns None if there are no such clusters. Members are the recallable rows of the `audience`.
    """
    register = get_centroids(state).part(audience)
    live = register.live
    if not live or register.fingerprint != state.fingerprint:
        return None
    ids = np.array(list(live), dtype=np.int64)
    rows = rows_in_use(state, audience)
    numbers = read_members(state).numbers_of(rows)
    label = np.full(max(get_centroids(state).every) + 2, -1, dtype=np.int64)
    label[ids] = np.arange(len(ids))
    labels = label[numbers]
    centroids = np.stack(
        [np.frombuffer(cluster.centroid, dtype="<f4") for cluster in live.values()]
    )
    clusters = Clusters(
        rows,
        labels,
        centroids,
        np.array([cluster.radius for cluster in live.values()]),
        np.bincount(labels[labels >= 0], minlength=len(ids)),
        np.frombuffer(register.centre, dtype="<f4"),
        register.method,
        MappingProxyType(dict(register.settings)),
    )
    return clusters, ids


def decide_clusters(
    state: State, clusters: Clusters, fingerprint: str, upto: int, audience: str = EVERYONE
) -> Clustering:
    """Decide how newly computed clusters replace the stored clusters.

    A group continues the existing cluster with which it shares most members. Clusters without a continuation end. The
    groups were computed from vectors of the embedder `fingerprint`, for memories up to the id `upto`. Memories that no
    longer take part in recall are not members. The decision is empty if nothing changes.
    """
    register, before = get_centroids(state).part(audience), _read_members_of(state, audience)
    own = rows_in_use(state, audience)
    if not (own >= register.upto).any():
        upto = (
            register.upto
        )  # new memories of other audiences must not be visible in this audience's event
    alive = np.isin(clusters.rows, own)
    rows, labels = clusters.rows[alive], clusters.labels[alive]
    old = before.numbers_of(rows)
    names = _assign_numbers(state, register, clusters, rows, labels, old, audience)
    ids = np.array(list(names), dtype=np.int64)
    sizes = np.bincount(labels[labels >= 0], minlength=len(clusters)).tolist()
    new = np.append(ids, -1)[labels]
    weight = _edge_weights(clusters, state, rows, labels)
    change = _change_edges(
        state, before, names, rows, new, weight, gone=set(register.live) - set(names)
    )
    entries = []
    for label, id in enumerate(ids.tolist()):
        values = {
            "centroid": _pack_vector(clusters.centroids[label]),
            "radius": float(clusters.radii[label]),
            "size": sizes[label],
        }
        previous = register.all.get(id)
        if previous is None:
            entries.append({"id": id, "name": names[id], **values})
        elif (previous.centroid, previous.radius, previous.size) != tuple(values.values()):
            entries.append({"id": id, **values})
    ended = sorted(set(register.live) - set(names))
    gone = [[id, None] for id in ended]
    general: dict[str, Any] = {
        "fingerprint": fingerprint,
        "centre": _pack_vector(clusters.centre),
        "method": clusters.method,
        "settings": dict(clusters.settings),
        "upto": upto,
    }
    same = all(getattr(register, name) == value for name, value in general.items())
    body = (
        {}
        if same and not entries and not gone and not change
        else {**general, "clusters": entries, "gone": gone}
    )
    body = _add_audience(audience, body)
    fresh = {values["id"] for values in entries if "name" in values}
    moved = {values["id"] for values in entries}
    frame = [
        (
            id,
            names[id],
            sizes[label],
            "new" if id in fresh else "moved" if id in moved else "kept",
            None,
        )
        for label, id in enumerate(ids.tolist())
    ]
    frame += [(id, register.all[id].name, 0, "gone", None) for id in ended]
    return Clustering(pl.DataFrame(frame, schema=_SCHEMA, orient="row"), body, change)


def decide_joins(state: State, pack: Pack, rows: Ints, audience: str = EVERYONE) -> Clustering:
    """Decide which of `rows` join an existing cluster.

    A recallable memory without a cluster joins the nearest cluster if the cosine to its centroid is at least the
    setting ``cluster-closeness``. Centroids do not move.
    """
    minimum, present = pack.number("cluster-closeness"), current_clusters(state, audience)
    if not minimum or present is None or not len(rows):
        return NO_CHANGE
    clusters, ids = present
    rows = rows[np.isin(rows, clusters.rows[clusters.labels < 0])]
    labels, cosine = find_nearest(clusters, state.vectors.take(rows))
    joins = (labels >= 0) & (cosine >= minimum)
    if not joins.any():
        return NO_CHANGE
    rows, labels, cosine = rows[joins], labels[joins], cosine[joins]
    live = get_centroids(state).part(audience).live
    entries = [
        {"id": int(ids[label]), "size": int(clusters.sizes[label] + count)}
        for label, count in enumerate(np.bincount(labels, minlength=len(ids)).tolist())
        if count
    ]
    names = [live[id].name for id in ids[labels].tolist()]
    change = Change(
        join=[
            build_join(
                (rows + 1).tolist(), "cluster", names, "in-cluster", _round_weights(cosine).tolist()
            )
        ]
    )
    frame = [
        (entry["id"], live[entry["id"]].name, entry["size"], "moved", None) for entry in entries
    ]
    body = _add_audience(audience, {"looked": len(state), "clusters": entries})
    return Clustering(pl.DataFrame(frame, schema=_SCHEMA, orient="row"), body, change)


def decide_refinement(state: State, pack: Pack, audience: str = EVERYONE) -> Clustering:
    """Decide which clusters move with their members, which merge and which end.

    New memories join first, as in ``decide_joins``. Centroids move to the mean of their members, near clusters merge,
    and empty clusters end. Of merging clusters, the one with most members survives. Edges of unchanged memberships keep
    their weight. The decision is empty if the current embedder has no clusters.
    """
    present = current_clusters(state, audience)
    if present is None:
        return NO_CHANGE
    register = get_centroids(state).part(audience)
    joins = decide_joins(state, pack, np.arange(register.looked, len(state)), audience)
    clusters, ids = present
    labels = clusters.labels.copy()
    joined = NO_ROWS  # the positions of the memories that join in this decision
    if joins:
        part = joins.change.join[0]
        by_name = {register.all[id].name: label for label, id in enumerate(ids.tolist())}
        joined = np.searchsorted(clusters.rows, np.array(part["source"]) - 1)
        labels[joined] = [by_name[name] for name in part["target"]]
    step = refine_clusters(
        clusters,
        state.vectors.take(clusters.rows),
        labels,
        merge_ratio=pack.number("cluster-merge"),
    )
    sizes = np.bincount(labels[labels >= 0], minlength=len(ids))
    became = np.full(len(ids), -1, dtype=np.int64)
    became[labels[labels >= 0]] = step.labels[labels >= 0]
    # The largest cluster of each merged group survives. Of equal sizes, the lower number survives, so that runs agree.
    survivors: dict[int, int] = {}
    for label in np.lexsort((ids, -sizes)).tolist():
        if became[label] >= 0:
            survivors.setdefault(int(became[label]), int(ids[label]))
    became_of = dict(zip(ids.tolist(), became.tolist(), strict=True))
    entries, gone, rows = _list_outcomes(register, step, became_of, survivors)
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    if not (entries or gone or joins):
        return Clustering(frame)
    body = {
        "looked": joins.body.get("looked", register.looked),
        "clusters": entries,
        "gone": [list(pair) for pair in gone.items()],
    }
    body = _add_audience(audience, body)
    change = _redirect_edges(state, step, gone, became_of)
    if joins:
        into = became[labels[joined]]
        names = [register.all[survivors[new]].name for new in into.tolist()]
        weight = _edge_weights(step, state, clusters.rows[joined], into)
        change += Change(
            join=[
                build_join(
                    (clusters.rows[joined] + 1).tolist(),
                    "cluster",
                    names,
                    "in-cluster",
                    weight.tolist(),
                )
            ]
        )
    return Clustering(frame, body, change)


def _list_outcomes(
    register: Centroids, step: Clusters, became_of: Mapping[int, int], survivors: Mapping[int, int]
) -> tuple[list[dict[str, Any]], dict[int, int | None], list[tuple[Any, ...]]]:
    """Return what a refinement did to each cluster.

    The results are the entries of an event for moved clusters, the survivor of each ended cluster
    (None if it is empty), and the rows of the frame. ``became_of`` has the new label of each cluster,
    and ``survivors`` the cluster that keeps each new label.
    """
    entries: list[dict[str, Any]] = []
    gone: dict[int, int | None] = {}
    rows: list[tuple[Any, ...]] = []
    for id, new in became_of.items():
        previous, survivor = register.all[id], survivors.get(new)
        if survivor != id:
            gone[id] = survivor
            verb = "gone" if survivor is None else "merged"
            rows.append((id, previous.name, 0, verb, survivor))
            continue
        values = {
            "centroid": _pack_vector(step.centroids[new]),
            "radius": float(step.radii[new]),
            "size": int(step.sizes[new]),
        }
        same = (previous.centroid, previous.radius, previous.size) == tuple(values.values())
        entries += [] if same else [{"id": id, **values}]
        rows.append((id, previous.name, values["size"], "kept" if same else "moved", None))
    return entries, gone, rows


def clusters_frame(state: State) -> pl.DataFrame:
    """Return a frame with one row per active cluster, in descending order of size.

    The columns are cluster (number), name, members (recallable memories), radius, created and refined. Clusters of an
    earlier embedder are left out.
    """
    register = get_centroids(state)
    rows = []
    for audience in (EVERYONE, *sorted(register.own)):
        present = current_clusters(state, audience)
        if present is None:
            continue
        clusters, ids = present
        for id, size, radius in zip(
            ids.tolist(), clusters.sizes.tolist(), clusters.radii.tolist(), strict=True
        ):
            cluster = register.part(audience).all[id]
            rows.append((id, cluster.name, size, radius, cluster.created, cluster.refined))
    schema = {"cluster": pl.Int64, "name": pl.String, "members": pl.Int64, "radius": pl.Float64}
    frame = pl.DataFrame(
        rows, schema={**schema, "created": pl.Int64, "refined": pl.Int64}, orient="row"
    )
    times = pl.col("created", "refined").cast(INSTANT)
    return frame.with_columns(times).sort("members", "cluster", descending=[True, False])


def _add_audience(audience: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return an event's body, with the creator in ``of`` if the clusters are private."""
    return {**body, "of": audience} if body and audience else body


def _read_members_of(state: State, audience: str) -> Members:
    """Return the memberships of memories in the clusters of one audience.

    Memberships in unregistered clusters count as public.
    """
    memberships, register = read_members(state), get_centroids(state)
    others = [id for own, part in register.own.items() if own != audience for id in part.all]
    selected = (
        ~np.isin(memberships.clusters, others)
        if audience == EVERYONE
        else np.isin(memberships.clusters, list(register.part(audience).all))
    )
    return Members(
        memberships.edges[selected], memberships.rows[selected], memberships.clusters[selected]
    )


def _assign_numbers(
    state: State,
    register: Centroids,
    clusters: Clusters,
    rows: Ints,
    labels: Ints,
    old: Ints,
    audience: str,
) -> dict[int, str]:
    """Return the new clusters as ``{number: name}`` in the order of their labels.

    A label continues the live cluster with which it shares most members, and keeps its number and name. Each cluster is
    continued by at most one label. Other labels get new numbers and names.
    """
    both = (labels >= 0) & (old >= 0)
    shared: dict[tuple[int, int], int] = {}
    if both.any():
        pairs, counts = np.unique(np.stack([labels[both], old[both]]), axis=1, return_counts=True)
        shared = {
            (int(label), int(id)): int(count)
            for label, id, count in zip(*pairs, counts, strict=True)
        }
    live = register.live
    assigned: dict[int, int] = {}
    for (label, id), _ in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
        if id in live and label not in assigned and id not in assigned.values():
            assigned[label] = id
    about = describe_groups(state, rows, labels, len(clusters))
    names: dict[int, str] = {}
    following = max(get_centroids(state).every, default=0) + 1
    count = (
        len(register.all) + 1
    )  # the number in a name must not reveal how many clusters other creators have
    fresh: set[str] = set()
    for label in range(len(clusters)):
        if label in assigned:
            names[assigned[label]] = live[assigned[label]].name
            continue
        name = name_cluster(state, count, about[label], fresh, audience)
        fresh.add(name)
        names[following] = name
        following, count = following + 1, count + 1
    return names


def _change_edges(
    state: State,
    before: Members,
    names: Mapping[int, str],
    rows: Ints,
    new: Ints,
    weight: Floats,
    gone: set[int],
) -> Change:
    """Return the edge changes that link each row to its new cluster.

    The number -1 means no cluster. Edges to the clusters `gone` are removed.
    """
    own = np.isin(before.rows, rows)
    position = np.searchsorted(rows, before.rows[own])
    same = (new[position] == before.clusters[own]) & (new[position] >= 0)
    same &= np.abs(weight[position] - state.edges.weight[before.edges[own]]) < 0.5 * 10.0**-_DIGITS
    unchanged = np.zeros(len(rows), dtype=np.bool_)
    unchanged[position[same]] = True
    lost = np.isin(before.clusters[~own], sorted({*gone, -1}))
    unlink = np.sort(np.concatenate([before.edges[own][~same], before.edges[~own][lost]]))
    joins = np.flatnonzero((new >= 0) & ~unchanged)
    if not len(joins):
        return Change(unlink=unlink.tolist())
    targets = [names[id] for id in new[joins].tolist()]
    part = build_join(
        (rows[joins] + 1).tolist(), "cluster", targets, "in-cluster", weight[joins].tolist()
    )
    return Change(unlink=unlink.tolist(), join=[part])


def _redirect_edges(
    state: State, step: Clusters, gone: Mapping[int, int | None], became: Mapping[int, int]
) -> Change:
    """Redirect edges of merged clusters to the survivor; drop edges to empty clusters."""
    before, registered = read_members(state), get_centroids(state).every
    moved = np.isin(before.clusters, list(gone))
    if not moved.any():
        return Change()
    edges, rows, clusters = before.edges[moved], before.rows[moved], before.clusters[moved].tolist()
    merged = np.array([gone[id] is not None for id in clusters], dtype=np.bool_)
    unlink = np.sort(edges).tolist()
    if not merged.any():
        return Change(unlink=unlink)
    into = [survivor for id in clusters if (survivor := gone[id]) is not None]
    labels = np.array([became[id] for id in into], dtype=np.int64)
    weight = _edge_weights(step, state, rows[merged], labels)
    names = [registered[id].name for id in into]
    part = build_join((rows[merged] + 1).tolist(), "cluster", names, "in-cluster", weight.tolist())
    return Change(unlink=unlink, join=[part])


def _edge_weights(clusters: Clusters, state: State, rows: Ints, labels: Ints) -> Floats:
    """Return each row's edge weight: the rounded cosine to its cluster's centroid, or 0 without a cluster."""
    weight = np.zeros(len(rows))
    inside = labels >= 0
    weight[inside] = _round_weights(
        compute_cosines(clusters, state.vectors.take(rows[inside]), labels[inside])
    )
    return weight


def _round_weights(cosine: Floats) -> Floats:
    """Return cosines clipped to 0..1 and rounded to four decimals."""
    return np.asarray(np.round(np.clip(cosine, 0.0, 1.0), _DIGITS), dtype=np.float64)


def _pack_vector(values: NDArray[np.float32]) -> bytes:
    """Return a vector as little-endian f32 bytes."""
    return values.astype("<f4").tobytes()
