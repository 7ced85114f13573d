"""What remembering declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared
from memlab.kernel.verbs.tellings import Tellings

__all__ = ["DECLARED"]

DECLARED = Declared(projections=(Tellings,))
