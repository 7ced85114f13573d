"""Which fact a later fact brings to an end: by subject, predicate and value, with the tables of the language.

A fact ends another of the same subject where both give a property with one value at a time different values, where it
names an end ("gave up Spanish", "sold the car"), where it is another state of one group (single, engaged, married), or
where it says the opposite of the same thing. Two facts are enough: the answer depends on nothing else, so that a
history gives the same facts in whatever order it is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from memlab.kernel.english import lexicon, table, words_of

__all__ = ["Said", "ends"]

_SHORTEST_STEM = 4
_ENDINGS = ("ing", "ers", "er", "ed", "es", "s", "e")
_NO_LONGER = "no-longer-"


@dataclass(frozen=True, slots=True)
class Said:
    """A fact as three words: of whom, by which predicate, what."""

    subject: str
    predicate: str
    value: str


def ends(new: Said, old: Said) -> bool:
    """Return whether a fact that is true from now on ends one that was true before.

    Parameters
    ----------
    new, old
        The later fact, and the earlier one.

    Returns
    -------
    bool
        Whether the earlier fact holds no longer. A fact ends none that says the same.

    Examples
    --------
    >>> ends(Said("user", "gave-up", "Spanish"), Said("user", "speaks", "Spanish"))
    True
    >>> ends(Said("user", "likes", "tea"), Said("user", "likes", "coffee"))
    False
    """
    if new.subject.casefold() != old.subject.casefold():
        return _is_gone(new) and _names(new.subject, old)
    if (new.predicate, new.value.casefold()) == (old.predicate, old.value.casefold()):
        return False
    return (
        _replaces(new, old)
        or _changes_state(new, old)
        or _ends_by_name(new, old)
        or _denies(new, old)
        or _excludes_food(new, old)
    )


def _replaces(new: Said, old: Said) -> bool:
    """Another value of a property that has one at a time."""
    favourite = new.predicate.startswith(("favourite-", "favorite-"))
    if new.predicate == old.predicate and (favourite or new.predicate in _words("one-value")):
        return _differ(new.value, old.value)
    if new.predicate in ("is-now", "works-as") and old.predicate in ("is", "is-now", "works-as", "job"):
        return _is_profession(old.value) and _is_profession(new.value) and _differ(new.value, old.value)
    if new.predicate == "prefers" == old.predicate:
        return _alternatives(new.value, old.value)
    if new.predicate == "switched-to" and old.predicate in (
        "uses",
        "prefers",
        "drinks",
        "drives",
        "eats",
        "works-with",
    ):
        return _alternatives(new.value, old.value)
    return False


def _changes_state(new: Said, old: Said) -> bool:
    """Another state of one group, or a state that ends what somebody had or was."""
    if new.predicate not in ("is", "is-now", "has", "relationship", "is-married-to", "is-engaged-to", "divorced"):
        return False
    state = {"is-married-to": "married", "is-engaged-to": "engaged"}.get(new.predicate, _state_of(new.value))
    state = "divorced" if new.predicate == "divorced" else state
    group = _groups().get(state)
    if group is None:
        return False
    if old.predicate in ("is", "is-now", "has", "relationship"):
        before = _state_of(old.value)
        if _groups().get(before) == group and before != state:
            return True
        if group == "occupation" and state != "employed" and state != "self-employed":
            return _is_profession(old.value)
        if group == "study" and state == "graduated":
            return "student" in words_of(old.value)
    after = {"is-married-to": "married", "is-engaged-to": "engaged"}.get(old.predicate)
    if new.predicate == "is-married-to" and old.predicate == "is-engaged-to":
        return True
    if after == state:
        return False
    return old.predicate in table("lifecycle", "state-ends").get(state, ())


def _ends_by_name(new: Said, old: Said) -> bool:
    """An ending verb that names the same thing, or what it belongs to: "quit my job", "sold the car"."""
    if new.predicate.startswith(_NO_LONGER):
        verb = new.predicate.removeprefix(_NO_LONGER)
        alike = verb == old.predicate or (verb == "is" and old.predicate == "is-now")
        if verb == "is" and old.predicate in ("is", "is-now"):
            return _state_of(new.value) == _state_of(old.value) or bool(_stems(new.value) & _stems(old.value))
        return alike and (not _stems(new.value) or bool(_stems(new.value) & _stems(old.value)))
    if new.predicate not in _ending_predicates() or old.predicate not in _words("may-end"):
        return False
    named = _stems(new.value)
    if named & (_stems(old.value) | _stems(old.predicate.replace("-", " "))):
        return True
    for one in lexicon()["lifecycle"]["classes"].values():
        if named & _as_stems(tuple(one["words"])):
            if old.predicate in one["predicates"] and not _is_of_another_kind(new.value, old.value, one["words"]):
                return True
            if one["professions"] and old.predicate == "is" and _is_profession(old.value):
                return True
    return False


def _is_of_another_kind(new: str, old: str, words: list[str]) -> bool:
    """Whether both name a kind of their class, and not the same: who sold the van still drives a car."""
    stems = _as_stems(tuple(words))
    one, other = _stems(new) & stems, _stems(old) & stems
    return bool(one and other and not one & other)


def _denies(new: Said, old: Said) -> bool:
    """The opposite of the same thing: likes and dislikes."""
    for pair in lexicon()["lifecycle"]["words"]["opposites"]:
        if {new.predicate, old.predicate} == set(pair.split()):
            return bool(_stems(new.value) & _stems(old.value))
    return False


def _excludes_food(new: Said, old: Said) -> bool:
    foods = table("lifecycle", "foods")
    for diet, eaten, later in ((new, old, False), (old, new, True)):
        banned = foods.get(_state_of(diet.value).removeprefix("a "))
        if diet.predicate not in ("is", "is-now") or banned is None:
            continue
        if eaten.predicate == "eats" and set(words_of(eaten.value)) & set(banned):
            return True
        if eaten.predicate == "likes" and not later and set(words_of(eaten.value)) & set(banned):
            return False
    return False


def _is_gone(new: Said) -> bool:
    return (new.predicate == "is" and new.value in ("dead", "gone")) or new.predicate == "died"


def _names(name: str, old: Said) -> bool:
    """Whether an older fact says that somebody has what is gone: by its name, or as "user's dog"."""
    owner, _, noun = name.rpartition("'s ")
    if owner:
        owned = old.subject.casefold() == owner.casefold()
        return owned and (old.predicate == noun or (old.predicate in ("has", "owns") and noun in words_of(old.value)))
    pets = old.predicate in table("extraction", "relations") or old.predicate in ("has", "owns")
    return pets and bool(set(words_of(name)) & set(words_of(old.value)))


def _differ(new: str, old: str) -> bool:
    """Whether two values of one property are known to differ: "Oslo" and "Oslo, Norway" are not."""
    one, other = set(words_of(new)) - _light(), set(words_of(old)) - _light()
    return not (one <= other or other <= one)


def _alternatives(new: str, old: str) -> bool:
    one, other = set(words_of(new)), set(words_of(old))
    return any(
        one & set(group) and other & set(group) and not one & other for group in lexicon()["conflicts"]["alternatives"]
    )


def _is_profession(value: str) -> bool:
    words = words_of(value)
    return bool(words) and not _words("professions").isdisjoint(words)


@cache
def _groups() -> dict[str, str]:
    return {state: group for group, states in lexicon()["lifecycle"]["states"].items() for state in states}


def _state_of(value: str) -> str:
    """The state that a value names: "married with two kids" is married."""
    low = " ".join(words_of(value))
    if low in _groups():
        return low
    for size in (3, 2, 1):
        head = " ".join(low.split()[:size])
        if head in _groups():
            return head
    return low


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(lexicon()["lifecycle"]["words"][name])


@cache
def _light() -> frozenset[str]:
    return _words("light")


@cache
def _ending_predicates() -> frozenset[str]:
    found: dict[str, Any] = lexicon()["lifecycle"]["endings"]
    return frozenset(predicate for predicate, _ in found.values())


@cache
def _as_stems(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(_stem, words))


def _stems(value: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in words_of(value) if word not in _light())


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM - 1:
            return word[: -len(ending)]
    return word
