"""Dates in a query: each way of naming a date, against a search through all days that it can mean."""

import math
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.kernel.base.clock import DAY
from memlab.kernel.recall import named_dates
from memlab.kernel.recall._mentions import DATE_COUNTS, DATE_CUES, DATE_UNITS, date_spans, days_from

TODAY = date(2023, 5, 19)
"""A Friday."""

MONTHS = [date(2000, month, 1).strftime("%B") for month in range(1, 13)]
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def micros(day, hour=0):
    return int(datetime(day.year, day.month, day.day, hour, tzinfo=UTC).timestamp()) * 1_000_000


def spans_of(text, today=TODAY, newest=None):
    """Return the spans as (first day, last day)."""
    spans = named_dates(text, micros(today, 15), None if newest is None else micros(newest, 8))
    return [
        tuple(date(1970, 1, 1) + timedelta(instant // DAY) for instant in (start, end - 1))
        for start, end in spans
    ]


def single_day(*parts):
    return [(date(*parts), date(*parts))]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("What happened on 2023-05-07?", single_day(2023, 5, 7)),
        ("the log of 2023-05-07T10:15:00Z", single_day(2023, 5, 7)),
        ("since 2023-04", [(date(2023, 4, 1), date(2023, 4, 30))]),
        ("on 7 May 2022", single_day(2022, 5, 7)),
        ("on the 7th of May, 2022", single_day(2022, 5, 7)),
        ("on May 7, 2022", single_day(2022, 5, 7)),
        ("on Sept. 3rd", single_day(2022, 9, 3)),
        ("on 7 May", single_day(2023, 5, 7)),
        ("on 20 May", single_day(2022, 5, 20)),
        ("on 29 February", single_day(2020, 2, 29)),
        ("in May", [(date(2023, 5, 1), date(2023, 5, 31))]),
        ("in mid-June", [(date(2022, 6, 1), date(2022, 6, 30))]),
        ("in February 2020", [(date(2020, 2, 1), date(2020, 2, 29))]),
        ("on 31 February 2023", [(date(2023, 2, 1), date(2023, 2, 28))]),
        ("in 2022", [(date(2022, 1, 1), date(2022, 12, 31))]),
        ("yesterday", single_day(2023, 5, 18)),
        ("last night", single_day(2023, 5, 18)),
        ("what did I say today", single_day(2023, 5, 19)),
        ("on Thursday", single_day(2023, 5, 18)),
        ("on Friday", single_day(2023, 5, 12)),
        ("three days ago", single_day(2023, 5, 16)),
        ("last week", [(date(2023, 5, 8), date(2023, 5, 14))]),
        ("a week ago", [(date(2023, 5, 8), date(2023, 5, 14))]),
        ("last weekend", [(date(2023, 5, 13), date(2023, 5, 14))]),
        ("this month", [(date(2023, 5, 1), date(2023, 5, 31))]),
        ("6 months ago", [(date(2022, 11, 1), date(2022, 11, 30))]),
        ("last year", [(date(2022, 1, 1), date(2022, 12, 31))]),
        ("between 3 March and April 5th, 2021", single_day(2023, 3, 3) + single_day(2021, 4, 5)),
    ],
)
def test_named(text, spans):
    assert spans_of(text) == spans


@pytest.mark.parametrize(
    "text",
    [
        "What may it be? June and April march on",
        "2022 tickets",
        "2023-02-30 and 2023-13",
        "order 12-34-56",
        "next Friday, every Monday",
        "the weekly day of the year",
        "version 2023-05-07-rc1",
        "99999 years ago, 9999 days hence",
        "",
    ],
)
def test_no_date(text):
    assert spans_of(text) == []


def test_a_date_without_a_year_is_one_that_memories_know():
    assert spans_of("on 7 May", date(2026, 11, 21), newest=date(2023, 10, 1)) == single_day(
        2023, 5, 7
    )
    assert spans_of("in December", date(2026, 11, 21), newest=date(2023, 10, 1)) == [
        (date(2022, 12, 1), date(2022, 12, 31))
    ]
    assert spans_of("yesterday", date(2026, 11, 21), newest=date(2023, 10, 1)) == single_day(
        2026, 11, 20
    )
    assert spans_of("on 7 May", TODAY, newest=date(2024, 10, 1)) == single_day(2023, 5, 7)


def last_day(today, fits):
    """Return the last day up to today that fits, by trying each."""
    return next(day for back in range(4000) if fits(day := today - timedelta(back)))


def days(today, fits):
    results = [day for ahead in range(-800, 400) if fits(day := today + timedelta(ahead))]
    return results[0], results[-1]


@st.composite
def phrases(draw, today):
    """Draw a date in words, and the days that it means, found by trying each."""
    day = draw(st.dates(date(1900, 1, 1), date(2199, 12, 30)))
    month, number = MONTHS[day.month - 1], draw(st.sampled_from([f"{day.day}", f"{day.day}th"]))
    if draw(st.booleans()):
        month = month[:3]
    weekday = draw(st.integers(0, 6))
    near = last_day(today, lambda item: (item.month, item.day) == (day.month, day.day))
    said = draw(
        st.sampled_from(
            [
                ("iso", day.isoformat()),
                ("day", f"{number} {month} {day.year}"),
                ("day", f"{month} {number}, {day.year}"),
                ("day", f"the {number} of {month} {day.year}"),
                ("near", f"{number} {month}"),
                ("near", f"{month.upper()} {number}"),
                ("month", f"in {month} {day.year}"),
                ("near month", f"in {month}"),
                ("year", f"in {day.year}"),
                ("weekday", f"on {WEEKDAYS[weekday]}"),
                ("yesterday", "yesterday"),
                ("week", "last week"),
                ("week", "one week ago"),
                ("last month", "last month"),
                ("last year", "last year"),
            ]
        )
    )
    kind, text = said
    if kind in ("iso", "day"):
        span = (day, day)
    elif kind == "near":
        span = (near, near)
    elif kind == "month":
        span = days(day, lambda item: (item.year, item.month) == (day.year, day.month))
    elif kind == "near month":
        last = last_day(today, lambda item: item.month == day.month)
        span = days(last, lambda item: (item.year, item.month) == (last.year, last.month))
    elif kind == "year":
        span = date(day.year, 1, 1), date(day.year, 12, 31)
    elif kind == "weekday":
        last = last_day(today - timedelta(1), lambda item: item.weekday() == weekday)
        span = (last, last)
    elif kind == "yesterday":
        span = (today - timedelta(1),) * 2
    elif kind == "week":
        span = days(
            today, lambda item: item.isocalendar()[:2] == (today - timedelta(7)).isocalendar()[:2]
        )
    elif kind == "last month":
        last = last_day(today, lambda item: item.month != today.month)
        span = days(today, lambda item: (item.year, item.month) == (last.year, last.month))
    else:
        span = days(today, lambda item: item.year == today.year - 1)
    return text, span


@pytest.mark.long
@given(st.data(), st.dates(date(1950, 1, 1), date(2150, 1, 1)))
@examples(200)
def test_equal_to_trying_every_day(data, today):
    fillers = st.sampled_from(
        ["what did we", "who, then,", "the plan", "he said", "it was 3 pm when they met", "東京"]
    )
    parts = data.draw(st.lists(st.tuples(fillers, phrases(today)), max_size=3))
    text = " ".join(f"{filler} {said};" for filler, (said, _) in parts) + " and so on"
    assert spans_of(text, today) == [span for _, (_, span) in parts]


@pytest.mark.long
@given(st.text(max_size=60), st.integers(-(2**62), 2**62))
def test_any_text_at_any_time(text, at):
    for start, end in named_dates(text + " yesterday 7 May in June last year on Friday", at):
        assert start < end


@given(
    st.lists(
        st.sampled_from(
            [*DATE_COUNTS, *DATE_UNITS, *DATE_CUES, "days", "of", "in", "7th", "2023-05", "who"]
        ),
        max_size=6,
    )
)
def test_the_quick_test_for_dates_agrees_with_the_parser(words):
    spans = list(date_spans(words, TODAY, TODAY))
    assert bool(named_dates(" ".join(words), micros(TODAY))) == bool(spans)


@pytest.mark.long
@pytest.mark.parametrize(
    "piece", ["1", "1-", "7 May ", "-", "in ", "2023-05-07 ", "may may ", "a1"]
)
def test_a_long_question_takes_linear_time(piece):
    named_dates(piece * 20_000, micros(TODAY))


spans = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 20)).map(lambda pair: (pair[0], sum(pair))),
    max_size=4,
)


@given(spans, st.lists(st.integers(-20, 90), max_size=10))
def test_the_distance_is_that_of_the_nearest_instant_named(spans, instants):
    gaps = days_from(tuple(spans), np.array(instants, dtype=np.int64))
    for instant, gap in zip(instants, gaps.tolist(), strict=True):
        away = [instant - named for start, end in spans for named in range(start, end)]
        if not away:
            assert math.isnan(gap)
        else:
            assert abs(gap) == pytest.approx(min(map(abs, away)) / DAY)
            assert gap == 0 or round(gap * DAY) in away
