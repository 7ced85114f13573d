"""Labs of the past, labs as one viewer sees them, and events as rows of a frame."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arrays import Flags
from memlab.kernel.base.clock import INSTANT, ManualClock, When, from_micros, to_micros
from memlab.kernel.base.progress import bar
from memlab.kernel.journal import Body, Event, JournalView
from memlab.kernel.privacy import refuse
from memlab.kernel.state import policy_events
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import ViewerStore


def open_store_at(store: Store, when: When | None, *, event: int | None, progress: bool) -> Store:
    """Return the store at a past time or after an event; see ``Lab.at``."""
    # The clock of the copy stands still, at the requested time or at the time of the event.
    if (when is None) == (event is None):
        raise InputError(
            "at takes a time or event=: pass one of them, not both. To choose only a viewer, pass viewer=."
        )
    journal = store.journal
    if event is None:
        assert when is not None
        event = journal.last_at(to_micros(when))
    elif not 1 <= event <= journal.head:
        raise InputError(f"event must be an integer from 1 to {journal.head}, not {event!r}.")
    first = next(journal.events(kinds=policy_events()), None)
    if first is None or event < first.seq:
        began = (
            ""
            if first is None
            else f" It began with event {first.seq}, at {from_micros(first.at).isoformat()}."
        )
        raise InputError(f"The lab did not exist at that time.{began} Pass a later time or event.")
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


def open_store_for(store: Store, viewer: str) -> Store:
    """Return the store as a viewer sees it; see ``Lab.at``."""
    if not viewer:
        raise InputError(
            'viewer must be the name of a user or an agent, such as "agent:coder", not an empty name.'
        )
    refuse(viewer, "viewer")
    if not isinstance(store, ViewerStore):
        return ViewerStore(store, viewer)
    if store.viewer != viewer:
        raise InputError(
            f'The viewer of this lab is "{store.viewer}". For another viewer, call at(...) on the original lab.'
        )
    return store


# -- events as rows ---------------------------------------------------------------------------------------------------


# The columns of ``lab.log``.
_SCHEMA: dict[str, Any] = {
    "event": pl.Int64,
    "at": pl.Int64,
    "kind": pl.String,
    "memories": pl.List(pl.Int64),
    "edges": pl.Int64,
    "what": pl.String,
}


def build_log(events: Iterable[Event], *, hidden: Flags | None = None) -> pl.DataFrame:
    """Return one row per event, as in ``Lab.log``, without ``hidden`` memories."""
    rows = [
        (
            event.seq,
            event.at,
            event.kind,
            _drop_hidden(list_memories(event), hidden),
            _count_edges(event.body),
            _describe(event, hidden),
        )
        for event in events
    ]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return frame.with_columns(pl.col("at").cast(INSTANT))


def list_memories(event: Event) -> list[int]:
    """Return the ascending ids of memories that an event added, returned or changed."""
    # Each field of an event's body names memories in its own way.
    body = event.body
    concerned_ids: set[int] = set()
    if "first" in body:
        concerned_ids.update(range(body["first"], body["first"] + body["count"]))
    ids = body.get("ids")
    if isinstance(ids, list):
        concerned_ids.update(ids)
    if event.kind == "feedback":
        concerned_ids.add(body["memory"])
    for part in body.get("set", ()):
        concerned_ids.update(part["ids"])
    for part in body.get("join", ()):
        concerned_ids.update(part["source"])
    edges = body.get("edges")
    if isinstance(edges, dict):
        concerned_ids.update(edges["source"])
        concerned_ids.update(edges["target"])
    return sorted(concerned_ids)


def _drop_hidden(ids: list[int], hidden: Flags | None) -> list[int]:
    """Return the memory ids, without ids of hidden memories."""
    return ids if hidden is None else [id for id in ids if not hidden[id - 1]]


def _count_edges(body: Body) -> int:
    """Return the number of edges that an event added, changed or removed."""
    edges = body.get("edges")
    added = len(edges["source"]) if isinstance(edges, dict) else 0
    changed = len(body["strengthen"]["edges"]) if "strengthen" in body else 0
    added_to_nodes = sum(len(part["source"]) for part in body.get("join", ()))
    return added + changed + added_to_nodes + len(body.get("unlink", ()))


def _describe(event: Event, hidden: Flags | None) -> str:
    """Return a short description of an event, without texts of memories."""
    # Reports of consent name the person and the embedder, because the consent was about them.
    body = event.body
    parts = [
        str(body[name]) for name in ("outcome", "name", "slot", "agent", "reason") if body.get(name)
    ]
    if "on" in body:
        parts.insert(0, "on" if body["on"] else "off")
    if event.kind == "switch":
        parts.insert(1, f"project {body['project']}" if body["project"] else "for all")
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
    # A recall lists the kinds of redactions. Stored memories list each redaction with the id of its memory.
    kinds = [
        redaction if isinstance(redaction, str) else redaction[1]
        for redaction in body.get("redacted", ())
        if isinstance(redaction, str) or hidden is None or not hidden[redaction[0] - 1]
    ]
    if kinds:
        parts.append(f"redacted: {', '.join(dict.fromkeys(kinds))}")
    return ", ".join(dict.fromkeys(parts))
