"""Read possessions that a clause states: relatives, favourites and properties.

Examples are "My sister Ola", "my favourite colour is teal", "call me Mo", "Ada's room is number 19"
and "the port of the server is 9100". A property is a noun phrase, "is" or "are", and a value. Its
owner comes before the noun ("Ada's", "my brother's", "our", "the printer's") or after the noun
("the owner of the fork"). Without an owner, the noun phrase itself is the subject ("the staging
port").

Only specific values count: a number, a name, a code, a time or place by name, or a noun with an
article. Regular processes count too ("is rotated on Mondays"). Opinions and passing states (lovely,
broken, late) are ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memlab.kernel.english import lexicon, vocabulary
from memlab.subjects.extraction.clause import (
    ARTICLES,
    OPEN,
    SAID_OF_OTHERS,
    SURE,
    USER,
    ClauseValue,
    ClauseWords,
    Fact,
    Subject,
    is_cut_short,
    is_lasting_plan,
    strip_marks,
    word_table,
)

# Maximum lengths of names, subjects, noun phrases and values in words; patterns of codes, possessives and participles.
_MOST_OF_A_NAME = 3
_MOST_BEFORE = 9
_MOST_NOUNS = 4
_LONGEST_VALUE = 9
_CODE = re.compile(r"\d|\w[./_:@-]\w|^#\w")
_POSSESSIVE = re.compile("['\u2019]s$|(?<=s)['\u2019]$")
_PARTICIPLE = re.compile(r"\w{2,}ed")


def read_possession(clause: ClauseWords, position: int) -> Fact | None:
    """Return the fact about a possession in a clause, or None for other clauses."""
    if position >= len(clause):
        return None
    return (
        _read_favourite(clause, position)
        or _read_own_property(clause, position)
        or _read_nickname(clause, position)
        or _read_property(clause, position)
    )


# Relatives, favourites, names


def read_relative(clause: ClauseWords, position: int) -> tuple[Fact | None, Subject | None] | None:
    """Return the fact that names a relative, and the relative as a subject.

    "My sister Ola lives ..." gives both, "My sister is called Ola" only the fact, and "My sister
    lives ..." only the subject. The result is None if the text names no relative.
    """
    if position + 1 >= len(clause) or clause.low(position) not in ("my", "our"):
        return None
    noun_start = position + 1 + (clause.low(position + 1) in word_table("renewed"))
    size = next(
        (
            length
            for length in (2, 1)
            if noun_start + length <= len(clause)
            and clause.join_words(noun_start, noun_start + length) in word_table("relations")
        ),
        0,
    )
    if not size:
        return _read_name_of_relative(clause, position)
    relation = clause.join_words(noun_start, noun_start + size)
    index = noun_start + size
    name_end = clause.find_name_end(index, 2)
    start, predicate = clause.words[position].start, relation.replace(" ", "-")
    if name_end > index:
        fact = _build_name_fact(clause, index, name_end, start, predicate)
        return fact, Subject(fact.value, False, name_end, start)
    name_start = index + (
        clause.measure_phrase(index, ("is called", "is named")) or _measure_copula(clause, index)
    )
    if name_start > index and clause.is_capital(name_start):
        return _build_name_fact(
            clause, name_start, clause.find_name_end(name_start, 3), start, predicate
        ), None
    return None, Subject(f"{USER}'s {relation}", False, index, start)


def _measure_copula(clause: ClauseWords, index: int) -> int:
    """Return 1 if "is" and then only a name follow at ``index``, otherwise 0.

    "My boss is Karl" counts, "My sister is French" does not.
    """
    names = range(index + 1, len(clause))
    if clause.low(index) != "is" or not 1 <= len(names) <= _MOST_OF_A_NAME:
        return 0
    return int(all(map(clause.is_capital, names)) and not clause.is_trait(index + 1))


def _read_name_of_relative(clause: ClauseWords, position: int) -> tuple[Fact | None, None] | None:
    """Return the fact in a phrase such as "My daughter's name is Lucia" together with None, or None for another phrase.

    The fact is None if the name has no capital.
    """
    relation = clause.low(position + 1).removesuffix("'s")
    if (
        relation == clause.low(position + 1)
        or relation not in word_table("relations")
        or not clause.measure_phrase(position + 2, ("name is",))
    ):
        return None
    index = position + 4
    if not clause.is_capital(index):
        return None, None
    return _build_name_fact(
        clause, index, clause.find_name_end(index, 3), clause.words[position].start, relation
    ), None


def _build_name_fact(
    clause: ClauseWords, index: int, stop: int, start: int, predicate: str
) -> Fact:
    """Return the fact that gives a relative of the user the name at these words."""
    return Fact(
        USER,
        predicate,
        clause.original_text(index, stop),
        True,
        "personal",
        SURE,
        start,
        clause.words[stop - 1].stop,
    )


def _read_own_property(clause: ClauseWords, position: int) -> Fact | None:
    """Return a property of the user, such as "My favourite colour is teal", or None."""
    verb = next(
        (index for index in range(position + 2, position + 6) if clause.low(index) == "is"), None
    )
    if verb is None or clause.low(position) != "my":
        return None
    name = clause.join_words(position + 1, verb)
    is_favourite = clause.low(position + 1) in word_table("favourites") and verb > position + 2
    if not is_favourite and name not in word_table("properties"):
        return None
    start = verb + 1
    while clause.low(start) in ("on", "to", "in", "at") and name in ("birthday", "goal", "dream"):
        start += 1
    value = clause.read_value(
        start, "name" if name.endswith("name") else "time" if name == "birthday" else "plan"
    )
    if (
        value is None
        or clause.low(start) in ("not", *word_table("adverbs"))
        or is_cut_short(value.text)
    ):
        return None
    if (name == "goal" and not is_lasting_plan(value.text, said_to_someone=True)) or _is_activity(
        value.text, name
    ):
        return None
    predicate = word_table("renamed-properties").get(name, name).replace(" ", "-")
    kind = "preference" if is_favourite else "goal" if predicate == "goal" else "personal"
    return Fact(
        USER, predicate, value.text, False, kind, SURE, clause.words[position].start, value.stop
    )


def _is_activity(value: str, name: str) -> bool:
    """Return whether a value is an activity that the property cannot have, as in "my company is funding ..."."""
    return (
        value.split()[0].endswith("ing")
        and name not in ("hobby", "goal", "dream")
        and not name.startswith("fav")
    )


def _read_favourite(clause: ClauseWords, position: int) -> Fact | None:
    """Return a favourite that precedes the verb, as in "Harry Potter is my favourite book", or None."""
    verb = next(
        (
            index
            for index in range(position + 1, min(position + 7, len(clause) - 3))
            if clause.low(index) == "is"
        ),
        None,
    )
    if (
        verb is None
        or clause.low(verb + 1) != "my"
        or clause.low(verb + 2) not in word_table("favourites")
    ):
        return None
    noun = [low for low in clause.lows[verb + 3 : verb + 5] if low.isalpha()]
    is_named = clause.is_capital(position) and clause.is_capital(verb - 1)
    if (
        not is_named
        or not noun
        or not word_table("no-names").isdisjoint(clause.lows[position:verb])
    ):
        return None
    predicate = f"{clause.low(verb + 2)}-{'-'.join(noun)}"
    stop = clause.words[verb + 2 + len(noun)].stop
    start = clause.words[position].start
    return Fact(
        USER,
        predicate,
        clause.original_text(position, verb),
        False,
        "preference",
        SURE,
        start,
        stop,
    )


def _read_nickname(clause: ClauseWords, position: int) -> Fact | None:
    """Return the name by which the user wants to be called, as in "Call me Mo", or None."""
    if clause.lows[position : position + 2] != ["call", "me"] or not clause.is_capital(
        position + 2
    ):
        return None
    value = clause.read_value(position + 2, "name")
    if value is None:
        return None
    return Fact(
        USER, "name", value.text, False, "personal", SURE, clause.words[position].start, value.stop
    )


# Properties of other people and of things


@dataclass(frozen=True, slots=True)
class _Owner:
    """The owner of a possession.

    ``position`` is the word index of the possession's noun. ``mine`` is whether the speaker is the
    owner, ``person`` whether the owner is a person.
    """

    name: str
    position: int
    mine: bool
    person: bool


def read_owner(clause: ClauseWords, position: int) -> _Owner | None:
    """Return the owner that a possessive names, such as "my" or "the printer's"."""
    if position >= len(clause):
        return None
    low = clause.low(position)
    mine = low in ("my", "our")
    speaker = {"my": "user", "our": "team"}.get(low, "")
    start = end = position + (mine or low == "the")
    for index in range(start, min(start + _MOST_NOUNS, len(clause))):
        word = clause.words[index]
        if _POSSESSIVE.search(clause.text[word.start : word.stop]) and _are_nouns(
            clause.lows[start : index + 1]
        ):
            end = index + 1
    if end == start:
        return _Owner(speaker, start, True, True) if mine else None
    name = strip_marks(
        _POSSESSIVE.sub("", clause.text[clause.words[start].start : clause.words[end - 1].stop])
    )
    if mine:
        return _Owner(f"{speaker}'s {name}", end, False, low == "my")
    is_named = low != "the"
    if is_named and not all(map(clause.is_capital, range(start, end))):
        return None
    return _Owner(name, end, False, is_named)


def _read_property(clause: ClauseWords, position: int) -> Fact | None:
    """Return a property or a process, such as "Ada's room is number 19", or None."""
    verbs = range(position + 1, position + _MOST_BEFORE)
    verb = next((index for index in verbs if clause.low(index) in ("is", "are")), None)
    if verb is None or not word_table("of-the-moment").isdisjoint(clause.lows[verb:]):
        return None
    index = clause.skip_adverbs(verb + 1)[-1:]
    return (
        (
            _read_process(clause, position, verb, index[0])
            or _read_copula_property(clause, position, verb, index[0])
        )
        if index
        else None
    )


def _read_copula_property(clause: ClauseWords, position: int, verb: int, index: int) -> Fact | None:
    """Return the property in a sentence of the form "<noun phrase> is <value>", or None."""
    owner = read_owner(clause, position)
    first, last, alone = position + 1, verb, False
    if owner is not None:
        first, name = owner.position, owner.name
        first += verb - first > 1 and clause.low(first) in word_table("renewed")
    elif clause.low(position) == "the" and position + 1 < verb:
        preposition = next(
            (
                index
                for index in range(position + 2, verb - 1)
                if clause.low(index) in ("of", "for")
            ),
            None,
        )
        if preposition is None:
            name, alone = clause.original_text(first, last), True
        else:
            last = preposition
            owner_start = preposition + 1 + (clause.low(preposition + 1) in ("the", "my", "our"))
            is_activity = owner_start == preposition + 1 and clause.low(owner_start).endswith("ing")
            if not _are_nouns(clause.lows[owner_start:verb]) or is_activity:
                return None
            name = clause.original_text(owner_start, verb)
    else:
        return None
    noun = clause.lows[first:last]
    if len(noun) > _MOST_NOUNS or not _are_nouns(noun) or noun[-1] in word_table("discourse-nouns"):
        return None
    value = _read_specific_value(clause, index, noun[-1], alone=alone)
    if value is None:
        return None
    mine, person = (owner.mine, owner.person) if owner is not None else (False, False)
    predicate = "is" if alone else "-".join(noun)
    return _build_property_fact(clause, position, name, predicate, value, mine=mine, person=person)


def _read_process(clause: ClauseWords, position: int, verb: int, index: int) -> Fact | None:
    """Return a regular process, such as "The key of staging is rotated on Mondays", or None.

    A process has a thing, a participle, and a time, place or agent.
    """
    low, preposition = clause.low(index), clause.low(index + 1)
    if (
        low in word_table("moment-participles")
        or index + 2 >= len(clause)
        or preposition not in vocabulary("extraction", "placing")
    ):
        return None
    if low not in word_table("participles") and not _PARTICIPLE.fullmatch(low):
        return None
    article = clause.low(position) == "the"
    subject_words = clause.lows[position + article : verb]
    nouns = [word for word in subject_words if word not in ("of", "the")]
    if not _are_nouns(nouns) or nouns[-1] in word_table("discourse-nouns"):
        return None
    if len(subject_words) > 2 * _MOST_NOUNS or not (article or clause.low(verb) == "are"):
        return None
    value = _read_short_value(clause, index + 2)
    is_infinitive = (
        preposition == "to"
        and clause.low(index + 2) not in ARTICLES
        and not _has_name(clause, index + 2, index + 3)
    )
    if value is None or is_infinitive:
        return None
    name = clause.original_text(position + article, verb)
    return _build_property_fact(
        clause, position, name, f"is-{low}-{preposition}", value, mine=False, person=False
    )


def _build_property_fact(
    clause: ClauseWords,
    position: int,
    name: str,
    predicate: str,
    value: ClauseValue,
    *,
    mine: bool,
    person: bool,
) -> Fact:
    """Return the fact that states a property, with its kind and confidence."""
    confidence, kind = SURE if mine else SAID_OF_OTHERS, "personal" if person else "fact"
    if predicate not in lexicon()["confidence"]["rules"]:
        confidence = OPEN
    return Fact(
        name,
        predicate,
        value.text,
        False,
        kind,
        confidence,
        clause.words[position].start,
        value.stop,
    )


def _read_specific_value(
    clause: ClauseWords, index: int, noun: str, *, alone: bool
) -> ClauseValue | None:
    """Return the value at a word if it is specific, otherwise None.

    ``noun`` is the last noun of the property. ``alone`` is whether the property has no owner.
    """
    value = _read_short_value(clause, index)
    if value is None:
        return None
    low, end = clause.low(index), clause.index_after(index - 1, value.stop)
    value_words = clause.lows[index:end]
    if len(value_words) == 1 and noun in word_table("relations") and clause.is_trait(index):
        return None  # "Ada's mother is Polish" describes the mother and does not name her
    if _has_name(clause, index, end) and (
        low not in vocabulary("extraction", "placing") or len(value_words) > 1
    ):
        is_leading = (
            low in vocabulary("extraction", "placing")
            or low in (*ARTICLES, "number")
            or _has_name(clause, index, index + 1)
        )
        return value if is_leading else None
    if low in vocabulary("extraction", "placing"):
        return None if word_table("ordinals").isdisjoint(value_words) else value
    if not alone and low in ("a", "an") and len(value_words) > 1:
        return value if word_table("passing").isdisjoint(value_words[1:3]) else None
    is_worded = (
        noun in word_table("said-in-a-word") and len(value_words) <= 2 and low not in ARTICLES
    )
    return value if is_worded and _are_nouns(value_words) else None


def _read_short_value(clause: ClauseWords, index: int) -> ClauseValue | None:
    """Return the value at a word if it is short and contains no clause, otherwise None."""
    value = clause.read_value(index, "property")
    if value is None or clause.low(index) in word_table("no-nouns") - {
        *vocabulary("extraction", "placing"),
        *ARTICLES,
    }:
        return None
    value_words = clause.lows[index : clause.index_after(index - 1, value.stop)]
    return (
        value
        if len(value_words) <= _LONGEST_VALUE and word_table("clause-words").isdisjoint(value_words)
        else None
    )


def _has_name(clause: ClauseWords, start: int, stop: int) -> bool:
    """Return whether any word from ``start`` to ``stop`` (exclusive) is capitalised, or is a number or a code."""
    return any(
        clause.is_capital(index) or _CODE.search(clause.low(index))
        for index in range(start, min(stop, len(clause)))
    )


def _are_nouns(lows: list[str]) -> bool:
    """Return whether the list has words and each may be part of a noun phrase."""
    return bool(lows) and word_table("no-nouns").isdisjoint(lows)
