"""The declarations of the subject programs: operations, adapting policies and watched files."""

from __future__ import annotations

from memlab.kernel.state import HASH, MEMORY_ID, WORD, EventType
from memlab.kernel.verbs.declared import Declared, construct

# Functions are named as strings, so that their modules are imported at first use.
DECLARED = Declared(
    events=(
        EventType(
            "run",
            "A program of operations was run.",
            {"memory": MEMORY_ID, "operations": WORD, "hash": HASH},
        ),
    ),
    accessors={
        "operations": construct("memlab.subjects.programs.operations:LabOperations", "lab", "core")
    },
    lasting={
        "falls": construct("memlab.subjects.programs.adapting:FallWatch", "store"),
        "watches": construct("memlab.subjects.programs.watch:Watches", "core"),
    },
)
