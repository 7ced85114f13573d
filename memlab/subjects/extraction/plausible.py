"""Whether the value of a fact fits its predicate: a language after "speaks", a place after "lives in".

A verb right before a value says little about the value: "I like almost died" has no taste, "Computers are programmed by
people" no role of anybody. The lists stand in ``english.toml`` under ``plausible``; they are classes of words, and no
sentences that were read.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Literal

from memlab.kernel.english import lexicon, number_of, vocabulary, words_of
from memlab.subjects.extraction.clause import TEAM, USER, is_cut_short
from memlab.subjects.reading.sentences import is_plain_word

__all__ = ["Plausibility", "plausibility"]

Plausibility = Literal["fine", "doubtful", "no"]

_FEWEST_OF_A_SUFFIX = 5
"""Letters of a word whose ending makes it a role: "baker", and not "beer"."""

_LONGEST_SHOUTED = 3
"""Letters of a name in capitals: "TJ", and not "AWAKE"."""


def plausibility(subject: str, predicate: str, value: str) -> Plausibility:
    """Return whether a value fits its predicate.

    Parameters
    ----------
    subject, predicate, value
        Of a fact that was read by rules.

    Returns
    -------
    str
        "no" for a value that the predicate cannot have, "doubtful" for one that it rarely has, else "fine".

    Examples
    --------
    >>> [plausibility("user", "speaks", value) for value in ("Danish", "enough", "a dialect")]
    ['fine', 'no', 'doubtful']
    >>> plausibility("user", "likes", "almost died"), plausibility("Heart Disease", "is", "the biggest cause of death")
    ('no', 'no')
    """
    words = words_of(value)
    if (
        not words
        or not _outside(words, "fillers")
        or _ELLIPSIS.search(value)
        or is_cut_short(value)
    ):
        return "no"
    if predicate.split("-", 1)[0] in ("favorite", "favourite"):
        return _of_a_favourite(predicate, words)
    if value.isupper() and len(words) == 1 and is_plain_word(words[0]):
        return "no"  # "My mind is BLOWN"
    if predicate in _ENDINGS and (
        words[-1] in ("ago", "soon", "now") or words == ["their", "major"]
    ):
        return "no"  # "I quit as soon", "I stopped playing years ago": of what is not said
    if not _words("of-the-chat").isdisjoint(words) or ("either" in words and "or" not in words):
        return "no"
    check = _CHECKS.get(predicate)
    if check is None and predicate != "goal" and not _words("clauses").isdisjoint(words[1:]):
        return "no"  # "AI is kind of their hobby"
    found: Plausibility = "fine" if check is None else check(subject, value, words)
    return "no" if not _outside(words, "vague") and check is not None else found


_ELLIPSIS = re.compile(r"\.\.\.|\u2026")
"""A value with it is two: "music...I grew up"."""


_ENDINGS = frozenset(("stopped", "quit", "gave-up", "switched-to", "lost"))


def _of_a_favourite(predicate: str, words: list[str]) -> Plausibility:
    parts = predicate.split("-")[1:]
    if not parts or parts[-1] in vocabulary("extraction", "open-ends") or "moment" in parts:
        return "no"
    noun = set(parts)
    return (
        "fine"
        if noun.isdisjoint(_words("no-favourites")) and _words("finite").isdisjoint(words)
        else "no"
    )


def _of_taste(subject: str, value: str, words: list[str]) -> Plausibility:
    """A thing or an activity: no place or time before all else, and no verb in the past."""
    first, second = words[0], words[1] if len(words) > 1 else ""
    if first in _words("no-beginnings") or (
        first in _words("past") and second not in ("any", "all", "every")
    ):
        return "no"
    if not _words("finite").isdisjoint(words) and _words("relatives").isdisjoint(words):
        return "no"
    if (
        first in _words("quantifiers")
        or words[-1] in _words("pro-nouns")
        or _is_any_activity(words)
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
    vague = {"things", "thing", "stuff", "having", "kinda"} & set(words) or first in (
        "all",
        "just",
        "being",
    )
    if vague or (subject == TEAM and words[1:]):
        return "doubtful"
    regular = first.endswith("ed") and len(first) >= _FEWEST_OF_A_SUFFIX
    return "no" if regular and second in _words("determiners") else "fine"


_LOOSE_DIGIT = re.compile(r"(?:^| )[a-z]+ \d$")
"""A digit that is no part of the value: "weird people 2"."""

_FEWEST_OF_THINGS = 3
"""Words of a value that say little: "a real person", "Web development"."""


def _is_any_activity(words: list[str]) -> bool:
    """Whether a taste is for what everybody does: "to chill", "to go back"; a verb twice is a slip."""
    rest = [word for word in words if word not in ("to", "just", "really", "always")]
    verbs = _words("any-activities")
    if words[0] in ("love", "like", "enjoy", "hate"):
        return True
    alone = len(rest) == 1 and rest[0] in verbs and (words[0] == "to" or rest[0].endswith("ing"))
    return alone or (
        words[0] == "to"
        and rest[:1] == ["go"]
        and len(rest) == len(_GONE)
        and rest[1] in _words("directions")
    )


_GONE = ("go", "back")


def _of_study(subject: str, value: str, words: list[str]) -> Plausibility:
    """A subject with a name of its own: not "the language", "would be a very rewarding major"."""
    if words[0] in ("the", "would", "could", "should", "might", "will", "can", "that"):
        return "no"
    return _of_taste(subject, value, words)


def _of_knowing(subject: str, value: str, words: list[str]) -> Plausibility:
    """A language, a skill or people by name: no clause ("BYU is tight"), no cry."""
    light = {
        "a",
        "some",
        "little",
        "enough",
        "bit",
        "of",
        "and",
        "or",
        "but",
        "the",
        "basic",
        "even",
        "less",
        "both",
    }
    lower = {word for part in value.split() if not part[:1].isupper() for word in words_of(part)}
    return "fine" if lower <= light | _words("languages") and not value.isupper() else "no"


def _of_age(subject: str, value: str, words: list[str]) -> Plausibility:
    """A number; of oneself no child's."""
    if not value.isdigit() or not 0 < int(value) <= _OLDEST:
        return "no"
    return "fine" if subject != USER or int(value) >= _YOUNGEST_WRITER else "no"


_OLDEST, _YOUNGEST_WRITER = 120, 10


def _of_a_state(subject: str, value: str, words: list[str]) -> Plausibility:
    """What somebody was for long: not "embarrassed"."""
    return (
        "fine"
        if _is_role(words) or " ".join(words) in _traits() or words[-1] in _traits()
        else "no"
    )


def _of_eating(subject: str, value: str, words: list[str]) -> Plausibility:
    """A food that is eaten again and again: "a candy bar" is one of today."""
    found = _of_taste(subject, value, words)
    return "doubtful" if found == "fine" and words[0] in ("a", "an", "my", "their") else found


def _of_employment(subject: str, value: str, words: list[str]) -> Plausibility:
    """Who employs: not "Web development"."""
    if (
        words[-1] in vocabulary("names", "fields")
        and len(words) <= _FEWEST_OF_THINGS
        and "the" not in words
    ):
        return "doubtful"
    return "no" if words[0] in _words("no-beginnings") else "fine"


def _of_playing(subject: str, value: str, words: list[str]) -> Plausibility:
    """An instrument, a game, or "in a band"; no part of a play."""
    if words[0] == "the" and not _words("parts").isdisjoint(words[1:]):
        return "no"
    return (
        "fine" if words[0] in ("in", "for") and len(words) > 1 else _of_taste(subject, value, words)
    )


def _of_work(subject: str, value: str, words: list[str]) -> Plausibility:
    """A subject of work: not "on campus", "on weekends"."""
    return (
        "no"
        if {words[0], words[0].removesuffix("s")} & _words("work-places")
        else _of_taste(subject, value, words)
    )


def _of_language(subject: str, value: str, words: list[str]) -> Plausibility:
    if words[0] in _words("manners"):
        return "no"
    named = any(part[:1].isupper() for part in value.split())
    return "fine" if named or not _words("languages").isdisjoint(words) else "doubtful"


def _of_place(subject: str, value: str, words: list[str]) -> Plausibility:
    """A name, or a noun of places: not "a slightly different climate"."""
    named = any(part[:1].isupper() for part in value.split())
    if words[0] in _words("no-places") or (
        words[-1] in _NO_PLACE_ALONE and not named and len(words) <= _FEWEST_OF_THINGS
    ):
        return "no"
    if named or not _words("places").isdisjoint(words):
        return "fine"
    return (
        "doubtful"
        if words[0] in _words("determiners") or words[0] in _words("no-beginnings")
        else "fine"
    )


_NO_PLACE_ALONE = frozenset(
    ("town", "place", "house", "home", "area", "childhood", "environment", "school")
)
"""No place that anybody finds: "grew up in a town", "in a really harsh environment"."""


def _of_name(subject: str, value: str, words: list[str]) -> Plausibility:
    if all(is_plain_word(word) for word in words):
        return "no"  # "I'm Terminator", "I am International Relations"
    shouted = value.isupper() and len(value) > _LONGEST_SHOUTED
    return (
        "no"
        if not value[:1].isupper() or shouted or words[0] in _words("no-name-of-oneself")
        else "fine"
    )


def _of_having(subject: str, value: str, words: list[str]) -> Plausibility:
    """A thing that lasts: not "a realtor coming to look at the house"."""
    if words[0] == "to":
        return "no"
    ends = _words("noun-ends") - {"and", "or"}
    nouns = words[: next((n for n, word in enumerate(words) if n and word in ends), len(words))]
    if any(word.endswith("ing") and words[n + 2 :] for n, word in enumerate(words[1:])) and len(
        nouns
    ) == len(words):
        return "no"
    kept = vocabulary("extraction", "belongings").isdisjoint(nouns)
    return "no" if kept and nouns != words else "fine"


def _of_a_wish(subject: str, value: str, words: list[str]) -> Plausibility:
    """A plan of life: "win the tablet" is one of the moment."""
    verbs = [word for word in words if word not in ("to", "just", "also", "go", "and")]
    if len(verbs) == 1 and verbs[0] in _words("transitive-verbs"):
        return "no"  # "to visit": what?
    if (
        words[0] in _words("fancied-verbs")
        or words[-1] in _words("pro-nouns")
        or value[-1].isdigit()
    ):
        return "no"
    of_the_moment = words[0] in _words("momentary-verbs") and words[1:2] in (
        ["the"],
        ["this"],
        ["that"],
    )
    return "no" if of_the_moment else "fine"


def _of_being(subject: str, value: str, words: list[str]) -> Plausibility:
    """A role, a trait or an origin; of what is no person nothing else."""
    if words[-1] in _words("unfinished") or words[-1] in vocabulary("extraction", "favourites"):
        return "no"
    if _is_role(words) or " ".join(words) in _traits():
        if words[-1] in ("person", "human", "people") and (
            len(words) < _FEWEST_OF_THINGS or words[-2] in _words("any-persons")
        ):
            return "no"
        return _of_a_role(subject, words)
    own = subject in (USER, TEAM) or subject.startswith(f"{USER}'s ")
    if own:
        return "no" if words[0] in _words("determiners") else "doubtful"
    return _of_a_thing(subject, value, words)


def _of_a_thing(subject: str, value: str, words: list[str]) -> Plausibility:
    """Of what is no person: whose it is, or a number or name that it has ("The staging port is 8443")."""
    if "team's" in words:
        return "fine"
    if "their" in words:
        return "no" if not subject[:1].isupper() else "doubtful"
    first = subject.split()[0].lower()
    if first in vocabulary("extraction", "ordinals") or first in ("mine", "yours", "theirs"):
        return "no"
    told = words[0] not in _words("determiners") and any(
        part[:1].isupper() or part[:1].isdigit() for part in value.split()
    )
    return "doubtful" if told or not subject[:1].isupper() else "no"


def _of_a_role(subject: str, words: list[str]) -> Plausibility:
    """Who somebody is: of oneself and one's relatives; of others often what everybody knows, or a story."""
    own = subject in (USER, TEAM) or "'s " in subject
    if words[0] == "the":
        ranked = not _words("ranks").isdisjoint(words)
        return "fine" if own and ranked else "doubtful"
    if {"kinda", "kind", "type", "sort", "least"} & set(words):
        return "doubtful"  # "an all times kinda person"
    known = vocabulary("linking", "occupations") | vocabulary("extraction", "relations", "traits")
    return (
        "fine" if own or not known.isdisjoint(words) or " ".join(words) in _traits() else "doubtful"
    )


def _is_role(words: list[str]) -> bool:
    """Whether the noun phrase that begins a value names a role of persons."""
    end = next((n for n, word in enumerate(words) if n and word in _words("noun-ends")), len(words))
    return any(_names_role(word) for word in words[max(end - 3, 0) : end])


def _names_role(word: str) -> bool:
    if word in _words("no-roles"):
        return False
    known = vocabulary("linking", "occupations") | vocabulary("extraction", "relations", "traits")
    by_ending = len(word) >= _FEWEST_OF_A_SUFFIX and word.endswith(tuple(_words("role-endings")))
    return word in known or word in _words("roles") or by_ending


def _outside(words: list[str], name: str) -> bool:
    """Whether a word says more than those of a list."""
    light = vocabulary("negation", "fillers") | vocabulary("acts", "openers") | _words("fillers")
    return any(word not in light and word not in _words(name) for word in words)


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(lexicon()["plausible"][name])


@cache
def _traits() -> frozenset[str]:
    return vocabulary("extraction", "traits")


_CHECKS: dict[str, Any] = {
    **dict.fromkeys(("likes", "dislikes", "prefers", "uses", "owns"), _of_taste),
    **dict.fromkeys(("studies", "is-learning", "teaches"), _of_study),
    **dict.fromkeys(("eats", "drinks"), _of_eating),
    "knows": _of_knowing,
    "no-longer-is": _of_a_state,
    "no-longer-has": _of_having,
    "age": _of_age,
    "works-at": _of_employment,
    **dict.fromkeys(
        ("lives-in", "lives-near", "comes-from", "grew-up-in", "was-born-in"), _of_place
    ),
    **dict.fromkeys(("wants-to", "is-trying-to", "plans-to", "hopes-to"), _of_a_wish),
    "plays": _of_playing,
    "works-on": _of_work,
    "speaks": _of_language,
    "name": _of_name,
    "has": _of_having,
    "is": _of_being,
}
