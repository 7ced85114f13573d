"""The memories nearest to one of them, by the cosine of their stored vectors."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.kernel.recall._hits import recalled
from memlab.kernel.recall._population import Population
from memlab.kernel.state import State

__all__ = ["similar"]

_WORDS = ("text", "kind", "ref", "speaker", "session", "project")


def similar(state: State, row: int, population: Population, *, limit: int) -> pl.DataFrame:
    """The ``limit`` nearest of ``population`` to the memory in ``row``, itself left out; ties by id.

    Memories that wait for their vectors are near nothing.
    """
    vector = state.vectors.take(np.array([row]))[0]
    search = population.search
    if state.unembedded:
        search = {"rows": state.embedded(population.rows) if row >= state.unembedded else population.rows[:0]}
    found, cosine = state.vectors.top(vector, limit + 1, **search)
    others = np.flatnonzero(found != row)[:limit]
    ids = found[others] + 1
    memories = recalled(state, ids.tolist())
    return pl.DataFrame(
        [
            pl.Series("rank", np.arange(1, len(ids) + 1)),
            pl.Series("memory_id", ids),
            pl.Series("similarity", cosine[others]),
            *(pl.Series(name, [getattr(memory, name) for memory in memories], dtype=pl.String) for name in _WORDS),
        ]
    )
