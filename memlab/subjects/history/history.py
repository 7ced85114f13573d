"""Labs to read and to ask: as they were, and as one viewer sees them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.clock import ManualClock, When, from_micros, to_micros
from memlab.kernel.base.progress import bar
from memlab.kernel.journal import Event, JournalView
from memlab.kernel.privacy import refuse
from memlab.kernel.state import policy_events
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import ViewerStore

__all__ = ["concerned", "happened", "store_at", "store_viewed_by"]


def store_at(store: Store, when: When | None, *, event: int | None, progress: bool) -> Store:
    """The store as it was at a time or after an event; see ``Lab.at``."""
    if (when is None) == (event is None):
        raise InputError("at takes a time, or event=: one of the two.")
    journal = store.journal
    if event is None:
        assert when is not None
        event = journal.last_at(to_micros(when))
    elif not 1 <= event <= journal.head:
        raise InputError(f"An event is a whole number from 1 to {journal.head}, not {event!r}.")
    first = next(journal.events(kinds=policy_events()), None)
    if first is None or event < first.seq:
        began = (
            ""
            if first is None
            else f" It began with event {first.seq}, at {from_micros(first.at).isoformat()}."
        )
        raise InputError(f"There was no lab then.{began}")
    last = next(iter(journal.events(after=event - 1, upto=event)))
    view = JournalView(journal, event)
    clock = ManualClock(last.at if when is None else when)
    with bar(
        progress and event > 20_000 and sys.stderr.isatty(),
        1,
        unit="fold",
        desc=f"to event {event:,}",
    ):
        return store.as_of(view, clock)


def store_viewed_by(store: Store, viewer: str) -> Store:
    """What ``viewer`` sees of a store; see ``Lab.at``."""
    if not viewer:
        raise InputError(
            'viewer is the name of a user or an agent, such as "agent:coder", not an empty name.'
        )
    refuse(viewer, "viewer")
    if not isinstance(store, ViewerStore):
        return ViewerStore(store, viewer)
    if store.viewer != viewer:
        raise InputError(f'This is the lab as "{store.viewer}" sees it, and shows nobody else\'s.')
    return store


# -- events as people read them: when, what, and whom it concerned ----------------------------------------------------


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
        (
            event.seq,
            event.at,
            event.kind,
            _seen(concerned(event), hidden),
            _edges(event.body),
            _what(event, hidden),
        )
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
    parts = [
        str(body[name]) for name in ("outcome", "name", "slot", "agent", "reason") if body.get(name)
    ]
    if event.kind == "switch":
        parts = [
            "on" if body["on"] else "off",
            f"project {body['project']}" if body["project"] else "for all",
            *parts,
        ]
        if "consent" in body:
            parts += [
                f"consent of {body['creator']}",
                f"embedded by {body['consent']['remote'] or 'this machine'}",
            ]
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
