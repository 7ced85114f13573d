"""The events of operations."""

from __future__ import annotations

from memlab.kernel.state import HASH, MEMORY_ID, WORD, EventType

__all__ = ["EVENTS_OF_OPERATIONS"]

EVENTS_OF_OPERATIONS = (
    EventType("run", "A program of operations was run.", {"memory": MEMORY_ID, "operations": WORD, "hash": HASH}),
)
