"""The hooks and accessors that extraction declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memlab.kernel.hooks import Hook
from memlab.kernel.verbs.declared import Declared, construct

if TYPE_CHECKING:
    from memlab.kernel.verbs.verbs import Verbs


def _build_extract(verbs: Verbs) -> Any:
    """Return the function that ``lab.agents.extract`` calls."""
    from memlab.subjects.extraction.extraction import Extraction, make_scope

    extraction: Extraction = verbs.component("extraction")

    def extract(
        messages: Any,
        role: str,
        model: Any,
        otherwise: Any,
        *,
        agent: str | None,
        **scope: str | None,
    ) -> Any:
        """Return proposals for messages in the scope of an agent, project and session."""
        return extraction.extract(messages, role, make_scope(agent, **scope), model, otherwise)

    return extract


# Functions are named by strings, so that their modules are imported on first use.
DECLARED = Declared(
    hooks=(
        Hook(
            "extraction-dependents",
            "dependents",
            "memlab.subjects.extraction.rereading:ExtractedMemories",
        ),
        Hook("extraction-facts", "read-facts", "memlab.subjects.extraction.reading:read_facts"),
    ),
    accessors={
        "extraction": construct(
            "memlab.subjects.extraction.extraction:Extraction", "core", "remembering", "observing"
        ),
        "extract": _build_extract,
    },
)
