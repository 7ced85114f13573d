"""Programs of a search, and the archive with the best program of each niche."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from memlab.kernel.base.arrays import Floats
from memlab.kernel.language import Policy

_NICHES = 24
"""The number of niches by cluster. With more clusters, several share a niche."""
_BANDS = 8
"""The number of niches by ranking: how many recalls a program ranks otherwise than the start, in eighths."""


class Program(NamedTuple):
    """A policy that was scored on the search part.

    ``value`` is the goal over the search part, ``clusters`` the goal in each cluster, and ``outcome``
    the goal in each recall. ``parents`` are hashes of policies, and ``size`` is the number of operations.
    """

    policy: Policy
    value: float
    clusters: Floats
    outcome: Floats
    parents: tuple[str, ...]
    operator: str
    size: int


def by_value(program: Program) -> tuple[float, int, str]:
    """Order programs: the best first, and the smaller of equal ones, which overfits less."""
    return -program.value, program.size, program.policy.hash


class Archive:
    """The best program of each niche.

    A niche is a size, a cluster (a Pareto front as in GEPA), or a band of difference from the start's
    ranking. The order in which programs are added decides ties, and nothing else is random.
    """

    def __init__(self, start: Program) -> None:
        self.start = start
        self.niches: dict[tuple[Any, ...], tuple[tuple[float, ...], Program]] = {}
        self.add(start)

    def add(self, program: Program) -> bool:
        """Add a program to each niche where it is the best; return whether there was any."""
        won = dict(self._win(program))
        self.niches |= {niche: (rank, program) for niche, rank in won.items()}
        return bool(won)

    def accepts(self, program: Program) -> bool:
        """Return whether a program is the best in any niche."""
        return any(True for _ in self._win(program))

    def _win(self, program: Program) -> Iterator[tuple[tuple[Any, ...], tuple[float, ...]]]:
        """Yield each niche where a program would be the best, with its rank there."""
        if math.isfinite(program.value):
            size = program.size
            for niche, value in self.niches_of(program, size):
                rank = (value, program.value, -size)
                if niche not in self.niches or rank > self.niches[niche][0]:
                    yield niche, rank

    def niches_of(self, program: Program, size: int) -> Iterator[tuple[tuple[Any, ...], float]]:
        """Yield the niches of a program, each with the program's value there."""
        yield ("size", size), program.value
        moved = float((program.outcome != self.start.outcome).mean())
        yield ("ranking", int(moved * _BANDS), size.bit_length()), program.value
        clusters = np.nan_to_num(program.clusters, nan=-np.inf)
        for niche in range(min(_NICHES, len(clusters))):
            yield ("cluster", niche), float(clusters[niche::_NICHES].sum())

    @property
    def programs(self) -> list[Program]:
        """The distinct programs, best first; smaller programs come first among equal values."""
        distinct = {program.policy.hash: program for _, program in self.niches.values()}
        return sorted(distinct.values(), key=by_value)
