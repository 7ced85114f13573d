"""The projections that recalling declares."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared
from memlab.kernel.verbs.recalling.injected import Injected

DECLARED = Declared(
    projections=(Injected,),
)
"""The declaration that the module ``projections`` registers."""
