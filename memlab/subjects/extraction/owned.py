"""What somebody or something has: relatives by name, favourites, and properties.

"My sister Ola", "my favourite colour is teal", "call me Mo"; "Ada's room is number 19", "the port of the server is
9100". A property is read as a noun phrase, "is" or "are", and a value. Whose it is stands before it ("Ada's", "my
brother's", "our", "the printer's") or after it ("the owner of the fork"); without either, "the staging port" is itself
what is spoken of. Only a value that names something counts: a number, a name, a code, a time or place by name, a noun
with an article, or what regularly becomes of it ("is rotated on Mondays"). What is lovely, broken or late is not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memlab.kernel.english import lexicon
from memlab.subjects.extraction.clause import (
    ARTICLES,
    OPEN,
    SAID_OF_OTHERS,
    SURE,
    USER,
    ClauseValue,
    Fact,
    Said,
    Subject,
    bare,
    is_cut_short,
    lasts,
    table,
)

__all__ = ["fact_of_something_had", "owner_at", "relative_in"]

_MOST_OF_A_NAME = 3
_MOST_BEFORE = 9
"""Words before "is"."""

_MOST_NOUNS = 4
_LONGEST_VALUE = 9
_CODE = re.compile(r"\d|\w[./_:@-]\w|^#\w")
_POSSESSIVE = re.compile("['\u2019]s$|(?<=s)['\u2019]$")
_PARTICIPLE = re.compile(r"\w{2,}ed")
_PLACING = ("at", "on", "in", "under", "from", "by", "to", "between", "near", "for", "until")


def fact_of_something_had(said: Said, place: int) -> Fact | None:
    """Return the fact about something that somebody has, None where a clause states none from a place on."""
    if place >= len(said):
        return None
    return (
        _favourite(said, place)
        or _own_property(said, place)
        or _called(said, place)
        or _property(said, place)
    )


# -- relatives, favourites, names ------------------------------------------------------------------------------------


def relative_in(said: Said, place: int) -> tuple[Fact | None, Subject | None] | None:
    """Return of "my sister Ola lives ..." who she is to the user, and whom the clause speaks of."""
    if place + 1 >= len(said) or said.low(place) not in ("my", "our"):
        return None
    of = place + 1 + (said.low(place + 1) in table("renewed"))
    size = next(
        (
            n
            for n in (2, 1)
            if of + n <= len(said) and said.phrase(of, of + n) in table("relations")
        ),
        0,
    )
    if not size:
        return _whose_name(said, place)
    relation = said.phrase(of, of + size)
    at = of + size
    names = said.end_of_name(at, 2)
    start, predicate = said.words[place].start, relation.replace(" ", "-")
    if names > at:
        fact = _name_fact(said, at, names, start, predicate)
        return fact, Subject(fact.value, False, names, start)
    name = at + (said.length_of(at, ("is called", "is named")) or _is_a_name(said, at))
    if name > at and said.is_capital(name):
        return _name_fact(said, name, said.end_of_name(name, 3), start, predicate), None
    return None, Subject(f"{USER}'s {relation}", False, at, start)


def _is_a_name(said: Said, at: int) -> int:
    """The length of "is" where nothing but a name follows: "My boss is Karl", and not "My sister is French"."""
    names = range(at + 1, len(said))
    if said.low(at) != "is" or not 1 <= len(names) <= _MOST_OF_A_NAME:
        return 0
    return int(all(map(said.is_capital, names)) and not said.is_trait(at + 1))


def _whose_name(said: Said, place: int) -> tuple[Fact | None, None] | None:
    """ "My daughter's name is Lucia"."""
    of = said.low(place + 1).removesuffix("'s")
    if (
        of == said.low(place + 1)
        or of not in table("relations")
        or not said.length_of(place + 2, ("name is",))
    ):
        return None
    at = place + 4
    if not said.is_capital(at):
        return None, None
    return _name_fact(said, at, said.end_of_name(at, 3), said.words[place].start, of), None


def _name_fact(said: Said, at: int, stop: int, start: int, predicate: str) -> Fact:
    return Fact(
        USER,
        predicate,
        said.written(at, stop),
        True,
        "personal",
        SURE,
        start,
        said.words[stop - 1].stop,
    )


def _own_property(said: Said, place: int) -> Fact | None:
    """ "My favourite colour is teal", "My birthday is on 14 March"."""
    verb = next((at for at in range(place + 2, place + 6) if said.low(at) == "is"), None)
    if verb is None or said.low(place) != "my":
        return None
    name = said.phrase(place + 1, verb)
    favourite = said.low(place + 1) in table("favourites") and verb > place + 2
    if not favourite and name not in table("properties"):
        return None
    start = verb + 1
    while said.low(start) in ("on", "to", "in", "at") and name in ("birthday", "goal", "dream"):
        start += 1
    value = said.value(
        start, "name" if name.endswith("name") else "time" if name == "birthday" else "plan"
    )
    if value is None or said.low(start) in ("not", *table("adverbs")) or is_cut_short(value.text):
        return None
    if (name == "goal" and not lasts(value.text, said_to_someone=True)) or _does(value.text, name):
        return None
    predicate = table("renamed-properties").get(name, name).replace(" ", "-")
    kind = "preference" if favourite else "goal" if predicate == "goal" else "personal"
    return Fact(USER, predicate, value.text, False, kind, SURE, said.words[place].start, value.stop)


def _does(value: str, name: str) -> bool:
    """Whether a value says what something does now: "my company is funding ..."."""
    return (
        value.split()[0].endswith("ing")
        and name not in ("hobby", "goal", "dream")
        and not name.startswith("fav")
    )


def _favourite(said: Said, place: int) -> Fact | None:
    """ "Harry Potter is my favourite book": the same as "my favourite book is Harry Potter"."""
    verb = next(
        (at for at in range(place + 1, min(place + 7, len(said) - 3)) if said.low(at) == "is"), None
    )
    if verb is None or said.low(verb + 1) != "my" or said.low(verb + 2) not in table("favourites"):
        return None
    noun = [low for low in said.lows[verb + 3 : verb + 5] if low.isalpha()]
    named = said.is_capital(place) and said.is_capital(verb - 1)
    if not named or not noun or not table("no-names").isdisjoint(said.lows[place:verb]):
        return None
    predicate = f"{said.low(verb + 2)}-{'-'.join(noun)}"
    stop = said.words[verb + 2 + len(noun)].stop
    start = said.words[place].start
    return Fact(USER, predicate, said.written(place, verb), False, "preference", SURE, start, stop)


def _called(said: Said, place: int) -> Fact | None:
    """ "Call me Mo": the name that somebody asks to be called by."""
    if said.lows[place : place + 2] != ["call", "me"] or not said.is_capital(place + 2):
        return None
    value = said.value(place + 2, "name")
    if value is None:
        return None
    return Fact(
        USER, "name", value.text, False, "personal", SURE, said.words[place].start, value.stop
    )


# -- properties of others and of things ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whose something is; the noun begins at ``place``. ``mine``: the speaker's own; ``person``: no thing's."""

    name: str
    place: int
    mine: bool
    person: bool


def owner_at(said: Said, place: int) -> _Owner | None:
    """Return whose what stands at a place is, by a possessive: "my", "Ada's", "my brother's", "the printer's"."""
    if place >= len(said):
        return None
    low = said.low(place)
    mine = low in ("my", "our")
    who = {"my": "user", "our": "team"}.get(low, "")
    start = end = place + (mine or low == "the")
    for at in range(start, min(start + _MOST_NOUNS, len(said))):
        word = said.words[at]
        if _POSSESSIVE.search(said.text[word.start : word.stop]) and _are_nouns(
            said.lows[start : at + 1]
        ):
            end = at + 1
    if end == start:
        return _Owner(who, start, True, True) if mine else None
    name = bare(_POSSESSIVE.sub("", said.text[said.words[start].start : said.words[end - 1].stop]))
    if mine:
        return _Owner(f"{who}'s {name}", end, False, low == "my")
    named = low != "the"
    if named and not all(map(said.is_capital, range(start, end))):
        return None
    return _Owner(name, end, False, named)


def _property(said: Said, place: int) -> Fact | None:
    """ "Ada's room is number 19", "The port of the server is 9100", "The key is rotated on Mondays"."""
    verbs = range(place + 1, place + _MOST_BEFORE)
    verb = next((at for at in verbs if said.low(at) in ("is", "are")), None)
    if verb is None or not table("of-the-moment").isdisjoint(said.lows[verb:]):
        return None
    at = said.past_adverbs(verb + 1)[-1:]
    return (_becomes(said, place, verb, at[0]) or _has(said, place, verb, at[0])) if at else None


def _has(said: Said, place: int, verb: int, at: int) -> Fact | None:
    """A noun phrase, "is" and a value."""
    owner = owner_at(said, place)
    first, last, alone = place + 1, verb, False
    if owner is not None:
        first, name = owner.place, owner.name
        first += verb - first > 1 and said.low(first) in table("renewed")
    elif said.low(place) == "the" and place + 1 < verb:
        of = next((at for at in range(place + 2, verb - 1) if said.low(at) in ("of", "for")), None)
        if of is None:
            name, alone = said.written(first, last), True
        else:
            last = of
            begins = of + 1 + (said.low(of + 1) in ("the", "my", "our"))
            activity = begins == of + 1 and said.low(begins).endswith("ing")
            if not _are_nouns(said.lows[begins:verb]) or activity:
                return None
            name = said.written(begins, verb)
    else:
        return None
    noun = said.lows[first:last]
    if len(noun) > _MOST_NOUNS or not _are_nouns(noun) or noun[-1] in table("discourse-nouns"):
        return None
    value = _value(said, at, noun[-1], alone=alone)
    if value is None:
        return None
    mine, person = (owner.mine, owner.person) if owner is not None else (False, False)
    predicate = "is" if alone else "-".join(noun)
    return _property_fact(said, place, name, predicate, value, mine=mine, person=person)


def _becomes(said: Said, place: int, verb: int, at: int) -> Fact | None:
    """ "The key of staging is rotated on Mondays": a thing, what is done to it, and when, where or by what."""
    low, placed = said.low(at), said.low(at + 1)
    if low in table("moment-participles") or at + 2 >= len(said) or placed not in _PLACING:
        return None
    if low not in table("participles") and not _PARTICIPLE.fullmatch(low):
        return None
    article = said.low(place) == "the"
    thing = said.lows[place + article : verb]
    nouns = [word for word in thing if word not in ("of", "the")]
    if not _are_nouns(nouns) or nouns[-1] in table("discourse-nouns"):
        return None
    if len(thing) > 2 * _MOST_NOUNS or not (article or said.low(verb) == "are"):
        return None
    value = _short_value(said, at + 2)
    infinitive = (
        placed == "to" and said.low(at + 2) not in ARTICLES and not _names(said, at + 2, at + 3)
    )
    if value is None or infinitive:
        return None
    name = said.written(place + article, verb)
    return _property_fact(said, place, name, f"is-{low}-{placed}", value, mine=False, person=False)


def _property_fact(
    said: Said,
    place: int,
    name: str,
    predicate: str,
    value: ClauseValue,
    *,
    mine: bool,
    person: bool,
) -> Fact:
    sure, kind = SURE if mine else SAID_OF_OTHERS, "personal" if person else "fact"
    if predicate not in lexicon()["confidence"]["rules"]:
        sure = OPEN
    return Fact(name, predicate, value.text, False, kind, sure, said.words[place].start, value.stop)


def _value(said: Said, at: int, noun: str, *, alone: bool) -> ClauseValue | None:
    """What names something from a place on, and where it ends; ``noun`` is the last of what has it."""
    value = _short_value(said, at)
    if value is None:
        return None
    low, end = said.low(at), said.after(at - 1, value.stop)
    rest = said.lows[at:end]
    if len(rest) == 1 and noun in table("relations") and said.is_trait(at):
        return None  # "Ada's mother is Polish" says of the mother how she is
    if _names(said, at, end) and (low not in _PLACING or len(rest) > 1):
        leading = low in _PLACING or low in (*ARTICLES, "number") or _names(said, at, at + 1)
        return value if leading else None
    if low in _PLACING:
        return None if table("ordinals").isdisjoint(rest) else value
    if not alone and low in ("a", "an") and len(rest) > 1:
        return value if table("passing").isdisjoint(rest[1:3]) else None
    worded = noun in table("said-in-a-word") and len(rest) <= 2 and low not in ARTICLES
    return value if worded and _are_nouns(rest) else None


def _short_value(said: Said, at: int) -> ClauseValue | None:
    """The value from a place on, if it is short and no clause of its own."""
    value = said.value(at, "property")
    if value is None or said.low(at) in table("no-nouns") - {*_PLACING, *ARTICLES}:
        return None
    rest = said.lows[at : said.after(at - 1, value.stop)]
    return value if len(rest) <= _LONGEST_VALUE and table("clause-words").isdisjoint(rest) else None


def _names(said: Said, start: int, stop: int) -> bool:
    """Whether a name, a number or a code is among these words."""
    return any(
        said.is_capital(at) or _CODE.search(said.low(at))
        for at in range(start, min(stop, len(said)))
    )


def _are_nouns(lows: list[str]) -> bool:
    """Whether these may all be parts of a noun phrase: no pronouns, verbs, prepositions."""
    return bool(lows) and table("no-nouns").isdisjoint(lows)
