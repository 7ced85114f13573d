"""The events of upkeep."""

from __future__ import annotations

from memlab.kernel.state import HASH, EventType

__all__ = ["EVENTS_OF_RETENTION"]

EVENTS_OF_RETENTION = (
    EventType("maintain", "Time changed memories or removed edges, as the policies of the pack say.", {"pack": HASH}),
)
