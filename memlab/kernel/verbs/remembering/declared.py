"""The projections that remembering declares."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared
from memlab.kernel.verbs.tellings import Tellings

DECLARED = Declared(projections=(Tellings,))
"""The declaration that the module ``projections`` registers."""
