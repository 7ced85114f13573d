"""What the verbs of agents declare to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, construct

__all__ = ["DECLARED"]

_NEEDS = ("verbs", "observing", "verifying", "turns", "extraction")

DECLARED = Declared(
    accessors={"agents": construct("memlab.subjects.agent_verbs.agents:LabAgents", *_NEEDS)}
)
