"""The hooks and accessors that observing declares."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, construct

DECLARED = Declared(
    hooks=(Hook("reading-tags", "describe-text", "memlab.subjects.reading.tags:describing"),),
    accessors={
        "observing": construct(
            "memlab.subjects.observing.observing:Observing", "core", "remembering"
        )
    },
)
"""The declaration that ``projections`` reads."""
