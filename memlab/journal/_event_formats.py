"""The version of each kind of event: up to which this memlab reads its body."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["EVENT_FORMATS", "FORMAT"]

FORMAT = "format"
"""The field of a body that holds its version. A body of version 1 has no such field."""

EVENT_FORMATS: Mapping[str, int] = MappingProxyType({})
"""The versions by kind of event, where that is not 1. A kind whose body comes to mean something else gets 2 here, and
what writes it the field ``FORMAT``: a fold of an earlier memlab then raises NewerLab and does not misread it."""
