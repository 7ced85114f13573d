"""What the verbs of agents declare to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, made_of

__all__ = ["DECLARED"]

_NEEDS = ("verbs", "observing", "verifying", "turns", "extraction")

DECLARED = Declared(
    accessors={"agents": made_of("memlab.subjects.agent_verbs.agents:LabAgents", *_NEEDS)}
)
