"""What corrections of earlier versions left in old words, and what superseded which memory by which rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from memlab.policies import Pack
from memlab.schema import RECALLABLE, RELATIONS
from memlab.state import Change, State, stamps, values_of
from memlab.subjects.corrections.derived import FACT, fields_of, rederived, summaries_quoting
from memlab.subjects.facts.fact_rows import renamed
from memlab.subjects.remembering.inferred import summary_of

__all__ = ["rebuilt", "stale_frame", "supersession_frame"]

_STALE: dict[str, Any] = {"memory_id": pl.Int64, "field": pl.String, "holds": pl.String, "text": pl.String}
_BY_EDIT = "user-edit"


def stale_frame(state: State, pack: Pack) -> pl.DataFrame:
    """Return a row for each field of a memory that still tells what it told before a correction.

    Columns: ``memory_id``, ``field`` ("summary", "value", "object", or "consolidation" for a summary that quotes a
    memory that was corrected), ``holds`` (the old words) and ``text`` (the memory as it is).
    """
    rows = []
    for old, new in _corrections(state):
        before, after = state.texts.at(old) or "", state.texts.at(new) or ""
        if before == after:
            continue
        for name, value in _old_words(state, pack, old, new).items():
            rows.append((new + 1, name, str(value), after))
        quoting = summaries_quoting(state, old)
        rows += [(summary + 1, "consolidation", before, state.texts.at(summary) or "") for summary in quoting]
    return pl.DataFrame(rows, schema=_STALE, orient="row").unique(maintain_order=True)


def rebuilt(state: State, pack: Pack, now: int) -> list[tuple[int, Change]]:
    """Return, for each memory with a stale field, its id and the change that makes the field again or drops it."""
    changes: list[tuple[int, Change]] = []
    retired: set[int] = set()
    for old, new in _corrections(state):
        before, after = state.texts.at(old) or "", state.texts.at(new) or ""
        if before == after:
            continue
        stale = _old_words(state, pack, old, new)
        if stale:
            carried = fields_of(state, new)
            fields, _ = rederived(pack, before, after, carried, {})
            made: dict[str, Any] = {name: fields.get(name) for name in FACT if fields.get(name) != carried.get(name)}
            if "summary" in stale:
                made["summary"] = summary_of(after) if pack.settings["write-summary"] else None
            columns, joins = renamed(state, new, made)
            change = Change(
                set=[values_of([new + 1], **{name: [value] for name, value in columns.items()}, changed=now)]
            )
            changes.append((new + 1, change + joins))
        for summary in summaries_quoting(state, old):
            if summary not in retired:
                retired.add(summary)
                reason = f"It was made from memory {old + 1}, which was corrected."
                values = values_of([summary + 1], status="deprecated", changed=now, reason=reason)
                changes.append((summary + 1, Change(set=[values])))
    return changes


def supersession_frame(state: State) -> pl.DataFrame:
    """Return a row for each superseded memory: by what, when, by which rule, and why.

    Columns: ``memory_id``, ``superseded_by``, ``at``, ``rule``, ``reason``, ``text``, ``by_text``. The rule is
    "correction" (an edit), "linking" (the pack's ``link`` and ``resolve``), "merge" (linking made one of two), "by hand"
    (an edge ``supersedes`` of a caller or a verifier) or "unknown".
    """
    by = state.numbers["superseded_by"].values
    status = state.names["status"]
    rows = np.flatnonzero((status.codes == status.code("superseded")) & (by == by))
    others = by[rows].astype(np.int64) - 1
    reasons = [state.notes["reason"].at(int(row)) for row in rows]
    hand = set(_by_hand(state, rows, others))
    rules = [
        _rule(state, int(other), reason, by_hand=int(row) in hand)
        for row, other, reason in zip(rows, others, reasons, strict=True)
    ]
    return pl.DataFrame(
        [
            pl.Series("memory_id", rows + 1, dtype=pl.Int64),
            pl.Series("superseded_by", others + 1, dtype=pl.Int64),
            stamps("at", state.numbers["changed"].values[rows]),
            pl.Series("rule", rules, dtype=pl.String),
            pl.Series("reason", reasons, dtype=pl.String),
            pl.Series("text", state.texts.take(rows), dtype=pl.String),
            pl.Series("by_text", state.texts.take(others), dtype=pl.String),
        ]
    )


def _rule(state: State, other: int, reason: str | None, *, by_hand: bool) -> str:
    if reason is not None and reason.startswith("Merged: "):
        return "merge"
    if reason is not None and reason.startswith("Updated: "):
        return "linking"
    if state.names["source"].at(other) == _BY_EDIT:
        return "correction"
    return "by hand" if by_hand else "unknown"


def _by_hand(state: State, rows: np.ndarray[Any, Any], others: np.ndarray[Any, Any]) -> list[int]:
    supersedes = np.full(len(rows), RELATIONS.index("supersedes"))
    return [int(row) for row, edge in zip(rows, state.edges.find(others, rows, supersedes), strict=True) if edge >= 0]


def _corrections(state: State) -> list[tuple[int, int]]:
    """The rows of each corrected memory and of its correction, where that is in use."""
    by = state.numbers["superseded_by"].values
    status, source = state.names["status"], state.names["source"]
    pairs = []
    for old in np.flatnonzero((status.codes == status.code("superseded")) & (by == by)).tolist():
        new = int(by[old]) - 1
        if source.at(new) == _BY_EDIT and status.at(new) in RECALLABLE:
            pairs.append((old, new))
    return pairs


def _old_words(state: State, pack: Pack, old: int, new: int) -> dict[str, Any]:
    """The fields of a correction that hold what its old words said, with their values."""
    after = (state.texts.at(new) or "").casefold()
    found: dict[str, Any] = {}
    summary = state.notes["summary"].at(new)
    if summary is not None and summary == state.notes["summary"].at(old):
        found["summary"] = summary
    if state.names["predicate"].at(new) is not None:
        for name in ("object", "value"):
            value = state.names[name].at(new)
            if value is not None and value == state.names[name].at(old) and value.casefold() not in after:
                found[name] = value
    return found
