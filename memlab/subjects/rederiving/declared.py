"""What the rereading of edited texts declares to a lab."""

from __future__ import annotations

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared

__all__ = ["DECLARED"]

DECLARED = Declared(
    hooks=(
        Hook("rederive-fields", "rederive", "memlab.subjects.rederiving.rederiving:rederive"),
        Hook("retell-facts", "retell", "memlab.subjects.rederiving.rederiving:retold"),
    ),
)
