"""Clusters as they stand: names that stay, centroids that move, and which memories were looked at.

Who belongs to a cluster is given by edges ``in-cluster`` to the node of its name. A centroid is a direction among the
vectors of one embedder: where the lab has another by now, see ``Centroids.fingerprint``, the clusters gain nobody and
are not refined; finding them again gives each its old name where its members stay together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from memlab.kernel.journal import Event
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

__all__ = ["Centroids", "Cluster", "Recalls", "Summaries", "Summary", "refine_due", "spanned"]


_NAME, _BYTES = Field("cluster", held="reference", shared=True), Field("bytes")
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
    """One cluster: ``centroid`` is f32[dim] as bytes, ``radius`` a cosine distance, ``size`` its members when it was
    last ``refined``. One that ``ended`` has no centroid; ``into`` is the cluster that it merged into.
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
    """The register of clusters, by number from 1. A number and a name are never given twice.

    An event tells what is new of each of its ``clusters``: a number that is not known yet is a new cluster. Clusters of
    what is private are a creator's ``own``: such an event says whose, as ``of``.
    """

    name: ClassVar[str] = "clusters"
    kinds: ClassVar[tuple[str, ...]] = ("cluster", "refine")
    events: ClassVar[tuple[EventType, ...]] = (
        EventType("cluster", "Clusters were searched for, or gained members.", _FIELDS),
        EventType("refine", "Clusters were moved, merged, parted or ended.", _FIELDS),
    )
    dumped: ClassVar[Field] = mapping_field(
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
        """Clusters were searched for among the memories up to this id."""
        self.looked = 0
        """And those up to this id may have joined since."""
        self.all: dict[int, Cluster] = {}
        self.own: dict[str, Centroids] = {}
        """Those of what is private, by its creator; each has its own numbers apart from all others."""

    def part(self, audience: str) -> Centroids:
        """The clusters of what this audience alone sees; "" is everyone."""
        return self.own.get(audience) or (Centroids() if audience else self)

    @property
    def every(self) -> dict[int, Cluster]:
        """All clusters, of everyone and of those who keep something private."""
        return self.all | {
            id: cluster for part in self.own.values() for id, cluster in part.all.items()
        }

    @property
    def live(self) -> dict[int, Cluster]:
        """Those that are still there."""
        return {id: cluster for id, cluster in self.all.items() if cluster.ended is None}

    def fold(self, event: Event) -> None:
        body = event.body
        part = self if "of" not in body else self.own.setdefault(body["of"], Centroids())
        part._fold(event)

    def _fold(self, event: Event) -> None:
        body = event.body
        self.fingerprint = body.get("fingerprint", self.fingerprint)
        self.centre = body.get("centre", self.centre)
        self.method = body.get("method", self.method)
        self.settings = dict(body.get("settings", self.settings))
        self.upto = body.get("upto", self.upto)
        self.looked = body.get("looked", body.get("upto", self.looked))
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

    def shows(self, kind: str, body: dict[str, Any], *, viewer: str, seen: bool) -> bool:
        return bool(body.get("of", viewer) == viewer)

    def dump(self) -> Any:
        return {
            "fingerprint": self.fingerprint,
            "centre": self.centre,
            "method": self.method,
            "settings": self.settings,
            "upto": self.upto,
            "looked": self.looked,
            "clusters": [
                [
                    id,
                    one.name,
                    one.centroid,
                    one.radius,
                    one.size,
                    one.created,
                    one.refined,
                    one.ended,
                    one.into,
                ]
                for id, one in self.all.items()
            ],
            **(
                {"own": {creator: part.dump() for creator, part in self.own.items()}}
                if self.own
                else {}
            ),
        }

    def load(self, dumped: Any) -> None:
        self.fingerprint, self.centre = dumped["fingerprint"], dumped["centre"]
        self.method, self.settings = dumped["method"], dict(dumped["settings"])
        self.upto, self.looked = dumped["upto"], dumped["looked"]
        self.all = {id: Cluster(*fields) for id, *fields in dumped["clusters"]}
        for creator, part in dumped.get("own", {}).items():
            self.own[creator] = Centroids()
            self.own[creator].load(part)


# When clusters are due to be refined.
#
# Recalls only count, which costs them nothing, and whoever keeps clusters asks
# ``refine_due`` and, once they are refined, writes an event of kind ``refine``, from which the count restarts.


_IN_CLUSTER = RELATIONS.index("in-cluster")


class Recalls(Projection):
    """A count of logged recalls, which an event of kind ``refine`` sets back to nothing."""

    name: ClassVar[str] = "recalls"
    kinds: ClassVar[tuple[str, ...]] = ("recall", "refine")
    dumped: ClassVar[Field] = Field("tuple", items=(NUMBER, MEMORY_ID))
    exported: ClassVar[bool] = False

    def __init__(self) -> None:
        self.since_refined = 0
        self.last: tuple[int, ...] = ()
        """The ids that the last recall showed, best first; none once clusters were refined."""

    def fold(self, event: Event) -> None:
        if event.kind == "refine":
            self.since_refined, self.last = 0, ()
        else:
            self.since_refined, self.last = self.since_refined + 1, tuple(event.body["ids"])

    def dump(self) -> Any:
        return [self.since_refined, list(self.last)]

    def load(self, dumped: Any) -> None:
        self.since_refined, self.last = dumped[0], tuple(dumped[1])


def refine_due(state: State, pack: Pack, *, spanning: bool = True) -> bool:
    """Whether clusters are to be refined: ``refine-every`` recalls were logged since they last were, or, if
    ``spanning`` counts, what the last recall showed spans clusters. Never where the setting is 0.
    """
    every, recalls = pack.count("refine-every"), state.projection(Recalls)
    return bool(every) and (
        recalls.since_refined >= every or (spanning and spanned(state, recalls.last) > 1)
    )


def spanned(state: State, ids: tuple[int, ...]) -> int:
    """How many clusters these memories belong to."""
    met = state.edges.crossings(np.array(ids, dtype=np.int64) - 1)
    inside = met.outgoing & (state.edges.relation[met.edge] == _IN_CLUSTER)
    return len(np.unique(met.neighbour[inside]))


# What consolidation made: which memories each summary replaces, and what status they had before.


_OF = Field("cluster", held="reference", shared=True)
_WAS = mapping_field({"*": MEMORY_ID})


@dataclass(slots=True)
class Summary:
    """What one summary replaces: ``was`` has the members' ids by the status that they had.

    ``by`` says what the members had in common (clusters or communities) and ``of`` which of these it was. ``undone`` is
    the instant at which they were restored.
    """

    at: int
    by: str
    of: str
    was: dict[str, list[int]]
    undone: int | None = None

    @property
    def members(self) -> list[int]:
        """The ids of the members, ascending."""
        return sorted(id for ids in self.was.values() for id in ids)


class Summaries(Projection):
    """The register of summaries, by the id of the memory that is one."""

    name: ClassVar[str] = "summaries"
    kinds: ClassVar[tuple[str, ...]] = ("consolidate", "unconsolidate")
    events: ClassVar[tuple[EventType, ...]] = (
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
    dumped: ClassVar[Field] = list_field(MEMORY_ID, TIME, WORD, _OF, _WAS, TIME)

    def __init__(self) -> None:
        self.all: dict[int, Summary] = {}

    def fold(self, event: Event) -> None:
        if event.kind == "unconsolidate":
            self.all[event.body["summary"]].undone = event.at
            return
        for row in event.body.get("summaries", ()):
            was = {status: list(ids) for status, ids in row["was"].items()}
            self.all[row["summary"]] = Summary(event.at, event.body["by"], row["of"], was)

    def dump(self) -> Any:
        return [[id, one.at, one.by, one.of, one.was, one.undone] for id, one in self.all.items()]

    def load(self, dumped: Any) -> None:
        self.all = {id: Summary(*fields) for id, *fields in dumped}
