"""Declaration of the component ``contexts``, which builds prompt contexts."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, construct

DECLARED = Declared(
    lasting={
        "contexts": construct("memlab.subjects.context.context:Contexts", "core", "questions")
    },
)
"""The declaration that ``projections`` reads."""
