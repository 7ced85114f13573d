"""What turns and relationships declare to a lab."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, construct
from memlab.subjects.agents.relationships import Relationships

__all__ = ["DECLARED"]

DECLARED = Declared(
    projections=(Relationships,),
    hooks=(
        Hook(
            "agents-feedback", "feedback", "memlab.subjects.agents.relationships:fields_of_feedback"
        ),
    ),
    lasting={
        "turns": construct("memlab.subjects.agents.turns:BegunTurns"),
        "verifying": construct("memlab.subjects.agents.verifying:Verifying", "core"),
    },
)
