"""A frame of ``lab.memories`` as a bundle, so that loading it keeps every column."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.errors import InputError
from memlab.io.formats.exports.bundle import MEMORIES, Bundle
from memlab.kernel.schema import MEMORY, NEVER

__all__ = ["FRAME", "bundle_of_frame", "is_memories"]

FRAME = "frame"
"""The name of the source of a frame of memories: the frame does not say which lab it comes from."""

_NEEDED = frozenset(("id", "text", "kind", "created"))


def is_memories(x: object) -> bool:
    """Return whether ``x`` is a frame of ``lab.memories``, or some of its rows and columns.

    Its columns are those of a memory, with ``id``, ``text``, ``kind`` and ``created`` among them.
    """
    if not isinstance(x, pl.DataFrame | pl.LazyFrame):
        return False
    schema = x.collect_schema()
    return set(schema.names()) >= _NEEDED and set(schema.names()) <= set(MEMORIES) and schema["id"].is_integer()


def bundle_of_frame(x: pl.DataFrame | pl.LazyFrame) -> Bundle:
    """Return a frame of memories as a bundle; columns that it lacks have their defaults.

    Raises
    ------
    InputError
        If an id is missing or stands twice, or a column holds what a memory cannot have.
    """
    frame = x.collect() if isinstance(x, pl.LazyFrame) else x
    if frame["id"].null_count() or frame["id"].n_unique() != len(frame):
        raise InputError("The column id of a frame of memories holds the id of another memory in each row.")
    columns = [_column(frame, name, dtype) for name, dtype in MEMORIES.items()]
    return Bundle(lab=FRAME, memories=pl.DataFrame(columns), source="the frame")


def _column(frame: pl.DataFrame, name: str, dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    is_list = name == "uses" or (name in MEMORY and MEMORY[name].storage == "list")
    if name not in frame.columns:
        default = None if name == "uses" else MEMORY[name].default
        nothing: Any = [] if is_list else None if default in ("now", NEVER) or default is None else default
        return pl.Series(name, [nothing], dtype=dtype).new_from_index(0, len(frame))
    values = frame[name]
    try:
        if isinstance(values.dtype, pl.Datetime):
            values = values.dt.cast_time_unit("us").dt.epoch("us")
        cast = values.cast(dtype)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"The column {name} of a frame of memories cannot be read: {error}") from None
    return cast.fill_null(pl.Series([[]], dtype=dtype)) if is_list else cast
