"""Signs that the words of a user's message may not be about the user.

Users talk about themselves in short messages, or at the beginning of long messages. Roles, pasted
texts, stories and exercises use "I" and "the" for others. The signs are phrases under
``circumstances`` in ``english.toml``. The weights by which they change a confidence are under
``confidence.circumstances``.
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

_HEAD, _TAIL = 600, 300
"""The lengths in characters of the beginning and the end of a message.

Instructions about a pasted text are there.
"""

_LONG_MESSAGE = 1_500
"""The length in characters from which a message is long and probably contains a text.

In development chats, 98% of the users' messages are shorter.
"""

_TOLD_FIRST = 500
"""The characters at the beginning of a long message that are the writer's own words."""

_LABEL = re.compile(r"(?:^|\n)[ \t]*(?:\*\*)?[A-Z][\w .'-]{0,24}(?:\*\*)?:[ \t]*\Z")
"""A pattern of a speaker's name at the beginning of a line, as in "User: I like hiking"."""

# Lines of code outside fenced blocks, and how many of them show that a message contains code.
_CODE = re.compile(r"[;{}]\s*$|=>|^[^\S\n]*(?://|/\*|#include|import )", re.MULTILINE)
_FEWEST_CODE_LINES = 2

_TIMES = re.compile(r"(?:^|\n|\b\d\d:)\d?\d:\d\d\b")
"""A pattern of the times in a transcript, as in "00:01 Hi, my name is ..."."""

_FEWEST_TIMES = 2
"""The number of times from which a text counts as a transcript; a single time may be a clock."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The signs of one message that its words may not be about its writer.

    Attributes
    ----------
    text
        The message.
    role_play
        Whether the message plays a role, or an earlier message began a role.
    persona
        Whether the message asks its reader to take on a persona.
    material
        Whether the message contains a text to be worked on.
    composed
        Whether the message orders a story, scene, exercise or another text.
    code
        Whether the message contains code or the output of a program.
    """

    text: str
    role_play: bool
    persona: bool
    material: bool
    composed: bool
    code: bool

    def signs(self, start: int) -> tuple[str, ...]:
        """Return the names of the signs that apply at a character position of the message."""
        long = len(self.text) > _LONG_MESSAGE
        signs = {
            "played": self.role_play,
            "persona": self.persona,
            "material": self.material and len(self.text) > _TOLD_FIRST,
            "composed": self.composed,
            "code": self.code,
            "long": long,
            "far": long and start > _TOLD_FIRST,
            "labelled": _LABEL.search(self.text, max(0, start - 40), start) is not None,
        }
        return tuple(name for name, holds_here in signs.items() if holds_here)


def read_setting(text: str, *, role_play: bool = False) -> Setting:
    """Return the signs in a user's message that lower confidence, such as a pasted text.

    Parameters
    ----------
    text
        The message.
    role_play
        Whether an earlier message began a role-play.

    Examples
    --------
    >>> read_setting("Let's play a game. I am a wizard.").signs(19)
    ('played',)
    """
    low = _pad_words(
        text[:_HEAD] if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} {text[-_TAIL:]}"
    )
    lines = len(code_lines(text)) + len(_CODE.findall(text))
    return Setting(
        text,
        role_play or holds(low, phrases("circumstances", "roles")),
        holds(low, phrases("circumstances", "personas")),
        holds(low, phrases("circumstances", "material"))
        or len(_TIMES.findall(text)) >= _FEWEST_TIMES,
        holds(low, phrases("circumstances", "orders"))
        and holds(low, phrases("circumstances", "texts")),
        lines >= _FEWEST_CODE_LINES,
    )


def begins_role(text: str) -> bool:
    """Return whether a message asks the assistant to play a role or a game."""
    return holds(_pad_words(text[: _HEAD + _TAIL]), phrases("circumstances", "roles"))


def find_role_play(messages: Sequence[Message]) -> frozenset[int]:
    """Return the numbers of all messages from the start of the first role-play.

    The result is empty if the messages have named speakers.
    """
    if any(message.speaker is not None for message in messages):
        return frozenset()
    numbers: Iterable[int] = (
        number
        for number, message in enumerate(messages)
        if message.role == "user" and begins_role(message.text)
    )
    return frozenset(range(next(iter(numbers), len(messages)), len(messages)))


def _pad_words(text: str) -> str:
    """Return a text's words in lower case, with a space before and after each word."""
    return padded(words_of(text))


# The confidence of a fact depends on its rule, on its value, and on its sentence.
#
# The shares are in ``english.toml`` under ``confidence``. They come from proposals of development chats that were
# judged one by one (``experiments/judgements/extraction.jsonl``). The share of useful proposals of a rule shrinks
# towards that of its sort (``experiments/fit_extraction_confidence.py``). The table has these shares or lower ones. A
# rule with one to three judged cases, none of them useful, has .5. Changes of life keep the confidence of their rule.
# In a message to an assistant, signs such as a role or a pasted text lower the odds.


# The bounds of a confidence: no rule is certain, and no rule is useless.
_MOST, _LEAST = 0.97, 0.2
# The predicates of favourites, which share one entry of the table.
_FAVOURITES = ("favorite-", "favourite-")

_BRIEF = 200
"""The length in characters up to which a message contains no pasted text.

So even a fact about a thing may be the purpose of the message.
"""

# A sign that a subject is specific: a capital letter, a digit or a possessive.
_MARKED = re.compile(r"[A-Z\d]|'s |\u2019s ")


def estimate_confidence(
    predicate: str, value: str, sentence: str, *, rule: float, goal: bool
) -> float:
    """Return the confidence of a fact, from 0.2 to 0.97.

    Parameters
    ----------
    predicate, value
        The predicate and the value of the fact.
    sentence
        The sentence that states the fact.
    rule
        The confidence of the rule, for predicates that have no entry in the table.
    goal
        Whether the fact is a plan or a wish.

    Examples
    --------
    >>> estimate_confidence("likes", "aerial yoga", "I also enjoy aerial yoga", rule=0.95, goal=False)
    0.91
    >>> vague = "being around friends and having such a great time"
    >>> estimate_confidence("likes", vague, "I love it", rule=0.95, goal=False)
    0.5
    """
    shares = lexicon()["confidence"]
    confidence = min(rule, float(shares["rules"].get(predicate, rule)))
    if predicate.startswith(_FAVOURITES):
        confidence = min(confidence, float(shares["favourites"]))
    low = padded(words_of(sentence)).replace(" any kind of ", " ")  # this phrase is not a hedge
    if holds(low, phrases("confidence", "hedges")):
        confidence *= shares["hedged"]
    if _is_vague(value):
        confidence = min(confidence, shares["empty"])
    elif goal and not _is_specific(value):
        confidence = min(confidence, shares["unspecific-goal"])
    return float(round(min(max(confidence, _LEAST), _MOST), 3))


def list_signs(fact: Fact, setting: Setting, *, answered: bool = False) -> tuple[str, ...]:
    """Return the names of the signs that lower a fact's confidence.

    Parameters
    ----------
    fact
        The fact, from a user's message to an assistant.
    setting
        The signs of the whole message.
    answered
        Whether the fact comes from an answer and its question, so that it has no position.
    """
    signs = setting.signs(0 if answered else fact.start)
    is_brief = len(setting.text) <= _BRIEF
    if fact.subject == TEAM:
        return signs if is_brief else (*signs, "team")
    if fact.subject.split("'s ", 1)[0] == USER:
        return signs
    is_thing = fact.kind == "fact"
    if is_brief:
        other_sign = "thing-in-brief" if is_thing else "person-in-brief"
        # a doubtful fact already has a low confidence
        return signs if fact.confidence <= DOUBTFUL else (*signs, other_sign)
    name_sign = "named" if _MARKED.search(fact.subject) else "unnamed"
    return (*signs, name_sign, "thing") if is_thing else (*signs, name_sign)


def adjust_confidence(
    facts: Iterable[Fact], setting: Setting | None, *, answered: bool = False
) -> list[Fact]:
    """Lower the confidence of facts by signs in their message, and drop doubtful facts.

    Each sign multiplies the odds of a fact by its weight. Facts below the minimum confidence are
    dropped.

    Parameters
    ----------
    facts
        The facts of one message.
    setting
        The signs of the message. With None, as for named people, the facts are unchanged.
    answered
        Whether the facts come from an answer and its question.
    """
    if setting is None:
        return list(facts)
    weights = lexicon()["confidence"]["circumstances"]
    result = []
    for fact in facts:
        signs = list_signs(fact, setting, answered=answered)
        odds = (
            fact.confidence
            / (1 - fact.confidence)
            * math.prod(weights.get(sign, 1.0) for sign in signs)
        )
        confidence = round(odds / (1 + odds), 3)
        if confidence >= LOWEST:
            result.append(replace(fact, confidence=confidence))
    return result


def _is_vague(value: str) -> bool:
    """Return whether a value has too little content.

    A short value is vague without a content word or number, a longer one with at most one content word.
    """
    words = words_of(value)
    content = [word for word in words if word not in _empty_words() and len(word) > 1]
    return (
        not content and not any(word.isdigit() for word in words)
        if len(words) < _SEVERAL_WORDS
        else len(content) <= 1
    )


_SEVERAL_WORDS = 3
"""The number of words from which a value needs more than one content word."""


def _is_specific(value: str) -> bool:
    """Return whether a plan has a capital or digit after its first word, or several content words."""
    is_named = any(part[:1].isupper() or part[:1].isdigit() for part in value.split()[1:])
    return (
        is_named
        or sum(word not in _empty_words() for word in words_of(value)) >= _SEVERAL_WORDS + 1
    )


@cache  # the tables of the language do not change
def _empty_words() -> frozenset[str]:
    """Return the words without content, such as fillers and pronouns."""
    light = vocabulary("negation", "fillers") | vocabulary("extraction", "contentless")
    return light | vocabulary("acts", "first-person", "third-person")
