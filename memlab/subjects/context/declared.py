"""What context declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, construct

__all__ = ["DECLARED"]


DECLARED = Declared(
    lasting={
        "contexts": construct("memlab.subjects.context.context:Contexts", "core", "questions")
    },
)
