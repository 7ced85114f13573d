"""Facts in what a message asserts: a subject, a verb of the table, and the value after it, cut where its sort ends.

Only what is said outright is read. A verb must stand right after its subject, with nothing but adverbs between, so that
a denial, a doubt ("I might live") and a past ("I lived") give nothing. Whatever else a subject does gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from memlab.kernel.english import number_of
from memlab.subjects.extraction.changes import changes_in
from memlab.subjects.extraction.circumstances import confidence_of
from memlab.subjects.extraction.clause import (
    ARTICLES,
    CHANGED,
    DOUBTFUL,
    INFERRED,
    LOWEST,
    SAID_OF_OTHERS,
    SURE,
    TEAM,
    USER,
    ClauseValue,
    Fact,
    Said,
    Subject,
    is_cut_short,
    lasts,
    table,
    tells,
)
from memlab.subjects.extraction.owned import fact_of_something_had, owner_at, relative_in
from memlab.subjects.extraction.plausible import plausibility
from memlab.subjects.reading.clauses import LONGEST, asserted
from memlab.subjects.reading.sentences import is_plain_word, sentence_spans

__all__ = ["facts_in"]

_OLDEST = 120
_NUMBER = re.compile(r"\d+")

_NO_NAME_ENDINGS = (
    "ing",
    "tic",
    "ical",
    "ous",
    "tion",
    "ment",
    "ness",
    "ity",
    "ism",
    "ship",
    "phy",
    "gy",
    "ies",
)
"""Endings of words that begin a sentence and are no name, where a single word would be one."""

_OF_PROGRAMS = frozenset("#/*<>{}=|\\")
"""With these a line of a program begins, or a comment in it."""

_GOES_ON = frozenset(("and", "but"))
"""After these a verb without a subject has the subject before."""

_ENTITIES = frozenset(["place", "work", "person"])
"""The sorts whose value is an entity."""


def facts_in(text: str, role: str = "user") -> list[Fact]:
    """Return the facts that a message states, in order, each once.

    Of a user's message "I" is the user and "we" the team. Of an assistant's only what it says of "the user" counts.

    >>> [(fact.subject, fact.predicate, fact.value) for fact in facts_in("I live in Rome and I work at Acme")]
    [('user', 'lives-in', 'Rome'), ('user', 'works-at', 'Acme')]
    """
    if role == "tool" or not tells(text[:LONGEST]):
        return []
    return list(dict.fromkeys(_read(text, role)))


def _read(text: str, role: str) -> Iterator[Fact]:
    before: Subject | None = None
    person: str | None = None
    sentence = -1
    for clause in asserted(text, tells):
        if clause.sentence != sentence:
            before, sentence = None, clause.sentence
        if clause.after == "which":  # "ask me which I prefer to play"
            before = None
            continue
        going_on = before if clause.after in _GOES_ON else None
        before = None
        for fact, subject in _of_a_clause(Said(text, clause.words), going_on, person, role):
            if subject is not None and not subject.own and not subject.thing:
                person = subject.name
            if fact is None or text[fact.start] in _OF_PROGRAMS:
                continue
            before = subject
            fits = plausibility(fact.subject, fact.predicate, fact.value)
            if fits == "no":
                continue
            said = _sentence_of(text, fact.start)
            sure = confidence_of(
                fact.predicate, fact.value, said, rule=fact.confidence, goal=fact.kind == "goal"
            )
            if sure >= LOWEST:
                yield replace(fact, confidence=sure if fits == "fine" else min(sure, DOUBTFUL))


def _sentence_of(text: str, place: int) -> str:
    """The sentence that holds a place of a message."""
    return next(
        (text[start:stop] for start, stop in sentence_spans(text) if start <= place < stop), text
    )


def _of_a_clause(
    said: Said, before: Subject | None, person: str | None, role: str
) -> Iterator[tuple[Fact | None, Subject | None]]:
    """What one clause states, and whom it speaks of."""
    place = _after_openers(said)
    subject: Subject | None = None
    if role == "user":
        stated: list[Fact | None] = list(changes_in(said, place))
        named = None if stated else relative_in(said, place)
        if named is not None:
            stated, subject = [named[0]], named[1]
        elif not stated:
            stated = [fact for fact in (fact_of_something_had(said, place),) if fact is not None]
        for fact in stated:
            yield fact, subject
        if stated and subject is None:
            return
    if subject is None:
        subject = _subject(said, place, before, person, role)
    if subject is None or _is_heading(said, subject):
        return
    yield None, subject
    for fact in _said_of(said, subject, role):
        yield fact, subject


def _is_heading(said: Said, subject: Subject) -> bool:
    """Whether the verb after another's name has a capital: "Case Studies", "Scores Are Weighted"."""
    if subject.own or subject.verb >= len(said):
        return False
    verb = said.words[subject.verb]
    return verb.start > subject.start and said.text[verb.start].isupper()


def _after_openers(said: Said) -> int:
    """Past what only opens a clause: "Hi", "by the way", "for reports"."""
    place = 0
    while place < len(said):
        low, length = said.low(place), _opening_length(said, place)
        if length:
            place += length
        elif low in table("openers"):
            place += 1
        elif low in table("settings"):
            own = next(
                (at for at in range(place + 1, place + 7) if said.low(at) in ("i", "we")), None
            )
            if own is None:
                return place
            place = own
        else:
            return place
    return place


@cache
def _opening_phrases() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for phrase in table("opening-phrases") | table("polite-conditions"):
        words = [
            part
            for word in phrase.split()
            for part in table("contractions").get(word, word).split()
        ]
        found.setdefault(words[0], []).append(words)
    return found


def _opening_length(said: Said, place: int) -> int:
    phrases = _opening_phrases().get(said.low(place), ())
    return max(
        (len(phrase) for phrase in phrases if said.lows[place : place + len(phrase)] == phrase),
        default=0,
    )


def _subject(
    said: Said, place: int, before: Subject | None, person: str | None, role: str
) -> Subject | None:
    """Whom a clause speaks of; None where that is not clear."""
    if place >= len(said):
        return None
    low, start = said.low(place), said.words[place].start
    if low == "user" or (low == "the" and said.low(place + 1) == "user"):
        return Subject(USER, False, place + 1 + (low == "the"), start)
    if role != "user":
        return None
    if low in ("i", "we"):
        return Subject(USER if low == "i" else TEAM, True, place + 1, start)
    if low in ("he", "she") and person is not None:
        return Subject(person, False, place + 1, start)
    if before is not None and said.verb(place, own=before.own) is not None:
        return Subject(before.name, before.own, place, start, before.thing)
    return _named(said, place) or _thing(said, place) or _owned(said, place)


def _named(said: Said, place: int) -> Subject | None:
    """A name of one to three capitalised words, right before a verb: "Ada works", "Dr. Okafor speaks"."""
    for stop in range(said.end_of_name(place, 3), place, -1):
        if said.verb(stop, own=False) is None and not said.is_something(stop):
            continue
        named = [low.removesuffix("'s") for low in said.lows[place:stop]]
        single = stop - place == 1
        if not table("no-names").isdisjoint(named) or (single and named[0] in table("titles")):
            return None
        if single and named[0].endswith(_NO_NAME_ENDINGS):
            return None  # "Networking plays a big role", "Linguistic studies"
        return Subject(said.written(place, stop), False, stop, said.words[place].start)
    return None


def _thing(said: Said, place: int) -> Subject | None:
    """A thing that uses, needs or runs on another: "The backend is written in", "Our API runs on", "memlab uses"."""
    article = said.low(place) in ("the", "our", "my")
    start = place + article
    for stop in range(start + 1, min(start + (3 if article else 1), len(said)) + 1):
        if _is_done_by_things(said.verb(stop, own=False)):
            if said.low(start) in table("no-names"):
                return None
            return Subject(
                said.written(start, stop), False, stop, said.words[start].start, thing=True
            )
    return None


def _is_done_by_things(verb: tuple[str, int] | None) -> bool:
    return verb is not None and table("verbs")[verb[0]][1] in table("things")["predicates"]


def _owned(said: Said, place: int) -> Subject | None:
    """What somebody has, before a verb: "Omar's brother lives"; of a thing what things do: "Ben's laptop runs on"."""
    owner = owner_at(said, place)
    if owner is None or owner.mine:
        return None
    for stop in (owner.place + 1, owner.place + 2):
        verb = said.verb(stop, own=False)
        if verb is None:
            continue
        noun = said.phrase(owner.place, stop)
        thing = noun not in table("relations")
        if not table("no-nouns").isdisjoint(noun.split()) or (
            thing and not _is_done_by_things(verb)
        ):
            return None
        return Subject(f"{owner.name}'s {noun}", False, stop, said.words[place].start, thing)
    return None


def _said_of(said: Said, subject: Subject, role: str) -> Iterator[Fact]:
    """What is said of a subject by the verb after it."""
    start = subject.start
    found = said.verb(subject.verb, own=subject.own)
    if found is None:
        yield from _identity(said, subject, role)
        return
    verb, at = found
    _, predicate, sort, kind = table("verbs")[verb]
    sure = _sure(subject, role, verb)
    if sort == "job":
        yield from _job(said, at, subject, sure, asked=False)
        return
    if _is_in_capitals(said.text, start, said.words[min(at, len(said) - 1)].stop):
        return
    title = said.title(at, sort)
    value = title or said.value(at, sort)
    if value is None or not (title or _fits(said, at, value, verb, sort, subject)):
        return
    goal = kind == "goal" and predicate.endswith("-to")
    if goal and not lasts(value.text, said_to_someone=predicate == "plans-to"):
        return
    if not title and (is_cut_short(value.text) or said.is_first_of_two(value)):
        return
    entity = sort in _ENTITIES and predicate != "works-from"
    yield Fact(subject.name, predicate, value.text, entity, kind, sure, start, value.stop)


def _sure(subject: Subject, role: str, verb: str) -> float:
    if role != "user":
        return INFERRED
    if verb in ("moved to", "joined", "relocated to", "started at"):
        return CHANGED
    return SURE if subject.own else SAID_OF_OTHERS


def _fits(said: Said, at: int, given: ClauseValue, verb: str, sort: str, subject: Subject) -> bool:
    """Whether a value is one that a verb of this sort takes for long."""
    first, value = said.low(at), given.text
    low, parts = value.lower(), value.split()
    if verb == "have":
        counted = (
            first in ("a", "an", "several", *table("belongings")) or number_of(first) is not None
        )
        counted = (counted or first[:1].isdigit()) and table("no-belongings").isdisjoint(
            low.split()
        )
        return counted and not table("belongings").isdisjoint(re.findall(r"[\w'-]+", low))
    if verb == "joined" and not table("no-employers").isdisjoint(low.split()):
        return False
    if verb == "play" and value[:1].isdigit():
        return False  # a move: "1.e4"
    if verb in ("know", "joined") or (verb == "use" and subject.own and subject.name == USER):
        return any(part[:1].isupper() or part[:1].isdigit() for part in parts)
    if verb == "require" and len(parts) == 2 and first in ARTICLES:
        return False  # "a vehicle with ..."
    if sort == "work" and first in ARTICLES and _last_word(value) in table("generic-employers"):
        return False
    if sort in ("place", "work", "tool", "choice", "taste"):
        definite = first == "the" or low.startswith(("all the ", "all of ", "both the "))
        named = any(part[:1].isupper() and not _is_shouted(part) for part in parts[1:])
        numbered = sort in ("place", "work") and _NUMBER.match(value) is not None
        return not (definite and not named) and not numbered
    if verb == "require" and subject.own:
        return False
    return verb != "drive" or first in ("a", "an", "my")


def _last_word(value: str) -> str:
    """The last word of a value, small; of one with a name in it nothing."""
    return (
        ""
        if any(part[:1].isupper() for part in value.split()[1:])
        else value.lower().rsplit(" ", 1)[-1]
    )


def _is_in_capitals(text: str, start: int, stop: int) -> bool:
    """Whether a clause is written in capitals throughout, where a capital says nothing of a name."""
    letters = [sign for sign in text[start:stop] if sign.isalpha()]
    return len(letters) > _SHOUTED and all(sign.isupper() for sign in letters)


_SHOUTED = 3


def _is_shouted(word: str) -> bool:
    """Whether an ordinary word is written in capitals: "the WEATHER", and not "the MTC"."""
    return word.isupper() and is_plain_word(word.lower())


def _identity(said: Said, subject: Subject, role: str) -> Iterator[Fact]:
    """ "I am a nurse", "I'm vegetarian", "I'm 34 years old", "I'm Tobias"."""
    be = "am" if subject.own else "is"
    verb = next((at for at in said.past_adverbs(subject.verb) if said.low(at) == be), None)
    if verb is None or subject.name == TEAM or subject.thing or verb + 1 >= len(said):
        return
    at = said.past_adverbs(verb + 1)[-1]
    sure, word = _sure(subject, role, "am"), said.words[at]
    if _NUMBER.fullmatch(word.low) is not None:
        counted = said.length_of(at + 1, ("years old", "year old", "yo")) or at + 1 == len(said)
        if counted and int(word.low[:4]) <= _OLDEST:
            yield Fact(
                subject.name, "age", word.low, False, "personal", sure, subject.start, word.stop
            )
        return
    yield from _job(said, at, subject, sure, asked=True)
    shouted = _is_in_capitals(said.text, subject.start, word.stop)
    if subject.own and not shouted and said.is_capital(at) and not said.is_trait(at):
        value = said.value(at, "name")
        parts = [] if value is None else value.text.split()
        if value is not None and len(parts) <= 3 and all(part[:1].isupper() for part in parts):
            sure = sure if _INTRODUCES.search(said.text) is not None else min(sure, DOUBTFUL)
            yield Fact(
                subject.name, "name", value.text, False, "personal", sure, subject.start, value.stop
            )


_INTRODUCES = re.compile(r"\b(?:hi|hello|hey|name|meet|introduce|call|here)\b", re.IGNORECASE)
"""Where somebody greets, "I'm Tobias" is a name; elsewhere it may be a part in a game: "I'm Gryffindor"."""


def _job(said: Said, at: int, subject: Subject, sure: float, *, asked: bool) -> Iterator[Fact]:
    """Who somebody is: "a nurse at St. Mary's" is two facts. ``asked``: it must begin with an article or be a trait."""
    noun, trait = said.low(at) in (*ARTICLES, "our", "my"), said.is_trait(at)
    value = None if asked and not (noun or trait) else said.value(at, "is" if asked else "job")
    if value is None:
        return
    role, parts = value.text, value.text.lower().split()
    if noun and (len(parts) < 2 or not table("passing").isdisjoint(parts[1:3])):
        return
    if trait and not noun and len(parts) > 2:
        role = " ".join(role.split()[: 1 + (" ".join(parts[:2]) in table("traits"))])
    yield Fact(subject.name, "is", role, False, "personal", sure, subject.start, value.stop)
    follows = said.after(at, value.stop)
    if said.low(follows) in ("at", "for") and (noun or not asked):
        place = said.value(follows + 1, "work")
        if place is not None and said.is_capital(follows + 1):
            yield Fact(
                subject.name,
                "works-at",
                place.text,
                True,
                "personal",
                sure,
                subject.start,
                place.stop,
            )
