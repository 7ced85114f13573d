"""An event as the fold reads it, for tests that write journals by hand."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Event:
    seq: int
    at: int
    kind: str
    body: dict[str, Any] = field(default_factory=dict)
