"""The version of an event's body: the field that holds it, and its check."""

from __future__ import annotations

from memlab.errors import NewerLab
from memlab.kernel.journal._event import Event

__all__ = ["FORMAT", "check_event_format"]

FORMAT = "format"
"""The field of a body that holds its version. A body of version 1 has no such field."""


def check_event_format(event: Event, known: int) -> None:
    """Raise NewerLab where the body of an event is of a later version of its kind than the ``known`` one."""
    number = event.body.get(FORMAT, 1)
    if number != 1 and number > known:
        raise NewerLab.of_format(f"Event {event.seq} ({event.kind})", number, known)
