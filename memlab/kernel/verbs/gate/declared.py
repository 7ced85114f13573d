"""What gate declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared
from memlab.kernel.verbs.gate.switch import Consents, Switches

__all__ = ["DECLARED"]

DECLARED = Declared(
    projections=(
        Consents,
        Switches,
    ),
)
