"""The names in facts: subjects and objects as entities, predicates in one spelling, and the edges that follow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.policies import Pack
from memlab.kernel.schema import RELATIONS
from memlab.kernel.state import (
    Change,
    Entities,
    State,
    build_join,
    entity_key,
    normalize_entity_name,
)

__all__ = ["entities_of", "mention_edges", "mentioned", "named", "predicate_of", "renamed"]

Rows = NDArray[np.int64]


_MENTIONS = RELATIONS.index("mentions")
_NAMING = ("subject", "object")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PARTS = re.compile(r"[-_\s]+")


def predicate_of(name: str) -> str:
    """A predicate as it is kept: in small letters, its words joined, however they were told apart.

    >>> predicate_of("Lives in"), predicate_of("livesIn"), predicate_of("lives_in"), predicate_of("prefers:theme")
    ('lives-in', 'lives-in', 'lives-in', 'prefers:theme')
    """
    words = _PARTS.split(_HUMP.sub("-", name).casefold().strip("-_ \t\n"))
    return "-".join(words) or name.casefold()


def named(state: State, pack: Pack, columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """What is about to be remembered, with each subject and object called by its entity's name.

    A fact (a subject and a predicate) for which no status is given begins as the setting ``fact-status`` says.
    """
    after = dict(columns)
    called: dict[str, str] = {}
    given = [column for column in _NAMING if column in columns]
    names = dict.fromkeys(name for column in given for name in columns[column] if name is not None)
    if names:
        entities = entities_of(state)
        for name in names:
            called.setdefault(
                entity_key(name), entities.canonical_name(name) or normalize_entity_name(name)
            )
    for column in given:
        after[column] = [
            None if name is None else called[entity_key(name)] for name in columns[column]
        ]
    if "predicate" in columns:
        after["predicate"] = [
            None if name is None else predicate_of(name) for name in columns["predicate"]
        ]
    first = str(pack.settings["fact-status"])
    if "status" not in columns and first != "active" and {"subject", "predicate"} <= columns.keys():
        pairs = zip(columns["subject"], columns["predicate"], strict=True)
        after["status"] = ["active" if None in pair else first for pair in pairs]
    return after


def mentioned(
    columns: Mapping[str, Sequence[str | None]],
    ids: Sequence[int],
    named_in: Mapping[int, Sequence[str]] | None = None,
) -> Change:
    """The edges from memories with these ids to the entities that they name as subject or object, or in their texts.

    ``named_in`` has the names in a text by the place of its row.
    """
    given = [columns[column] for column in _NAMING if column in columns]
    texts = named_in or {}
    pairs = [
        (id, name)
        for row, (id, *names) in enumerate(zip(ids, *given, strict=True))
        for name in dict.fromkeys([*names, *texts.get(row, ())])
        if name is not None
    ]
    if not pairs:
        return Change()
    source, target = zip(*pairs, strict=True)
    return Change(join=[build_join(source, "entity", target, "mentions")])


def renamed(state: State, row: int, given: Mapping[str, Any]) -> tuple[dict[str, Any], Change]:
    """Another ``subject`` or ``object`` for a memory: called by their entities' names, and the mentions that follow."""
    entities, after = entities_of(state), dict(given)
    before = {column: state.names[column].value_at(row) for column in _NAMING}
    for column in (column for column in _NAMING if column in given):
        name = given[column]
        after[column] = (
            None if name is None else entities.canonical_name(name) or normalize_entity_name(name)
        )
    if after.get("predicate") is not None:
        after["predicate"] = predicate_of(after["predicate"])
    now = {name for column in before if (name := after.get(column, before[column])) is not None}
    was = {name for name in before.values() if name is not None}
    place = np.array([row])
    gone = [int(mention_edges(state, place, name)[0]) for name in sorted(was - now)]
    fresh = sorted(now - was)
    join = [build_join([row + 1] * len(fresh), "entity", fresh, "mentions")] if fresh else []
    return after, Change(unlink=[edge for edge in gone if edge >= 0], join=join)


def entities_of(state: State) -> Entities:
    """The register of entities."""
    return state.projection(Entities)


def mention_edges(state: State, rows: Rows, name: str) -> Rows:
    """The edge by which each row mentions an entity, -1 where it does not."""
    node = int(state.nodes.find("entity", [name])[0])
    if node < 0:
        return np.full(len(rows), -1, dtype=np.int64)
    return state.edges.find(rows, np.full(len(rows), node), np.full(len(rows), _MENTIONS))
