"""How probable it is that what a later text says makes an earlier one untrue, where no rule reads it.

A logistic model over what two texts of one speaker say: the words that they share and that are not light, phrases of
ending, beginning, replacing and lasting in the later one, phrases that take such a sign back (still, for once, would,
back then, another), denial and present tense in the earlier one, values of one kind that differ and what is said beside
them, and how certain the rules of ``comparison`` are. The weights are ``certainty.json`` beside this file, fitted by
``experiments/fit_certainty.py``. Two texts that share no word are not asked about.
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

__all__ = [
    "SIGNS",
    "Telling",
    "Values",
    "certain",
    "features",
    "moves_a_value",
    "noticed",
    "read_values",
    "rules",
    "score",
    "signs_of_change",
]


# Numbers, dates, times and amounts of a statement, each with what it counts: what two statements may differ in.


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
"""What every text with a value holds; looked for first, as it is found much faster."""

_ABOUT_TIME = frozenset({"date", "time", "day"})


@dataclass(frozen=True)
class Values:
    """Of each kind the values; the kinds of counts are named by what they count (``count:card``), else ``count:``."""

    by_kind: dict[str, frozenset[str]]
    words: frozenset[str]
    """Stems of the units."""
    places: tuple[tuple[str, str, int, int], ...] = ()
    """Kind, value, start and stop of each value, in order; a count of two units stands there twice."""


@lru_cache(maxsize=8192)
def read_values(text: str) -> Values:
    """Return the values of a text by kind.

    >>> sorted(read_values("10 project cards by April 5").by_kind)
    ['count:card', 'count:project', 'date']
    """
    if _VALUED.search(text) is None:
        return Values({}, frozenset())
    found: dict[str, set[str]] = {}
    units: set[str] = set()
    places: list[tuple[str, str, int, int]] = []
    for match in _PATTERN.finditer(text[:2000]):
        kind = match.lastgroup or ""
        if kind in ("count", "unit"):
            number = _number(match["count"])
            names = list((match["unit"] or "").lower().replace("-", " ").split())
            stop = next(
                (at for at, word in enumerate(names) if word in vocabulary("linking", "no-units")),
                len(names),
            )
            heads = [stem(word) for word in names[:stop]][:2]
            units.update(heads)
            for head in heads or [""]:
                found.setdefault(f"count:{head}", set()).add(number)
                places.append((f"count:{head}", number, match.start("count"), match.end("count")))
        else:
            value = _normal(kind, match[0])
            found.setdefault(kind, set()).add(value)
            places.append((kind, value, *match.span()))
    return Values(
        {kind: frozenset(values) for kind, values in found.items()}, frozenset(units), tuple(places)
    )


def _number(word: str) -> str:
    known = number_of(word.lower())
    return f"{known:g}" if known is not None else word.replace(",", "").rstrip(".")


def _normal(kind: str, value: str) -> str:
    low = value.lower()
    if kind == "date":
        day = re.search(r"\b\d{1,2}(?!\d)", low)
        month = re.search(rf"({_MONTHS})", low)
        return f"{month[1][:3]} {day[0]}" if month and day else low
    if kind == "time":
        return re.sub(r"[ .]|:00", "", low)
    return re.sub(r"[ ,]|percent", "", low).rstrip("s.%")


# Signs of change: which phrases of a text say that something ended, began, turned into another, or did none of it.
#
# The tables are ``changes`` in ``english.toml``. A phrase is found by its first word, so that a text takes time in
# proportion to its words.


SIGNS = ("over", "came", "turned", "lasting", "kept", "passing", "undone", "before", "other")
"""Kinds of signs: something ended, came to be, became another, lasts from now on; something stayed as it is, happens
for once, is not real, was before, is of another person or thing."""

_GAP = "~"
_WIDEST = 3
"""Words that a gap stands for at most."""

_CLITICS = ("n't", "'ll", "'s")


def signs_of_change(words: Sequence[str]) -> Mapping[str, int]:
    """Return how many phrases of each kind some words hold.

    Parameters
    ----------
    words
        Words in lower case, as ``words_of`` returns them.

    Returns
    -------
    Mapping of str to int
        Of each kind in ``SIGNS`` that occurs, the number of its phrases.

    Examples
    --------
    >>> dict(signs_of_change(["i", "gave", "the", "bike", "back", "and", "walk", "now"]))
    {'over': 1, 'lasting': 1}
    """
    found: dict[str, int] = {}
    known, pairs = _phrases()
    last = len(words) - 1
    for place, word in enumerate(words):
        heads = (
            [word]
            if "'" not in word
            else [word, *(clitic for clitic in _CLITICS if word.endswith(clitic))]
        )
        for head in heads:
            met = known.get(head, ())
            if head in pairs and place < last:
                met = (*met, *pairs[head].get(words[place + 1], ()))
            for kind, rest, at in met:
                if not rest or _follows(words, place + at, rest):
                    found[kind] = found.get(kind, 0) + 1
    return found


Rest = tuple[str, tuple[str, ...], int]
"""The kind of a phrase, its words that are still to be found, and how far from its first word they stand."""


@cache
def _phrases() -> tuple[dict[str, list[Rest]], dict[str, dict[str, list[Rest]]]]:
    """By the first word, phrases of one word and those with a gap after it; by the first two words, all others."""
    known: dict[str, list[Rest]] = {}
    pairs: dict[str, dict[str, list[Rest]]] = {}
    for kind in SIGNS:
        for phrase in lexicon()["changes"][kind]:
            for first, *rest in product(*(word.split("/") for word in phrase.split())):
                if rest and rest[0] != _GAP:
                    pairs.setdefault(first, {}).setdefault(rest[0], []).append(
                        (kind, tuple(rest[1:]), 2)
                    )
                else:
                    known.setdefault(first, []).append((kind, tuple(rest), 1))
    return known, pairs


def _follows(words: Sequence[str], at: int, rest: tuple[str, ...]) -> bool:
    """Whether the rest of a phrase stands at a place; a gap holds at least one word."""
    for place, word in enumerate(rest):
        if word == _GAP:
            after = rest[place + 1 :]
            first = after[0]
            return any(
                words[at + width] == first and _follows(words, at + width, after)
                for width in range(1, min(_WIDEST, len(words) - at - 1) + 1)
            )
        if at >= len(words) or words[at] != word:
            return False
        at += 1
    return True


_CLAUSE = re.compile(
    r"[.!?;:]+(?=\s|$)|,|\s[-\u2013\u2014]\s|\s(?:and|but|so|because|while|which|who|after|since|when|until)\s",
    re.IGNORECASE,
)
_CHANGE = ("over", "came", "turned")
_TAKEN_BACK = frozenset({"kept", "passing", "undone", "before", "other"})
_NEAR_BEFORE, _NEAR = 10, 8
"""Words before and after a value that say what it is a value of."""

_TOPIC = 0.33
"""Share of what two texts are about that both have, where one moves a value of the other."""

_DATED = 0.4
"""Share of what is said beside two dates or times that both have."""

_ALIKE = 0.65
"""Share of what is said beside two counts that is enough where they share little more than what they count."""

_MOST_VALUES = 12


@dataclass(frozen=True)
class PlacedValue:
    """A value beside what it is said of: ``strong`` stems within some words of it, and words of change among them.

    ``left``: it is what something changed from.
    """

    kind: str
    value: str
    strong: frozenset[str]
    moves: frozenset[str]
    left: bool

    @property
    def unit(self) -> str:
        """The stem of what a count counts, empty otherwise."""
        return self.kind[6:] if self.kind.startswith("count:") else ""


@dataclass(frozen=True)
class Telling:
    """What a text, or a passage of a long one, states; ``said``: the same with its questions, wishes and quotations."""

    text: str
    said: str

    @cached_property
    def words(self) -> list[str]:
        return words_of(self.text)

    @cached_property
    def strong(self) -> frozenset[str]:
        """The stems of the words that say what it is about."""
        left_out = _left_out()
        return frozenset(stem(word) for word in self.words if word not in left_out)

    @cached_property
    def values(self) -> Values:
        return read_values(self.text)

    @cached_property
    def around(self) -> list[PlacedValue]:
        """Its first values, each with what is said beside it."""
        found = []
        left_out, moves = _left_out() | _beside(), vocabulary("linking", "moves")
        for kind, value, start, stop in self.values.places[:_MOST_VALUES]:
            before = words_of(self.text[max(0, start - 120) : start])[-_NEAR_BEFORE:]
            near = [*before, *words_of(self.text[stop : stop + 120])[:_NEAR]]
            strong = frozenset(
                stem(word) for word in near if word not in left_out and not word[0].isdigit()
            )
            found.append(
                PlacedValue(
                    kind, value, strong, frozenset(moves & set(near)), before[-1:] == ["from"]
                )
            )
        return found

    @cached_property
    def clause_signs(self) -> list[Mapping[str, int]]:
        """The signs of change of each of its clauses that has some."""
        told = (signs_of_change(words_of(clause)) for clause in _CLAUSE.split(self.text))
        return [signs for signs in told if signs]

    @cached_property
    def signs(self) -> Counter[str]:
        """Those of all its clauses."""
        found: Counter[str] = Counter()
        for signs in self.clause_signs:
            found.update(signs)
        return found

    @cached_property
    def plain_sign(self) -> float:
        """How much of change its clause says that says most and takes nothing back."""
        plain = (_much(signs) for signs in self.clause_signs if _TAKEN_BACK.isdisjoint(signs))
        return min(max(plain, default=0.0), 3.0)

    @cached_property
    def as_later(self) -> dict[str, float]:
        """Its features where it is the later of two."""
        signs, said = self.signs, words_of(self.said)
        told = signs if said == self.words else signs_of_change(said)
        back = sum(min(signs.get(kind, 0), 2) for kind in _TAKEN_BACK)
        return {
            "later over": float(min(signs.get("over", 0), 3)),
            "later kept": float(min(signs.get("kept", 0), 3)),
            "later before": float(min(signs.get("before", 0), 3)),
            "later net": min(_much(signs), 4.0) - back / 1.5,
            "later plain sign": self.plain_sign,
            "later taken back": float(sum(min(told.get(kind, 0), 2) for kind in _TAKEN_BACK)),
            "later denies": _denies(self.words),
            "later asks": float("?" in self.said),
            "later in first person": float(
                not vocabulary("changes", "first-person").isdisjoint(self.words[:3])
            ),
            "later length": log(1 + len(self.words)),
        }

    @cached_property
    def odds_as_later(self) -> float:
        return _dot(self.as_later)

    @cached_property
    def odds_as_earlier(self) -> float:
        return _dot(self.as_earlier)

    @cached_property
    def as_earlier(self) -> dict[str, float]:
        """Its features where it is the earlier of two."""
        states = vocabulary("changes", "states")
        return {
            "earlier denies": _denies(self.words),
            "earlier over": float(min(self.signs.get("over", 0), 2)),
            "earlier present": float(min(sum(word in states for word in self.words), 2)),
        }


def _much(signs: Mapping[str, int]) -> float:
    return sum(min(signs.get(kind, 0), 2) for kind in _CHANGE) + 0.5 * min(
        signs.get("lasting", 0), 2
    )


def _denies(words: list[str]) -> float:
    return float(not vocabulary("changes", "denials").isdisjoint(words))


@cache
def _left_out() -> frozenset[str]:
    return vocabulary("changes", "light", "common", "denials") | vocabulary("negation", "fillers")


def _of_pair(later: Telling, earlier: Telling) -> dict[str, float]:
    """The features of two texts together."""
    shared = later.strong & earlier.strong
    ours, theirs = later.values.by_kind, earlier.values.by_kind
    differ = any(kind in theirs and not values & theirs[kind] for kind, values in ours.items())
    near = cued = 0.0
    counted = apart = False
    for was, is_now in differing(later, earlier):
        alike = float(len(was.strong & is_now.strong))
        near = max(near, alike)
        cued = max(cued, alike if is_now.moves else 0.0)
        counted |= bool(was.unit)
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
    """Values of one kind, of which the other text has neither: that of the earlier and that of the later text."""
    ours, theirs = later.values.by_kind, earlier.values.by_kind
    if ours.keys() & theirs.keys():
        for was in earlier.around:
            if was.kind in ours and was.value not in ours[was.kind]:
                for is_now in later.around:
                    if is_now.kind == was.kind and is_now.value not in theirs[was.kind]:
                        yield was, is_now


def moves_a_value(later: Telling, earlier: Telling) -> bool:
    """Whether the later text says that a date, an amount or a count of what both speak of is another now.

    >>> moves_a_value(Telling("The sprint deadline moved to May 5", ""), Telling("The sprint deadline is May 1", ""))
    True
    """
    if len(later.strong & earlier.strong) < _TOPIC * min(len(later.strong), len(earlier.strong)):
        return False
    left = {one.value for one in later.around if one.left}
    pairs = (*differing(later, earlier), *_counted_apart(later, earlier))
    return any(
        _moved(was, is_now)
        and (not left or was.value in left or is_now.value not in _reached(later))
        for was, is_now in pairs
    )


def _counted_apart(later: Telling, earlier: Telling) -> Iterator[tuple[PlacedValue, PlacedValue]]:
    """Counts of which the later names what it counts before: "the number of cards went up to 10"."""
    for was in earlier.around:
        if was.unit:
            for is_now in later.around:
                if is_now.kind == "count:" and was.unit in is_now.strong:
                    yield was, is_now


def _names_a_thing(unit: str) -> bool:
    return bool(unit) and unit not in _stems("no-units") and unit not in _stems("spans")


def _reached(later: Telling) -> set[str]:
    """Values to which something changed from another of the same kind."""
    kinds = {one.kind for one in later.around if one.left}
    return {one.value for one in later.around if one.kind in kinds}


def _moved(was: PlacedValue, is_now: PlacedValue) -> bool:
    shared = was.strong & is_now.strong
    if is_now.kind in ("date", "time", "day"):
        new = "new" in is_now.moves and not _stems("dated").isdisjoint(shared)
        moved = new or not vocabulary("linking", "moves-when").isdisjoint(is_now.moves)
        return (
            moved
            and len(shared) >= 2
            and len(shared) >= _DATED * min(len(was.strong), len(is_now.strong))
        )
    if is_now.kind == "money":
        return len(shared) >= 2 and bool(is_now.moves)
    if not _names_a_thing(was.unit) or not is_now.moves or was.value == is_now.value:
        return False
    alike = len(shared | {was.unit})
    return alike >= 3 or (alike == 2 and alike >= _ALIKE * min(len(was.strong), len(is_now.strong)))


@cache
def _stems(name: str) -> frozenset[str]:
    return frozenset(stem(word) for word in vocabulary("linking", name))


@cache
def _beside() -> frozenset[str]:
    return vocabulary("linking", "moves", "moves-when", "beside-values")


def features(later: Telling, earlier: Telling, ruled: float) -> dict[str, float]:
    """All features of two texts by name; ``ruled``: how certain the rules are."""
    return {
        **later.as_later,
        **earlier.as_earlier,
        **_of_pair(later, earlier),
        "rule certainty": ruled,
    }


def score(later: Telling, earlier: Telling, ruled: float) -> float | None:
    """The log odds of a change, on the scale of the fit; None where the two share no word that says what they are about."""
    if later.strong.isdisjoint(earlier.strong):
        return None
    alone = later.odds_as_later + earlier.odds_as_earlier
    pair = _dot({**_of_pair(later, earlier), "rule certainty": ruled})
    return float(_fitted()["bias"]) + alone + pair


def noticed(odds: float) -> bool:
    """Whether a change is probable enough to be flagged."""
    return bool(odds >= _fitted()["flag"])


def certain(odds: float) -> float:
    """The share of right ones among pairs of real messages with such log odds, where a change is rare."""
    return max((share for low, share in _fitted()["real"] if odds >= low), default=0.0)


def rules() -> dict[str, float]:
    """How often each rule was right on pairs that were read."""
    found: dict[str, float] = _fitted()["rules"]
    return found


def _dot(told: Mapping[str, float]) -> float:
    weights = _fitted()["weights"]
    return float(sum(weights.get(name, 0.0) * value for name, value in told.items()))


@cache
def _fitted() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        Path(__file__).with_name("certainty.json").read_text(encoding="utf-8")
    )
    return found
