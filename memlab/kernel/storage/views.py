"""A lab as one viewer sees it.

The state of a viewer lacks the memories that are private to others. A read-only store provides it.

All code that reads memories for a viewer uses the state that ``view_state`` returns. If no memory is hidden, this is
the lab's state itself. Otherwise it is a state folded from the events without their hidden parts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import numpy as np

from memlab.errors import InputError, ReadOnlyLab
from memlab.kernel.base.clock import Clock
from memlab.kernel.index import Neighbours
from memlab.kernel.journal import Event, Journal, JournalView, Transaction
from memlab.kernel.slates import question_of
from memlab.kernel.state import State, ViewerState, hidden_rows
from memlab.kernel.storage.store import Store

_KEPT = 8
"""The number of viewers whose states are cached. Each state takes some 20 MB for 100,000 memories."""

# States are cached, because building one takes 0.3 s for 100,000 memories. Updating a state takes only the time of the
# new events.
_views: WeakKeyDictionary[State, OrderedDict[str, ViewerState]] = WeakKeyDictionary()


def view_state(
    journal: Journal | JournalView, state: State, viewer: str | None, *, always: bool = False
) -> State:
    """Return the part of ``state`` that ``viewer`` sees; None sees the whole state.

    ``state`` was folded from ``journal``.

    If no memory is hidden, this is ``state`` itself. With ``always``, it is a separate view even then, which also hides
    other users' recalls without results.

    The first call for a viewer with hidden memories folds the journal, which takes some 0.3 s for 100,000 memories.
    Later calls fold only new events. The caller holds the lock of the state.
    """
    if isinstance(state, ViewerState) or viewer is None:
        return state
    cached = _views.setdefault(state, OrderedDict())
    view = cached.get(viewer)
    if view is not None and view.upto == state.seq:
        cached.move_to_end(viewer)
        return view
    hidden = hidden_rows(state, viewer)
    if hidden is None:
        if not always:
            return state
        hidden = np.zeros(len(state), dtype=np.bool_)
    if view is None or (view.hidden != hidden[: len(view.hidden)]).any():
        view = ViewerState(state, viewer)
    # The view is cached again only when it is complete, so that an interrupt leaves no half-folded view.
    cached.pop(viewer, None)
    view.follow(journal.events(after=view.upto, upto=state.seq), journal, hidden, _Askers(journal))
    cached[viewer] = view
    cached.move_to_end(viewer)
    while len(cached) > _KEPT:
        cached.popitem(last=False)
    return view


class _Askers:
    """A function that returns the viewer who asked a logged recall, by its number.

    Returns None if the recall was asked without a viewer.
    """

    def __init__(self, journal: Journal | JournalView) -> None:
        self._journal = journal

    def __call__(self, decision: int) -> str | None:
        for seq, blob in self._journal.slates(after=decision - 1, upto=decision):
            viewer = question_of(blob, decision=seq).filters.get("viewer")
            return None if viewer is None else str(viewer)
        return None


class ViewerJournal(JournalView):
    """The events that a viewer sees, and the slates of the viewer's own recalls."""

    def __init__(self, store: Store, viewer: str) -> None:
        self._store, self._viewer = store, viewer
        self._journal = (
            store.journal._journal if isinstance(store.journal, JournalView) else store.journal
        )
        self._closed = False

    @property
    def head(self) -> int:  # type: ignore[override]
        """The ``seq`` of the last event of the whole journal."""
        return self._store.journal.head

    @property
    def full(self) -> Journal | JournalView:
        """The whole lab's journal, including events that the viewer does not see."""
        return self._store.journal

    def events(
        self, after: int = 0, *, upto: int | None = None, kinds: Iterable[str] | None = None
    ) -> Iterator[Event]:
        """Yield the visible events with ``after < seq <= upto``, without hidden parts."""
        events = self.full.events(after, upto=upto, kinds=kinds)
        state = self._state()
        if not isinstance(state, ViewerState):
            return events
        return (
            Event(event.seq, event.at, event.kind, state.visible_body(event))
            for event in events
            if event.seq in state.visible
        )

    def slates(self, after: int = 0, *, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the slates of the viewer's recalls."""
        for decision, blob in self.full.slates(after, upto=upto):
            if question_of(blob, decision=decision).filters.get("viewer") == self._viewer:
                yield decision, blob

    def texts(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each memory id, with "" for hidden memories."""
        state, texts = self._state(), self.full.texts(ids)
        hidden = isinstance(state, ViewerState) and state.hidden
        return (
            texts
            if hidden is False
            else ["" if hidden[id - 1] else text for id, text in zip(ids, texts, strict=True)]
        )

    def last_at(self, instant: int) -> int:
        """Return the ``seq`` of the last event at or before ``instant``."""
        return self.full.last_at(instant)

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Transaction]:
        """Raise ReadOnlyLab, because a view cannot be written."""
        raise ReadOnlyLab(
            f'This is the lab as "{self._viewer}" sees it, which is read-only. Write to the lab itself, and give the '
            "creator and the visibility of each memory."
        )
        yield  # makes the function a generator, as contextmanager requires

    def _state(self) -> State:
        with self._store.reading() as state:
            return view_state(self._store.journal, state, self._viewer, always=True)


class ViewerStore(Store):
    """The part of a store that one viewer sees, as a read-only store.

    It can be used while the whole store is open, and writes no files.
    """

    def __init__(self, store: Store, viewer: str) -> None:
        self._of, self.viewer = store, viewer
        self._marked = self._is_reading = False
        self.folder, self._embedder, self.clock = None, store.embedder.plain, store.clock
        self.mutex, self.derived = store.mutex, store.derived
        self.journal = ViewerJournal(store, viewer)
        self.fold()

    @property
    def where(self) -> str:
        """The name of the lab and the viewer, for messages."""
        return f'{self._of.where} as "{self.viewer}" sees it'

    @contextmanager
    def reading(self) -> Iterator[State]:
        """Provide the viewer's current state within a ``with`` block.

        No other thread changes the state within the block.
        """
        with self._of.reading() as state:
            self.state = view_state(self._of.journal, state, self.viewer, always=True)
            self.versions = self._of.versions
            yield self.state

    def fold(self) -> None:
        """Fold the events that any process has added to the journal."""
        with self.reading():
            pass

    def as_of(self, view: JournalView, clock: Clock) -> Store:
        """Return an earlier state of the store as the same viewer sees it."""
        return ViewerStore(self._of.as_of(view, clock), self.viewer)

    def refresh_index(self) -> None:
        """Load the current nearest-neighbour index of the whole lab."""
        self._of.refresh_index()

    @property
    def neighbours(self) -> Neighbours:  # type: ignore[override]
        """Raise InputError, because a viewer has no index of their own."""
        raise InputError(
            "A view of a lab has no index of its own. Use lab.upkeep.index of the lab itself."
        )

    def close(self) -> None:
        """Close the view. The whole store stays open."""
        self.journal.close()
