"""What purge declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, bind

__all__ = ["DECLARED"]


DECLARED = Declared(
    accessors={"purge": bind("memlab.subjects.purge.purge:purge", "core")},
)
