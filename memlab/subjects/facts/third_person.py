"""What someone says about themselves, as another says it: "I like Python" becomes "likes Python". English alone.

Only beginnings that leave no doubt are turned; any other text stays a quotation.
"""

from __future__ import annotations

import re
from functools import cache

from memlab.kernel.english import lexicon

__all__ = ["of_oneself", "third_person"]

_SENTENCES = re.compile(r"[.!?]\s")


def of_oneself(text: str) -> bool:
    """Whether a text speaks in the first person."""
    return _pronoun().search(text) is not None


def third_person(text: str) -> str | None:
    """What follows the name when another says it; None where that is not certain.

    >>> [third_person(text) for text in ("I am a baker.", "My name is Ann", "I study bees", "I ran", "I like my bike")]
    ['is a baker', 'is called Ann', 'studies bees', None, None]
    """
    for opening, verb in _openings():
        found = opening.match(text)
        if found:
            rest = found["rest"].rstrip(".! ")
            return None if of_oneself(rest) or _SENTENCES.search(rest) else f"{verb or _verb(found['verb'])} {rest}"
    return None


def _verb(word: str) -> str:
    """The verb as another person says it."""
    verb = word.lower()
    return _verbs().get(verb, verb)


@cache
def _verbs() -> dict[str, str]:
    """Verbs as one says them of oneself, and as another says them."""
    said = lexicon()["extraction"]["verbs"].items()
    first = {own.split()[0]: other.split()[0] for own, (other, *_) in said if own.split()[0] not in ("am", "are")}
    others: dict[str, str] = lexicon()["first-person"]["verbs"]
    return first | others


@cache
def _openings() -> list[tuple[re.Pattern[str], str | None]]:
    """Openings that can be turned, each with the words that take its place; None for the verb that follows it."""
    table = lexicon()["first-person"]
    found: list[tuple[re.Pattern[str], str | None]] = []
    for opening, replacement in table["openings"].items():
        words = re.escape(opening).replace("'", "['\u2019]")
        found.append((re.compile(rf"{words}\s+(?P<rest>.+)", re.IGNORECASE), replacement))
    for subjects, verbs in (
        (table["own-subjects"], _verbs()),
        (table["other-subjects"], _verbs().values()),
    ):
        start, verb = "|".join(subjects), "|".join(verbs)
        found.append((re.compile(rf"(?:{start}) (?P<verb>{verb})\s+(?P<rest>.+)", re.IGNORECASE), None))
    return found


@cache
def _pronoun() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(lexicon()['first-person']['pronouns'])})\b", re.IGNORECASE)
