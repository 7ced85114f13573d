"""The contents of a lab as tables, which every format reads and writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.io.formats.parquet_limits import scan_parquet
from memlab.kernel.base.arrays import Flags, Ints
from memlab.kernel.base.clock import to_micros
from memlab.kernel.graph import NODE_KINDS, node_kinds, node_numbers
from memlab.kernel.schema import MEMORY, NEVER
from memlab.kernel.state import State, visible_rows

SCHEMA = 1
"""Version of the contents of an export; a reader knows its own version and older ones."""

# Type of a column by its storage; times are microseconds, which no format rounds.
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
"""Columns of a memory. Times are microseconds (UTC); ``uses`` are its latest times of use, newest first."""

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
"""Columns of an edge. An end is a memory, by id, or another node, as ``kind/name``."""

ENGINE = tuple(name for name, column in MEMORY.items() if not column.given)
"""Columns that memlab maintains; only an import may set them."""


@dataclass(frozen=True)
class Bundle:
    """The memories and edges of a lab, with its nodes, registers, policies and events.

    Attributes
    ----------
    lab
        Fingerprint of the lab it comes from, for the column ``origin``.
    memories
        Frame with the schema ``MEMORIES``.
    edges
        Frame with the schema ``EDGES``.
    nodes
        Names of tags, clusters and entities by kind, in the order of their numbers.
    registers
        State of each projection, from its ``dump``.
    policies
        The active pack and its history; informational.
    events
        The journal; informational.
    queries
        Logged queries of a person, each with ``decision``, ``at`` and ``query``; informational.
    complete
        Whether the bundle is a whole lab.
    exported
        When it was exported, in microseconds (UTC).
    source
        Name of the source in errors.
    locations
        Location of each memory in the file; empty for a frame.
    edge_locations
        Location of each edge in the file.
    left_out
        Number of values that memlab cannot hold, by name.
    """

    lab: str
    memories: pl.DataFrame
    edges: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=EDGES))
    nodes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    registers: Mapping[str, Any] = field(default_factory=dict)
    policies: Mapping[str, Any] | None = None
    events: pl.DataFrame | None = None
    queries: Sequence[Mapping[str, Any]] = ()
    complete: bool = False
    exported: int = 0
    source: str = ""
    locations: Sequence[str] = ()
    edge_locations: Sequence[str] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    def where(self, row: int) -> str:
        """Return the location of a memory for errors, such as "a.jsonl, line 3"."""
        return (
            f"{self.source}, {self.locations[row]}"
            if self.locations
            else f"{self.source}, memory {row + 1}"
        )


def build_memory_frame(columns: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    """Return a frame with the schema ``MEMORIES`` from lists of values."""
    return pl.DataFrame(
        [
            _build_list_column(name, columns[name], dtype.inner)
            if isinstance(dtype, pl.List)
            else pl.Series(name, columns[name], dtype=dtype)
            for name, dtype in MEMORIES.items()
        ]
    )


def _build_list_column(name: str, rows: Sequence[Sequence[Any] | None], inner: Any) -> pl.Series:
    """Build a column of lists, with an empty list in place of null.

    Polars converts a list of lists item by item. Grouping a flat column takes a tenth of the time for 20,000 rows.
    """
    lengths = np.array([len(row) if row else 0 for row in rows], dtype=np.int64)
    flat = pl.Series(name, [value for row in rows if row for value in row], dtype=inner)
    locations = pl.Series("row", np.repeat(np.arange(len(rows)), lengths), dtype=pl.Int64)
    grouped = pl.DataFrame([locations, flat]).group_by("row", maintain_order=True).agg(name)
    every = pl.DataFrame({"row": np.arange(len(rows), dtype=np.int64)})
    joined = every.join(grouped, on="row", how="left", maintain_order="left").to_series(1)
    return joined.fill_null(pl.Series([[]], dtype=pl.List(inner)))


def join_node_name(kind: str, name: str) -> str:
    """Return the name of a node in an edge: ``kind/name``."""
    return f"{kind}/{name}"


def split_node_name(text: str) -> tuple[str, str]:
    """Split a node name of the form ``kind/name`` into kind and name."""
    kind, _, name = text.partition("/")
    return kind, name


def build_bundle(
    state: State,
    *,
    lab: str,
    now: int,
    where: pl.Expr | None = None,
    project: str | None = None,
    ids: Collection[int] | None = None,
    queries: Sequence[Mapping[str, Any]] = (),
    policies: Mapping[str, Any] | None = None,
    events: pl.DataFrame | None = None,
) -> Bundle:
    """Collect the memories that ``where``, ``project`` and ``ids`` select, and their edges.

    An edge is included if both nodes that it joins are. The bundle is complete if ``where``,
    ``project`` and ``ids`` are all None.
    """
    frame, visible = state.memories(), visible_rows(state)
    selected = _select_memories(frame, where, project)
    if ids is not None:
        selected = selected & frame["id"].is_in(list(ids))
    complete = where is None and project is None and ids is None
    rows = np.arange(len(state)) if visible is None else visible
    columns = [
        pl.Series(name, state.numbers[name].values[rows]).replace(NEVER, None)
        if name in MEMORY and MEMORY[name].storage == "time"
        else frame[name]
        for name in MEMORIES
        if name != "uses"
    ]
    memories = (
        pl.DataFrame([*columns, _build_uses(state.uses.values[rows])])
        .filter(selected)
        .cast(MEMORIES)
    )
    is_selected = np.zeros(len(state), dtype=np.bool_)
    is_selected[rows] = selected.to_numpy()
    edges, nodes = _build_edges(state, is_selected, complete)
    # An earlier memlab refuses a register that it does not know, so an empty one may be left out.
    registers = {
        name: dumped
        for name, projection in state.projections.items()
        if complete and projection.exported and (dumped := projection.dump()) is not None
    }
    return Bundle(
        lab=lab,
        memories=memories,
        edges=edges,
        nodes=nodes,
        registers=registers,
        policies=policies,
        events=events if complete else None,
        queries=queries,
        complete=complete,
        exported=now,
        source=lab,
    )


def _select_memories(frame: pl.DataFrame, where: pl.Expr | None, project: str | None) -> pl.Series:
    """Return a mask of the memories that match both ``where`` and ``project``; None matches all."""
    selected = pl.Series("kept", [True]).new_from_index(0, len(frame))
    if project is not None:
        selected = selected & (frame["project"] == project).fill_null(False)
    if where is not None:
        if not isinstance(where, pl.Expr):
            raise InputError(
                f"where must be a Polars expression over the columns of lab.memories, not {where!r:.80}."
            )
        try:
            chosen = frame.select(where.alias("chosen")).to_series()
        except pl.exceptions.PolarsError as error:
            raise InputError(f"where cannot be evaluated on lab.memories: {error}") from None
        if chosen.dtype != pl.Boolean or len(chosen) not in (1, len(frame)):
            raise InputError(
                f"where must give true or false for each memory, not {len(chosen)} values of type {chosen.dtype}."
            )
        selected = selected & (
            chosen if len(chosen) == len(frame) else chosen.new_from_index(0, len(frame))
        ).fill_null(False)
    return selected.alias("kept")


def _build_uses(values: Ints) -> pl.Series:
    """Build a list column of each memory's access times from a matrix whose unused cells are ``NEVER``."""
    flat = pl.Series("uses", values.ravel()).replace(NEVER, None)
    lists = (
        flat.reshape((len(values), values.shape[1])).cast(pl.List(pl.Int64))
        if len(values)
        else None
    )
    return (
        pl.Series("uses", [], dtype=pl.List(pl.Int64)) if lists is None else lists.list.drop_nulls()
    )


def _build_edges(
    state: State, selected: Flags, complete: bool
) -> tuple[pl.DataFrame, Mapping[str, Sequence[str]]]:
    """Return the active edges that touch no unselected memory, and the names of nodes by kind.

    A partial bundle has only the nodes that its edges use.
    """
    # an edge is included if both of its nodes are; nodes other than memories always are
    edges = state.edges
    alive = np.flatnonzero(edges.alive)
    ends = {"source": edges.source[alive], "target": edges.target[alive]}
    inside = np.ones(len(alive), dtype=np.bool_)
    for nodes in ends.values():
        memory = node_kinds(nodes) == 0
        inside &= ~memory | selected[np.where(memory, nodes, 0)] if len(selected) else ~memory
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
            None if name is None else join_node_name(NODE_KINDS[kind], name)
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
    names_by_kind = state.nodes.vocabularies()
    vocabularies: dict[str, tuple[str, ...]] = {}
    for kind, words in names_by_kind.items():
        vocabularies[kind] = tuple(word for word in words if complete or word in used[kind])
    return frame, {kind: names for kind, names in vocabularies.items() if names}


# -- frames of lab.memories as bundles --------------------------------------------------------------------------------

FRAME = "frame"
"""Name of the source of a frame of memories, which does not identify its lab."""

# Columns that distinguish a frame of memories from other tables.
_NEEDED = frozenset(("id", "text", "kind", "created"))


def is_memories(x: object) -> bool:
    """Return whether ``x`` is ``lab.memories``, or some of its rows or columns.

    Such a frame has the columns ``id``, ``text``, ``kind`` and ``created``, and only columns of a memory.
    """
    if not isinstance(x, pl.DataFrame | pl.LazyFrame):
        return False
    schema = x.collect_schema()
    return (
        set(schema.names()) >= _NEEDED
        and set(schema.names()) <= set(MEMORIES)
        and (schema["id"].is_integer() or schema["id"] == pl.String)
    )


_WRITTEN = _NEEDED | {"provenance", "status", "changed"}
"""Columns of a file that was written from ``lab.memories``; tables of other programs lack some."""


def read_memory_table(path: Path) -> pl.DataFrame | None:
    """Return the memories in a Parquet or CSV file; None if the file contains another table.

    Values of a CSV file are texts; a list is a JSON array.
    """
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet") or not path.is_file():
        return None
    try:
        scan = scan_parquet(path) if suffix == ".parquet" else pl.scan_csv(path, infer_schema=False)
        names = set(scan.collect_schema().names())
        return scan.collect() if _WRITTEN <= names <= set(MEMORIES) else None
    except pl.exceptions.PolarsError:
        return None  # the reader of rows says what is wrong with the file


def build_bundle_from_frame(x: pl.DataFrame | pl.LazyFrame, source: str = "the frame") -> Bundle:
    """Build a bundle from a frame of memories, filling missing columns.

    Raises InputError if an id is missing or occurs twice, or if a column has invalid values.
    """
    frame = x.collect() if isinstance(x, pl.LazyFrame) else x
    if frame["id"].dtype == pl.String:
        frame = frame.with_columns(_read_texts(frame["id"], "id", int).cast(pl.Int64))
    if frame["id"].null_count() or frame["id"].n_unique() != len(frame):
        raise InputError(
            "The column id of a frame of memories must have a different id in each row."
        )
    columns = [_convert_column(frame, name, dtype) for name, dtype in MEMORIES.items()]
    return Bundle(lab=FRAME, memories=pl.DataFrame(columns), source=source)


def _convert_column(
    frame: pl.DataFrame, name: str, dtype: pl.DataType | type[pl.DataType]
) -> pl.Series:
    """Cast a column to its type in ``MEMORIES``, or fill a missing column with its default (null for times)."""
    is_list = name == "uses" or (name in MEMORY and MEMORY[name].storage == "list")
    if name not in frame.columns:
        default = None if name == "uses" else MEMORY[name].default
        fill_value: Any = (
            [] if is_list else None if default in ("now", NEVER) or default is None else default
        )
        return pl.Series(name, [fill_value], dtype=dtype).new_from_index(0, len(frame))
    values = frame[name]
    if values.dtype == pl.String and dtype != pl.String:
        storage = MEMORY[name].storage if name in MEMORY else "list"
        values = _read_texts(values, name, _READ[storage])
    try:
        if isinstance(values.dtype, pl.Datetime):
            values = values.dt.cast_time_unit("us").dt.epoch("us")
        cast = values.cast(dtype)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"The column {name} of a frame of memories cannot be read: {error}"
        ) from None
    return cast.fill_null(pl.Series([[]], dtype=dtype)) if is_list else cast


def _read_list(text: str) -> list[Any]:
    """Return the items of a JSON array; raise ValueError for other text."""
    if not text.startswith("["):
        raise ValueError(text)
    items: list[Any] = json.loads(text)
    return items


_READ: dict[str, Callable[[str], Any]] = {
    "num": float,
    "time": to_micros,
    "bool": {"true": True, "false": False, "True": True, "False": False}.__getitem__,
    "list": _read_list,
}
"""How a text of a CSV file is read, by the storage of its column."""


def _read_texts(values: pl.Series, name: str, read: Callable[[str], Any]) -> pl.Series:
    """Parse a column of texts; raise InputError with the row of the first invalid text."""
    items = []
    for row, text in enumerate(values):
        try:
            items.append(None if text is None else read(text))
        except (ValueError, KeyError, RecursionError, InputError):
            raise InputError(
                f"Row {row}, column {name} of a frame of memories: {text!r:.60} cannot be read. Lists are JSON "
                'arrays, such as ["a", "b"], and times ISO 8601.'
            ) from None
    return pl.Series(name, items, strict=False) if any(items) else pl.Series(name, items, pl.Null)
