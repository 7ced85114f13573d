"""Which fields of which memories a frame changes, so that an edited frame can be written back."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.errors import InputError, UnknownName, did_you_mean
from memlab.kernel.schema import FIELDS

__all__ = ["changed_fields"]

_EDITABLE = frozenset(FIELDS) - {"status"}


def changed_fields(memories: pl.DataFrame, edited: pl.DataFrame) -> list[tuple[int, dict[str, Any]]]:
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
            raise InputError(f"Memory {id} stands twice in the frame of edits: give each memory one row.")
        if id not in place_of:
            raise UnknownName("memory", id)
        seen.add(id)
    places = [place_of[id] for id in ids]
    changes: list[dict[str, Any]] = [{} for _ in ids]
    for name in edited.columns:
        if name == "id":
            continue
        if name not in memories.columns:
            raise InputError(f'A memory has no column "{name}". {did_you_mean(name, memories.columns)}')
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
