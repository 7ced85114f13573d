"""An agent's life with known truth: worlds, the life in a lab, and what every memory was really worth.

The truth never reads a feature of a policy. What is useful follows from the world's own facts and their times; policies
see texts, times, metadata and logged feedback.

    from memlab.science.simulation import WORLDS, live
    life = live(WORLDS["differs"])
    life.truth("memlab"), life.truth("workbench")
    life.slates                                     # what an evaluation gets
    trial(["memlab", "workbench"], WORLDS["differs"])   # what each would live to earn
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
from memlab.science.simulation._world import ASPECTS as ASPECTS  # for tests
from memlab.science.simulation._world import FRESH, HABIT, PROBING, SURE, WORLDS, Phase, World
from memlab.science.simulation._world import named as named  # for tests

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
"""Public names of earlier versions, and what to use instead."""


def __getattr__(name: str) -> Any:
    raise missing_name(__name__, name, _REMOVED)
