"""The components, hooks and projections of turns and relationships."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, construct
from memlab.subjects.agents.relationships import Relationships

DECLARED = Declared(
    projections=(Relationships,),
    hooks=(
        Hook(
            "agents-feedback",
            "feedback",
            "memlab.subjects.agents.relationships:make_feedback_fields",
        ),
    ),
    lasting={
        "turns": construct("memlab.subjects.agents.turns:OpenTurns"),
        "verifying": construct("memlab.subjects.agents.verifying:Verifying", "core"),
    },
)
"""The declaration that ``projections`` reads."""
