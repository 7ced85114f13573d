"""What feedback declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared
from memlab.kernel.verbs.feedback.gaps import Gaps
from memlab.kernel.verbs.feedback.judged import Judged
from memlab.kernel.verbs.feedback.last_shown import LastShown

__all__ = ["DECLARED"]

DECLARED = Declared(
    projections=(
        Gaps,
        Judged,
        LastShown,
    ),
)
