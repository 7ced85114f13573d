"""Entities of a lab, under all of their names: ``lab.facts.entities``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.arrays import NO_ROWS, Floats, Rows
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.english import lexicon, table
from memlab.kernel.privacy import refuse
from memlab.kernel.schema import NEVER, RELATIONS
from memlab.kernel.state import (
    ENTITY_TYPES,
    PLACEHOLDER,
    Change,
    Entities,
    EntitySummary,
    State,
    build_join,
    build_values,
    entity_key,
    normalize_entity_name,
    to_datetimes,
    validate_text,
)
from memlab.kernel.verbs.core import Core, Memories
from memlab.kernel.verbs.fact_rows import find_mention_edges, get_entities

# Merging and splitting of entities.
#
# A fact keeps its id and its text. Its ``subject`` and ``object`` always have the present name of the entity, and its
# ``mentions`` edges lead to that node, so that filters, conflicts and spreading need not handle aliases.


# The code of the relation in the edge columns.
_MENTIONS = RELATIONS.index("mentions")


@dataclass(frozen=True)
class Decision:
    """An event about entities: its kind, its fields and its changes of state."""

    kind: str
    body: dict[str, Any]
    change: Change = field(default_factory=Change)


def find_entity(entities: Entities, name: str) -> int:
    """Return the number of the entity with this name, or raise UnknownName."""
    number = entities.find_number(name)
    if number is None:
        raise UnknownName(
            "entity", name, (entry.name for entry in entities.entries if entry.into is None)
        )
    return number


def decide_declaration(
    entities: Entities, name: str, type: str | None, aliases: Sequence[str]
) -> Decision:
    """Return the decision to create an entity, or to extend it with a type and aliases.

    Raises InputError if another entity has one of the aliases.
    """
    number = entities.find_number(name)
    canonical = normalize_entity_name(name) if number is None else entities.entries[number].name
    fresh: dict[str, str] = {}
    for alias in aliases:
        owner = entities.find_number(alias)
        if owner is not None and owner != number:
            raise InputError(
                f'"{alias}" is a name of {entities.entries[owner].name} already. If they are one entity, call '
                f'lab.facts.entities.merge("{alias}", "{canonical}"); otherwise use a longer name.'
            )
        if owner is None and entity_key(alias) != entity_key(canonical):
            fresh.setdefault(entity_key(alias), normalize_entity_name(alias))
    return Decision("entity", {"name": canonical, "type": type, "aliases": list(fresh.values())})


def decide_merge(state: State, name: str, into: str) -> Decision:
    """Return the decision to merge one entity, its facts and its names into another."""
    entities = get_entities(state)
    source_number, target_number = find_entity(entities, name), find_entity(entities, into)
    if source_number == target_number:
        raise InputError(
            f'"{name}" and "{into}" are names of one entity already: {entities.entries[source_number].name}.'
        )
    source, target = entities.entries[source_number].name, entities.entries[target_number].name
    subjects, objects = _find_rows(state, "subject", source), _find_rows(state, "object", source)
    edges, rows = _find_mentions(state, source)
    in_both = find_mention_edges(state, rows, target) >= 0
    change = _rename_column(subjects, "subject", target) + _rename_column(objects, "object", target)
    change += Change(unlink=edges.tolist()) + _link_rows(
        rows[~in_both], target, state.edges.weight[edges[~in_both]]
    )
    naming_rows = np.concatenate(
        [_find_rows(state, column, target) for column in ("subject", "object")]
    )
    unnamed_rows = rows[
        in_both
        & ~np.isin(rows, np.concatenate([naming_rows, _find_unnamed(entities, target_number)]))
    ]
    moved = {
        "subject": _ids(subjects),
        "object": _ids(objects),
        "edges": _ids(rows),
        "shared": _ids(unnamed_rows),
    }
    return Decision("merge-entity", {"entity": source, "into": target, "moved": moved}, change)


def decide_undo(state: State, name: str) -> Decision:
    """Return the decision to undo a merge and to return the entity's facts and edges.

    Only facts and edges that still belong to the merged entity are returned.
    """
    entities = get_entities(state)
    find_entity(entities, name)
    owner = entities.find_owner(name)
    entry = None if owner is None else entities.entries[owner]
    if owner is None or entry is None or entry.into is None:
        raise InputError(
            f'"{name}" was not merged into another entity. To separate two entities with one name, name the second '
            f'one and its facts: lab.facts.entities.split({name!r}, "{name} (2)", facts=[...]).'
        )
    target = entities.entries[entities.find_root(owner)].name
    returned = {
        column: np.intersect1d(
            np.array(entry.moved[column], dtype=np.int64) - 1, _find_rows(state, column, target)
        )
        for column in ("subject", "object")
    }
    edge_rows = np.array(entry.moved["edges"], dtype=np.int64) - 1
    edges = find_mention_edges(state, edge_rows, target)
    is_linked = edges >= 0  # an edge that was removed since is not restored
    naming_rows = [
        np.setdiff1d(_find_rows(state, column, target), rows) for column, rows in returned.items()
    ]
    shared_rows = np.array(entry.moved["shared"], dtype=np.int64) - 1
    in_both = np.isin(
        edge_rows,
        np.concatenate(
            [
                *naming_rows,
                shared_rows,
                _find_unnamed(entities, entities.find_root(owner), excluded=owner),
            ]
        ),
    )
    change = _rename_column(returned["subject"], "subject", entry.name) + _rename_column(
        returned["object"], "object", entry.name
    )
    change += Change(unlink=edges[is_linked & ~in_both].tolist())
    change += _link_rows(edge_rows[is_linked], entry.name, state.edges.weight[edges[is_linked]])
    return Decision("split-entity", {"entity": entry.name}, change)


def decide_split(
    state: State, name: str, new: str, rows: Sequence[int], aliases: Sequence[str]
) -> Decision:
    """Return the decision to move some facts and names of an entity to a new entity."""
    entities = get_entities(state)
    number = find_entity(entities, name)
    source, canonical = entities.entries[number].name, normalize_entity_name(new)
    names = {entity_key(alias): normalize_entity_name(alias) for alias in (new, *aliases)}
    for key, alias in names.items():
        owner = entities.find_owner(alias)
        if key == entity_key(source):
            raise InputError(
                f'"{alias}" is the canonical name of {source}, which cannot move. Choose one of its aliases.'
            )
        if owner is not None and owner != number:
            root = entities.entries[entities.find_root(owner)].name
            raise InputError(
                f'"{alias}" was merged into {source}. Call lab.facts.entities.split("{alias}") to separate them.'
                if root == source
                else f'"{alias}" is a name of {root}, which is unrelated to {source}. Choose another alias.'
            )
    selected = np.unique(np.array(rows, dtype=np.int64))
    returned = {
        column: np.intersect1d(selected, _find_rows(state, column, source))
        for column in ("subject", "object")
    }
    edges = find_mention_edges(state, selected, source)
    unrelated = selected[(edges < 0) & ~np.isin(selected, np.concatenate(list(returned.values())))]
    if len(unrelated):
        raise InputError(
            f"Memory {int(unrelated[0]) + 1} does not mention {source}, so it cannot move to {canonical}."
        )
    is_linked = edges >= 0
    change = _rename_column(returned["subject"], "subject", canonical) + _rename_column(
        returned["object"], "object", canonical
    )
    change += Change(unlink=edges[is_linked].tolist()) + _link_rows(
        selected[is_linked], canonical, state.edges.weight[edges[is_linked]]
    )
    names.pop(entity_key(canonical))
    created = state.numbers["created"].values[selected[is_linked]]
    body = {
        "entity": canonical,
        "from": source,
        "aliases": list(names.values()),
        "mentions": int(is_linked.sum()),
        "last": int(created.max()) if len(created) else NEVER,
    }
    return Decision("split-entity", body, change)


def _find_rows(state: State, column: str, name: str) -> Rows:
    """Return the rows whose ``column`` (subject or object) is the entity of this name."""
    names = state.names[column]
    code = names.code(name)
    return np.flatnonzero(names.codes == code) if code >= 0 else NO_ROWS


def _find_mentions(state: State, name: str) -> tuple[Rows, Rows]:
    """Return the edges that mention an entity and the rows of their memories, ascending."""
    node = state.nodes.find("entity", [name])
    crossings = state.edges.crossings(node[node >= 0])
    is_mention = (
        ~crossings.outgoing
        & (state.edges.relation[crossings.edge] == _MENTIONS)
        & (crossings.neighbour < len(state))
    )
    order = np.argsort(crossings.neighbour[is_mention], kind="stable")
    return crossings.edge[is_mention][order], crossings.neighbour[is_mention][order]


def _find_unnamed(entities: Entities, root: int, *, excluded: int | None = None) -> Rows:
    """Return the rows that mention an entity merged into ``root``, except in facts.

    Such a row has the merged entity neither as subject nor as object. Entities below ``excluded``
    are left out.
    """
    roots = entities.find_roots()
    ids: set[int] = set()
    for number in np.flatnonzero((roots == root) & (np.arange(len(roots)) != root)).tolist():
        if excluded is None or excluded not in entities.list_ancestors(number):
            moved = entities.entries[number].moved
            ids |= set(moved["edges"]) - set(moved["subject"]) - set(moved["object"]) | set(
                moved["shared"]
            )
    return np.array(sorted(ids), dtype=np.int64) - 1


def _rename_column(rows: Rows, column: str, name: str) -> Change:
    """Return the change that replaces the subject or object of some facts."""
    return Change(set=[build_values(_ids(rows), **{column: name})]) if len(rows) else Change()


def _link_rows(rows: Rows, name: str, weights: Floats) -> Change:
    """Return the change that adds a "mentions" edge from each memory to an entity, with these weights."""
    if not len(rows):
        return Change()
    return Change(
        join=[build_join(_ids(rows), "entity", [name] * len(rows), "mentions", weights.tolist())]
    )


def _ids(rows: Rows) -> list[int]:
    """Return the memory ids of the rows."""
    ids: list[int] = (rows + 1).tolist()
    return ids


# Inferred types of entities without a declared one.
#
# A predicate suggests types: the subject of "lives-in" is a person and the object a place, the subject of "uses" a
# project. The inference is a view over the facts and is not stored, so that edits and purges change it too.


# Types of the names "user" and "team" in rules, and statuses of facts that are ignored.
_PEOPLE = {"user": "person", "team": "organization"}
_GONE = ("purged", "retracted", "deleted")


def infer_types(state: State) -> dict[str, str]:
    """Infer the type of each entity from its facts.

    Parameters
    ----------
    state
        The state of a lab.

    Returns
    -------
    The type that most facts of each name support; ties go to the type that occurs first.
    """
    names = state.names
    subjects, objects, predicates = (names[name] for name in ("subject", "object", "predicate"))
    rows = np.flatnonzero((predicates.codes >= 0) & (subjects.codes >= 0))
    excluded = {names["status"].code(word) for word in _GONE}
    triples = Counter(
        (subjects.value_at(row), predicates.value_at(row), objects.value_at(row))
        for row in rows.tolist()
        if int(names["status"].codes[row]) not in excluded
    )
    votes: dict[str, Counter[str]] = {}
    for (subject, predicate, value), count in triples.items():
        for name, type in _infer_from_fact(subject or "", predicate or "", value):
            votes.setdefault(entity_key(name), Counter())[type] += count
    return {**{name: counts.most_common(1)[0][0] for name, counts in votes.items()}, **_PEOPLE}


def _infer_from_fact(subject: str, predicate: str, value: str | None) -> Iterable[tuple[str, str]]:
    """Yield the entities of one fact, each with a type that the fact implies."""
    types = lexicon()["entities"]["types"].get(predicate.partition(":")[0])
    if types is None and predicate in table("extraction", "relations"):
        types = ["person", "thing" if predicate in lexicon()["entities"]["pets"] else "person"]
    owner, separator, noun = subject.rpartition("'s ")
    if separator:
        is_person = (
            noun in table("extraction", "relations") and noun not in lexicon()["entities"]["pets"]
        )
        yield subject, "person" if is_person else "thing"
        yield owner, "person"
    elif types is not None:
        yield subject, types[0]
    if value is not None and types is not None and types[1] != "-":
        yield value, types[1]


_LONGEST = 1000
"""Maximum characters of a name."""


@dataclass(frozen=True)
class Entity(Displayed):
    """An entity that facts are about.

    Attributes
    ----------
    id
        The number of the entity.
    name
        The canonical name.
    type
        The declared type, else the type that its facts support, else None.
    aliases
        The other names.
    mentions
        The number of memories that name it, under any of its names.
    last_mentioned
        The instant of the last such memory; None if there is none.
    merged_into
        The name of the entity that absorbed it; None if it was not merged.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> entity = lab.facts.entities.declare("Ada Lovelace", type="person", aliases=["Ada Byron"])
    >>> entity.aliases
    ('Ada Byron',)
    """

    id: int
    name: str
    type: str | None
    aliases: tuple[str, ...]
    mentions: int
    last_mentioned: datetime | None
    merged_into: str | None

    @classmethod
    def of(cls, listed: EntitySummary, inferred: Mapping[str, str]) -> Entity:
        """Return a listed entity, with an inferred type if none is declared.

        Parameters
        ----------
        listed
            The entity as the state lists it.
        inferred
            The types that facts support, by the key of the name.
        """
        last = None if listed.last == NEVER else from_micros(listed.last)
        type = listed.type or inferred.get(entity_key(listed.name))
        return cls(
            listed.id, listed.name, type, listed.aliases, listed.mentions, last, listed.merged_into
        )

    def _display(self) -> object:
        """Return one sentence that describes the entity."""
        also = f", also {', '.join(self.aliases[:10])}" if self.aliases else ""
        more = f" and {len(self.aliases) - 10:,} more" if len(self.aliases) > 10 else ""
        return (
            f"{self.name} ({self.type or 'entity'}{also}{more}): mentioned {self.mentions:,} times"
        )


class LabEntities:
    """The entities of a lab: ``lab.facts.entities``.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.facts.entities.declare("Ada Lovelace", aliases=["Ada"])
    >>> lab.facts.add("ada", "lives-in", object="London").subject
    'Ada Lovelace'
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    def frame(self) -> pl.DataFrame:
        """Return a frame with one row per entity.

        Returns
        -------
        One row per entity: ``id``, ``name``, ``type`` (declared, else inferred from its facts), ``aliases``,
        ``mentions``, ``last_mentioned`` and ``merged_into`` (null if it was not merged).

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> fact = lab.facts.add("Ada", "lives-in", object="Oslo")
        >>> lab.facts.entities.frame().select("name", "type").rows()
        [('Ada', 'person'), ('Oslo', 'place')]
        """
        with self._core.reading() as state:
            all_listed, inferred = get_entities(state).summarize_all(), infer_types(state)
        # the placeholder of a purged name keeps its number, but is not listed as an entity
        listed = [entity for entity in all_listed if not entity.name.startswith(PLACEHOLDER)]
        return pl.DataFrame(
            [
                pl.Series("id", [entity.id for entity in listed], dtype=pl.Int64),
                pl.Series("name", [entity.name for entity in listed], dtype=pl.String),
                pl.Series(
                    "type",
                    [entity.type or inferred.get(entity_key(entity.name)) for entity in listed],
                    dtype=pl.String,
                ),
                pl.Series(
                    "aliases", [entity.aliases for entity in listed], dtype=pl.List(pl.String)
                ),
                pl.Series("mentions", [entity.mentions for entity in listed], dtype=pl.Int64),
                to_datetimes(
                    "last_mentioned", np.array([entity.last for entity in listed], dtype=np.int64)
                ),
                pl.Series(
                    "merged_into", [entity.merged_into for entity in listed], dtype=pl.String
                ),
            ]
        )

    @checked
    def declare(self, name: str, *, type: str | None = None, aliases: Sequence[str] = ()) -> Entity:
        """Create or extend an entity, and return it.

        Parameters
        ----------
        name
            Any name of the entity.
        type
            One of person, project, concept, decision, preference, place, organization, thing.
        aliases
            Further names.

        Returns
        -------
        The entity.

        Raises
        ------
        UnknownName
            If there is no such type.
        InputError
            If another entity has one of the aliases.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> lab.facts.entities.declare("Ada Lovelace", type="person", aliases=["Ada Byron"]).type
        'person'
        """
        if type is not None and type not in ENTITY_TYPES:
            raise UnknownName("type of entity", type, ENTITY_TYPES)
        for any_name in (name, *aliases):
            check_name("name", any_name)
        with self._core.reading() as state:
            entities = get_entities(state)
            number = entities.find_number(name)
            is_unchanged = number is not None and type in (None, entities.entries[number].type)
            if is_unchanged and all(entities.find_number(alias) == number for alias in aliases):
                return self._listed(state, name)
        return self._decide(
            name, lambda state: decide_declaration(get_entities(state), name, type, aliases)
        )

    @checked
    def merge(self, entity: str, into: str) -> Entity:
        """Merge one entity into another, with all names and facts.

        Facts keep their ids and texts. ``split(entity)`` undoes the merge.

        Parameters
        ----------
        entity
            The entity that is absorbed, by any of its names.
        into
            The entity that remains, by any of its names.

        Returns
        -------
        The remaining entity.

        Raises
        ------
        UnknownName
            If there is no entity with one of the names.
        InputError
            If both names belong to one entity already.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> for name in ("Ada", "Ada Lovelace"):
        ...     _ = lab.facts.entities.declare(name)
        >>> lab.facts.entities.merge("Ada", into="Ada Lovelace").aliases
        ('Ada',)
        """
        return self._decide(into, lambda state: decide_merge(state, entity, into))

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

        ``split("Ada L.")`` makes a merged entity independent again, with the facts it had; newer
        facts stay. ``split("Alex", "Alex (Berlin)", facts=[3, 7])`` creates an entity from some
        facts of another one.

        Parameters
        ----------
        entity
            The entity to split, by any of its names.
        name
            The name of the new entity; None undoes a merge.
        facts
            The facts that move to the new entity.
        aliases
            The names that move to the new entity.

        Returns
        -------
        The entity that was separated.

        Raises
        ------
        UnknownName
            If there is no such entity.
        InputError
            If the entity was not merged, or a fact or alias belongs to another entity.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> fact = lab.facts.add("Alex", "lives-in", object="Berlin")
        >>> lab.facts.entities.split("Alex", "Alex (Berlin)", facts=[fact]).name
        'Alex (Berlin)'
        """
        check_name("name", entity)
        if name is None:
            return self._decide(entity, lambda state: decide_undo(state, entity))
        for any_name in (name, *aliases):
            check_name("name", any_name)
        return self._decide(
            name, lambda state: decide_split(state, entity, name, self._core.rows(facts), aliases)
        )

    def _decide(self, name: str, decide: Callable[[State], Decision]) -> Entity:
        """Write a decision about an entity as an event, and return the entity."""
        with self._core.store.writing() as tx:
            decision = decide(self._core.store.state)
            tx.event(
                decision.kind,
                {**decision.body, **decision.change.body()},
                at=self._core.store.clock(),
            )
        with self._core.reading() as state:
            return self._listed(state, name)

    @staticmethod
    def _listed(state: State, name: str) -> Entity:
        """Return the named entity with its present facts and names."""
        entities = get_entities(state)
        return Entity.of(entities.summarize(find_entity(entities, name)), infer_types(state))


def check_name(role: str, name: object) -> None:
    """Raise InputError for an invalid name, and PrivacyError for a secret."""
    if not isinstance(name, str) or len(name) > _LONGEST:
        raise InputError(
            f"A {role} must be a string of 1 to {_LONGEST} characters, not {name!r:.60}."
        )
    refuse(validate_text(name, where=role), f"the {role}")
    if role != "value":
        entity_key(name)
