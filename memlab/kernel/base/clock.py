"""Time is passed in: one type of clock, one unit on disk.

Inside memlab an instant is an ``int``: microseconds since 1970-01-01 UTC. People pass and receive
aware ``datetime`` objects; a naive one is read as UTC.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

from memlab.errors import InputError
from memlab.kernel.base.arguments import Called, Taken, Within, checked, describe_value

__all__ = [
    "DAY",
    "HOUR",
    "Clock",
    "ManualClock",
    "Micros",
    "When",
    "check_instant",
    "from_micros",
    "system_clock",
    "to_micros",
]

Micros = int
"""Microseconds since 1970-01-01 UTC."""

When = Annotated[
    datetime | date | str | int,
    Taken(
        "a datetime, an ISO 8601 string or microseconds",
        lambda when: check_instant(to_micros(when), "a time"),
    ),
]
"""An instant, as a caller may give it: a datetime, a date, an ISO 8601 string, or microseconds since 1970-01-01 UTC.

"2026-11-01", "2026-11-01T14:30" and "2026-11-01T14:30:00+01:00" are such strings. A date is its midnight. What names no
time zone is UTC. An int is microseconds, not seconds. The year is 1 to 9998.
"""

Clock = Annotated[
    Callable[[], Micros], Taken("a function that gives microseconds", lambda clock: _clock(clock))
]

Span = Annotated[float, Within(-1e15, 1e15)]
"""What can be added to a time without an overflow; whether a calendar has the sum is seen then."""

HOUR: Micros = 3_600_000_000
DAY: Micros = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = ((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND for year in (1, 9999))


def system_clock() -> Micros:
    """The wall clock."""
    return time.time_ns() // 1000


class ManualClock:
    """A clock that moves only when it is set: for tests, replay and simulation.

    >>> clock = ManualClock("2026-01-01")
    >>> clock.advance(days=1); from_micros(clock()).isoformat()
    '2026-01-02T00:00:00+00:00'
    """

    @checked
    def __init__(self, start: When = 0) -> None:
        self.now = to_micros(start)

    def __call__(self) -> Micros:
        return self.now

    @checked
    def advance(
        self, *, days: Span = 0, hours: Span = 0, minutes: Span = 0, seconds: Span = 0
    ) -> None:
        """Move the clock by so much; back, where it is negative."""
        passed = round(days * DAY + hours * HOUR + minutes * (HOUR // 60) + seconds * 1_000_000)
        self.now = check_instant(self.now + passed, "The clock")

    @checked
    def set(self, when: When) -> None:
        """Put the clock to an instant."""
        self.now = to_micros(when)


@dataclass(frozen=True)
class _Checked:
    """A caller's clock: what it raises, and a time that no calendar has, are errors of ours."""

    clock: Called

    def __call__(self) -> Micros:
        now = self.clock()
        if type(now) is not int:
            raise InputError(
                f"{self.clock.where} gives microseconds since 1970, a whole number, not {describe_value(now)}."
            )
        return check_instant(now, self.clock.where)


def _clock(clock: Any) -> Clock:
    if clock is system_clock or isinstance(clock, ManualClock | _Checked):
        known: Clock = clock
        return known
    if not callable(clock):
        raise InputError(
            f"A clock is a function that gives microseconds since 1970, not {describe_value(clock)}."
        )
    return _Checked(Called(clock, "The clock"))


def to_micros(when: When) -> Micros:
    """Microseconds since 1970 of a datetime, an ISO 8601 string or an int that already is one."""
    if isinstance(when, bool):
        raise InputError(
            f"A time must be a datetime, an ISO 8601 string or microseconds, not {when!r}."
        )
    if isinstance(when, int):
        return when
    if isinstance(when, date) and not isinstance(when, datetime):
        return to_micros(datetime(when.year, when.month, when.day, tzinfo=UTC))
    if isinstance(when, str):
        when = str.__str__(when)  # a subclass may say something else of itself
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            raise InputError(
                f'"{when}" is not an ISO 8601 time such as 2026-11-01T14:30:00.'
            ) from None
    if not isinstance(when, datetime):
        raise InputError(
            f"A time must be a datetime, an ISO 8601 string or microseconds, not {type(when).__name__}."
        )
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return (when - _EPOCH) // _MICROSECOND


def check_instant(instant: Micros, name: str) -> Micros:
    """An instant that a calendar has, and the year after it too: what may be written down. InputError for any other.

    >>> datable(0, "at")
    0
    """
    if not _FIRST <= instant < _LAST:
        try:
            told = from_micros(instant).isoformat()
        except OverflowError:
            told = f"{instant:,} microseconds since 1970"
        raise InputError(f"{name} lies in the years 1 to 9998, not at {told}.")
    return instant


def from_micros(micros: Micros) -> datetime:
    """The aware UTC datetime of an instant."""
    return _EPOCH + timedelta(microseconds=micros)
