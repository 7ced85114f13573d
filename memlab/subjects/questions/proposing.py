"""Rules that turn stored facts and simple statements into questions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.kernel.english import STOP_WORDS, table
from memlab.kernel.hooks import list_hooks
from memlab.kernel.state import State
from memlab.subjects.questions.rows import Row

_LONGEST = 200
"""The maximum characters of a text that is read: longer ones seldom state a single thing."""

_SUREST = 0.8
"""The minimum confidence of a statement, above that of guesses such as "X is Y" (0.5 and 0.6)."""


# The file never changes while memlab runs.
@cache
def _templates() -> dict[str, dict[str, Any]]:
    """Return the tables in ``questions.toml``, which is read once per process."""
    return tomllib.loads(Path(__file__).with_name("questions.toml").read_text(encoding="utf-8"))


_PREPOSITIONS = ("to", "on", "with", "in", "from", "for")
"""Last words of predicates that a verb begins, such as "works-on"."""


def question_of(subject: str, predicate: str) -> str | None:
    """Return a question to which a fact is the answer, or None if no rule applies.

    >>> question_of("Ana", "lives-in"), question_of("the user", "prefers"), question_of("Ana", "dog")
    ('Where does Ana live?', 'What does the user prefer?', "What is Ana's dog?")
    """
    subject = {"user": "the user", "team": "the team"}.get(subject, subject)
    templates = _templates()
    # "is" and "has" say too little to name one memory.
    if predicate in templates["other"]["skipped"]:
        return None
    if predicate in templates["predicates"]:
        return str(templates["predicates"][predicate]).format(subject)
    verb, *rest = predicate.split("-")
    # A question about a denial would ask for something that is false.
    if rest and verb in ("is", "has", "was", "does", "prefers"):
        return None
    verbs = templates["verbs"]
    if verb in verbs or (verb.endswith("s") and not rest) or (rest and rest[-1] in _PREPOSITIONS):
        base = verbs.get(verb) or verb.removesuffix("s")
        return f"What does {subject} {' '.join([base, *rest])}?"
    noun = " ".join([verb, *rest])
    person = noun in table("extraction", "relations") and noun not in templates["other"]["pets"]
    return f"{'Who' if person else 'What'} is {subject}'s {noun}?"


def propose_rows(
    state: State, limit: int, existing: Collection[Any], removed: Collection[Any] = ()
) -> list[Row]:
    """Return at most ``limit`` questions, each of which one active memory answers.

    Queries of ``existing`` questions are left out, and the ``removed`` pairs of a query and the
    memories that it wants.
    """
    answers: dict[Any, list[Row]] = {}
    for row in _rows_of_facts(state):
        answers.setdefault(row.query.casefold(), []).append(row)
    queries = {query.casefold() for query, *_ in existing}
    single = [
        rows[0]
        for query, rows in answers.items()
        if len(rows) == 1 and query not in queries and (query, rows[0].wants) not in removed
    ]
    facts = _spread(single, limit)
    answered = {row.wants for row in facts}
    phrases = [
        row
        for row in _rows_of_phrases(state)
        if row.wants not in answered
        and row.query.casefold() not in queries
        and (row.query.casefold(), row.wants) not in removed
    ]
    return [*facts, *_spread(phrases, limit - len(facts))]


def _spread(rows: list[Row], limit: int) -> list[Row]:
    """Return at most ``limit`` rows, evenly spaced."""
    if len(rows) <= limit:
        return rows
    return [rows[index] for index in np.linspace(0, len(rows) - 1, limit).astype(int).tolist()]


# A noun phrase of two or three words, up to a comma, the end of a sentence or a preposition.
_PHRASE = re.compile(
    r"\b(?:my|our|the|an?) ((?:[a-z'-]{3,} ){1,2}[a-z'-]{3,})(?=[.,!?;]| (?:and|with|for|in|at|on|of|to|from)\b)"
)


# What a chat puts in place of a picture: its words are a model's, not the speaker's.
_CAPTION = re.compile(r"\[[^\[\]]*\]")


def _names_one_thing(phrase: str) -> bool:
    """Return whether a phrase is a noun with attributes rather than a clause."""
    words = phrase.split()
    other = _templates()["other"]
    vague = set(other["vague"])
    # "the store going", "the notepad attached" and "the fam's small" are clauses.
    return not (
        "'" in phrase
        or not STOP_WORDS["english"].isdisjoint(words)
        or words[0] in other["opinions"]
        or not vague.isdisjoint(words[1:])
        or words[-1].endswith(("going", "ed", "ly"))
    )


def _rows_of_phrases(state: State) -> list[Row]:
    """Return a question for each non-private message of a person with a noun phrase that no other message has."""
    by_phrase: dict[str, Row | None] = {}
    active = state.memories().filter(pl.col("status") == "active")
    for id, text, speaker, project, visibility in active.select(
        "id", "text", "speaker", "project", "visibility"
    ).iter_rows():
        for phrase in set(_PHRASE.findall(_CAPTION.sub("", text or "").lower())):
            usable = speaker and speaker != "assistant" and visibility != "private"
            row = Row(f"Memory {id}", f"What did {speaker} say about the {phrase}?", (id,), project)
            is_new = phrase not in by_phrase and _names_one_thing(phrase)
            by_phrase[phrase] = row if usable and is_new else None
    return list({row.wants: row for row in by_phrase.values() if row is not None}.values())


def _rows_of_facts(state: State) -> Iterator[Row]:
    """Yield a question for each fact that an active memory contains or states."""
    names = ("id", "text", "subject", "predicate", "speaker", "project", "visibility", "creator")
    active = state.memories().filter(pl.col("status") == "active").select(names)
    for id, text, subject, predicate, speaker, project, visibility, creator in active.iter_rows():
        pairs = {(subject, predicate)} if subject and predicate else set(_read_pairs(text, speaker))
        # A question quotes a private memory, so it belongs to the memory's creator.
        viewer = creator if visibility == "private" else None
        for own, relation in sorted(pairs):
            query = question_of(own, relation)
            if query is not None:
                yield Row(f"Memory {id}", query, (id,), project, viewer)


def _read_pairs(text: str | None, speaker: str | None) -> Iterator[tuple[str, str]]:
    """Yield the subject and predicate of each certain statement in a text."""
    if not text or len(text) > _LONGEST or speaker == "assistant" or text.rstrip().endswith("?"):
        return
    for read in list_hooks("read-facts"):
        for fact in read(text, "user"):
            if fact.confidence >= _SUREST:
                own = speaker if fact.subject == "user" and _SELF.search(text) else fact.subject
                yield own or fact.subject, fact.predicate


# Words of a person about oneself; without them, "user" is a word of the text.
_SELF = re.compile(r"\b(?:I|I'm|my|me|we|our)\b", re.IGNORECASE)
