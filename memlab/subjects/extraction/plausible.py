"""Plausibility of facts: whether a value fits its predicate.

A language fits after "speaks", and a place after "lives in". The verb alone does not make a value
plausible: "I like almost died" states no taste, and "Computers are programmed by people" no role.
The lists are under ``plausible`` in ``english.toml``; they are classes of words.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Literal

from memlab.kernel.english import lexicon, number_of, vocabulary, words_of
from memlab.subjects.extraction.clause import TEAM, USER, is_cut_short
from memlab.subjects.reading.sentences import is_plain_word

Plausibility = Literal["fine", "doubtful", "no"]

_FEWEST_OF_A_SUFFIX = 5
"""The minimum letters of a word that its ending makes a role: "baker", not "beer"."""

_LONGEST_SHOUTED = 3
"""The maximum letters of a name in capitals: "TJ", not "AWAKE"."""


def rate_plausibility(subject: str, predicate: str, value: str) -> Plausibility:
    """Return how well a value fits its predicate: "no", "doubtful" or "fine".

    Parameters
    ----------
    subject, predicate, value
        The subject, the predicate and the value of a fact that a rule recognised.

    Returns
    -------
    "no" for a value that the predicate cannot have, "doubtful" for a value that it rarely has, otherwise "fine".

    Examples
    --------
    >>> [rate_plausibility("user", "speaks", value) for value in ("Danish", "enough", "a dialect")]
    ['fine', 'no', 'doubtful']
    >>> rate_plausibility("user", "likes", "almost died")
    'no'
    """
    words = words_of(value)
    if (
        not words
        or not _has_content(words, "fillers")
        or _ELLIPSIS.search(value)
        or is_cut_short(value)
    ):
        return "no"
    if predicate.split("-", 1)[0] in ("favorite", "favourite"):
        return _rate_favourite(predicate, words)
    if value.isupper() and len(words) == 1 and is_plain_word(words[0]):
        return "no"  # "My mind is BLOWN"
    if predicate in _ENDINGS and (
        words[-1] in ("ago", "soon", "now") or words == ["their", "major"]
    ):
        return "no"  # "I quit as soon", "I stopped playing years ago" do not name what ended
    if not _plausible_words("of-the-chat").isdisjoint(words) or (
        "either" in words and "or" not in words
    ):
        return "no"
    check = _CHECKS.get(predicate)
    if (
        check is None
        and predicate != "goal"
        and not _plausible_words("clauses").isdisjoint(words[1:])
    ):
        return "no"  # "AI is kind of their hobby"
    rating: Plausibility = "fine" if check is None else check(subject, value, words)
    return "no" if not _has_content(words, "vague") and check is not None else rating


_ELLIPSIS = re.compile(r"\.\.\.|\u2026")
"""A pattern of an ellipsis, which joins two statements: "music...I grew up"."""


# Predicates of something that the subject ended.
_ENDINGS = frozenset(("stopped", "quit", "gave-up", "switched-to", "lost"))


def _rate_favourite(predicate: str, words: list[str]) -> Plausibility:
    """Rate a favourite; a passing preference or a whole sentence is implausible."""
    parts = predicate.split("-")[1:]
    if not parts or parts[-1] in vocabulary("extraction", "open-ends") or "moment" in parts:
        return "no"
    noun_words = set(parts)
    return (
        "fine"
        if noun_words.isdisjoint(_plausible_words("no-favourites"))
        and _plausible_words("finite").isdisjoint(words)
        else "no"
    )


def _rate_taste(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate a taste; a thing or activity is plausible, a time or clause is not."""
    first, second = words[0], words[1] if len(words) > 1 else ""
    if first in _plausible_words("no-beginnings") or (
        first in _plausible_words("past") and second not in ("any", "all", "every")
    ):
        return "no"
    if not _plausible_words("finite").isdisjoint(words) and _plausible_words(
        "relatives"
    ).isdisjoint(words):
        return "no"
    if (
        first in _plausible_words("quantifiers")
        or words[-1] in _plausible_words("pro-nouns")
        or _is_common_activity(words)
    ):
        return "no"
    if first == "both" and "and" not in words:
        return "no"
    if all(word.isdigit() or number_of(word) is not None for word in words):
        return "no"  # "I own four"
    if words[:2] in (
        ["to", "think"],
        ["being", "able"],
        ["to", "say"],
        ["to", "do"],
    ) or _LOOSE_DIGIT.search(value):
        return "no"
    if subject == TEAM and first in ("a", "an"):
        return "no"  # "We love a manipulative sister" is a figure of speech
    is_vague = {"things", "thing", "stuff", "having", "kinda"} & set(words) or first in (
        "all",
        "just",
        "being",
    )
    if is_vague or (subject == TEAM and words[1:]):
        return "doubtful"
    is_past = first.endswith("ed") and len(first) >= _FEWEST_OF_A_SUFFIX
    return "no" if is_past and second in _plausible_words("determiners") else "fine"


_LOOSE_DIGIT = re.compile(r"(?:^| )[a-z]+ \d$")
"""A pattern of a digit that does not belong to the value: "weird people 2"."""

_FEWEST_OF_THINGS = 3
"""The number of words up to which a value is unspecific: "a real person", "Web development"."""


def _is_common_activity(words: list[str]) -> bool:
    """Return whether a liked activity is too common to store, such as "to chill"."""
    rest = [word for word in words if word not in ("to", "just", "really", "always")]
    verbs = _plausible_words("any-activities")
    if words[0] in ("love", "like", "enjoy", "hate"):
        return True
    is_bare = len(rest) == 1 and rest[0] in verbs and (words[0] == "to" or rest[0].endswith("ing"))
    return is_bare or (
        words[0] == "to"
        and rest[:1] == ["go"]
        and len(rest) == len(_GONE)
        and rest[1] in _plausible_words("directions")
    )


_GONE = ("go", "back")
"""A movement without a destination; only its number of words is used."""


def _rate_study(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate a field of study; "biology" is plausible, "the" or "would" is not."""
    if words[0] in vocabulary("plausible", "no-studies"):
        return "no"
    return _rate_taste(subject, value, words)


def _rate_knowledge(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate a thing that a person knows; names and languages are plausible, other content is not."""
    allowed = vocabulary("plausible", "with-knowledge")
    lower = {word for part in value.split() if not part[:1].isupper() for word in words_of(part)}
    return (
        "fine" if lower <= allowed | _plausible_words("languages") and not value.isupper() else "no"
    )


def _rate_age(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate an age; whole numbers up to ``_OLDEST`` are plausible, for the user only from ``_YOUNGEST_WRITER``."""
    if not value.isdigit() or not 0 < int(value) <= _OLDEST:
        return "no"
    return "fine" if subject != USER or int(value) >= _YOUNGEST_WRITER else "no"


# The maximum age of a person, and the minimum age of a user, because younger children do not write.
_OLDEST, _YOUNGEST_WRITER = 120, 10


def _rate_state(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate a former state; a role or trait is plausible, "embarrassed" is not."""
    return (
        "fine"
        if _is_role(words) or " ".join(words) in _list_traits() or words[-1] in _list_traits()
        else "no"
    )


def _rate_food(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate a food as a habit; "a candy bar", which may be eaten once, is doubtful."""
    rating = _rate_taste(subject, value, words)
    return "doubtful" if rating == "fine" and words[0] in ("a", "an", "my", "their") else rating


def _rate_employer(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate an employer; a field such as "Web development" is doubtful, a first word such as "with" implausible."""
    if (
        words[-1] in vocabulary("names", "fields")
        and len(words) <= _FEWEST_OF_THINGS
        and "the" not in words
    ):
        return "doubtful"
    return "no" if words[0] in _plausible_words("no-beginnings") else "fine"


def _rate_playing(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate what a person plays; an instrument is plausible, a stage role is not."""
    if words[0] == "the" and not _plausible_words("parts").isdisjoint(words[1:]):
        return "no"
    return (
        "fine"
        if words[0] in ("in", "for") and len(words) > 1
        else _rate_taste(subject, value, words)
    )


def _rate_work(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate a subject of work; a place or time such as "on campus" is implausible."""
    return (
        "no"
        if {words[0], words[0].removesuffix("s")} & _plausible_words("work-places")
        else _rate_taste(subject, value, words)
    )


def _rate_language(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate a language; names and listed languages are plausible, manners implausible, and other values doubtful."""
    if words[0] in _plausible_words("manners"):
        return "no"
    is_named = any(part[:1].isupper() for part in value.split())
    return "fine" if is_named or not _plausible_words("languages").isdisjoint(words) else "doubtful"


def _rate_place(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate a place; listed words are implausible, unnamed values such as "the corner" doubtful, most others plausible."""
    is_named = any(part[:1].isupper() for part in value.split())
    if words[0] in _plausible_words("no-places") or (
        words[-1] in vocabulary("plausible", "no-places-alone")
        and not is_named
        and len(words) <= _FEWEST_OF_THINGS
    ):
        return "no"
    if is_named or not _plausible_words("places").isdisjoint(words):
        return "fine"
    return (
        "doubtful"
        if words[0] in _plausible_words("determiners")
        or words[0] in _plausible_words("no-beginnings")
        else "fine"
    )


def _rate_name(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate a person's name; a capitalised value is plausible unless it is ordinary words or long and all in capitals."""
    if all(is_plain_word(word) for word in words):
        return "no"  # "I'm Terminator", "I am International Relations"
    is_shouted = value.isupper() and len(value) > _LONGEST_SHOUTED
    return (
        "no"
        if not value[:1].isupper()
        or is_shouted
        or words[0] in _plausible_words("no-name-of-oneself")
        else "fine"
    )


def _rate_possession(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate a possession; a lasting thing is plausible, an event or "to do" is not."""
    if words[0] == "to":
        return "no"
    ends = _plausible_words("noun-ends") - {"and", "or"}
    nouns = words[: next((n for n, word in enumerate(words) if n and word in ends), len(words))]
    if any(word.endswith("ing") and words[n + 2 :] for n, word in enumerate(words[1:])) and len(
        nouns
    ) == len(words):
        return "no"
    no_belongings = vocabulary("extraction", "belongings").isdisjoint(nouns)
    return "no" if no_belongings and nouns != words else "fine"


def _rate_wish(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate a plan or wish; an aim in life is plausible, "win the tablet" is not."""
    verbs = [word for word in words if word not in ("to", "just", "also", "go", "and")]
    if len(verbs) == 1 and verbs[0] in _plausible_words("transitive-verbs"):
        return "no"  # "to visit": what?
    if (
        words[0] in _plausible_words("fancied-verbs")
        or words[-1] in _plausible_words("pro-nouns")
        or value[-1].isdigit()
    ):
        return "no"
    of_the_moment = words[0] in _plausible_words("momentary-verbs") and words[1:2] in (
        ["the"],
        ["this"],
        ["that"],
    )
    return "no" if of_the_moment else "fine"


def _rate_being(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate what a subject is: roles and traits by ``_rate_role``, other values of third parties by ``_rate_thing``.

    Other values of the user and the team are doubtful at best.
    """
    if words[-1] in _plausible_words("unfinished") or words[-1] in vocabulary(
        "extraction", "favourites"
    ):
        return "no"
    if _is_role(words) or " ".join(words) in _list_traits():
        if words[-1] in ("person", "human", "people") and (
            len(words) < _FEWEST_OF_THINGS or words[-2] in _plausible_words("any-persons")
        ):
            return "no"
        return _rate_role(subject, words)
    is_own = subject in (USER, TEAM) or subject.startswith(f"{USER}'s ")
    if is_own:
        return "no" if words[0] in _plausible_words("determiners") else "doubtful"
    return _rate_thing(subject, value, words)


def _rate_thing(subject: str, value: str, words: list[str]) -> Plausibility:
    """Rate a statement about a thing, such as "the port is 8443".

    A value that names the team is plausible. A specific value, or a value of a subject without a capital, is
    doubtful; other values are implausible.
    """
    if "team's" in words:
        return "fine"
    if "their" in words:
        return "no" if not subject[:1].isupper() else "doubtful"
    first = subject.split()[0].lower()
    if first in vocabulary("extraction", "ordinals") or first in ("mine", "yours", "theirs"):
        return "no"
    is_specific = words[0] not in _plausible_words("determiners") and any(
        part[:1].isupper() or part[:1].isdigit() for part in value.split()
    )
    return "doubtful" if is_specific or not subject[:1].isupper() else "no"


def _rate_role(subject: str, words: list[str]) -> Plausibility:
    """Rate a role; listed roles and traits are plausible, and so is any role of the user, the team or a relative.

    Other roles are often common knowledge or fiction, so they are doubtful, as are vague roles and most with "the".
    """
    is_own = subject in (USER, TEAM) or "'s " in subject
    if words[0] == "the":
        is_ranked = not _plausible_words("ranks").isdisjoint(words)
        return "fine" if is_own and is_ranked else "doubtful"
    if {"kinda", "kind", "type", "sort", "least"} & set(words):
        return "doubtful"  # "an all times kinda person"
    roles = vocabulary("linking", "occupations") | vocabulary("extraction", "relations", "traits")
    return (
        "fine"
        if is_own or not roles.isdisjoint(words) or " ".join(words) in _list_traits()
        else "doubtful"
    )


def _is_role(words: list[str]) -> bool:
    """Return whether one of the last three words of a value's leading noun phrase names a role of persons."""
    end = next(
        (n for n, word in enumerate(words) if n and word in _plausible_words("noun-ends")),
        len(words),
    )
    return any(_names_role(word) for word in words[max(end - 3, 0) : end])


def _names_role(word: str) -> bool:
    """Return whether a word is in the list of roles or has the ending of a role, and is no listed exception."""
    if word in _plausible_words("no-roles"):
        return False
    roles = vocabulary("linking", "occupations") | vocabulary("extraction", "relations", "traits")
    has_role_ending = len(word) >= _FEWEST_OF_A_SUFFIX and word.endswith(
        tuple(_plausible_words("role-endings"))
    )
    return word in roles or word in _plausible_words("roles") or has_role_ending


def _has_content(words: list[str], name: str) -> bool:
    """Return whether any word is neither a filler nor in the word list ``name``."""
    fillers = (
        vocabulary("negation", "fillers")
        | vocabulary("acts", "openers")
        | _plausible_words("fillers")
    )
    return any(word not in fillers and word not in _plausible_words(name) for word in words)


@cache  # the tables of the language do not change
def _plausible_words(name: str) -> frozenset[str]:
    """Return a word list of the plausibility rules as a set."""
    return frozenset(lexicon()["plausible"][name])


@cache  # the tables of the language do not change
def _list_traits() -> frozenset[str]:
    """Return the traits of persons, such as "vegetarian"."""
    return vocabulary("extraction", "traits")


# The rule of each predicate. Other predicates accept any value that is not a clause.
_CHECKS: dict[str, Any] = {
    **dict.fromkeys(("likes", "dislikes", "prefers", "uses", "owns"), _rate_taste),
    **dict.fromkeys(("studies", "is-learning", "teaches"), _rate_study),
    **dict.fromkeys(("eats", "drinks"), _rate_food),
    "knows": _rate_knowledge,
    "no-longer-is": _rate_state,
    "no-longer-has": _rate_possession,
    "age": _rate_age,
    "works-at": _rate_employer,
    **dict.fromkeys(
        ("lives-in", "lives-near", "comes-from", "grew-up-in", "was-born-in"), _rate_place
    ),
    **dict.fromkeys(("wants-to", "is-trying-to", "plans-to", "hopes-to"), _rate_wish),
    "plays": _rate_playing,
    "works-on": _rate_work,
    "speaks": _rate_language,
    "name": _rate_name,
    "has": _rate_possession,
    "is": _rate_being,
}
