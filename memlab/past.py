"""Recalls of the past: a logged question asked once more, of the state before it, under another pack."""

from __future__ import annotations

import numpy as np

from memlab.errors import UnknownName
from memlab.journal import Journal
from memlab.memory import State
from memlab.policies import Pack
from memlab.recall import Question, Recaller
from memlab.slates import Slate, decode

__all__ = ["Past"]


class Past:
    """The states that a lab has been in. Going forward folds what lies between; going back starts anew."""

    def __init__(self, journal: Journal, recaller: Recaller) -> None:
        self._journal, self._recaller = journal, recaller
        self._state = State()

    def before(self, seq: int) -> State:
        """The state of which a decision that had seen the event ``seq`` was made."""
        if seq < self._state.seq:
            self._state = State()
        if seq > self._state.seq:
            self._state.fold(self._journal.events(after=self._state.seq, upto=seq), self._journal)
        return self._state

    def logged(self, decision: int) -> Slate:
        """The slate of a decision as it was logged."""
        for seq, blob in self._journal.slates(after=decision - 1, upto=decision):
            return decode(blob, decision=seq)
        raise UnknownName("decision", decision)

    def recall(self, decision: int, pack: Pack) -> Slate:
        """What ``pack`` would have answered: the logged question and its logged vector, nothing explored or written."""
        slate = self.logged(decision)
        question = Question(
            slate.query,
            at=slate.at,
            project=slate.project,
            session=slate.session,
            branch=slate.branch,
            vector=np.frombuffer(slate.vector, dtype=np.int8),
        )
        return self._recaller.recall(self.before(slate.state), pack, question, limit=slate.limit)
