"""Tables of a lab as lazy frames, which read only the columns that a query names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl
from polars.io.plugins import register_io_source

from memlab.kernel.state import ViewerState
from memlab.kernel.verbs.core import Core


def scan_memories(core: Core) -> pl.LazyFrame:
    """Return a lazy frame of memories, which reads only the columns of its query."""

    def read(columns: list[str] | None) -> pl.DataFrame:
        with core.reading() as state:
            if columns is None or isinstance(state, ViewerState):
                frame = state.memories()
                return frame if columns is None else frame.select(columns)
            return pl.DataFrame([state.column(name) for name in columns])

    return _lazy(read, lambda: core.memories().schema)


def scan_edges(core: Core) -> pl.LazyFrame:
    """Return a lazy frame of edges, which reads the edges when it is collected."""

    def read(columns: list[str] | None) -> pl.DataFrame:
        with core.reading() as state:
            frame = state.edge_frame()
        return frame if columns is None else frame.select(columns)

    def schema() -> pl.Schema:
        with core.reading() as state:
            return state.edge_frame().schema

    return _lazy(read, schema)


def _lazy(
    read: Callable[[list[str] | None], pl.DataFrame], schema: Callable[[], pl.Schema]
) -> pl.LazyFrame:
    """Return a lazy frame that calls ``read`` to read the selected columns."""

    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        frame = read(with_columns)
        if n_rows is not None:
            frame = frame.head(n_rows)
        yield frame if predicate is None else frame.filter(predicate)

    return register_io_source(source, schema=schema)
