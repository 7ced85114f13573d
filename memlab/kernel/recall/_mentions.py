"""Mentions in a query: dates, phrases, files, tags and triggers.

Dates are written as ``2023-05-07``, ``7 May 2023``, ``May 7th``, ``May 2023``, ``in May``, ``in
2022``, ``on Friday``, ``yesterday``, ``last week`` or ``two months ago``. Names of months and days
are English, and days begin at midnight UTC. Memories describe the past, so a weekday means the last
such day before today. A day or month without a year means the last one before the newest memory was
created. So a query years later still refers to a year with memories.

The text is read once, word by word, with at most four words of context.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from datetime import MAXYEAR, date, timedelta
from itertools import islice, pairwise

import numpy as np

from memlab.kernel.base.arrays import NO_ROWS, Floats, Ints
from memlab.kernel.base.clock import DAY
from memlab.kernel.english import NUMBER_WORDS, word_pattern
from memlab.kernel.index import Words
from memlab.kernel.state import State

Span = tuple[int, int]
"""Start and end of a span of time in microseconds UTC; the end is exclusive."""

# The ordinal of the Unix epoch; runs of letters, digits and hyphens; ISO dates and months.
_EPOCH = date(1970, 1, 1).toordinal()
_RUN = word_pattern("joined")
_ISO = re.compile(r"(\d{4})-(\d\d?)(?:-(\d\d?))?(?:t\d\d)?", re.ASCII)
# The number of each month and weekday by its English names; months are also abbreviated.
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        1,
    )
    for name in names.split()
}
_WEEKDAYS = {
    name: number
    for number, name in enumerate(
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    )
}
# The numbers of units in "two months ago"; "dozen" is not used this way.
DATE_COUNTS = {
    word: number for word, number in NUMBER_WORDS.items() if 1 <= number <= 12 and word != "dozen"
}
DATE_COUNTS |= {"a": 1, "an": 1}
_BEFORE_A_MONTH = frozenset(
    ("in", "during", "since", "until", "by", "of", "from", "early", "late", "mid", "last")
)
"""Words after which May, March, April and June are months and not other words or names."""

_BEFORE_A_YEAR = frozenset(
    ("in", "during", "since", "until", "by", "of", "from", "year", "early", "late", "mid")
)
"""Words after which four digits are a year."""

DATE_CUES = frozenset(
    (*_MONTHS, *_WEEKDAYS, "today", "tonight", "yesterday", "last", "this", "ago")
)
"""A text without digits names a date only if it contains one of these words."""

_FIRST_YEAR, _LAST_YEAR = 1900, 2199
"""The range of four-digit numbers that are read as years."""


def named_dates(text: str, at: int, newest: int | None = None) -> tuple[Span, ...]:
    """Return the spans of time that ``text`` names at the instant ``at``.

    The spans are in the order of the text. A date without a year is before ``newest``, if that is
    earlier than ``at``.

    >>> noon = 1_684_497_600_000_000  # Friday, 19 May 2023, 12:00
    >>> [(start // DAY, end // DAY) for start, end in named_dates("What did we plan on 7 May, and last week?", noon)]
    [(19484, 19485), (19485, 19492)]
    """
    words = _split_words(text)
    if DATE_CUES.isdisjoint(words) and all(map(str.isalpha, words)):
        # Most queries contain neither a number nor a date word.
        return ()
    today, latest = _utc_day(at), _utc_day(at if newest is None else min(at, newest))
    if today is None or latest is None:
        return ()
    return tuple(
        ((first.toordinal() - _EPOCH) * DAY, (last.toordinal() - _EPOCH) * DAY)
        for first, last in date_spans(words, today, latest)
    )


def _utc_day(instant: int) -> date | None:
    """Return the UTC day of an instant, or None near the ends of the calendar.

    The result is None in the first ten years and the last year of the calendar, where the previous or
    next unit may not exist.
    """
    day = instant // DAY + _EPOCH
    return date.fromordinal(day) if 3_653 < day < date.max.toordinal() - 365 else None


def days_from(spans: tuple[Span, ...], instants: Ints) -> Floats:
    """Return the signed days from each instant to the nearest span, or 0 inside a span.

    All values are NaN if there is no span.
    """
    nearest = np.full(len(instants), np.nan)
    moments = instants.astype(np.float64) if spans else nearest
    for start, end in spans:
        last = end - 1
        gap = (np.minimum(moments - start, 0.0) + np.maximum(moments - last, 0.0)) / DAY
        nearest = np.where(np.isnan(nearest) | (np.abs(gap) < np.abs(nearest)), gap, nearest)
    return nearest


def _split_words(text: str) -> list[str]:
    """Split a text into lower-case runs of letters and digits.

    Hyphenated dates stay whole.
    """
    words: list[str] = []
    for run in _RUN.findall(text.lower()):
        words += [run] if "-" not in run or _ISO.fullmatch(run) else run.split("-")
    return words


def date_spans(words: list[str], today: date, latest: date) -> Iterator[tuple[date, date]]:
    """Yield each span of time in the words, as its first day and the day after it."""
    position = 0
    while position < len(words):
        used, span = _read_date(words, position, today, latest)
        if span is not None:
            yield span
        position += used


def _read_date(
    words: list[str], position: int, today: date, latest: date
) -> tuple[int, tuple[date, date] | None]:
    """Read a date at ``position``; return the number of words read, and the date's span or None.

    ``today`` is the day from which relative dates are counted. A date without a year is at most
    ``latest``.
    """
    word = words[position]
    before = words[position - 1] if position else ""
    after = [*words[position + 1 : position + 5], "", "", "", ""]
    iso_date = _ISO.fullmatch(word)
    if iso_date is not None:
        year, month = int(iso_date[1]), int(iso_date[2])
        return 1, _span_of_month(year, month) if iso_date[3] is None else _span_of_day(
            year, month, int(iso_date[3])
        )
    number = _parse_ordinal(word)
    if number is not None:
        # Dates such as 7 May 2023 and 7th of May.
        has_of = after[0] == "of"
        if after[has_of] in _MONTHS:
            year_after = _parse_year(after[1 + has_of])
            span = _day_of_month(_MONTHS[after[has_of]], number, year_after, latest)
            if span is not None:
                return 2 + has_of + (year_after is not None), span
        if _parse_year(word) is not None and before in _BEFORE_A_YEAR:
            return 1, (date(number, 1, 1), date(number + 1, 1, 1))
    if word in _MONTHS:
        return _read_month(word, before, after, latest)
    if word in _WEEKDAYS and before not in ("next", "every", "each"):
        return 1, _one_day(today - timedelta((today.weekday() - _WEEKDAYS[word] - 1) % 7 + 1))
    return _read_relative(word, after, today)


def _read_month(
    word: str, before: str, after: list[str], latest: date
) -> tuple[int, tuple[date, date] | None]:
    """Read a date that begins with a month: May 7th, 2023; May 2023; in May.

    Return the number of words read, and the date's span as its first day and the day after its last;
    without a date, 1 and None. A date without a year is at most ``latest``.
    """
    month, number, year = _MONTHS[word], _parse_ordinal(after[0]), _parse_year(after[0])
    if year is not None:
        return 2, _span_of_month(year, month)
    if number is not None:
        year = _parse_year(after[1])
        span = _day_of_month(month, number, year, latest)
        if span is not None:
            return 2 + (year is not None), span
    if before in _BEFORE_A_MONTH:
        return 1, _span_of_month(latest.year - (month > latest.month), month)
    return 1, None


def _read_relative(
    word: str, after: list[str], today: date
) -> tuple[int, tuple[date, date] | None]:
    """Read a relative date: today, yesterday, last week, three months ago.

    Return the number of words read, and the date's span as its first day and the day after its last; without a
    date, 1 and None.
    """
    if word in ("today", "tonight"):
        return 1, _one_day(today)
    if word == "yesterday":
        return 1, _one_day(today - timedelta(1))
    if word == "last" and after[0] == "night":
        return 2, _one_day(today - timedelta(1))
    if word in ("last", "this") and after[0] in DATE_UNITS:
        return 2, _calendar_unit(after[0], int(word == "last"), today)
    count = DATE_COUNTS.get(word) or _parse_number(word)
    if count is not None and after[1] == "ago":
        return 3, _calendar_unit(after[0].removesuffix("s"), count, today)
    return 1, None


# Units of the calendar in "last week" and "two months ago".
DATE_UNITS = frozenset(("day", "week", "weekend", "month", "year"))


def _calendar_unit(name: str, back: int, today: date) -> tuple[date, date] | None:
    """Return the span of the calendar unit ``back`` units before the current unit.

    The span is its first day and the day after its last. Returns None before the year 1 or for an unknown ``name``.
    """
    if name == "day":
        return _one_day(today - timedelta(back)) if back < today.toordinal() else None
    if name in ("week", "weekend"):
        monday = today.toordinal() - today.weekday() - 7 * back
        first = monday + 5 if name == "weekend" else monday
        return (date.fromordinal(first), date.fromordinal(monday + 7)) if monday > 0 else None
    if name == "month":
        months = today.year * 12 + today.month - 1 - back
        return _span_of_month(months // 12, months % 12 + 1)
    if name == "year" and today.year > back:
        return date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1)
    return None


def _day_of_month(month: int, day: int, year: int | None, latest: date) -> tuple[date, date] | None:
    """Return the span of a day of a month in ``year``, or None if there is no such day.

    Without a year, the result is in the last year in which the day is not after ``latest``. 29 February needs up to
    eight years.
    """
    if year is not None:
        return _span_of_day(year, month, day)
    for back in range(9):
        span = _span_of_day(latest.year - back, month, day)
        if span is not None and span[0] <= latest:
            return span
    return None


def _span_of_day(year: int, month: int, day: int) -> tuple[date, date] | None:
    """Return a date and the day after it, or None if there is no such date."""
    span = _span_of_month(year, month)
    if span is None or not 1 <= day <= (span[1] - span[0]).days:
        return None
    return _one_day(date(year, month, day))


def _span_of_month(year: int, month: int) -> tuple[date, date] | None:
    """Return the first day of a month and of the next month, or None outside the years 1 to 9998."""
    if not 1 <= year < MAXYEAR or not 1 <= month <= 12:
        return None
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _one_day(day: date) -> tuple[date, date]:
    """Return a day and the day after it, which are the span of one day."""
    return day, day + timedelta(1)


def _parse_ordinal(word: str) -> int | None:
    """Parse a number of at most four digits, such as ``7``, ``7th`` or ``2023``; return None for other words."""
    return _parse_number(word[:-2] if word[-2:] in ("st", "nd", "rd", "th") else word)


def _parse_number(word: str) -> int | None:
    """Parse a number of at most four ASCII digits; return None for other words."""
    return int(word) if len(word) <= 4 and word.isascii() and word.isdecimal() else None


def _parse_year(word: str) -> int | None:
    """Parse a year from 1900 to 2199; return None for other words."""
    number = _parse_number(word) if len(word) == 4 else None
    return number if number is not None and _FIRST_YEAR <= number <= _LAST_YEAR else None


# Phrases, files and tags in a query.


_READ = 20_000
"""Characters of a memory that are searched for phrases, so that a pool of long documents takes milliseconds."""

_SHORT = 3
"""The minimum length of a file stem that names the file; ``a.py`` is only named by its full name."""

# Characters that separate paths and words in a query.
_APART = re.compile(r"[\s\"'`()\[\]{}<>,;:?!=|]+")


class Phrases:
    """The pairs of different stems that are neighbours in a query, without stop words.

    >>> phrases = Phrases(Words(), "When is the board meeting in Lisbon?")
    >>> [phrases.share(text) for text in ("They moved the board meeting", "The board: a meeting of Lisbon", "a meeting")]
    [0.5, 1.0, 0.0]
    """

    def __init__(self, words: Words, question: str) -> None:
        stems = words.stems(question)
        self._words, self._pairs = words, _neighbouring_pairs(stems)
        terms = dict.fromkeys(stem for stem in stems if stem in words)
        number = {stem: term for term, stem in enumerate(terms)}
        self.terms = [
            (number[first], number[second])
            for first, second in self._pairs
            if first in number and second in number
        ]
        """The pairs whose stems both occur in some text, as indices into the query's terms."""

    def share(self, text: str) -> float:
        """Return the share of the pairs that are neighbours in the text.

        The share is 0 for a query without pairs.
        """
        if not self._pairs:
            return 0.0
        return len(self._pairs.intersection(pairwise(self._words.stems(text[:_READ])))) / len(
            self._pairs
        )


def _neighbouring_pairs(stems: list[str]) -> set[tuple[str, str]]:
    """Return the pairs of adjacent stems that differ."""
    return {(first, second) for first, second in pairwise(stems) if first != second}


def tag_namer(words: Words, question: str) -> Callable[[str], bool]:
    """Return a function that tells whether a query names a tag.

    The stems of the tag must occur in sequence.

    >>> is_named = tag_namer(Words(), "which deploy scripts are flaky?")
    >>> is_named("deploy-script"), is_named("deploy"), is_named("flaky-deploy"), is_named("which")
    (True, True, False, False)
    """
    query_stems = _join_stems(words.stems(question))
    cache: dict[str, bool] = {}

    def is_named(tag: str) -> bool:
        """Return whether the query names a tag."""
        if tag not in cache:
            stems = words.stems(tag)
            cache[tag] = bool(stems) and _join_stems(stems) in query_stems
        return cache[tag]

    return is_named


def _join_stems(stems: list[str]) -> str:
    """Join stems with separators, so that a substring search compares whole stems."""
    return "\x1f" + "".join(f"{stem}\x1f" for stem in stems)


def file_namer(stop_words: frozenset[str], question: str) -> Callable[[str], bool]:
    """Return a function that tells whether the query names a file, ignoring case.

    A file is named by its path, the end of its path, its name or its stem.

    >>> is_named = file_namer(frozenset(["all"]), "Who wrote recall/_pipeline.py, and all of parser?")
    >>> [is_named(path) for path in ("memlab/kernel/recall/_pipeline.py", "src/parser.rs", "src/all.rs", "pipeline.py")]
    [True, True, False, False]
    """
    pieces = {piece.strip("./") for piece in _APART.split(question.lower().replace("\\", "/"))} - {
        ""
    }

    def is_named(path: str) -> bool:
        """Return whether the query names a file."""
        parts = [
            part for part in path.lower().replace("\\", "/").split("/") if part and part != "."
        ]
        if any(
            "/".join(parts[start:]).strip("./") in pieces
            for start in range(max(len(parts) - _DEEP, 0), len(parts))
        ):
            return True
        stem = parts[-1].rpartition(".")[0] if parts else ""
        return len(stem) >= _SHORT and stem not in stop_words and stem in pieces

    return is_named


_DEEP = 32
"""The maximum number of folders of a path that are matched, counted from its end."""


# Triggers: texts that add a memory to the candidates of every query that contains them.
#
# A trigger matches if it occurs in the query, ignoring case. ``*`` matches any text, including none
# (``log*password``). The pattern language has nothing else, so that no pattern can be slow: the
# query is searched once for each part between stars, from left to right. A trigger that consists of
# stars is literal.
#
# Triggers are indexed by the first letters of their longest part; only those whose letters occur are compared.


_START = 4
"""The number of letters by which triggers are indexed: enough to exclude most, few enough to enumerate in a query."""

_Parts = tuple[str, ...]


def occurs(trigger: str, text: str) -> bool:
    """Return whether ``trigger`` matches ``text``, ignoring case.

    >>> occurs("Log*password", "please log the user's PASSWORD"), occurs("log*password", "password log")
    (True, False)
    """
    return _parts_occur(_split_trigger(trigger), text.lower())


class Triggers:
    """The triggers of a state, indexed by their first letters.

    Triggers of new memories are indexed when they are first needed.
    """

    def __init__(self) -> None:
        self._source: weakref.ref[object] | None = None
        self._count = 0
        self._index: dict[str, dict[_Parts, list[int]]] = {}

    def match(self, state: State, text: str) -> Ints:
        """Return the ascending rows that have a trigger matching ``text``."""
        if not state.lists["triggers"].has_values:
            return NO_ROWS
        self._learn(state)
        lowered = text.lower()
        rows: list[int] = []
        for start in self._starts(lowered):
            for parts, rows_of_trigger in self._index[start].items():
                if _parts_occur(parts, lowered):
                    rows += rows_of_trigger
        return np.array(sorted(set(rows)), dtype=np.int64)

    def _starts(self, text: str) -> list[str]:
        """Return the keys of the index, beginnings of the longest parts of triggers, that occur in the text.

        The shorter of two lists is searched: the keys, or the pieces of the text.
        """
        if _START * len(text) > len(self._index):
            return [start for start in self._index if start in text]
        pieces = {
            text[start : start + size]
            for start in range(len(text))
            for size in range(1, _START + 1)
        }
        return [piece for piece in pieces if piece in self._index]

    def _learn(self, state: State) -> None:
        """Index the trigger phrases of new rows, or of all rows of a different state."""
        lists = state.lists["triggers"]
        if self._source is None or self._source() is not lists:
            self._source, self._count, self._index = weakref.ref(lists), 0, {}
        for row, triggers in islice(lists.items(), self._count, None):
            for parts in map(_split_trigger, triggers):
                start = max(parts, key=len)[:_START]
                self._index.setdefault(start, {}).setdefault(parts, []).append(row)
            self._count += 1


def _split_trigger(trigger: str) -> _Parts:
    """Split a trigger phrase, in lower case, at its ``*`` wildcards."""
    low = trigger.lower()
    return tuple(part for part in low.split("*") if part) or (low,)


def _parts_occur(parts: _Parts, text: str) -> bool:
    """Return whether the parts of a trigger occur in the text in order."""
    start = 0
    for part in parts:
        start = text.find(part, start)
        if start < 0:
            return False
        start += len(part)
    return True
