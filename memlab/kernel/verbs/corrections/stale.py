"""What corrections of earlier versions left in old words, and what superseded which memory by which rule.

Earlier versions carried the summary, the fact and the tags of the old text over to the corrected one, and left edges,
extracted facts and summaries of consolidation as they were. ``stale_frame`` finds them by the function that an edit
asks today; ``Rebuilding`` makes them again, as events. What was superseded in the past stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from memlab.kernel.journal import Event, Journal, JournalView, Transaction
from memlab.kernel.policies import Pack, VersionLog
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import Change, State, edges_of, stamps, values_of
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.corrections.dependents import Dependents, find_dependents
from memlab.kernel.verbs.corrections.editing import carried_fields, edited
from memlab.kernel.verbs.corrections.rederiving import rederive
from memlab.kernel.verbs.corrections.relinking import edges_after, word_edges
from memlab.kernel.verbs.corrections.replacing import Editor, EditOutcome
from memlab.kernel.verbs.linking import comparing

__all__ = ["Rebuilding", "stale_frame", "supersession_frame"]

_STALE: dict[str, Any] = {"memory_id": pl.Int64, "field": pl.String, "holds": pl.String, "text": pl.String}
_BY_EDIT = "user-edit"
_STANDING = (*RECALLABLE, "consolidated")


@dataclass
class _Finding:
    """One corrected memory: its row, the rows of its former texts, and what it has of them."""

    row: int
    former: list[int]
    fields: dict[str, Any] = field(default_factory=dict)
    """Fields that hold old words, with the values that they get; None takes one away."""
    edges: dict[int, set[int]] = field(default_factory=dict)
    """By former row, the edges that held for its words alone."""
    made: list[tuple[Dependents, int, list[int]]] = field(default_factory=list)
    """Memories in use that were made of a former text: their sort, the former row, their rows."""

    def __bool__(self) -> bool:
        return bool(self.fields or any(self.edges.values()) or self.made)


# -- finding ----------------------------------------------------------------------------------------------------------


def stale_frame(state: State, pack: Pack, journal: Journal | JournalView) -> pl.DataFrame:
    """Return a row for each field of a memory that still tells what it told before a correction.

    Columns: ``memory_id``, ``field``, ``holds`` (the old words) and ``text`` (the memory as it is). ``field`` is a
    field of the memory, "edges" for edges that linking made of the old words, "extracted" for a memory that was read
    from them, or "consolidation" for a summary in use that quotes them.
    """
    rows = []
    for found in _findings(state, pack, journal):
        text, id = state.texts.at(found.row) or "", found.row + 1
        rows += [(id, name, _shown(state, found.row, name), text) for name in found.fields]
        edges = sorted(edge for some in found.edges.values() for edge in some)
        if edges:
            names = state.edges.words_of(state.edges.relation[edges]).tolist()
            rows.append((id, "edges", ", ".join(sorted(names)), text))
        for sort, former, some in found.made:
            old = state.texts.at(former) or ""
            rows += [(one + 1, sort.label, old, state.texts.at(one) or "") for one in some]
    return pl.DataFrame(rows, schema=_STALE, orient="row").unique(maintain_order=True)


def _findings(state: State, pack: Pack, journal: Journal | JournalView) -> Iterator[_Finding]:
    chains = _chains(state)
    given = _given(journal.events(upto=state.seq, kinds=("remember", "edit"))) if chains else {}
    for row, former in chains:
        found = _Finding(row, former)
        made = []
        new = state.texts.at(row) or ""
        now = carried_fields(state, row)
        for one in former:
            old = state.texts.at(one)
            if old is None or old == new:
                continue
            before = carried_fields(state, one)
            kept = {name: now[name] for name in given.get(row + 1, ()) if name in now}
            derived = rederive({**before, "kind": now.get("kind", "fact")}, old, new, kept, pack)
            found.fields |= {
                name: value
                for name, value in derived.columns.items()
                if name in now and now[name] == before.get(name) and name not in given.get(row + 1, ())
            }
            found.edges[one] = word_edges(state, journal, one)
            made.append([(sort, one, _in_use(state, rows, row)) for sort, rows in find_dependents(state, one, new)])
        found.made = [entry for sorts in zip(*made, strict=True) for entry in sorts if entry[2]]
        if found:
            yield found


def _chains(state: State) -> list[tuple[int, list[int]]]:
    """Each corrected memory that stands, with the rows that it replaced, the latest first."""
    by, status, source = state.numbers["superseded_by"].values, state.names["status"], state.names["source"]
    successor = {
        int(old): int(by[old]) - 1
        for old in np.flatnonzero((status.codes == status.code("superseded")) & (by == by))
        if source.at(int(by[old]) - 1) == _BY_EDIT
    }
    former: dict[int, list[int]] = {}
    for old in successor:
        last, seen = old, {old}
        while (after := successor.get(last)) is not None and after not in seen:
            last = after
            seen.add(after)
        if status.at(last) in _STANDING:
            former.setdefault(last, []).append(old)
    return [(row, sorted(rows, reverse=True)) for row, rows in sorted(former.items())]


def _given(events: Iterable[Event]) -> dict[int, frozenset[str]]:
    """By id, the fields that an edit itself set, as far as its event says so."""
    found: dict[int, frozenset[str]] = {}
    for event in events:
        told = event.body.get("derived")
        if isinstance(told, Mapping):
            id = event.body["first"] if event.kind == "remember" else event.body["memory"]
            found[id] = found.get(id, frozenset()) | frozenset(told.get("given", ()))
    return found


def _in_use(state: State, rows: list[int], corrected: int) -> list[int]:
    status = state.names["status"]
    return [row for row in rows if row != corrected and status.at(row) in _STANDING]


def _shown(state: State, row: int, name: str) -> str:
    held = carried_fields(state, row).get(name)
    return ", ".join(map(str, held)) if isinstance(held, list | tuple) else str(held)


# -- rebuilding -------------------------------------------------------------------------------------------------------


class Rebuilding:
    """Make again what ``stale_frame`` finds, within one transaction."""

    def __init__(self, core: Core, tx: Transaction, now: int) -> None:
        self._core, self._now = core, now
        self._store = core.store
        self._editor = Editor(core, tx, now)

    def run(self) -> pl.DataFrame:
        """Write the events, and return what was stale."""
        state, pack, store = self._store.state, self._store.versions.pack, self._store
        frame = stale_frame(state, pack, store.journal)
        for found in list(_findings(state, pack, store.journal)):
            self._fields(found)
            self._edges(found)
            outcome = EditOutcome(found.row + 1)
            text = store.state.texts.at(found.row) or ""
            for sort, former, _ in found.made:
                self._withdraw(found.row, sort, former, text, outcome)
            for sort, former, rows in found.made:
                sort.revise(self._editor, former, text, rows, outcome)
        return frame

    def _fields(self, found: _Finding) -> None:
        if found.fields:
            change = edited(self._store.state, found.row, found.fields, self._now)
            told = {"rebuilt": sorted(found.fields), "dropped": [], "given": []}
            body = {"memory": found.row + 1, "again": [found.row + 1], "derived": told, **change.body()}
            self._editor.write("edit", body)

    def _edges(self, found: _Finding) -> None:
        """Remove the edges of the old words, carry those that were stated, and compare the new words with others.

        Nothing is superseded or merged for it: of what linking decides, the edges alone are made.
        """
        if not any(found.edges.values()):
            return
        state, id = self._store.state, found.row + 1
        change = Change()
        for one in found.edges:
            change += edges_after(state, self._store.journal, one, id)
        if self._core.pack.settings["linking"] != "off" and state.names["status"].at(found.row) in RECALLABLE:
            _, source, target, relation, weight = comparing(self._core).after(range(id, id + 1)).edges
            if len(source):
                made = edges_of(source.tolist(), target.tolist(), relation.tolist(), weight.tolist())
                change += Change(edges=made)
        self._editor.write("link", {"by": "edit", **_fresh(state, change).body()})

    def _withdraw(self, row: int, sort: Dependents, former: int, text: str, outcome: EditOutcome) -> None:
        """Take back what quotes a former text; the corrected memory comes back with its other members."""
        rows = sort.find(self._store.state, former, text, ())
        after = sort.withdraw(self._editor, former, rows, {"status": "consolidated"}, outcome)
        status = after.get("status", "active")
        if self._store.state.names["status"].at(row) == "consolidated" != status:
            change = Change(set=[values_of([row + 1], status=status, changed=self._now)])
            self._editor.write("edit", {"memory": row + 1, **change.body()})


def _fresh(state: State, change: Change) -> Change:
    """The change without edges that are there already, each once."""
    if change.edges is None:
        return Change(unlink=sorted(set(change.unlink)))
    columns = [change.edges[name] for name in ("source", "target", "relation", "weight")]
    rows = list({one[:3]: one for one in zip(*columns, strict=True)}.values())
    ends = np.array([[one[0] - 1 for one in rows], [one[1] - 1 for one in rows]], dtype=np.int64)
    had = state.edges.find(ends[0], ends[1], state.edges.codes_of([one[2] for one in rows])) >= 0
    kept = [one for one, known in zip(rows, had.tolist(), strict=True) if not known]
    edges = edges_of(*([one[place] for one in kept] for place in range(4))) if kept else None
    return Change(edges=edges, unlink=sorted(set(change.unlink)))


# -- which rule superseded what ---------------------------------------------------------------------------------------

_SUPERSEDED: dict[str, Any] = {
    "memory_id": pl.Int64,
    "superseded_by": pl.Int64,
    "at": pl.Int64,
    "event": pl.Int64,
    "rule": pl.String,
    "relation": pl.String,
    "pack": pl.String,
    "pack_hash": pl.String,
    "link_hash": pl.String,
    "resolve_hash": pl.String,
    "reason": pl.String,
    "text": pl.String,
    "by_text": pl.String,
}


def supersession_frame(state: State, versions: VersionLog, events: Iterable[Event]) -> pl.DataFrame:
    """Return a row for each superseded memory: by what, when, by which rule, and under which policies.

    ``rule`` is "correction" (an edit), "linking" (the pack's ``link`` and ``resolve``), "merge" (linking made one of
    two), "by hand", "verifier", "import", or "unknown rule". ``relation`` is what ``link`` called the pair, where its
    event says so. ``pack``, ``pack_hash``, ``link_hash`` and ``resolve_hash`` are those that were active at the event.
    """
    by, status = state.numbers["superseded_by"].values, state.names["status"]
    rows = np.flatnonzero(status.codes == status.code("superseded")).tolist()
    wanted = {row + 1 for row in rows}
    last: dict[int, Event] = {}
    for event in events:
        last |= dict.fromkeys(wanted.intersection(_superseded_by(event)), event)
    found = []
    for row in rows:
        made, other = last.get(row + 1), by[row]
        reason = state.notes["reason"].at(row)
        successor = None if other != other else int(other)
        pack = None if made is None else versions.live_at(made.seq)
        found.append(
            (
                row + 1,
                successor,
                int(state.numbers["changed"].values[row]) if made is None else made.at,
                None if made is None else made.seq,
                _rule(made, reason),
                None if made is None or successor is None else _relation(made, successor, row + 1),
                None if pack is None else pack.name,
                None if pack is None else pack.hash,
                None if pack is None else pack.policies["link"].hash,
                None if pack is None else pack.policies["resolve"].hash,
                reason,
                state.texts.at(row),
                None if successor is None else state.texts.at(successor - 1),
            )
        )
    frame = pl.DataFrame(found, schema=_SUPERSEDED, orient="row")
    return frame.with_columns(stamps("at", frame["at"].to_numpy()))


def _superseded_by(event: Event) -> Iterator[int]:
    """The ids that an event gives the status superseded."""
    body = event.body
    for part in body.get("set", ()):
        words = part["columns"].get("status")
        if words == "superseded":
            yield from part["ids"]
        elif isinstance(words, list):
            yield from (id for id, word in zip(part["ids"], words, strict=True) if word == "superseded")
    words = body.get("columns", {}).get("status") if "first" in body else None
    if words is not None:
        ids = range(body["first"], body["first"] + body["count"])
        each = words if isinstance(words, list) else [words] * len(ids)
        yield from (id for id, word in zip(ids, each, strict=True) if word == "superseded")


def _rule(event: Event | None, reason: str | None) -> str:
    if event is None:
        return "unknown rule"
    body = event.body
    if event.kind == "remember" and "edit" in body:
        return "correction"
    if event.kind == "link":
        merged = (reason or "").startswith("Merged: ") or (reason or "").startswith("duplicate")
        return "by hand" if body.get("by") == "hand" else "merge" if merged else "linking"
    return {"verify": "verifier", "import": "import"}.get(event.kind, "unknown rule")


def _relation(event: Event, successor: int, id: int) -> str | None:
    """What else joins the two in the same event: what ``link`` called the pair."""
    edges = event.body.get("edges")
    if not isinstance(edges, Mapping):
        return None
    words = edges["relation"] if isinstance(edges["relation"], list) else [edges["relation"]] * len(edges["source"])
    pairs = zip(edges["source"], edges["target"], words, strict=True)
    return next((w for s, t, w in pairs if (s, t) == (successor, id) and w != "supersedes"), None)
