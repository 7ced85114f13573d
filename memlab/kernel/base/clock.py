"""Time as an argument: one type of clock and one unit on disk.

Inside memlab an instant is an ``int``: microseconds since 1970-01-01 UTC. Callers pass and receive
aware ``datetime`` objects. A naive ``datetime`` is read as UTC.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import Called, Taken, Within, checked, describe_value

Micros = int
"""Microseconds since 1970-01-01 UTC."""

When = Annotated[
    datetime | date | str | int,
    Taken(
        "a datetime, an ISO 8601 string or microseconds",
        lambda when: check_instant(to_micros(when), "a time"),
    ),
]
"""An instant: a datetime, a date, an ISO 8601 string, or microseconds since 1970-01-01 UTC.

Examples of strings are "2026-11-01", "2026-11-01T14:30" and "2026-11-01T14:30:00+01:00". A date means its midnight, and
a time without a time zone is UTC. An int is microseconds, not seconds. Years are 1 to 9998.
"""

Clock = Annotated[
    Callable[[], Micros], Taken("a function that returns microseconds", lambda clock: _clock(clock))
]

Span = Annotated[float, Within(-1e15, 1e15)]
"""A duration that can be added to an instant without an overflow.

The sum is checked against the calendar later.
"""

# Durations in microseconds.
HOUR: Micros = 3_600_000_000
DAY: Micros = 24 * HOUR

INSTANT = pl.Datetime("us", "UTC")
"""The type of a column of instants."""

# The unit and the range of instants on disk: whole microseconds in the years that a datetime can represent.
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = ((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND for year in (1, 9999))


def system_clock() -> Micros:
    """Return the current time of the system in microseconds since 1970-01-01 UTC.

    Returns
    -------
    int
        Microseconds since 1970-01-01 UTC.

    Examples
    --------
    >>> system_clock() > 1_700_000_000_000_000  # later than 2023
    True
    """
    return time.time_ns() // 1000


class ManualClock:
    """A clock that moves only when it is set, for tests, replays and simulations.

    Parameters
    ----------
    start
        The initial time of the clock.

    Examples
    --------
    >>> clock = ManualClock("2026-01-01")
    >>> clock.advance(days=1); from_micros(clock()).isoformat()
    '2026-01-02T00:00:00+00:00'
    """

    @checked
    def __init__(self, start: When = 0) -> None:
        self.now = to_micros(start)

    def __call__(self) -> Micros:
        """Return the current time of the clock in microseconds."""
        return self.now

    @checked
    def advance(
        self, *, days: Span = 0, hours: Span = 0, minutes: Span = 0, seconds: Span = 0
    ) -> None:
        """Move the clock forward, or back by a negative duration.

        Parameters
        ----------
        days, hours, minutes, seconds
            Parts of the duration, which add up.

        Raises
        ------
        InputError
            If the new time is outside the years 1 to 9998.

        Examples
        --------
        >>> clock = ManualClock("2026-01-01T12:00")
        >>> clock.advance(hours=1, minutes=30); from_micros(clock()).isoformat()
        '2026-01-01T13:30:00+00:00'
        """
        passed = round(days * DAY + hours * HOUR + minutes * (HOUR // 60) + seconds * 1_000_000)
        self.now = check_instant(self.now + passed, "The clock")

    @checked
    def set(self, when: When) -> None:
        """Set the clock to an instant.

        Parameters
        ----------
        when
            The instant to which the clock is set.

        Examples
        --------
        >>> clock = ManualClock()
        >>> clock.set("2026-06-01"); from_micros(clock()).date().isoformat()
        '2026-06-01'
        """
        self.now = to_micros(when)


@dataclass(frozen=True)
class _Checked:
    """A caller's clock whose exceptions and invalid times become errors of memlab."""

    clock: Called

    def __call__(self) -> Micros:
        now = self.clock()
        if type(now) is not int:
            raise InputError(
                f"{self.clock.where} must return microseconds since 1970 as a whole number, not {describe_value(now)}."
            )
        return check_instant(now, self.clock.where)


def _clock(clock: Any) -> Clock:
    """Return a clock whose errors become memlab errors; clocks of memlab are returned unchanged."""
    if clock is system_clock or isinstance(clock, ManualClock | _Checked):
        trusted: Clock = clock
        return trusted
    if not callable(clock):
        raise InputError(
            f"A clock must be a function that returns microseconds since 1970, not {describe_value(clock)}."
        )
    return _Checked(Called(clock, "The clock"))


def to_micros(when: When) -> Micros:
    """Convert an instant to microseconds since 1970-01-01 UTC."""
    if isinstance(when, bool):
        raise InputError(
            f"A time must be a datetime, an ISO 8601 string or microseconds, not {when!r}."
        )
    if isinstance(when, int):
        return when
    if isinstance(when, date) and not isinstance(when, datetime):
        return to_micros(datetime(when.year, when.month, when.day, tzinfo=UTC))
    if isinstance(when, str):
        when = str.__str__(when)  # A subclass of str may override this method.
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
    """Return `instant` after checking that it lies in the years 1 to 9998.

    Such an instant, and the same date a year later, can be written as a date. Raises InputError for
    any other instant.

    >>> check_instant(0, "at")
    0
    """
    if not _FIRST <= instant < _LAST:
        try:
            written = from_micros(instant).isoformat()
        except OverflowError:
            written = f"{instant:,} microseconds since 1970"
        raise InputError(f"{name} must be in the years 1 to 9998, not at {written}.")
    return instant


def from_micros(micros: Micros) -> datetime:
    """Convert microseconds since 1970-01-01 UTC to a timezone-aware datetime."""
    return _EPOCH + timedelta(microseconds=micros)
