"""What history declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, bound

__all__ = ["DECLARED"]


DECLARED = Declared(
    accessors={
        "at": bound("memlab.subjects.history.history:store_at", "store"),
        "viewed_by": bound("memlab.subjects.history.history:store_viewed_by"),
        "log": bound("memlab.subjects.history.history:happened"),
    },
)
