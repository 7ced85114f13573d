"""Update extracted memories when the text of their source is corrected."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from memlab.io.formats import Message
from memlab.kernel.privacy import screen
from memlab.kernel.schema import RECALLABLE, RELATIONS, infer_role
from memlab.kernel.state import State
from memlab.kernel.verbs.corrections.editing import read_field, take_out_of_use
from memlab.kernel.verbs.corrections.replacing import (
    FACT,
    Dependents,
    Editor,
    EditOutcome,
    fields_equal,
)
from memlab.subjects.extraction.proposing import Scope, propose
from memlab.subjects.extraction.staged import Proposed

# The code of the relation "derived-from", and the beginning of the reason of extracted memories.
_DERIVED = RELATIONS.index("derived-from")
_EXTRACTED = "extracted by "
_SHORTEST = 2
"""The minimum number of words of a quotation that identifies its source."""


class ExtractedMemories(Dependents):
    """The facts and observations that were extracted from a memory's text.

    When the text is corrected, they are extracted again or retired.
    """

    def find(self, state: State, row: int, new: str, others: Collection[int]) -> list[int]:
        """Return the rows of extracted memories that the corrected text no longer supports."""
        return find_outdated(state, row, new, others)

    def revise(
        self, editor: Editor, row: int, text: str, rows: Sequence[int], outcome: EditOutcome
    ) -> None:
        """Edit or retire the memories that were extracted from the corrected memory's old text.

        A memory is retired if the new text has no replacement for it.
        """
        for revision in pair_proposals(editor.state, row, text, rows):
            id, item = revision.row + 1, revision.proposed
            state = editor.state
            if state.names["status"].value_at(revision.row) not in RECALLABLE:
                continue
            if item is not None:
                new_fields = decided_fields(item).items()
                fields = {
                    name: value
                    for name, value in new_fields
                    if not fields_equal(value, read_field(state, revision.row, name))
                }
                successor = editor.again(
                    revision.row, screen(item.text, personal=editor.personal).text, fields
                )
                outcome.rebuilt.append("extracted")
                outcome.notes.append(
                    f"Memory {id} was extracted from the old text; memory {successor.id} replaces it: {item.text}"
                )
                continue
            is_fact = state.names["predicate"].value_at(revision.row) is not None
            status, kind = ("retracted", "retract") if is_fact else ("deprecated", "deprecate")
            reason = f"memory {row + 1}, from which it was extracted, was corrected"
            editor.write(
                kind, take_out_of_use(state, [revision.row], status, editor.now, reason).body()
            )
            outcome.dropped.append("extracted")
            outcome.notes.append(
                f"Memory {id} was extracted from the old text and is now {status}, because the new text does not state it."
            )


@dataclass(frozen=True)
class Revision:
    """The effect of a corrected text on the extracted memory in ``row``.

    ``proposed`` is the replacement, or None if the new text states none.
    """

    row: int
    proposed: Proposed | None


def find_outdated(state: State, row: int, new: str, others: Collection[int]) -> list[int]:
    """Return the rows of active memories that only a memory's old text supports.

    A memory counts if it has an edge ``derived-from`` to the corrected memory, or if it keeps a
    quotation. The quotation must be in the old text but not in the ``new`` text, and the memory
    must belong to the same project and session. No other active memory of the same speaker may
    contain the quotation. ``others`` are the ids of dependents of other kinds, which are left out.
    """
    crossings = state.edges.crossings(np.array([row]))
    derived = (
        ~crossings.outgoing
        & (state.edges.relation[crossings.edge] == _DERIVED)
        & (crossings.neighbour < len(state))
    )
    result = [
        int(candidate)
        for candidate in crossings.neighbour[derived]
        if int(candidate) + 1 not in others
    ]
    old, current = _collapse_spaces(state.texts.value_at(row) or ""), _collapse_spaces(new)
    for candidate in _find_quoting(state, row):
        quotation = _collapse_spaces(state.notes["context"].value_at(candidate) or "")
        is_outdated = (
            len(quotation.split()) >= _SHORTEST and quotation in old and quotation not in current
        )
        if is_outdated and not _is_quoted_elsewhere(state, row, candidate, quotation):
            result.append(candidate)
    status = state.names["status"]
    return [
        candidate
        for candidate in dict.fromkeys(result)
        if candidate != row and status.value_at(candidate) in RECALLABLE
    ]


def pair_proposals(state: State, row: int, text: str, rows: Sequence[int]) -> list[Revision]:
    """Pair extracted memories with their replacements in the corrected text.

    ``rows`` are the memories that were extracted from the memory in ``row``.
    """
    speaker, creator = state.names["speaker"].value_at(row), state.names["creator"].value_at(row)
    role = infer_role(speaker, creator)
    message = Message(role, text) if role != "other" else Message("user", text, speaker=speaker)
    proposed = list(propose(message, 0, Scope(), lambda *_: True))
    pairs = []
    for candidate in rows:
        match = next((item for item in proposed if _replaces(state, candidate, item)), None)
        if match is not None:
            proposed.remove(match)
        pairs.append((candidate, match))
    # a fact that is no longer stated is replaced by another property of the same subject
    for position, (candidate, match) in enumerate(pairs):
        if match is None and state.names["predicate"].value_at(candidate) is not None:
            subject = _fold_name(state.names["subject"].value_at(candidate))
            replacement = next(
                (
                    item
                    for item in proposed
                    if _fold_name(item.fields.get("subject")) == subject != ""
                ),
                None,
            )
            if replacement is not None:
                proposed.remove(replacement)
                pairs[position] = (candidate, replacement)
    return [Revision(candidate, match) for candidate, match in pairs]


def _replaces(state: State, row: int, item: Proposed) -> bool:
    """Return whether a proposal is a new version of the memory in ``row``.

    A fact needs the same subject and predicate, and another memory needs the same rule.
    """
    names = state.names
    if item.sort == "memory" or names["predicate"].value_at(row) is None:
        is_fact = names["predicate"].value_at(row) is not None
        return (
            item.sort == "memory"
            and not is_fact
            and state.notes["reason"].value_at(row) == item.fields.get("reason")
        )
    return _fold_name(names["subject"].value_at(row)) == _fold_name(
        item.fields.get("subject")
    ) and names["predicate"].value_at(row) == item.fields.get("predicate")


def decided_fields(item: Proposed) -> dict[str, object]:
    """Return the fields that a proposal sets, with None for unset fields of a fact."""
    fields = {name: item.fields.get(name) for name in FACT} if item.sort == "fact" else {}
    return fields | {
        name: item.fields[name] for name in ("context", "reason") if name in item.fields
    }


def _find_quoting(state: State, row: int) -> list[int]:
    """Return the rows of extracted memories that may quote the memory in ``row``.

    Such memories store a quotation, and belong to the same project and session. A memory without a
    session matches every session.
    """
    if not state.notes["context"].has_values:
        return []
    names = state.names
    frame = pl.DataFrame(
        [state.notes["context"].series("context"), state.notes["reason"].series("reason")]
    )
    is_extracted = frame.select(
        pl.col("context").is_not_null()
        & pl.col("reason").str.starts_with(_EXTRACTED).fill_null(False)
    )
    is_selected = is_extracted.to_series().to_numpy()
    project, session = names["project"].codes, names["session"].codes
    is_selected = (
        is_selected
        & (project == project[row])
        & ((session == session[row]) | (session < 0) | (session[row] < 0))
    )
    return [int(candidate) for candidate in np.flatnonzero(is_selected) if candidate != row]


def _is_quoted_elsewhere(state: State, row: int, extracted_row: int, quotation: str) -> bool:
    """Return whether another active memory of the same speaker, not an extracted one, contains a quotation."""
    status, speaker = state.names["status"], state.names["speaker"].codes
    is_active = np.isin(status.codes, [status.code(word) for word in RECALLABLE])
    is_active &= speaker == speaker[row]
    is_active[[row, extracted_row]] = False
    rows = np.flatnonzero(is_active)
    reason = state.notes["reason"]
    return any(
        quotation in _collapse_spaces(text or "")
        for other, text in zip(rows.tolist(), state.texts.to_list(rows), strict=True)
        if not (reason.value_at(other) or "").startswith(_EXTRACTED)
    )


def _collapse_spaces(text: str) -> str:
    """Return a text with each run of white space replaced by one space, and without any at its ends."""
    return " ".join(text.split())


def _fold_name(name: object) -> str:
    """Return a name in lower case for comparisons, or "" for None."""
    return str(name or "").casefold()
