"""Edges that a caller gives as a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError, did_you_mean
from memlab.kernel.state import Change, State

__all__ = ["EdgeRow", "edge_rows", "weighed"]

_OWN = ("source", "target", "relation", "weight")
_KNOWN = (*_OWN, "reinforcements", "created", "from_kind", "to_kind", "to", "edge")
"""The columns of ``lab.edges``; those that are not a caller's to set are passed over."""


class EdgeRow(NamedTuple):
    """One edge between two memories, by their ids."""

    source: int
    target: int
    relation: str
    weight: float


def edge_rows(frame: pl.DataFrame) -> list[EdgeRow]:
    """Return the edges between memories that a frame names, in its order.

    Raises
    ------
    InputError
        If a column is none of ``lab.edges``, one of the ends is missing, or a value is no id, relation or weight.
    """
    for name in frame.columns:
        if name not in _KNOWN:
            raise InputError(f'A frame of edges has no column "{name}". {did_you_mean(name, _OWN)}')
    for name in ("source", "target"):
        if name not in frame.columns or not frame[name].dtype.is_integer() or frame[name].null_count():
            raise InputError(f"A frame of edges needs the column {name}, with the id of a memory in each row.")
    for kind in ("from_kind", "to_kind"):
        if kind in frame.columns:
            frame = frame.filter(pl.col(kind).is_null() | (pl.col(kind) == "memory"))
    relations = frame["relation"].to_list() if "relation" in frame.columns else ["relates-to"] * len(frame)
    weights = frame["weight"].to_list() if "weight" in frame.columns else [1.0] * len(frame)
    edges = []
    for row, (source, target, relation, weight) in enumerate(
        zip(frame["source"].to_list(), frame["target"].to_list(), relations, weights, strict=True)
    ):
        if not isinstance(relation, str):
            raise InputError(f"Row {row} of the edges: relation is a text, not {relation!r:.40}.")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
            raise InputError(f"Row {row} of the edges: weight is a number from 0 to 1, not {weight!r:.40}.")
        edges.append(EdgeRow(source, target, relation, float(weight)))
    return edges


def weighed(state: State, edges: Sequence[EdgeRow]) -> tuple[Change, list[EdgeRow]]:
    """Return what gives edges that are there their new weights, and the edges that are not there yet."""
    last = list({edge[:3]: edge for edge in edges}.values())
    if not last:
        return Change(), []
    source, target = (np.array([edge[end] for edge in last], dtype=np.int64) - 1 for end in (0, 1))
    relation = state.edges.codes_of([edge.relation for edge in last])
    known = np.where(relation >= 0, state.edges.find(source, target, relation), -1).tolist()
    weights = state.edges.weight
    moved = [(at, edge.weight) for at, edge in zip(known, last, strict=True) if at >= 0 and weights[at] != edge.weight]
    numbers, values = ([], []) if not moved else map(list, zip(*moved, strict=True))
    change = Change(strengthen={"edges": numbers, "weight": values} if moved else None)
    return change, [edge for at, edge in zip(known, last, strict=True) if at < 0]
