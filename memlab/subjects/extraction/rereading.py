"""Facts and observations that were read from a memory's words: which ones, and what a correction makes of them."""

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
from memlab.subjects.extraction.proposing import Where, proposals
from memlab.subjects.extraction.staged import Proposed

__all__ = ["ExtractedMemories"]

_DERIVED = RELATIONS.index("derived-from")
_EXTRACTED = "extracted by "
_SHORTEST = 2
"""Words of a quotation from which it tells where it was read."""


class ExtractedMemories(Dependents):
    """What extraction read from a text: read again from the corrected one, or taken out of use."""

    def find(self, state: State, row: int, new: str, others: Collection[int]) -> list[int]:
        return extracted_from(state, row, new, others)

    def revise(
        self, editor: Editor, row: int, text: str, rows: Sequence[int], outcome: EditOutcome
    ) -> None:
        """Edit the facts and observations that were read from the old text; retire what nothing states any more."""
        for found in reread(editor.state, row, text, rows):
            id, item = found.row + 1, found.proposed
            state = editor.state
            if state.names["status"].value_at(found.row) not in RECALLABLE:
                continue
            if item is not None:
                given = fields_of(item).items()
                fields = {
                    name: value
                    for name, value in given
                    if not fields_equal(value, read_field(state, found.row, name))
                }
                made = editor.again(
                    found.row, screen(item.text, personal=editor.personal).text, fields
                )
                outcome.rebuilt.append("extracted")
                outcome.notes.append(
                    f"Memory {id}, read from the old text, is rebuilt as memory {made.id}: {item.text}"
                )
                continue
            fact = state.names["predicate"].value_at(found.row) is not None
            status, kind = ("retracted", "retract") if fact else ("deprecated", "deprecate")
            why = f"memory {row + 1}, from which it was read, was corrected"
            editor.write(kind, take_out_of_use(state, [found.row], status, editor.now, why).body())
            outcome.dropped.append("extracted")
            outcome.notes.append(
                f"Memory {id}, read from the old text, is {status}: the new text does not state it."
            )


@dataclass(frozen=True)
class Reread:
    """What a corrected text makes of one memory that was read from it: ``proposed`` is None if nothing states it."""

    row: int
    proposed: Proposed | None


def extracted_from(state: State, row: int, new: str, others: Collection[int]) -> list[int]:
    """Return the rows of the memories in use that were read from the memory in ``row``, and no longer can be.

    An edge ``derived-from`` says so, or the quotation that an extracted memory keeps: it stands in the old text of the
    same project and session, not in the ``new`` one, and in no other memory in use of the same speaker. ``others`` are
    the ids of what was made of it otherwise.
    """
    met = state.edges.crossings(np.array([row]))
    derived = (
        ~met.outgoing & (state.edges.relation[met.edge] == _DERIVED) & (met.neighbour < len(state))
    )
    found = [int(one) for one in met.neighbour[derived] if int(one) + 1 not in others]
    old, now = _flat(state.texts.value_at(row) or ""), _flat(new)
    for one in _quoting(state, row):
        quotation = _flat(state.notes["context"].value_at(one) or "")
        told = len(quotation.split()) >= _SHORTEST and quotation in old and quotation not in now
        if told and not _said_elsewhere(state, row, one, quotation):
            found.append(one)
    status = state.names["status"]
    return [
        one for one in dict.fromkeys(found) if one != row and status.value_at(one) in RECALLABLE
    ]


def reread(state: State, row: int, text: str, rows: Sequence[int]) -> list[Reread]:
    """Pair each of the memories in ``rows``, which were read from the one in ``row``, with what ``text`` states now."""
    speaker, creator = state.names["speaker"].value_at(row), state.names["creator"].value_at(row)
    role = infer_role(speaker, creator)
    message = Message(role, text) if role != "other" else Message("user", text, speaker=speaker)
    proposed = list(proposals(message, 0, Where(), lambda *_: True))
    found = []
    for one in rows:
        match = next((item for item in proposed if _same(state, one, item)), None)
        if match is not None:
            proposed.remove(match)
        found.append((one, match))
    # what states another property of the same subject takes the place of a fact that is stated no more
    for place, (one, match) in enumerate(found):
        if match is None and state.names["predicate"].value_at(one) is not None:
            subject = _key(state.names["subject"].value_at(one))
            fresh = next(
                (item for item in proposed if _key(item.fields.get("subject")) == subject != ""),
                None,
            )
            if fresh is not None:
                proposed.remove(fresh)
                found[place] = (one, fresh)
    return [Reread(one, match) for one, match in found]


def _same(state: State, row: int, item: Proposed) -> bool:
    """Whether a proposal is of the same subject and predicate as a fact, or of the same rule as another memory."""
    names = state.names
    if item.sort == "memory" or names["predicate"].value_at(row) is None:
        fact = names["predicate"].value_at(row) is not None
        return (
            item.sort == "memory"
            and not fact
            and state.notes["reason"].value_at(row) == item.fields.get("reason")
        )
    return _key(names["subject"].value_at(row)) == _key(item.fields.get("subject")) and names[
        "predicate"
    ].value_at(row) == item.fields.get("predicate")


def fields_of(item: Proposed) -> dict[str, object]:
    """Return the fields of a memory that a proposal decides; a fact's other value is taken away."""
    given = {name: item.fields.get(name) for name in FACT} if item.sort == "fact" else {}
    return given | {
        name: item.fields[name] for name in ("context", "reason") if name in item.fields
    }


def _quoting(state: State, row: int) -> list[int]:
    """The rows of extracted memories of the same project and session, or of none, that keep a quotation."""
    if not state.notes["context"].has_values:
        return []
    names = state.names
    frame = pl.DataFrame(
        [state.notes["context"].series("context"), state.notes["reason"].series("reason")]
    )
    told = frame.select(
        pl.col("context").is_not_null()
        & pl.col("reason").str.starts_with(_EXTRACTED).fill_null(False)
    )
    chosen = told.to_series().to_numpy()
    project, session = names["project"].codes, names["session"].codes
    chosen = (
        chosen
        & (project == project[row])
        & ((session == session[row]) | (session < 0) | (session[row] < 0))
    )
    return [int(one) for one in np.flatnonzero(chosen) if one != row]


def _said_elsewhere(state: State, row: int, one: int, quotation: str) -> bool:
    """Whether another memory in use, of the same speaker, says the quotation too."""
    status, speaker = state.names["status"], state.names["speaker"].codes
    use = np.isin(status.codes, [status.code(word) for word in RECALLABLE])
    use &= speaker == speaker[row]
    use[[row, one]] = False
    rows = np.flatnonzero(use)
    reason = state.notes["reason"]
    return any(
        quotation in _flat(text or "")
        for other, text in zip(rows.tolist(), state.texts.to_list(rows), strict=True)
        if not (reason.value_at(other) or "").startswith(_EXTRACTED)
    )


def _flat(text: str) -> str:
    return " ".join(text.split())


def _key(name: object) -> str:
    return str(name or "").casefold()
