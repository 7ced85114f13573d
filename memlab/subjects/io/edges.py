"""The import of an export's edges, except edges that the lab has or has removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memlab.io.formats import Bundle, split_node_name
from memlab.kernel.state import State

# The source id, the target id, the relation and the time of creation of a removed edge.
Removed = tuple[int, int, str, int]


def graph_of(
    state: State, bundle: Bundle, id_of: Mapping[int, int], known_ids: Mapping[int, int]
) -> tuple[dict[str, Any], int]:
    """Return the edges to import from a bundle as an event's ``graph``, and their number.

    An edge with a new end is imported. An edge between known memories is imported unless the lab
    has the edge or has removed it. ``id_of`` maps ids of the export to ids of new memories, and
    ``known_ids`` maps them to ids of known memories.
    """
    # Nodes that are not memories have negative numbers, counted from -1, until the event is folded.
    nodes: dict[tuple[str, str], int] = {}
    if id_of:
        for kind, names in bundle.nodes.items():
            for name in names:
                nodes.setdefault((kind, name), -len(nodes) - 1)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("source", "target", "relation", "weight", "reinforcements", "created")
    }
    ids = {**known_ids, **id_of}
    removed = removed_edges(state) if known_ids else frozenset[Removed]()
    for row in bundle.edges.iter_rows(named=True):
        ends = []
        for end in ("source", "target"):
            if row[end] is not None:
                ends.append(ids.get(row[end]))
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
    """Return whether the lab has an edge between two known memories.

    An edge from a known memory to a tag or another node counts as present, because the lab may have
    removed it on purpose.
    """
    source, target = ends
    if source is None or target is None or source < 0 or target < 0:
        return True
    relation = state.edges.codes_of([row["relation"]])
    return bool(relation[0] >= 0 and state.edges.find([source - 1], [target - 1], relation)[0] >= 0)


def removed_edges(state: State) -> frozenset[Removed]:
    """Return all edges that were removed from a lab."""
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
    """Return whether the lab removed an edge with these ends, relation and time.

    Edges with the same ends and relation but another time of creation are different edges.
    """
    return (*ends, row["relation"], row["created"]) in removed
