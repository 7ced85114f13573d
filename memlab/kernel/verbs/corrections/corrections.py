"""Correcting: what was wrong, what is to go, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName, did_you_mean
from memlab.kernel.base.display import Displayed, Markup
from memlab.kernel.hooks import hooks, load_part
from memlab.kernel.privacy import Finding, Screened, refuse, screen
from memlab.kernel.recall import Hit
from memlab.kernel.schema import FIELDS, RECALLABLE
from memlab.kernel.state import Change, State, checked_columns, checked_text, refuse_names
from memlab.kernel.verbs.core import Core, Memories, MemoryLike
from memlab.kernel.verbs.corrections.editing import (
    joined_by_succession,
    numbers_before,
    restored,
    statuses_of,
    undeprecated,
    versions_from,
    without_use,
)
from memlab.kernel.verbs.corrections.replacing import (
    Dependents,
    Editor,
    EditOutcome,
    Permit,
    dependents,
)
from memlab.kernel.verbs.reinforcement import Outcome, reinforce
from memlab.kernel.verbs.remembering.rows import check_files
from memlab.kernel.verbs.results import Edited, Memory, note_redactions

__all__ = ["Corrected", "Corrections"]


@dataclass(frozen=True)
class Corrected(Displayed):
    """What ``deprecate``, ``forget``, ``delete`` or ``restore`` did.

    ``frame`` has a row for each memory that the act reached: memory_id, before, status, text. A memory that was edited
    is reached with its corrections, the edits that replaced it. ``review`` has the other memories that a reached one
    supersedes or was superseded by (memory_id, of, how, status, text): they may want a look.
    """

    verb: str
    frame: pl.DataFrame
    review: pl.DataFrame
    reason: str | None = None

    @property
    def ids(self) -> tuple[int, ...]:
        """The memories that the act reached: those that were named, each followed by its corrections."""
        return tuple(self.frame["memory_id"].to_list())

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        look = f", {self.review.height:,} to review" if self.review.height else ""
        return f"<{self.verb}: {len(self):,} memories{look}>"

    def _display(self) -> object:
        why = f": {self.reason}" if self.reason else ""
        parts = [f"{self.verb}, {len(self):,} memories{why}", self.frame]
        if self.review.height:
            parts += [
                Markup("to review, as they are joined by <code>supersedes</code>:"),
                self.review,
            ]
        return parts


class Corrections:
    """How memories of one lab are corrected: an event for each call, or none where nothing is to change."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def edit(
        self,
        memory: MemoryLike,
        *,
        text: str | None,
        fields: Mapping[str, Any],
        permit: Permit | None = None,
    ) -> Edited:
        """The memory that replaces ``memory`` once it is corrected; see ``Lab.edit``.

        ``permit`` raises for a row that the caller may not change: it is asked of the memory that is edited, which is
        another one than ``memory`` where that was edited before.
        """
        if text is None and not fields:
            raise InputError("edit needs what to change: a text, or any of memlab.FIELDS.")
        if "at" in fields:
            raise InputError(
                "When a memory was remembered cannot be edited; valid_from says since when it holds."
            )
        if "status" in fields:
            raise InputError(
                "A status is no field to edit: see forget, deprecate, delete, restore and retract."
            )
        asked = self._asked(text, fields)
        with self._core.store.writing() as tx:
            row = self._core.row(memory)
            self._check_own(memory, row)
            outcome = Editor(self._core, tx, self._core.store.clock(), permit).edit(row, *asked)
        return self._edited(outcome, asked[2])

    def edit_frame(self, frame: pl.DataFrame) -> tuple[Edited, ...]:
        """Write the changed values of a frame of memories back, all or none; see ``Lab.edit``."""
        with self._core.store.writing() as tx:
            changes = _changed_fields(self._core.store.state.memories(), frame)
            # all are checked first: once an edit is applied to the state, the store must not be read
            asked = [(id, self._asked(fields.pop("text", None), fields)) for id, fields in changes]
            editor = Editor(self._core, tx, self._core.store.clock())
            outcomes = [editor.edit(id - 1, *what) for id, what in asked]
        return tuple(
            self._edited(one, what[2]) for one, (_, what) in zip(outcomes, asked, strict=True)
        )

    def _asked(
        self, text: str | None, fields: Mapping[str, Any]
    ) -> tuple[Screened | None, dict[str, Any], tuple[Finding, ...]]:
        """The text and the fields of an edit, checked and screened, and what the privacy gate found in the text."""
        given = checked_columns(
            {"text": ["-" if text is None else text], **{k: [v] for k, v in fields.items()}},
            now=self._core.store.clock(),
            open_words=self._core.open_words,
        )
        screening = screen(given.pop("text")[0], personal=self._core.personal())
        refuse_names(given)
        load_part("check-operations")(given.get("operations", ()))
        columns = {name: values[0] for name, values in given.items()}
        check_files(self._core.pack, given)
        return (
            (None, columns, ()) if text is None else (screening.text, columns, screening.findings)
        )

    def _edited(self, outcome: EditOutcome, findings: Sequence[Finding]) -> Edited:
        """The memory as an edit left it."""
        with self._core.reading() as state:
            memory = Memory.of(state, outcome.id - 1)
        told = [
            tuple(dict.fromkeys(one)) for one in (outcome.rebuilt, outcome.dropped, outcome.notes)
        ]
        return note_redactions(Edited(*vars(memory).values(), *told), findings)

    def _check_own(self, memory: MemoryLike, row: int) -> None:
        """InputError for a memory of another lab: the one that has its id here says something else.

        What is purged has no text to compare; the edit refuses it by its status.
        """
        state = self._core.store.state
        text = None if state.names["status"].at(row) == "purged" else state.texts.at(row)
        if isinstance(memory, Memory | Hit) and text is not None and memory.text not in (text, ""):
            raise InputError(
                f"Memory {memory.id} of this lab is another one than was given: it is a memory of another lab. Name it "
                "by its id to edit what stands there."
            )

    def deprecate(self, memory: Memories, reason: str) -> Corrected:
        """See ``LabReview.deprecate``."""
        refuse(checked_text(reason, where="reason"), "reason")

        def body(state: State, chosen: list[int], now: int) -> dict[str, Any]:
            change = without_use(state, chosen, "deprecated", now, reason)
            change += self._used(state, chosen, now, "rejected")
            was = numbers_before(state, change)  # the event is its own way back
            return {**change.body(), "was": was} if was else change.body()

        return self._corrected(
            "deprecate", lambda state: self._with_corrections(state, memory), body, reason
        )

    def forget(self, memory: Memories, *, permit: Permit | None = None) -> Corrected:
        """See ``Lab.forget``. ``permit`` raises for a row that the caller may not change, corrections included."""

        def rows(state: State) -> list[int]:
            return _permitted(state, self._with_corrections(state, memory), permit)

        def body(state: State, chosen: list[int], now: int) -> dict[str, Any]:
            return without_use(state, chosen, "forgotten", now).body()

        return self._corrected("forget", rows, body)

    def delete(self, memory: Memories | None, *, project: str | None) -> Corrected:
        """See ``Lab.delete``."""

        def rows(state: State) -> list[int]:
            if memory is not None and project is None:
                chosen = self._with_corrections(state, memory)
            else:
                chosen = self._chosen(state, memory, project, known=is_kept(state))
            return [
                row for row in chosen if state.names["status"].at(row) not in ("deleted", "purged")
            ]

        def is_kept(state: State) -> bool:
            return project is not None and any(
                keeps(state, project) for keeps in hooks("delete-project")
            )

        def body(state: State, chosen: list[int], now: int) -> dict[str, Any]:
            own = {"project": project} if is_kept(state) else {}
            return {**without_use(state, chosen, "deleted", now).body(), **own}

        return self._corrected("delete", rows, body)

    def restore(
        self,
        memory: Memories | None,
        *,
        project: str | None,
        permit: Permit | None = None,
        summaries: bool = True,
    ) -> Corrected:
        """See ``Lab.restore``. ``permit`` is that of ``forget``; without ``summaries`` those in use stay."""
        standing: list[tuple[Dependents, list[int]]] = []

        def rows(state: State) -> list[int]:
            chosen = self._chosen(state, memory, project)
            if memory is None:
                return [row for row in chosen if state.names["status"].at(row) == "deleted"]
            standing[:] = (
                [(sort, sort.stand_ins(state, chosen)) for sort in dependents()]
                if summaries
                else []
            )
            apart = {row for _, some in standing for row in some}
            others = [row for row in chosen if row not in apart]
            versions = [version for row in others for version in _taken_out_together(state, row)]
            return _permitted(state, list(dict.fromkeys(versions)), permit)

        store = self._core.store

        def body(state: State, chosen: list[int], now: int) -> dict[str, Any]:
            change = restored(state, chosen, statuses_of(store.journal.events(), chosen), now)
            status = {row: state.names["status"].at(row) for row in chosen}
            wronged = [row for row in chosen if status[row] == "deprecated"]
            back = [row for row in chosen if status[row] not in (*RECALLABLE, "deprecated")]
            undone = undeprecated(
                state, store.journal.events(kinds=("deprecate",)) if wronged else (), wronged
            )
            return (change + undone + self._used(state, back, now, "recalled")).body()

        done = self._corrected("restore", rows, body)
        for sort, some in standing:
            done = self._with_members(done, sort, some) if some else done
        return done

    def _with_members(self, done: Corrected, sort: Dependents, standing: list[int]) -> Corrected:
        """Restore the members of memories that stand for them, and add both to what was restored before."""
        with self._core.reading() as state:
            members = [id - 1 for row in standing for id in sort.members(state, row)]
            chosen = list(dict.fromkeys([*standing, *members]))
            before = [state.names["status"].at(row) for row in chosen]
        sort.undo(self._core.store, standing)
        undone = self._report("restore", chosen, before, None)
        frame = pl.concat([done.frame, undone.frame.filter(pl.col("before") != pl.col("status"))])
        return Corrected(
            "restore", frame, pl.concat([done.review, undone.review]).unique(maintain_order=True)
        )

    def related(self, memory: Memories | None) -> pl.DataFrame:
        """See ``LabReview.related``."""
        with self._core.reading() as state:
            if memory is not None:
                return joined_by_succession(state, self._core.rows(memory))
            status = state.names["status"]
            return joined_by_succession(
                state, np.flatnonzero(status.codes == status.code("deprecated")).tolist()
            )

    def _chosen(
        self, state: State, memory: Memories | None, project: str | None, *, known: bool = False
    ) -> list[int]:
        """The rows of the memories named, or of all that are a project's own; ``known``: the project may have none."""
        if (memory is None) == (project is None):
            raise InputError("Name memories, or a project: one of the two.")
        if memory is not None:
            return self._core.rows(memory)
        names = state.names["project"]
        rows: list[int] = np.flatnonzero(names.codes == names.code(project)).tolist()
        if not rows and not known:
            raise UnknownName("project", project, names.vocabulary)
        return rows

    def _with_corrections(self, state: State, memory: Memories) -> list[int]:
        """Return the rows of the memories named, each followed by the edits that replaced it.

        A correction that is deleted already stays as it is.
        """
        rows: dict[int, None] = {}
        for row in self._core.rows(memory):
            corrections = versions_from(state, row)[1:]
            rows |= dict.fromkeys(
                [row, *(one for one in corrections if state.names["status"].at(one) != "deleted")]
            )
        return list(rows)

    def _used(self, state: State, rows: list[int], now: int, outcome: Outcome) -> Change:
        pack = self._core.pack
        return reinforce(state, pack, np.array(sorted(rows), dtype=np.int64), now, outcome=outcome)

    def _corrected(
        self,
        verb: str,
        rows: Callable[[State], list[int]],
        body: Callable[[State, list[int], int], dict[str, Any]],
        reason: str | None = None,
    ) -> Corrected:
        """Write one event that changes statuses, with what ``body`` returns; none if that is empty."""
        with self._core.store.writing() as tx:
            state, now = self._core.store.state, self._core.store.clock()
            chosen = rows(state)
            before = [state.names["status"].at(row) for row in chosen]
            if made := body(state, chosen, now):
                tx.event(verb, made, at=now)
        return self._report(verb, chosen, before, reason)

    def _report(
        self, verb: str, chosen: list[int], before: list[str | None], reason: str | None
    ) -> Corrected:
        """What became of these rows, with their status ``before``."""
        with self._core.reading() as state:
            status = [state.names["status"].at(row) for row in chosen]
            frame = pl.DataFrame(
                {
                    "memory_id": [row + 1 for row in chosen],
                    "before": before,
                    "status": status,
                    "text": [state.texts.at(row) for row in chosen],
                },
                schema={
                    "memory_id": pl.Int64,
                    "before": pl.String,
                    "status": pl.String,
                    "text": pl.String,
                },
            )
            return Corrected(verb, frame, joined_by_succession(state, chosen), reason)


def _permitted(state: State, rows: list[int], permit: Permit | None) -> list[int]:
    """Return ``rows`` once ``permit`` has raised for none of them."""
    if permit is not None:
        for row in rows:
            permit(state, row)
    return rows


def _taken_out_together(state: State, row: int) -> list[int]:
    """Return a memory that is out of use and its corrections with the same status.

    A superseded memory stands for itself: it gave way to a correction, and to restore it brings its own words back.
    """
    status = state.names["status"].at(row)
    if status == "superseded":
        return [row]
    return [
        version
        for version in versions_from(state, row)
        if state.names["status"].at(version) == status
    ]


# -- frames that are written back -------------------------------------------------------------------------------------


_EDITABLE = frozenset(FIELDS) - {"status"}


def _changed_fields(
    memories: pl.DataFrame, edited: pl.DataFrame
) -> list[tuple[int, dict[str, Any]]]:
    """Return the id and the changed fields of each memory that a frame changes, in the order of the frame.

    Parameters
    ----------
    memories
        ``lab.memories`` as it is.
    edited
        Rows with an ``id`` and any columns of ``memories``. Rows and columns that are left out stay as they are.

    Raises
    ------
    InputError
        If there is no column ``id``, an id is null or stands twice, a column is none of a memory's, or a value changed
        that is not a caller's to change.
    UnknownName
        If there is no memory of an id.
    """
    if "id" not in edited.columns:
        raise InputError("A frame of edits needs the column id: lab.memories has it.")
    ids = edited["id"].to_list()
    if any(isinstance(id, bool) or not isinstance(id, int) for id in ids):
        raise InputError("The column id of a frame of edits holds the id of a memory in each row.")
    seen: set[int] = set()
    place_of = {id: place for place, id in enumerate(memories["id"].to_list())}
    for id in ids:
        if id in seen:
            raise InputError(
                f"Memory {id} stands twice in the frame of edits: give each memory one row."
            )
        if id not in place_of:
            raise UnknownName("memory", id)
        seen.add(id)
    places = [place_of[id] for id in ids]
    changes: list[dict[str, Any]] = [{} for _ in ids]
    for name in edited.columns:
        if name == "id":
            continue
        if name not in memories.columns:
            raise InputError(
                f'A memory has no column "{name}". {did_you_mean(name, memories.columns)}'
            )
        before = memories[name].gather(places).to_list()
        for row, (was, value) in enumerate(zip(before, edited[name].to_list(), strict=True)):
            if value != value:  # NaN is nothing
                value = None
            if was == value or (not was and value == []):
                continue
            if name not in _EDITABLE:
                raise InputError(
                    f"Row {row}: {name} of memory {ids[row]} cannot be edited. "
                    "See lab.forget, lab.forget(how='delete'), lab.restore and lab.facts.retract for statuses."
                )
            changes[row][name] = value
    return [(id, fields) for id, fields in zip(ids, changes, strict=True) if fields]
