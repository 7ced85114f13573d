"""What operations declare to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, made_of
from memlab.subjects.operations.events import EVENTS_OF_OPERATIONS

__all__ = ["DECLARED"]


DECLARED = Declared(
    events=EVENTS_OF_OPERATIONS,
    accessors={
        "keeping": made_of("memlab.subjects.operations.keeping:LabKeeping", "store"),
        "operations": made_of("memlab.subjects.operations.operations:LabOperations", "lab", "core"),
    },
)
