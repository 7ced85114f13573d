"""What a selector gives: the order in which candidates may be shown, and how many of the first are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.policies import Challenge
from memlab.kernel.recall._challenge import Opposed
from memlab.kernel.recall._diversity import Ranking
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._question import QuestionFeatures

__all__ = ["Chosen", "Selected", "Selection"]

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Chosen:
    """What a selection makes of a pool, by places in it.

    ``first`` are shown with certainty, before all others; of ``ranked``, best first, the ``limit`` best. The rest is
    never shown.
    """

    first: Rows
    ranked: Rows
    limit: int


class Selection(Protocol):
    """Who decides what is shown of a pool where that is more than its best.

    Where ``abstains`` is true, ``unknown-limit`` holds for it where nothing seems to answer, as for any recall.
    """

    abstains: bool

    def named(self, asked: QuestionFeatures) -> Rows:
        """The rows, ascending, that take part whatever their nearness: they count as one hop from the question."""

    def choose(self, pool: Candidates, scores: Scores, ranking: Ranking, *, beside: int) -> Chosen:
        """What may be shown; at most ``beside`` more are shown to learn of them."""


@dataclass(frozen=True)
class Selected:
    """What may be shown of a pool: of the ``ranking``, the first ``head`` with certainty.

    ``limit`` is how many places the best have, and ``wanted`` how many were asked for where nothing seems to answer.
    ``opposed`` are the heads of challengers, within what may be shown; ``challenges`` all those that are asked.
    """

    ranking: Ranking
    head: int
    limit: int
    wanted: int | None = None
    challenges: Sequence[Challenge] = ()
    opposed: Sequence[Opposed] = ()

    @property
    def shown(self) -> Rows:
        """The places that are shown with certainty, best first."""
        return self.ranking.order[: min(self.head, self.ranking.showable)]
