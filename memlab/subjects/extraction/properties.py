"""What is said of things and of what others have: "Ada's room is number 19", "the port of the server is 9100".

A clause is read as a noun phrase, "is" or "are", and a value. Whose the property is stands before it ("Ada's", "my
brother's", "our", "the printer's") or after it ("the owner of the fork"); without either, "the staging port" is itself
what is spoken of. Only a value that names something counts: a number, a name, a code, a time or place by name, a noun
with an article, or what regularly becomes of it ("is rotated on Mondays"). What is lovely, broken or late is not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memlab.kernel.english import Token
from memlab.subjects.extraction.asserting import table
from memlab.subjects.extraction.values import ARTICLES, bare, capital, trait_at, value_at
from memlab.subjects.extraction.verbs import past_adverbs

__all__ = ["Property", "owner_at", "property_in"]

_MOST_BEFORE = 9
"""Words before "is"."""

_MOST_NOUNS = 4
_LONGEST_VALUE = 9
_CODE = re.compile(r"\d|\w[./_:@-]\w|^#\w")
_POSSESSIVE = re.compile("['\u2019]s$|(?<=s)['\u2019]$")
_PARTICIPLE = re.compile(r"\w{2,}ed")
_PLACING = ("at", "on", "in", "under", "from", "by", "to", "between", "near", "for", "until")


@dataclass(frozen=True, slots=True)
class Property:
    """Of whom or what, which property, its value, and the place in the message where the value ends.

    ``mine``: it is the speaker's own. ``person``: it is somebody's, and not a thing's.
    """

    subject: str
    predicate: str
    value: str
    stop: int
    mine: bool
    person: bool


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whose something is; the noun begins at ``place``."""

    name: str
    place: int
    mine: bool
    person: bool


def property_in(text: str, words: list[Token], place: int) -> Property | None:
    """The property that a clause states from ``place`` on; None where it states none."""
    verb = next(
        (at for at in range(place + 1, min(place + _MOST_BEFORE, len(words))) if words[at].low in ("is", "are")), None
    )
    if verb is None or not table("of-the-moment").isdisjoint(word.low for word in words[verb:]):
        return None
    at = past_adverbs(words, verb + 1)[-1:]
    if not at:
        return None
    return _becomes(text, words, place, verb, at[0]) or _has(text, words, place, verb, at[0])


def owner_at(text: str, words: Sequence[Token], place: int) -> _Owner | None:
    """Whose what stands at ``place`` is, by a possessive: "my", "Ada's", "my brother's", "the printer's"."""
    if place >= len(words):
        return None
    low = words[place].low
    mine = low in ("my", "our")
    who = {"my": "user", "our": "team"}.get(low, "")
    start = place + (mine or low == "the")
    end = start
    for at in range(start, min(start + _MOST_NOUNS, len(words))):
        if _POSSESSIVE.search(text[words[at].start : words[at].stop]) and _are_nouns(words[start : at + 1]):
            end = at + 1
    if end == start:
        return _Owner(who, start, True, True) if mine else None
    said = bare(_POSSESSIVE.sub("", text[words[start].start : words[end - 1].stop]))
    if mine:
        return _Owner(f"{who}'s {said}", end, False, low == "my")
    named = low != "the"
    if named and not all(capital(text, word) for word in words[start:end]):
        return None
    return _Owner(said, end, False, named)


def _has(text: str, words: list[Token], place: int, verb: int, at: int) -> Property | None:
    """A noun phrase, "is" and a value."""
    owner = owner_at(text, words, place)
    if owner is not None:
        noun = words[owner.place : verb]
        if len(noun) > 1 and noun[0].low in table("renewed"):
            noun = noun[1:]
        name, predicate = owner.name, "-".join(word.low for word in noun)
        alone = False
    elif words[place].low == "the" and place + 1 < verb:
        of = next((n for n in range(place + 2, verb - 1) if words[n].low in ("of", "for")), None)
        noun = words[place + 1 : verb if of is None else of]
        if of is None:
            name, predicate, alone = _said(text, noun), "is", True
        else:
            after = words[of + 1 :][words[of + 1].low in ("the", "my", "our") : verb - of - 1]
            if not _are_nouns(after) or (after[0].low.endswith("ing") and words[of + 1] is after[0]):
                return None
            name, predicate, alone = _said(text, after), "-".join(word.low for word in noun), False
    else:
        return None
    if not noun or len(noun) > _MOST_NOUNS or not _are_nouns(noun) or noun[-1].low in table("discourse-nouns"):
        return None
    found = _value(text, words, at, noun, alone=alone)
    if found is None:
        return None
    mine, person = (owner.mine, owner.person) if owner is not None else (False, False)
    return Property(name, predicate, *found, mine, person)


def _becomes(text: str, words: list[Token], place: int, verb: int, at: int) -> Property | None:
    """ "The key of staging is rotated on Mondays": a thing, what is done to it, and when, where or by what."""
    low = words[at].low
    if low in table("moment-participles") or at + 2 >= len(words) or words[at + 1].low not in _PLACING:
        return None
    if low not in table("participles") and not _PARTICIPLE.fullmatch(low):
        return None
    article = words[place].low == "the"
    thing = words[place + article : verb]
    nouns = [word for word in thing if word.low not in ("of", "the")]
    if not nouns or not _are_nouns(nouns) or nouns[-1].low in table("discourse-nouns"):
        return None
    if len(thing) > 2 * _MOST_NOUNS or not (article or words[verb].low == "are"):
        return None
    found = _read(text, words, at + 2)
    infinitive = (
        words[at + 1].low == "to" and words[at + 2].low not in ARTICLES and not _names(text, words[at + 2 : at + 3])
    )
    if found is None or infinitive:
        return None
    return Property(_said(text, thing), f"is-{low}-{words[at + 1].low}", *found, mine=False, person=False)


def _value(text: str, words: list[Token], at: int, noun: Sequence[Token], *, alone: bool) -> tuple[str, int] | None:
    """What names something from ``at`` on, and where it ends."""
    found = _read(text, words, at)
    if found is None:
        return None
    low, rest = words[at].low, [word for word in words[at:] if word.start < found[1]]
    if len(rest) == 1 and noun[-1].low in table("relations") and trait_at(text, words, at):
        return None  # "Ada's mother is Polish" says of the mother how she is
    if _names(text, rest) and (low not in _PLACING or len(rest) > 1):
        leading = low in _PLACING or low in (*ARTICLES, "number") or _names(text, rest[:1])
        return found if leading else None
    if low in _PLACING:
        return found if not table("ordinals").isdisjoint(word.low for word in rest) else None
    if not alone and low in ("a", "an") and len(rest) > 1:
        return found if table("passing").isdisjoint(word.low for word in rest[1:3]) else None
    worded = noun[-1].low in table("said-in-a-word") and len(rest) <= 2 and low not in ARTICLES
    return found if worded and _are_nouns(rest) else None


def _read(text: str, words: list[Token], at: int) -> tuple[str, int] | None:
    """The value from ``at`` on, if it is short and no clause of its own."""
    found = value_at(text, words, at, "property")
    if found is None or words[at].low in table("no-nouns") - {*_PLACING, *ARTICLES}:
        return None
    rest = [word.low for word in words[at:] if word.start < found[1]]
    return found if len(rest) <= _LONGEST_VALUE and table("clause-words").isdisjoint(rest) else None


def _names(text: str, words: Sequence[Token]) -> bool:
    """Whether a name, a number or a code is among these words."""
    return any(capital(text, word) or _CODE.search(word.low) is not None for word in words)


def _are_nouns(words: Sequence[Token]) -> bool:
    """Whether these may all be parts of a noun phrase: no pronouns, verbs, prepositions."""
    return bool(words) and table("no-nouns").isdisjoint(word.low for word in words)


def _said(text: str, words: Sequence[Token]) -> str:
    return bare(text[words[0].start : words[-1].stop])
