"""One edit, from the checked fields to the events: the memory itself, its edges, and what was made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memlab.errors import InputError
from memlab.kernel.journal import Transaction
from memlab.kernel.privacy import Finding, Screened, personal_kinds, screen
from memlab.kernel.schema import FIXED
from memlab.kernel.state import Change, State, check_interval, redactions, with_speaker
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.corrections.dependents import fields_equal, find_dependents
from memlab.kernel.verbs.corrections.editing import (
    carried_fields,
    edited,
    field_value,
    in_place_of,
    superseding,
    without_use,
)
from memlab.kernel.verbs.corrections.rederiving import FACT, Rederived, rederive, retold
from memlab.kernel.verbs.corrections.relinking import edges_after, linked_again
from memlab.kernel.verbs.fact_rows import named
from memlab.kernel.verbs.gate.switch import check_disclosed
from memlab.kernel.verbs.remembering.rows import event_body, names_in_texts

__all__ = ["SHOWN", "EditOutcome", "Editor", "Permit"]

SHOWN = frozenset({*FACT, "summary", "title", "steps", "warnings", "kind", "files"})
"""Fields that a prompt is made of: where one is edited in place, the memory may be injected once more."""

Permit = Callable[[State, int], None]


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
        self, row: int, text: Screened | None, columns: Mapping[str, Any], findings: Sequence[Finding] = ()
    ) -> EditOutcome:
        """Edit the memory that stands for the one in ``row``; ``text`` and ``columns`` are checked and screened."""
        state = self._store.state
        standing = in_place_of(state, row)
        outcome = EditOutcome(standing + 1)
        if standing != row:
            outcome.notes.append(f"Memory {row + 1} was edited before: the edit is of memory {standing + 1}.")
        without_use(state, [standing], "superseded", self.now)  # raises for what is deleted or purged
        if self._permit is not None:
            self._permit(state, standing)
        old = state.texts.at(standing) or ""
        before = carried_fields(state, standing)
        held = {**before, **columns}
        check_interval(held.get("valid_from"), held.get("valid_until"))
        if text is None:
            told = retold(before, columns, old)
            text = None if told is None else screen(told, personal=self.personal).text
            if text is not None:
                outcome.notes.append(f'The text follows the fact: "{text}".')
        same = text is None or text == old
        fixed = any(columns[name] != field_value(state, standing, name) for name in FIXED if name in columns)
        derived = rederive(before, old, old if text is None else text, columns, self._core.pack)
        if same and not fixed:
            self._in_place(standing, before, columns, derived, outcome)
        else:
            self._replace(standing, old if text is None else text, before, columns, derived, outcome, findings)
        return outcome

    # -- the memory -------------------------------------------------------------------------------------------

    def _in_place(
        self, row: int, before: Mapping[str, Any], columns: Mapping[str, Any], derived: Rederived, outcome: EditOutcome
    ) -> None:
        state = self._store.state
        given = {name: value for name, value in columns.items() if name not in FIXED}
        changed = {
            name: value for name, value in given.items() if not fields_equal(value, field_value(state, row, name))
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
        made = find_dependents(store.state, row, words) if another else []
        for sort, rows in made:
            before = sort.withdraw(self, row, rows, before, outcome)
        state, pack = store.state, store.versions.pack
        outcome.add(derived)
        outcome.id = id = state.rows + 1  # the next text's, as the state has seen what this transaction holds
        complete = {
            "provenance": "user-corrected",
            "source": "user-edit",
            **before,
            **derived.columns,
            **columns,
        }
        listed = named(state, pack, {name: [value] for name, value in complete.items() if value is not None})
        names = names_in_texts(state, pack, listed, [words])
        check_disclosed(store, state, complete.get("project"))
        tx.payloads([id], [words])
        tx.vectors(
            id, store.embedder.fingerprint, store.embedder.encode([with_speaker(words, complete.get("speaker"))])
        )
        body = event_body(state, listed, id, 1, chain=False, named_in=names)
        joins = Change(join=body.pop("join", ()))
        edges = edges_after(state, store.journal, row, id)
        edges = edges if another else _moved(state, edges, row, complete)
        outcome.notes += _of_edges(edges)
        body |= {"edit": row + 1, "derived": _told(derived, columns)}
        body |= (joins + superseding(row + 1, id, now) + edges).body()
        body |= redactions([(id, finding) for finding in findings])
        self.write("remember", body)
        linking, notes = linked_again(core, id)
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
        way = "Restore it first" if by != by else f"Edit memory {int(by)}, or put that out of use and restore this one"
        raise InputError(f"Memory {row + 1} is superseded{other} and takes no part in recall. {way}.")


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
    older = [id for id in older if state.names["source"].at(row) != "user-edit" or in_place_of(state, id - 1) == id - 1]
    listed = ", ".join(map(str, older[:5]))
    return [f"Memories superseded by the old text stay so: {listed}. See lab.upkeep.review.related({row + 1})."] * bool(
        older
    )


def _told(derived: Rederived, given: Iterable[str]) -> dict[str, list[str]]:
    """What the event keeps of it: names of fields, no words. ``given`` are those that the edit itself set."""
    return {"rebuilt": list(derived.rebuilt), "dropped": list(derived.dropped), "given": sorted(given)}
