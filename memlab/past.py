"""Recalls of the past: a logged question asked once more, of the state before it, under another pack."""

from __future__ import annotations

import numpy as np

from memlab.errors import InputError, UnknownName
from memlab.journal import Journal, Until
from memlab.memory import State
from memlab.policies import Pack
from memlab.purging import last_purge
from memlab.recall import Filters, Question, Recaller
from memlab.seen import seen
from memlab.slates import Slate, decode

__all__ = ["Past"]


class Past:
    """The states that a lab has been in. Going forward folds what lies between; going back starts anew."""

    def __init__(self, journal: Journal | Until, recaller: Recaller) -> None:
        self._journal, self._recaller = journal, recaller
        self._state, self._purged = State(), last_purge(journal)

    def before(self, seq: int) -> State:
        """The state of which a decision that had seen the event ``seq`` was made."""
        purged = last_purge(self._journal)
        if seq < self._state.seq or purged != self._purged:
            self._state, self._purged = State(), purged
        if seq > self._state.seq:
            self._state.fold(self._journal.events(after=self._state.seq, upto=seq), self._journal)
        return self._state

    def logged(self, decision: int) -> Slate:
        """The slate of a decision as it was logged."""
        for seq, blob in self._journal.slates(after=decision - 1, upto=decision):
            return decode(blob, decision=seq)
        raise UnknownName("decision", decision)

    def repeats(self, decision: int) -> bool:
        """Whether a decision can be asked again: not if an expression filtered it that the log does not hold."""
        try:
            Filters.read(self.logged(decision).filters)
        except InputError:
            return False
        return True

    def recall(self, decision: int, pack: Pack) -> Slate:
        """What ``pack`` would have answered: the logged question, filters and vector, nothing explored or written.

        InputError if the recall was filtered by an expression that the log does not hold.
        """
        slate = self.logged(decision)
        try:
            filters = Filters.read(slate.filters)
        except InputError as error:
            raise InputError(f"The recall {decision} cannot be repeated. {error}") from None
        question = Question(
            slate.query,
            at=slate.at,
            project=slate.project,
            session=slate.session,
            filters=filters,
            vector=np.frombuffer(slate.vector, dtype=np.int8),
        )
        state = seen(self._journal, self.before(slate.state), filters.viewer)
        return self._recaller.recall(state, pack, question, limit=slate.limit)
