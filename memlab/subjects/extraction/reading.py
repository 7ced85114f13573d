"""Read the facts that a message states: a subject, a verb of a table, and a value.

Only explicit statements are read. A verb must directly follow its subject, with nothing but adverbs
between. So a denial, a doubt ("I might live") or a past state ("I lived") gives no fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from memlab.kernel.english import number_of
from memlab.subjects.extraction.changes import read_changes
from memlab.subjects.extraction.circumstances import estimate_confidence
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
    ClauseWords,
    Fact,
    Subject,
    is_cut_short,
    is_lasting_plan,
    may_state_fact,
    word_table,
)
from memlab.subjects.extraction.owned import read_owner, read_possession, read_relative
from memlab.subjects.extraction.plausible import rate_plausibility
from memlab.subjects.reading.clauses import LONGEST, asserted
from memlab.subjects.reading.sentences import is_plain_word, sentence_spans

# Nobody has lived longer than 122 years, so a larger number is no age.
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
"""The endings of ordinary words, which are no names even if capitalised at the start of a sentence."""

_OF_PROGRAMS = frozenset("#/*<>{}=|\\")
"""Signs with which a line of code or a comment begins."""

_GOES_ON = frozenset(("and", "but"))
"""Words after which a verb without a subject continues the previous subject."""

_ENTITIES = frozenset(["place", "work", "person"])
"""The sorts of value that are entities."""


def read_facts(text: str, role: str = "user") -> list[Fact]:
    """Return the distinct facts that a message states, in order.

    In a user's message, "I" is the user and "we" is the team. In an assistant's message, only
    statements about "the user" count.

    >>> facts = read_facts("I live in Rome and I work at Acme")
    >>> [(fact.subject, fact.predicate, fact.value) for fact in facts]
    [('user', 'lives-in', 'Rome'), ('user', 'works-at', 'Acme')]
    """
    if role == "tool" or not may_state_fact(text[:LONGEST]):
        return []
    return list(dict.fromkeys(_read_clauses(text, role)))


def _read_clauses(text: str, role: str) -> Iterator[Fact]:
    """Yield the plausible facts of each clause, with their confidence."""
    before: Subject | None = None
    person: str | None = None
    sentence = -1
    for clause in asserted(text, may_state_fact):
        if clause.sentence != sentence:
            before, sentence = None, clause.sentence
        if clause.after == "which":  # "ask me which I prefer to play"
            before = None
            continue
        continued = before if clause.after in _GOES_ON else None
        before = None
        for fact, subject in _read_clause(ClauseWords(text, clause.words), continued, person, role):
            if subject is not None and not subject.own and not subject.is_thing:
                person = subject.name
            if fact is None or text[fact.start] in _OF_PROGRAMS:
                continue
            before = subject
            plausibility_rating = rate_plausibility(fact.subject, fact.predicate, fact.value)
            if plausibility_rating == "no":
                continue
            sentence_text = _containing_sentence(text, fact.start)
            confidence = estimate_confidence(
                fact.predicate,
                fact.value,
                sentence_text,
                rule=fact.confidence,
                goal=fact.kind == "goal",
            )
            if confidence >= LOWEST:
                yield replace(
                    fact,
                    confidence=confidence
                    if plausibility_rating == "fine"
                    else min(confidence, DOUBTFUL),
                )


def _containing_sentence(text: str, position: int) -> str:
    """Return the sentence with the character at ``position``, or the whole text without one."""
    return next(
        (text[start:stop] for start, stop in sentence_spans(text) if start <= position < stop), text
    )


def _read_clause(
    clause: ClauseWords, before: Subject | None, person: str | None, role: str
) -> Iterator[tuple[Fact | None, Subject | None]]:
    """Yield the facts that one clause states, each with the fact's subject.

    A subject without a fact comes with None.
    """
    # Changes of life, relatives and possessions have patterns of their own, which come before the table of verbs.
    position = _skip_openers(clause)
    subject: Subject | None = None
    if role == "user":
        stated: list[Fact | None] = list(read_changes(clause, position))
        relative = None if stated else read_relative(clause, position)
        if relative is not None:
            stated, subject = [relative[0]], relative[1]
        elif not stated:
            stated = [fact for fact in (read_possession(clause, position),) if fact is not None]
        for fact in stated:
            yield fact, subject
        if stated and subject is None:
            return
    if subject is None:
        subject = _find_subject(clause, position, before, person, role)
    if subject is None or _is_heading(clause, subject):
        return
    yield None, subject
    for fact in _read_predicate(clause, subject, role):
        yield fact, subject


def _is_heading(clause: ClauseWords, subject: Subject) -> bool:
    """Return whether the verb after a name is capitalised, as in the heading "Case Studies"."""
    if subject.own or subject.verb >= len(clause):
        return False
    verb = clause.words[subject.verb]
    return verb.start > subject.start and clause.text[verb.start].isupper()


def _skip_openers(clause: ClauseWords) -> int:
    """Return the word index after opening phrases such as "Hi" or "by the way"."""
    position = 0
    while position < len(clause):
        low, length = clause.low(position), _measure_opening(clause, position)
        if length:
            position += length
        elif low in word_table("openers"):
            position += 1
        elif low in word_table("settings"):
            pronoun = next(
                (
                    index
                    for index in range(position + 1, position + 7)
                    if clause.low(index) in ("i", "we")
                ),
                None,
            )
            if pronoun is None:
                return position
            position = pronoun
        else:
            return position
    return position


@cache  # the tables of the language do not change
def _index_opening_phrases() -> dict[str, list[list[str]]]:
    """Return the opening phrases as lists of words, grouped by their first word."""
    by_first_word: dict[str, list[list[str]]] = {}
    for phrase in word_table("opening-phrases") | word_table("polite-conditions"):
        words = [
            part
            for word in phrase.split()
            for part in word_table("contractions").get(word, word).split()
        ]
        by_first_word.setdefault(words[0], []).append(words)
    return by_first_word


def _measure_opening(clause: ClauseWords, position: int) -> int:
    """Return the number of words in the opening phrase at an index, or 0."""
    phrases = _index_opening_phrases().get(clause.low(position), ())
    return max(
        (
            len(phrase)
            for phrase in phrases
            if clause.lows[position : position + len(phrase)] == phrase
        ),
        default=0,
    )


def _find_subject(
    clause: ClauseWords, position: int, before: Subject | None, person: str | None, role: str
) -> Subject | None:
    """Return the subject at a word of a clause, or None for an unclear subject."""
    if position >= len(clause):
        return None
    low, start = clause.low(position), clause.words[position].start
    if low == "user" or (low == "the" and clause.low(position + 1) == "user"):
        return Subject(USER, False, position + 1 + (low == "the"), start)
    if role != "user":
        return None
    if low in ("i", "we"):
        return Subject(USER if low == "i" else TEAM, True, position + 1, start)
    if low in ("he", "she") and person is not None:
        return Subject(person, False, position + 1, start)
    if before is not None and clause.find_verb(position, own=before.own) is not None:
        return Subject(before.name, before.own, position, start, before.is_thing)
    return (
        _find_named_subject(clause, position)
        or _find_thing_subject(clause, position)
        or _find_owned_subject(clause, position)
    )


def _find_named_subject(clause: ClauseWords, position: int) -> Subject | None:
    """Return a subject of capitalised words before a verb, as in "Ada works", or None."""
    for stop in range(clause.find_name_end(position, 3), position, -1):
        if clause.find_verb(stop, own=False) is None and not clause.is_something(stop):
            continue
        name_words = [low.removesuffix("'s") for low in clause.lows[position:stop]]
        is_single = stop - position == 1
        if not word_table("no-names").isdisjoint(name_words) or (
            is_single and name_words[0] in word_table("titles")
        ):
            return None
        if is_single and name_words[0].endswith(_NO_NAME_ENDINGS):
            return None  # "Networking plays a big role", "Linguistic studies"
        return Subject(
            clause.original_text(position, stop), False, stop, clause.words[position].start
        )
    return None


def _find_thing_subject(clause: ClauseWords, position: int) -> Subject | None:
    """Return a thing as a clause's subject, as in "The backend is written in", or None."""
    article = clause.low(position) in ("the", "our", "my")
    start = position + article
    for stop in range(start + 1, min(start + (3 if article else 1), len(clause)) + 1):
        if _is_done_by_things(clause.find_verb(stop, own=False)):
            if clause.low(start) in word_table("no-names"):
                return None
            return Subject(
                clause.original_text(start, stop),
                False,
                stop,
                clause.words[start].start,
                is_thing=True,
            )
    return None


def _is_done_by_things(verb: tuple[str, int] | None) -> bool:
    """Return whether a verb can have a thing as its subject."""
    return (
        verb is not None and word_table("verbs")[verb[0]][1] in word_table("things")["predicates"]
    )


def _find_owned_subject(clause: ClauseWords, position: int) -> Subject | None:
    """Return a possession as a clause's subject, as in "Omar's brother lives", or None.

    A possession of the user is not returned. A thing needs a verb that things can do, as in "Ben's laptop runs on".
    """
    owner = read_owner(clause, position)
    if owner is None or owner.mine:
        return None
    for stop in (owner.position + 1, owner.position + 2):
        verb = clause.find_verb(stop, own=False)
        if verb is None:
            continue
        noun = clause.join_words(owner.position, stop)
        is_thing = noun not in word_table("relations")
        if not word_table("no-nouns").isdisjoint(noun.split()) or (
            is_thing and not _is_done_by_things(verb)
        ):
            return None
        return Subject(
            f"{owner.name}'s {noun}", False, stop, clause.words[position].start, is_thing
        )
    return None


def _read_predicate(clause: ClauseWords, subject: Subject, role: str) -> Iterator[Fact]:
    """Yield the facts that a verb or "is" states about the subject before it."""
    start = subject.start
    match = clause.find_verb(subject.verb, own=subject.own)
    if match is None:
        yield from _read_identity(clause, subject, role)
        return
    verb, index = match
    _, predicate, sort, kind = word_table("verbs")[verb]
    confidence = _verb_confidence(subject, role, verb)
    if sort == "job":
        yield from _read_role(clause, index, subject, confidence, strict=False)
        return
    if _is_in_capitals(clause.text, start, clause.words[min(index, len(clause) - 1)].stop):
        return
    title = clause.read_title(index, sort)
    value = title or clause.read_value(index, sort)
    if value is None or not (title or _is_lasting_value(clause, index, value, verb, sort, subject)):
        return
    goal = kind == "goal" and predicate.endswith("-to")
    if goal and not is_lasting_plan(value.text, said_to_someone=predicate == "plans-to"):
        return
    if not title and (is_cut_short(value.text) or clause.is_first_of_two(value)):
        return
    entity = sort in _ENTITIES and predicate != "works-from"
    yield Fact(subject.name, predicate, value.text, entity, kind, confidence, start, value.stop)


def _verb_confidence(subject: Subject, role: str, verb: str) -> float:
    """Return the confidence of a fact, given its verb, speaker and subject."""
    if role != "user":
        return INFERRED
    if verb in ("moved to", "joined", "relocated to", "started at"):
        return CHANGED
    return SURE if subject.own else SAID_OF_OTHERS


def _is_lasting_value(
    clause: ClauseWords,
    index: int,
    clause_value: ClauseValue,
    verb: str,
    sort: str,
    subject: Subject,
) -> bool:
    """Return whether a value is specific and lasting enough for its verb."""
    first, value = clause.low(index), clause_value.text
    low, parts = value.lower(), value.split()
    if verb == "have":
        is_countable = (
            first in ("a", "an", "several", *word_table("belongings"))
            or number_of(first) is not None
        )
        is_countable = (is_countable or first[:1].isdigit()) and word_table(
            "no-belongings"
        ).isdisjoint(low.split())
        return is_countable and not word_table("belongings").isdisjoint(re.findall(r"[\w'-]+", low))
    if verb == "joined" and not word_table("no-employers").isdisjoint(low.split()):
        return False
    if verb == "play" and value[:1].isdigit():
        return False  # a move: "1.e4"
    if verb in ("know", "joined") or (verb == "use" and subject.own and subject.name == USER):
        return any(part[:1].isupper() or part[:1].isdigit() for part in parts)
    if verb == "require" and len(parts) == 2 and first in ARTICLES:
        return False  # "a vehicle with ..."
    if (
        sort == "work"
        and first in ARTICLES
        and _last_word(value) in word_table("generic-employers")
    ):
        return False
    if sort in ("place", "work", "tool", "choice", "taste"):
        is_definite = first == "the" or low.startswith(("all the ", "all of ", "both the "))
        is_named = any(part[:1].isupper() and not _is_shouted(part) for part in parts[1:])
        is_numbered = sort in ("place", "work") and _NUMBER.match(value) is not None
        return not (is_definite and not is_named) and not is_numbered
    if verb == "require" and subject.own:
        return False
    return verb != "drive" or first in ("a", "an", "my")


def _last_word(value: str) -> str:
    """Return the last word of a value in lower case, or "" if a later word than the first has a capital."""
    return (
        ""
        if any(part[:1].isupper() for part in value.split()[1:])
        else value.lower().rsplit(" ", 1)[-1]
    )


def _is_in_capitals(text: str, start: int, stop: int) -> bool:
    """Return whether a part of a text has more than ``_SHOUTED`` letters, all of them capitals.

    Capitals in such a part do not mark names.
    """
    letters = [sign for sign in text[start:stop] if sign.isalpha()]
    return len(letters) > _SHOUTED and all(sign.isupper() for sign in letters)


_SHOUTED = 3
"""The number of letters up to which capitals may be an acronym."""


def _is_shouted(word: str) -> bool:
    """Return whether a word in capitals is an ordinary word: "WEATHER" is, "MTC" is not."""
    return word.isupper() and is_plain_word(word.lower())


def _read_identity(clause: ClauseWords, subject: Subject, role: str) -> Iterator[Fact]:
    """Yield facts of identity: "I am a nurse", "I'm 34 years old", "I'm Tobias"."""
    copula = "am" if subject.own else "is"
    verb = next(
        (index for index in clause.skip_adverbs(subject.verb) if clause.low(index) == copula), None
    )
    if verb is None or subject.name == TEAM or subject.is_thing or verb + 1 >= len(clause):
        return
    index = clause.skip_adverbs(verb + 1)[-1]
    confidence, word = _verb_confidence(subject, role, "am"), clause.words[index]
    if _NUMBER.fullmatch(word.low) is not None:
        is_age = clause.measure_phrase(
            index + 1, ("years old", "year old", "yo")
        ) or index + 1 == len(clause)
        if is_age and int(word.low[:4]) <= _OLDEST:
            yield Fact(
                subject.name,
                "age",
                word.low,
                False,
                "personal",
                confidence,
                subject.start,
                word.stop,
            )
        return
    yield from _read_role(clause, index, subject, confidence, strict=True)
    is_shouted = _is_in_capitals(clause.text, subject.start, word.stop)
    if subject.own and not is_shouted and clause.is_capital(index) and not clause.is_trait(index):
        value = clause.read_value(index, "name")
        parts = [] if value is None else value.text.split()
        if value is not None and len(parts) <= 3 and all(part[:1].isupper() for part in parts):
            confidence = (
                confidence
                if _INTRODUCES.search(clause.text) is not None
                else min(confidence, DOUBTFUL)
            )
            yield Fact(
                subject.name,
                "name",
                value.text,
                False,
                "personal",
                confidence,
                subject.start,
                value.stop,
            )


_INTRODUCES = re.compile(r"\b(?:hi|hello|hey|name|meet|introduce|call|here)\b", re.IGNORECASE)
"""A pattern of words of an introduction, after which "I'm Tobias" is certainly a name.

Elsewhere it may be a role in a game.
"""


def _read_role(
    clause: ClauseWords, index: int, subject: Subject, confidence: float, *, strict: bool
) -> Iterator[Fact]:
    """Yield the role of a subject, and the employer in "a nurse at St. Mary's".

    With ``strict``, the role must begin with an article or be a trait.
    """
    has_article, is_trait = clause.low(index) in (*ARTICLES, "our", "my"), clause.is_trait(index)
    value = (
        None
        if strict and not (has_article or is_trait)
        else clause.read_value(index, "is" if strict else "job")
    )
    if value is None:
        return
    role, parts = value.text, value.text.lower().split()
    if has_article and (len(parts) < 2 or not word_table("passing").isdisjoint(parts[1:3])):
        return
    if is_trait and not has_article and len(parts) > 2:
        role = " ".join(role.split()[: 1 + (" ".join(parts[:2]) in word_table("traits"))])
    yield Fact(subject.name, "is", role, False, "personal", confidence, subject.start, value.stop)
    following = clause.index_after(index, value.stop)
    if clause.low(following) in ("at", "for") and (has_article or not strict):
        employer = clause.read_value(following + 1, "work")
        if employer is not None and clause.is_capital(following + 1):
            yield Fact(
                subject.name,
                "works-at",
                employer.text,
                True,
                "personal",
                confidence,
                subject.start,
                employer.stop,
            )
