"""Estimate the probability that a later text makes an earlier text untrue.

Both texts are by one speaker. A logistic model decides pairs that no rule decides. Its features
are:

- the number of content words that both texts share
- phrases of ending, beginning, replacing and lasting in the later text, and phrases that retract
  such a sign (still, for once, would, back then, another)
- denial and present tense in the earlier text
- values of one kind that differ, with the words around them
- the certainty of the rules of ``comparison``

The weights are in ``certainty.json``, fitted by ``experiments/fit_certainty.py``. Two texts without
a common content word are not scored.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import product
from math import log
from pathlib import Path
from typing import Any

from memlab.kernel.english import NUMBER_WORDS, WEEKDAYS, lexicon, number_of, vocabulary, words_of
from memlab.subjects.reading.claims import stem
from memlab.subjects.reading.sentences import is_plain_word

# A statement may change values of another statement: dates, times, amounts, shares, and counts with their units.


# The names of months and days, and one pattern with a group for each kind of value.
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec"
_DAYS = "|".join(WEEKDAYS)
_PATTERN = re.compile(
    rf"(?P<date>\b(?:{_MONTHS})\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:, ?\d{{4}})?|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{_MONTHS})\b|\b\d{{4}}-\d\d-\d\d\b)"
    rf"|(?P<time>\b\d{{1,2}}:\d\d(?: ?[ap]\.?m\b)?|\b\d{{1,2}} ?[ap]\.?m\b|\bnoon\b|\bmidnight\b)"
    rf"|(?P<day>\b(?:{_DAYS})s?\b)"
    r"|(?P<money>[$\u20ac\u00a3] ?\d[\d,.]*(?:k|m)?|\b\d[\d,.]* (?:dollars|euros|pounds|usd|eur)\b)"
    r"|(?P<percent>\b\d[\d.,]*(?: ?%| percent\b))"
    rf"|(?P<count>(?<![\w.#/-])(?:\d[\d,]*(?:\.\d+)?|{'|'.join(sorted(w for w in NUMBER_WORDS if w not in ('one', 'a', 'an')))}))(?P<unit>(?:[ -][a-z][a-z'-]+){{0,3}})",
    re.IGNORECASE,
)
_VALUED = re.compile(
    rf"\d|\b(?:{'|'.join(sorted({*NUMBER_WORDS, 'noon', 'midnight'}))})\b|(?:{_DAYS})",
    re.IGNORECASE,
)
"""A quick pattern that every text with a value matches.

It is tried first, because most texts have no value.
"""

# A part of a name: FEED and CHUNK of FEED_CHUNK, mask and email of mask_email.
_PART = re.compile(r"(?<=[_./-])[A-Za-z]{3,}|[A-Za-z]{3,}(?=[_./-]\w)")


@dataclass(frozen=True)
class Values:
    """The values of a text by kind.

    The kind of a count contains the stem of its unit, as in ``count:card``. The kind ``count:`` has
    no unit.
    """

    by_kind: dict[str, frozenset[str]]
    words: frozenset[str]
    """The stems of the units of counts."""
    places: tuple[tuple[str, str, int, int], ...] = ()
    """The kind, value, start and end of each value, in order; a count with two units is listed twice."""


# Cached, because each statement is compared with many others.
@lru_cache(maxsize=8192)
def read_values(text: str) -> Values:
    """Return the values of a text by kind, such as dates and counts.

    >>> sorted(read_values("10 project cards by April 5").by_kind)
    ['count:card', 'count:project', 'date']
    """
    if _VALUED.search(text) is None:
        return Values({}, frozenset())
    by_kind: dict[str, set[str]] = {}
    units: set[str] = set()
    spans: list[tuple[str, str, int, int]] = []
    for match in _PATTERN.finditer(text[:2000]):
        kind = match.lastgroup or ""
        if kind in ("count", "unit"):
            number = _normalize_number(match["count"])
            names = list((match["unit"] or "").lower().replace("-", " ").split())
            stop = next(
                (
                    index
                    for index, word in enumerate(names)
                    if word in vocabulary("linking", "no-units")
                ),
                len(names),
            )
            stems = [stem(word) for word in names[:stop]][:2]
            units.update(stems)
            for unit in stems or [""]:
                by_kind.setdefault(f"count:{unit}", set()).add(number)
                spans.append((f"count:{unit}", number, match.start("count"), match.end("count")))
        else:
            value = _normalize_value(kind, match[0])
            by_kind.setdefault(kind, set()).add(value)
            spans.append((kind, value, *match.span()))
    return Values(
        {kind: frozenset(values) for kind, values in by_kind.items()},
        frozenset(units),
        tuple(spans),
    )


def _normalize_number(word: str) -> str:
    """Return a number as digits, so that "five" equals "5"; other words without commas and final full stops."""
    number = number_of(word.lower())
    return f"{number:g}" if number is not None else word.replace(",", "").rstrip(".")


def _normalize_value(kind: str, value: str) -> str:
    """Return a value in one spelling, so that equal values compare equal."""
    low = value.lower()
    if kind == "date":
        day = re.search(r"\b\d{1,2}(?!\d)", low)
        month = re.search(rf"({_MONTHS})", low)
        return f"{month[1][:3]} {day[0]}" if month and day else low
    if kind == "time":
        return re.sub(r"[ .]|:00", "", low)
    return re.sub(r"[ ,]|percent", "", low).rstrip("s.%")


# Signs of change are phrases that say that something ended, began, became another thing, or stayed.
#
# The tables are ``changes`` in ``english.toml``. Phrases are indexed by their first words, so that the time is
# proportional to the number of words of a text.


SIGNS = ("over", "came", "turned", "lasting", "kept", "passing", "undone", "before", "other")
"""The kinds of signs of change.

The first four say that something ended, began, became another thing, or lasts from now on. The
other kinds say that something stayed the same, happens once, is not real, was earlier, or concerns
another person or thing.
"""

# The mark of a gap in a phrase, and the maximum number of words that a gap matches.
_GAP = "~"
_WIDEST = 3

# Endings that phrases list as separate words.
_CLITICS = ("n't", "'ll", "'s")


def signs_of_change(words: Sequence[str]) -> Mapping[str, int]:
    """Count the phrases of change in a list of words, by kind.

    Parameters
    ----------
    words
        Words in lower case, as ``words_of`` returns them.

    Returns
    -------
    Mapping of str to int
        The number of phrases for each kind of ``SIGNS`` that occurs.

    Examples
    --------
    >>> dict(signs_of_change(["i", "gave", "the", "bike", "back", "and", "walk", "now"]))
    {'over': 1, 'lasting': 1}
    """
    counts: dict[str, int] = {}
    single, pairs = _index_phrases()
    last = len(words) - 1
    for position, word in enumerate(words):
        forms = (
            [word]
            if "'" not in word
            else [word, *(clitic for clitic in _CLITICS if word.endswith(clitic))]
        )
        for form in forms:
            candidates = single.get(form, ())
            if form in pairs and position < last:
                candidates = (*candidates, *pairs[form].get(words[position + 1], ()))
            for kind, rest, offset in candidates:
                if not rest or _matches_rest(words, position + offset, rest):
                    counts[kind] = counts.get(kind, 0) + 1
    return counts


_Remainder = tuple[str, tuple[str, ...], int]
"""The kind of a phrase, its words after the first ones, and their offset from the first word."""


# Built once, from 1,195 phrases with alternatives.
@cache
def _index_phrases() -> tuple[dict[str, list[_Remainder]], dict[str, dict[str, list[_Remainder]]]]:
    """Return the phrases of change, indexed by their first word or first two words.

    The first mapping has the phrases of one word, and those with a gap after the first word. The
    second has the other phrases by their first two words.
    """
    single: dict[str, list[_Remainder]] = {}
    pairs: dict[str, dict[str, list[_Remainder]]] = {}
    for kind in SIGNS:
        for phrase in lexicon()["changes"][kind]:
            for first, *rest in product(*(word.split("/") for word in phrase.split())):
                if rest and rest[0] != _GAP:
                    pairs.setdefault(first, {}).setdefault(rest[0], []).append(
                        (kind, tuple(rest[1:]), 2)
                    )
                else:
                    single.setdefault(first, []).append((kind, tuple(rest), 1))
    return single, pairs


def _matches_rest(words: Sequence[str], position: int, rest: tuple[str, ...]) -> bool:
    """Return whether the words at an index match the rest of a phrase.

    A gap in the phrase matches one to three words.
    """
    for number, word in enumerate(rest):
        if word == _GAP:
            after = rest[number + 1 :]
            first = after[0]
            return any(
                words[position + width] == first and _matches_rest(words, position + width, after)
                for width in range(1, min(_WIDEST, len(words) - position - 1) + 1)
            )
        if position >= len(words) or words[position] != word:
            return False
        position += 1
    return True


# A pattern of ends of clauses, signs that report a change, and signs that retract it.
_CLAUSE = re.compile(
    r"[.!?;:]+(?=\s|$)|,|\s[-\u2013\u2014]\s|\s(?:and|but|so|because|while|which|who|after|since|when|until)\s",
    re.IGNORECASE,
)
_CHANGE = ("over", "came", "turned")
_TAKEN_BACK = frozenset({"kept", "passing", "undone", "before", "other"})
_NEAR_BEFORE, _NEAR = 10, 8
"""The number of words before and after a value that describe the value."""

_TOPIC = 0.33
"""The minimum share of common stems of two texts, so that one may change a value of the other."""

_DATED = 0.4
"""The minimum share of common stems around two dates or times of one thing."""

_ALIKE = 0.65
"""The minimum share of common stems around two counts that share only their unit and one more stem."""

_MOST_VALUES = 12
"""The maximum values that are read of a text; a text with more values is a list."""


@dataclass(frozen=True)
class PlacedValue:
    """A value with the words around it.

    `strong` has the content stems around the value, and `moves` the words of change among the words
    around it. `left` is whether the value follows "from".
    """

    kind: str
    value: str
    strong: frozenset[str]
    moves: frozenset[str]
    left: bool

    @property
    def unit(self) -> str:
        """The stem of a count's unit, or "" for a value of another kind."""
        return self.kind[6:] if self.kind.startswith("count:") else ""


@dataclass(frozen=True)
class Telling:
    """The statements of a text or passage, as input of the model of change.

    `text` has the statements only. `full_text` has the questions, wishes and quotations too.
    """

    text: str
    full_text: str

    @cached_property
    def words(self) -> list[str]:
        """The words of the statements, in order."""
        return words_of(self.text)

    @cached_property
    def strong(self) -> frozenset[str]:
        """The stems of the content words in the statements."""
        light = _light_words()
        return frozenset(stem(word) for word in self.words if word not in light)

    @cached_property
    def topic(self) -> frozenset[str]:
        """The stems of the content words, with the parts of names of code."""
        parts = (part.lower() for part in _PART.findall(self.text))
        return self.strong | {stem(part) for part in parts if part not in _light_words()}

    @cached_property
    def values(self) -> Values:
        """The values in the statements, such as dates and counts."""
        return read_values(self.text)

    @cached_property
    def around(self) -> list[PlacedValue]:
        """The first values in the statements, each with the words around it."""
        values = []
        ignored, moves = _light_words() | _context_words(), vocabulary("linking", "moves")
        for kind, value, start, stop in self.values.places[:_MOST_VALUES]:
            before = words_of(self.text[max(0, start - 120) : start])[-_NEAR_BEFORE:]
            near = [*before, *words_of(self.text[stop : stop + 120])[:_NEAR]]
            strong = frozenset(
                stem(word) for word in near if word not in ignored and not word[0].isdigit()
            )
            values.append(
                PlacedValue(
                    kind, value, strong, frozenset(moves & set(near)), before[-1:] == ["from"]
                )
            )
        return values

    @cached_property
    def clause_signs(self) -> list[Mapping[str, int]]:
        """The number of phrases of change by kind, for each clause that contains any."""
        counts = (signs_of_change(words_of(clause)) for clause in _CLAUSE.split(self.text))
        return [signs for signs in counts if signs]

    @cached_property
    def signs(self) -> Counter[str]:
        """The number of phrases of change in all clauses, by kind."""
        counts: Counter[str] = Counter()
        for signs in self.clause_signs:
            counts.update(signs)
        return counts

    @cached_property
    def plain_sign(self) -> float:
        """The largest strength of change in any clause without a retraction, at most 3."""
        plain = (
            _change_strength(signs) for signs in self.clause_signs if _TAKEN_BACK.isdisjoint(signs)
        )
        return min(max(plain, default=0.0), 3.0)

    @cached_property
    def as_later(self) -> dict[str, float]:
        """The features that the text has as the later text of a pair."""
        signs, all_words = self.signs, words_of(self.full_text)
        all_signs = signs if all_words == self.words else signs_of_change(all_words)
        retracted = sum(min(signs.get(kind, 0), 2) for kind in _TAKEN_BACK)
        return {
            "later over": float(min(signs.get("over", 0), 3)),
            "later kept": float(min(signs.get("kept", 0), 3)),
            "later before": float(min(signs.get("before", 0), 3)),
            "later net": min(_change_strength(signs), 4.0) - retracted / 1.5,
            "later plain sign": self.plain_sign,
            "later taken back": float(sum(min(all_signs.get(kind, 0), 2) for kind in _TAKEN_BACK)),
            "later denies": _has_denial(self.words),
            "later asks": float("?" in self.full_text),
            "later in first person": float(
                not vocabulary("changes", "first-person").isdisjoint(self.words[:3])
            ),
            "later length": log(1 + len(self.words)),
        }

    @cached_property
    def odds_as_later(self) -> float:
        """The text's contribution to the log odds as the later text of a pair."""
        return _weighted_sum(self.as_later)

    @cached_property
    def odds_as_earlier(self) -> float:
        """The text's contribution to the log odds as the earlier text of a pair."""
        return _weighted_sum(self.as_earlier)

    @cached_property
    def as_earlier(self) -> dict[str, float]:
        """The features that the text has as the earlier text of a pair."""
        states = vocabulary("changes", "states")
        return {
            "earlier denies": _has_denial(self.words),
            "earlier over": float(min(self.signs.get("over", 0), 2)),
            "earlier present": float(min(sum(word in states for word in self.words), 2)),
        }


def _change_strength(signs: Mapping[str, int]) -> float:
    """Return how strongly phrases in a clause or text indicate a change."""
    return sum(min(signs.get(kind, 0), 2) for kind in _CHANGE) + 0.5 * min(
        signs.get("lasting", 0), 2
    )


def _has_denial(words: list[str]) -> float:
    """Return 1.0 if any word is a denial, otherwise 0.0."""
    return float(not vocabulary("changes", "denials").isdisjoint(words))


# Built once, because the union of the tables is looked up for every word.
@cache
def _light_words() -> frozenset[str]:
    """Return the common words that unrelated texts may share."""
    return vocabulary("changes", "light", "common", "denials") | vocabulary("negation", "fillers")


def _pair_features(later: Telling, earlier: Telling) -> dict[str, float]:
    """Return the features that depend on both texts of a pair."""
    shared = later.strong & earlier.strong
    ours, theirs = later.values.by_kind, earlier.values.by_kind
    differ = any(kind in theirs and not values & theirs[kind] for kind, values in ours.items())
    near = cued = 0.0
    counted = apart = False
    for earlier_value, later_value in differing(later, earlier):
        alike = float(len(earlier_value.strong & later_value.strong))
        near = max(near, alike)
        cued = max(cued, alike if later_value.moves else 0.0)
        counted |= bool(earlier_value.unit)
        apart |= not alike
    return {
        "shared": float(min(len(shared), 3)),
        "shared much": len(shared) / max(1, min(len(later.strong), len(earlier.strong))),
        "values differ": float(differ),
        "values differ, shared": float(differ) * min(len(shared), 4),
        "slot shared": min(near, 4.0),
        "slot shared, change": min(cued, 4.0),
        "slot counted, change": float(counted and cued > 0),
        "slot apart": float(apart and not near),
    }


def differing(later: Telling, earlier: Telling) -> Iterator[tuple[PlacedValue, PlacedValue]]:
    """Yield the pairs of values of one kind that differ between two texts.

    Each pair is an earlier and a later value. Neither value occurs in the other text.
    """
    ours, theirs = later.values.by_kind, earlier.values.by_kind
    if ours.keys() & theirs.keys():
        for earlier_value in earlier.around:
            if earlier_value.kind in ours and earlier_value.value not in ours[earlier_value.kind]:
                for later_value in later.around:
                    if (
                        later_value.kind == earlier_value.kind
                        and later_value.value not in theirs[earlier_value.kind]
                    ):
                        yield earlier_value, later_value


def moves_a_value(later: Telling, earlier: Telling) -> bool:
    """Return whether the later text moves a value of a topic that both texts share.

    >>> moves_a_value(Telling("The sprint deadline moved to May 5", ""), Telling("The sprint deadline is May 1", ""))
    True
    """
    if len(later.strong & earlier.strong) < _TOPIC * min(len(later.strong), len(earlier.strong)):
        return False
    sources = {value.value for value in later.around if value.left}
    pairs = (*differing(later, earlier), *_named_counts(later, earlier))
    return any(
        _is_moved_value(earlier_value, later_value)
        and (
            not sources
            or earlier_value.value in sources
            or later_value.value not in _target_values(later)
        )
        for earlier_value, later_value in pairs
    )


def _named_counts(later: Telling, earlier: Telling) -> Iterator[tuple[PlacedValue, PlacedValue]]:
    """Yield pairs of an earlier count with a unit and a later count without a unit that has the unit near it.

    An example is "the number of cards went up to 10".
    """
    for earlier_value in earlier.around:
        if earlier_value.unit:
            for later_value in later.around:
                if later_value.kind == "count:" and earlier_value.unit in later_value.strong:
                    yield earlier_value, later_value


def _is_countable(unit: str) -> bool:
    """Return whether a unit is a countable thing rather than a span of time."""
    return bool(unit) and unit not in _stem_table("no-units") and unit not in _stem_table("spans")


def _target_values(later: Telling) -> set[str]:
    """Return the values of a text whose kind also occurs after "from": both A and B in "from A to B"."""
    kinds = {value.kind for value in later.around if value.left}
    return {value.value for value in later.around if value.kind in kinds}


def _is_moved_value(earlier: PlacedValue, later: PlacedValue) -> bool:
    """Return whether a later text moves an earlier value of the same thing."""
    shared = earlier.strong & later.strong
    if later.kind in ("date", "time", "day"):
        new = "new" in later.moves and not _stem_table("dated").isdisjoint(shared)
        moved = new or not vocabulary("linking", "moves-when").isdisjoint(later.moves)
        return (
            moved
            and len(shared) >= 2
            and len(shared) >= _DATED * min(len(earlier.strong), len(later.strong))
        )
    if later.kind == "money":
        return len(shared) >= 2 and bool(later.moves)
    if not _is_countable(earlier.unit) or not later.moves or earlier.value == later.value:
        return False
    alike = len(shared | {earlier.unit})
    return alike >= 3 or (
        alike == 2 and alike >= _ALIKE * min(len(earlier.strong), len(later.strong))
    )


# Built once for each table.
@cache
def _stem_table(name: str) -> frozenset[str]:
    """Return the stems of the words in a list of the linking rules."""
    return frozenset(stem(word) for word in vocabulary("linking", name))


# Built once, because it is looked up for every word around a value.
@cache
def _context_words() -> frozenset[str]:
    """Return the words around values that do not identify the values."""
    return vocabulary("linking", "moves", "moves-when", "beside-values")


def features(later: Telling, earlier: Telling, ruled: float) -> dict[str, float]:
    """Return all features of a pair of texts; `ruled` is the certainty of the rules."""
    return {
        **later.as_later,
        **earlier.as_earlier,
        **_pair_features(later, earlier),
        "rule certainty": ruled,
    }


def score(later: Telling, earlier: Telling, ruled: float) -> float | None:
    """Return the log odds of a change, or None if two texts share no content word.

    The odds are on the scale of the sample that the model was fitted on.
    """
    if later.strong.isdisjoint(earlier.strong):
        return None
    alone = later.odds_as_later + earlier.odds_as_earlier
    pair = _weighted_sum({**_pair_features(later, earlier), "rule certainty": ruled})
    return float(_model()["bias"]) + alone + pair


def correction_odds(
    later: Telling, earlier: Telling, ruled: float, *, near: float, lead: float
) -> float:
    """Return the log odds that a text corrects an earlier statement of the same project.

    `ruled` is the certainty of the rules, and `near` the similarity of the texts. `lead` is by how much the topic
    of the earlier text is nearer than those of other statements.

    >>> later, earlier = Telling("The cache TTL went up to 15 minutes", ""), Telling("Cache TTL is 5 minutes", "")
    >>> correction_odds(later, earlier, 0.9, near=0.8, lead=1.5) > correction_odds(later, earlier, 0.9, near=0.8, lead=0)
    True
    """
    values = correction_features(later, earlier, ruled, near=near, lead=lead)
    weights = _model()["corrections"]
    return float(
        weights["bias"] + sum(weights.get(name, 0.0) * value for name, value in values.items())
    )


def correction_features(
    later: Telling, earlier: Telling, ruled: float, *, near: float, lead: float
) -> dict[str, float]:
    """Return the features of a pair of texts of one project; see ``correction_odds``."""
    ended = ends_word(later, earlier)
    reports = float(later.plain_sign >= 1 or ended >= 1)
    return {
        **features(later, earlier, ruled),
        "ended": ended,
        "near": near,
        "jaccard": len(later.topic & earlier.topic) / max(1, len(later.topic | earlier.topic)),
        "reports": reports,
        "lead": lead,
        "reports, lead": reports * lead,
    }


def ends_word(later: Telling, earlier: Telling) -> float:
    """Return 1.0 if a text ends a name of an earlier text, 0.5 for a plain word, 0.0 otherwise."""
    over, ended = vocabulary("session", "over"), 0.0
    for clause in _CLAUSE.split(later.text):
        words = words_of(clause)
        if signs_of_change(words).get("over") or not over.isdisjoint(words):
            shared = [word for word in words if stem(word) in earlier.topic]
            ended = max([ended, *(1.0 - is_plain_word(word) / 2 for word in shared)])
    return ended


def noticed(odds: float) -> bool:
    """Return whether the log odds of a change are high enough to report the change."""
    return bool(odds >= _model()["flag"])


def certain(odds: float) -> float:
    """Return the measured precision of the change model at these log odds or above.

    It was measured on real messages, in which changes are rare.
    """
    return max((share for low, share in _model()["real"] if odds >= low), default=0.0)


def rules() -> dict[str, float]:
    """Return the measured precision of each rule."""
    certainty: dict[str, float] = _model()["rules"]
    return certainty


def _weighted_sum(values: Mapping[str, float]) -> float:
    """Return the weighted sum of features, which is their contribution to the log odds."""
    weights = _model()["weights"]
    return float(sum(weights.get(name, 0.0) * value for name, value in values.items()))


# Read from the file once per process.
@cache
def _model() -> dict[str, Any]:
    """Return the fitted weights and thresholds of the change model."""
    model: dict[str, Any] = json.loads(
        Path(__file__).with_name("certainty.json").read_text(encoding="utf-8")
    )
    return model
