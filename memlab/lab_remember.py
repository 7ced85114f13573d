"""What ``remember`` writes besides texts and vectors: columns made small, names without secrets, edges of sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memlab.memory import State
from memlab.privacy import refuse

__all__ = ["chained", "compact", "refuse_names"]


def compact(columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Columns without nulls throughout, and a value that all rows share once."""
    small: dict[str, Any] = {}
    for name, values in columns.items():
        first = values[0]
        if isinstance(first, list) or any(isinstance(value, list) for value in values):
            small[name] = values
        elif all(value == first for value in values):
            if first is not None:
                small[name] = first
        else:
            small[name] = values
    return small


def refuse_names(columns: Mapping[str, list[Any]]) -> None:
    """PrivacyError if a value other than the texts, which are redacted, holds a secret."""
    for name, values in columns.items():
        seen: set[str] = set()
        for value in values:
            if isinstance(value, str):
                seen.add(value)
            elif isinstance(value, list):
                seen.update(value)
        for value in seen:
            refuse(value, f"the field {name}")


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
