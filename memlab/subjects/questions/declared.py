"""The projection and the accessors of labelled questions."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, bind, construct
from memlab.subjects.questions.register import Labels

# Classes are named as strings, so that their modules are imported at first use. The component "questions" is the
# kernel's verb ``recall``.
DECLARED = Declared(
    projections=(Labels,),
    accessors={
        "labels": construct("memlab.subjects.questions.questions:LabQuestions", "lab", "core"),
        "score": bind("memlab.subjects.questions.scoring:score", "lab"),
    },
)
"""The declaration that ``projections`` reads."""
