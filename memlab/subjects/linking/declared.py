"""The projections, services and hooks that linking declares."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, construct
from memlab.subjects.linking.waiting import Waiting

# Functions are named by strings, so that their modules are imported on first use.
DECLARED = Declared(
    projections=(Waiting,),
    lasting={"linker": construct("memlab.subjects.linking.linking:Linker", "core")},
    hooks=(Hook("linking-compare", "compare", "memlab.subjects.linking.linking:Comparing"),),
)
