"""The accessor that the index of a lab declares."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, construct

DECLARED = Declared(
    accessors={"index": construct("memlab.subjects.index.index:LabIndex", "store")},
)
"""The declaration that ``projections`` reads."""
