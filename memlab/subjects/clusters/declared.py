"""The declarations of the subject clusters: projections, hooks and accessors."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, construct
from memlab.subjects.clusters.registers import Centroids, Recalls, Summaries

# Functions are named as strings, so that their modules are imported at first use.
DECLARED = Declared(
    projections=(
        Centroids,
        Recalls,
        Summaries,
    ),
    hooks=(
        Hook("clusters-turn", "after-turn", "memlab.subjects.clusters.clusters:refine_after_turn"),
        Hook("clusters-upkeep", "upkeep", "memlab.subjects.clusters.clusters:maintain_clusters"),
        Hook(
            "consolidation-dependents",
            "dependents",
            "memlab.subjects.clusters.consolidation:Quoting",
        ),
        Hook(
            "consolidation-stand-ins",
            "stand-ins",
            "memlab.subjects.clusters.grouping:summaries_by_id",
        ),
    ),
    accessors={
        "clusters": construct("memlab.subjects.clusters.clusters:LabClusters", "core"),
        "consolidation": construct(
            "memlab.subjects.clusters.consolidation:LabConsolidation", "core"
        ),
        "graph": construct("memlab.subjects.clusters.clusters:LabGraph", "core", "linker"),
    },
)
