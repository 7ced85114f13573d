"""How sure a fact is that was read by rules: by its rule, by what its value says, and by how it was said.

The shares stand in ``english.toml`` under ``confidence``. They come from proposals of development chats that were read
one by one (``experiments/judgements/extraction.jsonl``): the share of useful ones of a rule shrinks towards that of its
sort (``experiments/fit_extraction_confidence.py``). The table holds these shares or less; a rule of which one to three
cases were judged, none useful, has .5. Changes of life keep what their rule gives. In a message to an assistant, signs
such as a role or a pasted text lower the odds (``circumstances.py``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from memlab.kernel.english import holds, lexicon, padded, phrases, vocabulary, words_of
from memlab.subjects.extraction.circumstances import Setting
from memlab.subjects.extraction.fact import DOUBTFUL, LOWEST, TEAM, USER, Fact

__all__ = ["confidence_of", "kept_of", "signs_of"]

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
        return signs if fact.confidence <= DOUBTFUL else (*signs, of_others)  # a doubtful one is as low already
    known = "named" if _MARKED.search(fact.subject) else "unnamed"
    return (*signs, known, "thing") if thing else (*signs, known)


def kept_of(facts: Iterable[Fact], setting: Setting | None, *, answered: bool = False) -> list[Fact]:
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
        odds = fact.confidence / (1 - fact.confidence) * math.prod(weights.get(sign, 1.0) for sign in signs)
        sure = round(odds / (1 + odds), 3)
        if sure >= LOWEST:
            kept.append(replace(fact, confidence=sure))
    return kept


def _says_little(value: str) -> bool:
    """Whether a value of several words has at most one that says something."""
    words = words_of(value)
    content = [word for word in words if word not in _plain() and len(word) > 1]
    return not content and not any(word.isdigit() for word in words) if len(words) < _LONG else len(content) <= 1


_LONG = 3


def _is_specific(value: str) -> bool:
    """Whether a plan or wish names something: a name, a number, or enough words that say what."""
    named = any(part[:1].isupper() or part[:1].isdigit() for part in value.split()[1:])
    return named or sum(word not in _plain() for word in words_of(value)) >= _LONG + 1


@cache
def _plain() -> frozenset[str]:
    light = vocabulary("negation", "fillers") | vocabulary("extraction", "contentless")
    return light | vocabulary("acts", "first-person", "third-person")
