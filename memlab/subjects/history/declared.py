"""What history declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, bind

__all__ = ["DECLARED"]


DECLARED = Declared(
    accessors={
        "at": bind("memlab.subjects.history.history:store_at", "store"),
        "viewed_by": bind("memlab.subjects.history.history:store_viewed_by"),
        "log": bind("memlab.subjects.history.history:happened"),
    },
)
