"""Statements that a later text restates, and the signs in words and queries.

A later text restates a statement if it gives another number, another date or the opposite.

A long message makes many statements, and one clause may correct one of them. A text is therefore read as *values* and
*denials*. A value is a number, share, price, time or date, with the words around it. The weight of a word falls with
its distance from the value. A denial says that the speaker never did something. Two texts are compared as follows.

- A value restates the value of the other text with the most similar words around it. Both values have the same kind,
  count the same things and differ. Neither text contains the value of the other.
- A denial restates a sentence that contains most of the denied words and denies nothing.

Nothing is learned and no other text is read, so two texts always give the same result. Code and quotations are not
read. The words are in ``signs.toml``; in a language without a table, only numbers are read. Reading takes time in
proportion to the length of a text. Comparing takes time in proportion to the product of the numbers of values, at most
256 in each text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from memlab.kernel.english._stop_words import STOP_WORDS
from memlab.kernel.english._words import padded, word_pattern, words_of

# Some words are signs of a time, a number or a speaker in a text, or of the subject of a question.


SAYS = ("says-when", "says-number", "first-person", "says-change", "says-others", "says-rule")
"""Features of a text that a word may be a sign of. The first feature has the lowest bit."""


# Names of the tables in signs.toml with the words that matter in statements and queries.
_TABLES = (
    "asks",
    "numbers",
    "months",
    "days",
    "never",
    "denials",
    "self",
    "turns",
    "links",
    "light",
    "done",
    "of-others",
    "only-ask",
    "unspecific",
)


@dataclass(frozen=True)
class Signs:
    """The tables and patterns of signs in one language.

    `bits` has the features of `SAYS` for each word, and `words` the tables of words by name. `patterns` match phrases
    in queries, by name.
    """

    bits: dict[str, int]
    words: dict[str, frozenset[str]]
    patterns: dict[str, re.Pattern[str]]

    def of(self, word: str) -> int:
        """Return the bit mask of the `SAYS` features that a lower-case word signals.

        >>> [signs_of("english").of(word) for word in ("may", "2023", "3pm", "we", "tabs")]
        [1, 3, 2, 4, 0]
        """
        bits = self.bits.get(word, 0)
        if self.bits and not word.isalpha() and any(map(str.isdecimal, word)):
            bits |= 3 if len(word) == 4 and word.isdecimal() else 2
        return bits

    def read_query(self, spoken: str) -> dict[str, bool]:
        """Return which features a query has, such as "asks-when".

        `spoken` has the query's words in lower case, with a space before and after each.
        """
        features = {
            name: pattern.search(spoken) is not None for name, pattern in self.patterns.items()
        }
        # The question is about the present and not about the past.
        features["asks-now"] &= not features.pop("asks-past")
        del features["asks-advice"]
        return features


# Each language is read from the file once per process.
@cache
def signs_of(language: str | None) -> Signs:
    """Return the sign words of a language; empty if the language has no tables."""
    tables = tomllib.loads((Path(__file__).parent / "signs.toml").read_text(encoding="utf-8")).get(
        language or "", {}
    )
    bits: dict[str, int] = {}
    for bit, name in enumerate(SAYS):
        for word in tables.get(name, ()):
            bits[word] = bits.get(word, 0) | 1 << bit

    def phrases(name: str, first: str = "") -> re.Pattern[str]:
        """Compile a pattern of phrases; phrases of `first` match only at the start."""
        patterns = [f"^ {re.escape(phrase)} " for phrase in tables.get(first, ())]
        patterns += [f" {re.escape(phrase)} " for phrase in tables.get(name, ())]
        return re.compile("|".join(patterns) or r"(?!)")

    query_tables = (
        "asks-how-many",
        "asks-you",
        "asks-now",
        "asks-past",
        "asks-over-time",
        "asks-advice",
    )
    words = {name: frozenset(tables.get(name, ())) for name in _TABLES}
    words["begins"] = words["numbers"] | words["months"] | words["days"]
    words["unsaid"] = words["denials"] | words["light"]
    patterns = {"asks-when": phrases("asks-when", "asks-when-first")}
    return Signs(bits, words, patterns | {name: phrases(name) for name in query_tables})


_LONGEST_QUESTION = 40
"""Words of the longest question. Longer ones are tasks of an agent that end with a question."""


def asks_for_fact(query: str, language: str) -> bool:
    """Return whether a query in a language is a short question for a fact, not for advice, nor a task.

    The language of the query is the one that has most of its stop words. The result is False if that is not
    ``language``, and for languages without tables.

    >>> asks_for_fact("Where does Ana live?", "english"), asks_for_fact("Wo wohnt die Ana?", "english")
    (True, False)
    >>> asks_for_fact("Can you recommend a restaurant?", "english"), asks_for_fact("Fix the flaky test", "english")
    (False, False)
    """
    signs, words = signs_of(language), words_of(query)
    asks = query.rstrip().endswith("?") or not signs.words["asks"].isdisjoint(words[:1])
    if not asks or len(words) > _LONGEST_QUESTION:
        return False
    counts = {name: sum(map(listed.__contains__, words)) for name, listed in STOP_WORDS.items()}
    spoken = 0 < counts.get(language, 0) == max(counts.values())
    return (
        spoken and bool(signs.bits) and signs.patterns["asks-advice"].search(padded(words)) is None
    )


_LONGEST = 20_000
"""Maximum number of characters that are read of a text. A longer text is a document, not a message."""
_HALF = 5
"""Distance in words at which the weight of a word near a value has fallen to one half."""
# Maximum distance in words, at which the weight is below 4%.
_REACH = 24
_OTHER_CLAUSE = 0.6
"""Factor on the weight of words in another clause of the same sentence."""
_LEAST = 0.4
"""Minimum cosine between the words around two values at which they count as values of the same thing."""
_DENIED = 0.7
"""Minimum share of the denied words that a sentence must contain to count as the denied sentence."""
_MOST = 256
"""Maximum number of values and of denials per text. A text with more is a table. Comparing two of 2,000 numbers took 15
s."""
_SUBJECT = 1 / 3
"""Maximum share of the words before a value in its clause that the restating text may lack."""

# Code and quotations, words, ends of sentences, currencies, and the forms of dates, times and units.
_FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"\n]{1,600}\"|\u201c[^\u201d\n]{1,600}\u201d|`[^`\n]{1,600}`")
_CODE = re.compile(r"^.*(?:[{};]|\w\(.*\)|</?\w+>|=>)[ \t]*$", re.MULTILINE)
_TOKEN = word_pattern("value")
_ENDS = frozenset(".!?;\n")
_MONEY = frozenset("$\u20ac\u00a3")
_SIGNS = _MONEY | {"%"}
_MAY_QUOTE = re.compile(r"[`~\"\u201c{};>]|\)[ \t]*$", re.MULTILINE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_CLOCK = re.compile(r"\d{1,2}(?::\d\d)?(?:am|pm)|\d{1,2}:\d\d")
_UNIT = re.compile(r"[\d.,:/]+([a-z]{1,3})")


class _Word(NamedTuple):
    """A word in lower case with its offsets. `stem` is None for function words."""

    low: str
    capital: bool
    stem: str | None
    start: int
    stop: int
    sentence: int
    clause: int


class _Value(NamedTuple):
    """A value at the words `first` to `last` - 1, with its kind and the stems of its unit."""

    kind: str
    value: str
    unit: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True)
class Restated:
    """A statement of an older text that a later text restates.

    `likeness` (0 to 1) compares the words around the two statements, and `words` has their common stems. `old` and
    `new` are the start and stop of their clauses.
    """

    likeness: float
    words: frozenset[str]
    old: tuple[int, int]
    new: tuple[int, int]


def restated(old: str, new: str, language: str = "english") -> list[Restated]:
    """Return the statements of `old` that `new` restates, most certain first.

    >>> older = "Hello! The shed has 12 shelves, and 3 of them are full."
    >>> [found] = restated(older, "Some news: my shed has 15 shelves now. What shall I put there?")
    >>> older[slice(*found.old)], sorted(found.words)
    ('The shed has 12 shelves', ['shed', 'shelv'])
    >>> restated(older, "The cellar of my sister has 15 shelves.")
    []
    """
    return list(_restated(old, new, language))


class Asked:
    """A query, to test whether a later text restates the statement that the query asks for.

    >>> asked = Asked("How many shelves has the shed?")
    >>> older, newer = "The shed has 12 shelves and a door of oak", "The shed has 15 shelves"
    >>> asked.outdated(older, newer), Asked("Is the door of oak?").outdated(older, newer)
    (1.0, 0.0)
    """

    def __init__(self, question: str, language: str = "english") -> None:
        self._stems, self._language = _read(question, language).stems, language

    def __len__(self) -> int:
        """Return the number of distinct stems of the query, without stop words."""
        return len(self._stems)

    def outdated(self, old: str, new: str) -> float:
        """Return the largest share of the query's stems that a restated statement contains."""
        statements = _restated(old, new, self._language) if self._stems else ()
        return max(
            (len(statement.words & self._stems) / len(self._stems) for statement in statements),
            default=0.0,
        )


class _Text:
    """A text, with its words, and with values and denials that are computed at first use."""

    def __init__(self, text: str, language: str) -> None:
        self._table = signs_of(language).words
        self.words = list(_split_words(text[:_LONGEST], language))

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all words except stop words."""
        return frozenset(word.stem for word in self.words if word.stem is not None)

    @cached_property
    def values(self) -> list[_Value]:
        """The first 256 values that the text states, such as numbers and dates."""
        begins = self._table["begins"]
        values: list[_Value] = []
        for position, word in enumerate(self.words):
            if (word.low[0].isdigit() or word.low in begins) and (
                not values or position >= values[-1].last
            ):
                value = self._value(position)
                if value is not None:
                    values.append(value)
            if len(values) == _MOST:
                break
        return values

    @cached_property
    def value_keys(self) -> frozenset[tuple[str, str]]:
        """The values of the text as pairs of kind and value."""
        return frozenset((value.kind, value.value) for value in self.values)

    @cached_property
    def around(self) -> list[dict[str, float]]:
        """The weights of the stems around each value."""
        return [self._weigh_context(value) for value in self.values]

    @cached_property
    def squares(self) -> list[float]:
        """The sum of the squared stem weights around each value."""
        return [sum(weight * weight for weight in around.values()) for around in self.around]

    @cached_property
    def denials(self) -> list[tuple[int, list[str]]]:
        """The positions where the speaker denies having done something, each with the denied stems."""
        denials = []
        for position, word in enumerate(self.words):
            if word.low in self._table["never"] and self._of_oneself(position):
                denied = list(dict.fromkeys(self._denied_stems(position)))
                if len(denied) > 1:
                    denials.append((position, denied))
            if len(denials) == _MOST:
                break
        return denials

    @cached_property
    def sentences(self) -> list[list[_Word]]:
        """The words of the text, one list per sentence."""
        return [list(words) for _, words in groupby(self.words, key=lambda word: word.sentence)]

    def clause(self, position: int) -> list[_Word]:
        """Return the words of the clause that contains the word at a position."""
        number = self.words[position].clause
        return [
            word
            for word in self.words[max(position - 2 * _REACH, 0) : position + 2 * _REACH]
            if word.clause == number
        ]

    def subject(self, value: _Value) -> list[str]:
        """Return the stems before a value in its clause, up to a verb such as "is"."""
        stems: list[str] = []
        for word in self.clause(value.first):
            if word.start >= self.words[value.first].start or word.low in self._table["links"]:
                break
            if word.stem is not None:
                stems.append(word.stem)
        return stems

    def speaks_of_others(self, words: list[_Word]) -> bool:
        """Return whether any word refers to another person or thing."""
        return any(word.low.removesuffix("'s") in self._table["of-others"] for word in words)

    def tells_of_oneself(self, words: list[_Word]) -> bool:
        """Return whether the words report an action of the speaker."""
        done = any(word.low in self._table["done"] or word.low.endswith("ed") for word in words)
        return done and any(word.low.partition("'")[0] in self._table["self"] for word in words)

    def denies(self, words: list[_Word]) -> bool:
        """Return whether any of the words is a denial."""
        return any(word.low in self._table["denials"] for word in words)

    def _value(self, position: int) -> _Value | None:
        """Return the value at a number, month or weekday; None for a year, or a month in lower case or without a day."""
        # Dates are tested first, then years, which are not values. Shares, times, prices, numbered names and plain
        # numbers follow.
        word, low = self.words[position], self.words[position].low
        after = self._in_sentence(position, position + 1)
        if low in self._table["months"] or low in self._table["days"]:
            parts = [low[:3]]
            last = position + 1
            while (
                (next := self._in_sentence(position, last)) is not None
                and last < position + 3
                and next.low[0].isdigit()
            ):
                if (day := _DAY.fullmatch(next.low)) is not None:
                    parts.append(day[1])
                last += 1
            if low in self._table["months"] and (not word.capital or len(parts) == 1):
                return None
            return _Value("date", " ".join(parts), (), position, last)
        number = low
        if _YEAR.fullmatch(low):
            return None
        before = self._in_sentence(position, position - 1)
        if (
            after is not None
            and after.low in self._table["months"]
            and after.capital
            and _DAY.fullmatch(number)
        ):
            return _Value("date", f"{after.low[:3]} {_day(number)}", (), position, position + 2)
        if number.endswith("%") or (after is not None and after.low in ("%", "percent")):
            return _Value(
                "percent",
                number.removesuffix("%"),
                (),
                position,
                position + 1 + (not number.endswith("%")),
            )
        if _CLOCK.fullmatch(number) or (after is not None and after.low in ("am", "pm")):
            return _Value("time", number, (), position, position + 1)
        if before is not None and before.low in _MONEY:
            return _Value("money", number, (), position, position + 1)
        if (
            before is not None
            and before.capital
            and before.stem is not None
            and not self._begins_sentence(position - 1)
        ):
            return _Value(f"named {before.stem}", number, (), position, position + 1)
        return _Value("number", number, self._unit(position), position, position + 1)

    def _unit(self, position: int) -> tuple[str, ...]:
        """Return the stems of a number's suffix and of at most three words after it.

        The words end at the end of the clause, at a number, or at a stop word after the first stem.
        """
        joined = _UNIT.fullmatch(self.words[position].low)
        stems = [joined[1]] if joined is not None else []
        for word in self.words[position + 1 : position + 4]:
            if word.clause != self.words[position].clause or word.low[0].isdigit():
                break
            if word.stem is not None:
                stems.append(word.stem)
            elif stems:
                break
        return tuple(stems)

    def _in_sentence(self, position: int, other: int) -> _Word | None:
        """Return the word at `other` if `position` is in the same sentence, otherwise None."""
        if (
            not 0 <= other < len(self.words)
            or self.words[other].sentence != self.words[position].sentence
        ):
            return None
        return self.words[other]

    def _begins_sentence(self, position: int) -> bool:
        """Return whether the word at a position is the first of its sentence."""
        return position == 0 or self.words[position - 1].sentence != self.words[position].sentence

    def _weigh_context(self, value: _Value) -> dict[str, float]:
        """Return the weight of each stem near a value in its sentence; weights fall with distance."""
        weights: dict[str, float] = {}
        sentence, clause = self.words[value.first].sentence, self.words[value.first].clause
        for position in range(
            max(value.first - _REACH, 0), min(value.last + _REACH, len(self.words))
        ):
            word = self.words[position]
            if (
                word.stem is None
                or word.sentence != sentence
                or value.first <= position < value.last
            ):
                continue
            distance = (
                value.first - position if position < value.first else position - value.last + 1
            )
            weight = 0.5 ** (distance / _HALF) * (1.0 if word.clause == clause else _OTHER_CLAUSE)
            weights[word.stem] = max(weights.get(word.stem, 0.0), weight)
        return weights

    def _of_oneself(self, position: int) -> bool:
        """Return whether a word for the speaker, such as "I", is among the four words before a denial.

        A denial by "not" must also directly follow "have", "had" or "did".
        """
        before = [word.low for word in self.words[max(position - 4, 0) : position]]
        done = self.words[position].low != "not" or bool({"have", "had", "did"} & set(before[-1:]))
        return done and any(low.partition("'")[0] in self._table["self"] for low in before)

    def _denied_stems(self, position: int) -> Iterator[str]:
        """Yield the stems of up to 23 words after a denial, at most to the end of its sentence.

        They end earlier at "I" or "we" and, after the first stem, at a turn such as "but"; "and" is no such
        turn.
        """
        began = False
        for word in self.words[position + 1 : position + _REACH]:
            if word.sentence != self.words[position].sentence or word.low.partition("'")[0] in (
                "i",
                "we",
            ):
                return
            if began and word.low in self._table["turns"] and word.low != "and":
                return
            if word.stem is not None:
                began = True
                yield word.stem


def _values_restated(old: _Text, new: _Text) -> Iterator[Restated]:
    """Yield each value of the older text that the newer text replaces by another value in similar words."""
    if not old.values or not new.values:
        return
    table = [
        [_compare_values(old, old_row, new, new_row) for old_row in range(len(old.values))]
        for new_row in range(len(new.values))
    ]
    greatest = [max(column) for column in zip(*table, strict=True)]
    for new_row, likenesses in enumerate(table):
        likeness = max(likenesses)
        old_row = likenesses.index(likeness)
        before, after = old.values[old_row], new.values[new_row]
        if (
            likeness >= _LEAST
            and likeness == greatest[old_row]
            and (before.kind, before.value) not in new.value_keys
            and (after.kind, after.value) not in old.value_keys
            and _keeps_subject(old, before, new)
            and (
                not new.speaks_of_others(new.clause(after.first))
                or old.speaks_of_others(old.clause(before.first))
            )
        ):
            words = frozenset(old.around[old_row]) & new.stems
            yield Restated(likeness, words, _span(old, before.first), _span(new, after.first))


def _compare_values(old: _Text, old_row: int, new: _Text, new_row: int) -> float:
    """Return the cosine of the words around value ``old_row`` of ``old`` and value ``new_row`` of ``new``.

    The result is 0 for values of different kinds or units.
    """
    before, after = old.values[old_row], new.values[new_row]
    if before.kind != after.kind or not _may_count_same(before.unit, after.unit):
        return 0.0
    first, second = old.around[old_row], new.around[new_row]
    shared = sum(weight * second[stem] for stem, weight in first.items() if stem in second)
    if not shared:
        return 0.0
    return float(shared / (old.squares[old_row] * new.squares[new_row]) ** 0.5)


def _may_count_same(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Return whether two numbers may count the same things, given their units.

    "12 problems" and "15 hard problems" may; "12 problems" and "15 hard questions" may not.
    """
    short, long = sorted((first, second), key=len)
    return short in (long[: len(short)], long[len(long) - len(short) :]) if short else not long


def _keeps_subject(old: _Text, value: _Value, new: _Text) -> bool:
    """Return whether a later text has more than two thirds of a value's subject words; True if there are none."""
    subject = old.subject(value)
    missing = sum(stem not in new.stems for stem in subject)
    return missing < max(_SUBJECT * len(subject), 1e-9) or not subject


def _denials_restated(old: _Text, new: _Text) -> Iterator[Restated]:
    """Yield the statements of each text that the other denies; those of ``new`` must be about its speaker alone."""
    for position, denied in new.denials:
        for words in _find_denied_clauses(denied, old):
            shared = frozenset(word.stem for word in words if word.stem is not None) & new.stems
            yield Restated(
                _share(denied, words),
                shared,
                (words[0].start, words[-1].stop),
                _span(new, position),
            )
    for position, denied in old.denials:
        for words in _find_denied_clauses(denied, new):
            if new.tells_of_oneself(words) and not new.speaks_of_others(words):
                shared = new.stems.intersection(denied)
                yield Restated(
                    _share(denied, words),
                    shared,
                    _span(old, position),
                    (words[0].start, words[-1].stop),
                )


def _find_denied_clauses(denied: list[str], text: _Text) -> Iterator[list[_Word]]:
    """Yield, for each sentence that asserts what ``denied`` denies, the words of its clauses with such stems."""
    for sentence in text.sentences:
        clauses = [list(words) for _, words in groupby(sentence, key=lambda word: word.clause)]
        matches = [words for words in clauses if _share(denied, words)]
        words = [word for clause in matches for word in clause]
        if words and _share(denied, words) >= _DENIED and not text.denies(words):
            yield words


def _share(denied: list[str], words: list[_Word]) -> float:
    """Return the share of the denied stems that occur in a collection of words."""
    stems = {word.stem for word in words}
    return sum(stem in stems for stem in denied) / len(denied)


def _span(text: _Text, position: int) -> tuple[int, int]:
    """Return the character positions at which the clause around a word begins and ends."""
    clause = text.clause(position)
    return clause[0].start, clause[-1].stop


def _split_words(text: str, language: str) -> Iterator[_Word]:
    """Yield the words of a text outside quotations and code, with the numbers of their sentences and clauses."""
    table = signs_of(language).words
    turns, unsaid = table["turns"], table["unsaid"]
    sentence = clause = 0
    if _MAY_QUOTE.search(text):
        for pattern in (_FENCED, _QUOTED, _CODE):
            text = pattern.sub(lambda quotation: " " * len(quotation[0]), text)
    for match in _TOKEN.finditer(text.replace("\u2019", "'")):
        token = match[0]
        first = token[0]
        if first in _ENDS:
            sentence, clause = sentence + 1, clause + 1
        elif first in ",()":
            clause += 1
        else:
            low = token.lower()
            if low in turns:
                clause += 1
            silent = low in unsaid or first.isdigit() or first in _SIGNS
            stem = None if silent else _stem(low, language)
            start, stop = match.span()
            yield _Word(low, low != token, stem, start, stop, sentence, clause)


def _day(number: str) -> str:
    """Return a day of the month without its ending: "5th" becomes "5"."""
    match = _DAY.fullmatch(number)
    return number if match is None else match[1]


# Results are cached, because many queries are compared with the same pair of texts.
@lru_cache(maxsize=2048)
def _restated(old: str, new: str, language: str) -> tuple[Restated, ...]:
    """Return the replaced values and denied statements of two texts, the most similar first (cached)."""
    older, newer = _read(old, language), _read(new, language)
    statements = [*_values_restated(older, newer), *_denials_restated(older, newer)]
    return tuple(sorted(statements, key=lambda each: -each.likeness))


# Texts are cached, because each text is compared with many others.
@lru_cache(maxsize=1024)
def _read(text: str, language: str) -> _Text:
    """Parse a text into its words, values and denials, or return the cached result."""
    return _Text(text, language)


# Stems are cached, because a few thousand words make up most of a conversation.
@lru_cache(maxsize=8192)
def _stem(word: str, language: str) -> str | None:
    """Return the stem of a word without its part from an apostrophe on, or None for a stop word."""
    bare = word.partition("'")[0]
    return None if bare in _stop_words(language) else _stemmer(language)(bare)


# The set of each language is cached, because it is read for every word.
@cache
def _stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language."""
    return frozenset(STOP_WORDS.get(language, ()))


# The stemmer of each language is cached, because building one takes longer than a call.
@cache
def _stemmer(language: str) -> Callable[[str], str]:
    """Return the stemming function of a language; for "none", it returns each word unchanged."""
    if language == "none":
        return str
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer(language).stemWord
    return stem
