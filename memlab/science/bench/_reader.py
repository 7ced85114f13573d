"""Answer questions from a prompt context without a model, and score answers by their words.

The reader is deterministic, so that answers can be tested without a network. It copies words of the
best sentence of the context. Its rules were written after reading three conversations of LoCoMo, and
state dates in the form of that data set, such as "The week before 9 June 2023".
"""

from __future__ import annotations

import calendar
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence, Set
from datetime import date, timedelta
from functools import lru_cache, partial
from typing import NamedTuple

import Stemmer

from memlab.kernel.base.arguments import checked
from memlab.subjects.reading.sentences import sentence_spans

# The stemmer of LoCoMo's published scores.
_STEMMER = Stemmer.Stemmer("porter")
# Words without content in questions and sentences.
_STOP_WORDS = """
a an the and or of to in on at for from with by is are was were be been being do does did has have had what which who
whom whose when where why how that this these those it its as his her their he she they them my your our i you we me
him us not no s t can could would will should about into than then there
"""
# Further words that an answer needs as little: fillers, praise, and verbs that any sentence may have.
_FILLER_WORDS = """
i'm i've i'd i'll im you're you've we're we've we'll it's that's he's she's they're let's there's here's what's gonna
gotta wanna really just so very super too also even still well oh hey wow yeah yep yes thanks thank totally definitely
absolutely kinda lot lots much more some any all got get getting go went going gone like now here but if because 'cause
cause since while though back up out off over down one thing things stuff bit way lately recently always never ever
such only take took taken make made makes making know think feel see look say said tell told want wanted need keep
great awesome amazing good nice cool glad happy sure btw image photo picture can't don't didn't doesn't won't wasn't
isn't last week yesterday month year guess check
"""
_STOP = frozenset(_STOP_WORDS.split())
_FILLERS = _STOP | frozenset(_FILLER_WORDS.split())
_UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {name: number for number, name in enumerate(_UNITS)} | {"a": 1, "an": 1, "couple": 2}
_MONTHS: Sequence[str] = calendar.month_name[1:]
_WEEKDAYS: Sequence[str] = (*calendar.day_name,)
# A weekday and its usual abbreviations.
_DAY = r"(mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|ur)?(?:day)?\b"

_MAX_WORDS = 6
"""Maximum words of an answer. Longer ones share no more words with the expected answers."""

_MAX_PHRASES, _PHRASE_WORDS = 8, 4
"""Phrases of an answer to a question for several things, and the words of each.

LoCoMo's score of a multi-hop answer compares each expected item with its best item, so further items cost
nothing there.
"""


class _Note(NamedTuple):
    """A line of a context: the day and speaker of a memory, and its text."""

    day: date | None
    speaker: str
    text: str


class _Sentence(NamedTuple):
    """A sentence of a note, with its content stems and its match with the question."""

    note: _Note
    text: str
    value: float


# -- when: what an expression of time in a sentence means on the day on which it was said


def _say_day(day: date) -> str:
    """Format a day as "7 May 2023"."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _shift_month(day: date, count: int) -> str:
    """Format the month that is ``count`` months after a day, as "June 2023"."""
    months = day.year * 12 + day.month - 1 + count
    return f"{_MONTHS[months % 12]} {months // 12}"


def _name_weekday(match: re.Match[str]) -> str:
    """Return the full name of the weekday that a regex match abbreviates."""
    start: str = match[1].lower()
    return next(name for name in _WEEKDAYS if name.lower().startswith(start))


def _say_ago(match: re.Match[str], day: date) -> str | None:
    """Resolve a phrase such as "two weeks ago"; return None if the number is unknown."""
    word, unit = match[1].lower(), match[2].lower()
    if word in ("few", "several"):
        return f"A few {unit}s ago"
    number = int(word) if word.isdecimal() and len(word) < 3 else _NUMBERS.get(word, 0)
    if not number:
        return None
    if unit == "day":
        return _say_day(day - timedelta(number))
    if unit == "month":
        return _shift_month(day, -number)
    if unit == "year":
        return str(day.year - number)
    count = _UNITS[number] if number < len(_UNITS) else str(number)
    return f"{count} {unit}{'s' * (number > 1)} before {_say_day(day)}"


_Phrase = Callable[[re.Match[str], date], "str | None"]
# The first rule that matches decides, so that longer expressions stand before their parts.
_TIMES: tuple[tuple[re.Pattern[str], _Phrase], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), phrase)
    for pattern, phrase in (
        (rf"\b(?:last|past) {_DAY}", lambda m, d: f"The {_name_weekday(m)} before {_say_day(d)}"),
        (
            r"\b(?:last|past|previous) (week(?:end)?)\b(?! of)",
            lambda m, d: f"The {m[1]} before {_say_day(d)}",
        ),
        (r"\b(?:last|past) month\b", lambda _, d: _shift_month(d, -1)),
        (r"\b(?:last|past) year\b", lambda _, d: str(d.year - 1)),
        (
            r"\blast (summer|winter|spring|fall|autumn)\b",
            lambda m, d: f"The {m[1]} of {d.year - 1}",
        ),
        (r"\bday before yesterday\b", lambda _, d: _say_day(d - timedelta(2))),
        (r"\b(?:yesterday|last (?:night|evening))\b", lambda _, d: _say_day(d - timedelta(1))),
        (r"\btomorrow\b", lambda _, d: _say_day(d + timedelta(1))),
        (r"\b(?:next|upcoming) month\b", lambda _, d: _shift_month(d, 1)),
        (
            r"\b(?:next|upcoming) (week(?:end)?)\b",
            lambda m, d: f"The {m[1]} after {_say_day(d)}",
        ),
        (
            rf"\b(?:next|coming|upcoming) {_DAY}",
            lambda m, d: f"The {_name_weekday(m)} after {_say_day(d)}",
        ),
        (r"\bnext year\b", lambda _, d: str(d.year + 1)),
        (r"\bthis month\b", lambda _, d: _shift_month(d, 0)),
        (r"\bthis (week(?:end)?)\b", lambda m, d: f"The {m[1]} of {_say_day(d)}"),
        (r"\b(\w+)(?: of)? (day|week|weekend|month|year)s? ago\b", _say_ago),
        (r"\b(?:in|since) ((?:19|20)\d\d)\b", lambda m, _: m[1]),
        (
            rf"\b(?:on|in|since) ({'|'.join(_MONTHS)})(?: (\d\d?)(?:st|nd|rd|th)?)?\b",
            lambda m, d: f"{m[2] + ' ' if m[2] else ''}{m[1]} {d.year}",
        ),
        (rf"\bon {_DAY}", lambda m, d: f"The {_name_weekday(m)} before {_say_day(d)}"),
        (
            r"\b(?:today|tonight|this (?:morning|afternoon|evening)|just now)\b",
            lambda _, d: _say_day(d),
        ),
    )
)


def _read_time(text: str, day: date | None) -> str | None:
    """Return the time that the first matching pattern of ``_TIMES`` finds in a text of a given day.

    The result is None without a day or without a time.
    """
    if day is None:
        return None
    for pattern, phrase in _TIMES:
        match = pattern.search(text)
        if match and (time := phrase(match, day)):
            return time
    return None


# -- questions and sentences

# A line of a context; years of other lengths would leave the calendar when they are shifted.
_LINE = re.compile(r"[-!] (?:([12]\d{3}-\d\d-\d\d)(?:, ([^:\n]{1,60}))?: )?(.*)")
# Questions for a time, for yes or no, for several things, a duration and a number.
_WHEN = re.compile(r"\s*(?:when|(?:in |on )?(?:what|which) (?:day|date|month|year))\b", re.I)
_POLAR = re.compile(r"\s*(?:did|do|does|is|are|was|were|has|have|had|can|could|will|would)\b", re.I)
_SEVERAL = re.compile(
    r"\s*(?i:what|which|where|who)(?: (?!is|was|does|has)\w+)? (?!(?:is|was|does|has)\b)[a-z]+s\b"
    r"|\s*(?i:what|which|where|who)\b.*\b(?:has|have|both)\b"
)
_DURATION = re.compile(
    r"\b((?:about |around |almost |over )?(?:\d+|a|an|couple of|few|"
    + "|".join(_UNITS[1:])
    + r") (?:minute|hour|day|week|month|year)s?)\b",
    re.IGNORECASE,
)
# The things between which a question leaves the choice, and a word for the listener.
_CHOICE = re.compile(r"\b(\w{1,40}(?: \w{1,40})?) or (?:an? |the )?(\w{1,40}(?: \w{1,40})?)\?")
_YOU = re.compile(r"\byour?\b", re.IGNORECASE)
_COUNT = re.compile(rf"\b(\d+|{'|'.join(_UNITS[1:])}|once|twice)\b", re.IGNORECASE)
# Letters and digits of any script.
_WORD = re.compile(r"[^\W_]+")


@lru_cache(1 << 16)  # the words of a conversation recur in each of its contexts
def _stem(word: str) -> str:
    """Return the Porter stem of a lower-case word, for scores comparable with LoCoMo's."""
    return str(_STEMMER.stemWord(word))


@lru_cache(1 << 14)  # a sentence recurs in the contexts of all budgets
def content_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's content words."""
    words = _WORD.findall(text.lower().replace("\u2019", "'").replace("'s", ""))
    return frozenset(_stem(word) for word in words if word not in _STOP)


@checked
def read_answer(question: str, context: str) -> str:
    """Answer a question from a prompt context without a model.

    A question for a time is answered with the time that the best sentence states, seen from the day
    on which it was said. Other answers are words of the best sentence that the question lacks.

    Parameters
    ----------
    question
        The question.
    context
        The text of a context, such as ``lab.context(question).text``: lines with a day, a speaker and a
        text.

    Returns
    -------
    str
        The answer; empty without lines.

    Examples
    --------
    >>> read_answer("When did Ida sail?", "- 2026-05-08, Ida: I went sailing yesterday.")
    '7 May 2026'
    """
    sentences, question_stems = _find_sentences(question, context)
    if not sentences:
        return ""
    if _WHEN.match(question):
        # A sentence that states a time answers better than one that shares a word more.
        best = max(
            sentences,
            key=lambda each: each.value + 1.5 * bool(_read_time(each.text, each.note.day)),
        )
        time = _read_time(best.text, best.note.day) or _read_time(best.note.text, best.note.day)
        return time or (best.text if best.note.day is None else _say_day(best.note.day))
    if _POLAR.match(question):
        choice = _CHOICE.search(question)
        return max(choice.groups(), key=partial(_count_most_frequent, context)) if choice else "Yes"
    sentences.sort(key=lambda each: -each.value)
    for words, pattern in (("how long", _DURATION), ("how many", _COUNT)):
        if words in question.lower():
            matches = (pattern.search(each.text) for each in sentences[:10])
            if match := next(filter(None, matches), None):
                return match[1] + " ago" * (f"{words} ago" in question.lower())
    if _SEVERAL.match(question):
        phrases = [
            _trim(each.text, question_stems, _PHRASE_WORDS) for each in sentences[:_MAX_PHRASES]
        ]
        return ", ".join(filter(None, phrases))
    return next(
        filter(None, (_trim(each.text, question_stems, _MAX_WORDS) for each in sentences)), ""
    )


def _count_most_frequent(context: str, phrase: str) -> int:
    """Return the highest number of times that a word of a phrase, of over 3 letters, occurs in a context."""
    words = (word for word in phrase.lower().split() if len(word) > 3)
    return max(map(context.lower().count, words), default=0)


def _find_sentences(question: str, context: str) -> tuple[list[_Sentence], Set[str]]:
    """Return the scored sentences of a context, and the stems of the question."""
    lines = filter(None, map(_LINE.fullmatch, context.splitlines()))
    notes = [_Note(_read_day(line[1]), line[2] or "", line[3]) for line in lines]
    names = {note.speaker for note in notes if note.speaker}
    question_stems = content_stems(question) - {_stem(name.lower()) for name in names}
    subjects = {name for name in names if name.lower() in question.lower()}
    parts = [
        (rank, note, text, content_stems(text))
        for rank, note in enumerate(notes)
        for text in _split_sentences(note.text)
    ]
    frequency = Counter(stem for *_, stems in parts for stem in stems)
    weight = {stem: math.log(1 + len(parts) / (frequency[stem] + 0.5)) for stem in question_stems}
    # Exact sums do not depend on the order of a set, which varies between processes.
    total = math.fsum(weight.values())
    # Chosen on three conversations: the rank of a note counts as much as all words of the question; words that an answer
    # would take say more, other words distract; the person whom the question names should speak, not of the listener; a
    # question or an empty phrase is no answer.
    return [
        _Sentence(
            note,
            text,
            math.fsum(weight[stem] for stem in question_stems & stems)
            + total / (1 + rank)
            + total * min(_trim(text, question_stems, 10).count(" ") + 1, 10) / 15
            - total * min(len(stems - question_stems), 12) / 30
            - 0.1 * total * bool(_YOU.search(text))
            + 2 * (note.speaker in subjects)
            - 3 * text.endswith("?")
            - 2 * (stems <= question_stems),
        )
        for rank, note, text, stems in parts
    ], question_stems


def _read_day(text: str | None) -> date | None:
    """Return the date in a line, or None if the line has no valid date."""
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        return None


@lru_cache(1 << 14)  # a note recurs in the contexts of all budgets
def _split_sentences(text: str) -> tuple[str, ...]:
    """Return the non-empty sentences of a text."""
    return tuple(filter(None, (text[start:stop].strip() for start, stop in sentence_spans(text))))


def _trim(sentence: str, question_stems: Set[str], maximum: int) -> str:
    """Return at most ``maximum`` content words of a sentence that are not in the question, joined by spaces."""
    words = []
    for word in sentence.split():
        bare = word.strip(".,;:!?()[]\u2026\u2014-")
        plain = bare.lower().replace("\u2019", "'")
        if plain and plain not in _FILLERS and not content_stems(plain) & question_stems:
            words.append(bare)
    return " ".join(words[:maximum])


# -- scores of answers

# The words and the signs that LoCoMo's scores ignore.
_ARTICLES = re.compile(r"\b(?:a|an|the|and)\b")
_MARKS = re.compile(r"[^\w\s]|_")


def _count_stems(text: str) -> Counter[str]:
    """Count the stems in an answer, ignoring commas, articles and punctuation."""
    plain = _MARKS.sub("", _ARTICLES.sub(" ", text.lower().replace(",", "")))
    return Counter(map(_stem, plain.split()))


@checked
def token_f1(answer: str, expected: str) -> float:
    """Return the token F1 of an answer, by LoCoMo's definition.

    Words are stemmed and lower-case, without articles and marks.

    Parameters
    ----------
    answer
        The answer.
    expected
        The expected answer.

    Returns
    -------
    float
        From 0 (no common word) to 1 (the same words).

    References
    ----------
    Maharana et al. 2024, "Evaluating Very Long-Term Conversational Memory of LLM Agents".

    Examples
    --------
    >>> token_f1("7 May 2026", "May 7, 2026")
    1.0
    """
    first, second = _count_stems(answer), _count_stems(expected)
    common = (first & second).total()
    return 2 * common / (first.total() + second.total()) if common else 0.0


def score_answer(answer: str, expected: str, category: int | str) -> float:
    """Return the token F1 of an answer under the rules of LoCoMo's categories.

    Each item of a multi-hop answer (1) is compared with its best item of the answer. An open-domain
    answer (3) ends at its semicolon, before the reason.
    """
    if category == 1:
        items = answer.split(",")
        wanted = expected.split(",")
        return sum(max(token_f1(item, each) for item in items) for each in wanted) / len(wanted)
    return token_f1(answer, expected.split(";")[0] if category == 3 else expected)
