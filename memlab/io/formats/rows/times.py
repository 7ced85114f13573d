"""Times as files write them: ISO 8601, the form of e-mails, and numbers whose size tells their unit."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime

from memlab.errors import InputError
from memlab.kernel.base.clock import datable, to_micros

__all__ = ["instant"]

_UNITS = ((1e11, 1e6, "seconds"), (1e14, 1e3, "milliseconds"), (1e17, 1.0, "microseconds"), (1e20, 1e-3, "nanoseconds"))
_LEAST = 1e8
"""Seconds since 1970 below which a number is no time of a conversation: March 1973."""


def instant(value: object) -> tuple[int, str]:
    """Microseconds since 1970, and what the form was taken for. A time without a zone is UTC.

    InputError for what is no time, and for what may be two: 03/04/2026, a number that is too small.

    >>> instant(1_700_000_000), instant("1700000000123")
    ((1700000000000000, 'seconds since 1970'), (1700000000123000, 'milliseconds since 1970'))
    """
    if isinstance(value, datetime | date):
        return datable(to_micros(value), "A time"), "times"
    if isinstance(value, str):
        text = value.strip()
        try:
            return _number(float(text)) if text[:1].isdigit() and "-" not in text and ":" not in text else _text(text)
        except (ValueError, OverflowError):
            raise InputError(f'"{text:.40}" is no time, or may be several') from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"a time is a text or a number, not {type(value).__name__}")
    return _number(float(value))


def _text(text: str) -> tuple[int, str]:
    try:
        at = datetime.fromisoformat(text.removesuffix(" UTC"))
        form = "ISO 8601"
    except ValueError:
        at, form = parsedate_to_datetime(text), "as in e-mails"
    return datable(to_micros(at if at.tzinfo is not None else at.replace(tzinfo=UTC)), "A time"), form


def _number(value: float) -> tuple[int, str]:
    if not math.isfinite(value) or value < _LEAST:
        raise InputError(f"{value:g} is no time since 1970 in seconds or less")
    for limit, factor, unit in _UNITS:
        if value < limit:
            return datable(round(value * factor), "A time"), f"{unit} since 1970"
    raise InputError(f"{value:g} is no time since 1970")
