"""Clusters and summaries: what memories have in common, and one that stands for many."""

from __future__ import annotations

from typing import Annotated

import polars as pl

from memlab.arguments import Seed, Within, checked
from memlab.errors import ReadOnlyLab, UnknownName
from memlab.lab._base import LabBase, MemoryLike
from memlab.lab._clustering import Clustered, cluster, refine
from memlab.lab._consolidating import Consolidated, Summarise, consolidate, summaries_frame
from memlab.lab._results import Memory
from memlab.life import Grouping, clusters_frame, unconsolidated

__all__ = ["LabClusters"]


class LabClusters(LabBase):
    """``cluster``, ``clusters``, ``refine``; ``consolidate``, ``unconsolidate``, ``summaries``."""

    @checked
    def cluster(self, *, min_size: Annotated[int, Within(2)] | None = None, seed: Seed = 0) -> Clustered:
        """Find clusters among the memories that take part in recall, by HDBSCAN over their vectors; one event.

        Each memory of a cluster is joined to the cluster's node by an edge ``in-cluster``, as heavy as the cosine to
        the centroid; packs that pass over it (cascade) find through it what shares no word with the question. Clusters
        whose members stay together keep their number and name, also where the lab was given another embedder
        (``reembed=True``): until this is called, the clusters of the old one gain nobody and are not refined.
        ``min_size`` is the least size of a cluster, a fifth of the square root of all unless given. A second call finds
        the same, and writes nothing.

        Above 10,000 memories that many are drawn by ``seed``, and the others join what they are near. Others read and
        write meanwhile. CPU: 2 s of 10,000 memories, 4 s of 100,000. Raises ReadOnlyLab, and InputError for min_size.

        >>> lab.cluster().frame                                                            # doctest: +SKIP
        """
        return cluster(self._store, self._store.clock(), min_size=min_size, seed=seed)

    @property
    def clusters(self) -> pl.DataFrame:
        """The clusters as they are: cluster (number), name, members, radius, created, refined; the largest first."""
        with self._reading() as state:
            return clusters_frame(state)

    def refine(self) -> Clustered:
        """Let clusters follow what they hold: what is new and near joins, centroids move to the mean of their members,
        near clusters merge, and empty ones go.

        The pack's ``cluster-closeness`` says how near (0: nothing joins), ``cluster-merge`` what merges. Upkeep
        (``maintain``, ``schedule``) does this when it is due: after ``refine-every`` recalls, or when the last one
        showed memories of several clusters. A recall itself is not slowed by it: it only counts. Raises ReadOnlyLab.
        """
        return refine(self._store, self._store.clock())

    @checked
    def consolidate(
        self,
        *,
        older_than_days: Annotated[float, Within(0)] | None = None,
        keep: Annotated[int, Within(0)] | None = None,
        summarise: Summarise | None = None,
        project: str | None = None,
        by: Grouping = "clusters",
        seed: Seed = 0,
        dry_run: bool = False,
    ) -> Consolidated:
        """Let one summary stand for many old memories of a cluster, or of a community of linked ones; one event.

        The pack's ``consolidate`` policy says which memories may go: by default what merely happened, was hardly
        used, and not for ``older_than_days`` (else the setting ``consolidate-days``). Of each group that the same
        people may see, the ``keep`` (``consolidate-keep``) most important stay as they are, and the others, at least
        ``consolidate-least``, become one memory of kind "summary" in their place. They stay, with the status
        "consolidated", out of recall, and the summary leads to them by edges ``derived-from``. A summary is never
        wider than its members: project, scope, visibility, branch, season and creator are theirs.

        Without ``summarise`` a summary consists of the members' own sentences, the most telling within
        ``summary-tokens``. ``summarise`` takes the members' texts, the oldest first, and returns a text; it goes
        through the privacy gate. It is called outside of any lock, and what it raises ends the call with nothing
        written.

        Importance is the greatest of the members', confidence the least; recalls, successes and failures are summed;
        it is dated as its newest member. A second call writes nothing. Whether a summary may go into another one is up
        to the policy; the shipped ones say no.

        Clusters are found first (as by ``cluster``) where they have not seen all that may go. With ``dry_run`` nothing
        is written. CPU, clusters aside: 1.5 s of 10,000 memories, 10 s of 100,000, of which most is embedding each
        sentence. Raises ReadOnlyLab, UnknownName for a project or ``by``, InputError for other values.

        >>> lab.consolidate(older_than_days=30, dry_run=True).frame                        # doctest: +SKIP
        """
        if project is not None:
            with self._reading() as state:
                known = state.names["project"]
                if known.code(project) < 0:
                    raise UnknownName("project", project, known.vocabulary)
        return consolidate(
            self._store,
            self._store.clock(),
            older_than_days=older_than_days,
            keep=keep,
            summarise=summarise,
            project=project,
            by=by,
            seed=seed,
            dry_run=dry_run,
        )

    @checked
    def unconsolidate(self, summary: MemoryLike) -> Memory:
        """Undo one consolidation: the members get back the status that they had, and the summary is forgotten.

        What has left it since (restored, deleted, purged) stays as it is. Recalls and feedback that the summary got are
        its own. InputError for a memory that is no summary, or stands for nobody any more, and for a summary that is
        part of another: undo that first.
        """
        if self._store.journal.read_only:
            raise ReadOnlyLab(f"{self._store.where} was opened with read_only=True.")
        with self._store.writing() as tx:
            now, row = self._store.clock(), self._row(summary)
            change = unconsolidated(self._store.state, row, now)
            tx.event("unconsolidate", {"summary": row + 1, **change.body()}, at=now)
        return self[row + 1]

    def summaries(self) -> pl.DataFrame:
        """What consolidation made: memory_id, of, by, count, members, at, undone (null: it stands), status, text."""
        with self._reading() as state:
            return summaries_frame(state)
