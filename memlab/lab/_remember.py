"""What ``remember`` writes besides texts and vectors: columns made small, names without secrets, edges of sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memlab.life import mentioned
from memlab.memory import State, compact
from memlab.policies import Pack
from memlab.schema import MEMORY

__all__ = ["chained", "chosen", "remembering", "with_confidence", "without_confidence"]

Value = TypeVar("Value")


def remembering(
    state: State, columns: Mapping[str, list[Any]], first: int, count: int, *, chain: bool
) -> dict[str, Any]:
    """The body of the event that adds ``count`` memories from the id ``first`` on."""
    body: dict[str, Any] = {"first": first, "count": count, "columns": compact(columns) if count else {}}
    body |= mentioned(columns, range(first, first + count)).body()
    if chain:
        body["edges"] = chained(state, columns, first, count)
    return body


def chosen(values: Sequence[Value], kept: NDArray[np.bool_]) -> list[Value]:
    """Those that are kept."""
    return [value for value, keep in zip(values, kept.tolist(), strict=True) if keep]


def without_confidence(columns: Mapping[str, Sequence[Any]], count: int) -> list[int]:
    """The rows for which no confidence is given."""
    given = columns.get("confidence")
    return [row for row in range(count) if given is None or given[row] is None]


def with_confidence(columns: dict[str, list[Any]], unsure: Sequence[int], pack: Pack) -> None:
    """Give those rows the confidence that the pack begins with, if it is not what they have anyhow."""
    first, default = pack.number("initial-confidence"), MEMORY["confidence"].default
    if first == default or not unsure:
        return
    count = len(next(iter(columns.values()), unsure))
    values = columns.setdefault("confidence", [default] * count)
    for row in unsure:
        values[row] = first


def chained(state: State, columns: Mapping[str, Sequence[Any]], first: int, count: int) -> dict[str, Any]:
    """``next`` edges from each new memory's predecessor in its session to it."""
    nothing = [None] * count
    last: dict[tuple[str | None, str], int | None] = {}
    source, target = [], []
    places = zip(columns.get("project", nothing), columns.get("session", nothing), strict=True)
    for offset, place in enumerate(places):
        if place[1] is None:
            continue
        before = last[place] if place in last else state.last_of(*place)
        if before is not None:
            source.append(before)
            target.append(first + offset)
        last[place] = first + offset
    return {"source": source, "target": target, "relation": "next", "weight": 1.0}
