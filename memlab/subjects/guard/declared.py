"""The projection and the hook of guards."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, bind
from memlab.subjects.guard.register import Guards

DECLARED = Declared(
    projections=(Guards,),
    hooks=(Hook("guard-judged", "judged", "memlab.subjects.guard.rollback:roll_back"),),
    accessors={"guard": bind("memlab.subjects.guard.guard:guard_pack", "lab", "core")},
)
"""The declaration that ``projections`` reads."""
