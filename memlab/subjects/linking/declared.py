"""What linking declares to a lab."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, construct
from memlab.subjects.linking.waiting import Waiting

__all__ = ["DECLARED"]

DECLARED = Declared(
    projections=(Waiting,),
    lasting={"linker": construct("memlab.subjects.linking.linking:Linker", "core")},
    hooks=(Hook("linking-compare", "compare", "memlab.subjects.linking.linking:Comparing"),),
)
