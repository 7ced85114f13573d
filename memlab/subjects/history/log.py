"""Events as people read them: when, what, and whom it concerned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.journal import Event

__all__ = ["concerned", "happened"]

_SCHEMA: dict[str, Any] = {
    "event": pl.Int64,
    "at": pl.Int64,
    "kind": pl.String,
    "memories": pl.List(pl.Int64),
    "edges": pl.Int64,
    "what": pl.String,
}


def happened(events: Iterable[Event], *, hidden: NDArray[np.bool_] | None = None) -> pl.DataFrame:
    """One row an event: event, at (UTC), kind, memories (but the ``hidden``), edges (made, changed, removed), what."""
    rows = [
        (event.seq, event.at, event.kind, _seen(concerned(event), hidden), _edges(event.body), _what(event, hidden))
        for event in events
    ]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return frame.with_columns(pl.col("at").cast(pl.Datetime("us", "UTC")))


def concerned(event: Event) -> list[int]:
    """The ids of the memories that an event added, showed, judged, joined or changed; each once, ascending."""
    body = event.body
    found: set[int] = set()
    if "first" in body:
        found.update(range(body["first"], body["first"] + body["count"]))
    ids = body.get("ids")
    if isinstance(ids, list):
        found.update(ids)
    if event.kind == "feedback":
        found.add(body["memory"])
    for part in body.get("set", ()):
        found.update(part["ids"])
    for part in body.get("join", ()):
        found.update(part["source"])
    edges = body.get("edges")
    if isinstance(edges, dict):
        found.update(edges["source"])
        found.update(edges["target"])
    return sorted(found)


def _seen(ids: list[int], hidden: NDArray[np.bool_] | None) -> list[int]:
    return ids if hidden is None else [id for id in ids if not hidden[id - 1]]


def _edges(body: dict[str, Any]) -> int:
    edges = body.get("edges")
    made = len(edges["source"]) if isinstance(edges, dict) else 0
    changed = len(body["strengthen"]["edges"]) if "strengthen" in body else 0
    joined = sum(len(part["source"]) for part in body.get("join", ()))
    return made + changed + joined + len(body.get("unlink", ()))


def _what(event: Event, hidden: NDArray[np.bool_] | None) -> str:
    """A few words: what an event says besides whom it concerned."""
    body = event.body
    parts = [str(body[name]) for name in ("outcome", "name", "slot", "agent", "reason") if body.get(name)]
    if event.kind == "switch":
        parts = ["on" if body["on"] else "off", f"project {body['project']}" if body["project"] else "for all", *parts]
        if "consent" in body:
            parts += [f"consent of {body['creator']}", f"embedded by {body['consent']['remote'] or 'this machine'}"]
    if body.get("reward") is not None:
        parts.append(f"reward {body['reward']:g}")
    for part in body.get("set", ()):
        parts += [
            f"{name} -> {value}" if isinstance(value, str) else name
            for name, value in part["columns"].items()
            if name != "changed"
        ]
    # of a recall the kinds, of what was stored each with the id of its memory
    kinds = [
        one if isinstance(one, str) else one[1]
        for one in body.get("redacted", ())
        if isinstance(one, str) or hidden is None or not hidden[one[0] - 1]
    ]
    if kinds:
        parts.append(f"redacted: {', '.join(dict.fromkeys(kinds))}")
    return ", ".join(dict.fromkeys(parts))
