"""The events of a review."""

from __future__ import annotations

from memlab.kernel.state import NUMBER, REASON, EventType, Field, listed

__all__ = ["EVENTS_OF_REVIEW", "FIELDS_OF_REVIEW"]

FIELDS_OF_REVIEW = {"restore": {"quarantine": NUMBER}}
"""The fields that a review writes into events of others: which quarantine was undone."""

EVENTS_OF_REVIEW = (
    EventType(
        "quarantine",
        "Memories that came from one place were set apart, and what they displaced came back.",
        {"reason": REASON, "was": listed(Field("values"), required=True)},
        replay="values",
    ),
)
