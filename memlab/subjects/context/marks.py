"""What a context says behind a memory: that it is uncertain, and what contradicts it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.policies import Pack
from memlab.kernel.recall import Candidates, Population
from memlab.kernel.schema import RELATIONS
from memlab.kernel.state import State
from memlab.subjects.context.writing import marks_of

__all__ = ["marks_among"]

_CONTRADICTS = RELATIONS.index("contradicts")
_MOST = 2
"""Memories that a mark names: more of them leave no room for the memory itself."""


def marks_among(pool: Candidates, pack: Pack, population: Population) -> dict[int, tuple[str, ...]]:
    """Return the marks of the candidates that have any, by row: the longest first.

    Parameters
    ----------
    pool
        The candidates of a recall.
    pack
        The pack that decides: its policy ``uncertain`` and its setting ``flag-contradictions``.
    population
        The memories that take part: what contradicts a candidate is named only if it is one of them.
    """
    uncertain, nulls = pool.ask(pack.policies["uncertain"])
    flags = np.broadcast_to(np.asarray(uncertain, dtype=np.bool_), len(pool.rows))
    unsure = frozenset(pool.rows[flags if nulls is None else flags & ~nulls].tolist())
    against = _contradicting(pool.state, pool.rows, population) if pack.settings["flag-contradictions"] else {}
    texts = pool.state.texts
    return {
        row: marks_of(
            uncertain=row in unsure, contradicts=[texts.at(other) or "" for other in against.get(row, ())[:_MOST]]
        )
        for row in sorted(unsure | against.keys())
    }


def _contradicting(state: State, rows: NDArray[np.int64], population: Population) -> dict[int, list[int]]:
    """Return the rows that contradict each of ``rows`` and take part in recall, the newest edge first."""
    met = state.edges.crossings(rows)
    mine = (state.edges.relation[met.edge] == _CONTRADICTS) & (met.neighbour < len(state))
    takes_part = set(population.among(np.unique(met.neighbour[mine])).tolist())
    found: dict[int, list[int]] = {}
    order = np.argsort(-met.edge[mine], kind="stable")
    for place, other in zip(met.position[mine][order].tolist(), met.neighbour[mine][order].tolist(), strict=True):
        others = found.setdefault(int(rows[place]), [])
        if other in takes_part and other not in others:
            others.append(other)
    return {row: others for row, others in found.items() if others}
