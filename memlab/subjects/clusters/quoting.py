"""Summaries that quote a memory: what a correction of it, and bringing a summary back, makes of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import Change, State, values_of
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.corrections.editing import in_place_of
from memlab.kernel.verbs.corrections.replacing import Dependents, Editor, EditOutcome
from memlab.subjects.clusters.consolidation import undo_consolidations
from memlab.subjects.clusters.grouping import standing_summaries, summaries_of, unconsolidated

__all__ = ["Quoting"]


class Quoting(Dependents):
    """What consolidation made: a summary of the old words is undone, its members are in use again."""

    def made(self, state: State) -> Collection[int]:
        return summaries_of(state).all.keys()

    def find(self, state: State, row: int, new: str, others: Collection[int]) -> list[int]:
        return [id - 1 for id in summaries_quoting(state, row)]

    def withdraw(
        self, editor: Editor, row: int, rows: Sequence[int], before: dict[str, Any], outcome: EditOutcome
    ) -> dict[str, Any]:
        """Undo the summaries in ``rows``: their members are in use again, in their own words."""
        after = dict(before)
        for summary in rows:
            state = editor.state
            was = summaries_of(state).all[summary + 1].was
            change = unconsolidated(state, summary, editor.now)
            standing = in_place_of(state, summary)
            if standing != summary and state.names["status"].at(standing) in RECALLABLE:
                reason = "its members were restored"
                change += Change(set=[values_of([standing + 1], status="forgotten", changed=editor.now, reason=reason)])
            editor.write("unconsolidate", {"summary": summary + 1, **change.body()})
            status = next((word for word, ids in was.items() if row + 1 in ids), None)
            if status is not None and after.get("status") == "consolidated":
                del after["status"]
                after |= {} if status == "active" else {"status": status}
            outcome.dropped.append("consolidation")
            outcome.notes.append(
                f"Summary {summary + 1} is undone, because it sums up the old text; consolidate again."
            )
        return after

    def stand_ins(self, state: State, rows: Sequence[int]) -> list[int]:
        return standing_summaries(state, rows)

    def members(self, state: State, row: int) -> Sequence[int]:
        return summaries_of(state).all[row + 1].members

    def undo(self, store: Store, rows: Sequence[int]) -> None:
        undo_consolidations(store, rows)


def summaries_quoting(state: State, row: int) -> list[int]:
    """Return the ids of the summaries in use that were made of the memory in ``row``, the outermost first."""
    status = state.names["status"]
    found: list[int] = []
    wanted = {row + 1}
    while wanted:
        made = [
            id
            for id, one in summaries_of(state).all.items()
            if one.undone is None
            and status.at(id - 1) in (*RECALLABLE, "consolidated", "superseded")
            and not wanted.isdisjoint(one.members)
            and id not in found
        ]
        found += made
        wanted = set(made)
    return found[::-1]
