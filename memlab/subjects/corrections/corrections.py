"""Correcting: what was wrong, what is to go, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.display import paragraph
from memlab.errors import InputError, UnknownName
from memlab.journal import Transaction
from memlab.operations import checked_operations
from memlab.privacy import Finding, refuse, screen
from memlab.schema import FIXED, RECALLABLE
from memlab.state import Change, State, checked_columns, checked_text, redactions, refuse_names, with_speaker
from memlab.subjects.core import Core, Memories, MemoryLike
from memlab.subjects.corrections.derived import rederived, without_summaries
from memlab.subjects.corrections.edited_frame import changed_fields
from memlab.subjects.corrections.editing import (
    carried_fields,
    edited,
    in_place_of,
    joined_by_succession,
    numbers_before,
    restored,
    statuses_of,
    superseding,
    undeprecated,
    without_use,
)
from memlab.subjects.facts.fact_rows import named
from memlab.subjects.feedback.reinforcing import Outcome, reinforced
from memlab.subjects.linking.comparing import link_waiting
from memlab.subjects.remembering.body import remembering
from memlab.subjects.remembering.inferred import with_inferred
from memlab.subjects.results import Memory, with_redacted

__all__ = ["Corrected", "Corrections"]

_REWORDED = "It was made from memory {}, which was corrected."


@dataclass(frozen=True)
class Corrected:
    """What ``deprecate``, ``forget``, ``delete`` or ``restore`` did.

    ``frame`` has a row for each memory that changed: memory_id, before, status, text. ``review`` has those that a
    changed one supersedes or was superseded by (memory_id, of, how, status, text): they may want a look.
    """

    verb: str
    frame: pl.DataFrame
    review: pl.DataFrame
    reason: str | None = None

    @property
    def ids(self) -> tuple[int, ...]:
        """The memories that were changed."""
        return tuple(self.frame["memory_id"].to_list())

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        look = f", {self.review.height:,} to review" if self.review.height else ""
        return f"<{self.verb}: {len(self):,} memories{look}>"

    def _repr_html_(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        parts = [paragraph(f"{self.verb}, {len(self):,} memories{why}"), self.frame._repr_html_()]
        if self.review.height:
            parts += ["<p>to review, as they are joined by <code>supersedes</code>:</p>", self.review._repr_html_()]
        return "".join(parts)


class _Edited(NamedTuple):
    """The memory that stands after an edit, fields that were not carried over, what was taken out of the text."""

    id: int
    dropped: tuple[str, ...]
    redacted: tuple[Finding, ...]


class Corrections:
    """How memories of one lab are corrected: an event for each call, or none where nothing is to change."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def edit(self, memory: MemoryLike, *, text: str | None, fields: Mapping[str, Any]) -> Memory:
        """The memory that replaces ``memory`` once it is corrected; see ``Lab.edit``."""
        if text is None and not fields:
            raise InputError("edit needs what to change: a text, or any of memlab.FIELDS.")
        if "at" in fields:
            raise InputError("When a memory was remembered cannot be edited; valid_from says since when it holds.")
        if "status" in fields:
            raise InputError("A status is no field to edit: see forget, deprecate, delete, restore and retract.")
        with self._core.store.writing() as tx:
            done = self._edit_one(tx, memory, text, fields)
        self._link_edited()
        return self._returned(done)

    def edit_frame(self, frame: pl.DataFrame) -> tuple[Memory, ...]:
        """Write the changed values of a frame of memories back, all or none; see ``Lab.edit``."""
        with self._core.store.writing() as tx:
            changes = changed_fields(self._core.store.state.memories(), frame)
            done: list[_Edited] = []
            for id, fields in changes:
                if done:  # the next edit is decided on the state that this one leaves
                    self._core.store.settle(tx)
                text = fields.pop("text", None)
                done.append(self._edit_one(tx, id, text, fields))
        self._link_edited()
        return tuple(map(self._returned, done))

    def _returned(self, done: _Edited) -> Memory:
        """The memory that stands after an edit, with what was dropped and what was taken out of its text."""
        return with_redacted(replace(self._core.memory(done.id), dropped=done.dropped), done.redacted)

    def _link_edited(self) -> None:
        """Compare corrected memories with the others where the pack links at once; else the linker does so later."""
        if self._core.pack.settings["linking"] == "now":
            while link_waiting(self._core):
                pass

    def _edit_one(self, tx: Transaction, memory: MemoryLike, text: str | None, fields: Mapping[str, Any]) -> _Edited:
        """Write the event of one edit."""
        store = self._core.store
        now = store.clock()
        given = checked_columns(
            {"text": ["-" if text is None else text], **{k: [v] for k, v in fields.items()}},
            now=now,
            open_words=self._core.open_words,
        )
        personal = self._core.personal()
        screening = screen(given.pop("text")[0], personal=personal)
        screened = screening.text
        refuse_names(given)
        checked_operations(given.get("operations", ()))
        columns = {name: values[0] for name, values in given.items()}
        state, pack = store.state, store.versions.pack
        row = in_place_of(state, self._core.row(memory))
        without_use(state, [row], "superseded", now)  # raises for what is deleted or purged
        before: dict[str, Any] = {name: state.names[name].at(row) for name in ("speaker", "project", "session")}
        before["ref"] = state.refs.at(row)
        same_text = text is None or screened == state.texts.at(row)
        if same_text and all(columns[name] == before[name] for name in FIXED if name in columns):
            rest = {name: value for name, value in columns.items() if name not in FIXED}
            change = edited(state, row, rest, now)
            tx.event("edit", {"memory": row + 1, **change.body()}, at=now)
            id, dropped = row + 1, tuple[str, ...]()
        else:
            id = tx.next_id
            was = state.texts.at(row) or ""
            words = screened if text is not None else screen(was, personal=personal).text
            carried, dropped = rederived(pack, was, words, carried_fields(state, row), columns)
            retiring = Change() if words == was else without_summaries(state, row, now, _REWORDED.format(row + 1))
            if retiring and carried.get("status") == "consolidated":
                del carried["status"]
            complete = {"provenance": "user-corrected", "source": "user-edit", **carried, **columns}
            listed = named(state, pack, {name: [value] for name, value in complete.items() if value is not None})
            listed = with_inferred(pack, listed, [words])
            vector = store.embedder.encode([with_speaker(words, complete.get("speaker"))])
            tx.payloads([id], [words])
            tx.vectors(id, store.embedder.fingerprint, vector)
            body = remembering(state, listed, id, 1, chain=False)
            body |= {"edit": row + 1, **(superseding(row + 1, id, now) + retiring).body()}
            body |= redactions([(id, finding) for finding in screening.findings])
            if words != was and pack.settings["linking"] != "off":
                body["waits"] = True  # what its old words were joined to says nothing of the new ones
            tx.event("remember", body, at=now)
        return _Edited(id, dropped, () if text is None else screening.findings)

    def deprecate(self, memory: Memories, reason: str) -> Corrected:
        """See ``LabReview.deprecate``."""
        refuse(checked_text(reason, where="reason"), "reason")

        def change(state: State, chosen: list[int], now: int) -> Change:
            return without_use(state, chosen, "deprecated", now, reason) + self._used(state, chosen, now, "rejected")

        return self._corrected("deprecate", lambda state: self._core.rows(memory), change, reason, numbers_before)

    def forget(self, memory: Memories) -> Corrected:
        """See ``Lab.forget``."""
        return self._set_status("forget", "forgotten", lambda state: self._core.rows(memory))

    def delete(self, memory: Memories | None, *, project: str | None) -> Corrected:
        """See ``Lab.delete``."""

        def rows(state: State) -> list[int]:
            chosen = self._chosen(state, memory, project)
            return [row for row in chosen if state.names["status"].at(row) not in ("deleted", "purged")]

        return self._set_status("delete", "deleted", rows)

    def restore(self, memory: Memories | None, *, project: str | None) -> Corrected:
        """See ``Lab.restore``."""

        def rows(state: State) -> list[int]:
            chosen = self._chosen(state, memory, project)
            return chosen if memory is not None else [r for r in chosen if state.names["status"].at(r) == "deleted"]

        store = self._core.store

        def change(state: State, chosen: list[int], now: int) -> Change:
            change = restored(state, chosen, statuses_of(store.journal.events(), chosen), now)
            status = {row: state.names["status"].at(row) for row in chosen}
            wronged = [row for row in chosen if status[row] == "deprecated"]
            back = [row for row in chosen if status[row] not in (*RECALLABLE, "deprecated")]
            undone = undeprecated(state, store.journal.events(kinds=("deprecate",)) if wronged else (), wronged)
            return change + undone + self._used(state, back, now, "recalled")

        return self._corrected("restore", rows, change)

    def related(self, memory: Memories | None) -> pl.DataFrame:
        """See ``LabReview.related``."""
        with self._core.reading() as state:
            if memory is not None:
                return joined_by_succession(state, self._core.rows(memory))
            status = state.names["status"]
            return joined_by_succession(state, np.flatnonzero(status.codes == status.code("deprecated")).tolist())

    def _chosen(self, state: State, memory: Memories | None, project: str | None) -> list[int]:
        """The rows of the memories named, or of all that are a project's own."""
        if (memory is None) == (project is None):
            raise InputError("Name memories, or a project: one of the two.")
        if memory is not None:
            return self._core.rows(memory)
        names = state.names["project"]
        rows: list[int] = np.flatnonzero(names.codes == names.code(project)).tolist()
        if not rows:
            raise UnknownName("project", project, names.vocabulary)
        return rows

    def _set_status(
        self, verb: str, status: str, rows: Callable[[State], list[int]], reason: str | None = None
    ) -> Corrected:
        return self._corrected(
            verb, rows, lambda state, chosen, now: without_use(state, chosen, status, now, reason), reason
        )

    def _used(self, state: State, rows: list[int], now: int, outcome: Outcome) -> Change:
        pack = self._core.pack
        return reinforced(state, pack, np.array(sorted(rows), dtype=np.int64), now, outcome=outcome)

    def _corrected(
        self,
        verb: str,
        rows: Callable[[State], list[int]],
        change: Callable[[State, list[int], int], Change],
        reason: str | None = None,
        before_it: Callable[[State, Change], list[dict[str, Any]]] | None = None,
    ) -> Corrected:
        """One event that changes statuses, or none if nothing is to change.

        ``before_it`` says what the event keeps of the values that it changes, as its own way back.
        """
        with self._core.store.writing() as tx:
            state, now = self._core.store.state, self._core.store.clock()
            chosen = rows(state)
            before = [state.names["status"].at(row) for row in chosen]
            made = change(state, chosen, now)
            if made:
                was = [] if before_it is None else before_it(state, made)
                tx.event(verb, {**made.body(), "was": was} if was else made.body(), at=now)
        with self._core.reading() as state:
            status = [state.names["status"].at(row) for row in chosen]
            frame = pl.DataFrame(
                {
                    "memory_id": [row + 1 for row in chosen],
                    "before": before,
                    "status": status,
                    "text": [state.texts.at(row) for row in chosen],
                },
                schema={"memory_id": pl.Int64, "before": pl.String, "status": pl.String, "text": pl.String},
            )
            return Corrected(verb, frame, joined_by_succession(state, chosen), reason)
