"""How sure a fact is that was read by rules: by its rule, by what its value says, and by how it was said.

The shares stand in ``english.toml`` under ``confidence``. They come from proposals of development chats that were read
one by one (``experiments/judgements/extraction.jsonl``): the share of useful ones of a rule shrinks towards that of its
sort (``experiments/fit_extraction_confidence.py``). The table holds these shares or less; a rule of which one to three
cases were judged, none useful, has .5. Changes of life keep what their rule gives.
"""

from __future__ import annotations

from functools import cache

from memlab.english import holds, lexicon, padded, phrases, vocabulary, words_of

__all__ = ["confidence_of"]

_MOST, _LEAST = 0.97, 0.2
_FAVOURITES = ("favorite-", "favourite-")


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
    table = lexicon()["confidence"]
    sure = min(rule, float(table["rules"].get(predicate, rule)))
    if predicate.startswith(_FAVOURITES):
        sure = min(sure, float(table["favourites"]))
    low = padded(words_of(said))
    if holds(low, phrases("confidence", "hedges")):
        sure *= table["hedged"]
    if _says_little(value):
        sure = min(sure, table["empty"])
    elif goal and not _is_specific(value):
        sure = min(sure, table["unspecific-goal"])
    return float(round(min(max(sure, _LEAST), _MOST), 3))


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
