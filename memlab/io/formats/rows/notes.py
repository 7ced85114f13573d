"""What reading found besides rows: what was guessed, what has no place in a lab, and what was skipped and where."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from memlab.errors import DatasetError

__all__ = ["MOST_PLACES", "Notes"]

MOST_PLACES = 1000
"""Places of skipped lines that are kept; all are counted."""


@dataclass
class Notes:
    """Of one source. ``unit`` is what its places number: line, row, message, entry."""

    source: str
    unit: str = "line"
    strict: bool = False
    guessed: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    places: list[tuple[str, int, str]] = field(default_factory=list)

    def skip(self, place: int, why: str, detail: str = "") -> None:
        """Note that nothing is read of a place; DatasetError where reading is strict."""
        said = f"{why}: {detail}" if detail else why
        if self.strict:
            raise DatasetError(f"{self.source}, {self.unit} {place}: {said}.")
        self.skipped[why] += 1
        if len(self.places) < MOST_PLACES:
            self.places.append((self.source, place, said))
