"""The value after a verb: where it ends, and it as another says it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from memlab.kernel.english import Token, vocabulary
from memlab.subjects.extraction.asserting import table

__all__ = ["ARTICLES", "bare", "capital", "joined", "trait_at", "value_at"]

ARTICLES = ("a", "an", "the")

_MOST_WORDS = 14
_LONGEST_VALUE = 120
_TRIMMED = " \t\r\n.,;:!?\u2026\"'*_~-\u2013\u2014()[]"


def value_at(text: str, words: list[Token], at: int, sort: str) -> tuple[str, int] | None:
    """What stands from ``at`` to where a value of this sort ends, as another says it, and where that is; None where it
    is empty, speaks of the moment or is no value but a sentence.
    """
    if at >= len(words):
        return None
    rest = words[at:]
    end = len(rest)
    for size in (1, 2, 3):
        for place in range(1, len(rest)):
            if place >= end:
                break
            if " ".join(word.low for word in rest[place : place + size]) in _stops(sort):
                end = place
    rest = _without_run_on(_without_date(rest[:end], sort))
    if rest and _compares([word.low for word in rest]):
        return None
    rest = _without_second_verb(text, _without_tails(rest), sort)
    if not rest or len(rest) > _MOST_WORDS or _refers_outside(text, rest):
        return None
    lows = [word.low for word in rest]
    if lows == ["to"] or lows[0] == "like":
        return None
    alone = {low for low, after in zip(lows, [*lows[1:], ""], strict=True) if after not in table("spans")}
    if lows[0] in table("deictic") or not table("deictic-anywhere").isdisjoint(alone):
        return None
    if not table("empty-values").isdisjoint(lows[: 3 if lows[0] in ARTICLES else 2]):
        return None
    start, stop = rest[0].start, rest[-1].stop
    said = bare(" ".join(text[start:stop].split()))
    said = " ".join(_of_another(word) for word in said.split(" "))
    return (said, stop) if said and len(said) <= _LONGEST_VALUE and any(map(str.isalnum, said)) else None


def _of_another(word: str) -> str:
    found: str = table("possessives").get(word.lower(), word)
    return found


@cache
def _stops(sort: str) -> frozenset[str]:
    return frozenset(table("stops")[sort])


def _without_tails(words: list[Token]) -> list[Token]:
    """Without what belongs to the moment of speaking: "these days", "though"."""
    while words:
        fits = (n for n in (3, 2, 1) if len(words) > n and joined(words[-n:]) in table("tails"))
        size = next(fits, 0) or int(len(words) > 1 and _LAUGHTER.fullmatch(words[-1].low) is not None)
        if not size:
            return words
        words = words[:-size]
    return words


_LAUGHTER = re.compile(r"[ab]?(?:ha|ah)+h?|l+o+l+|x+d+|x+p+|:+[a-z()]*|[;:=]\S{1,2}|l+m+f?a+o+")


def _without_run_on(words: list[Token]) -> list[Token]:
    """Without the next sentence where nothing divides it: "San Fran its such a fun city", "hiking cause it is free"."""
    for at in range(1, len(words)):
        low, after = words[at].low, words[at + 1].low if at + 1 < len(words) else ""
        if low in table("run-on") or (low == "its" and after in table("after-its")):
            return words[:at]
    return words


def _refers_outside(text: str, words: list[Token]) -> bool:
    """Whether a pronoun of a value stands for something that the value does not name: "some of their songs"."""
    for at, word in enumerate(words):
        if word.low not in table("third-pronouns"):
            continue
        earlier = words[:at]
        named = any(
            capital(text, one) or one.low in table("relations") or (word.low in _OF_SEVERAL and one.low.endswith("s"))
            for one in earlier
        )
        if not (named or (word.low in _OF_SEVERAL and any(one.low in _SEVERAL for one in earlier))):
            return True
    return False


_OF_SEVERAL = frozenset(("their", "they", "them", "its"))
_SEVERAL = frozenset(("people", "children", "men", "women", "folks"))


def _compares(lows: list[str]) -> bool:
    """Whether an activity is compared with nothing that is named: "eating more"."""
    return lows[-1] in ("more", "better", "less", "worse") and (lows[0] == "to" or lows[0].endswith("ing"))


def _without_second_verb(text: str, words: list[Token], sort: str) -> list[Token]:
    """Without what else is said after "and": "a Russian major and stay far away", "Orem and signed a lease"."""
    for at in range(1, len(words) - 1):
        if words[at].low not in ("and", "then") or sort not in _WITHOUT_A_VERB:
            continue
        after = words[at + 1]
        goes_on = (
            after.low in (*ARTICLES, "my", "our") or capital(text, after) or after.low in table("places-after-and")
        )
        if sort == "subject-matter":
            goes_on = not after.low.endswith("ing") or after.low in table("activities")
        elif sort in ("is", "job"):
            goes_on = (
                goes_on or _names_a_role(after.low) or any(_names_a_role(word.low) for word in words[at + 1 : at + 3])
            )
        if not goes_on:
            return words[:at]
    return words


_WITHOUT_A_VERB = ("place", "work", "is", "job", "subject-matter")


def _names_a_role(low: str) -> bool:
    known = vocabulary("linking", "occupations")
    return low in table("relations") or low in table("traits") or low in known or low.endswith(_OF_STUDENTS)


_OF_STUDENTS = ("student", "major", "minor")


def _without_date(words: list[Token], sort: str) -> list[Token]:
    """Without when it came about, where the value is a place or a post: "Cardiff in May", "Siemens on Monday"."""
    if sort not in _DATED:
        return words
    for at in range(1, len(words) - 1):
        after = [word.low for word in words[at + 1 : at + 3]]
        if words[at].low in ("in", "on", "around", "during") and (
            after[0] in table("dates")
            or after[0] in table("months")
            or _YEAR.fullmatch(after[0])
            or (after[0] in ("early", "late", "mid", "the") and after[-1] in (*table("dates"), *table("months")))
        ):
            return words[:at]
    return words


_DATED = ("place", "work", "job", "is")
_YEAR = re.compile(r"(?:19|20)\d\d")


def capital(text: str, word: Token) -> bool:
    """Whether a word begins with a capital letter in the message."""
    first = next((sign for sign in text[word.start : word.stop] if sign.isalnum()), "")
    return first.isupper()


def bare(said: str) -> str:
    """A text without marks and white space at its ends."""
    return said.strip(_TRIMMED)


def joined(words: Sequence[Token]) -> str:
    """The words with spaces between."""
    return " ".join(word.low for word in words)


def trait_at(text: str, words: Sequence[Token], at: int) -> bool:
    """Whether a word or two say how somebody is for long: vegetarian, Polish."""
    low = words[at].low
    both = " ".join(word.low for word in words[at : at + 2])
    if low in table("traits") or both in table("traits"):
        return True
    return capital(text, words[at]) and len(low) > 4 and low.endswith(tuple(table("nationality-endings")))
