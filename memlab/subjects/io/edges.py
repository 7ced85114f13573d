"""The edges of an export that a lab takes in: neither those it has, nor those that were removed from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memlab.io.formats import Bundle, split_node_name
from memlab.kernel.state import State

__all__ = ["graph_of"]

Removed = tuple[int, int, str, int]


def graph_of(
    state: State, bundle: Bundle, id_of: Mapping[int, int], known: Mapping[int, int]
) -> tuple[dict[str, Any], int]:
    """Return the edges to import, and how many they are.

    They are those with an end that is new, and those among known memories that are not here yet and were not removed
    here since.
    """
    nodes: dict[tuple[str, str], int] = {}
    if id_of:
        for kind, names in bundle.nodes.items():
            for name in names:
                nodes.setdefault((kind, name), -len(nodes) - 1)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("source", "target", "relation", "weight", "reinforcements", "created")
    }
    here = {**known, **id_of}
    removed = removed_edges(state) if known else frozenset[Removed]()
    for row in bundle.edges.iter_rows(named=True):
        ends = []
        for end in ("source", "target"):
            if row[end] is not None:
                ends.append(here.get(row[end]))
            else:
                ends.append(nodes.setdefault(split_node_name(row[f"{end}_node"]), -len(nodes) - 1))
        is_new = row["source"] in id_of or row["target"] in id_of
        if None in ends or (
            not is_new and (has_edge(state, row, ends) or is_removed(removed, row, ends))
        ):
            continue
        columns["source"].append(ends[0])
        columns["target"].append(ends[1])
        for name in ("relation", "weight", "reinforcements", "created"):
            columns[name].append(row[name])
    return {"nodes": [list(node) for node in nodes], **columns}, len(columns["source"])


def has_edge(state: State, row: Mapping[str, Any], ends: Sequence[int | None]) -> bool:
    """Whether memories that were here already have this edge, or had it and lost a tag since."""
    source, target = ends
    if source is None or target is None or source < 0 or target < 0:
        return True
    relation = state.edges.codes_of([row["relation"]])
    return bool(relation[0] >= 0 and state.edges.find([source - 1], [target - 1], relation)[0] >= 0)


def removed_edges(state: State) -> frozenset[Removed]:
    """Return the edges that were removed from a lab: the ids of both ends, the relation, when each was made."""
    edges = state.edges
    gone = np.flatnonzero(~edges.alive)
    ends = (edges.source[gone] + 1).tolist(), (edges.target[gone] + 1).tolist()
    return frozenset(
        zip(
            *ends,
            edges.words_of(edges.relation[gone]).tolist(),
            edges.created[gone].tolist(),
            strict=True,
        )
    )


def is_removed(
    removed: frozenset[Removed], row: Mapping[str, Any], ends: Sequence[int | None]
) -> bool:
    """Whether this very edge was removed; one that was made at another time between the same ends is another edge."""
    return (*ends, row["relation"], row["created"]) in removed
