"""What linking declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared
from memlab.kernel.verbs.linking.fact_times import FactTimes
from memlab.kernel.verbs.linking.waiting import Waiting

__all__ = ["DECLARED"]

DECLARED = Declared(
    projections=(
        FactTimes,
        Waiting,
    ),
)
