"""Logged recalls: read by number, and repeated on the state before them under another pack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from memlab.errors import InputError, UnknownName
from memlab.kernel.journal import Event, Journal, JournalView
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Filters, Hits, Question, Recaller, read_memories
from memlab.kernel.slates import Slate, read_slates
from memlab.kernel.state import Change, State
from memlab.kernel.storage.purging import last_purge
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import view_state
from memlab.kernel.verbs.projections import new_state


def find_slate(store: Store, decision: int) -> Slate | None:
    """Return the slate of a logged recall, or None if no recall has this number."""
    return next(read_slates(store.journal, decision - 1, upto=decision), None)


def read_slate(store: Store, decision: int) -> Slate:
    """Return the slate of a logged recall. Raises UnknownName for an unknown number."""
    slate = find_slate(store, decision)
    if slate is None:
        raise UnknownName("logged recall", decision)
    return slate


def read_hits(store: Store, decision: int) -> Hits:
    """Return the hits of a logged recall, with the pack that ranked them.

    Raises UnknownName if no recall has this number. Texts are current, so purged texts are empty.
    """
    slate = read_slate(store, decision)
    with store.reading() as state:
        pack = _find_deciding_pack(store, slate)
        return Hits(slate, pack, decision, read_memories(state, slate.shown))


def _find_deciding_pack(store: Store, slate: Slate) -> Pack:
    """Return the pack that ranked a logged recall, with the parameters of that recall."""
    decision = slate.decision
    event = next(iter(store.journal.events(after=decision - 1, upto=decision)), None)
    body = {} if event is None else event.body
    pack = store.versions.live_at(store.versions.event_of(body.get("of", slate.pack_hash)))
    return pack.with_params(body["params"]) if "params" in body else pack


class Past:
    """Past states of a lab, on which logged recalls are repeated.

    Moving to a later state folds the events in between. Moving to an earlier state folds from the first event.
    """

    def __init__(self, journal: Journal | JournalView, recaller: Recaller) -> None:
        self._journal, self._recaller = journal, recaller
        self._state, self._purged = new_state(), last_purge(journal)
        self._read: tuple[int, int, Slate] | None = None

    def before(self, seq: int) -> State:
        """Return the state after event ``seq``, on which a recall was based."""
        purged = last_purge(self._journal)
        if seq < self._state.seq or purged != self._purged:
            self._state, self._purged = new_state(), purged
        if seq > self._state.seq:
            # The state is detached while it is folded, so that an interrupt leaves no half-folded state.
            state, self._state = self._state, new_state()
            state.fold(self._journal.events(after=state.seq, upto=seq), self._journal)
            self._state = state
        return self._state

    def logged(self, decision: int) -> Slate:
        """Return the slate of a logged recall, caching the last slate."""
        purged = last_purge(self._journal)
        if self._read is not None and self._read[:2] == (decision, purged):
            return self._read[2]
        for slate in read_slates(self._journal, decision - 1, upto=decision):
            self._read = decision, purged, slate
            return slate
        raise UnknownName("decision", decision)

    def repeats(self, decision: int) -> bool:
        """Return whether a logged recall can be repeated.

        A recall that was filtered by an expression cannot, because the log does not store expressions.
        """
        try:
            Filters.read(self.logged(decision).filters)
        except InputError:
            return False
        return True

    def recall(
        self,
        decision: int,
        pack: Pack,
        *,
        instead: Callable[[State], tuple[Change, Change]] | None = None,
    ) -> Slate:
        """Return the slate that ``pack`` would have given for a logged query.

        The query, the filters and the vector come from the log. No candidate is explored, and nothing is written.
        ``instead`` maps the state before the decision to a counterfactual change and its inverse.

        Raises InputError if an expression filtered the recall, which the log does not store.
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
        with self._apply_counterfactual(self.before(slate.state), instead) as state:
            view = view_state(self._journal, state, filters.viewer)
            return self._recaller.recall(view, pack, question, limit=slate.limit)

    @contextmanager
    def _apply_counterfactual(
        self, state: State, instead: Callable[[State], tuple[Change, Change]] | None
    ) -> Iterator[State]:
        """Provide the state after a hypothetical edit, and undo the edit on exit.

        ``instead`` returns the change of the edit and its inverse. Without an edit, the unchanged state is
        provided.
        """
        if instead is None:
            yield state
            return
        change, inverse = (Event(state.seq, 0, "edit", change.body()) for change in instead(state))
        self._state = new_state()  # after an interrupt, folding starts from the first event
        state.fold([change], self._journal)
        yield state
        state.fold([inverse], self._journal)
        self._state = state
