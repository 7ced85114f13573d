"""``lab.graph``: edges between memories, what activation passes along them, and the structure of it all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import numpy as np
import polars as pl

from memlab.arguments import Count, Seconds, Seed, Share, Within, checked
from memlab.clock import When
from memlab.errors import InputError, UnknownName
from memlab.privacy import refuse
from memlab.schema import RECALLABLE, RELATIONS, is_open_word, spelled
from memlab.state import Change, edges_of, seen_rows
from memlab.subjects.core import Core, MemoryLike
from memlab.subjects.corrections.editing import retired
from memlab.subjects.graph.paths import LabTrace, activated, traced
from memlab.subjects.linking.comparing import waiting_of
from memlab.subjects.linking.linker import Linker
from memlab.subjects.structure import Stats, stats

__all__ = ["LabGraph"]

_TO_NODES = ("has-tag", "in-cluster", "mentions")


class LabGraph:
    """``lab.graph``: link memories, follow their edges, and see what they are as a whole."""

    def __init__(self, core: Core, linker: Linker) -> None:
        self._core, self._linker = core, linker

    def tags(self) -> pl.DataFrame:
        """Every tag of a memory in use, the most frequent first: ``tag``, ``memories``, ``first`` and ``last`` created.

        Under a pack with ``infer-tags`` paths, topics and entities give tags besides those that are given.

        >>> lab.graph.tags().head(3)                                                       # doctest: +SKIP
        """
        with self._core.reading() as state:
            memories = state.memories().select("tags", "created", "status")
        return (
            memories.filter(pl.col("status").is_in(RECALLABLE))
            .explode("tags")
            .drop_nulls("tags")
            .group_by(tag="tags")
            .agg(memories=pl.len().cast(pl.Int64), first=pl.col("created").min(), last=pl.col("created").max())
            .sort("memories", "tag", descending=[True, False])
        )

    @checked
    def link(
        self,
        source: MemoryLike,
        target: MemoryLike,
        relation: str = "relates-to",
        *,
        weight: Share = 1.0,
    ) -> None:
        """Join two memories by an edge.

        Its relation is one of those with a name or, where the pack's ``open-words`` says so, any other short word. What
        is superseded by a memory in use is out of use from then on.

        InputError for what is purged: nothing leads to a row that is empty.
        """
        relation = spelled(relation, RELATIONS)
        if relation not in RELATIONS and not (self._core.open_words and is_open_word(relation)):
            raise UnknownName("relation", relation, RELATIONS)
        refuse(relation, "relation")
        if relation in _TO_NODES:
            raise InputError(f"An edge {relation} leads from a memory to a node of another kind, not to a memory.")
        store = self._core.store
        with store.writing() as tx:
            ends = self._core.row(source) + 1, self._core.row(target) + 1
            if ends[0] == ends[1]:
                raise InputError(f"Memory {ends[0]} cannot be linked to itself.")
            status = store.state.names["status"]
            purged = next((id for id in ends if status.at(id - 1) == "purged"), None)
            if purged is not None:
                raise InputError(f"Memory {purged} is purged: only its row is left, and nothing is linked to it.")
            now = store.clock()
            change = Change(edges=edges_of([ends[0]], [ends[1]], relation, weight))
            if relation == "supersedes":
                change += retired(store.state, [ends], now)
            tx.event("link", {"by": "hand", **change.body()}, at=now)

    def waiting(self) -> int:
        """How many memories wait to be linked in the background."""
        with self._core.reading() as state:
            ids = np.array(waiting_of(state).ids, dtype=np.int64)
            return len(ids) if (seen := seen_rows(state)) is None else int(np.isin(ids - 1, seen).sum())

    @checked
    def link_waiting(self, timeout: Seconds | None = None) -> bool:
        """Link here and now what waits, for at most ``timeout`` seconds; whether nothing waits any more.

        Nothing has to call this: a thread does the same. It raises what hinders that thread: ReadOnlyLab, LabBusy, or
        what a policy raises.
        """
        return self._linker.link_all(timeout)

    @checked
    def activate(
        self,
        seeds: MemoryLike | Iterable[MemoryLike],
        *,
        steps: Annotated[int, Within(0, 100)] = 3,
        decay: float = 0.7,
        threshold: float = 0.01,
    ) -> pl.DataFrame:
        """Spreading activation from ``seeds`` (energy 1 each): A[j] += A[i] * W[i,j] * D, in both directions.

        One row a node that is active in the end: kind, id, name, activation, received, hops. Below ``threshold``
        nothing passes. Nothing is changed or logged; a pack's ``spread`` policy is not asked.

        >>> lab.graph.activate(hits[0]).head(3)                                            # doctest: +SKIP
        """
        with self._core.reading() as state:
            rows = dict.fromkeys(self._core.rows(seeds), 1.0)
            return activated(state, rows, steps=steps, decay=decay, threshold=threshold)

    @checked
    def trace(self, memory: MemoryLike, depth: int = 2, *, most: Count = 100) -> LabTrace:
        """How a memory is joined to others: the ``most`` strongest paths of at most ``depth`` edges."""
        with self._core.reading() as state:
            return traced(state, self._core.row(memory), depth=depth, most=most)

    @checked
    def stats(self, *, at: When | None = None, seed: Seed = 0, progress: bool = True) -> Stats:
        """Kinds, temporal layers, clusters, communities, bridges and key memories, as frames and one figure."""
        with self._core.reading() as state:
            return stats(state, self._core.pack, now=self._core.instant(at), seed=seed, progress=progress)
