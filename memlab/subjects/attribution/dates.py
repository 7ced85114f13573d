"""Find the days that a text names, in the past or the future.

An answer says "7 May 2023" where a memory said "yesterday". ``memlab.kernel.recall.named_dates``
reads past dates. This module adds future dates ("next month"), years alone ("2022"), and a unit
relative to a date ("the week before 9 June 2023").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import MAXYEAR, date, timedelta

from memlab.kernel.base.clock import DAY, Micros
from memlab.kernel.english import WEEKDAYS
from memlab.kernel.recall import named_dates

Days = tuple[int, int]
"""A first day, and the day after the last day, as numbers of ``date.toordinal``."""

# The first day of the clock, and patterns of future days and of units relative to a date.
_EPOCH = date(1970, 1, 1).toordinal()
_UNITS = f"week|weekend|month|year|{'|'.join(WEEKDAYS)}"
_AHEAD = re.compile(rf"\b(?:(tomorrow)|(next|this) ({_UNITS}))\b")
_BY_A_DATE = re.compile(rf"\b(day|night|week|weekend|{'|'.join(WEEKDAYS)}) (?:before|prior to) ")
_MAX_SPANS = 32
"""The maximum date ranges of one text; comparing two texts takes quadratic time."""

# A pattern of a year alone, of the last or this century.
_YEAR = re.compile(r"(?<![\w-])((?:19|20)\d\d)(?![\w-])")


def find_days(text: str, at: Micros) -> tuple[Days, ...]:
    """Return the date ranges that a text mentions, resolved relative to ``at``.

    The result is empty if the text names no date, or if ``at`` is out of range.

    >>> noon = 1_686_500_000_000_000  # 11 June 2023
    >>> spans = find_days("The week before 9 June 2023", noon)
    >>> [date.fromordinal(first).isoformat() for first, _ in spans]
    ['2023-06-09', '2023-05-29']
    """
    # A year within a full date is not a separate date range, so years are read after dates.
    today = at // DAY + _EPOCH
    if not 3_653 < today < date.max.toordinal() - 731:
        return ()
    lower = text.lower()
    spans = [(start // DAY + _EPOCH, end // DAY + _EPOCH) for start, end in named_dates(text, at)]
    years = [_span_of_year(int(written)) for written in _YEAR.findall(lower)]
    spans += [
        year
        for year in years
        if not any(year[0] <= span[0] and span[1] <= year[1] for span in spans)
    ]
    if spans:
        anchor = date.fromordinal(spans[0][0])
        spans += [_find_previous(unit, anchor) for unit in _BY_A_DATE.findall(lower)]
    said_on = date.fromordinal(today)
    spans += [
        _find_next(unit or "day", said_on, later=which != "this")
        for _, which, unit in _AHEAD.findall(lower)
    ]
    return tuple(dict.fromkeys(spans))[:_MAX_SPANS]


def compute_overlap(left: Sequence[Days], right: Sequence[Days]) -> float:
    """Return the largest overlap of two dates as a share of their combined range.

    >>> compute_overlap([(10, 11)], [(10, 11), (3, 33)]), compute_overlap([(10, 11)], [(4, 14)])
    (1.0, 0.1)
    """
    return max(
        (
            max(min(a[1], b[1]) - max(a[0], b[0]), 0) / (max(a[1], b[1]) - min(a[0], b[0]))
            for a in set(left)
            for b in set(right)
        ),
        default=0.0,
    )


def _span_of_year(number: int) -> Days:
    """Return the first day of a year and of the next year, as ordinals."""
    return date(number, 1, 1).toordinal(), date(number + 1, 1, 1).toordinal()


def _span_of_month(year: int, month: int) -> Days:
    """Return the first day of a month and of the next month, as ordinals; month 13 is January of the next year."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    first = date(min(year, MAXYEAR - 1), month, 1)
    return first.toordinal(), date(first.year + month // 12, month % 12 + 1, 1).toordinal()


def _find_next(unit: str, today: date, *, later: bool) -> Days:
    """Return the date range of the current "week", "weekend", "month" or "year", or of the next "day" or weekday.

    With ``later``, a week, weekend, month or year is the next one.
    """
    monday = today.toordinal() - today.weekday() + 7 * later
    if unit == "week":
        return monday, monday + 7
    if unit == "weekend":
        return monday + 5, monday + 7
    if unit == "month":
        return _span_of_month(today.year, today.month + later)
    if unit == "year":
        return _span_of_year(today.year + later)
    days = 1 if unit == "day" else (WEEKDAYS.index(unit) - today.weekday() - 1) % 7 + 1
    return today.toordinal() + days, today.toordinal() + days + 1


def _find_previous(unit: str, anchor: date) -> Days:
    """Return the date range of the day, night or weekday before `anchor`, or of the week or weekend before its week."""
    monday = anchor - timedelta(anchor.weekday())
    if unit == "week":
        return monday.toordinal() - 7, monday.toordinal()
    if unit == "weekend":
        return monday.toordinal() - 2, monday.toordinal()
    back = 1 if unit in ("day", "night") else (anchor.weekday() - WEEKDAYS.index(unit) - 1) % 7 + 1
    return anchor.toordinal() - back, anchor.toordinal() - back + 1
