"""Events, accessors and services of upkeep."""

from __future__ import annotations

from memlab.kernel.state import HASH, EventType
from memlab.kernel.verbs.declared import Declared, construct

# Names of classes are strings, so that their modules are imported on first use.
DECLARED = Declared(
    events=(
        EventType(
            "maintain",
            "Upkeep changed statuses or labels, or removed edges, as the pack's policies decided.",
            {"pack": HASH},
        ),
    ),
    accessors={
        "upkeep": construct("memlab.subjects.retention.retention:LabUpkeep", "core", "scheduler")
    },
    lasting={"scheduler": construct("memlab.subjects.retention.retention:Scheduler", "store")},
)
