"""Under what circumstances a user's message states something: as talk, in a role, in a pasted text, next to code.

What somebody tells an assistant of themselves stands in short messages, or at the beginning of long ones. Roles, texts
that are handed over to be worked on, stories and exercises say "I" and "the" of others. The signs are phrases of
``english.toml`` under ``circumstances``, what each leaves of a confidence under ``confidence.circumstances``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from memlab.io.formats import Message
from memlab.kernel.english import holds, lexicon, padded, phrases, vocabulary, words_of
from memlab.subjects.extraction.clause import DOUBTFUL, LOWEST, TEAM, USER, Fact
from memlab.subjects.reading.sentences import code_lines

__all__ = [
    "Setting",
    "begins_a_role",
    "confidence_of",
    "kept_of",
    "roles_played",
    "setting_of",
    "signs_of",
]


_HEAD, _TAIL = 600, 300
"""Characters of a message at its beginning and end that say what is to be done with the text between them."""

_LONG_MESSAGE = 1_500
"""Characters from which on a message holds a text; of the development chats' messages of users 98% are shorter."""

_TOLD_FIRST = 500
"""Characters at the beginning of a long message that are its writer's own words."""

_LABEL = re.compile(r"(?:^|\n)[ \t]*(?:\*\*)?[A-Z][\w .'-]{0,24}(?:\*\*)?:[ \t]*\Z")
"""The name of who speaks, at the beginning of a line: "User: I like hiking"."""

_CODE = re.compile(r"[;{}]\s*$|=>|^\s*(?://|/\*|#include|import )", re.MULTILINE)
_FEWEST_CODE_LINES = 2

_TIMES = re.compile(r"(?:^|\n|\b\d\d:)\d?\d:\d\d\b")
"""The times of a recording that was written down: "00:01 Hi, my name is ..."."""

_FEWEST_TIMES = 2


@dataclass(frozen=True, slots=True)
class Setting:
    """What a message is, apart from what it states.

    Attributes
    ----------
    text
        The message.
    played
        Whether a role is played in it, or has been since an earlier message.
    persona
        Whether its listener is asked to be somebody.
    material
        Whether it hands over a text to be worked on.
    composed
        Whether it orders a story, a scene, an exercise or another text.
    code
        Whether it holds code or the output of a program.
    """

    text: str
    played: bool
    persona: bool
    material: bool
    composed: bool
    code: bool

    def signs(self, start: int) -> tuple[str, ...]:
        """Return the names of the circumstances that hold at a place of the message."""
        long = len(self.text) > _LONG_MESSAGE
        found = {
            "played": self.played,
            "persona": self.persona,
            "material": self.material and len(self.text) > _TOLD_FIRST,
            "composed": self.composed,
            "code": self.code,
            "long": long,
            "far": long and start > _TOLD_FIRST,
            "labelled": _LABEL.search(self.text, max(0, start - 40), start) is not None,
        }
        return tuple(name for name, holds_here in found.items() if holds_here)


def setting_of(text: str, *, played: bool = False) -> Setting:
    """Return the setting of a user's message.

    Parameters
    ----------
    text
        The message.
    played
        Whether an earlier message began a role.

    Examples
    --------
    >>> setting_of("Let's play a game. I am a wizard.").signs(19)
    ('played',)
    """
    low = _low(text[:_HEAD] if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} {text[-_TAIL:]}")
    lines = len(code_lines(text)) + len(_CODE.findall(text))
    return Setting(
        text,
        played or holds(low, phrases("circumstances", "roles")),
        holds(low, phrases("circumstances", "personas")),
        holds(low, phrases("circumstances", "material"))
        or len(_TIMES.findall(text)) >= _FEWEST_TIMES,
        holds(low, phrases("circumstances", "orders"))
        and holds(low, phrases("circumstances", "texts")),
        lines >= _FEWEST_CODE_LINES,
    )


def begins_a_role(text: str) -> bool:
    """Return whether a message asks its listener to play a role, or begins a game."""
    return holds(_low(text[: _HEAD + _TAIL]), phrases("circumstances", "roles"))


def roles_played(messages: Sequence[Message]) -> frozenset[int]:
    """Return the numbers of the messages in a conversation from its first role on; none among people by their names."""
    if any(message.speaker is not None for message in messages):
        return frozenset()
    numbers: Iterable[int] = (
        number
        for number, message in enumerate(messages)
        if message.role == "user" and begins_a_role(message.text)
    )
    first = next(iter(numbers), len(messages))
    return frozenset(range(first, len(messages)))


def _low(text: str) -> str:
    return padded(words_of(text))


# How sure a fact is that was read by rules: by its rule, by what its value says, and by how it was said.
#
# The shares stand in ``english.toml`` under ``confidence``. They come from proposals of development chats that were
# read one by one (``experiments/judgements/extraction.jsonl``): the share of useful ones of a rule shrinks towards
# that of its sort (``experiments/fit_extraction_confidence.py``). The table holds these shares or less; a rule of
# which one to three cases were judged, none useful, has .5. Changes of life keep what their rule gives. In a message
# to an assistant, signs such as a role or a pasted text lower the odds (``circumstances.py``).


_MOST, _LEAST = 0.97, 0.2
_FAVOURITES = ("favorite-", "favourite-")

_BRIEF = 200
"""Characters of a message that is no text: what it says of another thing may be the reason why it was written."""

_MARKED = re.compile(r"[A-Z\d]|'s |\u2019s ")


def confidence_of(predicate: str, value: str, said: str, *, rule: float, goal: bool) -> float:
    """Return the confidence of a fact.

    Parameters
    ----------
    predicate, value
        Of the fact.
    said
        The sentence that states it.
    rule
        What the rule gives where the table has nothing on the predicate: less for what is said of others.
    goal
        Whether the fact is a plan or a wish.

    Returns
    -------
    float
        Between 0.2 and 0.97.

    Examples
    --------
    >>> confidence_of("likes", "aerial yoga", "I also enjoy aerial yoga", rule=0.95, goal=False)
    0.91
    >>> confidence_of("likes", "being around friends and having such a great time", "I love it", rule=0.95, goal=False)
    0.5
    """
    shares = lexicon()["confidence"]
    sure = min(rule, float(shares["rules"].get(predicate, rule)))
    if predicate.startswith(_FAVOURITES):
        sure = min(sure, float(shares["favourites"]))
    low = padded(words_of(said)).replace(" any kind of ", " ")  # all of them, and no doubt
    if holds(low, phrases("confidence", "hedges")):
        sure *= shares["hedged"]
    if _says_little(value):
        sure = min(sure, shares["empty"])
    elif goal and not _is_specific(value):
        sure = min(sure, shares["unspecific-goal"])
    return float(round(min(max(sure, _LEAST), _MOST), 3))


def signs_of(fact: Fact, setting: Setting, *, answered: bool = False) -> tuple[str, ...]:
    """Return the names of the circumstances that tell against a fact of a user's message to an assistant.

    Parameters
    ----------
    fact
        The fact, with its place in the message.
    setting
        The message.
    answered
        Whether the fact was read of an answer and its question, and has no place in the message.
    """
    signs = setting.signs(0 if answered else fact.start)
    brief = len(setting.text) <= _BRIEF
    if fact.subject == TEAM:
        return signs if brief else (*signs, "team")
    if fact.subject.split("'s ", 1)[0] == USER:
        return signs
    thing = fact.kind == "fact"
    if brief:
        of_others = "thing-in-brief" if thing else "person-in-brief"
        # a doubtful one is as low already
        return signs if fact.confidence <= DOUBTFUL else (*signs, of_others)
    known = "named" if _MARKED.search(fact.subject) else "unnamed"
    return (*signs, known, "thing") if thing else (*signs, known)


def kept_of(
    facts: Iterable[Fact], setting: Setting | None, *, answered: bool = False
) -> list[Fact]:
    """Return the facts with their confidence under the circumstances, without those below the floor.

    The odds of the rule's share are multiplied with the weight of each sign.

    Parameters
    ----------
    facts
        The facts of one message.
    setting
        The message; None where its circumstances say nothing, as among people by their names.
    answered
        Whether they were read of an answer and its question.
    """
    if setting is None:
        return list(facts)
    weights = lexicon()["confidence"]["circumstances"]
    kept = []
    for fact in facts:
        signs = signs_of(fact, setting, answered=answered)
        odds = (
            fact.confidence
            / (1 - fact.confidence)
            * math.prod(weights.get(sign, 1.0) for sign in signs)
        )
        sure = round(odds / (1 + odds), 3)
        if sure >= LOWEST:
            kept.append(replace(fact, confidence=sure))
    return kept


def _says_little(value: str) -> bool:
    """Whether a value of several words has at most one that says something."""
    words = words_of(value)
    content = [word for word in words if word not in _plain() and len(word) > 1]
    return (
        not content and not any(word.isdigit() for word in words)
        if len(words) < _SEVERAL_WORDS
        else len(content) <= 1
    )


_SEVERAL_WORDS = 3


def _is_specific(value: str) -> bool:
    """Whether a plan or wish names something: a name, a number, or enough words that say what."""
    named = any(part[:1].isupper() or part[:1].isdigit() for part in value.split()[1:])
    return named or sum(word not in _plain() for word in words_of(value)) >= _SEVERAL_WORDS + 1


@cache
def _plain() -> frozenset[str]:
    light = vocabulary("negation", "fillers") | vocabulary("extraction", "contentless")
    return light | vocabulary("acts", "first-person", "third-person")
