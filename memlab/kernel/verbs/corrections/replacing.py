"""One edit, from the checked fields to the events: the memory itself, its edges, and what was made of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from memlab.errors import InputError
from memlab.kernel.hooks import hooks
from memlab.kernel.journal import Event, Journal, JournalView, Transaction
from memlab.kernel.privacy import Finding, Screened, personal_kinds, screen
from memlab.kernel.schema import FIXED, RELATIONS
from memlab.kernel.state import Change, State, check_interval, edges_of, redactions, with_speaker
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.corrections.editing import (
    carried_fields,
    edited,
    field_value,
    in_place_of,
    superseding,
    without_use,
)
from memlab.kernel.verbs.fact_rows import canonicalize_names
from memlab.kernel.verbs.gate import check_disclosed
from memlab.kernel.verbs.linking import get_comparer
from memlab.kernel.verbs.remembering.rows import build_event_body, find_names

__all__ = [
    "FACT",
    "SHOWN",
    "Dependents",
    "EditOutcome",
    "Editor",
    "Permit",
    "Rederived",
    "dependents",
    "fields_equal",
]


FACT = ("subject", "predicate", "object", "value")
"""The fields that say what a fact states."""

SHOWN = frozenset({*FACT, "summary", "title", "steps", "warnings", "kind", "files"})
"""Fields that a prompt is made of: where one is edited in place, the memory may be injected once more."""

Permit = Callable[[State, int], None]


@dataclass(frozen=True)
class Rederived:
    """The fields of an edited memory that follow from its text; a hook at the point "rederive" returns one.

    ``columns`` has the fields with other values than before; None takes a value away. ``rebuilt`` and ``dropped`` name
    the fields that were read again and those that could not be; ``notes`` tell of both in a sentence each.
    """

    columns: Mapping[str, Any] = field(default_factory=dict)
    rebuilt: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: Rederived) -> Rederived:
        """Return both; a column of ``other`` counts."""
        return Rederived(
            {**self.columns, **other.columns},
            (*self.rebuilt, *other.rebuilt),
            (*self.dropped, *other.dropped),
            (*self.notes, *other.notes),
        )


@dataclass
class EditOutcome:
    """What one edit did: the memory that stands now, what followed from its text, and what was made of others."""

    id: int
    rebuilt: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, derived: Rederived) -> None:
        self.rebuilt += derived.rebuilt
        self.dropped += derived.dropped
        self.notes += derived.notes


# -- what extensions make of the words of a memory --------------------------------------------------------------------


class Dependents:
    """Memories of one sort that were made of other memories. A hook at the point "dependents" returns one."""

    def made(self, state: State) -> Collection[int]:
        """Return the ids of all memories that the extension made and that no other extension has to look at."""
        return ()

    def find(self, state: State, row: int, new: str, others: Collection[int]) -> list[int]:
        """Return the rows of memories that were made of the one in ``row`` and that its text ``new`` leaves unfounded.

        ``others`` are the ids of what other extensions made.
        """
        return []

    def withdraw(
        self, editor: Any, row: int, rows: Sequence[int], before: dict[str, Any], outcome: Any
    ) -> dict[str, Any]:
        """Take ``rows`` back before the memory in ``row`` is replaced; return the fields that it has then."""
        return before

    def revise(self, editor: Any, row: int, text: str, rows: Sequence[int], outcome: Any) -> None:
        """Make ``rows`` again of the new text, once the memory in ``row`` is replaced."""

    def stand_ins(self, state: State, rows: Sequence[int]) -> list[int]:
        """Return those of ``rows`` that stand for others, which come back in their place when they are restored."""
        return []

    def members(self, state: State, row: int) -> Sequence[int]:
        """Return the ids of the memories that the one in ``row`` stands for."""
        return ()

    def undo(self, store: Store, rows: Sequence[int]) -> None:
        """Bring back the members of ``rows``, and take these out of use."""


def dependents() -> list[Dependents]:
    """Return what the extensions declare."""
    return [make() for make in hooks("dependents")]


def _find_dependents(state: State, row: int, new: str) -> list[tuple[Dependents, list[int]]]:
    """Return by sort the rows that were made of the one in ``row``, and that its text ``new`` leaves unfounded."""
    sorts = dependents()
    made = [sort.made(state) for sort in sorts]
    found = []
    for sort in sorts:
        others = {
            id for other, ids in zip(sorts, made, strict=True) if other is not sort for id in ids
        }
        found.append((sort, sort.find(state, row, new, others)))
    return found


def fields_equal(one: Any, other: Any) -> bool:
    """Return whether two values of a field are the same; lists and tuples with equal items are."""
    if isinstance(one, list | tuple) or isinstance(other, list | tuple):
        return list(one or ()) == list(other or ())
    return bool(one == other)


# -- the edit ---------------------------------------------------------------------------------------------------------


class Editor:
    """Edits within one transaction. ``permit`` raises for a row that the caller may not change.

    Each event is applied to the state before the next is decided. So nothing here may ask the store for ``reading``:
    it would fold the state anew, without what the transaction holds.
    """

    def __init__(self, core: Core, tx: Transaction, now: int, permit: Permit | None = None) -> None:
        self._core, self._tx, self.now, self._permit = core, tx, now, permit
        self._store = core.store
        self.personal = personal_kinds(core.pack.settings)

    def edit(
        self,
        row: int,
        text: Screened | None,
        columns: Mapping[str, Any],
        findings: Sequence[Finding] = (),
    ) -> EditOutcome:
        """Edit the memory that stands for the one in ``row``; ``text`` and ``columns`` are checked and screened."""
        state = self._store.state
        standing = in_place_of(state, row)
        outcome = EditOutcome(standing + 1)
        if standing != row:
            outcome.notes.append(
                f"Memory {row + 1} was edited before: the edit is of memory {standing + 1}."
            )
        # raises for what is deleted or purged
        without_use(state, [standing], "superseded", self.now)
        if self._permit is not None:
            self._permit(state, standing)
        old = state.texts.at(standing) or ""
        before = carried_fields(state, standing)
        held = {**before, **columns}
        check_interval(held.get("valid_from"), held.get("valid_until"))
        if text is None:
            told = next(
                (
                    told
                    for retell in hooks("retell")
                    if (told := retell(before, columns, old)) is not None
                ),
                None,
            )
            if told is not None:
                text = screen(told, personal=self.personal).text
                outcome.notes.append(f'The text follows the fact: "{text}".')
        same = text is None or text == old
        fixed = any(
            columns[name] != field_value(state, standing, name) for name in FIXED if name in columns
        )
        new = old if text is None else text
        derived = Rederived()
        for rederive in hooks("rederive"):
            derived += rederive(before, old, new, columns, self._core.pack)
        if same and not fixed:
            self._in_place(standing, before, columns, derived, outcome)
        else:
            self._replace(standing, new, before, columns, derived, outcome, findings)
        return outcome

    # -- the memory -------------------------------------------------------------------------------------------

    def _in_place(
        self,
        row: int,
        before: Mapping[str, Any],
        columns: Mapping[str, Any],
        derived: Rederived,
        outcome: EditOutcome,
    ) -> None:
        state = self._store.state
        given = {name: value for name, value in columns.items() if name not in FIXED}
        changed = {
            name: value
            for name, value in given.items()
            if not fields_equal(value, field_value(state, row, name))
        }
        if not changed:
            outcome.notes.append(f"Memory {row + 1} is unchanged: it already says so.")
            return
        outcome.add(derived)
        change = edited(state, row, {**changed, **derived.columns}, self.now)
        body: dict[str, Any] = {"memory": row + 1, **change.body()}
        if not SHOWN.isdisjoint({*changed, *derived.columns}):
            body["again"] = [row + 1]
        if derived.columns:
            body["derived"] = _told(derived, changed)
        self.write("edit", body)

    def _replace(
        self,
        row: int,
        text: str,
        before: dict[str, Any],
        columns: Mapping[str, Any],
        derived: Rederived,
        outcome: EditOutcome,
        findings: Sequence[Finding],
    ) -> None:
        core, store, tx, now = self._core, self._store, self._tx, self.now
        _check_in_place(store.state, row)
        words = screen(text, personal=self.personal).text
        another = words != store.state.texts.at(row)
        made = _find_dependents(store.state, row, words) if another else []
        for sort, rows in made:
            before = sort.withdraw(self, row, rows, before, outcome)
        state, pack = store.state, store.versions.pack
        outcome.add(derived)
        # the next text's, as the state has seen what this transaction holds
        outcome.id = id = state.rows + 1
        complete = {
            "provenance": "user-corrected",
            "source": "user-edit",
            **before,
            **derived.columns,
            **columns,
        }
        listed = canonicalize_names(
            state, pack, {name: [value] for name, value in complete.items() if value is not None}
        )
        names = find_names(state, pack, listed, [words])
        check_disclosed(store, state, complete.get("project"))
        tx.payloads([id], [words])
        tx.vectors(
            id,
            store.embedder.fingerprint,
            store.embedder.encode([with_speaker(words, complete.get("speaker"))]),
        )
        body = build_event_body(state, listed, id, 1, chain=False, named_in=names)
        joins = Change(join=body.pop("join", ()))
        edges = _edges_after(state, store.journal, row, id)
        edges = edges if another else _moved(state, edges, row, complete)
        outcome.notes += _of_edges(edges)
        body |= {"edit": row + 1, "derived": _told(derived, columns)}
        body |= (joins + superseding(row + 1, id, now) + edges).body()
        body |= redactions([(id, finding) for finding in findings])
        self.write("remember", body)
        linking, notes = _linked_again(core, id)
        outcome.notes += notes
        if linking:
            self.write("link", {"by": "edit", **linking})
        if another:
            outcome.notes += _kept_superseded(store.state, row)
        for sort, rows in made:
            sort.revise(self, row, words, rows, outcome)

    # -- what was made of it ----------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The state with what this transaction has written so far."""
        return self._store.state

    def write(self, kind: str, body: dict[str, Any]) -> None:
        """Write an event, and apply it to the state."""
        self._tx.event(kind, body, at=self.now)
        self._store.settle(self._tx)

    def again(self, row: int, text: Screened, fields: Mapping[str, Any]) -> EditOutcome:
        """Edit a memory that was made of an edited one, whoever may change it; ``text`` is screened."""
        return Editor(self._core, self._tx, self.now).edit(row, text, fields)


def _check_in_place(state: State, row: int) -> None:
    """InputError for another text of a memory that another one superseded: of the past, fields alone are edited."""
    by = float(state.numbers["superseded_by"].values[row])
    if state.names["status"].at(row) == "superseded":
        other = "" if by != by else f" by memory {int(by)}"
        way = (
            "Restore it first"
            if by != by
            else f"Edit memory {int(by)}, or put that out of use and restore this one"
        )
        raise InputError(
            f"Memory {row + 1} is superseded{other} and takes no part in recall. {way}."
        )


def _moved(state: State, edges: Change, row: int, complete: Mapping[str, Any]) -> Change:
    """The edges of a memory that keeps its text: all of them, but for a chain of turns in another session."""
    same = all(complete.get(name) == state.names[name].at(row) for name in ("project", "session"))
    if same or edges.edges is None:
        return edges
    kept = [place for place, word in enumerate(edges.edges["relation"]) if word != "next"]
    columns = {name: [values[place] for place in kept] for name, values in edges.edges.items()}
    return Change(edges=columns if kept else None, unlink=edges.unlink)


def _of_edges(change: Change) -> list[str]:
    count = len(change.unlink)
    return [f"{count} edge{'s' * (count > 1)} of the old words removed."] if count else []


def _kept_superseded(state: State, row: int) -> list[str]:
    """A note for the memories that the old words superseded: they stay out of use."""
    by = state.numbers["superseded_by"].values
    older = [int(one) + 1 for one in (by == row + 1).nonzero()[0]]
    older = [
        id
        for id in older
        if state.names["source"].at(row) != "user-edit" or in_place_of(state, id - 1) == id - 1
    ]
    listed = ", ".join(map(str, older[:5]))
    return [
        f"Memories superseded by the old text stay so: {listed}. See lab.upkeep.review.related({row + 1})."
    ] * bool(older)


def _told(derived: Rederived, given: Iterable[str]) -> dict[str, list[str]]:
    """What the event keeps of it: names of fields, no words. ``given`` are those that the edit itself set."""
    return {
        "rebuilt": list(derived.rebuilt),
        "dropped": list(derived.dropped),
        "given": sorted(given),
    }


# -- the edges: which hold for the new words, which go, and what linking makes of them --------------------------------


_BY_WORDS = tuple(RELATIONS.index(name) for name in ("similar-to", "updates", "contradicts"))
"""Relations that say how two texts compare: another text is compared again."""
_RELATED = RELATIONS.index("relates-to")
_NOT_CARRIED = tuple(RELATIONS.index(name) for name in ("supersedes",))
_DERIVED = RELATIONS.index("derived-from")


def _edges_after(state: State, journal: Journal | JournalView, row: int, id: int) -> Change:
    """Return the change of edges when the memory ``id`` takes the place of the one in ``row``.

    Edges that were stated (a chain of turns, a link by hand, a verifier's relation) or strengthened by use hold for the
    new memory too. Edges that linking made of the old words go.
    """
    met = state.edges.crossings(np.array([row]))
    gone = _word_edges(state, journal, row)
    statuses = state.names["status"]
    source, target, relation, weight = [], [], list[str](), list[float]()
    for place, edge in enumerate(met.edge.tolist()):
        code, other, outgoing = (
            int(state.edges.relation[edge]),
            int(met.neighbour[place]),
            bool(met.outgoing[place]),
        )
        if (
            edge in gone
            or other >= len(state)
            or code in _NOT_CARRIED
            or (code == _DERIVED and not outgoing)
        ):
            continue
        if other == row or statuses.at(other) in ("superseded", "purged"):
            continue
        ends = (id, other + 1) if outgoing else (other + 1, id)
        source.append(ends[0])
        target.append(ends[1])
        relation.append(str(state.edges.words_of(np.array([code]))[0]))
        weight.append(float(state.edges.weight[edge]))
    edges = edges_of(source, target, relation, weight) if source else None
    return Change(edges=edges, unlink=sorted(gone))


def _word_edges(state: State, journal: Journal | JournalView, row: int) -> set[int]:
    """Return the numbers of the edges that hold for the words of the memory in ``row`` alone."""
    met = state.edges.crossings(np.array([row]))
    memory = met.neighbour < len(state)
    relation = state.edges.relation[met.edge]
    gone = {int(edge) for edge in met.edge[memory & np.isin(relation, _BY_WORDS)]}
    related = met.edge[
        memory & (relation == _RELATED) & (state.edges.reinforcements[met.edge] == 0)
    ]
    return gone | {int(edge) for edge in related if _was_compared(state, journal, int(edge))}


def _was_compared(state: State, journal: Journal | JournalView, edge: int) -> bool:
    """Whether linking made this edge, and no person, verifier or import."""
    made = int(state.edges.created[edge])
    ends = int(state.edges.source[edge]) + 1, int(state.edges.target[edge]) + 1
    for event in _made_at(journal, made, state.seq):
        edges = event.body.get("edges")
        if not isinstance(edges, dict) or isinstance(edges["relation"], str):
            continue  # one relation for all edges: the first labs wrote so what a person linked
        if event.kind == "link" and event.body.get("by") != "hand":
            pairs = zip(edges["source"], edges["target"], edges["relation"], strict=True)
            if (*ends, "relates-to") in pairs:
                return True
    return False


def _made_at(journal: Journal | JournalView, instant: int, head: int) -> Iterator[Event]:
    after, upto = journal.last_at(instant - 1), min(journal.last_at(instant), head)
    yield from journal.events(after, upto=upto, kinds=("link",))


def _linked_again(core: Core, id: int) -> tuple[dict[str, Any], list[str]]:
    """Return the body of the event that links the new words as the live pack says, and a note for each supersession.

    The state must hold the memory. What a person corrected stays: where linking would merge it into another memory or
    keep the other one in its place, both stay, joined by an edge.
    """
    if core.pack.settings["linking"] == "off":
        return {}, []
    linked = get_comparer(core).after(range(id, id + 1))
    if not linked.outcomes:
        return {}, []
    outcome, other = linked.outcomes[0], linked.standing[0]
    if outcome == "added":
        return linked.body, [
            f"Memory {goes} is superseded. {why}" for _, _, goes, why in linked.superseded
        ]
    if outcome == "merged":
        note = f"Memory {other} says the same; both stay, joined by a similar-to edge."
    else:
        note = f"Memory {other} says otherwise; both stay, joined by a contradicts edge."
    relation = "similar-to" if outcome == "merged" else "contradicts"
    return Change(edges=edges_of([id], [other], relation, 1.0)).body(), [note]
