"""Which days a question names, relative to the instant at which it is asked.

``2023-05-07``, ``7 May 2023``, ``May 7th``, ``May 2023``, ``in May``, ``in 2022``, ``on Friday``, ``yesterday``,
``last week``, ``two months ago``. Names are English; the days are those of UTC. Memories lie behind, not ahead: a
weekday is the last one before today, and a day or a month without a year the last one that had begun when the newest
memory was created, so that who asks years later still means a year that memories know.

The text is read once, word by word, and each word looks at no more than four of its neighbours.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from datetime import MAXYEAR, date, timedelta
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.base.clock import DAY
from memlab.kernel.english import NUMBER_WORDS, word_pattern
from memlab.kernel.index import Words
from memlab.kernel.state import State

__all__ = [
    "Phrases",
    "Span",
    "Triggers",
    "days_from",
    "file_namer",
    "named_dates",
    "occurs",
    "tag_namer",
]


Span = tuple[int, int]
"""From an instant up to, and without, another; microseconds UTC."""

_EPOCH = date(1970, 1, 1).toordinal()
_RUN = word_pattern("joined")
_ISO = re.compile(r"(\d{4})-(\d\d?)(?:-(\d\d?))?(?:t\d\d)?", re.ASCII)
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
DATE_COUNTS = {
    word: number for word, number in NUMBER_WORDS.items() if 1 <= number <= 12 and word != "dozen"
}
DATE_COUNTS |= {"a": 1, "an": 1}
_BEFORE_A_MONTH = frozenset(
    ("in", "during", "since", "until", "by", "of", "from", "early", "late", "mid", "last")
)
"""May, March, April and June are other things, too; after one of these words they are months."""

_BEFORE_A_YEAR = frozenset(
    ("in", "during", "since", "until", "by", "of", "from", "year", "early", "late", "mid")
)
DATE_CUES = frozenset(
    (*_MONTHS, *_WEEKDAYS, "today", "tonight", "yesterday", "last", "this", "ago")
)
_FIRST_YEAR, _LAST_YEAR = 1900, 2199


def named_dates(text: str, at: int, newest: int | None = None) -> tuple[Span, ...]:
    """The spans that ``text`` names when it is asked at ``at``, in the order of the text; none if it names no date.

    What has no year lies before ``newest``, if that is before ``at``.

    >>> noon = 1_684_497_600_000_000  # Friday, 19 May 2023, 12:00
    >>> [(start // DAY, end // DAY) for start, end in named_dates("What did we plan on 7 May, and last week?", noon)]
    [(19484, 19485), (19485, 19492)]
    """
    words = _words(text)
    if DATE_CUES.isdisjoint(words) and all(map(str.isalpha, words)):
        return ()  # most questions: neither a number nor a word without which there is no date
    today, latest = _day_at(at), _day_at(at if newest is None else min(at, newest))
    if today is None or latest is None:
        return ()
    return tuple(
        ((first.toordinal() - _EPOCH) * DAY, (last.toordinal() - _EPOCH) * DAY)
        for first, last in date_spans(words, today, latest)
    )


def _day_at(instant: int) -> date | None:
    """None in the last year that dates reach and in the first ten, where no unit lies before or after."""
    day = instant // DAY + _EPOCH
    return date.fromordinal(day) if 3_653 < day < date.max.toordinal() - 365 else None


def days_from(spans: tuple[Span, ...], instants: NDArray[np.int64]) -> NDArray[np.float64]:
    """f64[instants]: days from the nearest span; 0 within one, negative before it. NaN where there is no span."""
    nearest = np.full(len(instants), np.nan)
    moments = instants.astype(np.float64) if spans else nearest
    for start, end in spans:
        last = end - 1
        gap = (np.minimum(moments - start, 0.0) + np.maximum(moments - last, 0.0)) / DAY
        nearest = np.where(np.isnan(nearest) | (np.abs(gap) < np.abs(nearest)), gap, nearest)
    return nearest


def _words(text: str) -> list[str]:
    """Runs of letters and digits; those that hyphens join are parted unless they are a date."""
    words: list[str] = []
    for run in _RUN.findall(text.lower()):
        words += [run] if "-" not in run or _ISO.fullmatch(run) else run.split("-")
    return words


def date_spans(words: list[str], today: date, latest: date) -> Iterator[tuple[date, date]]:
    """Each named span as its first day and the day after its last."""
    place = 0
    while place < len(words):
        used, span = _at(words, place, today, latest)
        if span is not None:
            yield span
        place += used


def _at(
    words: list[str], place: int, today: date, latest: date
) -> tuple[int, tuple[date, date] | None]:
    """The span that begins at this word, if any, and how many words are read."""
    word = words[place]
    before = words[place - 1] if place else ""
    after = [*words[place + 1 : place + 5], "", "", "", ""]
    written = _ISO.fullmatch(word)
    if written is not None:
        year, month = int(written[1]), int(written[2])
        return 1, _month(year, month) if written[3] is None else _day(year, month, int(written[3]))
    number = _ordinal(word)
    if number is not None:
        # 7 May 2023, 7th of May
        of = after[0] == "of"
        if after[of] in _MONTHS:
            given = _year(after[1 + of])
            span = _dated(_MONTHS[after[of]], number, given, latest)
            if span is not None:
                return 2 + of + (given is not None), span
        if _year(word) is not None and before in _BEFORE_A_YEAR:
            return 1, (date(number, 1, 1), date(number + 1, 1, 1))
    if word in _MONTHS:
        return _from_month(word, before, after, latest)
    if word in _WEEKDAYS and before not in ("next", "every", "each"):
        return 1, _one(today - timedelta((today.weekday() - _WEEKDAYS[word] - 1) % 7 + 1))
    return _relative(word, after, today)


def _from_month(
    word: str, before: str, after: list[str], latest: date
) -> tuple[int, tuple[date, date] | None]:
    """May 7th, 2023; May 2023; in May."""
    month, number, year = _MONTHS[word], _ordinal(after[0]), _year(after[0])
    if year is not None:
        return 2, _month(year, month)
    if number is not None:
        year = _year(after[1])
        span = _dated(month, number, year, latest)
        if span is not None:
            return 2 + (year is not None), span
    if before in _BEFORE_A_MONTH:
        return 1, _month(latest.year - (month > latest.month), month)
    return 1, None


def _relative(word: str, after: list[str], today: date) -> tuple[int, tuple[date, date] | None]:
    """Today, yesterday, last week, three months ago."""
    if word in ("today", "tonight"):
        return 1, _one(today)
    if word == "yesterday":
        return 1, _one(today - timedelta(1))
    if word == "last" and after[0] == "night":
        return 2, _one(today - timedelta(1))
    if word in ("last", "this") and after[0] in DATE_UNITS:
        return 2, _unit(after[0], int(word == "last"), today)
    count = DATE_COUNTS.get(word) or _whole(word)
    if count is not None and after[1] == "ago":
        return 3, _unit(after[0].removesuffix("s"), count, today)
    return 1, None


DATE_UNITS = frozenset(("day", "week", "weekend", "month", "year"))


def _unit(name: str, back: int, today: date) -> tuple[date, date] | None:
    """The calendar's unit that lies ``back`` units behind today's."""
    if name == "day":
        return _one(today - timedelta(back)) if back < today.toordinal() else None
    if name in ("week", "weekend"):
        monday = today.toordinal() - today.weekday() - 7 * back
        first = monday + 5 if name == "weekend" else monday
        return (date.fromordinal(first), date.fromordinal(monday + 7)) if monday > 0 else None
    if name == "month":
        months = today.year * 12 + today.month - 1 - back
        return _month(months // 12, months % 12 + 1)
    if name == "year" and today.year > back:
        return date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1)
    return None


def _dated(month: int, day: int, year: int | None, latest: date) -> tuple[date, date] | None:
    """A day of a month; without a year the last one up to ``latest``: of 29 February, up to eight years back."""
    if year is not None:
        return _day(year, month, day)
    for back in range(9):
        span = _day(latest.year - back, month, day)
        if span is not None and span[0] <= latest:
            return span
    return None


def _day(year: int, month: int, day: int) -> tuple[date, date] | None:
    span = _month(year, month)
    if span is None or not 1 <= day <= (span[1] - span[0]).days:
        return None
    return _one(date(year, month, day))


def _month(year: int, month: int) -> tuple[date, date] | None:
    if not 1 <= year < MAXYEAR or not 1 <= month <= 12:
        return None
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _one(day: date) -> tuple[date, date]:
    return day, day + timedelta(1)


def _ordinal(word: str) -> int | None:
    """The number that ``7``, ``7th`` or ``2023`` writes."""
    return _whole(word[:-2] if word[-2:] in ("st", "nd", "rd", "th") else word)


def _whole(word: str) -> int | None:
    return int(word) if len(word) <= 4 and word.isascii() and word.isdecimal() else None


def _year(word: str) -> int | None:
    number = _whole(word) if len(word) == 4 else None
    return number if number is not None and _FIRST_YEAR <= number <= _LAST_YEAR else None


# What a question says of a memory in passing: two words that stand together, a file, a tag.


_READ = 20_000
"""Characters of a memory in which phrases are looked for: a pool of long documents is read in milliseconds."""

_SHORT = 3
"""A file's stem counts from so many letters on; ``a.py`` is named by its whole name."""

_APART = re.compile(r"[\s\"'`()\[\]{}<>,;:?!=|]+")


class Phrases:
    """The pairs of different stems that are neighbours in a question, stop words left out.

    >>> asked = Phrases(Words(), "When is the board meeting in Lisbon?")
    >>> [asked.share(text) for text in ("They moved the board meeting", "The board: a meeting of Lisbon", "a meeting")]
    [0.5, 1.0, 0.0]
    """

    def __init__(self, words: Words, question: str) -> None:
        stems = words.stems(question)
        self._words, self._pairs = words, _pairs(stems)
        known = dict.fromkeys(stem for stem in stems if stem in words)
        number = {stem: term for term, stem in enumerate(known)}
        self.terms = [
            (number[one], number[two])
            for one, two in self._pairs
            if one in number and two in number
        ]
        """The pairs that a text can have, as the numbers of the question's known terms."""

    def share(self, text: str) -> float:
        """The share of them that are neighbours in the text, too; 0 where the question has none."""
        if not self._pairs:
            return 0.0
        return len(self._pairs.intersection(pairwise(self._words.stems(text[:_READ])))) / len(
            self._pairs
        )


def _pairs(stems: list[str]) -> set[tuple[str, str]]:
    return {(one, two) for one, two in pairwise(stems) if one != two}


def tag_namer(words: Words, question: str) -> Callable[[str], bool]:
    """Whether the stems of a tag stand in the question, one after the other.

    >>> named = tag_namer(Words(), "which deploy scripts are flaky?")
    >>> named("deploy-script"), named("deploy"), named("flaky-deploy"), named("which")
    (True, True, False, False)
    """
    asked = _joined(words.stems(question))
    known: dict[str, bool] = {}

    def named(tag: str) -> bool:
        if tag not in known:
            stems = words.stems(tag)
            known[tag] = bool(stems) and _joined(stems) in asked
        return known[tag]

    return named


def _joined(stems: list[str]) -> str:
    return "\x1f" + "".join(f"{stem}\x1f" for stem in stems)


def file_namer(stop_words: frozenset[str], question: str) -> Callable[[str], bool]:
    """Whether the question names a file: by its path, by the end of its path, by its name or by its stem; in any case.

    >>> named = file_namer(frozenset(["all"]), "Who wrote recall/_pipeline.py, and all of parser?")
    >>> named("memlab/kernel/recall/_pipeline.py"), named("src/parser.rs"), named("src/all.rs"), named("pipeline.py")
    (True, True, False, False)
    """
    said = {piece.strip("./") for piece in _APART.split(question.lower().replace("\\", "/"))} - {""}

    def named(path: str) -> bool:
        parts = [
            part for part in path.lower().replace("\\", "/").split("/") if part and part != "."
        ]
        if any(
            "/".join(parts[start:]).strip("./") in said
            for start in range(max(len(parts) - _DEEP, 0), len(parts))
        ):
            return True
        stem = parts[-1].rpartition(".")[0] if parts else ""
        return len(stem) >= _SHORT and stem not in stop_words and stem in said

    return named


_DEEP = 32
"""Folders from the end of a path that a question may give."""


# Which memories a question calls up by their triggers.
#
# A trigger is a text that occurs in the question, in any case; ``*`` in it stands for any text between, also none
# (``log*password``). There is nothing else to the language, so that no pattern can be slow: a search goes once through
# the question for each part between stars, from left to right. A trigger of stars alone stands for itself.
#
# Triggers are kept by the first letters of their longest part, and only those whose letters stand in the question are
# looked at.


_START = 4

_Parts = tuple[str, ...]


def occurs(trigger: str, text: str) -> bool:
    """Whether ``trigger`` occurs in ``text``, in any case.

    >>> occurs("Log*password", "please log the user's PASSWORD"), occurs("log*password", "password log")
    (True, False)
    """
    return _occurs(_parts(trigger), text.lower())


class Triggers:
    """The triggers of a state; those of new memories are added when they are asked for."""

    def __init__(self) -> None:
        self._of: weakref.ref[object] | None = None
        self._seen = 0
        self._kept: dict[str, dict[_Parts, list[int]]] = {}

    def called(self, state: State, text: str) -> NDArray[np.int64]:
        """The rows with a trigger in ``text``, ascending."""
        if not state.lists["triggers"].has_values:
            return np.empty(0, dtype=np.int64)
        self._learn(state)
        said = text.lower()
        rows: list[int] = []
        for start in self._starts(said):
            for parts, calls in self._kept[start].items():
                if _occurs(parts, said):
                    rows += calls
        return np.array(sorted(set(rows)), dtype=np.int64)

    def _starts(self, said: str) -> list[str]:
        """The kept beginnings that occur; by whichever are fewer, those or the pieces of the text."""
        if _START * len(said) > len(self._kept):
            return [start for start in self._kept if start in said]
        pieces = {said[at : at + size] for at in range(len(said)) for size in range(1, _START + 1)}
        return [piece for piece in pieces if piece in self._kept]

    def _learn(self, state: State) -> None:
        """The triggers of rows that came since; all of them of another state."""
        lists = state.lists["triggers"]
        if self._of is None or self._of() is not lists:
            self._of, self._seen, self._kept = weakref.ref(lists), 0, {}
        for row, triggers in islice(lists.items(), self._seen, None):
            for parts in map(_parts, triggers):
                start = max(parts, key=len)[:_START]
                self._kept.setdefault(start, {}).setdefault(parts, []).append(row)
            self._seen += 1


def _parts(trigger: str) -> _Parts:
    low = trigger.lower()
    return tuple(part for part in low.split("*") if part) or (low,)


def _occurs(parts: _Parts, text: str) -> bool:
    start = 0
    for part in parts:
        start = text.find(part, start)
        if start < 0:
            return False
        start += len(part)
    return True
