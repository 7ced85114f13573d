"""The projections and accessors that attribution declares."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, construct
from memlab.subjects.attribution.known import Calibrated, Credited

DECLARED = Declared(
    projections=(
        Calibrated,
        Credited,
    ),
    hooks=(Hook("answers", "read-answers", "memlab.subjects.attribution.answers:AnswerReader"),),
    accessors={
        "credits": construct(
            "memlab.subjects.attribution.attribution:LabCredits", "core", "attributions"
        ),
        "attributions": construct("memlab.subjects.attribution.attribution:Attributions", "core"),
    },
)
"""The declaration that ``projections`` reads."""
