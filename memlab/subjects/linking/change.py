"""How probable it is that what a later text says makes an earlier one untrue, where no rule reads it.

A logistic model over what two texts of one speaker say: the words that they share and that are not light, phrases of
ending, beginning, replacing and lasting in the later one, phrases that take such a sign back (still, for once, would,
back then, another), denial and present tense in the earlier one, values of one kind that differ, common words of the
later one, and what the rules of ``comparison`` say. The weights are ``certainty.json`` beside this file, fitted by
``experiments/fit_certainty.py``. Two texts that share no word are not asked about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import exp, log
from pathlib import Path
from typing import Any

from memlab.english import SIGNS, signs_of_change, vocabulary, words_of
from memlab.subjects.linking.negation import stem
from memlab.subjects.linking.values import Values, read_values

__all__ = ["Telling", "certain", "features", "moves_a_value", "noticed", "score"]

_CLAUSE = re.compile(
    r"[.!?;:]+(?=\s|$)|,|\s[-\u2013\u2014]\s|\s(?:and|but|so|because|while|which|who|after|since|when|until)\s",
    re.IGNORECASE,
)
_POSITIVE = ("over", "came", "turned")
_NEGATIVE = ("kept", "passing", "undone", "before", "other")
_NEAR_BEFORE, _NEAR = 10, 8
"""Words before and after a value that say what it is a value of."""

_ALIKE = 0.65
"""Share of what is said beside two counts that is enough where they share little more than what they count."""

_MOST_VALUES = 12


@dataclass(frozen=True)
class Value:
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
    """What a text, or a passage of a long one, states; ``asks``: it asks as well."""

    text: str
    asks: bool

    @cached_property
    def words(self) -> list[str]:
        return words_of(self.text)

    @cached_property
    def strong(self) -> frozenset[str]:
        """The stems of the words that say what it is about."""
        left_out = _left_out()
        return frozenset(stem(word) for word in self.words if word not in left_out)

    @cached_property
    def signs(self) -> Mapping[str, int]:
        return signs_of_change(self.words)

    @cached_property
    def values(self) -> Values:
        return read_values(self.text)

    @cached_property
    def around(self) -> list[Value]:
        """Its first values, each with what is said beside it."""
        found = []
        left_out, moves = _left_out() | _beside(), vocabulary("linking", "moves")
        for kind, value, start, stop in self.values.places[:_MOST_VALUES]:
            before = words_of(self.text[max(0, start - 120) : start])[-_NEAR_BEFORE:]
            near = [*before, *words_of(self.text[stop : stop + 120])[:_NEAR]]
            strong = frozenset(stem(word) for word in near if word not in left_out and not word[0].isdigit())
            found.append(Value(kind, value, strong, frozenset(moves & set(near)), before[-1:] == ["from"]))
        return found

    @cached_property
    def clauses(self) -> list[tuple[frozenset[str], float, bool]]:
        """Of each clause its strong stems, how much of change it says, and whether that is taken back."""
        found = []
        for clause in _CLAUSE.split(self.text):
            words = words_of(clause)
            if words:
                told = signs_of_change(words)
                much = sum(min(told.get(kind, 0), 2) for kind in _POSITIVE) + 0.5 * min(told.get("lasting", 0), 2)
                left_out = _left_out()
                strong = frozenset(stem(word) for word in words if word not in left_out)
                found.append((strong, much, any(told.get(kind, 0) for kind in _NEGATIVE)))
        return found

    @cached_property
    def as_later(self) -> dict[str, float]:
        """Its features where it is the later of two."""
        told = {kind: float(min(self.signs.get(kind, 0), 3)) for kind in SIGNS}
        sign = min(sum(min(told[kind], 2) for kind in _POSITIVE) + 0.5 * min(told["lasting"], 2), 4.0)
        back = sum(min(told[kind], 2) for kind in _NEGATIVE)
        known = vocabulary("changes", "common")
        return {
            **{f"later {kind}": told[kind] for kind in ("over", "came", "lasting", "kept", "before", "other")},
            "later taken back": min(back, 5.0),
            "later net": sign - back / 1.5,
            "later plain sign": min(max((much for _, much, taken in self.clauses if not taken), default=0.0), 3.0),
            "later length": log(1 + len(self.words)),
            "later asks": float(self.asks),
            "later denies": float(not vocabulary("changes", "denials").isdisjoint(self.words)),
            **{f"word {word}": 1.0 for word in set(self.words) & known},
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
        return {
            "earlier denies": float(not vocabulary("changes", "denials").isdisjoint(self.words)),
            "earlier present": float(min(sum(word in vocabulary("changes", "states") for word in self.words), 2)),
            "earlier formerly": float(min(sum(word in vocabulary("changes", "formerly") for word in self.words), 2)),
            "earlier asks": float(self.asks),
        }


@cache
def _left_out() -> frozenset[str]:
    return vocabulary("changes", "light", "common", "denials") | vocabulary("negation", "fillers")


def _of_pair(later: Telling, earlier: Telling) -> dict[str, float]:
    """The features of two texts together."""
    shared = later.strong & earlier.strong
    count = float(min(len(shared), 4))
    share = len(shared) / max(1, min(len(later.strong), len(earlier.strong)))
    told = {
        "shared": min(count, 3),
        "shared much": share,
        "shared in a clause of change": max(
            (min(much, 3) * (0.5 + len(strong & shared)) * (0.4 if taken else 1.0) for strong, much, taken in later.clauses),
            default=0.0,
        ),
    }
    told |= _values(later.values.by_kind, earlier.values.by_kind, len(shared))
    told |= _slots(later, earlier)
    return told


def differing(later: Telling, earlier: Telling) -> Iterator[tuple[Value, Value]]:
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

    >>> moves_a_value(Telling("The sprint deadline moved to May 5", False), Telling("The sprint deadline is May 1", False))
    True
    """
    left = {one.value for one in later.around if one.left}
    pairs = (*differing(later, earlier), *_counted_apart(later, earlier))
    return any(
        _moved(was, is_now) and (not left or was.value in left or is_now.value not in _reached(later))
        for was, is_now in pairs
    )


def _counted_apart(later: Telling, earlier: Telling) -> Iterator[tuple[Value, Value]]:
    """Counts of which the later names what it counts before: "the number of cards went up to 10"."""
    for was in earlier.around:
        if was.unit:
            for is_now in later.around:
                if is_now.kind.startswith("count:") and not _names_a_thing(is_now.unit) and was.unit in is_now.strong:
                    yield was, is_now


def _names_a_thing(unit: str) -> bool:
    return bool(unit) and unit not in _stems("no-units") and unit not in _stems("spans")


def _reached(later: Telling) -> set[str]:
    """Values to which something changed from another of the same kind."""
    kinds = {one.kind for one in later.around if one.left}
    return {one.value for one in later.around if one.kind in kinds}


def _moved(was: Value, is_now: Value) -> bool:
    shared = was.strong & is_now.strong
    if is_now.kind in ("date", "time", "day"):
        new = "new" in is_now.moves and not _stems("dated").isdisjoint(shared)
        return len(shared) >= 2 and (new or not vocabulary("linking", "moves-when").isdisjoint(is_now.moves))
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


def _slots(later: Telling, earlier: Telling) -> dict[str, float]:
    """How much is said alike around two values of one kind that differ, and whether a change is said there."""
    near = cued = share = 0.0
    counted = apart = False
    for was, is_now in differing(later, earlier):
        shared = float(len(was.strong & is_now.strong))
        near = max(near, shared)
        share = max(share, shared / max(2, min(len(was.strong), len(is_now.strong))))
        cued = max(cued, shared if is_now.moves else 0.0)
        counted |= bool(was.unit)
        apart |= not shared
    return {
        "slot shared": min(near, 4.0),
        "slot shared much": share,
        "slot shared, change": min(cued, 4.0),
        "slot counted": float(counted),
        "slot counted, change": float(counted and cued > 0),
        "slot apart": float(apart and not near),
    }


def _values(ours: Mapping[str, frozenset[str]], theirs: Mapping[str, frozenset[str]], shared: int) -> dict[str, float]:
    both = [kind for kind in ours if kind in theirs]
    differ = [kind for kind in both if not ours[kind] & theirs[kind]]
    return {
        "values differ": float(bool(differ)),
        "values differ, shared": float(bool(differ)) * min(shared, 4),
        "values same": float(min(len(both) - len(differ), 2)),
    }


def features(later: Telling, earlier: Telling, certainty: float, updates: bool) -> dict[str, float]:
    """All features of two texts by name; ``certainty`` and ``updates`` are of the rule that fired."""
    told = {"rule certainty": certainty, "rule updates": float(updates)}
    return {**later.as_later, **earlier.as_earlier, **_of_pair(later, earlier), **told}


def score(later: Telling, earlier: Telling, certainty: float, updates: bool) -> float | None:
    """The log odds of a change, on the scale of the fit; None where the two share no word that says what they are about."""
    if later.strong.isdisjoint(earlier.strong):
        return None
    weights = _fitted()["weights"]
    pair = {**_of_pair(later, earlier), "rule certainty": certainty, "rule updates": float(updates)}
    alone = later.odds_as_later + earlier.odds_as_earlier
    return float(_fitted()["bias"] + alone + sum(weights.get(name, 0.0) * value for name, value in pair.items()))


def noticed(odds: float) -> bool:
    """Whether a change is probable enough to be flagged."""
    return bool(odds >= _fitted()["flag"])


def certain(odds: float) -> float:
    """The share of right ones that real chats show at these log odds, where a change is rare."""
    slope, shift = _fitted()["real"]
    return 1 / (1 + exp(-(slope * odds + shift)))


def _dot(told: Mapping[str, float]) -> float:
    weights = _fitted()["weights"]
    return float(sum(weights.get(name, 0.0) * value for name, value in told.items()))


@cache
def _fitted() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("certainty.json").read_text(encoding="utf-8"))
    return found
