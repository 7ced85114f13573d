"""The graph of a lab: what a few memories make active, how one is joined to others, and the structure of it all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.kernel.base.display import Displayed, code_block
from memlab.kernel.base.printable import printable
from memlab.kernel.graph import NODE_KINDS, Trace, activate, kind_of, number_of, trace
from memlab.kernel.state import State

__all__ = ["LabTrace", "activated", "traced"]

_MAX_TEXT = 60
"""Characters of a memory that name it in a tree."""


@dataclass(frozen=True)
class LabTrace(Displayed):
    """The strongest paths from a memory. ``cut`` says that there are more; ``frame`` has a row a path."""

    memory: int
    depth: int
    cut: bool
    frame: pl.DataFrame = field(repr=False)
    """to_kind, to_id, to, depth, product, relations, weights, path (what each step leads to)."""
    tree: str = field(repr=False)

    def __repr__(self) -> str:
        return printable(self.tree)

    def _display(self) -> object:
        return code_block(self.tree)


def traced(state: State, row: int, *, depth: int, most: int) -> LabTrace:
    """The paths from the memory in ``row``, by the labels of their nodes."""
    found = trace(state.edges, row, depth, most=most)
    nodes = sorted({node for path in found.paths for node in path.nodes} | {row})
    named = dict(zip(nodes, labels(state, np.array(nodes)), strict=True))
    return LabTrace(row + 1, depth, found.cut, _paths(found, named), found.tree(named.__getitem__))


def _paths(found: Trace, named: Mapping[int, str]) -> pl.DataFrame:
    ends = np.array([path.nodes[-1] for path in found.paths], dtype=np.int64)
    kinds = np.array(NODE_KINDS, dtype=object)[kind_of(ends)].tolist() if len(ends) else []
    steps = [[named[node] for node in path.nodes[1:]] for path in found.paths]
    return pl.DataFrame(
        [
            pl.Series("to_kind", kinds, dtype=pl.String),
            pl.Series("to_id", number_of(ends) + 1),
            pl.Series("to", [path[-1] for path in steps], dtype=pl.String),
            *found.frame.select("depth", "product", "relations", "weights").iter_columns(),
            pl.Series("path", steps, dtype=pl.List(pl.String)),
        ]
    )


def activated(state: State, seeds: Mapping[int, float], *, steps: int, decay: float, threshold: float) -> pl.DataFrame:
    """From rows with their energy: kind, id, name, activation, received, hops; the most active first."""
    found = activate(
        state.edges,
        np.array(list(seeds), dtype=np.int64),
        np.array(list(seeds.values()), dtype=np.float64),
        nodes=state.nodes,
        steps=steps,
        decay=decay,
        threshold=threshold,
    )
    frame = pl.DataFrame(
        [
            pl.Series("kind", np.array(NODE_KINDS, dtype=object)[kind_of(found.rows)].tolist(), dtype=pl.String),
            pl.Series("id", number_of(found.rows) + 1),
            pl.Series("name", labels(state, found.rows), dtype=pl.String),
            pl.Series("activation", found.activation),
            pl.Series("received", found.received),
            pl.Series("hops", found.hops),
        ]
    )
    return frame.sort("activation", "hops", "kind", "id", descending=[True, False, False, False])


def labels(state: State, nodes: NDArray[np.int64]) -> list[str]:
    """What people call a node: a memory by its number and the beginning of its text."""
    names = state.nodes.names(nodes)
    found = []
    for node, kind, name in zip(nodes.tolist(), kind_of(nodes).tolist(), names, strict=True):
        if name is not None:
            found.append(f"{NODE_KINDS[kind]} {name}")
            continue
        text = " ".join((state.texts.at(node) or "").split())
        found.append(f"{node + 1}: {text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + '...'}")
    return found
