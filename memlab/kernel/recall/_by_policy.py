"""The order in which candidates may be shown, decided one after another by the slot ``select``.

The policy is asked of every candidate that waits, given what was taken before it: how near its closest taken one is,
how much of its vector the taken ones do not span, how many of its session and of its speaker were taken. The greatest
value is taken next, ties by id; a candidate with null is not taken in this step. It ends when nothing has a value, or
after as many steps as ranks can be shown. Nothing is taken twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.language import Policy
from memlab.kernel.recall._diversity import Ranking, cosines, rank_by_score
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._reading import Column

__all__ = ["rank_by_policy"]

Places = NDArray[np.int64]
Scores = NDArray[np.float64]

_LEAST = 1e-12
"""Novelty of a vector that the taken ones span: its logarithm stays finite."""


def rank_by_policy(
    policy: Policy, pool: Candidates, scores: Scores, *, depth: int, closeness: Callable[[Scores], Scores]
) -> Ranking:
    """Rank a scored pool by the slot ``select``, up to ``depth`` ranks; the rest follows by score.

    What the policy gave null in the last step stays behind, and is not shown.
    """
    plain = rank_by_score(scores)
    able = np.sort(plain.order[: plain.showable])
    taken = _Taken(pool, able, closeness, policy.inputs)
    while len(taken.places) < depth and taken.waiting.any():
        waiting = np.flatnonzero(taken.waiting)
        values, nulls = pool.ask_some(policy, able[waiting], taken.inputs(waiting, scores[able]))
        worth = np.where(np.isnan(values), -np.inf, values.astype(np.float64))
        if nulls is not None:
            worth[nulls] = -np.inf
        if not np.isfinite(worth).any():
            break
        taken.take(int(waiting[int(np.argmax(worth))]))
    front = able[taken.places]
    rest = plain.order[~np.isin(plain.order, front)]
    ended = len(taken.places) < min(depth, len(able))
    return Ranking(np.concatenate([front, rest]), len(front) if ended else plain.showable)


class _Taken:
    """What was taken of the candidates at ``able``, and what that says of those that wait."""

    def __init__(
        self, pool: Candidates, able: Places, closeness: Callable[[Scores], Scores], reads: tuple[str, ...]
    ) -> None:
        self.places: list[int] = []
        self.waiting = np.ones(len(able), dtype=np.bool_)
        self._closeness = closeness
        self._likeness = np.zeros(len(able))
        self._novelty = np.ones(len(able))
        self._spanned = np.zeros((0, len(able)))
        self._contexts = pool.contexts()[able]
        self._speakers = pool.state.names["speaker"].codes[pool.rows[able]]
        self._cosines: NDArray[np.float64] | None = None
        if "likeness" in reads or "novelty" in reads:
            self._cosines = cosines(pool.state.vectors.take(pool.rows[able]).astype(np.float64))

    def inputs(self, waiting: Places, scores: Scores) -> Mapping[str, Callable[[], Column]]:
        """The inputs of the slot that are no features, for the candidates that wait."""
        return {
            "score": lambda: scores[waiting],
            "likeness": lambda: self._likeness[waiting],
            "novelty": lambda: self._novelty[waiting],
            "taken": lambda: np.full(len(waiting), float(len(self.places))),
            "session-taken": lambda: self._same(self._contexts, waiting),
            "speaker-taken": lambda: self._same(self._speakers, waiting),
        }

    def _same(self, codes: NDArray[np.int32], waiting: Places) -> Scores:
        """How many were taken that have the code of each; a memory without one shares it with nobody."""
        counts = np.zeros(len(waiting))
        for place in self.places:
            if codes[place] >= 0:
                counts += codes[waiting] == codes[place]
        return counts

    def take(self, place: int) -> None:
        """Take the candidate at ``place``."""
        self.places.append(place)
        self.waiting[place] = False
        if self._cosines is None:
            return
        near = self._cosines[place]
        np.maximum(self._likeness, np.maximum(self._closeness(near), 0.0), out=self._likeness)
        # one step of a Cholesky factorisation: what is left of each vector beside those that were taken
        left = near - self._spanned.T @ self._spanned[:, place]
        row = left / np.sqrt(max(self._novelty[place], _LEAST))
        self._spanned = np.vstack([self._spanned, row])
        self._novelty = np.maximum(self._novelty - row * row, _LEAST)
