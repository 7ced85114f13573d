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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import log
from pathlib import Path
from typing import Any

from memlab.kernel.english import signs_of_change, vocabulary, words_of
from memlab.kernel.verbs.linking.negation import stem
from memlab.kernel.verbs.linking.values import Values, read_values

__all__ = ["Telling", "certain", "features", "moves_a_value", "noticed", "rules", "score"]

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
            strong = frozenset(stem(word) for word in near if word not in left_out and not word[0].isdigit())
            found.append(PlacedValue(kind, value, strong, frozenset(moves & set(near)), before[-1:] == ["from"]))
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
            "later in first person": float(not vocabulary("changes", "first-person").isdisjoint(self.words[:3])),
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
    return sum(min(signs.get(kind, 0), 2) for kind in _CHANGE) + 0.5 * min(signs.get("lasting", 0), 2)


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
        _moved(was, is_now) and (not left or was.value in left or is_now.value not in _reached(later))
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
        return moved and len(shared) >= 2 and len(shared) >= _DATED * min(len(was.strong), len(is_now.strong))
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
    return {**later.as_later, **earlier.as_earlier, **_of_pair(later, earlier), "rule certainty": ruled}


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
    found: dict[str, Any] = json.loads(Path(__file__).with_name("certainty.json").read_text(encoding="utf-8"))
    return found
