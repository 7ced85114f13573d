"""The types of entities for which none was declared, inferred from the facts that name them.

A predicate says what it is about: who lives in something is a person and what they live in a place, what uses something
is a project. The inference is a view over the facts: nothing of it is stored, so that an edit or a purge changes it
with the facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from memlab.kernel.english import lexicon, table
from memlab.kernel.state import State, entity_key

__all__ = ["inferred_types"]

_PEOPLE = {"user": "person", "team": "organization"}
_GONE = ("purged", "retracted", "deleted")


def inferred_types(state: State) -> dict[str, str]:
    """Return the types of the entities that facts name, by the key of the name.

    Parameters
    ----------
    state
        The state of a lab.

    Returns
    -------
    dict
        For each name the type that most of its facts speak for; a tie goes to the type that was seen first.
    """
    names = state.names
    subjects, objects, predicates = (names[name] for name in ("subject", "object", "predicate"))
    rows = np.flatnonzero((predicates.codes >= 0) & (subjects.codes >= 0))
    gone = {names["status"].code(word) for word in _GONE}
    triples = Counter(
        (subjects.at(row), predicates.at(row), objects.at(row))
        for row in rows.tolist()
        if int(names["status"].codes[row]) not in gone
    )
    votes: dict[str, Counter[str]] = {}
    for (subject, predicate, value), count in triples.items():
        for name, type in _speak_for(subject or "", predicate or "", value):
            votes.setdefault(entity_key(name), Counter())[type] += count
    return {**{name: found.most_common(1)[0][0] for name, found in votes.items()}, **_PEOPLE}


def _speak_for(subject: str, predicate: str, value: str | None) -> Iterable[tuple[str, str]]:
    """What a fact says of the types of what it names."""
    types = lexicon()["entities"]["types"].get(predicate.partition(":")[0])
    if types is None and predicate in table("extraction", "relations"):
        types = ["person", "thing" if predicate in lexicon()["entities"]["pets"] else "person"]
    owner, owned, noun = subject.rpartition("'s ")
    if owned:
        person = noun in table("extraction", "relations") and noun not in lexicon()["entities"]["pets"]
        yield subject, "person" if person else "thing"
        yield owner, "person"
    elif types is not None:
        yield subject, types[0]
    if value is not None and types is not None and types[1] != "-":
        yield value, types[1]
