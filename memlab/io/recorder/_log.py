"""The recorded log: searches and rewards as events of a journal, read as the tables of ``Slates``.

It is the journal of a lab, so an acknowledged search survives a killed process, and several
processes may record to one folder. The log has no text of a result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from polars import selectors

from memlab.errors import InputError, LabError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.journal import Journal
from memlab.kernel.slates import Slates, feedback_table

__all__ = [
    "REWARDED",
    "SEARCHED",
    "is_record",
    "open_log",
    "pack",
    "read_record",
    "read_search",
    "read_tables",
    "to_table",
]

SEARCHED, REWARDED = "recorder/search", "recorder/reward"
"""The kinds of events of a recorded log. The body has one field ``row`` of packed columns."""

# Bytes, because the journal screens strings for secrets, and an id may look like a token. The coders are created once,
# because creating one takes longer than a call.
pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(dict[str, Any]).decode


def open_log(path: str | Path, timeout: float = 30.0, *, read_only: bool = False) -> Journal:
    """Open the folder of a recorded log; create a missing folder when opening for writing."""
    journal = Journal.open(path, timeout=timeout, read_only=read_only)
    if not _is_record(journal):
        journal.close()
        raise InputError(
            f"{path} is a lab, not a recorded log. Give another folder, or open it with memlab.open."
        )
    return journal


def _is_record(journal: Journal) -> bool:
    """Return whether the journal is empty or begins with a recorded search."""
    return all(event.kind == SEARCHED for event in journal.events(upto=min(journal.head, 1)))


def is_record(path: str | Path) -> bool:
    """Return whether a folder is a recorded log with a search; one that cannot be opened is not."""
    try:
        with Journal.open(path, read_only=True) as journal:
            return journal.head > 0 and _is_record(journal)
    except LabError:
        return False


def read_search(journal: Journal, decision: int) -> dict[str, Any]:
    """Return the columns of one search; raise UnknownName if the log has no such search."""
    if 0 < decision <= journal.head:
        for event in journal.events(decision - 1, upto=decision):
            if event.kind == SEARCHED:
                return _unpack(event.body["row"])
    raise UnknownName("recorded search", decision, ())


@checked
def read_record(log: str | Path) -> Slates:
    """Read a log that ``memlab.record`` wrote, even during recording.

    Parameters
    ----------
    log
        The folder.

    Returns
    -------
    Slates
        The log. Its features are ``search-score``, ``words``, ``overlap`` and those of the
        argument ``features`` of ``memlab.record``. The column ``failed`` of the decisions names
        the challengers that raised an error.

    Raises
    ------
    NotALab
        If the folder is no log.
    InputError
        If the folder is a lab, or no search was recorded.

    Examples
    --------
    >>> import tempfile
    >>> import memlab
    >>> folder = tempfile.mkdtemp() + "/searches"
    >>> search = memlab.record(lambda query, k: ["tabs", "spaces"][:k], log=folder, limit=1)
    >>> _ = search("How do I indent?")
    >>> len(memlab.read_record(folder))
    1
    """
    with open_log(log, read_only=True) as journal:
        return read_tables(journal)


def read_tables(journal: Journal) -> Slates:
    """Return the recorded searches and rewards of a journal as checked tables."""
    searches, rewards = [], []
    for event in journal.events(kinds=(SEARCHED, REWARDED)):
        row = _unpack(event.body["row"])
        if event.kind == REWARDED:
            rewards.append(row | {"at": event.at})
        else:
            part = {"decision": event.seq}
            searches.append(
                [columns | part for columns in (row["of"] | {"at": event.at}, *row["tables"])]
            )
    if not searches:
        raise InputError(
            f"{journal.path} has no recorded search. Run a search through the recorder first."
        )
    feedback = None
    if rewards:
        texts = pl.lit(None, dtype=pl.String)
        feedback = feedback_table(to_table(rewards).with_columns(outcome=texts))
    decisions, candidates, exposures = map(to_table, zip(*searches, strict=True))
    # Stores give scores of different scales, or none, so the log's own score is the rank.
    scored = candidates.with_columns(score=-pl.col("rank").cast(pl.Float64))
    return Slates.from_frames(
        decisions, scored, exposures, feedback, duplicates="last", empty="keep"
    )


def to_table(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return rows as a frame, with lists expanded to one row per element."""
    names = dict.fromkeys(name for row in rows for name in row)
    # A feature that a search lacks is null for each of its candidates.
    whole = [
        {name: row.get(name, [None] * len(row.get("memory_id", ()))) for name in names}
        for row in rows
    ]
    frame = pl.DataFrame(whole, infer_schema_length=None)
    lists = selectors.by_dtype(pl.List)
    if "memory_id" not in names:
        return frame
    return frame.explode(lists).filter(pl.col("memory_id").is_not_null())
