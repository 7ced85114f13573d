"""Facts, the entities that they are about, and both told in words."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from memlab.arguments import Count, checked
from memlab.clock import When, from_micros, to_micros
from memlab.errors import InputError, UnknownName
from memlab.lab._base import MemoryLike
from memlab.lab._results import Memory
from memlab.lab._writing import LabWriting
from memlab.life import (
    USER,
    Decided,
    Narrative,
    about,
    declared,
    entities_of,
    entity_named,
    fact_text,
    facts_frame,
    facts_of,
    held_at,
    merged,
    narrative,
    profile,
    retracted,
    split,
    undone,
    with_status,
)
from memlab.memory import ENTITY_TYPES, PLACEHOLDER, Listed, State, checked_text, entity_key, stamps
from memlab.privacy import refuse
from memlab.recall import Filters, Hits, Question
from memlab.schema import NEVER, STATUSES

__all__ = ["Entity", "LabFacts"]

_LONGEST = 1000


@dataclass(frozen=True)
class Entity:
    """Who or what facts are about, as it stood when it was asked for.

    ``mentions`` counts the memories that name it, under any of its names; ``merged_into`` is None for one of its own.
    """

    id: int
    name: str
    type: str | None
    aliases: tuple[str, ...]
    mentions: int
    last_mentioned: datetime | None
    merged_into: str | None

    @classmethod
    def of(cls, listed: Listed) -> Entity:
        last = None if listed.last == NEVER else from_micros(listed.last)
        return cls(*listed[:5], last, listed.merged_into)

    def _repr_html_(self) -> str:
        also = f", also {', '.join(self.aliases[:10])}" if self.aliases else ""
        more = f" and {len(self.aliases) - 10:,} more" if len(self.aliases) > 10 else ""
        told = f"{self.name} ({self.type or 'entity'}{also}{more}): mentioned {self.mentions:,} times"
        return f"<p dir='auto'>{html.escape(told)}</p>"


class LabFacts(LabWriting):
    """``fact``, ``facts``, ``retract``; ``entity``, ``entities``, merging and splitting; ``narrative``, ``profile``."""

    # -- facts ------------------------------------------------------------------------------------------------

    @checked
    def fact(
        self,
        subject: str,
        predicate: str,
        value: str | bool | float | None = None,
        *,
        object: str | None = None,
        text: str | None = None,
        at: When | None = None,
        **fields: Any,
    ) -> Memory:
        """Remember that ``subject`` has, by ``predicate``, a ``value``, or is joined to another entity, ``object``.

        Subject and object may be any name of an entity, in any case; a new name is a new entity. Without a ``text``
        one is made: "Ada lives in Oslo". ``fields`` are those of ``remember``: confidence, source, valid_from,
        valid_until ... It begins with the status that the pack's setting ``fact-status`` says, and what it means for
        older facts is up to the pack's ``link`` and ``resolve``. Durable when it returns.

        >>> lab.fact("Ada", "lives-in", object="Oslo", confidence=0.95, source="user-edit")   # doctest: +SKIP
        """
        if (value is None) == (object is None):
            raise InputError(
                "A fact has either a value or an object: a value is a text or a number, an object an entity."
            )
        if isinstance(value, bool | int | float):
            value = str(value).lower() if isinstance(value, bool) else str(value)
        names = {"subject": subject, "predicate": predicate, "value": value, "object": object}
        for what, name in names.items():
            if name is not None or what in ("subject", "predicate"):
                _checked_name(what, name)
        start, stop = (to_micros(fields[name]) if fields.get(name) is not None else None for name in _INTERVAL)
        began = start if start is not None else self._instant(at)
        if stop is not None and stop <= began:
            raise InputError(
                f"A fact holds from valid_from to before valid_until, not from {from_micros(began).isoformat()} to "
                f"{from_micros(stop).isoformat()}."
            )
        if text is None:
            with self._reading() as state:
                entities = entities_of(state)
                called = [entities.canonical(name) or name for name in (subject, object) if name is not None]
            text = fact_text(called[0], predicate, str(called[1] if value is None else value))
        fields |= {name: held for name, held in names.items() if held is not None}
        return self.remember(text, at=at, **fields)

    @checked
    def facts(
        self,
        *,
        at: When | None = None,
        subject: str | None = None,
        predicate: str | None = None,
        status: str | Iterable[str] | None = None,
    ) -> pl.DataFrame:
        """Facts as rows, by id: of an entity, by any of its names; of a predicate; of one status or several.

        With ``at``, those that held at that instant: ``valid_from <= at < valid_until``, and true at all (not
        retracted, deprecated or deleted; what was superseded held until then). That is the time *in the world*. When
        something became *known* is another time, ``created`` of ``lab.memories``: what was told in March of January is
        among the facts of January.

        Columns: ``id``, ``subject``, ``predicate``, ``object``, ``value``, ``confidence``, ``status``, ``source``,
        ``valid_from``, ``valid_until`` (null: it still holds), ``superseded_by``, ``access``, ``text``, and
        ``relevance``: what the pack's ``recall-score`` gives it now; null where that depends on a question.

        >>> lab.facts(at="2024-06-01", subject="Ada")                                      # doctest: +SKIP
        """
        statuses = None if status is None else [status] if isinstance(status, str) else list(status)
        for word in statuses or ():
            if word not in STATUSES:
                raise UnknownName("status", word, STATUSES)
        instant = None if at is None else to_micros(at)
        with self._reading() as state:
            rows = facts_of(state, subject=None if subject is None else self._called(state, subject))
            if predicate is not None:
                rows = rows[state.names["predicate"].codes[rows] == state.names["predicate"].code(predicate)]
            if statuses is not None:
                rows = rows[with_status(state, rows, statuses)]
            if instant is not None:
                rows = rows[held_at(state, rows, instant)]
            return facts_frame(state, self._store.versions.pack, rows, self._store.clock())

    @checked
    def retract(self, fact: MemoryLike, *, reason: str | None = None) -> None:
        """Say that a fact was never true: it takes part in nothing from now on, and only ``facts`` shows it.

        Told again, it is a new fact. What it superseded stays superseded. InputError for a memory that is no fact, or
        that is deleted or purged.
        """
        if reason is not None:
            refuse(checked_text(reason, where="reason"), "the reason")
        with self._store.writing() as tx:
            now = self._store.clock()
            change = retracted(self._store.state, self._row(fact), now, reason)
            tx.event("retract", change.body(), at=now)

    # -- entities ---------------------------------------------------------------------------------------------

    @property
    def entities(self) -> pl.DataFrame:
        """Every entity as a row: ``id``, ``name``, ``type``, ``aliases``, ``mentions``, ``last_mentioned``,
        ``merged_into`` (null for one of its own).
        """
        with self._reading() as state:
            every = entities_of(state).listed()
        # what stands for a name that was purged keeps its number, and is nobody
        listed = [entity for entity in every if not entity.name.startswith(PLACEHOLDER)]
        return pl.DataFrame(
            [
                pl.Series("id", [one.id for one in listed], dtype=pl.Int64),
                pl.Series("name", [one.name for one in listed], dtype=pl.String),
                pl.Series("type", [one.type for one in listed], dtype=pl.String),
                pl.Series("aliases", [one.aliases for one in listed], dtype=pl.List(pl.String)),
                pl.Series("mentions", [one.mentions for one in listed], dtype=pl.Int64),
                stamps("last_mentioned", np.array([one.last for one in listed], dtype=np.int64)),
                pl.Series("merged_into", [one.merged_into for one in listed], dtype=pl.String),
            ]
        )

    @checked
    def entity(self, name: str, *, type: str | None = None, aliases: Sequence[str] = ()) -> Entity:
        """The entity of this name, made if there is none; with a type and further names, if given.

        ``type`` is one of person, project, concept, decision, preference. InputError for an alias that another bears.

        >>> lab.entity("Ada Lovelace", type="person", aliases=["Countess of Lovelace"])    # doctest: +SKIP
        """
        if type is not None and type not in ENTITY_TYPES:
            raise UnknownName("type of entity", type, ENTITY_TYPES)
        for one in (name, *aliases):
            _checked_name("name", one)
        with self._reading() as state:
            entities = entities_of(state)
            known = entities.number(name)
            same = known is not None and type in (None, entities.entries[known].type)
            if same and all(entities.number(alias) == known for alias in aliases):
                return self._listed(state, name)
        return self._decide(name, lambda state: declared(entities_of(state), name, type, aliases))

    @checked
    def merge_entities(self, entity: str, into: str) -> Entity:
        """Make two entities one: all names of ``entity`` stand for ``into``, and its facts are facts of that.

        Facts keep their ids and texts. ``split_entity(entity)`` undoes it. UnknownName for a name that nothing bears.
        """
        return self._decide(into, lambda state: merged(state, entity, into))

    @checked
    def split_entity(
        self,
        entity: str,
        name: str | None = None,
        *,
        facts: MemoryLike | Iterable[MemoryLike] = (),
        aliases: Sequence[str] = (),
    ) -> Entity:
        """Undo a merge, or tell two apart that share a name.

        ``split_entity("Ada L.")`` makes what was merged one of its own again, with the facts that it brought; what was
        told since stays where it is. ``split_entity("Alex", "Alex (Berlin)", facts=[3, 7])`` makes a new entity of some
        facts of another, and of some of its ``aliases``.

        >>> lab.split_entity("Alex", "Alex (Berlin)", facts=lab.facts(subject="Alex")["id"][:2])   # doctest: +SKIP
        """
        _checked_name("name", entity)
        if name is None:
            return self._decide(entity, lambda state: undone(state, entity))
        for one in (name, *aliases):
            _checked_name("name", one)
        return self._decide(name, lambda state: split(state, entity, name, self._rows(facts), aliases))

    # -- in words ---------------------------------------------------------------------------------------------

    @checked
    def narrative(
        self,
        about: str | Hits | Iterable[MemoryLike],
        *,
        budget_tokens: Count | None = None,
        limit: Count | None = None,
        project: str | None = None,
        session: str | None = None,
        at: When | None = None,
        log: bool = True,
    ) -> Narrative:
        """What is known about a question, or what hits or memories say, as a line an entity, for a prompt.

        "USER CONTEXT: prefers dark (theme); uses Python (staged)." Nothing is made up: a fact is told by its predicate
        and value, another memory by its text; the best first, as many as fit. What is superseded, retracted or over is
        left out. A question is recalled, with ``limit``, ``project``, ``session`` and ``log`` as in ``recall``.
        ``budget_tokens`` is the setting ``tier-2-tokens`` unless given.

        >>> print(lab.narrative("Where does Ada live?", budget_tokens=100))                # doctest: +SKIP
        """
        now = self._instant(at)
        if isinstance(about, str):
            about = self._recalls.ask(
                about, limit=limit, project=project, session=session, filters=Filters.of(), at=at, log=log
            )
        with self._reading() as state:
            rows = np.array(self._rows(about), dtype=np.int64)
            most = self._store.versions.pack.count("tier-2-tokens") if budget_tokens is None else budget_tokens
            return narrative(state, rows, now, budget=most)

    @checked
    def profile(
        self,
        subject: str = USER,
        *,
        budget_tokens: Count | None = None,
        project: str | None = None,
        session: str | None = None,
        at: When | None = None,
    ) -> Narrative:
        """One entity in prose, for a prompt: "The user is a software engineer who likes Python and lives in Oslo."

        Made of its facts that hold, and for the user also of the memories of the kinds personal, preference, goal and
        trait. ``project`` and ``session`` are those of ``recall``. ``budget_tokens`` is the setting ``tier-1-tokens``
        unless given. UnknownName for an entity of which nothing was ever said, except the user.
        """
        now = self._instant(at)
        with self._reading() as state:
            pack, entities = self._store.versions.pack, entities_of(state)
            known = entities.number(subject)
            if known is None and entity_key(subject) != USER:
                entity_named(entities, subject)
            entry = None if known is None else entities.entries[known]
            called = subject if entry is None else entry.name
            question = Question("", at=now, project=project, session=session)
            among = self._recalls.recaller.population(state, question).mask
            most = pack.count("tier-1-tokens") if budget_tokens is None else budget_tokens
            rows = about(state, pack, called, now, among=among)
            return profile(state, rows, called, None if entry is None else entry.type, budget=most)

    # -- within -----------------------------------------------------------------------------------------------

    def _called(self, state: State, name: str) -> str:
        _checked_name("subject", name)
        entities = entities_of(state)
        return entities.entries[entity_named(entities, name)].name

    def _decide(self, name: str, decide: Callable[[State], Decided]) -> Entity:
        with self._store.writing() as tx:
            decided = decide(self._store.state)
            tx.event(decided.kind, {**decided.body, **decided.change.body()}, at=self._store.clock())
        with self._reading() as state:
            return self._listed(state, name)

    @staticmethod
    def _listed(state: State, name: str) -> Entity:
        entities = entities_of(state)
        return Entity.of(entities.listed_one(entity_named(entities, name)))


_INTERVAL = ("valid_from", "valid_until")


def _checked_name(what: str, name: object) -> None:
    """InputError for what cannot be a name; PrivacyError for a secret."""
    if not isinstance(name, str) or len(name) > _LONGEST:
        raise InputError(f"A {what} is a string of 1 to {_LONGEST} characters, not {name!r:.60}.")
    refuse(checked_text(name, where=what), f"the {what}")
    if what != "value":
        entity_key(name)
