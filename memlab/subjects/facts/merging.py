"""One entity under two names, and two under one: what merging and splitting change.

A fact keeps its id and its text. Its ``subject`` and ``object`` always say what the entity is called now, and its
``mentions`` edges lead to that one node, so that filters, conflicts and spreading need not know of aliases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.schema import NEVER, RELATIONS
from memlab.kernel.state import Change, Entities, State, entity_key, entity_name, join_of, values_of
from memlab.kernel.verbs.fact_rows import entities_of, mention_edges

__all__ = ["Decided", "declared", "entity_named", "merged", "split", "undone"]

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
    number = entities.number(name)
    if number is None:
        raise UnknownName("entity", name, (entry.name for entry in entities.entries if entry.into is None))
    return number


def declared(entities: Entities, name: str, type: str | None, aliases: Sequence[str]) -> Decided:
    """An entity by name, with a type and further names. InputError if another entity bears one of them."""
    known = entities.number(name)
    called = entity_name(name) if known is None else entities.entries[known].name
    fresh: dict[str, str] = {}
    for alias in aliases:
        bearer = entities.number(alias)
        if bearer is not None and bearer != known:
            raise InputError(
                f'"{alias}" is {entities.entries[bearer].name} already: merge_entities("{alias}", "{called}") '
                "makes them one, and a longer name tells them apart."
            )
        if bearer is None and entity_key(alias) != entity_key(called):
            fresh.setdefault(entity_key(alias), entity_name(alias))
    return Decided("entity", {"name": called, "type": type, "aliases": list(fresh.values())})


def merged(state: State, name: str, into: str) -> Decided:
    """All that is known of one entity becomes known of another, and its names stand for that one."""
    entities = entities_of(state)
    one, other = entity_named(entities, name), entity_named(entities, into)
    if one == other:
        raise InputError(f'"{name}" and "{into}" are one entity already: {entities.entries[one].name}.')
    gone, kept = entities.entries[one].name, entities.entries[other].name
    subjects, objects = _rows_with(state, "subject", gone), _rows_with(state, "object", gone)
    edges, rows = _mentions(state, gone)
    both = mention_edges(state, rows, kept) >= 0
    change = _renamed(subjects, "subject", kept) + _renamed(objects, "object", kept)
    change += Change(unlink=edges.tolist()) + _join(rows[~both], kept, state.edges.weight[edges[~both]])
    named = np.concatenate([_rows_with(state, column, kept) for column in ("subject", "object")])
    own = rows[both & ~np.isin(rows, np.concatenate([named, _unnamed(entities, other)]))]
    moved = {"subject": _ids(subjects), "object": _ids(objects), "edges": _ids(rows), "shared": _ids(own)}
    return Decided("merge-entity", {"entity": gone, "into": kept, "moved": moved}, change)


def undone(state: State, name: str) -> Decided:
    """An entity that was merged is one of its own again, with the facts that it gave away and that stayed there."""
    entities = entities_of(state)
    entity_named(entities, name)
    owner = entities.owner(name)
    entry = None if owner is None else entities.entries[owner]
    if owner is None or entry is None or entry.into is None:
        raise InputError(
            f'"{name}" was not merged into another entity. To part two that share a name, say what the second one is '
            f'called and which facts are its own: split_entity({name!r}, "{name} (2)", facts=[...]).'
        )
    kept = entities.entries[entities.root(owner)].name
    taken = {
        column: np.intersect1d(np.array(entry.moved[column], dtype=np.int64) - 1, _rows_with(state, column, kept))
        for column in ("subject", "object")
    }
    back = np.array(entry.moved["edges"], dtype=np.int64) - 1
    edges = mention_edges(state, back, kept)
    there = edges >= 0  # what was unlinked since stays unlinked
    named = [np.setdiff1d(_rows_with(state, column, kept), rows) for column, rows in taken.items()]
    own = np.array(entry.moved["shared"], dtype=np.int64) - 1
    stays = np.isin(back, np.concatenate([*named, own, _unnamed(entities, entities.root(owner), without=owner)]))
    change = _renamed(taken["subject"], "subject", entry.name) + _renamed(taken["object"], "object", entry.name)
    change += Change(unlink=edges[there & ~stays].tolist())
    change += _join(back[there], entry.name, state.edges.weight[edges[there]])
    return Decided("split-entity", {"entity": entry.name}, change)


def split(state: State, name: str, new: str, rows: Sequence[int], aliases: Sequence[str]) -> Decided:
    """A new entity that takes some facts and some names of another: two of one name become two entities."""
    entities = entities_of(state)
    number = entity_named(entities, name)
    kept, called = entities.entries[number].name, entity_name(new)
    names = {entity_key(alias): entity_name(alias) for alias in (new, *aliases)}
    for key, alias in names.items():
        owner = entities.owner(alias)
        if key == entity_key(kept):
            raise InputError(f'"{alias}" is what {kept} itself is called; only its other names can be taken from it.')
        if owner is not None and owner != number:
            root = entities.entries[entities.root(owner)].name
            raise InputError(
                f'"{alias}" was merged into {kept}: split_entity("{alias}") parts the two.'
                if root == kept
                else f'"{alias}" is {root} already, which has nothing to do with {kept}.'
            )
    wanted = np.unique(np.array(rows, dtype=np.int64))
    taken = {column: np.intersect1d(wanted, _rows_with(state, column, kept)) for column in ("subject", "object")}
    edges = mention_edges(state, wanted, kept)
    strange = wanted[(edges < 0) & ~np.isin(wanted, np.concatenate(list(taken.values())))]
    if len(strange):
        raise InputError(f"Memory {int(strange[0]) + 1} does not mention {kept}; it cannot be split off from it.")
    there = edges >= 0
    change = _renamed(taken["subject"], "subject", called) + _renamed(taken["object"], "object", called)
    change += Change(unlink=edges[there].tolist()) + _join(wanted[there], called, state.edges.weight[edges[there]])
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
    mine = ~met.outgoing & (state.edges.relation[met.edge] == _MENTIONS) & (met.neighbour < len(state))
    order = np.argsort(met.neighbour[mine], kind="stable")
    return met.edge[mine][order], met.neighbour[mine][order]


def _unnamed(entities: Entities, root: int, *, without: int | None = None) -> Rows:
    """The rows that mention what was merged into ``root`` without naming it as subject or object."""
    roots = entities.roots()
    found: set[int] = set()
    for number in np.flatnonzero((roots == root) & (np.arange(len(roots)) != root)).tolist():
        if without is None or without not in entities.line(number):
            moved = entities.entries[number].moved
            found |= set(moved["edges"]) - set(moved["subject"]) - set(moved["object"]) | set(moved["shared"])
    return np.array(sorted(found), dtype=np.int64) - 1


def _renamed(rows: Rows, column: str, name: str) -> Change:
    return Change(set=[values_of(_ids(rows), **{column: name})]) if len(rows) else Change()


def _join(rows: Rows, name: str, weights: NDArray[np.float64]) -> Change:
    if not len(rows):
        return Change()
    return Change(join=[join_of(_ids(rows), "entity", [name] * len(rows), "mentions", weights.tolist())])


def _ids(rows: Rows) -> list[int]:
    found: list[int] = (rows + 1).tolist()
    return found
