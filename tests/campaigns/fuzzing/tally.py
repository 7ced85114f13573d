"""What trying texts leads to: findings, and counts that add up over processes."""

from __future__ import annotations

import collections
import re
from dataclasses import dataclass, field

__all__ = ["Finding", "Tally", "kind_of"]


@dataclass
class Finding:
    """A fault: ``what`` names its kind; with ``detail``, the text, and the slot of the text."""

    what: str
    detail: str
    text: str
    slot: str


def kind_of(finding: Finding) -> str:
    """Return the key by which findings are the same: the position of a crash, or the operation that disagrees."""
    return f"{finding.what} {re.sub(r'[0-9.e+-]{3,}|0x[0-9a-f]+', 'N', finding.detail)[:160]}"


@dataclass
class Tally:
    """What happened to a number of inputs. Tallies add up."""

    inputs: int = 0
    valid: int = 0
    compared: int = 0
    edges: int = 0
    kept: int = 0
    errors: collections.Counter[str] = field(default_factory=collections.Counter)
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    valid_kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    slowest: dict[str, tuple[float, str, str]] = field(default_factory=dict)
    slow: list[tuple[float, str, str]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.inputs, self.valid = self.inputs + other.inputs, self.valid + other.valid
        self.compared, self.kept = self.compared + other.compared, self.kept + other.kept
        self.edges = max(self.edges, other.edges)
        self.errors.update(other.errors)
        self.kinds.update(other.kinds)
        self.valid_kinds.update(other.valid_kinds)
        for kind, value in other.slowest.items():
            self.time(kind, *value)
        self.slow = sorted([*self.slow, *other.slow], reverse=True)[:200]
        self.findings += other.findings

    def time(self, kind: str, seconds: float, text: str, slot: str) -> None:
        if seconds > self.slowest.get(kind, (0.0,))[0]:
            self.slowest[kind] = (seconds, text, slot)
