"""The projections and events of a lab, each declared by its subject. Importing this module declares them."""

from __future__ import annotations

from memlab.kernel.state import Projection, State, declare_events, declare_projections, extend_event, with_extended
from memlab.kernel.verbs.feedback.gaps import Gaps
from memlab.kernel.verbs.feedback.judged import Judged
from memlab.kernel.verbs.feedback.last_shown import LastShown
from memlab.kernel.verbs.graph.tags import TagDescriptions
from memlab.kernel.verbs.linking.waiting import Waiting
from memlab.kernel.verbs.remembering.tellings import Tellings
from memlab.subjects.agents.relationships import Relationships
from memlab.subjects.agents.switch import Consents, Switches
from memlab.subjects.attribution.known import Calibrated, Credited
from memlab.subjects.clusters.centroids import Centroids
from memlab.subjects.clusters.due import Recalls
from memlab.subjects.consolidation.summaries import Summaries
from memlab.subjects.context.injected import Injected
from memlab.subjects.facts.tellings import FactTimes
from memlab.subjects.io.synced import Synced
from memlab.subjects.modules.module_map import ModuleMaps
from memlab.subjects.operations import EVENTS_OF_OPERATIONS
from memlab.subjects.retention.events import EVENTS_OF_RETENTION
from memlab.subjects.review.events import EVENTS_OF_REVIEW, FIELDS_OF_REVIEW

__all__ = ["PROJECTIONS", "new_state"]

PROJECTIONS: tuple[type[Projection], ...] = (
    Calibrated,
    Centroids,
    Consents,
    Credited,
    FactTimes,
    Gaps,
    Injected,
    Judged,
    LastShown,
    ModuleMaps,
    Recalls,
    Relationships,
    Summaries,
    Switches,
    Synced,
    TagDescriptions,
    Tellings,
    Waiting,
)

declare_projections(PROJECTIONS)
declare_events((*EVENTS_OF_OPERATIONS, *EVENTS_OF_RETENTION, *EVENTS_OF_REVIEW))
for _kind, _fields in FIELDS_OF_REVIEW.items():
    extend_event(_kind, _fields)


def new_state() -> State:
    """A state before the first event."""
    return State(with_extended(PROJECTIONS))
