"""``lab.graph`` with the structure of it all."""

from __future__ import annotations

from memlab.kernel.base.arguments import Seed, checked
from memlab.kernel.base.clock import When
from memlab.kernel.verbs.graph import GraphVerbs
from memlab.subjects.clusters.clusters import LabClusters
from memlab.subjects.clusters.stats import Stats, stats

__all__ = ["LabGraph"]


class LabGraph(GraphVerbs):
    """``lab.graph``: link memories, follow their edges, and see what they are as a whole."""

    @property
    def clusters(self) -> LabClusters:
        """Find, refine and list clusters."""
        clusters: LabClusters = self._core.made("clusters")
        return clusters

    @checked
    def stats(self, *, at: When | None = None, seed: Seed = 0, progress: bool = True) -> Stats:
        """Kinds, temporal layers, clusters, communities, bridges and key memories, as frames and one figure."""
        with self._core.reading() as state:
            return stats(state, self._core.pack, now=self._core.instant(at), seed=seed, progress=progress)
