"""One recall on its way through the stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlab.kernel.policies import Challenge, Pack
from memlab.kernel.recall._entities import NO_ENTITIES, About
from memlab.kernel.recall._explore import Shown
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._plan import Plan
from memlab.kernel.recall._question import Question, QuestionFeatures
from memlab.kernel.recall._selected import Selected, Selection
from memlab.kernel.recall._stages import Stage, run_extension_stage
from memlab.kernel.slates import Slate
from memlab.kernel.state import State

__all__ = ["Reached", "Run"]

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


class Reached(NamedTuple):
    """What was found or reached by spreading: ascending rows, and what each has of it."""

    rows: Rows
    seed: Scores
    received: Scores
    activation: Scores
    hops: Scores


@dataclass
class Run:
    """One recall on its way through the stages: what it was asked, and what the stages so far gave."""

    plan: Plan
    state: State
    question: Question
    asked: QuestionFeatures
    limit: int
    about: About = NO_ENTITIES
    seed: int | None = None
    challenges: Sequence[Challenge] = ()
    selection: Selection | None = None
    rival: Callable[[Pack], Run] | None = None
    """The same question under the pack of a challenger, with nothing of it done."""

    found: Rows = field(init=False)
    direct: Candidates = field(init=False)
    seeds: Scores = field(init=False)
    reached: Reached = field(init=False)
    pool: Candidates = field(init=False)
    scores: Scores = field(init=False)
    known: float | None = field(init=False)
    selected: Selected = field(init=False)
    shown: Shown = field(init=False)
    challenge: dict[str, Any] | None = field(init=False, default=None)
    slate: Slate = field(init=False)

    def through(self, stages: Iterable[Stage]) -> Run:
        """Go through these stages."""
        for stage in stages:
            if stage.owner:
                run_extension_stage(stage, self)
            else:
                stage.run(self)
        return self
