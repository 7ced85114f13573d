"""How sure a fact is that was read by rules: by its rule, by what its value says, and by how it was said.

The shares stand in ``english.toml`` under ``confidence``. They come from proposals of development chats that were read
one by one (``experiments/judgements/extraction.jsonl``; ``experiments/extraction_judged.py`` prints the share of right
ones by rule): right ones of a rule plus one, by all plus two, and below that for rules with few.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from memlab.english import holds, lexicon, padded, phrases, vocabulary, words_of
from memlab.subjects.extraction.asserting import table
from memlab.subjects.extraction.circumstances import Setting
from memlab.subjects.extraction.fact import TEAM, USER, Fact

__all__ = ["FLOOR", "confidence_of", "kept_of", "signs_of"]

_MOST, _LEAST = 0.97, 0.2

FLOOR = 0.5
"""Confidence below which a fact of a chat with an assistant is not proposed."""

_CUT = re.compile(r"\s*\(|-\w|[ \t]+(?:that|which|who|based|of|for|to|with)\b")
"""What goes on after a value that ends before its phrase does."""

_OF_FEW = 0.58
"""Confidence of a predicate that no table names and of which few facts are judged: 4 of 8 are useful."""

_BRIEF = 200
"""Characters of a message that is no text: what it says of another thing may be the reason why it was written."""

_OPEN = ("favorite-", "favourite-", "no-longer-", "switched-", "stopped-", "was-", "has-", "is-", "works-", "used-")
"""Beginnings of predicates that several verbs make."""

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
    0.87
    >>> confidence_of("likes", "being around friends and having such a great time", "I love it", rule=0.95, goal=False)
    0.5
    """
    shares = lexicon()["confidence"]
    sure = min(rule, float(shares["rules"].get(predicate, rule)))
    low = padded(words_of(said)).replace(" any kind of ", " ")  # all of them, and no doubt
    if holds(low, phrases("confidence", "hedges")):
        sure *= shares["hedged"]
    if _says_little(value):
        sure = min(sure, shares["empty"])
    elif goal and not _is_specific(value):
        sure = min(sure, shares["unspecific-goal"])
    return float(round(min(max(sure, _LEAST), _MOST), 3))


def signs_of(fact: Fact, setting: Setting, text: str | None) -> tuple[str, ...]:
    """Return the names of the circumstances that tell for or against a fact of a user's message.

    Parameters
    ----------
    fact
        The fact, with its place in the message.
    setting
        The message.
    text
        The text in which the fact has its place; None where it was read of an answer and its question.
    """
    signs = list(setting.signs(fact.start) if text is not None else setting.signs(0))
    if text is not None and _CUT.match(text, fact.stop):
        signs.append("cut")
    if fact.subject == TEAM:
        signs.extend(["team"] if len(setting.text) > _BRIEF else [])
    elif fact.subject.split("'s ", 1)[0] != USER:
        if len(setting.text) <= _BRIEF:
            signs.append("thing-in-brief" if fact.kind == "fact" else "person-in-brief")
        else:
            signs.append("named" if _MARKED.search(fact.subject) else "unnamed")
            if fact.kind == "fact":
                signs.append("thing")
    elif fact.text is None and fact.predicate not in _known_predicates() and not fact.predicate.startswith(_OPEN):
        signs.append("property")
    return tuple(signs)


@cache
def _known_predicates() -> frozenset[str]:
    """The predicates of verbs, relatives and properties that the tables name; "my X is Y" makes others."""
    verbs = {predicate for _, predicate, *_ in table("verbs").values()}
    renamed = set(table("renamed-properties").values())
    named = table("relations") | table("properties") | renamed
    return frozenset(verbs | {one.replace(" ", "-") for one in named} | _changed())


def _changed() -> set[str]:
    """The predicates of changes of life."""
    tables = lexicon()["lifecycle"]
    verbs = [*tables["endings"], *tables["beginnings"]]
    return {"lost", *(verb.replace(" ", "-") for verb in verbs)}


def kept_of(facts: Iterable[Fact], setting: Setting | None, text: str | None) -> list[Fact]:
    """Return the facts with their confidence under the circumstances, without those below the floor.

    Parameters
    ----------
    facts
        The facts of one message.
    setting
        The message; None where its circumstances say nothing, as among people by their names.
    text
        The text in which the facts have their places, None where they were read of an answer and its question.
    """
    if setting is None:
        return list(facts)
    weights = lexicon()["confidence"]["circumstances"]
    kept = []
    for fact in facts:
        signs = signs_of(fact, setting, text)
        shift = sum(weights.get(sign, 0.0) for sign in signs)
        most = _OF_FEW if "property" in signs else _MOST
        odds = math.log(fact.confidence / (1 - fact.confidence)) + shift
        sure = round(min(fact.confidence, most, 1 / (1 + math.exp(-odds))), 3)
        if sure >= FLOOR:
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
