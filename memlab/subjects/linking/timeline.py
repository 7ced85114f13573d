"""The values of one property over time: which held when, whatever the order in which they were told.

Each fact holds from its valid time to that of the next value that supersedes it. A fact that is told late ends where
the next one began, and ends the one before it. One that is told again is the same fact; what comes between two tellings
of it leaves a gap. The line of a property is a function of what was told and not of the order: the property test of
``tests/subjects/test_valid_times.py`` shuffles histories.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.schema import NEVER
from memlab.kernel.state import State
from memlab.subjects.fact_rows import get_fact_times, split_validity
from memlab.subjects.linking.candidates import PairedState

__all__ = ["FOREVER", "Line", "Meeting", "Timeline", "past_rows"]


FOREVER = 2**63 - 1

Ints = NDArray[np.int64]


@dataclass
class Line:
    """One memory on the line of its property: the times within which it holds, and when it was told."""

    segments: list[list[int]]
    told: list[int]
    ends: bool
    """It was told with an end of its own, so that it neither merges nor is merged into."""
    killer: int | None = None

    @property
    def gaps(self) -> list[tuple[int, int]]:
        return [
            (one[1], other[0]) for one, other in zip(self.segments, self.segments[1:], strict=False)
        ]


@dataclass(frozen=True)
class Meeting:
    """A new fact and another of the same property: whether the value is the same, and what was decided."""

    other: int
    same: bool
    merges: bool
    supersedes: bool
    """The later of the two supersedes the earlier."""


@dataclass
class Timeline:
    """The lines that one decision touches."""

    joint: PairedState
    lines: dict[int, Line] = field(default_factory=dict)
    touched: dict[int, None] = field(default_factory=dict)

    def line(self, row: int) -> Line:
        """Return the line of a memory, read from the state at first."""
        if row not in self.lines:
            self.lines[row] = _read_line(self.joint, row)
        return self.lines[row]

    def insert(self, row: int, meetings: list[Meeting]) -> int | None:
        """Place a new fact among those of its property; return the memory that it merges into, None where it stays."""
        own = self.line(row)
        began, ends = own.segments[0]
        for meeting in meetings:
            if meeting.supersedes:
                later = [low for low, _ in self.line(meeting.other).segments if began < low < ends]
                if later:
                    ends, own.killer = later[0], meeting.other
        for meeting in meetings:
            if meeting.supersedes:
                resumed = self._cut(meeting.other, began, row)
                if resumed is not None and resumed < ends:
                    ends, own.killer = resumed, meeting.other
        own.segments = [[began, ends]]
        if not own.ends:
            for meeting in meetings:
                if meeting.merges and self._merge(meeting.other, began, ends):
                    self._follow(row, meeting.other)
                    del self.lines[row]
                    return meeting.other
        if own.killer is not None:
            self.touched[row] = None
        return None

    def _cut(self, other: int, at: int, by: int) -> int | None:
        """End another value at an instant; return when it was told again, if it was."""
        line = self.line(other)
        for place, (low, high) in enumerate(line.segments):
            if low <= at < high:
                again = next((told for told in line.told if at < told < high), None)
                last = place == len(line.segments) - 1
                line.segments[place : place + 1] = (
                    [[low, at]] if again is None else [[low, at], [again, high]]
                )
                if again is None and last:
                    line.killer = by
                self.touched[other] = None
                return again
        return None

    def _merge(self, other: int, began: int, ends: int) -> bool:
        """Return whether a telling at ``began`` belongs to a segment of another: within it, or just before it."""
        line = self.line(other)
        if line.ends:
            return False
        for segment in line.segments:
            low, high = segment
            if low <= began < high or began < low <= ends:
                segment[0] = min(low, began)
                line.told = sorted({*line.told, began, low})
                line.segments.sort()
                self.touched[other] = None
                return True
        return False

    def _follow(self, row: int, root: int) -> None:
        """What the merged telling ended is ended by what stands for it."""
        for line in self.lines.values():
            if line.killer == row:
                line.killer = root


def _read_line(joint: PairedState, row: int) -> Line:
    state, place = joint.home(row)
    began, stop = (int(state.numbers[name].values[place]) for name in ("valid_from", "valid_until"))
    if began == NEVER:
        began = int(state.numbers["created"].values[place])
    names = state.names["status"]
    superseded = names.codes[place] == names.code("superseded")
    if stop == NEVER and superseded:
        stop = int(state.numbers["changed"].values[place])
    ends = stop if stop != NEVER else FOREVER
    told, gaps = [began], list[tuple[int, int]]()
    if state is joint.state:
        tellings = get_fact_times(state)
        told, gaps = tellings.told.get(row + 1, told), tellings.gaps.get(row + 1, gaps)
    segments = [list(one) for one in split_validity(began, ends, gaps)] or [
        [began, max(began, ends)]
    ]
    return Line(segments, list(told), ends != FOREVER and not superseded)


def past_rows(joint: PairedState, row: int) -> list[int]:
    """Return the superseded memories of the property of a new fact: they hold no more, and held once."""
    home, place = joint.home(row)
    subject, predicate = (home.names[name].value_at(place) for name in ("subject", "predicate"))
    state: State = joint.state
    if subject is None or predicate is None:
        return []
    status = state.names["status"]
    found = state.names["predicate"].codes == state.names["predicate"].code(predicate)
    found &= state.names["subject"].codes == state.names["subject"].code(subject)
    found &= status.codes == status.code("superseded")
    return [int(other) for other in np.flatnonzero(found) if other < row]
