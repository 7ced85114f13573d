"""Two versions of one memory: in what they differ, which counts, and what the other becomes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from memlab.kernel.base.clock import Micros
from memlab.kernel.schema import FIXED, MEMORY, RECALLABLE

__all__ = [
    "CARRIED",
    "EDITABLE",
    "OF_USE",
    "SAID",
    "UPKEEP",
    "Row",
    "give_way",
    "greater_counts",
    "is_contested",
    "read_here",
    "use_of",
    "version_of",
]

COUNTS = ("access", "success", "fail", "accessed")
"""Of each the greater: counts of one past cannot be added up."""
OF_USE = ("importance", "confidence", "strength", "energy", "stability", "difficulty")
"""What recall and feedback move; where nobody changed the memory, the values of the side that used it last."""
CARRIED = tuple(
    name
    for name in MEMORY
    if name not in (*FIXED, *COUNTS, "origin")  # what a memory is known by, and what is counted
)
SAID = tuple(name for name in CARRIED if name not in (*OF_USE, "label", "changed"))
"""In these two versions of a memory say something else; two labs that forgot the same one do not."""
EDITABLE = ("importance", "confidence")
"""Moved by use and edited by people."""
UPKEEP = {*COUNTS, "label", "changed", "strength", "energy", "stability", "difficulty"}
"""What upkeep and use write: nobody corrected a memory of which only these changed."""

Row = Mapping[str, Any]


def read_here(row: Row, here: Mapping[int, int]) -> dict[str, Any]:
    """A row there as it reads here: the memory that stands in its place by its id here."""
    by = row["superseded_by"]
    id = None if by is None else here.get(int(by))
    return {**row, "superseded_by": None if id is None else float(id)}


def version_of(row: Row) -> list[Any]:
    """What decides between two changes of one instant; ids differ from lab to lab, and say nothing."""
    return [row[name] for name in SAID if name != "superseded_by"]


def use_of(row: Row) -> tuple[Any, ...]:
    return (
        *(row[name] or 0 for name in ("accessed", "access", "success", "fail")),
        *(row[n] or 0 for n in OF_USE),
    )


def greater_counts(mine: Row, yours: Row) -> dict[str, Any]:
    counts = {name: (mine[name] or 0, yours[name] or 0) for name in COUNTS}
    return {name: theirs for name, (ours, theirs) in counts.items() if theirs > ours}


def give_way(standing: Row, at: Micros) -> dict[str, Any]:
    """What becomes of an edit that another lab's later change overtook."""
    status = standing["status"]
    if status in RECALLABLE:
        return {"status": "superseded", "superseded_by": float(standing["id"]), "changed": at}
    gone = {"status": "deleted" if status == "purged" else status, "changed": at}
    return gone | ({"superseded_by": standing["superseded_by"]} if status == "superseded" else {})


def is_contested(here: Collection[Micros], there: Collection[Micros]) -> bool:
    """Whether both corrected a memory, neither knowing of the other's last correction."""
    return bool(here and there) and max(there) not in here and max(here) not in there
