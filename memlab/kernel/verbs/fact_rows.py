"""Normalise names in facts and build the edges from memories to entities."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memlab.kernel.base.arrays import Rows
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

# The code of the relation "mentions", the columns that hold names of entities, and the two ways
# in which the words of a predicate are separated: livesIn, and lives_in or "lives in".
_MENTIONS = RELATIONS.index("mentions")
_NAMING = ("subject", "object")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PARTS = re.compile(r"[-_\s]+")


def normalize_predicate(name: str) -> str:
    """Return a predicate in its stored spelling: lower case, words joined by hyphens.

    >>> normalize_predicate("Lives in"), normalize_predicate("livesIn"), normalize_predicate("prefers:theme")
    ('lives-in', 'lives-in', 'prefers:theme')
    """
    words = _PARTS.split(_HUMP.sub("-", name).casefold().strip("-_ \t\n"))
    return "-".join(words) or name.casefold()


def canonicalize_names(
    state: State, pack: Pack, columns: Mapping[str, list[Any]]
) -> dict[str, list[Any]]:
    """Return columns with canonical subjects, objects and predicates.

    If ``columns`` has no status, each fact (a row with a subject and a predicate) gets the status of the setting
    ``fact-status``.
    """
    # If the setting is "active", the default, no status is written, so that events stay short.
    result = dict(columns)
    canonical: dict[str, str] = {}
    present = [column for column in _NAMING if column in columns]
    names = dict.fromkeys(
        name for column in present for name in columns[column] if name is not None
    )
    if names:
        entities = get_entities(state)
        for name in names:
            canonical.setdefault(
                entity_key(name), entities.canonical_name(name) or normalize_entity_name(name)
            )
    for column in present:
        result[column] = [
            None if name is None else canonical[entity_key(name)] for name in columns[column]
        ]
    if "predicate" in columns:
        result["predicate"] = [
            None if name is None else normalize_predicate(name) for name in columns["predicate"]
        ]
    initial = str(pack.settings["fact-status"])
    if (
        "status" not in columns
        and initial != "active"
        and {"subject", "predicate"} <= columns.keys()
    ):
        pairs = zip(columns["subject"], columns["predicate"], strict=True)
        result["status"] = ["active" if None in pair else initial for pair in pairs]
    return result


def build_mention_edges(
    columns: Mapping[str, Sequence[str | None]],
    ids: Sequence[int],
    named_in: Mapping[int, Sequence[str]] | None = None,
) -> Change:
    """Return the edges from memories to the entities that they mention.

    An entity is mentioned as subject, as object or in the text. ``named_in`` maps a position in ``ids`` to the names
    found in that text.
    """
    present = [columns[column] for column in _NAMING if column in columns]
    texts = named_in or {}
    pairs = [
        (id, name)
        for row, (id, *names) in enumerate(zip(ids, *present, strict=True))
        for name in dict.fromkeys([*names, *texts.get(row, ())])
        if name is not None
    ]
    if not pairs:
        return Change()
    source, target = zip(*pairs, strict=True)
    return Change(join=[build_join(source, "entity", target, "mentions")])


def rename_entities(
    state: State, row: int, fields: Mapping[str, Any]
) -> tuple[dict[str, Any], Change]:
    """Return edited fields with canonical names, and the changes to mention edges."""
    # An entity that is still subject or object keeps its edge; only the difference is written.
    entities, after = get_entities(state), dict(fields)
    before = {column: state.names[column].value_at(row) for column in _NAMING}
    for column in (column for column in _NAMING if column in fields):
        name = fields[column]
        after[column] = (
            None if name is None else entities.canonical_name(name) or normalize_entity_name(name)
        )
    if after.get("predicate") is not None:
        after["predicate"] = normalize_predicate(after["predicate"])
    current = {name for column in before if (name := after.get(column, before[column])) is not None}
    previous = {name for name in before.values() if name is not None}
    rows = np.array([row])
    obsolete = [
        int(find_mention_edges(state, rows, name)[0]) for name in sorted(previous - current)
    ]
    fresh = sorted(current - previous)
    join = [build_join([row + 1] * len(fresh), "entity", fresh, "mentions")] if fresh else []
    return after, Change(unlink=[edge for edge in obsolete if edge >= 0], join=join)


def get_entities(state: State) -> Entities:
    """Return the projection of entities and their names."""
    return state.projection(Entities)


def find_mention_edges(state: State, rows: Rows, name: str) -> Rows:
    """Return the number of the edge from each row to the entity, or -1 without an edge."""
    node = int(state.nodes.find("entity", [name])[0])
    if node < 0:
        return np.full(len(rows), -1, dtype=np.int64)
    return state.edges.find(rows, np.full(len(rows), node), np.full(len(rows), _MENTIONS))
