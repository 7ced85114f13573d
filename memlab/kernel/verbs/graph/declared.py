"""What graph declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared
from memlab.kernel.verbs.graph.tags import TagDescriptions

__all__ = ["DECLARED"]

DECLARED = Declared(
    projections=(TagDescriptions,),
)
