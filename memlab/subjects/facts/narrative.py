"""Narratives: facts grouped by entity, in their own words, within a token budget.

No text is generated: a fact is its predicate and value in words, another memory its text. The same
memories give the same narrative.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import Flags, Rows
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

# Conversion from the first to the third person: "I like Python" becomes "likes Python". English only.
#
# Only unambiguous openings are converted; any other text stays a quotation.


_SENTENCES = re.compile(r"[.!?]\s")
"""The end of a sentence within a text."""


def is_first_person(text: str) -> bool:
    """Return whether a text is in the first person."""
    return _compile_pronouns().search(text) is not None


def convert_to_third_person(text: str) -> str | None:
    """Return a first-person text in the third person, or None for an uncertain result.

    The result is None if the conversion would not be certain.

    >>> texts = ("I am a baker.", "My name is Ann", "I study bees", "I ran", "I like my bike")
    >>> [convert_to_third_person(text) for text in texts]
    ['is a baker', 'is called Ann', 'studies bees', None, None]
    """
    for opening, verb in _compile_openings():
        match = opening.match(text)
        if match:
            rest = match["rest"].rstrip(".! ")
            return (
                None
                if is_first_person(rest) or _SENTENCES.search(rest)
                else f"{verb or _convert_verb(match['verb'])} {rest}"
            )
    return None


def _convert_verb(word: str) -> str:
    """Return the third-person form of a first-person verb in lower case; an unknown verb keeps its form."""
    verb = word.lower()
    return _index_verbs().get(verb, verb)


@cache  # the tables that this reads do not change
def _index_verbs() -> dict[str, str]:
    """Return the third-person form of each first-person verb."""
    verbs = lexicon()["extraction"]["verbs"].items()
    first = {
        own.split()[0]: other.split()[0]
        for own, (other, *_) in verbs
        if own.split()[0] not in ("am", "are")
    }
    others: dict[str, str] = lexicon()["first-person"]["verbs"]
    return first | others


@cache  # compiling the patterns takes time, and the tables do not change
def _compile_openings() -> list[tuple[re.Pattern[str], str | None]]:
    """Return patterns of first-person openings, each with its replacement.

    A replacement of None stands for the verb that the pattern captures.
    """
    table = lexicon()["first-person"]
    patterns: list[tuple[re.Pattern[str], str | None]] = []
    for opening, replacement in table["openings"].items():
        words = re.escape(opening).replace("'", "['\u2019]")
        patterns.append((re.compile(rf"{words}\s+(?P<rest>.+)", re.IGNORECASE), replacement))
    for subjects, verbs in (
        (table["own-subjects"], _index_verbs()),
        (table["other-subjects"], _index_verbs().values()),
    ):
        start, verb = "|".join(subjects), "|".join(verbs)
        patterns.append(
            (re.compile(rf"(?:{start}) (?P<verb>{verb})\s+(?P<rest>.+)", re.IGNORECASE), None)
        )
    return patterns


@cache  # the tables that this reads do not change
def _compile_pronouns() -> re.Pattern[str]:
    """Return a pattern that matches first-person pronouns."""
    return re.compile(rf"\b(?:{'|'.join(lexicon()['first-person']['pronouns'])})\b", re.IGNORECASE)


USER = "user"
"""The entity of the person who talks with the assistant."""

_NOUN = re.compile(r"is (?:a|an|the) ")
"""The beginning of a clause that says who an entity is."""


@dataclass(frozen=True)
class Narrative(Displayed):
    """Memories written as a text for a prompt, within a token budget.

    Attributes
    ----------
    text
        The text.
    tokens
        The estimated length of the text, at four bytes per token.
    budget
        The maximum length in tokens.
    left_out
        The number of memories that did not fit.
    frame
        One row per memory, best first: entity, memory_id, text and staged.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> fact = lab.facts.add("Ada", "lives-in", object="Oslo")
    >>> lab.facts.narrative([fact], budget_tokens=1).left_out
    1
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
        """Return the narrative's lines and a note about the token budget."""
        note = f"{self.tokens} of {self.budget} tokens" + (
            f", {self.left_out} left out" if self.left_out else ""
        )
        return self.text.splitlines(), note


@dataclass(frozen=True)
class _Statement:
    """One memory in words; ``clause`` means that the words continue the entity's name."""

    entity: str
    id: int
    words: str
    clause: bool
    staged: bool

    @property
    def marked(self) -> str:
        """The words of the statement, with a mark if the memory is staged."""
        return f"{self.words} (staged)" if self.staged else self.words


def write_narrative(
    state: State,
    rows: Rows,
    now: int,
    *,
    budget: int,
    query: str = "",
    stop_words: frozenset[str] = frozenset(),
) -> Narrative:
    """Write the memories in these rows, with one line per entity.

    Memories that are not recallable or not valid now are left out; staged facts are marked. The
    entities that the query names come first, in the query's order. Other entities follow, ordered
    by their best memory. Memories that are not facts come last. A memory that exceeds the budget is
    skipped.
    """
    valid_rows = rows[have_status(state, rows, RECALLABLE) & are_valid_at(state, rows, now)]
    statements = [_write_statement(state, row) for row in valid_rows.tolist()]
    entities = state.projection(Entities)
    mentions = {
        entity: position
        for entity in dict.fromkeys(
            statement.entity for statement in statements if statement.entity
        )
        if (position := first_mention(_list_names(entities, entity), query, stop_words)) is not None
    }
    # the sort is stable, so the best statement of each entity stays first
    statements.sort(key=lambda statement: mentions.get(statement.entity, math.inf))
    return _fit_to_budget(statements, _write_lines, budget)


def _list_names(entities: Entities, name: str) -> list[str]:
    """Return the name and all aliases of an entity."""
    number = entities.find_number(name)
    if number is None:
        return [name]
    listed = entities.summarize(number)
    return [name, listed.name, *listed.aliases]


def write_profile(
    state: State, rows: Rows, entity: str, type: str | None, *, budget: int
) -> Narrative:
    """Write a prose description of one entity.

    Example: "The user is a software engineer who likes Python and lives in Oslo." `rows` come from
    ``select_profile_rows``. Memories that are not facts keep their words, unless they can be
    converted from the first person: "I like Python" becomes "likes Python".
    """
    of_user = entity_key(entity) == USER
    name = "The user" if of_user else entity
    pronoun = "who" if of_user or type == "person" else "that"
    return _fit_to_budget(
        [_write_statement(state, row, entity=entity) for row in rows.tolist()],
        lambda statements: _write_prose(statements, name, pronoun),
        budget,
    )


def select_profile_rows(
    state: State, pack: Pack, entity: str, now: int, *, visible: Flags | None = None
) -> Rows:
    """Return the rows of memories for an entity's profile, in descending order of score.

    The rows are valid facts of the entity, and for the user also memories of the kinds personal,
    preference, goal and trait. `visible` masks the rows that may take part. The order is by the
    pack's ``recall-score`` if it needs no query, else by ``retention``; ties go to the more
    confident, then to the newer memory.
    """
    selected = np.zeros(len(state), dtype=np.bool_)
    selected[find_facts(state, subject=entity)] = True
    if entity_key(entity) == USER:
        kinds = state.names["kind"]
        selected |= np.isin(kinds.codes, [kinds.code(kind) for kind in OF_THE_USER]) & (
            state.names["subject"].codes < 0
        )
    if visible is not None:
        selected &= visible
    rows = np.flatnonzero(selected)
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


def _write_statement(state: State, row: int, *, entity: str | None = None) -> _Statement:
    """Return a memory as a statement: a fact as a phrase, any other memory as its text.

    With ``entity``, a text in the first person is turned into a clause about this entity if possible.
    """
    names = state.names
    subject, predicate = names["subject"].value_at(row), names["predicate"].value_at(row)
    value = names["object"].value_at(row) or names["value"].value_at(row)
    staged = names["status"].value_at(row) == "staged"
    if subject is not None and predicate is not None and value is not None:
        verb, words = phrase_fact(predicate, " ".join(value.split()))
        return _Statement(
            subject, row + 1, words if verb or entity is None else f"has {words}", True, staged
        )
    text = " ".join((state.texts.value_at(row) or "").split())
    if entity is None:
        return _Statement(subject or "", row + 1, text.rstrip("."), False, staged)
    clause = convert_to_third_person(text)
    return _Statement(
        entity, row + 1, text if clause is None else clause, clause is not None, staged
    )


def _fit_to_budget(
    statements: Sequence[_Statement], write: Callable[[Sequence[_Statement]], str], budget: int
) -> Narrative:
    """Build the narrative of the highest-ranked statements that fit into the budget of tokens."""
    result: list[_Statement] = []
    text = ""
    for statement in statements:
        if count_tokens(text + statement.words) > budget:
            continue  # a cheap test before the whole text is written
        longer = printable(write([*result, statement]))
        if count_tokens(longer) <= budget:
            result, text = [*result, statement], longer
    return Narrative(
        text,
        count_tokens(text),
        budget,
        len(statements) - len(result),
        pl.DataFrame(
            {
                "entity": [statement.entity or None for statement in result],
                "memory_id": [statement.id for statement in result],
                "text": [statement.marked for statement in result],
                "staged": [statement.staged for statement in result],
            },
            schema={
                "entity": pl.String,
                "memory_id": pl.Int64,
                "text": pl.String,
                "staged": pl.Boolean,
            },
        ),
    )


def _write_lines(statements: Sequence[_Statement]) -> str:
    """Return one line per entity, such as "ADA CONTEXT: lives in Oslo; works at Initech"."""
    groups: dict[str, list[str]] = {}
    # the sort is stable; statements without an entity go last
    for statement in sorted(statements, key=lambda statement: not statement.entity):
        groups.setdefault(statement.entity, []).append(statement.marked)
    return "\n".join(
        f"{entity.upper()} CONTEXT: {'; '.join(words)}.".lstrip()
        for entity, words in groups.items()
    )


def _write_prose(statements: Sequence[_Statement], name: str, pronoun: str) -> str:
    """Return statements as prose about one entity.

    Example: 'The user is an engineer who likes Python. In their words: "I went to Rome."'
    """
    clauses = sorted(
        (statement.marked for statement in statements if statement.clause),
        key=lambda clause: not _NOUN.match(clause),
    )
    sentences = [
        _write_sentence(statement.marked) for statement in statements if not statement.clause
    ]
    if clauses and _NOUN.match(clauses[0]) and len(clauses) > 1:
        sentences.insert(0, f"{name} {clauses[0]} {pronoun} {_join_clauses(clauses[1:])}.")
    elif clauses:
        sentences.insert(0, f"{name} {_join_clauses(clauses)}.")
    return " ".join(sentences)


def _join_clauses(clauses: Sequence[str]) -> str:
    """Join clauses with commas and a final "and"."""
    return " and ".join(part for part in (", ".join(clauses[:-1]), clauses[-1]) if part)


def _write_sentence(text: str) -> str:
    """Return a text as a sentence, in quotation marks if it is in the first person."""
    closed = text if text.endswith((".", "!", "?", "\u3002", "\u061f")) else f"{text}."
    return f'In their words: "{closed}"' if is_first_person(text) else closed
