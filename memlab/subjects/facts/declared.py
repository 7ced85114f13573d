"""Projections, hooks and accessors of facts and entities."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, construct
from memlab.subjects.fact_rows import FactTimes

# Names of functions are strings, so that their modules are imported on first use.
DECLARED = Declared(
    projections=(FactTimes,),
    hooks=(
        Hook(
            "facts-succession", "facts-stored", "memlab.subjects.facts.lifecycle:decide_succession"
        ),
    ),
    accessors={
        "facts": construct(
            "memlab.subjects.facts.facts:LabFacts", "core", "remembering", "questions"
        ),
        "entities": construct("memlab.subjects.facts.entities:LabEntities", "core"),
    },
)
