"""The projections of a lab, each declared by its subject."""

from __future__ import annotations

from memlab.state import Projection, State
from memlab.subjects.agents.relationships import Relationships
from memlab.subjects.agents.switch import Consents, Switches
from memlab.subjects.attribution.known import Calibrated, Credited
from memlab.subjects.clusters.centroids import Centroids
from memlab.subjects.clusters.due import Recalls
from memlab.subjects.consolidation.summaries import Summaries
from memlab.subjects.context.injected import Injected
from memlab.subjects.facts.tellings import FactTimes
from memlab.subjects.feedback.gaps import Gaps
from memlab.subjects.feedback.judged import Judged
from memlab.subjects.feedback.last_shown import LastShown
from memlab.subjects.graph.tags import TagDescriptions
from memlab.subjects.io.synced import Synced
from memlab.subjects.linking.waiting import Waiting
from memlab.subjects.modules.module_map import ModuleMaps
from memlab.subjects.remembering.tellings import Tellings

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


def new_state() -> State:
    """A state before the first event."""
    return State(PROJECTIONS)
