"""The projections of the subject: clusters, the number of recalls, and summaries.

Edges ``in-cluster`` lead from each member to the node of its cluster's name. A centroid is a direction in the vector
space of one embedder, ``Centroids.fingerprint``. After a change of the embedder, the clusters gain no members and are
not refined. Clustering again keeps the name of each cluster whose members stay together.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from memlab.kernel.journal import Body, Event
from memlab.kernel.policies import Pack
from memlab.kernel.schema import RELATIONS
from memlab.kernel.state import (
    ADDED,
    HASH,
    MEMORY_ID,
    NUMBER,
    TIME,
    WORD,
    EventType,
    Field,
    Projection,
    State,
    list_field,
    mapping_field,
)

_NAME, _BYTES = Field("cluster", held="reference", shared=True), Field("bytes")
# The declared fields of the events and of the dump.
_GENERAL = {
    "fingerprint": HASH,
    "centre": _BYTES,
    "method": WORD,
    "settings": mapping_field({"*": NUMBER}),
    "upto": Field("last-memory"),
    "looked": Field("last-memory"),
}
_FIELDS = {
    **_GENERAL,
    "of": Field("creator", held="reference", shared=True),
    "clusters": list_field(
        mapping_field(
            {"id": NUMBER, "name": _NAME, "centroid": _BYTES, "radius": NUMBER, "size": NUMBER}
        )
    ),
    "gone": list_field(NUMBER, NUMBER),
}
_DUMPED = {
    **_GENERAL,
    "clusters": list_field(NUMBER, _NAME, _BYTES, NUMBER, NUMBER, TIME, TIME, TIME, NUMBER),
}


@dataclass(slots=True)
class Cluster:
    """The name, centroid, radius and history of one cluster of memories.

    Attributes
    ----------
    name
        The name of the cluster's node.
    centroid
        The mean direction of the members, f32[dim] as bytes. It is empty after the cluster has ended.
    radius
        The cosine distance from the centroid within which new memories join, 0 to 2.
    size
        The number of members when the cluster was last refined.
    created, refined
        Instants in microseconds since 1970.
    ended
        The instant at which the cluster ended, or None while it is live.
    into
        The number of the cluster that absorbed this one, if it was merged.
    """

    name: str
    centroid: bytes
    radius: float
    size: int
    created: int
    refined: int
    ended: int | None = None
    into: int | None = None


class Centroids(Projection):
    """All clusters, by number from 1. Numbers and names are never reused.

    An event lists changes of ``clusters``, and an unknown number is a new cluster. Clusters of private memories are
    stored by creator in ``own``. Their events name the creator as ``of``.
    """

    name = "clusters"
    kinds = ("cluster", "refine")
    events = (
        EventType("cluster", "Clusters were searched for, or gained members.", _FIELDS),
        EventType("refine", "Clusters were moved, merged, parted or ended.", _FIELDS),
    )
    dumped = mapping_field(
        {
            **_DUMPED,
            "own": mapping_field(
                {"*": mapping_field(_DUMPED)}, keys="creator", held="reference", shared=True
            ),
        }
    )

    def __init__(self) -> None:
        self.fingerprint = ""
        self.centre = b""
        self.method = ""
        self.settings: dict[str, int | float] = {}
        self.upto = 0
        """The id of the last memory that was part of a clustering."""
        self.looked = 0
        """The id of the last memory that was tested for joining a cluster since then."""
        self.all: dict[int, Cluster] = {}
        self.own: dict[str, Centroids] = {}
        """The clusters of private memories, by creator."""

    def part(self, audience: str) -> Centroids:
        """Return the public clusters for the audience "", or a creator's private clusters."""
        return self.own.get(audience) or (Centroids() if audience else self)

    @property
    def every(self) -> dict[int, Cluster]:
        """All clusters, public and private, by number."""
        return self.all | {
            id: cluster for part in self.own.values() for id, cluster in part.all.items()
        }

    @property
    def live(self) -> dict[int, Cluster]:
        """The clusters that have not ended, by number."""
        return {id: cluster for id, cluster in self.all.items() if cluster.ended is None}

    def fold(self, event: Event) -> None:
        """Apply an event to the public clusters or to the clusters of one creator."""
        body = event.body
        part = self if "of" not in body else self.own.setdefault(body["of"], Centroids())
        part._fold(event)

    def _fold(self, event: Event) -> None:
        """Update settings, centroids and sizes from an event, and end removed clusters."""
        body = event.body
        self.fingerprint = body.get("fingerprint", self.fingerprint)
        self.centre = body.get("centre", self.centre)
        self.method = body.get("method", self.method)
        self.settings = dict(body.get("settings", self.settings))
        self.upto = body.get("upto", self.upto)
        looked: int = body.get("upto", self.looked)
        self.looked = body.get("looked", looked)
        for row in body.get("clusters", ()):
            cluster = self.all.get(row["id"])
            if cluster is None:
                cluster = Cluster(row["name"], b"", 0.0, 0, event.at, event.at)
                self.all[row["id"]] = cluster
            if "centroid" in row:
                cluster.centroid, cluster.radius, cluster.refined = (
                    row["centroid"],
                    row["radius"],
                    event.at,
                )
            cluster.size = row["size"]
        for id, into in body.get("gone", ()):
            cluster = self.all[id]
            cluster.ended, cluster.into, cluster.centroid = event.at, into, b""

    def shows(self, kind: str, body: Body, *, viewer: str, seen: bool) -> bool:
        """Return whether an event is about public clusters or about clusters of `viewer`."""
        return bool(body.get("of", viewer) == viewer)

    def dump(self) -> Any:
        """Return all clusters as plain values for a snapshot."""
        return {
            "fingerprint": self.fingerprint,
            "centre": self.centre,
            "method": self.method,
            "settings": self.settings,
            "upto": self.upto,
            "looked": self.looked,
            "clusters": [[id, *astuple(cluster)] for id, cluster in self.all.items()],
            **(
                {"own": {creator: part.dump() for creator, part in self.own.items()}}
                if self.own
                else {}
            ),
        }

    def load(self, dumped: Any) -> None:
        """Restore all clusters from the result of ``dump``."""
        self.fingerprint, self.centre = dumped["fingerprint"], dumped["centre"]
        self.method, self.settings = dumped["method"], dict(dumped["settings"])
        self.upto, self.looked = dumped["upto"], dumped["looked"]
        self.all = {id: Cluster(*fields) for id, *fields in dumped["clusters"]}
        for creator, part in dumped.get("own", {}).items():
            self.own[creator] = Centroids()
            self.own[creator].load(part)


# The decision when clusters are due for a refinement.
#
# A recall only increments a counter, so clustering costs a recall nothing. Upkeep calls ``is_refinement_due`` and
# writes an event of kind ``refine``, which resets the counter.


# The code of the relation in the edge columns.
_IN_CLUSTER = RELATIONS.index("in-cluster")


class Recalls(Projection):
    """The number of logged recalls since clusters were last refined."""

    name = "recalls"
    kinds = ("recall", "refine")
    dumped = Field("tuple", items=(NUMBER, MEMORY_ID))
    exported = False

    def __init__(self) -> None:
        self.since_refined = 0
        self.last: tuple[int, ...] = ()
        """The ids of the results of the last recall, best first. Empty after a refinement."""

    def fold(self, event: Event) -> None:
        """Apply an event: count a recall, or reset the count after a refinement."""
        if event.kind == "refine":
            self.since_refined, self.last = 0, ()
        else:
            self.since_refined, self.last = self.since_refined + 1, tuple(event.body["ids"])

    def dump(self) -> Any:
        """Return the number of recalls and the last results as plain values for a snapshot."""
        return [self.since_refined, list(self.last)]

    def load(self, dumped: Any) -> None:
        """Restore the number of recalls and the last results from the result of ``dump``."""
        self.since_refined, self.last = dumped[0], tuple(dumped[1])


def is_refinement_due(state: State, pack: Pack, *, spanning: bool = True) -> bool:
    """Return whether the clusters are due for refinement.

    Refinement is due after ``refine-every`` logged recalls. With `spanning`, it is also due if the last recall returned
    members of several clusters. A setting of 0 turns refinement off.
    """
    every, recalls = pack.count("refine-every"), state.projection(Recalls)
    return bool(every) and (
        recalls.since_refined >= every
        or (spanning and count_spanned_clusters(state, recalls.last) > 1)
    )


def count_spanned_clusters(state: State, ids: tuple[int, ...]) -> int:
    """Return the number of different clusters to which these memories belong."""
    crossings = state.edges.crossings(np.array(ids, dtype=np.int64) - 1)
    inside = crossings.outgoing & (state.edges.relation[crossings.edge] == _IN_CLUSTER)
    return len(np.unique(crossings.neighbour[inside]))


# Consolidation: the memories that each summary replaces, with their former status.


# The declared fields of a summary.
_OF = Field("cluster", held="reference", shared=True)
_WAS = mapping_field({"*": MEMORY_ID})


@dataclass(slots=True)
class Summary:
    """The memories that one summary replaces.

    Attributes
    ----------
    at
        The instant of the consolidation, in microseconds since 1970.
    by
        The kind of group: clusters or communities.
    of
        The name of the cluster or community.
    was
        The ids of the members, by their status before the consolidation.
    undone
        The instant at which the members were restored, or None while the summary is active.
    """

    at: int
    by: str
    of: str
    was: dict[str, list[int]]
    undone: int | None = None

    @property
    def members(self) -> list[int]:
        """The ids of the memories that the summary replaced, ascending."""
        return sorted(id for ids in self.was.values() for id in ids)


class Summaries(Projection):
    """All summaries, by the id of the summary memory."""

    name = "summaries"
    kinds = ("consolidate", "unconsolidate")
    events = (
        EventType(
            "consolidate",
            "Summaries were written for memories that have something in common.",
            {
                **ADDED,
                "pack": HASH,
                "by": WORD,
                "summaries": list_field(
                    mapping_field({"summary": MEMORY_ID, "of": _OF, "was": _WAS})
                ),
            },
            adds=True,
            replay="left-out",
        ),
        EventType(
            "unconsolidate",
            "A summary was undone, and its members are back.",
            {"summary": MEMORY_ID},
            replay="left-out",
        ),
    )
    dumped = list_field(MEMORY_ID, TIME, WORD, _OF, _WAS, TIME)

    def __init__(self) -> None:
        self.all: dict[int, Summary] = {}

    def fold(self, event: Event) -> None:
        """Apply an event: add its summaries, or mark a summary as undone."""
        if event.kind == "unconsolidate":
            self.all[event.body["summary"]].undone = event.at
            return
        for row in event.body.get("summaries", ()):
            was = {status: list(ids) for status, ids in row["was"].items()}
            self.all[row["summary"]] = Summary(event.at, event.body["by"], row["of"], was)

    def dump(self) -> Any:
        """Return all summaries as plain values for a snapshot."""
        return [[id, *astuple(summary)] for id, summary in self.all.items()]

    def load(self, dumped: Any) -> None:
        """Restore all summaries from the result of ``dump``."""
        self.all = {id: Summary(*fields) for id, *fields in dumped}
