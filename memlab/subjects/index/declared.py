"""What index declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, made_of

__all__ = ["DECLARED"]


DECLARED = Declared(
    accessors={"index": made_of("memlab.subjects.index.index:LabIndex", "store")},
)
