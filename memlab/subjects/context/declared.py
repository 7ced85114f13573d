"""What context declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, made_of

__all__ = ["DECLARED"]


DECLARED = Declared(
    kept={"contexts": made_of("memlab.subjects.context.context:Contexts", "core", "questions")},
)
