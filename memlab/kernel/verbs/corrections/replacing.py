"""One edit of a memory: its events, its edges and the memories derived from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from memlab.errors import InputError
from memlab.kernel.hooks import list_hooks
from memlab.kernel.journal import Body, Event, Journal, JournalView, Transaction
from memlab.kernel.privacy import Finding, Screened, personal_kinds, screen
from memlab.kernel.schema import FIXED, RELATIONS
from memlab.kernel.state import (
    PREFIXED,
    Change,
    State,
    add_prefix,
    build_edges,
    build_values,
    check_interval,
    describe_redactions,
    get_prefix,
)
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.corrections.editing import (
    change_fields,
    find_latest_version,
    inherited_fields,
    read_field,
    supersede,
    take_out_of_use,
)
from memlab.kernel.verbs.fact_rows import canonicalize_names
from memlab.kernel.verbs.gate import check_disclosed
from memlab.kernel.verbs.linking import get_comparer, links_all
from memlab.kernel.verbs.remembering.rows import build_event_body, find_names

FACT = ("subject", "predicate", "object", "value")
"""The fields of a fact's statement."""

SHOWN = frozenset({*FACT, "summary", "title", "steps", "warnings", "kind", "files"})
"""Fields that appear in prompts: after an edit of one, the memory may be injected again."""

Permit = Callable[[State, int], None]


@dataclass(frozen=True)
class Rederived:
    """Fields of an edited memory that a hook at "rederive" derives from its new text.

    Attributes
    ----------
    columns
        The fields with new values; None removes a value.
    rebuilt
        The names of fields that were derived again.
    dropped
        The names of fields that could not be derived again.
    notes
        A sentence about each of these fields.
    """

    columns: Mapping[str, Any] = field(default_factory=dict)
    rebuilt: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: Rederived) -> Rederived:
        """Combine two results of hooks; columns of ``other`` take precedence."""
        return Rederived(
            {**self.columns, **other.columns},
            (*self.rebuilt, *other.rebuilt),
            (*self.dropped, *other.dropped),
            (*self.notes, *other.notes),
        )


@dataclass
class EditOutcome:
    """The result of one edit: the id of the current version, derived fields, notes."""

    id: int
    rebuilt: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    changed: bool = True

    def add(self, derived: Rederived) -> None:
        """Add a report of derived fields to this report."""
        self.rebuilt += derived.rebuilt
        self.dropped += derived.dropped
        self.notes += derived.notes


# -- memories that extensions derive from other memories --------------------------------------------------------------


class Dependents:
    """One kind of derived memories, such as summaries, from a hook at "dependents"."""

    def derived_ids(self, state: State) -> Collection[int]:
        """Return the ids of all derived memories that other extensions must not examine."""
        return ()

    def find(self, state: State, row: int, new: str, others: Collection[int]) -> list[int]:
        """Return the rows derived from ``row`` that its new text no longer supports.

        ``others`` are the ids of memories that other extensions derived.
        """
        return []

    def withdraw(
        self,
        editor: Editor,
        row: int,
        rows: Sequence[int],
        before: dict[str, Any],
        outcome: EditOutcome,
    ) -> dict[str, Any]:
        """Withdraw ``rows`` before ``row`` is replaced; return the new version's fields."""
        return before

    def revise(
        self, editor: Editor, row: int, text: str, rows: Sequence[int], outcome: EditOutcome
    ) -> None:
        """Derive ``rows`` again from the new text after their source is replaced."""

    def stand_ins(self, state: State, rows: Sequence[int]) -> list[int]:
        """Return those of ``rows`` that represent other memories."""
        return []

    def members(self, state: State, row: int) -> Sequence[int]:
        """Return the ids of the memories that the memory in ``row`` represents."""
        return ()

    def undo(self, store: Store, rows: Sequence[int]) -> None:
        """Restore the memories that ``rows`` represent, and take ``rows`` out of use."""


def dependents() -> list[Dependents]:
    """Return the handlers that extensions declare for their kinds of derived memories."""
    return [make() for make in list_hooks("dependents")]


def _find_dependents(state: State, row: int, new: str) -> list[tuple[Dependents, list[int]]]:
    """Return, for each kind of derived memory, the rows of the memories that a new text of ``row`` invalidates."""
    sorts = dependents()
    derived = [sort.derived_ids(state) for sort in sorts]
    result = []
    for sort in sorts:
        others = {
            id for other, ids in zip(sorts, derived, strict=True) if other is not sort for id in ids
        }
        result.append((sort, sort.find(state, row, new, others)))
    return result


def fields_equal(left: Any, right: Any) -> bool:
    """Return whether two field values are equal; a list equals a tuple of its items."""
    if isinstance(left, list | tuple) or isinstance(right, list | tuple):
        return list(left or ()) == list(right or ())
    return bool(left == right)


# -- the edit ---------------------------------------------------------------------------------------------------------


class Editor:
    """Edits of memories within one transaction.

    ``permit`` raises for a row that the caller may not change. Each event is applied to the state
    before the next event is decided. Methods must not call ``store.reading``, which would fold the
    state without the events of the transaction.
    """

    def __init__(self, core: Core, tx: Transaction, now: int, permit: Permit | None = None) -> None:
        self._core, self._tx, self.now, self._permit = core, tx, now, permit
        self._store = core.store
        # Edits in place that `flush` writes as one event, by row; None writes each edit at once.
        self._together: dict[int, tuple[set[str], Rederived, Change]] | None = None
        self.personal = personal_kinds(core.pack.settings)

    def edit(
        self,
        row: int,
        text: Screened | None,
        columns: Mapping[str, Any],
        findings: Sequence[Finding] = (),
    ) -> EditOutcome:
        """Edit the latest version of the memory in ``row``.

        The caller has validated ``text`` and ``columns`` and removed secrets.
        """
        # The text of a fact follows its fields. A new text or a new value of a fixed field makes a
        # new memory. Other fields change in place.
        state = self._store.state
        latest = find_latest_version(state, row)
        if self._together and latest in self._together:  # two versions of one memory
            self.flush()
        outcome = EditOutcome(latest + 1)
        if latest != row:
            outcome.notes.append(
                f"Memory {row + 1} was edited before: this edit changed memory {latest + 1}."
            )
        # This call raises for deleted or purged memories.
        take_out_of_use(state, [latest], "superseded", self.now)
        if self._permit is not None:
            self._permit(state, latest)
        old = state.texts.value_at(latest) or ""
        before = inherited_fields(state, latest)
        fields = {**before, **columns}
        check_interval(fields.get("valid_from"), fields.get("valid_until"))
        if text is None:
            statement = next(
                (
                    statement
                    for retell in list_hooks("retell")
                    if (statement := retell(before, columns, old)) is not None
                ),
                None,
            )
            if statement is not None:
                text = screen(statement, personal=self.personal).text
                outcome.notes.append(f'The text follows the fact: "{text}".')
        same_text = text is None or text == old
        new = old if text is None else text
        derived = Rederived()
        for rederive in list_hooks("rederive"):
            derived += rederive(before, old, new, columns, self._core.pack)
        # the title of a text from a file is embedded and indexed
        after = {"source": read_field(state, latest, "source"), **fields, **derived.columns}
        fixed = state.prefixes([latest]) != [get_prefix(*map(after.get, PREFIXED))] or any(
            columns[name] != read_field(state, latest, name) for name in FIXED if name in columns
        )
        if same_text and not fixed:
            self._change_in_place(latest, columns, derived, outcome)
        else:
            self._replace(latest, new, before, columns, derived, outcome, findings)
        return outcome

    def edit_together(
        self,
        edits: Iterable[tuple[int, Screened | None, Mapping[str, Any], Sequence[Finding]]],
        name_row: Callable[[int], str],
    ) -> list[EditOutcome]:
        """Edit several memories, and write all edits in place as one event.

        Edits that make a new memory follow, because they read the fields of other memories.
        ``name_row`` names the memory of an edit in messages.
        """
        self._together, outcomes = {}, dict[int, EditOutcome]()
        listed = list(edits)
        for at in sorted(
            range(len(listed)),
            key=lambda at: listed[at][1] is not None or not listed[at][2].keys().isdisjoint(FIXED),
        ):
            try:
                outcomes[at] = self.edit(*listed[at])
            except InputError as error:
                raise InputError(f"{name_row(at)}: {error}") from None
        self.flush()
        return [outcomes[at] for at in range(len(listed))]

    def flush(self) -> None:
        """Write the collected edits in place as one event."""
        if not self._together:
            return
        rows, self._together = self._together, {}
        change = Change()
        parts: dict[tuple[str, ...], list[tuple[int, dict[str, Any]]]] = {}
        for row, (_, _, own) in rows.items():
            (values,) = own.set
            parts.setdefault(tuple(values["columns"]), []).append((row + 1, values["columns"]))
            change += replace(own, set=())
        # Memories with values in the same columns share a part of the event.
        for names, members in parts.items():
            columns = {
                name: _share_value([values[name] for _, values in members]) for name in names
            }
            change += Change(set=[build_values([id for id, _ in members], **columns)])
        again = [row + 1 for row, (names, _, _) in rows.items() if not SHOWN.isdisjoint(names)]
        derived = Rederived()
        for _, own_derived, _ in rows.values():
            derived += own_derived
        body: Body = {"memories": [row + 1 for row in rows], **change.body()}
        if again:
            body["again"] = again
        if derived.columns:
            edited = {name for names, _, _ in rows.values() for name in names} - {*derived.columns}
            body["derived"] = _report_fields(derived, edited)
        self.write("edit-frame", body)

    # -- the memory -------------------------------------------------------------------------------------------

    def _change_in_place(
        self,
        row: int,
        columns: Mapping[str, Any],
        derived: Rederived,
        outcome: EditOutcome,
    ) -> None:
        """Change fields of a memory without a new version: write an "edit" event, or keep it for a joint event."""
        state = self._store.state
        editable = {name: value for name, value in columns.items() if name not in FIXED}
        changed = {
            name: value
            for name, value in editable.items()
            if not fields_equal(value, read_field(state, row, name))
        }
        if not changed:
            outcome.changed = False
            outcome.notes.append(f"Memory {row + 1} is unchanged: it has these values already.")
            return
        outcome.add(derived)
        change = change_fields(state, row, {**changed, **derived.columns}, self.now)
        if self._together is not None:
            self._together[row] = {*changed, *derived.columns}, derived, change
            return
        body: Body = {"memory": row + 1, **change.body()}
        if not SHOWN.isdisjoint({*changed, *derived.columns}):
            body["again"] = [row + 1]
        if derived.columns:
            body["derived"] = _report_fields(derived, changed)
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
        """Store a new version of a memory whose text or fixed fields change."""
        # Dependent memories are withdrawn before and revised after the new text is stored, because
        # they are compared with it.
        self.flush()
        core, store, tx, now = self._core, self._store, self._tx, self.now
        _check_not_superseded(store.state, row)
        screened = screen(text, personal=self.personal).text
        is_new_text = screened != store.state.texts.value_at(row)
        dependents_by_sort = _find_dependents(store.state, row, screened) if is_new_text else []
        for sort, rows in dependents_by_sort:
            before = sort.withdraw(self, row, rows, before, outcome)
        state, pack = store.state, store.versions.pack
        outcome.add(derived)
        # The state includes the events of this transaction, so the next id is free.
        outcome.id = id = state.rows + 1
        complete = {
            "provenance": "user-corrected",
            "source": "user-edit",
            **before,
            **derived.columns,
            **columns,
        }
        values = canonicalize_names(
            state, pack, {name: [value] for name, value in complete.items() if value is not None}
        )
        names = find_names(state, pack, values, [screened])
        check_disclosed(store, state, complete.get("project"))
        tx.payloads([id], [screened])
        tx.vectors(
            id,
            store.embedder.fingerprint,
            store.embedder.encode([add_prefix(screened, get_prefix(*map(complete.get, PREFIXED)))]),
        )
        body = build_event_body(state, values, id, 1, chain=False, named_in=names)
        joins = Change(join=body.pop("join", ()))
        edges = _change_edges(state, store.journal, row, id)
        edges = edges if is_new_text else _drop_chain(state, edges, row, complete)
        outcome.notes += _note_removed_edges(edges)
        body |= {"edit": row + 1, "derived": _report_fields(derived, columns)}
        body |= (joins + supersede(row + 1, id, now) + edges).body()
        body |= describe_redactions([(id, finding) for finding in findings])
        self.write("remember", body)
        linking, notes = _link_new_text(core, id)
        outcome.notes += notes
        if linking:
            self.write("link", {"by": "edit", **linking})
        if is_new_text:
            outcome.notes += _note_superseded(store.state, row)
        for sort, rows in dependents_by_sort:
            sort.revise(self, row, screened, rows, outcome)

    # -- dependent memories -----------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The state, including the events of this transaction."""
        return self._store.state

    def write(self, kind: str, body: Body) -> None:
        """Write an event, and apply it to the state."""
        self._tx.event(kind, body, at=self.now)
        self._store.settle(self._tx)

    def again(self, row: int, text: Screened, fields: Mapping[str, Any]) -> EditOutcome:
        """Edit a memory derived from an edited memory, without checking permission."""
        return Editor(self._core, self._tx, self.now).edit(row, text, fields)


def _share_value(values: list[Any]) -> Any:
    """Return the values of several memories in one column, as one value if all are equal.

    A column of lists has a list of one list for each memory.
    """
    if isinstance(values[0], list):
        return [value for own in values for value in own]
    return values[0] if all(value == values[0] for value in values) else values


def _check_not_superseded(state: State, row: int) -> None:
    """Raise InputError if a memory is superseded, because its text can no longer be edited."""
    by = float(state.numbers["superseded_by"].values[row])
    if state.names["status"].value_at(row) == "superseded":
        other = "" if by != by else f" by memory {int(by)}"
        advice = (
            "Restore it first"
            if by != by
            else f"Edit memory {int(by)}, or forget that one and restore this one"
        )
        raise InputError(
            f"Memory {row + 1} is superseded{other}, so it cannot be edited. {advice}."
        )


def _drop_chain(state: State, edges: Change, row: int, complete: Mapping[str, Any]) -> Change:
    """Return a change without its ``next`` edges if the memory moves to another session, otherwise unchanged."""
    is_same_session = all(
        complete.get(name) == state.names[name].value_at(row) for name in ("project", "session")
    )
    if is_same_session or edges.edges is None:
        return edges
    positions = [
        position for position, name in enumerate(edges.edges["relation"]) if name != "next"
    ]
    columns = {
        name: [values[position] for position in positions] for name, values in edges.edges.items()
    }
    return Change(edges=columns if positions else None, unlink=edges.unlink)


def _note_removed_edges(change: Change) -> list[str]:
    """Return a note with the number of removed edges, or no note if no edge was removed."""
    count = len(change.unlink)
    return [f"{count} edge{'s' * (count > 1)} of the old text removed."] if count else []


def _note_superseded(state: State, row: int) -> list[str]:
    """Return a note that memories superseded by the old text stay superseded, if any."""
    by = state.numbers["superseded_by"].values
    older = [int(row_number) + 1 for row_number in (by == row + 1).nonzero()[0]]
    older = [
        id
        for id in older
        if state.names["source"].value_at(row) != "user-edit"
        or find_latest_version(state, id - 1) == id - 1
    ]
    names = ", ".join(map(str, older[:5]))
    return [
        f"Memories superseded by the old text stay superseded: {names}. See lab.upkeep.review.related({row + 1})."
    ] * bool(older)


def _report_fields(derived: Rederived, edited_fields: Iterable[str]) -> dict[str, list[str]]:
    """Return the report of an edit as event fields, with field names but no values.

    "given" lists the fields that the edit itself set.
    """
    return {
        "rebuilt": list(derived.rebuilt),
        "dropped": list(derived.dropped),
        "given": sorted(edited_fields),
    }


# -- the edges of the new version: inherited, removed, and made by linking --------------------------------------------


_BY_WORDS = tuple(RELATIONS.index(name) for name in ("similar-to", "updates", "contradicts"))
"""Relations that depend on two texts, so that a new text is compared again."""
# Both linking and shared use make ``relates-to`` edges. An edge ``supersedes`` belongs to one
# version. A memory derived from the old text was not derived from the new text.
_RELATED = RELATIONS.index("relates-to")
_NOT_CARRIED = tuple(RELATIONS.index(name) for name in ("supersedes",))
_DERIVED = RELATIONS.index("derived-from")


def _change_edges(state: State, journal: Journal | JournalView, row: int, id: int) -> Change:
    """Return the changes to edges when memory ``id`` replaces the memory in ``row``.

    Edges that were stated (a chain of turns, a link by hand, a verifier's relation) or strengthened
    by use are inherited. Edges that linking derived from the old text are removed.
    """
    # Edges to superseded or purged memories are not inherited, because these memories take no part
    # in recall.
    crossings = state.edges.crossings(np.array([row]))
    removed = _find_text_edges(state, journal, row)
    statuses = state.names["status"]
    source, target, relation, weight = [], [], list[str](), list[float]()
    for position, edge in enumerate(crossings.edge.tolist()):
        code, other, outgoing = (
            int(state.edges.relation[edge]),
            int(crossings.neighbour[position]),
            bool(crossings.outgoing[position]),
        )
        if (
            edge in removed
            or other >= len(state)
            or code in _NOT_CARRIED
            or (code == _DERIVED and not outgoing)
        ):
            continue
        if other == row or statuses.value_at(other) in ("superseded", "purged"):
            continue
        ends = (id, other + 1) if outgoing else (other + 1, id)
        source.append(ends[0])
        target.append(ends[1])
        relation.append(str(state.edges.words_of(np.array([code]))[0]))
        weight.append(float(state.edges.weight[edge]))
    edges = build_edges(source, target, relation, weight) if source else None
    return Change(edges=edges, unlink=sorted(removed))


def _find_text_edges(state: State, journal: Journal | JournalView, row: int) -> set[int]:
    """Return the numbers of edges that depend on the text of a memory."""
    crossings = state.edges.crossings(np.array([row]))
    memory = crossings.neighbour < len(state)
    relation = state.edges.relation[crossings.edge]
    removed = {int(edge) for edge in crossings.edge[memory & np.isin(relation, _BY_WORDS)]}
    related = crossings.edge[
        memory & (relation == _RELATED) & (state.edges.reinforcements[crossings.edge] == 0)
    ]
    return removed | {int(edge) for edge in related if _is_from_linking(state, journal, int(edge))}


def _is_from_linking(state: State, journal: Journal | JournalView, edge: int) -> bool:
    """Return whether a "link" event of automatic linking made an edge."""
    created = int(state.edges.created[edge])
    ends = int(state.edges.source[edge]) + 1, int(state.edges.target[edge]) + 1
    for event in _read_link_events(journal, created, state.seq):
        edges = event.body.get("edges")
        if not isinstance(edges, dict) or isinstance(edges["relation"], str):
            continue  # the first version wrote one relation for all edges, and only for links by hand
        if event.kind == "link" and event.body.get("by") != "hand":
            pairs = zip(edges["source"], edges["target"], edges["relation"], strict=True)
            if (*ends, "relates-to") in pairs:
                return True
    return False


def _read_link_events(journal: Journal | JournalView, instant: int, head: int) -> Iterator[Event]:
    """Yield the "link" events at the time ``instant``, up to the event ``head``."""
    after, upto = journal.last_at(instant - 1), min(journal.last_at(instant), head)
    yield from journal.events(after, upto=upto, kinds=("link",))


def _link_new_text(core: Core, id: int) -> tuple[dict[str, Any], list[str]]:
    """Return the event body that links a new text, and notes on superseded memories.

    The state must contain the memory. A correction by a person is never merged or left out.
    Instead, both memories stay, connected by an edge.
    """
    if not links_all(core.pack):
        return {}, []
    linked = get_comparer(core).after(range(id, id + 1))
    if not linked.outcomes:
        return {}, []
    outcome, other = linked.outcomes[0], linked.standing[0]
    if outcome == "added":
        return linked.body, [
            f"Memory {superseded} is superseded. {why}"
            for _, _, superseded, why in linked.superseded
        ]
    if outcome == "merged":
        note = f"Memory {other} states the same. Both stay, with a similar-to edge."
    else:
        note = f"Memory {other} contradicts the new text. Both stay, with a contradicts edge."
    relation = "similar-to" if outcome == "merged" else "contradicts"
    return Change(edges=build_edges([id], [other], relation, 1.0)).body(), [note]
