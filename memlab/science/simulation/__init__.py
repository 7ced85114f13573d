"""Simulated users with a ground truth: worlds, runs and true values of policies.

The ground truth never reads a feature of a policy. The usefulness of a memory follows from the
facts of the world and their times; policies see texts, times, metadata and logged feedback.

>>> from memlab.science.simulation import WORLDS, live, trial
>>> life = live(WORLDS["differs"])                                           # doctest: +SKIP
>>> life.truth("memlab"), life.truth("workbench")                            # doctest: +SKIP
>>> trial(["memlab", "workbench"], WORLDS["differs"])                        # doctest: +SKIP
"""

from typing import Any

from memlab.errors import missing_name
from memlab.science.simulation._events import (
    Event,
    MessageEvent,
    QuestionEvent,
    Reactions,
    Script,
    Transcript,
    User,
    from_conversations,
)
from memlab.science.simulation._life import Life, live
from memlab.science.simulation._trial import Trial, trial
from memlab.science.simulation._world import FRESH, HABIT, PROBING, SURE, WORLDS, Phase, World

__all__ = [
    "FRESH",
    "HABIT",
    "PROBING",
    "SURE",
    "WORLDS",
    "Event",
    "Life",
    "MessageEvent",
    "Phase",
    "QuestionEvent",
    "Reactions",
    "Script",
    "Transcript",
    "Trial",
    "User",
    "World",
    "from_conversations",
    "live",
    "trial",
]

_REMOVED = {"SPARSE": "a pack of your own that inherits memlab, with (setting probe-rate 0.02)"}
"""Removed public names, with what to use instead."""


def __getattr__(name: str) -> Any:
    """Raise an AttributeError that names the replacement of a removed name."""
    raise missing_name(__name__, name, _REMOVED)
