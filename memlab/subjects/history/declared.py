"""The accessors that history declares."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, bind

DECLARED = Declared(
    accessors={
        "at": bind("memlab.subjects.history.history:open_store_at", "store"),
        "viewed_by": bind("memlab.subjects.history.history:open_store_for"),
        "log": bind("memlab.subjects.history.history:build_log"),
    },
)
"""The declaration that ``projections`` reads."""
