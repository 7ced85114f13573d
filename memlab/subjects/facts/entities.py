"""``lab.facts.entities``: who and what facts are about, under all of their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
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

__all__ = [
    "Decided",
    "Entity",
    "LabEntities",
    "check_name",
    "declared",
    "entity_named",
    "inferred_types",
    "merged",
    "split",
    "undone",
]


# One entity under two names, and two under one: what merging and splitting change.
#
# A fact keeps its id and its text. Its ``subject`` and ``object`` always say what the entity is called now, and its
# ``mentions`` edges lead to that one node, so that filters, conflicts and spreading need not know of aliases.


_MENTIONS = RELATIONS.index("mentions")

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Decided:
    """An event about entities: its kind, its own fields, and what it changes of memories and edges."""

    kind: str
    body: dict[str, Any]
    change: Change = field(default_factory=Change)


def entity_named(entities: Entities, name: str) -> int:
    """The number of the entity that a name stands for; UnknownName if it stands for none."""
    number = entities.find_number(name)
    if number is None:
        raise UnknownName(
            "entity", name, (entry.name for entry in entities.entries if entry.into is None)
        )
    return number


def declared(entities: Entities, name: str, type: str | None, aliases: Sequence[str]) -> Decided:
    """An entity by name, with a type and further names. InputError if another entity bears one of them."""
    known = entities.find_number(name)
    called = normalize_entity_name(name) if known is None else entities.entries[known].name
    fresh: dict[str, str] = {}
    for alias in aliases:
        bearer = entities.find_number(alias)
        if bearer is not None and bearer != known:
            raise InputError(
                f'"{alias}" is {entities.entries[bearer].name} already: merge_entities("{alias}", "{called}") '
                "makes them one, and a longer name tells them apart."
            )
        if bearer is None and entity_key(alias) != entity_key(called):
            fresh.setdefault(entity_key(alias), normalize_entity_name(alias))
    return Decided("entity", {"name": called, "type": type, "aliases": list(fresh.values())})


def merged(state: State, name: str, into: str) -> Decided:
    """All that is known of one entity becomes known of another, and its names stand for that one."""
    entities = get_entities(state)
    one, other = entity_named(entities, name), entity_named(entities, into)
    if one == other:
        raise InputError(
            f'"{name}" and "{into}" are one entity already: {entities.entries[one].name}.'
        )
    gone, kept = entities.entries[one].name, entities.entries[other].name
    subjects, objects = _rows_with(state, "subject", gone), _rows_with(state, "object", gone)
    edges, rows = _mentions(state, gone)
    both = find_mention_edges(state, rows, kept) >= 0
    change = _renamed(subjects, "subject", kept) + _renamed(objects, "object", kept)
    change += Change(unlink=edges.tolist()) + _join(
        rows[~both], kept, state.edges.weight[edges[~both]]
    )
    named = np.concatenate([_rows_with(state, column, kept) for column in ("subject", "object")])
    own = rows[both & ~np.isin(rows, np.concatenate([named, _unnamed(entities, other)]))]
    moved = {
        "subject": _ids(subjects),
        "object": _ids(objects),
        "edges": _ids(rows),
        "shared": _ids(own),
    }
    return Decided("merge-entity", {"entity": gone, "into": kept, "moved": moved}, change)


def undone(state: State, name: str) -> Decided:
    """An entity that was merged is one of its own again, with the facts that it gave away and that stayed there."""
    entities = get_entities(state)
    entity_named(entities, name)
    owner = entities.find_owner(name)
    entry = None if owner is None else entities.entries[owner]
    if owner is None or entry is None or entry.into is None:
        raise InputError(
            f'"{name}" was not merged into another entity. To part two that share a name, say what the second one is '
            f'called and which facts are its own: split_entity({name!r}, "{name} (2)", facts=[...]).'
        )
    kept = entities.entries[entities.find_root(owner)].name
    taken = {
        column: np.intersect1d(
            np.array(entry.moved[column], dtype=np.int64) - 1, _rows_with(state, column, kept)
        )
        for column in ("subject", "object")
    }
    back = np.array(entry.moved["edges"], dtype=np.int64) - 1
    edges = find_mention_edges(state, back, kept)
    there = edges >= 0  # what was unlinked since stays unlinked
    named = [np.setdiff1d(_rows_with(state, column, kept), rows) for column, rows in taken.items()]
    own = np.array(entry.moved["shared"], dtype=np.int64) - 1
    stays = np.isin(
        back,
        np.concatenate([*named, own, _unnamed(entities, entities.find_root(owner), without=owner)]),
    )
    change = _renamed(taken["subject"], "subject", entry.name) + _renamed(
        taken["object"], "object", entry.name
    )
    change += Change(unlink=edges[there & ~stays].tolist())
    change += _join(back[there], entry.name, state.edges.weight[edges[there]])
    return Decided("split-entity", {"entity": entry.name}, change)


def split(
    state: State, name: str, new: str, rows: Sequence[int], aliases: Sequence[str]
) -> Decided:
    """A new entity that takes some facts and some names of another: two of one name become two entities."""
    entities = get_entities(state)
    number = entity_named(entities, name)
    kept, called = entities.entries[number].name, normalize_entity_name(new)
    names = {entity_key(alias): normalize_entity_name(alias) for alias in (new, *aliases)}
    for key, alias in names.items():
        owner = entities.find_owner(alias)
        if key == entity_key(kept):
            raise InputError(
                f'"{alias}" is what {kept} itself is called; only its other names can be taken from it.'
            )
        if owner is not None and owner != number:
            root = entities.entries[entities.find_root(owner)].name
            raise InputError(
                f'"{alias}" was merged into {kept}: split_entity("{alias}") parts the two.'
                if root == kept
                else f'"{alias}" is {root} already, which has nothing to do with {kept}.'
            )
    wanted = np.unique(np.array(rows, dtype=np.int64))
    taken = {
        column: np.intersect1d(wanted, _rows_with(state, column, kept))
        for column in ("subject", "object")
    }
    edges = find_mention_edges(state, wanted, kept)
    strange = wanted[(edges < 0) & ~np.isin(wanted, np.concatenate(list(taken.values())))]
    if len(strange):
        raise InputError(
            f"Memory {int(strange[0]) + 1} does not mention {kept}; it cannot be split off from it."
        )
    there = edges >= 0
    change = _renamed(taken["subject"], "subject", called) + _renamed(
        taken["object"], "object", called
    )
    change += Change(unlink=edges[there].tolist()) + _join(
        wanted[there], called, state.edges.weight[edges[there]]
    )
    names.pop(entity_key(called))
    created = state.numbers["created"].values[wanted[there]]
    body = {
        "entity": called,
        "from": kept,
        "aliases": list(names.values()),
        "mentions": int(there.sum()),
        "last": int(created.max()) if len(created) else NEVER,
    }
    return Decided("split-entity", body, change)


def _rows_with(state: State, column: str, name: str) -> Rows:
    """The rows whose subject or object is the entity of this name."""
    names = state.names[column]
    code = names.code(name)
    return np.flatnonzero(names.codes == code) if code >= 0 else np.empty(0, dtype=np.int64)


def _mentions(state: State, name: str) -> tuple[Rows, Rows]:
    """The edges by which memories mention an entity, and the rows of those memories, ascending."""
    node = state.nodes.find("entity", [name])
    met = state.edges.crossings(node[node >= 0])
    mine = (
        ~met.outgoing & (state.edges.relation[met.edge] == _MENTIONS) & (met.neighbour < len(state))
    )
    order = np.argsort(met.neighbour[mine], kind="stable")
    return met.edge[mine][order], met.neighbour[mine][order]


def _unnamed(entities: Entities, root: int, *, without: int | None = None) -> Rows:
    """The rows that mention what was merged into ``root`` without naming it as subject or object."""
    roots = entities.find_roots()
    found: set[int] = set()
    for number in np.flatnonzero((roots == root) & (np.arange(len(roots)) != root)).tolist():
        if without is None or without not in entities.list_ancestors(number):
            moved = entities.entries[number].moved
            found |= set(moved["edges"]) - set(moved["subject"]) - set(moved["object"]) | set(
                moved["shared"]
            )
    return np.array(sorted(found), dtype=np.int64) - 1


def _renamed(rows: Rows, column: str, name: str) -> Change:
    return Change(set=[build_values(_ids(rows), **{column: name})]) if len(rows) else Change()


def _join(rows: Rows, name: str, weights: NDArray[np.float64]) -> Change:
    if not len(rows):
        return Change()
    return Change(
        join=[build_join(_ids(rows), "entity", [name] * len(rows), "mentions", weights.tolist())]
    )


def _ids(rows: Rows) -> list[int]:
    found: list[int] = (rows + 1).tolist()
    return found


# The types of entities for which none was declared, inferred from the facts that name them.
#
# A predicate says what it is about: who lives in something is a person and what they live in a place, what uses
# something is a project. The inference is a view over the facts: nothing of it is stored, so that an edit or a purge
# changes it with the facts.


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
        (subjects.value_at(row), predicates.value_at(row), objects.value_at(row))
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
        person = (
            noun in table("extraction", "relations") and noun not in lexicon()["entities"]["pets"]
        )
        yield subject, "person" if person else "thing"
        yield owner, "person"
    elif types is not None:
        yield subject, types[0]
    if value is not None and types is not None and types[1] != "-":
        yield value, types[1]


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
    def of(cls, listed: EntitySummary, inferred: Mapping[str, str]) -> Entity:
        """The entity that a state lists; ``inferred`` are the types that facts speak for, by key."""
        last = None if listed.last == NEVER else from_micros(listed.last)
        type = listed.type or inferred.get(entity_key(listed.name))
        return cls(
            listed.id, listed.name, type, listed.aliases, listed.mentions, last, listed.merged_into
        )

    def _display(self) -> object:
        also = f", also {', '.join(self.aliases[:10])}" if self.aliases else ""
        more = f" and {len(self.aliases) - 10:,} more" if len(self.aliases) > 10 else ""
        return (
            f"{self.name} ({self.type or 'entity'}{also}{more}): mentioned {self.mentions:,} times"
        )


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
            every, inferred = get_entities(state).summarize_all(), inferred_types(state)
        # what stands for a name that was purged keeps its number, and is nobody
        listed = [entity for entity in every if not entity.name.startswith(PLACEHOLDER)]
        return pl.DataFrame(
            [
                pl.Series("id", [one.id for one in listed], dtype=pl.Int64),
                pl.Series("name", [one.name for one in listed], dtype=pl.String),
                pl.Series(
                    "type",
                    [one.type or inferred.get(entity_key(one.name)) for one in listed],
                    dtype=pl.String,
                ),
                pl.Series("aliases", [one.aliases for one in listed], dtype=pl.List(pl.String)),
                pl.Series("mentions", [one.mentions for one in listed], dtype=pl.Int64),
                to_datetimes(
                    "last_mentioned", np.array([one.last for one in listed], dtype=np.int64)
                ),
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
            entities = get_entities(state)
            known = entities.find_number(name)
            same = known is not None and type in (None, entities.entries[known].type)
            if same and all(entities.find_number(alias) == known for alias in aliases):
                return self._listed(state, name)
        return self._decide(name, lambda state: declared(get_entities(state), name, type, aliases))

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
        return self._decide(
            name, lambda state: split(state, entity, name, self._core.rows(facts), aliases)
        )

    def _decide(self, name: str, decide: Callable[[State], Decided]) -> Entity:
        with self._core.store.writing() as tx:
            decided = decide(self._core.store.state)
            tx.event(
                decided.kind, {**decided.body, **decided.change.body()}, at=self._core.store.clock()
            )
        with self._core.reading() as state:
            return self._listed(state, name)

    @staticmethod
    def _listed(state: State, name: str) -> Entity:
        entities = get_entities(state)
        return Entity.of(entities.summarize(entity_named(entities, name)), inferred_types(state))


def check_name(what: str, name: object) -> None:
    """InputError for what cannot be a name; PrivacyError for a secret."""
    if not isinstance(name, str) or len(name) > _LONGEST:
        raise InputError(f"A {what} is a string of 1 to {_LONGEST} characters, not {name!r:.60}.")
    refuse(validate_text(name, where=what), f"the {what}")
    if what != "value":
        entity_key(name)
