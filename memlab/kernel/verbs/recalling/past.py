"""Recalls of the past: a logged question asked once more, of the state before it, under another pack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from memlab.errors import InputError, UnknownName
from memlab.kernel.journal import Event, Journal, JournalView
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Filters, Question, Recaller
from memlab.kernel.slates import Slate, read_slates
from memlab.kernel.state import Change, State
from memlab.kernel.storage.purging import last_purge
from memlab.kernel.storage.views import seen
from memlab.kernel.verbs.projections import new_state

__all__ = ["Past"]


class Past:
    """The states that a lab has been in. Going forward folds what lies between; going back starts again."""

    def __init__(self, journal: Journal | JournalView, recaller: Recaller) -> None:
        self._journal, self._recaller = journal, recaller
        self._state, self._purged = new_state(), last_purge(journal)
        self._read: tuple[int, int, Slate] | None = None

    def before(self, seq: int) -> State:
        """The state of which a decision that had seen the event ``seq`` was made."""
        purged = last_purge(self._journal)
        if seq < self._state.seq or purged != self._purged:
            self._state, self._purged = new_state(), purged
        if seq > self._state.seq:
            # put aside meanwhile: an interrupt must leave none that is half folded
            state, self._state = self._state, new_state()
            state.fold(self._journal.events(after=state.seq, upto=seq), self._journal)
            self._state = state
        return self._state

    def logged(self, decision: int) -> Slate:
        """The slate of a decision as it was logged; the last one is kept, for packs are asked one after another."""
        purged = last_purge(self._journal)
        if self._read is not None and self._read[:2] == (decision, purged):
            return self._read[2]
        for slate in read_slates(self._journal, decision - 1, upto=decision):
            self._read = decision, purged, slate
            return slate
        raise UnknownName("decision", decision)

    def repeats(self, decision: int) -> bool:
        """Whether a decision can be asked again: not if an expression filtered it that the log does not hold."""
        try:
            Filters.read(self.logged(decision).filters)
        except InputError:
            return False
        return True

    def recall(
        self, decision: int, pack: Pack, *, instead: Callable[[State], tuple[Change, Change]] | None = None
    ) -> Slate:
        """What ``pack`` would have answered: the logged question, filters and vector, nothing explored or written.

        ``instead`` gives, for the state before the decision, what had been so instead, and the way back from there.

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
        with self._supposed(self.before(slate.state), instead) as state:
            view = seen(self._journal, state, filters.viewer)
            return self._recaller.recall(view, pack, question, limit=slate.limit)

    @contextmanager
    def _supposed(self, state: State, instead: Callable[[State], tuple[Change, Change]] | None) -> Iterator[State]:
        if instead is None:
            yield state
            return
        there, back = (Event(state.seq, 0, "edit", change.body()) for change in instead(state))
        self._state = new_state()  # whoever is interrupted here begins again
        state.fold([there], self._journal)
        yield state
        state.fold([back], self._journal)
        self._state = state
