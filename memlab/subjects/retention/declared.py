"""What retention declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, made_of
from memlab.subjects.retention.events import EVENTS_OF_RETENTION

__all__ = ["DECLARED"]


DECLARED = Declared(
    events=EVENTS_OF_RETENTION,
    accessors={"upkeep": made_of("memlab.subjects.retention.retention:LabUpkeep", "core", "scheduler")},
    kept={"scheduler": made_of("memlab.subjects.retention.schedule:Scheduler", "store")},
)
