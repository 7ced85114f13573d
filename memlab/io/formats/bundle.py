"""What a lab holds, as tables: what every format is written from and read into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.graph import NODE_KINDS, node_kinds, node_numbers
from memlab.kernel.schema import MEMORY, NEVER
from memlab.kernel.state import State, visible_rows

__all__ = [
    "EDGES",
    "ENGINE",
    "FRAME",
    "MEMORIES",
    "SCHEMA",
    "Bundle",
    "bundle_of",
    "bundle_of_frame",
    "is_memories",
    "memory_frame",
    "node_name",
    "node_of",
]

SCHEMA = 1
"""The version of what an export holds. A reader knows its own and the older ones."""

_DTYPES: dict[str, Any] = {
    "text": pl.String,
    "word": pl.String,
    "name": pl.String,
    "note": pl.String,
    "list": pl.List(pl.String),
    "num": pl.Float64,
    "bool": pl.Boolean,
    "time": pl.Int64,
}

MEMORIES = pl.Schema(
    {
        "id": pl.Int64,
        **{name: _DTYPES[column.storage] for name, column in MEMORY.items()},
        "uses": pl.List(pl.Int64),
    }
)
"""A memory's columns. Times are microseconds UTC; ``uses`` are the latest times of its use, newest first."""

EDGES = pl.Schema(
    {
        "source": pl.Int64,
        "source_node": pl.String,
        "target": pl.Int64,
        "target_node": pl.String,
        "relation": pl.String,
        "weight": pl.Float64,
        "reinforcements": pl.Int64,
        "created": pl.Int64,
    }
)
"""An end is a memory by id, or another node as ``kind/name``."""

ENGINE = tuple(name for name, column in MEMORY.items() if not column.given)
"""The columns that nobody gives and an import restores."""


@dataclass(frozen=True)
class Bundle:
    """Memories with their edges, and what belongs to them. ``source`` is what errors call it.

    ``lab`` says where it comes from, for the column ``origin``; ``complete`` whether it is all of a lab. ``nodes`` are
    the names of tags, clusters and entities by kind, in the order of their numbers. ``registers`` are what their
    ``dump`` gave. ``policies`` holds the live pack and its history, ``events`` the journal; both only to be read.
    ``left_out`` counts, by name, what a foreign file says that has no place here.
    """

    lab: str
    memories: pl.DataFrame
    edges: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=EDGES))
    nodes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    registers: Mapping[str, Any] = field(default_factory=dict)
    policies: Mapping[str, Any] | None = None
    events: pl.DataFrame | None = None
    complete: bool = False
    exported: int = 0
    source: str = ""
    places: Sequence[str] = ()
    """Where each memory stands in the file; empty where a frame says it all."""
    edge_places: Sequence[str] = ()
    """Where each edge does."""
    left_out: Mapping[str, int] = field(default_factory=dict)

    def where(self, row: int) -> str:
        """What an error says of a memory's place."""
        return (
            f"{self.source}, {self.places[row]}"
            if self.places
            else f"{self.source}, memory {row + 1}"
        )


def memory_frame(columns: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    """A frame of MEMORIES from lists of values."""
    return pl.DataFrame(
        [
            _lists(name, columns[name], dtype.inner)
            if isinstance(dtype, pl.List)
            else pl.Series(name, columns[name], dtype=dtype)
            for name, dtype in MEMORIES.items()
        ]
    )


def _lists(name: str, rows: Sequence[Sequence[Any] | None], inner: Any) -> pl.Series:
    """A column of lists, none of them null. Polars takes lists of lists one by one: flat, 20,000 rows cost a tenth."""
    lengths = np.array([len(row) if row else 0 for row in rows], dtype=np.int64)
    flat = pl.Series(name, [value for row in rows if row for value in row], dtype=inner)
    places = pl.Series("row", np.repeat(np.arange(len(rows)), lengths), dtype=pl.Int64)
    grouped = pl.DataFrame([places, flat]).group_by("row", maintain_order=True).agg(name)
    every = pl.DataFrame({"row": np.arange(len(rows), dtype=np.int64)})
    joined = every.join(grouped, on="row", how="left", maintain_order="left").to_series(1)
    return joined.fill_null(pl.Series([[]], dtype=pl.List(inner)))


def node_name(kind: str, name: str) -> str:
    """A node that is no memory, as an edge names it."""
    return f"{kind}/{name}"


def node_of(text: str) -> tuple[str, str]:
    """Kind and name of such a node."""
    kind, _, name = text.partition("/")
    return kind, name


def bundle_of(
    state: State,
    *,
    lab: str,
    now: int,
    where: pl.Expr | None = None,
    project: str | None = None,
    policies: Mapping[str, Any] | None = None,
    events: pl.DataFrame | None = None,
) -> Bundle:
    """The memories of a state that ``where`` and ``project`` admit, with the edges among them."""
    frame, seen = state.memories(), visible_rows(state)
    kept = _selected(frame, where, project)
    complete = where is None and project is None
    rows = np.arange(len(state)) if seen is None else seen
    columns = [
        pl.Series(name, state.numbers[name].values[rows]).replace(NEVER, None)
        if name in MEMORY and MEMORY[name].storage == "time"
        else frame[name]
        for name in MEMORIES
        if name != "uses"
    ]
    memories = pl.DataFrame([*columns, _uses(state.uses.values[rows])]).filter(kept).cast(MEMORIES)
    every = np.zeros(len(state), dtype=np.bool_)
    every[rows] = kept.to_numpy()
    edges, nodes = _edges_of(state, every, complete)
    registers = {
        name: one.dump() for name, one in state.projections.items() if complete and one.exported
    }
    return Bundle(
        lab=lab,
        memories=memories,
        edges=edges,
        nodes=nodes,
        registers=registers,
        policies=policies,
        events=events if complete else None,
        complete=complete,
        exported=now,
        source=lab,
    )


def _selected(frame: pl.DataFrame, where: pl.Expr | None, project: str | None) -> pl.Series:
    kept = pl.Series("kept", [True]).new_from_index(0, len(frame))
    if project is not None:
        kept = kept & (frame["project"] == project).fill_null(False)
    if where is not None:
        if not isinstance(where, pl.Expr):
            raise InputError(
                f"where is a Polars expression over the columns of lab.memories, not {where!r:.80}."
            )
        try:
            chosen = frame.select(where.alias("chosen")).to_series()
        except pl.exceptions.PolarsError as error:
            raise InputError(f"where cannot be asked of lab.memories: {error}") from None
        if chosen.dtype != pl.Boolean or len(chosen) not in (1, len(frame)):
            raise InputError(
                f"where gives true or false for each memory, not {len(chosen)} of {chosen.dtype}."
            )
        kept = kept & (
            chosen if len(chosen) == len(frame) else chosen.new_from_index(0, len(frame))
        ).fill_null(False)
    return kept.alias("kept")


def _uses(values: NDArray[np.int64]) -> pl.Series:
    flat = pl.Series("uses", values.ravel()).replace(NEVER, None)
    lists = (
        flat.reshape((len(values), values.shape[1])).cast(pl.List(pl.Int64))
        if len(values)
        else None
    )
    return (
        pl.Series("uses", [], dtype=pl.List(pl.Int64)) if lists is None else lists.list.drop_nulls()
    )


def _edges_of(
    state: State, kept: NDArray[np.bool_], complete: bool
) -> tuple[pl.DataFrame, Mapping[str, Sequence[str]]]:
    edges = state.edges
    alive = np.flatnonzero(edges.alive)
    ends = {"source": edges.source[alive], "target": edges.target[alive]}
    inside = np.ones(len(alive), dtype=np.bool_)
    for nodes in ends.values():
        memory = node_kinds(nodes) == 0
        inside &= ~memory | kept[np.where(memory, nodes, 0)] if len(kept) else ~memory
    alive = alive[inside]
    columns: dict[str, Any] = {}
    used: dict[str, dict[str, None]] = {kind: {} for kind in NODE_KINDS[1:]}
    for end, nodes in ends.items():
        nodes = nodes[inside]
        kinds = node_kinds(nodes)
        names = state.nodes.names(nodes)
        columns[end] = pl.Series(end, np.where(kinds == 0, node_numbers(nodes) + 1, -1)).replace(
            -1, None
        )
        labels = [
            None if name is None else node_name(NODE_KINDS[kind], name)
            for kind, name in zip(kinds.tolist(), names, strict=True)
        ]
        columns[f"{end}_node"] = pl.Series(f"{end}_node", labels, dtype=pl.String)
        for kind, name in zip(kinds.tolist(), names, strict=True):
            if name is not None:
                used[NODE_KINDS[kind]][name] = None
    frame = pl.DataFrame(
        [
            *columns.values(),
            pl.Series("relation", edges.words_of(edges.relation[alive]).tolist(), dtype=pl.String),
            pl.Series("weight", edges.weight[alive]),
            pl.Series("reinforcements", edges.reinforcements[alive].astype(np.int64)),
            pl.Series("created", edges.created[alive]),
        ]
    ).cast(EDGES)
    known = state.nodes.vocabularies()
    vocabularies: dict[str, tuple[str, ...]] = {}
    for kind, words in known.items():
        vocabularies[kind] = tuple(word for word in words if complete or word in used[kind])
    return frame, {kind: names for kind, names in vocabularies.items() if names}


# -- frames of lab.memories as bundles --------------------------------------------------------------------------------

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
    return (
        set(schema.names()) >= _NEEDED
        and set(schema.names()) <= set(MEMORIES)
        and schema["id"].is_integer()
    )


def bundle_of_frame(x: pl.DataFrame | pl.LazyFrame) -> Bundle:
    """Return a frame of memories as a bundle; columns that it lacks have their defaults.

    Raises
    ------
    InputError
        If an id is missing or stands twice, or a column holds what a memory cannot have.
    """
    frame = x.collect() if isinstance(x, pl.LazyFrame) else x
    if frame["id"].null_count() or frame["id"].n_unique() != len(frame):
        raise InputError(
            "The column id of a frame of memories holds the id of another memory in each row."
        )
    columns = [_column(frame, name, dtype) for name, dtype in MEMORIES.items()]
    return Bundle(lab=FRAME, memories=pl.DataFrame(columns), source="the frame")


def _column(frame: pl.DataFrame, name: str, dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    is_list = name == "uses" or (name in MEMORY and MEMORY[name].storage == "list")
    if name not in frame.columns:
        default = None if name == "uses" else MEMORY[name].default
        nothing: Any = (
            [] if is_list else None if default in ("now", NEVER) or default is None else default
        )
        return pl.Series(name, [nothing], dtype=dtype).new_from_index(0, len(frame))
    values = frame[name]
    try:
        if isinstance(values.dtype, pl.Datetime):
            values = values.dt.cast_time_unit("us").dt.epoch("us")
        cast = values.cast(dtype)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"The column {name} of a frame of memories cannot be read: {error}"
        ) from None
    return cast.fill_null(pl.Series([[]], dtype=dtype)) if is_list else cast
