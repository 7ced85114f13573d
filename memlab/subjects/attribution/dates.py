"""Which days a text names, ahead as well as behind: an answer says "7 May 2023" where a memory said "yesterday".

``memlab.kernel.recall.named_dates`` reads what lies behind. Here are what lies ahead ("next month", "tomorrow"), a year
by itself ("2022"), and a unit by a date ("the week before 9 June 2023").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import MAXYEAR, date, timedelta

from memlab.kernel.base.clock import DAY, Micros
from memlab.kernel.english import WEEKDAYS
from memlab.kernel.recall import named_dates

__all__ = ["Days", "days_named", "shared_days"]

Days = tuple[int, int]
"""From a day up to, and without, another; counted as ``date.toordinal`` does."""

_EPOCH = date(1970, 1, 1).toordinal()
_UNITS = f"week|weekend|month|year|{'|'.join(WEEKDAYS)}"
_AHEAD = re.compile(rf"\b(?:(tomorrow)|(next|this) ({_UNITS}))\b")
_BY_A_DATE = re.compile(rf"\b(day|night|week|weekend|{'|'.join(WEEKDAYS)}) (?:before|prior to) ")
_MOST = 32
"""Spans of one text that are read."""

_YEAR = re.compile(r"(?<![\w-])((?:19|20)\d\d)(?![\w-])")


def days_named(text: str, at: Micros) -> tuple[Days, ...]:
    """The spans of days that ``text`` names, said at ``at``; none where it names no date, or ``at`` is no date.

    >>> noon = 1_686_500_000_000_000  # 11 June 2023
    >>> [date.fromordinal(first).isoformat() for first, _ in days_named("The week before 9 June 2023", noon)]
    ['2023-06-09', '2023-05-29']
    """
    today = at // DAY + _EPOCH
    if not 3_653 < today < date.max.toordinal() - 731:
        return ()
    lower = text.lower()
    found = [(start // DAY + _EPOCH, end // DAY + _EPOCH) for start, end in named_dates(text, at)]
    years = [_year(int(written)) for written in _YEAR.findall(lower)]
    found += [year for year in years if not any(_within(span, year) for span in found)]
    if found:
        anchor = date.fromordinal(found[0][0])
        found += [_before(unit, anchor) for unit in _BY_A_DATE.findall(lower)]
    said = date.fromordinal(today)
    found += [
        _ahead(unit or "day", said, later=which != "this")
        for _, which, unit in _AHEAD.findall(lower)
    ]
    return tuple(dict.fromkeys(found))[:_MOST]


def shared_days(one: Sequence[Days], other: Sequence[Days]) -> float:
    """How nearly a span of one is a span of the other, 0-1: the days that both hold, of those that either holds.

    >>> shared_days([(10, 11)], [(10, 11), (3, 33)]), shared_days([(10, 11)], [(4, 14)]), shared_days([], [(1, 2)])
    (1.0, 0.1, 0.0)
    """
    return max(
        (
            max(min(a[1], b[1]) - max(a[0], b[0]), 0) / (max(a[1], b[1]) - min(a[0], b[0]))
            for a in set(one)
            for b in set(other)
        ),
        default=0.0,
    )


def _within(span: Days, whole: Days) -> bool:
    return whole[0] <= span[0] and span[1] <= whole[1]


def _year(number: int) -> Days:
    return date(number, 1, 1).toordinal(), date(number + 1, 1, 1).toordinal()


def _month(year: int, month: int) -> Days:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    first = date(min(year, MAXYEAR - 1), month, 1)
    return first.toordinal(), date(first.year + month // 12, month % 12 + 1, 1).toordinal()


def _ahead(unit: str, today: date, *, later: bool) -> Days:
    """The unit that follows today's, or with ``later`` false today's own; a weekday is the next of its name."""
    monday = today.toordinal() - today.weekday() + 7 * later
    if unit == "week":
        return monday, monday + 7
    if unit == "weekend":
        return monday + 5, monday + 7
    if unit == "month":
        return _month(today.year, today.month + later)
    if unit == "year":
        return _year(today.year + later)
    days = 1 if unit == "day" else (WEEKDAYS.index(unit) - today.weekday() - 1) % 7 + 1
    return today.toordinal() + days, today.toordinal() + days + 1


def _before(unit: str, anchor: date) -> Days:
    """The last such unit before a day."""
    monday = anchor - timedelta(anchor.weekday())
    if unit == "week":
        return monday.toordinal() - 7, monday.toordinal()
    if unit == "weekend":
        return monday.toordinal() - 2, monday.toordinal()
    back = 1 if unit in ("day", "night") else (anchor.weekday() - WEEKDAYS.index(unit) - 1) % 7 + 1
    return anchor.toordinal() - back, anchor.toordinal() - back + 1
