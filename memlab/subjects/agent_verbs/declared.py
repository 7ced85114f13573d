"""The accessor ``lab.agents``."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, construct

# The constructor arguments of ``LabAgents``.
_NEEDS = ("verbs", "observing", "verifying", "turns", "extraction")

DECLARED = Declared(
    accessors={"agents": construct("memlab.subjects.agent_verbs.agents:LabAgents", *_NEEDS)}
)
"""The declaration that ``projections`` reads."""
