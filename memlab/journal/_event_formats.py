"""The version of each kind of event: up to which this memlab reads its body."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from memlab.errors import NewerLab
from memlab.journal._event import Event

__all__ = ["EVENT_FORMATS", "FORMAT", "check_event_format"]

FORMAT = "format"
"""The field of a body that holds its version. A body of version 1 has no such field."""

EVENT_FORMATS: Mapping[str, int] = MappingProxyType({})
"""The versions by kind of event, where that is not 1. A kind whose body comes to mean something else gets 2 here, and
what writes it the field ``FORMAT``: a fold of an earlier memlab then raises NewerLab and does not misread it."""


def check_event_format(event: Event) -> None:
    """Raise NewerLab where the body of an event is of a later version of its kind than this memlab reads."""
    number = event.body.get(FORMAT, 1)
    if number != 1 and number > (known := EVENT_FORMATS.get(event.kind, 1)):
        raise NewerLab.of_format(f"Event {event.seq} ({event.kind})", number, known)
