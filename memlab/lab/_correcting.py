"""Correcting: what was wrong, what is to go, and what comes back."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from memlab.arguments import checked
from memlab.errors import InputError, LabError, ReadOnlyLab, UnknownName
from memlab.journal import Journal, Scrub
from memlab.lab._base import LabBase, MemoryLike
from memlab.lab._purging import (
    Chosen,
    Purged,
    Receipt,
    checked_choice,
    chosen_by,
    held_files,
    receipt_of,
    sought_of,
)
from memlab.lab._remember import remembering
from memlab.lab._results import Memory
from memlab.life import (
    Outcome,
    differences,
    due_for_purge,
    edited,
    gone_of,
    in_place_of,
    joined_by_succession,
    kept_fields,
    let_go,
    named,
    purging,
    reinforced,
    restored,
    rewritten,
    rewritten_slate,
    statuses_of,
    superseding,
)
from memlab.memory import Change, State, as_said, checked_columns, checked_text, redactions, refuse_names
from memlab.operations import checked_operations
from memlab.privacy import refuse, screen
from memlab.purging import PURGE_TIMEOUT, PURGED, PURGING, end_purge
from memlab.schema import FIXED, RECALLABLE

__all__ = ["Corrected", "LabCorrecting", "Purged"]

Which = MemoryLike | Iterable[MemoryLike]


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
        return tuple(self.frame["memory_id"].to_list())

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        look = f", {self.review.height:,} to review" if self.review.height else ""
        return f"<{self.verb}: {len(self):,} memories{look}>"

    def _repr_html_(self) -> str:
        why = f": {html.escape(self.reason)}" if self.reason else ""
        parts = [f"<p>{html.escape(self.verb)}, {len(self):,} memories{why}</p>", self.frame._repr_html_()]
        if self.review.height:
            parts += ["<p>to review, as they are joined by <code>supersedes</code>:</p>", self.review._repr_html_()]
        return "".join(parts)


class LabCorrecting(LabBase):
    """``edit``, ``deprecate``, ``forget``, ``delete``, ``restore``, ``review``, ``purge``."""

    @checked
    def edit(self, memory: MemoryLike, *, text: str | None = None, **fields: Any) -> Memory:
        """Correct a memory, and return what stands for it now.

        ``fields`` are those of ``memlab.FIELDS``, checked as ``remember`` checks them; None takes a value away. Most
        are changed in place. Another ``text``, ``speaker``, ``session``, ``project`` or ``ref`` makes a new memory,
        which has all other fields of the old one, supersedes it, and is "user-corrected" from a "user-edit" unless
        ``provenance`` and ``source`` are given. Editing what was edited meanwhile, here or in another process, edits
        what stands in its place: the last one counts, and all are kept.

        Raises InputError for what is deleted or purged, and for a value that ``remember`` would not take;
        PrivacyError for a secret in a field. A secret in the text is redacted.

        >>> lab.edit(hit, text="Deploys go out on Wednesdays")                             # doctest: +SKIP
        """
        if text is None and not fields:
            raise InputError("edit needs what to change: a text, or any of memlab.FIELDS.")
        if "at" in fields:
            raise InputError("When a memory was remembered cannot be edited; valid_from says since when it holds.")
        if "status" in fields:
            raise InputError("A status is no field to edit: see forget, deprecate, delete, restore and retract.")
        store = self._store
        now = store.clock()
        given = checked_columns(
            {"text": ["-" if text is None else text], **{k: [v] for k, v in fields.items()}}, now=now
        )
        personal = self._personal()
        screening = screen(given.pop("text")[0], personal=personal)
        said = screening.text
        refuse_names(given)
        checked_operations(given.get("operations", ()))
        columns = {name: values[0] for name, values in given.items()}
        with store.writing() as tx:
            state, pack = store.state, store.versions.pack
            row = in_place_of(state, self._row(memory))
            let_go(state, [row], "superseded", now)  # raises for what is deleted or purged
            before: dict[str, Any] = {name: state.names[name].at(row) for name in ("speaker", "project", "session")}
            before["ref"] = state.refs.at(row)
            same_text = text is None or said == state.texts.at(row)
            if same_text and all(columns[name] == before[name] for name in FIXED if name in columns):
                rest = {name: value for name, value in columns.items() if name not in FIXED}
                change = edited(state, row, rest, now)
                tx.event("edit", {"memory": row + 1, **change.body()}, at=now)
                id = row + 1
            else:
                id = tx.next_id
                kept = {"provenance": "user-corrected", "source": "user-edit", **kept_fields(state, row), **columns}
                listed = named(state, pack, {name: [value] for name, value in kept.items() if value is not None})
                words = said if text is not None else screen(state.texts.at(row) or "", personal=personal).text
                vector = store.embedder.encode([as_said(words, kept.get("speaker"))])
                tx.payloads([id], [words])
                tx.vectors(id, store.embedder.fingerprint, vector)
                body = remembering(state, listed, id, 1, chain=False)
                body |= {"edit": row + 1, **superseding(row + 1, id, now).body()}
                body |= redactions([(id, finding) for finding in screening.findings])
                tx.event("remember", body, at=now)
        return self[id]

    # -- letting go -------------------------------------------------------------------------------------------

    @checked
    def deprecate(self, memory: Which, reason: str) -> Corrected:
        """Flag memories as wrong: they leave recall, and stay, with the ``reason``. ``restore`` brings them back.

        The result's ``review`` has the memories that they supersede or were superseded by.

        >>> lab.deprecate(hit, "the office has moved").review                              # doctest: +SKIP
        """
        refuse(checked_text(reason, where="reason"), "reason")

        def change(state: State, chosen: list[int], now: int) -> Change:
            return let_go(state, chosen, "deprecated", now, reason) + self._used(state, chosen, now, "rejected")

        return self._corrected("deprecate", lambda state: self._rows(memory), change, reason)

    @checked
    def forget(self, memory: Which) -> Corrected:
        """Take memories out of every recall; ``restore`` brings them back."""
        return self._let_go("forget", "forgotten", lambda state: self._rows(memory))

    @checked
    def delete(self, memory: Which | None = None, *, project: str | None = None) -> Corrected:
        """Delete memories, or all of a project: out of every recall now, and due to be purged after ``grace-days``.

        The live pack's setting ``grace-days`` says how long ``restore`` brings them back; ``purge(overdue=True)``
        removes what is due. Nothing is purged by itself. What is deleted already stays as it is.
        """

        def rows(state: State) -> list[int]:
            chosen = self._chosen(state, memory, project)
            return [row for row in chosen if state.names["status"].at(row) not in ("deleted", "purged")]

        return self._let_go("delete", "deleted", rows)

    @checked
    def restore(self, memory: Which | None = None, *, project: str | None = None) -> Corrected:
        """Bring back what was forgotten, deprecated, retracted or deleted, ran out or went into a summary; or all that
        is deleted of a project.

        Each gets the status that it had before, read from the journal's events (about half a second for 100,000).
        What was superseded comes back once what took its place is out of use. What is in use is left as it is. Bringing
        back is a use: the pack's ``reinforce`` is asked as of a recall, and as of a rejection when one is deprecated.
        InputError for what is superseded by a memory in use, or purged.
        """

        def rows(state: State) -> list[int]:
            chosen = self._chosen(state, memory, project)
            return chosen if memory is not None else [r for r in chosen if state.names["status"].at(r) == "deleted"]

        store = self._store

        def change(state: State, chosen: list[int], now: int) -> Change:
            change = restored(state, chosen, statuses_of(store.journal.events(), chosen), now)
            back = [row for row in chosen if state.names["status"].at(row) not in RECALLABLE]
            return change + self._used(state, back, now, "recalled")

        return self._corrected("restore", rows, change)

    @checked
    def review(self, memory: Which | None = None) -> pl.DataFrame:
        """What may want a look since a memory was deprecated: those that it supersedes or was superseded by.

        Columns: memory_id, of, how, status, text. Without ``memory``, of all that is deprecated.
        """
        with self._reading() as state:
            if memory is not None:
                return joined_by_succession(state, self._rows(memory))
            status = state.names["status"]
            return joined_by_succession(state, np.flatnonzero(status.codes == status.code("deprecated")).tolist())

    # -- for good ---------------------------------------------------------------------------------------------

    @checked
    def purge(
        self,
        memory: Which | None = None,
        *,
        project: str | None = None,
        session: str | None = None,
        subject: str | None = None,
        creator: str | None = None,
        overdue: bool = False,
        remove_exports: bool = False,
        reason: str = "",
    ) -> Purged:
        """Remove memories for good: ``memory``, those of a ``project``, ``session``, ``subject`` or ``creator``, or
        with ``overdue`` what was deleted for longer than ``grace-days``. The result is a receipt.

        Names narrow each other: ``project="web", session="monday"`` are the memories that have both. ``subject`` is an
        entity under all its names, aliases and merged ones too, and what is known of it goes: the facts, its own names
        unless a memory that stays has them, and questions that name it. A memory that only mentions it stays, and the
        receipt tells of it.

        Texts, names, lists, notes and vectors go from the journal's events and rows, from logged recalls (a question
        that was such a text, shares 12 characters in a row or a name with such texts and with no memory that stays, or
        was asked in a purged project or session or by a purged viewer), snapshots, sealed slates, indexes, and all
        backups that ``backup`` has kept, in whose place comes a new one; the database is written anew, so that its free
        pages and its log hold nothing of them. The folders of ``mirror`` are brought in step, and one that is not there
        is when the lab is opened and it is. Files of ``export`` stay, unless ``remove_exports`` is True.

        Then every file of the lab, its backups, mirrors and known exports is searched for what went, and the receipt
        tells what was searched and what was found: an export, a memory that says the same, a file that could not be
        written. Copies that were made otherwise are not known.

        What stays: the row with the status "purged", its numbers, times, kind and other words of closed vocabularies,
        edges of the past without their ends' names, and a tombstone (a keyed hash of the text, its origin) by which
        imports know it again. ``reason`` is kept, so it should not repeat what goes.

        It is done or not begun: what a killed process leaves is ended by whoever opens the lab next. Every process
        that has the lab open folds it anew. LabBusy where one is in the way for a minute; the next opening then goes
        on. A thousand of 100,000 memories, with 500 logged recalls and a backup, took 14 seconds of processor time:
        half of it to fold the journal anew and to write the database and a snapshot, the rest to find out which
        questions quote them and to search 63 MB of files.

        >>> lab.purge(subject="Ada Lovelace").found                                        # doctest: +SKIP
        """
        checked_choice(memory, overdue, project=project, session=session, subject=subject, creator=creator)
        refuse(reason, "reason")
        store, journal = self._store, self._store.journal
        if not isinstance(journal, Journal) or journal.read_only:
            raise ReadOnlyLab(f"{store.where} was opened with read_only=True.")
        # nobody writes a file that is made of the journal until all of them are gone
        with store.alone(), store.derived.held(PURGE_TIMEOUT):
            rows: list[int] = []

            def verify(before: State, after: State) -> None:
                found = differences(before, after, np.array(rows, dtype=np.int64))
                if found:
                    raise LabError(
                        f"{store.where}: nothing was purged, as more than the purged content would change: {found[0]} "
                        "Please report this."
                    )

            with store.writing(verify=verify) as tx:
                state, now = store.state, store.clock()
                if overdue:
                    chosen = Chosen([id - 1 for id in due_for_purge(state, store.versions.pack, now)["id"].to_list()])
                elif memory is not None:
                    chosen = Chosen(self._rows(memory))
                else:
                    chosen = chosen_by(state, project=project, session=session, subject=subject, creator=creator)
                rows = [row for row in chosen.rows if state.names["status"].at(row) != "purged"]
                review = joined_by_succession(state, rows, derived=True)
                scrub = Scrub()
                if rows:
                    seq, purged = tx.head + 1, np.array(sorted(rows), dtype=np.int64)
                    gone = gone_of(state, journal.events(), purged, seq=seq, asked=chosen.asked, entity=chosen.entity)
                    wanted = sought_of(state, rows, gone, chosen.entity)
                    bodies = {e.seq: body for e in journal.events() if (body := rewritten(e, gone)) is not None}
                    slates = {
                        decision: new
                        for decision, blob in journal.slates()
                        if (new := rewritten_slate(decision, blob, gone)) is not None
                    }
                    scrub = Scrub(bodies, slates, gone.ids.tolist())
                    change, tombstones = purging(state, purged, now)
                    tx.scrub(scrub)
                    tx.event("purge", {"reason": reason, "tombstones": tombstones, **change.body()}, at=now)
                    tx.meta(PURGED, str(seq))
                    tx.meta(PURGING, str(seq))
            if rows:
                store.neighbours.forget()
                held = held_files(store)
                end_purge(journal, now=now)
                exports = {"remove_exports": remove_exports}
                frame = receipt_of(store, gone, scrub, change, wanted, held, **exports)
                counts = (len(scrub.bodies), len(scrub.slates), len(gone.emptied))
        if not rows:
            return Purged((), 0, 0, 0, review, Receipt().frame(), reason)
        store.snapshot_if_due()
        return Purged(tuple(row + 1 for row in rows), *counts, review, frame, reason)

    # -- within -----------------------------------------------------------------------------------------------

    def _chosen(self, state: State, memory: Which | None, project: str | None) -> list[int]:
        """The rows of the memories named, or of all that are a project's own."""
        if (memory is None) == (project is None):
            raise InputError("Name memories, or a project: one of the two.")
        if memory is not None:
            return self._rows(memory)
        names = state.names["project"]
        rows: list[int] = np.flatnonzero(names.codes == names.code(project)).tolist()
        if not rows:
            raise UnknownName("project", project, names.vocabulary)
        return rows

    def _let_go(
        self, verb: str, status: str, rows: Callable[[State], list[int]], reason: str | None = None
    ) -> Corrected:
        return self._corrected(
            verb, rows, lambda state, chosen, now: let_go(state, chosen, status, now, reason), reason
        )

    def _used(self, state: State, rows: list[int], now: int, outcome: Outcome) -> Change:
        pack = self._store.versions.pack
        return reinforced(state, pack, np.array(sorted(rows), dtype=np.int64), now, outcome=outcome)

    def _corrected(
        self,
        verb: str,
        rows: Callable[[State], list[int]],
        change: Callable[[State, list[int], int], Change],
        reason: str | None = None,
    ) -> Corrected:
        """One event that changes statuses, or none if nothing is to change."""
        with self._store.writing() as tx:
            state, now = self._store.state, self._store.clock()
            chosen = rows(state)
            before = [state.names["status"].at(row) for row in chosen]
            made = change(state, chosen, now)
            if made:
                tx.event(verb, made.body(), at=now)
        with self._reading() as state:
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
