"""What someone says about themselves, told by another: "I like Python" becomes "likes Python". English alone.

Only beginnings that leave no doubt are turned; any other text stays a quotation.
"""

from __future__ import annotations

import re

__all__ = ["of_oneself", "third_person"]

_REGULAR = (
    *("dislike", "enjoy", "hate", "know", "learn", "like", "live", "love", "need", "own", "plan", "play", "prefer"),
    *("speak", "use", "want", "work", "write"),
)
_VERBS = {verb: f"{verb}s" for verb in _REGULAR} | {"have": "has", "study": "studies", "teach": "teaches"}
_TOLD = _VERBS | {told: told for told in _VERBS.values()}

_BEGINNINGS = (
    (re.compile(r"(?:I am|I['\u2019]m)\s+(?P<rest>.+)", re.IGNORECASE), "is"),
    (re.compile(r"My name is\s+(?P<rest>.+)", re.IGNORECASE), "is called"),
    (re.compile(rf"I (?P<verb>{'|'.join(_VERBS)})\s+(?P<rest>.+)", re.IGNORECASE), None),
    (re.compile(r"(?:the )?user is\s+(?P<rest>.+)", re.IGNORECASE), "is"),
    (re.compile(rf"(?:the )?user (?P<verb>{'|'.join(_VERBS.values())})\s+(?P<rest>.+)", re.IGNORECASE), None),
)
_SELF = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our|ours)\b", re.IGNORECASE)
_SENTENCES = re.compile(r"[.!?]\s")


def of_oneself(text: str) -> bool:
    """Whether a text speaks in the first person."""
    return _SELF.search(text) is not None


def third_person(text: str) -> str | None:
    """What follows the name when another tells it; None where that is not certain.

    >>> [third_person(text) for text in ("I am a baker.", "My name is Ann", "I study bees", "I ran", "I like my bike")]
    ['is a baker', 'is called Ann', 'studies bees', None, None]
    """
    for beginning, verb in _BEGINNINGS:
        found = beginning.match(text)
        if found:
            rest = found["rest"].rstrip(".! ")
            said = verb or _TOLD[found["verb"].lower()]
            return None if of_oneself(rest) or _SENTENCES.search(rest) else f"{said} {rest}"
    return None
