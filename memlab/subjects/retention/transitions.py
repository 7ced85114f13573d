"""What time does to memories: the changes of status and label that a pack's policies see at an instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.clock import Micros
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Moment, coded, in_recall, promoted, status_of
from memlab.kernel.schema import STATUSES
from memlab.kernel.state import Change, State, values_of

__all__ = ["Standing", "Transitions", "live", "spelled", "standing", "transitions"]

Rows = NDArray[np.int64]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]

_RETRACTED = STATUSES.index("retracted")
_NO_CODE = -3
"""Of no word, and not of null either."""
_WORDS: NDArray[Any] = np.array(STATUSES, dtype=object)


@dataclass(frozen=True)
class Standing:
    """The status of some memories, as its place in ``STATUSES``, and what their label is where a policy gave one.

    ``label`` is the code of a word of ``words``, -1 where the policy gave none or was not asked.
    """

    status: Codes
    label: Codes
    words: tuple[str, ...]


@dataclass(frozen=True)
class Transitions:
    """What changed: one row of ``frame`` (id, what: status or label, from, to) for each, and the same as a change."""

    frame: pl.DataFrame
    change: Change


def live(state: State, rows: Rows, now: Micros) -> Rows:
    """Those of ``rows`` that upkeep asks about: what takes part in recall, and what was retracted.

    What changed after ``now`` is left alone until the clock has caught up: time that runs backwards undoes nothing.
    What was retracted is forgotten only at a later instant than that.
    """
    status = status_of(state, rows)
    wanted, changed = in_recall(status) | (status == _RETRACTED), state.numbers["changed"]
    if changed.held:
        at = changed.values[rows]
        wanted &= (at < now) | ((at == now) & (status != _RETRACTED))
    return np.asarray(rows[wanted])


def standing(state: State, pack: Pack, rows: Rows, now: Micros | Rows, *, status: Codes | None = None) -> Standing:
    """What the pack makes of ``rows`` (ascending): their status by ``promote``, then by ``forget``, and their label.

    ``now`` is one instant, or one for each row. ``status`` stands in for the one that the state has. ``promote`` and
    ``label`` are asked of what takes part in recall. A status that ``promote`` gives is asked about again until it
    stays, so that whoever asks a second time finds nothing new; InputError if it never does. Null leaves a status,
    and a label, as they are.
    """
    before = status_of(state, rows) if status is None else status
    moment = Moment(state, pack, rows, now)
    if status is not None:
        moment.give(status=_WORDS[before])
    moment, after = promoted(moment, before)
    gone, nulls = moment.ask(pack.policies["forget"])
    gone = gone if nulls is None else gone & ~nulls
    # what has only now become retracted waits for the next time, and is seen as such until then
    gone = gone & (in_recall(after) | (before == _RETRACTED))
    if gone.any():
        after = np.where(gone, STATUSES.index(str(pack.settings["forgotten-as"])), after)
    label, words = coded(*moment.ask(pack.policies["label"]))
    return Standing(after, np.where(in_recall(after), label, -1), words)


def transitions(state: State, pack: Pack, rows: Rows, now: Micros) -> Transitions:
    """Where the standing of ``rows`` (ascending) at ``now`` is another than the state has; nothing is changed.

    Only what is ``live`` is asked about. Beside a new status or label the change sets ``changed``.
    """
    rows = live(state, rows, now)
    if not len(rows):
        return Transitions(_frame([]), Change())
    found, labels = standing(state, pack, rows, now), state.names["label"]
    status, label = status_of(state, rows), labels.codes[rows].astype(np.int64)
    known = np.array([*(labels.code(word) for word in found.words), _NO_CODE], dtype=np.int64)
    moved = np.flatnonzero(found.status != status)
    named = np.flatnonzero((found.label >= 0) & (known[found.label] != label))
    frames, parts = [], []
    for what, at, old, old_words, new, new_words in (
        ("status", moved, status, STATUSES, found.status, STATUSES),
        ("label", named, label, labels.vocabulary, found.label, found.words),
    ):
        ids = rows[at] + 1
        frames.append(_changes(ids, what, spelled(old[at], old_words), spelled(new[at], new_words)))
        # by the word: their order must not tell which memory, maybe of another's, came first
        for code in sorted(np.unique(new[at]).tolist(), key=lambda code: str(new_words[code])):
            chosen = ids[new[at] == code].tolist()
            parts.append(values_of(chosen, **{what: new_words[code], "changed": now}))
    return Transitions(_frame(frames), Change(set=parts))


def spelled(codes: Codes, words: Sequence[str]) -> pl.Series:
    """The words of these codes, -1 as null."""
    table = pl.Series([*words, None], dtype=pl.String)
    return table.gather(np.where(codes < 0, len(words), codes))


def _changes(ids: Rows, what: str, before: pl.Series, after: pl.Series) -> pl.DataFrame:
    return pl.DataFrame(
        [
            pl.Series("id", ids, dtype=pl.Int64),
            pl.Series("what", [what], dtype=pl.String).new_from_index(0, len(ids)),
            before.alias("from"),
            after.alias("to"),
        ]
    )


_SCHEMA = {"id": pl.Int64, "what": pl.String, "from": pl.String, "to": pl.String}


def _frame(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=_SCHEMA), *parts]).sort("id", maintain_order=True)
