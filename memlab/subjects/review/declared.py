"""What review declares to a lab."""

from __future__ import annotations

from memlab.kernel.verbs.declared import Declared, made_of
from memlab.subjects.review.events import EVENTS_OF_REVIEW, FIELDS_OF_REVIEW

__all__ = ["DECLARED"]


DECLARED = Declared(
    events=EVENTS_OF_REVIEW,
    fields=FIELDS_OF_REVIEW,
    accessors={"review": made_of("memlab.subjects.review.review:LabReview", "core", "corrections")},
)
