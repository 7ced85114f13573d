"""Facts in what a message asserts: a subject, a verb of the table, and the value after it, cut where its sort ends.

Only what is said outright is read. A verb must stand right after its subject, with nothing but adverbs between, so that
a denial, a doubt ("I might live") and a past ("I lived") give nothing. Whatever else a subject does gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from memlab.kernel.english import Token, number_of
from memlab.subjects.extraction.asserting import table, tells
from memlab.subjects.extraction.changes import changes_in
from memlab.subjects.extraction.confidence import confidence_of
from memlab.subjects.extraction.fact import (
    CHANGED,
    DOUBTFUL,
    INFERRED,
    LOWEST,
    SAID_OF_OTHERS,
    SURE,
    TEAM,
    USER,
    Fact,
    Subject,
)
from memlab.subjects.extraction.owned import called, favourite, had, of_a_property, of_a_relative, relatives
from memlab.subjects.extraction.plausible import plausibility
from memlab.subjects.extraction.properties import owner_at
from memlab.subjects.extraction.values import ARTICLES, bare, capital, joined, trait_at, value_at
from memlab.subjects.extraction.verbs import is_something, length_of, past_adverbs, verb_of
from memlab.subjects.extraction.worth import is_cut_short, is_first_of_two, lasts, title_at
from memlab.subjects.reading.clauses import LONGEST, asserted
from memlab.subjects.reading.sentences import is_plain_word, sentence_spans

__all__ = ["TEAM", "USER", "Fact", "facts_in"]

_OLDEST = 120
_NUMBER = re.compile(r"\d+")

_NO_NAME_ENDINGS = ("ing", "tic", "ical", "ous", "tion", "ment", "ness", "ity", "ism", "ship", "phy", "gy", "ies")
"""Endings of words that begin a sentence and are no name, where a single word would be one."""

_OF_PROGRAMS = frozenset("#/*<>{}=|\\")
"""With these a line of a program begins, or a comment in it."""

_GOES_ON = frozenset(("and", "but"))
"""After these a verb without a subject has the subject before."""

_ENTITIES = frozenset(["place", "work", "person"])
"""The sorts whose value is an entity."""


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
        for fact, subject in _of_a_clause(text, clause.words, going_on, person, role):
            if subject is not None and not subject.own and not subject.thing:
                person = subject.name
            if fact is None or text[fact.start] in _OF_PROGRAMS:
                continue
            before = subject
            fits = plausibility(fact.subject, fact.predicate, fact.value)
            if fits == "no":
                continue
            said = _sentence_of(text, fact.start)
            sure = confidence_of(fact.predicate, fact.value, said, rule=fact.confidence, goal=fact.kind == "goal")
            if sure >= LOWEST:
                yield replace(fact, confidence=sure if fits == "fine" else min(sure, DOUBTFUL))


def _sentence_of(text: str, place: int) -> str:
    """The sentence that holds a place of a message."""
    return next((text[start:stop] for start, stop in sentence_spans(text) if start <= place < stop), text)


def _of_a_clause(
    text: str, words: list[Token], before: Subject | None, person: str | None, role: str
) -> Iterator[tuple[Fact | None, Subject | None]]:
    """What one clause states, and whom it speaks of."""
    place = _after_openers(words)
    subject: Subject | None = None
    if role == "user":
        changed = list(changes_in(text, words, place, USER))
        for one in changed:
            kept = (one.subject, one.predicate, one.value, one.entity)
            yield Fact(*kept, "personal", SURE, one.start, one.stop, one.text), None
        if changed:
            return
        named = of_a_relative(text, words, place)
        if named is not None:
            fact, subject = named
            yield fact, subject
            if subject is None:
                return
        else:
            fact = (
                favourite(text, words, place)
                or of_a_property(text, words, place)
                or called(text, words, place)
                or had(text, words, place)
            )
            if fact is not None:
                yield fact, None
                return
    if subject is None:
        subject = _subject(text, words, place, before, person, role)
    if subject is None:
        return
    if _is_heading(text, words, subject):
        return
    yield None, subject
    for fact in _said_of(text, words, subject, role):
        yield fact, subject


def _is_heading(text: str, words: list[Token], subject: Subject) -> bool:
    """Whether the verb after another's name has a capital: "Case Studies", "Scores Are Weighted"."""
    if subject.own or subject.verb >= len(words):
        return False
    verb = words[subject.verb]
    return verb.start > subject.start and text[verb.start].isupper()


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
    text: str, words: list[Token], place: int, before: Subject | None, person: str | None, role: str
) -> Subject | None:
    """Whom a clause speaks of; None where that is not clear."""
    if place >= len(words):
        return None
    low, following = words[place].low, words[place + 1].low if place + 1 < len(words) else ""
    start = words[place].start
    if low == "user" or (low == "the" and following == "user"):
        return Subject(USER, False, place + 1 + (low == "the"), start)
    if role != "user":
        return None
    if low in ("i", "we"):
        return Subject(USER if low == "i" else TEAM, True, place + 1, start)
    if low in ("he", "she") and person is not None:
        return Subject(person, False, place + 1, start)
    if before is not None and verb_of(words, place, own=before.own) is not None:
        return Subject(before.name, before.own, place, start, before.thing)
    return _named(text, words, place) or _thing(text, words, place) or _owned(text, words, place)


def _named(text: str, words: list[Token], place: int) -> Subject | None:
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
        return Subject(bare(text[words[place].start : words[stop - 1].stop]), False, stop, words[place].start)
    return None


def _thing(text: str, words: list[Token], place: int) -> Subject | None:
    """A thing that uses, needs or runs on another: "The backend is written in", "Our API runs on", "memlab uses"."""
    article = words[place].low in ("the", "our", "my")
    start = place + article
    for stop in range(start + 1, min(start + (3 if article else 1), len(words)) + 1):
        found = verb_of(words, stop, own=False)
        if found is not None and table("verbs")[found[0]][1] in table("things")["predicates"]:
            if words[start].low in table("no-names"):
                return None
            return Subject(
                bare(text[words[start].start : words[stop - 1].stop]), False, stop, words[start].start, thing=True
            )
    return None


def _owned(text: str, words: list[Token], place: int) -> Subject | None:
    """What somebody has, before a verb: "Omar's brother lives"; of a thing what things do: "Ben's laptop runs on"."""
    owner = owner_at(text, words, place)
    if owner is None or owner.mine:
        return None
    for stop in (owner.place + 1, owner.place + 2):
        found = verb_of(words, stop, own=False) if stop < len(words) else None
        if found is None:
            continue
        noun = joined(words[owner.place : stop])
        thing = noun not in relatives()
        if not table("no-nouns").isdisjoint(noun.split()):
            return None
        if thing and table("verbs")[found[0]][1] not in table("things")["predicates"]:
            return None
        return Subject(f"{owner.name}'s {noun}", False, stop, words[place].start, thing)
    return None


def _said_of(text: str, words: list[Token], subject: Subject, role: str) -> Iterator[Fact]:
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
    if _is_in_capitals(text, start, words[min(at, len(words) - 1)].stop):
        return
    title = title_at(text, words, at, sort)
    value = title or value_at(text, words, at, sort)
    if value is None or not (title or _fits(words[at].low, text, words[at], value[0], verb, sort, subject)):
        return
    if kind == "goal" and predicate.endswith("-to") and not lasts(value[0], said_to_someone=predicate == "plans-to"):
        return
    if not title and (is_cut_short(value[0]) or is_first_of_two(text, value)):
        return
    entity = sort in _ENTITIES and predicate != "works-from"
    yield Fact(subject.name, predicate, value[0], entity, kind, sure, start, value[1])


def _sure(subject: Subject, role: str, verb: str) -> float:
    if role != "user":
        return INFERRED
    if verb in ("moved to", "joined", "relocated to", "started at"):
        return CHANGED
    return SURE if subject.own else SAID_OF_OTHERS


def _fits(first: str, text: str, word: Token, value: str, verb: str, sort: str, subject: Subject) -> bool:
    """Whether a value is one that a verb of this sort takes for long."""
    definite = first == "the" or value.lower().startswith(("all the ", "all of ", "both the "))
    definite = definite and not any(part[:1].isupper() and not _is_shouted(part) for part in value.split()[1:])
    if verb == "have":
        counted = first in ("a", "an", "several", *table("belongings")) or number_of(first) is not None
        counted = counted or first[:1].isdigit()
        counted = counted and table("no-belongings").isdisjoint(value.lower().split())
        return counted and not table("belongings").isdisjoint(re.findall(r"[\w'-]+", value.lower()))
    if verb == "joined" and not table("no-employers").isdisjoint(value.lower().split()):
        return False
    if verb == "play" and value[:1].isdigit():
        return False  # a move: "1.e4"
    if verb in ("know", "joined") or (verb == "use" and subject.own and subject.name == USER):
        return any(part[:1].isupper() or part[:1].isdigit() for part in value.split())
    if verb == "require" and len(value.split()) == 2 and first in ARTICLES:
        return False  # "a vehicle with ..."
    if sort == "work" and first in ARTICLES and _last_word(value) in table("generic-employers"):
        return False
    if sort in ("place", "work", "tool", "choice", "taste"):
        return not definite and not (sort in ("place", "work") and _NUMBER.match(value) is not None)
    if verb == "require" and subject.own:
        return False
    return verb != "drive" or first in ("a", "an", "my")


def _last_word(value: str) -> str:
    """The last word of a value, small; of one with a name in it nothing."""
    return "" if any(part[:1].isupper() for part in value.split()[1:]) else value.lower().rsplit(" ", 1)[-1]


def _is_in_capitals(text: str, start: int, stop: int) -> bool:
    """Whether a clause is written in capitals throughout, where a capital says nothing of a name."""
    letters = [sign for sign in text[start:stop] if sign.isalpha()]
    return len(letters) > _SHOUTED and all(sign.isupper() for sign in letters)


_SHOUTED = 3


def _is_shouted(word: str) -> bool:
    """Whether an ordinary word is written in capitals: "the WEATHER", and not "the MTC"."""
    return word.isupper() and is_plain_word(word.lower())


def _identity(text: str, words: list[Token], subject: Subject, role: str) -> Iterator[Fact]:
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
    shouted = _is_in_capitals(text, start, words[at].stop)
    if subject.own and not shouted and capital(text, words[at]) and not trait_at(text, words, at):
        value = value_at(text, words, at, "name")
        if value is not None and len(value[0].split()) <= 3 and all(part[:1].isupper() for part in value[0].split()):
            sure = sure if _INTRODUCES.search(text) is not None else min(sure, DOUBTFUL)
            yield Fact(subject.name, "name", value[0], False, "personal", sure, start, value[1])


_INTRODUCES = re.compile(r"\b(?:hi|hello|hey|name|meet|introduce|call|here)\b", re.IGNORECASE)
"""Where somebody greets, "I'm Tobias" is a name; elsewhere it may be a part in a game: "I'm Gryffindor"."""


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
    if follows is not None and words[follows].low in ("at", "for") and (noun or not asked) and follows + 1 < len(words):
        place = value_at(text, words, follows + 1, "work")
        if place is not None and capital(text, words[follows + 1]):
            yield Fact(subject, "works-at", place[0], True, "personal", sure, start, place[1])
