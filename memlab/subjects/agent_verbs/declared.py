"""What the verbs of agents declare to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, bound, made_of

__all__ = ["DECLARED"]


_AGENTS = ("core", "remembering", "questions", "verifying", "turns", "extraction")
_DAILY = ("remembering", "questions", "judgements", "contexts", "corrections")

DECLARED = Declared(
    accessors={
        "agents": made_of(
            "memlab.subjects.agent_verbs.agents:LabAgents", "core", *_DAILY[:2], "verifying", "turns", "extraction"
        ),
        "agent": bound("memlab.subjects.agent_verbs.agents:agent_named", "core", "agents", *_DAILY, "extraction"),
    },
)
