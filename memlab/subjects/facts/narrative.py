"""Narratives: what is known, grouped by entity, in the words of the facts themselves, within a budget of tokens.

Nothing is generated: a fact is its predicate and value in words, another memory its text. The same memories give the
same narrative.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.english import lexicon
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment, first_mention
from memlab.kernel.schema import OF_THE_USER, RECALLABLE
from memlab.kernel.state import Entities, State, entity_key
from memlab.subjects.fact_rows import (
    are_valid_at,
    compute_relevance,
    find_facts,
    have_status,
    phrase_fact,
)
from memlab.subjects.reading.sentences import count_tokens

__all__ = ["USER", "Narrative", "about", "narrative", "of_oneself", "profile", "third_person"]


# What someone says about themselves, as another says it: "I like Python" becomes "likes Python". English alone.
#
# Only beginnings that leave no doubt are turned; any other text stays a quotation.


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
            return (
                None
                if of_oneself(rest) or _SENTENCES.search(rest)
                else f"{verb or _verb(found['verb'])} {rest}"
            )
    return None


def _verb(word: str) -> str:
    """The verb as another person says it."""
    verb = word.lower()
    return _verbs().get(verb, verb)


@cache
def _verbs() -> dict[str, str]:
    """Verbs as one says them of oneself, and as another says them."""
    said = lexicon()["extraction"]["verbs"].items()
    first = {
        own.split()[0]: other.split()[0]
        for own, (other, *_) in said
        if own.split()[0] not in ("am", "are")
    }
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
        found.append(
            (re.compile(rf"(?:{start}) (?P<verb>{verb})\s+(?P<rest>.+)", re.IGNORECASE), None)
        )
    return found


@cache
def _pronoun() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(lexicon()['first-person']['pronouns'])})\b", re.IGNORECASE)


Rows = NDArray[np.int64]

USER = "user"
"""The entity that an assistant remembers for."""

_NOUN = re.compile(r"is (?:a|an|the) ")


@dataclass(frozen=True)
class Narrative(Displayed):
    """A text for a prompt. ``frame``: entity, memory_id, text, staged; the best first.

    ``tokens`` estimates the length of ``text`` at four bytes each; ``left_out`` counts what did not fit the ``budget``.
    """

    text: str
    tokens: int
    budget: int
    left_out: int
    frame: pl.DataFrame = field(repr=False)

    def __str__(self) -> str:
        return printable(self.text)

    def __repr__(self) -> str:
        return printable(f"<Narrative, {self.tokens} of {self.budget} tokens>\n{self.text}")

    def _display(self) -> object:
        note = f"{self.tokens} of {self.budget} tokens" + (
            f", {self.left_out} left out" if self.left_out else ""
        )
        return self.text.splitlines(), note


@dataclass(frozen=True)
class _Statement:
    """One memory in words. ``clause``: they go on where the entity's name ended."""

    entity: str
    id: int
    words: str
    clause: bool
    staged: bool

    @property
    def marked(self) -> str:
        return f"{self.words} (staged)" if self.staged else self.words


def narrative(
    state: State,
    rows: Rows,
    now: int,
    *,
    budget: int,
    query: str = "",
    stop_words: frozenset[str] = frozenset(),
) -> Narrative:
    """Write the memories in these rows, best first, as one line for each entity.

    Memories that take no part in recall or are not valid now are left out; staged facts are marked. Entities that the
    query names come first, in its order, then each entity by its best memory; memories that are no facts come last. A
    memory that does not fit the budget is skipped.
    """
    current = rows[have_status(state, rows, RECALLABLE) & are_valid_at(state, rows, now)]
    statements = [_statement(state, row) for row in current.tolist()]
    entities = state.projection(Entities)
    named = {
        entity: at
        for entity in dict.fromkeys(one.entity for one in statements if one.entity)
        if (at := first_mention(_names_of(entities, entity), query, stop_words)) is not None
    }
    # stable: the best first within each entity
    statements.sort(key=lambda one: named.get(one.entity, math.inf))
    return _fitted(statements, _lines, budget)


def _names_of(entities: Entities, name: str) -> list[str]:
    """Return the name and the aliases of an entity."""
    number = entities.find_number(name)
    if number is None:
        return [name]
    listed = entities.summarize(number)
    return [name, listed.name, *listed.aliases]


def profile(state: State, rows: Rows, entity: str, type: str | None, *, budget: int) -> Narrative:
    """One entity in prose: "The user is a software engineer who likes Python and lives in Oslo."

    ``rows`` as ``about`` gives them. Memories that are no facts keep their own words, unless they begin as one
    speaks of oneself: "I like Python" becomes "likes Python".
    """
    of_user = entity_key(entity) == USER
    name = "The user" if of_user else entity
    pronoun = "who" if of_user or type == "person" else "that"
    return _fitted(
        [_statement(state, row, of=entity) for row in rows.tolist()],
        lambda statements: _prose(statements, name, pronoun),
        budget,
    )


def about(
    state: State, pack: Pack, entity: str, now: int, *, among: NDArray[np.bool_] | None = None
) -> Rows:
    """The rows that a profile of an entity is made from, best first: its facts that hold now, and for the user also the
    memories of the kinds personal, preference, goal and trait. ``among`` says which rows may take part.

    The order is the pack's: by ``recall-score`` if that needs no question, else by ``retention``; then the more
    confident first, then the newer.
    """
    wanted = np.zeros(len(state), dtype=np.bool_)
    wanted[find_facts(state, subject=entity)] = True
    if entity_key(entity) == USER:
        kinds = state.names["kind"]
        wanted |= np.isin(kinds.codes, [kinds.code(kind) for kind in OF_THE_USER]) & (
            state.names["subject"].codes < 0
        )
    if among is not None:
        wanted &= among
    rows = np.flatnonzero(wanted)
    rows = rows[have_status(state, rows, RECALLABLE) & are_valid_at(state, rows, now)]
    score = compute_relevance(state, pack, rows, now)
    if np.isnan(score).all():
        score = Moment(state, pack, rows, now).retention()
    numbers = state.numbers
    worst_first = np.nan_to_num(score, nan=-np.inf)
    return rows[
        np.lexsort(
            (rows, numbers["created"].values[rows], numbers["confidence"].values[rows], worst_first)
        )[::-1]
    ]


def _statement(state: State, row: int, *, of: str | None = None) -> _Statement:
    """A memory in words: a fact by its predicate, anything else by its text."""
    names = state.names
    subject, predicate = names["subject"].value_at(row), names["predicate"].value_at(row)
    value = names["object"].value_at(row) or names["value"].value_at(row)
    staged = names["status"].value_at(row) == "staged"
    if subject is not None and predicate is not None and value is not None:
        verb, words = phrase_fact(predicate, " ".join(value.split()))
        return _Statement(
            subject, row + 1, words if verb or of is None else f"has {words}", True, staged
        )
    text = " ".join((state.texts.value_at(row) or "").split())
    if of is None:
        return _Statement(subject or "", row + 1, text.rstrip("."), False, staged)
    clause = third_person(text)
    return _Statement(of, row + 1, text if clause is None else clause, clause is not None, staged)


def _fitted(
    statements: Sequence[_Statement], written: Callable[[Sequence[_Statement]], str], budget: int
) -> Narrative:
    """As many as fit, the best first; nothing in the text steers a terminal."""
    kept: list[_Statement] = []
    text = ""
    for one in statements:
        if count_tokens(text + one.words) > budget:
            continue  # the quick answer where there is much to tell
        longer = printable(written([*kept, one]))
        if count_tokens(longer) <= budget:
            kept, text = [*kept, one], longer
    return Narrative(
        text,
        count_tokens(text),
        budget,
        len(statements) - len(kept),
        pl.DataFrame(
            {
                "entity": [one.entity or None for one in kept],
                "memory_id": [one.id for one in kept],
                "text": [one.marked for one in kept],
                "staged": [one.staged for one in kept],
            },
            schema={
                "entity": pl.String,
                "memory_id": pl.Int64,
                "text": pl.String,
                "staged": pl.Boolean,
            },
        ),
    )


def _lines(statements: Sequence[_Statement]) -> str:
    """ADA CONTEXT: lives in Oslo; works at Initech."""
    groups: dict[str, list[str]] = {}
    # stable: what is of no entity goes last
    for one in sorted(statements, key=lambda one: not one.entity):
        groups.setdefault(one.entity, []).append(one.marked)
    return "\n".join(
        f"{entity.upper()} CONTEXT: {'; '.join(words)}.".lstrip()
        for entity, words in groups.items()
    )


def _prose(statements: Sequence[_Statement], name: str, pronoun: str) -> str:
    """The user is an engineer who likes Python and lives in Oslo. In their words: "I went to Rome." """
    clauses = sorted(
        (one.marked for one in statements if one.clause), key=lambda clause: not _NOUN.match(clause)
    )
    sentences = [_sentence(one.marked) for one in statements if not one.clause]
    if clauses and _NOUN.match(clauses[0]) and len(clauses) > 1:
        sentences.insert(0, f"{name} {clauses[0]} {pronoun} {_listed(clauses[1:])}.")
    elif clauses:
        sentences.insert(0, f"{name} {_listed(clauses)}.")
    return " ".join(sentences)


def _listed(clauses: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(clauses[:-1]), clauses[-1]) if part)


def _sentence(text: str) -> str:
    closed = text if text.endswith((".", "!", "?", "\u3002", "\u061f")) else f"{text}."
    return f'In their words: "{closed}"' if of_oneself(text) else closed
