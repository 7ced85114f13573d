"""A recall that shows nothing that its agent was given before in the session."""

from __future__ import annotations

from typing import Any

import numpy as np

from memlab.kernel.policies import Pack
from memlab.kernel.recall import Candidates, Chosen, Question, QuestionFeatures, Ranking
from memlab.kernel.recall import Selection as Selection
from memlab.kernel.slates import Slate
from memlab.kernel.state import State
from memlab.kernel.verbs.recalling.injected import Injected

__all__ = ["Once"]


class Once:
    """What one recall is made for: at most ``limit`` memories, each new to the session. A ``Use`` and a ``Selection``.

    ``left_out`` are the memories, best first, that would have been shown and were given before.
    """

    abstains = True

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self.left_out: tuple[int, ...] = ()

    def selection(self, state: State, pack: Pack, question: Question) -> Selection:
        self._question = question
        self._most = pack.count("limit") if self._limit is None else self._limit
        given = state.projection(Injected)
        agent = question.filters.viewer
        self._before = np.array(
            given.ids(agent=agent, project=question.project, session=question.session), dtype=np.int64
        )
        return self

    def named(self, asked: QuestionFeatures) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.empty(0, dtype=np.int64)

    def choose(self, pool: Candidates, scores: Any, ranking: Ranking, *, beside: int) -> Chosen:
        order = ranking.order[: ranking.showable]
        repeated = np.isin(pool.rows[order] + 1, self._before)
        self.left_out = tuple((pool.rows[order][: self._most][repeated[: self._most]] + 1).tolist())
        return Chosen(np.empty(0, dtype=np.int64), order[~repeated], self._most)

    def shown(self, slate: Slate) -> None:
        self._shown = slate.shown

    def body(self) -> dict[str, Any]:
        return {}

    def events(self, decision: int) -> dict[str, dict[str, Any]]:
        """What was shown, so that neither a recall nor a context gives it again."""
        if not self._shown or self._question.session is None:
            return {}
        question = self._question
        where = {"agent": question.filters.viewer, "project": question.project, "session": question.session}
        said = {"decision": decision, "ids": list(self._shown), "searched": True}
        return {"inject": said | {name: one for name, one in where.items() if one}}
