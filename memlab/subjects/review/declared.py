"""Events and accessors of review."""

from __future__ import annotations

from memlab.kernel.state import NUMBER, REASON, EventType, Field, list_field
from memlab.kernel.verbs.declared import Declared, construct

# Names of classes are strings, so that their modules are imported on first use.
DECLARED = Declared(
    events=(
        EventType(
            "quarantine",
            "Memories of one origin left recall, and memories that only they superseded came back.",
            {"reason": REASON, "was": list_field(Field("values"), required=True)},
            replay="values",
        ),
    ),
    # the event of the quarantine that a restoring event undoes
    fields={"restore": {"quarantine": NUMBER}},
    accessors={
        "review": construct("memlab.subjects.review.review:LabReview", "core", "corrections")
    },
)
