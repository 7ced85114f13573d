"""What ``remember`` writes besides texts and vectors: columns made small, names without secrets, edges of sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.policies import Pack
from memlab.kernel.schema import MEMORY
from memlab.kernel.state import EVERYONE, NOBODY, State, compact, hidden_from
from memlab.kernel.verbs.fact_rows import mentioned
from memlab.kernel.verbs.gate import is_agent

__all__ = ["chained", "chosen", "only", "remembering", "with_first", "with_visibility", "without"]

Value = TypeVar("Value")


def remembering(
    state: State,
    columns: Mapping[str, list[Any]],
    first: int,
    count: int,
    *,
    chain: bool,
    named_in: Mapping[int, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """The body of the event that adds ``count`` memories from the id ``first`` on; ``named_in``: names in texts."""
    body: dict[str, Any] = {"first": first, "count": count, "columns": compact(columns) if count else {}}
    body |= mentioned(columns, range(first, first + count), named_in).body()
    if chain:
        body["edges"] = chained(state, columns, first, count)
    return body


def chosen(values: Sequence[Value], kept: NDArray[np.bool_]) -> list[Value]:
    """Those that are kept."""
    return [value for value, keep in zip(values, kept.tolist(), strict=True) if keep]


def only(kept: NDArray[np.bool_], columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """The rows of columns that are kept."""
    return {name: chosen(values, kept) for name, values in columns.items()}


def without(columns: Mapping[str, Sequence[Any]], name: str, count: int) -> list[int]:
    """The rows for which nothing is given in a column."""
    given = columns.get(name)
    return [row for row in range(count) if given is None or given[row] is None]


def with_first(name: str, columns: dict[str, list[Any]], missing: Sequence[int], pack: Pack) -> None:
    """Give those rows the confidence or strength that the pack begins with, if it is not what they have anyhow."""
    first, default = pack.number(f"initial-{name}"), MEMORY[name].default
    if first == default or not missing:
        return
    count = len(next(iter(columns.values()), missing))
    values = columns.setdefault(name, [default] * count)
    for row in missing:
        values[row] = first


def with_visibility(columns: dict[str, list[Any]], missing: Sequence[int], pack: Pack) -> None:
    """Give those rows of which the creator is known the visibility that the pack says."""
    how, default, creators = str(pack.settings["visibility"]), MEMORY["visibility"].default, columns.get("creator")
    if how == default or creators is None:
        return
    for row in missing:
        if creators[row] is not None:
            agent = how == "by-creator" and is_agent(creators[row])
            values = columns.setdefault("visibility", [default] * len(creators))
            values[row] = default if agent else "private" if how == "by-creator" else how


def chained(state: State, columns: Mapping[str, Sequence[Any]], first: int, count: int) -> dict[str, Any]:
    """``next`` edges from each new memory's predecessor in its session to it: the last that whoever sees it sees."""
    nothing = [None] * count
    fresh: dict[tuple[str | None, str], list[tuple[int, str]]] = {}
    source, target = [], []
    places = zip(columns.get("project", nothing), columns.get("session", nothing), strict=True)
    audiences = [
        creator or NOBODY if visibility == "private" else EVERYONE
        for visibility, creator in zip(columns.get("visibility", nothing), columns.get("creator", nothing), strict=True)
    ]
    for offset, ((project, session), audience) in enumerate(zip(places, audiences, strict=True)):
        if session is None:
            continue
        come = fresh.setdefault((project, session), [])
        before = next((id for id, whose in reversed(come) if whose in (EVERYONE, audience)), None)
        before = _last_of(state, project, session, audience) if before is None else before
        if before is not None:
            source.append(before)
            target.append(first + offset)
        come.append((first + offset, audience))
    return {"source": source, "target": target, "relation": "next", "weight": 1.0}


def _last_of(state: State, project: str | None, session: str, audience: str) -> int | None:
    """The id of the newest memory of a session that an audience sees."""
    last = state.last_of(project, session)
    hidden = None if last is None else hidden_from(state, audience)
    if hidden is None or last is None or not hidden[last - 1]:
        return last
    rows = np.flatnonzero((state.contexts.codes == state.contexts.codes[last - 1]) & ~hidden)
    return int(rows[-1]) + 1 if len(rows) else None
