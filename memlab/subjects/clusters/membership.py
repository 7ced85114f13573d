"""Clusters that last: found, joined by what is new, refined as their members change.

``searching`` finds groups among vectors. Here they become clusters of a lab, which keep their number and their name for
as long as their members stay together: a cluster that is found again is the old one with which it shares most members.
Membership is an edge ``in-cluster`` from a memory to the node of its cluster, as heavy as the cosine to the centroid
(0 to 1) when it was decided; spreading passes over it as the pack's ``spread`` policy says.

Members are memories that take part in recall. One that leaves recall keeps its edge, and its place for when it is
restored, until clusters are found again without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.policies import Pack
from memlab.kernel.schema import RECALLABLE, RELATIONS
from memlab.kernel.state import EVERYONE, NOBODY, Change, State, build_join
from memlab.subjects.clusters.finding import Clusters, nearest, nearness, refine
from memlab.subjects.clusters.registers import Centroids
from memlab.subjects.clusters.wording import named_by, words

__all__ = [
    "Clustering",
    "centroids_of",
    "clustered",
    "clusters_frame",
    "current",
    "in_use",
    "members",
    "near_clusters",
    "refined",
]

Ints = NDArray[np.int64]

_IN_CLUSTER = RELATIONS.index("in-cluster")
_DIGITS = 4
"""Of the weight of an edge: what is found again is the same."""

_SCHEMA = {
    "cluster": pl.Int64,
    "name": pl.String,
    "members": pl.Int64,
    "what": pl.String,
    "into": pl.Int64,
}


@dataclass(frozen=True)
class Clustering:
    """A decision about clusters: ``body`` are the event's own fields, ``change`` its parts. False if nothing changes.

    ``frame``: a row a cluster (cluster, name, members, what: new, kept, moved, merged, gone; into).
    """

    frame: pl.DataFrame
    body: Mapping[str, Any] = field(default_factory=dict)
    change: Change = field(default_factory=Change)

    def __bool__(self) -> bool:
        return bool(self.body) or bool(self.change)


NOTHING = Clustering(pl.DataFrame(schema=_SCHEMA))


def centroids_of(state: State) -> Centroids:
    """The register of clusters."""
    return state.projection(Centroids)


def in_use(state: State, audience: str | None = None) -> Ints:
    """The rows that take part in recall and have a vector; with an ``audience``, those that are its own."""
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
    """Every edge ``in-cluster``: its number, its memory's row, and its cluster's number, -1 for one unknown here."""

    edges: Ints
    rows: Ints
    clusters: Ints

    def of(self, rows: Ints) -> Ints:
        """The cluster of each of ``rows``, by number; -1 for none."""
        found = np.full(
            int(max(rows.max(initial=-1), self.rows.max(initial=-1))) + 1, -1, dtype=np.int64
        )
        found[self.rows] = self.clusters
        return found[rows]


def members(state: State) -> Members:
    """Who belongs where, clusters of another embedder among them."""
    known = centroids_of(state).every
    nodes = state.nodes.find("cluster", [one.name for one in known.values()])
    edges = np.flatnonzero(state.edges.alive & (state.edges.relation == _IN_CLUSTER))
    source, target = state.edges.ends(edges)
    order = np.argsort(nodes, kind="stable")
    nodes, ids = nodes[order], np.array(list(known), dtype=np.int64)[order]
    place = np.minimum(np.searchsorted(nodes, target), max(len(nodes) - 1, 0))
    clusters = np.full(len(edges), -1, dtype=np.int64)
    if len(nodes):
        clusters = np.where(nodes[place] == target, ids[place], -1)
    memories = source < len(state)
    return Members(edges[memories], source[memories], clusters[memories])


def current(state: State, audience: str = EVERYONE) -> tuple[Clusters, Ints] | None:
    """The clusters of the present embedder, as ``structure`` knows them, with their numbers by label; None if there are
    none. Their members are those in use. They are those of what everyone sees, or of an audience's own.
    """
    kept = centroids_of(state).part(audience)
    live = kept.live
    if not live or kept.fingerprint != state.fingerprint:
        return None
    ids = np.array(list(live), dtype=np.int64)
    rows = in_use(state, audience)
    of = members(state).of(rows)
    label = np.full(max(centroids_of(state).every) + 2, -1, dtype=np.int64)
    label[ids] = np.arange(len(ids))
    labels = label[of]
    centroids = np.stack([np.frombuffer(one.centroid, dtype="<f4") for one in live.values()])
    found = Clusters(
        rows,
        labels,
        centroids,
        np.array([one.radius for one in live.values()]),
        np.bincount(labels[labels >= 0], minlength=len(ids)),
        np.frombuffer(kept.centre, dtype="<f4"),
        kept.method,
        MappingProxyType(dict(kept.settings)),
    )
    return found, ids


def clustered(
    state: State, found: Clusters, fingerprint: str, upto: int, audience: str = EVERYONE
) -> Clustering:
    """What makes ``found`` the clusters of a lab: those before go, or stay under their number and name.

    ``found`` are those among the vectors of the embedder ``fingerprint`` of the memories up to the id ``upto``; what
    left recall since is no member. Nothing changes where it is what the lab has.
    """
    kept, before = centroids_of(state).part(audience), _of_part(state, audience)
    own = in_use(state, audience)
    if not (own >= kept.upto).any():
        upto = kept.upto  # that others have come, in private it may be, changes nothing here
    alive = np.isin(found.rows, own)
    rows, labels = found.rows[alive], found.labels[alive]
    old = before.of(rows)
    names = _numbered(state, kept, found, rows, labels, old, audience)
    ids = np.array(list(names), dtype=np.int64)
    sizes = np.bincount(labels[labels >= 0], minlength=len(found)).tolist()
    new = np.append(ids, -1)[labels]
    weight = _weights(found, state, rows, labels)
    change = _moved(state, before, names, rows, new, weight, gone=set(kept.live) - set(names))
    entries = []
    for label, id in enumerate(ids.tolist()):
        one = {
            "centroid": _packed(found.centroids[label]),
            "radius": float(found.radii[label]),
            "size": sizes[label],
        }
        was = kept.all.get(id)
        if was is None:
            entries.append({"id": id, "name": names[id], **one})
        elif (was.centroid, was.radius, was.size) != tuple(one.values()):
            entries.append({"id": id, **one})
    ended = sorted(set(kept.live) - set(names))
    gone = [[id, None] for id in ended]
    general: dict[str, Any] = {
        "fingerprint": fingerprint,
        "centre": _packed(found.centre),
        "method": found.method,
        "settings": dict(found.settings),
        "upto": upto,
    }
    same = all(getattr(kept, name) == value for name, value in general.items())
    body = (
        {}
        if same and not entries and not gone and not change
        else {**general, "clusters": entries, "gone": gone}
    )
    body = _of(audience, body)
    fresh = {one["id"] for one in entries if "name" in one}
    moved = {one["id"] for one in entries}
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
    frame += [(id, kept.all[id].name, 0, "gone", None) for id in ended]
    return Clustering(pl.DataFrame(frame, schema=_SCHEMA, orient="row"), body, change)


def near_clusters(state: State, pack: Pack, rows: Ints, audience: str = EVERYONE) -> Clustering:
    """Those of ``rows`` that lie close enough to a centroid, by the setting ``cluster-closeness``, join the nearest.

    Only what is in use and in no cluster. Centroids stay where they are.
    """
    least, known = pack.number("cluster-closeness"), current(state, audience)
    if not least or known is None or not len(rows):
        return NOTHING
    found, ids = known
    rows = rows[np.isin(rows, found.rows[found.labels < 0])]
    labels, cosine = nearest(found, state.vectors.take(rows))
    joins = (labels >= 0) & (cosine >= least)
    if not joins.any():
        return NOTHING
    rows, labels, cosine = rows[joins], labels[joins], cosine[joins]
    live = centroids_of(state).part(audience).live
    entries = [
        {"id": int(ids[label]), "size": int(found.sizes[label] + count)}
        for label, count in enumerate(np.bincount(labels, minlength=len(ids)).tolist())
        if count
    ]
    names = [live[id].name for id in ids[labels].tolist()]
    change = Change(
        join=[
            build_join(
                (rows + 1).tolist(), "cluster", names, "in-cluster", _rounded(cosine).tolist()
            )
        ]
    )
    frame = [(one["id"], live[one["id"]].name, one["size"], "moved", None) for one in entries]
    body = _of(audience, {"looked": len(state), "clusters": entries})
    return Clustering(pl.DataFrame(frame, schema=_SCHEMA, orient="row"), body, change)


def refined(state: State, pack: Pack, audience: str = EVERYONE) -> Clustering:
    """Centroids at the mean of the members that they have by now, near clusters as one, and what is empty gone.

    Of clusters that merge the one with most members stays. What is new joins first, as ``near_clusters`` says.
    Edges that stay keep their weight. Nothing where there are no clusters of the present embedder.
    """
    known = current(state, audience)
    if known is None:
        return NOTHING
    kept = centroids_of(state).part(audience)
    come = near_clusters(state, pack, np.arange(kept.looked, len(state)), audience)
    found, ids = known
    labels = found.labels.copy()
    at = np.zeros(0, dtype=np.int64)  # the places of what is new
    if come:
        part = come.change.join[0]
        by_name = {kept.all[id].name: label for label, id in enumerate(ids.tolist())}
        at = np.searchsorted(found.rows, np.array(part["source"]) - 1)
        labels[at] = [by_name[name] for name in part["target"]]
    step = refine(found, state.vectors.take(found.rows), labels, near=pack.number("cluster-merge"))
    sizes = np.bincount(labels[labels >= 0], minlength=len(ids))
    became = np.full(len(ids), -1, dtype=np.int64)
    became[labels[labels >= 0]] = step.labels[labels >= 0]
    stays: dict[int, int] = {}  # the label that each new one goes on as
    for label in np.lexsort((ids, -sizes)).tolist():
        if became[label] >= 0:
            stays.setdefault(int(became[label]), label)
    entries: list[dict[str, Any]] = []
    gone: list[tuple[int, int | None]] = []
    frame: list[tuple[int, str, int, str, int | None]] = []
    for label, id in enumerate(ids.tolist()):
        new, was = int(became[label]), kept.all[id]
        if new < 0:
            gone.append((id, None))
            frame.append((id, was.name, 0, "gone", None))
        elif stays[new] != label:
            into = int(ids[stays[new]])
            gone.append((id, into))
            frame.append((id, was.name, 0, "merged", into))
        else:
            size = int(step.sizes[new])
            one = {
                "centroid": _packed(step.centroids[new]),
                "radius": float(step.radii[new]),
                "size": size,
            }
            same = (was.centroid, was.radius, was.size) == tuple(one.values())
            entries += [] if same else [{"id": id, **one}]
            frame.append((id, was.name, size, "kept" if same else "moved", None))
    if not (entries or gone or come):
        return Clustering(pl.DataFrame(frame, schema=_SCHEMA, orient="row"))
    body = {
        "looked": come.body.get("looked", kept.looked),
        "clusters": entries,
        "gone": [list(pair) for pair in gone],
    }
    body = _of(audience, body)
    became_of = dict(zip(ids.tolist(), became.tolist(), strict=True))
    change = _handed_over(state, step, dict(gone), became_of)
    if come:
        joined = labels[at]
        names = [kept.all[int(ids[stays[new]])].name for new in became[joined].tolist()]
        weight = _weights(step, state, found.rows[at], became[joined])
        change += Change(
            join=[
                build_join(
                    (found.rows[at] + 1).tolist(), "cluster", names, "in-cluster", weight.tolist()
                )
            ]
        )
    return Clustering(pl.DataFrame(frame, schema=_SCHEMA, orient="row"), body, change)


def clusters_frame(state: State) -> pl.DataFrame:
    """A row a cluster: cluster (its number), name, members (in use), radius, created, refined; the largest first.

    Clusters of another embedder than the present one are not there.
    """
    kept = centroids_of(state)
    rows = []
    for audience in (EVERYONE, *sorted(kept.own)):
        known = current(state, audience)
        if known is None:
            continue
        found, ids = known
        for id, size, radius in zip(
            ids.tolist(), found.sizes.tolist(), found.radii.tolist(), strict=True
        ):
            one = kept.part(audience).all[id]
            rows.append((id, one.name, size, radius, one.created, one.refined))
    schema = {"cluster": pl.Int64, "name": pl.String, "members": pl.Int64, "radius": pl.Float64}
    frame = pl.DataFrame(
        rows, schema={**schema, "created": pl.Int64, "refined": pl.Int64}, orient="row"
    )
    times = pl.col("created", "refined").cast(pl.Datetime("us", "UTC"))
    return frame.with_columns(times).sort("members", "cluster", descending=[True, False])


# -- within -----------------------------------------------------------------------------------------------------


def _of(audience: str, body: dict[str, Any]) -> dict[str, Any]:
    """An event's own fields, with whose clusters they tell of."""
    return {**body, "of": audience} if body and audience else body


def _of_part(state: State, audience: str) -> Members:
    """The edges to the clusters of an audience; with those of everyone, those to clusters that nobody knows."""
    found, kept = members(state), centroids_of(state)
    others = [id for own, part in kept.own.items() if own != audience for id in part.all]
    mine = (
        ~np.isin(found.clusters, others)
        if audience == EVERYONE
        else np.isin(found.clusters, list(kept.part(audience).all))
    )
    return Members(found.edges[mine], found.rows[mine], found.clusters[mine])


def _numbered(
    state: State,
    kept: Centroids,
    found: Clusters,
    rows: Ints,
    labels: Ints,
    old: Ints,
    audience: str,
) -> dict[int, str]:
    """The number and name of each label: those of the cluster with which it shares most members, each given once."""
    both = (labels >= 0) & (old >= 0)
    shared: dict[tuple[int, int], int] = {}
    if both.any():
        pairs, counts = np.unique(np.stack([labels[both], old[both]]), axis=1, return_counts=True)
        shared = {
            (int(label), int(id)): int(count)
            for label, id, count in zip(*pairs, counts, strict=True)
        }
    live = kept.live
    given: dict[int, int] = {}
    for (label, id), _ in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
        if id in live and label not in given and id not in given.values():
            given[label] = id
    about = words(state, rows, labels, len(found))
    names: dict[int, str] = {}
    following = max(centroids_of(state).every, default=0) + 1
    count = len(kept.all) + 1  # a name tells nothing of how many clusters others have
    fresh: set[str] = set()
    for label in range(len(found)):
        if label in given:
            names[given[label]] = live[given[label]].name
            continue
        name = named_by(state, count, about[label], fresh, audience)
        fresh.add(name)
        names[following] = name
        following, count = following + 1, count + 1
    return names


def _moved(
    state: State,
    before: Members,
    names: Mapping[int, str],
    rows: Ints,
    new: Ints,
    weight: NDArray[np.float64],
    gone: set[int],
) -> Change:
    """From the edges that there are to those that ``rows`` shall have: ``new`` is the number of each, -1 for none."""
    own = np.isin(before.rows, rows)
    place = np.searchsorted(rows, before.rows[own])
    same = (new[place] == before.clusters[own]) & (new[place] >= 0)
    same &= np.abs(weight[place] - state.edges.weight[before.edges[own]]) < 0.5 * 10.0**-_DIGITS
    stays = np.zeros(len(rows), dtype=np.bool_)
    stays[place[same]] = True
    lost = np.isin(before.clusters[~own], sorted({*gone, -1}))
    unlink = np.sort(np.concatenate([before.edges[own][~same], before.edges[~own][lost]]))
    joins = np.flatnonzero((new >= 0) & ~stays)
    if not len(joins):
        return Change(unlink=unlink.tolist())
    called = [names[id] for id in new[joins].tolist()]
    part = build_join(
        (rows[joins] + 1).tolist(), "cluster", called, "in-cluster", weight[joins].tolist()
    )
    return Change(unlink=unlink.tolist(), join=[part])


def _handed_over(
    state: State, step: Clusters, gone: Mapping[int, int | None], became: Mapping[int, int]
) -> Change:
    """The edges to what merged lead to what it merged into; those to what is empty go."""
    before, known = members(state), centroids_of(state).every
    moved = np.isin(before.clusters, list(gone))
    if not moved.any():
        return Change()
    edges, rows, clusters = before.edges[moved], before.rows[moved], before.clusters[moved].tolist()
    goes = np.array([gone[id] is not None for id in clusters], dtype=np.bool_)
    unlink = np.sort(edges).tolist()
    if not goes.any():
        return Change(unlink=unlink)
    into = [one for id in clusters if (one := gone[id]) is not None]
    labels = np.array([became[id] for id in into], dtype=np.int64)
    weight = _weights(step, state, rows[goes], labels)
    names = [known[id].name for id in into]
    part = build_join((rows[goes] + 1).tolist(), "cluster", names, "in-cluster", weight.tolist())
    return Change(unlink=unlink, join=[part])


def _weights(found: Clusters, state: State, rows: Ints, labels: Ints) -> NDArray[np.float64]:
    """The cosine of each row to its centroid, 0..1; 0 where it has none."""
    weight = np.zeros(len(rows))
    inside = labels >= 0
    weight[inside] = _rounded(nearness(found, state.vectors.take(rows[inside]), labels[inside]))
    return weight


def _rounded(cosine: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.round(np.clip(cosine, 0.0, 1.0), _DIGITS), dtype=np.float64)


def _packed(values: NDArray[np.float32]) -> bytes:
    return values.astype("<f4").tobytes()
