"""The comparison of two versions of one memory, which two labs have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from memlab.kernel.base.clock import Micros
from memlab.kernel.schema import FIXED, MEMORY, RECALLABLE

COUNTS = ("access", "success", "fail", "accessed")
"""Counts and the last access. The greater value is kept, because both labs counted the uses before they diverged."""
OF_USE = ("importance", "confidence", "strength", "energy", "stability", "difficulty")
"""Fields that recall and feedback change. Without a correction, the lab that used the memory last decides."""
# Fields whose values are copied from the version that is kept: all except identity and counts.
CARRIED = tuple(name for name in MEMORY if name not in (*FIXED, *COUNTS, "origin"))
SAID = tuple(name for name in CARRIED if name not in (*OF_USE, "label", "changed"))
"""Fields of content. Versions with equal content do not conflict, such as a memory that both labs forgot."""
EDITABLE = ("importance", "confidence")
"""Fields that both feedback and people change."""
UPKEEP = {*COUNTS, "label", "changed", "strength", "energy", "stability", "difficulty"}
"""Fields that upkeep and use write. A change of only these fields is not a correction."""

Row = Mapping[str, Any]


def read_here(row: Row, ids: Mapping[int, int]) -> dict[str, Any]:
    """Return a row of the other lab, with its successor's id translated to this lab."""
    by = row["superseded_by"]
    id = None if by is None else ids.get(int(by))
    return {**row, "superseded_by": None if id is None else float(id)}


def version_of(row: Row) -> list[Any]:
    """Return the content of a version, which decides between changes of equal time.

    Ids are left out, because they differ between the labs.
    """
    return [row[name] for name in SAID if name != "superseded_by"]


def use_of(row: Row) -> tuple[Any, ...]:
    """Return the usage fields of a memory, which tell the lab that used the memory more."""
    return (
        *(row[name] or 0 for name in ("accessed", "access", "success", "fail")),
        *(row[n] or 0 for n in OF_USE),
    )


def greater_counts(mine: Row, yours: Row) -> dict[str, Any]:
    """Return the counts in ``yours`` that exceed the counts in ``mine``."""
    counts = {name: (mine[name] or 0, yours[name] or 0) for name in COUNTS}
    return {name: theirs for name, (ours, theirs) in counts.items() if theirs > ours}


def give_way(kept_row: Row, at: Micros) -> dict[str, Any]:
    """Return the fields of a local edit that a later change in the other lab overrides.

    ``kept_row`` is the version that is kept, with its id in this lab. ``at`` is the time of that version.
    """
    status = kept_row["status"]
    if status in RECALLABLE:
        return {"status": "superseded", "superseded_by": float(kept_row["id"]), "changed": at}
    gone = {"status": "deleted" if status == "purged" else status, "changed": at}
    return gone | ({"superseded_by": kept_row["superseded_by"]} if status == "superseded" else {})


def is_contested(ours: Collection[Micros], theirs: Collection[Micros]) -> bool:
    """Return whether both labs corrected a memory independently."""
    return bool(ours and theirs) and max(theirs) not in ours and max(ours) not in theirs
