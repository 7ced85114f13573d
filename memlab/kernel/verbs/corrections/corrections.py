"""Corrections: edit, deprecate, forget, delete and restore memories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName, did_you_mean
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.display import Displayed, Markup
from memlab.kernel.hooks import list_hooks, load_part
from memlab.kernel.journal import Body
from memlab.kernel.privacy import Finding, Screened, refuse, screen
from memlab.kernel.recall import Hit
from memlab.kernel.schema import FIELDS, RECALLABLE
from memlab.kernel.state import Change, State, refuse_secret_values, validate_columns, validate_text
from memlab.kernel.verbs.core import Core, Memories, MemoryLike
from memlab.kernel.verbs.corrections.editing import (
    find_previous_statuses,
    find_related,
    list_versions,
    read_overwritten,
    restore_statuses,
    take_out_of_use,
    undo_deprecation,
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
from memlab.kernel.verbs.results import Edited, Edits, Memory, note_redactions


@dataclass(frozen=True)
class Corrected(Displayed):
    """The result of ``forget``, ``restore`` and their variants.

    A call that changes an edited memory also changes its corrections, the memories that replaced
    it.

    Attributes
    ----------
    verb
        The verb: "forget", "delete", "deprecate" or "restore".
    frame
        One row per changed memory: ``memory_id``, ``before`` (the former status), ``status``,
        ``text``.
    review
        Memories that supersede a changed memory or were superseded by it: ``memory_id``, ``of``,
        ``how``, ``status``, ``text``. Check whether they are still correct.
    reason
        The reason, or None.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("The office is in Oslo")
    >>> forgotten = lab.forget(1)
    >>> forgotten.verb, forgotten.frame["status"].to_list()
    ('forget', ['forgotten'])
    """

    verb: str
    frame: pl.DataFrame
    review: pl.DataFrame
    reason: str | None = None

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the changed memories: each named memory, followed by its corrections."""
        return tuple(self.frame["memory_id"].to_list())

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        count = f"{len(self):,} {'memory' if len(self) == 1 else 'memories'}"
        review = f", {self.review.height:,} to review" if self.review.height else ""
        return f"<{self.verb}: {count}{review}>"

    def _display(self) -> object:
        why = f": {self.reason}" if self.reason else ""
        parts = [f"{self.verb}, {len(self):,} memories{why}", self.frame]
        if self.review.height:
            parts += [
                Markup("to review, because of an edge <code>supersedes</code>:"),
                self.review,
            ]
        return parts


class Corrections:
    """The corrections of one lab: one event per call, or no event if nothing changes."""

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
        """Return the corrected memory; see ``Lab.edit``.

        ``permit`` raises for a row that the caller may not change. ``permit`` is called for the
        latest version of ``memory``, because an edit changes this version.
        """
        if text is None and not fields:
            raise InputError("edit needs a text or a field of memlab.FIELDS to change.")
        if "at" in fields:
            raise InputError(
                "The time of a memory cannot be edited. Use valid_from for when it became valid."
            )
        if "status" in fields:
            raise InputError(
                "A status cannot be edited: use lab.forget, lab.restore or lab.facts.retract."
            )
        checked = self._check_edit(text, fields)
        with self._core.store.writing() as tx:
            row = self._core.row(memory)
            self._check_own(memory, row)
            outcome = Editor(self._core, tx, self._core.store.clock(), permit).edit(row, *checked)
        return self._build_result(outcome, checked[2])

    def edit_frame(self, frame: pl.DataFrame) -> Edits:
        """Edit all memories that a frame changes, or none of them; see ``Lab.edit``."""
        with self._core.store.writing() as tx:
            changes = _find_changed_fields(self._core.store.state.memories(), frame)

            def name_row(at: int) -> str:
                row, id, _ = changes[at]
                return f"Row {row} of the frame, memory {id}"

            # All edits are checked first, because the store must not be read once an edit is
            # applied.
            edits = []
            for at, (_, id, fields) in enumerate(changes):
                try:
                    edits.append((id - 1, *self._check_edit(fields.pop("text", None), fields)))
                except InputError as error:
                    raise InputError(f"{name_row(at)}: {error}") from None
            editor = Editor(self._core, tx, self._core.store.clock())
            outcomes = editor.edit_together(edits, name_row)
        results = [
            self._build_result(outcome, findings)
            for outcome, (*_, findings) in zip(outcomes, edits, strict=True)
            if outcome.changed
        ]
        return Edits(results, frame.height)

    def _check_edit(
        self, text: str | None, fields: Mapping[str, Any]
    ) -> tuple[Screened | None, dict[str, Any], tuple[Finding, ...]]:
        """Check the text and fields of an edit; return both without secrets, and the removed secrets.

        Without a text, the returned text is None.
        """
        checked = validate_columns(
            {"text": ["-" if text is None else text], **{k: [v] for k, v in fields.items()}},
            now=self._core.store.clock(),
            open_words=self._core.open_words,
        )
        screening = screen(checked.pop("text")[0], personal=self._core.personal())
        refuse_secret_values(checked)
        load_part("check-operations")(checked.get("operations", ()))
        columns = {name: values[0] for name, values in checked.items()}
        check_files(self._core.pack, checked)
        return (
            (None, columns, ()) if text is None else (screening.text, columns, screening.findings)
        )

    def _build_result(self, outcome: EditOutcome, findings: Sequence[Finding]) -> Edited:
        """Return the edited memory with the report of the edit."""
        with self._core.reading() as state:
            memory = Memory.of(state, outcome.id - 1)
        reports = [
            tuple(dict.fromkeys(report))
            for report in (outcome.rebuilt, outcome.dropped, outcome.notes)
        ]
        return note_redactions(Edited(*vars(memory).values(), *reports), findings)

    def _check_own(self, memory: MemoryLike, row: int) -> None:
        """Raise InputError for a memory of another lab, recognised by its different text.

        A purged memory has no text to compare, so the edit refuses it by its status.
        """
        state = self._core.store.state
        text = (
            None if state.names["status"].value_at(row) == "purged" else state.texts.value_at(row)
        )
        if isinstance(memory, Memory | Hit) and text is not None and memory.text not in (text, ""):
            raise InputError(
                f"Memory {memory.id} of this lab has another text than the memory that you "
                "passed, which belongs to another lab. Pass its id to edit the memory of this lab."
            )

    def deprecate(self, memory: Memories, reason: str) -> Corrected:
        """Deprecate memories with a reason; see ``Lab.forget``."""
        refuse(validate_text(reason, where="reason"), "reason")

        def body(state: State, chosen: list[int], now: int) -> Body:
            change = take_out_of_use(state, chosen, "deprecated", now, reason)
            change += self._reinforce(state, chosen, now, "rejected")
            was = read_overwritten(state, change)  # for restore
            return {**change.body(), "was": was} if was else change.body()

        return self._write_correction(
            "deprecate", lambda state: self._with_corrections(state, memory), body, reason
        )

    def forget(self, memory: Memories, *, permit: Permit | None = None) -> Corrected:
        """Forget memories; see ``Lab.forget``.

        ``permit`` raises for a row that the caller may not change. ``permit`` is called for
        corrections too.
        """

        def rows(state: State) -> list[int]:
            return _check_permitted(state, self._with_corrections(state, memory), permit)

        def body(state: State, chosen: list[int], now: int) -> Body:
            return take_out_of_use(state, chosen, "forgotten", now).body()

        return self._write_correction("forget", rows, body)

    def delete(self, memory: Memories | None, *, project: str | None) -> Corrected:
        """Delete memories, or all memories of a project; see ``Lab.forget``."""

        def rows(state: State) -> list[int]:
            if memory is not None and project is None:
                chosen = self._with_corrections(state, memory)
            else:
                chosen = self._select_rows(state, memory, project, may_be_empty=is_kept(state))
            return [
                row
                for row in chosen
                if state.names["status"].value_at(row) not in ("deleted", "purged")
            ]

        def is_kept(state: State) -> bool:
            return project is not None and any(
                has_data(state, project) for has_data in list_hooks("delete-project")
            )

        def body(state: State, chosen: list[int], now: int) -> Body:
            own = {"project": project} if is_kept(state) else {}
            return {**take_out_of_use(state, chosen, "deleted", now).body(), **own}

        return self._write_correction("delete", rows, body)

    def restore(
        self,
        memory: Memories | None,
        *,
        project: str | None,
        permit: Permit | None = None,
        summaries: bool = True,
    ) -> Corrected:
        """Restore memories; see ``Lab.restore``.

        ``permit`` is the function that ``forget`` takes. Without ``summaries``, active summaries
        stay as they are.
        """
        # The extension that made a summary undoes it. Any other memory is restored together with
        # its versions of the same status.
        summaries_by_sort: list[tuple[Dependents, list[int]]] = []

        def rows(state: State) -> list[int]:
            # With a project, only its deleted memories are restored. Named memories are restored
            # from any status.
            chosen = self._select_rows(state, memory, project)
            if memory is None:
                return [row for row in chosen if state.names["status"].value_at(row) == "deleted"]
            summaries_by_sort[:] = (
                [(sort, sort.stand_ins(state, chosen)) for sort in dependents()]
                if summaries
                else []
            )
            summary_rows = {
                row for _, summary_rows_of_sort in summaries_by_sort for row in summary_rows_of_sort
            }
            others = [row for row in chosen if row not in summary_rows]
            versions = [version for row in others for version in _versions_of_status(state, row)]
            return _check_permitted(state, list(dict.fromkeys(versions)), permit)

        store = self._core.store

        def body(state: State, chosen: list[int], now: int) -> Body:
            change = restore_statuses(
                state, chosen, find_previous_statuses(store.journal.events(), chosen), now
            )
            status = {row: state.names["status"].value_at(row) for row in chosen}
            deprecated = [row for row in chosen if status[row] == "deprecated"]
            reused = [row for row in chosen if status[row] not in (*RECALLABLE, "deprecated")]
            numbers = undo_deprecation(
                state, store.journal.events(kinds=("deprecate",)) if deprecated else (), deprecated
            )
            return (change + numbers + self._reinforce(state, reused, now, "recalled")).body()

        result = self._write_correction("restore", rows, body)
        for sort, summary_rows_of_sort in summaries_by_sort:
            result = (
                self._with_members(result, sort, summary_rows_of_sort)
                if summary_rows_of_sort
                else result
            )
        return result

    def _with_members(self, result: Corrected, sort: Dependents, standing: list[int]) -> Corrected:
        """Undo the summaries in the rows ``standing``; return the result with them and the members that come back."""
        with self._core.reading() as state:
            members = [id - 1 for row in standing for id in sort.members(state, row)]
            chosen = list(dict.fromkeys([*standing, *members]))
            before = [state.names["status"].value_at(row) for row in chosen]
        sort.undo(self._core.store, standing)
        report = self._report("restore", chosen, before, None)
        frame = pl.concat([result.frame, report.frame.filter(pl.col("before") != pl.col("status"))])
        return Corrected(
            "restore", frame, pl.concat([result.review, report.review]).unique(maintain_order=True)
        )

    def related(self, memory: Memories | None) -> pl.DataFrame:
        """Return memories related by ``supersedes``; see ``lab.upkeep.review.related``."""
        with self._core.reading() as state:
            if memory is not None:
                return find_related(state, self._core.rows(memory))
            status = state.names["status"]
            return find_related(
                state, np.flatnonzero(status.codes == status.code("deprecated")).tolist()
            )

    def _select_rows(
        self,
        state: State,
        memory: Memories | None,
        project: str | None,
        *,
        may_be_empty: bool = False,
    ) -> list[int]:
        """Return the rows of the named memories, or of all memories of a project.

        With ``may_be_empty``, the project may have no memory.
        """
        if (memory is None) == (project is None):
            raise InputError("Give either memories or a project.")
        if memory is not None:
            return self._core.rows(memory)
        names = state.names["project"]
        rows: list[int] = np.flatnonzero(names.codes == names.code(project)).tolist()
        if not rows and not may_be_empty:
            raise UnknownName("project", project, names.vocabulary)
        return rows

    def _with_corrections(self, state: State, memory: Memories) -> list[int]:
        """Return the rows of the named memories, each followed by its corrections.

        Deleted corrections are left out.
        """
        rows: dict[int, None] = {}
        for row in self._core.rows(memory):
            corrections = list_versions(state, row)[1:]
            rows |= dict.fromkeys(
                [
                    row,
                    *(
                        version
                        for version in corrections
                        if state.names["status"].value_at(version) != "deleted"
                    ),
                ]
            )
        return list(rows)

    def _reinforce(self, state: State, rows: list[int], now: int, outcome: Outcome) -> Change:
        """Return the changes that the ``reinforce`` policy makes on an outcome."""
        pack = self._core.pack
        return reinforce(state, pack, np.array(sorted(rows), dtype=np.int64), now, outcome=outcome)

    def _write_correction(
        self,
        verb: str,
        rows: Callable[[State], list[int]],
        body: Callable[[State, list[int], int], Body],
        reason: str | None = None,
    ) -> Corrected:
        """Write an event with the fields of ``body(state, rows, now)``, if any; return each row's old and new status."""
        with self._core.store.writing() as tx:
            state, now = self._core.store.state, self._core.store.clock()
            chosen = rows(state)
            before = [state.names["status"].value_at(row) for row in chosen]
            if event_fields := body(state, chosen, now):
                tx.event(verb, event_fields, at=now)
        return self._report(verb, chosen, before, reason)

    def _report(
        self, verb: str, chosen: list[int], before: list[str | None], reason: str | None
    ) -> Corrected:
        """Return the result of a correction, given the former statuses of the chosen rows."""
        with self._core.reading() as state:
            status = [state.names["status"].value_at(row) for row in chosen]
            frame = pl.DataFrame(
                {
                    "memory_id": [row + 1 for row in chosen],
                    "before": before,
                    "status": status,
                    "text": [state.texts.value_at(row) for row in chosen],
                },
                schema={
                    "memory_id": pl.Int64,
                    "before": pl.String,
                    "status": pl.String,
                    "text": pl.String,
                },
            )
            return Corrected(verb, frame, find_related(state, chosen), reason)


def _check_permitted(state: State, rows: list[int], permit: Permit | None) -> list[int]:
    """Call ``permit`` for each row, and return the rows if no call raises."""
    if permit is not None:
        for row in rows:
            permit(state, row)
    return rows


def _versions_of_status(state: State, row: int) -> list[int]:
    """Return the rows of an inactive memory and its versions that share its status.

    A superseded memory is returned alone: restoring it brings back its own text.
    """
    status = state.names["status"].value_at(row)
    if status == "superseded":
        return [row]
    return [
        version
        for version in list_versions(state, row)
        if state.names["status"].value_at(version) == status
    ]


# -- frames that are written back -------------------------------------------------------------------------------------


# A status is not editable here, because other verbs change it and write other events.
_EDITABLE = frozenset(FIELDS) - {"status"}


def _find_changed_fields(
    memories: pl.DataFrame, edited: pl.DataFrame
) -> list[tuple[int, int, dict[str, Any]]]:
    """Return, for each memory that a frame changes, its row in ``edited``, its id and its changed fields.

    Parameters
    ----------
    memories
        The frame ``lab.memories``.
    edited
        Rows with an ``id`` and any columns of ``memories``. Missing rows and columns stay
        unchanged.

    Raises
    ------
    InputError
        If there is no column ``id``, an id is null or duplicated, a column is unknown, or a value
        changed that callers cannot edit.
    UnknownName
        If an id does not exist.
    """
    # Empty lists equal null, and so does NaN where nothing is stored.
    if "id" not in edited.columns:
        raise InputError("A frame of edits needs the column id: lab.memories has it.")
    ids = edited["id"].to_list()
    unique: set[int] = set()
    row_of = {id: row for row, id in enumerate(memories["id"].to_list())}
    for row, id in enumerate(ids):
        if isinstance(id, bool) or not isinstance(id, int):
            raise InputError(
                f"Row {row}, column id: {describe_value(id)} is not the id of a memory. Write an integer."
            )
        if id in unique:
            raise InputError(
                f"Row {row}: memory {id} occurs twice in the frame of edits. Give each memory one row."
            )
        if id not in row_of:
            raise InputError(f"Row {row}: {UnknownName('memory', id)}")
        unique.add(id)
    rows = [row_of[id] for id in ids]
    changes: list[dict[str, Any]] = [{} for _ in ids]
    for name in edited.columns:
        if name == "id":
            continue
        if name not in memories.columns:
            raise InputError(
                f'A memory has no column "{name}". {did_you_mean(name, memories.columns)}'
            )
        before = memories[name].gather(rows).to_list()
        for row, (old, value) in enumerate(zip(before, edited[name].to_list(), strict=True)):
            if value != value:  # NaN
                if old is not None:
                    raise InputError(
                        f"Row {row}, column {name}: NaN is not a value. Write null to remove the value of "
                        f"memory {ids[row]}."
                    )
                continue
            if old == value or (not old and value == []):
                continue
            if name not in _EDITABLE:
                raise InputError(
                    f"Row {row}: {name} of memory {ids[row]} differs from the lab's, but "
                    "this field cannot be edited. Select id and the columns to edit. "
                    "Change a status by lab.forget, lab.restore or lab.facts.retract."
                )
            changes[row][name] = value
    return [(row, ids[row], fields) for row, fields in enumerate(changes) if fields]
