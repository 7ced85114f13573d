"""Two labs that diverged into one: what is new comes in, and of what both have, the later change stands.

Everything is decided from both labs as they are, by rules that do not ask which of them is here: so joining A into B
and B into A ends with the same texts in use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

import numpy as np
import polars as pl

from memlab.arguments import checked
from memlab.clock import Micros
from memlab.display import paragraph
from memlab.journal import Event
from memlab.moving._bundle import Bundle, bundle_of
from memlab.moving._load import Checked, bodies_of, check_bundle, graph_of
from memlab.printable import printable
from memlab.privacy import Finding, personal_kinds, without_sensitive
from memlab.schema import FIXED, MEMORY, RECALLABLE
from memlab.state import Change, State, Tombstones, redactions, values_of, with_speaker
from memlab.storage.store import Store

__all__ = ["Joined", "join_bundle"]

_FRAME = {
    "memory_id": pl.Int64,
    "what": pl.String,
    "before": pl.String,
    "after": pl.String,
    "stands": pl.String,
}
_WHATS = ("added", "edited", "status", "conflict")

_COUNTS = ("access", "success", "fail", "accessed")
"""Of each the greater: counts of one past cannot be added up."""
_OF_USE = ("importance", "confidence", "strength", "energy", "stability", "difficulty")
"""What recall and feedback move; where nobody changed the memory, the values of the side that used it last."""
_CARRIED = tuple(
    name
    for name in MEMORY
    if name not in (*FIXED, *_COUNTS, "origin")  # what a memory is known by, and what is counted
)
_SAID = tuple(name for name in _CARRIED if name not in (*_OF_USE, "label", "changed"))
"""In these two versions of a memory say something else; two labs that forgot the same one do not."""
_EDITABLE = ("importance", "confidence")
"""Moved by use and edited by people."""
_UPKEEP = {*_COUNTS, "label", "changed", "strength", "energy", "stability", "difficulty"}
"""What upkeep and use write: nobody corrected a memory of which only these changed."""
_PURGED = "purged in the lab that was joined"
_LONG_AGO = -(2**63)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Joined:
    """What ``lab.io.join`` did, or would do (``dry_run``).

    ``frame`` has a row for each memory that came in or changed: ``memory_id``, ``what`` ("added", "edited", "status",
    "conflict"), ``before``, ``after``, ``stands``. An edited memory has its texts or fields there, "status" the
    statuses; a conflict the version here and the one there, and in ``stands`` which is kept: "here" or "there".
    """

    source: str
    frame: pl.DataFrame = field(repr=False)
    known: int = 0
    """Memories that both labs have."""
    edges: int = 0
    """Edges that came in."""
    kept_away: int = 0
    """Memories that were purged here, and stay away."""
    purged: tuple[int, ...] = ()
    """Memories that were purged there, and are deleted here; ``lab.purge`` removes them for good."""
    redacted: tuple[tuple[int, Finding], ...] = ()
    """What the privacy gate replaced in texts that came in, by id here."""
    dry_run: bool = False

    @checked
    def count(self, what: str) -> int:
        """How many rows of ``frame`` are "added", "edited", "status" or "conflict"."""
        return int((self.frame["what"] == what).sum())

    @property
    def ids(self) -> tuple[int, ...]:
        """The memories that were added, by their ids here."""
        return tuple(self.frame.filter(pl.col("what") == "added")["memory_id"].to_list())

    @property
    def conflicts(self) -> pl.DataFrame:
        """The rows of ``frame`` for what both labs changed."""
        return self.frame.filter(pl.col("what") == "conflict")

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        counts = {what: self.count(what) for what in _WHATS}
        parts = [
            f"{'would join' if self.dry_run else 'joined'} {self.source}: {counts['added']:,} memories and "
            f"{self.edges:,} edges added, {counts['edited']:,} edited, {counts['status']:,} of another status, "
            f"{counts['conflict']:,} conflicts"
        ]
        if self.known:
            parts.append(f"{self.known:,} were here already")
        if self.kept_away:
            parts.append(f"{self.kept_away:,} had been purged here and stay away")
        if self.purged:
            parts.append(f"{len(self.purged):,} were purged there and are deleted here")
        if self.redacted:
            parts.append(f"{len(self.redacted):,} secrets redacted")
        return printable("; ".join(parts))

    def _repr_html_(self) -> str:
        return paragraph(self) + self.frame._repr_html_()


class _Side:
    """The memories of one lab by id, when each was corrected, and the edits that follow one another."""

    def __init__(self, rows: Mapping[int, Row], events: Iterable[Event] | None) -> None:
        self.rows = rows
        self.times = _corrected(events) if events is not None else _last_changed(rows)

    def after(self, id: int) -> int | None:
        """The edit that takes the place of a memory."""
        row = self.rows[id]
        by = row["superseded_by"]
        edit = self.rows.get(int(by)) if row["status"] == "superseded" and by is not None else None
        return int(by) if edit is not None and edit["source"] == "user-edit" and edit["status"] != "purged" else None

    def chain(self, id: int) -> list[int]:
        """A memory and the edits after it."""
        found = [id]
        while (edit := self.after(found[-1])) is not None and edit not in found:
            found.append(edit)
        return found

    def last(self, id: int) -> Micros:
        """When a memory was last corrected, or an edit of it was."""
        return max((at for one in self.chain(id) for at in self.times.get(one, ())), default=_LONG_AGO)


@dataclass
class _Plan:
    """What is to be done, by ids here; those of memories that come in are counted on from the last."""

    fresh: list[int] = field(default_factory=list)
    """Places of the rows that come in."""
    here: dict[int, int] = field(default_factory=dict)
    """Ids there to ids here, of all that are here afterwards."""
    set: dict[int, dict[str, Any]] = field(default_factory=dict)
    told: list[tuple[int, str, str | None, str | None, str | None]] = field(default_factory=list)
    known: int = 0
    kept_away: int = 0
    purged: list[int] = field(default_factory=list)


def join_bundle(
    store: Store,
    bundle: Bundle,
    *,
    own: str,
    events: Callable[[], Iterable[Event]] | None = None,
    dry_run: bool = False,
) -> Joined:
    """Join what ``bundle`` holds into a lab that is called ``own``: in one transaction, or on any error not at all.

    ``events`` reads the journal of the other lab, where there is one: it tells a change that follows the one here from
    one that was made without knowing it.
    """
    with store.reading():
        pack = store.versions.pack
    given = check_bundle(bundle, store.clock(), personal_kinds(pack.settings), bool(pack.settings["open-words"]))
    if dry_run:
        with store.reading() as state:
            plan = _planned(store, state, bundle, given, own, events)
            edges = _edges(state, bundle, plan)[1]
        return _joined(bundle, given, plan, edges, dry_run=True)
    with store.writing() as tx:
        state, now = store.state, store.clock()
        plan = _planned(store, state, bundle, given, own, events)
        first = tx.next_id
        graph, edges = _edges(state, bundle, plan)
        if plan.fresh:
            speakers = given.columns.get("speaker") or [None] * len(given.ids)
            texts = [given.screenings[place].text for place in plan.fresh]
            tx.payloads(range(first, first + len(texts)), texts)
            spoken = [with_speaker(text, speakers[place]) for text, place in zip(texts, plan.fresh, strict=True)]
            tx.vectors(first, store.embedder.fingerprint, store.embedder.encode(spoken))
            for body in bodies_of(given, plan.fresh, first, plan.here):
                tx.event("import", {"lab": bundle.lab, **body}, at=now)
        rest: dict[str, Any] = {"graph": graph} if edges or (graph["nodes"] and plan.fresh) else {}
        rest |= Change(set=[_values(id, columns) for id, columns in sorted(plan.set.items())]).body()
        rest |= redactions(_redacted(given, plan))
        if rest:
            tx.event("import", {"lab": bundle.lab, **rest}, at=now)
    store.snapshot_if_due()
    return _joined(bundle, given, plan, edges, dry_run=False)


def _joined(bundle: Bundle, given: Checked, plan: _Plan, edges: int, *, dry_run: bool) -> Joined:
    return Joined(
        bundle.source,
        pl.DataFrame(plan.told, schema=_FRAME, orient="row"),
        plan.known,
        edges,
        plan.kept_away,
        tuple(plan.purged),
        _redacted(given, plan),
        dry_run,
    )


def _redacted(given: Checked, plan: _Plan) -> tuple[tuple[int, Finding], ...]:
    return tuple(
        (plan.here[given.ids[place]], finding) for place in plan.fresh for finding in given.screenings[place].findings
    )


def _edges(state: State, bundle: Bundle, plan: _Plan) -> tuple[dict[str, Any], int]:
    """The edges that come in, and how many; those that were removed here since do not."""
    new = {theirs: id for theirs, id in plan.here.items() if id > len(state)}
    known = {theirs: id for theirs, id in plan.here.items() if id <= len(state)}
    edges = state.edges
    gone = np.flatnonzero(~edges.alive)
    ends = (edges.source[gone] + 1, edges.target[gone] + 1)
    words, times = edges.words_of(edges.relation[gone]), edges.created[gone]
    removed = set(zip(*(column.tolist() for column in (*ends, words, times)), strict=True))
    given = bundle.edges.select("source", "target", "relation", "created").iter_rows()
    kept = [(known.get(one), known.get(other), *rest) not in removed for one, other, *rest in given]
    return graph_of(state, replace(bundle, edges=bundle.edges.filter(kept)), new, known)


def _values(id: int, columns: Mapping[str, Any]) -> dict[str, Any]:
    listed = {name: [value or []] if MEMORY[name].storage == "list" else value for name, value in columns.items()}
    return values_of([id], **listed)


# -- what is decided ----------------------------------------------------------------------------------------------


def _planned(
    store: Store,
    state: State,
    bundle: Bundle,
    given: Checked,
    own: str,
    events: Callable[[], Iterable[Event]] | None,
) -> _Plan:
    ours = _Side(_rows_of(bundle_of(state, lab=own, now=0).memories), store.journal.events(upto=state.seq))
    theirs = _Side(_rows_of(bundle.memories), None if events is None else events())
    plan = _Plan()
    pairs, away = _paired(state, given, own)
    plan.known, plan.here = len(pairs), dict(pairs)
    back = {id: other for other, id in pairs.items()}
    # what follows from a memory that was purged goes with it, on either side
    for other, id in pairs.items():
        if ours.rows[id]["status"] == "purged":
            away |= set(takewhile(lambda edit: edit not in pairs, theirs.chain(other)[1:]))
    plan.kept_away = len(away)
    plan.fresh = [place for place, id in enumerate(given.ids) if id not in pairs and id not in away]
    for offset, place in enumerate(plan.fresh):
        plan.here[given.ids[place]] = len(state) + 1 + offset
    for place in plan.fresh:
        row = theirs.rows[given.ids[place]]
        plan.told.append((plan.here[given.ids[place]], "added", None, given.screenings[place].text, None))
        if row["status"] == "purged":
            plan.told.pop()
    rivals: list[tuple[int, int, bool]] = []
    demoted: list[tuple[Micros, int, dict[str, Any]]] = []
    for other, id in pairs.items():
        mine, yours = ours.rows[id], _mapped(theirs.rows[other], plan.here)
        if mine["status"] == "purged":
            continue
        if yours["status"] == "purged":
            _purge(plan, ours, id, back, store.clock())
            continue
        said = any(mine[name] != yours[name] for name in _SAID)
        here_at, there_at = ours.last(id), theirs.last(other)
        later = (there_at, repr(_version(yours))) > (here_at, repr(_version(mine)))
        columns = _used(mine, yours)
        if later and (said or any(mine[name] != yours[name] for name in _OF_USE)):
            columns |= {name: yours[name] for name in (*_SAID, *_OF_USE, "label") if mine[name] != yours[name]}
            columns["changed"] = max(theirs.times.get(other, ()), default=yours["changed"])
            columns["status"] = yours["status"]
        elif here_at == there_at and _use(yours) > _use(mine):
            columns |= {name: yours[name] for name in _OF_USE if mine[name] != yours[name]}
        if columns:
            plan.set[id] = columns
        if not said and (not later or all(mine[name] == yours[name] for name in _EDITABLE)):
            continue
        rivals.append((other, id, later))
        # the edits on the side that lost give way to what stands on the other
        if later:
            loser, tip, winner, at = ours, ours.chain(id)[-1], theirs.chain(other)[-1], there_at
            only_there = tip != id and tip not in back
            standing = _mapped(theirs.rows[winner], plan.here) | {"id": plan.here.get(winner)}
            if winner not in plan.here:  # purged here, so that it stays away
                standing["status"] = "purged"
            to = tip
        else:
            loser, tip, winner, at = theirs, theirs.chain(other)[-1], ours.chain(id)[-1], here_at
            only_there = tip != other and tip not in pairs and tip not in away
            standing = {**ours.rows[winner], "id": winner}
            to = plan.here.get(tip, 0)
        if said and only_there and loser.rows[tip]["status"] in RECALLABLE:
            demoted.append((at, to, _giving_way(standing, at)))
    gone = Tombstones()
    if Tombstones.name in bundle.registers:
        gone.load(bundle.registers[Tombstones.name])
    living = {row["text"] for row in theirs.rows.values() if row["status"] != "purged"} if len(gone) else set()
    for id, row in ours.rows.items() if len(gone) else ():
        if id not in back and row["status"] != "purged" and row["text"] not in living and gone.is_purged(row["text"]):
            _purge(plan, ours, id, back, store.clock())
    plan.purged = sorted(set(plan.purged))
    for _, to, columns in sorted(demoted, key=lambda one: one[:2]):
        plan.set[to] = plan.set.get(to, {}) | columns
    _tell(plan, ours, theirs, rivals)
    return plan


def _rows_of(frame: pl.DataFrame) -> dict[int, Row]:
    found: dict[int, Row] = {}
    for row in frame.iter_rows(named=True):
        row["files"] = without_sensitive(row["files"] or [])[0]
        for name, column in MEMORY.items():
            if column.storage == "list":
                row[name] = list(row[name] or [])
            elif row[name] is None and column.default is not None and column.default != "now":
                row[name] = column.default
        found[row["id"]] = row
    return found


def _paired(state: State, given: Checked, own: str) -> tuple[dict[int, int], set[int]]:
    """Of the memories there: which they are here, and which were purged here and stay away.

    A memory is known by the lab and the number that it came to be by, its time and its text; what is purged has no
    text, and the rest tells.
    """
    origins, statuses, texts = state.names["origin"], state.names["status"], state.texts
    created, tombstones = state.numbers["created"].values, state.projection(Tombstones)
    held: dict[str, list[int]] = {}
    for row in np.flatnonzero(origins.codes >= 0).tolist():
        held.setdefault(origins.vocabulary[origins.codes[row]], []).append(row)
    pairs: dict[int, int] = {}
    away: set[int] = set()
    taken: set[int] = set()
    for id, origin, screening, at, gone in zip(
        given.ids, given.origins, given.screenings, given.created, given.purged, strict=True
    ):
        candidates = held.get(origin, [])
        lab, _, number = origin.rpartition(":")
        if lab == own and number.isdecimal() and 1 <= int(number) <= len(state):
            row = int(number) - 1
            candidates = [*candidates, row] if origins.codes[row] < 0 else candidates
        met = [row for row in candidates if at in (None, int(created[row])) and row not in taken]
        same = [row for row in met if gone or statuses.at(row) == "purged" or texts.at(row) == screening.text]
        if same:
            pairs[id] = same[0] + 1
            taken.add(same[0])
            if statuses.at(same[0]) == "purged" and not gone:
                away.add(id)
        elif gone or tombstones.is_purged(screening.text):
            away.add(id)
    return pairs, away


def _mapped(row: Row, here: Mapping[int, int]) -> dict[str, Any]:
    """A row there as it reads here: the memory that stands in its place by its id here."""
    by = row["superseded_by"]
    id = None if by is None else here.get(int(by))
    return {**row, "superseded_by": None if id is None else float(id)}


def _version(row: Row) -> list[Any]:
    """What decides between two changes of one instant; ids differ from lab to lab, and say nothing."""
    return [row[name] for name in _SAID if name != "superseded_by"]


def _use(row: Row) -> tuple[Any, ...]:
    return (*(row[name] or 0 for name in ("accessed", "access", "success", "fail")), *(row[n] or 0 for n in _OF_USE))


def _used(mine: Row, yours: Row) -> dict[str, Any]:
    counts = {name: (mine[name] or 0, yours[name] or 0) for name in _COUNTS}
    return {name: theirs for name, (ours, theirs) in counts.items() if theirs > ours}


def _giving_way(standing: Row, at: Micros) -> dict[str, Any]:
    """What becomes of an edit that another lab's later change overtook."""
    status = standing["status"]
    if status in RECALLABLE:
        return {"status": "superseded", "superseded_by": float(standing["id"]), "changed": at}
    gone = {"status": "deleted" if status == "purged" else status, "changed": at}
    return gone | ({"superseded_by": standing["superseded_by"]} if status == "superseded" else {})


def _purge(plan: _Plan, ours: _Side, id: int, back: Mapping[int, int], now: Micros) -> None:
    """A memory that was purged there is deleted here, with the edits that were made of it here alone."""
    for one in (id, *takewhile(lambda edit: edit not in back, ours.chain(id)[1:])):
        row = ours.rows[one]
        fresh = plan.set.get(one, {}).get("reason") != _PURGED
        if fresh and row["status"] not in ("deleted", "purged"):
            plan.set[one] = {"status": "deleted", "reason": _PURGED, "changed": now}
            plan.told.append((one, "status", row["status"], "deleted", None))
        if row["status"] != "purged":
            plan.purged.append(one)


# -- what is told -------------------------------------------------------------------------------------------------


def _tell(plan: _Plan, ours: _Side, theirs: _Side, rivals: list[tuple[int, int, bool]]) -> None:
    for other, id, later in rivals:
        before, after = _shown(ours, id, theirs.rows[other]), _shown(theirs, other, ours.rows[id])
        if _contested(ours.times.get(id, ()), theirs.times.get(other, ())):
            plan.told.append((id, "conflict", before, after, "there" if later else "here"))
        elif later:
            was, status = ours.rows[id]["status"], theirs.rows[other]["status"]
            if was != status and status != "superseded":
                plan.told.append((id, "status", was, status, None))
            else:
                plan.told.append((id, "edited", before, after, None))
    plan.told.sort(key=lambda one: (_WHATS.index(one[1]), one[0]))


def _shown(side: _Side, id: int, other: Row) -> str:
    """A version as a person reads it: its status, the text that stands, and the fields in which the two differ."""
    row, tip = side.rows[id], side.rows[side.chain(id)[-1]]
    skipped = ("status", "superseded_by", "changed", "label", *_OF_USE)
    fields = [f"{name}={row[name]}" for name in _CARRIED if name not in skipped and row[name] != other[name]]
    return f"{tip['status']}: {tip['text'] or ''}" + (f" ({', '.join(fields)})" if fields else "")


def _contested(here: Collection[Micros], there: Collection[Micros]) -> bool:
    """Whether both corrected a memory, neither knowing of the other's last correction."""
    return bool(here and there) and max(there) not in here and max(here) not in there


def _last_changed(rows: Mapping[int, Row]) -> dict[int, set[Micros]]:
    return {id: {row["changed"]} for id, row in rows.items() if row["changed"] is not None}


def _corrected(events: Iterable[Event]) -> dict[int, set[Micros]]:
    """When each memory was corrected, as a journal tells."""
    found: dict[int, set[Micros]] = {}
    for event in events:
        written: dict[int, set[str]] = {}
        times: dict[int, Micros] = {}
        parts = list(_parts(event.body))
        if not any("changed" in columns for _, columns in parts):
            continue
        for ids, columns in parts:
            at = columns.get("changed")
            for place, id in enumerate(ids):
                written.setdefault(id, set()).update(columns)
                if (one := at[place] if isinstance(at, list) else at) is not None:
                    times[id] = one
        for id, one in times.items():
            if not written[id] <= _UPKEEP:
                found.setdefault(id, set()).add(one)
    return found


def _parts(body: Mapping[str, Any]) -> Iterator[tuple[Iterable[int], Mapping[str, Any]]]:
    if body.get("count"):
        yield range(body["first"], body["first"] + body["count"]), body.get("columns", {})
    for part in body.get("set", ()):
        yield part["ids"], part["columns"]
