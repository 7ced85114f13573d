"""Facts in what a message asserts: a subject, a verb of the table, and the value after it, cut where its sort ends.

Only what is said outright is read. A verb must stand right after its subject, with nothing but adverbs between, so that
a denial, a doubt ("I might live") and a past ("I lived") give nothing. Whatever else a subject does gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from memlab.english import LONGEST, Token, asserted, number_of
from memlab.subjects.extraction.asserting import table, tells
from memlab.subjects.extraction.changes import changes_in
from memlab.subjects.extraction.confidence import confidence_of
from memlab.subjects.extraction.properties import owner_at, property_in
from memlab.subjects.extraction.values import ARTICLES, bare, capital, joined, trait_at, value_at
from memlab.subjects.extraction.verbs import is_something, length_of, past_adverbs, verb_of

__all__ = ["TEAM", "USER", "Fact", "facts_in"]

USER, TEAM = "user", "team"

_OLDEST = 120
_NUMBER = re.compile(r"\d+")
_SURE, _CHANGED, _SAID_OF_OTHERS, _INFERRED = 0.95, 0.92, 0.85, 0.6

_NO_NAME_ENDINGS = ("ing", "tic", "ical", "ous", "tion", "ment", "ness", "ity", "ism", "ship", "phy", "gy", "ies")
"""Endings of words that begin a sentence and are no name, where a single word would be one."""

_GOES_ON = frozenset(("and", "but"))
"""After these a verb without a subject has the subject before."""

_ENTITIES = frozenset(["place", "work", "person"])
"""The sorts whose value is an entity."""


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
class _Subject:
    """Who a clause speaks of, and where its verb may begin. ``own``: the verb is as one says it of oneself."""

    name: str
    own: bool
    verb: int
    start: int
    thing: bool = False


def facts_in(text: str, role: str = "user") -> list[Fact]:
    """The facts that a message states, in order, each once.

    Of a user's message "I" is the user and "we" the team. Of an assistant's only what it says of "the user" counts.

    >>> [(fact.subject, fact.predicate, fact.value) for fact in facts_in("I live in Rome and I work at Acme")]
    [('user', 'lives-in', 'Rome'), ('user', 'works-at', 'Acme')]
    """
    if role == "tool" or not tells(text[:LONGEST]):
        return []
    return list(dict.fromkeys(_read(text, role)))


def _read(text: str, role: str) -> Iterator[Fact]:
    before: _Subject | None = None
    person: str | None = None
    sentence = -1
    for clause in asserted(text, tells):
        if clause.sentence != sentence:
            before, sentence = None, clause.sentence
        going_on = before if clause.after in _GOES_ON else None
        before = None
        for fact, subject in _of_a_clause(text, clause.words, going_on, person, role):
            if subject is not None and not subject.own and not subject.thing:
                person = subject.name
            if fact is not None:
                before = subject
                said = text[clause.start : clause.stop]
                sure = confidence_of(fact.predicate, fact.value, said, rule=fact.confidence, goal=fact.kind == "goal")
                yield replace(fact, confidence=sure)


def _of_a_clause(
    text: str, words: list[Token], before: _Subject | None, person: str | None, role: str
) -> Iterator[tuple[Fact | None, _Subject | None]]:
    """What one clause states, and whom it speaks of."""
    place = _after_openers(words)
    subject: _Subject | None = None
    if role == "user":
        changed = list(changes_in(text, words, place, USER))
        for one in changed:
            kept = (one.subject, one.predicate, one.value, one.entity)
            yield Fact(*kept, "personal", _SURE, one.start, one.stop, one.text), None
        if changed:
            return
        named = _of_a_relative(text, words, place)
        if named is not None:
            fact, subject = named
            yield fact, subject
            if subject is None:
                return
        else:
            fact = (
                _favourite(text, words, place)
                or _of_a_property(text, words, place)
                or _called(text, words, place)
                or _had(text, words, place)
            )
            if fact is not None:
                yield fact, None
                return
    if subject is None:
        subject = _subject(text, words, place, before, person, role)
    if subject is None:
        return
    yield None, subject
    for fact in _said_of(text, words, subject, role):
        yield fact, subject


def _after_openers(words: Sequence[Token]) -> int:
    """Past what only opens a clause: "Hi", "by the way", "for reports"."""
    place = 0
    while place < len(words):
        low = words[place].low
        length = _phrase_at(words, place)
        if length:
            place += length
        elif low in table("openers"):
            place += 1
        elif low in table("settings"):
            own = next(
                (at for at in range(place + 1, min(place + 7, len(words))) if words[at].low in ("i", "we")), None
            )
            if own is None:
                return place
            place = own
        else:
            return place
    return place


@cache
def _opening_phrases() -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for phrase in table("opening-phrases") | table("polite-conditions"):
        words = tuple(part for word in phrase.split() for part in table("contractions").get(word, word).split())
        found.setdefault(words[0], []).append(words)
    return found


def _phrase_at(words: Sequence[Token], place: int) -> int:
    fits = [
        len(phrase)
        for phrase in _opening_phrases().get(words[place].low, ())
        if tuple(word.low for word in words[place : place + len(phrase)]) == phrase
    ]
    return max(fits, default=0)


def _subject(
    text: str, words: list[Token], place: int, before: _Subject | None, person: str | None, role: str
) -> _Subject | None:
    """Whom a clause speaks of; None where that is not clear."""
    if place >= len(words):
        return None
    low, following = words[place].low, words[place + 1].low if place + 1 < len(words) else ""
    start = words[place].start
    if low == "user" or (low == "the" and following == "user"):
        return _Subject(USER, False, place + 1 + (low == "the"), start)
    if role != "user":
        return None
    if low in ("i", "we"):
        return _Subject(USER if low == "i" else TEAM, True, place + 1, start)
    if low in ("he", "she") and person is not None:
        return _Subject(person, False, place + 1, start)
    if before is not None and verb_of(words, place, own=before.own) is not None:
        return _Subject(before.name, before.own, place, start, before.thing)
    return _named(text, words, place) or _thing(text, words, place) or _owned(text, words, place)


def _named(text: str, words: list[Token], place: int) -> _Subject | None:
    """A name of one to three capitalised words, right before a verb: "Ada works", "Dr. Okafor speaks"."""
    last = place
    while last < len(words) and last < place + 3 and capital(text, words[last]):
        last += 1
    for stop in range(last, place, -1):
        if verb_of(words, stop, own=False) is None and not is_something(words, stop):
            continue
        named = [word.low.removesuffix("'s") for word in words[place:stop]]
        if not table("no-names").isdisjoint(named) or (stop - place == 1 and named[0] in table("titles")):
            return None
        if stop - place == 1 and named[0].endswith(_NO_NAME_ENDINGS):
            return None  # "Networking plays a big role", "Linguistic studies"
        return _Subject(bare(text[words[place].start : words[stop - 1].stop]), False, stop, words[place].start)
    return None


def _thing(text: str, words: list[Token], place: int) -> _Subject | None:
    """A thing that uses, needs or runs on another: "The backend is written in", "Our API runs on", "memlab uses"."""
    article = words[place].low in ("the", "our", "my")
    start = place + article
    for stop in range(start + 1, min(start + (3 if article else 1), len(words)) + 1):
        found = verb_of(words, stop, own=False)
        if found is not None and table("verbs")[found[0]][1] in table("things")["predicates"]:
            if words[start].low in table("no-names"):
                return None
            return _Subject(
                bare(text[words[start].start : words[stop - 1].stop]), False, stop, words[start].start, thing=True
            )
    return None


def _owned(text: str, words: list[Token], place: int) -> _Subject | None:
    """What somebody has, before a verb: "Omar's brother lives"; of a thing what things do: "Ben's laptop runs on"."""
    owner = owner_at(text, words, place)
    if owner is None or owner.mine:
        return None
    for stop in (owner.place + 1, owner.place + 2):
        found = verb_of(words, stop, own=False) if stop < len(words) else None
        if found is None:
            continue
        noun = joined(words[owner.place : stop])
        thing = noun not in _relatives()
        if not table("no-nouns").isdisjoint(noun.split()):
            return None
        if thing and table("verbs")[found[0]][1] not in table("things")["predicates"]:
            return None
        return _Subject(f"{owner.name}'s {noun}", False, stop, words[place].start, thing)
    return None


def _of_a_relative(text: str, words: list[Token], place: int) -> tuple[Fact | None, _Subject | None] | None:
    """ "My sister Ola lives ...": who she is to the user, and whom the clause speaks of."""
    if place + 1 >= len(words) or words[place].low not in ("my", "our"):
        return None
    left = len(words) - place - 1
    size = next((n for n in (2, 1) if n <= left and joined(words[place + 1 : place + 1 + n]) in _relatives()), 0)
    if not size:
        return _whose_name(text, words, place)
    relation = joined(words[place + 1 : place + 1 + size])
    at = place + 1 + size
    names = at
    while names < len(words) and names < at + 2 and capital(text, words[names]):
        names += 1
    start, predicate = words[place].start, relation.replace(" ", "-")
    if names > at:
        name = bare(text[words[at].start : words[names - 1].stop])
        fact = Fact(USER, predicate, name, True, "personal", _SURE, start, words[names - 1].stop)
        return fact, _Subject(name, False, names, start)
    called = length_of(words, at, ("is called", "is named"))
    if called and at + called < len(words) and capital(text, words[at + called]):
        return _name_fact(text, words, at + called, start, predicate), None
    return None, _Subject(f"{USER}'s {relation}", False, at, start)


@cache
def _relatives() -> frozenset[str]:
    return frozenset(table("relations"))


def _whose_name(text: str, words: list[Token], place: int) -> tuple[Fact | None, None] | None:
    """ "My daughter's name is Lucia"."""
    of = words[place + 1].low.removesuffix("'s")
    if of == words[place + 1].low or of not in _relatives() or length_of(words, place + 2, ("name is",)) != 2:
        return None
    at = place + 4
    if at >= len(words) or not capital(text, words[at]):
        return None, None
    return _name_fact(text, words, at, words[place].start, of), None


def _name_fact(text: str, words: list[Token], at: int, start: int, predicate: str) -> Fact:
    stop = at + 1
    while stop < len(words) and stop < at + 3 and capital(text, words[stop]):
        stop += 1
    name = bare(text[words[at].start : words[stop - 1].stop])
    return Fact(USER, predicate, name, True, "personal", _SURE, start, words[stop - 1].stop)


def _of_a_property(text: str, words: list[Token], place: int) -> Fact | None:
    """ "My favourite colour is teal", "My birthday is on 14 March"."""
    if place >= len(words) or words[place].low not in ("my", "our") or words[place].low == "our":
        return None
    verb = next((at for at in range(place + 2, min(place + 6, len(words))) if words[at].low == "is"), None)
    if verb is None:
        return None
    name = " ".join(word.low for word in words[place + 1 : verb])
    favourite = words[place + 1].low in table("favourites") and verb > place + 2
    if not favourite and name not in table("properties"):
        return None
    start = verb + 1
    while start < len(words) and words[start].low in ("on", "to", "in", "at") and name in ("birthday", "goal", "dream"):
        start += 1
    value = value_at(text, words, start, "name" if name.endswith("name") else "time" if name == "birthday" else "plan")
    if value is None or words[start].low in ("not", *table("adverbs")) or _is_cut_short(value[0]):
        return None
    if (name == "goal" and not _lasts(value[0], said_to_someone=True)) or _does(value[0], name):
        return None
    predicate = table("renamed-properties").get(name, name).replace(" ", "-")
    kind = "preference" if favourite else "goal" if predicate == "goal" else "personal"
    return Fact(USER, predicate, value[0], False, kind, _SURE, words[place].start, value[1])


def _favourite(text: str, words: list[Token], place: int) -> Fact | None:
    """ "Harry Potter is my favourite book": the same as "my favourite book is Harry Potter"."""
    verb = next((at for at in range(place + 1, min(place + 7, len(words) - 3)) if words[at].low == "is"), None)
    if verb is None or words[verb + 1].low != "my" or words[verb + 2].low not in table("favourites"):
        return None
    noun = [word.low for word in words[verb + 3 : verb + 5] if word.low.isalpha()]
    if not all(capital(text, word) for word in (words[place], words[verb - 1])) or not noun:
        return None
    if not table("no-names").isdisjoint(word.low for word in words[place:verb]):
        return None
    name = bare(text[words[place].start : words[verb - 1].stop])
    predicate = f"{words[verb + 2].low}-{'-'.join(noun)}"
    last = words[verb + 2 + len(noun)]
    return Fact(USER, predicate, name, False, "preference", _SURE, words[place].start, last.stop)


def _does(value: str, name: str) -> bool:
    """Whether a value says what something does now: "my company is funding ..."."""
    return value.split()[0].endswith("ing") and name not in ("hobby", "goal", "dream") and not name.startswith("fav")


def _called(text: str, words: list[Token], place: int) -> Fact | None:
    """ "Call me Mo": the name that somebody asks to be called by."""
    lows = [word.low for word in words[place : place + 3]]
    if lows[:2] != ["call", "me"] or len(lows) < 3 or not capital(text, words[place + 2]):
        return None
    value = value_at(text, words, place + 2, "name")
    if value is None:
        return None
    return Fact(USER, "name", value[0], False, "personal", _SURE, words[place].start, value[1])


def _had(text: str, words: list[Token], place: int) -> Fact | None:
    """ "Ada's room is number 19", "The port of the server is 9100", "The key is rotated on Mondays"."""
    found = property_in(text, words, place) if place < len(words) else None
    if found is None:
        return None
    sure, kind = _SURE if found.mine else _SAID_OF_OTHERS, "personal" if found.person else "fact"
    start = words[place].start
    return Fact(found.subject, found.predicate, found.value, False, kind, sure, start, found.stop)


def _said_of(text: str, words: list[Token], subject: _Subject, role: str) -> Iterator[Fact]:
    """What is said of a subject by the verb after it."""
    start = subject.start
    found = verb_of(words, subject.verb, own=subject.own)
    if found is None:
        yield from _identity(text, words, subject, role)
        return
    verb, at = found
    _, predicate, sort, kind = table("verbs")[verb]
    sure = _sure(subject, role, verb)
    if sort == "job":
        yield from _job(text, words, at, subject.name, start, sure, asked=False)
        return
    title = _title(text, words, at, sort)
    value = title or value_at(text, words, at, sort)
    if value is None or not (title or _fits(words[at].low, text, words[at], value[0], verb, sort, subject)):
        return
    if kind == "goal" and predicate.endswith("-to") and not _lasts(value[0], said_to_someone=predicate == "plans-to"):
        return
    if not title and (_is_cut_short(value[0]) or _is_first_of_two(text, value)):
        return
    entity = sort in _ENTITIES and predicate != "works-from"
    yield Fact(subject.name, predicate, value[0], entity, kind, sure, start, value[1])


def _title(text: str, words: list[Token], at: int, sort: str) -> tuple[str, int] | None:
    """A title in quotation marks right after a verb of taste: "I love \"The Santa Clause\" too"."""
    if sort not in ("taste", "choice", "subject-matter") or not at:
        return None
    found = _TITLE.match(text, words[at - 1].stop)
    return None if found is None else (found["title"].strip(), found.end())


_TITLE = re.compile(r"\s*[\"\u201c](?P<title>[^\"\u201c\u201d\n]{2,60})[\"\u201d]")


def _lasts(plan: str, *, said_to_someone: bool) -> bool:
    """Whether a plan, wish or attempt is one of life, and no request or step of a task."""
    words = [word for word in plan.lower().split() if word not in table("adverbs")]
    if not words or words[0] not in table("life-verbs"):
        return said_to_someone and bool(words) and words[0] not in table("asking-verbs") and len(words) > 2
    named = any(part[:1].isupper() or part[:1].isdigit() for part in plan.split()[1:])
    nouns = {word.strip(".,;!") for word in words}
    if "i" in nouns:
        return False
    return named or words[0] not in table("weak-verbs") or not table("life-nouns").isdisjoint(nouns)


_SENTENCES = frozenset(("that's", "who's", "it's", "i'm", "i've", "i'll"))


def _is_cut_short(value: str) -> bool:
    """Whether a value ends where its sentence cannot: "similes like", "a style that's specifically designed"."""
    words = value.lower().split()
    if "i" in words[1:]:
        return True
    return words[-1] in table("open-ends") or bool(_SENTENCES & set(words)) or value[:1] in "-"


def _is_first_of_two(text: str, value: tuple[str, int]) -> bool:
    """Whether a value ends with the first adjective of several: "self-directed, independent learning"."""
    found = _NEXT.match(text, value[1])
    if found is None or value[0].rsplit(" ", 1)[-1][:1].isupper():
        return False
    low, last = found["word"].lower(), value[0].lower().rsplit(" ", 1)[-1]
    goes_on = table("subjects") | table("openers") | table("inverted-verbs") | table("after-comma")
    return low not in goes_on and not last.endswith("s") and not found["word"][0].isupper()


_NEXT = re.compile(r",\s+(?P<word>[^\W\d_][\w'\u2019-]*)\s+[^\W_]")


def _sure(subject: _Subject, role: str, verb: str) -> float:
    if role != "user":
        return _INFERRED
    if verb in ("moved to", "joined", "relocated to", "started at"):
        return _CHANGED
    return _SURE if subject.own else _SAID_OF_OTHERS


def _fits(first: str, text: str, word: Token, value: str, verb: str, sort: str, subject: _Subject) -> bool:
    """Whether a value is one that a verb of this sort takes for long."""
    definite = first == "the" and not any(part[:1].isupper() for part in value.split()[1:])
    if verb == "have":
        counted = first in ("a", "an", "several", *table("belongings")) or number_of(first) is not None
        counted = counted or first[:1].isdigit()
        counted = counted and table("no-belongings").isdisjoint(value.lower().split())
        return counted and not table("belongings").isdisjoint(re.findall(r"[\w'-]+", value.lower()))
    if verb in ("know", "joined") or (verb == "use" and subject.own and subject.name == USER):
        return any(part[:1].isupper() or part[:1].isdigit() for part in value.split())
    if sort in ("place", "work", "tool", "choice", "taste"):
        return not definite and not (sort in ("place", "work") and _NUMBER.match(value) is not None)
    if verb == "require" and subject.own:
        return False
    return verb != "drive" or first in ("a", "an", "my")


def _identity(text: str, words: list[Token], subject: _Subject, role: str) -> Iterator[Fact]:
    """ "I am a nurse", "I'm vegetarian", "I'm 34 years old", "I'm Tobias"."""
    start, be = subject.start, "am" if subject.own else "is"
    verb = next((at for at in past_adverbs(words, subject.verb) if words[at].low == be), None)
    if verb is None or subject.name == TEAM or subject.thing:
        return
    at = next((one for one in reversed(past_adverbs(words, verb + 1))), None)
    if at is None:
        return
    sure = _sure(subject, role, "am")
    if _NUMBER.fullmatch(words[at].low) is not None:
        said = length_of(words, at + 1, ("years old", "year old", "yo")) or at + 1 == len(words)
        if said and int(words[at].low[:4]) <= _OLDEST:
            yield Fact(subject.name, "age", words[at].low, False, "personal", sure, start, words[at].stop)
        return
    yield from _job(text, words, at, subject.name, start, sure, asked=True)
    if subject.own and capital(text, words[at]) and not trait_at(text, words, at):
        value = value_at(text, words, at, "name")
        if value is not None and len(value[0].split()) <= 3 and all(part[:1].isupper() for part in value[0].split()):
            yield Fact(subject.name, "name", value[0], False, "personal", sure, start, value[1])


def _job(
    text: str, words: list[Token], at: int, subject: str, start: int, sure: float, *, asked: bool
) -> Iterator[Fact]:
    """Who somebody is: "a nurse at St. Mary's" is two facts. ``asked``: it must begin with an article or be a trait."""
    if at >= len(words):
        return
    first = words[at].low
    noun = first in (*ARTICLES, "our", "my")
    trait = trait_at(text, words, at)
    if asked and not (noun or trait):
        return
    value = value_at(text, words, at, "is" if asked else "job")
    if value is None:
        return
    parts = value[0].lower().split()
    if noun and (len(parts) < 2 or not table("passing").isdisjoint(parts[1:3])):
        return
    if trait and not noun and len(parts) > 2:
        value = (" ".join(value[0].split()[: 1 + (" ".join(parts[:2]) in table("traits"))]), value[1])
    yield Fact(subject, "is", value[0], False, "personal", sure, start, value[1])
    follows = next((n for n, word in enumerate(words) if n > at and word.start >= value[1]), None)
    if follows is not None and words[follows].low in ("at", "for") and noun and follows + 1 < len(words):
        place = value_at(text, words, follows + 1, "work")
        if place is not None and capital(text, words[follows + 1]):
            yield Fact(subject, "works-at", place[0], True, "personal", sure, start, place[1])
