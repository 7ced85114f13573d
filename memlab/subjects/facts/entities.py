"""``lab.facts.entities``: who and what facts are about, under all of their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.privacy import refuse
from memlab.kernel.schema import NEVER
from memlab.kernel.state import ENTITY_TYPES, PLACEHOLDER, Listed, State, checked_text, entity_key, stamps
from memlab.kernel.verbs.core import Core, Memories
from memlab.kernel.verbs.fact_rows import entities_of
from memlab.subjects.facts.merging import Decided, declared, entity_named, merged, split, undone
from memlab.subjects.facts.typing import inferred_types

__all__ = ["Entity", "LabEntities", "check_name"]

_LONGEST = 1000
"""Characters of a name."""


@dataclass(frozen=True)
class Entity(Displayed):
    """Who or what facts are about, as it stood when it was asked for.

    ``type`` is the one that was declared, else the one that its facts speak for, else None. ``mentions`` counts the
    memories that name it, under any of its names; ``merged_into`` is None for one of its own.
    """

    id: int
    name: str
    type: str | None
    aliases: tuple[str, ...]
    mentions: int
    last_mentioned: datetime | None
    merged_into: str | None

    @classmethod
    def of(cls, listed: Listed, inferred: Mapping[str, str]) -> Entity:
        """The entity that a state lists; ``inferred`` are the types that facts speak for, by key."""
        last = None if listed.last == NEVER else from_micros(listed.last)
        type = listed.type or inferred.get(entity_key(listed.name))
        return cls(listed.id, listed.name, type, listed.aliases, listed.mentions, last, listed.merged_into)

    def _display(self) -> object:
        also = f", also {', '.join(self.aliases[:10])}" if self.aliases else ""
        more = f" and {len(self.aliases) - 10:,} more" if len(self.aliases) > 10 else ""
        return f"{self.name} ({self.type or 'entity'}{also}{more}): mentioned {self.mentions:,} times"


class LabEntities:
    """``lab.facts.entities``: declare, list, merge and split the entities of a lab."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def frame(self) -> pl.DataFrame:
        """Every entity as a row.

        ``id``, ``name``, ``type`` (declared, else what its facts speak for), ``aliases``, ``mentions``,
        ``last_mentioned``, ``merged_into`` (null for one of its own).
        """
        with self._core.reading() as state:
            every, inferred = entities_of(state).listed(), inferred_types(state)
        # what stands for a name that was purged keeps its number, and is nobody
        listed = [entity for entity in every if not entity.name.startswith(PLACEHOLDER)]
        return pl.DataFrame(
            [
                pl.Series("id", [one.id for one in listed], dtype=pl.Int64),
                pl.Series("name", [one.name for one in listed], dtype=pl.String),
                pl.Series("type", [one.type or inferred.get(entity_key(one.name)) for one in listed], dtype=pl.String),
                pl.Series("aliases", [one.aliases for one in listed], dtype=pl.List(pl.String)),
                pl.Series("mentions", [one.mentions for one in listed], dtype=pl.Int64),
                stamps("last_mentioned", np.array([one.last for one in listed], dtype=np.int64)),
                pl.Series("merged_into", [one.merged_into for one in listed], dtype=pl.String),
            ]
        )

    @checked
    def declare(self, name: str, *, type: str | None = None, aliases: Sequence[str] = ()) -> Entity:
        """The entity of this name, made if there is none; with a type and further names, if given.

        ``type`` is one of person, project, concept, decision, preference, place, organization, thing. InputError for
        an alias that another bears.

        >>> lab.facts.entities.declare("Ada Lovelace", type="person", aliases=["Ada Byron"])  # doctest: +SKIP
        """
        if type is not None and type not in ENTITY_TYPES:
            raise UnknownName("type of entity", type, ENTITY_TYPES)
        for one in (name, *aliases):
            check_name("name", one)
        with self._core.reading() as state:
            entities = entities_of(state)
            known = entities.number(name)
            same = known is not None and type in (None, entities.entries[known].type)
            if same and all(entities.number(alias) == known for alias in aliases):
                return self._listed(state, name)
        return self._decide(name, lambda state: declared(entities_of(state), name, type, aliases))

    @checked
    def merge(self, entity: str, into: str) -> Entity:
        """Make two entities one: all names of ``entity`` stand for ``into``, and its facts are facts of that.

        Facts keep their ids and texts. ``split(entity)`` undoes it. UnknownName for a name that nothing bears.
        """
        return self._decide(into, lambda state: merged(state, entity, into))

    @checked
    def split(
        self,
        entity: str,
        name: str | None = None,
        *,
        facts: Memories = (),
        aliases: Sequence[str] = (),
    ) -> Entity:
        """Undo a merge, or separate two entities that share a name.

        ``split("Ada L.")`` makes what was merged one of its own again, with the facts that it brought; what was
        remembered since stays where it is. ``split("Alex", "Alex (Berlin)", facts=[3, 7])`` makes a new entity of some
        facts of another, and of some of its ``aliases``.

        >>> lab.facts.entities.split("Alex", "Alex (Berlin)", facts=[3, 7])   # doctest: +SKIP
        """
        check_name("name", entity)
        if name is None:
            return self._decide(entity, lambda state: undone(state, entity))
        for one in (name, *aliases):
            check_name("name", one)
        return self._decide(name, lambda state: split(state, entity, name, self._core.rows(facts), aliases))

    def _decide(self, name: str, decide: Callable[[State], Decided]) -> Entity:
        with self._core.store.writing() as tx:
            decided = decide(self._core.store.state)
            tx.event(decided.kind, {**decided.body, **decided.change.body()}, at=self._core.store.clock())
        with self._core.reading() as state:
            return self._listed(state, name)

    @staticmethod
    def _listed(state: State, name: str) -> Entity:
        entities = entities_of(state)
        return Entity.of(entities.listed_one(entity_named(entities, name)), inferred_types(state))


def check_name(what: str, name: object) -> None:
    """InputError for what cannot be a name; PrivacyError for a secret."""
    if not isinstance(name, str) or len(name) > _LONGEST:
        raise InputError(f"A {what} is a string of 1 to {_LONGEST} characters, not {name!r:.60}.")
    refuse(checked_text(name, where=what), f"the {what}")
    if what != "value":
        entity_key(name)
