"""The values of one property over time, independent of the order of storing.

Each fact is valid from its valid time to that of the next value that supersedes it. A fact that is
stored late ends where the next value began, and ends the previous value. A fact that is stated
again stays the same fact, and other values between the two statements leave a gap in its validity.
``tests/subjects/test_valid_times.py`` shuffles histories to test that the order does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from memlab.kernel.schema import NEVER
from memlab.kernel.state import State
from memlab.subjects.fact_rows import get_fact_times, split_validity
from memlab.subjects.linking.candidates import PairedState

# The end of an interval of validity that is still open.
FOREVER = 2**63 - 1


@dataclass
class Line:
    """The intervals in which a fact is valid, and the times of its statements.

    ``killer`` is the row of the fact that ended the last interval.
    """

    segments: list[list[int]]
    stated: list[int]
    ends: bool
    """Whether the fact was stored with an end of its own, which excludes it from merging."""
    killer: int | None = None

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The intervals between the segments of validity."""
        return [
            (segment[1], next_segment[0])
            for segment, next_segment in zip(self.segments, self.segments[1:], strict=False)
        ]


@dataclass(frozen=True)
class Meeting:
    """The decision about a new fact and another fact of the same property.

    ``same`` is whether both have the same value, and ``merges`` whether they merge.
    """

    other: int
    same: bool
    merges: bool
    supersedes: bool
    """Whether the later of the two facts supersedes the earlier."""


@dataclass
class Timeline:
    """The lines of the facts that one decision reads or changes."""

    joint: PairedState
    lines: dict[int, Line] = field(default_factory=dict)
    touched: dict[int, None] = field(default_factory=dict)

    def line(self, row: int) -> Line:
        """Return the timeline of a fact. The first call reads the timeline from the state."""
        if row not in self.lines:
            self.lines[row] = _read_line(self.joint, row)
        return self.lines[row]

    def insert(self, row: int, meetings: list[Meeting]) -> int | None:
        """Insert a new fact into the timeline of its property.

        Returns the row of the fact into which it merges; None if it stays separate.
        """
        # First, later values limit the new value. Then the new value cuts earlier values. Only then may it merge.
        line = self.line(row)
        began, ends = line.segments[0]
        for meeting in meetings:
            if meeting.supersedes:
                later = [low for low, _ in self.line(meeting.other).segments if began < low < ends]
                if later:
                    ends, line.killer = later[0], meeting.other
        for meeting in meetings:
            if meeting.supersedes:
                resumed = self._cut(meeting.other, began, row)
                if resumed is not None and resumed < ends:
                    ends, line.killer = resumed, meeting.other
        line.segments = [[began, ends]]
        if not line.ends:
            for meeting in meetings:
                if meeting.merges and self._merge(meeting.other, began, ends):
                    self._follow(row, meeting.other)
                    del self.lines[row]
                    return meeting.other
        if line.killer is not None:
            self.touched[row] = None
        return None

    def _cut(self, other: int, at: int, by: int) -> int | None:
        """End a fact at a time, and return the next time at which the fact was restated, or None.

        From that time on, the fact is valid again. ``by`` is the fact that ends this one.
        """
        line = self.line(other)
        for position, (start, stop) in enumerate(line.segments):
            if start <= at < stop:
                restated = next((instant for instant in line.stated if at < instant < stop), None)
                is_last = position == len(line.segments) - 1
                line.segments[position : position + 1] = (
                    [[start, at]] if restated is None else [[start, at], [restated, stop]]
                )
                if restated is None and is_last:
                    line.killer = by
                self.touched[other] = None
                return restated
        return None

    def _merge(self, other: int, began: int, ends: int) -> bool:
        """Merge a statement into an interval of another fact; return False if none fits.

        A statement belongs to an interval if it begins within the interval, or before the interval
        without a gap.
        """
        line = self.line(other)
        if line.ends:
            return False
        for segment in line.segments:
            start, stop = segment
            if start <= began < stop or began < start <= ends:
                segment[0] = min(start, began)
                line.stated = sorted({*line.stated, began, start})
                line.segments.sort()
                self.touched[other] = None
                return True
        return False

    def _follow(self, row: int, root: int) -> None:
        """Replace a merged fact with ``root`` as the fact that ended other facts."""
        for line in self.lines.values():
            if line.killer == row:
                line.killer = root


def _read_line(joint: PairedState, row: int) -> Line:
    """Return a fact's timeline: intervals of validity and times of statements."""
    state, local_row = joint.home(row)
    began, stop = (
        int(state.numbers[name].values[local_row]) for name in ("valid_from", "valid_until")
    )
    if began == NEVER:
        began = int(state.numbers["created"].values[local_row])
    names = state.names["status"]
    superseded = names.codes[local_row] == names.code("superseded")
    if stop == NEVER and superseded:
        stop = int(state.numbers["changed"].values[local_row])
    ends = stop if stop != NEVER else FOREVER
    instants, gaps = [began], list[tuple[int, int]]()
    if state is joint.state:
        fact_times = get_fact_times(state)
        instants, gaps = fact_times.told.get(row + 1, instants), fact_times.gaps.get(row + 1, gaps)
    segments = [list(segment) for segment in split_validity(began, ends, gaps)] or [
        [began, max(began, ends)]
    ]
    return Line(segments, list(instants), ends != FOREVER and not superseded)


def find_past_rows(joint: PairedState, row: int) -> list[int]:
    """Return the rows of superseded facts with the subject and predicate of a new fact."""
    home, local_row = joint.home(row)
    subject, predicate = (home.names[name].value_at(local_row) for name in ("subject", "predicate"))
    state: State = joint.state
    if subject is None or predicate is None:
        return []
    status = state.names["status"]
    is_match = state.names["predicate"].codes == state.names["predicate"].code(predicate)
    is_match &= state.names["subject"].codes == state.names["subject"].code(subject)
    is_match &= status.codes == status.code("superseded")
    return [int(other) for other in np.flatnonzero(is_match) if other < row]
