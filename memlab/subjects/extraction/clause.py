"""The words of a clause and what stands where in them: verbs of the table, phrases, values that end as their sort does.

A fact is read of one clause. ``Said`` has its words in lower case with their places in the message; whatever is beyond
the end of the clause reads as an empty word.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from memlab.kernel.english import Token, lexicon, vocabulary, word_pattern
from memlab.kernel.english import table as read_table

__all__ = [
    "ARTICLES",
    "CHANGED",
    "DOUBTFUL",
    "INFERRED",
    "LOWEST",
    "OPEN",
    "SAID_OF_OTHERS",
    "SURE",
    "TEAM",
    "USER",
    "ClauseValue",
    "Fact",
    "Said",
    "Subject",
    "bare",
    "is_cut_short",
    "lasts",
    "table",
    "tells",
]

USER, TEAM = "user", "team"

SURE, CHANGED, SAID_OF_OTHERS, INFERRED = 0.95, 0.92, 0.85, 0.6
"""Of oneself, of a move or a new post, of others, concluded by an assistant."""

OPEN = 0.55
"""Of a property whose noun no judged fact had: below .6 until such facts are judged."""

LOWEST = 0.44
"""Below it no fact is proposed: fewer than half of such facts are useful."""

DOUBTFUL = 0.5
"""The highest confidence of a fact whose value rarely fits its predicate: below .6, where facts are acted on."""

ARTICLES = ("a", "an", "the")

_MOST_ADVERBS = 3
_MOST_OF_A_VERB = 5
_MOST_OF_A_VALUE = 14
_LONGEST_VALUE = 120
_TRIMMED = " \t\r\n.,;:!?\u2026\"'*_~-\u2013\u2014()[]"
_LAUGHTER = re.compile(r"[ab]?(?:ha|ah)+h?|l+o+l+|x+d+|x+p+|:+[a-z()]*|[;:=]\S{1,2}|l+m+f?a+o+")
_TITLE = re.compile(r"\s*[\"\u201c](?P<title>[^\"\u201c\u201d\n]{2,60})[\"\u201d]")
_NEXT = re.compile(r",\s+(?P<word>[^\W\d_][\w'\u2019-]*)\s+[^\W_]")
_YEAR = re.compile(r"(?:19|20)\d\d")
_OF_SEVERAL = frozenset(("their", "they", "them", "its"))
_SEVERAL = frozenset(("people", "children", "men", "women", "folks"))
_OF_STUDENTS = ("student", "major", "minor")
_WITHOUT_A_VERB = ("place", "work", "is", "job", "subject-matter")
_DATED = ("place", "work", "job", "is")
_SENTENCES = frozenset(
    ("that's", "who's", "it's", "i'm", "i've", "i'll", "im", "ive", "theyre", "dont", "youre")
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A subject, a predicate and a value; ``entity`` says whether that is an entity. ``start`` and ``stop``: its place.

    ``kind`` is the kind of memory that it makes, ``confidence`` how sure the rule is, 0-1. ``text`` says it as a
    sentence where subject, predicate and value do not, with {subject} and {possessive} for whom it is about.
    """

    subject: str
    predicate: str
    value: str
    entity: bool
    kind: str
    confidence: float
    start: int
    stop: int
    text: str | None = None


@dataclass(slots=True)
class Subject:
    """Who a clause speaks of, and where its verb may begin. ``own``: the verb is as one says it of oneself."""

    name: str
    own: bool
    verb: int
    start: int
    thing: bool = False


class ClauseValue(NamedTuple):
    """A value as another person says it, and where it ends in the message."""

    text: str
    stop: int


@cache
def table(name: str) -> Any:
    """Return a table of the language's ``extraction``; a list as a set."""
    return read_table("extraction", name)


def bare(said: str) -> str:
    """Return a text without marks and white space at its ends."""
    return said.strip(_TRIMMED)


class Said:
    """The words of a clause.

    Attributes
    ----------
    text
        The message.
    words
        The words of the clause with their places in it, contractions taken apart.
    lows
        The words in lower case.
    """

    __slots__ = ("lows", "text", "words")

    def __init__(self, text: str, words: Sequence[Token]) -> None:
        self.text, self.words = text, words
        self.lows = [word.low for word in words]

    def __len__(self) -> int:
        return len(self.lows)

    def low(self, at: int) -> str:
        """Return a word in lower case; empty beyond the end."""
        return self.lows[at] if at < len(self.lows) else ""

    def phrase(self, start: int, stop: int) -> str:
        """Return words in lower case with spaces between."""
        return " ".join(self.lows[start:stop])

    def written(self, start: int, stop: int) -> str:
        """Return words as they are written, without marks at their ends."""
        return bare(self.text[self.words[start].start : self.words[stop - 1].stop])

    def is_capital(self, at: int) -> bool:
        """Return whether a word begins with a capital letter."""
        if at >= len(self.words):
            return False
        word = self.words[at]
        first = next((sign for sign in self.text[word.start : word.stop] if sign.isalnum()), "")
        return first.isupper()

    def end_of_name(self, start: int, most: int) -> int:
        """Return where the capitalised words from a place on end, of at most so many."""
        stop = start
        while stop < start + most and self.is_capital(stop):
            stop += 1
        return stop

    def after(self, at: int, stop: int) -> int:
        """Return the first word behind ``at`` that begins at or after a place of the message."""
        behind = range(at + 1, len(self.words))
        return next((place for place in behind if self.words[place].start >= stop), len(self.words))

    def longest(self, at: int, phrases: Container[str]) -> str | None:
        """Return the longest phrase of a table that stands at a place."""
        for stop in range(min(at + _MOST_OF_A_VERB, len(self)), at, -1):
            said = self.phrase(at, stop)
            if said in phrases:
                return said
        return None

    def length_of(self, at: int, phrases: Sequence[str]) -> int:
        """Return how many words the first of these phrases that stands at a place has; 0 if none does."""
        for phrase in phrases:
            parts = phrase.split()
            if self.lows[at : at + len(parts)] == parts:
                return len(parts)
        return 0

    # -- verbs ------------------------------------------------------------------------------------------------

    def past_adverbs(self, at: int) -> list[int]:
        """Return where a verb may begin: at a place, and after each adverb from there on."""
        places = [at] if at < len(self) else []
        while places and len(places) <= _MOST_ADVERBS and self.lows[places[-1]] in table("adverbs"):
            if places[-1] + 1 >= len(self):
                break
            places.append(places[-1] + 1)
        return places

    def verb(self, at: int, *, own: bool) -> tuple[str, int] | None:
        """Return the longest verb of the table at a place, past adverbs, and where its value begins.

        The verb is as one says it of oneself; ``own`` says whether the clause has it so.

        >>> from memlab.subjects.reading.clauses import contracted_words
        >>> text = "really likes tea"
        >>> Said(text, contracted_words(text, 0, len(text))).verb(0, own=False)
        ('like', 2)
        """
        for place in self.past_adverbs(at):
            found = self._form(own, (), place)
            # I'm now living in
            if found is None and self.low(place) in ("am", "is", "have", "has"):
                past = next((one for one in self.past_adverbs(place + 1) if one > place + 1), None)
                found = None if past is None else self._form(own, (self.lows[place],), past)
            if found is not None:
                return found
        return None

    def _form(self, own: bool, before: tuple[str, ...], at: int) -> tuple[str, int] | None:
        forms = _forms(own)
        for stop in range(min(at + _MOST_OF_A_VERB, len(self)), at, -1):
            verb = forms.get((*before, *self.lows[at:stop]))
            if verb is not None:
                return verb, stop
        return None

    def is_something(self, at: int) -> bool:
        """Return whether "is" and something after it stand at a place, past adverbs."""
        return any(
            self.lows[place] == "is" and place + 1 < len(self) for place in self.past_adverbs(at)
        )

    # -- values -----------------------------------------------------------------------------------------------

    def value(self, at: int, sort: str) -> ClauseValue | None:
        """Return what stands from a place to where a value of a sort ends, as another person says it.

        None where it is empty, speaks of the moment or is no value but a sentence.
        """
        if at >= len(self):
            return None
        lows = self.lows[at:]
        lows = lows[: _end_at_stops(lows, sort)]
        lows = lows[: _end_at_date(lows, sort)]
        lows = lows[: _end_at_run_on(lows)]
        if _compares(lows):
            return None
        lows = lows[: _end_at_tails(lows)]
        lows = lows[: self._end_at_second_verb(at, lows, sort)]
        if (
            not lows
            or len(lows) > _MOST_OF_A_VALUE
            or self._refers_outside(at, lows)
            or _is_empty(lows)
        ):
            return None
        stop = self.words[at + len(lows) - 1].stop
        said = " ".join(self.text[self.words[at].start : stop].split())
        said = " ".join(
            table("possessives").get(word.lower(), word) for word in bare(said).split(" ")
        )
        fits = said and len(said) <= _LONGEST_VALUE and any(map(str.isalnum, said))
        return ClauseValue(said, stop) if fits else None

    def title(self, at: int, sort: str) -> ClauseValue | None:
        """Return a title in quotation marks right after a verb of taste: "I love \"The Santa Clause\" too"."""
        if sort not in ("taste", "choice", "subject-matter") or not at:
            return None
        found = _TITLE.match(self.text, self.words[at - 1].stop)
        return None if found is None else ClauseValue(found["title"].strip(), found.end())

    def is_trait(self, at: int) -> bool:
        """Return whether a word or two say how somebody is for long: vegetarian, Polish."""
        low = self.low(at)
        if low in table("traits") or self.phrase(at, at + 2) in table("traits"):
            return True
        return (
            self.is_capital(at)
            and len(low) > 4
            and low.endswith(tuple(table("nationality-endings")))
        )

    def is_first_of_two(self, value: ClauseValue) -> bool:
        """Return whether a value ends with the first adjective of several: "self-directed, independent learning"."""
        found = _NEXT.match(self.text, value.stop)
        last = value.text.rsplit(" ", 1)[-1]
        if found is None or last[:1].isupper():
            return False
        goes_on = (
            table("subjects") | table("openers") | table("inverted-verbs") | table("after-comma")
        )
        listed = found["word"].lower() in goes_on or found["word"][0].isupper()
        return not listed and not last.lower().endswith("s")

    def _end_at_second_verb(self, at: int, lows: list[str], sort: str) -> int:
        """End before what else is said after "and": "a Russian major and stay far away", "Orem and signed a lease"."""
        if sort not in _WITHOUT_A_VERB:
            return len(lows)
        for place in range(1, len(lows) - 1):
            if lows[place] not in ("and", "then"):
                continue
            after = lows[place + 1]
            goes_on = after in (*ARTICLES, "my", "our") or after in table("places-after-and")
            goes_on = goes_on or self.is_capital(at + place + 1)
            if sort == "subject-matter":
                goes_on = not after.endswith("ing") or after in table("activities")
            elif sort in ("is", "job"):
                goes_on = goes_on or any(map(_names_a_role, lows[place + 1 : place + 3]))
            if not goes_on:
                return place
        return len(lows)

    def _refers_outside(self, at: int, lows: list[str]) -> bool:
        """Return whether a pronoun of a value stands for something that it does not name: "some of their songs"."""
        for place, low in enumerate(lows):
            if low not in table("third-pronouns"):
                continue
            named = any(
                self.is_capital(at + one) or lows[one] in table("relations") for one in range(place)
            )
            if low in _OF_SEVERAL:
                named = named or any(one.endswith("s") or one in _SEVERAL for one in lows[:place])
            if not named:
                return True
        return False


@cache
def _forms(own: bool) -> dict[tuple[str, ...], str]:
    """From the words of a verb to its form of oneself. One thing "is written", several are."""
    return {
        tuple((verb if own else other).split()): verb
        for verb, (other, *_) in table("verbs").items()
    }


@cache
def _stops(sort: str) -> frozenset[str]:
    return frozenset(table("stops")[sort])


def _end_at_stops(lows: list[str], sort: str) -> int:
    """End before the first phrase that ends a value of this sort; a shorter phrase is looked for first."""
    end = len(lows)
    for size in (1, 2, 3):
        phrases = (" ".join(lows[place : place + size]) for place in range(1, end))
        end = next(
            (place for place, phrase in enumerate(phrases, 1) if phrase in _stops(sort)), end
        )
    return end


def _end_at_date(lows: list[str], sort: str) -> int:
    """End before when it came about, where the value is a place or a post: "Cardiff in May", "Siemens on Monday"."""
    if sort not in _DATED:
        return len(lows)
    for place in range(1, len(lows) - 1):
        first, last = lows[place + 1], lows[place + 1 : place + 3][-1]
        if lows[place] in ("in", "on", "around", "during") and (
            _is_date(first)
            or _YEAR.fullmatch(first)
            or (first in ("early", "late", "mid", "the") and _is_date(last))
        ):
            return place
    return len(lows)


def _is_date(low: str) -> bool:
    return low in table("dates") or low in table("months")


def _end_at_run_on(lows: list[str]) -> int:
    """End before the next sentence where nothing divides it: "San Fran its such a fun city", "hiking cause it is"."""
    for place, (low, after) in enumerate(zip(lows, [*lows[1:], ""], strict=True)):
        if place and (low in table("run-on") or (low == "its" and after in table("after-its"))):
            return place
    return len(lows)


def _end_at_tails(lows: list[str]) -> int:
    """End before what belongs to the moment of speaking: "these days", "though"."""
    end = len(lows)
    while end:
        fits = (
            size
            for size in (3, 2, 1)
            if end > size and " ".join(lows[end - size : end]) in table("tails")
        )
        size = next(fits, 0) or int(end > 1 and _LAUGHTER.fullmatch(lows[end - 1]) is not None)
        if not size:
            break
        end -= size
    return end


def _compares(lows: list[str]) -> bool:
    """Return whether an activity is compared with nothing that is named: "eating more"."""
    return lows[-1] in ("more", "better", "less", "worse") and (
        lows[0] == "to" or lows[0].endswith("ing")
    )


def _is_empty(lows: list[str]) -> bool:
    """Return whether a value points at the moment, or says nothing."""
    if lows == ["to"] or lows[0] == "like" or lows[0] in table("deictic"):
        return True
    alone = {
        low for low, after in zip(lows, [*lows[1:], ""], strict=True) if after not in table("spans")
    }
    first = lows[: 3 if lows[0] in ARTICLES else 2]
    return not table("deictic-anywhere").isdisjoint(alone) or not table("empty-values").isdisjoint(
        first
    )


def _names_a_role(low: str) -> bool:
    known = vocabulary("extraction", "relations", "traits"), vocabulary("linking", "occupations")
    return low.endswith(_OF_STUDENTS) or any(low in words for words in known)


def lasts(plan: str, *, said_to_someone: bool) -> bool:
    """Return whether a plan, wish or attempt is one of life, and no request or step of a task."""
    words = [word for word in plan.lower().split() if word not in table("adverbs")]
    if not words or words[0] not in table("life-verbs"):
        return (
            said_to_someone
            and bool(words)
            and words[0] not in table("asking-verbs")
            and len(words) > 2
        )
    if words[0] == "apply" and words[1:2] not in (["for"], ["to"]):  # a formula, and no post
        return False
    named = any(part[:1].isupper() or part[:1].isdigit() for part in plan.split()[1:])
    nouns = {word.strip(".,;!") for word in words}
    if "i" in nouns:
        return False
    return named or words[0] not in table("weak-verbs") or not table("life-nouns").isdisjoint(nouns)


def is_cut_short(value: str) -> bool:
    """Return whether a value ends where its sentence cannot: "similes like", "a style that's specifically designed"."""
    words = value.lower().split()
    if "i" in words[1:]:
        return True
    return words[-1] in table("open-ends") or bool(_SENTENCES & set(words)) or value[:1] in "-"


# -- whether a text may state a fact: one scan, as most of what is said states none ----------------------------------


_SEPARATE = word_pattern("hyphenated")


def tells(text: str) -> bool:
    """Return whether a text may state a fact: asked first, as most of what is said states none.

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
    if (
        low in ("is", "are")
        and following
        and _may_have(lows, place, following, words[after] != following)
    ):
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
        return following in of["things"] or (
            following in of["being"] and _is_subject_of(words, lows, place)
        )
    return (
        following in of["being"]
        or words[after : after + 1] != lows[after : after + 1]
        or following.isdigit()
    )


def _may_have(lows: list[str], place: int, following: str, named: bool) -> bool:
    """Whether a property of something may be stated by "is" or "are" at ``place``; ``named``: a capital follows."""
    if not (named or following in _VALUES or following.endswith("ed") or not following.isalpha()):
        of = _beginnings()
        if following not in of["participles"] and lows[place - 1] not in of["in-a-word"]:
            return False
    before = lows[max(place - _MOST_OWNED, 0) : place]
    return (
        lows[place] == "are"
        or not _OWNERS.isdisjoint(before)
        or any(low.endswith(("'s", "s'")) for low in before)
    )


def _is_subject_of(words: list[str], lows: list[str], place: int) -> bool:
    """Whether somebody who may be told of stands before the verb at ``place``: a name, a relative, he or she."""
    before = place - 1
    while before >= 0 and lows[before] in table("adverbs"):
        before -= 1
    if before < 0:
        return False
    low = lows[before]
    return (
        low in _TOLD_OF
        or low in _beginnings()["mine"]
        or (words[before] != low and low not in table("no-names"))
    )


_SIGNS = frozenset(
    (
        "i",
        "we",
        "i'm",
        "im",
        "i've",
        "i'd",
        "we'd",
        "we're",
        "am",
        "user",
        "call",
        "my",
        "our",
        "is",
        "are",
    )
)
_OWNERS = frozenset(("my", "our", "the"))
_VALUES = frozenset(
    ("a", "an", "the", "number", "at", "on", "in", "under", "from", "by", "between", "near")
)
"""Words that begin a value."""
_MOST_OWNED = 9
"""Words from an owner to "is"."""
_TOLD_OF = frozenset(("he", "she", "user", "and", "but"))


def _of_things(verbs: list[tuple[list[str], list[str]]]) -> list[tuple[list[str], list[str]]]:
    predicates = table("things")["predicates"]
    return [(own, other) for own, other in verbs if table("verbs")[" ".join(own)][1] in predicates]


@cache
def _changing() -> frozenset[str]:
    """Words without which no change of life is told."""
    tables = lexicon()["lifecycle"]
    verbs = [
        *tables["endings"],
        *tables["beginnings"],
        *tables["posts"]["as"],
        *tables["posts"]["at"],
    ]
    verbs += [*tables["words"]["gone"], *tables["words"]["anymore"]]
    verbs += [state for states in tables["states"].values() for state in states]
    telling = {word for verb in verbs for word in verb.split()}
    return frozenset(
        telling
        - {*_PLAIN, "a", "in", "on", "of", "as", "at", "for", "from", "up", "with", "by", "to"}
    )


_PLAIN = (
    "got",
    "have",
    "has",
    "had",
    "was",
    "is",
    "be",
    "went",
    "my",
    "an",
    "work",
    "new",
    "now",
    "these",
    "days",
)


@cache
def _beginnings() -> dict[str, frozenset[str]]:
    """The words with which verbs begin or go on: of oneself, of others, after "am", after "have"; and after "my"."""
    verbs = [(own.split(), other.split()) for own, (other, *_) in table("verbs").items()]
    being = {own[1] for own, _ in verbs if own[0] in ("am", "are")} | {
        trait.split()[0] for trait in table("traits")
    }
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
        "things": frozenset(
            own[1] if own[0] == "are" else other[0] for own, other in _of_things(verbs)
        ),
    }
