"""Whether a text may state a fact: asked before anything else is read of it, because most of what is said states none.

One scan over the words; the tables are those of the language.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from memlab.kernel.english import lexicon, word_pattern
from memlab.kernel.english import table as read_table

__all__ = ["table", "tells"]

_SEPARATE = word_pattern("hyphenated")


@cache
def table(name: str) -> Any:
    """Return a table of the language's ``extraction``; a list as a set."""
    return read_table("extraction", name)


def tells(text: str) -> bool:
    """Whether a text may state a fact: asked first, as most of what is said states none.

    >>> tells("I live in Rome"), tells("It rained all day")
    (True, False)
    """
    words = _SEPARATE.findall(text.replace("\u2019", "'"))
    lows = " ".join(words).lower().split(" ")  # word by word it takes three times as long
    if not _changing().isdisjoint(lows):
        return True
    first = _beginnings()["first"]
    if first.isdisjoint(lows):
        return False
    for place, low in enumerate(lows):  # noqa: SIM110 - a generator takes twice as long
        if low in first and _begins(words, lows, place):
            return True
    return False


def _begins(words: list[str], lows: list[str], place: int) -> bool:
    """Whether a subject and its verb, or a verb as another says it, may begin at ``place``."""
    low, of = lows[place], _beginnings()
    if low in of["others"]:
        return low in of["things"] or _is_subject_of(words, lows, place)
    if low in ("user", "i'd", "we'd"):
        return True
    if low not in _SIGNS:
        return False
    after = place + 1
    while after < len(lows) and after <= place + _MOST_ADVERBS and lows[after] in table("adverbs"):
        after += 1
    following = lows[after] if after < len(lows) else ""
    if low in ("is", "are") and following and _may_have(lows, place, following, words[after] != following):
        return True
    if low in ("i", "we"):
        return following in of["own"]
    if low in ("my", "our"):
        return following.removesuffix("'s") in of["mine"]
    if low == "i've":
        return following in of["have"]
    if low == "call":
        return following == "me"
    if low == "is":
        return following in of["things"] or (following in of["being"] and _is_subject_of(words, lows, place))
    return following in of["being"] or words[after : after + 1] != lows[after : after + 1] or following.isdigit()


def _may_have(lows: list[str], place: int, following: str, named: bool) -> bool:
    """Whether a property of something may be stated by "is" or "are" at ``place``; ``named``: a capital follows."""
    if not (named or following in _VALUES or following.endswith("ed") or not following.isalpha()):
        of = _beginnings()
        if following not in of["participles"] and lows[place - 1] not in of["in-a-word"]:
            return False
    before = lows[max(place - _MOST_OWNED, 0) : place]
    return lows[place] == "are" or not _OWNERS.isdisjoint(before) or any(low.endswith(("'s", "s'")) for low in before)


def _is_subject_of(words: list[str], lows: list[str], place: int) -> bool:
    """Whether somebody who may be told of stands before the verb at ``place``: a name, a relative, he or she."""
    before = place - 1
    while before >= 0 and lows[before] in table("adverbs"):
        before -= 1
    if before < 0:
        return False
    low = lows[before]
    return low in _TOLD_OF or low in _beginnings()["mine"] or (words[before] != low and low not in table("no-names"))


_SIGNS = frozenset(
    ("i", "we", "i'm", "im", "i've", "i'd", "we'd", "we're", "am", "user", "call", "my", "our", "is", "are")
)
_OWNERS = frozenset(("my", "our", "the"))
_VALUES = frozenset(("a", "an", "the", "number", "at", "on", "in", "under", "from", "by", "between", "near"))
"""Words that begin a value."""
_MOST_OWNED = 9
"""Words from an owner to "is"."""
_TOLD_OF = frozenset(("he", "she", "user", "and", "but"))
_MOST_ADVERBS = 3


def _of_things(verbs: list[tuple[list[str], list[str]]]) -> list[tuple[list[str], list[str]]]:
    predicates = table("things")["predicates"]
    return [(own, other) for own, other in verbs if table("verbs")[" ".join(own)][1] in predicates]


@cache
def _changing() -> frozenset[str]:
    """Words without which no change of life is told."""
    tables = lexicon()["lifecycle"]
    verbs = [*tables["endings"], *tables["beginnings"], *tables["posts"]["as"], *tables["posts"]["at"]]
    verbs += [*tables["words"]["gone"], *tables["words"]["anymore"]]
    verbs += [state for states in tables["states"].values() for state in states]
    telling = {word for verb in verbs for word in verb.split()}
    return frozenset(telling - {*_PLAIN, "a", "in", "on", "of", "as", "at", "for", "from", "up", "with", "by", "to"})


_PLAIN = ("got", "have", "has", "had", "was", "is", "be", "went", "my", "an", "work", "new", "now", "these", "days")


@cache
def _beginnings() -> dict[str, frozenset[str]]:
    """The words with which verbs begin or go on: of oneself, of others, after "am", after "have"; and after "my"."""
    verbs = [(own.split(), other.split()) for own, (other, *_) in table("verbs").items()]
    being = {own[1] for own, _ in verbs if own[0] in ("am", "are")} | {trait.split()[0] for trait in table("traits")}
    mine = table("relations") | table("properties") | table("favourites")
    others = frozenset(other[0] for _, other in verbs) - {"has", "does", "cannot", "would", "is"}
    return {
        "first": _SIGNS | others,
        "own": frozenset({own[0] for own, _ in verbs} | {"don't", "dont", "can't"}) - {"are"},
        "others": others,
        "being": frozenset(being | {"a", "an", "the", "our"}),
        "have": frozenset(own[1] for own, _ in verbs if own[0] == "have" and len(own) > 1),
        "mine": frozenset(part for name in mine for part in (name.split()[0], name.split()[-1])),
        "participles": table("participles"),
        "in-a-word": table("said-in-a-word"),
        "things": frozenset(own[1] if own[0] == "are" else other[0] for own, other in _of_things(verbs)),
    }
