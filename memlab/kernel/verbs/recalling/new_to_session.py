"""A recall that leaves out memories that its agent has received in the session."""

from __future__ import annotations

import numpy as np

from memlab.kernel.base.arrays import NO_ROWS, Rows, Scores
from memlab.kernel.journal import Body
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Candidates, Chosen, Question, QuestionFeatures, Ranking, Selection
from memlab.kernel.slates import Slate
from memlab.kernel.state import State
from memlab.kernel.verbs.recalling.injected import Injected


class NewToSession:
    """Purpose of a recall that shows only memories that are new to the session.

    The class implements ``Use`` and ``Selection``. ``left_out`` has the ids of memories that would
    have been among the results but that the session has received already, best first.
    """

    abstains = True

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self.left_out: tuple[int, ...] = ()

    def selection(self, state: State, pack: Pack, question: Question) -> Selection:
        """Prepare to skip memories already given to the session; return this selection."""
        self._question = question
        self._maximum = pack.count("limit") if self._limit is None else self._limit
        injected = state.projection(Injected)
        agent = question.filters.viewer
        self._before = np.array(
            injected.ids(agent=agent, project=question.project, session=question.session),
            dtype=np.int64,
        )
        return self

    def requested_rows(self, query: QuestionFeatures) -> Rows:
        """Return no rows, because this recall requires no particular memories."""
        return NO_ROWS

    def spending(self, rows: Rows) -> None:
        """Return None, because a recall has no token budget."""

    def choose(
        self,
        pool: Candidates,
        scores: Scores,
        ranking: Ranking,
        *,
        extra: int,
        probability: float | None,
    ) -> Chosen:
        """Choose the best candidates that the session has not received."""
        order = ranking.order[: ranking.showable]
        repeated = np.isin(pool.rows[order] + 1, self._before)
        self.left_out = tuple(
            (pool.rows[order][: self._maximum][repeated[: self._maximum]] + 1).tolist()
        )
        return Chosen(NO_ROWS, order[~repeated], self._maximum)

    def record_shown(self, slate: Slate) -> None:
        """Store the ids of the shown memories."""
        self._shown_ids = slate.shown

    def body(self) -> Body:
        """Return no extra fields for the event of the recall."""
        return {}

    def events(self, decision: int) -> dict[str, Body]:
        """Return an "inject" event, which keeps the memories from being sent again."""
        if not self._shown_ids or self._question.session is None:
            return {}
        question = self._question
        session = {
            "agent": question.filters.viewer,
            "project": question.project,
            "session": question.session,
        }
        body = {"decision": decision, "ids": list(self._shown_ids), "searched": True}
        return {"inject": body | {name: value for name, value in session.items() if value}}
