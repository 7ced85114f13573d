"""What is said with "my": relatives by name, properties, favourites; and the name that somebody asks to be called."""

from __future__ import annotations

from functools import cache

from memlab.kernel.english import Token, lexicon
from memlab.subjects.extraction.asserting import table
from memlab.subjects.extraction.fact import OPEN, SAID_OF_OTHERS, SURE, USER, Fact, Subject
from memlab.subjects.extraction.properties import property_in
from memlab.subjects.extraction.values import bare, capital, joined, trait_at, value_at
from memlab.subjects.extraction.verbs import length_of
from memlab.subjects.extraction.worth import is_cut_short, lasts

__all__ = ["called", "favourite", "had", "of_a_property", "of_a_relative", "relatives"]


def of_a_relative(text: str, words: list[Token], place: int) -> tuple[Fact | None, Subject | None] | None:
    """ "My sister Ola lives ...": who she is to the user, and whom the clause speaks of."""
    if place + 1 >= len(words) or words[place].low not in ("my", "our"):
        return None
    new = words[place + 1].low in table("renewed")
    left = len(words) - place - 1 - new
    of = place + 1 + new
    size = next((n for n in (2, 1) if n <= left and joined(words[of : of + n]) in relatives()), 0)
    if not size:
        return _whose_name(text, words, place)
    relation = joined(words[of : of + size])
    at = of + size
    names = at
    while names < len(words) and names < at + 2 and capital(text, words[names]):
        names += 1
    start, predicate = words[place].start, relation.replace(" ", "-")
    if names > at:
        name = bare(text[words[at].start : words[names - 1].stop])
        fact = Fact(USER, predicate, name, True, "personal", SURE, start, words[names - 1].stop)
        return fact, Subject(name, False, names, start)
    called = length_of(words, at, ("is called", "is named"))
    called = called or _is_a_name(text, words, at)
    if called and at + called < len(words) and capital(text, words[at + called]):
        return _name_fact(text, words, at + called, start, predicate), None
    return None, Subject(f"{USER}'s {relation}", False, at, start)


def _is_a_name(text: str, words: list[Token], at: int) -> int:
    """The length of "is" where nothing but a name follows: "My boss is Karl", and not "My sister is French"."""
    names = words[at + 1 :]
    if at >= len(words) or words[at].low != "is" or not 1 <= len(names) <= _MOST_OF_A_NAME:
        return 0
    return int(all(capital(text, name) for name in names) and not trait_at(text, words, at + 1))


_MOST_OF_A_NAME = 3


@cache
def relatives() -> frozenset[str]:
    return frozenset(table("relations"))


def _whose_name(text: str, words: list[Token], place: int) -> tuple[Fact | None, None] | None:
    """ "My daughter's name is Lucia"."""
    of = words[place + 1].low.removesuffix("'s")
    if of == words[place + 1].low or of not in relatives() or length_of(words, place + 2, ("name is",)) != 2:
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
    return Fact(USER, predicate, name, True, "personal", SURE, start, words[stop - 1].stop)


def of_a_property(text: str, words: list[Token], place: int) -> Fact | None:
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
    if value is None or words[start].low in ("not", *table("adverbs")) or is_cut_short(value[0]):
        return None
    if (name == "goal" and not lasts(value[0], said_to_someone=True)) or _does(value[0], name):
        return None
    predicate = table("renamed-properties").get(name, name).replace(" ", "-")
    kind = "preference" if favourite else "goal" if predicate == "goal" else "personal"
    return Fact(USER, predicate, value[0], False, kind, SURE, words[place].start, value[1])


def favourite(text: str, words: list[Token], place: int) -> Fact | None:
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
    return Fact(USER, predicate, name, False, "preference", SURE, words[place].start, last.stop)


def _does(value: str, name: str) -> bool:
    """Whether a value says what something does now: "my company is funding ..."."""
    return value.split()[0].endswith("ing") and name not in ("hobby", "goal", "dream") and not name.startswith("fav")


def called(text: str, words: list[Token], place: int) -> Fact | None:
    """ "Call me Mo": the name that somebody asks to be called by."""
    lows = [word.low for word in words[place : place + 3]]
    if lows[:2] != ["call", "me"] or len(lows) < 3 or not capital(text, words[place + 2]):
        return None
    value = value_at(text, words, place + 2, "name")
    if value is None:
        return None
    return Fact(USER, "name", value[0], False, "personal", SURE, words[place].start, value[1])


def had(text: str, words: list[Token], place: int) -> Fact | None:
    """ "Ada's room is number 19", "The port of the server is 9100", "The key is rotated on Mondays"."""
    found = property_in(text, words, place) if place < len(words) else None
    if found is None:
        return None
    sure, kind = SURE if found.mine else SAID_OF_OTHERS, "personal" if found.person else "fact"
    if found.predicate not in lexicon()["confidence"]["rules"]:
        sure = OPEN
    start = words[place].start
    return Fact(found.subject, found.predicate, found.value, False, kind, sure, start, found.stop)
