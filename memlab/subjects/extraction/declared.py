"""What extraction declares to a lab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, construct

if TYPE_CHECKING:
    from memlab.kernel.verbs.verbs import Verbs

__all__ = ["DECLARED"]


def _extract(verbs: Verbs) -> Any:
    from memlab.subjects.extraction.extraction import Extraction, where_of

    extraction: Extraction = verbs.component("extraction")

    def extract(
        messages: Any,
        role: str,
        model: Any,
        otherwise: Any,
        *,
        agent: str | None,
        **place: str | None,
    ) -> Any:
        return extraction.extract(messages, role, where_of(agent, **place), model, otherwise)

    return extract


DECLARED = Declared(
    hooks=(
        Hook(
            "extraction-dependents",
            "dependents",
            "memlab.subjects.extraction.rereading:ExtractedMemories",
        ),
        Hook("extraction-facts", "read-facts", "memlab.subjects.extraction.reading:facts_in"),
    ),
    accessors={
        "extraction": construct(
            "memlab.subjects.extraction.extraction:Extraction", "core", "remembering", "observing"
        ),
        "extract": _extract,
    },
)
